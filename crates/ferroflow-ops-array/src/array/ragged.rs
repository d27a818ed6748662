//! RaggedRange, RaggedGather, RaggedTensorToSparse.

use super::args::{index_tensor, joined, position, to_shape};
use super::walk::by_width;
use crate::prelude::*;

/// Integers in memory that counts against the tensor limit, because their number comes from
/// outside.
pub(crate) fn counted(len: i64) -> Result<Tensor> {
    Tensor::zeros(DType::Int64, to_shape(&[len])?)
}

/// The number of steps of `delta` from `start` to before `limit`; none if they lead away from it.
trait Steps: Real {
    fn steps(start: Self, limit: Self, delta: Self) -> Option<i64>;
}

macro_rules! steps {
    ($($t:ty: |$start:ident, $limit:ident, $delta:ident| $n:expr;)*) => {$(
        impl Steps for $t {
            fn steps($start: Self, $limit: Self, $delta: Self) -> Option<i64> {
                let away = if $delta > 0 as $t { $start >= $limit } else { $start <= $limit };
                if away { Some(0) } else { $n }
            }
        }
    )*};
}
steps! {
    i32: |start, limit, delta| integer_steps(start.into(), limit.into(), delta.into());
    i64: |start, limit, delta| integer_steps(start, limit, delta);
    f32: |start, limit, delta| float_steps(((limit - start) / delta).abs().ceil().into());
    f64: |start, limit, delta| float_steps(((limit - start) / delta).abs().ceil());
}

fn integer_steps(start: i64, limit: i64, delta: i64) -> Option<i64> {
    let (way, step) = ((limit as i128 - start as i128).abs(), (delta as i128).abs());
    i64::try_from((way + step - 1) / step).ok()
}

fn float_steps(n: f64) -> Option<i64> {
    (n < i64::MAX as f64).then_some(n as i64)
}

fn ragged_range<T: Steps>(splits_type: DType) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let mut args: [&[T]; 3] = [&[]; 3];
        let mut rows = None;
        for (i, name) in ["starts", "limits", "deltas"].into_iter().enumerate() {
            let t = ctx.input(i)?;
            ensure!(t.rank() <= 1, InvalidArgument, "{name} must be a scalar or vector");
            if t.rank() == 1 {
                ensure!(
                    *rows.get_or_insert(t.elements()) == t.elements(),
                    InvalidArgument,
                    "starts, limits, and deltas must have the same shape"
                );
            }
            args[i] = t.as_slice::<T>()?;
        }
        let rows = rows.unwrap_or(1);
        // A scalar applies to all rows.
        let is_scalar = [0, 1, 2].map(|i| ctx.input(i).is_ok_and(|t| t.rank() == 0));
        let row = |r: usize| {
            let at = |i: usize| args[i][if is_scalar[i] { 0 } else { r }];
            (at(0), at(1), at(2))
        };
        let mut splits = vec![0i64; rows + 1];
        let largest = if splits_type == DType::Int32 { i32::MAX as i64 } else { i64::MAX };
        for r in 0..rows {
            let (start, limit, delta) = row(r);
            ensure!(delta != <T as Num>::ZERO, InvalidArgument, "Requires delta != 0");
            let next = T::steps(start, limit, delta).and_then(|n| splits[r].checked_add(n));
            match next.filter(|&n| n <= largest) {
                Some(next) => splits[r + 1] = next,
                None => bail!(
                    InvalidArgument,
                    "Requires ((limit - start) / delta) <= {largest} in total"
                ),
            }
        }
        let mut values = ctx.alloc(T::DTYPE, to_shape(&[splits[rows]])?)?;
        let out = values.as_mut_slice::<T>()?;
        for r in 0..rows {
            let (start, _, delta) = row(r);
            let mut value = start;
            for v in &mut out[splits[r] as usize..splits[r + 1] as usize] {
                *v = value;
                value = value.add(delta);
            }
        }
        ctx.set(0, index_tensor(splits_type, [rows + 1], &splits)?)?;
        ctx.set(1, values)
    }
}

