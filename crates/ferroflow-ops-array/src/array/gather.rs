//! Gather and GatherV2.

use super::args::{joined, joined_partial, position, resolve_axis};
use super::walk::{MOVE_COST, by_width};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuTypes, copy::GatherSizes};
use ferroflow_op_kit::parallel::split_mut;

/// A gather with its sizes: for each `batch` and `outer`, picks `picks` of `rows` rows of `inner`
/// elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub batch: usize,
    pub outer: usize,
    pub rows: usize,
    pub inner: usize,
    pub picks: usize,
}

/// Copies the rows of `params` that `indices` name to `out`. Every index must be below `plan.rows`.
pub(crate) fn gather(params: &Tensor, indices: &[i64], plan: Plan, out: &mut Tensor) -> Result<()> {
    fn go<W: Movable>(
        params: &Tensor,
        indices: &[i64],
        plan: Plan,
        out: &mut Tensor,
    ) -> Result<()> {
        let Plan { batch, outer, rows, inner, picks } = plan;
        let (src, dst) = (W::of(params)?, W::of_mut(out)?);
        if dst.is_empty() {
            return Ok(());
        }
        if batch * outer == 1 {
            split_mut(dst, inner, MOVE_COST, |at, part| {
                pick(src, &indices[at / inner..], inner, part)
            });
            return Ok(());
        }
        let block = rows * inner;
        for b in 0..batch {
            let indices = &indices[b * picks..(b + 1) * picks];
            for o in b * outer..(b + 1) * outer {
                let src = &src[o * block..(o + 1) * block];
                let dst = &mut dst[o * picks * inner..(o + 1) * picks * inner];
                pick(src, indices, inner, dst);
            }
        }
        Ok(())
    }
    by_width!(params.dtype(), W => go::<W>(params, indices, plan, out))
}

/// Copies one row after another until `dst` is full.
fn pick<W: Movable>(src: &[W], indices: &[i64], inner: usize, dst: &mut [W]) {
    if inner == 1 {
        for (d, &i) in dst.iter_mut().zip(indices) {
            *d = src[i as usize].clone();
        }
    } else {
        for (d, &i) in dst.chunks_exact_mut(inner).zip(indices) {
            d.clone_from_slice(&src[i as usize * inner..][..inner]);
        }
    }
}

/// The elements of `indices`, each checked to be below `rows`.
pub(crate) fn checked_indices(indices: &Tensor, rows: usize) -> Result<Vec<i64>> {
    let values = indices.to_indices()?;
    if let Some(at) = values.iter().position(|&i| i < 0 || i >= rows as i64) {
        bail!(
            InvalidArgument,
            "indices{} = {} is not in [0, {rows})",
            position(indices.shape(), at),
            values[at]
        );
    }
    Ok(values)
}

/// Gathers along `axis`. The first `batch_dims` dimensions of both inputs correspond.
fn gather_along(params: &Tensor, indices: &Tensor, axis: i64, batch_dims: i64) -> Result<Tensor> {
    ensure!(params.rank() >= 1, InvalidArgument, "params must be at least 1 dimensional");
    let rank = params.rank();
    let Some(axis) = resolve_axis(axis, rank) else {
        bail!(InvalidArgument, "Expected axis in the range [-{rank}, {rank}), but got {axis}");
    };
    let mut batch = batch_dims;
    if batch != 0 {
        let limit = indices.rank() as i64;
        ensure!(
            -limit <= batch && batch <= limit,
            InvalidArgument,
            "Expected batch_dims in the range [{}, {limit}], but got {batch}",
            -limit
        );
        if batch < 0 {
            batch += limit;
        }
        ensure!(
            batch < rank as i64,
            InvalidArgument,
            "batch_dims ({batch}) must be less than rank(params) ({rank})."
        );
        ensure!(
            axis as i64 >= batch,
            InvalidArgument,
            "batch_dims ({batch}) must be less than or equal to axis ({axis})."
        );
    }
    let batch = batch as usize;
    for i in 0..batch {
        ensure!(
            params.shape()[i] == indices.shape()[i],
            InvalidArgument,
            "params.shape[{i}]: {} should be equal to indices.shape[{i}]: {}",
            params.shape()[i],
            indices.shape()[i]
        );
    }
    let (p, i) = (params.shape(), indices.shape());
    let shape = joined(&[&p[..axis], &i[batch..], &p[axis + 1..]]);
    shape.checked_elements()?;
    let mut out = params.alloc_beside(params.dtype(), shape)?;
    if out.elements() > 0 {
        let count = |dims: &[usize]| dims.iter().product::<usize>();
        let plan = Plan {
            batch: count(&p[..batch]),
            outer: count(&p[batch..axis]),
            rows: p[axis],
            inner: count(&p[axis + 1..]),
            picks: count(&i[batch..]),
        };
        if out.gpu().is_some() {
            let Plan { outer, rows, inner, picks, .. } = plan;
            gpu::copy::gather(params, indices, GatherSizes { outer, rows, inner, picks }, &out)?;
        } else {
            gather(params, &checked_indices(indices, p[axis])?, plan, &mut out)?;
        }
    }
    Ok(out)
}

