//! Authenticates the peers that connect to a rank or to the elastic driver. A bounded number of
//! connections greet at the same time, so that silent ones do not delay the others.

use super::connect::Deadline;
use crate::descriptors;
use crate::wire::read_frame_within;
use ferroflow_core::{Code, Result, err};
use ferroflow_identity::{JobToken, SecureStream, Trust};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Connections that may greet at a time, in a group of so many processes. One more closes the
/// oldest of the host that has the most: a process of the job needs milliseconds, so those that
/// stay are silent. All processes of a group may come at the same time. Each takes two descriptors,
/// and three quarters of the `descriptors` of this process stay free for the others.
fn most_greeting(size: usize, descriptors: usize) -> usize {
    size.clamp(64, 1024).min((descriptors / 8).max(8))
}

/// Connections that wait until they are accepted. The kernel lowers it to what it allows. If more
/// arrive at a time, the kernel drops them, and they try again after a second.
const BACKLOG: i32 = 4096;

/// The target of log lines about connections and refusals.
const AUDIT: &str = "audit";

/// How long a connection may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// Most bytes of a first message.
const LONGEST_FIRST: u32 = 16 << 10;

/// A connection with an authenticated peer, and its first message.
pub(crate) struct Greeted {
    pub stream: SecureStream,
    pub first: Vec<u8>,
}

/// Greets the connections of a listener.
pub(crate) struct Greeter<'a> {
    listener: &'a TcpListener,
    trust: Trust,
    token: JobToken,
    greeting: VecDeque<Greeting>,
    most: usize,
    to: Sender<Option<Greeted>>,
    arrived: Receiver<Option<Greeted>>,
    /// Readable when a connection has greeted or was refused.
    changed: Arc<OwnedFd>,
}

struct Greeting {
    tcp: TcpStream,
    host: Option<IpAddr>,
    is_over: Arc<AtomicBool>,
}

impl<'a> Greeter<'a> {
    /// Greets connections of a group with at most `size` processes.
    pub fn new(
        listener: &'a TcpListener,
        size: usize,
        trust: &Trust,
        token: &str,
    ) -> Result<Greeter<'a>> {
        // Ignore the error: the listener keeps the backlog that it has.
        let _ = rustix::net::listen(listener, BACKLOG);
        let (to, arrived) = channel();
        let changed = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| err!(Internal, "cannot make an event: {e}"))?;
        Ok(Greeter {
            listener,
            trust: trust.clone(),
            token: JobToken::new(token),
            greeting: VecDeque::new(),
            most: most_greeting(size, descriptors::limit()),
            to,
            arrived,
            changed: Arc::new(changed),
        })
    }

    /// The next connection that has greeted. `None` if the deadline passes first.
    pub fn next(&mut self, until: &Deadline) -> Result<Option<Greeted>> {
        loop {
            while let Ok(outcome) = self.arrived.try_recv() {
                if outcome.is_some() {
                    return Ok(outcome);
                }
            }
            let mut polled = [
                PollFd::new(self.listener, PollFlags::IN),
                PollFd::new(&*self.changed, PollFlags::IN),
            ];
            if !until.poll(&mut polled)? {
                return Ok(None);
            }
            let (listener, changed) = (polled[0].revents(), polled[1].revents());
            self.look(listener, changed)?;
        }
    }

    /// The next connection that has greeted. `None` if `stop` becomes readable first.
    pub fn next_or(&mut self, stop: &OwnedFd) -> Result<Option<Greeted>> {
        loop {
            while let Ok(outcome) = self.arrived.try_recv() {
                if outcome.is_some() {
                    return Ok(outcome);
                }
            }
            let mut polled = [
                PollFd::new(self.listener, PollFlags::IN),
                PollFd::new(&*self.changed, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(err!(Internal, "cannot wait for connections: {e}")),
            }
            if !polled[2].revents().is_empty() {
                return Ok(None);
            }
            self.look(polled[0].revents(), polled[1].revents())?;
        }
    }

    /// Accepts a connection, if one waits.
    fn look(&mut self, listener: PollFlags, changed: PollFlags) -> Result<()> {
        if !changed.is_empty() {
            let _ = rustix::io::read(&*self.changed, &mut [0; 8]);
        }
        if !listener.is_empty() {
            let accepted = self.listener.accept();
            let (tcp, _) =
                accepted.map_err(|e| crate::io_error("cannot accept a connection", &e))?;
            self.greet(tcp);
        }
        Ok(())
    }

    fn greet(&mut self, tcp: TcpStream) {
        self.greeting.retain(|greeting| !greeting.is_over.load(Ordering::Acquire));
        if self.greeting.len() >= self.most
            && let Some(oldest) = self.oldest_of_largest()
        {
            let _ = oldest.tcp.shutdown(Shutdown::Both);
        }
        let host = tcp.peer_addr().ok().map(|peer| peer.ip());
        let _ = tcp.set_nodelay(true);
        let Ok(clone) = tcp.try_clone() else { return };
        let peer = tcp.peer_addr().map_or_else(|_| "?".into(), |peer| peer.to_string());
        let is_over = Arc::new(AtomicBool::new(false));
        let (trust, token) = (self.trust.clone(), self.token.clone());
        let (to, over, changed) = (self.to.clone(), is_over.clone(), self.changed.clone());
        let work = move || {
            let greeted = greet(tcp, &trust, &token);
            note(&peer, &greeted);
            over.store(true, Ordering::Release);
            let _ = to.send(greeted.ok());
            let _ = rustix::io::write(&*changed, &1u64.to_ne_bytes());
        };
        let thread = std::thread::Builder::new().name("ff-greet".into()).stack_size(256 << 10);
        // Without a thread the connection is closed, so the process gets an error.
        if thread.spawn(work).is_ok() {
            self.greeting.push_back(Greeting { tcp: clone, host, is_over });
        }
    }

    /// Takes the oldest connection of the host that has the most. So a host that opens many closes
    /// its own.
    fn oldest_of_largest(&mut self) -> Option<Greeting> {
        let mut counts: HashMap<Option<IpAddr>, usize> = HashMap::new();
        self.greeting.iter().for_each(|g| *counts.entry(g.host).or_default() += 1);
        let largest = counts.values().max()?;
        let at = self.greeting.iter().position(|g| counts.get(&g.host) == Some(largest))?;
        self.greeting.remove(at)
    }
}

