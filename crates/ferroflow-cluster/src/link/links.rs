//! The links of a task by address. A link is opened on first use. A failed or lost link is opened
//! again after a pause.

use super::hello::{ConnectionPurpose, LinkHello, UcxOffer, VERSION};
use super::outgoing::{Greeted, Link};
use super::{DataPath, Identity, Receiver};
use crate::channels::Channels;
use crate::error::from_status;
use crate::messages::{GetStatusRequest, GetStatusResponse, LinkOffer};
use crate::net::{NetStream, TaskNetwork};
use crate::rpc::CallOptions;
use crate::wire::{Decode, Encode};
use ferroflow_collective::blocks::BlockWriter;
use ferroflow_core::{HashMap, Result, err};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

const GET_STATUS: &str = "/tensorflow.WorkerService/GetStatus";
/// The timeout of one attempt.
const ATTEMPT: Duration = Duration::from_secs(2);
/// How long a caller waits for a link before it uses gRPC.
const LINK_TIMEOUT: Duration = Duration::from_millis(1000);
/// The pause after a failed attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after a task refused links: only another process there would accept them.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);
/// The limit of shared memory of one link. Unused pages take no memory.
const BLOCKS: usize = 1 << 30;
/// Slots without a link are forgotten when there are more than this: clients can describe clusters
/// with any addresses.
const MOST_SLOTS: usize = 4096;
/// How long frames that are not urgent wait to be batched with others.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// The flusher ends after this many rounds without frames.
const IDLE_ROUNDS: u32 = 100;

/// Links to other tasks.
pub(crate) struct Links {
    own: Arc<Identity>,
    channels: Arc<Channels>,
    network: Arc<dyn TaskNetwork>,
    receiver: OnceLock<Weak<dyn Receiver>>,
    by_address: Mutex<HashMap<String, Arc<LinkSlot>>>,
    is_flushing: AtomicBool,
    io: Handle,
}

/// The slot for the link to one address.
pub(crate) struct LinkSlot {
    address: String,
    link: Mutex<Option<Arc<Link>>>,
    /// Locked while the link is opened. Holds the time of the next attempt.
    not_before: tokio::sync::Mutex<Option<Instant>>,
    /// No greeting came back over UCX, so the next link does not use it.
    lacks_ucx: AtomicBool,
}

impl LinkSlot {
    /// The link, if it is up.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.lock().clone().filter(|link| link.is_up())
    }

    /// Closes the link: the task does not answer.
    pub fn give_up(&self) {
        if let Some(link) = self.link.lock().take() {
            link.give_up();
        }
    }
}

impl Links {
    /// Must be called inside a tokio runtime, which does its I/O.
    pub fn new(
        own: Arc<Identity>,
        channels: Arc<Channels>,
        network: Arc<dyn TaskNetwork>,
    ) -> Arc<Links> {
        Arc::new(Links {
            own,
            channels,
            network,
            receiver: OnceLock::new(),
            by_address: Mutex::default(),
            is_flushing: AtomicBool::new(false),
            io: Handle::current(),
        })
    }

    /// Sets the receiver that is notified of lost links. Only the first call counts.
    pub fn report_to(&self, receiver: Weak<dyn Receiver>) {
        let _ = self.receiver.set(receiver);
    }

