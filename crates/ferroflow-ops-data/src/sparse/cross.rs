//! SparseCross, SparseCrossV2, SparseCrossHashed: every combination of the features of a row.

use super::coo::index_matrix;
use crate::prelude::*;
use crate::string::TextList;
use bytes::{Bytes, BytesMut};
use ferroflow_core::{CancelToken, CountedVec, MemoryOwner};
use ferroflow_op_kit::{
    farmhash::{fingerprint_cat64, fingerprint64},
    siphash::siphash,
};

/// More combinations than this are an error: a few features can make any number of them.
const MOST: usize = 1 << 28;

/// Crosses between two checks for memory and cancellation.
const CHECK_EVERY: usize = 1024;

/// A column of features: where those of each row are in `values`.
struct Column<'a> {
    values: &'a Tensor,
    rows: CountedVec<std::ops::Range<usize>>,
    is_dense: bool,
}

/// A single feature.
enum Feature<'a> {
    Text(&'a Bytes),
    Number(i64),
}

impl Column<'_> {
    fn feature(&self, i: usize) -> Result<Feature<'_>> {
        Ok(match self.values.dtype() {
            DType::String => Feature::Text(&self.values.strings()?[i]),
            _ => Feature::Number(self.values.as_slice::<i64>()?[i]),
        })
    }
}

/// The columns of an op: `sparse` sparse tensors, then dense matrices up to input `end`.
fn columns<'a>(ctx: &'a Ctx<'_>, sparse: usize, end: usize) -> Result<Vec<Column<'a>>> {
    let columns = columns_from(ctx, 0, sparse, end)?;
    ensure!(!columns.is_empty(), InvalidArgument, "SparseCross has no columns to cross");
    Ok(columns)
}

/// The same for inputs from `start` on.
fn columns_from<'a>(
    ctx: &'a Ctx<'_>,
    start: usize,
    sparse: usize,
    end: usize,
) -> Result<Vec<Column<'a>>> {
    let mut columns = Vec::new();
    let mut batch: Option<usize> = None;
    let mut same_batch = |n: usize| {
        let known = *batch.get_or_insert(n);
        ensure!(known == n, InvalidArgument, "Expected batch size {known}, got {n}");
        Ok(())
    };
    for i in 0..sparse {
        let (indices, values, shape) = (
            ctx.input(start + i)?,
            ctx.input(start + sparse + i)?,
            ctx.input(start + 2 * sparse + i)?,
        );
        ensure!(
            indices.rank() == 2 && indices.shape()[1] == 2,
            InvalidArgument,
            "Input indices should be a matrix with two columns but received shape {} at position {i}",
            indices.shape()
        );
        ensure!(
            values.rank() == 1 && values.elements() == indices.shape()[0],
            InvalidArgument,
            "Expected size of values to be {}, got {} at position {i}",
            indices.shape()[0],
            values.elements()
        );
        ensure!(
            shape.rank() == 1 && shape.elements() == 2,
            InvalidArgument,
            "shape should imply a 2D tensor, but got {} at position {i}",
            shape.shape()
        );
        let dims = Shape::from_dims(&shape.to_indices()?)?;
        same_batch(dims[0])?;
        let places = indices.as_slice::<i64>()?;
        // A row takes memory even when it is empty.
        let (mut rows, mut at) = (CountedVec::with_capacity(dims[0])?, 0);
        for row in 0..dims[0] as i64 {
            let from = at;
            while at < values.elements() && places[2 * at] == row {
                at += 1;
            }
            rows.push(from..at)?;
        }
        ensure!(
            at == values.elements(),
            InvalidArgument,
            "batch index out of range or out of order: {} at position {i}",
            places[2 * at]
        );
        columns.push(Column { values, rows, is_dense: false });
    }
    for i in start + 3 * sparse..end {
        let values = ctx.input(i)?;
        let &[n, width] = values.shape().dims() else {
            bail!(
                InvalidArgument,
                "Dense inputs should be a matrix but received shape {} at position {}",
                values.shape(),
                i - start - 3 * sparse
            );
        };
        same_batch(n)?;
        let rows = (0..n).map(|r| Ok(r * width..(r + 1) * width));
        let rows = CountedVec::try_from_iter(rows)?;
        columns.push(Column { values, rows, is_dense: true });
    }
    Ok(columns)
}

