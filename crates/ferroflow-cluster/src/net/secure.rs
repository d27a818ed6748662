//! TLS on the connections of a task, for gRPC and links alike.

use super::{NetStream, TaskNetwork};
use crate::rpc::{BoxFuture, BoxIo};
use ferroflow_core::HashMap;
use ferroflow_identity::{Admission, Credentials, ExpectedPeer, PeerIdentity, TlsSession, Trust};
use parking_lot::Mutex;
use socket2::SockRef;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// The first byte of a TLS connection.
const TLS: u8 = 0x16;
/// The first byte of a proof of the job token, which gRPC and links do not have.
const PROOF: u8 = b'T';

/// A TCP connection with TLS.
pub struct TlsStream {
    tcp: TcpStream,
    session: TlsSession,
    /// A byte that was read to recognize the protocol.
    first: Option<u8>,
}

impl TlsStream {
    fn new(tcp: TcpStream, session: TlsSession) -> TlsStream {
        TlsStream { tcp, session, first: None }
    }

    /// The next byte, which is read again later.
    pub(crate) async fn first_byte(&mut self) -> io::Result<u8> {
        let mut first = [0];
        self.read_exact(&mut first).await?;
        self.first = Some(first[0]);
        Ok(first[0])
    }

    /// Completes the handshake.
    async fn shake(&mut self) -> io::Result<()> {
        loop {
            let shaken = self.session.shake();
            while !self.session.outgoing().is_empty() {
                let sent = self.tcp.write(self.session.outgoing()).await?;
                self.session.sent(sent);
            }
            if shaken? {
                return Ok(());
            }
            let len = self.tcp.read(self.session.incoming()).await?;
            if len == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "no TLS handshake"));
            }
            self.session.received(len);
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.session.outgoing().is_empty() {
            match ready!(Pin::new(&mut self.tcp).poll_write(cx, self.session.outgoing()))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                sent => self.session.sent(sent),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the sending direction, as far as that is possible without waiting.
    fn end(&mut self) {
        let _ = self.session.close();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let _ = self.poll_send(&mut cx);
        let _ = SockRef::from(&self.tcp).shutdown(Shutdown::Write);
    }

    /// Splits it into halves that different threads can use.
    pub(crate) fn split(self) -> (TlsReadHalf, TlsWriteHalf) {
        let shared = Arc::new(Mutex::new(self));
        (TlsReadHalf(shared.clone()), TlsWriteHalf(shared))
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let TlsStream { tcp, session, first } = &mut *self;
        if to.remaining() > 0
            && let Some(first) = first.take()
        {
            to.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        loop {
            let read = session.read(to.initialize_unfilled())?;
            if read > 0 || to.remaining() == 0 || session.is_peer_closed() {
                to.advance(read);
                return Poll::Ready(Ok(()));
            }
            let mut room = ReadBuf::new(session.incoming());
            ready!(Pin::new(&mut *tcp).poll_read(cx, &mut room))?;
            match room.filled().len() {
                // Without TLS's own end the stream may have been cut off.
                0 => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                len => session.received(len),
            }
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        let sealed = self.session.seal_pieces(slices.iter().map(|slice| &**slice))?;
        // Bytes that the socket does not take now are sent before the next ones, or by a flush.
        match self.poll_send(cx) {
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            _ => Poll::Ready(Ok(sealed)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.close()?;
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// The reading half.
pub(crate) struct TlsReadHalf(Arc<Mutex<TlsStream>>);

impl AsyncRead for TlsReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(cx, to)
    }
}

/// The writing half. Any thread can write. Dropping it ends the stream for the peer.
pub(crate) struct TlsWriteHalf(Arc<Mutex<TlsStream>>);

impl AsyncWrite for TlsWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(cx)
    }
}

impl Drop for TlsWriteHalf {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}

/// Decides about an accepted connection. Returns the stream to go on with and the identity of the
/// peer. The caller sets the timeout.
pub(crate) async fn accept(
    stream: NetStream,
    trust: &Trust,
) -> io::Result<(NetStream, PeerIdentity)> {
    let (mut stream, identity) = identified(stream, trust).await?;
    if let (NetStream::Tls(tls), Some(credentials)) = (&mut stream, &trust.credentials) {
        check_token(tls, credentials).await?;
    }
    Ok((stream, identity))
}

/// The same for HTTP. Clients such as Prometheus show a certificate, but cannot prove the job
/// token.
pub async fn accept_http(tcp: TcpStream, trust: &Trust) -> io::Result<(BoxIo, PeerIdentity)> {
    let (stream, identity) = identified(NetStream::Tcp(tcp), trust).await?;
    Ok((stream.boxed(), identity))
}

/// Connects to the HTTP port of a task, with TLS if there are credentials.
pub async fn connect_http(address: &str, trust: &Trust) -> io::Result<BoxIo> {
    let tcp = crate::rpc::TcpConnector::open(address).await?;
    match &trust.credentials {
        Some(credentials) if trust.uses_tls(tcp.peer_addr()?.ip()) => {
            let expected = ExpectedPeer { address, role: None };
            Ok(Box::new(shaken(tcp, credentials, expected).await?))
        }
        _ => Ok(Box::new(tcp)),
    }
}

async fn identified(stream: NetStream, trust: &Trust) -> io::Result<(NetStream, PeerIdentity)> {
    let tcp = match stream {
        NetStream::Tcp(tcp) => tcp,
        NetStream::Unix(unix) => {
            let identity = trust.admit_user(unix.peer_cred()?.uid()).map_err(refused)?;
            return Ok((NetStream::Unix(unix), identity));
        }
        // A simulation, or a stream that was secured already.
        other => return Ok((other, PeerIdentity::Unverified)),
    };
    let admission = trust.admit(tcp.local_addr()?, tcp.peer_addr()?).map_err(refused)?;
    let (credentials, is_tls) = match &trust.credentials {
        Some(credentials) => (credentials, starts_tls(&tcp).await?),
        None => match admission {
            Admission::Plain(identity) => return Ok((NetStream::Tcp(tcp), identity)),
            Admission::Tls => return Err(ErrorKind::PermissionDenied.into()),
        },
    };
    match admission {
        _ if is_tls => {}
        Admission::Plain(identity) => return Ok((NetStream::Tcp(tcp), identity)),
        Admission::Tls => {
            let text = "it speaks no TLS, which this server requires: TensorFlow clients connect \
                        through `ferroflow proxy`";
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
    }
    let session = TlsSession::server(credentials).map_err(refused)?;
    let mut stream = TlsStream::new(tcp, session);
    stream.shake().await?;
    let identity = stream.session.client_identity().map_err(refused)?;
    Ok((NetStream::Tls(Box::new(stream)), identity))
}

/// Whether a connection begins with TLS. Consumes nothing.
async fn starts_tls(tcp: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(first[0] == TLS)
}

/// The server's side of the proof of the job token: a mark in, a random number out, the proof in.
async fn check_token(stream: &mut TlsStream, credentials: &Credentials) -> io::Result<()> {
    let token = credentials.token();
    if token.is_empty() {
        return Ok(());
    }
    let denied = |text: &str| Err(io::Error::new(ErrorKind::PermissionDenied, text));
    let mut mark = [0];
    stream.read_exact(&mut mark).await?;
    if mark[0] != PROOF {
        return denied("its credentials have no job token");
    }
    let nonce = ferroflow_identity::nonce().map_err(refused)?;
    stream.write_all(&nonce).await?;
    stream.flush().await?;
    let mut proof = [0; ferroflow_identity::TOKEN_PROOF];
    stream.read_exact(&mut proof).await?;
    match token.verify(LABEL, &[&nonce], &proof) {
        true => Ok(()),
        false => denied("the token is not that of this job"),
    }
}

/// Distinguishes proofs on these connections from proofs between ranks.
const LABEL: &str = "task";

/// Secures a connection that this process has opened.
pub(crate) async fn connect(
    tcp: TcpStream,
    credentials: &Credentials,
    expected: ExpectedPeer<'_>,
) -> io::Result<NetStream> {
    let mut stream = shaken(tcp, credentials, expected).await?;
    let token = credentials.token();
    if !token.is_empty() {
        stream.write_all(&[PROOF]).await?;
        stream.flush().await?;
        let mut nonce = [0; ferroflow_identity::NONCE];
        stream.read_exact(&mut nonce).await.map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("no answer to the job token ({e}): has the server one?"),
            )
        })?;
        stream.write_all(&token.prove(LABEL, &[&nonce])).await?;
        stream.flush().await?;
    }
    Ok(NetStream::Tls(Box::new(stream)))
}

