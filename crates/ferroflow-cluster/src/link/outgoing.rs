//! The sending end of a link.

use super::Identity;
use super::frame::{self, FrameKind, LinkFrame, LinkPart};
use super::hello::{self, ConnectionPurpose, LinkHello};
use super::loans::{Loans, Refused};
use super::outbox::Outbox;
use super::reader::FrameReader;
use crate::net::{NetStream, UcxStream};
use crate::spin::Answers;
use ferroflow_collective::blocks::BlockWriter;
use ferroflow_core::{Error, HashMap, InlineScope, Received, Result, Tensor, bail, err};
use parking_lot::Mutex;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Values of at least this size go through shared memory, if there is any.
const BLOCK_FROM: usize = 16 << 10;
/// Values of at least this size go over the connection for large values.
const BULK_FROM: usize = 256 << 10;
/// The same if that connection is a stream over UCX.
const UCX_FROM: usize = 16 << 10;
/// Backpressure: with more queued bytes than this, values are not pushed, and the receiver must ask
/// for them.
const MOST_WAITING: usize = 256 << 20;

/// An open link to another task.
pub(crate) struct Link {
    /// A unique number.
    pub id: u64,
    /// The other task.
    pub task: String,
    /// The incarnations of its devices.
    pub incarnations: Vec<u64>,
    /// Its address, for messages.
    address: String,
    /// Whether large values go over UCX.
    pub uses_ucx: bool,
    main: Outbox,
    bulk: Outbox,
    /// Values of at least this size go through `bulk`.
    bulk_from: usize,
    blocks: Option<BlockWriter>,
    /// What identifies the GPUs of a task on this host.
    gpus: Vec<String>,
    loans: Loans,
    calls: Mutex<PendingCalls>,
    /// Answers from a task on this host.
    answers: Arc<Answers>,
    next_call: AtomicI64,
    given_up: Notify,
}

/// Called with the result of a call, or with the error if the result is unknown.
pub(crate) type Answered = Box<dyn FnOnce(Result<Result<()>>) + Send>;

#[derive(Default)]
struct PendingCalls {
    waiting: HashMap<i64, Answered>,
    /// The error of the link, once it is lost.
    ended: Option<Error>,
}

/// The streams of a new link after the handshake.
pub(super) struct Greeted {
    pub main: NetStream,
    pub bulk: NetStream,
    pub blocks: Option<BlockWriter>,
    /// Whether the other task is one of this user on this host.
    pub is_local: bool,
}

