//! Datasets that only count: TakeDataset, SkipDataset, RepeatDataset, ShardDataset, and
//! AutoShardDataset, which here distributes elements, not files.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;

/// The first `count` elements; all if it is negative.
struct Take {
    input: DatasetRef,
    count: i64,
}

impl Dataset for Take {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        if self.count == 0 {
            return Ok(Elements::none());
        }
        let left = u64::try_from(self.count).unwrap_or(u64::MAX);
        Ok(Elements::new(Taking { input: self.input.iterate(scope)?, left }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input.cardinality(), self.count) {
            (n, count) if count < 0 => n,
            (INFINITE, count) => count,
            (UNKNOWN, 0) => 0,
            (UNKNOWN, _) => UNKNOWN,
            (n, count) => Ord::min(n, count),
        }
    }
}

struct Taking {
    input: Elements,
    left: u64,
}

impl Produce for Taking {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.left == 0 {
                return Ok(None);
            }
            let next = self.input.next().await?;
            self.left -= 1;
            Ok(next)
        })
    }
}

/// The elements after the first `count`; none if it is negative.
struct Skip {
    input: DatasetRef,
    count: i64,
}

impl Dataset for Skip {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        if self.count < 0 {
            return Ok(Elements::none());
        }
        Ok(Elements::new(Skipping { input: self.input.iterate(scope)?, left: self.count }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input.cardinality(), self.count) {
            (_, count) if count < 0 => 0,
            (n, _) if n < 0 => n,
            (n, count) => Ord::max(n - count, 0),
        }
    }
}

struct Skipping {
    input: Elements,
    left: i64,
}

impl Produce for Skipping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while self.left > 0 {
                if self.input.next().await?.is_none() {
                    return Ok(None);
                }
                self.left -= 1;
            }
            self.input.next().await
        })
    }
}

/// All elements `count` times; endless if it is negative.
struct Repeat {
    input: DatasetRef,
    count: i64,
}

impl Dataset for Repeat {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        if self.count == 0 {
            return Ok(Elements::none());
        }
        Ok(Elements::new(Repeating {
            input: self.input.clone(),
            scope: scope.clone(),
            left: u64::try_from(self.count).ok(),
            current: None,
            gave_some: false,
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input.cardinality(), self.count) {
            (0, _) | (_, 0) => 0,
            (_, count) if count < 0 => INFINITE,
            (n, _) if n < 0 => n,
            (n, count) => n.saturating_mul(count),
        }
    }
}

struct Repeating {
    input: DatasetRef,
    scope: Scope,
    /// The number of iterations that remain; `None` if there is no end.
    left: Option<u64>,
    current: Option<Elements>,
    /// Whether this iteration gave an element.
    gave_some: bool,
}

impl Produce for Repeating {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                let Some(current) = &mut self.current else {
                    if self.left == Some(0) {
                        return Ok(None);
                    }
                    self.current = Some(self.input.iterate(&self.scope)?);
                    self.left = self.left.map(|n| n - 1);
                    self.gave_some = false;
                    continue;
                };
                if let Some(element) = current.next().await? {
                    self.gave_some = true;
                    return Ok(Some(element));
                }
                self.current = None;
                // Repeating an empty dataset forever would block forever.
                if self.left.is_none() && !self.gave_some {
                    return Ok(None);
                }
            }
        })
    }
}

/// Every `shards`-th element, beginning with number `index`.
struct Shard {
    input: DatasetRef,
    shards: i64,
    index: i64,
    require_non_empty: bool,
}

impl Dataset for Shard {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Sharding {
            input: self.input.iterate(scope)?,
            shards: self.shards,
            index: self.index,
            at: 0,
            require_non_empty: self.require_non_empty,
        }))
    }

    fn cardinality(&self) -> i64 {
        match self.input.cardinality() {
            n if n < 0 => n,
            n => n / self.shards + i64::from(self.index < n % self.shards),
        }
    }
}

struct Sharding {
    input: Elements,
    shards: i64,
    index: i64,
    at: i64,
    require_non_empty: bool,
}

impl Produce for Sharding {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                let Some(element) = self.input.next().await? else {
                    ensure!(
                        !self.require_non_empty || self.at == 0 || self.at > self.index,
                        InvalidArgument,
                        "Could not apply FILE based sharding: the dataset only has {} file(s), which \
                         is not enough for the required {} shards/workers. If you are using datasets \
                         with distribution strategy, consider setting the auto sharding policy to \
                         either DATA or OFF using the \
                         `experimental_distribute.auto_shard_policy` option of \
                         `tf.data.Options()`. Or, split your input files into a larger number of \
                         small files such that number of files is greater than number of \
                         shards/workers.",
                        self.at,
                        self.shards
                    );
                    return Ok(None);
                };
                let mine = self.at % self.shards == self.index;
                self.at += 1;
                if mine {
                    return Ok(Some(element));
                }
            }
        })
    }
}

