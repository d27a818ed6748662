//! Serving unary calls.

mod call;
mod connection;

use super::{BoxFuture, Chunks, DEFAULT_MAX_MESSAGE, IncomingConnections, Keepalive, RpcStatus};
use http::HeaderMap;
use http::uri::PathAndQuery;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// One call, whole.
#[derive(Debug)]
pub struct RpcRequest {
    path: PathAndQuery,
    metadata: HeaderMap,
    /// When the caller stops waiting. The server drops the call then by itself; a handler reads this to tell others.
    pub deadline: Option<Instant>,
    pub body: Chunks,
}

impl RpcRequest {
    /// `/package.RpcService/Method`
    pub fn path(&self) -> &str {
        self.path.path()
    }

    /// A metadata entry, such as `authorization`. `None` also when it is not text. Names are lower case.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.metadata.get(name)?.to_str().ok()
    }
}

/// What answers calls.
pub trait RpcService: Send + Sync + 'static {
    /// Answers one call; a path it does not serve with [`RpcStatus::unknown_method`].
    ///
    /// The future runs on the task that does the connection's I/O, so that a quick answer costs no thread hop: it may
    /// work inline for some tens of microseconds, and hands longer work to other threads. It is dropped when the caller
    /// cancels, its connection ends or its deadline passes. A panic in it becomes an INTERNAL status.
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

/// Serves calls on the connections it is given.
#[derive(Clone, Debug)]
pub struct RpcServer {
    /// Longer messages are refused with RESOURCE_EXHAUSTED before they are read.
    pub max_message: usize,
    /// How long calls may go on after shutdown.
    pub grace: Duration,
    pub keepalive: Option<Keepalive>,
}

impl Default for RpcServer {
    fn default() -> Self {
        RpcServer {
            max_message: DEFAULT_MAX_MESSAGE,
            grace: Duration::from_secs(5),
            keepalive: None,
        }
    }
}

impl RpcServer {
    /// Serves until `shutdown` is ready; then takes no more connections or calls, tells the clients (GOAWAY), and
    /// returns once the calls under way are answered or the grace period is over, which ends them.
    ///
    /// Dropping the future ends everything at once.
    pub async fn serve(
        self,
        mut incoming: impl IncomingConnections,
        service: Arc<dyn RpcService>,
        shutdown: impl Future<Output = ()>,
    ) {
        let (closing, closed) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = incoming.accept() => match accepted {
                    Ok((io, peer)) => {
                        let shared = connection::Shared { service: service.clone(), server: self.clone(), peer };
                        connections.spawn(connection::serve(io, shared, closed.clone()));
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: asking again at once would spin.
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
