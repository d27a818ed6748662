//! `tf.train.Server`: a server in threads of this process.

use crate::error::status;
use crate::exit::detached;
use crate::ops;
use ferroflow_cluster::{ClusterSpec, ServerOptions, Trust, gpu_choice};
use ferroflow_command::gpus::of_process;
use ferroflow_command::logging::{self, LogFormat};
use ferroflow_core::Result;
use ferroflow_train::BackgroundServer;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::time::Duration;

/// Logs to standard error by `FERROFLOW_LOG`, or else by `TF_CPP_MIN_LOG_LEVEL`.
fn log_to_stderr(options: &ServerOptions) -> Result<()> {
    let format = LogFormat::from_env()?;
    let level = match std::env::var("TF_CPP_MIN_LOG_LEVEL").as_deref() {
        Ok("0") | Err(_) => format.default_filter(),
        Ok("1") => "warn",
        Ok("2") => "error",
        Ok(_) => "off",
    };
    logging::log_is_of(&options.metrics);
    logging::start(format, level);
    Ok(())
}

/// A running server.
#[pyclass(frozen, module = "ferroflow._ferroflow")]
pub struct ServerCore {
    target: String,
    serving: Mutex<Option<BackgroundServer>>,
}

#[pymethods]
impl ServerCore {
    /// Starts task `task` of `job` in `cluster`, which has the form `job=host:port,…;job=…`.
    #[new]
    #[pyo3(signature = (cluster, job, task, *, bind=None, cpus=1, config=Vec::new()))]
    fn new(
        py: Python<'_>,
        cluster: &str,
        job: String,
        task: u32,
        bind: Option<String>,
        cpus: u32,
        config: Vec<u8>,
    ) -> PyResult<ServerCore> {
        let spec = ClusterSpec::parse(cluster).map_err(|e| status(&e))?;
        let options = ServerOptions::new(spec, job, task);
        log_to_stderr(&options).map_err(|e| status(&e))?;
        let gpus = detached(py, || of_process(&gpu_choice(&config)?)).map_err(|e| status(&e))?;
        for jobs in cluster.split(';') {
            let Some((job, addresses)) = jobs.split_once('=') else { continue };
            let tasks: Vec<String> =
                addresses.split(',').enumerate().map(|(i, at)| format!("{i} -> {at}")).collect();
            tracing::info!("Initialize channels for job {job} -> {{{}}}", tasks.join(", "));
        }
        let trust = Trust::from_env().map_err(|e| status(&e))?;
        let options = ServerOptions { bind, cpus, gpus, trust, ..options };
        let server = py
            .detach(|| BackgroundServer::start_with(options, ops::catalog().clone()))
            .map_err(|e| status(&e))?;
        let target = server.target().to_string();
        tracing::info!("Started server with target: {target}");
        Ok(ServerCore { target, serving: Mutex::new(Some(server)) })
    }

    #[getter]
    fn target(&self) -> &str {
        &self.target
    }

    /// Waits until the process is asked to end.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            detached(py, || std::thread::sleep(Duration::from_millis(100)));
            py.check_signals()?;
        }
    }

    /// Stops the server. Running steps have a second to finish.
    fn stop(&self, py: Python<'_>) {
        let server = self.serving.lock().take();
        detached(py, || drop(server));
    }
}
