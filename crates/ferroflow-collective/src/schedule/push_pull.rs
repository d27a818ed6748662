//! All-reduce with servers. Every worker pushes each part of its values to the process that sums
//! that part, and pulls the sums. Both workers and servers sum parts. Servers have no values.

use super::{Schedule, segments};

/// The boundaries of the parts of `count` values: the parts of `n` workers, then the parts of `k`
/// servers.
///
/// The split makes all links equally busy. With values of `D` bytes, a worker that sums `a D` of
/// them sends and receives `2 (n - 1) a D` for that and `2 (1 - a) D` for the rest, half in each
/// direction. A server that sums `b D` sends and receives `n b D`. All are equal for `a = (n - k) /
/// (n² + kn - 2k)` and `b = 2 (n - 1) / (n² + kn - 2k)`. With more servers than workers, the
/// workers sum nothing.
pub(crate) fn push_pull_bounds(n: usize, k: usize, count: usize, servers_only: bool) -> Vec<usize> {
    let (workers, servers) = match (n, k) {
        (1, _) => (1, 0),
        (_, 0) => (1, 0),
        _ if servers_only || k >= n => (0, 1),
        _ => (n - k, 2 * (n - 1)),
    };
    let total = (n * workers + k * servers) as u128;
    let mut weight = 0u128;
    let mut bounds = vec![0];
    for i in 0..n + k {
        weight += if i < n { workers } else { servers } as u128;
        bounds.push((count as u128 * weight / total) as usize);
    }
    bounds
}

/// The schedule of process `me` among `n` workers and `k` servers, in this order.
pub(crate) fn push_pull(
    n: usize,
    k: usize,
    me: usize,
    bounds: &[usize],
    segment: usize,
) -> Schedule {
    let mut s = Schedule::default();
    let part = |i: usize| segments(bounds[i]..bounds[i + 1], segment);
    let all = n + k;
    if me < n {
        // Each worker starts with the next process, so that not all push to the same process first.
        for owner in (1..all).map(|d| (me + d) % all) {
            part(owner).for_each(|r| s.send(owner as u32, r));
        }
    }
    for range in part(me) {
        for worker in (0..n).filter(|&w| w != me) {
            // A server's buffer is undefined until the first worker's values are in it.
            if me >= n && worker == 0 {
                s.store(0, range.clone());
            } else {
                s.reduce(worker as u32, range.clone());
            }
        }
        s.finish(range.clone());
        for worker in (1..all).map(|d| (me + d) % all).filter(|&w| w < n) {
            s.send(worker as u32, range.clone());
        }
    }
    if me < n {
        for owner in (1..all).map(|d| (me + d) % all) {
            part(owner).for_each(|r| s.store(owner as u32, r));
        }
    }
    s.built()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleAction;

    #[test]
    fn all_links_are_equally_busy_and_servers_reduce_the_load() {
        let count = 1_000_000;
        let mut before = f64::INFINITY;
        for k in 0..=4 {
            let bounds = push_pull_bounds(4, k, count, false);
            let busiest: Vec<f64> = (0..4 + k)
                .map(|me| {
                    let sent = |s: &super::super::ScheduleStep| {
                        matches!(s.action, ScheduleAction::Send { .. })
                    };
                    let schedule = push_pull(4, k, me, &bounds, 10_000);
                    let steps = schedule.steps().iter().filter(|s| sent(s));
                    steps.map(|s| s.range.len()).sum::<usize>() as f64
                })
                .collect();
            let most = busiest.iter().copied().fold(0.0, f64::max);
            let formula = 2.0 * 4.0 * 3.0 / (16.0 + 4.0 * k as f64 - 2.0 * k as f64);
            assert!((most / count as f64 - formula).abs() < 1e-3, "{k}: {busiest:?}");
            assert!(busiest.iter().all(|b| b / most > 0.999), "{k}: {busiest:?}");
            assert!(most < before);
            before = most;
        }
    }

    #[test]
    fn the_parts_cover_all_values_for_any_number_of_servers() {
        for (n, k, count) in [(1, 3, 7), (2, 5, 9), (3, 1, 0), (5, 2, 3), (4, 0, 10)] {
            for servers_only in [false, true] {
                let bounds = push_pull_bounds(n, k, count, servers_only);
                assert!(bounds.len() == n + k + 1 && bounds[0] == 0 && bounds[n + k] == count);
                assert!(bounds.is_sorted());
            }
        }
        assert_eq!(push_pull_bounds(2, 2, 8, true), [0, 0, 0, 4, 8]);
    }
}
