//! Concat, ConcatV2, ConcatOffset, Pack, ParallelConcat: join tensors.

use super::args::{index_tensor, joined_partial, resolve_axis, with_partial_dim};
use super::walk::Walk;
use crate::prelude::*;

/// Writes `parts`, each of `outer` rows, side by side into `out`.
fn side_by_side(parts: &[&Tensor], outer: usize, out: &mut Tensor) -> Result<()> {
    if outer == 0 {
        return Ok(());
    }
    let row: usize = parts.iter().map(|p| p.elements() / outer).sum();
    let mut at = 0;
    for part in parts {
        let len = part.elements() / outer;
        let mut walk = Walk::new(0, at);
        walk.then(outer, len as isize, row as isize).then(len, 1, 1);
        walk.copy(part, out)?;
        at += len;
    }
    Ok(())
}

/// Joins `parts` along `axis`.
pub fn concat(parts: &[&Tensor], axis: i64) -> Result<Tensor> {
    let first = parts[0];
    ensure!(
        parts.iter().all(|p| p.rank() > 0),
        InvalidArgument,
        "ConcatOp : Can't concatenate scalars (use tf.stack instead)"
    );
    let rank = first.rank();
    let Some(axis) = resolve_axis(axis, rank) else {
        bail!(
            InvalidArgument,
            "ConcatOp : Expected concatenating dimensions in the range [-{rank}, {rank}), but got \
             {axis}"
        );
    };
    let mut total: i64 = 0;
    for (i, part) in parts.iter().enumerate() {
        ensure!(
            part.rank() == rank,
            InvalidArgument,
            "ConcatOp : Ranks of all input tensors should match: shape[0] = {} vs. shape[{i}] = {}",
            first.shape(),
            part.shape()
        );
        for d in (0..rank).filter(|&d| d != axis) {
            ensure!(
                part.shape()[d] == first.shape()[d],
                InvalidArgument,
                "ConcatOp : Dimension {d} in both shapes must be equal: shape[0] = {} vs. \
                 shape[{i}] = {}",
                first.shape(),
                part.shape()
            );
        }
        total = total.saturating_add(part.shape()[axis] as i64);
    }
    let mut dims = first.shape().to_i64s();
    dims[axis] = total;
    let shape = Shape::from_dims(&dims)?;
    if let Some(whole) = parts.iter().find(|p| *p.shape() == shape) {
        return Ok((*whole).clone()); // all others are empty
    }
    let mut out = first.alloc_beside(first.dtype(), shape)?;
    side_by_side(parts, first.shape()[..axis].iter().product(), &mut out)?;
    Ok(out)
}

/// The kernel; the axis is input 0 in version 1 and the last input in version 2.
fn concat_op(axis_first: bool) -> fn(&mut Ctx<'_>) -> Result<()> {
    fn go(
        ctx: &mut Ctx<'_>,
        axis_at: usize,
        values: std::ops::Range<usize>,
        name: &str,
    ) -> Result<()> {
        let axis = ctx.input(axis_at)?;
        ensure!(
            axis.elements() == 1,
            InvalidArgument,
            "{name} tensor should be a scalar integer, but got shape {}",
            axis.shape()
        );
        let axis = axis.scalar_index()?;
        let out = concat(&ctx.inputs(values)?, axis)?;
        ctx.set(0, out)
    }
    if axis_first {
        |ctx| go(ctx, 0, 1..ctx.num_inputs(), "concat_dim")
    } else {
        |ctx| {
            let last = ctx.num_inputs() - 1;
            go(ctx, last, 0..last, "axis")
        }
    }
}

/// Joins shapes that have the same rank and differ only in `axis`.
fn concat_shape(parts: &[PartialShape], axis: Option<i64>) -> Result<PartialShape> {
    let Some(rank) = parts.iter().find_map(|p| p.rank()) else {
        return Ok(PartialShape::unknown());
    };
    let Some(axis) = axis else { return Ok(PartialShape::of_rank(rank)) };
    let Some(axis) = resolve_axis(axis, rank) else {
        bail!(InvalidArgument, "Concat dimension {axis} is out of range for inputs of rank {rank}");
    };
    let (mut merged, mut total) = (PartialShape::of_rank(rank), Some(0usize));
    for part in parts {
        merged = merged.merge(&with_partial_dim(part, axis, None))?;
        total = total.zip(part.dim(axis)).and_then(|(a, b)| a.checked_add(b));
    }
    Ok(with_partial_dim(&merged, axis, total))
}

