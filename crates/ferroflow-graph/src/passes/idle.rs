//! Nodes whose values are not used: other nodes only wait for them.

use super::order::topological_order;
use crate::attr::Attrs;
use crate::graph::{GraphIr, NodeId};
use crate::op_def::{OpDef, OpRole};
use ferroflow_core::DType;
use std::sync::Arc;

/// Replaces a pure node by a `NoOp` if only control edges leave it and it is not one of `targets`.
/// Nodes that waited for it then wait for its inputs. The gradient of a network's own input is such
/// a node: it is made together with the gradients of the layer and never used.
///
/// A node stays if one of its inputs matters beyond being ready. An output of `Switch` may be dead,
/// a reference may be uninitialized, and a handle may refer to changing state.
pub(super) fn silence(graph: &mut GraphIr, targets: &[NodeId], no_op: &Arc<OpDef>) {
    let mut is_taken = vec![false; graph.len()];
    targets.iter().for_each(|t| is_taken[t.index()] = true);
    // Consumers first: a node may become idle because its consumer is.
    for id in topological_order(graph).into_iter().rev() {
        if !is_taken[id.index()] && is_idle(graph, id) {
            let node = &mut graph.nodes[id.index()];
            let inputs = std::mem::take(&mut node.inputs);
            node.controls.extend(inputs.iter().map(|e| e.node));
            node.controls.sort_unstable();
            node.controls.dedup();
            node.input_types.clear();
            node.output_types.clear();
            node.attrs = Arc::new(Attrs::new());
            node.op = no_op.clone();
            continue;
        }
        for e in &graph.nodes[id.index()].inputs {
            is_taken[e.node.index()] = true;
        }
    }
}

/// Whether only its values matter.
fn is_idle(graph: &GraphIr, id: NodeId) -> bool {
    let node = graph.node(id);
    let op = &node.op;
    let has_plain_inputs = node.inputs.iter().all(|e| {
        let given = graph.type_of(*e);
        let may_be_handle = matches!(given.dtype, DType::Resource | DType::Variant | DType::String);
        graph.node(e.node).op.control_flow.is_none() && !given.is_ref && !may_be_handle
    });
    op.is_pure()
        && op.role == OpRole::Plain
        && op.calls.is_none()
        && !op.may_wait
        && !node.inputs.is_empty()
        && has_plain_inputs
}
