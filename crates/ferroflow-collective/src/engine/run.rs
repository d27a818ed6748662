//! The thread of each rank that owns the group. It sends submissions to the coordinator and runs
//! its decisions.

mod reduce;

use super::coordinator_thread::CoordinatorEvent;
use super::mailbox::{Mailbox, Pending, panicked};
use super::phases::RankPhases;
use super::request::{Decision, IN_A_FRAME, KEPT, Piece, RankMessage, TensorRequest};
use super::timeline::Timeline;
use crate::compress::{Residuals, WireCompression};
use crate::control::Control;
use crate::group::{Group, SetId};
use crate::reduce::{self as arithmetic, ReduceOp};
use crate::schedule::even_bounds;
use crate::signature::OperationKind;
use ferroflow_core::{Result, ensure, err};
use reduce::travels;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// What the timeline records of a piece.
pub(super) struct Mark {
    pub tensor: String,
    pub what: &'static str,
    pub submitted: Option<Instant>,
    pub detail: String,
}

pub(super) struct Runner {
    group: Group,
    control: Arc<Control>,
    events: Sender<CoordinatorEvent>,
    /// Requests by their numbers, and the numbers by set and name.
    kept: HashMap<u32, TensorRequest>,
    numbers: HashMap<(u16, String), u32>,
    pending: HashMap<(u16, String), Pending>,
    joins: Vec<Sender<Result<u32>>>,
    residuals: Residuals,
    /// The buffer into which small tensors are fused.
    fused: Vec<u8>,
    timeline: Option<Timeline>,
    phases: Option<RankPhases>,
    /// How long a rank that leaves waits for the others to leave.
    shutdown_timeout: Duration,
    /// See [`EngineOptions::mean_counts_joined`](super::options::EngineOptions).
    mean_counts_joined: bool,
}

impl Runner {
    pub(super) fn new(
        group: Group,
        control: Arc<Control>,
        events: Sender<CoordinatorEvent>,
        timeline: Option<Timeline>,
        phases: Option<RankPhases>,
        shutdown_timeout: Duration,
        mean_counts_joined: bool,
    ) -> Runner {
        Runner {
            group,
            control,
            events,
            kept: HashMap::new(),
            numbers: HashMap::new(),
            pending: HashMap::new(),
            joins: Vec::new(),
            residuals: Residuals::default(),
            fused: Vec::new(),
            timeline,
            phases,
            shutdown_timeout,
            mean_counts_joined,
        }
    }

    pub(super) fn work(mut self, mailbox: &Mailbox) {
        // Complete all callers and the other ranks with an error, even after a panic.
        let end =
            catch_unwind(AssertUnwindSafe(|| self.serve(mailbox))).unwrap_or_else(|payload| {
                let who = format!("the engine of rank {}", self.group.rank());
                Err(self.group.fail(panicked(&who, &*payload)))
            });
        let end = end.err();
        let cause = end.unwrap_or_else(|| err!(Cancelled, "the engine has ended"));
        let mut state = mailbox.state.lock();
        state.ended = Some(cause.clone());
        mailbox.changed.notify_all();
        let late = std::mem::take(&mut state.submitted);
        let joins = std::mem::take(&mut state.joins);
        let timeline = state.timeline.take();
        drop(state);
        drop(timeline);
        for pending in late.into_iter().chain(self.pending.drain().map(|(_, p)| p)) {
            pending.end(Err(cause.clone()));
        }
        for join in joins.into_iter().chain(self.joins.drain(..)) {
            let _ = join.send(Err(cause.clone()));
        }
        let _ = self.events.send(CoordinatorEvent::Ended);
    }

