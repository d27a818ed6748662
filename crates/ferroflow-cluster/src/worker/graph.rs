//! The parts of steps that masters register, compiled.

use super::session::WorkerSession;
use crate::wire::cost_graph;
use bytes::Bytes;
use ferroflow_core::{Collectives, DeviceInfo, Reservation, Result, StepStats, ensure, err};
use ferroflow_graph::passes::{Pruned, Rewrites};
use ferroflow_graph::wire::graph::encode_graph;
use ferroflow_graph::{GraphDef, GraphIr, Node, OpRole};
use ferroflow_runtime::{CompiledPart, FunctionRuntime, PartContext, Plan, Task, compile_part};
use std::collections::HashMap;
use std::sync::Arc;

/// A part that is ready to run.
pub(crate) struct RegisteredGraph {
    pub plan: Arc<Plan>,
    pub collectives: Arc<dyn Collectives>,
    graph: GraphIr,
    /// Devices that values are sent to, by their full names.
    pub destinations: Vec<String>,
    /// Kept for kernels of the plan that instantiate functions on first use.
    _functions: Arc<FunctionRuntime>,
    /// Counts its memory for the session.
    pub memory: Reservation,
}

impl RegisteredGraph {
    /// Optimizes a part as requested, and compiles it for `session`. Takes too long for a network
    /// thread.
    pub fn new(
        def: &GraphDef,
        task: &Task,
        session: &WorkerSession,
        rewrites: Rewrites,
        collectives: Arc<dyn Collectives>,
    ) -> Result<RegisteredGraph> {
        let devices: HashMap<&str, &Arc<DeviceInfo>> =
            session.view.devices.iter().map(|d| (d.text.as_str(), d)).collect();
        for node in &def.nodes {
            let (name, device) = (&node.name, &node.device);
            ensure!(
                !device.is_empty(),
                InvalidArgument,
                "Node '{name}' is missing a device specification"
            );
            ensure!(
                devices.contains_key(device.as_str()),
                InvalidArgument,
                "Node '{name}' is placed on {device}, which is no device of {}",
                session.view.name
            );
        }
        let graph = GraphIr::from_def(def, &task.catalog)?;
        let functions = FunctionRuntime::new(
            task.catalog.clone(),
            session.view.devices[0].clone(),
            task.threads.clone(),
        );
        functions.set_library(graph.library.clone());
        let device_of = |node: &Node| {
            let found = devices.get(node.device.as_str()).map(|d| (*d).clone());
            found.ok_or_else(|| err!(Internal, "no device {}", node.device))
        };
        let context = PartContext {
            functions: &functions,
            device_of: &device_of,
            kernels: &session.kernels,
            rewrites,
        };
        let part = Pruned { graph, args: Vec::new(), rets: Vec::new() };
        let CompiledPart { plan, graph } = compile_part(part, &context)?;
        let destinations = destinations(&graph);
        let plan = Arc::new(plan);
        Ok(RegisteredGraph {
            plan,
            collectives,
            graph,
            destinations,
            _functions: functions,
            memory: Reservation::default(),
        })
    }

    /// The cost of the nodes in a step: a serialized CostGraphDef.
    pub fn cost_graph(&self, stats: &StepStats) -> Bytes {
        cost_graph(&self.graph.to_def(), stats)
    }

    /// The graph as it runs, serialized, one for each device.
    pub fn partition_graphs(&self) -> Result<Vec<Bytes>> {
        Ok(vec![encode_graph(&self.graph.to_def())?])
    }
}

fn destinations(graph: &GraphIr) -> Vec<String> {
    let sends = graph.iter().filter(|(_, node)| node.op.role == OpRole::Send);
    let mut devices: Vec<String> =
        sends.filter_map(|(_, node)| node.attrs.string("recv_device").ok()).collect();
    devices.sort();
    devices.dedup();
    devices
}
