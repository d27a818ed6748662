//! DenseCountSparseOutput, SparseCountSparseOutput, RaggedCountSparseOutput: how often each number
//! occurs in a row, as a sparse tensor.

use super::coo::{Coo, index_matrix};
use crate::prelude::*;
use ferroflow_core::Reservation;
use std::collections::BTreeMap;

/// What the tree of counts takes for an entry besides the entry.
const AROUND_ENTRY: usize = 16;

#[derive(Clone, Copy)]
struct Limits {
    /// The least number of columns; negative for none.
    least: i64,
    /// The number of columns; values beyond are ignored. Negative means no limit.
    most: i64,
    is_binary: bool,
}

impl Limits {
    fn new(init: &KernelInit<'_>) -> Result<Limits> {
        Ok(Limits {
            least: init.int("minlength")?,
            most: init.int("maxlength")?,
            is_binary: init.bool("binary_output")?,
        })
    }
}

/// Sets the outputs from (row, number, weight) of every element; without rows, `rows` is `None`.
fn count<T: Num>(
    ctx: &mut Ctx<'_>,
    limits: Limits,
    rows: Option<usize>,
    elements: Vec<(usize, i64)>,
    weights: Option<Vec<T>>,
) -> Result<()> {
    // Each may be another entry of the tree, and of the result.
    let entry = 2 * (size_of::<(usize, i64)>() + size_of::<T>()) + AROUND_ENTRY;
    let _counted = Reservation::new(elements.len().saturating_mul(entry))?;
    let mut counts: BTreeMap<(usize, i64), T> = BTreeMap::new();
    // Without elements there is one column.
    let mut largest = 0;
    for (i, (row, x)) in elements.into_iter().enumerate() {
        ensure!(x >= 0, InvalidArgument, "Input values must all be non-negative");
        if limits.most >= 0 && x >= limits.most {
            continue;
        }
        largest = std::cmp::max(largest, x);
        let sum = counts.entry((row, x)).or_insert(<T as Num>::ZERO);
        *sum = match &weights {
            _ if limits.is_binary => <T as Num>::ONE,
            Some(weights) => Num::add(*sum, weights[i]),
            None => Num::add(*sum, <T as Num>::ONE),
        };
    }
    let width = match limits.most > 0 {
        true => limits.most,
        false => std::cmp::max(largest.saturating_add(1), limits.least),
    };
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for ((row, x), sum) in counts {
        if rows.is_some() {
            indices.push(row as i64);
        }
        indices.push(x);
        values.push(sum);
    }
    let shape: Vec<i64> = rows.map(|r| r as i64).into_iter().chain([width]).collect();
    ctx.set(0, index_matrix(&indices, shape.len(), values.len())?)?;
    ctx.set(1, Tensor::vector(&values))?;
    ctx.set(2, Tensor::vector(&shape))
}

/// The weights in input `i`: none, or as many as elements.
fn weights_of<T: Num>(ctx: &Ctx<'_>, i: usize, elements: &Shape) -> Result<Option<Vec<T>>> {
    let weights = ctx.input(i)?;
    if weights.elements() == 0 {
        return Ok(None);
    }
    ensure!(
        weights.shape() == elements,
        InvalidArgument,
        "Weights and values must have the same shape. Weight shape: {}; values shape: {elements}",
        weights.shape()
    );
    Ok(Some(weights.as_slice::<T>()?.to_vec()))
}

fn dense<T: Num>(ctx: &mut Ctx<'_>, limits: Limits) -> Result<()> {
    let values = ctx.input(0)?;
    ensure!(
        (1..=2).contains(&values.rank()),
        InvalidArgument,
        "Input must be a 1 or 2-dimensional tensor. Got: {}",
        values.shape()
    );
    let weights = weights_of::<T>(ctx, 1, values.shape())?;
    let (rows, width) = match *values.shape().dims() {
        [rows, width] => (Some(rows), width),
        _ => (None, values.elements()),
    };
    let numbers = values.to_indices()?;
    let row = |i: usize| if rows.is_some() { i / std::cmp::max(width, 1) } else { 0 };
    let elements = numbers.iter().enumerate().map(|(i, &x)| (row(i), x)).collect();
    count(ctx, limits, rows, elements, weights)
}

fn sparse<T: Num>(ctx: &mut Ctx<'_>, limits: Limits) -> Result<()> {
    let sparse = Coo::input(ctx, 0)?;
    ensure!(
        (1..=2).contains(&sparse.rank()),
        InvalidArgument,
        "Input indices must be a 1 or 2-dimensional tensor. Got rank: {}",
        sparse.rank()
    );
    sparse.ensure_in_bounds()?;
    let weights = weights_of::<T>(ctx, 3, sparse.values.shape())?;
    let is_matrix = sparse.rank() == 2;
    let rows = is_matrix.then(|| sparse.shape[0] as usize);
    let row = |place: &[i64]| if is_matrix { place[0] as usize } else { 0 };
    let numbers = sparse.values.to_indices()?;
    let elements = sparse.places().zip(numbers).map(|(place, x)| (row(place), x)).collect();
    count(ctx, limits, rows, elements, weights)
}

