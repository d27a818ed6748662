//! The receiving end of a link.

use super::frame::{self, FrameHead, FrameKind, LinkFrame, LinkPart};
use super::hello::{self, ConnectionPurpose, LinkHello, UcxOffer, Welcome};
use super::loans;
use super::outbox::Outbox;
use super::reader::FrameReader;
use super::{DataPath, Identity, Link, LinkSource, Receiver};
use crate::key::{incarnation_of, origin_of, source_of};
use crate::listen::AUDIT;
use crate::net::{Halves, NetStream, UcxStream};
use crate::part::{PartDone, PartOutput};
use crate::rpc::Caller;
use crate::threads::off_network;
use crate::worker::task_of;
use bytes::Bytes;
use ferroflow_collective::blocks::{BlockPlace, BlockReader};
use ferroflow_collective::ucx::UcxPort;
use ferroflow_core::inline::may_decode_inline;
use ferroflow_core::{
    CancelToken, DType, DeviceName, Error, Gpu, HashMap, HashSet, InlineScope, Received, Result,
    Tensor, bail, ensure, err,
};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::PeerCounters;
use parking_lot::Mutex;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A stream over UCX without a greeting is closed after this.
const GREETING: Duration = Duration::from_secs(20);

/// The most steps that a task may run and not clean up, and the most bytes of answers that it may
/// leave unread. More ends the link.
const MOST_UNCLEANED: usize = 1 << 18;
const MOST_UNREAD: usize = 64 << 20;

/// A connection whose peer has sent its greeting.
pub(crate) struct GreetedLink {
    halves: Halves,
    hello: LinkHello,
}

impl GreetedLink {
    /// Reads the greeting of a connection. The caller sets the timeout.
    pub async fn greet(stream: NetStream) -> Result<GreetedLink> {
        let mut halves = stream.split().map_err(hello::lost)?;
        let hello = LinkHello::receive(&mut halves.read).await?;
        Ok(GreetedLink { halves, hello })
    }
}

/// Serves one connection of a link until it ends.
pub(crate) async fn serve(
    greeted: GreetedLink,
    caller: &Caller,
    own: &Identity,
    receiver: Arc<dyn Receiver>,
) -> Result<()> {
    let GreetedLink { halves: Halves { read, mut write, is_direct, local }, hello } = greeted;
    let admitted = match admit(&hello, own, caller).and_then(|source| {
        receiver.admit(&source)?;
        Ok(Arc::new(source))
    }) {
        Ok(source) => Ok((map_blocks(&hello, own, local.is_some()).await, source)),
        Err(e) => {
            let (peer, identity) = (&caller.address, &caller.identity);
            tracing::warn!(target: AUDIT, peer, %identity, "refused a link: {e}");
            Err(e)
        }
    };
    let ucx = match (&admitted, &hello.ucx, &own.ucx) {
        (Ok(_), Some(offer), Some(port)) => accept_ucx(offer, port),
        _ => None,
    };
    let answer = match &admitted {
        Ok((blocks, _)) => Ok(Welcome {
            takes_blocks: blocks.is_some(),
            ucx: ucx.as_ref().map_or(Vec::new(), |(_, address)| address.clone()),
            task: own.task.clone(),
            gpus: match own.path {
                DataPath::Auto => own.gpus.iter().map(|gpu| gpu.identity()).collect(),
                _ => Vec::new(),
            },
            incarnations: own.incarnations.clone(),
        }),
        Err(e) => Err(e.clone()),
    };
    hello::answer(&mut write, &answer).await?;
    let (blocks, source) = admitted?;
    let outbox = Outbox::new(write, is_direct);
    let reader = FrameReader::new(read);
    let origins = Vec::new();
    let gpus = if local.is_some() { own.gpus.clone() } else { Vec::new() };
    let peer = receiver.peer(&source.task);
    let mut incoming = IncomingLink { reader, blocks, gpus, source, peer, origins, receiver };
    if hello.purpose == ConnectionPurpose::Bulk {
        return incoming.take_values().await;
    }
    let writing = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.write_out().await }
    });
    let calls = Arc::new(IncomingCalls {
        outbox: outbox.clone(),
        source: incoming.source.clone(),
        receiver: incoming.receiver.clone(),
        way_back: Mutex::default(),
        local,
        running: Mutex::default(),
    });
    if let Err(e) = incoming.receiver.connected(&incoming.source) {
        writing.abort();
        return Err(e);
    }
    let mut uncleaned = HashSet::default();
    let values = async {
        if let Some((stream, _)) = ucx {
            let receiver = calls.receiver.clone();
            let served = async {
                let greeted = tokio::time::timeout(GREETING, GreetedLink::greet(stream)).await;
                let silent = |_| err!(DeadlineExceeded, "no greeting came over UCX");
                Box::pin(serve(greeted.map_err(silent)??, caller, own, receiver)).await
            };
            if let Err(e) = served.await {
                tracing::debug!(task = hello.task, "values over UCX ended: {e}");
            }
        }
        std::future::pending().await
    };
    let ended = tokio::select! {
        ended = incoming.take_all(&calls, &mut uncleaned) => ended,
        never = values => never,
    };
    outbox.close();
    writing.abort();
    // The caller is gone: no call needs an answer, and no cleanup will come.
    calls.cancel_all();
    uncleaned.into_iter().for_each(|step_id| incoming.receiver.abandon(&incoming.source, step_id));
    let why = match &ended {
        Ok(()) => err!(Unavailable, "the connection was closed"),
        Err(e) => e.clone(),
    };
    incoming.receiver.lost(&incoming.source, &why);
    ended
}

