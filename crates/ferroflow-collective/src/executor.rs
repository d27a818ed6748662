//! Runs a [`Schedule`] over a [`Mesh`], in place on the caller's buffer.
//!
//! One thread serves all streams and never blocks on a single step: it moves bytes on every stream
//! that is ready. Data for a reduction is combined block by block while it is in the cache. Data
//! that arrives before its range is free is stored separately, so that two ranks that send to each
//! other do not deadlock.

use crate::mesh::Mesh;
use crate::reduce::{self, ReduceOp};
use crate::schedule::{Schedule, ScheduleAction, ScheduleStep};
use crate::signature::{HEADER, MessageHeader, Signature};
use ferroflow_core::{DType, Error, Result, err};
use std::time::Instant;

/// Bytes that are received before they are combined.
const BLOCK: usize = 256 << 10;

/// One collective on one rank.
pub(crate) struct ScheduleJob<'a> {
    pub signature: Signature,
    pub sequence: u32,
    pub schedule: &'a Schedule,
    /// Ranks of the mesh by ranks of the schedule.
    pub members: &'a [u32],
    pub me: usize,
    pub dtype: DType,
    pub op: ReduceOp,
    /// The number of ranks with values. A mean is divided by it.
    pub ranks: u32,
    /// The bytes to send. If `None`, they come from `buffer`.
    pub source: Option<&'a [u8]>,
    pub buffer: &'a mut [u8],
    pub deadline: Instant,
}

/// Memory that is reused by later jobs: data that has arrived from each member but cannot be used
/// yet.
#[derive(Default)]
pub(crate) struct Scratch {
    lanes: Vec<Lane>,
    /// The members that the job exchanges messages with: a few of a large group.
    active: Vec<usize>,
    done: Vec<bool>,
    sending: Vec<usize>,
    receiving: Vec<usize>,
}

/// The traffic with one member.
#[derive(Default)]
struct Lane {
    sends: Vec<u32>,
    next_send: usize,
    sent: usize,
    recvs: Vec<u32>,
    next_recv: usize,
    header: [u8; HEADER],
    header_len: usize,
    /// Bytes of the message that have arrived and been used.
    used: usize,
    aside: Vec<u8>,
    aside_len: usize,
    /// The stream accepted only a part. It is not offered more while other work can proceed.
    full: bool,
}

impl Lane {
    fn clear(&mut self) {
        self.sends.clear();
        self.recvs.clear();
        (self.next_send, self.sent, self.next_recv) = (0, 0, 0);
        (self.header_len, self.used, self.aside_len) = (0, 0, 0);
        self.full = false;
    }
}

pub(crate) fn execute(
    mesh: &mut dyn Mesh,
    scratch: &mut Scratch,
    job: ScheduleJob<'_>,
) -> Result<()> {
    let width = job.dtype.size().unwrap_or(1);
    let mut run = Run { mesh, width, finishes: Vec::new(), open: 0, passes: 0, job };
    run.prepare(scratch);
    let mut looks = 0;
    while run.open > 0 {
        if run.progress(scratch)? {
            looks = 0;
            continue;
        }
        looks += 1;
        if !run.mesh.pause(looks) {
            run.wait(scratch)?;
        }
    }
    Ok(())
}

struct Run<'m, 'a> {
    mesh: &'m mut dyn Mesh,
    width: usize,
    finishes: Vec<u32>,
    open: usize,
    passes: u32,
    job: ScheduleJob<'a>,
}

impl Run<'_, '_> {
    fn prepare(&mut self, scratch: &mut Scratch) {
        let steps = self.job.schedule.steps();
        let Scratch { lanes, active, done, .. } = scratch;
        active.drain(..).for_each(|member| lanes[member].clear());
        lanes.resize_with(self.job.members.len().max(lanes.len()), Lane::default);
        done.clear();
        done.resize(steps.len(), false);
        for (i, step) in steps.iter().enumerate() {
            let member = match step.action {
                ScheduleAction::Send { to: member }
                | ScheduleAction::Reduce { from: member }
                | ScheduleAction::Store { from: member } => member as usize,
                ScheduleAction::Finish => {
                    self.finishes.push(i as u32);
                    continue;
                }
            };
            let lane = &mut lanes[member];
            if lane.sends.is_empty() && lane.recvs.is_empty() {
                active.push(member);
            }
            match step.action {
                ScheduleAction::Send { .. } => lane.sends.push(i as u32),
                _ => lane.recvs.push(i as u32),
            }
        }
        active.sort_unstable();
        self.finishes.reverse();
        self.open = steps.len();
    }

