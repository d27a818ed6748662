//! The engine: callers submit named tensors in any order, and all ranks process them in one order.
//!
//! A thread on each rank owns the group. It sends the callers' submissions to the coordinator on
//! rank 0 and runs what the coordinator decides. Handles return the buffers to the callers.

mod collective;
mod coordinator;
mod coordinator_thread;
mod handle;
mod mailbox;
mod options;
mod payload;
mod phases;
mod request;
mod run;
mod timeline;
mod tuner;

pub use collective::Collective;
pub use handle::{CollectiveHandle, JoinHandle, SetHandle};
pub use options::{EngineOptions, EngineStats, SubmitOptions};

use crate::control::{Control, ControlMessage};
use crate::foreign::ForeignTensor;
use crate::group::{Group, SetId};
use crate::group_thread::GroupAbort;
use crate::number::Number;
use collective::MOST_DIMENSIONS;
use coordinator_thread::{CoordinatorEvent, coordinate};
use ferroflow_core::{Code, DType, Error, Result, Tensor, ensure, err};
use handle::unpacked;
use mailbox::{Mailbox, MailboxState, Pending, TensorOutcome};
use parking_lot::{Condvar, Mutex};
use payload::ShapedPayload;
use phases::RankPhases;
use request::TensorRequest;
pub(crate) use request::{Decision, RankMessage};
use run::Runner;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use timeline::Timeline;

/// Most bytes of a tensor's name.
const LONGEST_NAME: usize = 16 << 10;

/// Receives a payload and, for gathers and all-to-all, how many values came from each rank.
type PayloadDone<P> = Box<dyn FnOnce(Result<(P, Vec<usize>)>) + Send>;

/// Receives the result of [`Engine::submit_tensor`].
pub type TensorDone = PayloadDone<Tensor>;

/// Receives the result of [`Engine::submit_foreign`].
pub type ForeignDone = PayloadDone<ForeignTensor>;

/// Runs a group's collectives for callers on many threads. Dropping an engine waits up to
/// [`EngineOptions::shutdown_timeout`] for the other ranks to drop theirs. Collectives that the
/// other ranks still need from this rank then fail on them.
pub struct Engine {
    mailbox: Arc<Mailbox>,
    thread: Option<std::thread::JoinHandle<()>>,
    coordinator: Option<std::thread::JoinHandle<()>>,
    stats: Arc<Mutex<EngineStats>>,
    abort: GroupAbort,
    rank: usize,
    size: usize,
    servers: usize,
}

