//! SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN and their gradients: segments of
//! gathered rows.

use super::ops::Summed;
use super::segment::{check_sorted, checked_segments, num_segments};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

/// The divisor of a segment's sum.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    One,
    Count,
    RootOfCount,
}

impl Scale {
    fn of(self, count: usize) -> f64 {
        match self {
            Scale::One => 1.0,
            Scale::Count => 1.0 / count as f64,
            Scale::RootOfCount => 1.0 / (count as f64).sqrt(),
        }
    }
}

/// Sums of numbers that can be scaled. Integers are scaled by 1 only.
trait Scaled: Num {
    fn scaled(self, by: f64) -> Self;
}
macro_rules! scaled {
    ($($t:ty)*) => {$(impl Scaled for $t { fn scaled(self, by: f64) -> $t { self * by as $t } })*};
}
macro_rules! unscaled {
    ($($t:ty)*) => {$(impl Scaled for $t { fn scaled(self, _: f64) -> $t { self } })*};
}
scaled!(f32 f64);
unscaled!(i8 i16 i32 i64 u8 u16 u32 u64);

struct SparseSegment<T> {
    scale: Scale,
    with_num_segments: bool,
    marker: std::marker::PhantomData<T>,
}

fn sparse_segment<T: Summed>(scale: Scale, with_num_segments: bool) -> SparseSegment<T> {
    SparseSegment { scale, with_num_segments, marker: std::marker::PhantomData }
}

/// Indices and segment ids of a node: vectors of the same length.
fn indices_and_ids(ctx: &Ctx<'_>) -> Result<(Vec<i64>, Vec<i64>)> {
    let (indices, ids) = (ctx.input(1)?, ctx.input(2)?);
    ensure!(indices.rank() == 1, InvalidArgument, "indices should be a vector.");
    ensure!(ids.rank() == 1, InvalidArgument, "segment_ids should be a vector.");
    ensure!(
        indices.elements() == ids.elements(),
        InvalidArgument,
        "segment_ids and indices should have same size."
    );
    Ok((indices.to_indices()?, ids.to_indices()?))
}

impl<T: Summed> Kernel for SparseSegment<T>
where
    T::Sum: Scaled,
{
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let data = ctx.input(0)?;
        ensure!(data.rank() >= 1, InvalidArgument, "Shape must be at least rank 1");
        let (indices, ids) = indices_and_ids(ctx)?;
        let rows = if self.with_num_segments {
            let n = usize::try_from(num_segments(ctx, 3)?);
            let Ok(n) = n else { bail!(InvalidArgument, "segment ids must be >= 0") };
            if let Some(&last) = ids.last() {
                ensure!(last < n as i64, InvalidArgument, "segment ids must be < num_segments");
                check_sorted(&ids, n)?;
            }
            n
        } else {
            checked_segments(&ids)?
        };
        let limit = data.shape()[0];
        for (i, &index) in indices.iter().enumerate() {
            ensure!(
                usize::try_from(index).is_ok_and(|index| index < limit),
                InvalidArgument,
                "Bad: indices[{i}] == {index} out of range [0, {limit})"
            );
        }
        let mut shape = data.shape().to_i64s();
        shape[0] = rows as i64;
        let mut y = ctx.alloc(T::DTYPE, Shape::from_dims(&shape)?)?;
        let x = data.as_slice::<T>()?;
        let out = y.as_mut_slice::<T>()?;
        if out.is_empty() {
            return ctx.set(0, y);
        }
        let inner = out.len() / rows;
        for_rows(out, inner, inner * (1 + ids.len() / rows), |segments, out| {
            let mut sums = vec![<T::Sum as Num>::ZERO; inner];
            let mut at = ids.partition_point(|&id| id < segments.start as i64);
            for (segment, out) in segments.zip(out.chunks_exact_mut(inner)) {
                let from = at;
                at += ids[from..].iter().take_while(|&&id| id == segment as i64).count();
                sums.fill(<T::Sum as Num>::ZERO);
                for &index in &indices[from..at] {
                    let row = &x[index as usize * inner..][..inner];
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.add(x.to_sum()));
                }
                let scale = if from == at { 1.0 } else { self.scale.of(at - from) };
                for (out, sum) in out.iter_mut().zip(&sums) {
                    *out = T::from_sum(sum.scaled(scale));
                }
            }
        });
        ctx.set(0, y)
    }
}

