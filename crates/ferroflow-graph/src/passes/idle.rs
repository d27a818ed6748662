//! Nodes whose values nobody takes: others wait for them, and no more.

use super::order::topological_order;
use crate::attr::Attrs;
use crate::graph::{GraphIr, NodeId};
use crate::op_def::{OpDef, OpRole};
use ferroflow_core::DType;
use std::sync::Arc;

/// Makes a `NoOp` of every pure node that only control edges leave, unless it is one of `targets`,
/// which were asked for by name. The gradients of a layer are such nodes: they are made all
/// together, and those of the network's own input are of no use. What waits for the node now waits
/// for the node's inputs.
///
/// A node stays if its inputs say more than that they are there: an output of `Switch`, which may be
/// dead, a reference, which may hold nothing yet, or what may be a handle, behind which anything may
/// be changed.
pub(super) fn silence(graph: &mut GraphIr, targets: &[NodeId], no_op: &Arc<OpDef>) {
    let mut is_taken = vec![false; graph.len()];
    targets.iter().for_each(|t| is_taken[t.index()] = true);
    // Consumers first: a node may be idle because another is.
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

/// Whether it is nothing to anyone but its values.
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
