//! The sending end of a link.

use super::frame::{self, FrameKind, LinkFrame, LinkPart};
use super::hello::{self, ConnectionPurpose, LinkHello};
use super::outbox::Outbox;
use super::reader::FrameReader;
use crate::net::NetStream;
use crate::patience::Answers;
use ferroflow_collective::blocks::BlockWriter;
use ferroflow_core::{Error, HashMap, Received, Result, bail, err};
use parking_lot::Mutex;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// Values from this size on go through shared memory, where there is any.
const BLOCK_FROM: usize = 16 << 10;
/// Values from this size on go over the connection for large values.
const BULK_FROM: usize = 256 << 10;
/// With more than this waiting to be sent, values stay where they were made until they are asked for.
const MOST_WAITING: usize = 256 << 20;

/// An open link to another task.
pub(crate) struct Link {
    /// A number of its own.
    pub id: u64,
    /// The other task.
    pub task: String,
    /// Of its devices: this is its present life.
    pub incarnations: Vec<u64>,
    /// Where it is, for messages.
    address: String,
    main: Outbox,
    bulk: Outbox,
    blocks: Option<BlockWriter>,
    calls: Mutex<PendingCalls>,
    /// To them, from a task of this host.
    answers: Arc<Answers>,
    next_call: AtomicI64,
}

/// Told how a call ended, or why that is not known.
pub(crate) type Answered = Box<dyn FnOnce(Result<Result<()>>) + Send>;

#[derive(Default)]
struct PendingCalls {
    waiting: HashMap<i64, Answered>,
    /// Why there are no more, once there are not.
    ended: Option<Error>,
}

/// Streams of a new link, after their greetings.
pub(super) struct Greeted {
    pub main: NetStream,
    pub bulk: NetStream,
    pub blocks: Option<BlockWriter>,
}

impl Link {
    /// Greets over both streams, and makes a link of them. What is returned besides must be driven:
    /// it ends with the link, and says why.
    pub(super) async fn open(
        greeted: Greeted,
        hello: LinkHello,
        address: &str,
    ) -> Result<(Arc<Link>, impl Future<Output = Error> + Send + use<>)> {
        let mut main = greeted.main.split().map_err(hello::lost)?;
        hello.send(&mut main.write).await?;
        let welcome = hello::receive_answer(&mut main.read).await?;
        let mut bulk = greeted.bulk.split().map_err(hello::lost)?;
        LinkHello { purpose: ConnectionPurpose::Bulk, blocks: None, ..hello }
            .send(&mut bulk.write)
            .await?;
        hello::receive_answer(&mut bulk.read).await?;
        let link = Arc::new(Link {
            id: fastrand::u64(..),
            task: welcome.task,
            incarnations: welcome.incarnations,
            address: address.to_string(),
            main: Outbox::new(main.write, main.is_direct),
            // A long write is not for the thread that made the value.
            bulk: Outbox::new(bulk.write, false),
            blocks: greeted.blocks.filter(|_| welcome.takes_blocks),
            calls: Mutex::default(),
            answers: Arc::default(),
            // An answer may come over another connection than the one of its call.
            next_call: AtomicI64::new(fastrand::i64(..1 << 62)),
        });
        let driven = link.clone();
        let writer = link.clone();
        let bulk_writing = tokio::spawn(async move { writer.bulk.write_out().await });
        let writer = link.clone();
        let main_writing = tokio::spawn(async move { writer.main.write_out().await });
        let driving = async move {
            let mut answers = FrameReader::new(main.read);
            // Nothing is ever said there: its end is all there is to hear.
            let mut silent = FrameReader::new(bulk.read);
            let why = tokio::select! {
                ended = driven.hear_answers(&mut answers) => ended.err(),
                ended = silent.head() => ended.err(),
            };
            let why = why.unwrap_or_else(|| err!(Unavailable, "Socket closed"));
            let why = err!(Unavailable, "{} ({})", why.message(), driven.address);
            driven.end(&why);
            main_writing.abort();
            bulk_writing.abort();
            why
        };
        Ok((link, driving))
    }

