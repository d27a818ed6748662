//! Removes nodes that only pass their input on.

use super::Pruned;
use super::order::topological_order;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::OpRole;

/// Connects the consumers of an identity with the identity's input.
///
/// An identity stays in these cases:
/// - it has control edges;
/// - it has no consumers, so it is a target;
/// - it reads a variable through a reference;
/// - it moves a value to another device;
/// - its input comes from control flow or a receive. After `Switch` it stands for the branch, and
///   other passes expect control flow and receives to be separate from other nodes.
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

/// The input of node `id`, if the node only passes it on.
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
