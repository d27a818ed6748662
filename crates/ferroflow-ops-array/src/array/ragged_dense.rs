//! RaggedTensorToTensor, RaggedFillEmptyRows and its gradient.

use super::args::{position, to_shape};
use super::broadcast::broadcast_to;
use super::gather::{Plan, gather};
use super::ragged::counted;
use super::walk::by_width;
use crate::prelude::*;

/// How rows of one level are divided among the rows of the level above.
#[derive(Clone, Copy, PartialEq)]
enum Partition {
    FirstDimSize,
    ValueRowIds,
    RowSplits,
}

fn partitions(init: &KernelInit<'_>) -> Result<Vec<Partition>> {
    let names = init.byte_strings("row_partition_types")?;
    ensure!(!names.is_empty(), InvalidArgument, "No row_partition_types given.");
    let all = names.iter().map(|name| match &name[..] {
        b"FIRST_DIM_SIZE" => Ok(Partition::FirstDimSize),
        b"VALUE_ROWIDS" => Ok(Partition::ValueRowIds),
        b"ROW_SPLITS" => Ok(Partition::RowSplits),
        other => Err(err!(
            InvalidArgument,
            "Unknown string for partition info type: {}",
            String::from_utf8_lossy(other)
        )),
    });
    all.collect()
}

/// The length of the longest row.
fn widest(partition: Partition, values: &[i64]) -> i64 {
    match partition {
        Partition::RowSplits => {
            values.windows(2).map(|w| w[1].saturating_sub(w[0])).fold(0, Ord::max)
        }
        _ => values.chunk_by(|a, b| a == b).map(|run| run.len() as i64).fold(0, Ord::max),
    }
}

/// The output positions of the rows of a level (-1: none), given those of their parents.
fn place(
    partition: Partition,
    values: &[i64],
    parents: &[i64],
    width: i64,
    step: i64,
) -> Result<Tensor> {
    let invalid = || err!(InvalidArgument, "Invalid row split size.");
    let at = |parent: i64, i: i64| if parent >= 0 && i < width { parent + i * step } else { -1 };
    match partition {
        Partition::RowSplits => {
            let total = values.last().copied().unwrap_or(0);
            let sound = values.first().is_none_or(|&f| f == 0)
                && values.is_sorted()
                && values.len() == parents.len() + 1;
            ensure!(sound, InvalidArgument, "Invalid row split size.");
            let mut out = counted(total)?;
            let places = out.as_mut_slice::<i64>()?;
            for (w, &parent) in values.windows(2).zip(parents) {
                let row = places.get_mut(w[0] as usize..w[1] as usize).ok_or_else(invalid)?;
                row.iter_mut().enumerate().for_each(|(i, p)| *p = at(parent, i as i64));
            }
            Ok(out)
        }
        _ => {
            let mut out = counted(values.len() as i64)?;
            let mut places = out.as_mut_slice::<i64>()?.iter_mut();
            for run in values.chunk_by(|a, b| a == b) {
                let Some(&parent) = usize::try_from(run[0]).ok().and_then(|r| parents.get(r))
                else {
                    bail!(
                        InvalidArgument,
                        "Got next_value_rowid={} which is not less than {}",
                        run[0],
                        parents.len()
                    );
                };
                for (i, p) in places.by_ref().take(run.len()).enumerate() {
                    *p = at(parent, i as i64);
                }
            }
            Ok(out)
        }
    }
}

/// The dimensions that input `shape` requests; `None` where it leaves them open.
fn requested(shape: &Tensor, rank: usize) -> Result<Vec<Option<i64>>> {
    let dims = shape.to_indices()?;
    if shape.rank() == 0 {
        ensure!(
            dims == [-1],
            InvalidArgument,
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        );
        return Ok(vec![None; rank]);
    }
    ensure!(
        dims.len() == rank && shape.rank() == 1,
        InvalidArgument,
        "rt_input.shape and shape={} are incompatible: rt_input.rank = {rank} but shape.rank = {}",
        written(&dims),
        dims.len()
    );
    Ok(dims.iter().map(|&d| (d >= 0).then_some(d)).collect())
}

/// A partial shape as TensorFlow writes it.
fn written(dims: &[i64]) -> String {
    PartialShape::new(dims.iter().map(|&d| usize::try_from(d).ok())).to_string()
}

