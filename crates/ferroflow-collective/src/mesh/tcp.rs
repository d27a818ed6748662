//! TCP between ranks: one connection for each pair, never blocking.

use super::Mesh;
use super::patience::Patience;
use crate::fate::Fate;
use crate::loopback;
use ferroflow_core::{Error, Result, err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads shorter than this go through `Peer::ahead`, so that a header and a short message cost one
/// system call.
const SHORT: usize = 8 << 10;

struct Peer {
    stream: TcpStream,
    ahead: Box<[u8; SHORT]>,
    start: usize,
    end: usize,
}

pub(crate) struct Tcp {
    peers: Vec<Option<Peer>>,
    fate: Arc<Fate>,
    patience: Patience,
}

impl Tcp {
    /// A mesh of connected streams, by rank; there is none to oneself. `crowded` says that the ranks
    /// on this host exceed its processors.
    pub(crate) fn new(
        streams: Vec<Option<TcpStream>>,
        fate: Arc<Fate>,
        crowded: bool,
    ) -> Result<Tcp> {
        let peer = |stream: TcpStream| -> Result<Peer> {
            let setup = || {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)
            };
            setup().map_err(|e| crate::io_error("a connection between ranks", &e))?;
            loopback::tune(&stream, stream.local_addr(), stream.peer_addr());
            Ok(Peer { stream, ahead: Box::new([0; SHORT]), start: 0, end: 0 })
        };
        let peers =
            streams.into_iter().map(|s| s.map(peer).transpose()).collect::<Result<Vec<_>>>()?;
        // A look is a system call of about half a microsecond.
        let patience = match crowded {
            true => Patience::new(100, 0),
            false => Patience::new(600, 20),
        };
        Ok(Tcp { peers, fate, patience })
    }

    fn peer(&mut self, rank: usize) -> Result<&mut Peer> {
        self.peers
            .get_mut(rank)
            .and_then(Option::as_mut)
            .ok_or_else(|| err!(Internal, "no connection to rank {rank}"))
    }

    fn broken(&self, rank: usize, why: &str) -> Error {
        self.fate.cause_or(err!(Unavailable, "rank {rank} is gone: {why}"))
    }
}

impl Mesh for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        let peer = self.peer(to)?;
        let sent = if head.is_empty() {
            peer.stream.write(body)
        } else {
            peer.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
        };
        match sent {
            Ok(n) => Ok(n),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(e) => Err(self.broken(to, &e.to_string())),
        }
    }

    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        let peer = self.peer(from)?;
        if peer.start < peer.end {
            let n = into.len().min(peer.end - peer.start);
            into[..n].copy_from_slice(&peer.ahead[peer.start..peer.start + n]);
            peer.start += n;
            return Ok(n);
        }
        if into.is_empty() {
            return Ok(0);
        }
        let short = into.len() < SHORT;
        let got =
            if short { peer.stream.read(&mut peer.ahead[..]) } else { peer.stream.read(into) };
        match got {
            Ok(0) => Err(self.broken(from, "it closed the connection")),
            Ok(n) if short => {
                (peer.start, peer.end) = (0, n);
                self.recv(from, into)
            }
            Ok(n) => Ok(n),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(e) => Err(self.broken(from, &e.to_string())),
        }
    }

    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()> {
        self.fate.check()?;
        let mut polled = Vec::with_capacity(self.peers.len() + 1);
        polled.push(PollFd::from_borrowed_fd(self.fate.descriptor(), PollFlags::IN));
        for (rank, peer) in self.peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::OUT, sending.contains(&rank));
            flags.set(PollFlags::IN, receiving.contains(&rank));
            if !flags.is_empty() {
                polled.push(PollFd::from_borrowed_fd(peer.stream.as_fd(), flags));
            }
        }
        poll_until(&mut polled, until)?;
        self.fate.check()
    }

    fn pause(&self, looks: u32) -> bool {
        self.patience.pause(looks)
    }
}

/// Polls until something happens or the time comes; an interruption counts as something.
pub(crate) fn poll_until(polled: &mut [PollFd<'_>], until: Instant) -> Result<()> {
    let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(86_400));
    let timeout =
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(err!(Internal, "cannot wait for connections: {e}")),
    }
}
