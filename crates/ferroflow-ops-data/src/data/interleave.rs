//! Datasets of datasets, one after the other or in turns: FlatMapDataset, InterleaveDataset.

use super::dataset::*;
use super::function::Captured;
use super::scope::Scope;
use crate::prelude::*;

/// Calls a function that returns a dataset for each element, and takes `block` elements in turn
/// from `cycle` of these datasets.
struct Interleave {
    input: DatasetRef,
    f: Captured,
    cycle: usize,
    block: u64,
}

impl Dataset for Interleave {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Interleaving {
            input: Some(self.input.iterate(scope)?),
            f: self.f.clone(),
            scope: scope.clone(),
            cycle: self.cycle,
            block: self.block,
            places: Vec::new(),
            open: 0,
            at: 0,
            taken: 0,
        }))
    }
}

struct Interleaving {
    /// `None` after the end of the input.
    input: Option<Elements>,
    f: Captured,
    scope: Scope,
    cycle: usize,
    block: u64,
    /// Grows up to `cycle`; empty where a dataset has ended.
    places: Vec<Option<Elements>>,
    open: usize,
    /// The place of the current dataset, and how many elements of its block it has given.
    at: usize,
    taken: u64,
}

impl Interleaving {
    fn next_place(&mut self) {
        self.at = (self.at + 1) % self.cycle;
        self.taken = 0;
        // After the last dataset there are no more elements.
        if self.input.is_none() && self.at >= self.places.len() {
            self.at = 0;
        }
    }

    /// Opens the next dataset at this place, if there is one.
    async fn open(&mut self) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let Some(element) = input.next().await? else {
            self.input = None;
            return Ok(());
        };
        let elements =
            returned_dataset(&self.f, &self.scope, element).await?.iterate(&self.scope)?;
        if self.at == self.places.len() {
            self.places.push(None);
        }
        self.places[self.at] = Some(elements);
        self.open += 1;
        Ok(())
    }
}

/// The dataset that a function returns for an element.
pub(super) async fn returned_dataset(
    f: &Captured,
    scope: &Scope,
    element: Tuple,
) -> Result<DatasetRef> {
    let result = f.call(scope, element).await?;
    match &result[..] {
        [t] if t.dtype() == DType::Variant && t.rank() == 0 => DatasetRef::of(t).cloned(),
        _ => bail!(InvalidArgument, "Function must return a single scalar of dtype DT_VARIANT."),
    }
}

impl Produce for Interleaving {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while self.input.is_some() || self.open > 0 {
                if let Some(Some(elements)) = self.places.get_mut(self.at) {
                    match elements.next().await? {
                        Some(element) => {
                            self.taken += 1;
                            if self.taken == self.block {
                                self.next_place();
                            }
                            return Ok(Some(element));
                        }
                        None => {
                            self.places[self.at] = None;
                            self.open -= 1;
                            self.next_place();
                        }
                    }
                } else if self.input.is_some() {
                    self.open().await?;
                } else {
                    self.next_place();
                }
            }
            Ok(None)
        })
    }
}

/// A length from an input: at least 1.
pub(super) fn positive(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<i64> {
    let length: i64 = scalar(ctx, i, name)?;
    ensure!(length > 0, InvalidArgument, "{name} must be greater than zero.");
    Ok(length)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("FlatMapDataset")
        .doc("A dataset of the elements of the datasets that `f` makes, one after the other.")
        .input("input_dataset: variant")
        .input("other_arguments: Targuments")
        .makes_dataset()
        .attr("f: func")
        .attr("Targuments: list(type) >= 0")
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            let f = Arc::new(init.function("f")?);
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                Ok(Interleave {
                    input: input(ctx, 0)?,
                    f: Captured::from_inputs(&f, ctx, 1..n)?,
                    cycle: 1,
                    block: u64::MAX,
                })
            })
        });
    c.op("InterleaveDataset")
        .doc("A dataset of the elements of the datasets that `f` makes, several in turns.")
        .input("input_dataset: variant")
        .input("other_arguments: Targuments")
        .input("cycle_length: int64")
        .input("block_length: int64")
        .makes_dataset()
        .attr("f: func")
        .attr("Targuments: list(type) >= 0")
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            let f = Arc::new(init.function("f")?);
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                let cycle: i64 = scalar(ctx, n - 2, "cycle_length")?;
                let cycle =
                    if cycle == -1 { ferroflow_core::ComputePool::threads() as i64 } else { cycle };
                ensure!(cycle > 0, InvalidArgument, "cycle_length must be greater than zero.");
                Ok(Interleave {
                    cycle: cycle as usize,
                    block: positive(ctx, n - 1, "block_length")? as u64,
                    input: input(ctx, 0)?,
                    f: Captured::from_inputs(&f, ctx, 1..n - 2)?,
                })
            })
        });
}
