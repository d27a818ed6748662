//! The server of unary calls.

mod call;
mod connection;
mod open_connections;

use super::call_memory::ServerMemory;
use super::{BoxFuture, Chunks, IncomingConnections, Keepalive, RpcStatus};
use ferroflow_core::{Limits, limits};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::OpenConnection;
use http::HeaderMap;
use http::uri::PathAndQuery;
pub use open_connections::{Activity, OpenConnections};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The client at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its address, for the log.
    pub address: String,
    /// Its identity.
    pub identity: Arc<PeerIdentity>,
    /// Counts the connection as open, where connections are counted.
    pub open: Option<Arc<OpenConnection>>,
}

impl Caller {
    /// A client that was not authenticated.
    pub fn unverified(address: String) -> Caller {
        Caller { address, identity: Arc::new(PeerIdentity::Unverified), open: None }
    }
}

/// One complete call.
#[derive(Debug)]
pub struct RpcRequest {
    path: PathAndQuery,
    metadata: HeaderMap,
    /// The caller's deadline. The server drops the call then; a handler can pass the deadline on.
    pub deadline: Option<Instant>,
    /// The identity of the client.
    pub caller: Arc<PeerIdentity>,
    /// The message.
    pub body: Chunks,
}

impl RpcRequest {
    /// `/package.Service/Method`
    pub fn path(&self) -> &str {
        self.path.path()
    }

    /// A metadata entry, such as `authorization`. `None` if it is missing or not text. Names are
    /// lower case.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.metadata.get(name)?.to_str().ok()
    }
}

/// Answers calls.
pub trait RpcService: Send + Sync + 'static {
    /// Answers one call. An unknown path gets [`RpcStatus::unknown_method`].
    ///
    /// The future runs on the tokio task of the connection's I/O, so that a quick answer needs no
    /// other thread. It may work inline for some tens of microseconds and must give longer work to
    /// other threads. It is dropped when the caller cancels, its connection ends or its deadline
    /// passes. A panic becomes an INTERNAL status.
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>>;
}

impl<F, R> RpcService for F
where
    F: Fn(RpcRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Chunks, RpcStatus>> + Send + 'static,
{
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        Box::pin(self(request))
    }
}

/// Serves calls on accepted connections.
#[derive(Clone, Debug)]
pub struct RpcServer {
    /// Calls that exceed a limit are refused with RESOURCE_EXHAUSTED.
    pub limits: Limits,
    /// How long calls can go on after shutdown.
    pub grace: Duration,
    /// Pings to clients; none by default.
    pub keepalive: Option<Keepalive>,
}

impl Default for RpcServer {
    fn default() -> Self {
        RpcServer { limits: limits(), grace: Duration::from_secs(5), keepalive: None }
    }
}

impl RpcServer {
    /// Serves until `shutdown` is ready. Then it accepts no more connections or calls and sends
    /// GOAWAY. It returns when the running calls are answered, or cancels them at the end of the
    /// grace period.
    ///
    /// Dropping the future ends all calls at once.
    pub async fn serve(
        self,
        mut incoming: impl IncomingConnections,
        service: Arc<dyn RpcService>,
        shutdown: impl Future<Output = ()>,
    ) {
        let (closing, closed) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        let most = self.limits.connections;
        let mut open = OpenConnections::default();
        let memory = ServerMemory::new(&self.limits);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = incoming.accept() => match accepted {
                    Ok((_, caller)) if !open.has_room(most.most) => {
                        tracing::warn!("{}", most.exceeded(most.most + 1, &caller.address).message());
                    }
                    Ok((io, caller)) => {
                        let (identity, activity) = (caller.identity.clone(), Arc::<Activity>::default());
                        let shared = connection::Shared {
                            service: service.clone(),
                            server: self.clone(),
                            caller,
                            memory: memory.connection(),
                            activity: activity.clone(),
                        };
                        let handle = connections.spawn(connection::serve(io, shared, closed.clone()));
                        open.add(identity, activity, handle);
                    }
                    Err(error) => {
                        // Probably out of file descriptors: an immediate retry would spin.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
        drop(incoming);
        closing.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all).await.is_err() {
            tracing::warn!(grace = ?self.grace, "calls were still running at the end of the grace period");
            connections.shutdown().await;
        }
    }
}
