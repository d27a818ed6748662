//! A compiled step: the part of a session's graph that one set of feeds, fetches and targets needs.

use crate::compile::CompiledPart;
use crate::plan::Plan;
use crate::session::placement::Trials;
use crate::session::{DistributedStep, TaskSession};
use ferroflow_core::{DType, Reservation, Result, Tensor, ensure};
use ferroflow_graph::{GraphIr, NodeId, passes};
use std::sync::Arc;

/// The feeds, fetches and targets of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    pub feeds: Vec<String>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
}

pub(crate) struct Compiled {
    pub how: How,
    pub trials: Trials,
    feeds: Vec<(String, DType)>,
    /// Counts its memory for the session.
    pub memory: Reservation,
}

/// Where a step runs.
pub(crate) enum How {
    /// On the session's own task, with the graph that runs there.
    Here { plan: Arc<Plan>, graph: GraphIr },
    /// On several tasks.
    Distributed(Arc<dyn DistributedStep>),
}

impl Compiled {
    pub fn new(graph: &GraphIr, signature: &Signature, session: &TaskSession) -> Result<Compiled> {
        let mut step = passes::prune(
            graph,
            &signature.feeds,
            &signature.fetches,
            &signature.targets,
            &session.task.catalog,
        )?;
        let dtype = |id: &NodeId| step.graph.node(*id).output_types[0].dtype;
        let feeds = signature.feeds.iter().cloned().zip(step.args.iter().map(dtype)).collect();
        let prediction = session.place_step(&mut step, graph, signature)?;
        let trials = Trials::of(prediction, session.was_moved(signature));
        if let Some(distribute) =
            session.distribute.as_ref().filter(|_| session.is_distributed(&step.graph))
        {
            let step = distribute.prepare(step, &signature.feeds, &signature.fetches)?;
            let (how, memory) = (How::Distributed(step), Reservation::default());
            return Ok(Compiled { how, trials, feeds, memory });
        }
        let CompiledPart { mut plan, graph } = session.compile_part(step)?;
        // Takes the client's names: a pass may have replaced a fetched node by another.
        plan.ret_names = signature.fetches.clone();
        let how = How::Here { plan: Arc::new(plan), graph };
        Ok(Compiled { how, trials, feeds, memory: Reservation::default() })
    }

    /// Feeds must have the dtypes of the tensors they replace.
    pub fn check_feeds(&self, values: &[Tensor]) -> Result<()> {
        for ((name, dtype), value) in self.feeds.iter().zip(values) {
            ensure!(
                *dtype == value.dtype(),
                InvalidArgument,
                "The feed '{name}' has dtype {}, the graph expects {dtype}",
                value.dtype()
            );
        }
        Ok(())
    }
}
