//! Sessions: in this process, or on a server. The GIL is released while a step runs, and Ctrl-C
//! cancels it.

use crate::array::{from_numpy, share_numpy, to_numpy};
use crate::error::status;
use crate::exit::detached;
use crate::graph::GraphCore;
use crate::handles::{PyOperation, PyTensor};
use crate::ops;
use crate::reduce::ClientStep;
use crate::unsupported;
use crate::wire::node_def;
use ferroflow_cluster::{ConnectOptions, RemoteSession, gpu_choice, network_threads, run_metadata};
use ferroflow_command::gpus::of_process;
use ferroflow_core::{
    CancelToken, DType, Error, Gpu, GpuChoice, InlineScope, Result, Tensor, ThreadKind, err,
};
use ferroflow_graph::{GraphDef, NodeId, OpRole};
use ferroflow_runtime::{RunOptions, RunRequest, SessionOptions, Task, TaskSession};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The interval in which a waiting thread checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// The size of a feed from which the check for a needless copy pays.
const LARGE_FEED: usize = 1 << 18;

/// The network threads of all sessions on servers.
static NETWORK: LazyLock<Result<Runtime>> = LazyLock::new(network_threads);

/// A session of a graph.
#[pyclass(frozen, module = "ferroflow._ferroflow")]
pub struct SessionCore {
    graph: Py<GraphCore>,
    runner: Runner,
    sent: Mutex<Sent>,
    /// Whether Ferroflow runs the steps. If so, ops that it lacks are printed.
    runs_here: bool,
    /// Whether a thread is sending nodes; only one at a time does.
    sending: AtomicBool,
    /// The process that opened the session.
    process: AtomicU32,
    /// Steps by their nodes, and whether they keep no fed value.
    read_only: Mutex<HashMap<Vec<NodeId>, bool>>,
}

enum Runner {
    Local(Arc<TaskSession>),
    Remote(Box<Remote>),
}

/// A session on a server. As in TensorFlow, the first call to the server opens it.
struct Remote {
    target: String,
    options: ConnectOptions,
    opened: Mutex<Option<Arc<RemoteSession>>>,
}

impl Remote {
    fn session(&self) -> Option<Arc<RemoteSession>> {
        self.opened.lock().clone()
    }

    /// The session. Opens it with `graph` if it is not open yet.
    fn open(&self, py: Python<'_>, graph: GraphDef) -> PyResult<Arc<RemoteSession>> {
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let (target, options) = (self.target.clone(), self.options.clone());
        let connect = async move { RemoteSession::connect_with(&target, &graph, &options).await };
        let session = Arc::new(wait_for(py, connect)?.map_err(|e| status(&e))?);
        *self.opened.lock() = Some(session.clone());
        Ok(session)
    }
}

/// The part of the graph that the session has.
#[derive(Clone, Copy, Default)]
struct Sent {
    nodes: usize,
    functions: usize,
    changes: usize,
}

/// The result of a step: its values, and the serialized `RunMetadata`.
struct Answer {
    tensors: Vec<Tensor>,
    metadata: bytes::Bytes,
}

type Outcome = Arc<(Mutex<Option<Result<Answer>>>, Condvar)>;

/// The options of a step: timeout in milliseconds, trace, partition graphs.
type StepOptions = (u64, bool, bool);

impl SessionCore {
    /// Sends the nodes that the session does not have yet.
    fn catch_up(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_up_to_date(py) {
            return Ok(());
        }
        while self.sending.swap(true, Ordering::Acquire) {
            detached(py, || std::thread::sleep(Duration::from_micros(200)));
        }
        let result = self.send(py);
        self.sending.store(false, Ordering::Release);
        result
    }

    fn is_up_to_date(&self, py: Python<'_>) -> bool {
        let sent = *self.sent.lock();
        let graph = self.graph.borrow(py);
        sent.nodes == graph.ir.len()
            && sent.functions == graph.ir.library.len()
            && sent.changes == graph.change_count()
    }

