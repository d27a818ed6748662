//! The control connections, a star around rank 0. They carry failures and the messages of the
//! coordinator. A process that dies closes its connection, and rank 0 announces that to all others.
//! A process that is stopped, or whose host is down, closes nothing: a peer that receives nothing
//! sends pings, and counts the unanswered ones.

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
/// First byte of a frame: data for the inbox.
const DATA: u8 = 3;
/// First byte of a frame: a liveness probe.
const PING: u8 = 4;
/// First byte of a frame: the answer to a probe.
const PONG: u8 = 5;

/// Unanswered pings after which a peer counts as dead.
const MAX_PINGS: u32 = 4;

/// A message of a connected rank.
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
    /// Connections by rank. Rank 0 has one to each other rank, the others have one to rank 0.
    links: Vec<Option<Mutex<SecureStream>>>,
    inbox: Mutex<Option<Inbox>>,
    /// Messages that came before the inbox was set. `None` means that the rank has left.
    early: Mutex<Vec<(usize, Option<Vec<u8>>)>>,
    closing: AtomicBool,
    liveness_timeout: Duration,
}

/// One rank's end of the star. Dropping it leaves properly.
pub(crate) struct Control {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Control {
    pub(crate) fn start(
        rank: usize,
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
                // A peer that accepts nothing for this long counts as dead too.
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
            links: links.into_iter().map(|l| l.map(Mutex::new)).collect(),
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

    /// Sends data to a connected rank. Data for this rank itself goes to the inbox.
    pub(crate) fn send(&self, to: usize, data: &[u8]) -> Result<()> {
        if to == self.shared.rank {
            self.shared.deliver(to, ControlMessage::Data(data));
            return Ok(());
        }
        let mut frame = Vec::with_capacity(1 + data.len());
        frame.push(DATA);
        frame.extend_from_slice(data);
        self.shared.write(to, &frame)
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
                Ok(Some(frame)) => match frame.split_first() {
                    Some((&FAILED, rest)) => match read_cause(rest) {
                        Ok(cause) => {
                            self.fail(cause, Some(peer));
                        }
                        Err(e) => break e.context(format!("rank {peer}")),
                    },
                    Some((&DATA, rest)) => self.deliver(peer, ControlMessage::Data(rest)),
                    Some((&PING, _)) => self.send_signal(peer, PONG),
                    Some((&PONG, _)) => {}
                    Some((&LEAVE, _)) => return self.deliver(peer, ControlMessage::Leave),
                    _ => break err!(DataLoss, "rank {peer} sent an unknown control message"),
                },
                Ok(None) => break err!(Unavailable, "rank {peer} died: its connection was closed"),
                Err(e) => break err!(Unavailable, "rank {peer} died: {e}"),
            }
        };
        if !self.closing.load(Ordering::SeqCst) {
            self.fail(lost, Some(peer));
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
        let link = self.links.get(to).and_then(Option::as_ref);
        let link = link.ok_or_else(|| err!(Internal, "no control connection to rank {to}"))?;
        write_frame(&mut *link.lock(), frame)
            .map_err(|e| self.failure.cause_or(err!(Unavailable, "rank {to} is gone: {e}")))
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
                            format!("it has said nothing for {:?}", self.shared.liveness_timeout);
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
