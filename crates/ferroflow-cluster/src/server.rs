//! The server of a task: binds its address, serves both services, and drains on shutdown.

use crate::channels::Channels;
use crate::client::InProcessMaster;
use crate::drain::Drain;
use crate::health::Readiness;
use crate::link::{DataPath, Identity, LinkTickets, Links};
use crate::listen::{Handed, descriptors, listen};
use crate::master::{Master, MasterOptions};
use crate::net::{NetListener, SecureNetwork, SystemNetwork, TaskNetwork, ucx_port};
use crate::rpc;
use crate::service::TaskService;
use crate::spec::{ClusterSpec, task_name};
use crate::tf_config::TfConfig;
use crate::worker::Worker;
use ferroflow_core::{Error, Gpu, Limits, Result, err, limits};
use ferroflow_graph::Catalog;
use ferroflow_identity::Trust;
use ferroflow_metrics::{GpuSample, ServerSample, TaskMetrics};
use ferroflow_runtime::{Placement, Task};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The task of a server and the address where it listens.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// All tasks.
    pub cluster: ClusterSpec,
    /// The job of this task.
    pub job: String,
    /// The index of this task.
    pub task: u32,
    /// The address to listen on instead of the one in the cluster spec. Without a port, the port of
    /// the cluster spec is used.
    pub bind: Option<String>,
    /// The number of CPU devices of the task.
    pub cpus: u32,
    /// The GPUs of the task.
    pub gpus: Vec<Arc<dyn Gpu>>,
    /// How long opening a session waits for the other tasks of the cluster.
    pub session_timeout: Duration,
    /// The transport of values between Ferroflow tasks.
    pub data_path: DataPath,
    /// The limits of clients.
    pub limits: Limits,
    /// The peers that are let in, and the credentials of this task.
    pub trust: Trust,
    /// Where health probes are answered, by HTTP and gRPC without TLS.
    pub health: Option<SocketAddr>,
    /// How nodes are placed in sessions of this task that ask for nothing else.
    pub placement: Placement,
    /// The metrics of the task.
    pub metrics: Arc<TaskMetrics>,
}

impl ServerOptions {
    /// The default of `session_timeout`. Tasks of a job may start minutes apart.
    pub const SESSION_TIMEOUT: Duration = Duration::from_secs(600);

    /// Task `task` of `job` in `cluster`, with one CPU.
    pub fn new(cluster: ClusterSpec, job: impl Into<String>, task: u32) -> ServerOptions {
        let job = job.into();
        ServerOptions {
            cluster,
            metrics: TaskMetrics::from_env(&job, task),
            job,
            task,
            bind: None,
            cpus: 1,
            gpus: Vec::new(),
            session_timeout: ServerOptions::SESSION_TIMEOUT,
            data_path: DataPath::default(),
            limits: limits(),
            trust: Trust::default(),
            health: None,
            placement: Placement::First,
        }
    }

    /// The task that `TF_CONFIG` names. It listens on `FERROFLOW_BIND`, if that is set, with the
    /// credentials of `FERROFLOW_CREDENTIALS`. It answers health probes on `FERROFLOW_HEALTH`.
    pub fn of(config: &TfConfig) -> ServerOptions {
        let TfConfig { cluster, job, task, .. } = config.clone();
        let bind = std::env::var("FERROFLOW_BIND").ok().filter(|bind| !bind.is_empty());
        let mut trust =
            Trust::from_env().unwrap_or_else(|e| Trust { problem: Some(e), ..Trust::default() });
        let health = health_from_env().unwrap_or_else(|e| {
            trust.problem.get_or_insert(e);
            None
        });
        ServerOptions { bind, trust, health, ..ServerOptions::new(cluster, job, task) }
    }
}

fn health_from_env() -> Result<Option<SocketAddr>> {
    let given = std::env::var("FERROFLOW_HEALTH").ok().filter(|text| !text.is_empty());
    let parsed = given.map(|text| {
        text.parse().map_err(|e| err!(InvalidArgument, "FERROFLOW_HEALTH={text}: {e}"))
    });
    parsed.transpose()
}

/// How often abandoned sessions are looked for.
const EXPIRE_LEAST: Duration = Duration::from_millis(100);
const EXPIRE_MOST: Duration = Duration::from_secs(60);

