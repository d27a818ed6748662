//! The moves of a collective, round by round, for display.
//!
//! They come from the schedules that ranks run. In one round a rank sends at most one message and
//! receives at most one.

use crate::group::ReduceAlgorithm;
use crate::link_cost::Algorithm;
use crate::schedule::{self, Schedule, ScheduleAction, Windows};
use ferroflow_core::{Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The most ranks whose moves are shown.
pub const MOST_RANKS: usize = 64;

/// A collective whose moves can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainedCollective {
    /// All-reduce.
    AllReduce(Algorithm),
    /// Rooted reduce to rank 0.
    Reduce(ReduceAlgorithm),
}

impl ExplainedCollective {
    /// All collectives that exchange messages.
    pub const ALL: [ExplainedCollective; 7] = [
        ExplainedCollective::AllReduce(Algorithm::Ring),
        ExplainedCollective::AllReduce(Algorithm::Doubling),
        ExplainedCollective::AllReduce(Algorithm::HalvingDoubling),
        ExplainedCollective::AllReduce(Algorithm::DoubleTree),
        ExplainedCollective::AllReduce(Algorithm::Hierarchical),
        ExplainedCollective::Reduce(ReduceAlgorithm::Serial),
        ExplainedCollective::Reduce(ReduceAlgorithm::Tree),
    ];

