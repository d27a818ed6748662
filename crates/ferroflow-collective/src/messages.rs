//! Messages from one rank to another, matched by sender and tag, in any order of calls.
//!
//! Each rank listens for connections. A rank connects to another one when it first sends to it, or
//! waits for a message from it. A connection that closes fails the receives that wait for its rank.

use crate::foreign::ForeignTensor;
use crate::rendezvous::{Deadline, Greeted, Greeter, MEMBER_ROLE};
use crate::wire::{FieldReader, FieldWriter, write_frame};
use ferroflow_core::{Code, Error, Result, ensure, err};
use ferroflow_identity::{ExpectedPeer, JobToken, SecureStream, Trust};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a rank tries to connect to another one.
const CONNECT: Duration = Duration::from_secs(30);

/// Receives the result of a message: the rank of its sender.
pub type MessageDone = Box<dyn FnOnce(Result<usize>) + Send>;

/// The end of this rank of the message links between all ranks.
pub struct MessageLinks {
    shared: Arc<Shared>,
    listener: TcpListener,
    accepts: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    rank: usize,
    token: JobToken,
    trust: Trust,
    state: Mutex<LinksState>,
}

#[derive(Default)]
struct LinksState {
    /// Receives that wait, in the order in which they were posted.
    posted: Vec<PostedReceive>,
    /// Messages that no receive has taken yet, in the order of arrival.
    arrived: VecDeque<ArrivedMessage>,
    links: HashMap<usize, Sender<Outgoing>>,
    /// All open connections, which are shut down at the end.
    streams: Vec<TcpStream>,
    /// Why no more messages come from a rank.
    gone: HashMap<usize, Error>,
    failed: Option<Error>,
    closing: bool,
}

struct PostedReceive {
    from: Option<usize>,
    tag: i64,
    into: ForeignTensor,
    done: MessageDone,
}

struct ArrivedMessage {
    from: usize,
    tag: i64,
    bytes: Vec<u8>,
}

struct Outgoing {
    tag: i64,
    values: ForeignTensor,
    done: MessageDone,
}

impl MessageLinks {
    /// Accepts connections on `listener`. `token` must be equal on all ranks. Ranks on several
    /// hosts need credentials in `trust`.
    pub fn start(
        rank: usize,
        listener: TcpListener,
        token: &str,
        trust: Trust,
    ) -> Result<MessageLinks> {
        let at = listener.local_addr().map_err(|e| crate::io_error("cannot listen", &e))?;
        trust.check_bind(at)?;
        let state = Mutex::new(LinksState::default());
        let shared = Arc::new(Shared { rank, token: JobToken::new(token), trust, state });
        let accepting = listener.try_clone().map_err(|e| crate::io_error("cannot listen", &e))?;
        let accepted = shared.clone();
        let accepts = crate::engine::spawn("ff-messages", move || accept(&accepted, &accepting))?;
        Ok(MessageLinks { shared, listener, accepts: Some(accepts) })
    }

    /// Sends `values` to rank `to`, which listens at `address`. Calls `done` when the memory may be
    /// used again.
    pub fn send(
        &self,
        to: usize,
        address: &str,
        tag: i64,
        values: ForeignTensor,
        done: MessageDone,
    ) {
        if to == self.shared.rank {
            self.shared.arrived(to, tag, values.bytes().to_vec());
            return done(Ok(to));
        }
        match self.shared.link(to, address) {
            Ok(link) => {
                // The link's thread lives as long as its channel, so it always takes the message.
                if let Err(failed) = link.send(Outgoing { tag, values, done }) {
                    (failed.0.done)(Err(err!(Unavailable, "the link to rank {to} has ended")));
                }
            }
            Err(e) => done(Err(e)),
        }
    }

    /// Receives the next message with `tag` from a rank, or from any rank. `from` has the rank and
    /// the address at which it listens.
    pub fn receive(
        &self,
        from: Option<(usize, &str)>,
        tag: i64,
        into: ForeignTensor,
        done: MessageDone,
    ) {
        let rank = from.map(|(rank, _)| rank);
        let mut state = self.shared.state.lock();
        let matches = |m: &ArrivedMessage| m.tag == tag && rank.is_none_or(|r| r == m.from);
        if let Some(at) = state.arrived.iter().position(matches)
            && let Some(message) = state.arrived.remove(at)
        {
            drop(state);
            return take(self.shared.rank, into, done, message);
        }
        let lost = rank.and_then(|r| state.gone.get(&r)).or(state.failed.as_ref()).cloned();
        if let Some(cause) = lost {
            drop(state);
            return done(Err(cause));
        }
        state.posted.push(PostedReceive { from: rank, tag, into, done });
        drop(state);
        // A connection to the sender shows when it is gone.
        if let Some((from, address)) = from
            && from != self.shared.rank
            && let Err(e) = self.shared.link(from, address)
        {
            self.shared.lost(from, &e);
        }
    }

