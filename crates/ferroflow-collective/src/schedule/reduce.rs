//! Rooted reduce: the values of all ranks, combined on one of them.

use super::{Schedule, segments};

/// Every rank sends to `root`, which combines one after the other: n - 1 messages on one link.
pub(crate) fn reduce_serial(
    n: usize,
    me: usize,
    root: usize,
    count: usize,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    for range in segments(0..count, segment) {
        if me != root {
            s.send(root as u32, range);
            continue;
        }
        for from in (1..n).map(|i| (root + i) % n) {
            s.reduce(from as u32, range.clone());
        }
        s.finish(range);
    }
    s.built()
}

/// Combines along a binomial tree in log2(n) steps.
pub(crate) fn reduce_tree(
    n: usize,
    me: usize,
    root: usize,
    count: usize,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    let place = (me + n - root) % n;
    let rank = |place: usize| ((place + root) % n) as u32;
    for range in segments(0..count, segment) {
        let mut distance = 1;
        while distance < n {
            if place & distance != 0 {
                s.send(rank(place - distance), range.clone());
                break;
            }
            if place + distance < n {
                s.reduce(rank(place + distance), range.clone());
            }
            distance *= 2;
        }
        if place == 0 {
            s.finish(range);
        }
    }
    s.built()
}
