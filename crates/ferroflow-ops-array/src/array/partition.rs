//! DynamicPartition and DynamicStitch.

use super::args::{joined, joined_partial, position, require_prefix};
use super::gather::{Plan, gather};
use super::walk::by_width;
use crate::prelude::*;

fn dynamic_partition(ctx: &mut Ctx<'_>) -> Result<()> {
    let (data, partitions) = (ctx.input(0)?, ctx.input(1)?);
    let outer = partitions.rank();
    ensure!(
        data.rank() >= outer && data.shape()[..outer] == partitions.shape()[..],
        InvalidArgument,
        "data.shape must start with partitions.shape, got data.shape = {}, partitions.shape = {}",
        data.shape(),
        partitions.shape()
    );
    let n = ctx.num_outputs();
    let mut rows: Vec<Vec<i64>> = vec![Vec::new(); n];
    for (at, &p) in partitions.as_slice::<i32>()?.iter().enumerate() {
        match usize::try_from(p).ok().and_then(|p| rows.get_mut(p)) {
            Some(rows) => rows.push(at as i64),
            None => bail!(
                InvalidArgument,
                "partitions{} = {p} is not in [0, {n})",
                position(partitions.shape(), at)
            ),
        }
    }
    let rest = &data.shape()[outer..];
    let inner: usize = rest.iter().product();
    let mut parts = Vec::with_capacity(n);
    for rows in &rows {
        let mut out = ctx.alloc(data.dtype(), joined(&[&[rows.len()], rest]))?;
        let plan =
            Plan { batch: 1, outer: 1, rows: partitions.elements(), inner, picks: rows.len() };
        gather(data, rows, plan, &mut out)?;
        parts.push(out);
    }
    for (i, part) in parts.into_iter().enumerate() {
        ctx.set(i, part)?;
    }
    Ok(())
}

fn partition_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (data, partitions) = (c.input(0), c.input(1));
    require_prefix(&data, &partitions)?;
    let (Some(d), Some(outer)) = (data.dims(), partitions.rank()) else {
        return shape::unknown(c);
    };
    Ok(vec![joined_partial(&[Some(&[None]), Some(&d[outer..])]); c.outputs])
}

fn stitch(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = ctx.num_inputs() / 2;
    let (first_data, first_indices) = (ctx.input(n)?, ctx.input(0)?);
    let mut rows = 0usize;
    let mut rest: &[usize] = &[];
    for i in 0..n {
        let (indices, data) = (ctx.input(i)?, ctx.input(n + i)?);
        let depth = indices.rank();
        ensure!(
            data.rank() >= depth && data.shape()[..depth] == indices.shape()[..],
            InvalidArgument,
            "data[{i}].shape = {} does not start with indices[{i}].shape = {}",
            data.shape(),
            indices.shape()
        );
        if i == 0 {
            rest = &data.shape()[depth..];
        }
        ensure!(
            data.shape()[depth..] == *rest,
            InvalidArgument,
            "Need data[0].shape[{}:] = data[{i}].shape[{depth}:], got data[0].shape = {}, \
             data[{i}].shape = {}, indices[0].shape = {}, indices[{i}].shape = {}",
            first_indices.rank(),
            first_data.shape(),
            data.shape(),
            first_indices.shape(),
            indices.shape()
        );
        for &index in indices.as_slice::<i32>()? {
            let Ok(index) = usize::try_from(index) else {
                bail!(InvalidArgument, "indices[{i}] is out of range");
            };
            rows = rows.max(index + 1);
        }
    }
    let shape = joined(&[&[rows], rest]);
    shape.checked_elements()?;
    let len: usize = rest.iter().product();
    // Rows that no index names are zero. TensorFlow leaves them uninitialized.
    let mut out = Tensor::zeros(first_data.dtype(), shape)?;
    for i in 0..n {
        let (indices, data) = (ctx.input(i)?, ctx.input(n + i)?);
        let indices = indices.as_slice::<i32>()?;
        by_width!(data.dtype(), W => put_rows(indices, len, W::of(data)?, W::of_mut(&mut out)?));
    }
    ctx.set(0, out)
}

fn put_rows<W: Movable>(indices: &[i32], len: usize, data: &[W], out: &mut [W]) {
    if len == 0 {
        return;
    }
    for (&index, row) in indices.iter().zip(data.chunks_exact(len)) {
        out[index as usize * len..][..len].clone_from_slice(row);
    }
}

