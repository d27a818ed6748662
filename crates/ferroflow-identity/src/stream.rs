//! A blocking connection between processes of a job, after both ends know who the other is.

use crate::greeting;
use crate::peer::{ExpectedPeer, PeerIdentity};
use crate::tls::TlsSession;
use crate::token::JobToken;
use crate::trust::{Admission, Trust};
use ferroflow_core::{Result, err};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection whose peer has proved its identity and the job token. One thread may read while
/// another writes.
#[derive(Clone)]
pub struct SecureStream(Arc<Inner>);

struct Inner {
    tcp: TcpStream,
    tls: Option<SharedTls>,
    identity: PeerIdentity,
}

struct SharedTls {
    session: Mutex<TlsSession>,
    /// Locked while sealed bytes are written, so that they keep their order.
    writing: Mutex<()>,
}

impl SecureStream {
    /// Secures a connection that this process has opened to `peer`. Both ends have until
    /// `deadline`.
    pub fn connect(
        tcp: TcpStream,
        trust: &Trust,
        token: &JobToken,
        peer: ExpectedPeer<'_>,
        deadline: Instant,
    ) -> Result<SecureStream> {
        let address = tcp.peer_addr().map_err(|e| lost(&e))?;
        let session = match &trust.credentials {
            Some(credentials) if trust.uses_tls(address.ip()) => {
                Some(TlsSession::client(credentials, peer)?)
            }
            _ => None,
        };
        let mut timed = Timed { tcp: &tcp, deadline };
        let (session, identity) = match session {
            Some(mut session) => {
                timed
                    .shake(&mut session)
                    .map_err(|e| err!(Unavailable, "no TLS connection to {}: {e}", peer.address))?;
                let identity = session.server_identity(peer)?;
                (Some(session), identity)
            }
            None => (None, PeerIdentity::Unverified),
        };
        SecureStream::greeted(tcp, session, identity, deadline, |stream| {
            greeting::greet(stream, token)
        })
    }

    /// Secures a connection that this process has accepted.
    pub fn accept(
        tcp: TcpStream,
        trust: &Trust,
        token: &JobToken,
        deadline: Instant,
    ) -> Result<SecureStream> {
        let (local, peer) = (tcp.local_addr(), tcp.peer_addr());
        let admission = trust.admit(local.map_err(|e| lost(&e))?, peer.map_err(|e| lost(&e))?)?;
        let (session, identity) = match (admission, &trust.credentials) {
            (Admission::Plain(identity), _) => (None, identity),
            (Admission::Tls, Some(credentials)) => {
                let mut session = TlsSession::server(credentials)?;
                let mut timed = Timed { tcp: &tcp, deadline };
                let shaken = timed.shake(&mut session);
                shaken.map_err(|e| err!(PermissionDenied, "no TLS connection: {e}"))?;
                let identity = session.client_identity()?;
                (Some(session), identity)
            }
            (Admission::Tls, None) => (None, PeerIdentity::Unverified),
        };
        SecureStream::greeted(tcp, session, identity, deadline, |stream| {
            greeting::answer(stream, token)
        })
    }

    fn greeted(
        tcp: TcpStream,
        session: Option<TlsSession>,
        identity: PeerIdentity,
        deadline: Instant,
        greet: impl FnOnce(&SecureStream) -> Result<()>,
    ) -> Result<SecureStream> {
        let set =
            |timeout| tcp.set_read_timeout(timeout).and_then(|()| tcp.set_write_timeout(timeout));
        set(Some(left(deadline))).map_err(|e| lost(&e))?;
        let tls = session
            .map(|session| SharedTls { session: Mutex::new(session), writing: Mutex::new(()) });
        let stream = SecureStream(Arc::new(Inner { tcp, tls, identity }));
        greet(&stream)?;
        let tcp = &stream.0.tcp;
        let unset = tcp.set_read_timeout(None).and_then(|()| tcp.set_write_timeout(None));
        unset.map_err(|e| lost(&e))?;
        Ok(stream)
    }

