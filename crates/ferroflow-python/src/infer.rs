//! Static shapes and values of new nodes.

use crate::constant::{self, Shapes, value_of};
use ferroflow_core::{DType, PartialShape, Result, Tensor};
use ferroflow_graph::{ControlFlow, Endpoint, GraphIr, Node, NodeId, OpRole, ShapeCtx};

/// The shapes of a node's outputs. An error of the op's shape function is the caller's mistake.
pub fn shapes(ir: &GraphIr, shape: Shapes<'_>, id: NodeId) -> Result<Vec<PartialShape>> {
    let node = ir.node(id);
    let unknown = || vec![PartialShape::unknown(); node.output_types.len()];
    if let Some(value) = value_of(node) {
        return Ok(vec![value.shape().into()]);
    }
    if node.op.control_flow == Some(ControlFlow::Merge) {
        return Ok(merged(shape, node));
    }
    if let Some(held) = variable_shape(ir, node) {
        return Ok(vec![held; node.output_types.len()]);
    }
    let Some(infer) = &node.op.shape else { return Ok(unknown()) };
    let inputs: Vec<PartialShape> = node.inputs.iter().map(|e| shape(*e)).collect();
    let constants: Vec<Option<Tensor>> = (0..node.inputs.len())
        .map(|i| {
            let e = node.inputs[i];
            if is_shape(node, i) { shape_argument(ir, shape, e) } else { constant(ir, shape, e) }
        })
        .collect();
    let outputs = node.output_types.len();
    let found =
        infer(&ShapeCtx { attrs: &node.attrs, inputs: &inputs, constants: &constants, outputs })?;
    Ok(if found.len() == outputs { found } else { unknown() })
}

/// Whether an input holds a shape, in which -1 is an unknown dimension.
fn is_shape(node: &Node, i: usize) -> bool {
    let args = &node.op.inputs;
    args.len() == node.inputs.len()
        && (args[i].name == "dims"
            || ["shape", "sizes"].iter().any(|end| args[i].name.ends_with(end)))
}

/// The value of an input, as far as a shape function may know it. Unknown parts are -1, which has
/// the same meaning in a shape argument.
fn shape_argument(ir: &GraphIr, shape: Shapes<'_>, e: Endpoint) -> Option<Tensor> {
    if let Some(value) = value_of(ir.node(e.node)) {
        return Some(value.clone());
    }
    let known = constant::integers(ir, shape, e)?;
    if known.values.iter().filter(|d| d.is_none()).count() > 1 {
        return None;
    }
    if known.is_scalar {
        return known.tensor(ir.type_of(e).dtype);
    }
    let ints: Vec<i64> = known.values.iter().map(|d| d.unwrap_or(-1)).collect();
    constant::tensor(ir.type_of(e).dtype, false, &ints)
}

/// The shape of a variable whose handle the node reads and returns.
fn variable_shape(ir: &GraphIr, node: &Node) -> Option<PartialShape> {
    let [handle] = node.inputs[..] else { return None };
    if !node.op.reads_variables || node.output_types.len() != 1 {
        return None;
    }
    if ir.type_of(handle).dtype != DType::Resource || !node.attrs.contains("dtype") {
        return None;
    }
    let source = through_identities(ir, handle);
    let variable = ir.node(source.node);
    if variable.op.role != OpRole::Variable {
        return None;
    }
    variable.attrs.shape("shape").ok()
}

fn through_identities(ir: &GraphIr, mut e: Endpoint) -> Endpoint {
    loop {
        let node = ir.node(e.node);
        let passes = matches!(
            node.op.control_flow,
            Some(ControlFlow::Enter | ControlFlow::Switch | ControlFlow::Exit)
        );
        match node.inputs.first() {
            Some(&input) if passes || node.op.role == OpRole::Identity => e = input,
            _ => return e,
        }
    }
}

/// `Merge` forwards the input that arrives first, so its shape is the common part of all inputs.
fn merged(shape: Shapes<'_>, node: &Node) -> Vec<PartialShape> {
    let mut common: Option<PartialShape> = None;
    for e in &node.inputs {
        let next = shape(*e);
        common = Some(match common {
            None => next,
            Some(before) => in_common(&before, &next),
        });
    }
    let mut all = vec![PartialShape::scalar(); node.output_types.len()];
    if let (Some(first), Some(common)) = (all.first_mut(), common) {
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

/// The value of a tensor that is known without running the graph.
pub fn constant(ir: &GraphIr, shape: Shapes<'_>, e: Endpoint) -> Option<Tensor> {
    if let Some(value) = value_of(ir.node(e.node)) {
        return Some(value.clone());
    }
    constant::integers(ir, shape, e)?.tensor(ir.type_of(e).dtype)
}

/// The shape that a tensor holds, as far as it is known.
pub fn constant_shape(ir: &GraphIr, shape: Shapes<'_>, e: Endpoint) -> PartialShape {
    if let Some(known) = constant::integers(ir, shape, e)
        && !known.is_scalar
    {
        let dims = known.values.iter().map(|d| d.and_then(|d| usize::try_from(d).ok()));
        return PartialShape::new(dims);
    }
    match shape(e).dim(0) {
        Some(rank) if rank <= 254 && shape(e).rank() == Some(1) => PartialShape::of_rank(rank),
        _ => PartialShape::unknown(),
    }
}
