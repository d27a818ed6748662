//! The real schedules on a network that is only calculated: thousands of ranks on one processor.
//!
//! Every rank has a link out and a link in, each of which carries one message at a time. A message
//! arrives `alpha` after it starts, takes `beta` a byte on both links, and `gamma` a byte to combine.

use crate::model::{Algorithm, Model, tree_segment};
use crate::schedule::{self, Action, Schedule, Windows};
use ferroflow_core::{Result, ensure};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Steps of all ranks together that are simulated at most.
const MOST_STEPS: usize = 40_000_000;

/// Seconds of an all-reduce of `bytes` (of `f32`) among `n` ranks, `local` of them on each host.
pub fn all_reduce_seconds(
    algorithm: Algorithm,
    n: usize,
    local: usize,
    bytes: usize,
    model: &Model,
) -> Result<f64> {
    ensure!(n >= 1 && local >= 1, InvalidArgument, "a simulation needs ranks");
    ensure!(algorithm != Algorithm::Shared, InvalidArgument, "shared memory is no network");
    let count = bytes / 4;
    let segment = match algorithm {
        Algorithm::DoubleTree => tree_segment(bytes) / 4,
        _ => (bytes / 4).max(1),
    };
    let hosts: Vec<u32> = (0..n).map(|r| (r / local) as u32).collect();
    let (mut schedules, mut steps) = (Vec::with_capacity(n), 0);
    for me in 0..n {
        let s = match algorithm {
            Algorithm::Doubling => schedule::doubling_all_reduce(n, me, count, segment),
            Algorithm::HalvingDoubling => {
                schedule::halving_doubling_all_reduce(n, me, count, Windows::WHOLE)
            }
            Algorithm::DoubleTree => schedule::double_tree_all_reduce(n, me, count, segment),
            Algorithm::Hierarchical => {
                schedule::hierarchical_all_reduce(&hosts, me, count, Windows::WHOLE)
            }
            Algorithm::Ring | Algorithm::Shared => {
                schedule::ring_all_reduce(n, me, count, Windows::WHOLE)
            }
        };
        steps += s.steps().len();
        ensure!(steps <= MOST_STEPS, ResourceExhausted, "{n} ranks are too many for {algorithm}");
        schedules.push(s);
    }
    Ok(seconds(&schedules, 4, model))
}

/// Time, made comparable.
#[derive(Clone, Copy, PartialEq)]
struct At(f64);
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Default)]
struct Rank {
    /// When each step was done; none if it is not yet.
    done: Vec<Option<f64>>,
    out_free: f64,
    in_free: f64,
    busy_until: f64,
    /// Steps by peer, first in first out: sends, and receives.
    sends: HashMap<u32, VecDeque<u32>>,
    recvs: HashMap<u32, VecDeque<u32>>,
    finishes: VecDeque<u32>,
    /// Arrival times of messages that no receive was ready for.
    arrived: HashMap<u32, VecDeque<f64>>,
    /// Peers whose first send is in the queue of events already.
    queued: HashMap<u32, u32>,
}

/// Seconds until the last rank has done its last step.
fn seconds(schedules: &[Schedule], width: usize, model: &Model) -> f64 {
    let mut ranks: Vec<Rank> = schedules.iter().map(prepare).collect();
    let mut events: BinaryHeap<Reverse<(At, u32, u32)>> = BinaryHeap::new();
    for rank in 0..ranks.len() {
        advance(&schedules[rank], &mut ranks[rank], rank as u32, width, model, &mut events);
    }
    while let Some(Reverse((At(time), rank, step))) = events.pop() {
        let (from, sent) = (rank as usize, &schedules[rank as usize].steps()[step as usize]);
        let Action::Send { to } = sent.action else { continue };
        let wire = (sent.range.len() * width) as f64 * model.beta;
        let start = time.max(ranks[from].out_free);
        if start > time {
            // The link is busy: look again when it is free.
            events.push(Reverse((At(start), rank, step)));
            continue;
        }
        let begins = (start + model.alpha).max(ranks[to as usize].in_free);
        let arrives = begins + wire;
        ranks[to as usize].in_free = arrives;
        let me = &mut ranks[from];
        me.out_free = start + wire;
        me.done[step as usize] = Some(start + wire);
        me.sends.entry(to).or_default().pop_front();
        me.queued.remove(&to);
        ranks[to as usize].arrived.entry(rank).or_default().push_back(arrives);
        for r in [from, to as usize] {
            advance(&schedules[r], &mut ranks[r], r as u32, width, model, &mut events);
        }
    }
    let last = ranks.iter().flat_map(|r| r.done.iter().flatten());
    last.fold(0.0, |a, &b| a.max(b))
}