fn counted<D: Dataset>(
    make: fn(DatasetRef, i64) -> D,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| makes(init, move |ctx| Ok(make(input(ctx, 0)?, scalar(ctx, 1, "count")?)))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("TakeDataset")
        .doc("A dataset of the first `count` elements.")
        .input("input_dataset: variant")
        .input("count: int64")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .cpu(counted(|input, count| Take { input, count }));
    c.op("SkipDataset")
        .doc("A dataset of what comes behind the first `count` elements.")
        .input("input_dataset: variant")
        .input("count: int64")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .cpu(counted(|input, count| Skip { input, count }));
    c.op("RepeatDataset")
        .doc("A dataset of all elements, `count` times.")
        .input("input_dataset: variant")
        .input("count: int64")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .cpu(counted(|input, count| Repeat { input, count }));
    c.op("ShardDataset")
        .doc("A dataset of every `num_shards`-th element, beginning with number `index`.")
        .input("input_dataset: variant")
        .input("num_shards: int64")
        .input("index: int64")
        .makes_dataset()
        .attr("require_non_empty: bool = false")
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            let require_non_empty = init.bool("require_non_empty")?;
            makes(init, move |ctx| {
                let shards: i64 = scalar(ctx, 1, "num_shards")?;
                let index: i64 = scalar(ctx, 2, "index")?;
                ensure!(
                    shards > 0,
                    InvalidArgument,
                    "Number of shards must be greater than zero (currently num_shards = {shards})."
                );
                ensure!(
                    (0..shards).contains(&index),
                    InvalidArgument,
                    "Index must be between 0 and {} (currently index = {index}).",
                    shards - 1
                );
                Ok(Shard { input: input(ctx, 0)?, shards, index, require_non_empty })
            })
        });
    for op in ["AutoShardDataset", "ExperimentalAutoShardDataset"] {
        let b = c
            .op(op)
            .doc("A worker's share of a dataset: every `num_workers`-th element.")
            .input("input_dataset: variant")
            .input("num_workers: int64")
            .input("index: int64")
            .makes_dataset()
            .attr("auto_shard_policy: int = 0")
            .element_types()
            .cpu(auto_shard);
        if op == "AutoShardDataset" {
            drop(b.attr("num_replicas: int = 0"));
        }
    }
}

/// How `AutoShardDataset` distributes, from its attribute.
mod policy {
    pub const OFF: i64 = -1;
    pub const AUTO: i64 = 0;
    pub const DATA: i64 = 2;
}

fn auto_shard(init: &KernelInit<'_>) -> Result<KernelBox> {
    let how = init.int("auto_shard_policy")?;
    ensure!(
        [policy::OFF, policy::AUTO, policy::DATA].contains(&how),
        Unimplemented,
        "auto_shard_policy {how}: elements are shared out (DATA), not files, and hints are not \
         followed (node '{}')",
        init.node.name
    );
    makes(init, move |ctx| {
        let shards: i64 = scalar(ctx, 1, "num_workers")?;
        let index: i64 = scalar(ctx, 2, "index")?;
        ensure!(
            shards >= 1 && (0..shards).contains(&index),
            InvalidArgument,
            "index must be >= 0 and < {shards}, currently {index}"
        );
        let (shards, index) = if how == policy::OFF { (1, 0) } else { (shards, index) };
        Ok(Shard { input: input(ctx, 0)?, shards, index, require_non_empty: false })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;
    use crate::testing::check;

    /// The elements of `op` of 0..n with these scalars, and the cardinality it states.
    fn run(op: &str, n: i64, scalars: &[i64]) -> (Vec<i64>, i64) {
        let op = dataset(op, &[DType::Int64]).input(range(n));
        let made = made(scalars.iter().fold(op, |c, &x| c.input(Tensor::scalar(x))));
        let stated = check("DatasetCardinality").input(made.clone()).run().unwrap();
        (longs(&made).concat(), stated[0].scalar_value().unwrap())
    }

    #[test]
    fn what_is_counted_is_what_is_stated() {
        for (op, n, scalars, want) in [
            ("TakeDataset", 5, &[2i64][..], &[0i64, 1][..]),
            ("TakeDataset", 2, &[-1], &[0, 1]),
            ("TakeDataset", 2, &[9], &[0, 1]),
            ("TakeDataset", 2, &[0], &[]),
            ("SkipDataset", 4, &[2], &[2, 3]),
            ("SkipDataset", 4, &[9], &[]),
            ("SkipDataset", 4, &[-1], &[]),
            ("RepeatDataset", 2, &[2], &[0, 1, 0, 1]),
            ("RepeatDataset", 2, &[0], &[]),
            ("RepeatDataset", 0, &[-1], &[]),
            ("ShardDataset", 5, &[3, 1], &[1, 4]),
            ("ShardDataset", 5, &[3, 2], &[2]),
        ] {
            let (got, stated) = run(op, n, scalars);
            assert_eq!((&got[..], stated), (want, want.len() as i64), "{op} {scalars:?}");
        }
    }

    #[test]
    fn shards_must_be_there() {
        let shard = |shards: i64, index: i64| {
            let op = dataset("ShardDataset", &[DType::Int64]).input(range(3));
            op.input(Tensor::scalar(shards)).input(Tensor::scalar(index))
        };
        shard(2, 5).fails(Code::InvalidArgument, "between 0 and 1 (currently index = 5)");
        shard(0, 0).fails(Code::InvalidArgument, "Number of shards must be greater than zero");
    }
}
