//! Links over UCX, which uses InfiniBand and RoCE where a host has them, and else TCP and shared
//! memory of its own. Each call of `send` becomes one tagged message; the tag is the rank of the
//! sender.

pub(crate) mod library;

pub use library::has_device;

use super::{Mesh, poll_until};
use crate::failure::GroupFailure;
use ferroflow_core::{Result, Spin, err};
use library::{Endpoint, Request, Worker};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most bytes of a message.
const LONGEST: usize = 1 << 20;
/// Most bytes under way to a rank.
const WINDOW: usize = 4 << 20;
/// How long leaving waits until what was sent has been delivered.
const DELIVERY: Duration = Duration::from_secs(5);
/// How often the helper checks whether the rank has stopped polling the links itself.
const LOOK: Duration = Duration::from_millis(1);

/// The worker of this rank, before the addresses of the others are known.
pub(crate) struct UcxOffer {
    worker: Worker,
    pub address: Vec<u8>,
}

impl UcxOffer {
    pub(crate) fn open() -> Result<UcxOffer> {
        let mut worker = Worker::open()?;
        let address = worker.address()?;
        Ok(UcxOffer { worker, address })
    }
}

/// The links of one rank.
pub(crate) struct Ucx {
    rank: usize,
    addresses: Vec<Vec<u8>>,
    /// Dropped before the worker.
    peers: Vec<Option<Peer>>,
    shared: Arc<Shared>,
    failure: Arc<GroupFailure>,
    spin: Spin,
    helper: Option<JoinHandle<()>>,
}

struct Shared {
    worker: Mutex<Worker>,
    /// Becomes readable when a message can proceed.
    descriptor: OwnedFd,
    /// Set by each use of the links, cleared by the helper.
    in_use: AtomicBool,
    stop: AtomicBool,
    /// Readable when the helper has to end.
    stopping: OwnedFd,
}

#[derive(Default)]
struct Peer {
    endpoint: Option<Endpoint>,
    sends: VecDeque<Request>,
    receiving: Option<Request>,
    /// A message that has arrived, and how much of it was used.
    arrived: Vec<u8>,
    used: usize,
}

impl Ucx {
    /// Links to the workers with these addresses, by rank.
    pub(crate) fn new(
        offer: UcxOffer,
        rank: usize,
        addresses: Vec<Vec<u8>>,
        failure: Arc<GroupFailure>,
        spin: Spin,
    ) -> Result<Ucx> {
        let mut worker = offer.worker;
        let descriptor = worker.descriptor()?;
        let stopping = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| err!(Internal, "cannot make an event: {e}"))?;
        let shared = Arc::new(Shared {
            worker: Mutex::new(worker),
            descriptor,
            in_use: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            stopping,
        });
        let tended = shared.clone();
        let thread = std::thread::Builder::new().name("ff-ucx".into()).stack_size(512 << 10);
        let helper = thread.spawn(move || tended.tend());
        let helper = helper.map_err(|e| crate::io_error("cannot start a thread", &e))?;
        let peers = addresses.iter().map(|_| None).collect();
        Ok(Ucx { rank, addresses, peers, shared, failure, spin, helper: Some(helper) })
    }

    fn peer(&mut self, rank: usize) -> Result<&mut Peer> {
        let missing = || err!(Internal, "there is no rank {rank}");
        Ok(self.peers.get_mut(rank).ok_or_else(missing)?.get_or_insert_default())
    }
}

impl Shared {
    /// Lets messages proceed while the rank computes: long ones need both sides.
    fn tend(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            let mut polled = [
                PollFd::new(&self.descriptor, PollFlags::IN),
                PollFd::new(&self.stopping, PollFlags::IN),
            ];
            if poll(&mut polled, None).is_err_and(|e| e != rustix::io::Errno::INTR) {
                return;
            }
            if self.in_use.swap(false, Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                continue;
            }
            let mut worker = self.worker.lock();
            while worker.progress() {}
            // An error shows up in the rank's own calls.
            let _ = worker.arm();
        }
    }
}

