//! Collectives in which all ranks exchange directly: all-gather of short buffers, all-to-all,
//! barrier.

use super::{Schedule, segments};
use std::ops::Range;

/// Every rank sends its range to all others at once, so the latency is that of one message.
pub(crate) fn all_gather_direct(n: usize, me: usize, bounds: &[usize], segment: usize) -> Schedule {
    let mut s = Schedule::default();
    for other in 1..n {
        let to = (me + other) % n;
        segments(bounds[me]..bounds[me + 1], segment).for_each(|r| s.send(to as u32, r));
    }
    for other in 1..n {
        let from = (me + n - other) % n;
        segments(bounds[from]..bounds[from + 1], segment).for_each(|r| s.store(from as u32, r));
    }
    s.built()
}

/// Every rank sends different values to each other rank. `send(r)` is the range of the source for
/// rank `r`, and `recv(r)` is the range of the destination for the values from `r`. The caller
/// copies its own values.
pub(crate) fn all_to_all(
    n: usize,
    me: usize,
    send: impl Fn(usize) -> Range<usize>,
    recv: impl Fn(usize) -> Range<usize>,
    segment: usize,
) -> Schedule {
    let mut s = Schedule::with_separate_source();
    for other in 1..n {
        let (to, from) = ((me + other) % n, (me + n - other) % n);
        segments(send(to), segment).for_each(|r| s.send(to as u32, r));
        segments(recv(from), segment).for_each(|r| s.store(from as u32, r));
    }
    s.built()
}

/// Exchanges empty messages at distances 1, 2, 4, …, so that no rank leaves before all have
/// entered.
pub(crate) fn barrier(n: usize, me: usize) -> Vec<Schedule> {
    let mut rounds = Vec::new();
    let mut distance = 1;
    while distance < n {
        let mut s = Schedule::default();
        s.send(((me + distance) % n) as u32, 0..0);
        s.store(((me + n - distance) % n) as u32, 0..0);
        rounds.push(s.built());
        distance *= 2;
    }
    rounds
}
