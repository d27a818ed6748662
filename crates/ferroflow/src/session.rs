//! Sessions: run graphs in this process or on a server, with the same calls.

use crate::default_catalog;
use ferroflow_cluster::RemoteSession;
use ferroflow_core::{Result, Tensor, err};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunOptions, RunRequest, SessionOptions, Task};
use ferroflow_train::{Graph, GraphSession, Steps};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long [`Session::connect`] waits for a server to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// A session, local or remote. Steps may run from several threads at once.
pub struct Session(Kind);

enum Kind {
    Local(Box<ferroflow_runtime::Session>),
    Remote(Box<Remote>),
}

struct Remote {
    session: RemoteSession,
    runtime: Runtime,
}

impl Session {
    /// A session in this process.
    pub fn local(graph: &GraphDef) -> Result<Session> {
        Session::of_catalog(default_catalog(), graph)
    }

    /// A session in this process for a graph of the ops in `catalog`.
    pub fn of_catalog(catalog: Arc<Catalog>, graph: &GraphDef) -> Result<Session> {
        let options = SessionOptions { allow_soft_placement: true, ..SessionOptions::default() };
        let task = Task::local(catalog);
        let session = ferroflow_runtime::Session::new(task, graph, options)?;
        Ok(Session(Kind::Local(Box::new(session))))
    }

    /// A session on the server at `target`, `grpc://host:port`: Ferroflow's or TensorFlow's.
    pub fn connect(target: &str, graph: &GraphDef) -> Result<Session> {
        // One thread is enough: it only moves bytes, and the caller's thread drives it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| err!(Internal, "cannot start the network runtime: {e}"))?;
        let session = runtime.block_on(RemoteSession::connect(target, graph, CONNECT_TIMEOUT))?;
        Ok(Session(Kind::Remote(Box::new(Remote { session, runtime }))))
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
                remote.runtime.block_on(remote.session.run(feeds, fetches, targets, timeout))
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

    fn run_step(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: &[String],
        targets: &[String],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        match &self.0 {
            Kind::Local(session) => {
                let options = RunOptions { timeout, ..RunOptions::default() };
                let (fetches, targets) = (fetches.to_vec(), targets.to_vec());
                let request = RunRequest { feeds, fetches, targets, options };
                Ok(session.run_blocking(request)?.tensors)
            }
            Kind::Remote(remote) => {
                let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
                let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
                remote.runtime.block_on(remote.session.run(feeds, &fetches, &targets, timeout))
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
pub fn local_session(graph: &Graph) -> Result<GraphSession> {
    let session = Session::of_catalog(graph.catalog().clone(), &GraphDef::default())?;
    GraphSession::new(graph, Arc::new(session))
}

/// A session of a graph under construction on the server at `target`, `grpc://host:port`.
pub fn remote_session(target: &str, graph: &Graph) -> Result<GraphSession> {
    GraphSession::new(graph, Arc::new(Session::connect(target, &GraphDef::default())?))
}