fn scalar_constant(c: &ShapeCtx<'_>, i: usize) -> Option<i64> {
    c.constant_ints(i).and_then(|v| v.first().copied())
}

fn concat_offset(ctx: &mut Ctx<'_>) -> Result<()> {
    let dim = ctx.input(0)?;
    ensure!(
        dim.rank() == 0,
        InvalidArgument,
        "Concat dim tensor should be a scalar integer, but got shape {}",
        dim.shape()
    );
    let dim = dim.scalar_index()?;
    let mut shapes = Vec::with_capacity(ctx.num_inputs() - 1);
    for i in 1..ctx.num_inputs() {
        let t = ctx.input(i)?;
        ensure!(
            t.rank() == 1,
            InvalidArgument,
            "input {i} should be a vector, but got shape {}",
            t.shape()
        );
        shapes.push(t.to_indices()?);
    }
    let first = &shapes[0];
    let Some(axis) = resolve_axis(dim, first.len()) else {
        bail!(InvalidArgument, "Concat dim is out of range: {dim} vs. {}", first.len());
    };
    let dtype = ctx.input(1)?.dtype();
    let mut offset = 0i64;
    let mut outputs = Vec::with_capacity(shapes.len());
    for (i, shape) in shapes.iter().enumerate() {
        ensure!(
            shape.len() == first.len(),
            InvalidArgument,
            "input {i} should contain {} elements, but got {}",
            first.len(),
            shape.len()
        );
        let alike = shape.iter().zip(first).enumerate().all(|(d, (a, b))| d == axis || a == b);
        let words = |s: &[i64]| s.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(" ");
        ensure!(
            alike,
            InvalidArgument,
            "All dimensions except {axis} must match. Input {i} has shape [{}] and doesn't match \
             input 0 with shape [{}].",
            words(shape),
            words(first)
        );
        let mut at = vec![0i64; first.len()];
        at[axis] = offset;
        outputs.push(index_tensor(dtype, [at.len()], &at)?);
        offset = offset.wrapping_add(shape[axis]);
    }
    for (i, t) in outputs.into_iter().enumerate() {
        ctx.set(i, t)?;
    }
    Ok(())
}

fn pack(init: &KernelInit<'_>) -> Result<KernelBox> {
    let axis = init.int("axis")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let parts = ctx.inputs(0..ctx.num_inputs())?;
        let shape = parts[0].shape();
        let rank = shape.rank() + 1;
        let Some(at) = resolve_axis(axis, rank) else {
            bail!(InvalidArgument, "axis = {axis} not in [-{rank}, {rank})");
        };
        for (i, part) in parts.iter().enumerate() {
            ensure!(
                part.shape() == shape,
                InvalidArgument,
                "Shapes of all inputs must match: values[0].shape = {shape} != values[{i}].shape = \
                 {}",
                part.shape()
            );
        }
        let mut dims = shape.to_i64s();
        dims.insert(at, parts.len() as i64);
        let packed = Shape::from_dims(&dims)?;
        let out = if let [only] = parts[..] {
            only.reshape(packed)?
        } else {
            let mut out = parts[0].alloc_beside(parts[0].dtype(), packed)?;
            side_by_side(&parts, shape[..at].iter().product(), &mut out)?;
            out
        };
        drop(parts);
        ctx.set(0, out)
    }))
}

fn pack_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let merged = c.inputs.iter().try_fold(PartialShape::unknown(), |a, b| a.merge(b))?;
    let Some(dims) = merged.dims() else { return Ok(vec![PartialShape::unknown()]) };
    let (axis, rank) = (c.attrs.int("axis")?, dims.len() + 1);
    let Some(at) = resolve_axis(axis, rank) else {
        bail!(InvalidArgument, "axis = {axis} not in [-{rank}, {rank})");
    };
    let n = [Some(c.inputs.len())];
    Ok(vec![joined_partial(&[Some(&dims[..at]), Some(&n), Some(&dims[at..])])])
}

