//! `tf.train.Server`: a server in threads of this process.

use crate::error::status;
use crate::exit::detached;
use crate::ops;
use ferroflow_cluster::{ClusterSpec, ServerOptions, Trust, gpu_choice};
use ferroflow_command::gpus::of_process;
use ferroflow_train::BackgroundServer;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::time::Duration;

/// Logs to standard error: as `FERROFLOW_LOG` says, or else as `TF_CPP_MIN_LOG_LEVEL` does. A
/// program that embeds this package may have installed another log before.
fn log_to_stderr() {
    let level = match std::env::var("TF_CPP_MIN_LOG_LEVEL").as_deref() {
        Ok("0") | Err(_) => "info,audit=warn",
        Ok("1") => "warn",
        Ok("2") => "error",
        Ok(_) => "off",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("FERROFLOW_LOG");
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level)));
    let _ = log.try_init();
}

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
        log_to_stderr();
        let gpus = detached(py, || of_process(&gpu_choice(&config)?)).map_err(|e| status(&e))?;
        for jobs in cluster.split(';') {
            let Some((job, addresses)) = jobs.split_once('=') else { continue };
            let tasks: Vec<String> =
                addresses.split(',').enumerate().map(|(i, at)| format!("{i} -> {at}")).collect();
            tracing::info!("Initialize channels for job {job} -> {{{}}}", tasks.join(", "));
        }
        let cluster = ClusterSpec::parse(cluster).map_err(|e| status(&e))?;
        let trust = Trust::from_env().map_err(|e| status(&e))?;
        let options = ServerOptions::new(cluster, job, task);
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