    fn serve(&mut self, mailbox: &Mailbox) -> Result<()> {
        let mut shutdown_timeout: Option<Instant> = None;
        if self.group.rank() > 0 {
            let sets = self.group.sets().split_off(1);
            self.control.send_up(&RankMessage::encode_all(&[RankMessage::Sets(sets)]))?;
        }
        loop {
            let mut state = mailbox.state.lock();
            while state.submitted.is_empty()
                && state.decisions.is_empty()
                && state.joins.is_empty()
                && state.timeline.is_none()
                && !state.failed
                && !(state.leaving && shutdown_timeout.is_none())
            {
                match shutdown_timeout {
                    // The wait ends when the others leave, when one dies, or after the timeout.
                    Some(until) if mailbox.changed.wait_until(&mut state, until).timed_out() => {
                        return Ok(());
                    }
                    Some(_) => {}
                    None => mailbox.changed.wait(&mut state),
                }
            }
            let submitted = std::mem::take(&mut state.submitted);
            let decisions = std::mem::take(&mut state.decisions);
            let joins = std::mem::take(&mut state.joins);
            let leaving = state.leaving;
            let timeline = state.timeline.take();
            drop(state);
            if let Some((timeline, changed)) = timeline {
                self.timeline = timeline;
                drop(changed);
            }
            // Store submissions before anything can fail, so that their callers get the error.
            let mut messages: Vec<RankMessage> =
                submitted.into_iter().map(|p| self.message(p)).collect();
            if !joins.is_empty() && self.joins.is_empty() {
                messages.push(RankMessage::Join);
            }
            self.joins.extend(joins);
            self.group.alive()?;
            if leaving && shutdown_timeout.is_none() {
                shutdown_timeout = Some(Instant::now() + self.shutdown_timeout);
                messages.push(RankMessage::Leave);
            }
            for messages in messages.chunks(IN_A_FRAME) {
                self.control.send_up(&RankMessage::encode_all(messages))?;
            }
            for (arrived, decision) in decisions {
                match decision {
                    Decision::AllLeft => return Ok(()),
                    // A rank that is leaving, or a server, needs no more decisions.
                    Decision::Closed if shutdown_timeout.is_some() || self.group.is_server() => {
                        return Ok(());
                    }
                    Decision::Closed => {
                        return Err(match self.control.parent() {
                            0 => err!(Unavailable, "rank 0, the coordinator, has left"),
                            parent => err!(
                                Unavailable,
                                "rank {parent}, which passes decisions on to this rank, has left"
                            ),
                        });
                    }
                    _ => {}
                }
                self.apply(decision, arrived, mailbox)?;
            }
        }
    }

    /// Stores a submission, and returns the message for the coordinator.
    fn message(&mut self, pending: Pending) -> RankMessage {
        if let Some(phases) = &mut self.phases {
            phases.submitted(pending.request.set, &pending.request.name, pending.since);
        }
        let key = (pending.request.set, pending.request.name.clone());
        let known = self.numbers.get(&key).filter(|id| self.kept.get(id) == Some(&pending.request));
        let message = match known {
            Some(&id) => RankMessage::Resubmit(id),
            None => RankMessage::Submit(pending.request.clone()),
        };
        self.pending.insert(key, pending);
        message
    }

    fn apply(&mut self, decision: Decision, arrived: Instant, mailbox: &Mailbox) -> Result<()> {
        match decision {
            Decision::Keep { id, request } => {
                if id < KEPT {
                    self.numbers.insert((request.set, request.name.clone()), id);
                }
                self.kept.insert(id, request);
            }
            Decision::Run { pieces, absent } => {
                let later = self.set_aside(&pieces, &absent);
                let marks = self.timeline.is_some().then(|| self.marks(&pieces, arrived));
                let kind = pieces.first().and_then(|p| self.kept.get(&p.id)).map(|r| r.kind.name());
                let start = Instant::now();
                let ran = self.run(&pieces, &absent, mailbox);
                self.pending.extend(later);
                let bytes = ran.map_err(|e| self.group.fail(e))?;
                if let (Some(phases), Some(kind)) = (&mut self.phases, kind) {
                    phases.ran(kind, bytes, arrived, start, Instant::now());
                }
                if let (Some(timeline), Some(marks)) = (&mut self.timeline, marks) {
                    timeline.ran(marks, arrived, start);
                }
                for piece in pieces.iter().filter(|p| p.id >= KEPT) {
                    let last =
                        |r: &TensorRequest| piece.start.saturating_add(piece.len) >= r.count();
                    if self.kept.get(&piece.id).is_some_and(last) {
                        self.kept.remove(&piece.id);
                    }
                }
                if self.group.rank() == 0 {
                    let _ = self.events.send(CoordinatorEvent::Ran(bytes));
                }
            }
            Decision::Fail { absent, .. } if absent.contains(&(self.group.rank() as u32)) => {}
            Decision::Fail { set, name, cause, .. } => {
                self.finish(&(set, name), Err(cause), mailbox)
            }
            Decision::AllJoined { last } => {
                for join in self.joins.drain(..) {
                    let _ = join.send(Ok(last));
                }
            }
            Decision::NotJoined { cause } => {
                for join in self.joins.drain(..) {
                    let _ = join.send(Err(cause.clone()));
                }
            }
            Decision::AllLeft | Decision::Closed => {}
        }
        Ok(())
    }

