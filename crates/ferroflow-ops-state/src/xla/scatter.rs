//! XlaScatter: blocks of a tensor combined with updates, where indices say.

use super::calls::{Calling, Next, Program};
use super::elements::{for_each_index, picked, put};
use crate::prelude::*;
use ferroflow_op_kit::dispatch::NUMBERS_AND_BOOL;
use ferroflow_op_kit::protobuf::fields;

/// Updates of single elements. Updates of one element happen in order: round `n` has the `n`th
/// update of each element.
pub(super) struct Updates {
    pub target: Tensor,
    pub values: Tensor,
    /// The places of elements and of their new values, for each round; the last round first.
    rounds: Vec<(Vec<usize>, Vec<usize>)>,
    /// The function that combines an element with its update.
    function: usize,
}

impl Updates {
    /// `pairs` are the places of elements in `target` and of their updates in `values`.
    pub fn new(
        target: Tensor,
        values: Tensor,
        pairs: impl IntoIterator<Item = (usize, usize)>,
        function: usize,
    ) -> Updates {
        let mut counts = vec![0usize; target.elements()];
        let mut rounds: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        for (element, update) in pairs {
            let round = counts[element];
            counts[element] += 1;
            if rounds.len() <= round {
                rounds.push(Default::default());
            }
            rounds[round].0.push(element);
            rounds[round].1.push(update);
        }
        rounds.reverse();
        Updates { target, values, rounds, function }
    }

    /// The next call, or the updated tensor.
    pub fn next_round(&mut self) -> Result<Next> {
        let Some((elements, updates)) = self.rounds.last() else {
            return Ok(Next::Done(vec![self.target.clone()]));
        };
        let args = vec![picked(&self.target, elements)?, picked(&self.values, updates)?];
        Ok(Next::Call { function: self.function, args })
    }

    /// Ends the round with its results.
    pub fn finish_round(&mut self, results: &[Tensor]) -> Result<()> {
        let ([result], Some((elements, _))) = (results, self.rounds.pop()) else {
            bail!(InvalidArgument, "the update gave {} results, expected one", results.len());
        };
        ensure!(
            result.dtype() == self.target.dtype(),
            InvalidArgument,
            "the update gave a {}, expected a {}",
            result.dtype(),
            self.target.dtype()
        );
        put(&mut self.target, &elements, result)
    }
}

impl Program for Updates {
    fn next(&mut self, results: Vec<Tensor>) -> Result<Next> {
        if !results.is_empty() {
            self.finish_round(&results)?;
        }
        self.next_round()
    }
}

/// How indices, updates and the tensor fit together.
struct Dimensions {
    /// The dimensions of the updates that run over a block.
    window: Vec<usize>,
    /// The dimensions of the tensor in which a block has size 1, and which updates do not have.
    inserted: Vec<usize>,
    /// The dimension of the tensor that each component of an index starts.
    start_map: Vec<usize>,
    /// The dimension of the indices whose elements make one index.
    index_vector: usize,
}

impl Dimensions {
    fn new(attrs: &Attrs) -> Result<Dimensions> {
        let message = attrs.bytes("dimension_numbers")?;
        let malformed = || err!(InvalidArgument, "dimension_numbers is not a valid message");
        let mut lists = [const { Vec::new() }; 5];
        for (field, value) in fields(&message).ok_or_else(malformed)? {
            if let Some(list) = lists.get_mut(field as usize) {
                value.varints(|x| list.push(Ord::min(x, 255) as usize)).ok_or_else(malformed)?;
            }
        }
        let [_, window, inserted, start_map, index_vector] = lists;
        let index_vector = index_vector.last().copied().unwrap_or(0);
        Ok(Dimensions { window, inserted, start_map, index_vector })
    }

