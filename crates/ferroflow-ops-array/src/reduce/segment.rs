//! SegmentSum and similar ops over sorted segment ids; UnsortedSegmentSum and similar ops over
//! unsorted ids.

use super::segment_device::{SORTED, SegmentText, UNSORTED, sorted, unsorted};
use crate::array::args::{require_prefix, scalar_dim};
use crate::prelude::*;
use ferroflow_core::RealElement;
use ferroflow_op_kit::parallel::for_rows;

/// How the rows of a segment are combined.
struct Join<T> {
    /// The initial value of a segment.
    start: T,
    /// The value of a segment without rows, for sorted ids.
    empty: T,
    row: fn(&mut [T], &[T]),
    /// Whether the sum is divided by the number of rows.
    mean: bool,
}

fn add_row<T: Num>(to: &mut [T], x: &[T]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = to.add(*x));
}
fn mul_row<T: Num>(to: &mut [T], x: &[T]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = to.mul(*x));
}
fn max_row<T: Real>(to: &mut [T], x: &[T]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = Real::max(*to, *x));
}
fn min_row<T: Real>(to: &mut [T], x: &[T]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = Real::min(*to, *x));
}

impl<T: Num> Join<T> {
    fn sum() -> Self {
        Join { start: T::ZERO, empty: T::ZERO, row: add_row, mean: false }
    }
    fn mean() -> Self {
        Join { mean: true, ..Join::sum() }
    }
    fn prod() -> Self {
        Join { start: T::ONE, empty: T::ONE, row: mul_row, mean: false }
    }
}

impl<T: Lowest> Join<T> {
    fn max() -> Self {
        Join { start: T::LOWEST, empty: <T as Num>::ZERO, row: max_row, mean: false }
    }
    fn min() -> Self {
        Join { start: T::HIGHEST, empty: <T as Num>::ZERO, row: min_row, mean: false }
    }
}

/// The ends of a type's finite range.
pub trait Lowest: Real + RealElement {
    const LOWEST: Self;
    const HIGHEST: Self;
}
macro_rules! lowest {
    ($($t:ty)*) => {
        $(impl Lowest for $t { const LOWEST: Self = <$t>::MIN; const HIGHEST: Self = <$t>::MAX; })*
    };
}
lowest!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

/// The sorted ids of the rows of `data`, and the shape of the result: a row for each segment.
pub(super) fn segments_of(data: &Tensor, ids: &Tensor) -> Result<(Vec<i64>, Vec<usize>)> {
    ensure!(data.rank() >= 1, InvalidArgument, "input must be at least rank 1");
    ensure!(ids.rank() == 1, InvalidArgument, "segment_ids should be a vector.");
    ensure!(
        ids.elements() == data.shape()[0],
        InvalidArgument,
        "segment_ids should be the same size as dimension 0 of input."
    );
    let ids = ids.to_indices()?;
    let rows = checked_segments(&ids)?;
    let mut shape = data.shape().to_vec();
    shape[0] = rows;
    Ok((ids, shape))
}

/// Ranges of equal, neighbouring ids.
impl<T: Num> Kernel for Join<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let data = ctx.input(0)?;
        let (ids, shape) = segments_of(data, ctx.input(1)?)?;
        let rows = shape[0];
        let mut y = ctx.alloc(T::DTYPE, shape)?;
        let x = data.as_slice::<T>()?;
        let out = y.as_mut_slice::<T>()?;
        if out.is_empty() {
            return ctx.set(0, y);
        }
        let inner = out.len() / rows;
        let cost = (x.len() / rows).max(1);
        for_rows(out, inner, cost, |segments, out| {
            let mut at = ids.partition_point(|&id| id < segments.start as i64);
            for (segment, out) in segments.zip(out.chunks_exact_mut(inner)) {
                let from = at;
                at += ids[from..].iter().take_while(|&&id| id == segment as i64).count();
                self.fold(&x[from * inner..at * inner], out);
            }
        });
        ctx.set(0, y)
    }
}