    /// If this rank is `absent`, takes out its submissions that are newer than the decision to run
    /// these pieces.
    fn set_aside(&mut self, pieces: &[Piece], absent: &[u32]) -> Vec<((u16, String), Pending)> {
        if !absent.contains(&(self.group.rank() as u32)) {
            return Vec::new();
        }
        let keys = pieces.iter().filter_map(|p| self.key(p).ok()).collect::<Vec<_>>();
        keys.iter().filter_map(|key| self.pending.remove_entry(key)).collect()
    }

    /// What the timeline records of pieces that are about to run.
    fn marks(&self, pieces: &[Piece], arrived: Instant) -> Vec<Mark> {
        let mark = |p: &Piece| {
            let request = self.kept.get(&p.id)?;
            let pending = self.pending.get(&(request.set, request.name.clone()));
            Some(Mark {
                tensor: request.name.clone(),
                what: request.kind.name(),
                // Record the negotiation once per tensor, with its first piece.
                submitted: pending.filter(|_| p.start == 0).map(|p| p.since.min(arrived)),
                detail: format!("{} of {}, {} together", p.len, request.count(), pieces.len()),
            })
        };
        pieces.iter().filter_map(mark).collect()
    }

    /// Returns a tensor to its caller.
    fn finish(&mut self, key: &(u16, String), result: Result<Vec<usize>>, mailbox: &Mailbox) {
        if let Some(pending) = self.pending.remove(key) {
            mailbox.state.lock().names.remove(key);
            pending.end(result);
        }
    }

    /// Runs one collective. Returns its number of bytes.
    fn run(&mut self, pieces: &[Piece], absent: &[u32], mailbox: &Mailbox) -> Result<u64> {
        let joined = absent.len() as u32;
        let known = pieces.first().and_then(|p| self.kept.get(&p.id)).cloned();
        let first = known
            .ok_or_else(|| err!(DataLoss, "rank 0 runs a request that it did not announce"))?;
        let set = SetId(first.set);
        let members = self.group.members(set)?;
        let me = self.group.rank() as u32;
        if !members.contains(&me) {
            return self.help(pieces, &first, joined).map(|()| 0);
        }
        if !absent.contains(&me) {
            for piece in pieces {
                let key = self.key(piece)?;
                let name = &key.1;
                let is_there = self.pending.contains_key(&key);
                ensure!(
                    is_there,
                    DataLoss,
                    "rank 0 runs tensor {name:?}, which was not submitted here"
                );
            }
        }
        let all = members.len() as u32;
        // The ranks that a mean is divided by.
        let active = if self.mean_counts_joined { all } else { all - joined.min(all) };
        let key = (first.set, first.name.clone());
        match first.kind {
            OperationKind::AllReduce => {
                match first.compression {
                    WireCompression::TopK(_) | WireCompression::OneBit => {
                        self.reduce_lossy(&first, active)?
                    }
                    _ => self.reduce(pieces, &first, joined, active)?,
                }
                let mut bytes = 0;
                for piece in pieces {
                    let Some(request) = self.kept.get(&piece.id) else { continue };
                    bytes += piece.len * request.dtype.size().unwrap_or(1) as u64;
                    let key = (request.set, request.name.clone());
                    let Some(pending) = self.pending.get_mut(&key) else { continue };
                    pending.left = pending.left.saturating_sub(piece.len);
                    if pending.left == 0 {
                        self.finish(&key, Ok(Vec::new()), mailbox);
                    }
                }
                return Ok(bytes);
            }
            OperationKind::Adasum => {
                let mut none;
                let bytes = match self.pending.get_mut(&key) {
                    Some(pending) => pending.payload.bytes()?,
                    // Zeros do not change the result of the other ranks.
                    None => {
                        none = zeros(&first)?;
                        &mut none[..]
                    }
                };
                self.group.adasum_in(set, first.dtype, bytes)?;
                self.finish(&key, Ok(Vec::new()), mailbox);
            }
            // These never appear in a request: an all-reduce may become a push-pull, and only
            // groups reduce to one rank.
            OperationKind::PushPull | OperationKind::Reduce => {
                return Err(err!(DataLoss, "rank 0 runs an operation that no rank can request"));
            }
            OperationKind::Barrier => self.finish(&key, Ok(Vec::new()), mailbox),
            OperationKind::ProcessSet => {
                let ranks: Vec<usize> = first.shape.iter().map(|&r| r as usize).collect();
                let set = self.group.add_set(&ranks)?;
                mailbox.state.lock().sets.push(self.group.members(set)?.into());
                self.finish(&key, Ok(vec![usize::from(set.0)]), mailbox);
            }
            OperationKind::Broadcast => {
                let mut none;
                let bytes = match self.pending.get_mut(&key) {
                    Some(pending) => pending.payload.bytes()?,
                    None => {
                        none = zeros(&first)?;
                        &mut none[..]
                    }
                };
                self.group.broadcast_in(set, first.dtype, bytes, first.root as usize)?;
                self.finish(&key, Ok(Vec::new()), mailbox);
            }
            OperationKind::AllGather => {
                let mine = match self.pending.get_mut(&key) {
                    Some(p) => p.payload.bytes()?,
                    None => &mut [],
                };
                let (all, counts) = self.group.all_gather_uneven_in(set, first.dtype, mine)?;
                self.give(&key, &all)?;
                self.finish(&key, Ok(counts), mailbox);
            }
            OperationKind::AllToAll => {
                let n = self.group.members(set)?.len();
                let (mut nothing, mut splits) = (Vec::new(), vec![0; n]);
                let mine = match self.pending.get_mut(&key) {
                    Some(p) => {
                        splits.clone_from(&p.splits);
                        p.payload.bytes()?
                    }
                    None => &mut nothing[..],
                };
                let (all, counts) =
                    self.group.all_to_all_uneven_in(set, first.dtype, mine, &splits)?;
                self.give(&key, &all)?;
                self.finish(&key, Ok(counts), mailbox);
            }
            OperationKind::ReduceScatter => {
                let width = first.dtype.size().unwrap_or(1);
                let mut bytes = zeros(&first)?;
                match self.pending.get_mut(&key) {
                    Some(pending) => bytes.copy_from_slice(pending.payload.bytes()?),
                    None => arithmetic::fill_identity(first.op, first.dtype, &mut bytes),
                }
                let op =
                    if joined > 0 && first.op == ReduceOp::Mean { ReduceOp::Sum } else { first.op };
                // Split between whole rows. In a flat tensor, a row is one value.
                let rows = first.shape.first().copied().unwrap_or(1) as usize;
                let each = first.count() as usize / rows.max(1);
                let bounds = even_bounds(rows, self.group.members(set)?.len());
                let counts: Vec<usize> = bounds.windows(2).map(|b| (b[1] - b[0]) * each).collect();
                let part = self.group.reduce_scatter_in(
                    set,
                    first.dtype,
                    &mut bytes,
                    Some(&counts),
                    op,
                )?;
                let part = &mut bytes[part.start * width..part.end * width];
                if op != first.op {
                    arithmetic::finish(ReduceOp::Mean, first.dtype, part, active);
                }
                let part = part.to_vec();
                self.give(&key, &part)?;
                self.finish(&key, Ok(Vec::new()), mailbox);
            }
        }
        Ok(first.count() * first.dtype.size().unwrap_or(1) as u64)
    }

