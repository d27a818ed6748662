//! XlaReduce, XlaVariadicReduce, XlaVariadicReduceV2.

use super::calls::{Calling, Next, Program};
use super::elements::{for_each_index, picked, put, repeated};
use crate::prelude::*;
use ferroflow_op_kit::dispatch::NUMBERS_AND_BOOL;

/// Combines the halves of rows until one element is left of each, then with the initial values.
struct Reduction {
    /// Rows of `len` elements, one after the other, of each input.
    values: Vec<Tensor>,
    inits: Vec<Tensor>,
    len: usize,
    rows: usize,
    shape: Shape,
    is_combined: bool,
}

impl Reduction {
    fn new(ctx: &mut AsyncCtx, reduced: &[i64]) -> Result<Reduction> {
        let count = ctx.inputs.len() / 2;
        let mut inits = ctx.take_inputs(0..2 * count)?;
        let inputs: Vec<Tensor> = inits.drain(..count).collect();
        for t in &inputs {
            ensure!(
                t.shape() == inputs[0].shape(),
                InvalidArgument,
                "all inputs must have the same shape, got {} and {}",
                inputs[0].shape(),
                t.shape()
            );
        }
        for t in &inits {
            ensure!(
                t.rank() == 0,
                InvalidArgument,
                "initial values must be scalars, got shape {}",
                t.shape()
            );
        }
        let shape = inputs[0].shape();
        let is_reduced = reduced_dimensions(reduced, shape.rank())?;
        let (gone, kept): (Vec<usize>, Vec<usize>) =
            (0..shape.rank()).partition(|&d| is_reduced[d]);
        let dims = |which: &[usize]| which.iter().map(|&d| shape[d]).collect::<Shape>();
        let (kept_dims, gone_dims) = (dims(&kept), dims(&gone));
        let strides = shape.strides();
        let mut places = Vec::with_capacity(shape.elements());
        let place = |index: &[usize], which: &[usize]| -> usize {
            index.iter().zip(which).map(|(i, &d)| i * strides[d]).sum()
        };
        for_each_index(&kept_dims, |row| {
            let start = place(row, &kept);
            for_each_index(&gone_dims, |index| places.push(start + place(index, &gone)));
        });
        let values = inputs.iter().map(|t| picked(t, &places)).collect::<Result<Vec<_>>>()?;
        let (len, rows) = (gone_dims.elements(), kept_dims.elements());
        Ok(Reduction { values, inits, len, rows, shape: kept_dims, is_combined: false })
    }

    /// Elements `from..from + len` of each row.
    fn part(&self, from: usize, len: usize) -> Result<Vec<Tensor>> {
        let starts = (0..self.rows).map(|r| r * self.len + from);
        let places: Vec<usize> = starts.flat_map(|s| s..s + len).collect();
        self.values.iter().map(|t| picked(t, &places)).collect()
    }

    fn shaped(&self, values: Vec<Tensor>) -> Result<Next> {
        let shaped = values.into_iter().map(|t| t.into_shape(self.shape.clone()));
        Ok(Next::Done(shaped.collect::<Result<Vec<_>>>()?))
    }
}

impl Program for Reduction {
    fn next(&mut self, results: Vec<Tensor>) -> Result<Next> {
        if self.is_combined {
            return self.shaped(results);
        }
        if self.rows == 0 || self.len == 0 {
            let inits = self.inits.iter().map(|t| repeated(t, self.rows));
            return self.shaped(inits.collect::<Result<Vec<_>>>()?);
        }
        if !results.is_empty() {
            let half = self.len / 2;
            ensure!(
                results.len() == self.values.len(),
                InvalidArgument,
                "the reducer gave {} results, expected {}",
                results.len(),
                self.values.len()
            );
            // The results replace the first half. An odd last element follows them.
            let odd = (self.len % 2 == 1).then(|| self.part(self.len - 1, 1)).transpose()?;
            let starts = (0..self.rows).map(|r| r * self.len);
            let firsts: Vec<usize> = starts.clone().flat_map(|s| s..s + half).collect();
            let middles: Vec<usize> = starts.map(|s| s + half).collect();
            for (i, result) in results.iter().enumerate() {
                put(&mut self.values[i], &firsts, result)?;
                if let Some(odd) = &odd {
                    put(&mut self.values[i], &middles, &odd[i])?;
                }
            }
            let len = half + self.len % 2;
            self.values = self.part(0, len)?;
            self.len = len;
        }
        let (left, right) = if self.len > 1 {
            let half = self.len / 2;
            (self.part(0, half)?, self.part(half, half)?)
        } else {
            self.is_combined = true;
            let inits = self.inits.iter().map(|t| repeated(t, self.rows));
            (inits.collect::<Result<Vec<_>>>()?, std::mem::take(&mut self.values))
        };
        Ok(Next::Call { function: 0, args: left.into_iter().chain(right).collect() })
    }
}

/// Which dimensions are reduced.
fn reduced_dimensions(reduced: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut is_reduced = vec![false; rank];
    for &d in reduced {
        let Some(known) = usize::try_from(d).ok().and_then(|d| is_reduced.get_mut(d)) else {
            bail!(InvalidArgument, "dimensions_to_reduce: there is no dimension {d} of {rank}");
        };
        ensure!(!*known, InvalidArgument, "dimensions_to_reduce: dimension {d} occurs twice");
        *known = true;
    }
    Ok(is_reduced)
}

fn reduced_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(dims) = input.dims() else {
        return Ok(vec![PartialShape::unknown(); c.outputs]);
    };
    let is_reduced = reduced_dimensions(&c.attrs.ints("dimensions_to_reduce")?, dims.len())?;
    let kept = dims.iter().zip(is_reduced).filter(|(_, gone)| !gone).map(|(d, _)| *d);
    Ok(vec![PartialShape::new(kept); c.outputs])
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let reduced = init.ints("dimensions_to_reduce")?;
    Calling::kernel(init, &["reducer"], move |ctx| Ok(Box::new(Reduction::new(ctx, &reduced)?)))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaReduce")
        .work(work::any)
        .doc("Combines the elements of some dimensions by a function of two scalars.")
        .input("input: T")
        .input("init_value: T")
        .output("output: T")
        .attr(NUMBERS_AND_BOOL)
        .attr("dimensions_to_reduce: list(int)")
        .attr("reducer: func")
        .expensive()
        .waits()
        .shape(reduced_shape)
        .cpu(make);
    c.op("XlaVariadicReduce")
        .doc("Combines the elements of several tensors of one type by one function.")
        .input("input: N * T")
        .input("init_value: N * T")
        .output("output: N * T")
        .attr("N: int >= 1")
        .attr(NUMBERS_AND_BOOL)
        .attr("dimensions_to_reduce: list(int)")
        .attr("reducer: func")
        .expensive()
        .waits()
        .shape(reduced_shape)
        .cpu(make);
    c.no_gradient(&["XlaVariadicReduce"]);
    c.op("XlaVariadicReduceV2")
        .doc("Combines the elements of several tensors by one function.")
        .input("inputs: T")
        .input("init_values: T")
        .output("outputs: T")
        .attr("T: list(type) >= 1")
        .attr("dimensions_to_reduce: list(int)")
        .attr("reducer: func")
        .expensive()
        .waits()
        .shape(reduced_shape)
        .cpu(make);
}
