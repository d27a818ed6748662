//! The thread of each rank that owns the group: passes on what was submitted, runs what was decided.

use super::coordinator_thread::Event;
use super::request::{KEPT, Note, Piece, Request, Verdict};
use super::timeline::Timeline;
use super::{Desk, Pending};
use crate::compress::{self, Compression, Residuals};
use crate::control::Control;
use crate::group::{Group, SetId};
use crate::number::bytes_of_mut;
use crate::reduce::{self, ReduceOp};
use crate::schedule::even_bounds;
use crate::signature::Kind;
use ferroflow_core::{DType, Error, Result, ensure, err};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a rank that is done waits for the others to be.
const FAREWELL: Duration = Duration::from_secs(10);

/// What a timeline notes of a piece.
pub(super) struct Mark {
    pub tensor: String,
    pub what: &'static str,
    pub submitted: Option<Instant>,
    pub detail: String,
}

pub(super) struct Runner {
    group: Group,
    control: Arc<Control>,
    events: Sender<Event>,
    /// Requests by the coordinator's numbers, and the numbers by set and name.
    kept: HashMap<u32, Request>,
    numbers: HashMap<(u16, String), u32>,
    pending: HashMap<(u16, String), Pending>,
    joins: Vec<Sender<Result<u32>>>,
    residuals: Residuals,
    /// Where small tensors go together.
    fused: Vec<u8>,
    timeline: Option<Timeline>,
}

