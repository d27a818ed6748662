//! Bypasses nodes whose result another node has already.

use super::Pruned;
use super::order::topological_order;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::OpRole;

/// Connects the consumers of a node with the endpoint that `same_value` returns for it, and removes
/// the node. Other pure nodes that lose their last consumer are removed too.
///
/// `same_value` gets nodes of one input and one output, and returns an endpoint with the same value
/// as the output. A node stays in these cases:
/// - it has control edges;
/// - it has no consumers, so it is a target;
/// - the endpoint is a reference to a variable;
/// - the endpoint is on another device;
/// - the endpoint comes from control flow or a receive. After `Switch` the node stands for the
///   branch, and other passes expect control flow and receives to be separate from other nodes.
pub(super) fn bypass(
    step: &mut Pruned,
    same_value: impl Fn(&GraphIr, &Node, &[Option<Endpoint>]) -> Option<Endpoint>,
) {
    let graph = &mut step.graph;
    let before = Consumers::of(graph.len(), graph.iter());
    let mut source: Vec<Option<Endpoint>> = vec![None; graph.len()];
    for id in topological_order(graph) {
        if before.only_data(id) {
            source[id.index()] = same_value(graph, graph.node(id), &source)
                .map(|e| resolve(&source, e))
                .filter(|&e| is_direct(graph, graph.node(id), e));
        }
    }
    if source.iter().all(Option::is_none) {
        return;
    }
    for node in &mut graph.nodes {
        node.inputs.iter_mut().for_each(|e| *e = resolve(&source, *e));
    }
    let stay = graph.iter().filter(|(id, _)| source[id.index()].is_none());
    let after = Consumers::of(graph.len(), stay);
    let keep = graph.ids().map(|id| {
        let lost = graph.node(id).op.is_pure() && before.only_data(id) && !after.any(id);
        source[id.index()].is_none() && !lost
    });
    let keep: Vec<bool> = keep.collect();
    step.retain(&keep);
}

/// The endpoint to use in place of `e`.
pub(super) fn resolve(source: &[Option<Endpoint>], e: Endpoint) -> Endpoint {
    source[e.node.index()].unwrap_or(e)
}

/// Whether the consumers of a node can take the value of `from` instead.
fn is_direct(graph: &GraphIr, node: &Node, from: Endpoint) -> bool {
    let origin = graph.node(from.node);
    node.op.is_pure()
        && node.controls.is_empty()
        && node.output_types == [graph.type_of(from)]
        && origin.op.control_flow.is_none()
        && origin.op.role != OpRole::Recv
        && origin.device == node.device
}

/// Which nodes have consumers.
struct Consumers {
    data: Vec<bool>,
    control: Vec<bool>,
}

impl Consumers {
    /// The nodes of a graph of `len` nodes that `nodes` consume.
    fn of<'g>(len: usize, nodes: impl Iterator<Item = (NodeId, &'g Node)>) -> Consumers {
        let (mut data, mut control) = (vec![false; len], vec![false; len]);
        for (_, node) in nodes {
            node.inputs.iter().for_each(|e| data[e.node.index()] = true);
            node.controls.iter().for_each(|c| control[c.index()] = true);
        }
        Consumers { data, control }
    }

    fn only_data(&self, id: NodeId) -> bool {
        self.data[id.index()] && !self.control[id.index()]
    }

    fn any(&self, id: NodeId) -> bool {
        self.data[id.index()] || self.control[id.index()]
    }
}
