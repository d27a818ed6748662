//! Byte streams over UCX between tasks, which agree on them over another connection.
//!
//! A [`UcxPort`] is the end of this process. Each end of a [`UcxPipe`] has a number, which tells
//! the messages of a port's pipes apart. The two tasks exchange the numbers and the addresses of
//! their ports over a connection that they trust: a process that knows a number can write to its
//! pipe.
//!
//! A pipe keeps order and loses nothing. A writer waits while the reader has 8 MiB unread. UCX
//! encrypts nothing.

use crate::mesh::ucx::library::{Endpoint, Request, Worker};
use ferroflow_core::{HashMap, Result, err};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use crate::mesh::ucx::has_device;

/// Most bytes of a message, after its kind.
const LONGEST: usize = 1 << 20;
/// Bytes of a pipe that may be sent and not yet read.
const WINDOW: usize = 8 << 20;
/// The reader tells the writer after so many bytes that it has read them.
const CREDIT: usize = WINDOW / 4;
/// How long a port that closes waits until its messages have been delivered.
const DELIVERY: Duration = Duration::from_secs(2);

/// The first byte of a message.
const DATA: u8 = 1;
/// Followed by the number of bytes that were read.
const READ: u8 = 2;
const CLOSE: u8 = 3;

/// The end of this process. A thread of its own receives the messages.
pub struct UcxPort {
    shared: Arc<PortShared>,
    address: Vec<u8>,
    helper: Option<JoinHandle<()>>,
}

struct PortShared {
    messages: Mutex<PortMessages>,
    pipes: Mutex<HashMap<u64, Weak<PipeBuffer>>>,
    /// Becomes readable when a message can proceed.
    descriptor: OwnedFd,
    /// Readable when the helper has something to do.
    bell: OwnedFd,
    stop: AtomicBool,
}

/// The state of the library. All calls of the library are made under this lock.
struct PortMessages {
    ends: HashMap<u64, PipeEnd>,
    /// Endpoints that are being closed, and what was sent to them before.
    closing: Vec<Request>,
    worker: Worker,
}

struct PipeEnd {
    endpoint: Endpoint,
    sends: VecDeque<Request>,
    /// Messages in their order. Long ones take some time.
    incoming: VecDeque<std::result::Result<Vec<u8>, Request>>,
}

/// An event of the pipe with this number.
enum PipeEvent {
    Arrived(u64, Vec<u8>),
    Failed(u64, String),
}

/// The reader and the writer of one pipe.
#[derive(Default)]
struct PipeBuffer(Mutex<PipeState>);

#[derive(Default)]
struct PipeState {
    arrived: VecDeque<Vec<u8>>,
    /// Used bytes of the first message, its kind included.
    used: usize,
    /// Bytes in `arrived`.
    unread: usize,
    /// Bytes that were read, and not yet reported to the writer.
    untold: usize,
    /// Bytes that were sent and not read.
    sent: usize,
    is_closed: bool,
    failure: Option<String>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl UcxPort {
    /// Loads the library and starts. Fails if it is not installed.
    pub fn open() -> Result<UcxPort> {
        let mut worker = Worker::open()?;
        let (address, descriptor) = (worker.address()?, worker.descriptor()?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| err!(Internal, "cannot make an event: {e}"))?;
        let messages = PortMessages { ends: HashMap::default(), closing: Vec::new(), worker };
        let shared = Arc::new(PortShared {
            messages: Mutex::new(messages),
            pipes: Mutex::default(),
            descriptor,
            bell,
            stop: AtomicBool::new(false),
        });
        let tended = shared.clone();
        let thread = std::thread::Builder::new().name("ff-ucx-port".into()).stack_size(512 << 10);
        let helper = thread.spawn(move || tended.tend());
        let helper = helper.map_err(|e| crate::io_error("cannot start a thread", &e))?;
        Ok(UcxPort { shared, address, helper: Some(helper) })
    }

    /// The address by which another port reaches this one.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// One end of a pipe: it reads what is sent to `number`, and sends to `other` at the port with
    /// this address. The address must come from an authenticated peer.
    pub fn pipe(&self, number: u64, other: u64, address: &[u8]) -> Result<UcxPipe> {
        let buffer = Arc::new(PipeBuffer::default());
        // Known before the first message can come.
        self.shared.pipes.lock().insert(number, Arc::downgrade(&buffer));
        let mut messages = self.shared.messages.lock();
        let endpoint = messages.worker.connect_to_peer(address);
        let opened = endpoint.map(|endpoint| {
            let (sends, incoming) = (VecDeque::new(), VecDeque::new());
            messages.ends.insert(number, PipeEnd { endpoint, sends, incoming });
        });
        drop(messages);
        if let Err(e) = opened {
            self.shared.pipes.lock().remove(&number);
            return Err(e);
        }
        Ok(UcxPipe { shared: self.shared.clone(), buffer, number, other })
    }
}

impl std::fmt::Debug for UcxPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UcxPort")
    }
}

