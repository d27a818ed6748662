//! `tf.train.Server`: a server in threads of this process.

use crate::error::status;
use crate::ops;
use ferroflow_cluster::{ClusterSpec, ServerOptions, Trust};
use ferroflow_train::BackgroundServer;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::time::Duration;

/// A running server.
#[pyclass(frozen, module = "ferroflow._ferroflow")]
pub struct ServerCore {
    target: String,
    serving: Mutex<Option<BackgroundServer>>,
}

#[pymethods]
impl ServerCore {
    /// Starts task `task` of `job` in `cluster`, which is written `job=host:port,…;job=…`.
    #[new]
    #[pyo3(signature = (cluster, job, task, *, bind=None, cpus=1))]
    fn new(
        py: Python<'_>,
        cluster: &str,
        job: String,
        task: u32,
        bind: Option<String>,
        cpus: u32,
    ) -> PyResult<ServerCore> {
        let cluster = ClusterSpec::parse(cluster).map_err(|e| status(&e))?;
        let trust = Trust::from_env().map_err(|e| status(&e))?;
        let options = ServerOptions { bind, cpus, trust, ..ServerOptions::new(cluster, job, task) };
        let server = py
            .detach(|| BackgroundServer::start_with(options, ops::catalog().clone()))
            .map_err(|e| status(&e))?;
        let target = server.target().to_string();
        Ok(ServerCore { target, serving: Mutex::new(Some(server)) })
    }

    #[getter]
    fn target(&self) -> &str {
        &self.target
    }

    /// Waits until the process is asked to end.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.detach(|| std::thread::sleep(Duration::from_millis(100)));
            py.check_signals()?;
        }
    }

    /// Stops the server. Running steps have a second to finish.
    fn stop(&self, py: Python<'_>) {
        let server = self.serving.lock().take();
        py.detach(|| drop(server));
    }
}
