//! Named tensors, submitted in any order on any rank, reduced in one order on all.
//!
//! Each rank has a thread that owns the group. It tells rank 0's coordinator what its callers
//! submitted, and runs what the coordinator decides. Handles give the buffers back.

mod collective;
mod coordinator;
mod coordinator_thread;
mod payload;
mod request;
mod run;
mod timeline;
mod tuner;

use crate::compress::Compression;
use crate::control::Control;
use crate::group::{Group, SetId};
use crate::number::Number;
use crate::reduce::ReduceOp;
pub use collective::Collective;
use collective::MOST_DIMENSIONS;
use coordinator_thread::{Event, coordinate};
use ferroflow_core::{Code, DType, Error, Result, Tensor, ensure, err};
use parking_lot::{Condvar, Mutex};
use payload::Payload;
use request::{Request, Verdict};
use run::Runner;
use std::any::Any;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use timeline::Timeline;

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of small tensors in one collective, and how long one waits for company; found by trying
    /// if there are none.
    pub fusion: Option<(usize, Duration)>,
    /// Bytes of the pieces that large tensors are cut into, between which urgent ones pass.
    pub piece: usize,
    /// When to warn that a tensor waits for ranks, and when to give it up.
    pub stall_warning: Duration,
    pub stall_deadline: Duration,
    /// The same bits in every run: nothing is fused or tuned. The group must have a fixed model or
    /// algorithm, not a probed one.
    pub deterministic: bool,
    /// Where to leave a trace of what happens to each tensor on this rank.
    pub timeline: Option<PathBuf>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            fusion: None,
            piece: 4 << 20,
            stall_warning: Duration::from_secs(10),
            stall_deadline: Duration::from_secs(120),
            deterministic: false,
            timeline: None,
        }
    }
}

/// What the coordinator has seen; on rank 0 only.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineStats {
    /// Requests that came as numbers, and those that came in full.
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Collectives run, and tensors or pieces in them.
    pub runs: u64,
    pub pieces: u64,
    /// Fusion bytes and cycle time in use.
    pub fusion: usize,
    pub cycle: Duration,
    pub tuned: bool,
}

/// Everything about a submission but its name and values.
#[derive(Clone, Debug)]
pub struct Ask {
    pub op: ReduceOp,
    pub set: SetId,
    /// More is sooner.
    pub priority: i32,
    pub compression: Compression,
    /// The tensor's shape; flat if there is none.
    pub shape: Option<Vec<usize>>,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            op: ReduceOp::Sum,
            set: SetId::WORLD,
            priority: 0,
            compression: Compression::None,
            shape: None,
        }
    }
}

impl Ask {
    pub fn op(op: ReduceOp) -> Ask {
        Ask { op, ..Ask::default() }
    }
}

/// What a tensor has become: its values, and for gathers how many came from each rank.
type Outcome = Result<(Box<dyn Any + Send>, Vec<usize>)>;
/// Takes the outcome, on the engine's thread; it must not wait.
type Finish = Box<dyn FnOnce(Outcome) + Send>;
/// Takes what a tensor has become, as [`Engine::submit_tensor`] says.
pub type Done = Box<dyn FnOnce(Result<(Tensor, Vec<usize>)>) + Send>;

/// A submission under way.
struct Pending {
    request: Request,
    payload: Box<dyn Payload>,
    /// For all-to-all: how many values go to each rank.
    splits: Vec<usize>,
    /// Elements still to be done.
    left: u64,
    since: Instant,
    done: Finish,
}

impl Pending {
    fn new(request: Request, payload: Box<dyn Payload>, what: Collective, done: Finish) -> Pending {
        let splits = match what {
            Collective::AllToAll { splits } => splits,
            _ => Vec::new(),
        };
        let left = request.count();
        Pending { request, payload, splits, left, since: Instant::now(), done }
    }
}

/// The result of a submission, once it is there.
pub struct Handle<T> {
    outcome: Receiver<Outcome>,
    values: PhantomData<T>,
}

impl<T: Number> Handle<T> {
    /// Waits for the result. The engine ends the wait, with an error if need be.
    pub fn wait(self) -> Result<Vec<T>> {
        self.wait_with_counts().map(|(values, _)| values)
    }

    /// The result, and how many of its values came from each rank (of gathers and all-to-all).
    pub fn wait_with_counts(self) -> Result<(Vec<T>, Vec<usize>)> {
        let (values, counts) =
            self.outcome.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")))?;
        Ok((unpacked(values)?, counts))
    }
}

