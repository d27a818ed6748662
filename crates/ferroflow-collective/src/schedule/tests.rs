//! Tests of every schedule, for every number of ranks, in random orders that its dependencies
//! allow.

use super::*;
use std::collections::{HashMap, VecDeque};

/// Runs the schedules of all ranks on `buffers`, with random choices among the steps that may run.
/// Wrapping sums of distinct values show which contributions arrived, and how often.
fn run(schedules: &[Schedule], buffers: &mut [Vec<u64>], seed: u64) {
    run_from(None, schedules, buffers, seed);
}

/// The same, with sends that read from separate buffers.
fn run_from(
    sources: Option<&[Vec<u64>]>,
    schedules: &[Schedule],
    buffers: &mut [Vec<u64>],
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    let n = schedules.len();
    let mut wires: HashMap<(usize, usize), VecDeque<Vec<u64>>> = HashMap::new();
    let mut done: Vec<Vec<bool>> = schedules.iter().map(|s| vec![false; s.steps().len()]).collect();
    loop {
        let mut ready = Vec::new();
        for rank in 0..n {
            // One send queue and one receive queue per peer, first in first out.
            let mut heads = std::collections::HashSet::new();
            for (i, step) in schedules[rank].steps().iter().enumerate() {
                if done[rank][i] {
                    continue;
                }
                let (queue, arrived) = match step.action {
                    ScheduleAction::Send { to } => ((0, to), true),
                    ScheduleAction::Reduce { from } | ScheduleAction::Store { from } => {
                        let wire = wires.get(&(from as usize, rank));
                        ((1, from), wire.is_some_and(|w| !w.is_empty()))
                    }
                    ScheduleAction::Finish => ((2, i as u32), true),
                };
                let waits = schedules[rank].after(step).iter().any(|&d| !done[rank][d as usize]);
                if heads.insert(queue) && arrived && !waits {
                    ready.push((rank, i));
                }
            }
        }
        if ready.is_empty() {
            break;
        }
        let (rank, i) = ready[random.usize(..ready.len())];
        let step = &schedules[rank].steps()[i];
        match step.action {
            ScheduleAction::Send { to } => {
                let source = sources.map_or(&buffers[rank], |s| &s[rank]);
                let message = source[step.range.clone()].to_vec();
                wires.entry((rank, to as usize)).or_default().push_back(message);
            }
            ScheduleAction::Reduce { from } | ScheduleAction::Store { from } => {
                let message = wires.get_mut(&(from as usize, rank)).unwrap().pop_front().unwrap();
                assert_eq!(message.len(), step.range.len(), "both sides agree on the length");
                for (d, s) in buffers[rank][step.range.clone()].iter_mut().zip(message) {
                    let sum = matches!(step.action, ScheduleAction::Reduce { .. });
                    *d = if sum { d.wrapping_add(s) } else { s };
                }
            }
            ScheduleAction::Finish => {
                for d in &mut buffers[rank][step.range.clone()] {
                    *d = d.wrapping_add(1 << 60);
                }
            }
        }
        done[rank][i] = true;
    }
    assert!(done.iter().flatten().all(|&d| d), "no schedule is stuck");
    assert!(wires.values().all(VecDeque::is_empty), "nothing is left over");
}

fn value(rank: usize, i: usize) -> u64 {
    (1 << (rank * 6)) + ((i as u64 % 50) << 56).wrapping_mul(rank as u64 * 2 + 1)
}

fn inputs(n: usize, count: usize) -> Vec<Vec<u64>> {
    (0..n).map(|r| (0..count).map(|i| value(r, i)).collect()).collect()
}

fn total(n: usize, i: usize) -> u64 {
    (0..n).fold(0u64, |sum, r| sum.wrapping_add(value(r, i)))
}

const COUNTS: [usize; 6] = [0, 1, 7, 16, 33, 64];

/// Several windows, with one, two or three in flight at a time.
fn check_windows(make: impl Fn(usize, usize, usize, Windows) -> Schedule) {
    for ahead in 1..=3 {
        check_all_reduce(|n, me, count, piece| make(n, me, count, Windows { piece, ahead }));
    }
}