/// The output shape that attribute `shape` gives.
fn known_shape(init: &KernelInit<'_>) -> Result<Shape> {
    let shape = init.shape("shape")?;
    let known = shape.known();
    known.ok_or_else(|| err!(InvalidArgument, "shape {shape} must be fully defined"))
}

/// Replaces row `at` of `out` with the single row `update`.
fn put_row(out: &mut Tensor, update: &Tensor, at: usize) -> Result<()> {
    let alike = out.rank() > 0
        && out.rank() == update.rank()
        && out.shape()[1..] == update.shape()[1..]
        && update.shape()[0] == 1;
    ensure!(
        alike,
        InvalidArgument,
        "value and update shape doesn't match {} vs. {}",
        out.shape(),
        update.shape()
    );
    let row = update.elements();
    let mut walk = Walk::new(0, at * row);
    walk.then(row, 1, 1);
    walk.copy(update, out)
}

fn parallel_concat(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (shape, dtype) = (known_shape(init)?, init.dtype("T")?);
    ensure!(
        shape.first() == Some(&(init.int("N")? as usize)),
        InvalidArgument,
        "shape {shape} must have as many rows as there are values"
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut out = ctx.alloc(dtype, shape.clone())?;
        for i in 0..ctx.num_inputs() {
            put_row(&mut out, ctx.input(i)?, i)?;
        }
        ctx.set(0, out)
    }))
}

fn parallel_concat_start(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (shape, dtype) = (known_shape(init)?, init.dtype("dtype")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let out = Tensor::zeros(dtype, shape.clone())?;
        ctx.set(0, out)
    }))
}

fn parallel_concat_update(init: &KernelInit<'_>) -> Result<KernelBox> {
    let loc = init.int("loc")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut out = ctx.take_or_copy(0)?;
        let rows = out.shape().first().copied().unwrap_or(0) as i64;
        let at = if loc < 0 { loc + rows } else { loc };
        ensure!(
            (0..rows).contains(&at),
            InvalidArgument,
            "loc {loc} is not a row of shape {}",
            out.shape()
        );
        put_row(&mut out, ctx.input(1)?, at as usize)?;
        ctx.set(0, out)
    }))
}

