//! Reshape, ExpandDims, Squeeze: change the shape without a copy.

use super::args::resolve_axis;
use crate::prelude::*;

/// The shape that `sizes` denotes for `elements` elements. One size may be -1.
fn resolve(sizes: &[i64], elements: usize) -> Result<Shape> {
    let mut unknown = None;
    let mut product: usize = 1;
    let mut overflows = false;
    for (i, &size) in sizes.iter().enumerate() {
        match usize::try_from(size) {
            Ok(size) => match product.checked_mul(size) {
                Some(p) => product = p,
                None => overflows = true,
            },
            Err(_) if size == -1 => {
                if let Some(first) = unknown.replace(i) {
                    bail!(
                        InvalidArgument,
                        "Only one input size may be -1, not both {first} and {i}"
                    );
                }
            }
            Err(_) => bail!(InvalidArgument, "Size {i} must be non-negative, not {size}"),
        }
    }
    let mut dims = sizes.to_vec();
    if let Some(i) = unknown {
        dims[i] = if product > 0 && !overflows {
            ensure!(
                elements.is_multiple_of(product),
                InvalidArgument,
                "Input to reshape is a tensor with {elements} values, but the requested shape \
                 requires a multiple of {product}"
            );
            (elements / product) as i64
        } else {
            1
        };
    }
    let requested = match (overflows, unknown) {
        (true, _) => None,
        (false, Some(i)) => product.checked_mul(dims[i] as usize),
        (false, None) => Some(product),
    };
    ensure!(
        requested == Some(elements),
        InvalidArgument,
        "Input to reshape is a tensor with {elements} values, but the requested shape has {}",
        requested.map_or("too many".to_string(), |n| n.to_string())
    );
    Shape::from_dims(&dims)
}

pub fn reshape(ctx: &mut Ctx<'_>) -> Result<()> {
    let sizes = ctx.input(1)?;
    ensure!(sizes.rank() <= 1, InvalidArgument, "sizes input must be 1-D, not {}", sizes.shape());
    let sizes = sizes.to_indices()?;
    let x = ctx.take(0)?;
    // A tensor without elements and one open size: the other dimensions determine the open size
    // where possible.
    let shape = match (x.elements(), sizes.iter().filter(|&&s| s == -1).count()) {
        (0, 1) => resolve_empty(&sizes, x.shape())?,
        (n, _) => resolve(&sizes, n)?,
    };
    let y = x.into_shape(shape)?;
    ctx.set(0, y)
}

/// Like [`resolve`] for tensors without elements. Keeps the product of the nonzero dimensions if
/// possible, as TensorFlow does.
fn resolve_empty(sizes: &[i64], shape: &Shape) -> Result<Shape> {
    let mut dims = sizes.to_vec();
    let open = sizes.iter().position(|&s| s == -1);
    let known: i64 = sizes.iter().filter(|&&s| s > 0).fold(1, |n, &d| n.saturating_mul(d));
    let have = shape.iter().filter(|&&d| d > 0).fold(1i64, |n, &d| n.saturating_mul(d as i64));
    if let Some(open) = open {
        dims[open] = if !sizes.contains(&0) {
            0
        } else if have % known == 0 {
            have / known
        } else {
            0
        };
    }
    resolve(&dims, 0)
}

pub fn reshape_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(sizes) = c.constant_ints(1) else {
        return Ok(vec![c.shape_from(1)]);
    };
    if let Some(n) = input.elements() {
        if n == 0 && sizes.contains(&-1) {
            let shape = input.known().unwrap_or_default();
            return Ok(vec![resolve_empty(&sizes, &shape)?.into()]);
        }
        return Ok(vec![resolve(&sizes, n)?.into()]);
    }
    PartialShape::from_i64s(&sizes).map(|s| vec![s])
}

