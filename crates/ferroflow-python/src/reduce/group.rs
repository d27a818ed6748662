//! Ordered collectives and messages, for process groups of torch.

use super::exception::raised;
use super::handle::{interruptible, wait_for};
use crate::exit::detached;
use ferroflow_cluster::Trust;
use ferroflow_collective::{
    ForeignTensor, Group, GroupAbort, GroupOptions, GroupThread, LinkCostModel, Membership,
    MessageLinks, ReduceOp, SetId,
};
use ferroflow_core::{DType, Error, Result, bail, err};
use ferroflow_train::hvd::Config;
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A bound port, whose address the ranks exchange before they connect.
#[pyclass(frozen, module = "ferroflow._ferroflow.reduce")]
pub(super) struct GroupListener {
    listener: Mutex<Option<TcpListener>>,
    port: u16,
}

#[pymethods]
impl GroupListener {
    #[new]
    fn new(py: Python<'_>, host: &str) -> PyResult<GroupListener> {
        let bound = TcpListener::bind((host, 0)).and_then(|l| Ok((l.local_addr()?.port(), l)));
        let (port, listener) =
            bound.map_err(|e| raised(py, &err!(Unavailable, "cannot listen on {host}: {e}")))?;
        Ok(GroupListener { listener: Mutex::new(Some(listener)), port })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.port
    }
}

/// A group whose ranks make the same calls in the same order, and their messages to each other.
#[pyclass(frozen, module = "ferroflow._ferroflow.reduce")]
pub(super) struct OrderedGroup {
    rank: usize,
    size: usize,
    abort: GroupAbort,
    thread: Mutex<Option<Arc<GroupThread>>>,
    messages: Mutex<Option<Arc<MessageLinks>>>,
}

/// A tensor of Python: address, number of the dtype, and number of values.
type PyValues = (usize, i32, usize);

/// The memory of tensors, and the Python objects that own it.
struct Tensors {
    list: Vec<ForeignTensor>,
}

fn tensors(py: Python<'_>, given: Vec<PyValues>, owner: &Py<PyAny>) -> Result<Tensors> {
    let list = given.into_iter().map(|(data, dtype, count)| {
        let dtype = DType::from_number(dtype)?;
        let owner = Box::new(owner.clone_ref(py));
        // SAFETY: the Python package passes the address and size of contiguous tensors, which
        // `owner` keeps alive. By torch's contract they are not used until the work is complete.
        unsafe { ForeignTensor::new(data as *mut u8, dtype, vec![count], owner) }
    });
    Ok(Tensors { list: list.collect::<Result<_>>()? })
}

impl Tensors {
    fn one(&mut self) -> Result<&mut ForeignTensor> {
        self.list.first_mut().ok_or_else(|| err!(InvalidArgument, "a collective needs a tensor"))
    }

    /// The output and the input.
    fn two(&mut self) -> Result<(&mut ForeignTensor, &ForeignTensor)> {
        match &mut self.list[..] {
            [output, input] => Ok((output, input)),
            other => bail!(InvalidArgument, "{} tensors instead of output and input", other.len()),
        }
    }
}

/// The options of a collective.
struct CallOptions {
    op: ReduceOp,
    root: usize,
    /// The numbers of values that go to each rank and come from each rank.
    counts: Option<(Vec<usize>, Vec<usize>)>,
}

fn reduce_op(op: u8) -> Result<ReduceOp> {
    let found = ReduceOp::ALL.get(usize::from(op)).copied();
    found.ok_or_else(|| err!(InvalidArgument, "there is no reduce operation {op}"))
}