/// The gradient: each segment's row, scaled and added to the rows that it was gathered from.
struct SparseSegmentGrad<T> {
    scale: Scale,
    /// Whether to output only the gathered rows and their indices.
    compact: bool,
    marker: std::marker::PhantomData<T>,
}

fn sparse_segment_grad<T: Summed>(scale: Scale, compact: bool) -> SparseSegmentGrad<T> {
    SparseSegmentGrad { scale, compact, marker: std::marker::PhantomData }
}

impl<T: Summed> Kernel for SparseSegmentGrad<T>
where
    T::Sum: Scaled,
{
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (grad, dim0) = (ctx.input(0)?, ctx.input(3)?);
        ensure!(grad.rank() >= 1, InvalidArgument, "Shape must be at least rank 1");
        let (indices, ids) = indices_and_ids(ctx)?;
        ensure!(
            dim0.rank() == 0,
            InvalidArgument,
            "output_dim0 should be a scalar, not shape {}",
            dim0.shape()
        );
        let dim0 = dim0.scalar_index()?;
        let Ok(limit) = usize::try_from(dim0) else {
            bail!(InvalidArgument, "Expected a non-negative size, got {dim0}");
        };
        let segments = grad.shape()[0];
        if let Some(&last) = ids.last() {
            ensure!(last < segments as i64, InvalidArgument, "Invalid number of segments");
        }
        // A tensor, because only tensors are counted against the memory limit.
        let counted = if self.scale == Scale::One { 0 } else { segments };
        let mut counts = Tensor::zeros(DType::Int64, [counted])?;
        let counts = counts.as_mut_slice::<i64>()?;
        for &id in &ids {
            ensure!(
                (0..segments as i64).contains(&id),
                InvalidArgument,
                "Segment id {id} out of range [0, {segments})."
            );
            if let Some(count) = counts.get_mut(id as usize) {
                *count += 1;
            }
        }
        for &index in &indices {
            ensure!(
                usize::try_from(index).is_ok_and(|index| index < limit),
                InvalidArgument,
                "Index {index} out of range [0, {limit})."
            );
        }
        let unique = if self.compact {
            let mut unique = indices.clone();
            unique.sort_unstable();
            unique.dedup();
            unique
        } else {
            Vec::new()
        };
        let mut shape = grad.shape().to_i64s();
        shape[0] = if self.compact { unique.len() as i64 } else { dim0 };
        let shape = Shape::from_dims(&shape)?;
        let inner: usize = shape[1..].iter().product();
        let mut sums = Tensor::zeros(<T::Sum as Element>::DTYPE, shape.clone())?;
        let out = sums.as_mut_slice::<T::Sum>()?;
        let x = grad.as_slice::<T>()?;
        if !out.is_empty() {
            for (&index, &id) in indices.iter().zip(&ids) {
                let at = match self.compact {
                    true => unique.partition_point(|&u| u < index),
                    false => index as usize,
                };
                let scale =
                    counts.get(id as usize).map_or(1.0, |&count| self.scale.of(count as usize));
                let row = &x[id as usize * inner..][..inner];
                for (out, x) in out[at * inner..].iter_mut().zip(row) {
                    *out = out.add(x.to_sum().scaled(scale));
                }
            }
        }
        let y = if <T::Sum as Element>::DTYPE == T::DTYPE {
            sums
        } else {
            let narrow: Vec<T> =
                sums.as_slice::<T::Sum>()?.iter().map(|&sum| T::from_sum(sum)).collect();
            Tensor::from_slice(shape, &narrow)?
        };
        if self.compact {
            let unique = match ctx.input(1)?.dtype() {
                DType::Int32 => {
                    Tensor::vector(&unique.iter().map(|&i| i as i32).collect::<Vec<_>>())
                }
                _ => Tensor::vector(&unique),
            };
            ctx.set(1, unique)?;
        }
        ctx.set(0, y)
    }
}

