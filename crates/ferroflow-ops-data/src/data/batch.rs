//! Batches: BatchDataset, BatchDatasetV2, ParallelBatchDataset.

use super::dataset::*;
use super::parallel_map::calls_for;
use super::prefetch::Prefetching;
use super::scope::Scope;
use crate::prelude::*;
use ferroflow_op_kit::pack;

struct Batch {
    input: DatasetRef,
    size: usize,
    drop_remainder: bool,
    /// Batches made ahead, in the background.
    ahead: Option<usize>,
}

impl Dataset for Batch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let batches = Batching::new(self.input.iterate(scope)?, self.size, self.drop_remainder);
        let batches = Elements::new(batches);
        Ok(match self.ahead {
            Some(ahead) => Elements::new(Prefetching::new(batches, ahead, scope)),
            None => batches,
        })
    }

    fn cardinality(&self) -> i64 {
        batched_cardinality(self.input.cardinality(), self.size, self.drop_remainder)
    }

    /// If no batch can be short, the length of batches is known.
    fn refine(&self, types: &mut ElementTypes) {
        if !self.drop_remainder && self.input.cardinality() != INFINITE {
            return;
        }
        for shape in &mut types.shapes {
            if let Some(rank @ 1..) = shape.rank() {
                let rest = (1..rank).map(|i| shape.dim(i));
                *shape = PartialShape::new(std::iter::once(Some(self.size)).chain(rest));
            }
        }
    }
}

/// The number of batches that a number of elements fills.
pub(super) fn batched_cardinality(elements: i64, size: usize, drop_remainder: bool) -> i64 {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    match elements {
        n if n < 0 => n,
        n if drop_remainder => n / size,
        n => n / size + i64::from(n % size != 0),
    }
}

/// Stacks `size` elements at a time.
pub(super) struct Batching {
    input: Elements,
    size: usize,
    drop_remainder: bool,
}

impl Batching {
    pub fn new(input: Elements, size: usize, drop_remainder: bool) -> Batching {
        Batching { input, size, drop_remainder }
    }
}

impl Produce for Batching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let batch = gather(&mut self.input, self.size).await?;
            if batch.is_empty() || self.drop_remainder && batch.len() < self.size {
                return Ok(None);
            }
            stack(batch).map(Some)
        })
    }
}

/// The next `n` elements, fewer only at the end.
pub(super) async fn gather(input: &mut Elements, n: usize) -> Result<Vec<Tuple>> {
    let mut all = Vec::new();
    while all.len() < n {
        match input.next().await? {
            Some(element) => all.push(element),
            None => break,
        }
    }
    Ok(all)
}

/// Elements of equal shapes, stacked.
pub(super) fn stack(batch: Vec<Tuple>) -> Result<Tuple> {
    let Some(first) = batch.first() else { bail!(Internal, "a batch without elements") };
    let mut out = Vec::with_capacity(first.len());
    for (i, t) in first.iter().enumerate() {
        let mut parts = Vec::with_capacity(batch.len());
        for (at, element) in batch.iter().enumerate() {
            let Some(part) = element.get(i) else {
                bail!(InvalidArgument, "element {at} of a batch has {} components", element.len());
            };
            ensure!(
                part.shape() == t.shape(),
                InvalidArgument,
                "Cannot batch tensors with different shapes in component {i}. First element had \
                 shape {} and element {at} had shape {}.",
                t.shape(),
                part.shape()
            );
            parts.push(part);
        }
        out.push(pack::stack(t.dtype(), t.shape(), parts.into_iter())?);
    }
    Ok(out)
}

/// The batch size in input `i`.
pub(super) fn batch_size(ctx: &Ctx<'_>, i: usize) -> Result<usize> {
    let size: i64 = scalar(ctx, i, "batch_size")?;
    ensure!(size > 0, InvalidArgument, "Batch size must be greater than zero.");
    Ok(size as usize)
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, drop, parallel) in [
        ("BatchDataset", &[][..], &[][..]),
        ("BatchDatasetV2", &["drop_remainder: bool"][..], &["parallel_copy: bool = false"][..]),
    ] {
        c.op(name)
            .doc("A dataset of batches of elements, stacked along a new leading dimension.")
            .input("input_dataset: variant")
            .input("batch_size: int64")
            .inputs(drop)
            .makes_dataset()
            .attrs(parallel)
            .element_types()
            .metadata_attr()
            .cpu(|init| {
                makes(init, |ctx| {
                    let (input, size) = (input(ctx, 0)?, batch_size(ctx, 1)?);
                    let drop_remainder = ctx.num_inputs() > 2 && scalar(ctx, 2, "drop_remainder")?;
                    Ok(Batch { input, size, drop_remainder, ahead: None })
                })
            });
    }
    c.op("ParallelBatchDataset")
        .doc("A dataset of batches of elements, several of which are made at a time.")
        .input("input_dataset: variant")
        .input("batch_size: int64")
        .input("num_parallel_calls: int64")
        .input("drop_remainder: bool")
        .makes_dataset()
        .attr("parallel_copy: bool = false")
        .element_types()
        .attr("deterministic: string = 'default'")
        .metadata_attr()
        .cpu(|init| {
            makes(init, |ctx| {
                Ok(Batch {
                    input: input(ctx, 0)?,
                    size: batch_size(ctx, 1)?,
                    drop_remainder: scalar(ctx, 3, "drop_remainder")?,
                    ahead: Some(calls_for(scalar(ctx, 2, "num_parallel_calls")?)?),
                })
            })
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    fn batches(of: Tensor, size: i64, drop_remainder: bool) -> Tensor {
        let op = dataset("BatchDatasetV2", &[DType::Int64]).input(of);
        made(op.input(Tensor::scalar(size)).input(Tensor::scalar(drop_remainder)))
    }

    #[test]
    fn the_last_batch_may_be_smaller_or_dropped() {
        let got = longs(&batches(range(5), 2, false));
        assert_eq!(got, [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(longs(&batches(range(5), 2, true)), [[0, 1], [2, 3]]);
        assert_eq!(longs(&batches(range(5), i64::MAX, false)), [[0, 1, 2, 3, 4]]);
        assert_eq!(batched_cardinality(5, 2, true), 2);
        assert_eq!(batched_cardinality(INFINITE, 2, true), INFINITE);
    }

    #[test]
    fn elements_of_different_shapes_make_no_batch() {
        let e = elements(&batches(batches(range(5), 2, false), 3, false)).unwrap_err();
        let want = "in component 0. First element had shape [2] and element 2 had shape [1].";
        assert!(e.message().ends_with(want), "{e}");
    }
}
