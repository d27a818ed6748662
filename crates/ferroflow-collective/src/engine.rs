//! Named tensors, submitted in any order on any rank, reduced in one order on all.
//!
//! Each rank has a thread that owns the group. It tells rank 0's coordinator what its callers
//! submitted, and runs what the coordinator decides. Handles give the buffers back.

mod coordinator;
mod coordinator_thread;
mod request;
mod run;
mod timeline;
mod tuner;

use crate::compress::Compression;
use crate::control::Control;
use crate::group::{Group, SetId};
use crate::number::{Number, bytes_of_mut};
use crate::reduce::ReduceOp;
use crate::signature::Kind;
use coordinator_thread::{Event, coordinate};
use ferroflow_core::{Code, DType, Error, Result, Tensor, bail, ensure, err};
use parking_lot::{Condvar, Mutex};
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

/// A buffer that the engine works on without knowing its type.
trait Payload: Send {
    fn bytes(&mut self) -> Result<&mut [u8]>;
    /// Other values instead, of whatever number.
    fn replace(&mut self, bytes: &[u8]) -> Result<()>;
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<T: Number> Payload for Vec<T> {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        Ok(bytes_of_mut(self))
    }
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.resize(bytes.len() / size_of::<T>(), T::default());
        bytes_of_mut(self).copy_from_slice(bytes);
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// A tensor whose storage nobody else holds is worked on in place. Other values make it flat, unless
/// their number is the same.
impl Payload for Tensor {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        self.bytes_mut()
    }
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.byte_len() {
            let width = self.dtype().size().unwrap_or(1);
            *self = Tensor::alloc(self.dtype(), [bytes.len() / width])?;
        }
        self.bytes_mut()?.copy_from_slice(bytes);
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// What is to be done with a tensor; [`Ask`] has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collective {
    AllReduce,
    /// [`crate::Group::adasum`] instead of the op.
    Adasum,
    ReduceScatter,
    AllGather,
    Broadcast {
        root: usize,
    },
    /// How many values go to each rank.
    AllToAll {
        splits: Vec<usize>,
    },
}

/// What a tensor has become: its values, and for gathers how many came from each rank.
type Outcome = Result<(Box<dyn Any + Send>, Vec<usize>)>;
/// Takes the outcome, on the engine's thread; it must not wait.
type Finish = Box<dyn FnOnce(Outcome) + Send>;

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
}

impl Engine {
    /// Takes over a group, whose process sets have been made.
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
        Ok(Engine { desk, thread: Some(thread), coordinator, stats, rank, size })
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