fn ragged_to_tensor(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = partitions(init)?;
    let skip = usize::from(types[0] == Partition::FirstDimSize);
    ensure!(
        types[0] != Partition::ValueRowIds,
        InvalidArgument,
        "Cannot handle VALUE_ROWIDS in first dimension."
    );
    ensure!(
        types.len() as i64 == init.int("num_row_partition_tensors")?,
        InvalidArgument,
        "row_partition_types and row_partition_tensors should have the same length"
    );
    ensure!(
        !types[skip..].contains(&Partition::FirstDimSize),
        InvalidArgument,
        "FIRST_DIM_SIZE must come first and only once"
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (shape, values, default) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let tensors: Vec<Vec<i64>> =
            (0..types.len()).map(|i| ctx.input(3 + i)?.to_indices()).collect::<Result<_>>()?;
        let levels: Vec<(Partition, &[i64])> =
            types[skip..].iter().copied().zip(tensors[skip..].iter().map(|t| &t[..])).collect();
        ensure!(values.rank() > 0, InvalidArgument, "values must be at least a vector");
        let inner = &values.shape()[1..];
        ensure!(
            default.rank() < values.rank(),
            InvalidArgument,
            "default_value.shape={} and rt_input.flat_values.shape={} are incompatible: \
             default_value.rank = {}  must be less than rt_input.flat_values.rank = {}",
            default.shape(),
            values.shape(),
            default.rank(),
            values.rank()
        );
        let rows = match (skip, &tensors[0][..]) {
            (1, [rows]) => *rows,
            (1, _) => bail!(InvalidArgument, "FIRST_DIM_SIZE must be a scalar"),
            (_, splits) => splits.len() as i64 - 1,
        };
        ensure!(rows >= 0, InvalidArgument, "Invalid row split size.");
        let want = requested(shape, 1 + levels.len() + inner.len())?;
        let mut dims = vec![want[0].unwrap_or(rows)];
        for (d, (partition, tensor)) in levels.iter().enumerate() {
            dims.push(want[d + 1].unwrap_or_else(|| widest(*partition, tensor)));
        }
        for (i, &dim) in inner.iter().enumerate() {
            let at = dims.len();
            ensure!(
                want[at].is_none_or(|w| w == dim as i64),
                InvalidArgument,
                "rt_input.shape and shape={} are incompatible: rt_input.shape[{at}] = {dim} but \
                 shape[{at}] = {}",
                written(&shape.to_indices()?),
                want[at].unwrap_or(-1)
            );
            debug_assert_eq!(at, 1 + levels.len() + i);
            dims.push(dim as i64);
        }
        let out_shape = to_shape(&dims)?;
        let default = broadcast_to(default, &Shape::from(inner))?;
        let mut out = broadcast_to(&default, &out_shape)?;
        if out.elements() > 0 {
            let places = {
                let strides = Shape::from(&out_shape[..1 + levels.len()]).strides();
                let mut places = counted(rows)?;
                for (i, p) in places.as_mut_slice::<i64>()?.iter_mut().enumerate() {
                    *p = if (i as i64) < dims[0] { i as i64 * strides[0] as i64 } else { -1 };
                }
                for (d, (partition, tensor)) in levels.iter().enumerate() {
                    let step = strides[d + 1] as i64;
                    places =
                        place(*partition, tensor, places.as_slice::<i64>()?, dims[d + 1], step)?;
                }
                places
            };
            ensure!(
                places.elements() == values.shape()[0],
                InvalidArgument,
                "the row partitions are for {} values, but there are {}",
                places.elements(),
                values.shape()[0]
            );
            let (places, row) = (places.as_slice::<i64>()?, inner.iter().product());
            by_width!(values.dtype(), W => put_rows(W::of(values)?, places, row, W::of_mut(&mut out)?));
        }
        ctx.set(0, out)
    }))
}

fn put_rows<W: Movable>(src: &[W], places: &[i64], row: usize, dst: &mut [W]) {
    for (i, &at) in places.iter().enumerate() {
        if let Ok(at) = usize::try_from(at) {
            dst[at * row..][..row].clone_from_slice(&src[i * row..][..row]);
        }
    }
}

fn ragged_to_tensor_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    // A scalar shape leaves all dimensions open.
    if c.input(0).rank() == Some(1) {
        return shape::from_input_0(c);
    }
    shape::unknown(c)
}

