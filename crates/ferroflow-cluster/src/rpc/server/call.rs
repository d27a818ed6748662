//! One call on the server, from its headers to its trailers.

use super::super::frame::{self, CONTENT_TYPE, Framed, ReceiveError, Receiving};
use super::super::status::ok_trailers;
use super::super::{Chunks, RpcStatus, code, timeout};
use super::RpcRequest;
use super::connection::Shared;
use crate::error::to_status;
use ferroflow_core::{QuotaShare, Reservation, panic_text};
use h2::RecvStream;
use h2::server::SendResponse;
use http::header;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Response, StatusCode};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

pub(super) async fn serve(
    shared: Arc<Shared>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Framed>,
) {
    if let Some(refusal) = not_grpc(&request) {
        let mut response = Response::new(());
        *response.status_mut() = refusal;
        let _ = respond.send_response(response, true);
        return;
    }
    let deadline = match deadline(request.headers()) {
        Ok(deadline) => deadline,
        Err(status) => return answer(&mut respond, Err(status)),
    };
    let mut path = None;
    let outcome = {
        let mut work = pin!(work(&shared, request, deadline, &mut path));
        let mut expiry = pin!(deadline.map(sleep_until));
        std::future::poll_fn(|cx| {
            // Poll the handler first: if it finishes at once, neither timer nor stream are needed.
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(Poll::Ready(result)) => return Poll::Ready(Some(result)),
                Ok(Poll::Pending) => {}
                Err(panic) => return Poll::Ready(Some(Err(panicked(panic.as_ref())))),
            }
            if respond.poll_reset(cx).is_ready() {
                return Poll::Ready(None);
            }
            match expiry.as_mut().as_pin_mut().map(|expiry| expiry.poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Some(Err(RpcStatus::new(
                    code::DEADLINE_EXCEEDED,
                    "Deadline Exceeded",
                )))),
                _ => Poll::Pending,
            }
        })
        .await
    };
    let Some(result) = outcome else { return };
    if let Err(status) = &result {
        let path = path.as_ref().map(PathAndQuery::path);
        tracing::debug!(peer = shared.caller.address, path, %status, "call failed");
    }
    answer(&mut respond, result);
}

/// Reads the message and passes it to the service.
async fn work(
    shared: &Shared,
    request: http::Request<RecvStream>,
    deadline: Option<Instant>,
    path: &mut Option<PathAndQuery>,
) -> Result<Chunks, RpcStatus> {
    let (head, mut stream) = request.into_parts();
    let called =
        head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *path = Some(called.clone());
    let mut arriving = Arriving::new(shared);
    let body = frame::receive(&mut stream, &head.headers, &mut arriving).await.map_err(
        |error| match error {
            ReceiveError::Message(status) => status,
            ReceiveError::Nothing => {
                RpcStatus::new(code::INTERNAL, "the call ended without a message")
            }
            ReceiveError::Stream(error) => RpcStatus::new(code::CANCELLED, error.to_string()),
        },
    )?;
    drop(stream);
    let _running = shared.activity.request();
    let (body, _of_connection) = arriving.finish(body);
    let caller = shared.caller.identity.clone();
    let request = RpcRequest { path: called, metadata: head.headers, deadline, caller, body };
    let reply = shared.service.call(request).await?;
    frame::check_length(&reply)?;
    Ok(reply)
}

/// A message that is being received. Its bytes count for the connection until the call is over, and
/// for the process as long as a tensor or a string is made of them.
struct Arriving<'s> {
    shared: &'s Shared,
    bytes: usize,
    connection: QuotaShare,
    process: Reservation,
}

/// Shorter messages are not counted: there are many of them and they need little memory.
const COUNT_FROM: usize = 4 << 10;
/// A message of which nothing arrives for this long is given up.
const STALLED: Duration = Duration::from_secs(60);

impl<'s> Arriving<'s> {
    fn new(shared: &'s Shared) -> Arriving<'s> {
        let (connection, process) = (shared.memory.share(), Reservation::default());
        Arriving { shared, bytes: 0, connection, process }
    }

    fn finish(self, body: Chunks) -> (Chunks, QuotaShare) {
        let body = if self.bytes < COUNT_FROM { body } else { body.held_with(self.process) };
        (body, self.connection)
    }
}

impl Receiving for Arriving<'_> {
    fn announced(&mut self, length: usize) -> Result<(), RpcStatus> {
        let most = self.shared.server.limits.message.most;
        if length <= most { Ok(()) } else { Err(frame::too_long(length, most)) }
    }

    fn arrived(&mut self, bytes: usize) -> Result<(), RpcStatus> {
        let before = self.bytes;
        self.bytes += bytes;
        if self.bytes < COUNT_FROM {
            return Ok(());
        }
        let new = if before < COUNT_FROM { self.bytes } else { bytes };
        let counted = self.connection.add(new, &self.shared.caller.address);
        counted.and_then(|()| self.process.grow(new)).map_err(|e| to_status(&e))
    }

    fn stalled_after(&self) -> Option<Duration> {
        Some(STALLED)
    }
}

/// Queues the answer. An error means that the caller is gone.
pub(super) fn answer(respond: &mut SendResponse<Framed>, result: Result<Chunks, RpcStatus>) {
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    match result {
        Ok(message) => {
            let Ok(mut stream) = respond.send_response(response, false) else {
                return;
            };
            if frame::send(&mut stream, message, false).is_ok() {
                let _ = stream.send_trailers(ok_trailers());
            }
        }
        Err(status) => {
            status.put(response.headers_mut());
            let _ = respond.send_response(response, true);
        }
    }
}

/// The HTTP status for a request that is not gRPC.
fn not_grpc(request: &http::Request<RecvStream>) -> Option<StatusCode> {
    let grpc = |value: &http::HeaderValue| value.as_bytes().starts_with(CONTENT_TYPE.as_bytes());
    if request.method() != Method::POST {
        Some(StatusCode::METHOD_NOT_ALLOWED)
    } else if !request.headers().get(header::CONTENT_TYPE).is_some_and(grpc) {
        Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    } else {
        None
    }
}

fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, RpcStatus> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let timeout = value.to_str().ok().and_then(timeout::parse);
    let timeout = timeout.ok_or_else(|| {
        RpcStatus::new(code::INTERNAL, format!("malformed grpc-timeout {value:?}"))
    })?;
    // A deadline centuries from now counts as none.
    Ok(Instant::now().checked_add(timeout))
}

fn panicked(panic: &(dyn Any + Send)) -> RpcStatus {
    RpcStatus::new(code::INTERNAL, format!("the handler panicked: {}", panic_text(panic)))
}
