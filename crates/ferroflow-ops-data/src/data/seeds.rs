//! Seeds of shuffles: one pair for each epoch.

use super::dataset::scalar;
use super::handle::{delete, put_anonymous};
use super::iterator::find;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, Singles, entropy};
use parking_lot::Mutex;

/// Gives a pair of seeds for each iteration.
pub(super) struct SeedGenerator(Mutex<Kind>);

enum Kind {
    /// The same pair for each iteration.
    Fixed(i64, i64),
    /// Another pair for each iteration, from a separate stream.
    Fresh { words: Singles, state: SeedState },
}

/// The state of a generator before it gave a pair: its own seeds, and the pairs given so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SeedState {
    pub seeds: (i64, i64),
    pub given: u64,
}

impl SeedState {
    /// The words that make the following pairs.
    fn words(self) -> Singles {
        // A pair takes two words, and the stream makes four at once.
        let start = Philox::seeded(self.seeds.0, self.seeds.1).skipped(self.given / 2);
        let mut words = Singles::new(start);
        if self.given % 2 == 1 {
            words.next_u64();
        }
        words
    }
}

impl SeedGenerator {
    /// If both seeds are 0, each run of the graph has another stream.
    pub fn new(seed: i64, seed2: i64, fresh: bool) -> SeedGenerator {
        let (seed, seed2) = match (seed, seed2) {
            (0, 0) => (entropy() as i64, entropy() as i64),
            seeds => seeds,
        };
        let state = SeedState { seeds: (seed, seed2), given: 0 };
        SeedGenerator(Mutex::new(match fresh {
            true => Kind::Fresh { words: state.words(), state },
            false => Kind::Fixed(seed, seed2),
        }))
    }

    /// The stream of random words for the next iteration.
    pub fn next(&self) -> Singles {
        self.next_from(None).0
    }

    /// The stream of random words for the next iteration, and the state that it came from. A
    /// generator that was in state `saved` gives the same again.
    pub fn next_from(&self, saved: Option<SeedState>) -> (Singles, SeedState) {
        let (pair, before) = match &mut *self.0.lock() {
            Kind::Fixed(seed, seed2) => {
                let before = saved.unwrap_or(SeedState { seeds: (*seed, *seed2), given: 0 });
                (*seed, *seed2) = before.seeds;
                (before.seeds, before)
            }
            Kind::Fresh { words, state } => {
                if let Some(saved) = saved.filter(|saved| saved != state) {
                    (*words, *state) = (saved.words(), saved);
                }
                let before = *state;
                state.given = state.given.wrapping_add(1);
                let seed = i64::from(words.next_u32());
                ((seed, i64::from(words.next_u32())), before)
            }
        };
        (Singles::new(Philox::seeded(pair.0, pair.1)), before)
    }
}

impl Resource for SeedGenerator {
    fn describe(&self) -> String {
        "seed generator".into()
    }
}

/// The generator that the handle in input `i` names; without one, a new one from the seeds in
/// inputs `seeds` and the one after.
pub(super) fn shared_or_new(
    ctx: &Ctx<'_>,
    i: usize,
    seeds: Option<usize>,
    fresh: bool,
) -> Result<Arc<SeedGenerator>> {
    if let Some(at) = seeds {
        scalar::<i64>(ctx, at, "seed")?;
        scalar::<i64>(ctx, at + 1, "seed2")?;
    }
    match find::<SeedGenerator>(ctx.step(), ctx.handle(i)?) {
        Ok(found) => Ok(found),
        Err(e) if e.code() == Code::NotFound => match seeds {
            Some(at) => own(ctx, at, fresh),
            None => Ok(Arc::new(SeedGenerator::new(0, 0, true))),
        },
        Err(e) => Err(e),
    }
}

/// A new generator from the seeds in inputs `at` and the one after.
pub(super) fn own(ctx: &Ctx<'_>, at: usize, fresh: bool) -> Result<Arc<SeedGenerator>> {
    let (seed, seed2) = (scalar(ctx, at, "seed")?, scalar(ctx, at + 1, "seed2")?);
    Ok(Arc::new(SeedGenerator::new(seed, seed2, fresh)))
}

const TYPE_NAME: &str = "tensorflow::data::SeedGeneratorManager";

/// An empty handle: a consumer that gets it makes its own resource.
pub(super) fn dummy(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = ResourceHandle {
        device: ctx.node().device.text.clone(),
        container: ctx.node().default_container.clone(),
        name: format!("dummy_{}", ctx.node().op),
        ..Default::default()
    };
    ctx.set(0, Tensor::handle(handle))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("AnonymousSeedGenerator")
        .doc("Something that gives shuffles their seeds; new ones each time if `reshuffle`.")
        .input("seed: int64")
        .input("seed2: int64")
        .input("reshuffle: bool")
        .output("handle: resource")
        .output("deleter: variant")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(|ctx| {
            let seeds = (scalar(ctx, 0, "seed")?, scalar(ctx, 1, "seed2")?);
            let made = SeedGenerator::new(seeds.0, seeds.1, scalar(ctx, 2, "reshuffle")?);
            put_anonymous(ctx, "SeedGenerator", TYPE_NAME, made)
        });
    c.op("AnonymousRandomSeedGenerator")
        .doc("Something that gives shuffles new seeds each time.")
        .input("seed: int64")
        .input("seed2: int64")
        .output("handle: resource")
        .output("deleter: variant")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(|ctx| {
            let seeds = (scalar(ctx, 0, "seed")?, scalar(ctx, 1, "seed2")?);
            let made = SeedGenerator::new(seeds.0, seeds.1, true);
            put_anonymous(ctx, "RandomSeedGenerator", TYPE_NAME, made)
        });
    for op in ["DeleteSeedGenerator", "DeleteRandomSeedGenerator"] {
        c.op(op)
            .doc("Deletes a seed generator.")
            .input("handle: resource")
            .input("deleter: variant")
            .stateful()
            .shape(shape::unknown)
            .cpu_fn(delete::<SeedGenerator>);
    }
    for (op, doc) in [
        ("DummySeedGenerator", "A handle to no seed generator."),
        ("DummyIterationCounter", "A handle to no counter of iterations."),
    ] {
        c.op(op).doc(doc).output("handle: resource").stateful().shape(shape::scalar).cpu_fn(dummy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_state_gives_the_same_pairs_again() {
        for fresh in [true, false] {
            let first = SeedGenerator::new(0, 0, fresh);
            let drawn: Vec<_> = (0..5).map(|_| first.next_from(None)).collect();
            for at in 0..5 {
                let second = SeedGenerator::new(7, 8, fresh);
                let mut again = vec![second.next_from(Some(drawn[at].1)).0];
                again.extend((at + 1..5).map(|_| second.next()));
                for (mut again, (words, _)) in again.into_iter().zip(&drawn[at..]) {
                    let mut words = words.clone();
                    assert_eq!(again.next_u64(), words.next_u64(), "from {at}, fresh: {fresh}");
                }
            }
        }
    }
}