fn expand_dims(ctx: &mut Ctx<'_>) -> Result<()> {
    let dim = ctx.input(1)?;
    ensure!(dim.elements() == 1, InvalidArgument, "'dim' must be a tensor with a single value");
    let dim = dim.scalar_index()?;
    let x = ctx.take(0)?;
    let Some(at) = resolve_axis(dim, x.rank() + 1) else {
        bail!(
            InvalidArgument,
            "Tried to expand dim index {dim} for tensor with {} dimensions.",
            x.rank()
        );
    };
    let mut dims = x.shape().to_vec();
    dims.insert(at, 1);
    let y = x.into_shape(dims)?;
    ctx.set(0, y)
}

fn expand_dims_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(vec![PartialShape::unknown()]) };
    let Some([dim]) = c.constant_ints(1).map(|d| <[i64; 1]>::try_from(d).unwrap_or([i64::MAX]))
    else {
        return Ok(vec![PartialShape::of_rank(dims.len() + 1)]);
    };
    let Some(at) = resolve_axis(dim, dims.len() + 1) else {
        bail!(
            InvalidArgument,
            "Tried to expand dim index {dim} for tensor with {} dimensions.",
            dims.len()
        );
    };
    let mut dims = dims.to_vec();
    dims.insert(at, Some(1));
    Ok(vec![PartialShape::new(dims)])
}

/// The dimensions that `axes` drop from a shape of this rank. Without axes, all of size 1.
fn squeezed(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut drop = vec![false; rank];
    for &axis in axes {
        let Some(at) = resolve_axis(axis, rank) else {
            bail!(
                InvalidArgument,
                "Tried to squeeze dim index {axis} for tensor with {rank} dimensions."
            );
        };
        drop[at] = true;
    }
    Ok(drop)
}

fn squeeze(init: &KernelInit<'_>) -> Result<KernelBox> {
    let axes = init.ints("squeeze_dims")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        let drop = squeezed(&axes, x.rank())?;
        let mut dims = Vec::with_capacity(x.rank());
        for (i, &d) in x.shape().iter().enumerate() {
            ensure!(
                !drop[i] || d == 1,
                InvalidArgument,
                "Can not squeeze dim[{i}], expected a dimension of 1, got {d}"
            );
            if !(drop[i] || axes.is_empty() && d == 1) {
                dims.push(d);
            }
        }
        let y = x.into_shape(dims)?;
        ctx.set(0, y)
    }))
}

