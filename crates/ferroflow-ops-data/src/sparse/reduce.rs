//! SparseReduceSum, SparseReduceMax and their versions with sparse outputs.

use super::coo::{Coo, index_matrix};
use crate::prelude::*;
use ferroflow_core::Reservation;
use ferroflow_graph::OpBuilder;

/// Values that go to one place of the result, and that place in the dimensions kept.
struct Group {
    place: Vec<i64>,
    members: Vec<usize>,
}

struct Groups {
    groups: Vec<Group>,
    /// Dimensions of the result; those reduced over are 1 where they are kept.
    shape: Vec<i64>,
    /// The dimensions of the input to which the places refer.
    kept: Vec<usize>,
    rank: usize,
    keep_dims: bool,
    _counted: Reservation,
}

fn group(ctx: &Ctx<'_>, keep_dims: bool) -> Result<Groups> {
    let sparse = Coo::input(ctx, 0)?;
    let rank = sparse.rank() as i64;
    let mut is_reduced = vec![false; sparse.rank()];
    let axes = ctx.input(3)?;
    ensure!(
        axes.rank() < 2,
        InvalidArgument,
        "Expected reduction_axes to be a scalar or a vector; got shape: {}",
        axes.shape()
    );
    for axis in axes.to_indices()? {
        ensure!(
            -rank <= axis && axis < rank,
            InvalidArgument,
            "Invalid reduction dimension {axis}, for input with {rank} dimensions."
        );
        is_reduced[if axis < 0 { axis + rank } else { axis } as usize] = true;
    }
    sparse.ensure_in_bounds()?;
    let kept: Vec<usize> = (0..sparse.rank()).filter(|&d| !is_reduced[d]).collect();
    // The index of each value, and lists of those with the same index.
    let each = size_of::<(Vec<i64>, usize)>() + 2 * size_of::<Group>() + 16 * sparse.rank();
    let counted = Reservation::new(sparse.len().saturating_mul(each))?;
    let mut members: Vec<(Vec<i64>, usize)> = sparse
        .places()
        .enumerate()
        .map(|(i, place)| (kept.iter().map(|&d| place[d]).collect(), i))
        .collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let mut groups: Vec<Group> = Vec::new();
    for (place, i) in members {
        match groups.last_mut() {
            Some(last) if last.place == place => last.members.push(i),
            _ => groups.push(Group { place, members: vec![i] }),
        }
    }
    let shape = match keep_dims {
        true => {
            (0..sparse.rank()).map(|d| if is_reduced[d] { 1 } else { sparse.shape[d] }).collect()
        }
        false => kept.iter().map(|&d| sparse.shape[d]).collect(),
    };
    Ok(Groups { groups, shape, kept, rank: sparse.rank(), keep_dims, _counted: counted })
}

fn values_of<T: Element>(groups: &Groups, values: &[T], combine: fn(T, T) -> T) -> Vec<T> {
    let one =
        |g: &Group| g.members[1..].iter().fold(values[g.members[0]], |x, &i| combine(x, values[i]));
    groups.groups.iter().map(one).collect()
}

/// A dense result: 0 where there is nothing to reduce.
fn to_dense<T: Num>(ctx: &mut Ctx<'_>, keep_dims: bool, combine: fn(T, T) -> T) -> Result<()> {
    let groups = group(ctx, keep_dims)?;
    let values = values_of(&groups, ctx.input(1)?.as_slice::<T>()?, combine);
    let shape = Shape::from_dims(&groups.shape)?;
    let strides = Shape::from_dims(&match keep_dims {
        true => groups.kept.iter().map(|&d| groups.shape[d]).collect(),
        false => groups.shape.clone(),
    })?
    .strides();
    let mut out = Tensor::zeros(T::DTYPE, shape)?;
    let to = out.as_mut_slice::<T>()?;
    for (group, value) in groups.groups.iter().zip(values) {
        let at: usize = group.place.iter().zip(&strides).map(|(&x, s)| x as usize * s).sum();
        to[at] = value;
    }
    ctx.set(0, out)
}

/// A sparse result: a value for every place that has one.
fn to_sparse<T: Num>(ctx: &mut Ctx<'_>, keep_dims: bool, combine: fn(T, T) -> T) -> Result<()> {
    let groups = group(ctx, keep_dims)?;
    let values = values_of(&groups, ctx.input(1)?.as_slice::<T>()?, combine);
    let mut indices = Vec::new();
    for group in &groups.groups {
        if groups.keep_dims {
            let mut place = vec![0; groups.rank];
            groups.kept.iter().zip(&group.place).for_each(|(&d, &x)| place[d] = x);
            indices.extend(place);
        } else {
            indices.extend_from_slice(&group.place);
        }
    }
    let indices = index_matrix(&indices, groups.shape.len(), groups.groups.len())?;
    ctx.set(0, indices)?;
    ctx.set(1, Tensor::vector(&values))?;
    ctx.set(2, Tensor::vector(&groups.shape))
}

