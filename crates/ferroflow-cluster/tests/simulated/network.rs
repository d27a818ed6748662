//! Hosts with one task each, on a network that turmoil simulates.

use ferroflow_cluster::{ClusterSpec, NetListener, NetStream, Server, ServerOptions, TaskNetwork};
use ferroflow_graph::Catalog;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use turmoil::net::{TcpListener, TcpStream};

/// The host of `/job:worker/task:0`. The client is on it too.
pub const CHIEF: &str = "chief";
pub const PS0: &str = "ps0";
pub const PS1: &str = "ps1";
pub const WORKER1: &str = "worker1";

const CLUSTER: &str = "ps=ps0:2222,ps1:2222;worker=chief:2222,worker1:2222";
const PORT: u16 = 2222;

static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    Arc::new(catalog)
});

/// The hosts except the chief, which the client starts.
pub fn simulation(seed: u64) -> turmoil::Sim<'static> {
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .tick_duration(Duration::from_millis(2))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(10))
        .simulation_duration(Duration::from_secs(300))
        .tcp_capacity(4096)
        .build();
    for (host, job, index) in [(PS0, "ps", 0), (PS1, "ps", 1), (WORKER1, "worker", 1)] {
        sim.host(host, move || async move {
            task(job, index).await?.serve(std::future::pending()).await;
            Ok(())
        });
    }
    sim
}

/// Runs the server of a task on the current host.
pub async fn task(job: &str, index: u32) -> Result<Server, Box<dyn std::error::Error>> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    let options = ServerOptions {
        session_timeout: Duration::from_secs(2),
        ..ServerOptions::new(ClusterSpec::parse(CLUSTER)?, job, index)
    };
    let listener = Box::new(Accepting(listener));
    Ok(Server::on_network(Arc::new(Simulated), listener, PORT, options, CATALOG.clone())?)
}

/// The network between the hosts.
struct Simulated;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl TaskNetwork for Simulated {
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<NetStream>> {
        let address = address.to_string();
        Box::pin(async move { Ok(NetStream::Other(Box::new(TcpStream::connect(address).await?))) })
    }

    fn connect_local(&self, _: &str) -> BoxFuture<'static, io::Result<NetStream>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    fn listen_local(&self) -> Option<(Box<dyn NetListener>, String)> {
        None
    }
}

struct Accepting(TcpListener);

impl NetListener for Accepting {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(NetStream, String)>> {
        Box::pin(async move {
            let (stream, peer) = self.0.accept().await?;
            Ok((NetStream::Other(Box::new(stream)), peer.to_string()))
        })
    }
}
