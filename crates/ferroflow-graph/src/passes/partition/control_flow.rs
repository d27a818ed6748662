//! Places the primitives of control flow.

use crate::graph::{GraphIr, NodeId};
use crate::op_def::ControlFlow;
use crate::passes::topological_order;

/// Moves control-flow nodes to the task of their values, so that a loop variable stays on one task.
pub(super) fn colocate(graph: &mut GraphIr) {
    if !graph.iter().any(|(_, n)| n.op.control_flow.is_some()) {
        return;
    }
    let mut consumer: Vec<Option<NodeId>> = vec![None; graph.len()];
    for (id, node) in graph.iter() {
        for e in &node.inputs {
            consumer[e.node.index()].get_or_insert(id);
        }
    }
    // Backward first: a node that enters a loop or its next iteration goes where it is merged.
    let order = topological_order(graph);
    for &id in order.iter().rev() {
        let node = graph.node(id);
        let moves = match node.op.control_flow {
            Some(ControlFlow::Enter) => !node.input_types[0].is_ref,
            Some(ControlFlow::NextIteration) => true,
            _ => false,
        };
        if moves && let Some(to) = consumer[id.index()] {
            graph.node_mut(id).device = graph.node(to).device.clone();
        }
    }
    for id in order {
        let node = graph.node(id);
        let follows = matches!(
            node.op.control_flow,
            Some(ControlFlow::Switch | ControlFlow::SwitchN | ControlFlow::Exit)
        );
        if follows && let Some(e) = node.inputs.first() {
            graph.node_mut(id).device = graph.node(e.node).device.clone();
        }
    }
}
