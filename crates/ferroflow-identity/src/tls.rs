//! One TLS connection without I/O: the caller moves the bytes between it and the socket. Blocking
//! and asynchronous streams use the same code.

use crate::credentials::Credentials;
use crate::peer::{ExpectedPeer, PeerIdentity};
use ferroflow_core::{Result, err};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use std::io;

/// The first and the largest size of the buffer of received bytes. The larger size saves system
/// calls in long transfers; handshakes fit into it too.
const FIRST_INCOMING: usize = 4 << 10;
const MOST_INCOMING: usize = 256 << 10;
/// The plaintext that one call seals at most. It stays in the cache until it is sent.
const MOST_SEALED: usize = 64 << 10;
/// The most plaintext of a record, and the most bytes that a record has in addition.
const RECORD: usize = 16 << 10;
const RECORD_EXTRA: usize = 64;

/// A TLS connection: bytes of the socket go in and out on one side, plaintext on the other.
pub struct TlsSession {
    side: Side,
    incoming: Buffer,
    outgoing: Buffer,
    /// Plaintext that did not fit the caller's buffer.
    plain: Buffer,
    is_handshaking: bool,
    is_peer_closed: bool,
}

enum Side {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// Bytes with a front that is consumed and an end that grows.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room for at least `len` bytes behind the end.
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < len && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.len() - self.end < len {
            self.bytes.resize(self.end + len, 0);
        }
        &mut self.bytes[self.end..]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }
}

impl TlsSession {
    /// The client's end of a connection to `peer`.
    pub fn client(credentials: &Credentials, peer: ExpectedPeer<'_>) -> Result<TlsSession> {
        let (tls, _) = credentials.current();
        let client = UnbufferedClientConnection::new(tls.client.clone(), peer.server_name())
            .map_err(|e| err!(Internal, "cannot start TLS: {e}"))?;
        Ok(TlsSession::new(Side::Client(Box::new(client))))
    }

    /// The server's end of a connection.
    pub fn server(credentials: &Credentials) -> Result<TlsSession> {
        let (tls, _) = credentials.current();
        let server = UnbufferedServerConnection::new(tls.server.clone())
            .map_err(|e| err!(Internal, "cannot start TLS: {e}"))?;
        Ok(TlsSession::new(Side::Server(Box::new(server))))
    }

    fn new(side: Side) -> TlsSession {
        TlsSession {
            side,
            incoming: Buffer::default(),
            outgoing: Buffer::default(),
            plain: Buffer::default(),
            is_handshaking: true,
            is_peer_closed: false,
        }
    }

    /// Continues the handshake as far as the received bytes allow. Returns true when it is
    /// complete. The caller sends [`TlsSession::outgoing`] in either case, also after an error.
    pub fn shake(&mut self) -> io::Result<bool> {
        self.advance(&mut [], None)?;
        Ok(!self.is_handshaking)
    }

    /// Reads plaintext of records that have arrived. 0 if the socket must be read first, or if the
    /// peer has closed the connection.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.plain.filled().is_empty() {
            return self.advance(into, None);
        }
        let len = into.len().min(self.plain.filled().len());
        into[..len].copy_from_slice(&self.plain.filled()[..len]);
        self.plain.consume(len);
        Ok(len)
    }

    /// Seals plaintext for the peer, into [`TlsSession::outgoing`]. Returns the number of bytes
    /// taken.
    pub fn seal(&mut self, plaintext: &[u8]) -> io::Result<usize> {
        let part = &plaintext[..plaintext.len().min(MOST_SEALED)];
        if !part.is_empty() {
            self.advance(&mut [], Some(Sealing::Data(part)))?;
        }
        Ok(part.len())
    }

    /// Seals several pieces. Short ones share a record.
    pub fn seal_pieces<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> io::Result<usize> {
        let first = pieces.clone().find(|piece| !piece.is_empty()).unwrap_or_default();
        if first.len() >= RECORD / 4 {
            return self.seal(first);
        }
        let mut together = Vec::with_capacity(RECORD);
        for piece in pieces {
            let part = piece.len().min(RECORD - together.len());
            together.extend_from_slice(&piece[..part]);
            if together.len() == RECORD {
                break;
            }
        }
        self.seal(&together)
    }

    /// Sends the peer the end of the data.
    pub fn close(&mut self) -> io::Result<()> {
        if self.is_handshaking {
            return Ok(());
        }
        self.advance(&mut [], Some(Sealing::Close)).map(|_| ())
    }

    /// Whether bytes have arrived that were not read yet.
    pub fn has_input(&self) -> bool {
        !self.plain.filled().is_empty() || !self.incoming.filled().is_empty()
    }

    /// Whether the peer has sent the end of its data.
    pub fn is_peer_closed(&self) -> bool {
        self.is_peer_closed
    }

    /// Room for bytes of the socket.
    pub fn incoming(&mut self) -> &mut [u8] {
        let waiting = self.incoming.filled().len();
        // Grow when the last read has filled the buffer.
        let size =
            (2 * waiting).max(self.incoming.bytes.len()).clamp(FIRST_INCOMING, MOST_INCOMING);
        let room = self.incoming.room(size.saturating_sub(waiting).max(1));
        let most = room.len().min(MOST_INCOMING);
        &mut room[..most]
    }

    /// Notes that `len` bytes were put into [`TlsSession::incoming`].
    pub fn received(&mut self, len: usize) {
        self.incoming.end += len;
        // A reader that keeps up with full reads gets a larger buffer.
        if self.incoming.end == self.incoming.bytes.len() && self.incoming.end < MOST_INCOMING {
            let more = self.incoming.end;
            self.incoming.bytes.resize(self.incoming.end + more, 0);
        }
    }

    /// Bytes for the socket.
    pub fn outgoing(&self) -> &[u8] {
        self.outgoing.filled()
    }

    /// Notes that the socket has taken `len` bytes of [`TlsSession::outgoing`].
    pub fn sent(&mut self, len: usize) {
        self.outgoing.consume(len);
    }

    /// The identity in the certificate of the client, after the handshake.
    pub fn client_identity(&self) -> Result<PeerIdentity> {
        PeerIdentity::of_certificate(self.leaf()?)
    }

    /// Checks after the handshake that the server is the expected one, and returns its identity.
    pub fn server_identity(&self, expected: ExpectedPeer<'_>) -> Result<PeerIdentity> {
        let leaf = self.leaf()?;
        expected.check(leaf)?;
        PeerIdentity::of_certificate(leaf)
    }

    fn leaf(&self) -> Result<&rustls::pki_types::CertificateDer<'static>> {
        let chain = match &self.side {
            Side::Client(client) => client.peer_certificates(),
            Side::Server(server) => server.peer_certificates(),
        };
        let leaf = chain.and_then(|chain| chain.first());
        leaf.ok_or_else(|| err!(PermissionDenied, "the peer has presented no certificate"))
    }

    fn advance(&mut self, into: &mut [u8], sealing: Option<Sealing<'_>>) -> io::Result<usize> {
        let mut progress = Progress {
            incoming: &mut self.incoming,
            outgoing: &mut self.outgoing,
            plain: &mut self.plain,
            is_peer_closed: &mut self.is_peer_closed,
        };
        let done = match &mut self.side {
            Side::Client(client) => progress.advance(&mut **client, into, sealing),
            Side::Server(server) => progress.advance(&mut **server, into, sealing),
        };
        self.is_handshaking &= match &self.side {
            Side::Client(client) => client.is_handshaking(),
            Side::Server(server) => server.is_handshaking(),
        };
        done
    }
}

