//! Datasets that pass elements on unchanged: options and hints, which have no effect here;
//! IgnoreErrorsDataset; AssertCardinalityDataset; ChooseFastestDataset.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;

struct Same(DatasetRef);

impl Dataset for Same {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        self.0.iterate(scope)
    }

    fn cardinality(&self) -> i64 {
        self.0.cardinality()
    }
}

struct IgnoreErrors(DatasetRef);

impl Dataset for IgnoreErrors {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(IgnoringErrors { input: self.0.iterate(scope)?, scope: scope.clone() }))
    }
}

struct IgnoringErrors {
    input: Elements,
    scope: Scope,
}

impl Produce for IgnoringErrors {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                match self.input.next().await {
                    Err(e) if e.code() == Code::Cancelled => return Err(e),
                    Err(_) => self.scope.cancel().check()?,
                    next => return next,
                }
            }
        })
    }
}

struct AssertCardinality {
    input: DatasetRef,
    count: i64,
}

impl Dataset for AssertCardinality {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(Asserting { input, count: self.count, seen: 0 }))
    }

    fn cardinality(&self) -> i64 {
        self.count
    }
}

struct Asserting {
    input: Elements,
    count: i64,
    seen: i64,
}

impl Produce for Asserting {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let next = self.input.next().await?;
            let expected = match self.count {
                INFINITE => "an infinite number of elements".to_string(),
                n => format!("{n} elements"),
            };
            self.seen += i64::from(next.is_some());
            if next.is_some() {
                ensure!(
                    self.count < 0 || self.seen <= self.count,
                    FailedPrecondition,
                    "Input dataset was expected to contain {expected} but contained at least {} \
                     elements.",
                    self.seen
                );
            } else {
                ensure!(
                    self.count == UNKNOWN || self.seen == self.count,
                    FailedPrecondition,
                    "Input dataset was expected to contain {expected} but contained only {} \
                     elements.",
                    self.seen
                );
            }
            Ok(next)
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    // op, inputs behind the dataset, attributes
    let hints: [(&str, &[&str], &[&str]); 18] = [
        ("OptionsDataset", &[], &["serialized_options: string", "metadata: string = ''"]),
        (
            "ModelDataset",
            &[],
            &["algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0"],
        ),
        (
            "OptimizeDataset",
            &["optimizations: string"],
            &["optimization_configs: list(string) = []"],
        ),
        (
            "OptimizeDatasetV2",
            &[
                "optimizations_enabled: string",
                "optimizations_disabled: string",
                "optimizations_default: string",
            ],
            &["optimization_configs: list(string) = []"],
        ),
        ("FinalizeDataset", &[], &["has_captured_ref: bool = false"]),
        ("NonSerializableDataset", &[], &[]),
        ("ExperimentalNonSerializableDataset", &[], &[]),
        ("MaxIntraOpParallelismDataset", &["max_intra_op_parallelism: int64"], &[]),
        ("ExperimentalMaxIntraOpParallelismDataset", &["max_intra_op_parallelism: int64"], &[]),
        ("PrivateThreadPoolDataset", &["num_threads: int64"], &[]),
        ("ExperimentalPrivateThreadPoolDataset", &["num_threads: int64"], &[]),
        ("BytesProducedStatsDataset", &["tag: string"], &[]),
        ("ExperimentalBytesProducedStatsDataset", &["tag: string"], &[]),
        ("LatencyStatsDataset", &["tag: string"], &[]),
        ("ExperimentalLatencyStatsDataset", &["tag: string"], &[]),
        ("RewriteDataset", &["rewrite_name: string"], &[]),
        ("ThreadPoolDataset", &["thread_pool: resource"], &[]),
        ("ExperimentalThreadPoolDataset", &["thread_pool: resource"], &[]),
    ];
    for (op, inputs, attrs) in hints {
        let mut b = c
            .op(op)
            .doc("The same dataset; what it says of how to run it is left to the runtime.")
            .input("input_dataset: variant");
        for input in inputs {
            b = b.input(input);
        }
        b = b.makes_dataset().element_types();
        for attr in attrs {
            b = b.attr(attr);
        }
        if inputs == ["thread_pool: resource"] {
            b = b.stateful();
        }
        drop(b.cpu(move |init| {
            makes(init, move |ctx| {
                for (i, arg) in inputs.iter().enumerate() {
                    let (name, rank) = match arg.split_once(':').map_or(*arg, |(name, _)| name) {
                        name if name.starts_with("optimizations") => (name, 1),
                        name => (name, 0),
                    };
                    let kind = if rank == 1 { "vector" } else { "scalar" };
                    let is = ctx.input(1 + i)?.rank();
                    ensure!(is == rank, InvalidArgument, "{name} must be a {kind}");
                }
                Ok(Same(input(ctx, 0)?))
            })
        }));
    }
    for op in ["ThreadPoolHandle", "ExperimentalThreadPoolHandle"] {
        c.op(op)
            .doc("A handle to threads for datasets, which use those of the runtime here.")
            .output("handle: resource")
            .attr("num_threads: int")
            .attr("max_intra_op_parallelism: int = 1")
            .attr("display_name: string")
            .attr("container: string = ''")
            .attr("shared_name: string = ''")
            .stateful()
            .shape(shape::scalar)
            .cpu_fn(super::seeds::dummy);
    }
    for op in ["IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"] {
        c.op(op)
            .doc("A dataset of the elements that could be made.")
            .input("input_dataset: variant")
            .makes_dataset()
            .element_types()
            .attr("log_warning: bool = false")
            .cpu(|init| makes(init, |ctx| Ok(IgnoreErrors(input(ctx, 0)?))));
    }
    for op in ["ChooseFastestDataset", "ExperimentalChooseFastestDataset"] {
        c.op(op)
            .doc("One of several datasets that have the same elements: the first.")
            .input("input_datasets: N * variant")
            .makes_dataset()
            .attr("N: int >= 2")
            .attr("num_experiments: int")
            .element_types()
            .cpu(|init| makes(init, |ctx| Ok(Same(input(ctx, 0)?))));
    }
    c.op("AssertCardinalityDataset")
        .doc("The same dataset, which fails unless it has `cardinality` elements.")
        .input("input_dataset: variant")
        .input("cardinality: int64")
        .makes_dataset()
        .element_types()
        .cpu(|init| {
            makes(init, |ctx| {
                let count = scalar(ctx, 1, "cardinality")?;
                Ok(AssertCardinality { input: input(ctx, 0)?, count })
            })
        });
}
