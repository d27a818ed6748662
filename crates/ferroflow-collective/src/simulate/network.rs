//! A discrete-event simulation of schedules: it computes when messages start and arrive.
//!
//! Ranks that are not simulated are mirror images of the rank that talks to them. A message to an
//! image arrives, at the same time, as a message from the corresponding image.

use crate::link_cost::LinkCostModel;
use crate::schedule::{Schedule, ScheduleAction};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A comparable time.
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

/// A queue with the earliest entry first.
type Queue<T> = BinaryHeap<Reverse<T>>;

/// Ranks and the links between them.
pub(super) struct SimulatedNetwork {
    ranks: Vec<Rank>,
}

/// The steps in which one rank sends to another, or receives from it, in order.
struct Lane {
    steps: Vec<u32>,
    next: usize,
    /// For sends: the receiving rank, and its lane.
    to: (u32, u32),
    /// For receives: messages that have arrived and are not consumed.
    arrived: u32,
}

struct Rank {
    schedule: Schedule,
    /// For each step: its lane, how many steps it waits for, and which steps wait for it.
    lane: Vec<u32>,
    waits: Vec<u32>,
    waiting: Vec<Vec<u32>>,
    lanes: Vec<Lane>,
    /// Sends that may start, by the time at which they became ready. Lanes alternate, as in the
    /// executor.
    sends: Queue<(At, u32)>,
    out_free: f64,
    in_free: f64,
    busy_until: f64,
}

/// An event of a rank. At equal times, steps end and messages arrive before a link chooses what to
/// send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A step ends.
    Done(u32),
    /// A message arrives on a lane.
    Arrives(u32),
    /// The outgoing link may be free and have something to send.
    Look,
}

/// Future events in order: time, event, rank.
type Events = Queue<(At, Event, u32)>;

/// The lane of a step that neither sends nor receives.
const NONE: u32 = u32::MAX;

impl SimulatedNetwork {
    /// A network of `ranks`, in ascending order, and of the mirror images with which they exchange.
    pub(super) fn new(ranks: &[usize], schedule: impl Fn(usize) -> Schedule) -> SimulatedNetwork {
        let mut built: Vec<(Rank, Vec<u32>, Vec<u32>)> =
            ranks.iter().map(|&me| Rank::new(schedule(me))).collect();
        let known = |peer: u32| ranks.binary_search(&(peer as usize)).ok();
        for i in 0..built.len() {
            let (rank, to, from) = &built[i];
            let mirrors = mirrors(&rank.schedule, |peer| known(peer).is_none());
            let lanes: Vec<(u32, u32)> = to
                .iter()
                .map(|&peer| {
                    let (other, seen_as) = match known(peer) {
                        Some(other) => (other, ranks[i] as u32),
                        None => {
                            let mirror = mirrors.iter().find(|m| m.0 == peer);
                            (i, mirror.expect("a rank that sends to an image receives from one").1)
                        }
                    };
                    let theirs = if other == i { from } else { &built[other].2 };
                    let lane = theirs.binary_search(&seen_as);
                    (other as u32, lane.expect("what is sent is received") as u32)
                })
                .collect();
            let rank = &mut built[i].0;
            let first = rank.lanes.len() - lanes.len();
            rank.lanes[first..].iter_mut().zip(lanes).for_each(|(lane, to)| lane.to = to);
        }
        SimulatedNetwork { ranks: built.into_iter().map(|b| b.0).collect() }
    }

    /// The number of steps of all simulated ranks.
    pub(super) fn steps(&self) -> usize {
        self.ranks.iter().map(|r| r.waits.len()).sum()
    }

    /// Seconds until the last step of the last rank, with values of `width` bytes.
    pub(super) fn seconds(mut self, width: usize, model: &LinkCostModel) -> f64 {
        let cost = Cost { width, model };
        let mut events = Events::new();
        let mut last = 0.0;
        for (me, rank) in self.ranks.iter_mut().enumerate() {
            for step in 0..rank.waits.len() as u32 {
                if rank.waits[step as usize] == 0 {
                    rank.is_free(step, me as u32, 0.0, &cost, &mut events);
                }
            }
        }
        while let Some(Reverse((At(time), event, me))) = events.pop() {
            let rank = &mut self.ranks[me as usize];
            match event {
                Event::Done(step) => {
                    last = time;
                    rank.done(step, me, time, &cost, &mut events);
                }
                Event::Arrives(lane) => {
                    rank.lanes[lane as usize].arrived += 1;
                    rank.advance(lane, me, time, &cost, &mut events);
                }
                Event::Look if time < rank.out_free => {}
                Event::Look => {
                    let Some(Reverse((_, step))) = rank.sends.pop() else { continue };
                    let wire = rank.bytes(step, &cost) * model.beta;
                    rank.out_free = time + wire;
                    events.push(Reverse((At(rank.out_free), Event::Done(step), me)));
                    if !rank.sends.is_empty() {
                        events.push(Reverse((At(rank.out_free), Event::Look, me)));
                    }
                    let (to, lane) = rank.lanes[rank.lane[step as usize] as usize].to;
                    let other = &mut self.ranks[to as usize];
                    other.in_free = (time + model.alpha).max(other.in_free) + wire;
                    events.push(Reverse((At(other.in_free), Event::Arrives(lane), to)));
                }
            }
        }
        debug_assert!(
            self.ranks.iter().all(|r| r.lanes.iter().all(|l| l.next == l.steps.len())),
            "a schedule cannot proceed"
        );
        last
    }
}

