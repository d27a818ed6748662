//! Which plans can be recorded.

use super::Recordings;
use crate::gpu_debug;
use crate::plan::{CONTROL, Edge, NodeKind, PlanNode};
use ferroflow_core::{DType, Gpu, HashSet, KernelBox};
use ferroflow_graph::{GraphIr, Node, NodeId, OpRole};
use parking_lot::Mutex;
use std::sync::Arc;

/// The number of nodes that enqueue work, below which a recording does not pay.
const FEWEST_NODES: usize = 2;

/// The recordings of a plan, if it can be recorded: all its work is on one GPU, and what nodes on
/// the host compute depends on constants and shapes alone.
pub(crate) fn recordings_of(
    graph: &GraphIr,
    nodes: &[PlanNode],
    edges: &[Edge],
) -> Option<Recordings> {
    // An error can name a node only if nodes run one by one.
    if gpu_debug::is_on() {
        return None;
    }
    let mut gpu: Option<&Arc<dyn Gpu>> = None;
    let (mut to_host, mut writers, mut enqueuing) = (HashSet::default(), HashSet::default(), 0);
    let mut waiting = Vec::new();
    for (id, node) in graph.iter() {
        let planned = &nodes[id.index()];
        let consumers = || {
            let range = planned.first_edge as usize..(planned.first_edge + planned.edges) as usize;
            edges[range].iter().map(|edge| (edge, &nodes[edge.to as usize]))
        };
        let role_of = |to: u32| graph.node(NodeId(to)).op.role;
        match node.op.role {
            // The value of an argument is used on the GPU alone, and arrives before all other work.
            OpRole::Argument => {
                let is_copied = |(edge, to): (&Edge, &PlanNode)| {
                    role_of(edge.to) == OpRole::ToDevice && to.pending == 1
                };
                if !consumers().all(is_copied) {
                    return None;
                }
            }
            // A value of the GPU is a result, and no node on the host depends on it.
            OpRole::ToHost => {
                let is_result = |(edge, to): (&Edge, &PlanNode)| {
                    edge.slot != CONTROL && matches!(to.kind, NodeKind::Ret(_))
                };
                if node.input_types.iter().any(|t| t.is_ref) || !consumers().all(is_result) {
                    return None;
                }
                to_host.insert(id.0);
            }
            OpRole::Return => {
                if node.inputs.iter().any(|e| graph.type_of(*e).is_ref) || planned.pending > 1 {
                    return None;
                }
            }
            _ => {
                let on_gpu = planned.info.device.gpu.as_ref();
                let on_gpu = on_gpu.filter(|_| node.op.runs_on_gpu(&node.attrs));
                if let Some(its) = on_gpu {
                    enqueuing += 1;
                    if !Arc::ptr_eq(gpu.get_or_insert(its), its) {
                        return None;
                    }
                }
                match &planned.kernel {
                    Some(KernelBox::Async(kernel)) if on_gpu.is_some() => {
                        if !kernel.passes_input_on() {
                            return None;
                        }
                        waiting.push(kernel.clone());
                        continue;
                    }
                    _ if !is_repeatable(node, planned, on_gpu.is_some()) => return None,
                    _ => {}
                }
                if takes_variable(node) && !node.op.reads_variables {
                    writers.insert(id.0);
                }
            }
        }
    }
    let gpu = gpu.filter(|gpu| enqueuing >= FEWEST_NODES && gpu.records_steps())?.clone();
    let for_results = with_sources(graph, &to_host);
    Some(Recordings { gpu, to_host, for_results, writers, waiting, known: Mutex::default() })
}

/// Nodes, and all nodes that they depend on.
fn with_sources(graph: &GraphIr, nodes: &HashSet<u32>) -> HashSet<u32> {
    let (mut found, mut rest) = (nodes.clone(), nodes.iter().copied().collect::<Vec<_>>());
    while let Some(id) = rest.pop() {
        let node = graph.node(NodeId(id));
        let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        rest.extend(sources.map(|source| source.0).filter(|source| found.insert(*source)));
    }
    found
}

fn takes_variable(node: &Node) -> bool {
    node.input_types.first().is_some_and(|t| t.is_ref || t.dtype == DType::Resource)
}

/// Whether a node does the same in every step, apart from its work on the GPU.
fn is_repeatable(node: &Node, planned: &PlanNode, on_gpu: bool) -> bool {
    let op = &node.op;
    let is_sync = matches!(planned.kernel, Some(KernelBox::Sync(_)));
    if !is_sync || op.does_io || op.control_flow.is_some() || op.calls.is_some() {
        return false;
    }
    let takes_variable = takes_variable(node);
    match op.role {
        OpRole::Variable | OpRole::NoOp | OpRole::ToDevice => true,
        OpRole::Plain | OpRole::Constant | OpRole::Identity => {
            // A kernel that changes a variable must do so on the GPU.
            !op.is_stateful && !takes_variable || takes_variable && on_gpu
        }
        _ => false,
    }
}
