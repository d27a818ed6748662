//! The ring: every rank talks to its two neighbours only, and each moves the least bytes possible.

use super::{Schedule, segments};

/// The ranks of `members`, a ring in that order, reduce; rank `members[i]` ends with the range
/// `bounds[i]..bounds[i + 1]` complete. `me` is an index into `members`.
pub(crate) fn reduce_scatter_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    let n = members.len();
    let (left, right) = (members[(me + n - 1) % n], members[(me + 1) % n]);
    // The chunk of rank i starts its way at rank i + 1 and arrives, complete, at rank i.
    for step in 0..n - 1 {
        let out = (me + 2 * n - 1 - step) % n;
        let into = (me + 2 * n - 2 - step) % n;
        interleave(
            segments(bounds[out]..bounds[out + 1], segment),
            segments(bounds[into]..bounds[into + 1], segment),
            |half| match half {
                Half::Out(range) => s.send(right, range),
                Half::Into(range) => s.reduce(left, range),
            },
        );
    }
}

/// Rank `members[i]` starts with the range `bounds[i]..bounds[i + 1]`; all end with all of it.
pub(crate) fn all_gather_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    let n = members.len();
    let (left, right) = (members[(me + n - 1) % n], members[(me + 1) % n]);
    for step in 0..n - 1 {
        let out = (me + n - step) % n;
        let into = (me + 2 * n - 1 - step) % n;
        interleave(
            segments(bounds[out]..bounds[out + 1], segment),
            segments(bounds[into]..bounds[into + 1], segment),
            |half| match half {
                Half::Out(range) => s.send(right, range),
                Half::Into(range) => s.store(left, range),
            },
        );
    }
}

enum Half {
    Out(std::ops::Range<usize>),
    Into(std::ops::Range<usize>),
}

fn interleave(
    mut out: impl Iterator<Item = std::ops::Range<usize>>,
    mut into: impl Iterator<Item = std::ops::Range<usize>>,
    mut each: impl FnMut(Half),
) {
    loop {
        match (out.next(), into.next()) {
            (None, None) => return,
            (o, i) => {
                o.into_iter().for_each(|r| each(Half::Out(r)));
                i.into_iter().for_each(|r| each(Half::Into(r)));
            }
        }
    }
}
