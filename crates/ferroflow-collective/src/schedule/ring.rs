//! The ring: every rank talks to its two neighbours only, and each moves the least bytes possible.

use super::Schedule;
use super::windows::Round;

/// The ranks of `members`, a ring in that order, reduce; rank `members[i]` ends with the range
/// `bounds[i]..bounds[i + 1]` complete. `me` is an index into `members`.
pub(super) fn reduce_scatter_rounds(members: &[u32], me: usize, bounds: &[usize]) -> Vec<Round> {
    let n = members.len();
    // The chunk of rank i starts its way at rank i + 1 and arrives, complete, at rank i.
    around(members, me, bounds, true, |step| {
        ((me + 2 * n - 1 - step) % n, (me + 2 * n - 2 - step) % n)
    })
}

/// Rank `members[i]` starts with the range `bounds[i]..bounds[i + 1]`; all end with all of it.
pub(super) fn all_gather_rounds(members: &[u32], me: usize, bounds: &[usize]) -> Vec<Round> {
    let n = members.len();
    around(members, me, bounds, false, |step| ((me + n - step) % n, (me + 2 * n - 1 - step) % n))
}

/// The rounds of a ring, in each of which the parts that `parts` names are sent and received.
fn around(
    members: &[u32],
    me: usize,
    bounds: &[usize],
    combines: bool,
    parts: impl Fn(usize) -> (usize, usize),
) -> Vec<Round> {
    let n = members.len();
    let round = |step| {
        let (out, into) = parts(step);
        Round::Exchange {
            to: members[(me + 1) % n],
            out: bounds[out]..bounds[out + 1],
            from: members[(me + n - 1) % n],
            into: bounds[into]..bounds[into + 1],
            combines,
        }
    };
    (0..n - 1).map(round).collect()
}

/// Reduces as [`reduce_scatter_rounds`] say, in messages of at most `segment` elements.
pub(crate) fn reduce_scatter_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    reduce_scatter_rounds(members, me, bounds).iter().for_each(|r| r.push(s, segment));
}

/// Gathers as [`all_gather_rounds`] say, in messages of at most `segment` elements.
pub(crate) fn all_gather_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    all_gather_rounds(members, me, bounds).iter().for_each(|r| r.push(s, segment));
}