impl<T: Num> Join<T> {
    /// Combines the rows of `x`, which are as wide as `out`.
    fn fold(&self, x: &[T], out: &mut [T]) {
        if x.is_empty() {
            return out.fill(self.empty);
        }
        out.fill(self.start);
        for row in x.chunks_exact(out.len()) {
            (self.row)(out, row);
        }
        if self.mean {
            let count = T::from_i64((x.len() / out.len()) as i64);
            out.iter_mut().for_each(|y| *y = y.div(count));
        }
    }
}

/// The number of segments that sorted ids make.
pub(super) fn checked_segments(ids: &[i64]) -> Result<usize> {
    let Some(&last) = ids.last() else {
        return Ok(0);
    };
    let Some(rows) = usize::try_from(last).ok().and_then(|last| last.checked_add(1)) else {
        bail!(InvalidArgument, "segment ids must be >= 0");
    };
    check_sorted(ids, rows)?;
    Ok(rows)
}

/// Returns an error for ids that are not sorted or not within `0..rows`.
pub(super) fn check_sorted(ids: &[i64], rows: usize) -> Result<()> {
    for (i, &id) in ids.iter().enumerate() {
        let next = ids.get(i + 1).copied().unwrap_or(id);
        ensure!(id <= next, InvalidArgument, "segment ids are not increasing");
        ensure!(
            usize::try_from(id).is_ok_and(|id| id < rows),
            InvalidArgument,
            "Segment id {id} out of range [0, {rows}), possibly because 'segment_ids' input is not \
             sorted."
        );
    }
    Ok(())
}

/// A count in input `i`, which must be a scalar.
pub(super) fn num_segments(ctx: &Ctx<'_>, i: usize) -> Result<i64> {
    let n = ctx.input(i)?;
    ensure!(
        n.rank() == 0,
        InvalidArgument,
        "num_segments should be a scalar, not shape {}",
        n.shape()
    );
    n.scalar_index()
}

/// Segments with unsorted ids. Rows with negative ids are ignored.
struct Unsorted<T>(Join<T>);

impl<T: Num> Kernel for Unsorted<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (data, ids) = (ctx.input(0)?, ctx.input(1)?);
        let n = num_segments(ctx, 2)?;
        ensure!(n >= 0, InvalidArgument, "Input num_segments == {n} must not be negative.");
        ensure!(
            data.shape().starts_with(ids.shape()),
            InvalidArgument,
            "data.shape = {} does not start with segment_ids.shape = {}",
            data.shape(),
            ids.shape()
        );
        let rest = &data.shape()[ids.rank()..];
        let dims: Vec<i64> = std::iter::once(n).chain(rest.iter().map(|&d| d as i64)).collect();
        let mut y = ctx.alloc(T::DTYPE, Shape::from_dims(&dims)?)?;
        let shape = ids.shape().clone();
        let ids = ids.to_indices()?;
        for (i, &id) in ids.iter().enumerate() {
            ensure!(
                id < n,
                InvalidArgument,
                "segment_ids{} = {id} is out of range [0, {n})",
                position(&shape, i)
            );
        }
        let x = data.as_slice::<T>()?;
        let out = y.as_mut_slice::<T>()?;
        if out.is_empty() {
            return ctx.set(0, y);
        }
        let inner = out.len() / n as usize;
        let cost = inner + x.len() / n as usize;
        let join = &self.0;
        for_rows(out, inner, cost, |segments, out| {
            out.fill(join.start);
            let (from, to) = (segments.start as i64, segments.end as i64);
            for (&id, row) in ids.iter().zip(x.chunks_exact(inner)) {
                if from <= id && id < to {
                    let at = (id - from) as usize * inner;
                    (join.row)(&mut out[at..at + inner], row);
                }
            }
        });
        ctx.set(0, y)
    }
}

/// The position of element `i`, as `[1,2]`.
fn position(shape: &Shape, i: usize) -> Shape {
    let dims = shape.iter().zip(shape.strides());
    dims.map(|(&dim, stride)| i / stride.max(1) % dim.max(1)).collect()
}

