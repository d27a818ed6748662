//! An HTTP/1.1 server on the connections of a listener, with limits on what clients may use.

mod answer;

use answer::{CountedBody, StallGuard};
use bytes::{Bytes, BytesMut};
use ferroflow_cluster::rpc::{
    Activity, BoxIo, CallMemory, Caller, ConnectionMemory, IncomingConnections, OpenConnections,
    ServerMemory,
};
use ferroflow_core::{Error, Limits, Reservation, Result, err};
use ferroflow_observe::{host_names, refuse_other_site};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The headers of a request must arrive within this time.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest pause within a body, and the longest time in which a client reads nothing of its
/// answer.
const STALLED: Duration = Duration::from_secs(60);
/// The most bytes of a request's head. Those of a body are buffered in pieces of this size.
const MOST_HEAD: usize = 32 << 10;
/// The time that running requests get after shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// A complete request.
pub(crate) struct HttpRequest {
    pub method: Method,
    pub path: String,
    pub body: Bytes,
}

/// An answer.
pub(crate) struct HttpAnswer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: Bytes,
    /// Whether the browser must restrict the page to its own files.
    pub is_page: bool,
}

impl HttpAnswer {
    pub fn json(status: StatusCode, body: impl Into<Bytes>) -> HttpAnswer {
        let content_type = "application/json";
        HttpAnswer { status, content_type, body: body.into(), is_page: false }
    }
}

/// Answers requests.
pub(crate) trait HttpService: Send + Sync + 'static {
    fn answer(&self, request: HttpRequest) -> impl Future<Output = HttpAnswer> + Send;
}

/// What a server allows.
pub(crate) struct HttpRules {
    pub limits: Limits,
    memory: ServerMemory,
    /// Whether requests must name this host. If a user of this host is admitted without
    /// credentials, so is the user's browser, and with it every site that is open in it.
    pub checks_host: bool,
    names: Vec<String>,
}

impl HttpRules {
    pub fn new(limits: Limits, checks_host: bool) -> HttpRules {
        HttpRules { limits, memory: ServerMemory::new(&limits), checks_host, names: host_names() }
    }
}

/// Serves until `shutdown` completes, then lets running requests end.
pub(crate) async fn serve<S: HttpService>(
    mut incoming: impl IncomingConnections,
    service: Arc<S>,
    rules: HttpRules,
    shutdown: impl Future<Output = ()>,
) {
    let rules = Arc::new(rules);
    let (closing, closed) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let most = rules.limits.connections;
    let mut open = OpenConnections::default();
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
                    let served = connection(io, caller, service.clone(), rules.clone(), activity.clone(), closed.clone());
                    open.add(identity, activity, connections.spawn(served));
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
    if tokio::time::timeout(GRACE, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection<S: HttpService>(
    io: BoxIo,
    caller: Caller,
    service: Arc<S>,
    rules: Arc<HttpRules>,
    activity: Arc<Activity>,
    mut closed: watch::Receiver<bool>,
) {
    let memory = rules.memory.connection();
    let address: Arc<str> = caller.address.into();
    let answer = |request: Request<Incoming>| {
        let (service, memory, address) = (service.clone(), memory.clone(), address.clone());
        let (rules, activity) = (rules.clone(), activity.clone());
        async move {
            let answer = respond(request, &*service, &rules, &activity, &memory, &address);
            Ok::<_, Infallible>(answer.await)
        }
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MOST_HEAD);
    let io = StallGuard::new(io, STALLED);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(io), service_fn(answer)));
    let stopping = async { drop(closed.wait_for(|closed| *closed).await) };
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stopping => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = served {
        tracing::debug!(peer = &*address, "HTTP connection ended: {e}");
    }
}

async fn respond<S: HttpService>(
    request: Request<Incoming>,
    service: &S,
    rules: &HttpRules,
    activity: &Activity,
    memory: &ConnectionMemory,
    address: &str,
) -> Response<CountedBody> {
    let (head, body) = request.into_parts();
    let refused = match rules.checks_host {
        true => refuse_other_site(&head.headers, &rules.names, true),
        false => None,
    };
    if let Some((status, text)) = refused {
        let text = error_json(text.trim_end());
        let mut response = Response::new(CountedBody::new(text.into(), None));
        *response.status_mut() = status;
        return response;
    }
    let received = match memory.call(&head.headers, address) {
        Ok(counted) => receive(body, rules.limits, counted, address).await,
        Err(e) => Err(e),
    };
    let answer = match received {
        Err(e) => failure(&e),
        // The reservation lasts until the answer is made.
        Ok((body, _held)) => {
            let _running = activity.request();
            let path = head.uri.path().to_string();
            service.answer(HttpRequest { method: head.method, path, body }).await
        }
    };
    // An answer counts until its client has read it.
    let (answer, counted) = match memory.answer(answer.body.len(), address) {
        Ok(counted) => (answer, Some(counted)),
        Err(e) => (failure(&e), None),
    };
    let mut response = Response::new(CountedBody::new(answer.body, counted));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if answer.is_page {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    response
}

fn failure(e: &Error) -> HttpAnswer {
    HttpAnswer::json(status_of(e.code()), error_json(e.message()))
}

/// Restricts the page to its own script and style and to its own server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Reads a body. Its bytes count for the connection and for the process.
async fn receive(
    body: Incoming,
    limits: Limits,
    mut memory: CallMemory,
    address: &str,
) -> Result<(Bytes, (CallMemory, Reservation))> {
    let announced = body.size_hint().lower();
    limits.message.admit(usize::try_from(announced).unwrap_or(usize::MAX), address)?;
    let mut process = Reservation::default();
    let (mut body, mut bytes) = (body, BytesMut::new());
    loop {
        let frame = tokio::time::timeout(STALLED, body.frame())
            .await
            .map_err(|_| err!(DeadlineExceeded, "the body of the request did not arrive"))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|e| err!(InvalidArgument, "the body was cut off: {e}"))?;
        let Ok(data) = frame.into_data() else { continue };
        limits.message.admit(bytes.len() + data.len(), address)?;
        memory.add(data.len(), address)?;
        process.grow(data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.freeze(), (memory, process)))
}

