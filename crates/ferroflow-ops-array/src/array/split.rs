//! Split, SplitV, Unpack: cut a tensor into several.

use super::args::{around, resolve_axis, with_dim, with_partial_dim};
use super::walk::Walk;
use crate::prelude::*;

/// The part of `x` of length `len` that begins at `from` along `axis`. It shares storage with `x`
/// when its elements are contiguous.
pub(crate) fn part(x: &Tensor, axis: usize, from: usize, len: usize) -> Result<Tensor> {
    let (outer, dim, inner) = around(x.shape(), axis);
    let shape = with_dim(x.shape(), axis, len);
    if len == dim {
        return Ok(x.clone());
    }
    if outer == 1 {
        return x.reshape([dim, inner])?.rows(from, len)?.into_shape(shape);
    }
    let mut out = x.alloc_beside(x.dtype(), shape)?;
    let mut walk = Walk::new(from * inner, 0);
    walk.then(outer, (dim * inner) as isize, (len * inner) as isize).then(len * inner, 1, 1);
    walk.copy(x, &mut out)?;
    Ok(out)
}

fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    resolve_axis(axis, rank).ok_or_else(|| {
        err!(
            InvalidArgument,
            "-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"
        )
    })
}

fn split(ctx: &mut Ctx<'_>) -> Result<()> {
    let axis = ctx.input(0)?;
    ensure!(
        axis.rank() == 0,
        InvalidArgument,
        "split_dim must be a scalar but has rank {}",
        axis.rank()
    );
    let axis = axis.scalar_index()?;
    let x = ctx.take(1)?;
    let axis = axis_of(axis, x.rank())?;
    let (n, dim) = (ctx.num_outputs(), x.shape()[axis]);
    ensure!(
        dim.is_multiple_of(n),
        InvalidArgument,
        "Number of ways to split should evenly divide the split dimension, but got split_dim \
         {axis} (size = {dim}) and num_split {n}"
    );
    for i in 0..n {
        ctx.set(i, part(&x, axis, i * (dim / n), dim / n)?)?;
    }
    Ok(())
}

fn split_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let value = c.input(1);
    let Some(rank) = value.rank() else { return shape::unknown(c) };
    let Some(axis) = c.constant_ints(0).and_then(|v| v.first().copied()) else {
        return Ok(vec![PartialShape::of_rank(rank); c.outputs]);
    };
    let axis = axis_of(axis, rank)?;
    let dim = value.dim(axis).map(|d| d / c.outputs.max(1));
    Ok(vec![with_partial_dim(&value, axis, dim); c.outputs])
}

/// The sizes of all parts. One may be given as -1.
fn part_sizes(sizes: &[i64], dim: usize) -> Result<Vec<usize>> {
    let dim = dim as i64;
    if let [only] = sizes {
        ensure!(
            *only == dim,
            InvalidArgument,
            "If there is only one output, it must have the same size as the input. Input size: \
             {dim} output size: {only}"
        );
    }
    let (mut open, mut known) = (None, 0i64);
    for (i, &size) in sizes.iter().enumerate() {
        if size == -1 {
            ensure!(open.is_none(), InvalidArgument, "There can only be one -1 in the input.");
            open = Some(i);
        } else {
            ensure!(
                size >= 0,
                InvalidArgument,
                "Split size at index {i} must be >= 0. Got: {size}"
            );
            known = known.saturating_add(size);
        }
    }
    ensure!(
        known == dim || open.is_some() && known <= dim,
        InvalidArgument,
        "Determined shape must either match input shape along split_dim exactly if fully \
         specified, or be less than the size of the input along split_dim if not fully \
         specified.  Got: {known}"
    );
    let fill = dim - known;
    Ok(sizes.iter().map(|&s| if s == -1 { fill } else { s } as usize).collect())
}

