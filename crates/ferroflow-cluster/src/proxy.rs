//! Forwards connections without TLS to a server with TLS, for TensorFlow clients, which have no
//! TLS.

use crate::net::{NetStream, TlsConnector, accept};
use crate::rpc::{Connector, tune};
use ferroflow_core::{Result, err};
use ferroflow_identity::{Credentials, Trust};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The most connections at a time. Further ones wait.
const MOST_CONNECTIONS: usize = 1024;
/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Listens without TLS and passes all bytes on to one server with TLS.
pub struct TlsProxy {
    listener: TcpListener,
    address: SocketAddr,
    to: Arc<str>,
    credentials: Credentials,
    trust: Trust,
}

impl TlsProxy {
    /// Listens at `listen` for a server at `to` (`grpcs://HOST:PORT`). `trust` says which clients
    /// are let in; by default only processes of this user on this host.
    pub async fn bind(
        listen: SocketAddr,
        to: &str,
        credentials: Credentials,
        trust: Trust,
    ) -> Result<TlsProxy> {
        let Some(to) = to.strip_prefix("grpcs://") else {
            return Err(err!(InvalidArgument, "target {to:?} should be grpcs://HOST:PORT"));
        };
        trust.check_bind(listen)?;
        let failed = |e| err!(Unavailable, "cannot listen on {listen}: {e}");
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(TlsProxy { listener, address, to: to.into(), credentials, trust })
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards connections until `shutdown` completes.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let TlsProxy { listener, to, credentials, trust, .. } = self;
        let trust = Arc::new(trust);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepting = async {
                let place = room.clone().acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(_) = connections.join_next() => continue,
                accepted = accepting => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Probably out of file descriptors: an immediate retry would spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (to, trust, connector) =
                (to.clone(), trust.clone(), TlsConnector(credentials.clone()));
            connections.spawn(async move {
                let _place = place;
                if let Err(e) = carry(stream, &to, &connector, &trust).await {
                    tracing::warn!("connection from {peer} to {to}: {e}");
                }
            });
        }
    }
}

async fn carry(
    stream: tokio::net::TcpStream,
    to: &str,
    connector: &TlsConnector,
    trust: &Trust,
) -> std::io::Result<()> {
    tune(&stream)?;
    let (stream, _) = accept(NetStream::Tcp(stream), trust).await?;
    let far = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(to)).await;
    let mut far = far.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
    let mut near = stream.boxed();
    // Ignore the error: either end may go away at any time, and the other sees its connection
    // close.
    let ended = tokio::io::copy_bidirectional_with_sizes(&mut near, &mut far, 64 << 10, 64 << 10);
    if let Err(e) = ended.await {
        tracing::debug!("connection to {to} ended: {e}");
    }
    Ok(())
}
