//! SparseReorder, SparseReshape, SparseConcat, SparseSlice, SparseSplit: values at other places.

use super::coo::{Coo, gather, index_matrix, list, pick, sparse_like};
use crate::prelude::*;
use ferroflow_core::Reservation;

fn reorder(ctx: &mut Ctx<'_>) -> Result<()> {
    let sparse = Coo::input(ctx, 0)?;
    let order = sparse.order();
    let indices: Vec<i64> = order.iter().flat_map(|&i| sparse.at(i).to_vec()).collect();
    let indices = index_matrix(&indices, sparse.rank(), order.len())?;
    let values = pick(sparse.values, &order)?;
    ctx.set(0, indices)?;
    ctx.set(1, values)
}

/// The shape asked for, with its one unknown dimension worked out.
fn resolve(from: &[i64], wanted: &[i64]) -> Result<Vec<i64>> {
    let total = Shape::from_dims(from)?.elements() as i64;
    let mut unknown = None;
    let mut known = 1i64;
    for (d, &size) in wanted.iter().enumerate() {
        if size == -1 {
            if let Some(other) = unknown {
                bail!(
                    InvalidArgument,
                    "only one output dimension may be -1, not both {other} and {d}"
                );
            }
            unknown = Some(d);
            continue;
        }
        ensure!(size >= 0, InvalidArgument, "size {d} must be non-negative, not {size}");
        known = known
            .checked_mul(size)
            .ok_or_else(|| err!(InvalidArgument, "the shape asked for has too many elements"))?;
    }
    let mut shape = wanted.to_vec();
    if let Some(d) = unknown {
        ensure!(
            known > 0,
            InvalidArgument,
            "reshape cannot infer the missing input size for an empty tensor unless all specified \
             input sizes are non-zero"
        );
        shape[d] = total / known;
        if total % known != 0 {
            shape[d] = 1;
            bail!(
                InvalidArgument,
                "Input to reshape is a SparseTensor with {total} dense values, but the requested \
                 shape requires a multiple of {known}. input_shape={} output_shape={}",
                list(from),
                list(&shape)
            );
        }
    }
    let have: i64 = shape.iter().product();
    ensure!(
        have == total,
        InvalidArgument,
        "Input to reshape is a tensor with {total} dense values, but the requested shape has \
         {have}. input_shape={} output_shape={}",
        list(from),
        list(&shape)
    );
    Ok(shape)
}

fn reshape(ctx: &mut Ctx<'_>) -> Result<()> {
    let (indices, from, wanted) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        indices.rank() == 2,
        InvalidArgument,
        "Input indices should be a matrix but received shape {}",
        indices.shape()
    );
    ensure!(
        from.rank() == 1,
        InvalidArgument,
        "Input shape should be a vector but received shape {}",
        from.shape()
    );
    ensure!(
        wanted.rank() == 1,
        InvalidArgument,
        "Target shape should be a vector but received shape {}",
        wanted.shape()
    );
    ensure!(
        indices.shape()[1] == from.elements(),
        InvalidArgument,
        "Input tensor rank must match input shape length."
    );
    let from = from.to_indices()?;
    let shape = resolve(&from, &wanted.to_indices()?)?;
    let (rows, rank) = (indices.shape()[0], from.len());
    ensure!(
        rows == 0 || !shape.contains(&0),
        InvalidArgument,
        "a sparse tensor of shape {} has no elements, but {rows} values",
        list(&from)
    );
    let old = Shape::from_dims(&from)?.strides();
    let new = Shape::from_dims(&shape)?.strides();
    let places = indices.as_slice::<i64>()?;
    let mut moved = Vec::with_capacity(rows * shape.len());
    for row in 0..rows {
        let place = &places[row * rank..(row + 1) * rank];
        let mut id = place
            .iter()
            .zip(&old)
            .fold(0i64, |id, (&x, &s)| id.wrapping_add(x.wrapping_mul(s as i64)));
        for &s in &new {
            let s = std::cmp::max(s as i64, 1);
            moved.push(id / s);
            id %= s;
        }
    }
    let moved = index_matrix(&moved, shape.len(), rows)?;
    ctx.set(0, moved)?;
    ctx.set(1, Tensor::vector(&shape))
}