    /// The name in options and titles.
    pub fn name(self) -> &'static str {
        match self {
            ExplainedCollective::AllReduce(algorithm) => algorithm.name(),
            ExplainedCollective::Reduce(ReduceAlgorithm::Serial) => "reduce-serial",
            ExplainedCollective::Reduce(ReduceAlgorithm::Tree) => "reduce-tree",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedMove {
    /// The round, from 0.
    pub round: usize,
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// The chunks that it carries.
    pub chunks: Range<usize>,
    /// Whether the receiver adds the chunks to its own. Otherwise it copies them.
    pub adds: bool,
}

/// All messages of a collective.
#[derive(Clone, Debug)]
pub struct ExplainedMoves {
    /// Into how many chunks the buffer is cut.
    pub chunks: usize,
    /// The number of rounds.
    pub rounds: usize,
    /// The messages, in order of rounds.
    pub moves: Vec<ExplainedMove>,
}

/// The messages of a collective among `n` ranks, of which `local` are on each host.
pub fn explain(what: ExplainedCollective, n: usize, local: usize) -> Result<ExplainedMoves> {
    ensure!(
        (2..=MOST_RANKS).contains(&n),
        InvalidArgument,
        "the moves of {n} ranks cannot be shown: use 2 to {MOST_RANKS}"
    );
    ensure!(local >= 1, InvalidArgument, "a host must have at least one rank");
    // Every algorithm can cut this into equal chunks.
    let count = n * n.next_power_of_two() * 2;
    let windows = Windows { piece: count, ahead: 1 };
    let hosts: Vec<u32> = (0..n).map(|rank| (rank / local) as u32).collect();
    let of_rank = |me: usize| -> Result<Schedule> {
        Ok(match what {
            ExplainedCollective::AllReduce(algorithm) => match algorithm {
                Algorithm::Ring => schedule::ring_all_reduce(n, me, count, windows),
                Algorithm::Doubling => schedule::doubling_all_reduce(n, me, count, count),
                Algorithm::HalvingDoubling => {
                    schedule::halving_doubling_all_reduce(n, me, count, windows)
                }
                Algorithm::DoubleTree => schedule::double_tree_all_reduce(n, me, count, count),
                Algorithm::Hierarchical => {
                    schedule::hierarchical_all_reduce(&hosts, me, count, windows)
                }
                Algorithm::Shared => {
                    bail!(InvalidArgument, "the shared-memory algorithm sends no messages")
                }
            },
            ExplainedCollective::Reduce(ReduceAlgorithm::Serial) => {
                schedule::reduce_serial(n, me, 0, count, count)
            }
            ExplainedCollective::Reduce(ReduceAlgorithm::Tree) => {
                schedule::reduce_tree(n, me, 0, count, count)
            }
        })
    };
    let schedules = (0..n).map(of_rank).collect::<Result<Vec<_>>>()?;
    let messages = in_rounds(&schedules)?;
    let ends = messages.iter().flat_map(|m| [m.range.start, m.range.end]);
    let bounds: Vec<usize> = ends.collect::<BTreeSet<_>>().into_iter().collect();
    let chunk = |at: usize| bounds.partition_point(|&bound| bound < at);
    let moves: Vec<ExplainedMove> = messages
        .into_iter()
        .map(|Message { round, from, to, range, adds }| {
            let chunks = chunk(range.start)..chunk(range.end);
            ExplainedMove { round, from, to, chunks, adds }
        })
        .collect();
    let rounds = moves.iter().map(|m| m.round + 1).max().unwrap_or(0);
    Ok(ExplainedMoves { chunks: bounds.len().saturating_sub(1), rounds, moves })
}

struct Message {
    round: usize,
    from: u32,
    to: u32,
    range: Range<usize>,
    adds: bool,
}

/// A message that may be sent in this round: the steps of both ranks.
#[derive(Clone, Copy)]
struct Candidate {
    from: usize,
    send: usize,
    to: usize,
    receive: usize,
}

/// Runs the schedules in rounds.
fn in_rounds(schedules: &[Schedule]) -> Result<Vec<Message>> {
    let mut done: Vec<Vec<bool>> =
        schedules.iter().map(|schedule| vec![false; schedule.steps().len()]).collect();
    let mut messages = Vec::new();
    for round in 0.. {
        finish(schedules, &mut done);
        if done.iter().flatten().all(|&done| done) {
            break;
        }
        let chosen = candidates(schedules, &done);
        ensure!(!chosen.is_empty(), Internal, "the schedules block in round {round}");
        for Candidate { from, send, to, receive } in chosen {
            (done[from][send], done[to][receive]) = (true, true);
            let step = &schedules[to].steps()[receive];
            messages.push(Message {
                round,
                from: from as u32,
                to: to as u32,
                range: step.range.clone(),
                adds: matches!(step.action, ScheduleAction::Reduce { .. }),
            });
        }
    }
    Ok(messages)
}

/// Marks the steps that take no message and whose inputs are there.
fn finish(schedules: &[Schedule], done: &mut [Vec<bool>]) {
    for (schedule, done) in schedules.iter().zip(done) {
        for (i, step) in schedule.steps().iter().enumerate() {
            let is_ready = schedule.after(step).iter().all(|&before| done[before as usize]);
            if step.action == ScheduleAction::Finish && is_ready {
                done[i] = true;
            }
        }
    }
}

/// The messages of the next round.
fn candidates(schedules: &[Schedule], done: &[Vec<bool>]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut receiving = BTreeSet::new();
    for (from, schedule) in schedules.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for (send, step) in schedule.steps().iter().enumerate() {
            let ScheduleAction::Send { to } = step.action else { continue };
            // Messages to one rank keep their order.
            if done[from][send] || !seen.insert(to) {
                continue;
            }
            let to = to as usize;
            let is_ready = schedule.after(step).iter().all(|&before| done[from][before as usize]);
            let Some(receive) = next_receive(&schedules[to], &done[to], from as u32) else {
                continue;
            };
            if is_ready && !receiving.contains(&to) && is_received_first(schedules, done, to, from)
            {
                receiving.insert(to);
                found.push(Candidate { from, send, to, receive });
                break;
            }
        }
    }
    // A rank may overwrite in this round what it sends in this round, but nothing else.
    loop {
        let sent: BTreeMap<usize, usize> = found.iter().map(|c| (c.from, c.send)).collect();
        let before = found.len();
        found.retain(|c| {
            let schedule = &schedules[c.to];
            let step = &schedule.steps()[c.receive];
            schedule
                .after(step)
                .iter()
                .all(|&step| done[c.to][step as usize] || sent.get(&c.to) == Some(&(step as usize)))
        });
        if found.len() == before {
            return found;
        }
    }
}

/// The next receive of a rank from `from`.
fn next_receive(schedule: &Schedule, done: &[bool], from: u32) -> Option<usize> {
    let is_from = |action: ScheduleAction| match action {
        ScheduleAction::Reduce { from: rank } | ScheduleAction::Store { from: rank } => {
            rank == from
        }
        _ => false,
    };
    schedule.steps().iter().enumerate().position(|(i, step)| !done[i] && is_from(step.action))
}

/// Whether no other rank has a message that `to` must combine first.
fn is_received_first(schedules: &[Schedule], done: &[Vec<bool>], to: usize, from: usize) -> bool {
    let schedule = &schedules[to];
    let Some(receive) = next_receive(schedule, &done[to], from as u32) else { return false };
    let step = &schedule.steps()[receive];
    schedule.after(step).iter().all(|&before| {
        let action = schedule.steps()[before as usize].action;
        done[to][before as usize] || matches!(action, ScheduleAction::Send { .. })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(what: ExplainedCollective, n: usize) -> usize {
        explain(what, n, 2).unwrap().rounds
    }

    #[test]
    fn rounds_are_those_of_the_text_books() {
        use ExplainedCollective::{AllReduce, Reduce};
        for n in [2, 3, 4, 5, 8] {
            assert_eq!(rounds(AllReduce(Algorithm::Ring), n), 2 * (n - 1), "ring of {n}");
            assert_eq!(rounds(Reduce(ReduceAlgorithm::Serial), n), n - 1);
            let log = n.next_power_of_two().ilog2() as usize;
            assert_eq!(rounds(Reduce(ReduceAlgorithm::Tree), n), log);
        }
        for n in [2usize, 4, 8] {
            let log = n.ilog2() as usize;
            assert_eq!(rounds(AllReduce(Algorithm::Doubling), n), log);
            assert_eq!(rounds(AllReduce(Algorithm::HalvingDoubling), n), 2 * log);
        }
    }

    #[test]
    fn every_contribution_reaches_every_rank_once() {
        for what in ExplainedCollective::ALL {
            for n in 2..=9 {
                let shown = explain(what, n, 2).unwrap();
                // Which ranks' values are in each chunk of each rank.
                let mut held: Vec<Vec<u32>> =
                    (0..n).map(|rank| vec![1 << rank; shown.chunks]).collect();
                for round in 0..shown.rounds {
                    let before = held.clone();
                    let mut ports = BTreeSet::new();
                    for m in shown.moves.iter().filter(|m| m.round == round) {
                        let (from, to) = (m.from as usize, m.to as usize);
                        assert!(ports.insert((0, from)) && ports.insert((1, to)), "{what:?} {n}");
                        for chunk in m.chunks.clone() {
                            let value = before[from][chunk];
                            if m.adds {
                                assert_eq!(held[to][chunk] & value, 0, "{what:?} {n}: added twice");
                                held[to][chunk] |= value;
                            } else {
                                held[to][chunk] = value;
                            }
                        }
                    }
                }
                let whole = |rank: &Vec<u32>| rank.iter().all(|&v| v == (1 << n) - 1);
                match what {
                    ExplainedCollective::AllReduce(_) => assert!(held.iter().all(whole)),
                    ExplainedCollective::Reduce(_) => assert!(whole(&held[0])),
                }
            }
        }
    }

    #[test]
    fn moves_of_too_many_ranks_are_refused() {
        let ring = ExplainedCollective::AllReduce(Algorithm::Ring);
        assert!(explain(ring, 1, 1).is_err() && explain(ring, 65, 1).is_err());
        assert!(explain(ExplainedCollective::AllReduce(Algorithm::Shared), 4, 1).is_err());
    }
}