fn unpacked<P: 'static>(values: Box<dyn Any + Send>) -> Result<P> {
    let unpacked = values.downcast::<P>().map(|v| *v);
    unpacked.map_err(|_| err!(Internal, "a result of another type"))
}

/// Waits for all ranks to have joined.
pub struct JoinHandle(Receiver<Result<u32>>);

impl JoinHandle {
    /// The rank that joined last.
    pub fn wait(self) -> Result<usize> {
        let last = self.0.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")));
        last.map(|rank| rank as usize)
    }
}

/// What callers, the control connection and the engine's thread share.
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    submitted: Vec<Pending>,
    /// When each arrived, and what it is.
    verdicts: Vec<(Instant, Verdict)>,
    joins: Vec<Sender<Result<u32>>>,
    /// Names in flight, so that one is not submitted twice.
    names: HashSet<(u16, String)>,
    leaving: bool,
    /// Why nothing is taken any more.
    ended: Option<Error>,
    bell: bool,
}

/// Runs a group's collectives for callers on many threads. Dropping it waits for the other ranks to
/// drop theirs, a little.
pub struct Engine {
    desk: Arc<Desk>,
    thread: Option<std::thread::JoinHandle<()>>,
    coordinator: Option<std::thread::JoinHandle<()>>,
    stats: Arc<Mutex<EngineStats>>,
    rank: usize,
    size: usize,
    sets: Vec<Vec<u32>>,
}

impl Engine {
    /// Takes over a group, whose process sets have been made ([`Group::add_set`]).
    pub fn start(group: Group, options: EngineOptions) -> Result<Engine> {
        let Some(control) = group.control().cloned() else {
            ferroflow_core::bail!(
                FailedPrecondition,
                "an engine needs a group that has met by rendezvous"
            );
        };
        let (rank, size, servers) = (group.rank(), group.size(), group.servers());
        let desk = Arc::new(Desk { state: Mutex::new(State::default()), changed: Condvar::new() });
        let stats = Arc::new(Mutex::new(EngineStats::default()));
        if let Some(fate) = group.fate() {
            let desk = Arc::downgrade(&desk);
            fate.hang_bell(move || {
                if let Some(desk) = desk.upgrade() {
                    desk.state.lock().bell = true;
                    desk.changed.notify_all();
                }
            });
        }
        let (events, inbox) = channel();
        let sets = group.sets();
        let known = sets.clone();
        let to_desk = desk.clone();
        if rank == 0 {
            let events = events.clone();
            control.set_inbox(Box::new(move |from, data| {
                let _ = events.send(Event::Notes(from as u32, data.to_vec()));
            }));
        } else {
            let failing = control_weak(&control);
            control.set_inbox(Box::new(move |_, data| match Verdict::decode_all(data) {
                Ok(verdicts) => to_desk.deliver(verdicts),
                Err(e) => failing(e),
            }));
        }
        let coordinator = if rank == 0 {
            let (control, desk, stats) = (control.clone(), desk.clone(), stats.clone());
            let options = options.clone();
            let work =
                move || coordinate((size, servers), sets, options, control, desk, inbox, stats);
            Some(spawn("ff-coordinate", work)?)
        } else {
            None
        };
        let timeline = options.timeline.as_deref().map(|path| Timeline::create(path, rank));
        let runner = Runner::new(group, control, events, timeline.transpose()?);
        let thread = {
            let desk = desk.clone();
            spawn("ff-collective", move || runner.work(&desk))?
        };
        Ok(Engine { desk, thread: Some(thread), coordinator, stats, rank, size, sets: known })
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Why it takes nothing any more, if that is so.
    pub fn failure(&self) -> Option<Error> {
        self.desk.state.lock().ended.clone()
    }

    /// What the coordinator has seen, on rank 0.
    pub fn stats(&self) -> EngineStats {
        *self.stats.lock()
    }

    /// The ranks of a process set, in its order.
    pub fn members(&self, set: SetId) -> Result<&[u32]> {
        let found = self.sets.get(usize::from(set.0));
        found.map(Vec::as_slice).ok_or_else(|| err!(InvalidArgument, "no process set {}", set.0))
    }

    /// Reduces the tensor `name` over all ranks that submit it.
    pub fn all_reduce<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(name, values, Collective::AllReduce, ask)
    }