impl Engine {
    /// Takes over a group. Make its process sets first ([`Group::add_set`]).
    pub fn start(mut group: Group, options: EngineOptions) -> Result<Engine> {
        let Some(control) = group.control().cloned() else {
            ferroflow_core::bail!(
                FailedPrecondition,
                "an engine needs a group that was connected by rendezvous"
            );
        };
        let (rank, size, servers) = (group.rank(), group.size(), group.servers());
        let abort = group.aborter();
        let timeline = options.timeline.as_deref().map(|path| Timeline::create(path, rank));
        // Fail the group, so that the other ranks do not wait for this one.
        let timeline = timeline.transpose().map_err(|e| group.fail(e))?;
        let sets = group.sets();
        let known = sets.iter().map(|ranks| ranks.as_slice().into()).collect();
        let state = Mutex::new(MailboxState { sets: known, ..MailboxState::default() });
        let mailbox = Arc::new(Mailbox { state, changed: Condvar::new() });
        let stats = Arc::new(Mutex::new(EngineStats::default()));
        if let Some(failure) = group.failure() {
            let mailbox = Arc::downgrade(&mailbox);
            failure.add_listener(move || {
                if let Some(mailbox) = mailbox.upgrade() {
                    mailbox.state.lock().failed = true;
                    mailbox.changed.notify_all();
                }
            });
        }
        let (events, inbox) = channel();
        let to_mailbox = mailbox.clone();
        if rank == 0 {
            let events = events.clone();
            control.set_inbox(Box::new(move |from, message| {
                let event = match message {
                    ControlMessage::Data(data) => {
                        CoordinatorEvent::Messages(from as u32, data.to_vec())
                    }
                    ControlMessage::Leave => CoordinatorEvent::Gone(from as u32),
                };
                let _ = events.send(event);
            }));
        } else {
            let failing = control_weak(&control);
            control.set_inbox(Box::new(move |_, message| match message {
                ControlMessage::Data(data) => match Decision::decode_all(data) {
                    Ok(decisions) => to_mailbox.deliver(decisions),
                    Err(e) => failing(e),
                },
                ControlMessage::Leave => to_mailbox.deliver(vec![Decision::Closed]),
            }));
        }
        let coordinator = if rank == 0 {
            let (control, mailbox, stats) = (control.clone(), mailbox.clone(), stats.clone());
            let options = options.clone();
            let work = move || coordinate(size, sets, options, control, mailbox, inbox, stats);
            Some(spawn("ff-coordinate", work)?)
        } else {
            None
        };
        let (shutdown_timeout, failing, ended) =
            (options.shutdown_timeout, control_weak(&control), events.clone());
        let counted = options.metrics.clone().filter(|metrics| metrics.is_counting());
        let phases = counted.map(|metrics| RankPhases::new(metrics, size));
        let counts = options.mean_counts_joined;
        let runner =
            Runner::new(group, control, events, timeline, phases, shutdown_timeout, counts);
        let runs = mailbox.clone();
        let thread = spawn("ff-collective", move || runner.work(&runs)).inspect_err(|e| {
            failing(e.clone());
            let _ = ended.send(CoordinatorEvent::Ended);
        })?;
        Ok(Engine { mailbox, thread: Some(thread), coordinator, stats, abort, rank, size, servers })
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks, without servers.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The error that ended the engine, if it has ended.
    pub fn failure(&self) -> Option<Error> {
        self.mailbox.state.lock().ended.clone()
    }

    /// Counters of the coordinator. They are zero on all ranks but rank 0.
    pub fn stats(&self) -> EngineStats {
        *self.stats.lock()
    }

    /// The ranks of a process set, in order.
    pub fn members(&self, set: SetId) -> Result<Arc<[u32]>> {
        let found = self.mailbox.state.lock().sets.get(usize::from(set.0)).cloned();
        found.ok_or_else(|| err!(InvalidArgument, "there is no process set {}", set.0))
    }

    /// Makes a process set of `ranks`, in that order. All ranks of the group must call this with
    /// the same ranks, whether or not they are members.
    pub fn add_set(&self, ranks: &[usize]) -> Result<SetHandle> {
        ensure!(
            self.servers == 0,
            Unimplemented,
            "process sets are not supported in a job with servers"
        );
        let what = Collective::ProcessSet { ranks: ranks.to_vec() };
        Ok(SetHandle(self.submit("process set", Vec::new(), what, SubmitOptions::default())?))
    }

    /// Writes a trace to `path` from now on, or stops tracing. When the returned receiver
    /// disconnects, the trace so far is complete.
    pub fn set_timeline(&self, path: Option<&Path>) -> Result<Receiver<()>> {
        let timeline = path.map(|path| Timeline::create(path, self.rank)).transpose()?;
        let (changed, done) = channel();
        let mut state = self.mailbox.state.lock();
        if let Some(cause) = &state.ended {
            return Err(cause.clone());
        }
        state.timeline = Some((timeline, changed));
        drop(state);
        self.mailbox.changed.notify_all();
        Ok(done)
    }

    /// Reduces the tensor `name` over all ranks that submit it.
    pub fn all_reduce<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::AllReduce, options)
    }

    /// Combines the tensor `name` of all ranks as [`crate::Group::adasum`] does.
    pub fn adasum<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::Adasum, options)
    }

    /// Reduces, and returns to each rank of the set its part. The parts are nearly equal.
    pub fn reduce_scatter<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::ReduceScatter, options)
    }

    /// Concatenates the values of all ranks. Ranks may submit different numbers of values.
    pub fn all_gather<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::AllGather, options)
    }

    /// Copies the values of rank `root` to all ranks.
    pub fn broadcast<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        root: usize,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::Broadcast { root }, options)
    }

    /// Sends `splits[r]` of the values, in order, to each rank `r`. Returns the values that the
    /// other ranks sent to this one.
    pub fn all_to_all<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        splits: Vec<usize>,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        self.submit(name, values, Collective::AllToAll { splits }, options)
    }

    /// Blocks until all ranks of the set have called it.
    pub fn barrier(&self, name: &str, set: SetId) -> Result<()> {
        let options = SubmitOptions { set, ..SubmitOptions::default() };
        self.submit(name, Vec::<u8>::new(), Collective::Barrier, options)?.wait().map(|_| ())
    }

    /// Submits a tensor of this rank. An error here concerns only this rank. A collective that is
    /// impossible, or on which the ranks disagree, fails the handles of all ranks.
    pub fn submit<T: Number>(
        &self,
        name: &str,
        values: Vec<T>,
        what: Collective,
        options: SubmitOptions,
    ) -> Result<CollectiveHandle<T>> {
        let handles = self.grouped(vec![(name.into(), values, what)], &options)?;
        handles
            .into_iter()
            .next()
            .ok_or_else(|| err!(Internal, "the engine returned no handle for a tensor"))
    }

    /// [`Engine::submit`] of several tensors that run together, once all of them are ready on all
    /// ranks. If one fails, all fail.
    pub fn grouped<T: Number>(
        &self,
        tensors: Vec<(String, Vec<T>, Collective)>,
        options: &SubmitOptions,
    ) -> Result<Vec<CollectiveHandle<T>>> {
        let group = group_of(tensors.iter().map(|(name, ..)| name.as_str()));
        let (mut all, mut handles) = (Vec::new(), Vec::new());
        for (name, values, what) in tensors {
            let request = self.request(name, &what, T::DTYPE, values.len(), options, group)?;
            let (sender, outcome) = channel();
            // Ignore the error: the caller has dropped the handle.
            let done = Box::new(move |outcome| drop(sender.send(outcome)));
            all.push(Pending::new(request, Box::new(values), what, done));
            handles.push(CollectiveHandle { outcome, values: PhantomData });
        }
        self.enter(all).map_err(|(_, cause)| cause)?;
        Ok(handles)
    }

    /// [`Engine::grouped`] of all-reduces.
    pub fn grouped_all_reduce<T: Number>(
        &self,
        tensors: Vec<(String, Vec<T>)>,
        options: &SubmitOptions,
    ) -> Result<Vec<CollectiveHandle<T>>> {
        let with = |(name, values)| (name, values, Collective::AllReduce);
        self.grouped(tensors.into_iter().map(with).collect(), options)
    }

    /// Runs a server: sums for the ranks until all ranks have left or the group has failed.
    pub fn serve(&self) -> Result<()> {
        let mut state = self.mailbox.state.lock();
        loop {
            match &state.ended {
                Some(end) if end.code() == Code::Cancelled => return Ok(()),
                Some(end) => return Err(end.clone()),
                None => self.mailbox.changed.wait(&mut state),
            }
        }
    }

    /// Declares that this rank has no more data. Until all ranks have joined, it takes part in the
    /// collectives of the other ranks without contributing values. A mean is then the mean over the
    /// ranks that have data, unless [`EngineOptions::mean_counts_joined`] is set.
    pub fn join(&self) -> Result<JoinHandle> {
        let (sender, receiver) = channel();
        let mut state = self.mailbox.state.lock();
        if let Some(cause) = &state.ended {
            return Err(cause.clone());
        }
        state.joins.push(sender);
        drop(state);
        self.mailbox.changed.notify_all();
        Ok(JoinHandle(receiver))
    }

    /// Submits a tensor. The engine works in place if the tensor is the only owner of its storage.
    /// The engine calls `done` exactly once, either on its own thread or before this returns.
    /// `done` must not block. It receives the resulting tensor and, for gathers and all-to-all, how
    /// many values came from each rank. The tensor is flat if its number of values changed.
    pub fn submit_tensor(
        &self,
        name: &str,
        tensor: Tensor,
        what: Collective,
        options: SubmitOptions,
        done: impl FnOnce(Result<(Tensor, Vec<usize>)>) + Send + 'static,
    ) {
        self.submit_tensors(vec![(name.into(), tensor, what, Box::new(done))], &options);
    }

    /// [`Engine::submit_tensor`] of several tensors that run together, as in [`Engine::grouped`].
    pub fn submit_tensors(
        &self,
        tensors: Vec<(String, Tensor, Collective, TensorDone)>,
        options: &SubmitOptions,
    ) {
        self.submit_payloads(tensors, options);
    }

    /// [`Engine::submit_tensors`] of tensors in the memory of other libraries. `done` receives the
    /// same tensor. If the number of values has changed, its [`ForeignTensor::replaced`] has the
    /// result.
    pub fn submit_foreign(
        &self,
        tensors: Vec<(String, ForeignTensor, Collective, ForeignDone)>,
        options: &SubmitOptions,
    ) {
        self.submit_payloads(tensors, options);
    }

    fn submit_payloads<P: ShapedPayload>(
        &self,
        tensors: Vec<(String, P, Collective, PayloadDone<P>)>,
        options: &SubmitOptions,
    ) {
        let group = group_of(tensors.iter().map(|(name, ..)| name.as_str()));
        let (mut all, mut refused) = (Vec::new(), None);
        for (name, payload, what, done) in tensors {
            let (dtype, shape) = (payload.dtype(), payload.shape());
            let len = shape.iter().product();
            let options = SubmitOptions { shape: Some(shape), ..options.clone() };
            let request = self.request(name, &what, dtype, len, &options, group);
            let finish = move |outcome: TensorOutcome| {
                done(outcome.and_then(|(values, counts)| {
                    let mut payload: P = unpacked(values)?;
                    payload.make_valid()?;
                    Ok((payload, counts))
                }));
            };
            match request {
                Ok(r) => all.push(Pending::new(r, Box::new(payload), what, Box::new(finish))),
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
            all.into_iter().for_each(|pending| pending.end(Err(cause.clone())));
        }
    }

    /// Fails the group on all ranks with `cause`, which should name this rank. Does nothing if it
    /// has already failed.
    pub fn abort(&self, cause: Error) {
        self.abort.abort(cause);
    }

    /// The request for the coordinator. An impossible collective is still requested, together with
    /// the reason, so that the other ranks receive the error. A rank that is not in the set gets
    /// the error directly.
    fn request(
        &self,
        name: String,
        what: &Collective,
        dtype: DType,
        len: usize,
        options: &SubmitOptions,
        group: (u64, u32),
    ) -> Result<TensorRequest> {
        let (rank, set) = (self.rank, options.set.0);
        let members = self.members(options.set)?;
        let is_member = members.contains(&(rank as u32));
        ensure!(is_member, FailedPrecondition, "rank {rank} is not in process set {set}");
        let bytes = name.len();
        ensure!(
            bytes <= LONGEST_NAME,
            InvalidArgument,
            "a tensor's name has {bytes} bytes, at most {LONGEST_NAME} are allowed"
        );
        let fault =
            options.fault.clone().or_else(|| what.check(dtype, len, options, &members).err());
        let shape: Vec<u64> = match (what, &options.shape) {
            (Collective::ProcessSet { ranks }, _) => ranks.iter().map(|&r| r as u64).collect(),
            (_, Some(shape)) => shape.iter().take(MOST_DIMENSIONS).map(|&d| d as u64).collect(),
            (_, None) => vec![len as u64],
        };
        let root = match what {
            Collective::Broadcast { root } => u32::try_from(*root).unwrap_or(u32::MAX),
            _ => 0,
        };
        Ok(TensorRequest {
            name,
            kind: what.kind(),
            op: options.op,
            dtype,
            shape,
            set,
            root,
            compression: options.compression,
            group: group.0,
            group_len: group.1,
            priority: options.priority,
            fault,
        })
    }

    /// Passes submissions to the engine's thread. Returns all of them if one is refused.
    fn enter(&self, all: Vec<Pending>) -> Result<(), (Vec<Pending>, Error)> {
        let key = |p: &Pending| (p.request.set, p.request.name.clone());
        let mut state = self.mailbox.state.lock();
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
                let cause = err!(
                    AlreadyExists,
                    "tensor {name:?} was submitted again before it was complete"
                );
                drop(state);
                return Err((all, cause));
            }
        }
        state.submitted.extend(all);
        drop(state);
        self.mailbox.changed.notify_all();
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.mailbox.state.lock().leaving = true;
        self.mailbox.changed.notify_all();
        // The runner ends when all ranks have left or the timeout expires. The coordinator ends
        // with it.
        for thread in [self.thread.take(), self.coordinator.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

/// Fails the group of a control connection, without keeping the connection open.
fn control_weak(control: &Arc<Control>) -> impl Fn(Error) + Send + 'static {
    let weak = Arc::downgrade(control);
    move |cause| {
        if let Some(control) = weak.upgrade() {
            control.fail(cause);
        }
    }
}

pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(|e| crate::io_error("cannot start an engine thread", &e))
}

/// A hash of these names that does not depend on their order, and their number. Equal on all ranks.
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
