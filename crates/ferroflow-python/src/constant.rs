//! The values of small integer tensors that the graph alone determines, from which shapes are
//! computed. Parts that depend on the step are unknown.

use ferroflow_core::{DType, PartialShape, Tensor};
use ferroflow_graph::{AttrValue, Endpoint, GraphIr, Node, OpRole};

/// The static shape of each tensor.
pub type Shapes<'a> = &'a dyn Fn(Endpoint) -> PartialShape;

/// The most nodes to follow in a chain.
const MAX_DEPTH: usize = 24;
/// The most elements of a shape.
const MAX_ELEMENTS: usize = 256;

/// A scalar or a vector of integers, some of which may be unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Integers {
    pub is_scalar: bool,
    pub values: Vec<Option<i64>>,
}

impl Integers {
    fn scalar(value: Option<i64>) -> Integers {
        Integers { is_scalar: true, values: vec![value] }
    }

    fn vector(values: Vec<Option<i64>>) -> Integers {
        Integers { is_scalar: false, values }
    }

    fn only(&self) -> Option<i64> {
        if self.values.len() == 1 { self.values[0] } else { None }
    }

    /// The tensor, if all elements are known.
    pub fn tensor(&self, dtype: DType) -> Option<Tensor> {
        let known: Option<Vec<i64>> = self.values.iter().copied().collect();
        tensor(dtype, self.is_scalar, &known?)
    }
}

/// Integers as a tensor of this dtype; `None` if one does not fit.
pub fn tensor(dtype: DType, is_scalar: bool, values: &[i64]) -> Option<Tensor> {
    let shape: &[usize] = if is_scalar { &[] } else { &[values.len()] };
    match dtype {
        DType::Int64 => Tensor::from_slice(shape, values).ok(),
        DType::Int32 => {
            let small: Option<Vec<i32>> = values.iter().map(|&x| i32::try_from(x).ok()).collect();
            Tensor::from_slice(shape, &small?).ok()
        }
        _ => None,
    }
}

/// The value of a constant node.
pub fn value_of(node: &Node) -> Option<&Tensor> {
    if node.op.role != OpRole::Constant {
        return None;
    }
    match node.attrs.get("value") {
        Some(AttrValue::Tensor(value)) => Some(value),
        _ => None,
    }
}

/// The known part of an integer tensor.
pub fn integers(ir: &GraphIr, shape: Shapes<'_>, e: Endpoint) -> Option<Integers> {
    follow(ir, shape, e, MAX_DEPTH)
}