fn gathered_shape(c: &ShapeCtx<'_>, rows: Option<usize>) -> Result<PartialShape> {
    let data = c.input(0);
    let Some(dims) = data.dims() else {
        return Ok(PartialShape::unknown());
    };
    ensure!(!dims.is_empty(), InvalidArgument, "Shape must be at least rank 1 but is rank 0");
    Ok(PartialShape::new(std::iter::once(rows).chain(dims[1..].iter().copied())))
}

/// The number of rows in the scalar input 3, if present.
fn segments_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let rows = c.constant_ints(3).and_then(|n| usize::try_from(*n.first()?).ok());
    Ok(vec![gathered_shape(c, rows)?])
}

fn compact_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![gathered_shape(c, None)?, PartialShape::of_rank(1)])
}

/// The types of a gradient.
const GRAD_ATTRS: [&str; 3] = [
    "T: {bfloat16, half, float, double}",
    "Tidx: {int32, int64} = DT_INT32",
    "Tsegmentids: {int32, int64} = DT_INT32",
];

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! sparse_segments {
        ($($op:literal, $doc:literal, $types:literal, $set:tt, $scale:ident;)*) => {$(
            c.op(concat!("SparseSegment", $op))
                .doc(concat!($doc, " of gathered rows with the same id; ids are sorted."))
                .input("data: T")
                .input("indices: Tidx")
                .input("segment_ids: Tsegmentids")
                .output("output: T")
                .attr($types)
                .attr("Tidx: {int32, int64} = DT_INT32")
                .attr("Tsegmentids: {int32, int64} = DT_INT32")
                .attr("sparse_gradient: bool = false")
                .shape(segments_shape)
                .cpu(per_dtype!($set, T => sparse_segment::<T>(Scale::$scale, false)));
            c.op(concat!("SparseSegment", $op, "WithNumSegments"))
                .doc(concat!($doc, " of gathered rows with the same id, for a number of segments."))
                .input("data: T")
                .input("indices: Tidx")
                .input("segment_ids: Tsegmentids")
                .input("num_segments: Tnumsegments")
                .output("output: T")
                .attr($types)
                .attr("Tidx: {int32, int64} = DT_INT32")
                .attr("Tnumsegments: {int32, int64} = DT_INT32")
                .attr("Tsegmentids: {int32, int64} = DT_INT32")
                .attr("sparse_gradient: bool = false")
                .shape(segments_shape)
                .cpu(per_dtype!($set, T => sparse_segment::<T>(Scale::$scale, true)));
            c.op(concat!("SparseSegment", $op, "Grad"))
                .doc(concat!("Gradient of SparseSegment", $op, "."))
                .input("grad: T")
                .input("indices: Tidx")
                .input("segment_ids: Tsegmentids")
                .input("output_dim0: int32")
                .output("output: T")
                .attrs(&GRAD_ATTRS)
                .shape(segments_shape)
                .cpu(per_dtype!(FLOAT, T => sparse_segment_grad::<T>(Scale::$scale, false)));
            c.op(concat!("SparseSegment", $op, "GradV2"))
                .doc(concat!("Gradient of SparseSegment", $op, ", of the gathered rows only."))
                .input("grad: T")
                .input("indices: Tidx")
                .input("segment_ids: Tsegmentids")
                .input("dense_output_dim0: int32")
                .output("output: T")
                .output("sorted_unique_indices: Tidx")
                .attrs(&GRAD_ATTRS)
                .shape(compact_shape)
                .cpu(per_dtype!(FLOAT, T => sparse_segment_grad::<T>(Scale::$scale, true)));
        )*};
    }
    sparse_segments! {
        "Sum", "Sum", "T: realnumbertype", REAL, One;
        "Mean", "Mean", "T: {bfloat16, half, float, double}", FLOAT, Count;
        "SqrtN", "Sum, divided by the root of their number,", "T: {bfloat16, half, float, double}",
            FLOAT, RootOfCount;
    }
    for (op, grad) in [
        ("Sum", "SparseSegmentSumGrad"),
        ("Mean", "SparseSegmentMeanGrad"),
        ("SqrtN", "SparseSegmentSqrtNGrad"),
    ] {
        for suffix in ["", "WithNumSegments"] {
            c.gradient(&format!("SparseSegment{op}{suffix}"), move |g, dy| {
                let (at, ids, shape) = (g.input(1), g.input(2), g.input(0).shape());
                let inputs = [dy[0], at, ids, shape.element(0)];
                if !g.attrs().bool("sparse_gradient").unwrap_or(false) {
                    return Ok(g.only(g.call(grad, &inputs)));
                }
                let found = g.calls(&format!("{grad}V2"), &inputs);
                Ok(g.only(g.slices(found[0], found[1], shape)))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn op(name: &str, indices: &[i32], ids: &[i32]) -> Check<'static> {
        let values: Vec<f32> = (0..8).map(|i| i as f32).collect();
        check(name)
            .input(Tensor::from_slice([4, 2], &values).unwrap())
            .input(Tensor::vector(indices))
            .input(Tensor::vector(ids))
    }

    fn t(n: usize, values: &[f32]) -> Tensor {
        Tensor::from_slice([n, 2], values).unwrap()
    }

    #[test]
    fn gathered_rows_are_joined() {
        let (at, ids) = ([3, 0, 1], [0, 0, 2]);
        let sum = t(3, &[6.0, 8.0, 0.0, 0.0, 2.0, 3.0]);
        op("SparseSegmentSum", &at, &ids).gives(sum);
        op("SparseSegmentMean", &at, &ids).gives(t(3, &[3.0, 4.0, 0.0, 0.0, 2.0, 3.0]));
        let want = t(3, &[4.2426405, 5.656854, 0.0, 0.0, 2.0, 3.0]);
        op("SparseSegmentSqrtN", &at, &ids).gives(want);
        op("SparseSegmentSum", &[], &[]).gives(t(0, &[]));
        op("SparseSegmentMeanWithNumSegments", &at, &ids)
            .input(Tensor::scalar(4i32))
            .gives(t(4, &[3.0, 4.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0]));
    }

    #[test]
    fn bad_ids_and_indices_are_refused() {
        let fails = |at: &[i32], ids: &[i32], text: &str| {
            op("SparseSegmentSum", at, ids).fails(Code::InvalidArgument, text)
        };
        fails(&[4, 0, 1], &[0, 0, 2], "Bad: indices[0] == 4 out of range [0, 4)");
        fails(&[3, 0, 1], &[0, 2, 1], "segment ids are not increasing");
        fails(&[3, 0, 1], &[1, 2], "segment_ids and indices should have same size.");
        op("SparseSegmentSumWithNumSegments", &[3, 0, 1], &[0, 0, 2])
            .input(Tensor::scalar(2i32))
            .fails(Code::InvalidArgument, "segment ids must be < num_segments");
    }

    #[test]
    fn gradients_go_where_rows_came_from() {
        let grad =
            |name: &str, at: &[i32], n: i32| op(name, at, &[0, 0, 2]).input(Tensor::scalar(n));
        let want = t(5, &[0.0, 1.0, 4.0, 5.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        grad("SparseSegmentSumGrad", &[3, 0, 1], 5).gives(want);
        let want = t(4, &[0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 4.0, 5.5]);
        grad("SparseSegmentMeanGrad", &[3, 0, 3], 4).gives(want);
        let want = t(4, &[0.0, 0.70710677, 0.0, 0.0, 0.0, 0.0, 4.0, 5.7071066]);
        grad("SparseSegmentSqrtNGrad", &[3, 0, 3], 4).gives(want);
        let got = grad("SparseSegmentMeanGradV2", &[3, 0, 3], 5).run().unwrap();
        assert_eq!(got, [t(2, &[0.0, 0.5, 4.0, 5.5]), Tensor::vector(&[0i32, 3])]);
        let text = "Index 5 out of range [0, 5).";
        grad("SparseSegmentSumGrad", &[5, 0, 1], 5).fails(Code::InvalidArgument, text);
        let text = "Expected a non-negative size, got -5";
        grad("SparseSegmentSumGrad", &[3, 0, 1], -5).fails(Code::InvalidArgument, text);
        op("SparseSegmentSumGrad", &[3, 0, 1], &[0, 0, 4])
            .input(Tensor::scalar(5i32))
            .fails(Code::InvalidArgument, "Invalid number of segments");
    }
}