/// The costs of bytes.
struct Cost<'a> {
    width: usize,
    model: &'a LinkCostModel,
}

/// For a schedule of equal ranks: pairs of the rank it sends to and the rank from which the
/// corresponding message arrives.
fn mirrors(schedule: &Schedule, is_image: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let peers = |sends: bool| {
        schedule.steps().iter().filter_map(move |step| match step.action {
            ScheduleAction::Send { to } if sends => Some(to),
            ScheduleAction::Reduce { from } | ScheduleAction::Store { from } if !sends => {
                Some(from)
            }
            _ => None,
        })
    };
    let mut all = Vec::new();
    let pairs = peers(true).filter(|&p| is_image(p)).zip(peers(false).filter(|&p| is_image(p)));
    for pair in pairs {
        if all.last() != Some(&pair) && !all.contains(&pair) {
            all.push(pair);
        }
    }
    all
}

impl Rank {
    /// A rank and the peers of its lanes: first those it receives from, then those it sends to, by
    /// number.
    fn new(schedule: Schedule) -> (Rank, Vec<u32>, Vec<u32>) {
        let steps = schedule.steps();
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for step in steps {
            match step.action {
                ScheduleAction::Send { to: peer } => to.push(peer),
                ScheduleAction::Reduce { from: peer } | ScheduleAction::Store { from: peer } => {
                    from.push(peer)
                }
                ScheduleAction::Finish => {}
            }
        }
        for peers in [&mut to, &mut from] {
            peers.sort_unstable();
            peers.dedup();
        }
        let mut lanes: Vec<Lane> = (0..from.len() + to.len())
            .map(|_| Lane { steps: Vec::new(), next: 0, to: (NONE, NONE), arrived: 0 })
            .collect();
        let place = |peers: &[u32], peer| peers.binary_search(&peer).expect("all peers are there");
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); steps.len()];
        let (mut lane, mut waits) = (Vec::new(), Vec::new());
        for (i, step) in steps.iter().enumerate() {
            let own = match step.action {
                ScheduleAction::Send { to: peer } => from.len() + place(&to, peer),
                ScheduleAction::Reduce { from: peer } | ScheduleAction::Store { from: peer } => {
                    place(&from, peer)
                }
                ScheduleAction::Finish => NONE as usize,
            };
            if let Some(lane) = lanes.get_mut(own) {
                lane.steps.push(i as u32);
            }
            lane.push(own as u32);
            let after = schedule.after(step);
            waits.push(after.len() as u32);
            after.iter().for_each(|&a| waiting[a as usize].push(i as u32));
        }
        let rank = Rank {
            schedule,
            lane,
            waits,
            waiting,
            lanes,
            sends: Queue::new(),
            out_free: 0.0,
            in_free: 0.0,
            busy_until: 0.0,
        };
        (rank, to, from)
    }

    fn bytes(&self, step: u32, cost: &Cost<'_>) -> f64 {
        (self.schedule.steps()[step as usize].range.len() * cost.width) as f64
    }

    /// Completes a step. Steps that waited for it may start, and its lane continues.
    fn done(&mut self, step: u32, me: u32, time: f64, cost: &Cost<'_>, events: &mut Events) {
        for next in std::mem::take(&mut self.waiting[step as usize]) {
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                self.is_free(next, me, time, cost, events);
            }
        }
        let lane = self.lane[step as usize];
        if lane != NONE {
            self.lanes[lane as usize].next += 1;
            self.advance(lane, me, time, cost, events);
        }
    }

    /// A step waits for no other step: it may be the next of its lane, or it completes immediately.
    fn is_free(&mut self, step: u32, me: u32, time: f64, cost: &Cost<'_>, events: &mut Events) {
        match self.lane[step as usize] {
            NONE => events.push(Reverse((At(time), Event::Done(step), me))),
            lane => self.advance(lane, me, time, cost, events),
        }
    }

    /// Starts the next step of a lane, if it is ready.
    fn advance(&mut self, index: u32, me: u32, time: f64, cost: &Cost<'_>, events: &mut Events) {
        let lane = &mut self.lanes[index as usize];
        let Some(&step) = lane.steps.get(lane.next) else { return };
        let sends = lane.to.0 != NONE;
        if self.waits[step as usize] > 0 || !sends && lane.arrived == 0 {
            return;
        }
        // Start a step only once: mark it as waiting for its own end.
        self.waits[step as usize] = 1;
        if sends {
            self.sends.push(Reverse((At(time), step)));
            events.push(Reverse((At(time.max(self.out_free)), Event::Look, me)));
            return;
        }
        lane.arrived -= 1;
        let mut end = time;
        if let ScheduleAction::Reduce { .. } = self.schedule.steps()[step as usize].action {
            end = end.max(self.busy_until) + self.bytes(step, cost) * cost.model.gamma;
            self.busy_until = end;
        }
        events.push(Reverse((At(end), Event::Done(step), me)));
    }
}