fn sorted_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let data = c.input(0);
    let Some(dims) = data.dims() else {
        return Ok(vec![PartialShape::unknown()]);
    };
    ensure!(!dims.is_empty(), InvalidArgument, "Shape must be at least rank 1 but is rank 0");
    Ok(vec![PartialShape::new(std::iter::once(None).chain(dims[1..].iter().copied()))])
}

fn unsorted_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (data, ids) = (c.input(0), c.input(1));
    let n = scalar_dim(c, 2)?;
    require_prefix(&data, &ids)?;
    let (Some(dims), Some(rank)) = (data.dims(), ids.rank()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    Ok(vec![PartialShape::new(std::iter::once(n).chain(dims[rank..].iter().copied()))])
}

/// For each element, the row of its segment.
fn rows<'g>(g: &GradientScope<'g>, of: Term<'g>, ids: Term<'g>) -> Term<'g> {
    g.call("GatherV2", &[of, ids, g.int(0)])
}

/// `t` with trailing dimensions of length 1, up to the rank of `like`.
fn trailing<'g>(g: &GradientScope<'g>, t: Term<'g>, like: Term<'g>) -> Term<'g> {
    if let (Some(rank), Some(want)) = (t.rank(), like.rank()) {
        return (rank..want).fold(t, |t, axis| t.expand_dims(axis as i64));
    }
    let more = (like.rank_term() - t.rank_term()).expand_dims(0);
    let ones = g.call("Fill", &[more, g.int(1)]);
    t.reshape(g.concat(&[t.shape(), ones], 0))
}

fn clipped_ids<'g>(g: &GradientScope<'g>) -> Term<'g> {
    let ids = g.input(1);
    ids.with("Maximum", ids.number(0.0))
}

/// Whether an element belongs to a segment: one with a negative id does not.
fn is_positive<'g>(g: &GradientScope<'g>, like: Term<'g>) -> Term<'g> {
    let ids = g.input(1);
    trailing(g, ids.with("GreaterEqual", ids.number(0.0)), like)
}

/// Like [`rows`], with zero for rows that belong to no segment.
fn rows_or_zero<'g>(g: &GradientScope<'g>, of: Term<'g>) -> Term<'g> {
    let found = rows(g, of, clipped_ids(g));
    g.select(is_positive(g, g.input(0)), found, found.number(0.0))
}

