//! Bincount, its variants, and HistogramFixedWidth: counting values.

use super::args::to_shape;
use crate::prelude::*;

/// How a value is counted: by its weight, as one, or only as present.
struct Counter<'a, T> {
    weights: &'a [T],
    binary: bool,
}

impl<T: Num> Counter<'_, T> {
    /// Counts value number `i` in `bins`. Values beyond the last bin are not counted.
    fn count(&self, bins: &mut [T], value: i64, i: usize) {
        let Some(bin) = usize::try_from(value).ok().and_then(|v| bins.get_mut(v)) else { return };
        *bin = match self.weights {
            _ if self.binary => T::ONE,
            [] => bin.add(T::ONE),
            weights => bin.add(weights[i]),
        };
    }
}

/// The number of bins in input `i`.
fn size(ctx: &Ctx<'_>, i: usize) -> Result<i64> {
    let size = ctx.input(i)?;
    ensure!(size.rank() == 0, InvalidArgument, "Shape must be rank 0 but is rank {}", size.rank());
    let size = size.scalar_index()?;
    ensure!(size >= 0, InvalidArgument, "size ({size}) must be non-negative");
    Ok(size)
}

fn non_negative(values: &[i64], text: &str) -> Result<()> {
    ensure!(values.iter().all(|&v| v >= 0), InvalidArgument, "{text}");
    Ok(())
}

fn bincount<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (values, weights) = (ctx.input(0)?, ctx.input(2)?.as_slice::<T>()?);
    let mut out = Tensor::zeros(T::DTYPE, to_shape(&[size(ctx, 1)?])?)?;
    let values = values.to_indices()?;
    ensure!(
        weights.is_empty() || weights.len() == values.len(),
        InvalidArgument,
        "Input indices and weights must have the same size."
    );
    non_negative(&values, "Input arr must be non-negative!")?;
    let (bins, counter) = (out.as_mut_slice::<T>()?, Counter { weights, binary: false });
    for (i, &value) in values.iter().enumerate() {
        counter.count(bins, value, i);
    }
    ctx.set(0, out)
}

fn dense_bincount<T: Num>(binary: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (input, weights) = (ctx.input(0)?, ctx.input(2)?);
        ensure!(
            input.rank() <= 2,
            InvalidArgument,
            "Shape must be at most rank 2 but is rank {}",
            input.rank()
        );
        let size = size(ctx, 1)?;
        ensure!(
            weights.elements() == 0 || weights.shape() == input.shape(),
            InvalidArgument,
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it \
             acts as all weights equal to 1. Received {}",
            weights.shape()
        );
        let values = input.to_indices()?;
        non_negative(&values, "Input arr must be non-negative!")?;
        let (shape, row) = match input.shape()[..] {
            [rows, row] => (to_shape(&[rows as i64, size])?, row),
            _ => (to_shape(&[size])?, values.len()),
        };
        let mut out = Tensor::zeros(T::DTYPE, shape)?;
        let counter = Counter { weights: weights.as_slice::<T>()?, binary };
        let bins = out.as_mut_slice::<T>()?;
        for (i, &value) in values.iter().enumerate() {
            let from = i / row.max(1) * size as usize;
            counter.count(&mut bins[from..from + size as usize], value, i);
        }
        ctx.set(0, out)
    }
}

fn ragged_bincount<T: Num>(binary: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let splits = ctx.input(0)?.as_slice::<i64>()?;
        let values = ctx.input(1)?.to_indices()?;
        let size = size(ctx, 2)?;
        let weights = ctx.input(3)?.as_slice::<T>()?;
        let (Some(first), Some(last)) = (splits.first(), splits.last()) else {
            bail!(InvalidArgument, "Splits must be non-empty");
        };
        ensure!(*first == 0, InvalidArgument, "Splits must start with 0, not with {first}");
        ensure!(
            *last == values.len() as i64,
            InvalidArgument,
            "Splits must end with the number of values, got {last} instead of {}",
            values.len()
        );
        ensure!(splits.is_sorted(), InvalidArgument, "Splits must be sorted");
        ensure!(
            weights.is_empty() || weights.len() == values.len(),
            InvalidArgument,
            "weights must be as many as values, got {} instead of {}",
            weights.len(),
            values.len()
        );
        non_negative(&values, "Input must be non-negative")?;
        let mut out = Tensor::zeros(T::DTYPE, to_shape(&[splits.len() as i64 - 1, size])?)?;
        let (bins, counter) = (out.as_mut_slice::<T>()?, Counter { weights, binary });
        for (row, split) in splits.windows(2).enumerate() {
            let from = row * size as usize;
            let first = split[0] as usize;
            for (i, &value) in values[first..split[1] as usize].iter().enumerate() {
                counter.count(&mut bins[from..from + size as usize], value, first + i);
            }
        }
        ctx.set(0, out)
    }
}

