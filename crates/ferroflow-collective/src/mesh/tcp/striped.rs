//! The connections of one pair of ranks, as one byte stream in each direction.
//!
//! With several connections, consecutive chunks use consecutive connections. Both ends derive the
//! connection from the position in the stream. A long message uses all connections at the same
//! time, each with its own TCP window. A short message uses one of them, or two at a chunk
//! boundary.

use crate::loopback;
use ferroflow_identity::{SecureStream, TlsSession};
use rustix::event::{PollFd, PollFlags};
use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

/// Bytes on one connection before the next one follows. As much as a network card takes at once,
/// and a quarter of a segment, so that a segment uses up to four connections.
pub(super) const CHUNK: usize = 64 << 10;

/// Shorter reads go through the buffer `Stream::ahead`, so that a header and a short message need
/// one system call.
const SHORT: usize = 8 << 10;

pub(super) struct Striped {
    streams: Vec<Stream>,
    out: ChunkPosition,
    into: ChunkPosition,
}

/// The current connection, and how many more bytes it carries.
struct ChunkPosition {
    stream: usize,
    left: usize,
}

impl ChunkPosition {
    fn first(of: usize) -> ChunkPosition {
        // With a single connection, the chunk has no end.
        ChunkPosition { stream: 0, left: if of == 1 { usize::MAX } else { CHUNK } }
    }

    fn took(&mut self, bytes: usize, of: usize) {
        if of == 1 {
            return;
        }
        self.left -= bytes;
        if self.left == 0 {
            *self = ChunkPosition { stream: (self.stream + 1) % of, left: CHUNK };
        }
    }
}

impl Striped {
    /// Takes at least one connection.
    pub(super) fn secure(streams: Vec<SecureStream>) -> Result<Striped> {
        let of = streams.len();
        let streams = streams.into_iter().map(Stream::new).collect::<Result<_>>()?;
        Ok(Striped { streams, out: ChunkPosition::first(of), into: ChunkPosition::first(of) })
    }

    /// Sends as many bytes as fit. Returns how many.
    pub(super) fn send(&mut self, mut head: &[u8], mut body: &[u8]) -> Result<usize> {
        let of = self.streams.len();
        let mut total = 0;
        loop {
            let (h, rest) = head.split_at(head.len().min(self.out.left));
            let (b, later) = body.split_at(body.len().min(self.out.left - h.len()));
            let taken = self.streams[self.out.stream].send(h, b)?;
            self.out.took(taken, of);
            total += taken;
            if taken < h.len() + b.len() || rest.len() + later.len() == 0 {
                return Ok(total);
            }
            (head, body) = (rest, later);
        }
    }

    /// Receives the bytes that have arrived. Returns how many.
    pub(super) fn recv(&mut self, into: &mut [u8]) -> Result<usize> {
        let of = self.streams.len();
        let mut total = 0usize;
        loop {
            let end = into.len().min(total.saturating_add(self.into.left));
            let taken = self.streams[self.into.stream].recv(&mut into[total..end])?;
            self.into.took(taken, of);
            total += taken;
            if total < end || end == into.len() {
                return Ok(total);
            }
        }
    }

    /// Adds the descriptors to poll for the next byte out, the next byte in, or both.
    pub(super) fn poll<'a>(&'a self, out: bool, into: bool, polled: &mut Vec<PollFd<'a>>) {
        let mut add = |turn: &ChunkPosition, flags| {
            let stream = self.streams[turn.stream].stream.as_fd();
            polled.push(PollFd::from_borrowed_fd(stream, flags));
        };
        match (out, into) {
            (true, true) if self.out.stream == self.into.stream => {
                add(&self.out, PollFlags::OUT | PollFlags::IN);
            }
            _ => {
                out.then(|| add(&self.out, PollFlags::OUT));
                into.then(|| add(&self.into, PollFlags::IN));
            }
        }
    }
}

struct Stream {
    stream: TcpStream,
    tls: Option<TlsBytes>,
    ahead: Box<[u8; SHORT]>,
    start: usize,
    end: usize,
}