impl Link {
    /// Makes a link of two streams. The returned future must be polled. It completes when the link
    /// is lost, with the error. `lacks_ucx` is set while no greeting has come back over UCX.
    pub(super) async fn open(
        greeted: Greeted,
        hello: LinkHello,
        address: &str,
        own: &Identity,
        lacks_ucx: &AtomicBool,
    ) -> Result<(Arc<Link>, impl Future<Output = Error> + Send + use<>)> {
        let mut main = greeted.main.split().map_err(hello::lost)?;
        hello.send(&mut main.write).await?;
        let welcome = hello::receive_answer(&mut main.read).await?;
        let ucx = match (&hello.ucx, &own.ucx) {
            (Some(offer), Some(port)) if !welcome.ucx.is_empty() => {
                let pipe = port.pipe(offer.own_number(), offer.number, &welcome.ucx);
                pipe.inspect_err(|e| tracing::warn!(address, "not reached over UCX: {e}")).ok()
            }
            _ => None,
        };
        let uses_ucx = ucx.is_some();
        lacks_ucx.fetch_or(uses_ucx, Ordering::Relaxed);
        let bulk = ucx.map_or(greeted.bulk, |pipe| NetStream::Other(Box::new(UcxStream(pipe))));
        let mut bulk = bulk.split().map_err(hello::lost)?;
        LinkHello { purpose: ConnectionPurpose::Bulk, blocks: None, ucx: None, ..hello }
            .send(&mut bulk.write)
            .await?;
        hello::receive_answer(&mut bulk.read).await?;
        if uses_ucx {
            lacks_ucx.store(false, Ordering::Relaxed);
        }
        let answers = Arc::<Answers>::default();
        if let Some(socket) = &main.local {
            answers.come_from(socket);
        }
        let link = Arc::new(Link {
            id: fastrand::u64(..),
            task: welcome.task,
            incarnations: welcome.incarnations,
            address: address.to_string(),
            uses_ucx,
            bulk_from: if uses_ucx { UCX_FROM } else { BULK_FROM },
            main: Outbox::new(main.write, main.is_direct),
            // Long writes do not run on the thread that made the value.
            bulk: Outbox::new(bulk.write, false),
            blocks: greeted.blocks.filter(|_| welcome.takes_blocks),
            gpus: if greeted.is_local { welcome.gpus } else { Vec::new() },
            loans: Loans::default(),
            calls: Mutex::default(),
            answers,
            // An answer can arrive on another connection than its call was sent on.
            next_call: AtomicI64::new(fastrand::i64(..1 << 62)),
            given_up: Notify::new(),
        });
        let driven = link.clone();
        let writer = link.clone();
        let bulk_writing = tokio::spawn(async move { writer.bulk.write_out().await });
        let writer = link.clone();
        let main_writing = tokio::spawn(async move { writer.main.write_out().await });
        let driving = async move {
            let mut answers = FrameReader::new(main.read);
            // The peer sends nothing here: only the end of the stream matters.
            let mut silent = FrameReader::new(bulk.read);
            let why = tokio::select! {
                ended = driven.hear_answers(&mut answers) => ended.err(),
                ended = silent.head() => ended.err(),
                () = driven.given_up.notified() => Some(err!(Unavailable, "it does not answer")),
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

    /// Pushes a value of a step. Returns false if the receiver must ask for it instead.
    pub fn push(&self, step_id: i64, key: &str, value: &Received, scope: &InlineScope) -> bool {
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
            let is_sent = self.main.send(frame, scope);
            if !is_sent {
                blocks.take_back(place);
            }
            return is_sent;
        }
        let outbox = if bytes >= self.bulk_from { &self.bulk } else { &self.main };
        if outbox.waiting_bytes() > MOST_WAITING {
            return false;
        }
        // A value that cannot be encoded fails when the receiver asks for it.
        LinkFrame::value(step_id, key, value).is_ok_and(|frame| outbox.send(frame, scope))
    }

    /// Lends a tensor in the memory of a GPU to the other task, once the GPU has computed it.
    /// Returns false if the other task does not use that GPU.
    pub fn lend(
        self: &Arc<Self>,
        step_id: i64,
        key: &str,
        tensor: &Tensor,
        refused: Refused,
    ) -> bool {
        let Some(gpu) = self.loans.shared_gpu(&self.gpus, key, tensor) else { return false };
        let Ok(address) = tensor.device_address() else { return false };
        let Ok(memory) = gpu.export(address) else { return false };
        let (me, key, tensor) = (self.clone(), key.to_string(), tensor.clone());
        let complete = move |ended: Result<_>| {
            if let Err(e) = ended {
                return refused(Err(e));
            }
            if let Some(loan) = me.loans.lend(tensor.clone(), refused) {
                let frame = LinkFrame::lent(step_id, &key, &tensor, loan, &memory);
                me.main.send(frame, &InlineScope::unknown());
            }
        };
        gpu.download(address, 0, Box::new(complete));
        true
    }

    /// The other task returns a tensor. `is_taken` says whether it has a copy.
    pub fn returned(&self, loan: i64, is_taken: bool) {
        self.loans.returned(loan, is_taken);
    }

    /// Returns a tensor to the other task, which has lent it over its own link. Returns false if
    /// the answer must go another way.
    pub fn give_back(&self, loan: i64, is_taken: bool) -> bool {
        self.main.send(LinkFrame::returned(loan, is_taken), &InlineScope::unknown())
    }

    /// Runs a part of a step on the other task. `done` is called with the result, on any thread.
    /// Dropping the returned call cancels the run, and then `done` is not called.
    pub fn call(
        self: &Arc<Self>,
        part: &LinkPart<'_>,
        scope: &InlineScope,
        done: Answered,
    ) -> LinkCall {
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
        self.main.send(LinkFrame::run(id, part), scope);
        call
    }

    /// Sets the Unix socket over which the other task answers, in place of that of this link.
    pub fn answers_come_from(&self, socket: &Weak<UnixStream>) {
        self.answers.come_from(socket);
    }

    /// Answers a call of the other task. Returns false if the answer must go another way.
    pub fn answer(&self, call: i64, result: &Result<()>, scope: &InlineScope) -> bool {
        self.main.send(LinkFrame::ran(call, result), scope)
    }

    /// The other task has answered a call.
    pub fn answered(&self, call: i64, result: Result<()>) {
        let tell = self.calls.lock().waiting.remove(&call);
        // `None` if the call was cancelled.
        if let Some(tell) = tell {
            tell(Ok(result));
        }
    }

    /// The connection with the other task's answers was lost: pending calls may have been answered.
    pub fn lost_answers(&self, why: &Error) {
        let waiting = std::mem::take(&mut self.calls.lock().waiting);
        waiting.into_values().for_each(|tell| tell(Err(why.clone())));
    }

    /// Sends the notice that a step is over together with the next frame.
    pub fn clean_up_later(&self, step_id: i64) -> bool {
        self.main.send_later(&LinkFrame::clean_up(step_id));
        !self.main.is_closed()
    }

    /// Sends batched frames. Returns false if there were none.
    pub(super) fn flush(&self) -> bool {
        self.main.flush()
    }

    /// Closes the link to a task that does not answer. The next link goes to the address that the
    /// name of its host has then.
    pub(super) fn give_up(&self) {
        self.given_up.notify_one();
    }

    /// Closes the link.
    #[cfg(test)]
    pub(super) fn close(&self) {
        self.end(&err!(Cancelled, "closed"));
    }

    pub fn is_up(&self) -> bool {
        !self.main.is_closed()
    }

    async fn hear_answers(&self, answers: &mut FrameReader) -> Result<()> {
        while let Some(head) = answers.head().await? {
            let kind = head.kind;
            if !matches!(kind, FrameKind::Ran | FrameKind::Returned) {
                bail!(Internal, "unexpected frame {kind:?} on the answer connection");
            }
            let message = answers.rest(&head).await?.name;
            let payload = answers.bytes(head.payload as usize).await?;
            match kind {
                FrameKind::Ran => self.answered(head.id, frame::parse_ran(&message, &payload)?),
                _ => self.returned(head.id, frame::parse_returned(&payload)?),
            }
        }
        Ok(())
    }

    fn end(&self, why: &Error) {
        self.main.close();
        self.bulk.close();
        self.loans.end();
        self.calls.lock().ended = Some(why.clone());
        self.lost_answers(why);
    }
}

/// A running call.
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
            self.link.main.send(LinkFrame::cancel(self.id), &InlineScope::unknown());
        }
    }
}
