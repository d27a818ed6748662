//! Sessions of a GraphDef, with tensors by name: in this process or on a server, with the same
//! calls.

use crate::background_server::BackgroundServer;
use crate::catalog::default_catalog;
use crate::session::StepRunner;
use crate::step::{StepOptions, StepOutput, StepRequest};
use ferroflow_cluster::{ConnectOptions, RemoteSession, StepSpin};
use ferroflow_core::{CancelToken, DType, Gpu, Result, Tensor, ensure, err};
use ferroflow_graph::passes::{MixedPrecision, Rewrites};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunOptions, RunOutput, RunRequest, SessionOptions, Task};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A session of a [`GraphDef`], which names its feeds and fetches: for graphs that were read from a
/// file or that another program built. Several threads may run steps at once. A program that builds
/// its graph itself uses [`crate::Session`].
///
/// ```
/// use ferroflow_train::{Graph, GraphDefSession};
/// let g = Graph::new();
/// let sum = g.constant(1.0) + g.constant(2.0);
/// let session = GraphDefSession::local(&g.to_def()?)?;
/// let values = session.run(&[], &[&sum.name()])?;
/// assert_eq!(values[0].scalar_value::<f32>()?, 3.0);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct GraphDefSession(Backend);

enum Backend {
    Local(Box<ferroflow_runtime::TaskSession>),
    Remote(Box<Remote>),
}

struct Remote {
    session: RemoteSession,
    runtime: Driver,
}

/// The threads that drive the futures of a session on a server.
enum Driver {
    /// The calling thread.
    Own(Runtime),
    /// The threads of the server in this process.
    Server(BackgroundServer, StepSpin),
}

impl Driver {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            Driver::Own(runtime) => runtime.block_on(future),
            Driver::Server(server, _) => server.block_on(future),
        }
    }

    /// [`Driver::block_on`] for a step: polls briefly first, since most steps are short.
    fn block_on_step<F: Future>(&self, step: F) -> F::Output {
        match self {
            Driver::Own(runtime) => runtime.block_on(step),
            Driver::Server(server, spin) => server.block_on(spin.wait_for(step)),
        }
    }
}

impl GraphDefSession {
    /// A session in this process.
    pub fn local(graph: &GraphDef) -> Result<GraphDefSession> {
        GraphDefSession::with_catalog(default_catalog(), graph)
    }

    /// A session in this process for a graph of the ops in `catalog`.
    pub fn with_catalog(catalog: Arc<Catalog>, graph: &GraphDef) -> Result<GraphDefSession> {
        GraphDefSession::with_options(catalog, graph, &LocalOptions::default())
    }

    /// [`GraphDefSession::with_catalog`] with other devices or rules.
    pub fn with_options(
        catalog: Arc<Catalog>,
        graph: &GraphDef,
        options: &LocalOptions,
    ) -> Result<GraphDefSession> {
        Ok(GraphDefSession(Backend::Local(Box::new(open_local(catalog, graph, options)?))))
    }

    /// A session on the server at `target`, `grpc://host:port`: Ferroflow's or TensorFlow's.
    pub fn connect(target: &str, graph: &GraphDef) -> Result<GraphDefSession> {
        GraphDefSession::connect_with(target, graph, &ConnectOptions::default())
    }

    /// [`GraphDefSession::connect`] with a time limit, with only some tasks, or with isolated
    /// state.
    pub fn connect_with(
        target: &str,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<GraphDefSession> {
        // The caller's thread drives it; it only moves bytes.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| err!(Internal, "cannot start the network runtime: {e}"))?;
        let session = runtime.block_on(RemoteSession::connect_with(target, graph, options))?;
        Ok(GraphDefSession(Backend::Remote(Box::new(Remote {
            session,
            runtime: Driver::Own(runtime),
        }))))
    }

    /// A session on a server of this process.
    pub(crate) fn on_server(
        server: BackgroundServer,
        options: &ConnectOptions,
    ) -> Result<GraphDefSession> {
        let nothing = GraphDef::default();
        let session = server.block_on(RemoteSession::within(server.master(), &nothing, options))?;
        Ok(GraphDefSession(Backend::Remote(Box::new(Remote {
            session,
            runtime: Driver::Server(server, StepSpin::default()),
        }))))
    }

    /// Adds nodes and functions to the graph.
    pub fn extend(&self, graph: &GraphDef) -> Result<()> {
        match &self.0 {
            Backend::Local(session) => session.extend(graph, None).map(|_| ()),
            Backend::Remote(remote) => remote.runtime.block_on(remote.session.extend(graph)),
        }
    }

    /// Runs a step. `feeds` replace the tensors of their names. Returns the values of `fetches`, in
    /// order.
    pub fn run(&self, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Vec<Tensor>> {
        self.run_with(feeds, fetches, &[], None)
    }

    /// [`GraphDefSession::run`] that also runs the nodes in `targets`, and fails with
    /// `DeadlineExceeded` after `timeout`.
    pub fn run_with(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let feeds = feeds.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        match &self.0 {
            Backend::Local(session) => {
                let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
                let request = RunRequest {
                    feeds,
                    fetches: names(fetches),
                    targets: names(targets),
                    options: RunOptions { timeout, ..RunOptions::default() },
                };
                Ok(session.run_blocking(request)?.tensors)
            }
            Backend::Remote(remote) => {
                remote.runtime.block_on_step(remote.session.run(feeds, fetches, targets, timeout))
            }
        }
    }

    /// Closes the session and cancels its running steps.
    pub fn close(self) -> Result<()> {
        match self.0 {
            Backend::Local(session) => {
                session.close(Box::new(|| {}));
                Ok(())
            }
            Backend::Remote(remote) => remote.runtime.block_on(remote.session.close()),
        }
    }
}

impl StepRunner for GraphDefSession {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        GraphDefSession::extend(self, graph)
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        match &self.0 {
            Backend::Local(session) => StepRunner::run_step(&**session, request),
            Backend::Remote(remote) => {
                let step = remote.session.run_step(to_run(request));
                let answer = remote.runtime.block_on_step(step)?;
                Ok(StepOutput { tensors: answer.tensors, metadata: answer.metadata })
            }
        }
    }

    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        match &self.0 {
            Backend::Local(session) => session.partial_run_setup(feeds, fetches, targets),
            Backend::Remote(remote) => {
                let setup = remote.session.partial_run_setup(feeds, fetches, targets);
                remote.runtime.block_on(setup)
            }
        }
    }

    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        match &self.0 {
            Backend::Local(session) => {
                StepRunner::partial_run(&**session, handle, feeds, fetches, timeout)
            }
            Backend::Remote(remote) => {
                let part = remote.session.partial_run(handle, feeds, fetches, timeout);
                remote.runtime.block_on(part)
            }
        }
    }

    fn close(&self) -> Result<()> {
        match &self.0 {
            Backend::Local(session) => StepRunner::close(&**session),
            Backend::Remote(remote) => remote.runtime.block_on(remote.session.close()),
        }
    }
}