    fn send(&self, py: Python<'_>) -> PyResult<()> {
        let sent = *self.sent.lock();
        let (def, now) = {
            let graph = self.graph.borrow(py);
            if let Some(name) = graph.changed_below(sent.changes, sent.nodes) {
                let text = format!(
                    "Operation '{name}' was changed after it was run by a session. This mutation \
                     will have no effect; make a new session after the graph is complete"
                );
                return Err(pyo3::exceptions::PyRuntimeError::new_err(text));
            }
            let nodes = graph.ir.ids().skip(sent.nodes).map(|id| node_def(&graph, id, true));
            let functions = graph.ir.library.functions();
            let functions = match sent.functions == graph.ir.library.len() {
                true => Vec::new(),
                false => functions.cloned().collect(),
            };
            let def = GraphDef {
                nodes: nodes.collect(),
                functions,
                gradients: graph.ir.library.gradients().clone(),
                versions: graph.ir.versions.clone(),
            };
            let now = Sent {
                nodes: graph.ir.len(),
                functions: graph.ir.library.len(),
                changes: graph.change_count(),
            };
            (def, now)
        };
        if self.runs_here {
            unsupported::report(py, &def)?;
        }
        match &self.runner {
            Runner::Local(session) => {
                let extended = detached(py, || session.extend(&def, None));
                extended.map_err(|e| status(&e))?;
            }
            Runner::Remote(remote) => match remote.session() {
                None => drop(remote.open(py, def)?),
                Some(session) => {
                    let extend = async move { session.extend(&def).await };
                    wait_for(py, extend)?.map_err(|e| status(&e))?;
                }
            },
        }
        *self.sent.lock() = now;
        Ok(())
    }

    /// Whether a step keeps no fed value, because none of its nodes has state. Large arrays are
    /// then fed without a copy.
    fn only_reads(
        &self,
        py: Python<'_>,
        fetches: &[Bound<'_, PyTensor>],
        targets: &[Bound<'_, PyOperation>],
        feeds: &[(Bound<'_, PyTensor>, Bound<'_, PyAny>)],
    ) -> PyResult<bool> {
        let mut is_large = false;
        for (_, value) in feeds {
            let bytes = value.getattr(pyo3::intern!(py, "nbytes"));
            is_large |= bytes.is_ok_and(|n| n.extract::<usize>().is_ok_and(|n| n >= LARGE_FEED));
        }
        if !is_large {
            return Ok(false);
        }
        let ids: Vec<NodeId> = fetches
            .iter()
            .map(|t| t.get().endpoint.node)
            .chain(targets.iter().map(|op| op.get().id))
            .collect();
        if let Some(known) = self.read_only.lock().get(&ids) {
            return Ok(*known);
        }
        let fed: HashSet<NodeId> = feeds.iter().map(|(t, _)| t.get().endpoint.node).collect();
        let found = reads_only(&self.graph.borrow(py), &ids, &fed);
        self.read_only.lock().insert(ids, found);
        Ok(found)
    }

    fn check_process(&self) -> PyResult<()> {
        let opened = self.process.load(Ordering::Relaxed);
        if opened == std::process::id() {
            return Ok(());
        }
        let text = format!(
            "this session was opened by process {opened} before it forked; open a session in each \
             process, or start processes with multiprocessing's 'spawn'"
        );
        Err(status(&err!(FailedPrecondition, "{text}")))
    }

    fn step(&self, py: Python<'_>, request: RunRequest) -> PyResult<Answer> {
        match &self.runner {
            Runner::Local(session) => {
                let timeout = request.options.timeout;
                run_local(py, timeout, |scope, cancel, done| {
                    session.run_in(scope, request, cancel, done);
                })
            }
            Runner::Remote(remote) => {
                let session = remote.open(py, GraphDef::default())?;
                let run = async move {
                    let answer = session.run_step(request).await?;
                    let metadata = answer.metadata.bytes().clone();
                    Ok(Answer { tensors: answer.tensors, metadata })
                };
                wait_for(py, run)?.map_err(|e| status(&e))
            }
        }
    }
}

/// Starts a step of a local session and waits for it.
fn run_local(
    py: Python<'_>,
    timeout: Option<Duration>,
    start: impl FnOnce(&InlineScope, CancelToken, ferroflow_runtime::SessionDone) + Send,
) -> PyResult<Answer> {
    let _of_rank = ClientStep::begin();
    let began = Instant::now();
    let outcome: Outcome = Outcome::default();
    let tell = outcome.clone();
    let done = Box::new(move |result: Result<ferroflow_runtime::RunOutput>| {
        let answer = result.and_then(|output| {
            let metadata = run_metadata(&output)?.bytes().clone();
            Ok(Answer { tensors: output.tensors, metadata })
        });
        *tell.0.lock() = Some(answer);
        tell.1.notify_all();
    });
    let cancel = CancelToken::new();
    let ended = detached(py, || {
        let scope = InlineScope::new(ThreadKind::Network);
        start(&scope, cancel.clone(), done);
        drop(scope);
        take(&outcome)
    });
    if let Some(answer) = ended {
        return answer.map_err(|e| status(&e));
    }
    loop {
        if let Some(answer) = detached(py, || take(&outcome)) {
            return answer.map_err(|e| status(&e));
        }
        if let Some(limit) = timeout
            && began.elapsed() >= limit
        {
            // Later cancellations have no effect.
            cancel.cancel(err!(DeadlineExceeded, "the step took longer than {limit:?}"));
        }
        if let Err(interrupt) = py.check_signals() {
            cancel.cancel(err!(Cancelled, "the step was interrupted"));
            // The step ends before the exception is raised, so that nothing runs after that.
            detached(py, || while take(&outcome).is_none() {});
            return Err(interrupt);
        }
    }
}

/// The outcome of a step, if it ends before the next check for signals.
fn take(outcome: &Outcome) -> Option<Result<Answer>> {
    let mut result = outcome.0.lock();
    if result.is_none() {
        outcome.1.wait_while_for(&mut result, |r| r.is_none(), SIGNAL_INTERVAL);
    }
    result.take()
}

/// Runs a call on the network threads and waits for it. Ctrl-C drops the call, which cancels it.
fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    call: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let runtime = NETWORK.as_ref().map_err(status)?;
    let (tell, told) = std::sync::mpsc::channel();
    let task = runtime.spawn(async move { drop(tell.send(call.await)) });
    let told = Mutex::new(told);
    loop {
        let received = detached(py, || told.lock().recv_timeout(SIGNAL_INTERVAL));
        match received {
            Ok(value) => return Ok(value),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    task.abort();
                    return Err(interrupt);
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Err(status(&err!(Internal, "a call ended without a result")));
            }
        }
    }
}