/// How long steps can go on after shutdown starts.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// A server that is bound and ready to serve.
pub struct Server {
    listeners: Vec<Box<dyn NetListener>>,
    service: Arc<TaskService>,
    identity: Arc<Identity>,
    target: String,
    limits: Limits,
    trust: Trust,
    health: Option<TcpListener>,
    metrics: Arc<TaskMetrics>,
}

/// Why a task cannot listen on its address.
fn cannot_listen(bind: SocketAddr, error: &std::io::Error) -> Error {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            "; another process listens there: stop it, or give the task another port in the cluster"
        }
        ErrorKind::AddrNotAvailable => {
            "; this host does not have that address: run the task on the host that the cluster \
             names, or give --bind"
        }
        _ => "",
    };
    err!(Unavailable, "cannot listen on {bind}: {error}{advice}")
}

impl Server {
    /// Binds the task's address. From then on connections queue until [`Server::serve`] accepts
    /// them.
    pub async fn bind(options: ServerOptions, catalog: Arc<Catalog>) -> Result<Server> {
        let address = options.cluster.address(&options.job, options.task)?;
        let bind = bind_address(address, options.bind.as_deref())?;
        options.trust.check_bind(bind)?;
        if options.trust.is_insecure && !bind.ip().is_loopback() {
            tracing::warn!(
                "listening on {bind} without credentials (--insecure): every host that reaches \
                 this address can run code and read files here"
            );
        }
        let listener = TcpListener::bind(bind).await.map_err(|e| cannot_listen(bind, &e))?;
        let health = match options.health {
            Some(address) => Some(crate::health::bind(address).await?),
            None => None,
        };
        Ok(Server { health, ..Server::listening(listener, options, catalog)? })
    }

    /// The same with a bound listener. Must be called inside a tokio runtime.
    pub fn listening(
        listener: TcpListener,
        options: ServerOptions,
        catalog: Arc<Catalog>,
    ) -> Result<Server> {
        let port = listener.local_addr().map_or(0, |a| a.port());
        Server::on_network(Arc::new(SystemNetwork), Box::new(listener), port, options, catalog)
    }

    /// The same on another network, with a listener at `port` of it.
    pub fn on_network(
        network: Arc<dyn TaskNetwork>,
        listener: Box<dyn NetListener>,
        port: u16,
        options: ServerOptions,
        catalog: Arc<Catalog>,
    ) -> Result<Server> {
        let address = options.cluster.address(&options.job, options.task)?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let scheme = if options.trust.credentials.is_some() { "grpcs" } else { "grpc" };
        let target = format!("{scheme}://{host}:{port}");
        let task =
            Task::with_gpus(catalog, &options.job, options.task, options.cpus, &options.gpus);
        let ServerOptions {
            cluster,
            job,
            task: index,
            session_timeout,
            data_path,
            limits,
            trust,
            gpus,
            metrics,
            placement,
            ..
        } = options;
        let network = SecureNetwork::over(network, &trust, cluster.roles());

        let mut listeners = vec![listener];
        let local = (data_path == DataPath::Auto).then(|| network.listen_local()).flatten();
        let local_name = local.map_or_else(String::new, |(listener, name)| {
            listeners.push(listener);
            name
        });
        let identity = Arc::new(Identity {
            task: task_name(&job, index).to_string(),
            incarnations: task.devices.iter().map(|d| d.incarnation).collect(),
            tickets: LinkTickets::new()?,
            path: data_path,
            local_name,
            ucx: ucx_port(data_path, &trust),
            gpus: gpus.clone(),
        });
        let channels = Arc::new(Channels::over(network.clone()));
        let links = Links::new(identity.clone(), channels.clone(), network);
        let worker = Worker::new(
            task.clone(),
            &cluster,
            &job,
            index,
            channels.clone(),
            &links,
            limits,
            &trust,
            metrics.clone(),
        );
        let master = Master::new(
            task.clone(),
            worker.clone(),
            cluster,
            job,
            index,
            channels,
            links,
            MasterOptions { session_timeout, limits, placement },
            metrics.clone(),
        );
        let (drain, own) = (Drain::default(), identity.clone());
        let counted = metrics.clone();
        let service =
            Arc::new(TaskService { master, worker, task, drain, identity: own, metrics: counted });
        let sampled = Arc::downgrade(&service);
        metrics.set_sampler(move || Some(sample(&*sampled.upgrade()?, &gpus)));
        Ok(Server { listeners, service, identity, target, limits, trust, health: None, metrics })
    }

