//! The TCP connections between ranks: one or several for each pair.

use super::connect::{Deadline, connect};
use super::greeter::{Greeted, Greeter};
use super::{Hello, MAGIC, Membership};
use crate::failure::GroupFailure;
use crate::wire::{FieldReader, FieldWriter, write_frame};
use ferroflow_core::{Result, ensure, err};
use ferroflow_identity::{JobToken, SecureStream};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::HashMap;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most connections of a pair. No known network needs more.
pub(crate) const MOST_STREAMS: usize = 16;

/// Connections between ranks on different hosts, by default. A connection uses one queue of a
/// network card and one processor for receiving, and a lost packet halves its speed. With two, the
/// other connection continues. More pay off only on networks that limit each connection, as clouds
/// do. Elsewhere they cost an additional system call per chunk.
const BETWEEN_HOSTS: usize = 2;

/// The number of connections between two ranks: `asked` on rank 0, or the default for their hosts.
fn streams_between(asked: Option<usize>, one: &Hello, other: &Hello) -> usize {
    match asked {
        Some(streams) => streams,
        // Within a host, one connection is as fast as the processor can copy.
        None if one.host == other.host => 1,
        None => BETWEEN_HOSTS,
    }
}

/// An error unless this number of connections is allowed.
pub(crate) fn check_streams(streams: usize) -> Result<usize> {
    ensure!(
        (1..=MOST_STREAMS).contains(&streams),
        InvalidArgument,
        "{streams} connections between two ranks are not possible: use 1 to {MOST_STREAMS}"
    );
    Ok(streams)
}

/// The first message on a connection to a lower rank.
pub(super) struct Call {
    pub from: usize,
    pub to: usize,
    /// The number of the connection, or [`Call::CONTROL`].
    pub stream: usize,
}

impl Call {
    /// The connection carries control messages.
    pub const CONTROL: usize = u32::MAX as usize;

    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        w.u32(MAGIC).u32(self.from as u32).u32(self.to as u32).u32(self.stream as u32);
        w.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Call> {
        let mut r = FieldReader(bytes);
        ensure!(r.u32()? == MAGIC, DataLoss, "the peer is not a rank of this version of Ferroflow");
        let (from, to, stream) = (r.u32()? as usize, r.u32()? as usize, r.u32()? as usize);
        Ok(Call { from, to, stream })
    }
}

/// The connections of a rank, which are opened when a schedule first needs them: a group of
/// thousands needs a few for each rank. Of two ranks, the higher connects.
pub(crate) struct LazyLinks {
    member: Membership,
    asked: Option<usize>,
    table: Vec<Hello>,
    arrived: Arc<Arrived>,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    /// Set when the group fails, so that connecting ends.
    abandon: Arc<AtomicBool>,
}

/// Connections of higher ranks.
struct Arrived {
    /// By rank and number. `None` has not arrived yet.
    streams: Mutex<HashMap<usize, Vec<Option<SecureStream>>>>,
    /// Readable when one has arrived.
    changed: OwnedFd,
    /// Readable when the thread that accepts them has to end.
    stopping: OwnedFd,
}

