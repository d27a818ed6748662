//! Removal of nodes that pass their input on.

use super::Pruned;
use super::order::topological_order;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::OpRole;

/// Connects the consumers of identities with what the identities pass on.
///
/// One stays if it does more than that: it takes part in control edges, nobody consumes it (so it
/// was asked for by name), it reads a variable through a reference, it moves a value to another
/// device, or it stands for the arrival of its input: behind `Switch` it says which branch was
/// taken, and it keeps control flow and receives apart from what others look for next to them.
pub fn remove_identities(step: &mut Pruned) {
    let graph = &mut step.graph;
    let mut has_data_consumer = vec![false; graph.len()];
    let mut has_control_consumer = vec![false; graph.len()];
    for (_, node) in graph.iter() {
        node.inputs.iter().for_each(|e| has_data_consumer[e.node.index()] = true);
        node.controls.iter().for_each(|c| has_control_consumer[c.index()] = true);
    }
    let mut source: Vec<Option<Endpoint>> = vec![None; graph.len()];
    for id in topological_order(graph) {
        let i = id.index();
        if has_data_consumer[i] && !has_control_consumer[i] {
            source[i] = passed_on(graph, id, &source);
        }
    }
    for node in &mut graph.nodes {
        for e in &mut node.inputs {
            *e = source[e.node.index()].unwrap_or(*e);
        }
    }
    let keep: Vec<bool> = source.iter().map(Option::is_none).collect();
    step.retain(&keep);
}

/// What node `id` passes on, if that is all it does.
fn passed_on(graph: &GraphIr, id: NodeId, source: &[Option<Endpoint>]) -> Option<Endpoint> {
    let node = graph.node(id);
    let ([input], [output], []) = (&node.inputs[..], &node.output_types[..], &node.controls[..])
    else {
        return None;
    };
    let from = source[input.node.index()].unwrap_or(*input);
    let origin = graph.node(from.node);
    let only_passes = node.op.role == OpRole::Identity
        && node.op.is_pure()
        && graph.type_of(from) == *output
        && origin.op.control_flow.is_none()
        && origin.op.role != OpRole::Recv
        && origin.device == node.device;
    only_passes.then_some(from)
}
