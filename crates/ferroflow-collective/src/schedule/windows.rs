//! Windows: an all-reduce of a long buffer processes one window after another.
//!
//! All ranks reduce and gather a window before they start the window after the next one. The values
//! of a window are read from memory once and written once, and stay in a cache in between. Without
//! windows, the values would leave the caches between the reduction and the gathering.

use super::{Schedule, segments};
use std::ops::Range;

/// How a long buffer is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Elements of a window per rank, and most elements of a message.
    pub piece: usize,
    /// Windows in flight at a time. Two are enough if sending a message takes longer than its
    /// latency.
    pub ahead: usize,
}

impl Windows {
    /// The windows of `range` among `n` ranks.
    fn of(self, range: Range<usize>, n: usize) -> Vec<Range<usize>> {
        segments(range, self.piece.saturating_mul(n.max(1))).collect()
    }
}

/// What one rank does in a round. In a round every rank sends and receives once.
pub(super) enum Round {
    Exchange {
        to: u32,
        out: Range<usize>,
        from: u32,
        into: Range<usize>,
        /// Whether received values are combined with those in the range. Otherwise they overwrite
        /// them.
        combines: bool,
    },
    Finish(Range<usize>),
}

impl Round {
    /// Alternates sends and receives, so that neither direction of a link runs far ahead of the
    /// other.
    pub(super) fn push(&self, s: &mut Schedule, segment: usize) {
        let (to, out, from, into, combines) = match self {
            Round::Finish(range) => return s.finish(range.clone()),
            Round::Exchange { to, out, from, into, combines } => (*to, out, *from, into, *combines),
        };
        let (mut out, mut into) = (segments(out.clone(), segment), segments(into.clone(), segment));
        loop {
            let (sent, received) = (out.next(), into.next());
            if sent.is_none() && received.is_none() {
                return;
            }
            sent.into_iter().for_each(|r| s.send(to, r));
            received.into_iter().for_each(|r| match combines {
                true => s.reduce(from, r),
                false => s.store(from, r),
            });
        }
    }
}

/// The rounds of all windows of `range` among `n` ranks. Rounds of windows that are in flight
/// together alternate.
pub(super) fn in_windows(
    s: &mut Schedule,
    windows: Windows,
    range: Range<usize>,
    n: usize,
    rounds_of: impl Fn(Range<usize>) -> Vec<Round>,
) {
    for together in windows.of(range, n).chunks(windows.ahead.max(1)) {
        let each: Vec<Vec<Round>> = together.iter().cloned().map(&rounds_of).collect();
        for turn in 0..each.iter().map(Vec::len).max().unwrap_or(0) {
            each.iter()
                .filter_map(|rounds| rounds.get(turn))
                .for_each(|r| r.push(s, windows.piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rest_is_part_of_the_last_window() {
        let ends = |windows: Vec<Range<usize>>| windows.iter().map(|w| w.end).collect::<Vec<_>>();
        let cut = |count, n| ends(Windows { piece: 10, ahead: 2 }.of(0..count, n));
        assert!(cut(0, 4).is_empty());
        assert_eq!(cut(39, 4), [39]);
        assert_eq!(cut(84, 4), [40, 84]);
        assert_eq!(cut(85, 4), [40, 80, 85]);
        assert_eq!(ends(Windows { piece: usize::MAX, ahead: 1 }.of(3..90, 4)), [90]);
    }
}
