//! The ring: every rank exchanges only with its two neighbours, and sends the least possible number
//! of bytes.

use super::Schedule;
use super::windows::Round;

/// The rounds in which the ranks of `members`, a ring in that order, reduce. Rank `members[i]` ends
/// with the range `bounds[i]..bounds[i + 1]` complete. `me` is an index into `members`.
pub(super) fn reduce_scatter_rounds(members: &[u32], me: usize, bounds: &[usize]) -> Vec<Round> {
    let n = members.len();
    // The chunk of rank i starts at rank i + 1 and arrives, complete, at rank i.
    around(members, me, bounds, true, |step| {
        ((me + 2 * n - 1 - step) % n, (me + 2 * n - 2 - step) % n)
    })
}

/// The rounds in which all ranks gather. Rank `members[i]` starts with the range
/// `bounds[i]..bounds[i + 1]`, and all end with all ranges.
pub(super) fn all_gather_rounds(members: &[u32], me: usize, bounds: &[usize]) -> Vec<Round> {
    let n = members.len();
    around(members, me, bounds, false, |step| ((me + n - step) % n, (me + 2 * n - 1 - step) % n))
}

/// The rounds of a ring. `parts` gives the parts that are sent and received in each round.
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

/// Reduces by [`reduce_scatter_rounds`], in messages of at most `segment` elements.
pub(crate) fn reduce_scatter_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    reduce_scatter_rounds(members, me, bounds).iter().for_each(|r| r.push(s, segment));
}

/// Gathers by [`all_gather_rounds`], in messages of at most `segment` elements.
pub(crate) fn all_gather_ring(
    s: &mut Schedule,
    members: &[u32],
    me: usize,
    bounds: &[usize],
    segment: usize,
) {
    all_gather_rounds(members, me, bounds).iter().for_each(|r| r.push(s, segment));
}