/// Output besides the protocol's own records.
enum Sealing<'a> {
    Data(&'a [u8]),
    Close,
}

/// Either side of a connection.
trait Records {
    type Data;
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Records for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Records for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

struct Progress<'a> {
    incoming: &'a mut Buffer,
    outgoing: &'a mut Buffer,
    plain: &'a mut Buffer,
    is_peer_closed: &'a mut bool,
}

impl Progress<'_> {
    /// Processes received records until `into` is full or no input remains, then seals.
    fn advance<R: Records>(
        &mut self,
        connection: &mut R,
        into: &mut [u8],
        mut sealing: Option<Sealing<'_>>,
    ) -> io::Result<usize> {
        let mut total = 0;
        loop {
            // Always passes all received bytes: rustls keeps positions in them, and panics without
            // them.
            let UnbufferedStatus { mut discard, state } =
                connection.process(self.incoming.filled_mut());
            let mut goes_on = true;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(invalid)?;
                        discard += record.discard;
                        let len = record.payload.len().min(into.len() - total);
                        into[total..total + len].copy_from_slice(&record.payload[..len]);
                        total += len;
                        self.plain.push(&record.payload[len..]);
                    }
                    goes_on = total < into.len() || sealing.is_some();
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let written = match data.encode(self.outgoing.room(RECORD)) {
                        Err(EncodeError::InsufficientSize(needed)) => {
                            data.encode(self.outgoing.room(needed.required_size))
                        }
                        other => other,
                    };
                    self.outgoing.end += written.map_err(io::Error::other)?;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let written = match sealing.take() {
                        Some(Sealing::Data(data)) => {
                            let needed = data.len() + RECORD_EXTRA * (data.len() / RECORD + 1);
                            match traffic.encrypt(data, self.outgoing.room(needed)) {
                                Err(EncryptError::InsufficientSize(needed)) => {
                                    traffic.encrypt(data, self.outgoing.room(needed.required_size))
                                }
                                other => other,
                            }
                        }
                        Some(Sealing::Close) => {
                            traffic.queue_close_notify(self.outgoing.room(2 * RECORD_EXTRA))
                        }
                        None => Ok(0),
                    };
                    self.outgoing.end += written.map_err(io::Error::other)?;
                    goes_on = false;
                }
                Ok(ConnectionState::PeerClosed) => *self.is_peer_closed = true,
                Ok(ConnectionState::Closed | ConnectionState::BlockedHandshake) => goes_on = false,
                Ok(_) => return Err(io::ErrorKind::Unsupported.into()),
                Err(e) => {
                    // The alert that reports the error to the peer.
                    if let Ok(ConnectionState::EncodeTlsData(mut data)) =
                        connection.process(self.incoming.filled_mut()).state
                    {
                        let written = data.encode(self.outgoing.room(RECORD));
                        self.outgoing.end += written.unwrap_or(0);
                    }
                    self.incoming.consume(discard);
                    return Err(invalid(e));
                }
            }
            self.incoming.consume(discard);
            if !goes_on {
                return Ok(total);
            }
        }
    }
}

fn invalid(e: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {e}"))
}
