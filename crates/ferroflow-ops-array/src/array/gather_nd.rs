//! GatherNd, and the indexing it shares with the ScatterNd ops.

use super::args::{joined, joined_partial, position};
use super::gather::{Plan, gather};
use crate::prelude::*;
use ferroflow_core::Reservation;
use ferroflow_op_kit::gpu::{self, GpuTypes};
use ferroflow_op_kit::newer_attrs::BAD_INDICES_POLICY;

/// `indices` as slice numbers. A tensor of shape `dims` is cut into slices along as many dimensions
/// as an index has. An index out of range is an error; `bad` words it from the position and the
/// value, both as text.
pub(crate) fn slice_numbers(
    indices: &Tensor,
    dims: &[usize],
    bad: impl FnOnce(String, String) -> Error,
) -> Result<Vec<i64>> {
    let depth = indices.shape().last().copied().unwrap_or(1);
    // There may be many indices without any element.
    let outer = Shape::from(&indices.shape()[..indices.rank().saturating_sub(1)]);
    let count = outer.checked_elements()?;
    let _counted = Reservation::new(count.saturating_mul(size_of::<i64>()))?;
    if depth == 0 {
        return Ok(vec![0; count]);
    }
    let values = indices.to_indices()?;
    let mut numbers = Vec::with_capacity(count);
    for (at, index) in values.chunks_exact(depth).enumerate() {
        let inside = index.iter().zip(dims).all(|(&i, &d)| 0 <= i && i < d as i64);
        if !inside || depth > dims.len() {
            let outer = &indices.shape()[..indices.rank() - 1];
            let text: Vec<String> = index.iter().map(|i| i.to_string()).collect();
            return Err(bad(position(outer, at), format!("[{}]", text.join(", "))));
        }
        // No overflow: smaller than the number of elements of a tensor that exists or was checked
        // to fit.
        numbers.push(index.iter().zip(dims).fold(0, |n, (&i, &d)| n * d as i64 + i));
    }
    Ok(numbers)
}

fn gather_nd(ctx: &mut Ctx<'_>) -> Result<()> {
    let (params, indices) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(params.rank() >= 1, InvalidArgument, "params must be at least a vector");
    ensure!(indices.rank() >= 1, InvalidArgument, "indices must be at least a vector");
    let depth = indices.shape()[indices.rank() - 1];
    ensure!(
        depth <= params.rank(),
        InvalidArgument,
        "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
        params.rank()
    );
    let (taken, rest) = params.shape().split_at(depth);
    let outer = &indices.shape()[..indices.rank() - 1];
    let count: usize = outer.iter().product();
    ensure!(
        params.elements() > 0 || count == 0,
        InvalidArgument,
        "Requested more than 0 entries, but params is empty.  Params shape: {}",
        params.shape()
    );
    let shape = joined(&[outer, rest]);
    shape.checked_elements()?;
    let mut out = params.alloc_beside(params.dtype(), shape)?;
    if out.gpu().is_some() {
        gpu::copy::gather_nd(params, indices, taken, &out)?;
        return ctx.set(0, out);
    }
    let numbers = slice_numbers(indices, taken, |at, index| {
        err!(
            InvalidArgument,
            "indices{at} = {index} does not index into param shape {}, node name: {}",
            params.shape(),
            ctx.name()
        )
    })?;
    let (rows, inner) = (taken.iter().product(), rest.iter().product());
    let plan = Plan { batch: 1, outer: 1, rows, inner, picks: count };
    gather(params, &numbers, plan, &mut out)?;
    ctx.set(0, out)
}

fn gather_nd_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (params, indices) = (c.input(0), c.input(1));
    let (Some(p), Some(i)) = (params.dims(), indices.dims()) else {
        return shape::unknown(c);
    };
    let Some((Some(depth), outer)) = i.split_last() else { return shape::unknown(c) };
    ensure!(
        *depth <= p.len(),
        InvalidArgument,
        "indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params \
         shape: {params}"
    );
    Ok(vec![joined_partial(&[Some(outer), Some(&p[*depth..])])])
}

