//! One connection: its I/O and all of its calls on one task.

use super::super::call_memory::ConnectionMemory;
use super::super::frame::Framed;
use super::super::gather::{Gathered, Release, gather};
use super::super::keepalive;
use super::super::{
    BoxFuture, BoxIo, CONNECTION_WINDOW, MAX_FRAME, MAX_HEADER_LIST, STREAM_WINDOW,
};
use super::open_connections::Activity;
use super::{Caller, RpcServer, RpcService, call};
use crate::error::to_status;
use crate::watchdog;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::task::{ArcWake, AtomicWaker, waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::coop;

/// The data that the calls of a connection share.
pub(super) struct Shared {
    pub service: Arc<dyn RpcService>,
    pub server: RpcServer,
    pub caller: Caller,
    /// Counts its calls, and the answers that its client has not read.
    pub memory: ConnectionMemory,
    pub activity: Arc<Activity>,
}

/// A connection without a handshake is closed after this.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// How long the peer has to read its last answer and the GOAWAY. A peer that reads its connection
/// only during calls never does.
const LINGER: Duration = Duration::from_secs(1);

/// After this many rounds the task yields to others on its thread. A quick call takes two.
const MOST_ROUNDS: usize = 32;

pub(super) async fn serve(io: BoxIo, shared: Shared, mut closed: watch::Receiver<bool>) {
    let (io, release) = gather(io);
    let calls = shared.server.limits.calls;
    let handshake = h2::server::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .max_header_list_size(MAX_HEADER_LIST)
        // More than are allowed, so that a call over the limit gets an answer.
        .max_concurrent_streams(u32::try_from(calls.most).unwrap_or(u32::MAX).saturating_mul(2))
        .handshake::<_, Framed>(io);
    let shared = Arc::new(shared);
    let closing = async move {
        // An error means that the server is gone.
        let _ = closed.wait_for(|closed| *closed).await;
    };
    let mut closing: BoxFuture<()> = Box::pin(closing);
    let connection = tokio::select! {
        () = &mut closing => return,
        shaken = tokio::time::timeout(HANDSHAKE, handshake) => match shaken {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return tracing::debug!(peer = shared.caller.address, %error, "a new connection did not start HTTP/2"),
            Err(_) => return tracing::debug!(peer = shared.caller.address, "a new connection sent nothing"),
        }
    };
    ServerConnection::new(connection, release, shared, closing).run().await;
}

struct ServerConnection {
    http: h2::server::Connection<Gathered, Framed>,
    release: Release,
    calls: FuturesUnordered<BoxFuture<()>>,
    shared: Arc<Shared>,
    /// Events besides calls. They are polled when they were woken, not in every round.
    events: FuturesUnordered<BoxFuture<ConnectionEvent>>,
    is_closing: bool,
    /// Ready some time after the server has shut down and the last call was answered.
    linger: Option<BoxFuture<()>>,
}

enum ConnectionEvent {
    /// The server shuts down.
    Closing,
    /// The peer has not answered a ping.
    Silence,
}

impl ServerConnection {
    fn new(
        mut http: h2::server::Connection<Gathered, Framed>,
        release: Release,
        shared: Arc<Shared>,
        closing: BoxFuture<()>,
    ) -> Self {
        let events: FuturesUnordered<BoxFuture<ConnectionEvent>> = FuturesUnordered::new();
        events.push(Box::pin(closing.map(|()| ConnectionEvent::Closing)));
        if let Some((keepalive, ping)) = shared.server.keepalive.zip(http.ping_pong()) {
            let silence = keepalive::silence(ping, keepalive);
            events.push(Box::pin(silence.map(|()| ConnectionEvent::Silence)));
        }
        ServerConnection {
            http,
            release,
            calls: FuturesUnordered::new(),
            shared,
            events,
            is_closing: false,
            linger: None,
        }
    }

    /// Runs until the connection ends. Running calls are dropped with it.
    async fn run(mut self) {
        let inner = Arc::new(Inner { state: AtomicU8::new(PARKED), outer: AtomicWaker::new() });
        let waker = waker(inner.clone());
        std::future::poll_fn(|outer| {
            watchdog::moves();
            inner.outer.register(outer.waker());
            let mut cx = Context::from_waker(&waker);
            let mut rounds = 0;
            loop {
                rounds += 1;
                inner.state.swap(RUNNING, Ordering::AcqRel);
                if self.poll_once(&mut cx).is_ready() {
                    return Poll::Ready(());
                }
                let turn_is_over = rounds == MOST_ROUNDS || !coop::has_budget_remaining();
                if inner.is_woken() && !turn_is_over {
                    continue;
                }
                if let Poll::Ready(Err(error)) = self.release.poll(&mut cx) {
                    return self.lost(&error);
                }
                if inner.park() {
                    return Poll::Pending;
                }
                if turn_is_over {
                    outer.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// One round: does pending I/O, starts new calls, and polls all calls.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(Some(event)) = self.events.poll_next_unpin(cx) {
            match event {
                ConnectionEvent::Closing => {
                    self.is_closing = true;
                    self.http.graceful_shutdown();
                }
                ConnectionEvent::Silence => {
                    tracing::warn!(
                        peer = self.shared.caller.address,
                        "the peer does not answer pings; closing its connection"
                    );
                    return Poll::Ready(());
                }
            }
        }
        let calls = self.shared.server.limits.calls;
        loop {
            match self.http.poll_accept(cx) {
                Poll::Ready(Some(Ok((_, mut respond)))) if self.calls.len() >= calls.most => {
                    let error = calls.exceeded(self.calls.len() + 1, &self.shared.caller.address);
                    call::refuse(&mut respond, &to_status(&error));
                }
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.calls.push(Box::pin(call::serve(self.shared.clone(), request, respond)));
                }
                Poll::Ready(Some(Err(error))) => return self.lost(&error),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        while let Poll::Ready(Some(())) = self.calls.poll_next_unpin(cx) {}
        if !self.is_closing || !self.calls.is_empty() {
            return Poll::Pending;
        }
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        linger.as_mut().poll(cx)
    }

    fn lost(&self, error: &dyn std::fmt::Display) -> Poll<()> {
        tracing::debug!(peer = self.shared.caller.address, %error, "connection lost");
        Poll::Ready(())
    }
}

/// The waker of a connection's parts.
///
/// An answered call wakes its connection, which is running already, because calls run on its task.
/// Tokio would queue the task again and wake an idle thread to steal it. This waker only causes one
/// more round.
struct Inner {
    state: AtomicU8,
    outer: AtomicWaker,
}

const PARKED: u8 = 0;
const RUNNING: u8 = 1;
const WOKEN: u8 = 2;

impl Inner {
    fn is_woken(&self) -> bool {
        self.state.load(Ordering::Acquire) == WOKEN
    }

    /// Parks unless a part was woken since the round started.
    fn park(&self) -> bool {
        self.state.compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl ArcWake for Inner {
    fn wake_by_ref(this: &Arc<Self>) {
        if this.state.swap(WOKEN, Ordering::AcqRel) == PARKED {
            this.outer.wake();
        }
    }
}