fn concat(ctx: &mut Ctx<'_>, dim: i64) -> Result<()> {
    let n = ctx.num_inputs() / 3;
    let mut parts = Vec::with_capacity(n);
    for i in 0..n {
        parts.push(Coo::new(ctx.input(i)?, ctx.input(n + i)?, ctx.input(2 * n + i)?)?);
    }
    let Some(first) = parts.first() else {
        bail!(InvalidArgument, "nothing to concatenate");
    };
    let rank = first.rank() as i64;
    ensure!(
        -rank <= dim && dim < rank,
        InvalidArgument,
        "Concat dimension must be in range [{}, {rank}), got {dim}",
        -rank
    );
    let dim = if dim < 0 { dim + rank } else { dim } as usize;
    let mut shape = first.shape.clone();
    for (i, part) in parts.iter().enumerate().skip(1) {
        ensure!(
            part.rank() == shape.len(),
            InvalidArgument,
            "Ranks of all input tensors must match: expected {} but got {} at position {i}",
            shape.len(),
            part.rank()
        );
        for (d, (&want, &have)) in first.shape.iter().zip(&part.shape).enumerate() {
            ensure!(
                d == dim || want == have,
                InvalidArgument,
                "Input shapes must match: expected {want} for dimension {d} but got {have} at \
                 position {i}"
            );
        }
        shape[dim] = shape[dim]
            .checked_add(part.shape[dim])
            .ok_or_else(|| err!(InvalidArgument, "the concatenated dimension is too large"))?;
    }
    // In the order of their places, and within each part in its own order. The parts interleave
    // only along an inner dimension.
    let count = parts.iter().fold(0usize, |n, part| n.saturating_add(part.len()));
    let each = 2 * size_of::<(Vec<i64>, (usize, usize))>() + 16 * shape.len();
    let _counted = Reservation::new(count.saturating_mul(each))?;
    let mut all: Vec<(Vec<i64>, (usize, usize))> = Vec::new();
    let mut offset = 0i64;
    for (p, part) in parts.iter().enumerate() {
        for i in 0..part.len() {
            let mut place = part.at(i).to_vec();
            place[dim] = place[dim].wrapping_add(offset);
            all.push((place, (p, i)));
        }
        offset = offset.wrapping_add(part.shape[dim]);
    }
    if dim != 0 {
        all.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let values: Vec<&Tensor> = parts.iter().map(|p| p.values).collect();
    let indices: Vec<i64> = all.iter().flat_map(|(place, _)| place.iter().copied()).collect();
    let from: Vec<(usize, usize)> = all.iter().map(|(_, from)| *from).collect();
    let indices = index_matrix(&indices, shape.len(), from.len())?;
    let values = gather(&values, &from)?;
    ctx.set(0, indices)?;
    ctx.set(1, values)?;
    ctx.set(2, Tensor::vector(&shape))
}

fn slice(ctx: &mut Ctx<'_>) -> Result<()> {
    let sparse = Coo::input(ctx, 0)?;
    let bound = |i: usize, name: &str| -> Result<Vec<i64>> {
        let t = ctx.input(i)?;
        ensure!(
            t.rank() == 1,
            InvalidArgument,
            "Input {name} should be a vector but received shape {}",
            t.shape()
        );
        ensure!(
            t.elements() == sparse.rank(),
            InvalidArgument,
            "Expected {name} to be a vector of length {} but got length {}",
            sparse.rank(),
            t.elements()
        );
        t.to_indices()
    };
    let (start, size) = (bound(3, "start")?, bound(4, "size")?);
    let mut shape = Vec::new();
    for d in 0..sparse.rank() {
        ensure!(size[d] >= 0, InvalidArgument, "Expected a non-negative size, got {}", size[d]);
        let left = sparse.shape[d].saturating_sub(start[d]);
        shape.push(std::cmp::max(std::cmp::min(size[d], left), 0));
    }
    let is_inside = |place: &[i64]| {
        (0..place.len()).all(|d| place[d] >= start[d] && place[d] - start[d] < size[d])
    };
    let kept: Vec<usize> = (0..sparse.len()).filter(|&i| is_inside(sparse.at(i))).collect();
    let moved =
        |&i: &usize| sparse.at(i).iter().zip(&start).map(|(x, s)| x - s).collect::<Vec<_>>();
    let indices: Vec<i64> = kept.iter().flat_map(moved).collect();
    let indices = index_matrix(&indices, sparse.rank(), kept.len())?;
    let values = pick(sparse.values, &kept)?;
    ctx.set(0, indices)?;
    ctx.set(1, values)?;
    ctx.set(2, Tensor::vector(&shape))
}

fn split(ctx: &mut Ctx<'_>, parts: usize) -> Result<()> {
    let axis = ctx.input(0)?;
    ensure!(
        axis.rank() == 0,
        InvalidArgument,
        "Input axis should be a scalar but received shape {}",
        axis.shape()
    );
    let axis = axis.scalar_index()?;
    let sparse = Coo::input(ctx, 1)?;
    let rank = sparse.rank() as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "Input axis should be in range [{}, {rank}), got {axis}",
        -rank
    );
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let size = sparse.shape[axis];
    ensure!(
        parts >= 1 && parts as i64 <= size,
        InvalidArgument,
        "Input num_split should be between 1 and the splitting dimension size ({size}), got {parts}"
    );
    sparse.ensure_in_bounds()?;
    // The first parts are larger by one where it does not divide evenly.
    let (each, extra) = (size / parts as i64, size % parts as i64);
    let part_of = |x: i64| match x < (each + 1) * extra {
        true => x / (each + 1),
        false => (x - extra) / each,
    };
    let begin = |p: i64| p * each + std::cmp::min(p, extra);
    let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); parts];
    for i in 0..sparse.len() {
        numbers[part_of(sparse.at(i)[axis]) as usize].push(i);
    }
    let mut outputs = Vec::new();
    for (p, numbers) in numbers.iter().enumerate() {
        let from = begin(p as i64);
        let mut indices = Vec::with_capacity(numbers.len() * sparse.rank());
        for &i in numbers {
            let at = indices.len();
            indices.extend_from_slice(sparse.at(i));
            indices[at + axis] -= from;
        }
        let mut shape = sparse.shape.clone();
        shape[axis] = begin(p as i64 + 1) - from;
        outputs.push((
            index_matrix(&indices, sparse.rank(), numbers.len())?,
            pick(sparse.values, numbers)?,
            shape,
        ));
    }
    for (p, (indices, values, shape)) in outputs.into_iter().enumerate() {
        ctx.set(p, indices)?;
        ctx.set(parts + p, values)?;
        ctx.set(2 * parts + p, Tensor::vector(&shape))?;
    }
    Ok(())
}