impl Stream {
    fn new(stream: SecureStream) -> Result<Stream> {
        let (stream, tls) = stream.into_parts().map_err(Error::other)?;
        let tls = tls.map(|session| TlsBytes { session, owed: 0 });
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        loopback::tune(&stream, stream.local_addr(), stream.peer_addr());
        Ok(Stream { stream, tls, ahead: Box::new([0; SHORT]), start: 0, end: 0 })
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> Result<usize> {
        if let Some(tls) = &mut self.tls {
            return tls.send(&self.stream, head, body);
        }
        nothing_yet(if head.is_empty() {
            self.stream.write(body)
        } else {
            self.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
        })
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.start < self.end {
            return Ok(self.take_ahead(into));
        }
        if into.is_empty() {
            return Ok(0);
        }
        if let Some(tls) = &mut self.tls {
            return tls.recv(&self.stream, into);
        }
        let short = into.len() < SHORT;
        let got =
            if short { self.stream.read(&mut self.ahead[..]) } else { self.stream.read(into) };
        match got {
            Ok(0) => Err(Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok(n) if short => {
                (self.start, self.end) = (0, n);
                Ok(self.take_ahead(into))
            }
            other => nothing_yet(other),
        }
    }

    fn take_ahead(&mut self, into: &mut [u8]) -> usize {
        let n = into.len().min(self.end - self.start);
        into[..n].copy_from_slice(&self.ahead[self.start..self.start + n]);
        self.start += n;
        n
    }
}

/// The encryption of a connection that does not block.
struct TlsBytes {
    session: TlsSession,
    /// Bytes that are sealed, and whose sealed form the socket has not taken completely. They count
    /// as sent when it has: the caller passes them again until then.
    owed: usize,
}

impl TlsBytes {
    fn send(&mut self, stream: &TcpStream, head: &[u8], body: &[u8]) -> Result<usize> {
        let mut total = 0;
        loop {
            if self.owed == 0 {
                let (head, skipped) = match total < head.len() {
                    true => (&head[total..], 0),
                    false => (&[][..], total - head.len()),
                };
                let pieces = [head, &body[skipped..]];
                if pieces.iter().all(|piece| piece.is_empty()) {
                    return Ok(total);
                }
                self.owed = self.session.seal_pieces(pieces.into_iter())?;
            }
            while !self.session.outgoing().is_empty() {
                match nothing_yet((&mut &*stream).write(self.session.outgoing()))? {
                    0 => return Ok(total),
                    sent => self.session.sent(sent),
                }
            }
            total += std::mem::take(&mut self.owed);
        }
    }

    fn recv(&mut self, stream: &TcpStream, into: &mut [u8]) -> Result<usize> {
        let mut total = 0;
        loop {
            total += self.session.read(&mut into[total..])?;
            if total == into.len() {
                return Ok(total);
            }
            if self.session.is_peer_closed() {
                let gone = || Error::new(ErrorKind::UnexpectedEof, "it closed the connection");
                return if total > 0 { Ok(total) } else { Err(gone()) };
            }
            match (&mut &*stream).read(self.session.incoming()) {
                Ok(0) if total > 0 => return Ok(total),
                Ok(0) => {
                    return Err(Error::new(ErrorKind::UnexpectedEof, "it closed the connection"));
                }
                Ok(read) => self.session.received(read),
                other => {
                    return nothing_yet(other).map(|_| total);
                }
            }
        }
    }
}

/// A connection that would block has moved nothing.
fn nothing_yet(moved: Result<usize>) -> Result<usize> {
    match moved {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Two ends of a connection.
    pub fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    impl Striped {
        fn new(streams: Vec<TcpStream>) -> Result<Striped> {
            Striped::secure(streams.into_iter().map(SecureStream::plain).collect())
        }
    }

    fn pairs(k: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
        (0..k).map(|_| pair()).unzip()
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 / 7) as u8).collect()
    }

    #[test]
    fn a_long_message_uses_all_streams_and_a_short_one_uses_one() {
        for k in 1..=3 {
            let (ours, theirs) = pairs(k);
            let mut striped = Striped::new(ours).unwrap();
            assert_eq!(striped.send(b"head", b"body").unwrap(), 8);
            let sent = pattern(CHUNK * k);
            let reader = |stream: &TcpStream, bytes| {
                let mut stream = stream.try_clone().unwrap();
                std::thread::spawn(move || {
                    let mut got = vec![0; bytes];
                    stream.read_exact(&mut got).map(|()| got)
                })
            };
            // The first stream has the short message, the rest of its chunk, and the end of the
            // long message.
            let readers: Vec<_> = theirs
                .iter()
                .enumerate()
                .map(|(i, stream)| reader(stream, CHUNK + if i == 0 { 8 } else { 0 }))
                .collect();
            let mut at = 0;
            while at < sent.len() {
                at += striped.send(&[], &sent[at..]).unwrap();
                std::thread::yield_now();
            }
            let got: Vec<Vec<u8>> =
                readers.into_iter().map(|r| r.join().unwrap().unwrap()).collect();
            assert_eq!(got[0][..8], *b"headbody");
            let mut whole = got[0][8..].to_vec();
            if k > 1 {
                let last = whole.split_off(CHUNK - 8);
                got[1..].iter().for_each(|g| whole.extend(g));
                whole.extend(last);
            }
            assert!(whole == sent, "{k} streams");
        }
    }

    #[test]
    fn bytes_arrive_in_order_for_all_message_lengths() {
        for k in 1..=4 {
            let (ours, theirs) = pairs(k);
            let (mut here, mut there) =
                (Striped::new(ours).unwrap(), Striped::new(theirs).unwrap());
            let sent = pattern(5 * CHUNK + 77);
            let mut got = vec![0; sent.len()];
            let (mut out, mut into) = (0, 0);
            let mut random = fastrand::Rng::with_seed(k as u64);
            while into < got.len() {
                // Splits the data into heads and bodies of short, long and zero length.
                let most = [1, 40, SHORT, 3 * CHUNK][random.usize(..4)];
                let end = (out + random.usize(..=most)).min(sent.len());
                let middle = random.usize(out..=end);
                out += here.send(&sent[out..middle], &sent[middle..end]).unwrap();
                let end = (into + random.usize(..=most)).min(got.len());
                into += there.recv(&mut got[into..end]).unwrap();
            }
            assert!(got == sent, "{k} streams");
            assert_eq!(there.recv(&mut [0; 9]).unwrap(), 0, "nothing is left over");
        }
    }

    /// Sends or receives chunks until that fails.
    fn until_broken(mut step: impl FnMut(&mut [u8]) -> Result<usize>) -> Error {
        let mut bytes = vec![0; 32 * CHUNK];
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            if let Err(e) = step(&mut bytes) {
                return e;
            }
            assert!(std::time::Instant::now() < until, "the closed stream was not detected");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_closed_stream_is_an_error_when_its_chunk_is_next() {
        for broken in 0..3 {
            let (ours, theirs) = pairs(3);
            let mut striped = Striped::new(ours).unwrap();
            theirs[broken].shutdown(std::net::Shutdown::Both).unwrap();
            for mut stream in &theirs[..broken] {
                stream.write_all(&[7; CHUNK]).unwrap();
            }
            let e = until_broken(|bytes| striped.recv(bytes));
            assert_eq!(e.kind(), ErrorKind::UnexpectedEof);
            let drain = |mut stream: TcpStream| {
                std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()))
            };
            let others: Vec<_> =
                theirs.iter().map(|stream| drain(stream.try_clone().unwrap())).collect();
            let e = until_broken(|bytes| striped.send(&[], bytes));
            let known = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
            assert!(known.contains(&e.kind()), "{e}");
            drop(striped);
            others.into_iter().for_each(|o| drop(o.join().unwrap()));
        }
    }
}