impl Mesh for Ucx {
    fn name(&self) -> &'static str {
        "ucx"
    }

    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        let (shared, tag) = (self.shared.clone(), self.rank as u64);
        shared.in_use.store(true, Ordering::Relaxed);
        let mut worker = shared.worker.lock();
        worker.progress();
        if self.peer(to)?.endpoint.is_none() {
            let opened = worker.connect(&self.addresses[to]);
            self.peer(to)?.endpoint = Some(opened.map_err(|e| e.context(format!("rank {to}")))?);
        }
        let peer = self.peer(to)?;
        while let Some(first) = peer.sends.front() {
            if !first.is_complete().map_err(|e| e.context(format!("rank {to} is gone")))? {
                break;
            }
            peer.sends.pop_front();
        }
        let under_way: usize = peer.sends.iter().map(Request::len).sum();
        let Some(endpoint) = peer.endpoint.as_ref().filter(|_| under_way < WINDOW) else {
            return Ok(0);
        };
        let head = &head[..head.len().min(LONGEST)];
        let body = &body[..body.len().min(LONGEST - head.len())];
        let message = [head, body].concat();
        let length = message.len();
        if length > 0 {
            peer.sends.extend(worker.send(endpoint, tag, message)?);
        }
        Ok(length)
    }

    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        let shared = self.shared.clone();
        let peer = self.peer(from)?;
        let mut done = 0;
        while done < into.len() {
            if peer.used == peer.arrived.len() {
                shared.in_use.store(true, Ordering::Relaxed);
                let mut worker = shared.worker.lock();
                worker.progress();
                let next = match peer.receiving.take() {
                    Some(request) => Some(Err(request)),
                    None => worker.receive(from as u64)?,
                };
                match next {
                    None => break,
                    Some(Ok(bytes)) => (peer.arrived, peer.used) = (bytes, 0),
                    Some(Err(request)) => {
                        if !request.is_complete()? {
                            worker.progress();
                        }
                        if !request.is_complete()? {
                            peer.receiving = Some(request);
                            break;
                        }
                        (peer.arrived, peer.used) = (request.into_bytes(), 0);
                    }
                }
            }
            let n = (into.len() - done).min(peer.arrived.len() - peer.used);
            into[done..done + n].copy_from_slice(&peer.arrived[peer.used..peer.used + n]);
            peer.used += n;
            done += n;
        }
        Ok(done)
    }

    fn wait(&mut self, _: &[usize], _: &[usize], until: Instant) -> Result<()> {
        self.failure.check()?;
        let mut worker = self.shared.worker.lock();
        if worker.progress() || !worker.arm()? {
            return Ok(());
        }
        drop(worker);
        let mut polled = [
            PollFd::from_borrowed_fd(self.failure.descriptor(), PollFlags::IN),
            PollFd::new(&self.shared.descriptor, PollFlags::IN),
        ];
        // The helper may take the event that this rank waits for: look again soon.
        poll_until(&mut polled, until.min(Instant::now() + LOOK))?;
        self.failure.check()
    }

    fn pause(&self, looks: u32) -> bool {
        self.spin.pause(looks)
    }

    fn open_links(&self) -> Option<usize> {
        Some(self.peers.iter().flatten().filter(|peer| peer.endpoint.is_some()).count())
    }
}

impl Drop for Ucx {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.shared.stopping, &1u64.to_ne_bytes());
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
        let mut worker = self.shared.worker.lock();
        let endpoints = self.peers.iter_mut().flatten().filter_map(|peer| peer.endpoint.take());
        let mut closing: Vec<Request> =
            endpoints.filter_map(|one| worker.close(one).ok().flatten()).collect();
        let until = Instant::now() + DELIVERY;
        while !closing.is_empty() && self.failure.check().is_ok() && Instant::now() < until {
            if !worker.progress() {
                std::thread::yield_now();
            }
            closing.retain(|request| matches!(request.is_complete(), Ok(false)));
        }
        drop(closing);
        self.peers.clear();
    }
}