/// The process that made a task, and the numbers of its CPUs and GPUs.
type TaskKey = (u32, u32, usize);

/// The task of sessions without a server: one for each number of CPUs and GPUs.
fn local_task(cpus: u32, gpus: &[Arc<dyn Gpu>]) -> Arc<Task> {
    static TASKS: Mutex<Vec<(TaskKey, Arc<Task>)>> = Mutex::new(Vec::new());
    let mut tasks = TASKS.lock();
    let key = (std::process::id(), cpus, gpus.len());
    if let Some((_, task)) = tasks.iter().find(|(known, _)| *known == key) {
        return task.clone();
    }
    let task = Task::with_gpus(ops::catalog().clone(), "localhost", 0, cpus, gpus);
    tasks.push((key, task.clone()));
    task
}

/// The GPUs of sessions without a server, in TensorFlow's words.
#[pyfunction]
pub fn gpu_descriptions(py: Python<'_>) -> PyResult<Vec<String>> {
    let found = detached(py, || of_process(&GpuChoice::default())).map_err(|e| status(&e))?;
    Ok(found.iter().map(|gpu| gpu.description()).collect())
}

#[pymethods]
impl SessionCore {
    /// Opens a session of `graph` on `target`: empty for this process, or `grpc://host:port`.
    /// `on_ferroflow` states that the server there is Ferroflow's.
    #[new]
    #[pyo3(signature = (graph, target, *, cpus=1, soft_placement=false, log_placement=false,
        isolate_state=false, device_filters=Vec::new(), optimize=true, timeout_ms=0, config=Vec::new(),
        on_ferroflow=false))]
    fn new(
        py: Python<'_>,
        graph: Py<GraphCore>,
        target: &str,
        cpus: u32,
        soft_placement: bool,
        log_placement: bool,
        isolate_state: bool,
        device_filters: Vec<String>,
        optimize: bool,
        timeout_ms: u64,
        config: Vec<u8>,
        on_ferroflow: bool,
    ) -> PyResult<SessionCore> {
        let runner = if target.is_empty() {
            let options = SessionOptions {
                // Each session without a server has variables of its own.
                isolate_state: true,
                allow_soft_placement: soft_placement,
                log_device_placement: log_placement,
                disable_optimizer: !optimize,
                ..SessionOptions::default()
            };
            let open = || {
                let gpus = of_process(&gpu_choice(&config)?)?;
                TaskSession::new(local_task(cpus, &gpus), &GraphDef::default(), options)
            };
            let opened = detached(py, open);
            Runner::Local(Arc::new(opened.map_err(|e| status(&e))?))
        } else {
            let mut options =
                ConnectOptions { device_filters, isolate_state, ..ConnectOptions::default() };
            options.config = Some(config.into());
            options.timeout = match timeout_ms {
                0 => Duration::from_secs(60 * 60 * 24 * 365),
                ms => Duration::from_millis(ms),
            };
            Runner::Remote(Box::new(Remote {
                target: target.to_string(),
                options,
                opened: Mutex::default(),
            }))
        };
        Ok(SessionCore {
            graph,
            runner,
            sent: Mutex::default(),
            runs_here: on_ferroflow || target.is_empty(),
            sending: AtomicBool::new(false),
            process: AtomicU32::new(std::process::id()),
            read_only: Mutex::default(),
        })
    }

    /// Runs a step. Feeds are pairs of a tensor and an array of the matching dtype. Returns the
    /// values of `fetches`, and the serialized `RunMetadata` if there are any records.
    #[pyo3(signature = (fetches, targets, feeds, options=(0, false, false)))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        fetches: Vec<Bound<'py, PyTensor>>,
        targets: Vec<Bound<'py, PyOperation>>,
        feeds: Vec<(Bound<'py, PyTensor>, Bound<'py, PyAny>)>,
        options: StepOptions,
    ) -> PyResult<(Bound<'py, PyList>, Option<Bound<'py, PyBytes>>)> {
        self.check_process()?;
        self.catch_up(py)?;
        let request = RunRequest {
            feeds: fed(py, &feeds, self.only_reads(py, &fetches, &targets, &feeds)?)?,
            fetches: fetches.iter().map(|t| tensor_name(py, t.get())).collect(),
            targets: targets.iter().map(|op| op.get().text(py)).collect(),
            options: run_options(options),
        };
        let answer = self.step(py, request)?;
        let metadata = (!answer.metadata.is_empty()).then(|| PyBytes::new(py, &answer.metadata));
        Ok((arrays(py, answer.tensors)?, metadata))
    }

    /// Sets up a step that is fed and fetched in parts. Returns its handle.
    fn partial_run_setup(
        &self,
        py: Python<'_>,
        fetches: Vec<Bound<'_, PyTensor>>,
        targets: Vec<Bound<'_, PyOperation>>,
        feeds: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<String> {
        self.check_process()?;
        self.catch_up(py)?;
        let feeds = feeds.iter().map(|t| tensor_name(py, t.get())).collect();
        let fetches = fetches.iter().map(|t| tensor_name(py, t.get())).collect();
        let targets = targets.iter().map(|op| op.get().text(py)).collect();
        let handle = match &self.runner {
            Runner::Local(session) => {
                detached(py, || session.partial_run_setup(feeds, fetches, targets))
            }
            Runner::Remote(remote) => {
                let session = remote.open(py, GraphDef::default())?;
                wait_for(
                    py,
                    async move { session.partial_run_setup(feeds, fetches, targets).await },
                )?
            }
        };
        handle.map_err(|e| status(&e))
    }

    /// Feeds and fetches a part of such a step.
    fn partial_run<'py>(
        &self,
        py: Python<'py>,
        handle: String,
        fetches: Vec<Bound<'py, PyTensor>>,
        feeds: Vec<(Bound<'py, PyTensor>, Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.check_process()?;
        let feeds = fed(py, &feeds, false)?;
        let fetches: Vec<String> = fetches.iter().map(|t| tensor_name(py, t.get())).collect();
        let tensors = match &self.runner {
            Runner::Local(session) => {
                run_local(py, None, |_, cancel, done| {
                    session.partial_run(&handle, feeds, fetches, cancel, done);
                })?
                .tensors
            }
            Runner::Remote(remote) => {
                let session = remote.open(py, GraphDef::default())?;
                let part = async move { session.partial_run(&handle, feeds, fetches, None).await };
                wait_for(py, part)?.map_err(|e| status(&e))?
            }
        };
        arrays(py, tensors)
    }

    /// The devices of the session: name, type, memory and incarnation.
    fn list_devices(&self, py: Python<'_>) -> PyResult<Vec<(String, String, i64, u64)>> {
        match &self.runner {
            Runner::Local(session) => {
                let one = |d: &Arc<ferroflow_core::DeviceInfo>| {
                    (d.text.clone(), d.kind().to_string(), d.memory_limit, d.incarnation)
                };
                Ok(session.devices().iter().map(one).collect())
            }
            Runner::Remote(remote) => {
                let session = remote.open(py, GraphDef::default())?;
                let found = wait_for(py, async move { session.list_devices().await })?;
                let one = |d: ferroflow_cluster::SessionDevice| {
                    (d.name, d.kind, d.memory_limit, d.incarnation)
                };
                Ok(found.map_err(|e| status(&e))?.into_iter().map(one).collect())
            }
        }
    }

    /// Closes the session and cancels its steps.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.check_process().is_err() {
            return Ok(());
        }
        match &self.runner {
            Runner::Local(session) => {
                detached(py, || session.close(Box::new(|| {})));
                Ok(())
            }
            Runner::Remote(remote) => match remote.session() {
                None => Ok(()),
                Some(session) => {
                    wait_for(py, async move { session.close().await })?.map_err(|e| status(&e))
                }
            },
        }
    }
}