impl Drop for UcxPort {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.ring();
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
    }
}

impl PortShared {
    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn tend(&self) {
        let mut stopping: Option<Instant> = None;
        loop {
            let mut messages = self.messages.lock();
            let events = messages.turn();
            let is_idle = events.is_empty() && messages.worker.arm().unwrap_or(true);
            let is_delivered = messages.closing.is_empty();
            drop(messages);
            self.deliver(events);
            if self.stop.load(Ordering::SeqCst) {
                let until = *stopping.get_or_insert_with(|| Instant::now() + DELIVERY);
                if is_delivered || Instant::now() > until {
                    return;
                }
                std::thread::yield_now();
            } else if is_idle {
                let mut polled = [
                    PollFd::new(&self.descriptor, PollFlags::IN),
                    PollFd::new(&self.bell, PollFlags::IN),
                ];
                if poll(&mut polled, None).is_err_and(|e| e != rustix::io::Errno::INTR) {
                    return;
                }
                let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            }
        }
    }

    fn deliver(&self, events: Vec<PipeEvent>) {
        for event in events {
            let (PipeEvent::Arrived(number, _) | PipeEvent::Failed(number, _)) = &event;
            let buffer = self.pipes.lock().get(number).and_then(Weak::upgrade);
            let Some(buffer) = buffer else { continue };
            let wake = buffer.0.lock().take(event);
            wake.into_iter().flatten().for_each(Waker::wake);
        }
    }

    /// Sends a message to the other end of a pipe.
    fn send(&self, number: u64, other: u64, message: Vec<u8>) -> Result<()> {
        let mut messages = self.messages.lock();
        let PortMessages { ends, worker, .. } = &mut *messages;
        let end = ends.get_mut(&number).ok_or_else(|| err!(Unavailable, "the pipe is closed"))?;
        end.sends.extend(worker.send(&end.endpoint, other, message)?);
        drop(messages);
        // The helper's thread completes the message.
        self.ring();
        Ok(())
    }
}

impl PortMessages {
    /// Lets messages proceed. Returns their events.
    fn turn(&mut self) -> Vec<PipeEvent> {
        while self.worker.progress() {}
        let mut events = Vec::new();
        loop {
            match self.worker.receive_any(LONGEST + 1) {
                Ok(Some((number, message))) => match self.ends.get_mut(&number) {
                    Some(end) => end.incoming.push_back(message),
                    // The pipe is closed here. Its other end does not know yet.
                    None => self.closing.extend(message.err()),
                },
                Ok(None) => break,
                // Nothing more can be received.
                Err(e) => {
                    let why = e.message().to_string();
                    events.extend(self.ends.keys().map(|n| PipeEvent::Failed(*n, why.clone())));
                    break;
                }
            }
        }
        for (number, end) in &mut self.ends {
            let failed = |e: ferroflow_core::Error| PipeEvent::Failed(*number, e.message().into());
            while let Some(first) = end.incoming.pop_front() {
                let done = match first {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(request) => match request.is_complete() {
                        Ok(true) => Ok(Some(request.into_bytes())),
                        Ok(false) => {
                            end.incoming.push_front(Err(request));
                            Ok(None)
                        }
                        Err(e) => Err(e),
                    },
                };
                match done {
                    Ok(Some(bytes)) => events.push(PipeEvent::Arrived(*number, bytes)),
                    Ok(None) => break,
                    Err(e) => events.push(failed(e)),
                }
            }
            while let Some(first) = end.sends.front() {
                match first.is_complete() {
                    Ok(false) => break,
                    Ok(true) => {}
                    Err(e) => events.push(failed(e)),
                }
                end.sends.pop_front();
            }
        }
        self.closing.retain(|request| matches!(request.is_complete(), Ok(false)));
        events
    }
}

