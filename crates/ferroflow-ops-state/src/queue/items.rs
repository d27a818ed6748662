//! The elements of a queue, in the order in which they will be dequeued.

use super::store::{Kind, Tuple};
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, Singles};
use std::collections::{BTreeMap, VecDeque};

pub(crate) enum Items {
    InOrder(VecDeque<Tuple>),
    /// By priority, then by arrival.
    Sorted {
        items: BTreeMap<(i64, u64), Tuple>,
        arrivals: u64,
    },
    Shuffled {
        items: Vec<Tuple>,
        random: Singles,
        keep: usize,
    },
}

impl Items {
    pub(crate) fn new(kind: Kind) -> Items {
        match kind {
            Kind::Fifo | Kind::Padding => Items::InOrder(VecDeque::new()),
            Kind::Priority => Items::Sorted { items: BTreeMap::new(), arrivals: 1 << 32 },
            Kind::Shuffle { min_after_dequeue, seed } => Items::Shuffled {
                items: Vec::new(),
                random: Singles::new(Philox::from_seeds(seed.0, seed.1)),
                keep: min_after_dequeue,
            },
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Items::InOrder(items) => items.len(),
            Items::Sorted { items, .. } => items.len(),
            Items::Shuffled { items, .. } => items.len(),
        }
    }

    pub(crate) fn push(&mut self, tuple: Tuple) -> Result<()> {
        match self {
            Items::InOrder(items) => items.push_back(tuple),
            Items::Sorted { items, arrivals } => {
                let priority = priority(&tuple)?;
                *arrivals += 1;
                items.insert((priority, *arrivals), tuple);
            }
            Items::Shuffled { items, .. } => items.push(tuple),
        }
        Ok(())
    }

    /// The next element. A shuffling queue keeps a minimum unless it is `closed`.
    pub(crate) fn pop(&mut self, closed: bool) -> Option<Tuple> {
        match self {
            Items::InOrder(items) => items.pop_front(),
            Items::Sorted { items, .. } => items.pop_first().map(|(_, tuple)| tuple),
            Items::Shuffled { items, random, keep } => {
                let spare = items.len().saturating_sub(if closed { 0 } else { *keep });
                (spare > 0).then(|| {
                    let at = random.next_u32() as usize % items.len();
                    items.swap_remove(at)
                })
            }
        }
    }

    /// Undoes a pop: the element becomes the next one again.
    pub(crate) fn put_back(&mut self, tuple: Tuple) {
        match self {
            Items::InOrder(items) => items.push_front(tuple),
            Items::Sorted { items, .. } => {
                let priority = priority(&tuple).unwrap_or_default();
                let first = items.range((priority, 0)..).next().map(|(key, _)| *key);
                let arrival = match first {
                    Some((p, arrival)) if p == priority => arrival - 1,
                    _ => 1 << 31,
                };
                items.insert((priority, arrival), tuple);
            }
            Items::Shuffled { items, .. } => items.push(tuple),
        }
    }
}

fn priority(tuple: &Tuple) -> Result<i64> {
    match tuple.first() {
        Some(t) => t.scalar_value::<i64>(),
        None => bail!(InvalidArgument, "an element of a priority queue has no priority"),
    }
}