/// Clears containers of the server at `target` and closes its sessions.
#[pyfunction]
pub fn reset(py: Python<'_>, target: String, containers: Vec<String>) -> PyResult<()> {
    if target.is_empty() {
        let text = "Session.reset needs a target: sessions without one keep nothing to reset";
        return Err(status(&err!(Unimplemented, "{text}")));
    }
    let call = async move { RemoteSession::reset(&target, containers).await };
    wait_for(py, call)?.map_err(|e| status(&e))
}

/// Whether none of the nodes that these nodes need has state. Fed nodes do not run.
fn reads_only(graph: &GraphCore, ids: &[NodeId], fed: &HashSet<NodeId>) -> bool {
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut rest = ids.to_vec();
    while let Some(id) = rest.pop() {
        if fed.contains(&id) || !seen.insert(id) {
            continue;
        }
        let node = graph.ir.node(id);
        let reads = node.op.role == OpRole::Variable || node.op.reads_variables;
        if (node.op.is_stateful && !reads) || node.input_types.iter().any(|t| t.is_ref) {
            return false;
        }
        rest.extend(node.inputs.iter().map(|e| e.node));
        rest.extend(&node.controls);
    }
    true
}

fn run_options((timeout_ms, trace, output_partition_graphs): StepOptions) -> RunOptions {
    RunOptions {
        trace,
        output_partition_graphs,
        timeout: (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms)),
        ..RunOptions::default()
    }
}

fn tensor_name(py: Python<'_>, t: &PyTensor) -> String {
    format!("{}:{}", t.op.get().text(py), t.endpoint.slot)
}

fn fed(
    py: Python<'_>,
    feeds: &[(Bound<'_, PyTensor>, Bound<'_, PyAny>)],
    share: bool,
) -> PyResult<Vec<(String, Tensor)>> {
    let one = |(tensor, value): &(Bound<'_, PyTensor>, Bound<'_, PyAny>)| {
        let tensor = tensor.get();
        let dtype = DType::from_number(i32::from(tensor.number % 100));
        let dtype = dtype.map_err(|e: Error| status(&e))?;
        let value = if share { share_numpy(value, dtype)? } else { from_numpy(value, dtype)? };
        Ok((tensor_name(py, tensor), value))
    };
    feeds.iter().map(one).collect()
}

fn arrays(py: Python<'_>, tensors: Vec<Tensor>) -> PyResult<Bound<'_, PyList>> {
    let all: Vec<Bound<'_, PyAny>> =
        tensors.into_iter().map(|t| to_numpy(py, t, true)).collect::<PyResult<_>>()?;
    PyList::new(py, all)
}