/// The row splits of a ragged tensor, checked to point into what follows them.
fn gather_splits(ctx: &Ctx<'_>, n: usize, values: usize) -> Result<Vec<Vec<i64>>> {
    let all: Vec<Vec<i64>> = (0..n).map(|i| ctx.input(i)?.to_indices()).collect::<Result<_>>()?;
    for (i, splits) in all.iter().enumerate() {
        let count = all.get(i + 1).map_or(values as i64, |next| next.len() as i64 - 1);
        for (j, &split) in splits.iter().enumerate() {
            ensure!(split >= 0, InvalidArgument, "Ragged splits must be non-negative");
            ensure!(split <= count, InvalidArgument, "Ragged splits must not point past values");
            ensure!(
                j == 0 || splits[j - 1] <= split,
                InvalidArgument,
                "Ragged splits must be sorted"
            );
        }
    }
    Ok(all)
}

fn ragged_gather(init: &KernelInit<'_>) -> Result<KernelBox> {
    let n = init.int("PARAMS_RAGGED_RANK")? as usize;
    let out_rank = init.int("OUTPUT_RAGGED_RANK")?;
    let splits_type = init.dtype("Tsplits")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (values, indices) = (ctx.input(n)?, ctx.input(n + 1)?);
        ensure!(values.rank() > 0, InvalidArgument, "params.rank must be nonzero");
        let splits = gather_splits(ctx, n, values.shape()[0])?;
        let outer = indices.rank() as i64 - 1;
        ensure!(
            out_rank == outer + n as i64,
            InvalidArgument,
            "Expected OUTPUT_RAGGED_RANK to be {}, got {out_rank}",
            outer + n as i64
        );
        let rows = splits[0].len() as i64 - 1;
        let picks = indices.to_indices()?;
        if let Some(at) = picks.iter().position(|&i| i < 0 || i >= rows) {
            bail!(
                InvalidArgument,
                "indices{} = {} is not in [0, {rows})",
                position(indices.shape(), at),
                picks[at]
            );
        }
        // For each picked row and ragged dimension, the range of splits to copy. The first pass
        // counts, the second copies.
        let spans = |pick: i64| {
            let mut span = (pick as usize, pick as usize + 1);
            splits.iter().map(move |s| {
                let here = span;
                span = (s[span.0] as usize, s[span.1] as usize);
                (here, span)
            })
        };
        let mut counts = vec![0i64; n + 1];
        for &pick in &picks {
            for (d, ((from, to), (first, last))) in spans(pick).enumerate() {
                counts[d] = counts[d].saturating_add((to - from) as i64);
                if d + 1 == n {
                    counts[n] = counts[n].saturating_add((last - first) as i64);
                }
            }
        }
        let mut outputs = Vec::with_capacity(out_rank as usize + 1);
        // All dimensions of `indices` but the last are uniform.
        let mut groups = 1i64;
        for d in 0..indices.rank().saturating_sub(1) {
            groups = groups.saturating_mul(indices.shape()[d] as i64);
            let mut t = counted(groups.saturating_add(1))?;
            let len = indices.shape()[d + 1] as i64;
            for (i, v) in t.as_mut_slice::<i64>()?.iter_mut().enumerate() {
                *v = i as i64 * len;
            }
            outputs.push(t);
        }
        for (d, s) in splits.iter().enumerate() {
            // A scalar index picks one row. The first splits of that row are not a dimension of the
            // output.
            if d == 0 && indices.rank() == 0 {
                continue;
            }
            let mut t = counted(counts[d].saturating_add(1))?;
            let out = t.as_mut_slice::<i64>()?;
            let mut at = 0;
            for &pick in &picks {
                let Some(((from, to), _)) = spans(pick).nth(d) else { continue };
                for i in from..to {
                    out[at + 1] = out[at] + s[i + 1] - s[i];
                    at += 1;
                }
            }
            outputs.push(t);
        }
        let shape = joined(&[&[counts[n] as usize], &values.shape()[1..]]);
        shape.checked_elements()?;
        let mut dense = ctx.alloc(values.dtype(), shape)?;
        let row: usize = values.shape()[1..].iter().product();
        let pieces: Vec<(usize, usize)> =
            picks.iter().filter_map(|&p| spans(p).fold(None, |_, (_, span)| Some(span))).collect();
        by_width!(values.dtype(), W => copy_rows(W::of(values)?, &pieces, row, W::of_mut(&mut dense)?));
        let last = outputs.len();
        for (i, t) in outputs.into_iter().enumerate() {
            ctx.set(i, index_tensor(splits_type, t.shape().clone(), t.as_slice::<i64>()?)?)?;
        }
        ctx.set(last, dense)
    }))
}

