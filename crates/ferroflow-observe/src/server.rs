//! An HTTP/1 server with bounds on everything that a client controls.

use crate::body::{AnswerBody, EventSender};
use crate::guard::{refusal, secure_headers};
use bytes::Bytes;
use ferroflow_cluster::{ConnectionCrowd, FirstRequest, accept_http};
use ferroflow_core::{Result, err};
use ferroflow_identity::Trust;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The most connections. One more closes the oldest one that has sent no request.
const MOST_CONNECTIONS: usize = 128;
/// The most bytes of a request's head.
const MOST_HEAD: usize = 16 << 10;
/// The time limit of a handshake and of a request's head. Closes idle connections too.
const DEADLINE: Duration = Duration::from_secs(30);
/// The most events that wait for a slow browser.
const EVENTS_AHEAD: usize = 64;

/// The address to listen on, and the peers to admit.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The address.
    pub bind: SocketAddr,
    /// The peers to admit, as on the other ports of the task.
    pub trust: Trust,
    /// Serves health and metrics without credentials, to all hosts that reach the address.
    pub is_open: bool,
}

impl HttpOptions {
    /// Listens on `address`, `HOST:PORT` or a port of loopback.
    pub fn parse(address: &str, trust: Trust, is_open: bool) -> Result<HttpOptions> {
        let wrong =
            || err!(InvalidArgument, "invalid HTTP address {address:?}: expected HOST:PORT");
        let full = match address.parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) => address.to_string(),
        };
        let mut found = full.to_socket_addrs().map_err(|_| wrong())?;
        let bind = found.next().ok_or_else(wrong)?;
        Ok(HttpOptions { bind, trust, is_open })
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'r> {
    /// The path, without a query.
    pub path: &'r str,
    /// The query, without `?`.
    pub query: &'r str,
    /// The formats that the client accepts.
    pub accept: &'r str,
}

/// An answer.
#[derive(Debug)]
pub enum HttpAnswer {
    /// A body with its status and type.
    Body(StatusCode, &'static str, Bytes),
    /// Server-sent events.
    Events(mpsc::Receiver<Bytes>),
}

impl HttpAnswer {
    /// A body of this type.
    pub fn body(content_type: &'static str, body: impl Into<Bytes>) -> HttpAnswer {
        HttpAnswer::Body(StatusCode::OK, content_type, body.into())
    }

    /// Plain text.
    pub fn text(text: &'static str) -> HttpAnswer {
        HttpAnswer::body("text/plain; charset=utf-8", text)
    }

    /// JSON.
    pub fn json(value: &serde_json::Value) -> HttpAnswer {
        HttpAnswer::body("application/json", value.to_string())
    }

    /// There is no such page.
    pub fn not_found() -> HttpAnswer {
        HttpAnswer::failure(StatusCode::NOT_FOUND, "there is no such page\n")
    }