fn ragged<T: Num>(ctx: &mut Ctx<'_>, limits: Limits) -> Result<()> {
    let (splits, values) = (ctx.input(0)?.as_slice::<i64>()?, ctx.input(1)?);
    let weights = weights_of::<T>(ctx, 2, values.shape())?;
    ensure!(
        splits.len() >= 2,
        InvalidArgument,
        "Must provide at least 2 elements for the splits argument"
    );
    ensure!(splits[0] == 0, InvalidArgument, "Splits must start with 0, not with {}", splits[0]);
    ensure!(
        splits.last() == Some(&(values.elements() as i64)),
        InvalidArgument,
        "Splits must end with the number of values, got {} instead of {}",
        splits[splits.len() - 1],
        values.elements()
    );
    ensure!(
        splits.windows(2).all(|w| w[0] <= w[1]),
        InvalidArgument,
        "Splits must be in ascending order"
    );
    let numbers = values.to_indices()?;
    let mut elements = Vec::with_capacity(numbers.len());
    for (row, pair) in splits.windows(2).enumerate() {
        let part = &numbers[pair[0] as usize..pair[1] as usize];
        elements.extend(part.iter().map(|&x| (row, x)));
    }
    let rows = splits.len() - 1;
    count(ctx, limits, Some(rows), elements, weights)
}

macro_rules! counters {
    ($run:ident) => {
        per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], "output_type", init, T => {
            let limits = Limits::new(init)?;
            move |ctx: &mut Ctx<'_>| $run::<T>(ctx, limits)
        })
    };
}

fn shapes(rank: Option<usize>) -> Result<Vec<PartialShape>> {
    let indices = PartialShape::new([None, rank]);
    Ok(vec![indices, PartialShape::of_rank(1), PartialShape::new([rank])])
}

/// What is counted, and how.
const COUNT_ATTRS: [&str; 5] = [
    "T: {int32, int64}",
    "minlength: int >= -1 = -1",
    "maxlength: int >= -1 = -1",
    "binary_output: bool",
    "output_type: {int32, int64, float, double}",
];

/// The counts, as a sparse tensor.
const COUNTS: [&str; 3] =
    ["output_indices: int64", "output_values: output_type", "output_dense_shape: int64"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("DenseCountSparseOutput")
        .doc("How often each number occurs in a row.")
        .input("values: T")
        .input("weights: output_type")
        .outputs(&COUNTS)
        .attrs(&COUNT_ATTRS)
        .shape(|c| shapes(c.input(0).rank()))
        .cpu(counters!(dense));
    c.op("SparseCountSparseOutput")
        .doc("How often each number occurs in a row of a sparse tensor.")
        .input("indices: int64")
        .input("values: T")
        .input("dense_shape: int64")
        .input("weights: output_type")
        .outputs(&COUNTS)
        .attrs(&COUNT_ATTRS)
        .shape(|c| shapes(c.input(0).dim(1)))
        .cpu(counters!(sparse));
    c.op("RaggedCountSparseOutput")
        .doc("How often each number occurs in a row of a ragged tensor.")
        .input("splits: int64")
        .input("values: T")
        .input("weights: output_type")
        .outputs(&COUNTS)
        .attrs(&COUNT_ATTRS)
        .shape(|_| shapes(Some(2)))
        .cpu(counters!(ragged));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn counted(op: &str) -> Check<'static> {
        check(op).attr("binary_output", false).attr("output_type", DType::Int64)
    }

    fn none() -> Tensor {
        Tensor::vector::<i64>(&[])
    }

    #[test]
    fn numbers_are_counted_by_row() {
        let matrix = Tensor::from_slice([2, 3], &[1i32, 1, 3, 0, 5, 0]).unwrap();
        let out = counted("DenseCountSparseOutput").input(matrix).input(none()).run().unwrap();
        let want = [0i64, 1, 0, 3, 1, 0, 1, 5];
        assert_eq!(out[0], Tensor::from_slice([4, 2], &want).unwrap());
        assert_eq!(out[1], Tensor::vector(&[2i64, 1, 2, 1]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 6]));
    }

    #[test]
    fn limits_and_weights() {
        let out = counted("RaggedCountSparseOutput")
            .attr("maxlength", 4i64)
            .input(Tensor::vector(&[0i64, 2, 3]))
            .input(Tensor::vector(&[1i32, 1, 9]))
            .input(Tensor::vector(&[5i64, 6, 7]))
            .run()
            .unwrap();
        assert_eq!(out[1], Tensor::vector(&[11i64]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 4]));
        counted("DenseCountSparseOutput")
            .input(Tensor::vector(&[-1i32]))
            .input(none())
            .fails(Code::InvalidArgument, "Input values must all be non-negative");
    }
}