/// Copies the rows of all `pieces` to `dst`, one piece after another.
fn copy_rows<W: Movable>(src: &[W], pieces: &[(usize, usize)], row: usize, mut dst: &mut [W]) {
    for &(from, to) in pieces {
        let (piece, rest) = std::mem::take(&mut dst).split_at_mut((to - from) * row);
        piece.clone_from_slice(&src[from * row..to * row]);
        dst = rest;
    }
}

fn ragged_to_sparse(init: &KernelInit<'_>) -> Result<KernelBox> {
    let n = init.int("RAGGED_RANK")? as usize;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let values = ctx.input(n)?;
        let splits: Vec<Vec<i64>> =
            (0..n).map(|i| ctx.input(i)?.to_indices()).collect::<Result<_>>()?;
        for (i, s) in splits.iter().enumerate() {
            let (Some(first), Some(last)) = (s.first(), s.last()) else {
                bail!(InvalidArgument, "ragged splits may not be empty.");
            };
            ensure!(*first == 0, InvalidArgument, "First value of ragged splits must be 0.");
            if let Some(w) = s.windows(2).find(|w| w[0] > w[1]) {
                bail!(
                    InvalidArgument,
                    "Ragged splits should be non decreasing, but we got {} followed by {}",
                    w[0],
                    w[1]
                );
            }
            let count = match splits.get(i + 1) {
                Some(next) => next.len() as i64 - 1,
                None => values.shape().first().map_or(-1, |&d| d as i64),
            };
            ensure!(
                *last == count,
                InvalidArgument,
                "Final value of ragged splits must match the length the corresponding ragged \
                 values."
            );
        }
        // The coordinates of every element of a level, derived from those of the level above.
        let mut width = 1;
        let mut level: Vec<i64> = (0..splits[0].len() as i64 - 1).collect();
        let mut shape = vec![splits[0].len() as i64 - 1];
        for s in &splits {
            let mut next = Vec::with_capacity(s.last().map_or(0, |&n| n as usize) * (width + 1));
            for (parent, w) in level.chunks_exact(width).zip(s.windows(2)) {
                for i in 0..w[1] - w[0] {
                    next.extend_from_slice(parent);
                    next.push(i);
                }
            }
            shape.push(s.windows(2).map(|w| w[1] - w[0]).fold(0, Ord::max));
            (level, width) = (next, width + 1);
        }
        let inner = &values.shape()[1..];
        let count: usize = inner.iter().product();
        let rank = width + inner.len();
        let mut indices = ctx.alloc(DType::Int64, [values.elements(), rank])?;
        let strides = Shape::from(inner).strides();
        for (i, to) in indices.as_mut_slice::<i64>()?.chunks_exact_mut(rank).enumerate() {
            let (row, mut rest) = (i / count.max(1), i % count.max(1));
            to[..width].copy_from_slice(&level[row * width..][..width]);
            for (to, stride) in to[width..].iter_mut().zip(&strides) {
                *to = (rest / stride) as i64;
                rest %= stride;
            }
        }
        shape.extend(inner.iter().map(|&d| d as i64));
        let flat = values.reshape([values.elements()])?;
        ctx.set(0, indices)?;
        ctx.set(1, flat)?;
        ctx.set(2, Tensor::vector(&shape))
    }))
}