/// Splits a gradient into one part for each joined tensor.
fn parted<'g>(
    g: &GradientScope<'g>,
    dy: Term<'g>,
    parts: &[Term<'g>],
    axis: Term<'g>,
) -> Result<Vec<Term<'g>>> {
    if let [_] = parts {
        return Ok(vec![dy]);
    }
    let at = axis.value().and_then(|v| v.scalar_index().ok());
    let length = |t: &Term<'g>| {
        let (at, rank) = (at?, t.rank()? as i64);
        let at = usize::try_from(if at < 0 { at + rank } else { at }).ok()?;
        t.static_shape().dim(at).map(|n| n as i64)
    };
    let sizes = match parts.iter().map(length).collect::<Option<Vec<i64>>>() {
        Some(known) => g.ints(&known),
        None => {
            let at = axis.cast(DType::Int32);
            let rank = parts[0].rank_term();
            let at = at.with("FloorMod", rank).reshape(g.ints(&[1]));
            let one = g.ints(&[1]);
            let sizes: Vec<Term<'g>> =
                parts.iter().map(|t| g.call("Slice", &[t.shape(), at, one])).collect();
            g.concat(&sizes, 0)
        }
    };
    let attrs = Attrs::new().with("num_split", parts.len() as i64);
    Ok(g.calls_with("SplitV", &[dy, sizes, axis.cast(DType::Int32)], attrs))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Concat")
        .doc("Joins tensors along a dimension.")
        .input("concat_dim: int32")
        .input("values: N * T")
        .output("output: T")
        .attr("N: int >= 2")
        .attr("T: type")
        .shape(|c| Ok(vec![concat_shape(c.inputs.get(1..).unwrap_or(&[]), scalar_constant(c, 0))?]))
        .anywhere()
        .host_inputs(&["concat_dim"])
        .cpu_fn(concat_op(true));
    c.op("ConcatV2")
        .doc("Joins tensors along a dimension.")
        .input("values: N * T")
        .input("axis: Tidx")
        .output("output: T")
        .attr("N: int >= 2")
        .attr("T: type")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| {
            let last = c.inputs.len().saturating_sub(1);
            Ok(vec![concat_shape(&c.inputs[..last], scalar_constant(c, last))?])
        })
        .anywhere()
        .host_inputs(&["axis"])
        .moves(OpMoves::Join)
        .cpu_fn(concat_op(false));
    c.op("ConcatOffset")
        .doc("Where each of several shapes begins in their concatenation.")
        .input("concat_dim: int32")
        .input("shape: N * shape_type")
        .output("offset: N * shape_type")
        .attr("N: int >= 2")
        .attr("shape_type: {int32, int64} = DT_INT32")
        .shape(|c| Ok((1..=c.outputs).map(|i| c.input(i)).collect()))
        .anywhere()
        .host_inputs(&["concat_dim", "shape"])
        .host_outputs(&["offset"])
        .cpu_fn(concat_offset);
    c.op("Pack")
        .doc("Stacks tensors of one shape along a new dimension.")
        .input("values: N * T")
        .output("output: T")
        .attr("N: int >= 1")
        .attr("T: type")
        .attr("axis: int = 0")
        .shape(pack_shape)
        .anywhere()
        .cpu(pack);
    c.op("ParallelConcat")
        .doc("Joins tensors of one row each.")
        .input("values: N * T")
        .output("output: T")
        .attr("N: int >= 1")
        .attr("T: type")
        .attr("shape: shape")
        .shape(shape::from_attr)
        .cpu(parallel_concat);
    c.op("_ParallelConcatStart")
        .doc("The tensor that the rows of a ParallelConcat are put into.")
        .output("output: dtype")
        .attr("shape: shape")
        .attr("dtype: type")
        .stateful()
        .shape(shape::from_attr)
        .cpu(parallel_concat_start);
    c.op("_ParallelConcatUpdate")
        .doc("Its input with one row replaced.")
        .input("value: T")
        .input("update: T")
        .output("output: T")
        .attr("T: type")
        .attr("loc: int")
        .shape(shape::same_as_input)
        .cpu(parallel_concat_update);
    c.gradient("Concat", |g, dy| {
        let parts = g.inputs().split_off(1);
        let mut all = vec![g.none()];
        all.extend(parted(g, dy[0], &parts, g.input(0))?);
        Ok(all)
    });
    c.gradient("ConcatV2", |g, dy| {
        let mut parts = g.inputs();
        let Some(axis) = parts.pop() else { bail!(Internal, "a ConcatV2 without inputs") };
        let mut all = parted(g, dy[0], &parts, axis)?;
        all.push(g.none());
        Ok(all)
    });
    c.no_gradient(&["ConcatOffset"]);
    c.gradient("Pack", |g, dy| {
        let attrs =
            Attrs::new().with("num", g.attrs().int("N")?).with("axis", g.attrs().int("axis")?);
        Ok(g.calls_with("Unpack", &[dy[0]], attrs))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn t(dims: &[usize], from: i32) -> Tensor {
        let shape = Shape::from(dims);
        let values: Vec<i32> = (from..from + shape.elements() as i32).collect();
        Tensor::from_slice(shape, &values).unwrap()
    }

    fn want(dims: &[usize], values: &[i32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn tensors_are_joined_along_any_axis() {
        let v2 = |axis: i32| {
            let parts = check("ConcatV2").input(t(&[2, 2], 0)).input(t(&[2, 2], 10));
            parts.input(Tensor::scalar(axis))
        };
        v2(0).gives(want(&[4, 2], &[0, 1, 2, 3, 10, 11, 12, 13]));
        v2(1).gives(want(&[2, 4], &[0, 1, 10, 11, 2, 3, 12, 13]));
        v2(-1).gives(want(&[2, 4], &[0, 1, 10, 11, 2, 3, 12, 13]));
        check("Concat")
            .input(Tensor::scalar(0i32))
            .input(Tensor::string("a").reshape([1]).unwrap())
            .input(Tensor::from_strings([2], vec!["b".into(), "c".into()]).unwrap())
            .gives(Tensor::from_strings([3], vec!["a".into(), "b".into(), "c".into()]).unwrap());
    }

    #[test]
    fn one_whole_part_is_passed_on() {
        let whole = t(&[2, 3], 0);
        let out = check("ConcatV2")
            .input(t(&[2, 0], 0))
            .input(whole.clone())
            .input(Tensor::scalar(1i64))
            .run()
            .unwrap();
        assert!(out[0].shares_storage(&whole));
        assert_eq!(out[0], whole);
    }

    #[test]
    fn unlike_parts_are_refused() {
        let fails = |a: &[usize], b: &[usize], axis: i32, text: &str| {
            check("ConcatV2")
                .input(t(a, 0))
                .input(t(b, 0))
                .input(Tensor::scalar(axis))
                .fails(Code::InvalidArgument, text)
        };
        fails(
            &[1, 2],
            &[1, 2],
            2,
            "Expected concatenating dimensions in the range [-2, 2), but got 2",
        );
        fails(&[], &[], 0, "ConcatOp : Can't concatenate scalars (use tf.stack instead)");
        fails(
            &[1, 2],
            &[2],
            0,
            "Ranks of all input tensors should match: shape[0] = [1,2] vs. shape[1] = [2]",
        );
        fails(
            &[1, 2],
            &[1, 3],
            0,
            "Dimension 1 in both shapes must be equal: shape[0] = [1,2] vs. shape[1] = [1,3]",
        );
    }

    #[test]
    fn offsets_add_up() {
        let v = Tensor::vector::<i32>;
        let out = check("ConcatOffset")
            .input(Tensor::scalar(-1i32))
            .input(v(&[2, 3]))
            .input(v(&[2, 4]))
            .input(v(&[2, 5]))
            .run()
            .unwrap();
        assert_eq!(out, [v(&[0, 0]), v(&[0, 3]), v(&[0, 7])]);
        let bad = |dim: i32, b: &[i32]| {
            check("ConcatOffset").input(Tensor::scalar(dim)).input(v(&[2, 3])).input(v(b))
        };
        bad(2, &[2, 4]).fails(Code::InvalidArgument, "Concat dim is out of range: 2 vs. 2");
        bad(0, &[2]).fails(Code::InvalidArgument, "input 1 should contain 2 elements, but got 1");
        bad(0, &[2, 4]).fails(
            Code::InvalidArgument,
            "All dimensions except 0 must match. Input 1 has shape [2 4] and doesn't match input 0 \
             with shape [2 3].",
        );
    }

    #[test]
    fn tensors_are_stacked() {
        let stack =
            |axis: i64| check("Pack").input(t(&[2], 0)).input(t(&[2], 10)).attr("axis", axis);
        stack(0).gives(want(&[2, 2], &[0, 1, 10, 11]));
        stack(1).gives(want(&[2, 2], &[0, 10, 1, 11]));
        stack(-2).gives(want(&[2, 2], &[0, 1, 10, 11]));
        stack(2).fails(Code::InvalidArgument, "axis = 2 not in [-2, 2)");
        check("Pack").input(t(&[2], 0)).attr("axis", -1i64).gives(want(&[2, 1], &[0, 1]));
        check("Pack").input(t(&[2], 0)).input(t(&[3], 0)).fails(
            Code::InvalidArgument,
            "Shapes of all inputs must match: values[0].shape = [2] != values[1].shape = [3]",
        );
    }

    #[test]
    fn rows_are_put_together() {
        check("ParallelConcat")
            .input(t(&[1, 2], 0))
            .input(t(&[1, 2], 10))
            .attr("shape", PartialShape::from([2, 2]))
            .gives(want(&[2, 2], &[0, 1, 10, 11]));
        check("ParallelConcat")
            .input(t(&[1, 2], 0))
            .attr("shape", PartialShape::from([1, 3]))
            .fails(Code::InvalidArgument, "value and update shape doesn't match [1,3] vs. [1,2]");
        check("_ParallelConcatUpdate")
            .input(t(&[2, 2], 0))
            .input(t(&[1, 2], 10))
            .attr("loc", -1i64)
            .gives(want(&[2, 2], &[0, 1, 10, 11]));
    }
}