/// Indices and shape of the result, with `take` given the features of every combination in order:
/// those of the last column change fastest.
fn cross(
    columns: &[Column<'_>],
    cancel: &CancelToken,
    mut take: impl FnMut(&[usize]) -> Result<()>,
) -> Result<(Tensor, Tensor)> {
    let batch = columns[0].rows.len();
    let (mut indices, mut widest, mut total) = (CountedVec::new(), 0, 0usize);
    for row in 0..batch {
        let ranges: Vec<_> = columns.iter().map(|c| c.rows[row].clone()).collect();
        let n = ranges.iter().try_fold(1usize, |n, r| n.checked_mul(r.len()));
        let n = n
            .filter(|&n| n <= MOST - total)
            .ok_or_else(|| err!(InvalidArgument, "There are too many crosses: more than {MOST}"))?;
        total += n;
        widest = std::cmp::max(widest, n);
        let mut choice: Vec<usize> = ranges.iter().map(|r| r.start).collect();
        for i in 0..n {
            if i % CHECK_EVERY == 0 {
                MemoryOwner::check_current()?;
                cancel.check()?;
            }
            indices.push(row as i64)?;
            indices.push(i as i64)?;
            take(&choice)?;
            for (c, range) in choice.iter_mut().zip(&ranges).rev() {
                *c += 1;
                if *c < range.end {
                    break;
                }
                *c = range.start;
            }
        }
    }
    let shape = Tensor::vector(&[batch as i64, widest as i64]);
    Ok((index_matrix(&indices, 2, total)?, shape))
}

/// Features joined by a separator.
fn as_text(columns: &[Column<'_>], separator: &[u8], cancel: &CancelToken) -> Result<[Tensor; 3]> {
    let mut texts = TextList::new();
    let (indices, shape) = cross(columns, cancel, |choice| {
        let mut text = BytesMut::new();
        for (n, (column, &i)) in columns.iter().zip(choice).enumerate() {
            if n > 0 {
                text.extend_from_slice(separator);
            }
            match column.feature(i)? {
                Feature::Text(s) => text.extend_from_slice(s),
                Feature::Number(x) => text.extend_from_slice(x.to_string().as_bytes()),
            }
        }
        texts.push(text.freeze())
    })?;
    let n = texts.len();
    Ok([indices, texts.tensor([n])?, shape])
}

/// Features hashed together, and into buckets where there are any.
fn as_hash(
    columns: &[Column<'_>],
    start: Option<u64>,
    buckets: i64,
    cancel: &CancelToken,
    hash: impl Fn(&Column<'_>, Feature<'_>) -> u64,
) -> Result<[Tensor; 3]> {
    // To keep the result from being negative, it is at most the largest int64.
    let buckets = if buckets > 0 { buckets as u64 } else { i64::MAX as u64 };
    let mut hashes = CountedVec::new();
    let (indices, shape) = cross(columns, cancel, |choice| {
        let mut together = start;
        for (column, &i) in columns.iter().zip(choice) {
            let one = hash(column, column.feature(i)?);
            together = Some(together.map_or(one, |so_far| fingerprint_cat64(so_far, one)));
        }
        hashes.push((together.unwrap_or(0) % buckets) as i64)
    })?;
    Ok([indices, Tensor::vector(&hashes), shape])
}

fn set_all(ctx: &mut Ctx<'_>, parts: [Tensor; 3]) -> Result<()> {
    for (i, t) in parts.into_iter().enumerate() {
        ctx.set(i, t)?;
    }
    Ok(())
}

fn first_version(init: &KernelInit<'_>) -> Result<KernelBox> {
    let sparse = init.int("N")? as usize;
    let (is_hashed, buckets, key) =
        (init.bool("hashed_output")?, init.int("num_buckets")?, init.int("hash_key")?);
    let out = init.dtype("out_type")?;
    ensure!(
        (out == DType::Int64) == is_hashed,
        InvalidArgument,
        "out_type {out} does not go with hashed_output = {is_hashed}"
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let columns = columns(ctx, sparse, ctx.num_inputs())?;
        let cancel = &ctx.step().cancel;
        let parts = match is_hashed {
            false => as_text(&columns, b"_X_", cancel)?,
            true => as_hash(&columns, Some(key as u64), buckets, cancel, |_, f| match f {
                Feature::Text(s) => fingerprint64(s),
                Feature::Number(x) => x as u64,
            })?,
        };
        drop(columns);
        set_all(ctx, parts)
    }))
}

fn joined(init: &KernelInit<'_>) -> Result<KernelBox> {
    let sparse = init.int("N")? as usize;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let end = ctx.num_inputs() - 1;
        let separator = ctx.input(end)?;
        ensure!(
            separator.rank() == 0,
            InvalidArgument,
            "Input separator should be a scalar. Received: {}",
            separator.shape()
        );
        let columns = columns(ctx, sparse, end)?;
        let parts = as_text(&columns, separator.scalar_string()?, &ctx.step().cancel)?;
        drop(columns);
        set_all(ctx, parts)
    }))
}