fn gather_v1(ctx: &mut Ctx<'_>) -> Result<()> {
    let out = gather_along(ctx.input(0)?, ctx.input(1)?, 0, 0)?;
    ctx.set(0, out)
}

fn gather_v2(init: &KernelInit<'_>) -> Result<KernelBox> {
    let batch_dims = init.int("batch_dims")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let axis = ctx.input(2)?;
        ensure!(axis.rank() == 0, InvalidArgument, "axis must be scalar");
        let axis = axis.scalar_index()?;
        let out = gather_along(ctx.input(0)?, ctx.input(1)?, axis, batch_dims)?;
        ctx.set(0, out)
    }))
}

fn gather_shape(c: &ShapeCtx<'_>, axis: Option<i64>, batch: i64) -> Result<Vec<PartialShape>> {
    let (params, indices) = (c.input(0), c.input(1));
    let (Some(p), Some(i)) = (params.dims(), indices.dims()) else {
        return shape::unknown(c);
    };
    let batch = if batch < 0 { batch + i.len() as i64 } else { batch };
    let Some(batch) = usize::try_from(batch).ok().filter(|&b| b <= i.len()) else {
        return shape::unknown(c);
    };
    ensure!(!p.is_empty(), InvalidArgument, "Shape must be at least rank 1 but is rank 0");
    let Some(axis) = axis else {
        return Ok(vec![PartialShape::of_rank(p.len() - 1 + i.len() - batch)]);
    };
    let Some(axis) = resolve_axis(axis, p.len()) else {
        let want = if axis < 0 { -axis } else { axis.saturating_add(1) };
        bail!(InvalidArgument, "Shape must be at least rank {want} but is rank {}", p.len());
    };
    Ok(vec![joined_partial(&[Some(&p[..axis]), Some(&i[batch..]), Some(&p[axis + 1..])])])
}

/// The gradient for a table of shape `shape` from which the rows of input 1 were taken.
pub fn rows_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>, shape: Term<'g>) -> Term<'g> {
    let indices = g.input(1);
    let count = indices.size().reshape(g.ints(&[1]));
    let attrs = Attrs::new().with("end_mask", 1i64);
    let ends = [g.ints(&[1]), g.ints(&[0]), g.ints(&[1])];
    let row = g.call_with("StridedSlice", &[shape, ends[0], ends[1], ends[2]], attrs);
    let values = dy.reshape(g.concat(&[count, row], 0));
    g.slices(values, indices.reshape(count), shape)
}