fn squeeze_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (input, axes) = (c.input(0), c.attrs.ints("squeeze_dims")?);
    let Some(dims) = input.dims() else { return Ok(vec![PartialShape::unknown()]) };
    if axes.is_empty() {
        // It is unknown whether an unknown dimension is dropped, so the rank is unknown.
        if dims.contains(&None) {
            return Ok(vec![PartialShape::unknown()]);
        }
        return Ok(vec![PartialShape::new(dims.iter().filter(|d| **d != Some(1)).copied())]);
    }
    let drop = squeezed(&axes, dims.len())?;
    for (i, dim) in dims.iter().enumerate() {
        if let Some(size) = dim.filter(|&size| drop[i] && size != 1) {
            bail!(
                InvalidArgument,
                "Can not squeeze dim[{i}], expected a dimension of 1, got {size}"
            );
        }
    }
    let kept = dims.iter().zip(drop).filter(|(_, drop)| !drop).map(|(d, _)| *d);
    Ok(vec![PartialShape::new(kept)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Reshape")
        .doc("The same elements in another shape, of which one dimension may be -1.")
        .input("tensor: T")
        .input("shape: Tshape")
        .output("output: T")
        .attr("T: type")
        .attr("Tshape: {int32, int64} = DT_INT32")
        .shape(reshape_shape)
        .anywhere()
        .host_inputs(&["shape"])
        .moves(OpMoves::Reshape)
        .cpu_fn(reshape);
    c.op("ExpandDims")
        .doc("Inserts a dimension of size 1.")
        .input("input: T")
        .input("dim: Tdim")
        .output("output: T")
        .attr("T: type")
        .attr("Tdim: {int32, int64} = DT_INT32")
        .shape(expand_dims_shape)
        .anywhere()
        .host_inputs(&["dim"])
        .cpu_fn(expand_dims);
    c.op("Squeeze")
        .doc("Drops dimensions of size 1: those named, or all.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("squeeze_dims: list(int) >= 0 = []")
        .shape(squeeze_shape)
        .anywhere()
        .cpu(squeeze);
    for op in ["Reshape", "ExpandDims", "Squeeze"] {
        c.gradient(op, |g, dy| Ok(g.only(dy[0].dense().reshape_like(g.input(0)))));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn reshape(from: &[usize], to: &[i32]) -> Check<'static> {
        let x = Tensor::zeros(DType::Float, Shape::from(from)).unwrap();
        check("Reshape").input(x).input(Tensor::vector(to))
    }

    fn shape_of(check: Check<'_>) -> Vec<usize> {
        check.run().unwrap()[0].shape().to_vec()
    }

    #[test]
    fn the_open_size_is_worked_out() {
        assert_eq!(shape_of(reshape(&[2, 3], &[-1])), [6]);
        assert_eq!(shape_of(reshape(&[2, 3], &[3, -1, 1])), [3, 2, 1]);
        assert_eq!(shape_of(reshape(&[0, 3], &[-1, 0])), [3, 0]);
        assert_eq!(shape_of(reshape(&[0, 3], &[-1, 2])), [0, 2]);
        assert_eq!(shape_of(reshape(&[1, 1], &[])), [0usize; 0]);
    }

    #[test]
    fn a_reshape_copies_nothing() {
        let x = Tensor::vector(&[1i32, 2, 3, 4]);
        let y = check("Reshape").input(x.clone()).input(Tensor::vector(&[2i64, 2])).run().unwrap();
        assert!(y[0].shares_storage(&x));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (to, text) in [
            (&[4][..], "tensor with 6 values, but the requested shape has 4"),
            (&[-1, 4], "the requested shape requires a multiple of 4"),
            (&[-1, -1], "Only one input size may be -1, not both 0 and 1"),
            (&[-2, 3], "Size 0 must be non-negative, not -2"),
            (&[-1, 0], "tensor with 6 values, but the requested shape has 0"),
        ] {
            reshape(&[2, 3], to).fails(Code::InvalidArgument, text);
        }
        let x = Tensor::zeros(DType::Float, [2, 3]).unwrap();
        check("Reshape")
            .input(x.clone())
            .input(Tensor::vector(&[1i64 << 40, 1 << 40]))
            .fails(Code::InvalidArgument, "Input to reshape is a tensor with 6 values");
        check("Reshape")
            .input(x)
            .input(Tensor::from_slice([1, 2], &[2i32, 3]).unwrap())
            .fails(Code::InvalidArgument, "sizes input must be 1-D, not [1,2]");
    }

    #[test]
    fn a_dimension_is_inserted() {
        let x = Tensor::zeros(DType::Float, [2, 3]).unwrap();
        let at = |dim: i32| check("ExpandDims").input(x.clone()).input(Tensor::scalar(dim));
        assert_eq!(shape_of(at(0)), [1, 2, 3]);
        assert_eq!(shape_of(at(-1)), [2, 3, 1]);
        assert_eq!(shape_of(at(-3)), [1, 2, 3]);
        at(3).fails(
            Code::InvalidArgument,
            "Tried to expand dim index 3 for tensor with 2 dimensions.",
        );
    }

    #[test]
    fn dimensions_of_one_are_dropped() {
        let x = Tensor::zeros(DType::Float, [1, 3, 1]).unwrap();
        let of =
            |axes: &[i64]| check("Squeeze").input(x.clone()).attr("squeeze_dims", axes.to_vec());
        assert_eq!(shape_of(of(&[])), [3]);
        assert_eq!(shape_of(of(&[0])), [3, 1]);
        assert_eq!(shape_of(of(&[0, -1, 0])), [3]);
        of(&[1]).fails(
            Code::InvalidArgument,
            "Can not squeeze dim[1], expected a dimension of 1, got 3",
        );
        of(&[-4]).fails(
            Code::InvalidArgument,
            "Tried to squeeze dim index -4 for tensor with 3 dimensions.",
        );
    }
}