    /// Fails all receives, now and later.
    pub fn fail(&self, cause: &Error) {
        self.failer()(cause);
    }

    /// A function that does what [`MessageLinks::fail`] does, without keeping the links.
    pub fn failer(&self) -> impl Fn(&Error) + Send + Sync + 'static {
        let shared = Arc::downgrade(&self.shared);
        move |cause| {
            if let Some(shared) = shared.upgrade() {
                shared.fail(cause);
            }
        }
    }
}

impl Drop for MessageLinks {
    fn drop(&mut self) {
        self.shared.fail(&err!(Cancelled, "the message links were closed"));
        let mut state = self.shared.state.lock();
        state.closing = true;
        // Ends the threads of the links, once they have sent what was submitted.
        state.links.clear();
        let streams = std::mem::take(&mut state.streams);
        drop(state);
        for stream in streams {
            let _ = stream.shutdown(Shutdown::Read);
        }
        // Wakes the thread that accepts.
        if let Ok(address) = self.listener.local_addr() {
            let port = address.port();
            let ip = if address.ip().is_unspecified() {
                std::net::Ipv4Addr::LOCALHOST.into()
            } else {
                address.ip()
            };
            let _ = TcpStream::connect_timeout(&(ip, port).into(), Duration::from_secs(1));
        }
        if let Some(thread) = self.accepts.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The channel of the link to rank `to`. Starts the link's threads if there is none.
    fn link(self: &Arc<Shared>, to: usize, address: &str) -> Result<Sender<Outgoing>> {
        let mut state = self.state.lock();
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        if let Some(link) = state.links.get(&to) {
            return Ok(link.clone());
        }
        let (sender, messages) = channel();
        let (shared, address) = (self.clone(), address.to_string());
        crate::engine::spawn("ff-send", move || shared.write(to, &address, &messages))?;
        state.links.insert(to, sender.clone());
        Ok(sender)
    }

    /// Connects to a rank and sends it messages.
    fn write(self: &Arc<Shared>, to: usize, address: &str, messages: &Receiver<Outgoing>) {
        let mut stream = match self.connect(to, address) {
            Ok(stream) => stream,
            Err(e) => {
                self.lost(to, &e);
                messages.iter().for_each(|m| (m.done)(Err(e.clone())));
                return;
            }
        };
        for Outgoing { tag, values, done } in messages {
            let bytes = values.bytes();
            let mut head = [0; 16];
            head[..8].copy_from_slice(&tag.to_le_bytes());
            head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            let sent = stream.write_all(&head).and_then(|()| stream.write_all(bytes));
            done(sent.map(|()| to).map_err(|e| {
                err!(Unavailable, "rank {} cannot send to rank {to}: {e}", self.rank)
            }));
        }
        let _ = stream.tcp().shutdown(Shutdown::Write);
    }

    fn connect(self: &Arc<Shared>, to: usize, address: &str) -> Result<SecureStream> {
        let until = Instant::now() + CONNECT;
        let mut stream = loop {
            match self.greet(address, until) {
                Ok(stream) => break stream,
                Err(e)
                    if e.code() != Code::PermissionDenied
                        && Instant::now() < until
                        && self.state.lock().failed.is_none() =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(e) => {
                    let rank = self.rank;
                    let text = format!("rank {rank} cannot connect to rank {to} at {address}");
                    return Err(err!(Unavailable, "{text}: {}", e.message()));
                }
            }
        };
        let setup = |e: std::io::Error| crate::io_error("cannot set up a message link", &e);
        let mut hello = FieldWriter::default();
        hello.u32(self.rank as u32);
        write_frame(&mut stream, &hello.0).map_err(setup)?;
        let mut watched = stream.clone();
        if !self.keep(stream.tcp().try_clone().map_err(setup)?) {
            return Err(err!(Cancelled, "the message links were closed"));
        }
        let shared = self.clone();
        crate::engine::spawn("ff-watch", move || {
            // The other end sends nothing: a read ends when the connection does.
            let _ = watched.read(&mut [0]);
            shared.lost(to, &closed(to));
        })?;
        Ok(stream)
    }

    /// Keeps a connection, to shut it down at the end. Returns false if the links have closed.
    fn keep(&self, stream: TcpStream) -> bool {
        let mut state = self.state.lock();
        if !state.closing {
            state.streams.push(stream);
        }
        !state.closing
    }

    /// Opens a connection and proves the token.
    fn greet(&self, address: &str, until: Instant) -> Result<SecureStream> {
        let setup = |e: std::io::Error| crate::io_error("no connection", &e);
        let tcp = TcpStream::connect(address).map_err(setup)?;
        tcp.set_nodelay(true).map_err(setup)?;
        crate::loopback::tune(&tcp, tcp.local_addr(), tcp.peer_addr());
        let expected = ExpectedPeer { address, role: Some(MEMBER_ROLE) };
        SecureStream::connect(tcp, &self.trust, &self.token, expected, until)
    }

    /// Receives the messages of a connection until it ends.
    fn read(&self, greeted: Greeted) -> Result<()> {
        let Greeted { mut stream, first } = greeted;
        ensure!(
            stream.may_be(MEMBER_ROLE),
            PermissionDenied,
            "{} is not for a rank of this job",
            stream.identity()
        );
        let from = FieldReader(&first).u32()? as usize;
        let lost = loop {
            let mut head = [0; 16];
            if stream.read_exact(&mut head).is_err() {
                break closed(from);
            }
            let (mut tag, mut len) = ([0; 8], [0; 8]);
            tag.copy_from_slice(&head[..8]);
            len.copy_from_slice(&head[8..]);
            let (tag, len) = (i64::from_le_bytes(tag), u64::from_le_bytes(len));
            if let Some(PostedReceive { mut into, done, .. }) = self.posted(from, tag, len) {
                let read = stream.read_exact(into.bytes_mut());
                let failed = read.is_err();
                done(read.map(|()| from).map_err(|_| closed(from)));
                if failed {
                    break closed(from);
                }
                continue;
            }
            // Grow the buffer as bytes arrive, so that a false length costs no memory.
            let mut bytes = Vec::new();
            let read = (&mut stream).take(len).read_to_end(&mut bytes);
            if read.is_err() || bytes.len() as u64 != len {
                break closed(from);
            }
            self.arrived(from, tag, bytes);
        };
        self.lost(from, &lost);
        Ok(())
    }

    /// Takes the first posted receive for such a message, if its size fits.
    fn posted(&self, from: usize, tag: i64, len: u64) -> Option<PostedReceive> {
        let mut state = self.state.lock();
        let at = state.posted.iter().position(|p| p.accepts(from, tag))?;
        let fits = state.posted[at].into.bytes().len() as u64 == len;
        fits.then(|| state.posted.remove(at))
    }

    /// Gives a message to the first receive that waits for it, or keeps it.
    fn arrived(&self, from: usize, tag: i64, bytes: Vec<u8>) {
        let message = ArrivedMessage { from, tag, bytes };
        let mut state = self.state.lock();
        match state.posted.iter().position(|p| p.accepts(from, tag)) {
            Some(at) => {
                let PostedReceive { into, done, .. } = state.posted.remove(at);
                drop(state);
                take(self.rank, into, done, message);
            }
            None => state.arrived.push_back(message),
        }
    }

    /// Fails the receives from a rank that sends no more.
    fn lost(&self, from: usize, cause: &Error) {
        let mut state = self.state.lock();
        state.gone.entry(from).or_insert_with(|| cause.clone());
        let failed = extract(&mut state.posted, |p| p.from == Some(from));
        drop(state);
        failed.into_iter().for_each(|p| (p.done)(Err(cause.clone())));
    }

    fn fail(&self, cause: &Error) {
        let mut state = self.state.lock();
        state.failed.get_or_insert_with(|| cause.clone());
        let failed = std::mem::take(&mut state.posted);
        drop(state);
        failed.into_iter().for_each(|p| (p.done)(Err(cause.clone())));
    }
}

impl PostedReceive {
    fn accepts(&self, from: usize, tag: i64) -> bool {
        self.tag == tag && self.from.is_none_or(|r| r == from)
    }
}

fn extract(
    posted: &mut Vec<PostedReceive>,
    is_meant: impl Fn(&PostedReceive) -> bool,
) -> Vec<PostedReceive> {
    let (out, rest) = std::mem::take(posted).into_iter().partition(is_meant);
    *posted = rest;
    out
}

fn closed(rank: usize) -> Error {
    err!(Unavailable, "rank {rank} closed its connection; its log says why")
}

/// Copies a message into the memory of a receive.
fn take(me: usize, mut into: ForeignTensor, done: MessageDone, message: ArrivedMessage) {
    let ArrivedMessage { from, tag, bytes } = message;
    let (sent, expected) = (bytes.len(), into.bytes().len());
    if sent != expected {
        return done(Err(err!(
            InvalidArgument,
            "rank {from} sent {sent} bytes with tag {tag}, but rank {me} expects {expected}"
        )));
    }
    into.bytes_mut().copy_from_slice(&bytes);
    done(Ok(from));
}

/// How often the accept thread looks whether the links close.
const LOOK: Duration = Duration::from_secs(1);

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut greeter = match Greeter::new(listener, usize::MAX, &shared.trust, shared.token.reveal())
    {
        Ok(greeter) => greeter,
        Err(e) => return shared.fail(&e),
    };
    while !shared.state.lock().closing {
        let greeted = match greeter.next(&Deadline::after(LOOK)) {
            Ok(Some(greeted)) => greeted,
            Ok(None) => continue,
            Err(e) => {
                tracing::warn!("cannot accept connections for messages: {e}");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let tcp = greeted.stream.tcp();
        crate::loopback::tune(tcp, tcp.local_addr(), tcp.peer_addr());
        let Ok(kept) = tcp.try_clone() else { continue };
        // Links that close have shut their connections down: this one came too late.
        if !shared.keep(kept) {
            return;
        }
        let reader = shared.clone();
        let started = crate::engine::spawn("ff-receive", move || {
            if let Err(e) = reader.read(greeted) {
                tracing::warn!("a connection for messages was refused: {e}");
            }
        });
        if let Err(e) = started {
            shared.fail(&e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::kept;
    use ferroflow_core::Code;

    /// Links of two ranks, and their addresses.
    fn pair() -> ([MessageLinks; 2], [String; 2]) {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners = [listen(), listen()];
        let addresses = listeners.each_ref().map(|l| l.local_addr().unwrap().to_string());
        let mut rank = 0;
        let links = listeners.map(|listener| {
            rank += 1;
            MessageLinks::start(rank - 1, listener, "t", Trust::default()).unwrap()
        });
        (links, addresses)
    }

    fn receive(
        links: &MessageLinks,
        from: Option<(usize, &str)>,
        tag: i64,
        len: usize,
    ) -> impl FnOnce() -> Result<(usize, Vec<f32>)> {
        let (into, values) = kept(&[len], &vec![0f32; len]);
        let (sender, result) = channel();
        links.receive(from, tag, into, Box::new(move |r| drop(sender.send(r))));
        move || result.recv().unwrap().map(|from| (from, values.lock().clone()))
    }

    fn send(links: &MessageLinks, to: usize, address: &str, tag: i64, values: &[f32]) {
        let (sender, result) = channel();
        let done = Box::new(move |r| drop(sender.send(r)));
        links.send(to, address, tag, kept(&[values.len()], values).0, done);
        result.recv().unwrap().unwrap();
    }

    #[test]
    fn messages_are_matched_by_sender_and_tag_in_order() {
        let ([a, b], [at_a, at_b]) = pair();
        let late = receive(&b, Some((0, &at_a)), 7, 2);
        send(&a, 1, &at_b, 3, &[1.0]);
        send(&a, 1, &at_b, 3, &[2.0]);
        send(&a, 1, &at_b, 7, &[3.0, 4.0]);
        assert_eq!(late().unwrap(), (0, vec![3.0, 4.0]));
        assert_eq!(receive(&b, Some((0, &at_a)), 3, 1)().unwrap(), (0, vec![1.0]));
        assert_eq!(receive(&b, None, 3, 1)().unwrap(), (0, vec![2.0]));
        send(&b, 1, &at_b, 0, &[9.0]);
        assert_eq!(receive(&b, Some((1, &at_b)), 0, 1)().unwrap(), (1, vec![9.0]));
    }

    #[test]
    fn a_message_of_another_size_is_an_error_that_names_both_ranks() {
        let ([a, b], [at_a, at_b]) = pair();
        send(&a, 1, &at_b, 0, &[1.0, 2.0]);
        let e = receive(&b, Some((0, &at_a)), 0, 1)().unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.message().contains("rank 0 sent 8 bytes"), "{e}");
        assert!(e.message().contains("rank 1 expects 4"), "{e}");
    }

    #[test]
    fn a_receive_from_a_rank_that_goes_away_fails() {
        let ([a, b], [at_a, _]) = pair();
        let waits = receive(&b, Some((0, &at_a)), 0, 1);
        drop(a);
        let e = waits().unwrap_err();
        assert!(e.message().contains("rank 0"), "{e}");
    }

    #[test]
    fn a_failure_of_the_group_fails_all_receives() {
        let ([_a, b], [at_a, _]) = pair();
        let waits = receive(&b, Some((0, &at_a)), 0, 1);
        let any = receive(&b, None, 0, 1);
        b.failer()(&err!(Unavailable, "rank 5 died"));
        assert_eq!(waits().unwrap_err().message(), "rank 5 died");
        assert_eq!(any().unwrap_err().message(), "rank 5 died");
        assert!(receive(&b, Some((0, &at_a)), 0, 1)().is_err());
    }
}