/// The product of all other elements of a segment; zero where the segment has more than one zero.
/// `reduce` multiplies or adds the elements of each segment.
fn product_of_others<'g>(
    g: &GradientScope<'g>,
    rows: impl Fn(Term<'g>) -> Term<'g>,
    reduce: impl Fn(bool, Term<'g>) -> Term<'g>,
) -> (Term<'g>, Term<'g>) {
    let x = g.input(0);
    let is_zero = x.with("Equal", x.number(0.0));
    let zeros = reduce(false, is_zero.cast(DType::Int32));
    let without = g.select(is_zero, x.number(1.0), x);
    let slope = g.select(is_zero, rows(reduce(true, without)), rows(g.output(0)) / without);
    (slope, zeros.with("Greater", g.int(1)))
}

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! segments {
        ($($op:literal, $unsorted:literal, $doc:literal, $types:literal, $set:tt, $join:ident, $gpu:ident;)*) => {$(
            c.op($op)
                .doc(concat!($doc, " of the rows with the same id; ids are sorted."))
                .input("data: T")
                .input("segment_ids: Tindices")
                .output("output: T")
                .attr($types)
                .attr("Tindices: {int32, int64}")
                .shape(sorted_shape)
                .gpu(SORTED, |init| sorted(init, SegmentText::$gpu))
                .host_inputs(&["segment_ids"])
                .cpu(per_dtype!($set, T => Join::<T>::$join()));
            if !$unsorted.is_empty() {
                let indices = match $unsorted {
                    "UnsortedSegmentSum" => "Tindices: {int16, int32, int64}",
                    _ => "Tindices: {int32, int64}",
                };
                c.op($unsorted).work(work::any)
                    .doc(concat!($doc, " of the rows with the same id; negative ids are left out."))
                    .input("data: T")
                    .input("segment_ids: Tindices")
                    .input("num_segments: Tnumsegments")
                    .output("output: T")
                    .attr($types)
                    .attr(indices)
                    .attr("Tnumsegments: {int32, int64} = DT_INT32")
                    .shape(unsorted_shape)
                    .gpu(UNSORTED, |init| unsorted(init, SegmentText::$gpu))
                    .host_inputs(&["num_segments"])
                    .cpu(per_dtype!($set, T => Unsorted(Join::<T>::$join())));
            }
        )*};
    }
    segments! {
        "SegmentSum", "UnsortedSegmentSum", "Sum", "T: numbertype", NUMBER, sum, SUM;
        "SegmentProd", "UnsortedSegmentProd", "Product", "T: numbertype", NUMBER, prod, PROD;
        "SegmentMax", "UnsortedSegmentMax", "Largest", "T: realnumbertype", REAL, max, MAX;
        "SegmentMin", "UnsortedSegmentMin", "Smallest", "T: realnumbertype", REAL, min, MIN;
        "SegmentMean", "", "Mean", "T: numbertype", NUMBER, mean, MEAN;
    }
    c.gradient("SegmentSum", |g, dy| Ok(g.only(rows(g, dy[0], g.input(1)))));
    c.gradient("SegmentMean", |g, dy| {
        let ones = g.call("OnesLike", &[g.input(1).cast(dy[0].dtype())]);
        let count = g.call("SegmentSum", &[ones, g.input(1)]);
        Ok(g.only(rows(g, dy[0] / trailing(g, count, dy[0]), g.input(1))))
    });
    for op in ["SegmentMax", "SegmentMin"] {
        c.gradient(op, |g, dy| {
            let (x, ids) = (g.input(0), g.input(1));
            let is_it = x.with("Equal", rows(g, g.output(0), ids));
            let count = g.call("SegmentSum", &[is_it.cast(dy[0].dtype()), ids]);
            let share = rows(g, dy[0] / count, ids);
            Ok(g.only(g.select(is_it, share, share.number(0.0))))
        });
    }
    c.gradient("SegmentProd", |g, dy| {
        let ids = g.input(1);
        let (slope, has_many) = product_of_others(
            g,
            |t| rows(g, t, ids),
            |product, x| g.call(if product { "SegmentProd" } else { "SegmentSum" }, &[x, ids]),
        );
        let dy = g.select(has_many, dy[0].number(0.0), dy[0]);
        Ok(g.only(rows(g, dy, ids) * slope))
    });
    c.gradient("UnsortedSegmentSum", |g, dy| Ok(g.only(rows_or_zero(g, dy[0]))));
    for op in ["UnsortedSegmentMax", "UnsortedSegmentMin"] {
        c.gradient(op, |g, dy| {
            let x = g.input(0);
            let is_it = x.with("Equal", rows_or_zero(g, g.output(0)));
            let is_it = is_it.with("LogicalAnd", is_positive(g, x));
            let ones = is_it.cast(dy[0].dtype());
            let count = g.call("UnsortedSegmentSum", &[ones, g.input(1), g.input(2)]);
            let share = rows_or_zero(g, dy[0] / count);
            Ok(g.only(g.select(is_it, share, share.number(0.0))))
        });
    }
    c.gradient("UnsortedSegmentProd", |g, dy| {
        let clipped = clipped_ids(g);
        let (slope, has_many) = product_of_others(
            g,
            |t| rows(g, t, clipped),
            |product, x| {
                let op = if product { "UnsortedSegmentProd" } else { "UnsortedSegmentSum" };
                g.call(op, &[x, g.input(1), g.input(2)])
            },
        );
        let dy = g.select(has_many, dy[0].number(0.0), dy[0]);
        Ok(g.only(rows_or_zero(g, dy) * slope))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn rows() -> Tensor {
        let values: Vec<f32> = (0..8).map(|i| i as f32).collect();
        Tensor::from_slice([4, 2], &values).unwrap()
    }

    fn sorted(op: &str, ids: &[i32]) -> Check<'static> {
        check(op).input(rows()).input(Tensor::vector(ids))
    }

    fn unsorted(op: &str, ids: &[i64], n: i32) -> Check<'static> {
        check(op).input(rows()).input(Tensor::vector(ids)).input(Tensor::scalar(n))
    }

    fn t(n: usize, values: &[f32]) -> Tensor {
        Tensor::from_slice([n, 2], values).unwrap()
    }

    #[test]
    fn sorted_segments_are_joined_and_gaps_filled() {
        let ids = [0, 0, 2, 2];
        sorted("SegmentSum", &ids).gives(t(3, &[2.0, 4.0, 0.0, 0.0, 10.0, 12.0]));
        sorted("SegmentMean", &ids).gives(t(3, &[1.0, 2.0, 0.0, 0.0, 5.0, 6.0]));
        sorted("SegmentMax", &ids).gives(t(3, &[2.0, 3.0, 0.0, 0.0, 6.0, 7.0]));
        sorted("SegmentMin", &ids).gives(t(3, &[0.0, 1.0, 0.0, 0.0, 4.0, 5.0]));
        sorted("SegmentProd", &ids).gives(t(3, &[0.0, 3.0, 1.0, 1.0, 24.0, 35.0]));
        check("SegmentMean")
            .input(Tensor::vector(&[-7i32, 2, 3]))
            .input(Tensor::vector(&[0i32, 0, 2]))
            .gives(Tensor::vector(&[-2i32, 0, 3]));
        check("SegmentSum")
            .input(Tensor::zeros(DType::Float, [0, 2]).unwrap())
            .input(Tensor::zeros(DType::Int32, [0]).unwrap())
            .gives(t(0, &[]));
    }

    #[test]
    fn sorted_ids_must_be_sorted() {
        let fails =
            |ids: &[i32], text| sorted("SegmentSum", ids).fails(Code::InvalidArgument, text);
        fails(&[0, 2, 1, 2], "segment ids are not increasing");
        let text = "Segment id -1 out of range [0, 3), possibly because 'segment_ids' input is not \
                    sorted.";
        fails(&[-1, 0, 1, 2], text);
        fails(&[0, 1], "segment_ids should be the same size as dimension 0 of input.");
        fails(&[0, 0, 0, -1], "segment ids");
    }

    #[test]
    fn unsorted_segments_are_joined_and_gaps_filled() {
        let ids = [3, 0, 3, -1];
        let got = unsorted("UnsortedSegmentSum", &ids, 5);
        got.gives(t(5, &[2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 4.0, 6.0, 0.0, 0.0]));
        let got = unsorted("UnsortedSegmentProd", &ids, 4);
        got.gives(t(4, &[2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 0.0, 5.0]));
        let (low, high) = (f32::MIN, f32::MAX);
        let got = unsorted("UnsortedSegmentMax", &ids, 4);
        got.gives(t(4, &[2.0, 3.0, low, low, low, low, 4.0, 5.0]));
        let got = unsorted("UnsortedSegmentMin", &ids, 4);
        got.gives(t(4, &[2.0, 3.0, high, high, high, high, 0.0, 1.0]));
        check("UnsortedSegmentSum")
            .input(rows())
            .input(Tensor::from_slice([4, 2], &[0i32, 1, 1, 1, 0, 0, 2, 2]).unwrap())
            .input(Tensor::scalar(3i64))
            .gives(Tensor::vector(&[9f32, 6.0, 13.0]));
    }

    #[test]
    fn unsorted_ids_must_be_in_range() {
        let fails = |ids: &[i64], n, text| {
            unsorted("UnsortedSegmentSum", ids, n).fails(Code::InvalidArgument, text)
        };
        fails(&[3, 0, 5, -1], 5, "segment_ids[2] = 5 is out of range [0, 5)");
        fails(&[3, 0], 5, "data.shape = [4,2] does not start with segment_ids.shape = [2]");
        fails(&[0; 4], -3, "Input num_segments == -3 must not be negative.");
    }

    #[test]
    fn nan_spreads_to_extremes() {
        let x = Tensor::vector(&[1f32, f32::NAN, 3.0, 4.0]);
        let ids = Tensor::vector(&[0i32, 0, 1, 1]);
        check("SegmentMax").input(x).input(ids).gives(Tensor::vector(&[f32::NAN, 4.0]));
    }
}
