//! One call on the client, from its headers to its trailers.

use super::super::frame::{self, CONTENT_TYPE, ReceiveError, UpTo};
use super::super::{Chunks, RpcStatus, code, timeout};
use super::CallOptions;
use super::connection::ClientConnection;
use h2::Reason;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use std::time::Duration;
use tokio::time::Instant;

pub(super) enum CallFailure {
    /// The result of the call.
    Status(RpcStatus),
    /// The peer has certainly not started the call.
    Unsent(RpcStatus),
}

impl From<RpcStatus> for CallFailure {
    fn from(status: RpcStatus) -> Self {
        CallFailure::Status(status)
    }
}

/// How much later than the client the server abandons a call. The client ends its call in time by
/// itself. gRPC's C++ server answers a call twice whose deadline it enforces, which HTTP/2 forbids,
/// and the connection with all its calls would be lost.
const SERVER_GRACE: Duration = Duration::from_secs(2);

const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("ferroflow/", env!("CARGO_PKG_VERSION")));

pub(super) fn request(
    authority: &Authority,
    path: &str,
    options: &CallOptions,
    deadline: Option<Instant>,
) -> Result<Request<()>, RpcStatus> {
    let invalid = |error: &dyn std::fmt::Display| {
        RpcStatus::new(
            code::INVALID_ARGUMENT,
            format!("{path:?} is not the path of a method: {error}"),
        )
    };
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTP);
    uri.authority = Some(authority.clone());
    uri.path_and_query = Some(PathAndQuery::try_from(path).map_err(|error| invalid(&error))?);
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_parts(uri).map_err(|error| invalid(&error))?;
    let headers = request.headers_mut();
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    headers.insert(header::USER_AGENT, USER_AGENT);
    if let Some(deadline) = deadline {
        let left = deadline.saturating_duration_since(Instant::now()) + SERVER_GRACE;
        if let Ok(value) = HeaderValue::try_from(timeout::format(left)) {
            headers.insert("grpc-timeout", value);
        }
    }
    for (name, value) in &options.metadata {
        headers.append(name, value.clone());
    }
    Ok(request)
}

pub(super) async fn make(
    connection: &ClientConnection,
    request: Request<()>,
    message: Chunks,
    max_message: usize,
) -> Result<Chunks, CallFailure> {
    frame::check_length(&message)?;
    let unsent = |error: h2::Error| CallFailure::Unsent(connection.lost(&error));
    let mut send = connection.send.clone().ready().await.map_err(unsent)?;
    let (response, mut body) = send.send_request(request, false).map_err(unsent)?;
    // If the stream is closed, its response holds the reason.
    let _ = frame::send(&mut body, message, true, None);
    let failed = |error: h2::Error| failure(connection, &error);
    let response = response.await.map_err(failed)?;
    let (head, mut stream) = response.into_parts();
    if head.status != StatusCode::OK {
        return Err(RpcStatus::of_http(head.status).into());
    }
    // Headers with a status are the trailers too.
    if let Some(Err(status)) = RpcStatus::take(&head.headers) {
        return Err(status.into());
    }
    let received = frame::receive(&mut stream, &head.headers, &mut UpTo(max_message)).await;
    if let Err(ReceiveError::Message(status)) = received {
        return Err(status.into());
    }
    if let Err(ReceiveError::Stream(error)) = received {
        return Err(failed(error));
    }
    let trailers = stream.trailers().await.map_err(failed)?;
    let address = connection.address();
    match trailers.as_ref().and_then(RpcStatus::take) {
        Some(Err(status)) => Err(status.into()),
        Some(Ok(())) => received.map_err(|_| {
            RpcStatus::new(code::INTERNAL, format!("{address} answered OK without a message"))
                .into()
        }),
        None => Err(RpcStatus::new(
            code::INTERNAL,
            format!("{address} ended its answer without a status"),
        )
        .into()),
    }
}

/// gRPC's mapping of HTTP/2 errors.
fn failure(connection: &ClientConnection, error: &h2::Error) -> CallFailure {
    let by_peer = error.is_remote();
    let Some(reason) = error.reason() else {
        return connection.lost(error).into();
    };
    if error.is_go_away() {
        // With this reason the peer names the last call that it accepts, and fails only later ones.
        let refused = by_peer && reason == Reason::NO_ERROR;
        let status = connection.lost(error);
        return if refused { CallFailure::Unsent(status) } else { status.into() };
    }
    let code = match reason {
        Reason::REFUSED_STREAM if by_peer => return CallFailure::Unsent(connection.lost(error)),
        Reason::CANCEL => code::CANCELLED,
        Reason::ENHANCE_YOUR_CALM => code::RESOURCE_EXHAUSTED,
        Reason::INADEQUATE_SECURITY => code::PERMISSION_DENIED,
        _ => code::INTERNAL,
    };
    RpcStatus::new(code, format!("{} ended the call: {error}", connection.address())).into()
}