fn gather_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (params, indices) = (g.input(0), g.input(1));
    let batch_dims = g.attrs().int("batch_dims")?;
    let axis = g.input(2).value().and_then(|v| v.scalar_index().ok());
    if axis == Some(0) && batch_dims == 0 {
        return Ok(g.only(rows_gradient(g, dy[0], params.shape())));
    }
    // The table is viewed as [batches, outer, length, inner] and the gathered rows as [batches,
    // outer, count, inner]. Rows of all tables get consecutive numbers, and rows with the same
    // target are summed. This works for unknown ranks.
    let number = |x: i64| g.number(x as f64, DType::Int64);
    let (shape, index_shape) = (params.shape_as(DType::Int64), indices.shape_as(DType::Int64));
    let rank = |shape: Term<'g>| shape.size().cast(DType::Int64);
    let axis = match axis {
        Some(axis) if axis >= 0 => number(axis),
        _ => g.call("FloorMod", &[g.input(2).cast(DType::Int64), rank(shape)]),
    };
    let batch_dims = match batch_dims {
        0.. => number(batch_dims),
        _ => rank(index_shape) + number(batch_dims),
    };
    let product = |shape: Term<'g>, from: Term<'g>, to: Term<'g>| {
        let part = [shape, from.expand_dims(0), (to - from).expand_dims(0)];
        g.call("Prod", &[g.call("Slice", &part), g.ints(&[0])])
    };
    let dims = |dims: &[Term<'g>]| g.call("Pack", dims);
    let one = number(1);
    let batches = product(shape, number(0), batch_dims);
    let outer = product(shape, batch_dims, axis);
    let length = product(shape, axis, axis + one);
    let inner = product(shape, axis + one, rank(shape));
    let count = product(index_shape, batch_dims, rank(index_shape));
    let tables = batches * outer;
    let first = g.call("Range", &[number(0), tables, one]) * length;
    let places = first.reshape(dims(&[batches, outer, one]))
        + indices.cast(DType::Int64).reshape(dims(&[batches, one, count]));
    let rows = tables * count;
    let values = dy[0].reshape(dims(&[rows, inner]));
    let places = places.reshape(dims(&[rows]));
    let summed = g.call("UnsortedSegmentSum", &[values, places, tables * length]);
    Ok(g.only(summed.reshape(shape)))
}

/// The types that are gathered on GPUs. Rows of `int32` are mostly shapes, which stay on the host.
const ON_GPU: GpuTypes = &[("Tparams", gpu::MOVED), ("Tindices", &[DType::Int32, DType::Int64])];