fn ragged_gather_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let count = g.num_inputs();
    ensure!(count >= 3, Internal, "a RaggedGather has splits, values and indices");
    let (values, indices) = (g.input(count - 2), g.input(count - 1));
    let Some(&dy) = dy.last() else { bail!(Internal, "a RaggedGather has values") };
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherV2", &[from, at, g.int(0)]);
    // The start of each row's values.
    let splits = (1..count - 2).fold(g.input(0), |splits, i| pick(g.input(i), splits));
    let flat = indices.reshape(g.ints(&[-1]));
    let (from, to) = (pick(splits, flat), pick(splits, flat + 1.0));
    let ranges = g.calls("RaggedRange", &[from, to, from.number(1.0)]);
    Ok(g.at(count - 2, g.slices(dy.dense(), ranges[1], values.shape())))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RaggedRange")
        .work(work::any)
        .doc("A range for each row.")
        .input("starts: T")
        .input("limits: T")
        .input("deltas: T")
        .output("rt_nested_splits: Tsplits")
        .output("rt_dense_values: T")
        .attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| {
            let rows = (0..3).map(|i| c.input(i)).find(|s| s.rank() == Some(1));
            let splits = rows.and_then(|s| s.dim(0)).and_then(|n| n.checked_add(1));
            Ok(vec![PartialShape::new([splits]), PartialShape::of_rank(1)])
        })
        .cpu(per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], init,
            T => ragged_range::<T>(init.dtype("Tsplits")?)));
    c.op("RaggedGather")
        .work(work::any)
        .doc("The rows of a ragged tensor that the indices name.")
        .input("params_nested_splits: PARAMS_RAGGED_RANK * Tsplits")
        .input("params_dense_values: Tvalues")
        .input("indices: Tindices")
        .output("output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits")
        .output("output_dense_values: Tvalues")
        .attr("Tvalues: type")
        .attr("Tindices: {int32, int64}")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .attr("PARAMS_RAGGED_RANK: int >= 1")
        .attr("OUTPUT_RAGGED_RANK: int >= 0")
        .shape(|c| {
            let values = c.input(c.attrs.int("PARAMS_RAGGED_RANK")? as usize);
            let mut shapes = vec![PartialShape::of_rank(1); c.outputs];
            if let Some(last) = shapes.last_mut() {
                *last = super::args::with_partial_dim(&values, 0, None);
            }
            Ok(shapes)
        })
        .cpu(ragged_gather);
    c.op("RaggedTensorToSparse")
        .work(work::any)
        .doc("A ragged tensor as a sparse one.")
        .input("rt_nested_splits: RAGGED_RANK * Tsplits")
        .input("rt_dense_values: T")
        .output("sparse_indices: int64")
        .output("sparse_values: T")
        .output("sparse_dense_shape: int64")
        .attr("RAGGED_RANK: int >= 1")
        .attr("T: type")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| {
            let n = c.attrs.int("RAGGED_RANK")? as usize;
            let values = c.input(n);
            let rank = values.rank().map(|r| r + n);
            let count = values.elements();
            Ok(vec![
                PartialShape::new([count, rank]),
                PartialShape::new([count]),
                PartialShape::new([rank]),
            ])
        })
        .cpu(ragged_to_sparse);
    c.no_gradient(&["RaggedRange"]);
    c.gradient("RaggedTensorToSparse", |g, dy| {
        let last = g.num_inputs().saturating_sub(1);
        Ok(g.at(last, dy[1].reshape_like(g.input(last))))
    });
    c.gradient("RaggedGather", ragged_gather_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn l(values: &[i64]) -> Tensor {
        Tensor::vector(values)
    }

    fn f(values: &[f32]) -> Tensor {
        Tensor::vector(values)
    }

    #[test]
    fn every_row_has_its_range() {
        let range =
            |a: Tensor, b: Tensor, c: Tensor| check("RaggedRange").input(a).input(b).input(c);
        let v = Tensor::vector::<i32>;
        let s = Tensor::scalar::<i32>;
        let out = range(v(&[0, 5, 8]), v(&[3, 5, 2]), v(&[1, 1, -3])).run().unwrap();
        assert_eq!(out, [l(&[0, 3, 3, 5]), v(&[0, 1, 2, 8, 5])]);
        let out = range(s(0), v(&[3, 1]), s(1)).attr("Tsplits", DType::Int32).run().unwrap();
        assert_eq!(out, [v(&[0, 3, 4]), v(&[0, 1, 2, 0])]);
        let invalid = Code::InvalidArgument;
        range(v(&[0]), v(&[3, 5]), s(1)).fails(invalid, "must have the same shape");
        range(s(0), v(&[3]), s(0)).fails(invalid, "Requires delta != 0");
        let wide = Tensor::scalar::<i64>;
        range(wide(i64::MIN), wide(i64::MAX), wide(1)).fails(invalid, "Requires ((limit");
    }

    fn gather(splits: &[&[i64]], indices: Tensor) -> Check<'static> {
        let out_rank = (indices.rank() + splits.len()) as i64 - 1;
        splits
            .iter()
            .fold(check("RaggedGather"), |c, s| c.input(l(s)))
            .input(f(&[1.0, 2.0, 3.0, 4.0, 5.0]))
            .input(indices)
            .attr("OUTPUT_RAGGED_RANK", out_rank)
    }

    #[test]
    fn ragged_rows_are_picked() {
        let v = Tensor::vector::<i32>;
        let out = gather(&[&[0, 2, 2, 5]], v(&[2, 0, 1])).run().unwrap();
        assert_eq!(out, [l(&[0, 3, 5, 5]), f(&[3.0, 4.0, 5.0, 1.0, 2.0])]);
        let grid = Tensor::from_slice([2, 2], &[2i32, 0, 1, 1]).unwrap();
        let out = gather(&[&[0, 2, 2, 5]], grid).run().unwrap();
        assert_eq!(out, [l(&[0, 2, 4]), l(&[0, 3, 5, 5, 5]), f(&[3.0, 4.0, 5.0, 1.0, 2.0])]);
        let out = gather(&[&[0, 2, 2, 5]], Tensor::scalar(0i32)).run().unwrap();
        assert_eq!(out, [f(&[1.0, 2.0])]);
        let out = gather(&[&[0, 2], &[0, 2, 5]], v(&[0, 0])).run().unwrap();
        assert_eq!(out[..2], [l(&[0, 2, 4]), l(&[0, 2, 5, 7, 10])]);
        for (splits, index, text) in [
            (&[0, 2, 2, 5][..], 3, "indices[0] = 3 is not in [0, 3)"),
            (&[0, 2, 2, 6], 2, "Ragged splits must not point past values"),
            (&[0, 2, 1, 5], 2, "Ragged splits must be sorted"),
            (&[-1, 2], 0, "Ragged splits must be non-negative"),
            (&[], 0, "indices[0] = 0 is not in [0, -1)"),
        ] {
            gather(&[splits], v(&[index])).fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn ragged_becomes_sparse() {
        let sparse = |splits: &[&[i64]], values: Tensor| {
            splits.iter().fold(check("RaggedTensorToSparse"), |c, s| c.input(l(s))).input(values)
        };
        let out = sparse(&[&[0, 2, 2, 3]], f(&[1.0, 2.0, 3.0])).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([3, 2], &[0i64, 0, 0, 1, 2, 0]).unwrap());
        assert_eq!(out[2], l(&[3, 2]));
        let out = sparse(&[&[0, 2], &[0, 1, 3]], f(&[1.0, 2.0, 3.0])).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([3, 3], &[0i64, 0, 0, 0, 1, 0, 0, 1, 1]).unwrap());
        assert_eq!(out[2], l(&[1, 2, 2]));
        let dense = Tensor::from_slice([1, 2], &[1.0f32, 2.0]).unwrap();
        let out = sparse(&[&[0, 0, 1]], dense).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([2, 3], &[1i64, 0, 0, 1, 0, 1]).unwrap());
        assert_eq!(out[2], l(&[2, 1, 2]));
        for (splits, text) in [
            (&[1, 2][..], "First value of ragged splits must be 0."),
            (&[0, 3], "Final value of ragged splits must match the length"),
            (&[], "ragged splits may not be empty."),
            (&[0, 2, 1], "Ragged splits should be non decreasing, but we got 2 followed by 1"),
        ] {
            sparse(&[splits], f(&[1.0, 2.0])).fails(Code::InvalidArgument, text);
        }
    }
}
