//! A server in threads of this process.

use crate::catalog::default_catalog;
use crate::graph::Graph;
use crate::graph_def_session::GraphDefSession;
use crate::session::Session;
use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, InProcessMaster, Server, ServerOptions, network_threads,
};
use ferroflow_core::{Result, err};
use ferroflow_graph::Catalog;
use ferroflow_observe::{Observation, observe_from_env};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The time limit for a server to start.
const START: Duration = Duration::from_secs(10);

/// The server of one task, in threads of this process, as TensorFlow's `tf.train.Server`. It stops
/// when its last handle is dropped.
///
/// ```
/// use ferroflow_cluster::ServerOptions;
/// use ferroflow_train::{BackgroundServer, Graph, loopback_spec};
/// let cluster = loopback_spec(&[("worker", 1)])?;
/// let server = BackgroundServer::start(ServerOptions::new(cluster, "worker", 0))?;
/// let g = Graph::new();
/// let two = g.constant(2.0);
/// let session = server.session(&g, &[])?; // other processes: Session::connect(target, &g)
/// assert_eq!(session.run((&two * &two).scalar::<f32>())?, 4.0);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
#[derive(Clone)]
pub struct BackgroundServer(Arc<Serving>);

struct Serving {
    target: String,
    master: InProcessMaster,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Health and metrics, as the environment asks for them.
    _observation: Observation,
}

impl BackgroundServer {
    /// Starts the server; returns when it listens.
    pub fn start(options: ServerOptions) -> Result<BackgroundServer> {
        BackgroundServer::start_with(options, default_catalog())
    }

    /// [`BackgroundServer::start`] with these ops.
    pub fn start_with(options: ServerOptions, catalog: Arc<Catalog>) -> Result<BackgroundServer> {
        let observation = observe_from_env(&options.metrics, &options.trust);
        let threads = network_threads()?;
        let runtime = threads.handle().clone();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let body = move || {
            threads.block_on(async {
                match Server::bind(options, catalog).await {
                    Ok(server) => {
                        let _ = tell.send(Ok((server.target().to_string(), server.master())));
                        server.serve(async { drop(stopped.await) }).await;
                    }
                    Err(e) => drop(tell.send(Err(e))),
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("ff-server".into())
            .spawn(body)
            .map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?;
        let (target, master) = told
            .recv_timeout(START)
            .map_err(|_| err!(DeadlineExceeded, "the server did not start within {START:?}"))??;
        let (stop, thread) = (Some(stop), Some(thread));
        let serving = Serving { target, master, runtime, stop, thread, _observation: observation };
        Ok(BackgroundServer(Arc::new(serving)))
    }

    /// Its address, `grpc://host:port`.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// A session on this server, as by [`Session::connect`] but without the network. With device
    /// filters it has only the tasks and devices that they name. The session keeps the server
    /// running.
    pub fn session(&self, graph: &Graph, device_filters: &[&str]) -> Result<Session> {
        let device_filters = device_filters.iter().map(|f| f.to_string()).collect();
        self.session_with(graph, &ConnectOptions { device_filters, ..ConnectOptions::default() })
    }

    /// [`BackgroundServer::session`] with all options.
    pub fn session_with(&self, graph: &Graph, options: &ConnectOptions) -> Result<Session> {
        Session::with_runner(graph, Arc::new(GraphDefSession::on_server(self.clone(), options)?))
    }

    pub(crate) fn master(&self) -> &InProcessMaster {
        &self.0.master
    }

    /// Waits for a future of the server's runtime.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.runtime.block_on(future)
    }

    /// Serves until SIGTERM or Ctrl-C.
    pub fn join(self) -> Result<()> {
        self.block_on(stop_signal());
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A cluster on free ports of the loopback interface, with this many tasks of each job. For
/// examples and tests: another process may take a port before its task listens on it.
///
/// ```
/// let spec = ferroflow_train::loopback_spec(&[("ps", 1), ("worker", 2)])?;
/// assert_eq!(spec.tasks().count(), 3);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub fn loopback_spec(jobs: &[(&str, usize)]) -> Result<ClusterSpec> {
    // All listeners stay until all ports are known: otherwise two tasks could get the same one.
    let mut listeners = Vec::new();
    let mut port = || -> std::io::Result<u16> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        listeners.push(listener);
        Ok(port)
    };
    let mut text = Vec::new();
    for (job, tasks) in jobs {
        let mut addresses = Vec::new();
        for _ in 0..*tasks {
            let port = port().map_err(|e| err!(Unavailable, "cannot find a free port: {e}"))?;
            addresses.push(format!("127.0.0.1:{port}"));
        }
        text.push(format!("{job}={}", addresses.join(",")));
    }
    ClusterSpec::parse(&text.join(";"))
}

/// Completes on SIGTERM or Ctrl-C.
pub async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
