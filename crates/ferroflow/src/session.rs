//! Sessions: run graphs in this process or on a server, with the same calls.

use crate::background_server::BackgroundServer;
use crate::default_catalog;
use ferroflow_cluster::{ConnectOptions, Patience, RemoteSession};
use ferroflow_core::{CancelToken, Result, Tensor, err};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunOptions, RunOutput, RunRequest, SessionOptions, Task};
use ferroflow_train::{
    Graph, GraphSession, SERVE, SavedModel, StepOptions, StepOutput, StepRequest, Steps,
};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A session, local or remote. Steps may run from several threads at once.
pub struct Session(Kind);

enum Kind {
    Local(Box<ferroflow_runtime::Session>),
    Remote(Box<Remote>),
}

struct Remote {
    session: RemoteSession,
    runtime: Driver,
}

/// Who drives the futures of a session on a server.
enum Driver {
    /// The thread that waits for them.
    Own(Runtime),
    /// The threads of the server, which is in this process.
    Server(BackgroundServer, Patience),
}

impl Driver {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            Driver::Own(runtime) => runtime.block_on(future),
            Driver::Server(server, _) => server.block_on(future),
        }
    }

    /// The same for a step, which is mostly short.
    fn block_on_step<F: Future>(&self, step: F) -> F::Output {
        match self {
            Driver::Own(runtime) => runtime.block_on(step),
            Driver::Server(server, patience) => server.block_on(patience.wait_for(step)),
        }
    }
}

impl Session {
    /// A session in this process.
    pub fn local(graph: &GraphDef) -> Result<Session> {
        Session::of_catalog(default_catalog(), graph)
    }

    /// A session in this process for a graph of the ops in `catalog`.
    pub fn of_catalog(catalog: Arc<Catalog>, graph: &GraphDef) -> Result<Session> {
        Ok(Session(Kind::Local(Box::new(of_catalog(catalog, graph)?))))
    }

    /// A session on the server at `target`, `grpc://host:port`: Ferroflow's or TensorFlow's.
    pub fn connect(target: &str, graph: &GraphDef) -> Result<Session> {
        Session::connect_with(target, graph, &ConnectOptions::default())
    }

    /// Like [`Session::connect`], with other patience, on some tasks only, or with state of its own.
    pub fn connect_with(
        target: &str,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<Session> {
        // One thread is enough: it only moves bytes, and the caller's thread drives it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| err!(Internal, "cannot start the network runtime: {e}"))?;
        let session = runtime.block_on(RemoteSession::connect_with(target, graph, options))?;
        Ok(Session(Kind::Remote(Box::new(Remote { session, runtime: Driver::Own(runtime) }))))
    }

    /// A session on a server of this process.
    pub(crate) fn on_server(server: BackgroundServer, options: &ConnectOptions) -> Result<Session> {
        let nothing = GraphDef::default();
        let session = server.block_on(RemoteSession::within(server.master(), &nothing, options))?;
        Ok(Session(Kind::Remote(Box::new(Remote {
            session,
            runtime: Driver::Server(server, Patience::default()),
        }))))
    }

    /// Adds nodes and functions to the graph.
    pub fn extend(&self, graph: &GraphDef) -> Result<()> {
        match &self.0 {
            Kind::Local(session) => session.extend(graph, None).map(|_| ()),
            Kind::Remote(remote) => remote.runtime.block_on(remote.session.extend(graph)),
        }
    }

    /// Runs a step: tensors in `feeds` replace those of their names; the values of `fetches` are
    /// returned in order.
    pub fn run(&self, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Vec<Tensor>> {
        self.run_with(feeds, fetches, &[], None)
    }

    /// Like [`Session::run`], also running the nodes in `targets`, and ending with
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
            Kind::Local(session) => {
                let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
                let request = RunRequest {
                    feeds,
                    fetches: names(fetches),
                    targets: names(targets),
                    options: RunOptions { timeout, ..RunOptions::default() },
                };
                Ok(session.run_blocking(request)?.tensors)
            }
            Kind::Remote(remote) => {
                remote.runtime.block_on_step(remote.session.run(feeds, fetches, targets, timeout))
            }
        }
    }

    /// Ends the session; running steps are cancelled.
    pub fn close(self) -> Result<()> {
        match self.0 {
            Kind::Local(session) => {
                session.close(Box::new(|| {}));
                Ok(())
            }
            Kind::Remote(remote) => remote.runtime.block_on(remote.session.close()),
        }
    }
}