    /// A connection without any proof, for tests and for connections within one process.
    pub fn plain(tcp: TcpStream) -> SecureStream {
        let (tls, identity) = (None, PeerIdentity::Unverified);
        SecureStream(Arc::new(Inner { tcp, tls, identity }))
    }

    /// The socket, for its options and addresses.
    pub fn tcp(&self) -> &TcpStream {
        &self.0.tcp
    }

    /// The other end.
    pub fn identity(&self) -> &PeerIdentity {
        &self.0.identity
    }

    /// Whether the other end may claim to be `role`. Its host is the address of the connection.
    pub fn may_be(&self, role: &str) -> bool {
        let address = self.0.tcp.peer_addr().map(|at| at.ip().to_canonical().to_string());
        self.0.identity.may_be(role, &address.unwrap_or_default())
    }

    /// Waits until there is something to read. False if the deadline passes first.
    pub fn is_readable(&self, deadline: Instant) -> io::Result<bool> {
        match &self.0.tls {
            Some(tls) if tls.session.lock().has_input() => Ok(true),
            _ => Timed { tcp: &self.0.tcp, deadline }.is_readable(),
        }
    }

    /// The socket and its encryption, for a caller that reads and writes without blocking. Fails if
    /// the stream has clones.
    pub fn into_parts(self) -> Result<(TcpStream, Option<TlsSession>)> {
        let inner = Arc::into_inner(self.0)
            .ok_or_else(|| err!(Internal, "a connection is in use by another thread"))?;
        Ok((inner.tcp, inner.tls.map(|tls| tls.session.into_inner())))
    }
}

impl Read for &SecureStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.0.tls else { return (&self.0.tcp).read(into) };
        let mut received = [0; 16 << 10];
        loop {
            let mut session = tls.session.lock();
            let read = session.read(into)?;
            if read > 0 || into.is_empty() || session.is_peer_closed() {
                return Ok(read);
            }
            drop(session);
            // Read without the lock, so that another thread can write.
            let len = (&self.0.tcp).read(&mut received)?;
            if len == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let mut session = tls.session.lock();
            let mut rest = &received[..len];
            while !rest.is_empty() {
                let room = session.incoming();
                let part = rest.len().min(room.len());
                room[..part].copy_from_slice(&rest[..part]);
                session.received(part);
                rest = &rest[part..];
            }
        }
    }
}

impl Write for &SecureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &self.0.tls else { return (&self.0.tcp).write(bytes) };
        let _order = tls.writing.lock();
        let mut session = tls.session.lock();
        let taken = session.seal(bytes)?;
        let sealed = session.outgoing().to_vec();
        session.sent(sealed.len());
        drop(session);
        (&self.0.tcp).write_all(&sealed)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for SecureStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }
}

impl Write for SecureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket with a deadline over any number of reads and writes.
struct Timed<'a> {
    tcp: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    /// Completes a handshake.
    fn shake(&mut self, session: &mut TlsSession) -> io::Result<()> {
        loop {
            let shaken = session.shake();
            while !session.outgoing().is_empty() {
                self.tcp.set_write_timeout(Some(left(self.deadline)))?;
                let len = (&mut &*self.tcp).write(session.outgoing())?;
                session.sent(len);
            }
            if shaken? {
                return Ok(());
            }
            if !self.is_readable()? {
                return Err(ErrorKind::TimedOut.into());
            }
            let len = (&mut &*self.tcp).read(session.incoming())?;
            if len == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            session.received(len);
        }
    }

    fn is_readable(&self) -> io::Result<bool> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let timeout =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut polled = [PollFd::new(self.tcp, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// The remaining time. A socket does not accept a timeout of zero.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn lost(e: &io::Error) -> ferroflow_core::Error {
    err!(Unavailable, "connection lost while greeting: {e}")
}