impl PipeState {
    /// Returns the wakers of waiting readers and writers.
    fn take(&mut self, event: PipeEvent) -> [Option<Waker>; 2] {
        match event {
            PipeEvent::Failed(_, why) => self.failure = Some(why),
            PipeEvent::Arrived(_, message) => match message.split_first() {
                Some((&DATA, bytes)) => {
                    self.unread += bytes.len();
                    if self.unread > WINDOW + LONGEST {
                        self.failure = Some("the other task sends more than it may".into());
                    }
                    let is_first = self.arrived.is_empty();
                    self.arrived.push_back(message);
                    if is_first {
                        self.used = 1;
                    }
                    return [self.reader.take(), None];
                }
                Some((&READ, count)) => {
                    let count = count.try_into().map_or(0, u64::from_le_bytes);
                    self.sent = self.sent.saturating_sub(count as usize);
                    return [None, self.writer.take()];
                }
                Some((&CLOSE, _)) => self.is_closed = true,
                _ => self.failure = Some("the other task sent what is no message".into()),
            },
        }
        [self.reader.take(), self.writer.take()]
    }

    fn broken(&self) -> Option<io::Error> {
        self.failure.clone().map(|why| io::Error::new(io::ErrorKind::ConnectionReset, why))
    }

    /// Copies what has arrived. The rest of `into` is left as it is.
    fn read(&mut self, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len()
            && let Some(first) = self.arrived.front()
        {
            let left = &first[self.used..];
            let n = left.len().min(into.len() - done);
            into[done..done + n].copy_from_slice(&left[..n]);
            done += n;
            self.used += n;
            if self.used == first.len() {
                self.arrived.pop_front();
                self.used = 1;
            }
        }
        self.unread -= done;
        self.untold += done;
        done
    }
}

/// One end of a stream of bytes. Dropping it closes the stream.
pub struct UcxPipe {
    shared: Arc<PortShared>,
    buffer: Arc<PipeBuffer>,
    number: u64,
    other: u64,
}

impl UcxPipe {
    /// Reads bytes. Zero of them mean that the other end was closed.
    pub fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.buffer.0.lock();
        let done = state.read(into);
        if done == 0 {
            if let Some(why) = state.broken() {
                return Poll::Ready(Err(why));
            }
            if state.is_closed || into.is_empty() {
                return Poll::Ready(Ok(0));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let told = if state.untold >= CREDIT { std::mem::take(&mut state.untold) } else { 0 };
        drop(state);
        if told > 0 {
            let message = [&[READ][..], &(told as u64).to_le_bytes()].concat();
            self.send(message)?;
        }
        Poll::Ready(Ok(done))
    }

    /// Sends bytes, as soon as the other end has read enough of those before.
    pub fn poll_write(&self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.buffer.0.lock();
        if let Some(why) = state.broken() {
            return Poll::Ready(Err(why));
        }
        if state.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = from.len().min(LONGEST).min(WINDOW - state.sent.min(WINDOW));
        if n == 0 && !from.is_empty() {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.sent += n;
        drop(state);
        if n > 0 {
            let mut message = Vec::with_capacity(1 + n);
            message.push(DATA);
            message.extend_from_slice(&from[..n]);
            self.send(message)?;
        }
        Poll::Ready(Ok(n))
    }

    fn send(&self, message: Vec<u8>) -> io::Result<()> {
        let lost = |e: ferroflow_core::Error| io::Error::other(e.message().to_string());
        self.shared.send(self.number, self.other, message).map_err(lost)
    }
}

impl std::fmt::Debug for UcxPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UcxPipe")
    }
}

impl Drop for UcxPipe {
    fn drop(&mut self) {
        // Ignore the error: the other end has failed already.
        let _ = self.send(vec![CLOSE]);
        self.shared.pipes.lock().remove(&self.number);
        let mut messages = self.shared.messages.lock();
        if let Some(end) = messages.ends.remove(&self.number) {
            let PipeEnd { endpoint, sends, incoming } = end;
            messages.closing.extend(sends);
            messages.closing.extend(incoming.into_iter().filter_map(std::result::Result::err));
            let closed = messages.worker.close(endpoint);
            messages.closing.extend(closed.ok().flatten());
        }
        drop(messages);
        self.shared.ring();
    }
}
