//! Tasks and clients with certificates of one job.

use bytes::Bytes;
use ferroflow_cluster::rpc::client::ChannelOptions;
use ferroflow_cluster::rpc::{CallOptions, Channel, RpcStatus};
use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, Credentials, DataPath, JobAuthority, RemoteSession, Server,
    ServerOptions, TlsConnector, Trust,
};
use ferroflow_core::{Limits, Result};
use ferroflow_graph::{Catalog, GraphDef};
use prost::Message;
use std::net::TcpListener;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::task::JoinSet;

/// A timeout that only a hang reaches.
pub const FOREVER: Duration = Duration::from_secs(60);

static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    Arc::new(catalog)
});

/// A ps and a worker, with the CA of their job.
pub struct SecureCluster {
    pub authority: JobAuthority,
    pub ps: String,
    pub worker: String,
    _serving: JoinSet<()>,
}

impl SecureCluster {
    pub async fn start(data_path: DataPath) -> SecureCluster {
        SecureCluster::with(data_path, |trust| trust).await
    }

    /// `change` changes the trust of the tasks.
    pub async fn with(data_path: DataPath, change: impl Fn(Trust) -> Trust) -> SecureCluster {
        SecureCluster::limited(data_path, Limits::DEFAULT, change).await
    }

    /// The same with limits.
    pub async fn limited(
        data_path: DataPath,
        limits: Limits,
        change: impl Fn(Trust) -> Trust,
    ) -> SecureCluster {
        let authority = JobAuthority::new().unwrap();
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [ps, worker] = listeners.each_ref().map(|l| l.local_addr().unwrap().to_string());
        let spec = ClusterSpec::parse(&format!("ps={ps};worker={worker}")).unwrap();
        let mut serving = JoinSet::new();
        for (job, listener) in ["ps", "worker"].into_iter().zip(listeners) {
            let trust = change(Trust::with(credentials(&authority, &[&format!("{job}-0")])));
            let options = ServerOptions::new(spec.clone(), job, 0);
            let options = ServerOptions { data_path, trust, limits, ..options };
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let server = Server::listening(listener, options, CATALOG.clone()).unwrap();
            assert!(server.target().starts_with("grpcs://"));
            serving.spawn(server.serve(std::future::pending()));
        }
        SecureCluster { authority, ps, worker, _serving: serving }
    }

    /// A client with a certificate for `name`.
    pub fn client(&self, name: &str) -> Credentials {
        credentials(&self.authority, &[name])
    }

    pub async fn session(&self, client: &Credentials, graph: &GraphDef) -> Result<RemoteSession> {
        session(&format!("grpcs://{}", self.worker), Some(client), graph).await
    }

    /// A raw call of a client, such as `WorkerService/Reset` on the ps.
    pub async fn call<A: Message + Default>(
        &self,
        address: &str,
        client: &Credentials,
        method: &str,
        request: impl Message,
    ) -> std::result::Result<A, RpcStatus> {
        let connector = TlsConnector(client.clone());
        let channel = Channel::connect_with(address, ChannelOptions::default(), connector);
        let path = format!("/tensorflow.{method}");
        let message = Bytes::from(request.encode_to_vec());
        let options = CallOptions::timeout(FOREVER);
        Ok(A::decode(channel.unwrap().call(&path, message, options).await?).unwrap())
    }
}

pub fn credentials(authority: &JobAuthority, roles: &[&str]) -> Credentials {
    let roles: Vec<String> = roles.iter().map(|role| role.to_string()).collect();
    authority.credentials(&roles, &["127.0.0.1".into()], 1).unwrap()
}

pub async fn session(
    target: &str,
    client: Option<&Credentials>,
    graph: &GraphDef,
) -> Result<RemoteSession> {
    let credentials = client.cloned();
    let options = ConnectOptions { timeout: FOREVER, credentials, ..ConnectOptions::default() };
    RemoteSession::connect_with(target, graph, &options).await
}

/// Tries to open a session, for less time than a server would need to start.
pub async fn try_session(
    target: &str,
    client: Option<&Credentials>,
    graph: &GraphDef,
) -> Result<RemoteSession> {
    let credentials = client.cloned();
    let timeout = Duration::from_millis(300);
    let options = ConnectOptions { timeout, credentials, ..ConnectOptions::default() };
    RemoteSession::connect_with(target, graph, &options).await
}
