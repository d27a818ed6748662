//! XlaVariadicSort: tensors sorted together by a function that compares.

use super::calls::{Calling, Next, Program};
use super::elements::{for_each_index, joined, picked, put};
use crate::prelude::*;

/// A sorting network: every round compares pairs of places that are independent of each other.
/// This is Batcher's merge exchange.
struct Network {
    len: usize,
    largest: usize,
    p: usize,
    q: usize,
    r: usize,
    d: usize,
}

impl Network {
    fn new(len: usize) -> Network {
        let largest = len.next_power_of_two() / 2;
        Network { len, largest, p: largest, q: largest, r: 0, d: largest }
    }
}

impl Iterator for Network {
    /// Pairs of places, the lower one first.
    type Item = Vec<(usize, usize)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.p == 0 {
            return None;
        }
        let (r, p, d) = (self.r, self.p, self.d);
        let lower = (0..self.len.saturating_sub(d)).filter(|i| i & p == r);
        let pairs = lower.map(|i| (i, i + d)).collect();
        if self.q == self.p {
            self.p /= 2;
            (self.q, self.r, self.d) = (self.largest, 0, self.p);
        } else {
            (self.d, self.r) = (self.q - self.p, self.p);
            self.q /= 2;
        }
        Some(pairs)
    }
}

/// Sorts rows; elements that compare equal keep their order.
struct Sort {
    inputs: Vec<Tensor>,
    /// The places of the elements in their current order, row by row.
    order: Vec<usize>,
    /// The place where each element of a row is written, row by row.
    targets: Vec<usize>,
    len: usize,
    network: Network,
    pairs: Vec<(usize, usize)>,
}

impl Sort {
    fn new(ctx: &mut AsyncCtx) -> Result<Sort> {
        let count = ctx.inputs.len() - 1;
        let axis = ctx.input(count)?.scalar_index()?;
        let inputs = ctx.take_inputs(0..count)?;
        let shape = inputs[0].shape().clone();
        for t in &inputs {
            ensure!(
                *t.shape() == shape,
                InvalidArgument,
                "all inputs must have the same shape, got {shape} and {}",
                t.shape()
            );
        }
        let Some(axis) = usize::try_from(axis).ok().filter(|&axis| axis < shape.rank()) else {
            bail!(InvalidArgument, "there is no dimension {axis} of {} to sort", shape.rank());
        };
        let (len, stride) = (shape[axis], shape.strides()[axis]);
        let mut targets = Vec::with_capacity(shape.elements());
        let mut at = 0;
        for_each_index(&shape, |index| {
            if index[axis] == 0 {
                targets.extend((0..len).map(|i| at + i * stride));
            }
            at += 1;
        });
        let network = Network::new(len);
        Ok(Sort { inputs, order: targets.clone(), targets, len, network, pairs: Vec::new() })
    }

    /// Exchanges the elements of pairs that are not in order. `results` has the answers of the
    /// comparator for all pairs (a, b), and then for all pairs (b, a).
    fn exchange(&mut self, results: &[Tensor]) -> Result<()> {
        let [result] = results else {
            bail!(InvalidArgument, "the comparator gave {} results, expected one", results.len());
        };
        let before = result.as_slice::<bool>()?;
        let (forward, backward) = before.split_at(before.len() / 2);
        let places = self.places();
        for ((a, b), (&forward, &backward)) in places.into_iter().zip(forward.iter().zip(backward))
        {
            let is_later = forward == backward && self.order[a] > self.order[b];
            if backward && !forward || is_later {
                self.order.swap(a, b);
            }
        }
        Ok(())
    }

    /// The pairs of this round in all rows.
    fn places(&self) -> Vec<(usize, usize)> {
        let rows = (0..self.order.len()).step_by(self.len.max(1));
        rows.flat_map(|row| self.pairs.iter().map(move |(a, b)| (row + a, row + b))).collect()
    }
}

impl Program for Sort {
    fn next(&mut self, results: Vec<Tensor>) -> Result<Next> {
        if !results.is_empty() {
            self.exchange(&results)?;
        }
        let is_empty = self.order.is_empty();
        let next = self.network.by_ref().find(|pairs| !pairs.is_empty() && !is_empty);
        let Some(pairs) = next else {
            let sorted = self.inputs.iter().map(|t| {
                let mut out = t.clone();
                put(&mut out, &self.targets, &picked(t, &self.order)?)?;
                Ok(out)
            });
            return Ok(Next::Done(sorted.collect::<Result<Vec<_>>>()?));
        };
        self.pairs = pairs;
        let (lower, upper): (Vec<usize>, Vec<usize>) =
            self.places().into_iter().map(|(a, b)| (self.order[a], self.order[b])).unzip();
        let mut args = Vec::with_capacity(2 * self.inputs.len());
        for t in &self.inputs {
            let (lower, upper) = (picked(t, &lower)?, picked(t, &upper)?);
            args.push(joined(&[&lower, &upper])?);
            args.push(joined(&[&upper, &lower])?);
        }
        Ok(Next::Call { function: 0, args })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaVariadicSort")
        .doc("Sorts several tensors together along a dimension, by a function that compares.")
        .input("inputs: T")
        .input("dimension: int32")
        .output("outputs: T")
        .attr("T: list(type) >= 1")
        .attr("comparator: func")
        .attr("is_stable: bool")
        .expensive()
        .waits()
        .shape(|c| Ok((0..c.outputs).map(|i| c.input(i)).collect()))
        .cpu(|init| Calling::kernel(init, &["comparator"], |ctx| Ok(Box::new(Sort::new(ctx)?))));
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn networks_sort_rows_of_every_length() {
        for len in 0..40usize {
            for seed in 0..20u64 {
                let mut row: Vec<u64> =
                    (0..len as u64).map(|i| (i * 7919 + seed * 104_729) % 31).collect();
                for (a, b) in Network::new(len).flatten() {
                    if row[b] < row[a] {
                        row.swap(a, b);
                    }
                }
                assert!(row.is_sorted(), "{len} {row:?}");
            }
        }
    }
}