fn sparse_bincount<T: Num>(binary: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (indices, shape) = (ctx.input(0)?, ctx.input(2)?);
        ensure!(
            shape.rank() == 1,
            InvalidArgument,
            "Sparse shape must be rank 1 but is rank {}",
            shape.rank()
        );
        let shape = shape.to_indices()?;
        let values = ctx.input(1)?.to_indices()?;
        let size = size(ctx, 3)?;
        let weights = ctx.input(4)?.as_slice::<T>()?;
        ensure!(
            indices.rank() == 2,
            InvalidArgument,
            "indices must be a matrix, got shape {}",
            indices.shape()
        );
        let (count, rank) = (indices.shape()[0], indices.shape()[1]);
        ensure!(
            count == values.len(),
            InvalidArgument,
            "Number of elements in indices ({count}) and values ({}) do not match",
            values.len()
        );
        ensure!(
            rank == shape.len(),
            InvalidArgument,
            "Index rank ({rank}) and shape rank ({}) do not match",
            shape.len()
        );
        ensure!(
            weights.is_empty() || weights.len() >= values.len(),
            InvalidArgument,
            "weights must be as many as values, got {} instead of {}",
            weights.len(),
            values.len()
        );
        ensure!(
            (1..=2).contains(&rank),
            InvalidArgument,
            "dense_shape must have 1 or 2 elements, got {rank}"
        );
        non_negative(&values, "Input must be non-negative")?;
        let dims = if rank == 1 { vec![size] } else { vec![shape[0], size] };
        let mut out = Tensor::zeros(T::DTYPE, to_shape(&dims)?)?;
        let (bins, counter) = (out.as_mut_slice::<T>()?, Counter { weights, binary });
        for (i, index) in indices.as_slice::<i64>()?.chunks_exact(rank).enumerate() {
            ensure!(
                index.iter().zip(&shape).all(|(i, d)| 0 <= *i && i < d),
                InvalidArgument,
                "Sparse index tuple indices[{i}, :] = {index:?} is out of bounds"
            );
            let from = if rank == 1 { 0 } else { index[0] as usize * size as usize };
            counter.count(&mut bins[from..from + size as usize], values[i], i);
        }
        ctx.set(0, out)
    }
}

fn histogram<T: Real>(dtype: DType) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (values, range, nbins) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            range.shape()[..] == [2],
            InvalidArgument,
            "value_range should be a vector of 2 elements."
        );
        ensure!(nbins.rank() == 0, InvalidArgument, "nbins should be a scalar.");
        let range = range.as_slice::<T>()?;
        let (low, high) = (range[0].to_f64(), range[1].to_f64());
        ensure!(
            range[0] < range[1],
            InvalidArgument,
            "value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        );
        let nbins = nbins.scalar_index()?;
        ensure!(nbins > 0, InvalidArgument, "nbins should be a positive number, but got '{nbins}'");
        let values = values.as_slice::<T>()?;
        ensure!(
            values.iter().all(|v| !v.to_f64().is_nan()),
            InvalidArgument,
            "Histogram values must not contain NaN"
        );
        let step = (high - low) / nbins as f64;
        let last = nbins as usize - 1;
        let mut counts = Tensor::zeros(DType::Int64, to_shape(&[nbins])?)?;
        let bins = counts.as_mut_slice::<i64>()?;
        for &v in values {
            let bin = if v >= range[1] {
                last
            } else if v <= range[0] {
                0
            } else {
                // The cast saturates. A value that rounds up to the upper limit belongs to the last
                // bin.
                ((v.sub(range[0]).to_f64() / step) as usize).min(last)
            };
            bins[bin] += 1;
        }
        let out = if dtype == DType::Int64 {
            counts
        } else {
            super::args::index_tensor(dtype, [last + 1], counts.as_slice::<i64>()?)?
        };
        ctx.set(0, out)
    }
}