fn run(group: &mut Group, kind: &str, tensors: &mut Tensors, call: &CallOptions) -> Result<()> {
    const WORLD: SetId = SetId::WORLD;
    match kind {
        "allreduce" => tensors
            .list
            .iter_mut()
            .try_for_each(|t| group.all_reduce_in(WORLD, t.dtype(), t.bytes_mut(), call.op)),
        "broadcast" => tensors
            .list
            .iter_mut()
            .try_for_each(|t| group.broadcast_in(WORLD, t.dtype(), t.bytes_mut(), call.root)),
        "reduce" => {
            let is_root = group.rank() == call.root;
            let t = tensors.one()?;
            if is_root {
                return group.all_reduce_in(WORLD, t.dtype(), t.bytes_mut(), call.op);
            }
            // Only the root's tensor changes.
            let mut copy = t.bytes().to_vec();
            group.all_reduce_in(WORLD, t.dtype(), &mut copy, call.op)
        }
        "allgather" => {
            let me = group.rank();
            let (output, input) = tensors.two()?;
            let own = input.bytes().len();
            let mine = output.bytes_mut().get_mut(me * own..(me + 1) * own);
            let mine = mine.ok_or_else(|| err!(InvalidArgument, "the output is too small"))?;
            // The input may be this rank's part of the output.
            if mine.as_ptr() != input.bytes().as_ptr() {
                mine.copy_from_slice(input.bytes());
            }
            let counts = vec![input.elements(); group.size()];
            group.all_gather_in(WORLD, output.dtype(), output.bytes_mut(), Some(&counts))
        }
        "reduce_scatter" => {
            let (output, input) = tensors.two()?;
            let counts = vec![output.elements(); group.size()];
            let mut copy = input.bytes().to_vec();
            let dtype = input.dtype();
            let part = group.reduce_scatter_in(WORLD, dtype, &mut copy, Some(&counts), call.op)?;
            let width = dtype.size().unwrap_or(1);
            output.bytes_mut().copy_from_slice(&copy[part.start * width..part.end * width]);
            Ok(())
        }
        "alltoall" => {
            let (output, input) = tensors.two()?;
            let Some((to, from)) = &call.counts else {
                bail!(InvalidArgument, "an all-to-all needs counts");
            };
            let dtype = input.dtype();
            group.all_to_all_in(WORLD, dtype, input.bytes(), to, output.bytes_mut(), from)
        }
        "barrier" => group.barrier(),
        other => bail!(InvalidArgument, "there is no collective {other:?}"),
    }
}

