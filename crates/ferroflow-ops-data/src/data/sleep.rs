//! SleepDataset: elements that come late, for tests of pipelines.

use super::dataset::*;
use super::scope::Scope;
use super::task::before_io;
use crate::prelude::*;
use std::time::{Duration, Instant};

/// An iterator that is cancelled ends its sleep after at most this time.
const NAP: Duration = Duration::from_millis(10);

struct Late {
    input: DatasetRef,
    by: Duration,
}

impl Dataset for Late {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let (input, scope) = (self.input.iterate(scope)?, scope.clone());
        Ok(Elements::new(Sleeping { input, scope, by: self.by }))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

struct Sleeping {
    input: Elements,
    scope: Scope,
    by: Duration,
}

impl Produce for Sleeping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let start = Instant::now();
            loop {
                let left = self.by.saturating_sub(start.elapsed());
                if left.is_zero() {
                    return self.input.next().await;
                }
                before_io().await;
                std::thread::sleep(left.min(NAP));
                self.scope.cancel().check()?;
            }
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["SleepDataset", "ExperimentalSleepDataset"] {
        c.op(op)
            .doc("The same dataset, whose elements come late.")
            .input("input_dataset: variant")
            .input("sleep_microseconds: int64")
            .makes_dataset()
            .element_types()
            .cpu(|init| {
                makes(init, |ctx| {
                    let micros: i64 = scalar(ctx, 1, "sleep_microseconds")?;
                    let by = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
                    Ok(Late { input: input(ctx, 0)?, by })
                })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    #[test]
    fn elements_come_after_the_time() {
        let op = dataset("SleepDataset", &[DType::Int64]).input(range(3));
        let late = made(op.input(Tensor::scalar(2000i64)));
        let start = Instant::now();
        assert_eq!(longs(&late), [[0], [1], [2]]);
        assert!(start.elapsed() >= Duration::from_micros(3 * 2000));
    }
}
