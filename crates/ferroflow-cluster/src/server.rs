//! The server of a task: binds, serves both services, drains when told to stop.

use crate::channels::Channels;
use crate::client::InProcessMaster;
use crate::master::{Master, MasterOptions};
use crate::rpc;
use crate::service::TaskService;
use crate::spec::ClusterSpec;
use crate::worker::Worker;
use ferroflow_core::{Result, bail, err};
use ferroflow_graph::Catalog;
use ferroflow_runtime::Task;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Which task a server is, and where it listens.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub cluster: ClusterSpec,
    pub job: String,
    pub task: u32,
    /// Address to listen on instead of the one in the cluster spec; without a port, that one's.
    pub bind: Option<String>,
    /// How many CPU devices the task offers.
    pub cpus: u32,
    /// How long opening a session waits for the other tasks of the cluster.
    pub session_timeout: Duration,
}

impl ServerOptions {
    /// What is waited when nothing else is said: jobs start their tasks minutes apart.
    pub const SESSION_TIMEOUT: Duration = Duration::from_secs(600);

    /// Task `task` of `job` in `cluster`, with one CPU.
    pub fn new(cluster: ClusterSpec, job: impl Into<String>, task: u32) -> ServerOptions {
        ServerOptions {
            cluster,
            job: job.into(),
            task,
            bind: None,
            cpus: 1,
            session_timeout: ServerOptions::SESSION_TIMEOUT,
        }
    }
}

/// A server that is bound and ready to serve.
pub struct Server {
    listener: TcpListener,
    service: Arc<TaskService>,
    target: String,
}

impl Server {
    /// Binds the task's address. Connections wait from here on; [`Server::serve`] answers them.
    pub async fn bind(options: ServerOptions, catalog: Arc<Catalog>) -> Result<Server> {
        let address = options.cluster.address(&options.job, options.task)?;
        let bind = bind_address(address, options.bind.as_deref())?;
        let listener = TcpListener::bind(bind)
            .await
            .map_err(|e| err!(Unavailable, "cannot listen on {bind}: {e}"))?;
        Server::listening(listener, options, catalog)
    }

    /// The same with a listener that is bound already. Must be called inside a tokio runtime.
    pub fn listening(
        listener: TcpListener,
        options: ServerOptions,
        catalog: Arc<Catalog>,
    ) -> Result<Server> {
        let address = options.cluster.address(&options.job, options.task)?;
        let port = listener.local_addr().map_or(0, |a| a.port());
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let target = format!("grpc://{host}:{port}");
        let task = Task::new(catalog, &options.job, options.task, options.cpus);
        let channels = Arc::<Channels>::default();
        let ServerOptions { cluster, job, task: index, session_timeout, .. } = options;
        let worker = Arc::new(Worker::new(task.clone(), &cluster, &job, index, channels.clone()));
        let master = Master::new(
            task.clone(),
            worker.clone(),
            cluster,
            job,
            index,
            channels,
            MasterOptions { session_timeout },
        );
        let service = Arc::new(TaskService { master, worker, task });
        Ok(Server { listener, service, target })
    }

    /// What a client passes to its session: `grpc://host:port`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Its master, for sessions of the process that serves.
    pub fn master(&self) -> InProcessMaster {
        InProcessMaster(self.service.clone())
    }

    /// Serves until `shutdown` completes, then ends running steps and finishes open calls.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let service = self.service.clone();
        let stop = async {
            shutdown.await;
            service.worker.drain();
            service.master.drain().await;
        };
        let service: Arc<dyn rpc::Service> = Arc::new(self.service.clone());
        rpc::Server::default().serve(self.listener, service, stop).await;
    }
}

/// Where to listen: `bind` if given, else the task's own address if that is loopback. Anything wider
/// must be asked for, since a server runs whatever graph it is sent.
fn bind_address(address: &str, bind: Option<&str>) -> Result<SocketAddr> {
    let (host, port) = address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)))
        .ok_or_else(|| err!(InvalidArgument, "address {address:?} is not HOST:PORT"))?;
    if let Some(bind) = bind {
        if let Ok(full) = bind.parse::<SocketAddr>() {
            return Ok(full);
        }
        return match bind.parse::<IpAddr>() {
            Ok(ip) => Ok(SocketAddr::new(ip, port)),
            Err(_) => resolve(bind.trim_matches(['[', ']']), port),
        };
    }
    let found = resolve(host.trim_matches(['[', ']']), port)?;
    if !found.ip().is_loopback() {
        bail!(
            FailedPrecondition,
            "the task's address {address} is not loopback; a server runs any graph it is sent, so \
             say with --bind which address to listen on (--bind 0.0.0.0 for all)"
        );
    }
    Ok(found)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let mut found = (host, port)
        .to_socket_addrs()
        .map_err(|e| err!(Unavailable, "cannot resolve {host:?}: {e}"))?;
    found.next().ok_or_else(|| err!(Unavailable, "{host:?} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_bound_unasked() {
        assert_eq!(bind_address("127.0.0.1:7", None).unwrap().to_string(), "127.0.0.1:7");
        let e = bind_address("10.1.2.3:7", None).unwrap_err();
        assert!(e.message().contains("--bind"), "{e}");
        let all = bind_address("10.1.2.3:7", Some("0.0.0.0")).unwrap();
        assert_eq!(all.to_string(), "0.0.0.0:7");
        let other = bind_address("10.1.2.3:7", Some("127.0.0.1:9")).unwrap();
        assert_eq!(other.to_string(), "127.0.0.1:9");
    }
}
