//! The control connections, a star or a tree around rank 0. They carry failures and the messages of
//! the coordinator. A process that dies closes its connections, and its neighbours report that to
//! all others. A process that is stopped, or whose host is down, closes nothing. A peer that
//! receives nothing sends pings, and counts those that are not answered.

mod tree;

pub(crate) use tree::ControlTree;

use crate::failure::GroupFailure;
use crate::wire::{FieldReader, FieldWriter, read_frame, write_frame};
use ferroflow_core::{Code, Error, Result, err};
use ferroflow_identity::SecureStream;
use parking_lot::Mutex;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// First byte of a frame: the group has failed.
const FAILED: u8 = 1;
/// First byte of a frame: the sender leaves properly.
const LEAVE: u8 = 2;
/// First byte of a frame: data of rank 0 for all ranks.
const DOWN: u8 = 3;
/// First byte of a frame: a liveness probe.
const PING: u8 = 4;
/// First byte of a frame: the answer to a probe.
const PONG: u8 = 5;
/// First byte of a frame: a rank and its data for rank 0.
const UP: u8 = 6;
/// First byte of a frame: the number of a rank that has left.
const LEFT: u8 = 7;

/// Unanswered pings after which a peer counts as dead.
const MAX_PINGS: u32 = 4;

/// A message of a rank.
pub(crate) enum ControlMessage<'a> {
    Data(&'a [u8]),
    /// The rank leaves. This is its last message.
    Leave,
}

