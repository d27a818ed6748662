//! A client whose peer is missing, dies, or restarts.

use super::fixture::{Fixture, HANG, call};
use bytes::Bytes;
use ferroflow_cluster::rpc::{
    BoxFuture, BoxIo, CallOptions, Channel, Connector, Keepalive, RpcServer, client, code,
};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpSocket};

/// A reserved address without a listener, which can be bound later.
fn reserved() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().expect("socket");
    socket.bind("127.0.0.1:0".parse().expect("address")).expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

#[tokio::test]
async fn a_refused_connection_fails_at_once_and_says_where() {
    let (_socket, address) = reserved();
    let channel = Channel::connect(&address, client::ChannelOptions::default()).expect("address");
    let start = Instant::now();
    let status = call(&channel, "/t/Echo", Bytes::new()).await.expect_err("no listener");
    assert!(start.elapsed() < HANG / 2);
    assert_eq!(status.code, code::UNAVAILABLE);
    assert!(status.message.starts_with("failed to connect to all addresses"), "{status}");
    assert!(status.message.contains(&address) && status.message.contains("refused"), "{status}");
}

#[tokio::test]
async fn a_waiting_call_succeeds_when_the_peer_starts() {
    let (socket, address) = reserved();
    let wire = Wire::to(&address);
    let channel = Channel::connect_with(&address, client::ChannelOptions::default(), wire.clone())
        .expect("address");
    let options = CallOptions { wait_ready: true, ..CallOptions::timeout(HANG) };
    let waiting =
        tokio::spawn(
            async move { channel.call("/t/Echo", Bytes::from_static(b"x"), options).await },
        );
    while wire.made.load(Ordering::Relaxed) < 3 {
        tokio::task::yield_now().await;
    }
    let _server = Fixture::start_on(socket.listen(16).expect("listen"), RpcServer::default());
    assert_eq!(waiting.await.expect("task").expect("echo").into_bytes(), "x");
}

#[tokio::test]
async fn a_waiting_call_fails_at_its_deadline_with_the_cause() {
    let (_socket, address) = reserved();
    let channel = Channel::connect(&address, client::ChannelOptions::default()).expect("address");
    let options =
        CallOptions { wait_ready: true, ..CallOptions::timeout(Duration::from_millis(100)) };
    let status = channel.call("/t/Echo", Bytes::new(), options).await.expect_err("deadline");
    assert_eq!(status.code, code::DEADLINE_EXCEEDED);
    assert!(status.message.contains(&address) && status.message.contains("refused"), "{status}");
}

#[tokio::test]
async fn a_listener_that_never_answers_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let options =
        client::ChannelOptions { connect_timeout: Duration::from_millis(50), ..Default::default() };
    let channel = Channel::connect(&address, options).expect("address");
    let status = call(&channel, "/t/Echo", Bytes::new()).await.expect_err("silence");
    assert_eq!(status.code, code::UNAVAILABLE);
    assert!(status.message.ends_with("no answer within 50ms"), "{status}");
}

#[tokio::test]
async fn a_dead_peer_fails_its_calls_and_can_restart() {
    let mut server = Fixture::start().await;
    let channel = server.channel();
    let parked: Vec<_> = (0..10)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await })
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(server.event().await, "parked");
    }
    server.served.abort();
    for call in parked {
        let status = call.await.expect("task").expect_err("lost");
        assert_eq!(status.code, code::UNAVAILABLE);
        assert!(status.message.starts_with("Socket closed"), "{status}");
        assert!(status.message.contains(&server.address), "{status}");
    }
    let _ = server.served.await;
    let status = call(&channel, "/t/Echo", Bytes::new()).await.expect_err("down");
    assert_eq!(status.code, code::UNAVAILABLE, "{status}");
    let socket = TcpSocket::new_v4().expect("socket");
    socket.set_reuseaddr(true).expect("reuse");
    socket.bind(server.address.parse().expect("address")).expect("the same port");
    let _server = Fixture::start_on(socket.listen(16).expect("listen"), RpcServer::default());
    call(&channel, "/t/Echo", Bytes::new()).await.expect("back again");
}

#[tokio::test]
async fn keepalive_closes_the_connection_to_a_silent_peer() {
    let mut server = Fixture::start().await;
    let keepalive =
        Some(Keepalive { interval: Duration::from_millis(20), timeout: Duration::from_millis(50) });
    let options = client::ChannelOptions { keepalive, ..Default::default() };
    let wire = Wire::to(&server.address);
    let channel = Channel::connect_with(&server.address, options, wire.clone()).expect("address");
    let parked = tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await });
    assert_eq!(server.event().await, "parked");
    wire.cut();
    let status = parked.await.expect("task").expect_err("silence");
    assert_eq!(status.code, code::UNAVAILABLE);
    assert!(status.message.ends_with("the peer does not answer pings)"), "{status}");
}

#[tokio::test]
async fn calls_that_start_together_share_one_connection() {
    let server = Fixture::start().await;
    let wire = Wire::to(&server.address);
    let channel =
        Channel::connect_with(&server.address, client::ChannelOptions::default(), wire.clone())
            .expect("address");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let channel = channel.clone();
        calls.spawn(async move { call(&channel, "/t/Echo", Bytes::new()).await });
    }
    while let Some(done) = calls.join_next().await {
        done.expect("task").expect("echo");
    }
    assert_eq!(wire.made.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_invalid_address_or_path_is_an_invalid_argument() {
    let status = Channel::connect("not an address", client::ChannelOptions::default())
        .err()
        .expect("refused");
    assert_eq!(status.code, code::INVALID_ARGUMENT, "{status}");
    let server = Fixture::start().await;
    let status = call(&server.channel(), "no slash \n", Bytes::new()).await.expect_err("refused");
    assert_eq!(status.code, code::INVALID_ARGUMENT, "{status}");
}

/// A connection through a proxy that can stop forwarding bytes without closing.
#[derive(Clone)]
struct Wire {
    address: Arc<str>,
    made: Arc<AtomicUsize>,
    carriers: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
    /// Keeps the streams of a cut connection open.
    kept: Arc<Mutex<Vec<Arc<tokio::sync::Mutex<(DuplexStream, tokio::net::TcpStream)>>>>>,
}

impl Wire {
    fn to(address: &str) -> Self {
        Wire {
            address: address.into(),
            made: Arc::default(),
            carriers: Arc::default(),
            kept: Arc::default(),
        }
    }

    fn cut(&self) {
        self.carriers.lock().drain(..).for_each(|carrier| carrier.abort());
    }
}

impl Connector for Wire {
    fn connect(&self, _: &str) -> BoxFuture<io::Result<BoxIo>> {
        let wire = self.clone();
        Box::pin(async move {
            wire.made.fetch_add(1, Ordering::Relaxed);
            let stream = tokio::net::TcpStream::connect(&*wire.address).await?;
            let (near, far) = tokio::io::duplex(1 << 16);
            let pair = Arc::new(tokio::sync::Mutex::new((far, stream)));
            wire.kept.lock().push(pair.clone());
            wire.carriers.lock().push(tokio::spawn(async move {
                let (far, stream) = &mut *pair.lock().await;
                let _ = tokio::io::copy_bidirectional(far, stream).await;
            }));
            Ok(Box::new(near) as BoxIo)
        })
    }
}