/// The number of bins in input `i`, if it is known.
fn bins(c: &ShapeCtx<'_>, i: usize) -> Option<usize> {
    c.constant_ints(i).and_then(|v| v.first().copied()).and_then(|n| usize::try_from(n).ok())
}

/// The types, and whether bins only say that something is in them.
const BIN_ATTRS: [&str; 3] =
    ["Tidx: {int32, int64}", "T: {int32, int64, float, double}", "binary_output: bool = false"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("Bincount")
        .work(work::any)
        .doc("How often, or with what total weight, each integer below `size` occurs.")
        .input("arr: int32")
        .input("size: int32")
        .input("weights: T")
        .output("bins: T")
        .attr("T: {int32, int64, float, double}")
        .shape(|c| Ok(vec![PartialShape::new([bins(c, 1)])]))
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], T => bincount::<T>));
    c.op("DenseBincount")
        .work(work::any)
        .doc("How often each integer below `size` occurs in a vector, or in each row of a matrix.")
        .input("input: Tidx")
        .input("size: Tidx")
        .input("weights: T")
        .output("output: T")
        .attrs(&BIN_ATTRS)
        .shape(|c| {
            Ok(vec![match c.input(0).dims() {
                Some([rows, _]) => PartialShape::new([*rows, bins(c, 1)]),
                Some(_) => PartialShape::new([bins(c, 1)]),
                None => PartialShape::unknown(),
            }])
        })
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], init,
            T => dense_bincount::<T>(init.bool("binary_output")?)));
    c.op("RaggedBincount")
        .work(work::any)
        .doc("How often each integer below `size` occurs in each row of a ragged matrix.")
        .input("splits: int64")
        .input("values: Tidx")
        .input("size: Tidx")
        .input("weights: T")
        .output("output: T")
        .attrs(&BIN_ATTRS)
        .shape(|c| {
            let rows = c.input(0).dim(0).and_then(|n| n.checked_sub(1));
            Ok(vec![PartialShape::new([rows, bins(c, 2)])])
        })
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], init,
            T => ragged_bincount::<T>(init.bool("binary_output")?)));
    c.op("SparseBincount").work(work::any)
        .doc("How often each integer below `size` occurs in a sparse vector, or each row of a matrix.")
        .input("indices: int64")
        .input("values: Tidx")
        .input("dense_shape: int64")
        .input("size: Tidx")
        .input("weights: T")
        .output("output: T")
        .attrs(&BIN_ATTRS)
        .shape(|c| {
            let size = bins(c, 3);
            let rows = c.constant_ints(2).and_then(|d| usize::try_from(*d.first()?).ok());
            Ok(vec![match c.input(2).dim(0) {
                Some(1) => PartialShape::new([size]),
                Some(2) => PartialShape::new([rows, size]),
                _ => PartialShape::unknown(),
            }])
        })
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], init,
            T => sparse_bincount::<T>(init.bool("binary_output")?)));
    c.op("HistogramFixedWidth")
        .work(work::any)
        .doc("How many values fall into each of `nbins` equal parts of a range.")
        .input("values: T")
        .input("value_range: T")
        .input("nbins: int32")
        .output("out: dtype")
        .attr("T: {int32, int64, float, double}")
        .attr("dtype: {int32, int64} = DT_INT32")
        .shape(|c| Ok(vec![PartialShape::new([bins(c, 2)])]))
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], init,
            T => histogram::<T>(init.dtype("dtype")?)));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn count(op: &str, values: Tensor, size: i32, weights: &[f32]) -> Check<'static> {
        let weights = if weights.is_empty() { t(&[0], &[]) } else { t(values.shape(), weights) };
        check(op).input(values).input(Tensor::scalar(size)).input(weights)
    }

    #[test]
    fn values_beyond_the_bins_do_not_count() {
        let v = || Tensor::vector(&[0i32, 1, 1, 5]);
        for op in ["Bincount", "DenseBincount"] {
            count(op, v(), 4, &[]).gives(t(&[4], &[1.0, 2.0, 0.0, 0.0]));
            count(op, v(), 4, &[1.0, 2.0, 3.0, 4.0]).gives(t(&[4], &[1.0, 5.0, 0.0, 0.0]));
            count(op, v(), -4, &[]).fails(Code::InvalidArgument, "size (-4) must be non-negative");
            count(op, Tensor::vector(&[-1i32]), 4, &[])
                .fails(Code::InvalidArgument, "Input arr must be non-negative!");
        }
    }

    #[test]
    fn rows_count_apart() {
        let m = || Tensor::from_slice([2, 4], &[0i32, 1, 1, 5, 3, 3, 3, 0]).unwrap();
        count("DenseBincount", m(), 4, &[])
            .gives(t(&[2, 4], &[1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 3.0]));
        count("DenseBincount", m(), 4, &[])
            .attr("binary_output", true)
            .gives(t(&[2, 4], &[1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]));
        check("DenseBincount")
            .input(m())
            .input(Tensor::scalar(4i32))
            .input(t(&[1], &[1.0]))
            .fails(Code::InvalidArgument, "`weights` must be the same shape as `arr`");
        let ragged = |splits: &[i64], weights: &[f32]| {
            check("RaggedBincount")
                .input(Tensor::vector(splits))
                .input(Tensor::vector(&[1i32, 1, 5, 2]))
                .input(Tensor::scalar(3i32))
                .input(Tensor::vector(weights))
        };
        ragged(&[0, 3, 3, 4], &[])
            .gives(t(&[3, 3], &[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        for (splits, weights, text) in [
            (&[1, 4][..], &[][..], "Splits must start with 0, not with 1"),
            (&[0, 5], &[], "Splits must end with the number of values, got 5 instead of 4"),
            (&[], &[], "Splits must be non-empty"),
            (&[0, 4, 2, 4], &[], "Splits must be sorted"),
            (&[0, 4], &[1.0], "weights must be as many as values"),
        ] {
            ragged(splits, weights).fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn sparse_rows_count_apart() {
        let sparse = |indices: &[i64], values: &[i32]| {
            check("SparseBincount")
                .input(Tensor::from_slice([indices.len() / 2, 2], indices).unwrap())
                .input(Tensor::vector(values))
                .input(Tensor::vector(&[2i64, 2]))
                .input(Tensor::scalar(3i32))
                .input(t(&[0], &[]))
        };
        sparse(&[0, 0, 1, 1], &[1, 2]).gives(t(&[2, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]));
        sparse(&[0, 0, 2, 1], &[1, 1]).fails(
            Code::InvalidArgument,
            "Sparse index tuple indices[1, :] = [2, 1] is out of bounds",
        );
        sparse(&[0, 0], &[1, 1]).fails(
            Code::InvalidArgument,
            "Number of elements in indices (1) and values (2) do not match",
        );
    }

    #[test]
    fn a_histogram_clamps_to_its_range() {
        let histogram = |values: Tensor, range: &[f32], nbins: i32| {
            check("HistogramFixedWidth")
                .input(values)
                .input(Tensor::vector(range))
                .input(Tensor::scalar(nbins))
        };
        let v = || Tensor::vector(&[-1.0f32, 0.0, 1.5, 2.0, 5.0, 15.0]);
        histogram(v(), &[0.0, 5.0], 5).gives(Tensor::vector(&[2i32, 1, 1, 0, 2]));
        histogram(Tensor::vector(&[f32::INFINITY]), &[0.0, 5.0], 2)
            .attr("dtype", DType::Int64)
            .gives(Tensor::vector(&[0i64, 1]));
        let invalid = Code::InvalidArgument;
        histogram(Tensor::vector(&[f32::NAN]), &[0.0, 5.0], 2)
            .fails(invalid, "Histogram values must not contain NaN");
        histogram(v(), &[5.0, 5.0], 5)
            .fails(invalid, "value_range[0] < value_range[1], but got '[5, 5]'");
        histogram(v(), &[5.0], 5).fails(invalid, "value_range should be a vector of 2 elements.");
        histogram(v(), &[0.0, 5.0], 0)
            .fails(invalid, "nbins should be a positive number, but got '0'");
    }
}