/// The body of an error.
pub(crate) fn error_json(message: &str) -> String {
    serde_json::json!({ "error": message }).to_string()
}

/// The HTTP status of an error.
pub(crate) fn status_of(code: ferroflow_core::Code) -> StatusCode {
    use ferroflow_core::Code::*;
    let number = match code {
        Ok => 200,
        Cancelled => 499,
        InvalidArgument | FailedPrecondition | OutOfRange => 400,
        Unauthenticated => 401,
        PermissionDenied => 403,
        NotFound => 404,
        AlreadyExists | Aborted => 409,
        ResourceExhausted => 429,
        Unimplemented => 501,
        Unavailable => 503,
        DeadlineExceeded => 504,
        Unknown | Internal | DataLoss => 500,
    };
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Limit;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    struct Echo;

    impl HttpService for Echo {
        async fn answer(&self, request: HttpRequest) -> HttpAnswer {
            HttpAnswer::json(StatusCode::OK, request.body)
        }
    }

    #[tokio::test]
    async fn connections_with_half_a_request_keep_no_client_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("has an address");
        let connections = Limit { most: 4, ..Limits::DEFAULT.connections };
        let rules = HttpRules::new(Limits { connections, ..Limits::DEFAULT }, false);
        let server = tokio::spawn(serve(listener, Arc::new(Echo), rules, std::future::pending()));
        let mut held = Vec::new();
        for half in ["", "P", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"] {
            for _ in 0..8 {
                let mut stream = TcpStream::connect(address).await.expect("connects");
                stream.write_all(half.as_bytes()).await.expect("sends");
                held.push(stream);
            }
            let mut client = TcpStream::connect(address).await.expect("connects");
            let request = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nping";
            client.write_all(request).await.expect("sends");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("is answered");
            assert!(answer.ends_with("ping"), "after {half:?}: {answer:?}");
        }
        server.abort();
    }

    /// An answer that is larger than the buffers of a socket.
    struct Long;

    const LONG: usize = 16 << 20;

    impl HttpService for Long {
        async fn answer(&self, request: HttpRequest) -> HttpAnswer {
            let len = if request.path == "/long" { LONG } else { 4 };
            HttpAnswer::json(StatusCode::OK, vec![b'x'; len])
        }
    }

    /// A client that has asked for `path` and read nothing.
    async fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sends");
        stream
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_client_has_read_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("has an address");
        let messages = Limit { most: LONG + (1 << 20), ..Limits::DEFAULT.messages };
        let rules = HttpRules::new(Limits { messages, ..Limits::DEFAULT }, false);
        let server = tokio::spawn(serve(listener, Arc::new(Long), rules, std::future::pending()));
        let mut first = ask(address, "/long").await;
        // Its head has arrived, so the body is counted.
        first.read_exact(&mut [0; 12]).await.expect("is answered");
        let read = async |mut stream: TcpStream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("is answered");
            answer
        };
        let refused = read(ask(address, "/long").await).await;
        assert!(refused.starts_with("HTTP/1.1 429 "), "{}", &refused[..20]);
        assert!(refused.contains("--max-message-memory"), "{refused}");
        let short = read(ask(address, "/short").await).await;
        assert!(short.ends_with("xxxx"), "a short answer has room: {short}");
        assert!(read(first).await.ends_with("xxxx"));
        let again = read(ask(address, "/long").await).await;
        assert!(again.starts_with("HTTP/1.1 200 ") && again.len() > LONG);
        server.abort();
    }

    #[tokio::test]
    async fn a_long_head_is_refused_before_it_takes_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("has an address");
        let rules = HttpRules::new(Limits::DEFAULT, false);
        let server = tokio::spawn(serve(listener, Arc::new(Echo), rules, std::future::pending()));
        for (len, expected) in [(MOST_HEAD / 2, "HTTP/1.1 200 "), (2 * MOST_HEAD, "HTTP/1.1 431 ")]
        {
            let mut client = TcpStream::connect(address).await.expect("connects");
            let name = "x".repeat(len);
            let head = format!("GET / HTTP/1.1\r\nConnection: close\r\nA: {name}");
            let _ = client.write_all(head.as_bytes()).await;
            if len < MOST_HEAD {
                client.write_all(b"\r\n\r\n").await.expect("sends");
            }
            let mut answer = vec![0; expected.len()];
            match client.read_exact(&mut answer).await {
                Ok(_) => assert_eq!(String::from_utf8_lossy(&answer), expected, "{len} bytes"),
                // The answer is lost if the server closes the connection before it has read all.
                Err(e) => assert!(len > MOST_HEAD, "{len} bytes: {e}"),
            }
        }
        server.abort();
    }
}
