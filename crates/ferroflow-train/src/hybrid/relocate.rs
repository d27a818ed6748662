//! Moves shards between parameter servers that are all running.

use super::shards::{PS, ShardMap};
use super::{Hybrid, Member, OPEN_TO_MOVE};
use crate::graph::Graph;
use crate::output::Operation;
use crate::session::Session;
use crate::variable::Variable;
use ferroflow_core::{DeviceName, Result, ensure};
use std::sync::Arc;

impl Hybrid {
    /// Moves the shards of `variables` from the servers `from` to the servers `to`, directly from
    /// server to server. Returns the number of variables that moved. An error if a server does not
    /// answer, or if a task has another address than before.
    pub(super) fn move_shards(
        &self,
        member: &Member,
        variables: &[Variable],
        from: &[String],
        to: &[String],
    ) -> Result<usize> {
        ensure!(
            from.iter().zip(to).all(|(old, new)| old == new),
            FailedPrecondition,
            "a parameter server has another address than before"
        );
        let all = if from.len() > to.len() { from } else { to };
        let (old, new) =
            (ShardMap::new(self.0.shards, from.len()), ShardMap::new(self.0.shards, to.len()));
        let g = Graph::with_catalog(self.world().catalog().clone());
        let mut moves = Vec::new();
        for variable in variables {
            let shard = DeviceName::parse(&variable.device())?.task.unwrap_or(0);
            let (source, target) = (old.server(shard), new.server(shard));
            if source != target {
                moves.push(copy(&g, variable, source, target));
            }
        }
        g.check()?;
        if moves.is_empty() {
            return Ok(0);
        }
        let session = member.open(all, &self.device(), OPEN_TO_MOVE)?;
        let session = Session::with_runner(&g, Arc::new(session))?;
        // One variable at a time, because two servers hold it during its move.
        let moved = moves.iter().try_for_each(|(copied, dropped)| {
            session.run(copied)?;
            session.run(dropped)
        });
        let _ = session.close();
        moved.map(|()| moves.len())
    }
}

/// Ops that copy a variable to another server, and that remove it from the first.
fn copy(g: &Graph, variable: &Variable, source: u32, target: u32) -> (Operation, Operation) {
    let on = |server: u32| format!("/job:{PS}/task:{server}");
    let handle = |server: u32| {
        g.device(&on(server), || {
            let op = g.op("VarHandleOp").attr("dtype", variable.dtype());
            let op = op.attr("shape", variable.variable_shape().clone());
            op.attr("shared_name", variable.variable_name()).output()
        })
    };
    let (old, new) = (handle(source), handle(target));
    let value = g.device(&on(source), || {
        g.op("ReadVariableOp").input(&old).attr("dtype", variable.dtype()).output()
    });
    let copied =
        g.device(&on(target), || g.op("AssignVariableOp").input(&new).input(&value).operation());
    let dropped = g.device(&on(source), || g.op("DestroyResourceOp").input(&old).operation());
    (copied, dropped)
}
