//! Where byte streams between tasks come from: the system's sockets, or whatever a simulation puts in
//! their place. Time is tokio's, which a simulation drives too.

mod local;

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

/// A connected byte stream. The usual ones are named so that they split without a lock.
pub enum NetStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Other(BoxIo),
}

impl NetStream {
    /// Takes it apart.
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
            NetStream::Other(stream) => {
                let (read, write) = tokio::io::split(stream);
                let (read, write) = (Box::new(read), Box::new(write));
                Halves { read, write, is_direct: false, local: None }
            }
        })
    }

    /// The same as one object.
    pub(crate) fn boxed(self) -> BoxIo {
        match self {
            NetStream::Tcp(stream) => Box::new(stream),
            NetStream::Unix(stream) => Box::new(stream),
            NetStream::Other(stream) => stream,
        }
    }
}

/// A stream, taken apart.
pub(crate) struct Halves {
    pub read: BoxRead,
    pub write: BoxWrite,
    /// Whether any thread may write: a simulated network knows its own thread only.
    pub is_direct: bool,
    /// What is read from, if that is a socket of this host.
    pub local: Option<Weak<std::os::unix::net::UnixStream>>,
}

/// Opens streams to other tasks.
pub trait TaskNetwork: Send + Sync + 'static {
    /// Connects to `host:port`. The caller bounds the time.
    fn connect(&self, address: &str) -> BoxFuture<io::Result<NetStream>>;

    /// Connects to a task of this host by the name it listens under; an error if there is none here.
    fn connect_local(&self, name: &str) -> BoxFuture<io::Result<NetStream>>;

    /// Listens for tasks of this host under a new name; none if the network has no such thing.
    fn listen_local(&self) -> Option<(Box<dyn NetListener>, String)>;
}

/// Takes streams from other tasks.
pub trait NetListener: Send + 'static {
    /// The next stream and a name for its peer. Dropping the future loses no stream.
    fn accept(&mut self) -> BoxFutureOf<'_, io::Result<(NetStream, String)>>;
}

/// A future on the heap that borrows.
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
        // The abstract namespace: no file to clean up, and none outside this network namespace sees it.
        let name = format!("ferroflow-{:032x}", fastrand::u128(..));
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

/// Connections of channels over a network.
pub(crate) struct NetworkConnector(pub std::sync::Arc<dyn TaskNetwork>);

impl Connector for NetworkConnector {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<BoxIo>> {
        let connecting = self.0.connect(address);
        Box::pin(async move { Ok(connecting.await?.boxed()) })
    }
}

/// A stream of which some bytes were read already.
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