fn dense_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (Some(dims), Some(axes)) = (c.constant_ints(2), c.constant_ints(3)) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let (rank, keep) = (dims.len() as i64, c.attrs.bool("keep_dims")?);
    let is_reduced = |d: usize| axes.iter().any(|&a| a == d as i64 || a + rank == d as i64);
    let out = dims.iter().enumerate().filter_map(|(d, &dim)| match (is_reduced(d), keep) {
        (true, true) => Some(Some(1)),
        (true, false) => None,
        (false, _) => Some(usize::try_from(dim).ok()),
    });
    Ok(vec![PartialShape::new(out)])
}

const LARGEST: &str = "The largest values";

/// Starts the declaration of a reduction; `…Sparse` ops have sparse outputs.
fn declare<'c>(c: &'c mut Catalog, name: &str, what: &str, dtypes: &str) -> OpBuilder<'c> {
    let doc = format!("{what} of a sparse tensor over some dimensions");
    let op = c
        .op(name)
        .inputs(&["input_indices: int64", "input_values: T", "input_shape: int64"])
        .input("reduction_axes: int32")
        .attr("keep_dims: bool = false")
        .attr(&format!("T: {dtypes}"));
    if name.ends_with("Sparse") {
        op.doc(&format!("{doc}, sparse."))
            .outputs(&["output_indices: int64", "output_values: T", "output_shape: int64"])
            .shape(|_| Ok([2, 1, 1].map(PartialShape::of_rank).to_vec()))
    } else {
        op.doc(&format!("{doc}.")).output("output: T").shape(dense_shape)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    declare(c, "SparseReduceSum", "Sums", "numbertype").cpu(per_dtype!(NUMBER, init, T => {
        let keep = init.bool("keep_dims")?;
        move |ctx: &mut Ctx<'_>| to_dense::<T>(ctx, keep, <T as Num>::add)
    }));
    declare(c, "SparseReduceMax", LARGEST, "realnumbertype").cpu(per_dtype!(REAL, init, T => {
        let keep = init.bool("keep_dims")?;
        move |ctx: &mut Ctx<'_>| to_dense::<T>(ctx, keep, <T as Real>::max)
    }));
    declare(c, "SparseReduceSumSparse", "Sums", "numbertype").cpu(per_dtype!(NUMBER, init, T => {
        let keep = init.bool("keep_dims")?;
        move |ctx: &mut Ctx<'_>| to_sparse::<T>(ctx, keep, <T as Num>::add)
    }));
    declare(c, "SparseReduceMaxSparse", LARGEST, "realnumbertype").cpu(
        per_dtype!(REAL, init, T => {
            let keep = init.bool("keep_dims")?;
            move |ctx: &mut Ctx<'_>| to_sparse::<T>(ctx, keep, <T as Real>::max)
        }),
    );
    c.gradient("SparseReduceSum", |g, dy| {
        let (at, shape, axes) = (g.input(0), g.input(2), g.input(3));
        let rank = shape.size();
        let axes = (axes + rank).with("FloorMod", rank).reshape(g.ints(&[-1]));
        let ones = axes.ones_like().cast(DType::Int64);
        let kept = g.call("DynamicStitch", &[g.range(rank), axes, shape, ones]);
        let scale = shape.with("FloorDiv", kept);
        let from = at.with("FloorDiv", scale);
        Ok(g.at(1, g.call("GatherNd", &[dy[0].reshape(kept), from])))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn over(op: &str, axes: &[i32]) -> Check<'static> {
        check(op)
            .input(Tensor::from_slice([3, 2], &[0i64, 0, 0, 2, 1, 1]).unwrap())
            .input(Tensor::vector(&[1f32, 2., 3.]))
            .input(Tensor::vector(&[2i64, 3]))
            .input(Tensor::vector(axes))
    }

    #[test]
    fn sums_and_maxima() {
        over("SparseReduceSum", &[1]).gives(Tensor::vector(&[3f32, 3.]));
        over("SparseReduceSum", &[-2])
            .attr("keep_dims", true)
            .gives(Tensor::from_slice([1, 3], &[1f32, 3., 2.]).unwrap());
        over("SparseReduceSum", &[])
            .gives(Tensor::from_slice([2, 3], &[1f32, 0., 2., 0., 3., 0.]).unwrap());
        over("SparseReduceMax", &[0, 1]).gives(Tensor::scalar(3f32));
        over("SparseReduceSum", &[5])
            .fails(Code::InvalidArgument, "Invalid reduction dimension 5, for input with 2");
    }

    #[test]
    fn sparse_results_have_places() {
        let out = over("SparseReduceSumSparse", &[1]).attr("keep_dims", true).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([2, 2], &[0i64, 0, 1, 0]).unwrap());
        assert_eq!(out[1], Tensor::vector(&[3f32, 3.]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 1]));
        let out = over("SparseReduceMaxSparse", &[0, 1]).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice::<i64>([1, 0], &[]).unwrap());
        assert_eq!(out[1], Tensor::vector(&[3f32]));
    }
}