impl Runner {
    pub(super) fn new(
        group: Group,
        control: Arc<Control>,
        events: Sender<Event>,
        timeline: Option<Timeline>,
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
        }
    }

    pub(super) fn work(mut self, desk: &Desk) {
        let end = self.serve(desk).err();
        let cause = end.unwrap_or_else(|| err!(Cancelled, "the engine has ended"));
        let mut state = desk.state.lock();
        state.ended = Some(cause.clone());
        desk.changed.notify_all();
        let late = std::mem::take(&mut state.submitted);
        let joins = std::mem::take(&mut state.joins);
        drop(state);
        for pending in late.into_iter().chain(self.pending.drain().map(|(_, p)| p)) {
            (pending.done)(Err(cause.clone()));
        }
        for join in joins.into_iter().chain(self.joins.drain(..)) {
            let _ = join.send(Err(cause.clone()));
        }
        let _ = self.events.send(Event::Ended);
    }

    fn serve(&mut self, desk: &Desk) -> Result<()> {
        let mut farewell: Option<Instant> = None;
        loop {
            let mut state = desk.state.lock();
            while state.submitted.is_empty()
                && state.verdicts.is_empty()
                && state.joins.is_empty()
                && !state.bell
                && !(state.leaving && farewell.is_none())
            {
                match farewell {
                    // The others' leave ends the wait, or their death; or the time comes.
                    Some(until) if desk.changed.wait_until(&mut state, until).timed_out() => {
                        return Ok(());
                    }
                    Some(_) => {}
                    None => desk.changed.wait(&mut state),
                }
            }
            let submitted = std::mem::take(&mut state.submitted);
            let verdicts = std::mem::take(&mut state.verdicts);
            let joins = std::mem::take(&mut state.joins);
            let leaving = state.leaving;
            drop(state);
            // Kept before anything may fail, so that whoever waits for them hears why.
            let mut notes: Vec<Note> = submitted.into_iter().map(|p| self.note(p)).collect();
            if !joins.is_empty() && self.joins.is_empty() {
                notes.push(Note::Joins);
            }
            self.joins.extend(joins);
            self.group.alive()?;
            if leaving && farewell.is_none() {
                farewell = Some(Instant::now() + FAREWELL);
                notes.push(Note::Leaves);
            }
            if !notes.is_empty() {
                self.control.send(0, &Note::encode_all(&notes))?;
            }
            for (arrived, verdict) in verdicts {
                if let Verdict::AllLeft = verdict {
                    return Ok(());
                }
                self.obey(verdict, arrived, desk)?;
            }
        }
    }

    /// Keeps a submission; what the coordinator is told of it.
    fn note(&mut self, pending: Pending) -> Note {
        let key = (pending.request.set, pending.request.name.clone());
        let known = self.numbers.get(&key).filter(|id| self.kept.get(id) == Some(&pending.request));
        let note = match known {
            Some(&id) => Note::Again(id),
            None => Note::Wants(pending.request.clone()),
        };
        self.pending.insert(key, pending);
        note
    }

    fn obey(&mut self, verdict: Verdict, arrived: Instant, desk: &Desk) -> Result<()> {
        match verdict {
            Verdict::Keep { id, request } => {
                if id < KEPT {
                    self.numbers.insert((request.set, request.name.clone()), id);
                }
                self.kept.insert(id, request);
            }
            Verdict::Run { pieces, absent } => {
                let later = self.set_aside(&pieces, &absent);
                let marks = self.timeline.is_some().then(|| self.marks(&pieces, arrived));
                let start = Instant::now();
                let ran = self.run(&pieces, &absent, desk);
                self.pending.extend(later);
                let bytes = ran.map_err(|e| self.group.fail(e))?;
                if let (Some(timeline), Some(marks)) = (&mut self.timeline, marks) {
                    timeline.ran(marks, arrived, start);
                }
                for piece in pieces.iter().filter(|p| p.id >= KEPT) {
                    let last = |r: &Request| piece.start.saturating_add(piece.len) >= r.count();
                    if self.kept.get(&piece.id).is_some_and(last) {
                        self.kept.remove(&piece.id);
                    }
                }
                if self.group.rank() == 0 {
                    let _ = self.events.send(Event::Ran(bytes));
                }
            }
            Verdict::Fail { absent, .. } if absent.contains(&(self.group.rank() as u32)) => {}
            Verdict::Fail { set, name, cause, .. } => self.finish(&(set, name), Err(cause), desk),
            Verdict::AllJoined { last } => {
                for join in self.joins.drain(..) {
                    let _ = join.send(Ok(last));
                }
            }
            Verdict::AllLeft => {}
        }
        Ok(())
    }

    /// Takes out what this rank, if it is `absent`, has submitted since these pieces were decided on.
    fn set_aside(&mut self, pieces: &[Piece], absent: &[u32]) -> Vec<((u16, String), Pending)> {
        if !absent.contains(&(self.group.rank() as u32)) {
            return Vec::new();
        }
        let keys = pieces.iter().filter_map(|p| self.key(p).ok()).collect::<Vec<_>>();
        keys.iter().filter_map(|key| self.pending.remove_entry(key)).collect()
    }

    /// What the timeline says of pieces that are about to run.
    fn marks(&self, pieces: &[Piece], arrived: Instant) -> Vec<Mark> {
        let mark = |p: &Piece| {
            let request = self.kept.get(&p.id)?;
            let pending = self.pending.get(&(request.set, request.name.clone()));
            Some(Mark {
                tensor: request.name.clone(),
                what: request.kind.name(),
                // A tensor is negotiated once, however many pieces it goes in.
                submitted: pending.filter(|_| p.start == 0).map(|p| p.since.min(arrived)),
                detail: format!("{} of {}, {} together", p.len, request.count(), pieces.len()),
            })
        };
        pieces.iter().filter_map(mark).collect()
    }

    /// Gives a tensor back to who submitted it.
    fn finish(&mut self, key: &(u16, String), result: Result<Vec<usize>>, desk: &Desk) {
        if let Some(pending) = self.pending.remove(key) {
            desk.state.lock().names.remove(key);
            let outcome = result.map(|counts| (pending.payload.into_any(), counts));
            (pending.done)(outcome);
        }
    }

    /// Runs one collective; how many bytes it was.
    fn run(&mut self, pieces: &[Piece], absent: &[u32], desk: &Desk) -> Result<u64> {
        let joined = absent.len() as u32;
        let known = pieces.first().and_then(|p| self.kept.get(&p.id)).cloned();
        let first = known.ok_or_else(|| err!(DataLoss, "rank 0 wants something it never named"))?;
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
                ensure!(is_there, DataLoss, "rank 0 runs tensor {name:?}, not submitted here");
            }
        }
        let active = members.len() as u32 - joined.min(members.len() as u32);
        let key = (first.set, first.name.clone());
        match first.kind {
            Kind::AllReduce => {
                match first.compression {
                    Compression::TopK(_) | Compression::OneBit => {
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
                        self.finish(&key, Ok(Vec::new()), desk);
                    }
                }
                return Ok(bytes);
            }
            Kind::Adasum => {
                let mut none = Vec::new();
                let bytes = match self.pending.get_mut(&key) {
                    Some(pending) => pending.payload.bytes()?,
                    // Zeros change nothing in the others' result.
                    None => {
                        none.resize(first.count() as usize * first.dtype.size().unwrap_or(1), 0);
                        &mut none[..]
                    }
                };
                self.group.adasum_in(set, first.dtype, bytes)?;
                self.finish(&key, Ok(Vec::new()), desk);
            }
            // What an all-reduce becomes, never what is asked for.
            Kind::PushPull => return Err(err!(DataLoss, "rank 0 wants what nobody can ask for")),
            Kind::Barrier => self.finish(&key, Ok(Vec::new()), desk),
            Kind::Broadcast => {
                let width = first.dtype.size().unwrap_or(1);
                let mut none = Vec::new();
                let bytes = match self.pending.get_mut(&key) {
                    Some(pending) => pending.payload.bytes()?,
                    None => {
                        none.resize(first.count() as usize * width, 0);
                        &mut none[..]
                    }
                };
                self.group.broadcast_in(set, first.dtype, bytes, first.root as usize)?;
                self.finish(&key, Ok(Vec::new()), desk);
            }
            Kind::AllGather => {
                let mine = match self.pending.get_mut(&key) {
                    Some(p) => p.payload.bytes()?,
                    None => &mut [],
                };
                let (all, counts) = self.group.all_gather_uneven_in(set, first.dtype, mine)?;
                self.give(&key, &all)?;
                self.finish(&key, Ok(counts), desk);
            }
            Kind::AllToAll => {
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
                self.finish(&key, Ok(counts), desk);
            }
            Kind::ReduceScatter => {
                let width = first.dtype.size().unwrap_or(1);
                let mut bytes = vec![0; first.count() as usize * width];
                match self.pending.get_mut(&key) {
                    Some(pending) => bytes.copy_from_slice(pending.payload.bytes()?),
                    None => reduce::fill_identity(first.op, first.dtype, &mut bytes),
                }
                let op =
                    if joined > 0 && first.op == ReduceOp::Mean { ReduceOp::Sum } else { first.op };
                // Whole rows: those of a flat tensor are its values.
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
                    reduce::finish(ReduceOp::Mean, first.dtype, part, active);
                }
                let part = part.to_vec();
                self.give(&key, &part)?;
                self.finish(&key, Ok(Vec::new()), desk);
            }
        }
        Ok(first.count() * first.dtype.size().unwrap_or(1) as u64)
    }

    /// What a server does in a collective of the ranks.
    fn help(&mut self, pieces: &[Piece], first: &Request, joined: u32) -> Result<()> {
        let sums = first.kind == Kind::AllReduce && SetId(first.set) == SetId::WORLD;
        let lossy = matches!(first.compression, Compression::TopK(_) | Compression::OneBit);
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

    /// All-reduces pieces of one kind, in place if it is one, packed if they are several.
    fn reduce(
        &mut self,
        pieces: &[Piece],
        first: &Request,
        joined: u32,
        active: u32,
    ) -> Result<()> {
        let (set, width) = (SetId(first.set), first.dtype.size().unwrap_or(1));
        let (dtype, op) = travels(first, joined);
        // A mean of the ranks with data only is divided here.
        let divide = op != first.op;
        let narrow = matches!(first.compression, Compression::Fp16 | Compression::Bf16);
        let range = |p: &Piece| -> Range<usize> {
            p.start as usize * width..(p.start as usize + p.len as usize) * width
        };
        if let ([piece], false) = (pieces, narrow)
            && let Some(pending) = self.pending.get_mut(&(first.set, first.name.clone()))
        {
            let bytes = slice(pending.payload.bytes()?, range(piece))?;
            self.group.all_reduce_in(set, first.dtype, bytes, op)?;
            if divide {
                reduce::finish(ReduceOp::Mean, first.dtype, bytes, active);
            }
            return Ok(());
        }
        let mut fused = std::mem::take(&mut self.fused);
        fused.clear();
        for piece in pieces {
            let (at, key) = (range(piece), self.key(piece)?);
            match self.pending.get_mut(&key) {
                Some(pending) if narrow => {
                    let values = floats(slice(pending.payload.bytes()?, at)?);
                    compress::narrow(first.compression, &values, &mut fused);
                }
                Some(pending) => fused.extend_from_slice(slice(pending.payload.bytes()?, at)?),
                None => {
                    let start = fused.len();
                    fused.resize(start + piece.len as usize * dtype.size().unwrap_or(1), 0);
                    reduce::fill_identity(op, dtype, &mut fused[start..]);
                }
            }
        }
        self.group.all_reduce_in(set, dtype, &mut fused, op)?;
        if divide {
            reduce::finish(ReduceOp::Mean, dtype, &mut fused, active);
        }
        let mut from = 0;
        for piece in pieces {
            let (at, key) = (range(piece), self.key(piece)?);
            let len = piece.len as usize * dtype.size().unwrap_or(1);
            if let Some(pending) = self.pending.get_mut(&key) {
                let into = slice(pending.payload.bytes()?, at)?;
                if narrow {
                    let mut values = vec![0f32; piece.len as usize];
                    compress::widen(first.compression, &fused[from..from + len], &mut values);
                    into.copy_from_slice(bytes_of_mut(&mut values));
                } else {
                    into.copy_from_slice(&fused[from..from + len]);
                }
            }
            from += len;
        }
        self.fused = fused;
        Ok(())
    }

    /// Gathers what each rank has to say in few bytes, and adds it up here.
    fn reduce_lossy(&mut self, request: &Request, active: u32) -> Result<()> {
        let key = (request.set, request.name.clone());
        let mine = match self.pending.get_mut(&key) {
            Some(pending) => {
                let mut values = floats(pending.payload.bytes()?);
                match request.compression {
                    Compression::TopK(k) => {
                        let k = usize::try_from(k).unwrap_or(usize::MAX);
                        compress::top_k(&mut self.residuals, &key, &mut values, k)
                    }
                    _ => compress::one_bit(&mut self.residuals, &key, &mut values),
                }
            }
            None => Vec::new(),
        };
        let set = SetId(request.set);
        let (all, counts) = self.group.all_gather_uneven_in(set, DType::UInt8, &mine)?;
        let Some(pending) = self.pending.get_mut(&key) else { return Ok(()) };
        let mut sum = vec![0f32; request.count() as usize];
        let mut rest = &all[..];
        for count in counts {
            let (bytes, more) = rest.split_at(count);
            rest = more;
            match request.compression {
                _ if bytes.is_empty() => {}
                Compression::TopK(_) => compress::add_top_k(bytes, &mut sum)?,
                _ => compress::add_one_bit(bytes, &mut sum)?,
            }
        }
        if request.op == ReduceOp::Mean {
            sum.iter_mut().for_each(|x| *x /= active.max(1) as f32);
        }
        pending.payload.replace(bytes_of_mut(&mut sum))
    }

    fn key(&self, piece: &Piece) -> Result<(u16, String)> {
        let request = self.kept.get(&piece.id);
        let request =
            request.ok_or_else(|| err!(DataLoss, "rank 0 wants something it never named"))?;
        Ok((request.set, request.name.clone()))
    }
}

/// What an all-reduce moves and how it combines it: compressed values, and a sum where not all have data.
fn travels(first: &Request, joined: u32) -> (DType, ReduceOp) {
    let dtype = match first.compression {
        Compression::Fp16 => DType::Half,
        Compression::Bf16 => DType::BFloat16,
        _ => first.dtype,
    };
    let partial = joined > 0 && first.op == ReduceOp::Mean;
    (dtype, if partial { ReduceOp::Sum } else { first.op })
}

/// A piece of a tensor, if rank 0 named one that there is.
fn slice(bytes: &mut [u8], range: Range<usize>) -> Result<&mut [u8]> {
    let missing = || -> Error { err!(DataLoss, "rank 0 wants a piece that is not there") };
    bytes.get_mut(range).ok_or_else(missing)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect()
}
