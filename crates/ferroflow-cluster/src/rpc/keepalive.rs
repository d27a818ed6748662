//! Noticing a peer that has gone silent without closing its connection.

use h2::{Ping, PingPong};
use std::time::Duration;

/// HTTP/2 pings on a connection, sent whether or not a call is under way.
///
/// Off by default on both sides. The kernel's own probes (`tune`) find a host that is gone; pings also find
/// a process that hangs. A grpc-core *server* closes connections whose client pings more than twice in five minutes
/// without being sent data, so a client must not use this with TensorFlow peers; its clients take pings of a server.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    pub interval: Duration,
    /// How long the peer may take to answer one ping.
    pub timeout: Duration,
}

/// Ends when the peer leaves a ping unanswered.
pub(super) async fn silence(mut ping: PingPong, keepalive: Keepalive) {
    loop {
        tokio::time::sleep(keepalive.interval).await;
        match tokio::time::timeout(keepalive.timeout, ping.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection is ending by itself, and tells its calls so.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}