#[pymethods]
impl OrderedGroup {
    /// Connects the ranks of a group. Rank 0 passes its listener. `timeout` is the time limit of a
    /// collective in seconds. If one of the groups `watched` fails, a rank is lost, and this fails
    /// too.
    #[staticmethod]
    #[pyo3(signature = (rank, size, address, token, timeout, connect_timeout, listener, messages,
        watched))]
    #[expect(clippy::too_many_arguments, reason = "the options of a Python call")]
    fn connect(
        py: Python<'_>,
        rank: usize,
        size: usize,
        address: String,
        token: String,
        timeout: f64,
        connect_timeout: f64,
        listener: Option<&GroupListener>,
        messages: &GroupListener,
        watched: Vec<PyRef<'_, OrderedGroup>>,
    ) -> PyResult<OrderedGroup> {
        let seconds =
            |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::from_secs(1 << 30));
        let listener = listener.and_then(|l| l.listener.lock().take());
        let messages = messages.listener.lock().take();
        let watched: Vec<GroupAbort> = watched.iter().map(|group| group.abort.clone()).collect();
        let connect = move || -> Result<OrderedGroup> {
            let Some(messages) = messages else {
                bail!(FailedPrecondition, "the listener for messages is in use");
            };
            let trust = Trust::from_env()?;
            let links = MessageLinks::start(rank, messages, &token, trust.clone())?;
            let mut member = Membership::from_env().ok().flatten().map_or_else(
                || Membership::new(rank, size, address.clone()),
                |env| Membership {
                    transport: env.transport,
                    streams: env.streams,
                    ..Membership::new(rank, size, address.clone())
                },
            );
            member.token = token;
            member.trust = trust;
            // The ranks of a group have numbers of their own, not those of the job.
            member.common_role = Some("member");
            member.timeout = seconds(connect_timeout);
            let lost = Arc::new(AtomicBool::new(false));
            for group in &watched {
                let lost = lost.clone();
                group.on_failure(move || lost.store(true, Ordering::SeqCst));
            }
            member.abandon = Some(lost);
            let mut options = GroupOptions { timeout: seconds(timeout), ..GroupOptions::default() };
            if Config::from_env().deterministic {
                // The result of a probe differs between runs, and the order of sums would differ
                // with it.
                options.model = Some(LinkCostModel::default());
            }
            let group = match listener {
                Some(listener) => Group::host(&member, options, listener),
                None => Group::join(&member, options),
            };
            let group =
                group.map_err(|e| watched.iter().find_map(GroupAbort::cause).unwrap_or(e))?;
            let thread = GroupThread::start(group)?;
            let abort = thread.aborter().clone();
            let (fail, cause) = (links.failer(), abort.clone());
            abort.on_failure(move || {
                if let Some(cause) = cause.cause() {
                    fail(&cause);
                }
            });
            Ok(OrderedGroup {
                rank,
                size,
                abort,
                thread: Mutex::new(Some(Arc::new(thread))),
                messages: Mutex::new(Some(Arc::new(links))),
            })
        };
        interruptible(py, "ff-connect", connect, drop)
    }

    #[getter]
    fn rank(&self) -> usize {
        self.rank
    }

    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// Submits a collective. `what` describes it in errors.
    #[pyo3(signature = (kind, what, values, owner, op=0, root=0, counts=None))]
    #[expect(clippy::too_many_arguments, reason = "the options of a Python call")]
    fn submit(
        &self,
        py: Python<'_>,
        kind: String,
        what: String,
        values: Vec<PyValues>,
        owner: Py<PyAny>,
        op: u8,
        root: usize,
        counts: Option<(Vec<usize>, Vec<usize>)>,
    ) -> PyResult<GroupWork> {
        let made = tensors(py, values, &owner).and_then(|t| Ok((t, reduce_op(op)?)));
        let (mut tensors, op) = made.map_err(|e| raised(py, &e))?;
        let work = GroupWork::default();
        let (state, thread) = (work.state.clone(), self.thread.lock().clone());
        let Some(thread) = thread else {
            return Err(raised(py, &err!(FailedPrecondition, "the process group is destroyed")));
        };
        let call = CallOptions { op, root, counts };
        // The callback holds the tensors too, so that they live until the work is complete.
        let kept = Arc::new(Mutex::new(None));
        let keep = kept.clone();
        thread.submit(
            what,
            move |group| {
                let done = run(group, &kind, &mut tensors, &call);
                *keep.lock() = Some(tensors);
                done
            },
            move |result| state.fill(result.map(|()| 0), kept.lock().take()),
        );
        Ok(work)
    }

    /// Sends a tensor to another rank, which listens for messages at `address`.
    fn send(
        &self,
        py: Python<'_>,
        values: PyValues,
        owner: Py<PyAny>,
        to: usize,
        address: &str,
        tag: i64,
    ) -> PyResult<GroupWork> {
        let (tensor, links) = self.message(py, values, &owner)?;
        let work = GroupWork::default();
        let state = work.state.clone();
        detached(py, || {
            links.send(to, address, tag, tensor, Box::new(move |r| state.fill(r, None)));
        });
        Ok(work)
    }

    /// Receives a tensor from a rank, which listens at `address`, or from any rank.
    #[pyo3(signature = (values, owner, tag, source=None))]
    fn receive(
        &self,
        py: Python<'_>,
        values: PyValues,
        owner: Py<PyAny>,
        tag: i64,
        source: Option<(usize, String)>,
    ) -> PyResult<GroupWork> {
        let (tensor, links) = self.message(py, values, &owner)?;
        let work = GroupWork::default();
        let state = work.state.clone();
        detached(py, || {
            let from = source.as_ref().map(|(rank, address)| (*rank, address.as_str()));
            links.receive(from, tag, tensor, Box::new(move |r| state.fill(r, None)));
        });
        Ok(work)
    }

    /// Fails the group on all ranks.
    fn abort(&self, text: &str) {
        self.abort.abort(err!(Aborted, "{text}"));
    }

    /// The first cause of the group's failure, as text.
    fn failure(&self) -> Option<String> {
        self.abort.cause().map(|e| e.message().to_string())
    }

    /// Leaves the group, after all submitted calls.
    fn close(&self, py: Python<'_>) {
        let (thread, messages) = (self.thread.lock().take(), self.messages.lock().take());
        detached(py, || drop((thread, messages)));
    }
}

impl OrderedGroup {
    fn message(
        &self,
        py: Python<'_>,
        values: PyValues,
        owner: &Py<PyAny>,
    ) -> PyResult<(ForeignTensor, Arc<MessageLinks>)> {
        let made = tensors(py, vec![values], owner).map_err(|e| raised(py, &e))?;
        match (made.list.into_iter().next(), self.messages.lock().clone()) {
            (Some(tensor), Some(links)) => Ok((tensor, links)),
            _ => Err(raised(py, &err!(FailedPrecondition, "the process group is destroyed"))),
        }
    }
}