impl Steps for Session {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        Session::extend(self, graph)
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        let request = to_run(request);
        match &self.0 {
            Kind::Local(session) => to_output(session.run_blocking(request)?),
            Kind::Remote(remote) => {
                let answer = remote.runtime.block_on_step(remote.session.run_step(request))?;
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
            Kind::Local(session) => session.partial_run_setup(feeds, fetches, targets),
            Kind::Remote(remote) => {
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
            Kind::Local(session) => partial_run(session, handle, feeds, fetches, timeout),
            Kind::Remote(remote) => {
                let part = remote.session.partial_run(handle, feeds, fetches, timeout);
                remote.runtime.block_on(part)
            }
        }
    }

    fn close(&self) -> Result<()> {
        match &self.0 {
            Kind::Local(session) => {
                session.close(Box::new(|| {}));
                Ok(())
            }
            Kind::Remote(remote) => remote.runtime.block_on(remote.session.close()),
        }
    }
}

/// A session in this process, as the runtime has it.
pub(crate) fn of_catalog(
    catalog: Arc<Catalog>,
    graph: &GraphDef,
) -> Result<ferroflow_runtime::Session> {
    let options = SessionOptions { allow_soft_placement: true, ..SessionOptions::default() };
    ferroflow_runtime::Session::new(Task::local(catalog), graph, options)
}

/// A part of a partial run of this process.
fn partial_run(
    session: &ferroflow_runtime::Session,
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

/// A step as the runtime has it.
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

/// What came of a step, with what was recorded of it.
pub(crate) fn to_output(output: RunOutput) -> Result<StepOutput> {
    let metadata = ferroflow_cluster::run_metadata(&output)?;
    Ok(StepOutput { tensors: output.tensors, metadata })
}

/// An empty graph of every op Ferroflow has.
///
/// ```
/// let g = ferroflow::graph();
/// let x = g.constant([1.0, 2.0]);
/// let session = ferroflow::local_session(&g)?;
/// assert_eq!(session.run((&x * 2.0).sum_all().scalar::<f32>())?, 6.0);
/// # Ok::<(), ferroflow::Error>(())
/// ```
pub fn graph() -> Graph {
    Graph::new(default_catalog())
}

/// A session of a graph under construction, in this process.
///
/// ```
/// let g = ferroflow::graph();
/// let w = g.variable("w", 1.5);
/// let init = g.global_initializer();
/// let session = ferroflow::local_session(&g)?;
/// session.run(&init)?;
/// assert_eq!(session.run(w.scalar::<f32>())?, 1.5);
/// # Ok::<(), ferroflow::Error>(())
/// ```
pub fn local_session(graph: &Graph) -> Result<GraphSession> {
    let session = Session::of_catalog(graph.catalog().clone(), &GraphDef::default())?;
    GraphSession::new(graph, Arc::new(session))
}

/// A session of a graph under construction on the server at `target`, `grpc://host:port`.
///
/// ```no_run
/// let g = ferroflow::graph();
/// let hello = g.constant("hello");
/// let session = ferroflow::remote_session("grpc://127.0.0.1:2222", &g)?;
/// println!("{:?}", session.run(&hello)?);
/// # Ok::<(), ferroflow::Error>(())
/// ```
pub fn remote_session(target: &str, graph: &Graph) -> Result<GraphSession> {
    GraphSession::new(graph, Arc::new(Session::connect(target, &GraphDef::default())?))
}

/// [`remote_session`] that sees only the tasks and devices the filters name, and is not troubled by
/// others: `["/job:ps", "/job:worker/task:0"]` for a worker between graphs.
pub fn filtered_session(
    target: &str,
    graph: &Graph,
    device_filters: &[&str],
) -> Result<GraphSession> {
    let device_filters = device_filters.iter().map(|f| f.to_string()).collect();
    let options = ConnectOptions { device_filters, ..ConnectOptions::default() };
    let session = Session::connect_with(target, &GraphDef::default(), &options)?;
    GraphSession::new(graph, Arc::new(session))
}

/// The SavedModel in a directory, in this process: the graph that is there to be served, restored and
/// ready to be called.
pub fn saved_model(dir: impl AsRef<Path>) -> Result<SavedModel> {
    SavedModel::load(dir, &[SERVE], Session::local)
}
