//! Shared-memory links between ranks of one host: flags and wake-ups, byte rings between all pairs,
//! and an all-reduce without messages.

mod direct;
mod handover;
#[cfg(test)]
mod model;
pub(crate) mod orders;
pub(crate) mod region;

use super::Mesh;
use crate::failure::GroupFailure;
use ferroflow_core::{Result, Spin, ensure, err};
use orders::{FENCE, OBSERVE, PUBLISH};
use region::Region;
use rustix::thread::{Timespec, futex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// Bytes of a rank's block of flags. Each flag has its own cache line and the next one, which is
/// prefetched with it.
const BLOCK: usize = 1024;
const WAKEUPS: usize = 0;
const ASLEEP: usize = 128;
const ENTERED: usize = 256;
const REDUCED: usize = 384;
/// The header of the rank's current collective, for even and odd ticks.
const HEADERS: usize = 512;
/// Bytes of the head (written by the sender) and the tail (written by the receiver) of a ring.
const RING: usize = 256;
const TAIL: usize = 128;
const PAGE: usize = 4096;
/// A value of ASLEEP: any rank wakes the sleeper. Higher values name the one rank that does.
const BY_ANY: u32 = 1;
const MAGIC: u64 = 0xFE44_F10E_5EA6_0002;

/// The layout of the memory, which depends only on the number of ranks.
#[derive(Clone, Copy)]
struct Layout {
    size: usize,
    ring: usize,
    slot: usize,
}

impl Layout {
    fn of(size: usize) -> Layout {
        // Most pairs of a large group never use their ring, and untouched memory costs nothing.
        let ring = ((64 << 20) / (size * size)).clamp(64 << 10, 1 << 20);
        let slot = direct::segment(size).next_multiple_of(PAGE);
        Layout { size, ring: 1 << ring.ilog2(), slot }
    }
    fn block(&self, rank: usize) -> usize {
        PAGE + rank * BLOCK
    }
    fn slots(&self) -> usize {
        (PAGE + self.size * BLOCK).next_multiple_of(PAGE)
    }
    /// The values of a rank at even or odd ticks.
    fn slot(&self, rank: usize, odd: usize) -> usize {
        self.slots() + (2 * rank + odd) * self.slot
    }
    /// The common result at even or odd ticks.
    fn result(&self, odd: usize) -> usize {
        self.slot(self.size, odd)
    }
    fn ring(&self, from: usize, to: usize) -> usize {
        self.slot(self.size + 1, 0) + (from * self.size + to) * (RING + self.ring)
    }
    fn len(&self) -> usize {
        self.ring(self.size, 0)
    }
}

/// The memory that the ranks of a host share, as seen by one of them.
pub(crate) struct SharedSegment {
    region: Region,
    layout: Layout,
    rank: usize,
    failure: Arc<GroupFailure>,
    spin: Spin,
    /// The number of ticks so far. Equal on all ranks.
    tick: AtomicU64,
}

impl SharedSegment {
    pub(crate) fn create(
        size: usize,
        crowded: bool,
        failure: Arc<GroupFailure>,
    ) -> Result<Arc<SharedSegment>> {
        let layout = Layout::of(size);
        let region = Region::create(layout.len())?;
        region.u64(0).store(MAGIC, Ordering::SeqCst);
        Ok(SharedSegment::new(region, layout, 0, crowded, failure))
    }

    pub(crate) fn open(
        name: &str,
        rank: usize,
        size: usize,
        crowded: bool,
        failure: Arc<GroupFailure>,
    ) -> Result<Arc<SharedSegment>> {
        let layout = Layout::of(size);
        let region = Region::open(name, layout.len())?;
        let magic = region.u64(0).load(Ordering::SeqCst);
        ensure!(magic == MAGIC, DataLoss, "{name} is not the shared memory of this group");
        Ok(SharedSegment::new(region, layout, rank, crowded, failure))
    }

    fn new(
        region: Region,
        layout: Layout,
        rank: usize,
        crowded: bool,
        failure: Arc<GroupFailure>,
    ) -> Arc<SharedSegment> {
        // A poll is a few loads. With a processor to spare a rank polls for some ten microseconds;
        // a poll that yields the processor is a system call.
        let spin = match crowded {
            true => Spin::counted(40, 0),
            false => Spin::counted(1500, 400),
        };
        let tick = AtomicU64::new(0);
        let segment =
            Arc::new(SharedSegment { region, layout, rank, failure: failure.clone(), spin, tick });
        let own = Arc::downgrade(&segment);
        failure.add_listener(move || {
            if let Some(segment) = own.upgrade() {
                segment.wake_rank(segment.rank);
            }
        });
        segment
    }

    /// Offers the memory to the other ranks. Returns the name for [`SharedSegment::open`].
    pub(crate) fn offer(&self) -> Result<String> {
        self.region.offer(self.layout.size - 1)
    }

    fn flag(&self, rank: usize, flag: usize) -> &AtomicU64 {
        self.region.u64(self.layout.block(rank) + flag)
    }

    /// Wakes `rank`, whether or not it sleeps.
    fn wake_rank(&self, rank: usize) {
        let wakeups = self.region.u32(self.layout.block(rank) + WAKEUPS);
        wakeups.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(wakeups, futex::Flags::empty(), 1);
    }

    /// Wakes `rank` if it waits for this rank. Call it after storing the data that the rank may
    /// wait for.
    fn nudge(&self, rank: usize) {
        fence(FENCE);
        self.nudge_fenced(rank);
    }

    /// [`SharedSegment::nudge`] after a fence.
    fn nudge_fenced(&self, rank: usize) {
        let asleep = self.region.u32(self.layout.block(rank) + ASLEEP).load(Ordering::Relaxed);
        if asleep == BY_ANY || asleep == BY_ANY + 1 + self.rank as u32 {
            self.wake_rank(rank);
        }
    }

    /// Sleeps until another rank wakes this one, the group fails, or `until`. Does not sleep if
    /// `awake()` is true. With `whom`, only that rank wakes this one. In a large group each of the
    /// others would otherwise make a useless system call.
    fn sleep(&self, until: Instant, whom: Option<usize>, awake: impl Fn() -> bool) -> Result<()> {
        let block = self.layout.block(self.rank);
        let (wakeups, asleep) = (self.region.u32(block + WAKEUPS), self.region.u32(block + ASLEEP));
        let seen = wakeups.load(Ordering::SeqCst);
        asleep.store(whom.map_or(BY_ANY, |rank| BY_ANY + 1 + rank as u32), Ordering::SeqCst);
        fence(FENCE);
        if !awake() && self.failure.check().is_ok() {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.min(Duration::from_secs(3600));
            let timeout =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            // It was woken, the wait timed out, or the count changed before: check again in each
            // case.
            let _ = futex::wait(wakeups, futex::Flags::empty(), seen, Some(&timeout));
        }
        asleep.store(0, Ordering::SeqCst);
        self.failure.check()
    }
}

/// The byte rings of one rank.
pub(crate) struct SharedRings {
    segment: Arc<SharedSegment>,
    rank: usize,
}

impl SharedRings {
    pub(crate) fn new(segment: Arc<SharedSegment>, rank: usize) -> SharedRings {
        SharedRings { segment, rank }
    }

    /// The offset of a ring, and the positions of its sender and receiver.
    fn state(&self, from: usize, to: usize) -> Result<(usize, u64, u64)> {
        let s = &self.segment;
        ensure!(
            from < s.layout.size && to < s.layout.size,
            Internal,
            "there is no rank {from} or {to}"
        );
        let at = s.layout.ring(from, to);
        let head = s.region.u64(at).load(OBSERVE);
        let tail = s.region.u64(at + TAIL).load(OBSERVE);
        // Another process wrote one of these positions, so check them.
        if head.wrapping_sub(tail) > s.layout.ring as u64 {
            return Err(err!(DataLoss, "the ring from rank {from} to rank {to} is damaged"));
        }
        Ok((at, head, tail))
    }
}

impl Mesh for SharedRings {
    fn name(&self) -> &'static str {
        "shared memory"
    }

    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        let (at, mut sent, tail) = self.state(self.rank, to)?;
        let (start, capacity) = (sent, self.segment.layout.ring as u64);
        for part in [head, body] {
            let mut part = &part[..part.len().min((capacity - (sent - tail)) as usize)];
            while !part.is_empty() {
                let place = (sent % capacity) as usize;
                let n = part.len().min(capacity as usize - place);
                // SAFETY: between head and tail + capacity, only the sender uses a ring. This rank
                // is the sender, and publishes these bytes only below.
                let into = unsafe { self.segment.region.bytes_mut(at + RING + place, n) };
                into.copy_from_slice(&part[..n]);
                sent += n as u64;
                part = &part[n..];
            }
        }
        if sent != start {
            self.segment.region.u64(at).store(sent, PUBLISH);
            self.segment.nudge(to);
        }
        Ok((sent - start) as usize)
    }

    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        let (at, head, mut tail) = self.state(from, self.rank)?;
        let (start, capacity) = (tail, self.segment.layout.ring as u64);
        let mut left = into.len().min((head - tail) as usize);
        let mut done = 0;
        while left > 0 {
            let place = (tail % capacity) as usize;
            let n = left.min(capacity as usize - place);
            // SAFETY: between tail and head, only the receiver uses a ring. This rank is the
            // receiver, and frees these bytes only below.
            let bytes = unsafe { self.segment.region.bytes(at + RING + place, n) };
            into[done..done + n].copy_from_slice(bytes);
            done += n;
            left -= n;
            tail += n as u64;
        }
        if tail != start {
            self.segment.region.u64(at + TAIL).store(tail, PUBLISH);
            self.segment.nudge(from);
        }
        Ok(done)
    }

    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()> {
        let full = self.segment.layout.ring as u64;
        self.segment.sleep(until, None, || {
            let room = |&to: &usize| {
                self.state(self.rank, to).is_ok_and(|(_, head, tail)| head - tail < full)
            };
            let bytes = |&from: &usize| {
                self.state(from, self.rank).is_ok_and(|(_, head, tail)| head != tail)
            };
            sending.iter().any(room) || receiving.iter().any(bytes)
        })
    }

    fn pause(&self, looks: u32) -> bool {
        self.segment.spin.pause(looks)
    }
}