pub(crate) fn register(c: &mut Catalog) {
    c.op("Gather")
        .work(work::gather::<0, 1>)
        .doc("The rows of a tensor that the indices name.")
        .input("params: Tparams")
        .input("indices: Tindices")
        .output("output: Tparams")
        .attr("validate_indices: bool = true")
        .attr("Tparams: type")
        .attr("Tindices: {int32, int64}")
        .shape(|c| gather_shape(c, Some(0), 0))
        .gpu(ON_GPU, |_| Ok(KernelBox::new(gather_v1)))
        .cpu_fn(gather_v1);
    c.op("GatherV2")
        .work(work::gather::<0, 1>)
        .doc("The slices along an axis of a tensor that the indices name.")
        .input("params: Tparams")
        .input("indices: Tindices")
        .input("axis: Taxis")
        .output("output: Tparams")
        .attr("batch_dims: int = 0")
        .attr("Tparams: type")
        .attr("Tindices: {int16, int32, int64}")
        .attr("Taxis: {int32, int64}")
        .shape(|c| {
            let axis = c.constant_ints(2).and_then(|a| a.first().copied());
            gather_shape(c, axis, c.attrs.int("batch_dims")?)
        })
        .gpu(ON_GPU, gather_v2)
        .host_inputs(&["axis"])
        .cpu(gather_v2);
    c.gradient("Gather", |g, dy| Ok(g.only(rows_gradient(g, dy[0], g.input(0).shape()))));
    c.gradient("GatherV2", gather_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn params() -> Tensor {
        Tensor::from_slice([3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
    }

    fn gather(params: Tensor, indices: Tensor, axis: i32) -> Check<'static> {
        check("GatherV2").input(params).input(indices).input(Tensor::scalar(axis))
    }

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn slices_are_picked() {
        let v = |i: &[i32]| Tensor::vector(i);
        gather(params(), v(&[2, 0]), 0).gives(t(&[2, 2], &[5.0, 6.0, 1.0, 2.0]));
        gather(params(), v(&[1]), -1).gives(t(&[3, 1], &[2.0, 4.0, 6.0]));
        gather(params(), Tensor::scalar(1i64), 0).gives(t(&[2], &[3.0, 4.0]));
        gather(params(), Tensor::vector(&[1i16]), 0).gives(t(&[1, 2], &[3.0, 4.0]));
        gather(t(&[0, 2], &[]), v(&[]), 0).gives(t(&[0, 2], &[]));
        gather(t(&[3, 0], &[]), v(&[7]), 0).gives(t(&[1, 0], &[]));
        check("Gather")
            .input(Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap())
            .input(Tensor::from_slice([1, 2], &[1i32, 1]).unwrap())
            .gives(Tensor::from_strings([1, 2], vec!["b".into(), "b".into()]).unwrap());
    }

    #[test]
    fn batches_go_in_step() {
        let i = |dims: &[usize], v: &[i32]| Tensor::from_slice(Shape::from(dims), v).unwrap();
        gather(params(), i(&[3, 2], &[0, 0, 1, 1, 1, 0]), 1)
            .attr("batch_dims", 1i64)
            .gives(t(&[3, 2], &[1.0, 1.0, 4.0, 4.0, 6.0, 5.0]));
        gather(params(), i(&[3], &[0, 1, 1]), 1)
            .attr("batch_dims", 1i64)
            .gives(t(&[3], &[1.0, 4.0, 6.0]));
        gather(params(), i(&[3, 1], &[0, 1, 1]), 1)
            .attr("batch_dims", -1i64)
            .gives(t(&[3, 1], &[1.0, 4.0, 6.0]));
        for (dims, axis, batch, text) in [
            (&[2, 2][..], 1, 1, "params.shape[0]: 3 should be equal to indices.shape[0]: 2"),
            (&[3, 1], 0, 1, "batch_dims (1) must be less than or equal to axis (0)."),
            (&[3, 1], 1, 3, "Expected batch_dims in the range [-2, 2], but got 3"),
            (&[], 1, 1, "Expected batch_dims in the range [0, 0], but got 1"),
        ] {
            let zeros = Tensor::zeros(DType::Int32, Shape::from(dims)).unwrap();
            gather(params(), zeros, axis)
                .attr("batch_dims", batch as i64)
                .fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn indices_out_of_range_are_named() {
        gather(params(), Tensor::vector(&[0i32, 3]), 0)
            .fails(Code::InvalidArgument, "indices[1] = 3 is not in [0, 3)");
        gather(params(), Tensor::from_slice([1, 2], &[0i64, -1]).unwrap(), 0)
            .fails(Code::InvalidArgument, "indices[0,1] = -1 is not in [0, 3)");
        gather(params(), Tensor::scalar(9i32), 1)
            .fails(Code::InvalidArgument, "indices = 9 is not in [0, 2)");
        gather(t(&[0, 2], &[]), Tensor::vector(&[0i32]), 0)
            .fails(Code::InvalidArgument, "indices[0] = 0 is not in [0, 0)");
        gather(params(), Tensor::vector(&[0i32]), 2)
            .fails(Code::InvalidArgument, "Expected axis in the range [-2, 2), but got 2");
        gather(Tensor::scalar(1.0f32), Tensor::vector(&[0i32]), 0)
            .fails(Code::InvalidArgument, "params must be at least 1 dimensional");
    }

    #[test]
    fn gradients_are_rows_or_slopes() {
        let table = Tensor::from_slice([3, 2], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        let rows = Tensor::vector(&[2i32, 0, 2]);
        check("Gather").input(table.clone()).input(rows.clone()).gradient();
        for axis in [0i32, 1, -1] {
            let at = if axis == 0 { rows.clone() } else { Tensor::vector(&[1i32, 0, 1]) };
            let check = check("GatherV2").input(table.clone()).input(at);
            check.input(Tensor::scalar(axis)).gradient();
        }
    }
}
