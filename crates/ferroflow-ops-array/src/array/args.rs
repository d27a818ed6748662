//! Reads the small integer inputs of array ops: shapes, axes, paddings.

use crate::prelude::*;

/// The shape with these dimensions, with TensorFlow's words for a negative one.
pub(crate) fn to_shape(dims: &[i64]) -> Result<Shape> {
    if let Some(d) = dims.iter().find(|&&d| d < 0) {
        bail!(InvalidArgument, "Dimension {d} must be >= 0");
    }
    Shape::from_dims(dims)
}

/// The non-negative axis that `axis` denotes, if it is in range.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = rank as i64;
    (-rank <= axis && axis < rank).then_some(if axis < 0 { axis + rank } else { axis } as usize)
}

/// A tensor of `dtype` (int16, int32 or int64) with these integers.
pub(crate) fn index_tensor(
    dtype: DType,
    shape: impl Into<Shape>,
    values: &[i64],
) -> Result<Tensor> {
    let shape = shape.into();
    match dtype {
        DType::Int64 => Tensor::from_slice(shape, values),
        DType::Int32 => {
            Tensor::from_slice(shape, &values.iter().map(|&v| v as i32).collect::<Vec<_>>())
        }
        DType::Int16 => {
            Tensor::from_slice(shape, &values.iter().map(|&v| v as i16).collect::<Vec<_>>())
        }
        other => bail!(Internal, "{other} is not a type of indices"),
    }
}

/// The position of element `at` of a tensor as error messages write it: `[1,2]`, or nothing for a
/// scalar.
pub(crate) fn position(shape: &[usize], at: usize) -> String {
    if shape.is_empty() {
        return String::new();
    }
    let mut rest = at;
    let mut at: Vec<String> = Vec::new();
    for &stride in &Shape::from(shape).strides() {
        let stride = stride.max(1);
        at.push((rest / stride).to_string());
        rest %= stride;
    }
    format!("[{}]", at.join(","))
}

/// `shape` with dimension `axis` replaced.
pub(crate) fn with_dim(shape: &[usize], axis: usize, dim: usize) -> Shape {
    let mut dims = shape.to_vec();
    dims[axis] = dim;
    Shape::from(dims)
}

/// `shape` with dimension `axis` replaced by a dimension that may be unknown.
pub(crate) fn with_partial_dim(
    shape: &PartialShape,
    axis: usize,
    dim: Option<usize>,
) -> PartialShape {
    match shape.dims() {
        Some(dims) if axis < dims.len() => PartialShape::new(
            dims.iter().enumerate().map(|(i, d)| if i == axis { dim } else { *d }),
        ),
        _ => shape.clone(),
    }
}

/// Number of elements before, at and after `axis`.
pub(crate) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// Concatenates the dimensions of the shapes.
pub(crate) fn joined(parts: &[&[usize]]) -> Shape {
    parts.iter().flat_map(|p| p.iter().copied()).collect()
}

/// Concatenates the dimensions of `parts`. Unknown if one of them has an unknown rank.
pub(crate) fn joined_partial(parts: &[Option<&[Option<usize>]>]) -> PartialShape {
    let mut dims = Vec::new();
    for part in parts {
        match part {
            Some(part) => dims.extend_from_slice(part),
            None => return PartialShape::unknown(),
        }
    }
    PartialShape::new(dims)
}

/// Checks that a static shape has this rank, if its rank is known.
pub(crate) fn require_rank(shape: &PartialShape, rank: usize) -> Result<()> {
    match shape.rank() {
        Some(found) if found != rank => {
            bail!(InvalidArgument, "Shape must be rank {rank} but is rank {found}")
        }
        _ => Ok(()),
    }
}

/// Checks that a static shape begins with another one, as far as both are known.
pub(crate) fn require_prefix(shape: &PartialShape, prefix: &PartialShape) -> Result<()> {
    let (Some(dims), Some(wanted)) = (shape.dims(), prefix.dims()) else { return Ok(()) };
    ensure!(
        wanted.len() <= dims.len(),
        InvalidArgument,
        "Shape must be at least rank {} but is rank {}",
        wanted.len(),
        dims.len()
    );
    PartialShape::new(dims[..wanted.len()].iter().copied()).merge(prefix).map(|_| ())
}

/// A dimension that scalar input `i` gives, if it is a constant.
pub(crate) fn scalar_dim(c: &ShapeCtx<'_>, i: usize) -> Result<Option<usize>> {
    require_rank(&c.input(i), 0)?;
    let Some(&n) = c.constant_ints(i).as_deref().and_then(|n| n.first()) else { return Ok(None) };
    ensure!(
        n >= 0,
        InvalidArgument,
        "Dimension size, given by scalar input {i}, must be non-negative but is {n}"
    );
    Ok(usize::try_from(n).ok())
}
