//! Topological order.

use crate::graph::{GraphIr, Node, NodeId};
use crate::op_def::ControlFlow;

/// All nodes, each after its inputs and control inputs. The edge that closes a loop, from
/// `NextIteration` to `Merge`, is ignored. Nodes of other cycles are left out; an imported graph
/// has none.
pub fn topological_order(graph: &GraphIr) -> Vec<NodeId> {
    let mut pending = vec![0u32; graph.len()];
    let mut consumers: Vec<Vec<NodeId>> = vec![Vec::new(); graph.len()];
    for (id, node) in graph.iter() {
        for i in 0..node.inputs.len() {
            if !closes_loop(graph, node, i) {
                pending[id.index()] += 1;
                consumers[node.inputs[i].node.index()].push(id);
            }
        }
        for c in &node.controls {
            pending[id.index()] += 1;
            consumers[c.index()].push(id);
        }
    }
    let mut order: Vec<NodeId> = graph.ids().filter(|id| pending[id.index()] == 0).collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for &c in &consumers[id.index()] {
            pending[c.index()] -= 1;
            if pending[c.index()] == 0 {
                order.push(c);
            }
        }
    }
    order
}

/// Whether input `i` of `node` closes a loop.
pub(crate) fn closes_loop(graph: &GraphIr, node: &Node, i: usize) -> bool {
    node.op.control_flow == Some(ControlFlow::Merge)
        && graph.node(node.inputs[i].node).op.control_flow == Some(ControlFlow::NextIteration)
}