/// A sparse tensor.
const SPARSE_OUTPUT: [&str; 3] =
    ["output_indices: int64", "output_values: T", "output_shape: int64"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseReorder")
        .doc("A sparse tensor with its values in the order of their places.")
        .input("input_indices: int64")
        .input("input_values: T")
        .input("input_shape: int64")
        .output("output_indices: int64")
        .output("output_values: T")
        .attr("T: type")
        .shape(|c| Ok(vec![c.input(0), c.input(1)]))
        .cpu_fn(reorder);
    c.op("SparseReshape")
        .doc("The places of a sparse tensor in another shape.")
        .input("input_indices: int64")
        .input("input_shape: int64")
        .input("new_shape: int64")
        .output("output_indices: int64")
        .output("output_shape: int64")
        .shape(|c| {
            let rank = c.input(2).dim(0);
            Ok(vec![PartialShape::new([c.input(0).dim(0), rank]), PartialShape::new([rank])])
        })
        .cpu_fn(reshape);
    c.op("SparseConcat")
        .doc("Sparse tensors one behind the other along a dimension.")
        .input("indices: N * int64")
        .input("values: N * T")
        .input("shapes: N * int64")
        .outputs(&SPARSE_OUTPUT)
        .attr("concat_dim: int")
        .attr("N: int >= 2")
        .attr("T: type")
        .shape(|c| {
            let rank = c.input(0).dim(1);
            let indices = PartialShape::new([None, rank]);
            Ok(vec![indices, PartialShape::of_rank(1), PartialShape::new([rank])])
        })
        .cpu(|init| {
            let dim = init.int("concat_dim")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| concat(ctx, dim)))
        });
    c.op("SparseSlice")
        .doc("A box of a sparse tensor.")
        .input("indices: int64")
        .input("values: T")
        .input("shape: int64")
        .input("start: int64")
        .input("size: int64")
        .outputs(&SPARSE_OUTPUT)
        .attr("T: type")
        .shape(|c| Ok(sparse_like(c, 0)))
        .cpu_fn(slice);
    c.op("SparseSplit")
        .doc("A sparse tensor cut into parts along a dimension.")
        .input("split_dim: int64")
        .input("indices: int64")
        .input("values: T")
        .input("shape: int64")
        .output("output_indices: num_split * int64")
        .output("output_values: num_split * T")
        .output("output_shape: num_split * int64")
        .attr("num_split: int >= 1")
        .attr("T: type")
        .shape(|c| {
            let parts = c.outputs / 3;
            let kinds = sparse_like(c, 1);
            Ok(kinds.iter().flat_map(|s| std::iter::repeat_n(s.clone(), parts)).collect())
        })
        .cpu(|init| {
            let parts = init.outputs.len() / 3;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| split(ctx, parts)))
        });
    c.no_gradient(&["SparseConcat"]);
    c.gradient("SparseReorder", |g, dy| {
        // The indices of the values, reordered with them, give each value's new position.
        let (at, shape) = (g.input(0), g.input(2));
        let numbers = g.range(at.shape().element(0));
        let order = g.calls("SparseReorder", &[at, numbers, shape])[1];
        let back = g.call("InvertPermutation", &[order]);
        Ok(g.at(1, g.call("GatherV2", &[dy[1], back, g.int(0)])))
    });
    c.gradient("SparseSlice", |g, dy| {
        let inputs = [dy[1], g.input(0), g.input(3), g.output(0)];
        Ok(g.at(1, g.call("SparseSliceGrad", &inputs)))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn matrix(rows: usize, indices: &[i64]) -> Tensor {
        Tensor::from_slice([rows, 2], indices).unwrap()
    }

    /// Three values in a 2 by 3 matrix.
    fn three(c: Check<'static>) -> Check<'static> {
        c.input(matrix(3, &[0, 0, 0, 2, 1, 1]))
            .input(Tensor::vector(&[1f32, 2., 3.]))
            .input(Tensor::vector(&[2i64, 3]))
    }

    #[test]
    fn places_are_put_in_order() {
        let out = check("SparseReorder")
            .input(matrix(2, &[1, 0, 0, 1]))
            .input(Tensor::vector(&[1i32, 2]))
            .input(Tensor::vector(&[2i64, 2]))
            .run()
            .unwrap();
        assert_eq!(out[0], matrix(2, &[0, 1, 1, 0]));
        assert_eq!(out[1], Tensor::vector(&[2i32, 1]));
        check("SparseReorder")
            .input(matrix(1, &[1, 0]))
            .input(Tensor::vector(&[1i32, 2]))
            .input(Tensor::vector(&[2i64, 2]))
            .fails(Code::InvalidArgument, "in indices (1) and values (2) do not match");
    }

    #[test]
    fn shapes_change() {
        let reshape = |to: &[i64]| {
            check("SparseReshape")
                .input(matrix(2, &[1, 0, 0, 1]))
                .input(Tensor::vector(&[2i64, 3]))
                .input(Tensor::vector(to))
        };
        let out = reshape(&[3, -1]).run().unwrap();
        assert_eq!(out[0], matrix(2, &[1, 1, 0, 1]));
        assert_eq!(out[1], Tensor::vector(&[3i64, 2]));
        reshape(&[4, -1]).fails(Code::InvalidArgument, "requires a multiple of 4");
        reshape(&[4, 2]).fails(Code::InvalidArgument, "but the requested shape has 8");
        reshape(&[-1, -1]).fails(Code::InvalidArgument, "not both 0 and 1");
    }

    #[test]
    fn parts_are_concatenated() {
        let concat = |dim: i64| {
            check("SparseConcat")
                .attr("concat_dim", dim)
                .attr("N", 2i64)
                .input(matrix(1, &[1, 0]))
                .input(matrix(2, &[0, 0, 1, 1]))
                .input(Tensor::vector(&[1f32]))
                .input(Tensor::vector(&[2f32, 3.]))
                .input(Tensor::vector(&[2i64, 2]))
                .input(Tensor::vector(&[2i64, 3]))
        };
        let out = concat(-1).run().unwrap();
        assert_eq!(out[0], matrix(3, &[0, 2, 1, 0, 1, 3]));
        assert_eq!(out[1], Tensor::vector(&[2f32, 1., 3.]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 5]));
        concat(0)
            .fails(Code::InvalidArgument, "expected 2 for dimension 1 but got 3 at position 1");
        concat(2).fails(Code::InvalidArgument, "must be in range [-2, 2), got 2");
    }

    #[test]
    fn a_box_is_cut_out() {
        let cut = |start: &[i64], size: &[i64]| {
            three(check("SparseSlice")).input(Tensor::vector(start)).input(Tensor::vector(size))
        };
        let out = cut(&[0, 1], &[2, 5]).run().unwrap();
        assert_eq!(out[0], matrix(2, &[0, 1, 1, 0]));
        assert_eq!(out[1], Tensor::vector(&[2f32, 3.]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 2]));
        cut(&[0], &[2, 5]).fails(Code::InvalidArgument, "vector of length 2 but got length 1");
        cut(&[0, 1], &[2, -2]).fails(Code::InvalidArgument, "Expected a non-negative size, got -2");
    }

    #[test]
    fn parts_are_cut_evenly() {
        let split = |axis: i64, parts: i64| {
            three(check("SparseSplit").attr("num_split", parts).input(Tensor::scalar(axis)))
        };
        let out = split(-1, 2).run().unwrap();
        assert_eq!(out[0], matrix(2, &[0, 0, 1, 1]));
        assert_eq!(out[1], matrix(1, &[0, 0]));
        assert_eq!(out[3], Tensor::vector(&[2f32]));
        assert_eq!(out[4], Tensor::vector(&[2i64, 2]));
        split(5, 2).fails(Code::InvalidArgument, "Input axis should be in range [-2, 2), got 5");
        split(1, 4).fails(Code::InvalidArgument, "between 1 and the splitting dimension size (3)");
    }
}