fn fill_empty_rows(ctx: &mut Ctx<'_>) -> Result<()> {
    let (rowids, values, nrows, default) =
        (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
    ensure!(
        rowids.rank() == 1 && values.rank() == 1 && rowids.elements() == values.elements(),
        InvalidArgument,
        "value_rowids and values must be vectors of one length, got shapes {} and {}",
        rowids.shape(),
        values.shape()
    );
    ensure!(
        nrows.rank() == 0 && default.rank() == 0,
        InvalidArgument,
        "nrows and default_value must be scalars, got shapes {} and {}",
        nrows.shape(),
        default.shape()
    );
    let nrows = nrows.scalar_index()?;
    ensure!(
        nrows >= 0,
        InvalidArgument,
        "Expected shape dimensions to be non-negative, got {nrows}"
    );
    let ids = rowids.as_slice::<i64>()?;
    ensure!(
        nrows > 0 || ids.is_empty(),
        InvalidArgument,
        "Received SparseTensor with dense_shape[0] = {nrows} but indices.shape[0] = {}",
        ids.len()
    );
    // First the number of values in each row, then the position of its next value.
    let mut next = counted(Ord::max(nrows, 0))?;
    let next = next.as_mut_slice::<i64>()?;
    for (i, &id) in ids.iter().enumerate() {
        ensure!(id >= 0, InvalidArgument, "indices({i}, 0) is invalid: {id} < 0");
        ensure!(id < nrows, InvalidArgument, "indices({i}, 0) is invalid: {id} >= {nrows}");
        next[id as usize] += 1;
    }
    let empty: Vec<bool> = next.iter().map(|&n| n == 0).collect();
    let mut total = 0i64;
    for n in next.iter_mut() {
        let len = Ord::max(*n, 1);
        *n = total;
        total += len;
    }
    let mut out_ids = Tensor::zeros(DType::Int64, to_shape(&[total])?)?;
    // The source of each output element; the default value comes after all inputs.
    let mut source = counted(total)?;
    let mut reverse = vec![0i64; ids.len()];
    {
        let (out, source) = (out_ids.as_mut_slice::<i64>()?, source.as_mut_slice::<i64>()?);
        for (row, &at) in next.iter().enumerate().filter(|(row, _)| empty[*row]) {
            out[at as usize] = row as i64;
            source[at as usize] = ids.len() as i64;
        }
        for (i, &id) in ids.iter().enumerate() {
            let at = next[id as usize];
            next[id as usize] += 1;
            out[at as usize] = id;
            source[at as usize] = i as i64;
            reverse[i] = at;
        }
    }
    let one = default.reshape([1])?;
    let pool = super::concat::concat(&[values, &one], 0)?;
    let picks = total as usize;
    let mut out = ctx.alloc(values.dtype(), [picks])?;
    let plan = Plan { batch: 1, outer: 1, rows: pool.elements(), inner: 1, picks };
    gather(&pool, source.as_slice::<i64>()?, plan, &mut out)?;
    ctx.set(0, out_ids)?;
    ctx.set(1, out)?;
    ctx.set(2, Tensor::vector(&empty))?;
    ctx.set(3, Tensor::vector(&reverse))
}

fn fill_empty_rows_grad<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (map, grad) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        map.rank() == 1,
        InvalidArgument,
        "reverse_index_map must be a vector, saw: {}",
        map.shape()
    );
    ensure!(
        grad.rank() == 1,
        InvalidArgument,
        "grad_values must be a vector, saw: {}",
        grad.shape()
    );
    let (map_shape, map, grad) =
        (map.shape().clone(), map.as_slice::<i64>()?, grad.as_slice::<T>()?);
    let mut seen = vec![false; grad.len()];
    let mut out = ctx.alloc(T::DTYPE, map_shape.clone())?;
    for (at, (to, &i)) in out.as_mut_slice::<T>()?.iter_mut().zip(map).enumerate() {
        let Some(&g) = usize::try_from(i).ok().and_then(|i| grad.get(i)) else {
            bail!(
                InvalidArgument,
                "Elements in reverse index must be in [0, {}) but got {i} at {}",
                grad.len(),
                position(&map_shape, at)
            );
        };
        *to = g;
        seen[i as usize] = true;
    }
    let rest = grad.iter().zip(seen).filter(|(_, seen)| !seen).map(|(g, _)| *g);
    let default = rest.fold(T::ZERO, T::add);
    ctx.set(0, out)?;
    ctx.set(1, Tensor::scalar(default))
}