/// A session of the runtime, for programs that also start its steps without waiting for them.
impl StepRunner for ferroflow_runtime::TaskSession {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        self.extend(graph, None).map(|_| ())
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        to_output(self.run_blocking(to_run(request))?)
    }

    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        self.partial_run_setup(feeds, fetches, targets)
    }

    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        partial_run(self, handle, feeds, fetches, timeout)
    }

    fn close(&self) -> Result<()> {
        self.close(Box::new(|| {}));
        Ok(())
    }
}

/// The devices and rules of a session in this process.
///
/// ```
/// use ferroflow_train::{Graph, LocalOptions, Session};
/// let g = Graph::new();
/// let y = g.device("/cpu:1", || g.constant(2.0).square());
/// let options =
///     LocalOptions { cpu_devices: 2, allow_soft_placement: false, ..LocalOptions::default() };
/// let session = Session::local_with(&g, &options)?;
/// assert_eq!(session.run(y.scalar::<f32>())?, 4.0);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The number of CPU devices, `/cpu:0` and up. They share the threads of the process.
    pub cpu_devices: u32,
    /// The GPUs, `/gpu:0` and up.
    pub gpus: Vec<Arc<dyn Gpu>>,
    /// Replaces a device that does not exist by one that does. Without it, such a node is an error.
    pub allow_soft_placement: bool,
    /// GPUs compute with this type, `half` or `bfloat16`, where that is fast and safe. Variables
    /// stay `float`. See [`LossScale`](crate::LossScale).
    pub mixed_precision: Option<DType>,
}

impl Default for LocalOptions {
    fn default() -> LocalOptions {
        LocalOptions {
            cpu_devices: 1,
            gpus: Vec::new(),
            allow_soft_placement: true,
            mixed_precision: None,
        }
    }
}

/// Opens a session of the runtime.
pub(crate) fn open_local(
    catalog: Arc<Catalog>,
    graph: &GraphDef,
    options: &LocalOptions,
) -> Result<ferroflow_runtime::TaskSession> {
    let LocalOptions { cpu_devices, ref gpus, allow_soft_placement, mixed_precision } = *options;
    ensure!(cpu_devices > 0, InvalidArgument, "a session needs at least one CPU device");
    let task = Task::with_gpus(catalog, "localhost", 0, cpu_devices, gpus);
    let mixed_precision = mixed_precision.map(|dtype| MixedPrecision { dtype, on_cpu: false });
    if let Some(MixedPrecision { dtype, .. }) = mixed_precision {
        let is_narrow = matches!(dtype, DType::Half | DType::BFloat16);
        ensure!(is_narrow, InvalidArgument, "mixed precision with {dtype}: half or bfloat16");
    }
    let rewrites = Rewrites { mixed_precision, ..Rewrites::ALL };
    let options = SessionOptions { allow_soft_placement, rewrites, ..SessionOptions::default() };
    ferroflow_runtime::TaskSession::new(task, graph, options)
}

/// Runs a part of a partial run in this process.
fn partial_run(
    session: &ferroflow_runtime::TaskSession,
    handle: &str,
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    timeout: Option<Duration>,
) -> Result<Vec<Tensor>> {
    let (tell, told) = mpsc::channel();
    let cancel = CancelToken::new();
    let done = Box::new(move |result| drop(tell.send(result)));
    session.partial_run(handle, feeds, fetches, cancel.clone(), done);
    let ended = |_| err!(Internal, "a partial run ended without a result");
    let result = match timeout {
        None => told.recv().map_err(ended)?,
        Some(timeout) => match told.recv_timeout(timeout) {
            Ok(result) => result,
            Err(_) => {
                cancel.cancel(err!(DeadlineExceeded, "the step took longer than {timeout:?}"));
                told.recv().map_err(ended)?
            }
        },
    };
    Ok(result?.tensors)
}

/// The request in the runtime's type.
pub(crate) fn to_run(request: StepRequest) -> RunRequest {
    let StepRequest { feeds, fetches, targets, options } = request;
    let StepOptions { timeout, trace } = options;
    RunRequest {
        feeds,
        fetches,
        targets,
        options: RunOptions { timeout, trace, ..RunOptions::default() },
    }
}

/// The values and the trace of a step.
pub(crate) fn to_output(output: RunOutput) -> Result<StepOutput> {
    let metadata = ferroflow_cluster::run_metadata(&output)?;
    Ok(StepOutput { tensors: output.tensors, metadata })
}