/// The gradient for a tensor of shape `shape` from which the slices of input 1 were taken.
pub fn scattered<'g>(g: &GradientScope<'g>, dy: Term<'g>, shape: Term<'g>) -> Term<'g> {
    let indices = g.input(1);
    if indices.rank() == Some(2) && indices.static_shape().dim(1) == Some(1) {
        let rows = indices.reshape(g.ints(&[-1]));
        return g.slices(dy.dense(), rows, shape);
    }
    g.call("ScatterNd", &[indices, dy, shape])
}

const ON_GPU: GpuTypes = &[("Tparams", gpu::MOVED), ("Tindices", gpu::INDEX)];

pub(crate) fn register(c: &mut Catalog) {
    c.op("GatherNd")
        .work(work::gather::<0, 1>)
        .doc("The slices of a tensor that the index tuples name.")
        .input("params: Tparams")
        .input("indices: Tindices")
        .output("output: Tparams")
        .attr("Tparams: type")
        .attr("Tindices: {int16, int32, int64}")
        .newer_attr(BAD_INDICES_POLICY)
        .shape(gather_nd_shape)
        .gpu(ON_GPU, |_| Ok(KernelBox::new(gather_nd)))
        .cpu_fn(gather_nd);
    c.gradient("GatherNd", |g, dy| {
        let shape = g.input(0).shape_as(g.input(1).dtype());
        Ok(g.only(scattered(g, dy[0], shape)))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn gather(dims: &[usize], indices: &[i32]) -> Check<'static> {
        let params = Tensor::from_slice([3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        check("GatherNd")
            .input(params)
            .input(Tensor::from_slice(Shape::from(dims), indices).unwrap())
    }

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn tuples_name_elements_or_slices() {
        gather(&[2, 2], &[0, 1, 2, 0]).gives(t(&[2], &[2.0, 5.0]));
        gather(&[2, 1], &[0, 2]).gives(t(&[2, 2], &[1.0, 2.0, 5.0, 6.0]));
        gather(&[2], &[1, 1]).gives(Tensor::scalar(4.0f32));
        gather(&[1, 0], &[]).gives(t(&[1, 3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        check("GatherNd")
            .input(t(&[0, 2], &[]))
            .input(Tensor::zeros(DType::Int32, [0, 1]).unwrap())
            .gives(t(&[0, 2], &[]));
    }

    #[test]
    fn clients_of_newer_releases_may_name_a_policy_for_bad_indices() {
        let given = |policy: &str| gather(&[2], &[1, 1]).attr("bad_indices_policy", policy);
        given("").gives(Tensor::scalar(4.0f32));
        given("ERROR").gives(Tensor::scalar(4.0f32));
        given("IGNORE").fails(Code::InvalidArgument, "attr 'bad_indices_policy'");
    }

    #[test]
    fn tuples_out_of_range_are_named() {
        let text = "indices[1] = [3, 0] does not index into param shape [3,2], node name: node_";
        gather(&[2, 2], &[0, 0, 3, 0]).fails(Code::InvalidArgument, text);
        gather(&[1, 1, 1], &[-1])
            .fails(Code::InvalidArgument, "indices[0,0] = [-1] does not index into param shape");
        gather(&[1, 3], &[0, 0, 0]).fails(
            Code::InvalidArgument,
            "index innermost dimension length must be <= params rank; saw: 3 vs. 2",
        );
        gather(&[], &[1]).fails(Code::InvalidArgument, "indices must be at least a vector");
        check("GatherNd")
            .input(t(&[0, 2], &[]))
            .input(Tensor::from_slice([1, 1], &[0i32]).unwrap())
            .fails(
                Code::InvalidArgument,
                "Requested more than 0 entries, but params is empty.  Params shape: [0,2]",
            );
    }
}