    /// The target for sessions of clients: `grpc://host:port`, or `grpcs://host:port` with TLS.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Its master, for sessions in the same process.
    pub fn master(&self) -> InProcessMaster {
        InProcessMaster(self.service.clone())
    }

    #[cfg(test)]
    pub(crate) fn worker(&self) -> Arc<Worker> {
        self.service.worker.clone()
    }

    /// Serves until `shutdown` completes. Then no new step starts. Running steps have one second to
    /// finish, then they fail with `Unavailable`.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let Server { listeners, service, identity, limits, trust, health, metrics, .. } = self;
        let readiness = Readiness::new();
        let probes =
            health.map(|listener| tokio::spawn(crate::health::serve(listener, readiness.clone())));
        let (handed, incoming) = Handed::channel();
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let (identity, worker) = (identity.clone(), service.worker.clone());
            let (handed, trust, metrics) = (handed.clone(), trust.clone(), metrics.clone());
            accepting.spawn(listen(listener, handed, identity, worker, trust, metrics));
        }
        drop(handed);
        let expiring = tokio::spawn(expire(Arc::downgrade(&service), limits.session_idle));
        let stopping = service.clone();
        let stop = async move {
            shutdown.await;
            readiness.end();
            expiring.abort();
            stopping.drain.close(DRAIN_LIMIT).await;
            stopping.worker.drain();
            stopping.master.drain().await;
            // Stop accepting connections and close links.
            accepting.shutdown().await;
        };
        let service: Arc<dyn rpc::RpcService> = Arc::new(service);
        let mut limits = limits;
        // Files and links need descriptors too.
        limits.connections.most = limits.connections.most.min(descriptors() / 2);
        let server = rpc::RpcServer { limits, ..rpc::RpcServer::default() };
        server.serve(incoming, service, stop).await;
        if let Some(probes) = probes {
            probes.abort();
        }
    }
}

/// The gauges of the server.
fn sample(service: &TaskService, gpus: &[Arc<dyn Gpu>]) -> ServerSample {
    let gpu = |(i, gpu): (usize, &Arc<dyn Gpu>)| {
        let memory = gpu.memory();
        let (in_use, limit) = (memory.in_use as u64, memory.limit as u64);
        GpuSample { name: format!("GPU:{i}"), in_use, limit }
    };
    ServerSample {
        session_memory: service.worker.session_memory() + service.master.session_memory(),
        gpus: gpus.iter().enumerate().map(gpu).collect(),
        is_serving: !service.drain.is_closed(),
    }
}

/// Ends sessions that clients have abandoned, as long as the server exists.
async fn expire(service: Weak<TaskService>, idle: Duration) {
    if idle.is_zero() {
        return;
    }
    let mut ticks = tokio::time::interval((idle / 4).clamp(EXPIRE_LEAST, EXPIRE_MOST));
    loop {
        ticks.tick().await;
        let Some(service) = service.upgrade() else { return };
        service.master.end_idle(idle).await;
        // The master of an open session uses it at least as often as it lets clients be idle.
        service.worker.end_idle(idle * 2);
    }
}

/// The address to listen on: `bind` if given, otherwise the task's own address.
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
    resolve(host.trim_matches(['[', ']']), port)
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
    fn a_task_listens_on_its_own_address_or_the_given_one() {
        assert_eq!(bind_address("127.0.0.1:7", None).unwrap().to_string(), "127.0.0.1:7");
        assert_eq!(bind_address("10.1.2.3:7", None).unwrap().to_string(), "10.1.2.3:7");
        let all = bind_address("10.1.2.3:7", Some("0.0.0.0")).unwrap();
        assert_eq!(all.to_string(), "0.0.0.0:7");
        let other = bind_address("10.1.2.3:7", Some("127.0.0.1:9")).unwrap();
        assert_eq!(other.to_string(), "127.0.0.1:9");
    }

    #[tokio::test]
    async fn other_hosts_are_not_listened_to_without_credentials() {
        let cluster = ClusterSpec::parse("ps=127.0.0.1:0").unwrap();
        for wide in ["0.0.0.0", "[::]:0", "192.0.2.1"] {
            let bind = Some(wide.to_string());
            let options = ServerOptions { bind, ..ServerOptions::new(cluster.clone(), "ps", 0) };
            let e = Server::bind(options, Arc::new(Catalog::new())).await.err().unwrap();
            assert_eq!(e.code(), ferroflow_core::Code::FailedPrecondition);
            assert!(e.message().contains("ferroflow certs") && e.message().contains("--insecure"));
        }
    }
}