fn check_all_reduce(make: impl Fn(usize, usize, usize, usize) -> Schedule) {
    for n in 1..=9 {
        for count in COUNTS {
            for segment in [3, 1000] {
                let schedules: Vec<_> = (0..n).map(|r| make(n, r, count, segment)).collect();
                let mut buffers = inputs(n, count);
                run(&schedules, &mut buffers, (n * count + segment) as u64);
                for buffer in &buffers {
                    for (i, &x) in buffer.iter().enumerate() {
                        let finished = total(n, i).wrapping_add(1 << 60);
                        assert_eq!(x, finished, "n {n} count {count} segment {segment} at {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_rooted_reduce_sums_every_element_once_on_its_root() {
    for make in [reduce_serial, reduce_tree] {
        for n in 1..=9 {
            for (root, count) in (0..n).flat_map(|root| COUNTS.map(|count| (root, count))) {
                let schedules: Vec<_> = (0..n).map(|me| make(n, me, root, count, 7)).collect();
                let mut buffers = inputs(n, count);
                run(&schedules, &mut buffers, (n * 7 + root) as u64);
                for (i, &x) in buffers[root].iter().enumerate() {
                    let finished = total(n, i).wrapping_add(1 << 60);
                    assert_eq!(x, finished, "n {n} root {root} count {count} at {i}");
                }
            }
        }
    }
}

#[test]
fn a_ring_sums_and_finishes_every_element_once() {
    check_windows(ring_all_reduce);
}

#[test]
fn recursive_doubling_sums_and_finishes_every_element_once() {
    check_all_reduce(doubling_all_reduce);
}

#[test]
fn halving_doubling_sums_and_finishes_every_element_once() {
    check_windows(halving_doubling_all_reduce);
}

#[test]
fn a_double_tree_sums_and_finishes_every_element_once() {
    check_all_reduce(double_tree_all_reduce);
}

#[test]
fn a_hierarchy_sums_and_finishes_every_element_once() {
    // The ranks of a host need not be consecutive.
    check_windows(|n, me, count, windows| {
        let hosts: Vec<u32> = (0..n as u32).map(|r| r * r % 3).collect();
        hierarchical_all_reduce(&hosts, me, count, windows)
    });
    // Equal hosts, unequal hosts, one host, as many hosts as ranks.
    for per_host in [1, 2, 9] {
        check_windows(|n, me, count, windows| {
            let hosts: Vec<u32> = (0..n as u32).map(|r| r / per_host).collect();
            hierarchical_all_reduce(&hosts, me, count, windows)
        });
    }
}

#[test]
fn gathers_copy_uneven_ranges_to_all_ranks() {
    for n in 1..=9usize {
        for segment in [2, 100] {
            let mut bounds = vec![0];
            (0..n).for_each(|r| bounds.push(bounds[r] + (r * 5) % 7));
            let members: Vec<u32> = (0..n as u32).collect();
            for ring in [true, false] {
                let schedules: Vec<Schedule> = (0..n)
                    .map(|me| {
                        if !ring {
                            return all_gather_direct(n, me, &bounds, segment);
                        }
                        let mut s = Schedule::default();
                        all_gather_ring(&mut s, &members, me, &bounds, segment);
                        s
                    })
                    .collect();
                let mut buffers = inputs(n, bounds[n]);
                run(&schedules, &mut buffers, n as u64);
                for buffer in &buffers {
                    for owner in 0..n {
                        for i in bounds[owner]..bounds[owner + 1] {
                            assert_eq!(buffer[i], value(owner, i));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn all_to_all_delivers_the_values_for_each_rank() {
    for n in 1..=9usize {
        for segment in [2, 100] {
            // Some pairs exchange nothing, and few send as much as they receive.
            let count = |from: usize, to: usize| (from * 3 + to * 5) % 7;
            let starts = |counts: &mut dyn Iterator<Item = usize>| {
                counts.fold(vec![0], |mut all, c| {
                    all.push(all[all.len() - 1] + c);
                    all
                })
            };
            let sent: Vec<Vec<usize>> =
                (0..n).map(|me| starts(&mut (0..n).map(|to| count(me, to)))).collect();
            let got: Vec<Vec<usize>> =
                (0..n).map(|me| starts(&mut (0..n).map(|from| count(from, me)))).collect();
            let schedules: Vec<Schedule> = (0..n)
                .map(|me| {
                    let (out, into) = (&sent[me], &got[me]);
                    let (send, recv) = (|r| out[r]..out[r + 1], |r| into[r]..into[r + 1]);
                    all_to_all(n, me, send, recv, segment)
                })
                .collect();
            let sources: Vec<Vec<u64>> =
                (0..n).map(|me| (0..sent[me][n]).map(|i| value(me, i)).collect()).collect();
            let mut buffers: Vec<Vec<u64>> = got.iter().map(|g| vec![u64::MAX; g[n]]).collect();
            run_from(Some(&sources), &schedules, &mut buffers, (n + segment) as u64);
            for (me, buffer) in buffers.iter().enumerate() {
                for from in (0..n).filter(|&from| from != me) {
                    let theirs = &sources[from][sent[from][me]..sent[from][me + 1]];
                    assert_eq!(&buffer[got[me][from]..got[me][from + 1]], theirs);
                }
                // The caller copies its own values.
                assert!(buffer[got[me][me]..got[me][me + 1]].iter().all(|&x| x == u64::MAX));
            }
        }
    }
}

#[test]
fn workers_with_servers_sum_and_finish_every_element_once() {
    for (n, k) in [(1, 1), (2, 1), (3, 3), (4, 2), (5, 7), (6, 1)] {
        for count in COUNTS {
            for (segment, servers_only) in [(3, false), (1000, true)] {
                let bounds = push_pull_bounds(n, k, count, servers_only);
                let schedules: Vec<_> =
                    (0..n + k).map(|me| push_pull(n, k, me, &bounds, segment)).collect();
                let mut buffers = inputs(n, count);
                // The initial content of a server's buffer must not matter.
                buffers.resize(n + k, vec![u64::MAX / 3; count]);
                run(&schedules, &mut buffers, (n * count + segment) as u64);
                for buffer in &buffers[..n] {
                    for (i, &x) in buffer.iter().enumerate() {
                        assert_eq!(x, total(n, i).wrapping_add(1 << 60), "{n} and {k} at {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_broadcast_copies_the_values_of_any_root() {
    for n in 1..=9 {
        for root in 0..n {
            for make in [broadcast_tree, broadcast_chain] {
                let schedules: Vec<_> = (0..n).map(|me| make(n, me, root, 20, 6)).collect();
                let mut buffers = inputs(n, 20);
                run(&schedules, &mut buffers, root as u64);
                assert!(buffers.iter().all(|b| *b == inputs(n, 20)[root]));
            }
        }
    }
}

#[test]
fn a_send_waits_for_writes_and_a_write_waits_for_sends() {
    let mut s = Schedule::default();
    s.send(1, 0..4);
    s.reduce(1, 2..6);
    s.send(2, 5..8);
    s.reduce(2, 0..2);
    let after: Vec<&[u32]> = s.steps().iter().map(|step| s.after(step)).collect();
    assert_eq!(after, [&[][..], &[0], &[1], &[0]]);
}