/// Receives the messages of ranks, with the rank of the sender.
pub(crate) type Inbox = Box<dyn Fn(usize, ControlMessage<'_>) + Send>;

struct Shared {
    rank: usize,
    failure: Arc<GroupFailure>,
    tree: ControlTree,
    /// Connections to the neighbours in the tree, by rank.
    links: Vec<Option<Mutex<SecureStream>>>,
    /// Children that have left and receive nothing more.
    left: Mutex<Vec<usize>>,
    inbox: Mutex<Option<Inbox>>,
    /// Messages that came before the inbox was set. `None` means that the rank has left.
    early: Mutex<Vec<(usize, Option<Vec<u8>>)>>,
    closing: AtomicBool,
    liveness_timeout: Duration,
}

/// One rank's control connections. Dropping it leaves properly.
pub(crate) struct Control {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Control {
    pub(crate) fn start(
        rank: usize,
        tree: ControlTree,
        links: Vec<Option<SecureStream>>,
        failure: Arc<GroupFailure>,
        liveness_timeout: Duration,
    ) -> Result<Control> {
        // Count pings instead of time, so that processes that were stopped together can continue
        // together.
        let liveness_timeout = liveness_timeout.max(Duration::from_millis(u64::from(MAX_PINGS)));
        let mut readers = Vec::new();
        for (peer, link) in links.iter().enumerate() {
            let Some(link) = link else { continue };
            let setup = || {
                let tcp = link.tcp();
                tcp.set_nodelay(true)?;
                tcp.set_read_timeout(Some(liveness_timeout / MAX_PINGS))?;
                // A peer that reads nothing for this long counts as dead too.
                tcp.set_write_timeout(Some(liveness_timeout))?;
                std::io::Result::Ok(link.clone())
            };
            readers.push((
                peer,
                setup().map_err(|e| crate::io_error("cannot set up a control connection", &e))?,
            ));
        }
        let shared = Arc::new(Shared {
            rank,
            failure,
            tree,
            links: links.into_iter().map(|l| l.map(Mutex::new)).collect(),
            left: Mutex::new(Vec::new()),
            inbox: Mutex::new(None),
            early: Mutex::new(Vec::new()),
            closing: AtomicBool::new(false),
            liveness_timeout,
        });
        let mut control = Control { shared: shared.clone(), threads: Vec::new() };
        for (peer, stream) in readers {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("ff-control-{peer}"))
                .stack_size(256 << 10)
                .spawn(move || shared.listen(peer, stream))
                .map_err(|e| crate::io_error("cannot start a control thread", &e))?;
            control.threads.push(thread);
        }
        Ok(control)
    }

    /// Fails the group on all ranks, unless it has already failed. `cause` names the rank that
    /// failed.
    pub(crate) fn fail(&self, cause: Error) {
        self.shared.fail(cause, None);
    }

    /// Sends data to rank 0. On rank 0 itself it goes to the inbox.
    pub(crate) fn send_up(&self, data: &[u8]) -> Result<()> {
        let rank = self.shared.rank;
        let Some(parent) = self.shared.tree.parent(rank) else {
            self.shared.deliver(rank, ControlMessage::Data(data));
            return Ok(());
        };
        let mut frame = FieldWriter(Vec::with_capacity(5 + data.len()));
        frame.u8(UP).u32(rank as u32).0.extend_from_slice(data);
        self.shared.write(parent, &frame.0)
    }

    /// Sends data from rank 0 to all other ranks. Returns the neighbours that could not be reached.
    pub(crate) fn send_down(&self, data: &[u8]) -> Vec<(usize, Error)> {
        let mut frame = Vec::with_capacity(1 + data.len());
        frame.push(DOWN);
        frame.extend_from_slice(data);
        let left = self.shared.left.lock().clone();
        let children = self.shared.tree.children(self.shared.rank);
        let present = children.filter(|child| !left.contains(child));
        present.filter_map(|to| Some((to, self.shared.write(to, &frame).err()?))).collect()
    }

    /// The rank through which this one reaches rank 0.
    pub(crate) fn parent(&self) -> usize {
        self.shared.tree.parent(self.shared.rank).unwrap_or(0)
    }

    /// Passes all messages to `inbox`, beginning with those that have already arrived. The control
    /// threads call it, so it must not block.
    pub(crate) fn set_inbox(&self, inbox: Inbox) {
        let mut slot = self.shared.inbox.lock();
        for (from, data) in self.shared.early.lock().drain(..) {
            inbox(from, data.as_deref().map_or(ControlMessage::Leave, ControlMessage::Data));
        }
        *slot = Some(inbox);
    }
}

#[cfg(test)]
impl Control {
    /// Closes the connections without leaving, as a dying process does.
    pub(crate) fn cut(&self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for link in self.shared.links.iter().flatten() {
            link.lock().tcp().shutdown(Shutdown::Both).unwrap();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // The thread that received a failure may not have passed it on yet.
        if let Err(cause) = self.shared.failure.check() {
            self.shared.announce(&cause, None);
        }
        for link in self.shared.links.iter().flatten() {
            let mut link = link.lock();
            let _ = write_frame(&mut *link, &[LEAVE]);
            let _ = link.tcp().shutdown(Shutdown::Both);
        }
        let me = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // A control thread that dropped the last reference cannot join itself.
            if thread.thread().id() != me {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    /// Reads messages of `peer` until it leaves or dies, or until this rank leaves.
    fn listen(&self, peer: usize, stream: SecureStream) {
        let mut reader = LivenessReader { stream, peer, shared: self, pings: 0 };
        let lost = loop {
            match read_frame(&mut reader) {
                Ok(Some(frame)) => match self.take(peer, &frame) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(e) => break e,
                },
                Ok(None) => break err!(Unavailable, "rank {peer} died: its connection was closed"),
                Err(e) => break err!(Unavailable, "rank {peer} died: {e}"),
            }
        };
        if !self.closing.load(Ordering::SeqCst) {
            self.fail(lost, Some(peer));
        }
    }

    /// Uses a frame of a neighbour, or passes it on. False if it was the neighbour's last.
    fn take(&self, peer: usize, frame: &[u8]) -> Result<bool> {
        let unknown = || err!(DataLoss, "rank {peer} sent an unknown control message");
        let is_below = self.tree.parent(peer) == Some(self.rank);
        match frame.split_first().ok_or_else(unknown)? {
            (&FAILED, rest) => {
                let cause = read_cause(rest).map_err(|e| e.context(format!("rank {peer}")))?;
                self.fail(cause, Some(peer));
            }
            (&DOWN, data) if !is_below => {
                // Pass it on first: this rank may leave because of it.
                for child in self.tree.children(self.rank) {
                    // The thread that reads from the child notices when the child is gone.
                    let _ = self.write_now(child, frame);
                }
                self.deliver(0, ControlMessage::Data(data));
            }
            (&UP, rest) if is_below => match self.tree.parent(self.rank) {
                // The thread that reads from the parent notices when the parent is gone.
                Some(parent) => drop(self.write_now(parent, frame)),
                None => {
                    let mut fields = FieldReader(rest);
                    let from = self.sender(peer, fields.u32()?)?;
                    self.deliver(from, ControlMessage::Data(fields.0));
                }
            },
            (&LEFT, rest) if is_below => {
                let left = self.sender(peer, FieldReader(rest).u32()?)?;
                self.has_left(left);
            }
            (&PING, _) => self.send_signal(peer, PONG),
            (&PONG, _) => {}
            (&LEAVE, _) => {
                match is_below {
                    true => {
                        self.left.lock().push(peer);
                        self.has_left(peer);
                    }
                    false => self.deliver(peer, ControlMessage::Leave),
                }
                return Ok(false);
            }
            _ => return Err(unknown()),
        }
        Ok(true)
    }

    /// The rank that a frame of the child `peer` names. It must be the child or below it.
    fn sender(&self, peer: usize, named: u32) -> Result<usize> {
        let named = named as usize;
        let mut at = named;
        while at != peer {
            let above = self.tree.parent(at).filter(|_| named < self.tree.size());
            at = above.ok_or_else(|| {
                err!(
                    DataLoss,
                    "rank {peer} passed on a message of rank {named}, which is not below it"
                )
            })?;
        }
        Ok(named)
    }

    /// Tells rank 0 that a rank below this one has left. The ranks below it can no longer be
    /// reached, so they count as left too.
    fn has_left(&self, rank: usize) {
        if let Some(parent) = self.tree.parent(self.rank) {
            let mut frame = FieldWriter::default();
            frame.u8(LEFT).u32(rank as u32);
            // Ignore the error: the thread that reads from the parent notices when it is gone.
            let _ = self.write_now(parent, &frame.0);
            return;
        }
        self.deliver(rank, ControlMessage::Leave);
        for below in self.tree.below(rank) {
            self.deliver(below, ControlMessage::Leave);
        }
    }

    fn fail(&self, cause: Error, heard_from: Option<usize>) {
        if self.failure.fail(cause.clone()) {
            self.announce(&cause, heard_from);
        }
    }

    fn announce(&self, cause: &Error, heard_from: Option<usize>) {
        let mut frame = FieldWriter::default();
        frame.u8(FAILED).u32(cause.code() as u32).text(cause.message());
        for (peer, link) in self.links.iter().enumerate() {
            if let Some(link) = link
                && Some(peer) != heard_from
            {
                let _ = write_frame(&mut *link.lock(), &frame.0);
            }
        }
    }

    /// Sends a frame without content. Ignores errors: a lost frame shows up as a missing answer.
    fn send_signal(&self, to: usize, word: u8) {
        if let Some(Some(link)) = self.links.get(to) {
            let _ = write_frame(&mut *link.lock(), &[word]);
        }
    }

    fn deliver(&self, from: usize, message: ControlMessage<'_>) {
        let inbox = self.inbox.lock();
        match (&*inbox, message) {
            (Some(inbox), message) => inbox(from, message),
            (None, ControlMessage::Data(data)) => {
                self.early.lock().push((from, Some(data.to_vec())))
            }
            (None, ControlMessage::Leave) => self.early.lock().push((from, None)),
        }
    }

    fn write(&self, to: usize, frame: &[u8]) -> Result<()> {
        self.write_now(to, frame)?
            .map_err(|e| self.failure.cause_or(err!(Unavailable, "rank {to} is gone: {e}")))
    }

    /// Sends a frame, without waiting for the cause of a failure.
    fn write_now(&self, to: usize, frame: &[u8]) -> Result<std::io::Result<()>> {
        let link = self.links.get(to).and_then(Option::as_ref);
        let link = link.ok_or_else(|| err!(Internal, "no control connection to rank {to}"))?;
        Ok(write_frame(&mut *link.lock(), frame))
    }
}

/// A connection that pings its peer when nothing arrives, and fails if the peer does not answer.
struct LivenessReader<'a> {
    stream: SecureStream,
    peer: usize,
    shared: &'a Shared,
    pings: u32,
}

impl Read for LivenessReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.stream.read(into) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.pings == MAX_PINGS {
                        let text =
                            format!("it did not answer for {:?}", self.shared.liveness_timeout);
                        return Err(std::io::Error::new(ErrorKind::TimedOut, text));
                    }
                    self.pings += 1;
                    self.shared.send_signal(self.peer, PING);
                }
                read => {
                    self.pings = 0;
                    return read;
                }
            }
        }
    }
}

pub(crate) fn read_cause(body: &[u8]) -> Result<Error> {
    let mut r = FieldReader(body);
    let code = Code::from_number(r.u32()? as i32);
    Ok(Error::new(code, r.text()?))
}
