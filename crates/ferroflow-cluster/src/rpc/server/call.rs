//! One call on the server, from its headers to its trailers.

use super::super::call_memory::CallMemory;
use super::super::frame::{self, CONTENT_TYPE, Framed, ReceiveError, Receiving};
use super::super::status::ok_trailers;
use super::super::{Chunks, RpcStatus, code, timeout};
use super::RpcRequest;
use super::connection::Shared;
use crate::error::to_status;
use crate::listen::AUDIT;
use ferroflow_core::{Reservation, panic_text};
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
        Err(status) => return refuse(&mut respond, &status),
    };
    let memory = match shared.memory.call(request.headers(), &shared.caller.address) {
        Ok(memory) => memory,
        Err(e) => return refuse(&mut respond, &to_status(&e)),
    };
    let mut path = None;
    let outcome = {
        let mut work = pin!(work(&shared, request, memory, deadline, &mut path));
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
        let peer = &shared.caller.address;
        if matches!(status.code, code::PERMISSION_DENIED | code::UNAUTHENTICATED) {
            let identity = &shared.caller.identity;
            tracing::info!(target: AUDIT, peer, %identity, path, "refused a call: {status}");
        }
        tracing::debug!(peer, path, %status, "call failed");
    }
    let counted = result.and_then(|reply| {
        let memory = shared.memory.answer(reply.len(), &shared.caller.address);
        memory.map(|memory| (reply, memory)).map_err(|e| to_status(&e))
    });
    match counted {
        Ok((reply, memory)) => answer(&mut respond, reply, memory),
        Err(status) => refuse(&mut respond, &status),
    }
}

/// Reads the message and passes it to the service.
async fn work(
    shared: &Shared,
    request: http::Request<RecvStream>,
    memory: CallMemory,
    deadline: Option<Instant>,
    path: &mut Option<PathAndQuery>,
) -> Result<Chunks, RpcStatus> {
    let (head, mut stream) = request.into_parts();
    let called =
        head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *path = Some(called.clone());
    let mut arriving = Arriving::new(shared, memory);
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
    let (body, _memory) = arriving.finish(body);
    let caller = shared.caller.identity.clone();
    let request = RpcRequest { path: called, metadata: head.headers, deadline, caller, body };
    let reply = shared.service.call(request).await?;
    frame::check_length(&reply)?;
    Ok(reply)
}

/// A message that is being received. Its bytes count for the connection until the call is over.
/// Those of a long one count for the process as long as a tensor or a string is made of them.
struct Arriving<'s> {
    shared: &'s Shared,
    bytes: usize,
    memory: CallMemory,
    process: Reservation,
}

/// Messages from this length on count for the process too.
const COUNT_FROM: usize = 4 << 10;
/// A message of which nothing arrives for this long is given up.
const STALLED: Duration = Duration::from_secs(60);

impl<'s> Arriving<'s> {
    fn new(shared: &'s Shared, memory: CallMemory) -> Arriving<'s> {
        Arriving { shared, bytes: 0, memory, process: Reservation::default() }
    }

    fn finish(self, body: Chunks) -> (Chunks, CallMemory) {
        let body = if self.bytes < COUNT_FROM { body } else { body.held_with(self.process) };
        (body, self.memory)
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
        self.memory.add(bytes, &self.shared.caller.address).map_err(|e| to_status(&e))?;
        if self.bytes < COUNT_FROM {
            return Ok(());
        }
        let new = if before < COUNT_FROM { self.bytes } else { bytes };
        self.process.grow(new).map_err(|e| to_status(&e))
    }

    fn stalled_after(&self) -> Option<Duration> {
        Some(STALLED)
    }
}

/// Queues the answer of a call, which `memory` counts until the client has read it. An error means
/// that the caller is gone.
fn answer(respond: &mut SendResponse<Framed>, reply: Chunks, memory: CallMemory) {
    let Ok(mut stream) = respond.send_response(head(), false) else { return };
    if frame::send(&mut stream, reply, false, Some(memory)).is_ok() {
        let _ = stream.send_trailers(ok_trailers());
    }
}

/// Queues the status of a call that failed.
pub(super) fn refuse(respond: &mut SendResponse<Framed>, status: &RpcStatus) {
    let mut response = head();
    status.put(response.headers_mut());
    let _ = respond.send_response(response, true);
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
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
