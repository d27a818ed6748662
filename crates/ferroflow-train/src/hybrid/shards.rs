//! The shards of tables, and the parameter servers that have them.
//!
//! A graph places the variables of shard `i` on task `i` of the job `ps`, however many parameter
//! servers there are. A session translates these devices to those of the servers that exist, so a
//! graph outlives a change of servers.

use crate::graph::Graph;
use crate::graph_def_session::GraphDefSession;
use crate::session::StepRunner;
use crate::step::{StepOutput, StepRequest};
use ferroflow_core::{DeviceName, Result, Tensor};
use ferroflow_graph::{GraphDef, NodeDef};
use std::sync::Arc;
use std::time::Duration;

/// The job of the parameter servers.
pub(super) const PS: &str = "ps";

/// The shard of a variable: partition `i` of any variable is in shard `i`, others by their name. It
/// is the same in all processes.
pub(super) fn shard_of(name: &str, shards: u32) -> u32 {
    let last = name.rsplit('/').next().unwrap_or_default();
    let part = last.strip_prefix("part_").and_then(|number| number.parse::<u32>().ok());
    // FNV-1a.
    let hash = || {
        let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        name.bytes().fold(0x811c_9dc5, mix)
    };
    part.unwrap_or_else(hash) % shards.max(1)
}

/// The server of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardMap(Vec<u32>);

impl ShardMap {
    /// Distributes shards evenly. With one server more, shards move to that server alone.
    pub fn new(shards: u32, servers: usize) -> ShardMap {
        let mut map = vec![0u32; shards as usize];
        for new in 1..servers.min(map.len()) {
            for _ in 0..map.len() / (new + 1) {
                let load = |server: u32| map.iter().filter(|&&s| s == server).count();
                let fullest = (0..new as u32).rev().max_by_key(|&server| load(server));
                let moved = map.iter().rposition(|&s| Some(s) == fullest);
                if let Some(moved) = moved {
                    map[moved] = new as u32;
                }
            }
        }
        ShardMap(map)
    }

    /// The server of a shard.
    pub fn server(&self, shard: u32) -> u32 {
        self.0.get(shard as usize).copied().unwrap_or(0)
    }
}

/// A session in which the devices of shards are those of their servers.
pub(super) struct Relocated {
    inner: GraphDefSession,
    /// Without it, everything is on one device.
    map: Option<ShardMap>,
}

impl Relocated {
    /// In this process, which has all shards.
    pub fn alone(graph: &Graph) -> Result<Relocated> {
        let inner = GraphDefSession::with_catalog(graph.catalog().clone(), &GraphDef::default())?;
        Ok(Relocated { inner, map: None })
    }

    pub fn onto(inner: GraphDefSession, map: ShardMap) -> Relocated {
        Relocated { inner, map: Some(map) }
    }

    fn place(&self, node: &mut NodeDef) -> Result<()> {
        if node.device.is_empty() {
            return Ok(());
        }
        let mut device = DeviceName::parse(&node.device)?;
        match &self.map {
            None => (device.job, device.replica, device.task) = (None, None, None),
            Some(map) if device.job.as_deref() == Some(PS) => {
                device.task = device.task.map(|shard| map.server(shard));
            }
            Some(_) => return Ok(()),
        }
        node.device = device.to_string();
        Ok(())
    }
}

impl StepRunner for Relocated {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        let mut graph = graph.clone();
        graph.nodes.iter_mut().try_for_each(|node| self.place(node))?;
        for function in &mut graph.functions {
            let function = Arc::make_mut(function);
            function.nodes.iter_mut().try_for_each(|node| self.place(node))?;
        }
        self.inner.extend(&graph)
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        self.inner.run_step(request)
    }

    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        self.inner.partial_run_setup(feeds, fetches, targets)
    }

    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        self.inner.partial_run(handle, feeds, fetches, timeout)
    }

    fn close(&self) -> Result<()> {
        StepRunner::close(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_takes_its_share_and_no_other_shard_moves() {
        for shards in [1, 2, 7, 8, 64] {
            for servers in 1..10usize {
                let (before, after) =
                    (ShardMap::new(shards, servers), ShardMap::new(shards, servers + 1));
                let load = |server: u32| after.0.iter().filter(|&&s| s == server).count();
                let loads: Vec<usize> =
                    (0..(servers + 1).min(shards as usize) as u32).map(load).collect();
                let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
                assert!(most - least <= 1, "{shards} shards: {loads:?}");
                let moved = (0..shards).filter(|&s| before.server(s) != after.server(s));
                assert!(moved.into_iter().all(|s| after.server(s) == servers as u32));
            }
        }
    }

    #[test]
    fn partitions_are_numbered_and_other_variables_are_spread() {
        assert_eq!(shard_of("scope/users/part_11", 8), 3);
        let shards: std::collections::HashSet<u32> =
            (0..64).map(|i| shard_of(&format!("v{i}"), 8)).collect();
        assert_eq!(shards.len(), 8);
    }
}
