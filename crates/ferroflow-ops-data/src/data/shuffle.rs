//! Shuffling through a buffer, in the order TensorFlow gives for the same seeds: ShuffleDataset and
//! ShuffleAndRepeatDataset, in all versions.

use super::dataset::*;
use super::scope::Scope;
use super::seeds::{SeedGenerator, own, shared_or_new};
use crate::prelude::*;
use ferroflow_op_kit::philox::Singles;
use std::collections::VecDeque;

/// How many epochs may start while the buffer still holds elements of the first.
const MAX_EPOCHS_IN_BUFFER: usize = 3;

struct Shuffle {
    input: DatasetRef,
    /// The size of the buffer; `None` means all elements.
    buffer: Option<usize>,
    seeds: Arc<SeedGenerator>,
    /// The number of epochs; negative means no limit.
    count: i64,
}

impl Dataset for Shuffle {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Shuffling {
            input: self.input.clone(),
            scope: scope.clone(),
            current: None,
            epochs: 0,
            count: u64::try_from(self.count).ok(),
            limit: self.buffer.unwrap_or(usize::MAX),
            random: scope.seeds(&self.seeds),
            seeds: self.seeds.clone(),
            buffer: VecDeque::new(),
            held: 0,
            had_some: false,
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input.cardinality(), self.count) {
            (0, _) | (_, 0) => 0,
            (n, 1) => n,
            (_, count) if count < 0 => INFINITE,
            (n, _) if n < 0 => n,
            (n, count) => n.saturating_mul(count),
        }
    }
}

struct Shuffling {
    input: DatasetRef,
    scope: Scope,
    current: Option<Elements>,
    /// The number of epochs that have started.
    epochs: u64,
    count: Option<u64>,
    limit: usize,
    seeds: Arc<SeedGenerator>,
    random: Singles,
    /// Elements of different epochs are not mixed.
    buffer: VecDeque<Epoch>,
    held: usize,
    /// Whether the input has produced an element yet.
    had_some: bool,
}

#[derive(Default)]
struct Epoch {
    elements: VecDeque<Tuple>,
    ended: bool,
}

impl Shuffling {
    fn wants_more(&self) -> bool {
        let is_last = self.count.is_some_and(|count| self.epochs >= count);
        if self.current.is_none() && is_last {
            return false;
        }
        if self.buffer.len() > MAX_EPOCHS_IN_BUFFER && self.held > 0 {
            return false;
        }
        self.held < self.limit
    }

    async fn fill(&mut self) -> Result<()> {
        while self.wants_more() {
            let Some(current) = &mut self.current else {
                self.current = Some(self.input.iterate(&self.scope)?);
                self.buffer.push_back(Epoch::default());
                self.epochs += 1;
                continue;
            };
            let next = current.next().await?;
            let Some(epoch) = self.buffer.back_mut() else {
                bail!(Internal, "a shuffle lost its buffer");
            };
            match next {
                Some(element) => {
                    epoch.elements.push_back(element);
                    self.held += 1;
                    self.had_some = true;
                }
                None => {
                    epoch.ended = true;
                    self.current = None;
                    // Repeating an empty dataset forever would block forever.
                    if !self.had_some && self.count.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Produce for Shuffling {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            self.fill().await?;
            if self.held == 0 {
                return Ok(None);
            }
            while self.buffer.front().is_some_and(|e| e.ended && e.elements.is_empty()) {
                self.buffer.pop_front();
                self.random = self.scope.seeds(&self.seeds);
            }
            let Some(Epoch { elements, .. }) = self.buffer.front_mut() else {
                bail!(Internal, "a shuffle lost its buffer");
            };
            ensure!(!elements.is_empty(), Internal, "a shuffle has nothing to draw from");
            let at = self.random.next_u32() as usize % elements.len();
            self.held -= 1;
            Ok(elements.swap_remove_front(at))
        })
    }
}

/// The size in input 1.
fn buffer_size(ctx: &Ctx<'_>) -> Result<Option<usize>> {
    match scalar::<i64>(ctx, 1, "buffer_size")? {
        UNKNOWN => Ok(None),
        size => {
            ensure!(
                size > 0,
                InvalidArgument,
                "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            );
            Ok(Some(size as usize))
        }
    }
}

fn epochs(ctx: &Ctx<'_>) -> Result<i64> {
    let count = scalar(ctx, 4, "count")?;
    ensure!(
        count > 0 || count == -1,
        InvalidArgument,
        "count must be greater than zero or equal to -1."
    );
    Ok(count)
}

/// The dataset, the buffer and the seeds of a shuffle.
const SHUFFLED: [&str; 4] =
    ["input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64"];

pub(crate) fn register(c: &mut Catalog) {
    const DOC: &str = "A dataset of the elements in random order, drawn from a buffer.";
    c.op("ShuffleDataset")
        .doc(DOC)
        .inputs(&SHUFFLED)
        .makes_dataset()
        .attr("reshuffle_each_iteration: bool = true")
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            let fresh = init.bool("reshuffle_each_iteration")?;
            makes(init, move |ctx| {
                let seeds = own(ctx, 2, fresh)?;
                Ok(Shuffle { input: input(ctx, 0)?, buffer: buffer_size(ctx)?, seeds, count: 1 })
            })
        });
    c.op("ShuffleDatasetV2")
        .doc(DOC)
        .input("input_dataset: variant")
        .input("buffer_size: int64")
        .input("seed_generator: resource")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            makes(init, |ctx| {
                let seeds = shared_or_new(ctx, 2, None, true)?;
                Ok(Shuffle { input: input(ctx, 0)?, buffer: buffer_size(ctx)?, seeds, count: 1 })
            })
        });
    c.op("ShuffleDatasetV3")
        .doc(DOC)
        .inputs(&SHUFFLED)
        .input("seed_generator: resource")
        .makes_dataset()
        .attr("reshuffle_each_iteration: bool = true")
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            let fresh = init.bool("reshuffle_each_iteration")?;
            makes(init, move |ctx| {
                let seeds = shared_or_new(ctx, 4, Some(2), fresh)?;
                Ok(Shuffle { input: input(ctx, 0)?, buffer: buffer_size(ctx)?, seeds, count: 1 })
            })
        });
    c.op("ShuffleAndRepeatDataset")
        .doc("A dataset of the elements, several times, each in random order.")
        .inputs(&SHUFFLED)
        .input("count: int64")
        .makes_dataset()
        .element_types()
        .attr("reshuffle_each_iteration: bool = true")
        .metadata_attr()
        .cpu(|init| {
            let fresh = init.bool("reshuffle_each_iteration")?;
            makes(init, move |ctx| {
                let (seeds, count) = (own(ctx, 2, fresh)?, epochs(ctx)?);
                Ok(Shuffle { input: input(ctx, 0)?, buffer: buffer_size(ctx)?, seeds, count })
            })
        });
    c.op("ShuffleAndRepeatDatasetV2")
        .doc("A dataset of the elements, several times, each in random order.")
        .inputs(&SHUFFLED)
        .input("count: int64")
        .input("seed_generator: resource")
        .makes_dataset()
        .attr("reshuffle_each_iteration: bool = true")
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            let fresh = init.bool("reshuffle_each_iteration")?;
            makes(init, move |ctx| {
                let (seeds, count) = (shared_or_new(ctx, 5, Some(2), fresh)?, epochs(ctx)?);
                Ok(Shuffle { input: input(ctx, 0)?, buffer: buffer_size(ctx)?, seeds, count })
            })
        });
}
