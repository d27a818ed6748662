//! The links of a task to others, by address: made when they are first wanted, and again, at most
//! now and then, after they could not be made or were lost.

use super::hello::{ConnectionPurpose, LinkHello, VERSION};
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
/// One attempt, all of it.
const ATTEMPT: Duration = Duration::from_secs(2);
/// How long a caller waits for a link before it does without.
const PATIENCE: Duration = Duration::from_millis(1000);
/// After a failed attempt there is none for this long.
const PAUSE: Duration = Duration::from_secs(1);
/// The same after a task said that it takes no links: it would have to be replaced first.
const FOREIGN_PAUSE: Duration = Duration::from_secs(10);
/// Shared memory of one link, at most; pages are only taken when they are used.
const BLOCKS: usize = 1 << 30;
/// How long what is in no hurry waits for company.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// Rounds without anything to flush, after which nobody looks any more.
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

/// The place of the link to one address, filled or not.
pub(crate) struct LinkSlot {
    address: String,
    link: Mutex<Option<Arc<Link>>>,
    /// Held by whoever makes the link; no attempt before this.
    not_before: tokio::sync::Mutex<Option<Instant>>,
}

impl LinkSlot {
    /// The link, if it is up.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.lock().clone().filter(|link| link.is_up())
    }
}

impl Links {
    /// Must be made inside a tokio runtime, which does its I/O.
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

    /// Who hears of links that are lost. The first one stays.
    pub fn report_to(&self, receiver: Weak<dyn Receiver>) {
        let _ = self.receiver.set(receiver);
    }

    /// The place of the link to `address`.
    pub fn slot(&self, address: &str) -> Arc<LinkSlot> {
        let mut slots = self.by_address.lock();
        if let Some(slot) = slots.get(address) {
            return slot.clone();
        }
        let slot = Arc::new(LinkSlot {
            address: address.to_string(),
            link: Mutex::default(),
            not_before: tokio::sync::Mutex::default(),
        });
        slots.insert(address.to_string(), slot.clone());
        slot
    }

    /// The link to the task that has devices of these incarnations, if there is one.
    pub fn to(&self, incarnations: &[u64]) -> Option<Arc<Link>> {
        let slots = self.by_address.lock();
        let mut links = slots.values().filter_map(|slot| slot.link());
        links.find(|link| link.incarnations == incarnations)
    }

    /// Has a link made if there is none, and waits a little for it. Whether there is one then shows
    /// in its slot; without it things go on by gRPC.
    pub async fn want(self: &Arc<Self>, slot: &Arc<LinkSlot>) {
        if self.own.path == DataPath::Grpc || slot.link().is_some() {
            return;
        }
        let (me, slot) = (self.clone(), slot.clone());
        // On a task of its own: whoever asked may leave, and the next one profits.
        let making = self.io.spawn(async move { me.make(&slot).await });
        let _ = timeout(PATIENCE, making).await;
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
            Ok(false) => Some(FOREIGN_PAUSE),
            Err(e) => {
                tracing::debug!(address = slot.address, "no link: {e}");
                Some(PAUSE)
            }
        };
        *not_before = pause.map(|pause| Instant::now() + pause);
    }

    /// Makes a link; false if the task takes none.
    async fn connect(self: &Arc<Self>, slot: &Arc<LinkSlot>) -> Result<bool> {
        let Some(offer) = self.offer(&slot.address).await? else { return Ok(false) };
        let (main, is_local) = self.stream(&slot.address, &offer).await?;
        let (bulk, _) = self.stream(&slot.address, &offer).await?;
        let blocks = (is_local && self.own.path == DataPath::Auto)
            .then(|| BlockWriter::create(BLOCKS))
            .and_then(|made| made.inspect_err(|e| tracing::debug!("{e}")).ok());
        let hello = LinkHello {
            purpose: ConnectionPurpose::Main,
            token: offer.token,
            task: self.own.task.clone(),
            incarnations: self.own.incarnations.clone(),
            blocks: blocks.as_ref().map(BlockWriter::memory),
        };
        let greeted = Greeted { main, bulk, blocks };
        let (link, driving) = Link::open(greeted, hello, &slot.address).await?;
        *slot.link.lock() = Some(link.clone());
        tracing::debug!(address = slot.address, is_local, "linked");
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

    /// What the task at `address` says of links.
    async fn offer(&self, address: &str) -> Result<Option<LinkOffer>> {
        let message = GetStatusRequest.encode();
        let options = CallOptions::timeout(ATTEMPT);
        let answer = self.channels.get(address)?.call(GET_STATUS, message, options).await;
        let status = GetStatusResponse::decode(answer.map_err(|s| from_status(&s))?)
            .map_err(|e| err!(Internal, "malformed answer to GetStatus: {}", e.message()))?;
        Ok(status.link.filter(|link| link.version == VERSION))
    }

    /// A stream to a task, and whether both are on one host.
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

    /// Tells the task of `slot` that a step is over, sometime soon; false if there is no link.
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

    /// Looks after what waits for company, as long as there is some every now and then.
    async fn keep_flushing(me: Weak<Links>) {
        let mut idle = 0;
        while idle < IDLE_ROUNDS {
            sleep(FLUSH_INTERVAL).await;
            let Some(me) = me.upgrade() else { return };
            idle = if me.flush() { 0 } else { idle + 1 };
        }
        let Some(me) = me.upgrade() else { return };
        me.is_flushing.store(false, Ordering::Release);
        // Whoever came between the last look and this has found somebody at it.
        me.flush();
    }

    fn flush(&self) -> bool {
        let slots: Vec<Arc<LinkSlot>> = self.by_address.lock().values().cloned().collect();
        let links = slots.iter().filter_map(|slot| slot.link());
        links.filter(|link| link.flush()).count() > 0
    }
}