    /// The places of elements and of their updates. Blocks that do not lie within the tensor are
    /// left out.
    fn places(
        &self,
        tensor: &Shape,
        indices: &Tensor,
        updates: &Shape,
    ) -> Result<Vec<(usize, usize)>> {
        let rank = tensor.rank();
        let unique = |name: &str, dims: &[usize], rank: usize| {
            let is_unique = dims.iter().enumerate().all(|(i, d)| !dims[..i].contains(d));
            ensure!(
                is_unique && dims.iter().all(|&d| d < rank),
                InvalidArgument,
                "{name} {dims:?} must be different dimensions of {rank}"
            );
            Ok(())
        };
        unique("update_window_dims", &self.window, updates.rank())?;
        unique("inserted_window_dims", &self.inserted, rank)?;
        unique("scatter_dims_to_operand_dims", &self.start_map, rank)?;
        let block: Vec<usize> = (0..rank).filter(|d| !self.inserted.contains(d)).collect();
        let batch: Vec<usize> = (0..updates.rank()).filter(|d| !self.window.contains(d)).collect();
        let index_dims: Vec<usize> =
            (0..indices.rank()).filter(|&d| d != self.index_vector).collect();
        ensure!(
            self.index_vector <= indices.rank()
                && block.len() == self.window.len()
                && batch.len() == index_dims.len()
                && batch.iter().zip(&index_dims).all(|(&u, &i)| updates[u] == indices.shape()[i])
                && block.iter().zip(&self.window).all(|(&d, &u)| updates[u] <= tensor[d]),
            InvalidArgument,
            "updates of shape {updates} do not fit a tensor of shape {tensor} and indices of \
             shape {}",
            indices.shape()
        );
        let components = indices.shape().get(self.index_vector).copied().unwrap_or(1);
        ensure!(
            components == self.start_map.len(),
            InvalidArgument,
            "an index has {components} components, scatter_dims_to_operand_dims names {}",
            self.start_map.len()
        );
        // The size of a block in each dimension of the tensor.
        let mut sizes = vec![1; rank];
        block.iter().zip(&self.window).for_each(|(&d, &u)| sizes[d] = updates[u]);
        let (strides, index_strides) = (tensor.strides(), indices.shape().strides());
        let component_stride = index_strides.get(self.index_vector).copied().unwrap_or(1);
        let starts = indices.to_indices()?;
        let mut places = Vec::with_capacity(updates.elements());
        let mut update = 0;
        for_each_index(updates, |index| {
            let at = batch.iter().zip(&index_dims).map(|(&u, &d)| index[u] * index_strides[d]);
            let at: usize = at.sum();
            let mut element = Some(0);
            for (c, &d) in self.start_map.iter().enumerate() {
                let start = usize::try_from(starts[at + c * component_stride]).ok();
                let start =
                    start.filter(|s| s.checked_add(sizes[d]).is_some_and(|e| e <= tensor[d]));
                element = element.zip(start).map(|(e, s)| e + s * strides[d]);
            }
            let offset = self.window.iter().zip(&block).map(|(&u, &d)| index[u] * strides[d]);
            if let Some(element) = element {
                places.push((element + offset.sum::<usize>(), update));
            }
            update += 1;
        });
        Ok(places)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaScatter")
        .work(work::any)
        .doc("A tensor whose elements are combined with updates, where indices say.")
        .input("operand: T")
        .input("scatter_indices: Tindices")
        .input("updates: T")
        .output("output: T")
        .attr("update_computation: func")
        .attr("dimension_numbers: string")
        .attr("indices_are_sorted: bool")
        .attr(NUMBERS_AND_BOOL)
        .attr("Tindices: {int32, int64}")
        .expensive()
        .waits()
        .shape(shape::same_as_input)
        .cpu(|init| {
            let dims = Dimensions::new(init)?;
            Calling::kernel(init, &["update_computation"], move |ctx| {
                let (operand, updates) = (ctx.input(0)?.clone(), ctx.input(2)?.clone());
                let places = dims.places(operand.shape(), ctx.input(1)?, updates.shape())?;
                Ok(Box::new(Updates::new(operand, updates, places, 0)))
            })
        });
}
