//! The client of unary calls.

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
    /// The timeout of one attempt to connect, up to the peer's first HTTP/2 frame.
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

/// The options of one call.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The timeout of the whole call, with connecting. It is sent to the peer.
    pub timeout: Option<Duration>,
    /// If the peer cannot be reached, keep trying until the timeout instead of failing at once. A
    /// call that the peer may have started is never sent again.
    pub wait_ready: bool,
    /// Metadata for the peer.
    pub metadata: Vec<(HeaderName, HeaderValue)>,
}

impl CallOptions {
    /// A call with this timeout.
    pub fn timeout(timeout: Duration) -> Self {
        CallOptions { timeout: Some(timeout), ..Default::default() }
    }
}

/// Makes calls to one peer over one connection. The connection is opened on first use, and again
/// after it was lost.
///
/// Clones share the connection. It closes when the last clone is dropped and no call is running.
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
    /// All callers share one attempt to connect and its result.
    Connecting(watch::Receiver<Option<Result<ClientConnection, RpcStatus>>>),
    Ready(ClientConnection),
}

/// The pause after the first failed attempt, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Channel {
    /// Makes a channel to `host:port` without connecting. Fails with INVALID_ARGUMENT if it is not
    /// an address.
    pub fn connect(address: &str, options: ChannelOptions) -> Result<Self, RpcStatus> {
        Self::connect_with(address, options, TcpConnector)
    }

    /// The same with another connector.
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

    /// Whether there is another clone of it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.peer) > 1
    }

    /// The address of the peer.
    pub fn address(&self) -> &str {
        &self.peer.address
    }

    /// Makes one call of `/package.Service/Method`. Must run inside a tokio runtime.
    ///
    /// Fails with the peer's own status, with UNAVAILABLE if the peer cannot be reached or the
    /// connection is lost, or with DEADLINE_EXCEEDED. Dropping the future cancels the call at the
    /// peer.
    pub async fn call(
        &self,
        path: &str,
        message: impl Into<Chunks>,
        options: CallOptions,
    ) -> Result<Chunks, RpcStatus> {
        let deadline = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let message = message.into();
        let mut last_failure = None;
        // Boxed to keep the futures of all callers small.
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
        // A peer that shuts down refuses calls that it receives after its GOAWAY, and a connection
        // runs out of stream numbers. The peer has not started such a call, so it is sent again on
        // a new connection, but only once: otherwise two peers could refuse it forever.
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

    /// The connection, which is opened if there is none.
    async fn connection(&self) -> Result<ClientConnection, RpcStatus> {
        let mut outcome = match &mut *self.peer.state.lock() {
            State::Ready(connection) if connection.is_usable() => return Ok(connection.clone()),
            State::Connecting(outcome) => outcome.clone(),
            state => {
                let (tell, outcome) = watch::channel(None);
                *state = State::Connecting(outcome.clone());
                let peer = self.peer.clone();
                // On its own tokio task: the first caller may be dropped while others wait.
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
            // The attempt was dropped with its runtime.
            *self.peer.state.lock() = State::Idle;
            Err(RpcStatus::new(
                code::UNAVAILABLE,
                format!("the attempt to connect to {} was dropped", self.address()),
            ))
        })
    }

    /// Makes the next call open a new connection: the peer does not answer on this one. It may have
    /// restarted at another address under the same name, which is then looked up again.
    pub(crate) fn give_up_connection(&self) {
        let mut state = self.peer.state.lock();
        if matches!(&*state, State::Ready(_)) {
            *state = State::Idle;
        }
    }

    /// Makes the next call open a new connection, unless there is one already.
    fn forget(&self, connection: &ClientConnection) {
        let mut state = self.peer.state.lock();
        if matches!(&*state, State::Ready(current) if current.is(connection)) {
            *state = State::Idle;
        }
    }
}
