//! Random datasets: RandomDataset, SamplingDataset.

use super::dataset::*;
use super::scope::Scope;
use super::seeds::{SeedGenerator, own, shared_or_new};
use crate::prelude::*;
use ferroflow_op_kit::philox::Singles;

/// An endless sequence of random numbers.
struct Random(Arc<SeedGenerator>);

impl Dataset for Random {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let mut words = scope.seeds(&self.0);
        Ok(Elements::from_fn(move || Ok(Some(vec![Tensor::scalar(i64::from(words.next_u32()))]))))
    }

    fn cardinality(&self) -> i64 {
        INFINITE
    }
}

/// Elements that are kept with some probability.
struct Sample {
    input: DatasetRef,
    rate: f32,
    seeds: Arc<SeedGenerator>,
}

impl Dataset for Sample {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(Sampling { input, rate: self.rate, random: scope.seeds(&self.seeds) }))
    }
}

struct Sampling {
    input: Elements,
    rate: f32,
    random: Singles,
}

impl Produce for Sampling {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                let next = self.input.next().await?;
                if next.is_none() || self.random.next_f32() < self.rate {
                    return Ok(next);
                }
            }
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["RandomDataset", "ExperimentalRandomDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of random numbers below 2^32, without an end.")
            .input("seed: int64")
            .input("seed2: int64")
            .makes_dataset()
            .element_types()
            .stateful()
            .cpu(|init| makes(init, |ctx| Ok(Random(own(ctx, 0, false)?))));
        if op == "RandomDataset" {
            drop(b.metadata_attr());
        }
    }
    c.op("RandomDatasetV2")
        .doc("A dataset of random numbers below 2^32, without an end.")
        .input("seed: int64")
        .input("seed2: int64")
        .input("seed_generator: resource")
        .makes_dataset()
        .attr("rerandomize_each_iteration: bool = false")
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            let fresh = init.bool("rerandomize_each_iteration")?;
            makes(init, move |ctx| Ok(Random(shared_or_new(ctx, 2, Some(0), fresh)?)))
        });
    c.op("SamplingDataset")
        .doc("A dataset of elements that are kept with probability `rate`.")
        .input("input_dataset: variant")
        .input("rate: float")
        .input("seed: int64")
        .input("seed2: int64")
        .makes_dataset()
        .element_types()
        .cpu(|init| {
            makes(init, |ctx| {
                let (rate, seeds) = (scalar(ctx, 1, "rate")?, own(ctx, 2, false)?);
                Ok(Sample { input: input(ctx, 0)?, rate, seeds })
            })
        });
}