fn stitch_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let n = c.inputs.len() / 2;
    let mut rest = PartialShape::unknown();
    for i in 0..n {
        let (indices, data) = (c.input(i), c.input(n + i));
        require_prefix(&data, &indices)?;
        let (Some(depth), Some(dims)) = (indices.rank(), data.dims()) else { continue };
        rest = rest.merge(&PartialShape::new(dims[depth..].iter().copied()))?;
    }
    let all: Option<Vec<Vec<i64>>> = (0..n).map(|i| c.constant_ints(i)).collect();
    let rows = all.and_then(|all| {
        let max = all.into_iter().flatten().max().unwrap_or(-1);
        usize::try_from(max + 1).ok()
    });
    Ok(vec![joined_partial(&[Some(&[rows]), rest.dims()])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DynamicPartition")
        .doc("Deals the rows of a tensor out to several, as the numbers in `partitions` say.")
        .input("data: T")
        .input("partitions: int32")
        .output("outputs: num_partitions * T")
        .attr("num_partitions: int >= 1")
        .attr("T: type")
        .shape(partition_shape)
        .cpu_fn(dynamic_partition);
    for name in ["DynamicStitch", "ParallelDynamicStitch"] {
        c.op(name)
            .work(work::any)
            .doc("Puts the rows of several tensors where the indices say; later ones win.")
            .input("indices: N * int32")
            .input("data: N * T")
            .output("merged: T")
            .attr("N: int >= 1")
            .attr("T: type")
            .shape(stitch_shape)
            .cpu_fn(stitch);
    }
    c.gradient("DynamicPartition", |g, dy| {
        let (data, partitions) = (g.input(0), g.input(1));
        let numbers = g.range(partitions.size()).reshape(partitions.shape());
        let mut inputs = g.calls_like("DynamicPartition", &[numbers, partitions]);
        inputs.truncate(dy.len());
        inputs.extend(dy);
        let joined = g.call("ParallelDynamicStitch", &inputs);
        Ok(g.only(joined.reshape(data.shape())))
    });
    for op in ["DynamicStitch", "ParallelDynamicStitch"] {
        c.gradient(op, |g, dy| {
            let count = g.num_inputs() / 2;
            let mut all = vec![g.none(); count];
            let dy = dy[0].dense();
            all.extend((0..count).map(|i| g.call("GatherV2", &[dy, g.input(i), g.int(0)])));
            Ok(all)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn i(dims: &[usize], values: &[i32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn partition(data: Tensor, partitions: Tensor, n: i64) -> Check<'static> {
        check("DynamicPartition").input(data).input(partitions).attr("num_partitions", n)
    }

    #[test]
    fn rows_are_dealt_out() {
        let v = || t(&[3], &[1.0, 2.0, 3.0]);
        let out = partition(v(), i(&[3], &[0, 1, 0]), 2).run().unwrap();
        assert_eq!(out, [t(&[2], &[1.0, 3.0]), t(&[1], &[2.0])]);
        let out = partition(v(), i(&[], &[1]), 2).run().unwrap();
        assert_eq!(out, [t(&[0, 3], &[]), t(&[1, 3], &[1.0, 2.0, 3.0])]);
        partition(v(), i(&[3], &[0, 2, 0]), 2)
            .fails(Code::InvalidArgument, "partitions[1] = 2 is not in [0, 2)");
        partition(v(), i(&[2], &[0, 1]), 2).fails(
            Code::InvalidArgument,
            "data.shape must start with partitions.shape, got data.shape = [3], partitions.shape = [2]",
        );
    }

    fn stitch(indices: [Tensor; 2], data: [Tensor; 2]) -> Check<'static> {
        let [a, b] = indices;
        let [c, d] = data;
        check("DynamicStitch").attr("N", 2i64).input(a).input(b).input(c).input(d)
    }

    #[test]
    fn rows_are_put_together() {
        stitch(
            [i(&[2], &[0, 1]), i(&[1, 2], &[1, 2])],
            [t(&[2], &[1.0, 2.0]), t(&[1, 2], &[3.0, 4.0])],
        )
        .gives(t(&[3], &[1.0, 3.0, 4.0]));
        stitch([i(&[2], &[0, 1]), i(&[], &[2])], [t(&[2, 1], &[1.0, 2.0]), t(&[1], &[3.0])])
            .gives(t(&[3, 1], &[1.0, 2.0, 3.0]));
        check("ParallelDynamicStitch")
            .attr("N", 1i64)
            .input(i(&[0], &[]))
            .input(t(&[0], &[]))
            .gives(t(&[0], &[]));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        stitch([i(&[2], &[0, 1]), i(&[1], &[-2])], [t(&[2], &[1.0, 2.0]), t(&[1], &[3.0])])
            .fails(Code::InvalidArgument, "indices[1] is out of range");
        stitch([i(&[2], &[0, 1]), i(&[], &[2])], [t(&[2, 1], &[1.0, 2.0]), t(&[], &[3.0])]).fails(
            Code::InvalidArgument,
            "Need data[0].shape[1:] = data[1].shape[0:], got data[0].shape = [2,1], data[1].shape \
             = [], indices[0].shape = [2], indices[1].shape = []",
        );
        stitch([i(&[2], &[0, 1]), i(&[1], &[2])], [t(&[3], &[0.0; 3]), t(&[1], &[3.0])]).fails(
            Code::InvalidArgument,
            "data[0].shape = [3] does not start with indices[0].shape = [2]",
        );
    }
}