    /// A server's part in a collective of the ranks.
    fn help(&mut self, pieces: &[Piece], first: &TensorRequest, joined: u32) -> Result<()> {
        let sums = first.kind == OperationKind::AllReduce && SetId(first.set) == SetId::WORLD;
        let lossy = matches!(first.compression, WireCompression::TopK(_) | WireCompression::OneBit);
        // A group of one has nothing to sum.
        if !self.group.is_server() || !sums || lossy || self.group.size() == 1 {
            return Ok(());
        }
        let (dtype, op) = travels(first, joined);
        let count: u64 = pieces.iter().map(|p| p.len).sum();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.group.serve_all_reduce(dtype, count, op)
    }

    fn give(&mut self, key: &(u16, String), values: &[u8]) -> Result<()> {
        match self.pending.get_mut(key) {
            Some(pending) => pending.payload.replace(values),
            None => Ok(()),
        }
    }

    fn key(&self, piece: &Piece) -> Result<(u16, String)> {
        let request = self.kept.get(&piece.id);
        let request = request
            .ok_or_else(|| err!(DataLoss, "rank 0 runs a request that it did not announce"))?;
        Ok((request.set, request.name.clone()))
    }
}

/// A zeroed buffer for the whole tensor. An error if no machine has that much memory.
fn zeros(request: &TensorRequest) -> Result<Vec<u8>> {
    let width = request.dtype.size().unwrap_or(1) as u64;
    let bytes = request.count().checked_mul(width).filter(|&b| b < 1 << 46);
    let too_many = || err!(ResourceExhausted, "tensor {:?} is too large", request.name);
    crate::group::zeroed(bytes.ok_or_else(too_many)? as usize)
}