    fn progress(&mut self, scratch: &mut Scratch) -> Result<bool> {
        let mut moved = false;
        let Scratch { lanes, active, done, .. } = scratch;
        for &member in active.iter() {
            let lane = &mut lanes[member];
            if lane.next_send < lane.sends.len() && !lane.full {
                moved |= self.send(member, lane, done)?;
            }
            if lane.next_recv < lane.recvs.len() {
                moved |= self.receive(member, lane, done)?;
            }
        }
        while let Some(&i) = self.finishes.last() {
            let step = &self.job.schedule.steps()[i as usize];
            if !self.ready(step, done) {
                break;
            }
            let bytes = self.bytes(step);
            let ScheduleJob { op, dtype, ranks, .. } = self.job;
            reduce::finish(op, dtype, &mut self.job.buffer[bytes], ranks);
            self.finishes.pop();
            self.close(i, done);
            moved = true;
        }
        // Retry full streams now and then, even if the other streams keep this rank busy.
        self.passes = self.passes.wrapping_add(1);
        if !moved || self.passes.is_multiple_of(8) {
            for &member in active.iter() {
                let lane = &mut lanes[member];
                if std::mem::take(&mut lane.full) {
                    moved |= self.send(member, lane, done)?;
                }
            }
        }
        Ok(moved)
    }

    /// Sends the next message to `member`, or as much as the stream accepts. Returns whether it
    /// sent anything. One message at a time: with a receive after each send, little data is in
    /// flight, and it is still in a cache when it arrives.
    fn send(&mut self, member: usize, lane: &mut Lane, done: &mut [bool]) -> Result<bool> {
        let Some(&i) = lane.sends.get(lane.next_send) else { return Ok(false) };
        let step = &self.job.schedule.steps()[i as usize];
        if !self.ready(step, done) {
            return Ok(false);
        }
        let bytes = self.bytes(step);
        let header = MessageHeader {
            sequence: self.job.sequence,
            signature: self.job.signature,
            bytes: bytes.len() as u64,
        }
        .encode();
        let data = &self.job.source.unwrap_or(self.job.buffer)[bytes];
        let total = HEADER + data.len();
        let head = &header[lane.sent.min(HEADER)..];
        let body = &data[lane.sent.saturating_sub(HEADER)..];
        let taken = self.mesh.send(self.job.members[member] as usize, head, body)?;
        lane.sent += taken;
        lane.full = lane.sent < total;
        if !lane.full {
            lane.sent = 0;
            lane.next_send += 1;
            self.close(i, done);
        }
        Ok(taken > 0)
    }

    /// Receives what has arrived from `member`. Returns whether anything has.
    fn receive(&mut self, member: usize, lane: &mut Lane, done: &mut [bool]) -> Result<bool> {
        let from = self.job.members[member] as usize;
        let mut moved = false;
        while let Some(&i) = lane.recvs.get(lane.next_recv) {
            let step = &self.job.schedule.steps()[i as usize];
            let bytes = self.bytes(step);
            if lane.header_len < HEADER {
                let taken = self.mesh.recv(from, &mut lane.header[lane.header_len..])?;
                lane.header_len += taken;
                moved |= taken > 0;
                if lane.header_len < HEADER {
                    return Ok(moved);
                }
                self.check_header(from, &lane.header, bytes.len())?;
            }
            let ready = self.ready(step, done);
            let direct = matches!(step.action, ScheduleAction::Store { .. }) && ready;
            if direct && lane.aside_len == 0 {
                if lane.used < bytes.len() {
                    let into = &mut self.job.buffer[bytes.start + lane.used..bytes.end];
                    let taken = self.mesh.recv(from, into)?;
                    lane.used += taken;
                    moved |= taken > 0;
                }
            } else {
                moved |= self.receive_aside(from, lane, step, ready)?;
            }
            if lane.used < bytes.len() || !ready {
                return Ok(moved);
            }
            (lane.header_len, lane.used, lane.aside_len) = (0, 0, 0);
            lane.next_recv += 1;
            self.close(i, done);
            moved = true;
        }
        Ok(moved)
    }

