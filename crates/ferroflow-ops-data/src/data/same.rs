//! Datasets that pass elements on unchanged: options and hints, which have no effect here;
//! IgnoreErrorsDataset; AssertCardinalityDataset; ChooseFastestDataset.

use super::dataset::*;
use super::function::Captured;
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

/// The dataset that one of several functions makes of its input. All give the same elements; this
/// takes the first function.
struct Branch {
    input: DatasetRef,
    function: Captured,
    /// Elements of the result for those of the input.
    ratio: (i64, i64),
}

impl Dataset for Branch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let (input, function) = (self.input.clone(), self.function.clone());
        Ok(Elements::new(Branching { input, function, scope: scope.clone(), elements: None }))
    }

    fn cardinality(&self) -> i64 {
        match self.input.cardinality() {
            n if n < 0 => n,
            n => n.saturating_mul(self.ratio.0) / self.ratio.1,
        }
    }
}

struct Branching {
    input: DatasetRef,
    function: Captured,
    scope: Scope,
    elements: Option<Elements>,
}

impl Produce for Branching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.elements.is_none() {
                let args = vec![self.input.clone().into_tensor()];
                let made = self.function.call(&self.scope, args).await?;
                let Some(made) = made.first() else {
                    bail!(InvalidArgument, "a branch must return a dataset");
                };
                self.elements = Some(DatasetRef::of(made)?.iterate(&self.scope)?);
            }
            match &mut self.elements {
                Some(elements) => elements.next().await,
                None => Ok(None),
            }
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    // op, inputs behind the dataset, attributes
    let hints: [(&str, &[&str], &[&str]); 14] = [
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
    c.op("ChooseFastestBranchDataset")
        .doc("What one of several functions makes of a dataset: the first.")
        .input("input_dataset: variant")
        .input("ratio_numerator: int64")
        .input("ratio_denominator: int64")
        .input("other_arguments: Targuments")
        .makes_dataset()
        .attr("Targuments: list(type) >= 0")
        .attr("num_elements_per_branch: int >= 1")
        .attr("branches: list(func) >= 1")
        .attr("other_arguments_lengths: list(int) >= 1")
        .element_types()
        .cpu(|init| {
            let Some(function) = init.functions_of("branches")?.into_iter().next() else {
                bail!(InvalidArgument, "attr branches must not be empty");
            };
            let function = Arc::new(function);
            let lengths = init.ints("other_arguments_lengths")?;
            let own = lengths.first().and_then(|&n| usize::try_from(n).ok()).unwrap_or(0);
            makes(init, move |ctx| {
                let ratio: (i64, i64) =
                    (scalar(ctx, 1, "ratio_numerator")?, scalar(ctx, 2, "ratio_denominator")?);
                ensure!(
                    ratio.0 > 0 && ratio.1 > 0,
                    InvalidArgument,
                    "`ratio_numerator` and `ratio_denominator` must be greater than zero."
                );
                ensure!(
                    3 + own <= ctx.num_inputs(),
                    InvalidArgument,
                    "the first branch takes {own} arguments, there are {}",
                    ctx.num_inputs() - 3
                );
                let function = Captured::from_inputs(&function, ctx, 3..3 + own)?;
                Ok(Branch { input: input(ctx, 0)?, function, ratio })
            })
        });
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