/// The stream over UCX that a caller offers, and the address of this task for it. Without it the
/// caller sends large values over a second connection.
fn accept_ucx(offer: &UcxOffer, port: &UcxPort) -> Option<(NetStream, Vec<u8>)> {
    let pipe = port.pipe(offer.number, offer.own_number(), &offer.address);
    let pipe = pipe.inspect_err(|e| tracing::warn!("a task is not reached over UCX: {e}")).ok()?;
    Some((NetStream::Other(Box::new(UcxStream(pipe))), port.address().to_vec()))
}

/// Checks the ticket of a caller and returns its task.
fn admit(hello: &LinkHello, own: &Identity, caller: &Caller) -> Result<LinkSource> {
    let holder = own.tickets.holder(&hello.token).filter(|_| own.path != DataPath::Grpc);
    let Some(holder) = holder else {
        bail!(PermissionDenied, "another task answered; the intended one may have restarted");
    };
    // A connection within the host has no certificate, only its user.
    let has_certificate = matches!(*caller.identity, PeerIdentity::Certificate { .. });
    ensure!(
        !has_certificate || caller.identity == holder,
        PermissionDenied,
        "{} has shown the ticket of {holder}",
        caller.identity
    );
    let LinkHello { task, incarnations, .. } = hello;
    let named = DeviceName::parse(task).ok().filter(|name| name.job.is_some());
    ensure!(
        named.is_some_and(|name| name.task.is_some()),
        InvalidArgument,
        "{task:?} is not the name of a task"
    );
    let (task, incarnations) = (task.clone(), incarnations.clone());
    Ok(LinkSource { task, incarnations, identity: holder })
}

/// Maps the shared memory of a caller on this host. Without it values come over the connection:
/// another user's memory, for example, is not mapped.
async fn map_blocks(hello: &LinkHello, own: &Identity, is_local: bool) -> Option<Arc<BlockReader>> {
    let memory = hello.blocks.clone().filter(|_| is_local && own.path == DataPath::Auto)?;
    // The caller may never hand the descriptor over.
    let opened = tokio::task::spawn_blocking(move || BlockReader::open(&memory)).await;
    let opened = opened.unwrap_or_else(|e| Err(err!(Internal, "mapping memory failed: {e}")));
    opened.inspect_err(|e| tracing::debug!(task = hello.task, "{e}")).ok()
}