/// A TLS connection to a server that is the expected one.
async fn shaken(
    tcp: TcpStream,
    credentials: &Credentials,
    expected: ExpectedPeer<'_>,
) -> io::Result<TlsStream> {
    let session = TlsSession::client(credentials, expected).map_err(refused)?;
    let mut stream = TlsStream::new(tcp, session);
    stream.shake().await?;
    stream.session.server_identity(expected).map_err(refused)?;
    Ok(stream)
}

fn refused(e: ferroflow_core::Error) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, e.message().to_string())
}

/// A network whose connections are secured by a task's trust.
pub(crate) struct SecureNetwork {
    inner: Arc<dyn TaskNetwork>,
    trust: Trust,
    /// The roles of tasks by address.
    roles: HashMap<String, String>,
}

impl SecureNetwork {
    /// `network` itself if the trust has no credentials.
    pub fn over(
        inner: Arc<dyn TaskNetwork>,
        trust: &Trust,
        roles: HashMap<String, String>,
    ) -> Arc<dyn TaskNetwork> {
        match trust.credentials {
            None => inner,
            Some(_) => Arc::new(SecureNetwork { inner, trust: trust.clone(), roles }),
        }
    }
}

impl TaskNetwork for SecureNetwork {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<NetStream>> {
        let connecting = self.inner.connect(address);
        let (trust, address) = (self.trust.clone(), address.to_string());
        let role = self.roles.get(&address).cloned();
        Box::pin(async move {
            let (tcp, credentials) = match (connecting.await?, &trust.credentials) {
                (NetStream::Tcp(tcp), Some(credentials)) => (tcp, credentials),
                (other, _) => return Ok(other),
            };
            if !trust.uses_tls(tcp.peer_addr()?.ip()) {
                return Ok(NetStream::Tcp(tcp));
            }
            let expected = ExpectedPeer { address: &address, role: role.as_deref() };
            connect(tcp, credentials, expected).await
        })
    }

    fn connect_local(&self, name: &str) -> BoxFuture<io::Result<NetStream>> {
        self.inner.connect_local(name)
    }

    fn listen_local(&self) -> Option<(Box<dyn super::NetListener>, String)> {
        self.inner.listen_local()
    }
}

/// Opens TLS connections for a client.
#[derive(Clone, Debug)]
pub struct TlsConnector(pub Credentials);

impl crate::rpc::Connector for TlsConnector {
    fn connect(&self, address: &str) -> BoxFuture<io::Result<crate::rpc::BoxIo>> {
        let (credentials, address) = (self.0.clone(), address.to_string());
        Box::pin(async move {
            let tcp = crate::rpc::TcpConnector::open(&address).await?;
            let expected = ExpectedPeer { address: &address, role: None };
            Ok(connect(tcp, &credentials, expected).await?.boxed())
        })
    }
}