#[derive(Default)]
struct WorkState {
    slot: Mutex<WorkSlot>,
    filled: Condvar,
}

#[derive(Default)]
struct WorkSlot {
    /// The result: for messages the rank of the sender.
    result: Option<Result<usize>>,
    callbacks: Vec<Py<PyAny>>,
    /// The tensors of a completed call, until a thread with the GIL drops their owners.
    kept: Option<Tensors>,
}

impl WorkState {
    fn fill(self: &Arc<WorkState>, result: Result<usize>, kept: Option<Tensors>) {
        let mut slot = self.slot.lock();
        slot.result = Some(result);
        slot.kept = kept;
        let callbacks = std::mem::take(&mut slot.callbacks);
        drop(slot);
        self.filled.notify_all();
        call_later(self, callbacks);
    }

    fn wait_until(&self, until: Instant) -> bool {
        let mut slot = self.slot.lock();
        while slot.result.is_none() {
            if self.filled.wait_until(&mut slot, until).timed_out() {
                return slot.result.is_some();
            }
        }
        true
    }

    fn error(&self) -> Option<Error> {
        self.slot.lock().result.as_ref().and_then(|r| r.as_ref().err().cloned())
    }
}

/// Calls Python callbacks on a thread of their own: waiting for the GIL must not delay collectives.
fn call_later(state: &Arc<WorkState>, callbacks: Vec<Py<PyAny>>) {
    type Call = (Arc<WorkState>, Vec<Py<PyAny>>);
    static CALLS: OnceLock<Mutex<Sender<Call>>> = OnceLock::new();
    if callbacks.is_empty() {
        return;
    }
    let calls = CALLS.get_or_init(|| {
        let (sender, calls) = channel::<Call>();
        let work = move || {
            for (state, callbacks) in calls {
                let error = state.error();
                // Ignores a failure: Python is shutting down, so no thread waits.
                let _ = Python::try_attach(|py| {
                    let error = error.as_ref().map(|e| raised(py, e).into_value(py));
                    for callback in callbacks {
                        if let Err(e) = callback.call1(py, (&error,)) {
                            e.write_unraisable(py, None);
                        }
                    }
                });
            }
        };
        // Without the thread, callbacks are dropped and their futures never complete. The process
        // is then out of threads, and every collective fails too.
        let _ = std::thread::Builder::new().name("ff-callbacks".into()).spawn(work);
        Mutex::new(sender)
    });
    let _ = calls.lock().send((state.clone(), callbacks));
}

/// The pending result of a collective or a message of a group.
#[pyclass(frozen, module = "ferroflow._ferroflow.reduce")]
#[derive(Default)]
pub(super) struct GroupWork {
    state: Arc<WorkState>,
}

#[pymethods]
impl GroupWork {
    fn is_completed(&self) -> bool {
        self.state.slot.lock().result.is_some()
    }

    /// Waits for the result, at most `timeout` seconds. Returns whether it has arrived. Raises the
    /// error of the call. For messages, `source` then has the rank of the sender.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let is_there = self.state.slot.lock().result.is_some()
            || wait_for(py, timeout, |until| self.state.wait_until(until))?;
        drop(self.state.slot.lock().kept.take());
        match self.state.error() {
            Some(e) => Err(raised(py, &e)),
            None => Ok(is_there),
        }
    }

    /// The exception of the call, if it failed.
    fn exception(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state.error().map(|e| raised(py, &e).into_value(py).into_any())
    }

    /// The rank that sent a message.
    #[getter]
    fn source(&self) -> Option<usize> {
        self.state.slot.lock().result.as_ref().and_then(|r| r.as_ref().ok().copied())
    }

    /// Calls `callback` with the exception or None when the call is complete, on another thread.
    fn add_done_callback(&self, callback: Py<PyAny>) {
        let mut slot = self.state.slot.lock();
        if slot.result.is_none() {
            slot.callbacks.push(callback);
            return;
        }
        drop(slot);
        call_later(&self.state, vec![callback]);
    }
}