impl LazyLinks {
    /// Starts to accept connections of higher ranks. `early` have already arrived.
    pub(super) fn start(
        member: &Membership,
        asked: Option<usize>,
        listener: TcpListener,
        early: Vec<Greeted>,
        table: Vec<Hello>,
        failure: &GroupFailure,
    ) -> Result<LazyLinks> {
        let event = || {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|e| err!(Internal, "cannot make an event: {e}"))
        };
        let streams = Mutex::new(HashMap::new());
        let arrived = Arc::new(Arrived { streams, changed: event()?, stopping: event()? });
        let (stop, abandon) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flag = abandon.clone();
        failure.add_listener(move || flag.store(true, Ordering::SeqCst));
        let mut links = LazyLinks {
            member: Membership { abandon: None, ..member.clone() },
            asked,
            table,
            arrived,
            stop,
            accepting: None,
            abandon,
        };
        // The highest rank is never called.
        if member.rank + 1 < member.size {
            links.accepting = Some(links.accept(listener, early)?);
        }
        Ok(links)
    }

    fn accept(&self, listener: TcpListener, early: Vec<Greeted>) -> Result<JoinHandle<()>> {
        let (member, arrived, stop) =
            (self.member.clone(), self.arrived.clone(), self.stop.clone());
        let counts: Vec<usize> = (0..self.table.len()).map(|rank| self.streams(rank)).collect();
        early.into_iter().for_each(|greeted| arrived.add(&member, &counts, greeted));
        let work = move || {
            let greeter = Greeter::new(&listener, counts.len(), &member.trust, &member.token);
            let Ok(mut greeter) = greeter else { return };
            while !stop.load(Ordering::SeqCst) {
                match greeter.next_or(&arrived.stopping) {
                    Ok(Some(greeted)) => arrived.add(&member, &counts, greeted),
                    Ok(None) => {}
                    // No descriptor is free, or the listener is gone: the connecting ranks report
                    // that.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        };
        let thread = std::thread::Builder::new().name("ff-accept".into()).stack_size(256 << 10);
        thread.spawn(work).map_err(|e| crate::io_error("cannot start a thread", &e))
    }

    fn streams(&self, other: usize) -> usize {
        streams_between(self.asked, &self.table[self.member.rank], &self.table[other])
    }

    /// The connections to a rank, if they are there or can be opened now.
    pub(crate) fn take(&self, other: usize) -> Result<Option<Vec<SecureStream>>> {
        match other < self.member.rank {
            true => self.connect(other).map(Some),
            false => Ok(self.arrived.take(other)),
        }
    }

    fn connect(&self, lower: usize) -> Result<Vec<SecureStream>> {
        let Membership { rank, ref trust, .. } = self.member;
        let token = JobToken::new(self.member.token.as_str());
        let (address, role) = (&self.table[lower].address, self.member.role(lower));
        let time = Instant::now() + self.member.timeout;
        let until = Deadline { time, abandon: Some(self.abandon.clone()) };
        let one = |number: usize| {
            let mut connected = connect(address, &role, trust, &token, &until)
                .map_err(|e| e.context(format!("rank {lower}")))?;
            let call = Call { from: rank, to: lower, stream: number };
            write_frame(&mut connected, &call.encode())
                .map_err(|e| crate::io_error(&format!("cannot send to rank {lower}"), &e))?;
            Ok(connected)
        };
        (0..self.streams(lower)).map(one).collect()
    }

    /// A descriptor that becomes readable when connections have arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.arrived.changed.as_fd()
    }

    /// Makes the descriptor unreadable until more connections arrive.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.arrived.changed, &mut [0; 8]);
    }
}

impl Drop for LazyLinks {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.arrived.stopping, &1u64.to_ne_bytes());
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

impl Arrived {
    fn add(&self, member: &Membership, counts: &[usize], greeted: Greeted) {
        let Greeted { stream, first } = greeted;
        let Ok(call) = Call::decode(&first) else { return };
        let may_be = stream.may_be(&member.role(call.from));
        let is_higher = call.from > member.rank && call.from < counts.len();
        if !may_be || call.to != member.rank || !is_higher || call.stream >= counts[call.from] {
            return;
        }
        let mut all = self.streams.lock();
        let of =
            all.entry(call.from).or_insert_with(|| (0..counts[call.from]).map(|_| None).collect());
        if let Some(place @ None) = of.get_mut(call.stream) {
            *place = Some(stream);
        }
        drop(all);
        let _ = rustix::io::write(&self.changed, &1u64.to_ne_bytes());
    }

    /// The connections of a rank, if all have arrived.
    fn take(&self, from: usize) -> Option<Vec<SecureStream>> {
        let mut all = self.streams.lock();
        if !all.get(&from)?.iter().all(Option::is_some) {
            return None;
        }
        Some(all.remove(&from)?.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_on_different_hosts_have_two_connections_by_default() {
        let hello = |host: &str| Hello { host: host.into(), ..Hello::default() };
        let (a, b) = (hello("a"), hello("b"));
        assert_eq!(streams_between(None, &a, &a), 1);
        assert_eq!(streams_between(None, &a, &b), 2);
        for asked in 1..=3 {
            assert_eq!(streams_between(Some(asked), &a, &a), asked);
            assert_eq!(streams_between(Some(asked), &a, &b), asked);
        }
    }

    #[test]
    fn an_invalid_number_of_connections_is_refused_with_the_valid_range() {
        for streams in [0, 17, usize::MAX] {
            let e = check_streams(streams).unwrap_err();
            assert!(e.message().contains("1 to 16"), "{e}");
        }
        assert_eq!(check_streams(16).unwrap(), 16);
    }
}
