//! The schedule of a collective: what one rank sends, receives and reduces.
//!
//! A schedule is written as a sequential program. The ranges of its steps determine what may
//! overlap: a send waits for the last write to its range, and a write waits for the last reads and
//! writes. Reductions into one range keep their order, so a schedule gives the same bits every
//! time. The executor runs schedules over links, and `simulate` over a model of a network.

mod allreduce;
mod exchange;
mod push_pull;
mod reduce;
mod ring;
mod tree;
mod windows;

pub(crate) use allreduce::{
    double_tree_all_reduce, doubling_all_reduce, halving_doubling_all_reduce,
    hierarchical_all_reduce, ring_all_reduce,
};
pub(crate) use exchange::{all_gather_direct, all_to_all, barrier};
pub(crate) use push_pull::{push_pull, push_pull_bounds};
pub(crate) use reduce::{reduce_serial, reduce_tree};
pub(crate) use ring::{all_gather_ring, reduce_scatter_ring};
pub(crate) use tree::{broadcast_chain, broadcast_tree};
pub(crate) use windows::Windows;

use std::collections::BTreeMap;
use std::ops::Range;

/// What a step does with its range of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleAction {
    /// Sends the range.
    Send {
        /// The receiving rank.
        to: u32,
    },
    /// Receives and combines with the values in the range.
    Reduce {
        /// The sending rank.
        from: u32,
    },
    /// Receives and overwrites the range.
    Store {
        /// The sending rank.
        from: u32,
    },
    /// Completes the reduction after all values are combined: divides a mean.
    Finish,
}

/// One step of a [`Schedule`].
#[derive(Clone, Debug)]
pub struct ScheduleStep {
    /// What it does.
    pub action: ScheduleAction,
    /// The elements it reads or writes.
    pub range: Range<usize>,
    after: Range<u32>,
}

/// The steps of one rank. The k-th receive of `b` from `a` takes the k-th send of `a` to `b`.
#[derive(Default)]
pub struct Schedule {
    steps: Vec<ScheduleStep>,
    after: Vec<u32>,
    touched: BTreeMap<usize, Touched>,
    sends_only_read_the_source: bool,
}

/// The steps that last used a range. The key of the map is the start of the range.
#[derive(Clone)]
struct Touched {
    end: usize,
    written: Option<u32>,
    read: Vec<u32>,
}

impl Schedule {
    /// A schedule whose sends read from another buffer, to which no step writes.
    pub(crate) fn with_separate_source() -> Schedule {
        Schedule { sends_only_read_the_source: true, ..Schedule::default() }
    }

    /// All steps, in the order of the program.
    pub fn steps(&self) -> &[ScheduleStep] {
        &self.steps
    }

    /// The earlier steps that `step` waits for.
    pub fn after(&self, step: &ScheduleStep) -> &[u32] {
        &self.after[step.after.start as usize..step.after.end as usize]
    }

    pub(crate) fn send(&mut self, to: u32, range: Range<usize>) {
        self.push(ScheduleAction::Send { to }, range);
    }

    pub(crate) fn reduce(&mut self, from: u32, range: Range<usize>) {
        self.push(ScheduleAction::Reduce { from }, range);
    }

    pub(crate) fn store(&mut self, from: u32, range: Range<usize>) {
        self.push(ScheduleAction::Store { from }, range);
    }

    pub(crate) fn finish(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.push(ScheduleAction::Finish, range);
        }
    }

    /// Drops the data that is needed only while the schedule is built.
    pub(crate) fn built(mut self) -> Schedule {
        self.touched = BTreeMap::new();
        self
    }

    fn push(&mut self, action: ScheduleAction, range: Range<usize>) {
        let step = self.steps.len() as u32;
        let from = self.after.len() as u32;
        let reads = matches!(action, ScheduleAction::Send { .. });
        let conflicts = !(reads && self.sends_only_read_the_source);
        if conflicts && !range.is_empty() {
            self.touch(step, reads, &range);
            let fresh = &mut self.after[from as usize..];
            fresh.sort_unstable();
            let mut kept = 0;
            for i in 0..fresh.len() {
                if i == 0 || fresh[i] != fresh[kept - 1] {
                    fresh[kept] = fresh[i];
                    kept += 1;
                }
            }
            self.after.truncate(from as usize + kept);
        }
        self.steps.push(ScheduleStep { action, range, after: from..self.after.len() as u32 });
    }

    /// Records in `after` the steps that `step` must wait for, and in `touched` that `step` uses
    /// the range.
    fn touch(&mut self, step: u32, reads: bool, range: &Range<usize>) {
        self.split(range.start);
        self.split(range.end);
        let mut at = range.start;
        while at < range.end {
            let next = self.touched.range(at..).next().map(|(&k, _)| k);
            match next {
                Some(start) if start == at => {
                    let t = self.touched.get_mut(&at).expect("the key was just found");
                    self.after.extend(t.written);
                    if reads {
                        t.read.push(step);
                    } else {
                        self.after.append(&mut t.read);
                        t.written = Some(step);
                    }
                    at = t.end;
                }
                other => {
                    let end = other.map_or(range.end, |k| k.min(range.end));
                    let (written, read) =
                        if reads { (None, vec![step]) } else { (Some(step), Vec::new()) };
                    self.touched.insert(at, Touched { end, written, read });
                    at = end;
                }
            }
        }
    }

    /// Splits the entry of `touched` that contains `at`.
    fn split(&mut self, at: usize) {
        let Some((_, t)) = self.touched.range_mut(..at).next_back() else { return };
        if t.end > at {
            let right = t.clone();
            t.end = at;
            self.touched.insert(at, right);
        }
    }
}

/// The boundaries of `parts` nearly equal pieces of `0..count`, `parts + 1` of them.
pub(crate) fn even_bounds(count: usize, parts: usize) -> Vec<usize> {
    let (each, rest) = (count / parts.max(1), count % parts.max(1));
    (0..=parts).map(|i| i * each + i.min(rest)).collect()
}

/// Splits `range` into pieces of `segment` elements. A short rest is added to the last piece,
/// because a short message costs as much as a long one.
pub(crate) fn segments(range: Range<usize>, segment: usize) -> impl Iterator<Item = Range<usize>> {
    let segment = segment.max(1);
    let (start, end) = (range.start, range.end);
    let (whole, rest) = (range.len() / segment, range.len() % segment);
    let count = whole + usize::from(rest > 0 && (whole == 0 || rest >= segment / 8));
    (0..count).map(move |i| {
        let start = start + i * segment;
        start..if i + 1 == count { end } else { start + segment }
    })
}

#[cfg(test)]
pub(crate) mod tests;
