//! Byte streams for gRPC: TCP, or another stream of a test or of TLS.

use super::BoxFuture;
use super::server::Caller;
use ferroflow_collective::loopback;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A connected byte stream.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// A boxed stream.
pub type BoxIo = Box<dyn Io>;

/// Opens streams to peers.
pub trait Connector: Send + Sync + 'static {
    /// Connects to `address`, which is `host:port`. The caller sets the timeout.
    fn connect(&self, address: &str) -> BoxFuture<io::Result<BoxIo>>;
}

/// Accepts streams from peers.
pub trait IncomingConnections: Send + 'static {
    /// The next stream and its peer. Dropping the future loses no stream. The server logs an error
    /// and tries again after a pause.
    fn accept(&mut self) -> impl Future<Output = io::Result<(BoxIo, Caller)>> + Send;
}

/// Plain TCP with options for calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector;

impl TcpConnector {
    pub(crate) async fn open(address: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        tune(&stream)?;
        Ok(stream)
    }
}

impl Connector for TcpConnector {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<BoxIo>> {
        let address = address.to_string();
        Box::pin(async move { Ok(Box::new(TcpConnector::open(&address).await?) as BoxIo) })
    }
}

impl IncomingConnections for TcpListener {
    async fn accept(&mut self) -> io::Result<(BoxIo, Caller)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        tune(&stream)?;
        Ok((Box::new(stream), Caller::unverified(peer.to_string())))
    }
}

/// Disables Nagle's algorithm, and enables TCP keepalive: the kernel closes a connection whose host
/// has been silent for about half a minute.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5));
    socket.set_tcp_keepalive(&probes.with_retries(4))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
    loopback::tune(stream, stream.local_addr(), stream.peer_addr());
    Ok(())
}