fn ragged_to_tensor_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (values, default, dy) = (g.input(1), g.input(2), dy[0]);
    let types = g.attrs().byte_strings("row_partition_types")?;
    let ragged = types.iter().filter(|t| &t[..] != b"FIRST_DIM_SIZE").count() as i64;
    // Applying the same conversion to the indices of the values gives the source of each element.
    let shape = g.call("Slice", &[dy.shape(), g.ints(&[0]), g.ints(&[1 + ragged])]);
    let numbers = g.range(values.shape().element(0));
    let mut inputs = vec![shape, numbers, g.int(-1)];
    inputs.extend(g.inputs().split_off(3));
    let sources = g.call_like("RaggedTensorToTensor", &inputs);
    let is_value = sources.with("NotEqual", g.int(-1));
    let at = g.call("Where", &[is_value]);
    let picked = |of: Term<'g>| g.call("GatherNd", &[of, at]);
    let rows = g.slices(picked(dy), picked(sources), values.shape());
    let rest = g.call("Where", &[is_value.apply("LogicalNot")]);
    let rest = g.call("GatherNd", &[dy, rest]);
    let of_default = match default.rank() {
        // One default for all elements.
        Some(0) => rest.sum(g.range(rest.rank_term()), false),
        _ => g.unbroadcast_one(rest, default, rest),
    };
    let mut all = vec![g.none(); g.num_inputs()];
    (all[1], all[2]) = (rows, of_default);
    Ok(all)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RaggedTensorToTensor")
        .work(work::any)
        .doc("A ragged tensor as a dense one, cut or filled up with a default.")
        .input("shape: Tshape")
        .input("values: T")
        .input("default_value: T")
        .input("row_partition_tensors: num_row_partition_tensors * Tindex")
        .output("result: T")
        .attr("T: type")
        .attr("Tindex: {int64, int32}")
        .attr("Tshape: {int64, int32}")
        .attr("num_row_partition_tensors: int >= 1")
        .attr("row_partition_types: list(string)")
        .shape(ragged_to_tensor_shape)
        .cpu(ragged_to_tensor);
    c.op("RaggedFillEmptyRows")
        .doc("Gives every empty row of a ragged matrix one default value.")
        .input("value_rowids: int64")
        .input("values: T")
        .input("nrows: int64")
        .input("default_value: T")
        .output("output_value_rowids: int64")
        .output("output_values: T")
        .output("empty_row_indicator: bool")
        .output("reverse_index_map: int64")
        .attr("T: type")
        .shape(|c| {
            let rows = c.constant_ints(2).and_then(|n| usize::try_from(*n.first()?).ok());
            let any = PartialShape::of_rank(1);
            Ok(vec![any.clone(), any, PartialShape::new([rows]), c.input(0)])
        })
        .cpu_fn(fill_empty_rows);
    c.op("RaggedFillEmptyRowsGrad")
        .doc("The gradient of RaggedFillEmptyRows for its values and its default.")
        .input("reverse_index_map: int64")
        .input("grad_values: T")
        .output("d_values: T")
        .output("d_default_value: T")
        .attr("T: type")
        .shape(|c| Ok(vec![c.input(0), PartialShape::scalar()]))
        .cpu(per_dtype!(NUMBER, T => fill_empty_rows_grad::<T>));
    c.gradient("RaggedFillEmptyRows", |g, dy| {
        let found = g.calls("RaggedFillEmptyRowsGrad", &[g.output(3), dy[1]]);
        Ok(vec![g.none(), found[0], g.none(), found[1]])
    });
    c.gradient("RaggedTensorToTensor", ragged_to_tensor_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use ferroflow_graph::AttrList;

    fn l(values: &[i64]) -> Tensor {
        Tensor::vector(values)
    }

    fn f(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn dense(
        shape: Tensor,
        values: Tensor,
        default: Tensor,
        parts: &[(&'static str, Tensor)],
    ) -> Check<'static> {
        let types = parts.iter().map(|(name, _)| name.as_bytes().into()).collect();
        let check = check("RaggedTensorToTensor").input(shape).input(values).input(default);
        parts
            .iter()
            .fold(check, |c, (_, t)| c.input(t.clone()))
            .attr("row_partition_types", AttrList::Strs(types))
    }

    fn splits(shape: &[i64], splits: &[i64]) -> Check<'static> {
        let values = f(&[3], &[1.0, 2.0, 3.0]);
        dense(l(shape), values, Tensor::scalar(9.0f32), &[("ROW_SPLITS", l(splits))])
    }

    #[test]
    fn rows_are_filled_up_or_cut() {
        splits(&[3, 3], &[0, 1, 1, 3])
            .gives(f(&[3, 3], &[1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 2.0, 3.0, 9.0]));
        splits(&[-1, -1], &[0, 1, 1, 3]).gives(f(&[3, 2], &[1.0, 9.0, 9.0, 9.0, 2.0, 3.0]));
        splits(&[2, 1], &[0, 1, 1, 3]).gives(f(&[2, 1], &[1.0, 9.0]));
        let v = || f(&[3], &[1.0, 2.0, 3.0]);
        let nine = || Tensor::scalar(9.0f32);
        let ids = [("FIRST_DIM_SIZE", Tensor::scalar(4i64)), ("VALUE_ROWIDS", l(&[0, 2, 2]))];
        dense(Tensor::scalar(-1i64), v(), nine(), &ids)
            .gives(f(&[4, 2], &[1.0, 9.0, 9.0, 9.0, 2.0, 3.0, 9.0, 9.0]));
        let nested = [("ROW_SPLITS", l(&[0, 1, 2])), ("ROW_SPLITS", l(&[0, 1, 3]))];
        dense(l(&[-1, -1, -1]), v(), nine(), &nested).gives(f(&[2, 1, 2], &[1.0, 9.0, 2.0, 3.0]));
        let pairs = f(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        dense(l(&[-1, -1, 2]), pairs, f(&[2], &[8.0, 9.0]), &[("ROW_SPLITS", l(&[0, 0, 2]))])
            .gives(f(&[2, 2, 2], &[8.0, 9.0, 8.0, 9.0, 1.0, 2.0, 3.0, 4.0]));
        dense(l(&[-1, -1]), f(&[0], &[]), nine(), &[("ROW_SPLITS", l(&[0]))])
            .gives(f(&[0, 0], &[]));
    }

    #[test]
    fn partitions_that_do_not_fit_are_refused() {
        let invalid = Code::InvalidArgument;
        splits(&[-1, -1], &[1, 1, 3]).fails(invalid, "Invalid row split size.");
        splits(&[-1, -1], &[0, 2, 1, 3]).fails(invalid, "Invalid row split size.");
        splits(&[-1, -1], &[0, 1, 1, 4]).fails(invalid, "for 4 values, but there are 3");
        splits(&[-1], &[0, 1, 1, 3]).fails(
            invalid,
            "rt_input.shape and shape=[?] are incompatible: rt_input.rank = 2 but shape.rank = 1",
        );
        let (v, nine) = (|| f(&[3], &[1.0, 2.0, 3.0]), || Tensor::scalar(9.0f32));
        let with = |parts: &[(&'static str, Tensor)]| dense(l(&[-1, -1]), v(), nine(), parts);
        with(&[("BAD", l(&[0, 3]))]).fails(invalid, "Unknown string for partition info type: BAD");
        with(&[("VALUE_ROWIDS", l(&[0, 0, 0]))])
            .fails(invalid, "Cannot handle VALUE_ROWIDS in first dimension.");
        with(&[("FIRST_DIM_SIZE", Tensor::scalar(4i64)), ("VALUE_ROWIDS", l(&[0, 2, 7]))])
            .fails(invalid, "Got next_value_rowid=7 which is not less than 4");
        with(&[("ROW_SPLITS", l(&[0, 1 << 60]))]).fails(Code::ResourceExhausted, "OOM");
        dense(l(&[-1, -1]), v(), f(&[2], &[9.0, 8.0]), &[("ROW_SPLITS", l(&[0, 3]))]).fails(
            invalid,
            "default_value.rank = 1  must be less than rt_input.flat_values.rank = 1",
        );
    }

    #[test]
    fn empty_rows_get_the_default() {
        let fill = |ids: &[i64], nrows: i64| {
            check("RaggedFillEmptyRows")
                .input(l(ids))
                .input(f(&[3], &[1.0, 2.0, 3.0]))
                .input(Tensor::scalar(nrows))
                .input(Tensor::scalar(9.0f32))
        };
        let out = fill(&[2, 0, 2], 4).run().unwrap();
        assert_eq!(out[0], l(&[0, 1, 2, 2, 3]));
        assert_eq!(out[1], f(&[5], &[2.0, 9.0, 1.0, 3.0, 9.0]));
        assert_eq!(out[2], Tensor::vector(&[false, true, false, true]));
        assert_eq!(out[3], l(&[2, 0, 3]));
        let invalid = Code::InvalidArgument;
        fill(&[0, 2, 4], 4).fails(invalid, "indices(2, 0) is invalid: 4 >= 4");
        fill(&[0, 0, 0], 0).fails(
            invalid,
            "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = 3",
        );
        let grad = |map: &[i64]| {
            check("RaggedFillEmptyRowsGrad").input(l(map)).input(f(&[4], &[1.0, 2.0, 3.0, 4.0]))
        };
        let out = grad(&[0, 2]).run().unwrap();
        assert_eq!(out, [f(&[2], &[1.0, 3.0]), Tensor::scalar(6.0f32)]);
        grad(&[0, 7]).fails(invalid, "Elements in reverse index must be in [0, 4) but got 7");
    }
}