fn hashed(init: &KernelInit<'_>) -> Result<KernelBox> {
    let sparse = init.int("N")? as usize;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let end = ctx.num_inputs() - 3;
        let buckets = ctx.input(end)?.scalar_index()?;
        let is_strong = ctx.input(end + 1)?.scalar_value::<bool>()?;
        let salt = ctx.input(end + 2)?;
        let &[a, b] = salt.as_slice::<i64>()? else {
            bail!(
                InvalidArgument,
                "Input salt should be a two-element vector, got {}",
                salt.shape()
            );
        };
        let key = [a as u64, b as u64];
        let columns = columns(ctx, sparse, end)?;
        let parts = as_hash(&columns, None, buckets, &ctx.step().cancel, |column, f| match f {
            Feature::Text(s) if is_strong => siphash(key, s),
            Feature::Text(s) => fingerprint64(s),
            // TensorFlow hashes the lower four bytes of a number, and none of a dense one's.
            Feature::Number(x) if is_strong => siphash(key, &(x as i32).to_le_bytes()),
            Feature::Number(x) if column.is_dense => x as u64,
            Feature::Number(x) => fingerprint64(&(x as i32).to_le_bytes()),
        })?;
        drop(columns);
        set_all(ctx, parts)
    }))
}

/// The columns of RaggedCross in the order of `input_order`: ragged (`R`), sparse (`S`) or dense
/// (`D`).
struct Ragged {
    order: String,
    ragged: usize,
    sparse: usize,
    is_hashed: bool,
    buckets: i64,
    key: u64,
    splits: DType,
}

impl Kernel for Ragged {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (ragged, sparse, end) = (self.ragged, self.sparse, ctx.num_inputs());
        let mut found = Vec::new();
        for i in 0..ragged {
            let (values, splits) = (ctx.input(i)?, ctx.input(ragged + i)?);
            let ends = splits.to_indices()?;
            let count = values.elements() as i64;
            ensure!(
                values.rank() == 1
                    && ends.first() == Some(&0)
                    && ends.last() == Some(&count)
                    && ends.windows(2).all(|w| w[0] <= w[1]),
                InvalidArgument,
                "invalid ragged tensor at position {i}: row splits must rise from 0 to {count}"
            );
            let rows = ends.windows(2).map(|w| Ok(w[0] as usize..w[1] as usize));
            let rows = CountedVec::try_from_iter(rows)?;
            found.push(Column { values, rows, is_dense: false });
        }
        let rest = match end > 2 * ragged {
            true => columns_from(ctx, 2 * ragged, sparse, end)?,
            false => Vec::new(),
        };
        found.extend(rest);
        // By kind, in the order in which the inputs come.
        let mut kinds: [std::collections::VecDeque<Column<'_>>; 3] = Default::default();
        for (i, column) in found.into_iter().enumerate() {
            let kind = if i < ragged { 0 } else { 1 + usize::from(i >= ragged + sparse) };
            kinds[kind].push_back(column);
        }
        let mut columns = Vec::new();
        for kind in self.order.chars() {
            let kind = match kind {
                'R' => 0,
                'S' => 1,
                'D' => 2,
                other => bail!(InvalidArgument, "input_order has the unknown kind '{other}'"),
            };
            let next = kinds[kind].pop_front();
            columns.push(next.ok_or_else(|| {
                err!(InvalidArgument, "input_order names more inputs than there are")
            })?);
        }
        ensure!(
            !columns.is_empty() && kinds.iter().all(|left| left.is_empty()),
            InvalidArgument,
            "input_order names fewer inputs than there are"
        );
        let batch = columns[0].rows.len();
        for column in &columns {
            ensure!(
                column.rows.len() == batch,
                InvalidArgument,
                "inputs must all have the same batch_size: {batch} vs. {}",
                column.rows.len()
            );
        }
        let (mut splits, mut total) = (vec![0i64], 0i64);
        for row in 0..batch {
            let lens = columns.iter().map(|c| c.rows[row].len());
            let n = lens.fold(1, usize::saturating_mul);
            total = total.saturating_add(n as i64);
            splits.push(total);
        }
        let cancel = &ctx.step().cancel;
        let [_, values, _] = match self.is_hashed {
            false => as_text(&columns, b"_X_", cancel)?,
            true => as_hash(&columns, Some(self.key), self.buckets, cancel, |_, f| match f {
                Feature::Text(s) => fingerprint64(s),
                Feature::Number(x) => x as u64,
            })?,
        };
        drop(columns);
        ctx.set(0, values)?;
        match self.splits {
            DType::Int64 => ctx.set(1, Tensor::vector(&splits)),
            _ => {
                let narrow: Vec<i32> = splits.iter().map(|s| *s as i32).collect();
                ctx.set(1, Tensor::vector(&narrow))
            }
        }
    }
}