    /// Reduces the tensor `name` over all ranks that submit it.
    pub fn all_reduce<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(Kind::AllReduce, name, values, ask, 0, (0, 0), Vec::new())
    }

    /// [`Engine::all_reduce`] of tensors that are reduced together, when all of them are ready.
    pub fn grouped_all_reduce<T: Number>(
        &self,
        tensors: Vec<(String, Vec<T>)>,
        ask: &Ask,
    ) -> Result<Vec<Handle<T>>> {
        let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
        let group = (key_of(&names), tensors.len() as u32);
        tensors
            .into_iter()
            .map(|(name, v)| {
                self.submit(Kind::AllReduce, &name, v, ask.clone(), 0, group, Vec::new())
            })
            .collect()
    }

    /// The [`crate::Group::adasum`] of the tensor `name` over all ranks that submit it.
    pub fn adasum<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(Kind::Adasum, name, values, ask, 0, (0, 0), Vec::new())
    }

    /// Reduces, and leaves each rank of the set with its nearly equal part.
    pub fn reduce_scatter<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(Kind::ReduceScatter, name, values, ask, 0, (0, 0), Vec::new())
    }

    /// All ranks' values one after the other; each may have another number.
    pub fn all_gather<T: Number>(&self, name: &str, values: Vec<T>, ask: Ask) -> Result<Handle<T>> {
        self.submit(Kind::AllGather, name, values, ask, 0, (0, 0), Vec::new())
    }

    /// The values of rank `root` on all.
    pub fn broadcast<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        root: usize,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(Kind::Broadcast, name, values, ask, root as u32, (0, 0), Vec::new())
    }

    /// Sends `splits[r]` of the values, in order, to each rank `r`; gives what the others sent.
    pub fn all_to_all<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        splits: Vec<usize>,
        ask: Ask,
    ) -> Result<Handle<T>> {
        self.submit(Kind::AllToAll, name, values, ask, 0, (0, 0), splits)
    }

    /// Returns when all ranks of the set have called it.
    pub fn barrier(&self, name: &str, set: SetId) -> Result<()> {
        let ask = Ask { set, ..Ask::default() };
        let none = Vec::<u8>::new();
        self.submit(Kind::Barrier, name, none, ask, 0, (0, 0), Vec::new())?.wait().map(|_| ())
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
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        let ask = Ask { shape: Some(shape), ..ask };
        let (kind, root, splits) = match what {
            Collective::AllReduce => (Kind::AllReduce, 0, Vec::new()),
            Collective::Adasum => (Kind::Adasum, 0, Vec::new()),
            Collective::ReduceScatter => (Kind::ReduceScatter, 0, Vec::new()),
            Collective::AllGather => (Kind::AllGather, 0, Vec::new()),
            Collective::Broadcast { root } => (Kind::Broadcast, root as u32, Vec::new()),
            Collective::AllToAll { splits } => (Kind::AllToAll, 0, splits),
        };
        let request = match self.request(kind, name, dtype, tensor.elements(), ask, root, (0, 0)) {
            Ok(request) => request,
            Err(e) => return done(Err(e)),
        };
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
        if let Err((pending, cause)) =
            self.enter(request, Box::new(tensor), splits, Box::new(finish))
        {
            (pending.done)(Err(cause));
        }
    }

    fn submit<T: Number>(
        &self,
        kind: Kind,
        name: &str,
        values: Vec<T>,
        ask: Ask,
        root: u32,
        group: (u64, u32),
        splits: Vec<usize>,
    ) -> Result<Handle<T>> {
        let request = self.request(kind, name, T::DTYPE, values.len(), ask, root, group)?;
        let (sender, outcome) = channel();
        // A handle that was dropped does not want to know.
        let done = Box::new(move |outcome| drop(sender.send(outcome)));
        match self.enter(request, Box::new(values), splits, done) {
            Ok(()) => Ok(Handle { outcome, values: PhantomData }),
            Err((_, cause)) => Err(cause),
        }
    }

    /// What the coordinator is asked, if it makes sense.
    fn request(
        &self,
        kind: Kind,
        name: &str,
        dtype: DType,
        len: usize,
        ask: Ask,
        root: u32,
        group: (u64, u32),
    ) -> Result<Request> {
        let reduces = matches!(kind, Kind::AllReduce | Kind::ReduceScatter);
        if reduces {
            crate::reduce::check_dtype(dtype)?;
        }
        if kind == Kind::Adasum && !matches!(dtype, DType::Float | DType::Double) {
            bail!(Unimplemented, "adasum is for float and double, not {dtype}");
        }
        if dtype.size().is_none() {
            bail!(Unimplemented, "collectives do not move values of type {dtype}");
        }
        let lossy = ask.compression != Compression::None;
        ensure!(
            !lossy || (dtype == DType::Float && kind == Kind::AllReduce),
            Unimplemented,
            "compression is for all-reduce of float, not {} of {dtype}",
            kind.name(),
        );
        ensure!(
            !lossy || matches!(ask.op, ReduceOp::Sum | ReduceOp::Mean),
            Unimplemented,
            "compression is for sum and mean, not {}",
            ask.op
        );
        let shape: Vec<u64> = match &ask.shape {
            Some(shape) => shape.iter().map(|&d| d as u64).collect(),
            None => vec![len as u64],
        };
        let request = Request {
            name: name.into(),
            kind,
            op: ask.op,
            dtype,
            shape,
            set: ask.set.0,
            root,
            compression: ask.compression,
            group: group.0,
            group_len: group.1,
            priority: ask.priority,
        };
        let count = request.count();
        ensure!(
            count == len as u64,
            InvalidArgument,
            "tensor {name:?} has {len} values, its shape says {count}",
        );
        Ok(request)
    }

    /// Hands a submission to the engine's thread; back to the caller if it takes none.
    fn enter(
        &self,
        request: Request,
        payload: Box<dyn Payload>,
        splits: Vec<usize>,
        done: Finish,
    ) -> Result<(), (Box<Pending>, Error)> {
        let key = (request.set, request.name.clone());
        let left = request.count();
        let pending = Pending { request, payload, splits, left, since: Instant::now(), done };
        let mut state = self.desk.state.lock();
        if let Some(cause) = &state.ended {
            return Err((Box::new(pending), cause.clone()));
        }
        if !state.names.insert(key) {
            let name = &pending.request.name;
            let cause =
                err!(AlreadyExists, "tensor {name:?} was submitted again before it was done");
            return Err((Box::new(pending), cause));
        }
        state.submitted.push(pending);
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

/// A number that stands for these names, the same on all ranks.
fn key_of(names: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in names.iter().flat_map(|n| n.bytes().chain([0xFF])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests;
