//! Graphs and sessions for the tests of this crate.

use crate::graph::Graph;
use crate::graph_def_session::GraphDefSession;
use crate::session::{Session, StepRunner};
use ferroflow_core::{Result, Tensor};
use ferroflow_graph::GraphDef;
use std::sync::Arc;

pub use crate::catalog::default_catalog as catalog;

pub fn graph() -> Graph {
    Graph::new()
}

/// Runs the steps of a session of this process.
pub fn runner(graph: &Graph) -> Result<Arc<dyn StepRunner>> {
    let runner = GraphDefSession::with_catalog(graph.catalog().clone(), &GraphDef::default())?;
    Ok(Arc::new(runner))
}

/// A session of this process.
pub fn session(graph: &Graph) -> Result<Session> {
    Session::local(graph)
}

/// A session of this process whose variables have their initial values.
pub fn initialized(graph: &Graph) -> Result<Session> {
    Session::initialized(graph)
}

pub fn floats(t: &Tensor) -> Vec<f32> {
    t.as_slice::<f32>().unwrap().to_vec()
}

/// A new directory for a test.
pub fn temporary(name: &str) -> std::path::PathBuf {
    let unique = format!("ferroflow-train-{name}-{}-{}", std::process::id(), fastrand::u64(..));
    std::env::temp_dir().join(unique)
}
