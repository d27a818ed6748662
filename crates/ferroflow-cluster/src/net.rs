//! Byte streams between tasks: sockets of the system, or the streams of a simulation. Time comes
//! from tokio, so that a simulation controls it too.

mod local;
mod secure;
mod ucx;

pub(crate) use secure::{SecureNetwork, accept};
pub use secure::{TlsConnector, TlsStream, accept_http, connect_http};
pub(crate) use ucx::{UcxStream, ucx_port};

use crate::rpc::{BoxFuture, BoxIo, Connector, TcpConnector};
use std::io;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The reading half of a stream.
pub type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half of a stream.
pub type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// A connected byte stream. TCP and Unix streams have variants because they split without a lock.
pub enum NetStream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket between tasks of one host.
    Unix(UnixStream),
    /// TCP with TLS.
    Tls(Box<TlsStream>),
    /// Any other stream, such as that of a simulation.
    Other(BoxIo),
}

impl NetStream {
    /// Splits it into its halves.
    pub(crate) fn split(self) -> io::Result<Halves> {
        Ok(match self {
            NetStream::Tcp(stream) => {
                let (read, write) = stream.into_split();
                let (read, write) = (Box::new(read), Box::new(write));
                Halves { read, write, is_direct: true, local: None }
            }
            NetStream::Unix(stream) => {
                let (read, write) = local::split(stream)?;
                let local = Some(read.socket());
                let (read, write) = (Box::new(read), Box::new(write));
                Halves { read, write, is_direct: true, local }
            }
            NetStream::Tls(stream) => {
                let (read, write) = stream.split();
                let (read, write) = (Box::new(read), Box::new(write));
                Halves { read, write, is_direct: true, local: None }
            }
            NetStream::Other(stream) => {
                let (read, write) = tokio::io::split(stream);
                let (read, write) = (Box::new(read), Box::new(write));
                Halves { read, write, is_direct: false, local: None }
            }
        })
    }

    /// The stream as a trait object.
    pub(crate) fn boxed(self) -> BoxIo {
        match self {
            NetStream::Tcp(stream) => Box::new(stream),
            NetStream::Unix(stream) => Box::new(stream),
            NetStream::Tls(stream) => stream,
            NetStream::Other(stream) => stream,
        }
    }
}

/// The halves of a stream.
pub(crate) struct Halves {
    pub read: BoxRead,
    pub write: BoxWrite,
    /// Whether any thread can write. In a simulation only its own thread can.
    pub is_direct: bool,
    /// The socket of the reading half, if it is a Unix socket.
    pub local: Option<Weak<std::os::unix::net::UnixStream>>,
}

/// Opens streams to other tasks.
pub trait TaskNetwork: Send + Sync + 'static {
    /// Connects to `host:port`. The caller sets the timeout.
    fn connect(&self, address: &str) -> BoxFuture<io::Result<NetStream>>;

    /// Connects to a task on this host by the name of its socket. An error if there is none.
    fn connect_local(&self, name: &str) -> BoxFuture<io::Result<NetStream>>;

    /// Listens for tasks on this host under a new name. `None` if the network does not support it.
    fn listen_local(&self) -> Option<(Box<dyn NetListener>, String)>;
}

/// Accepts streams from other tasks.
pub trait NetListener: Send + 'static {
    /// The next stream and the name of its peer. Dropping the future loses no stream.
    fn accept(&mut self) -> BoxFutureOf<'_, io::Result<(NetStream, String)>>;
}

/// A boxed future that borrows.
pub type BoxFutureOf<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The system's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNetwork;

impl TaskNetwork for SystemNetwork {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<NetStream>> {
        let address = address.to_string();
        Box::pin(async move { Ok(NetStream::Tcp(TcpConnector::open(&address).await?)) })
    }

    fn connect_local(&self, name: &str) -> BoxFuture<io::Result<NetStream>> {
        let name = abstract_name(name);
        Box::pin(async move { Ok(NetStream::Unix(UnixStream::connect(name).await?)) })
    }

    fn listen_local(&self) -> Option<(Box<dyn NetListener>, String)> {
        // The abstract namespace: no file to remove, and invisible outside this network namespace.
        let name = format!("ferroflow-{}", ferroflow_identity::JobToken::random().ok()?.reveal());
        let listener = UnixListener::bind(abstract_name(&name)).ok()?;
        Some((Box::new(listener), name))
    }
}

fn abstract_name(name: &str) -> String {
    format!("\0{name}")
}

impl NetListener for TcpListener {
    fn accept(&mut self) -> BoxFutureOf<'_, io::Result<(NetStream, String)>> {
        Box::pin(async move {
            let (stream, peer) = TcpListener::accept(self).await?;
            crate::rpc::tune(&stream)?;
            Ok((NetStream::Tcp(stream), peer.to_string()))
        })
    }
}

impl NetListener for UnixListener {
    fn accept(&mut self) -> BoxFutureOf<'_, io::Result<(NetStream, String)>> {
        Box::pin(async move {
            let (stream, _) = UnixListener::accept(self).await?;
            Ok((NetStream::Unix(stream), "this host".to_string()))
        })
    }
}

/// Opens connections for gRPC channels over a network.
pub(crate) struct NetworkConnector(pub std::sync::Arc<dyn TaskNetwork>);

impl Connector for NetworkConnector {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<BoxIo>> {
        let connecting = self.0.connect(address);
        Box::pin(async move { Ok(connecting.await?.boxed()) })
    }
}

/// A stream with some bytes that were read before and are returned again.
pub(crate) struct Rewound {
    pub read: Vec<u8>,
    pub io: BoxIo,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let n = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..n]);
        self.read.drain(..n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
