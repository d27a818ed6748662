//! Graphs and sessions for the tests of this crate.

use crate::graph::Graph;
use crate::session::{GraphSession, Steps};
use crate::step::{StepOptions, StepOutput, StepRequest};
use ferroflow_core::{CancelToken, Result, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunOptions, RunRequest, Session, SessionOptions, Task};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub fn catalog() -> Arc<Catalog> {
    static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
        let mut catalog = Catalog::new();
        ferroflow_ops::register(&mut catalog);
        Arc::new(catalog)
    });
    CATALOG.clone()
}

pub fn graph() -> Graph {
    Graph::new(catalog())
}

struct Local(Session);

impl Steps for Local {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        self.0.extend(graph, None).map(|_| ())
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        let StepRequest { feeds, fetches, targets, options } = request;
        let StepOptions { timeout, trace } = options;
        let options = RunOptions { timeout, trace, ..RunOptions::default() };
        let output = self.0.run_blocking(RunRequest { feeds, fetches, targets, options })?;
        let metadata = ferroflow_cluster::run_metadata(&output)?;
        Ok(StepOutput { tensors: output.tensors, metadata })
    }

    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        self.0.partial_run_setup(feeds, fetches, targets)
    }

    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        _: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let (tell, told) = std::sync::mpsc::channel();
        let done = Box::new(move |result| tell.send(result).unwrap());
        self.0.partial_run(handle, feeds, fetches, CancelToken::new(), done);
        Ok(told.recv().unwrap()?.tensors)
    }

    fn close(&self) -> Result<()> {
        self.0.close(Box::new(|| {}));
        Ok(())
    }
}

/// Where the steps of a session of this process run.
pub fn steps(graph: &Graph) -> Result<Arc<dyn Steps>> {
    let options = SessionOptions { allow_soft_placement: true, ..SessionOptions::default() };
    let session =
        Session::new(Task::local(graph.catalog().clone()), &GraphDef::default(), options)?;
    Ok(Arc::new(Local(session)))
}

/// A session of this process.
pub fn session(graph: &Graph) -> Result<GraphSession> {
    GraphSession::new(graph, steps(graph)?)
}

/// Runs the initializers of all variables.
pub fn initialized(graph: &Graph) -> Result<GraphSession> {
    let init = [graph.global_initializer(), graph.local_initializer()];
    let session = session(graph)?;
    session.run(init)?;
    Ok(session)
}

pub fn floats(t: &Tensor) -> Vec<f32> {
    t.as_slice::<f32>().unwrap().to_vec()
}

/// A directory of a test's own.
pub fn temporary(name: &str) -> std::path::PathBuf {
    let unique = format!("ferroflow-train-{name}-{}-{}", std::process::id(), fastrand::u64(..));
    std::env::temp_dir().join(unique)
}
