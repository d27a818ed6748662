//! One connection of a channel. A tokio task of its own does its I/O.

use super::super::frame::Framed;
use super::super::gather::{Gathered, Release, gather};
use super::super::{
    CONNECTION_WINDOW, Connector, MAX_FRAME, MAX_HEADER_LIST, RpcStatus, STREAM_WINDOW, code,
    keepalive,
};
use super::ChannelOptions;
use h2::Ping;
use h2::client::SendRequest;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tokio::sync::oneshot;

#[derive(Clone)]
pub(super) struct ClientConnection {
    pub send: SendRequest<Framed>,
    end: Arc<End>,
}

/// What the I/O task reports to the calls of a connection.
struct End {
    address: Arc<str>,
    /// Why the connection ended. It is set before the calls are woken.
    cause: OnceLock<String>,
}

impl ClientConnection {
    pub fn is(&self, other: &ClientConnection) -> bool {
        Arc::ptr_eq(&self.end, &other.end)
    }

    pub fn is_usable(&self) -> bool {
        self.end.cause.get().is_none()
    }

    pub fn address(&self) -> &str {
        &self.end.address
    }

    /// The status of a call that was running when the connection was lost.
    pub fn lost(&self, error: &h2::Error) -> RpcStatus {
        let address = &self.end.address;
        let message = match self.end.cause.get() {
            Some(cause) => format!("Socket closed ({address}: {cause})"),
            None => format!("Socket closed ({address}: {error})"),
        };
        RpcStatus::new(code::UNAVAILABLE, message)
    }
}

/// Connects and waits for the peer's first frame. The kernel accepts connections for a process that
/// hangs, and calls to it would be lost.
pub(super) async fn connect(
    connector: &dyn Connector,
    address: &Arc<str>,
    options: &ChannelOptions,
) -> Result<ClientConnection, RpcStatus> {
    let failed = |cause: String| {
        RpcStatus::new(
            code::UNAVAILABLE,
            format!("failed to connect to all addresses; last error: {address}: {cause}"),
        )
    };
    let made = tokio::time::timeout(options.connect_timeout, async {
        let io = connector.connect(address).await.map_err(|error| error.to_string())?;
        let (io, release) = gather(io);
        let (send, http) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEADER_LIST)
            .enable_push(false)
            .handshake::<_, Framed>(io)
            .await
            .map_err(|error| error.to_string())?;
        let end = Arc::new(End { address: address.clone(), cause: OnceLock::new() });
        let (tell_alive, alive) = oneshot::channel();
        tokio::spawn(drive(http, release, end.clone(), options.keepalive, tell_alive));
        let connection = ClientConnection { send, end };
        match alive.await {
            Ok(()) => Ok(connection),
            Err(_) => Err(connection.end.cause.get().cloned().unwrap_or_default()),
        }
    });
    match made.await {
        Ok(made) => made.map_err(failed),
        Err(_) => Err(failed(format!("no answer within {:?}", options.connect_timeout))),
    }
}

/// Does the connection's I/O until it ends.
async fn drive(
    mut http: h2::client::Connection<Gathered, Framed>,
    release: Release,
    end: Arc<End>,
    keepalive: Option<keepalive::Keepalive>,
    tell_alive: oneshot::Sender<()>,
) {
    let ping = http.ping_pong();
    let silence = async move {
        let Some(mut ping) = ping else {
            return std::future::pending().await;
        };
        if ping.ping(Ping::opaque()).await.is_ok() {
            let _ = tell_alive.send(());
        }
        match keepalive {
            Some(keepalive) => keepalive::silence(ping, keepalive).await,
            None => std::future::pending().await,
        }
    };
    let ended = std::future::poll_fn(|cx| {
        let ended = Pin::new(&mut http).poll(cx);
        match (ended, release.poll(cx)) {
            (Poll::Ready(Ok(())), _) => Poll::Ready("the peer closed the connection".to_string()),
            (Poll::Ready(Err(error)), _) => Poll::Ready(error.to_string()),
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(error.to_string()),
            (Poll::Pending, _) => Poll::Pending,
        }
    });
    let cause = tokio::select! {
        biased;
        cause = ended => cause,
        () = silence => "the peer does not answer pings".to_string(),
    };
    tracing::debug!(peer = &*end.address, cause, "connection ended");
    let _ = end.cause.set(cause);
    // Wake the calls only now that the reason is set.
    drop(http);
}
