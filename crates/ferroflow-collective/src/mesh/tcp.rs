//! TCP links between ranks: one or several non-blocking connections for each pair.

mod striped;

use super::Mesh;
use crate::failure::GroupFailure;
use crate::rendezvous::LazyLinks;
use ferroflow_core::{Error, Result, Spin, err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::{Duration, Instant};
use striped::Striped;

pub(crate) struct Tcp {
    peers: Vec<Option<Striped>>,
    /// Opens connections when they are needed. `None` if all are open.
    lazy: Option<LazyLinks>,
    failure: Arc<GroupFailure>,
    spin: Spin,
}

impl Tcp {
    /// A mesh of `size` ranks whose connections are opened when they are needed. `crowded` means
    /// that this host has more ranks than processors.
    pub(crate) fn lazy(
        size: usize,
        lazy: Option<LazyLinks>,
        failure: Arc<GroupFailure>,
        crowded: bool,
    ) -> Tcp {
        Tcp { peers: (0..size).map(|_| None).collect(), lazy, failure, spin: spin(crowded) }
    }

    /// The connections to a rank. `None` if that rank has not opened them yet.
    fn peer(&mut self, rank: usize) -> Result<Option<&mut Striped>> {
        let missing = || err!(Internal, "there is no connection to rank {rank}");
        let place = self.peers.get_mut(rank).ok_or_else(missing)?;
        if place.is_none() {
            let lazy = self.lazy.as_ref().ok_or_else(missing)?;
            let opened = lazy.take(rank).map_err(|e| self.failure.cause_or(e))?;
            if let Some(streams) = opened {
                let striped = Striped::secure(streams)
                    .map_err(|e| crate::io_error("cannot set up a connection between ranks", &e))?;
                *place = Some(striped);
            }
        }
        Ok(place.as_mut())
    }

    fn broken(&self, rank: usize, why: &std::io::Error) -> Error {
        self.failure.cause_or(err!(Unavailable, "rank {rank} is gone: {why}"))
    }
}

impl Mesh for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        match self.peer(to)? {
            Some(peer) => peer.send(head, body).map_err(|e| self.broken(to, &e)),
            None => Ok(0),
        }
    }

    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        match self.peer(from)? {
            Some(peer) => peer.recv(into).map_err(|e| self.broken(from, &e)),
            None => Ok(0),
        }
    }

    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()> {
        self.failure.check()?;
        let mut polled = Vec::with_capacity(2 * self.peers.len() + 1);
        polled.push(PollFd::from_borrowed_fd(self.failure.descriptor(), PollFlags::IN));
        if let Some(lazy) = &self.lazy {
            polled.push(PollFd::from_borrowed_fd(lazy.descriptor(), PollFlags::IN));
        }
        for (rank, peer) in self.peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            peer.poll(sending.contains(&rank), receiving.contains(&rank), &mut polled);
        }
        poll_until(&mut polled, until)?;
        if let Some(lazy) = &self.lazy {
            // The caller looks for arrived connections next.
            lazy.clear();
        }
        self.failure.check()
    }

    fn pause(&self, looks: u32) -> bool {
        self.spin.pause(looks)
    }

    fn open_links(&self) -> Option<usize> {
        Some(self.peers.iter().flatten().count())
    }
}

/// The spin policy for polls that are system calls of about half a microsecond.
pub(crate) fn spin(crowded: bool) -> Spin {
    match crowded {
        true => Spin::counted(100, 0),
        false => Spin::counted(600, 20),
    }
}

/// Polls until a descriptor is ready, the deadline passes, or a signal interrupts.
pub(crate) fn poll_until(polled: &mut [PollFd<'_>], until: Instant) -> Result<()> {
    let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(86_400));
    let timeout =
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(err!(Internal, "cannot wait for connections: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::striped::tests::pair;
    use super::*;
    use ferroflow_identity::SecureStream;
    use std::io::Write;
    use std::net::{Shutdown, TcpStream};

    /// The mesh of rank 0 of two ranks, and the other ends of its connections.
    fn beside_one(streams: usize) -> (Tcp, Vec<TcpStream>) {
        let (ours, theirs): (Vec<_>, Vec<_>) = (0..streams).map(|_| pair()).unzip();
        let ours = ours.into_iter().map(SecureStream::plain).collect();
        let failure = Arc::new(GroupFailure::new().unwrap());
        let mut mesh = Tcp::lazy(2, None, failure, true);
        mesh.peers[1] = Some(Striped::secure(ours).unwrap());
        (mesh, theirs)
    }

    #[test]
    fn a_rank_is_gone_when_any_of_its_streams_is_closed() {
        let (mut mesh, theirs) = beside_one(3);
        theirs[1].shutdown(Shutdown::Both).unwrap();
        (&theirs[0]).write_all(&[7; striped::CHUNK]).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        let mut bytes = vec![0; 1 << 20];
        let e = loop {
            match mesh.recv(1, &mut bytes).and_then(|_| mesh.wait(&[], &[1], until)) {
                Ok(()) => assert!(Instant::now() < until, "the closed stream was not detected"),
                Err(e) => break e,
            }
        };
        assert_eq!(e.code(), ferroflow_core::Code::Unavailable);
        assert_eq!(e.message(), "rank 1 is gone: it closed the connection");
    }

    #[test]
    fn a_closed_stream_reports_the_first_cause_of_the_failure() {
        let (mut mesh, theirs) = beside_one(2);
        mesh.failure.fail(err!(Aborted, "rank 5 gave up"));
        drop(theirs);
        let until = Instant::now() + Duration::from_secs(30);
        let e = loop {
            match mesh.recv(1, &mut [0; 9]) {
                Ok(_) => assert!(Instant::now() < until, "the failure was not detected"),
                Err(e) => break e,
            }
        };
        assert_eq!(e.message(), "rank 5 gave up");
        assert_eq!(mesh.wait(&[1], &[], until).unwrap_err(), e);
    }
}