impl Drop for Greeter<'_> {
    fn drop(&mut self) {
        let silent = self.greeting.iter().filter(|g| !g.is_over.load(Ordering::Acquire));
        silent.for_each(|greeting| drop(greeting.tcp.shutdown(Shutdown::Both)));
    }
}

/// Writes a connection, or its refusal, to the audit log.
fn note(peer: &str, greeted: &Result<Greeted>) {
    match greeted {
        Ok(_) => tracing::info!(target: AUDIT, peer, kind = "rank", "connection accepted"),
        // The peer is a port scan, or a process that has given up.
        Err(e) if e.code() == Code::Unavailable => {
            tracing::info!(target: AUDIT, peer, "refused a connection: {e}");
        }
        Err(e) => tracing::warn!(target: AUDIT, peer, "refused a connection: {e}"),
    }
}

fn greet(tcp: TcpStream, trust: &Trust, token: &JobToken) -> Result<Greeted> {
    let deadline = Instant::now() + GREETING;
    let stream = SecureStream::accept(tcp, trust, token, deadline)?;
    let first = read_frame_within(&mut Timely { stream: &stream, deadline }, LONGEST_FIRST);
    let first = first.map_err(|e| crate::io_error("no first message", &e))?;
    let first = first.ok_or_else(|| err!(Unavailable, "the connection was closed"))?;
    stream.tcp().set_read_timeout(None).map_err(|e| crate::io_error("cannot read", &e))?;
    Ok(Greeted { stream, first })
}

/// A connection that is read until a deadline, over any number of reads.
pub(super) struct Timely<'a> {
    pub stream: &'a SecureStream,
    pub deadline: Instant,
}

impl Read for Timely<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.tcp().set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_leave_descriptors_to_the_processes_of_the_job() {
        let most = |size| most_greeting(size, 1024);
        assert_eq!([2, 100, usize::MAX].map(most), [64, 100, 128]);
        assert_eq!(most_greeting(usize::MAX, 1 << 20), 1024);
        assert_eq!(most_greeting(2, 16), 8, "some can always greet");
    }
}