fn split_v(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = ctx.num_outputs();
    let (sizes, axis) = (ctx.input(1)?, ctx.input(2)?);
    ensure!(
        sizes.rank() == 1 && sizes.elements() == n,
        InvalidArgument,
        "size of the split_tensor must be 1-D and have the same elements as outputs got {} -D and \
         {} elements",
        sizes.rank(),
        sizes.elements()
    );
    ensure!(
        axis.elements() == 1,
        InvalidArgument,
        "split_dim_tensor must have exactly one element."
    );
    let (sizes, axis) = (sizes.to_indices()?, axis.scalar_index()?);
    let x = ctx.take(0)?;
    let axis = axis_of(axis, x.rank())?;
    let mut from = 0;
    for (i, len) in part_sizes(&sizes, x.shape()[axis])?.into_iter().enumerate() {
        ctx.set(i, part(&x, axis, from, len)?)?;
        from += len;
    }
    Ok(())
}

fn split_v_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let value = c.input(0);
    let Some(rank) = value.rank() else { return shape::unknown(c) };
    let Some(axis) = c.constant_ints(2).and_then(|v| v.first().copied()) else {
        return Ok(vec![PartialShape::of_rank(rank); c.outputs]);
    };
    let axis = axis_of(axis, rank)?;
    let sizes: Vec<Option<usize>> = match (c.constant_ints(1), value.dim(axis)) {
        (Some(sizes), Some(dim)) => part_sizes(&sizes, dim)?.into_iter().map(Some).collect(),
        (Some(sizes), None) => sizes.iter().map(|&s| usize::try_from(s).ok()).collect(),
        (None, _) => vec![None; c.outputs],
    };
    Ok((0..c.outputs)
        .map(|i| with_partial_dim(&value, axis, sizes.get(i).copied().flatten()))
        .collect())
}

fn unpack(init: &KernelInit<'_>) -> Result<KernelBox> {
    let axis = init.int("axis")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        let (rank, n) = (x.rank(), ctx.num_outputs());
        let Some(axis) = resolve_axis(axis, rank) else {
            let low = if rank == 0 { "0".to_string() } else { format!("-{rank}") };
            bail!(InvalidArgument, "axis = {axis} not in [{low}, {rank})");
        };
        ensure!(
            x.shape()[axis] == n,
            InvalidArgument,
            "Input shape axis {axis} must equal {n}, got shape {}",
            x.shape()
        );
        let mut dims = x.shape().to_vec();
        dims.remove(axis);
        for i in 0..n {
            let piece = part(&x, axis, i, 1)?.into_shape(dims.as_slice())?;
            ctx.set(i, piece)?;
        }
        Ok(())
    }))
}