fn ragged(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (is_hashed, out) = (init.bool("hashed_output")?, init.dtype("out_values_type")?);
    ensure!(
        (out == DType::Int64) == is_hashed,
        InvalidArgument,
        "out_values_type {out} does not go with hashed_output = {is_hashed}"
    );
    Ok(KernelBox::new(Ragged {
        order: init.string("input_order")?,
        ragged: init.dtypes("ragged_values_types")?.len(),
        sparse: init.int("Nsparse")? as usize,
        is_hashed,
        buckets: init.int("num_buckets")?,
        key: init.int("hash_key")? as u64,
        splits: init.dtype("out_row_splits_type")?,
    }))
}

fn shapes(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let indices = PartialShape::new([None, Some(2)]);
    Ok(vec![indices, PartialShape::of_rank(1), PartialShape::from([2])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RaggedCross")
        .work(work::any)
        .doc("Every combination of the features of a row, of ragged, sparse and dense inputs.")
        .input("ragged_values: ragged_values_types")
        .input("ragged_row_splits: ragged_splits_types")
        .input("sparse_indices: Nsparse * int64")
        .input("sparse_values: sparse_values_types")
        .input("sparse_shape: Nsparse * int64")
        .input("dense_inputs: dense_types")
        .output("output_values: out_values_type")
        .output("output_row_splits: out_row_splits_type")
        .attr("Nsparse: int >= 0")
        .attr("input_order: string")
        .attr("hashed_output: bool")
        .attr("num_buckets: int >= 0")
        .attr("hash_key: int")
        .attr("ragged_values_types: list({int64, string}) >= 0")
        .attr("ragged_splits_types: list({int32, int64}) >= 0")
        .attr("sparse_values_types: list({int64, string}) >= 0")
        .attr("dense_types: list({int64, string}) >= 0")
        .attr("out_values_type: {int64, string}")
        .attr("out_row_splits_type: {int32, int64}")
        .shape(|_| Ok(vec![PartialShape::new([None]); 2]))
        .cpu(ragged);
    c.op("SparseCross")
        .work(work::any)
        .doc("Every combination of the features of each row, as text or hashed.")
        .input("indices: N * int64")
        .input("values: sparse_types")
        .input("shapes: N * int64")
        .input("dense_inputs: dense_types")
        .output("output_indices: int64")
        .output("output_values: out_type")
        .output("output_shape: int64")
        .attr("N: int >= 0")
        .attr("hashed_output: bool")
        .attr("num_buckets: int >= 0")
        .attr("hash_key: int")
        .attr("sparse_types: list({int64, string}) >= 0")
        .attr("dense_types: list({int64, string}) >= 0")
        .attr("out_type: {int64, string}")
        .attr("internal_type: {int64, string}")
        .shape(shapes)
        .cpu(first_version);
    c.op("SparseCrossV2")
        .work(work::any)
        .doc("Every combination of the features of each row, joined by a separator.")
        .input("indices: N * int64")
        .input("values: sparse_types")
        .input("shapes: N * int64")
        .input("dense_inputs: dense_types")
        .input("sep: string")
        .output("output_indices: int64")
        .output("output_values: string")
        .output("output_shape: int64")
        .attr("N: int >= 0")
        .attr("sparse_types: list({int64, string}) >= 0")
        .attr("dense_types: list({int64, string}) >= 0")
        .shape(shapes)
        .cpu(joined);
    c.op("SparseCrossHashed")
        .work(work::any)
        .doc("Every combination of the features of each row, hashed into buckets.")
        .input("indices: N * int64")
        .input("values: sparse_types")
        .input("shapes: N * int64")
        .input("dense_inputs: dense_types")
        .input("num_buckets: int64")
        .input("strong_hash: bool")
        .input("salt: int64")
        .output("output_indices: int64")
        .output("output_values: int64")
        .output("output_shape: int64")
        .attr("N: int >= 0")
        .attr("sparse_types: list({int64, string}) >= 0")
        .attr("dense_types: list({int64, string}) >= 0")
        .shape(shapes)
        .cpu(hashed);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    fn strings<const N: usize>(shape: impl Into<Shape>, values: [&'static str; N]) -> Tensor {
        Tensor::from_strings(shape, values.map(Bytes::from).to_vec()).unwrap()
    }

    /// One sparse and one dense column.
    fn columns(op: &str) -> Check<'static> {
        check(op)
            .attr("N", 1i64)
            .attr("sparse_types", vec![DType::String])
            .attr("dense_types", vec![DType::String])
            .input(Tensor::from_slice([3, 2], &[0i64, 0, 0, 1, 1, 0]).unwrap())
            .input(strings([3], ["a", "b", "c"]))
            .input(Tensor::vector(&[2i64, 2]))
            .input(strings([2, 1], ["x", "y"]))
    }

    #[test]
    fn ragged_features_are_combined() {
        let of = |order: &str, hashed: bool| {
            let out = if hashed { DType::Int64 } else { DType::String };
            check("RaggedCross")
                .attr("Nsparse", 0i64)
                .attr("input_order", order)
                .attr("hashed_output", hashed)
                .attr("num_buckets", 10i64)
                .attr("hash_key", 7i64)
                .attr("ragged_values_types", vec![DType::String])
                .attr("ragged_splits_types", vec![DType::Int64])
                .attr("sparse_values_types", Vec::<DType>::new())
                .attr("dense_types", vec![DType::Int64])
                .attr("out_values_type", out)
                .attr("out_row_splits_type", DType::Int32)
                .input(strings([3], ["a", "b", "c"]))
                .input(Tensor::vector(&[0i64, 2, 3]))
                .input(Tensor::from_slice([2, 1], &[8i64, 9]).unwrap())
        };
        let out = of("RD", false).run().unwrap();
        assert_eq!(out[0], strings([3], ["a_X_8", "b_X_8", "c_X_9"]));
        assert_eq!(out[1], Tensor::vector(&[0i32, 2, 3]));
        assert_eq!(of("DR", false).run().unwrap()[0], strings([3], ["8_X_a", "8_X_b", "9_X_c"]));
        let hashed = of("RD", true).run().unwrap();
        assert!(hashed[0].as_slice::<i64>().unwrap().iter().all(|h| (0..10).contains(h)));
        of("R", false).fails(Code::InvalidArgument, "names fewer inputs than there are");
    }

    #[test]
    fn features_are_combined() {
        let out = columns("SparseCrossV2").input(Tensor::string("_")).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([3, 2], &[0i64, 0, 0, 1, 1, 0]).unwrap());
        assert_eq!(out[1], strings([3], ["a_x", "b_x", "c_y"]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 2]));
        let out = columns("SparseCrossHashed")
            .input(Tensor::scalar(100i64))
            .input(Tensor::scalar(false))
            .input(Tensor::vector(&[1i64, 1]))
            .run()
            .unwrap();
        assert!(out[1].as_slice::<i64>().unwrap().iter().all(|x| (0..100).contains(x)));
    }
}