    /// Receives into `lane.aside`, and uses the data if the step is ready.
    fn receive_aside(
        &mut self,
        from: usize,
        lane: &mut Lane,
        step: &ScheduleStep,
        ready: bool,
    ) -> Result<bool> {
        let bytes = self.bytes(step);
        let left = bytes.len() - lane.used;
        let room = if ready { left.min(BLOCK.max(lane.aside_len)) } else { left };
        if lane.aside.len() < room {
            lane.aside.resize(room, 0);
        }
        let mut moved = false;
        if lane.aside_len < room {
            let taken = self.mesh.recv(from, &mut lane.aside[lane.aside_len..room])?;
            lane.aside_len += taken;
            moved = taken > 0;
        }
        let whole = lane.aside_len - lane.aside_len % self.width;
        if ready && whole > 0 {
            let at = bytes.start + lane.used;
            let into = &mut self.job.buffer[at..at + whole];
            match step.action {
                ScheduleAction::Reduce { .. } => {
                    reduce::combine(self.job.op, self.job.dtype, into, &lane.aside[..whole]);
                }
                _ => into.copy_from_slice(&lane.aside[..whole]),
            }
            lane.aside.copy_within(whole..lane.aside_len, 0);
            lane.aside_len -= whole;
            lane.used += whole;
            moved = true;
        }
        Ok(moved)
    }

    fn wait(&mut self, scratch: &mut Scratch) -> Result<()> {
        let Scratch { lanes, active, done, sending, receiving } = scratch;
        sending.clear();
        receiving.clear();
        for &member in active.iter() {
            let lane = &lanes[member];
            let rank = self.job.members[member] as usize;
            let steps = self.job.schedule.steps();
            if let Some(&i) = lane.sends.get(lane.next_send)
                && self.ready(&steps[i as usize], done)
            {
                sending.push(rank);
            }
            if let Some(&i) = lane.recvs.get(lane.next_recv) {
                let step = &steps[i as usize];
                let left = step.range.len() * self.width - lane.used;
                if lane.header_len < HEADER || lane.aside_len < left {
                    receiving.push(rank);
                }
            }
        }
        self.mesh.wait(sending, receiving, self.job.deadline)?;
        if Instant::now() >= self.job.deadline {
            return Err(self.late(sending, receiving));
        }
        Ok(())
    }

    fn late(&self, sending: &[usize], receiving: &[usize]) -> Error {
        let what = self.job.signature;
        let all =
            |ranks: &[usize]| ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        match (receiving, sending) {
            ([], to) => err!(
                DeadlineExceeded,
                "{what}: rank {} reached the timeout while it waited for rank {} to accept data",
                self.job.members[self.job.me],
                all(to)
            ),
            (from, _) => err!(
                DeadlineExceeded,
                "{what}: rank {} reached the timeout while it waited for data from rank {}",
                self.job.members[self.job.me],
                all(from)
            ),
        }
    }

    fn check_header(&self, from: usize, header: &[u8; HEADER], bytes: usize) -> Result<()> {
        let theirs = MessageHeader::decode(header);
        let me = self.job.members[self.job.me];
        let Some(theirs) = theirs else {
            return Err(err!(DataLoss, "rank {from} sent rank {me} data that is not a message"));
        };
        if theirs.sequence != self.job.sequence || theirs.signature != self.job.signature {
            return Err(err!(
                InvalidArgument,
                "ranks do not agree on collective {}: rank {me} is in {}, rank {from} in {} (its collective {})",
                self.job.sequence,
                self.job.signature.beside(theirs.signature),
                theirs.signature.beside(self.job.signature),
                theirs.sequence
            ));
        }
        if theirs.bytes != bytes as u64 {
            return Err(err!(
                InvalidArgument,
                "{}: rank {from} sent {} bytes where rank {me} expects {bytes}",
                self.job.signature,
                theirs.bytes
            ));
        }
        Ok(())
    }

    fn ready(&self, step: &ScheduleStep, done: &[bool]) -> bool {
        self.job.schedule.after(step).iter().all(|&d| done[d as usize])
    }

    fn bytes(&self, step: &ScheduleStep) -> std::ops::Range<usize> {
        step.range.start * self.width..step.range.end * self.width
    }

    fn close(&mut self, step: u32, done: &mut [bool]) {
        done[step as usize] = true;
        self.open -= 1;
    }
}