    /// The service cannot answer at present.
    pub fn unavailable(text: &'static str) -> HttpAnswer {
        HttpAnswer::failure(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// Events, and where to send them.
    pub fn events() -> (EventSender, HttpAnswer) {
        let (to, from) = mpsc::channel(EVENTS_AHEAD);
        (EventSender(to), HttpAnswer::Events(from))
    }

    fn failure(status: StatusCode, text: &'static str) -> HttpAnswer {
        HttpAnswer::Body(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
    }
}

/// Answers requests. It must not block.
pub trait HttpService: Send + Sync + 'static {
    /// Answers a GET.
    fn get(&self, request: &HttpRequest<'_>) -> HttpAnswer;

    /// Called when a connection was admitted.
    fn connected(&self) {}

    /// Called when a connection was refused.
    fn refused(&self) {}
}

/// A server that is bound.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    options: HttpOptions,
    address: SocketAddr,
}

impl HttpServer {
    /// Binds the address. Refuses one that other hosts reach without credentials, unless it is
    /// open.
    pub async fn bind(options: HttpOptions) -> Result<HttpServer> {
        if !options.is_open {
            options.trust.check_bind(options.bind)?;
        }
        let failed = |e| err!(Unavailable, "cannot listen on {} for HTTP: {e}", options.bind);
        let listener = TcpListener::bind(options.bind).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(HttpServer { listener, options, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://HOST:PORT`, or `https` with credentials.
    pub fn url(&self) -> String {
        let is_tls = self.options.trust.credentials.is_some() && !self.options.is_open;
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("{}://{shown}", if is_tls { "https" } else { "http" })
    }

    /// Serves until it is dropped.
    pub async fn serve(self, service: Arc<dyn HttpService>) {
        let trust = match self.options.is_open {
            true => Trust { is_insecure: true, ..Trust::default() },
            false => self.options.trust.clone(),
        };
        // With TLS a browser checks the name of the host by itself.
        let checks_host = !self.options.is_open && trust.credentials.is_none();
        let shared = Arc::new(Shared { service, trust, checks_host, names: host_names() });
        let mut connections = ConnectionCrowd::new(MOST_CONNECTIONS);
        loop {
            match self.listener.accept().await {
                Ok((tcp, peer)) => {
                    let shared = shared.clone();
                    connections.add(|request| serve_one(tcp, peer, shared, request));
                }
                Err(error) => {
                    // Probably out of file descriptors: an immediate retry would spin.
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

/// The target of the log lines about accepted and refused connections.
const AUDIT: &str = "audit";

struct Shared {
    service: Arc<dyn HttpService>,
    trust: Trust,
    checks_host: bool,
    names: Vec<String>,
}

async fn serve_one(
    tcp: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    first_request: FirstRequest,
) {
    let admitted = tokio::time::timeout(DEADLINE, accept_http(tcp, &shared.trust)).await;
    let (io, identity) = match admitted {
        Ok(Ok(admitted)) => admitted,
        Ok(Err(error)) => {
            shared.service.refused();
            return tracing::warn!(target: AUDIT, %peer, "refused an HTTP connection: {error}");
        }
        Err(_) => {
            shared.service.refused();
            return tracing::info!(target: AUDIT, %peer, "refused an HTTP connection that sent nothing");
        }
    };
    shared.service.connected();
    tracing::info!(target: AUDIT, %peer, %identity, kind = "http", "connection accepted");
    let answering = service_fn(move |request: Request<Incoming>| {
        first_request.came();
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&request, peer, &shared)) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(DEADLINE).max_buf_size(MOST_HEAD);
    if let Err(error) = http.serve_connection(TokioIo::new(io), answering).await {
        tracing::debug!(%peer, %error, "HTTP connection lost");
    }
}

fn answer(request: &Request<Incoming>, peer: SocketAddr, shared: &Shared) -> Response<AnswerBody> {
    let (method, headers) = (request.method(), request.headers());
    let path = request.uri().path();
    let is_probe = matches!(path, "/healthz" | "/livez" | "/readyz");
    let refused = refusal(method, headers, &shared.names, shared.checks_host && !is_probe);
    let answer = match refused {
        Some((status, text)) => {
            tracing::info!(target: AUDIT, %peer, path, "refused an HTTP request: {}", text.trim_end());
            HttpAnswer::failure(status, text)
        }
        None => {
            let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
            let query = request.uri().query().unwrap_or_default();
            let request = HttpRequest { path, query, accept: accept.unwrap_or_default() };
            shared.service.get(&request)
        }
    };
    let (status, content_type, mut body) = match answer {
        HttpAnswer::Body(status, kind, bytes) => (status, kind, AnswerBody::Whole(Some(bytes))),
        HttpAnswer::Events(events) => {
            (StatusCode::OK, "text/event-stream", AnswerBody::Events(events))
        }
    };
    if method == Method::HEAD {
        body = AnswerBody::Whole(None);
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().extend(secure_headers());
    response
}

/// The name of this host, for the check of `Host`.
pub fn host_names() -> Vec<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_string();
    if name.is_empty() { Vec::new() } else { vec![name] }
}
