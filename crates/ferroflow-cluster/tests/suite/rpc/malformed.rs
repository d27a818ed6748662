//! A server that gets requests which no gRPC client sends. One connection survives them all.

use super::fixture::{Fixture, short_messages};
use bytes::Bytes;
use ferroflow_cluster::rpc::code;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct Raw {
    send: SendRequest<Bytes>,
    _server: Fixture,
}

impl Raw {
    async fn connect() -> Self {
        let server = Fixture::start_with(short_messages()).await;
        let stream = TcpStream::connect(&server.address).await.expect("connect");
        let (send, connection) = h2::client::handshake(stream).await.expect("handshake");
        tokio::spawn(connection);
        Raw { send, _server: server }
    }

    /// Sends the pieces as DATA frames. Returns the response with its body and trailers.
    async fn send(
        &mut self,
        request: Request<()>,
        pieces: &[&'static [u8]],
    ) -> (Response<()>, Vec<u8>, HeaderMap) {
        let mut send = self.send.clone().ready().await.expect("ready");
        let (response, mut stream) =
            send.send_request(request, pieces.is_empty()).expect("request");
        for (at, piece) in pieces.iter().enumerate() {
            // The server may have answered already.
            let _ = stream.send_data(Bytes::from_static(piece), at + 1 == pieces.len());
        }
        let (head, mut body) = response.await.expect("response").into_parts();
        let mut data = Vec::new();
        while let Some(piece) = body.data().await {
            data.extend_from_slice(&piece.expect("data"));
        }
        let trailers = body.trailers().await.expect("trailers").unwrap_or_default();
        (Response::from_parts(head, ()), data, trailers)
    }

    async fn refused(&mut self, pieces: &[&'static [u8]], expected: i32, text: &str) {
        let (response, data, _) = self.send(grpc(), pieces).await;
        let status =
            response.headers().get("grpc-status").expect("a status").to_str().expect("text");
        let message =
            response.headers().get("grpc-message").expect("a message").to_str().expect("text");
        assert_eq!((status, message), (&*expected.to_string(), text), "for {pieces:?}");
        assert!(data.is_empty());
        self.works().await;
    }

    async fn works(&mut self) {
        // Cut inside the head, and with an empty last frame: unusual but allowed.
        let (response, data, trailers) =
            self.send(grpc(), &[b"\0\0", b"\0\0\x03a", b"bc", b""]).await;
        assert_eq!(response.status(), 200);
        assert_eq!(data, b"\0\0\0\0\x03abc");
        assert_eq!(trailers.get("grpc-status").expect("a status"), "0");
    }
}

fn grpc() -> Request<()> {
    let request = Request::post("http://x/t/Echo").header("content-type", "application/grpc+proto");
    request.header("grpc-encoding", "gzip").body(()).expect("request")
}

#[tokio::test]
async fn broken_framing_is_an_error_of_its_call() {
    let mut raw = Raw::connect().await;
    raw.works().await;
    raw.refused(&[], code::INTERNAL, "the call ended without a message").await;
    raw.refused(&[b""], code::INTERNAL, "the call ended without a message").await;
    raw.refused(&[b"\0\0"], code::INTERNAL, "stream ended after 2 bytes of a message head").await;
    raw.refused(&[b"\0\0\0\0\x09abc"], code::INTERNAL, "message of 9 bytes ended after 3").await;
    raw.refused(&[b"\0\0\0\0\x01ab"], code::INTERNAL, "more than one message in a unary call")
        .await;
    raw.refused(
        &[b"\0\0\0\0\x01a", b"\0\0\0\0\x01b"],
        code::INTERNAL,
        "more than one message in a unary call",
    )
    .await;
}

#[tokio::test]
async fn a_length_beyond_the_limit_is_refused_by_the_head_alone() {
    let mut raw = Raw::connect().await;
    let text = "received message larger than max (4294967295 vs. 1000)";
    raw.refused(&[b"\0\xff\xff\xff\xff"], code::RESOURCE_EXHAUSTED, text).await;
}

#[tokio::test]
async fn compression_is_named_and_refused() {
    let mut raw = Raw::connect().await;
    let text = "message compressed with \"gzip\"; only \"identity\" is understood";
    raw.refused(&[b"\x01\0\0\0\x01a"], code::UNIMPLEMENTED, text).await;
}

#[tokio::test]
async fn a_malformed_timeout_is_refused() {
    let mut raw = Raw::connect().await;
    let mut request = grpc();
    request.headers_mut().insert("grpc-timeout", "soon".parse().expect("value"));
    let (response, ..) = raw.send(request, &[b"\0\0\0\0\0"]).await;
    assert_eq!(response.headers()["grpc-message"], "malformed grpc-timeout \"soon\"");
    raw.works().await;
}

#[tokio::test]
async fn requests_that_are_not_grpc_get_an_http_status() {
    let mut raw = Raw::connect().await;
    let request =
        Request::get("http://x/t/Echo").header("content-type", "application/grpc").body(());
    assert_eq!(raw.send(request.expect("request"), &[]).await.0.status(), 405);
    for request in [
        Request::post("http://x/t/Echo"),
        Request::post("http://x/").header("content-type", "text/html"),
    ] {
        assert_eq!(raw.send(request.body(()).expect("request"), &[b"x"]).await.0.status(), 415);
    }
    raw.works().await;
}

#[tokio::test]
async fn connections_that_are_not_http2_are_closed() {
    let server = Fixture::start().await;
    let mut stream = TcpStream::connect(&server.address).await.expect("connect");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("write");
    let mut answer = Vec::new();
    // Closed or reset.
    let _ = stream.read_to_end(&mut answer).await;
    super::fixture::call(&server.channel(), "/t/Echo", Bytes::new())
        .await
        .expect("others are served");
}
