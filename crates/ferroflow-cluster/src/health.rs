//! Answers probes on a port of its own, without TLS: whether this task is alive and ready.
//! Kubernetes asks by HTTP (`/healthz`, `/readyz`) or by gRPC (`grpc.health.v1.Health`); its probes
//! have no certificate. The port reports nothing else.

use crate::crowd::ConnectionCrowd;
use bytes::Bytes;
use ferroflow_core::{Result, err};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Probes that are answered at a time. One more closes the oldest.
const MOST: usize = 128;
/// Most bytes of a request by HTTP/1.
const LONGEST: usize = 8 << 10;
/// How a connection by HTTP/2 begins.
const HTTP2: &[u8; 4] = b"PRI ";

const CHECK: &str = "/grpc.health.v1.Health/Check";
/// `HealthCheckResponse` with this status, as a gRPC message.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 1];
const NOT_SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 2];
/// gRPC's code for a method that does not exist.
const UNIMPLEMENTED: &str = "12";

/// Whether the task accepts new steps.
#[derive(Clone)]
pub(crate) struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub(crate) fn new() -> Readiness {
        Readiness(Arc::new(AtomicBool::new(true)))
    }

    /// Notes that the task is about to stop.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Listens for probes.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|e| err!(Unavailable, "cannot listen for health probes on {address}: {e}"))
}

/// Answers probes until it is aborted.
pub(crate) async fn serve(listener: TcpListener, readiness: Readiness) {
    let mut probes = ConnectionCrowd::new(MOST);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is free: wait until another connection closes one.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let readiness = readiness.clone();
        probes.add(|_| async move {
            let answered = tokio::time::timeout(PROBE_TIMEOUT, answer(stream, readiness)).await;
            if let Ok(Err(e)) = answered {
                tracing::debug!("a health probe failed: {e}");
            }
        });
    }
}

async fn answer(stream: TcpStream, readiness: Readiness) -> std::io::Result<()> {
    let mut first = [0; 4];
    loop {
        match stream.peek(&mut first).await? {
            0 => return Ok(()),
            4 => break,
            // The rest is still on its way.
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    match &first == HTTP2 {
        true => answer_grpc(stream, readiness).await.map_err(std::io::Error::other),
        false => answer_http(stream, readiness).await,
    }
}

async fn answer_http(mut stream: TcpStream, readiness: Readiness) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, text) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/healthz" | "/livez") => ("200 OK", "alive\n"),
        ("GET" | "HEAD", "/readyz") if readiness.is_ready() => ("200 OK", "ready\n"),
        ("GET" | "HEAD", "/readyz") => ("503 Service Unavailable", "stopping\n"),
        ("GET" | "HEAD", _) => ("404 Not Found", "try /healthz or /readyz\n"),
        _ => ("405 Method Not Allowed", "only GET is answered\n"),
    };
    let body = if method == "HEAD" { "" } else { text };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

async fn answer_grpc(
    stream: TcpStream,
    readiness: Readiness,
) -> std::result::Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(call) = connection.accept().await {
        let (request, mut respond) = call?;
        let mut head = Response::new(());
        head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
        let mut end = HeaderMap::new();
        match message(&request, &readiness) {
            Some(message) => {
                let mut body = respond.send_response(head, false)?;
                body.send_data(Bytes::from_static(message), false)?;
                end.insert("grpc-status", HeaderValue::from_static("0"));
                body.send_trailers(end)?;
            }
            None => {
                head.headers_mut().insert("grpc-status", HeaderValue::from_static(UNIMPLEMENTED));
                respond.send_response(head, true)?;
            }
        }
    }
    Ok(())
}

fn message<T>(request: &Request<T>, readiness: &Readiness) -> Option<&'static [u8]> {
    let is_check = request.uri().path() == CHECK;
    is_check.then(|| if readiness.is_ready() { SERVING } else { NOT_SERVING })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn probed() -> (SocketAddr, Readiness) {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, readiness) = (listener.local_addr().unwrap(), Readiness::new());
        tokio::spawn(serve(listener, readiness.clone()));
        (address, readiness)
    }

    async fn http(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap().to_string()
    }

    async fn grpc(address: SocketAddr, path: &str) -> (Vec<u8>, String) {
        let stream = TcpStream::connect(address).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        let request = Request::post(format!("http://probe{path}")).body(()).unwrap();
        let (answer, mut body) = client.send_request(request, false).unwrap();
        body.send_data(Bytes::from_static(&[0; 5]), true).unwrap();
        let answer = answer.await.unwrap();
        let status = |headers: &HeaderMap| {
            headers.get("grpc-status").map(|s| s.to_str().unwrap().to_string())
        };
        let at_once = status(answer.headers());
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        while let Some(piece) = body.data().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        let end = body.trailers().await.unwrap();
        (bytes, at_once.or_else(|| status(&end.unwrap())).unwrap())
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_probes_waiting() {
        let (address, _readiness) = probed().await;
        let mut silent = Vec::new();
        for _ in 0..2 * MOST {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(http(address, "/healthz").await, "HTTP/1.1 200 OK");
        let mut oldest = silent.swap_remove(0);
        assert_eq!(oldest.read(&mut [0]).await.unwrap_or(0), 0, "closed");
    }

    #[tokio::test]
    async fn probes_by_http_and_grpc_tell_alive_ready_and_stopping() {
        let (address, readiness) = probed().await;
        assert_eq!(http(address, "/healthz").await, "HTTP/1.1 200 OK");
        assert_eq!(http(address, "/readyz?verbose").await, "HTTP/1.1 200 OK");
        assert_eq!(http(address, "/other").await, "HTTP/1.1 404 Not Found");
        assert_eq!(grpc(address, CHECK).await, (SERVING.to_vec(), "0".into()));
        assert_eq!(grpc(address, "/other").await, (Vec::new(), "12".into()));
        readiness.end();
        assert_eq!(http(address, "/healthz").await, "HTTP/1.1 200 OK");
        assert_eq!(http(address, "/readyz").await, "HTTP/1.1 503 Service Unavailable");
        assert_eq!(grpc(address, CHECK).await, (NOT_SERVING.to_vec(), "0".into()));
    }

    #[tokio::test]
    async fn silent_probes_do_not_hold_up_others_for_long() {
        let (address, _) = probed().await;
        let silent: Vec<TcpStream> =
            futures_util::future::join_all((0..MOST - 1).map(|_| TcpStream::connect(address)))
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
        assert_eq!(http(address, "/healthz").await, "HTTP/1.1 200 OK");
        drop(silent);
    }
}