    /// Pushes a value of a step; false if it has to be asked for instead.
    pub fn push(&self, step_id: i64, key: &str, value: &Received) -> bool {
        let bytes = match value {
            Received::Live(tensor) => tensor.byte_len(),
            Received::Dead => 0,
        };
        if let (Some(blocks), Received::Live(tensor)) = (&self.blocks, value)
            && bytes >= BLOCK_FROM
            && let Ok(content) = tensor.bytes()
            && let Some(place) = blocks.put(content)
        {
            let frame = LinkFrame::block(step_id, key, tensor, place.offset, place.block);
            let is_sent = self.main.send(frame);
            if !is_sent {
                blocks.take_back(place);
            }
            return is_sent;
        }
        let outbox = if bytes >= BULK_FROM { &self.bulk } else { &self.main };
        if outbox.waiting_bytes() > MOST_WAITING {
            return false;
        }
        // What cannot be put into a frame says so when it is asked for.
        LinkFrame::value(step_id, key, value).is_ok_and(|frame| outbox.send(frame))
    }

    /// Has the other task run a part of a step. `done` hears of its end on whichever thread that comes
    /// about, unless what is returned was dropped, which stops it.
    pub fn call(self: &Arc<Self>, part: &LinkPart<'_>, done: Answered) -> LinkCall {
        let id = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.answers.called();
        let call = LinkCall { link: self.clone(), id };
        let mut calls = self.calls.lock();
        if let Some(why) = calls.ended.clone() {
            drop(calls);
            done(Err(why));
            return call;
        }
        calls.waiting.insert(id, done);
        drop(calls);
        self.main.send(LinkFrame::run(id, part));
        call
    }

    /// The same for whoever can wait. Dropping the future stops it.
    pub async fn run(self: &Arc<Self>, part: &LinkPart<'_>) -> Result<Result<()>> {
        let (tell, told) = oneshot::channel();
        let _call = self.call(part, Box::new(move |answer| drop(tell.send(answer))));
        told.await.unwrap_or_else(|_| Err(err!(Unavailable, "Socket closed ({})", self.address)))
    }

    /// The other task answers over a socket of this host.
    pub fn answers_come_from(&self, socket: &Weak<UnixStream>) {
        self.answers.come_from(socket);
    }

    /// Answers a call of the other task; false if that must be done in another way.
    pub fn answer(&self, call: i64, result: &Result<()>) -> bool {
        self.main.send(LinkFrame::ran(call, result))
    }

    /// The other task has answered a call.
    pub fn answered(&self, call: i64, result: Result<()>) {
        let tell = self.calls.lock().waiting.remove(&call);
        // None if it was cancelled meanwhile.
        if let Some(tell) = tell {
            tell(Ok(result));
        }
    }

    /// The other task may have answered calls that are still waited for: that was lost.
    pub fn lost_answers(&self, why: &Error) {
        let waiting = std::mem::take(&mut self.calls.lock().waiting);
        waiting.into_values().for_each(|tell| tell(Err(why.clone())));
    }

    /// Tells the other task that a step is over, with the next thing it is told.
    pub fn clean_up_later(&self, step_id: i64) -> bool {
        self.main.send_later(&LinkFrame::clean_up(step_id));
        !self.main.is_closed()
    }

    /// Sends what waits for company; false if nothing did.
    pub(super) fn flush(&self) -> bool {
        self.main.flush()
    }

    /// Gives the link up.
    #[cfg(test)]
    pub(super) fn close(&self) {
        self.end(&err!(Cancelled, "closed"));
    }

    pub fn is_up(&self) -> bool {
        !self.main.is_closed()
    }

    async fn hear_answers(&self, answers: &mut FrameReader) -> Result<()> {
        while let Some(head) = answers.head().await? {
            if head.kind != FrameKind::Ran {
                bail!(Internal, "a frame of {:?} among answers", head.kind);
            }
            let message = answers.rest(&head).await?.name;
            let payload = answers.bytes(head.payload as usize).await?;
            self.answered(head.id, frame::parse_ran(&message, &payload)?);
        }
        Ok(())
    }

    fn end(&self, why: &Error) {
        self.main.close();
        self.bulk.close();
        self.calls.lock().ended = Some(why.clone());
        self.lost_answers(why);
    }
}

/// A call under way.
#[must_use = "dropping this stops the call"]
pub(crate) struct LinkCall {
    link: Arc<Link>,
    id: i64,
}

impl Drop for LinkCall {
    fn drop(&mut self) {
        self.link.answers.settled();
        let under_way = self.link.calls.lock().waiting.remove(&self.id);
        if under_way.is_some() {
            self.link.main.send(LinkFrame::cancel(self.id));
        }
    }
}