struct IncomingLink {
    reader: FrameReader,
    blocks: Option<Arc<BlockReader>>,
    /// GPUs that a task of this user on this host may share.
    gpus: Vec<Arc<dyn Gpu>>,
    source: Arc<LinkSource>,
    /// Counts the values of the source.
    peer: Arc<PeerCounters>,
    /// Devices of the source, as the keys of its values begin.
    origins: Vec<String>,
    receiver: Arc<dyn Receiver>,
}

/// The devices of a source that are remembered, and the most bytes of each.
const MOST_ORIGINS: usize = 16;
const LONGEST_ORIGIN: usize = 256;

impl IncomingLink {
    /// Reads large values, each as soon as there is room for it.
    async fn take_values(&mut self) -> Result<()> {
        while let Some(head) = self.reader.head().await? {
            if let Some(room) = self.receiver.room(head.id) {
                room.await;
            }
            match head.kind {
                FrameKind::Plain | FrameKind::Proto | FrameKind::Dead | FrameKind::Block => {
                    self.value(&head).await?
                }
                other => {
                    bail!(InvalidArgument, "unexpected frame {other:?} on the value connection")
                }
            }
        }
        Ok(())
    }

    /// Reads calls and values. Adds steps that were run and not cleaned up to `uncleaned`.
    async fn take_all(
        &mut self,
        calls: &Arc<IncomingCalls>,
        uncleaned: &mut HashSet<i64>,
    ) -> Result<()> {
        while let Some(head) = self.reader.head().await? {
            match head.kind {
                FrameKind::Plain | FrameKind::Proto | FrameKind::Dead | FrameKind::Block => {
                    self.value(&head).await?
                }
                FrameKind::Run => {
                    let name = self.reader.rest(&head).await?.name;
                    let payload = self.reader.bytes(head.payload as usize).await?;
                    let part = LinkPart::parse(&name, &payload)?;
                    uncleaned.insert(part.step_id);
                    ensure!(
                        uncleaned.len() <= MOST_UNCLEANED
                            && calls.outbox.waiting_bytes() <= MOST_UNREAD,
                        ResourceExhausted,
                        "{} does not clean up its steps, or does not read its answers",
                        self.source.task
                    );
                    self.run(head.id, part, calls);
                }
                FrameKind::Cancel => {
                    self.ignore_rest(&head).await?;
                    if let Some(step_id) = calls.cancel(head.id) {
                        self.receiver.abandon(&self.source, step_id);
                    }
                }
                FrameKind::CleanUp => {
                    self.ignore_rest(&head).await?;
                    uncleaned.remove(&head.id);
                    self.receiver.clean_up(&self.source, head.id);
                }
                FrameKind::Ran => {
                    let message = self.reader.rest(&head).await?.name;
                    let payload = self.reader.bytes(head.payload as usize).await?;
                    let result = frame::parse_ran(&message, &payload)?;
                    // Without a link back, the caller already has the answer.
                    if let Some(link) = calls.way_back() {
                        link.answered(head.id, result);
                    }
                }
                FrameKind::Lent => self.borrow(&head, calls).await?,
                FrameKind::Returned => {
                    self.reader.rest(&head).await?;
                    let payload = self.reader.bytes(head.payload as usize).await?;
                    let is_taken = frame::parse_returned(&payload)?;
                    // Without a link back, this task has lent nothing.
                    if let Some(link) = calls.way_back() {
                        link.returned(head.id, is_taken);
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&self, call: i64, part: LinkPart<'_>, calls: &Arc<IncomingCalls>) {
        let cancel = CancelToken::new();
        calls.running.lock().insert(call, (part.step_id, cancel.clone()));
        let calls = calls.clone();
        let done = Box::new(move |result: Result<PartOutput>, scope: &InlineScope| {
            calls.answer(call, &result.map(|_| ()), scope);
        });
        InlineScope::network(|scope| self.receiver.run(&self.source, part, cancel, scope, done));
    }

    async fn ignore_rest(&mut self, head: &FrameHead) -> Result<()> {
        self.reader.skip(head.rest() as u64 + head.payload).await
    }

    /// Reads a value and passes it to the receiver. A value that cannot be stored is skipped.
    async fn value(&mut self, head: &FrameHead) -> Result<()> {
        let rest = self.reader.rest(head).await?;
        self.check_source(&rest.name)?;
        let value = match head.kind {
            FrameKind::Dead => Ok(Received::Dead),
            FrameKind::Block => {
                let place = self.reader.bytes(frame::BLOCK_PLACE).await?;
                let (offset, block) = frame::block_place(&place)?;
                let blocks = self.blocks.as_ref();
                let blocks = blocks.ok_or_else(|| {
                    err!(InvalidArgument, "a frame refers to shared memory that was not mapped")
                })?;
                let dtype = head.plain_dtype(&rest.shape)?;
                let block = blocks.block(BlockPlace { offset, block }, head.payload as usize)?;
                let bytes = match dtype {
                    // They are checked once. The sender could still change them in its block.
                    DType::Bool => Bytes::copy_from_slice(block.as_ref()),
                    _ => Bytes::from_owner(block),
                };
                Tensor::from_bytes(dtype, rest.shape, bytes).map(Received::Live)
            }
            FrameKind::Proto => {
                let payload = self.reader.bytes(head.payload as usize).await?;
                let is_quick = may_decode_inline(payload.len());
                off_network(is_quick, move || frame::parse_proto(payload.into())).await
            }
            _ => match head.tensor(rest.shape) {
                Ok(tensor) => self.reader.tensor(tensor).await?.map(Received::Live),
                // Out of memory: fail this step, keep the connection.
                Err(e) => {
                    self.reader.skip(head.payload).await?;
                    Err(e)
                }
            },
        };
        InlineScope::network(|scope| {
            self.receiver.arrived(&self.peer, head.id, &rest.name, value, scope);
        });
        Ok(())
    }

    /// Copies a tensor that the other task lends within the GPU, and returns it.
    async fn borrow(&mut self, head: &FrameHead, calls: &Arc<IncomingCalls>) -> Result<()> {
        let rest = self.reader.rest(head).await?;
        self.check_source(&rest.name)?;
        let (loan, len) = frame::loan(&self.reader.bytes(frame::LOAN).await?)?;
        let memory = self.reader.bytes(len).await?;
        let dtype = head.plain_dtype(&rest.shape)?;
        let (gpus, key) = (self.gpus.clone(), rest.name.clone());
        // The driver may take a while to map the memory.
        let copy =
            off_network(false, move || loans::copied(&gpus, &key, dtype, rest.shape, &memory));
        let (gpu, tensor) = match copy.await {
            Ok(copy) => copy,
            Err(e) => {
                tracing::debug!(task = self.source.task, "a tensor was not taken: {e}");
                calls.give_back(loan, false);
                return Ok(());
            }
        };
        let (calls, address) = (calls.clone(), tensor.device_address()?);
        let copied = move |ended: Result<_>| calls.give_back(loan, ended.is_ok());
        gpu.download(address, 0, Box::new(copied));
        let value = Ok(Received::Live(tensor));
        InlineScope::network(|scope| {
            self.receiver.arrived(&self.peer, head.id, &rest.name, value, scope);
        });
        Ok(())
    }

    /// Checks that the key belongs to one of the sender's own devices, by incarnation and name. The
    /// task has reported its own incarnations.
    fn check_source(&mut self, key: &str) -> Result<()> {
        if self.origins.iter().any(|origin| key.starts_with(origin)) {
            return Ok(());
        }
        let task = task_of(source_of(key));
        let is_its = task == self.source.task || self.receiver.may_send_as(&self.source, task);
        ensure!(
            is_its && incarnation_of(key).is_some_and(|i| self.source.incarnations.contains(&i)),
            InvalidArgument,
            "{} sent {key}, which belongs to another task",
            self.source.task
        );
        if let Some(origin) = origin_of(key)
            && origin.len() <= LONGEST_ORIGIN
            && self.origins.len() < MOST_ORIGINS
        {
            self.origins.push(origin.to_string());
        }
        Ok(())
    }
}

/// Running calls by number.
struct IncomingCalls {
    outbox: Outbox,
    source: Arc<LinkSource>,
    receiver: Arc<dyn Receiver>,
    /// The link back to the caller, once there is one.
    way_back: Mutex<Option<Arc<Link>>>,
    /// The socket of the connection, if it is a Unix socket.
    local: Option<Weak<UnixStream>>,
    running: Mutex<HashMap<i64, (i64, CancelToken)>>,
}

impl IncomingCalls {
    fn answer(&self, call: i64, result: &Result<()>, scope: &InlineScope) {
        // A cancelled call needs no answer.
        if self.running.lock().remove(&call).is_none() {
            return;
        }
        let is_answered = self.way_back().is_some_and(|link| link.answer(call, result, scope));
        if !is_answered {
            self.outbox.send(LinkFrame::ran(call, result), scope);
        }
    }

    /// Returns a tensor that the caller has lent.
    fn give_back(&self, loan: i64, is_taken: bool) {
        if !self.way_back().is_some_and(|link| link.give_back(loan, is_taken)) {
            self.outbox.send(LinkFrame::returned(loan, is_taken), &InlineScope::unknown());
        }
    }

    fn way_back(&self) -> Option<Arc<Link>> {
        let mut known = self.way_back.lock();
        if !known.as_ref().is_some_and(|link| link.is_up()) {
            *known = self.receiver.way_back(&self.source);
            if let (Some(link), Some(socket)) = (&*known, &self.local) {
                link.answers_come_from(socket);
            }
        }
        known.clone()
    }

    /// Removes a call. Returns its step if it was still running.
    fn cancel(&self, call: i64) -> Option<i64> {
        let (step_id, cancel) = self.running.lock().remove(&call)?;
        cancel.cancel(cancelled(step_id));
        Some(step_id)
    }

    fn cancel_all(&self) {
        let running = std::mem::take(&mut *self.running.lock());
        running.into_values().for_each(|(step_id, cancel)| cancel.cancel(cancelled(step_id)));
    }
}

fn cancelled(step_id: i64) -> Error {
    err!(Cancelled, "Step {step_id} was cancelled").derived()
}

/// Reads a greeting, then frames, from bytes of any kind.
pub(crate) async fn fuzz(data: &[u8]) {
    struct Ignore;
    impl Receiver for Ignore {
        fn admit(&self, _: &LinkSource) -> Result<()> {
            Ok(())
        }
        fn connected(&self, _: &Arc<LinkSource>) -> Result<()> {
            Ok(())
        }
        fn lost(&self, _: &Arc<LinkSource>, _: &Error) {}
        fn may_send_as(&self, _: &LinkSource, _: &str) -> bool {
            true
        }
        fn peer(&self, _: &str) -> Arc<PeerCounters> {
            Arc::default()
        }
        fn arrived(&self, _: &PeerCounters, _: i64, _: &str, _: Result<Received>, _: &InlineScope) {
        }
        fn room(&self, _: i64) -> Option<crate::rpc::BoxFuture<()>> {
            None
        }
        fn way_back(&self, _: &LinkSource) -> Option<Arc<Link>> {
            None
        }
        fn run(
            &self,
            _: &LinkSource,
            _: LinkPart<'_>,
            _: CancelToken,
            scope: &InlineScope,
            done: PartDone,
        ) {
            done(Err(err!(Unimplemented, "no part runs here")), scope);
        }
        fn abandon(&self, _: &LinkSource, _: i64) {}
        fn clean_up(&self, _: &LinkSource, _: i64) {}
        fn link_lost(&self, _: u64, _: &str, _: &Error) {}
    }
    let mut greeting: crate::net::BoxRead = Box::new(std::io::Cursor::new(data.to_vec()));
    let _ = LinkHello::receive(&mut greeting).await;
    let receiver: Arc<dyn Receiver> = Arc::new(Ignore);
    let identity = Arc::new(PeerIdentity::Unverified);
    let source = Arc::new(LinkSource { task: "fuzz".into(), incarnations: vec![1], identity });
    let reader = FrameReader::new(Box::new(std::io::Cursor::new(data.to_vec())));
    let outbox = Outbox::new(Box::new(tokio::io::sink()), false);
    let origins = Vec::new();
    let gpus = Vec::new();
    let peer = receiver.peer("fuzz");
    let mut incoming = IncomingLink { reader, blocks: None, gpus, source, peer, origins, receiver };
    let calls = Arc::new(IncomingCalls {
        outbox,
        source: incoming.source.clone(),
        receiver: incoming.receiver.clone(),
        way_back: Mutex::default(),
        local: None,
        running: Mutex::default(),
    });
    let _ = incoming.take_all(&calls, &mut HashSet::default()).await;
}

/// Frames of every kind, as a link sends them.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let key = "/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;/job:w/replica:0/task:0/device:CPU:0;x;0:0";
    let texts = Tensor::from_strings([2], vec!["a".into(), "bc".into()]);
    let values = [
        Received::Live(Tensor::vector(&[1.5f32; 40])),
        Received::Live(Tensor::scalar(true)),
        Received::Live(texts.expect("two strings")),
        Received::Dead,
    ];
    let part = LinkPart { step_id: 5, session: "session", graph: "graph" };
    let mut frames: Vec<LinkFrame> =
        values.iter().filter_map(|value| LinkFrame::value(5, key, value).ok()).collect();
    frames.push(LinkFrame::run(1, &part));
    frames.push(LinkFrame::ran(1, &Err(err!(Aborted, "why"))));
    frames.push(LinkFrame::cancel(1));
    frames.push(LinkFrame::clean_up(5));
    frames.push(LinkFrame::lent(5, key, &Tensor::vector(&[1.5f32; 40]), 3, &[7; 72]));
    frames.push(LinkFrame::returned(3, true));
    let one = |frame: &LinkFrame| [&frame.head[..], &frame.payload[..]].concat();
    let mut all: Vec<Vec<u8>> = frames.iter().map(one).collect();
    all.push(all.concat());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkTickets;
    use ferroflow_collective::blocks::{BlockMemory, BlockWriter};

    #[tokio::test]
    async fn shared_memory_is_accepted_only_from_this_host() {
        let own = Identity {
            task: "/job:ps/replica:0/task:0".into(),
            incarnations: vec![1],
            tickets: LinkTickets::with([7; 16]),
            path: DataPath::Auto,
            local_name: String::new(),
            ucx: None,
            gpus: Vec::new(),
        };
        let writer = BlockWriter::create(1 << 20).unwrap();
        let hello = |blocks| LinkHello {
            purpose: ConnectionPurpose::Main,
            token: [7; 16],
            task: "/job:worker/replica:0/task:0".into(),
            incarnations: vec![2],
            blocks: Some(blocks),
            ucx: None,
        };
        let memory = || writer.offer().unwrap();
        let other = BlockMemory { mark: !memory().mark, ..memory() };
        let caller = Caller::unverified("test".into());
        assert!(admit(&hello(memory()), &own, &caller).is_ok());
        assert!(map_blocks(&hello(memory()), &own, true).await.is_some());
        assert!(map_blocks(&hello(memory()), &own, false).await.is_none());
        assert!(map_blocks(&hello(other), &own, true).await.is_none());
    }
}