fn follow(ir: &GraphIr, shape: Shapes<'_>, e: Endpoint, depth: usize) -> Option<Integers> {
    let node = ir.node(e.node);
    if !matches!(ir.type_of(e).dtype, DType::Int32 | DType::Int64) || depth == 0 {
        return None;
    }
    if let Some(value) = value_of(node) {
        if value.rank() > 1 || value.elements() > MAX_ELEMENTS {
            return None;
        }
        let values = value.to_indices().ok()?.into_iter().map(Some).collect();
        return Some(Integers { is_scalar: value.rank() == 0, values });
    }
    let input = |i: usize| follow(ir, shape, *node.inputs.get(i)?, depth - 1);
    let input_shape = |i: usize| node.inputs.get(i).map(|e| shape(*e)).unwrap_or_default();
    match node.op.name.as_str() {
        "Identity" | "StopGradient" | "Cast" => input(0),
        "Shape" => {
            let shape = input_shape(0);
            let dims = shape.dims()?.iter().map(|d| d.map(|d| d as i64)).collect();
            Some(Integers::vector(dims))
        }
        "ShapeN" => {
            let shape = input_shape(e.slot as usize);
            let dims = shape.dims()?.iter().map(|d| d.map(|d| d as i64)).collect();
            Some(Integers::vector(dims))
        }
        "Size" => Some(Integers::scalar(input_shape(0).elements().map(|n| n as i64))),
        "Rank" => Some(Integers::scalar(Some(input_shape(0).rank()? as i64))),
        "Pack" => {
            let mut values = Vec::with_capacity(node.inputs.len());
            for (i, e) in node.inputs.iter().enumerate() {
                if shape(*e).rank() != Some(0) {
                    return None;
                }
                values.push(input(i).and_then(|x| x.only()));
            }
            Some(Integers::vector(values))
        }
        "ConcatV2" => {
            let mut values = Vec::new();
            for i in 0..node.inputs.len().checked_sub(1)? {
                match input(i) {
                    Some(part) if !part.is_scalar => values.extend(part.values),
                    _ => values.extend(vec![None; input_shape(i).elements()?]),
                }
            }
            (values.len() <= MAX_ELEMENTS).then(|| Integers::vector(values))
        }
        "ExpandDims" | "Reshape" => {
            let of = input(0)?;
            match shape(e).rank()? {
                0 => Some(Integers::scalar(of.only())),
                1 => Some(Integers::vector(of.values)),
                _ => None,
            }
        }
        "Squeeze" => {
            let of = input(0)?;
            (of.values.len() == 1).then(|| Integers::scalar(of.values[0]))
        }
        "Range" => {
            let (start, limit, delta) =
                (input(0)?.only()?, input(1)?.only()?, input(2)?.only().filter(|d| *d != 0)?);
            let mut values = Vec::new();
            let mut at = start;
            while (delta > 0 && at < limit) || (delta < 0 && at > limit) {
                values.push(Some(at));
                at = at.checked_add(delta)?;
                if values.len() > MAX_ELEMENTS {
                    return None;
                }
            }
            Some(Integers::vector(values))
        }
        "Fill" => {
            let (dims, value) = (input(0)?, input(1)?.only());
            match dims.values[..] {
                [] => Some(Integers::scalar(value)),
                [Some(n)] if (0..=MAX_ELEMENTS as i64).contains(&n) => {
                    Some(Integers::vector(vec![value; n as usize]))
                }
                _ => None,
            }
        }
        "StridedSlice" => strided_slice(node, input(0)?, input(1)?, input(2)?, input(3)?),
        "Slice" => {
            let (of, begin, size) = (input(0)?, input(1)?.only()?, input(2)?.only()?);
            let begin = usize::try_from(begin).ok()?;
            let end = if size < 0 { of.values.len() } else { begin + size as usize };
            Some(Integers::vector(of.values.get(begin..end)?.to_vec()))
        }
        "GatherV2" | "Gather" => {
            let (of, indices) = (input(0)?, input(1)?);
            let pick = |i: &Option<i64>| {
                let i = usize::try_from((*i)?).ok()?;
                of.values.get(i).copied().flatten()
            };
            let values = indices.values.iter().map(pick).collect();
            Some(Integers { is_scalar: indices.is_scalar, values })
        }
        "Add" | "AddV2" => elementwise(input(0)?, input(1)?, i64::checked_add),
        "Sub" => elementwise(input(0)?, input(1)?, i64::checked_sub),
        "Mul" => elementwise(input(0)?, input(1)?, i64::checked_mul),
        "FloorDiv" => elementwise(input(0)?, input(1)?, |a, b| {
            (b != 0).then(|| a.checked_div_euclid(b)).flatten().filter(|_| b > 0)
        }),
        "Maximum" => elementwise(input(0)?, input(1)?, |a, b| Some(a.max(b))),
        "Minimum" => elementwise(input(0)?, input(1)?, |a, b| Some(a.min(b))),
        "Prod" if shape(e).rank() == Some(0) => {
            let of = input(0)?;
            let product = of.values.iter().copied().try_fold(1i64, |p, x| p.checked_mul(x?));
            Some(Integers::scalar(product))
        }
        _ => None,
    }
}

fn elementwise(a: Integers, b: Integers, f: fn(i64, i64) -> Option<i64>) -> Option<Integers> {
    let n = match (a.values.len(), b.values.len()) {
        (x, y) if x == y => x,
        (1, y) => y,
        (x, 1) => x,
        _ => return None,
    };
    let at = |of: &Integers, i: usize| of.values[if of.values.len() == 1 { 0 } else { i }];
    let values = (0..n).map(|i| f(at(&a, i)?, at(&b, i)?)).collect();
    Some(Integers { is_scalar: a.is_scalar && b.is_scalar, values })
}

/// A slice of a vector.
fn strided_slice(
    node: &Node,
    of: Integers,
    begin: Integers,
    end: Integers,
    strides: Integers,
) -> Option<Integers> {
    let mask = |name: &str| node.attrs.int(name).ok().map(|m| m & 1 != 0);
    if of.is_scalar || begin.values.len() != 1 || node.attrs.int("new_axis_mask").ok()? != 0 {
        return None;
    }
    if node.attrs.int("ellipsis_mask").ok()? != 0 {
        return None;
    }
    let len = of.values.len() as i64;
    let step = strides.only()?;
    let clamp = |i: i64| (if i < 0 { i + len } else { i }).clamp(0, len);
    if mask("shrink_axis_mask")? {
        let i = begin.only()?;
        let i = if i < 0 { i + len } else { i };
        return Some(Integers::scalar(*of.values.get(usize::try_from(i).ok()?)?));
    }
    if step <= 0 {
        return None;
    }
    let from = if mask("begin_mask")? { 0 } else { clamp(begin.only()?) };
    let to = if mask("end_mask")? { len } else { clamp(end.only()?) };
    let range = (from..to.max(from)).step_by(step as usize);
    Some(Integers::vector(range.map(|i| of.values[i as usize]).collect()))
}