    /// The slot for the link to `address`.
    pub fn slot(&self, address: &str) -> Arc<LinkSlot> {
        let mut slots = self.by_address.lock();
        if let Some(slot) = slots.get(address) {
            return slot.clone();
        }
        let slot = Arc::new(LinkSlot {
            address: address.to_string(),
            link: Mutex::default(),
            not_before: tokio::sync::Mutex::default(),
            lacks_ucx: AtomicBool::new(false),
        });
        if slots.len() >= MOST_SLOTS {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.link().is_some());
        }
        slots.insert(address.to_string(), slot.clone());
        slot
    }

    /// The link to the task with devices of these incarnations, if there is one.
    pub fn to(&self, incarnations: &[u64]) -> Option<Arc<Link>> {
        let slots = self.by_address.lock();
        let mut links = slots.values().filter_map(|slot| slot.link());
        links.find(|link| link.incarnations == incarnations)
    }

    /// The link to the task with the device of this incarnation, if there is one.
    pub fn to_device(&self, incarnation: u64) -> Option<Arc<Link>> {
        let slots = self.by_address.lock();
        let mut links = slots.values().filter_map(|slot| slot.link());
        links.find(|link| link.incarnations.contains(&incarnation))
    }

    /// Opens a link if there is none, and waits briefly for it. Without a link in the slot
    /// afterwards, the caller uses gRPC.
    pub async fn want(self: &Arc<Self>, slot: &Arc<LinkSlot>) {
        if self.own.path == DataPath::Grpc || slot.link().is_some() {
            return;
        }
        let (me, slot) = (self.clone(), slot.clone());
        // On its own tokio task: the attempt goes on if the caller is dropped, for the next caller.
        let making = self.io.spawn(async move { me.make(&slot).await });
        let _ = timeout(LINK_TIMEOUT, making).await;
    }

    async fn make(self: &Arc<Self>, slot: &Arc<LinkSlot>) {
        let mut not_before = slot.not_before.lock().await;
        if slot.link().is_some() || not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let made = timeout(ATTEMPT, self.connect(slot)).await;
        let made = made.unwrap_or_else(|_| Err(err!(DeadlineExceeded, "no answer")));
        let pause = match made {
            Ok(true) => None,
            Ok(false) => Some(REFUSED_PAUSE),
            Err(e) => {
                tracing::debug!(address = slot.address, "no link: {e}");
                Some(PAUSE)
            }
        };
        *not_before = pause.map(|pause| Instant::now() + pause);
    }

    /// Opens a link. Returns false if the task does not accept links.
    async fn connect(self: &Arc<Self>, slot: &Arc<LinkSlot>) -> Result<bool> {
        let Some(offer) = self.offer(&slot.address).await? else { return Ok(false) };
        let (main, is_local) = self.stream(&slot.address, &offer).await?;
        let (bulk, _) = self.stream(&slot.address, &offer).await?;
        let blocks = (is_local && self.own.path == DataPath::Auto)
            .then(|| BlockWriter::create(BLOCKS))
            .and_then(|made| made.inspect_err(|e| tracing::debug!("{e}")).ok());
        let offered = blocks.as_ref().and_then(|blocks| blocks.offer().ok());
        let uses_ucx = !is_local && !slot.lacks_ucx.load(Ordering::Relaxed);
        let ucx =
            self.own.ucx.as_ref().filter(|_| uses_ucx).map(|port| UcxOffer {
                number: fastrand::u64(..),
                address: port.address().to_vec(),
            });
        let hello = LinkHello {
            purpose: ConnectionPurpose::Main,
            token: offer.token,
            task: self.own.task.clone(),
            incarnations: self.own.incarnations.clone(),
            blocks: offered,
            ucx,
        };
        let is_local = is_local && self.own.path == DataPath::Auto;
        let greeted = Greeted { main, bulk, blocks, is_local };
        let opening = Link::open(greeted, hello, &slot.address, &self.own, &slot.lacks_ucx);
        let (link, driving) = opening.await?;
        *slot.link.lock() = Some(link.clone());
        tracing::debug!(address = slot.address, is_local, ucx = link.uses_ucx, "linked");
        let (slot, receiver) = (slot.clone(), self.receiver.get().cloned());
        self.io.spawn(async move {
            let why = driving.await;
            let lost = slot.link.lock().take_if(|known| Arc::ptr_eq(known, &link));
            drop(lost);
            if let Some(receiver) = receiver.and_then(|r| r.upgrade()) {
                receiver.link_lost(link.id, &link.task, &why);
            }
        });
        Ok(true)
    }

    /// Asks the task at `address` whether it accepts links.
    async fn offer(&self, address: &str) -> Result<Option<LinkOffer>> {
        let message = GetStatusRequest::default().encode();
        let options = CallOptions::timeout(ATTEMPT);
        let answer = self.channels.get(address)?.call(GET_STATUS, message, options).await;
        let status = GetStatusResponse::decode(answer.map_err(|s| from_status(&s))?)
            .map_err(|e| err!(Internal, "malformed answer to GetStatus: {}", e.message()))?;
        Ok(status.link.filter(|link| link.version == VERSION))
    }

    /// Opens a stream to a task. Returns also whether both are on one host.
    async fn stream(&self, address: &str, offer: &LinkOffer) -> Result<(NetStream, bool)> {
        if self.own.path == DataPath::Auto
            && !offer.local_name.is_empty()
            && let Ok(stream) = self.network.connect_local(&offer.local_name).await
        {
            return Ok((stream, true));
        }
        let stream = self.network.connect(address).await;
        Ok((stream.map_err(|e| err!(Unavailable, "{address}: {e}"))?, false))
    }

    /// Queues the notice that a step is over for the task of `slot`. Returns false if there is no
    /// link.
    pub fn clean_up_later(self: &Arc<Self>, slot: &LinkSlot, step_id: i64) -> bool {
        let Some(link) = slot.link() else { return false };
        if !link.clean_up_later(step_id) {
            return false;
        }
        if !self.is_flushing.swap(true, Ordering::AcqRel) {
            let me = Arc::downgrade(self);
            self.io.spawn(Links::keep_flushing(me));
        }
        true
    }

    /// Flushes batched frames regularly. Ends when there are none for a while.
    async fn keep_flushing(me: Weak<Links>) {
        let mut idle = 0;
        while idle < IDLE_ROUNDS {
            sleep(FLUSH_INTERVAL).await;
            let Some(me) = me.upgrade() else { return };
            idle = if me.flush() { 0 } else { idle + 1 };
        }
        let Some(me) = me.upgrade() else { return };
        me.is_flushing.store(false, Ordering::Release);
        // A frame that was queued since the last round has found the flag set, so look once more.
        me.flush();
    }

    fn flush(&self) -> bool {
        let slots: Vec<Arc<LinkSlot>> = self.by_address.lock().values().cloned().collect();
        let links = slots.iter().filter_map(|slot| slot.link());
        links.filter(|link| link.flush()).count() > 0
    }
}
