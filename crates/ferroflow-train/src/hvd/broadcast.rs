//! Broadcasts one rank's variables to all ranks.

use super::World;
use crate::graph::Graph;
use crate::hooks::{Hook, Ran};
use crate::output::Operation;
use crate::session::Session;
use crate::variable::Variable;
use ferroflow_core::Result;

/// An op that sets `variables` to their values on rank `root`.
#[track_caller]
pub(super) fn broadcast_variables(g: &Graph, variables: &[Variable], root: usize) -> Operation {
    g.at_root(|| {
        g.name_scope("broadcast_variables", |_| {
            let given: Vec<Operation> = variables
                .iter()
                .map(|variable| {
                    let name = format!("broadcast/{}", variable.variable_name());
                    let value = g
                        .op("HorovodBroadcast")
                        .input(&variable.read())
                        .attr("root_rank", root as i64)
                        .attr("tensor_name", name.as_str())
                        .output();
                    variable.assign(&value)
                })
                .collect();
            g.group("all", &given)
        })
    })
}

/// A hook that broadcasts all global variables of one rank whenever a session is opened.
pub struct BroadcastVariables {
    broadcast: Operation,
}

impl BroadcastVariables {
    /// For the variables that the graph has now.
    #[track_caller]
    pub fn new(world: &World, graph: &Graph, root: usize) -> BroadcastVariables {
        BroadcastVariables { broadcast: world.broadcast_variables(graph, root) }
    }
}

impl Hook for BroadcastVariables {
    fn created(&mut self, session: &Session, _: i64) -> Result<()> {
        session.run(&self.broadcast)
    }

    fn after(&mut self, _: &mut Ran<'_>) -> Result<()> {
        Ok(())
    }
}