fn prepare(schedule: &Schedule) -> Rank {
    let mut rank = Rank { done: vec![None; schedule.steps().len()], ..Rank::default() };
    for (i, step) in schedule.steps().iter().enumerate() {
        let i = i as u32;
        match step.action {
            Action::Send { to } => rank.sends.entry(to).or_default().push_back(i),
            Action::Reduce { from } | Action::Store { from } => {
                rank.recvs.entry(from).or_default().push_back(i);
            }
            Action::Finish => rank.finishes.push_back(i),
        }
    }
    rank
}

/// Does whatever the rank can do with what has arrived, and queues the sends that may start.
fn advance(
    schedule: &Schedule,
    rank: &mut Rank,
    me: u32,
    width: usize,
    model: &Model,
    events: &mut BinaryHeap<Reverse<(At, u32, u32)>>,
) {
    // When all that `step` waits for is done; none if something is not.
    let ready = |done: &[Option<f64>], step: u32| {
        let step = &schedule.steps()[step as usize];
        schedule.after(step).iter().try_fold(0f64, |t, &d| Some(t.max(done[d as usize]?)))
    };
    loop {
        let mut moved = false;
        for (from, queue) in &mut rank.recvs {
            let Some(arrived) = rank.arrived.get_mut(from) else { continue };
            while let (Some(&step), Some(&at)) = (queue.front(), arrived.front()) {
                let Some(free) = ready(&rank.done, step) else { break };
                let s = &schedule.steps()[step as usize];
                let work = match s.action {
                    Action::Reduce { .. } => (s.range.len() * width) as f64 * model.gamma,
                    _ => 0.0,
                };
                let end = at.max(free).max(rank.busy_until) + work;
                if work > 0.0 {
                    rank.busy_until = end;
                }
                rank.done[step as usize] = Some(end);
                queue.pop_front();
                arrived.pop_front();
                moved = true;
            }
        }
        while let Some(&step) = rank.finishes.front() {
            let Some(at) = ready(&rank.done, step) else { break };
            rank.done[step as usize] = Some(at);
            rank.finishes.pop_front();
            moved = true;
        }
        if !moved {
            break;
        }
    }
    for (&to, queue) in &rank.sends {
        let Some(&step) = queue.front() else { continue };
        if rank.queued.get(&to) == Some(&step) {
            continue;
        }
        if let Some(at) = ready(&rank.done, step) {
            rank.queued.insert(to, step);
            events.push(Reverse((At(at.max(rank.out_free)), me, step)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model { alpha: 10e-6, beta: 1e-9, gamma: 0.1e-9 };

    fn run(algorithm: Algorithm, n: usize, bytes: usize) -> f64 {
        all_reduce_seconds(algorithm, n, 1, bytes, &MODEL).unwrap()
    }

    #[test]
    fn the_schedules_take_what_the_formulas_say() {
        for (algorithm, n, bytes) in [
            (Algorithm::Ring, 8, 8 << 20),
            (Algorithm::Ring, 2, 4),
            (Algorithm::Doubling, 16, 64),
            (Algorithm::HalvingDoubling, 16, 16 << 20),
        ] {
            let (simulated, formula) =
                (run(algorithm, n, bytes), MODEL.seconds(algorithm, n, 1, bytes));
            let off = (simulated / formula - 1.0).abs();
            assert!(off < 0.1, "{algorithm} of {n}: {simulated} for {formula}");
        }
    }

    #[test]
    fn hundreds_of_ranks_are_no_trouble() {
        assert!(run(Algorithm::Ring, 200, 1 << 20) > run(Algorithm::HalvingDoubling, 200, 1 << 10));
        let layered = all_reduce_seconds(Algorithm::Hierarchical, 64, 8, 1 << 20, &MODEL).unwrap();
        assert!(layered > 0.0);
        assert_eq!(run(Algorithm::Ring, 1, 1 << 20), 0.0);
        assert!(all_reduce_seconds(Algorithm::Shared, 2, 1, 4, &MODEL).is_err());
    }
}
