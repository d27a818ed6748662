//! Shape inference over a graph.

use super::order::{closes_loop, topological_order};
use crate::graph::{GraphIr, Node, NodeId};
use crate::op_def::{ControlFlow, OpRole};
use crate::shape::ShapeCtx;
use ferroflow_core::{DType, PartialShape, Tensor};
use std::collections::HashMap;

/// The shape of each output of each node, as far as it is known. If an op's shape function fails,
/// the shape is unknown; the node itself reports the error when it runs.
pub fn infer(graph: &GraphIr) -> Vec<Vec<PartialShape>> {
    infer_given(graph, &HashMap::new())
}

/// The same, with known shapes of the only outputs of some nodes.
pub(crate) fn infer_given(
    graph: &GraphIr,
    given: &HashMap<NodeId, PartialShape>,
) -> Vec<Vec<PartialShape>> {
    let unknown = |n: &Node| vec![PartialShape::unknown(); n.output_types.len()];
    let mut shapes: Vec<Vec<PartialShape>> = graph.iter().map(|(_, n)| unknown(n)).collect();
    for id in topological_order(graph) {
        let node = graph.node(id);
        if let Some(known) = given.get(&id) {
            shapes[id.index()] = vec![known.clone(); node.output_types.len()];
            continue;
        }
        let input = |i: usize| {
            let e = node.inputs[i];
            shapes[e.node.index()].get(e.slot as usize).cloned().unwrap_or_default()
        };
        let inputs: Vec<PartialShape> = (0..node.inputs.len()).map(input).collect();
        let found = match node.op.control_flow {
            Some(ControlFlow::Merge) => Some(merge_shapes(graph, node, &inputs)),
            _ => node_shapes(node, &inputs, |i| {
                let e = node.inputs[i];
                constant(graph.node(e.node)).filter(|_| e.slot == 0).cloned()
            }),
        };
        let found = match (found, read_shape(graph, node)) {
            (Some(found), Some(read)) if found.iter().all(|s| s.rank().is_none()) => {
                Some(vec![read; found.len()])
            }
            (found, _) => found,
        };
        if let Some(found) = found
            && found.len() == node.output_types.len()
        {
            shapes[id.index()] = found;
        }
    }
    shapes
}

/// The declared shape of the variable that a node reads through its only input, a handle.
fn read_shape(graph: &GraphIr, node: &Node) -> Option<PartialShape> {
    let (&[handle], [port]) = (&node.inputs[..], &node.output_types[..]) else { return None };
    let variable = graph.node(handle.node);
    let is_read = node.op.reads_variables
        && variable.op.role == OpRole::Variable
        && graph.type_of(handle).dtype == DType::Resource
        && variable.attrs.dtype("dtype").is_ok_and(|dtype| dtype == port.dtype);
    match variable.attrs.get("shape").filter(|_| is_read) {
        Some(crate::AttrValue::Shape(shape)) => Some(shape.clone()),
        _ => None,
    }
}

/// The shapes of a node's outputs, from the shapes of its inputs and the values of constant inputs.
/// `None` if nothing is known.
pub(crate) fn node_shapes(
    node: &Node,
    inputs: &[PartialShape],
    value: impl Fn(usize) -> Option<Tensor>,
) -> Option<Vec<PartialShape>> {
    if let Some(value) = constant(node) {
        return Some(vec![value.shape().into()]);
    }
    let infer = node.op.shape.as_ref()?;
    let constants: Vec<Option<Tensor>> = (0..node.inputs.len()).map(value).collect();
    let outputs = node.output_types.len();
    infer(&ShapeCtx { attrs: &node.attrs, inputs, constants: &constants, outputs }).ok()
}

/// The value of a constant.
pub(crate) fn constant(node: &Node) -> Option<&Tensor> {
    if node.op.role != OpRole::Constant {
        return None;
    }
    match node.attrs.get("value") {
        Some(crate::AttrValue::Tensor(t)) => Some(t),
        _ => None,
    }
}

/// `Merge` passes on the input that arrives first. Its shape is what all inputs have in common, and
/// unknown in a loop. Its second output is the index of the input.
fn merge_shapes(graph: &GraphIr, node: &Node, inputs: &[PartialShape]) -> Vec<PartialShape> {
    let mut common = inputs.first().cloned().unwrap_or_default();
    for (i, shape) in inputs.iter().enumerate() {
        common = match closes_loop(graph, node, i) {
            true => PartialShape::unknown(),
            false => in_common(&common, shape),
        };
        if common.rank().is_none() {
            break;
        }
    }
    let mut all = vec![PartialShape::scalar(); node.output_types.len()];
    if let Some(first) = all.first_mut() {
        *first = common;
    }
    all
}

fn in_common(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            PartialShape::new(a.iter().zip(b).map(|(x, y)| x.filter(|_| x == y)))
        }
        _ => PartialShape::unknown(),
    }
}