    /// The [`crate::Group::adasum`] of the tensor `name` over all ranks that submit it.
    pub fn adasum<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(name, values, Collective::Adasum, ask)
    }

    /// Reduces, and leaves each rank of the set with its nearly equal part.
    pub fn reduce_scatter<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(name, values, Collective::ReduceScatter, ask)
    }

    /// All ranks' values one after the other; each may have another number.
    pub fn all_gather<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(name, values, Collective::AllGather, ask)
    }

    /// The values of rank `root` on all.
    pub fn broadcast<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        root: usize,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(name, values, Collective::Broadcast { root }, ask)
    }

    /// Sends `splits[r]` of the values, in order, to each rank `r`; gives what the others sent.
    pub fn all_to_all<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        splits: Vec<usize>,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(name, values, Collective::AllToAll { splits }, ask)
    }

    /// Returns when all ranks of the set have called it.
    pub fn barrier(&self, name: &str, set: SetId) -> Result<()> {
        let ask = Ask { set, ..Ask::default() };
        self.submit(name, Vec::<u8>::new(), Collective::Barrier, ask)?.wait().map(|_| ())
    }

    /// Submits a tensor of this rank. An error here concerns this rank alone; what cannot be done, or not
    /// by all ranks alike, is an error of the handles of all of them.
    pub fn submit<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        what: Collective,
        ask: Ask,
    ) -> Result<Handle<T>> {
        let handles = self.grouped(vec![(name.into(), values, what)], &ask)?;
        handles.into_iter().next().ok_or_else(|| err!(Internal, "a tensor without a handle"))
    }

    /// [`Engine::submit`] of tensors that are done together, when all of them are ready everywhere. If one
    /// fails, all do.
    pub fn grouped<T: Number>(
        &self,
        tensors: Vec<(String, Vec<T>, Collective)>,
        ask: &Ask,
    ) -> Result<Vec<Handle<T>>> {
        let group = group_of(tensors.iter().map(|(name, ..)| name.as_str()));
        let (mut all, mut handles) = (Vec::new(), Vec::new());
        for (name, values, what) in tensors {
            let request = self.request(name, &what, T::DTYPE, values.len(), ask, group)?;
            let (sender, outcome) = channel();
            // A handle that was dropped does not want to know.
            let done = Box::new(move |outcome| drop(sender.send(outcome)));
            all.push(Pending::new(request, Box::new(values), what, done));
            handles.push(Handle { outcome, values: PhantomData });
        }
        self.enter(all).map_err(|(_, cause)| cause)?;
        Ok(handles)
    }

    /// [`Engine::grouped`] of all-reduces.
    pub fn grouped_all_reduce<T: Number>(
        &self,
        tensors: Vec<(String, Vec<T>)>,
        ask: &Ask,
    ) -> Result<Vec<Handle<T>>> {
        let with = |(name, values)| (name, values, Collective::AllReduce);
        self.grouped(tensors.into_iter().map(with).collect(), ask)
    }

    /// A server's whole life: sums for the ranks until all of them have left, or the group has failed.
    pub fn serve(&self) -> Result<()> {
        let mut state = self.desk.state.lock();
        loop {
            match &state.ended {
                Some(end) if end.code() == Code::Cancelled => return Ok(()),
                Some(end) => return Err(end.clone()),
                None => self.desk.changed.wait(&mut state),
            }
        }
    }

    /// This rank has no more data: until all have joined, it goes along with the others' tensors,
    /// bringing nothing. A mean is then that of the ranks with data.
    pub fn join(&self) -> Result<JoinHandle> {
        let (sender, receiver) = channel();
        let mut state = self.desk.state.lock();
        if let Some(cause) = &state.ended {
            return Err(cause.clone());
        }
        state.joins.push(sender);
        drop(state);
        self.desk.changed.notify_all();
        Ok(JoinHandle(receiver))
    }

    /// Submits a tensor, which is worked on in place if nobody else holds it. `done` is called once, by
    /// the engine's thread or before this returns, and must not wait. It is told what the tensor has
    /// become, flat if it has another number of values, and how many came from each rank (of gathers
    /// and all-to-all).
    pub fn submit_tensor(
        &self,
        name: &str,
        tensor: Tensor,
        what: Collective,
        ask: Ask,
        done: impl FnOnce(Result<(Tensor, Vec<usize>)>) + Send + 'static,
    ) {
        self.submit_tensors(vec![(name.into(), tensor, what, Box::new(done))], &ask);
    }

    /// [`Engine::submit_tensor`] of tensors that are done together, as [`Engine::grouped`] says.
    pub fn submit_tensors(&self, tensors: Vec<(String, Tensor, Collective, Done)>, ask: &Ask) {
        let group = group_of(tensors.iter().map(|(name, ..)| name.as_str()));
        let (mut all, mut refused) = (Vec::new(), None);
        for (name, tensor, what, done) in tensors {
            let ask = Ask { shape: Some(tensor.shape().to_vec()), ..ask.clone() };
            let (dtype, len) = (tensor.dtype(), tensor.elements());
            let request = self.request(name, &what, dtype, len, &ask, group);
            let finish = move |outcome: Outcome| {
                done(outcome.and_then(|(values, counts)| {
                    let mut tensor: Tensor = unpacked(values)?;
                    if tensor.dtype() == DType::Bool {
                        // Other ranks' bytes: only 0 and 1 are booleans.
                        tensor.bytes_mut()?.iter_mut().for_each(|b| *b = u8::from(*b != 0));
                    }
                    Ok((tensor, counts))
                }));
            };
            match request {
                Ok(r) => all.push(Pending::new(r, Box::new(tensor), what, Box::new(finish))),
                Err(e) => {
                    finish(Err(e.clone()));
                    refused = Some(e);
                }
            }
        }
        let refused = match refused {
            Some(e) => Err((all, e)),
            None => self.enter(all),
        };
        if let Err((all, cause)) = refused {
            all.into_iter().for_each(|pending| (pending.done)(Err(cause.clone())));
        }
    }

    /// What the coordinator is asked. What cannot be done is asked for all the same, with the reason, so
    /// that the other ranks hear of it; but not on behalf of ranks that are not in the set.
    fn request(
        &self,
        name: String,
        what: &Collective,
        dtype: DType,
        len: usize,
        ask: &Ask,
        group: (u64, u32),
    ) -> Result<Request> {
        let (rank, set) = (self.rank, ask.set.0);
        let members = self.members(ask.set)?;
        let is_member = members.contains(&(rank as u32));
        ensure!(is_member, FailedPrecondition, "rank {rank} is not in process set {set}");
        let fault = what.check(dtype, len, ask, members).err();
        let shape: Vec<u64> = match &ask.shape {
            Some(shape) => shape.iter().take(MOST_DIMENSIONS).map(|&d| d as u64).collect(),
            None => vec![len as u64],
        };
        let root = match what {
            Collective::Broadcast { root } => u32::try_from(*root).unwrap_or(u32::MAX),
            _ => 0,
        };
        Ok(Request {
            name,
            kind: what.kind(),
            op: ask.op,
            dtype,
            shape,
            set,
            root,
            compression: ask.compression,
            group: group.0,
            group_len: group.1,
            priority: ask.priority,
            fault,
        })
    }

    /// Hands submissions to the engine's thread; all of them back to the caller if it does not take one.
    fn enter(&self, all: Vec<Pending>) -> Result<(), (Vec<Pending>, Error)> {
        let key = |p: &Pending| (p.request.set, p.request.name.clone());
        let mut state = self.desk.state.lock();
        if let Some(cause) = &state.ended {
            let cause = cause.clone();
            return Err((all, cause));
        }
        for (i, pending) in all.iter().enumerate() {
            if !state.names.insert(key(pending)) {
                for earlier in &all[..i] {
                    state.names.remove(&key(earlier));
                }
                let name = &pending.request.name;
                let cause =
                    err!(AlreadyExists, "tensor {name:?} was submitted again before it was done");
                drop(state);
                return Err((all, cause));
            }
        }
        state.submitted.extend(all);
        drop(state);
        self.desk.changed.notify_all();
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.desk.state.lock().leaving = true;
        self.desk.changed.notify_all();
        // The runner ends when all ranks have left, or a little later; the coordinator with it.
        for thread in [self.thread.take(), self.coordinator.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn deliver(&self, verdicts: Vec<Verdict>) {
        let now = Instant::now();
        self.state.lock().verdicts.extend(verdicts.into_iter().map(|v| (now, v)));
        self.changed.notify_all();
    }
}

/// Fails the group of a control connection, without keeping it alive.
fn control_weak(control: &Arc<Control>) -> impl Fn(Error) + Send + 'static {
    let weak = Arc::downgrade(control);
    move |cause| {
        if let Some(control) = weak.upgrade() {
            control.fail(cause);
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(|e| crate::io_error("an engine thread", &e))
}

/// A number that stands for these names in any order, the same on all ranks, and how many they are.
fn group_of<'a>(names: impl Iterator<Item = &'a str>) -> (u64, u32) {
    let mut names: Vec<&str> = names.collect();
    if names.len() < 2 {
        return (0, 0);
    }
    names.sort_unstable();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in names.iter().flat_map(|n| n.bytes().chain([0xFF])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    (hash, names.len() as u32)
}

#[cfg(test)]
mod tests;