fn unpack_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let value = c.input(0);
    let Some(dims) = value.dims() else { return shape::unknown(c) };
    let axis = c.attrs.int("axis")?;
    let Some(axis) = resolve_axis(axis, dims.len()) else {
        bail!(InvalidArgument, "axis = {axis} not in [-{0}, {0})", dims.len());
    };
    let mut dims = dims.to_vec();
    dims.remove(axis);
    Ok(vec![PartialShape::new(dims); c.outputs])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Split")
        .doc("Splits a tensor into equal parts along a dimension.")
        .input("split_dim: int32")
        .input("value: T")
        .output("output: num_split * T")
        .attr("num_split: int >= 1")
        .attr("T: type")
        .shape(split_shape)
        .anywhere()
        .host_inputs(&["split_dim"])
        .moves(OpMoves::Split)
        .cpu_fn(split);
    c.op("SplitV")
        .doc("Splits a tensor into parts of the given sizes along a dimension.")
        .input("value: T")
        .input("size_splits: Tlen")
        .input("split_dim: int32")
        .output("output: num_split * T")
        .attr("num_split: int >= 1")
        .attr("T: type")
        .attr("Tlen: {int8, int32, int64} = DT_INT64")
        .shape(split_v_shape)
        .anywhere()
        .host_inputs(&["size_splits", "split_dim"])
        .cpu_fn(split_v);
    c.op("Unpack")
        .doc("Takes a tensor apart along a dimension, which the parts do not have.")
        .input("value: T")
        .output("output: num * T")
        .attr("num: int >= 0")
        .attr("T: type")
        .attr("axis: int = 0")
        .shape(unpack_shape)
        .anywhere()
        .cpu(unpack);
    c.gradient("Split", |g, dy| {
        let mut parts = dy.to_vec();
        parts.push(g.input(0));
        Ok(vec![g.none(), g.call("ConcatV2", &parts)])
    });
    c.gradient("SplitV", |g, dy| {
        let mut parts = dy.to_vec();
        parts.push(g.input(2));
        Ok(g.only(g.call("ConcatV2", &parts)))
    });
    c.gradient("Unpack", |g, dy| Ok(vec![g.call_like("Pack", dy)]));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn x() -> Tensor {
        Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap()
    }

    fn t(dims: [usize; 2], values: &[i32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    fn split(axis: i32, n: i64) -> Check<'static> {
        check("Split").input(Tensor::scalar(axis)).input(x()).attr("num_split", n)
    }

    fn split_v(sizes: &[i64], axis: i32) -> Check<'static> {
        check("SplitV")
            .input(x())
            .input(Tensor::vector(sizes))
            .input(Tensor::scalar(axis))
            .attr("num_split", sizes.len() as i64)
    }

    #[test]
    fn parts_are_equal() {
        assert_eq!(split(0, 2).run().unwrap(), [t([1, 3], &[1, 2, 3]), t([1, 3], &[4, 5, 6])]);
        let columns = split(-1, 3).run().unwrap();
        assert_eq!(columns, [t([2, 1], &[1, 4]), t([2, 1], &[2, 5]), t([2, 1], &[3, 6])]);
        split(1, 2).fails(
            Code::InvalidArgument,
            "evenly divide the split dimension, but got split_dim 1 (size = 3) and num_split 2",
        );
        split(2, 2).fails(
            Code::InvalidArgument,
            "-input rank(-2) <= split_dim < input rank (2), but got 2",
        );
    }

    #[test]
    fn rows_share_the_storage() {
        let x = x();
        let out =
            check("Split").input(Tensor::scalar(0i32)).input(x.clone()).attr("num_split", 2i64);
        assert!(out.run().unwrap().iter().all(|t| t.shares_storage(&x)));
    }

    #[test]
    fn one_size_may_be_left_open() {
        let got = split_v(&[1, -1, 0], 1).run().unwrap();
        assert_eq!(got, [t([2, 1], &[1, 4]), t([2, 2], &[2, 3, 5, 6]), t([2, 0], &[])]);
        assert_eq!(split_v(&[3], 1).run().unwrap(), [x()]);
        for (sizes, text) in [
            (&[1, 1][..], "Determined shape must either match input shape along split_dim exactly"),
            (&[4, -1], "if not fully specified.  Got: 4"),
            (&[-1, -1], "There can only be one -1 in the input."),
            (&[-2, 5], "Split size at index 0 must be >= 0. Got: -2"),
            (&[2], "If there is only one output, it must have the same size as the input."),
            (&[i64::MAX, i64::MAX], "Determined shape"),
        ] {
            split_v(sizes, 1).fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn a_tensor_is_taken_apart() {
        let out = check("Unpack").input(x()).attr("num", 2i64).run().unwrap();
        assert_eq!(out, [Tensor::vector(&[1i32, 2, 3]), Tensor::vector(&[4i32, 5, 6])]);
        let out = check("Unpack").input(x()).attr("num", 3i64).attr("axis", -1i64).run().unwrap();
        assert_eq!(out[1], Tensor::vector(&[2i32, 5]));
        check("Unpack")
            .input(x())
            .attr("num", 3i64)
            .fails(Code::InvalidArgument, "Input shape axis 0 must equal 3, got shape [2,3]");
        check("Unpack")
            .input(Tensor::scalar(1i32))
            .attr("num", 1i64)
            .fails(Code::InvalidArgument, "axis = 0 not in [0, 0)");
        let empty = Tensor::zeros(DType::Float, [0, 3]).unwrap();
        assert!(check("Unpack").input(empty).attr("num", 0i64).run().unwrap().is_empty());
    }
}
