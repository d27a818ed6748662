//! Making unary calls.

mod call;
mod connection;

use super::{Chunks, Connector, DEFAULT_MAX_MESSAGE, Keepalive, RpcStatus, TcpConnector, code};
use connection::ClientConnection;
use http::uri::Authority;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// How a channel connects.
#[derive(Clone, Debug)]
pub struct ChannelOptions {
    /// How long one attempt to connect may take, up to the peer's first sign of life in HTTP/2.
    pub connect_timeout: Duration,
    /// Longer answers are refused with RESOURCE_EXHAUSTED before they are read.
    pub max_message: usize,
    /// Only for peers that are known to accept it; see [`Keepalive`].
    pub keepalive: Option<Keepalive>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions {
            connect_timeout: Duration::from_secs(10),
            max_message: DEFAULT_MAX_MESSAGE,
            keepalive: None,
        }
    }
}

/// What one call wants.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The whole call, connecting included. The peer is told.
    pub timeout: Option<Duration>,
    /// When the peer cannot be reached, keep trying until the timeout instead of failing at once. A call that
    /// the peer may have begun is never sent again.
    pub wait_ready: bool,
    pub metadata: Vec<(HeaderName, HeaderValue)>,
}

impl CallOptions {
    pub fn timeout(timeout: Duration) -> Self {
        CallOptions { timeout: Some(timeout), ..Default::default() }
    }
}

/// Calls to one peer, over one connection that is made when first needed and again after it is lost.
///
/// Clones share the connection. It closes when the last is dropped and no call is under way.
#[derive(Clone)]
pub struct Channel {
    peer: Arc<Peer>,
}

struct Peer {
    address: Arc<str>,
    authority: Authority,
    options: ChannelOptions,
    connector: Box<dyn Connector>,
    state: Mutex<State>,
}

enum State {
    Idle,
    /// All who need the connection share one attempt and its outcome.
    Connecting(watch::Receiver<Option<Result<ClientConnection, RpcStatus>>>),
    Ready(ClientConnection),
}

/// The pause after the first failed attempt, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Channel {
    /// A channel to `host:port`. Nothing is connected yet; INVALID_ARGUMENT when it is no address.
    pub fn connect(address: &str, options: ChannelOptions) -> Result<Self, RpcStatus> {
        Self::connect_with(address, options, TcpConnector)
    }

    /// The same over streams of another kind.
    pub fn connect_with(
        address: &str,
        options: ChannelOptions,
        connector: impl Connector,
    ) -> Result<Self, RpcStatus> {
        let authority = address.parse().map_err(|error| {
            RpcStatus::new(
                code::INVALID_ARGUMENT,
                format!("{address:?} is not an address (host:port): {error}"),
            )
        })?;
        let connector = Box::new(connector);
        let state = Mutex::new(State::Idle);
        Ok(Channel {
            peer: Arc::new(Peer { address: address.into(), authority, options, connector, state }),
        })
    }

    pub fn address(&self) -> &str {
        &self.peer.address
    }

    /// Makes one call of `/package.RpcService/Method`. Must run inside a tokio runtime.
    ///
    /// Fails with the peer's own status; UNAVAILABLE when it cannot be reached or is lost under way; DEADLINE_EXCEEDED.
    /// Dropping the future cancels the call at the peer.
    pub async fn call(
        &self,
        path: &str,
        message: impl Into<Chunks>,
        options: CallOptions,
    ) -> Result<Chunks, RpcStatus> {
        let deadline = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let message = message.into();
        let mut last_failure = None;
        // Boxed, or every caller's future would hold a copy of it, and of its code.
        let attempt: Pin<Box<dyn Future<Output = _> + Send + '_>> =
            Box::pin(self.attempt(path, message, &options, deadline, &mut last_failure));
        let outcome = match deadline {
            Some(deadline) => timeout_at(deadline, attempt).await.ok(),
            None => Some(attempt.await),
        };
        outcome.unwrap_or_else(|| {
            let after = options.timeout.unwrap_or_default();
            let doing = match last_failure {
                Some(RpcStatus { message, .. }) => format!("while connecting; {message}"),
                None => format!("waiting for {path} at {}", self.address()),
            };
            Err(RpcStatus::new(
                code::DEADLINE_EXCEEDED,
                format!("Deadline Exceeded after {after:?} {doing}"),
            ))
        })
    }

    async fn attempt(
        &self,
        path: &str,
        message: Chunks,
        options: &CallOptions,
        deadline: Option<Instant>,
        last_failure: &mut Option<RpcStatus>,
    ) -> Result<Chunks, RpcStatus> {
        // A peer that shuts down refuses calls that crossed its notice, and a connection runs out of stream numbers. Such
        // a call was not begun, so it goes to the next connection; once, lest two peers refuse in turns for ever.
        let mut resend = true;
        let mut pause = FIRST_PAUSE;
        loop {
            let failure = match self.connection().await {
                Ok(connection) => {
                    *last_failure = None;
                    let request = call::request(&self.peer.authority, path, options, deadline)?;
                    match call::make(
                        &connection,
                        request,
                        message.clone(),
                        self.peer.options.max_message,
                    )
                    .await
                    {
                        Ok(reply) => return Ok(reply),
                        Err(call::CallFailure::Status(status)) => return Err(status),
                        Err(call::CallFailure::Unsent(status)) => {
                            self.forget(&connection);
                            if std::mem::take(&mut resend) {
                                continue;
                            }
                            status
                        }
                    }
                }
                Err(status) => status,
            };
            if !options.wait_ready {
                return Err(failure);
            }
            *last_failure = Some(failure);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The connection, made now if there is none.
    async fn connection(&self) -> Result<ClientConnection, RpcStatus> {
        let mut outcome = match &mut *self.peer.state.lock() {
            State::Ready(connection) if connection.is_usable() => return Ok(connection.clone()),
            State::Connecting(outcome) => outcome.clone(),
            state => {
                let (tell, outcome) = watch::channel(None);
                *state = State::Connecting(outcome.clone());
                let peer = self.peer.clone();
                // On a task of its own: whoever asked first may leave, the others still wait.
                tokio::spawn(async move {
                    let made =
                        connection::connect(&*peer.connector, &peer.address, &peer.options).await;
                    *peer.state.lock() = match &made {
                        Ok(connection) => State::Ready(connection.clone()),
                        Err(_) => State::Idle,
                    };
                    tell.send_replace(Some(made));
                });
                outcome
            }
        };
        let made = outcome.wait_for(Option::is_some).await.ok().and_then(|made| made.clone());
        made.unwrap_or_else(|| {
            // The attempt was dropped with the runtime it ran on.
            *self.peer.state.lock() = State::Idle;
            Err(RpcStatus::new(
                code::UNAVAILABLE,
                format!("the attempt to connect to {} was dropped", self.address()),
            ))
        })
    }

    /// The next call makes a new connection, unless one was made meanwhile.
    fn forget(&self, connection: &ClientConnection) {
        let mut state = self.peer.state.lock();
        if matches!(&*state, State::Ready(current) if current.is(connection)) {
            *state = State::Idle;
        }
    }
}
