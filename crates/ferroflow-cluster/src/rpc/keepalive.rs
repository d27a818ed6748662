//! HTTP/2 keepalive: detects a peer that is gone without closing its connection.

use h2::{Ping, PingPong};
use std::time::Duration;

/// HTTP/2 pings on a connection, sent with or without running calls.
///
/// Off by default on both sides. TCP keepalive (`tune`) detects a host that is gone; pings also
/// detect a process that hangs. A grpc-core *server* closes the connection of a client that pings
/// more than twice in five minutes without data, so a client must not use this with TensorFlow
/// servers. TensorFlow clients accept pings.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// The time between pings.
    pub interval: Duration,
    /// The timeout of one ping.
    pub timeout: Duration,
}

/// Completes when the peer does not answer a ping.
pub(super) async fn silence(mut ping: PingPong, keepalive: Keepalive) {
    loop {
        tokio::time::sleep(keepalive.interval).await;
        match tokio::time::timeout(keepalive.timeout, ping.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection is ending and reports that to its calls itself.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}
