//! All-reduce in shared memory, without messages.
//!
//! The work is divided into ticks, one for each segment of the values. In a tick every rank copies
//! the values that others reduce into its slot and raises ENTERED. It then reduces its own share
//! from all slots into the common result, raises REDUCED, and copies the shares of the others from
//! the result. There are two sets of slots and results, for even and odd ticks, and the next
//! segment is copied in before the present one is reduced:
//!
//! - A slot of tick k is refilled for tick k + 2 after all ranks have finished tick k. Their
//!   REDUCED shows that. If k took only one step, their ENTERED of k + 1 shows it.
//! - The result of tick k is written again in tick k + 2, by a rank that has seen all ranks enter k
//!   + 2. They enter k + 2 after they have copied the result of k.
//!
//! Few values take one step instead: all ranks copy in all values, and every rank reduces all
//! values in the order of ranks. Both ways give the same bits on all ranks and in every run.

use super::orders::{FENCE, OBSERVE, PUBLISH};
use super::{ENTERED, HEADERS, REDUCED, SharedSegment};
use crate::reduce::{self, ReduceOp};
use crate::schedule::even_bounds;
use crate::signature::{HEADER, MessageHeader, Signature};
use ferroflow_core::{DType, Result, err};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

/// Bytes of a segment. They are large, because each tick needs two synchronizations of all ranks,
/// and ranks that share processors synchronize by context switches. They are small enough to keep
/// the total size of all slots moderate.
pub(super) fn segment(ranks: usize) -> usize {
    ((64 << 20) / ranks.max(1)).clamp(256 << 10, 4 << 20)
}

/// Bytes that are combined from all ranks and passed on while they are in the nearest cache.
const NEAR: usize = 16 << 10;

/// Up to this many bytes, every rank reduces all values.
const LITTLE: usize = 16 << 10;

impl SharedSegment {
    /// Reduces `buffer` in place. `sequence` counts the group's collectives.
    pub(crate) fn all_reduce(
        &self,
        signature: Signature,
        sequence: u32,
        op: ReduceOp,
        dtype: DType,
        buffer: &mut [u8],
        deadline: Instant,
    ) -> Result<()> {
        let width = dtype.size().unwrap_or(1);
        let first = self.tick.load(Ordering::Relaxed);
        let header = MessageHeader { sequence, signature, bytes: buffer.len() as u64 }.encode();
        if buffer.len() <= LITTLE {
            self.enter(first, &header, buffer, std::iter::once(0..buffer.len()));
            self.all_entered(first, &header, deadline)?;
            self.reduce_all(first, op, dtype, buffer);
            self.tick.store(first + 1, Ordering::Relaxed);
            return Ok(());
        }
        let step = self.layout.slot - self.layout.slot % width;
        let segments = buffer.len().div_ceil(step) as u64;
        self.tick.store(first + segments, Ordering::Relaxed);
        let part = |i: u64| {
            let start = i as usize * step;
            start..(start + step).min(buffer.len())
        };
        let parts: Vec<Range<usize>> = (0..segments).map(part).collect();
        self.enter_others(first, &header, &buffer[parts[0].clone()], width);
        for (i, range) in parts.iter().enumerate() {
            let tick = first + i as u64;
            self.all_entered(tick, &header, deadline)?;
            if let Some(next) = parts.get(i + 1) {
                self.enter_others(tick + 1, &header, &buffer[next.clone()], width);
            }
            let here = &mut buffer[range.clone()];
            self.reduce_own(tick, op, dtype, here);
            self.wait_all(REDUCED, tick + 1, signature, deadline)?;
            self.take_others(tick, here, width);
        }
        Ok(())
    }

    /// The boundaries, in bytes, of the ranks' shares of a segment.
    fn shares(&self, bytes: usize, width: usize) -> Vec<usize> {
        let mut bounds = even_bounds(bytes / width, self.layout.size);
        bounds.iter_mut().for_each(|b| *b *= width);
        bounds
    }

    fn enter_others(&self, tick: u64, header: &[u8; HEADER], here: &[u8], width: usize) {
        let bounds = self.shares(here.len(), width);
        let (low, high) = (bounds[self.rank], bounds[self.rank + 1]);
        self.enter(tick, header, here, [0..low, high..here.len()].into_iter());
    }

    /// Copies the ranges of `here` into this rank's slot and raises ENTERED.
    fn enter(
        &self,
        tick: u64,
        header: &[u8; HEADER],
        here: &[u8],
        ranges: impl Iterator<Item = Range<usize>>,
    ) {
        let odd = (tick % 2) as usize;
        let slot = self.layout.slot(self.rank, odd);
        for range in ranges {
            // SAFETY: no rank reads this slot of this parity any more. All ranks have entered the
            // previous tick, so they have finished the tick before that. No rank reads it yet,
            // because ENTERED is raised only below.
            let into = unsafe { self.region.bytes_mut(slot + range.start, range.len()) };
            into.copy_from_slice(&here[range]);
        }
        let at = self.layout.block(self.rank) + HEADERS + odd * 64;
        // SAFETY: as for the slot.
        unsafe { self.region.bytes_mut(at, HEADER) }.copy_from_slice(header);
        self.raise(ENTERED, tick + 1);
    }

    /// Waits until all ranks have entered `tick`, and checks that they are in the same collective.
    fn all_entered(&self, tick: u64, header: &[u8; HEADER], deadline: Instant) -> Result<()> {
        let mine = MessageHeader::decode(header)
            .ok_or_else(|| err!(Internal, "this rank cannot decode its own header"))?;
        self.wait_all(ENTERED, tick + 1, mine.signature, deadline)?;
        for rank in (0..self.layout.size).filter(|&r| r != self.rank) {
            let at = self.layout.block(rank) + HEADERS + (tick % 2) as usize * 64;
            // SAFETY: the rank has entered `tick`. It writes its header of this parity again only
            // after this rank has entered the next tick.
            let theirs = unsafe { self.region.bytes(at, HEADER) };
            if theirs == header {
                continue;
            }
            let mut copy = [0; HEADER];
            copy.copy_from_slice(theirs);
            let what = match MessageHeader::decode(&copy) {
                Some(h) => format!("{} (its collective {})", h.signature, h.sequence),
                None => "something else".into(),
            };
            return Err(err!(
                InvalidArgument,
                "ranks do not agree on collective {}: rank {} is in {}, rank {rank} in {what}",
                mine.sequence,
                self.rank,
                mine.signature
            ));
        }
        Ok(())
    }

    /// Reduces all values from all slots, in the order of ranks.
    fn reduce_all(&self, tick: u64, op: ReduceOp, dtype: DType, buffer: &mut [u8]) {
        for rank in 0..self.layout.size {
            let slot = self.layout.slot(rank, (tick % 2) as usize);
            // SAFETY: all ranks have entered `tick`. They write a slot of this parity again only
            // after this rank has entered the next tick.
            let values = unsafe { self.region.bytes(slot, buffer.len()) };
            if rank == 0 {
                buffer.copy_from_slice(values);
            } else {
                reduce::combine(op, dtype, buffer, values);
            }
        }
        reduce::finish(op, dtype, buffer, self.layout.size as u32);
        // No rank waits for this flag now. A later tick with segments may.
        self.flag(self.rank, REDUCED).store(tick + 1, PUBLISH);
    }

    /// Reduces this rank's share from all slots, into the buffer and into the common result.
    fn reduce_own(&self, tick: u64, op: ReduceOp, dtype: DType, here: &mut [u8]) {
        let odd = (tick % 2) as usize;
        let bounds = self.shares(here.len(), dtype.size().unwrap_or(1));
        let share = bounds[self.rank]..bounds[self.rank + 1];
        let mut at = share.start;
        for own in here[share].chunks_mut(NEAR) {
            for rank in (0..self.layout.size).filter(|&r| r != self.rank) {
                let slot = self.layout.slot(rank, odd) + at;
                // SAFETY: as in `reduce_all`. This rank raises REDUCED only below.
                let values = unsafe { self.region.bytes(slot, own.len()) };
                reduce::combine(op, dtype, own, values);
            }
            reduce::finish(op, dtype, own, self.layout.size as u32);
            // SAFETY: only its rank uses a share of the result until that rank raises REDUCED. All
            // ranks have entered this tick, so they have copied the result of the tick before the
            // last.
            let result = unsafe { self.region.bytes_mut(self.layout.result(odd) + at, own.len()) };
            result.copy_from_slice(own);
            at += own.len();
        }
        self.raise(REDUCED, tick + 1);
    }

    fn take_others(&self, tick: u64, here: &mut [u8], width: usize) {
        let bounds = self.shares(here.len(), width);
        let result = self.layout.result((tick % 2) as usize);
        for range in [0..bounds[self.rank], bounds[self.rank + 1]..here.len()] {
            // SAFETY: all ranks have raised REDUCED for this tick. They write to the result of this
            // parity only after this rank has entered the tick after the next.
            let values = unsafe { self.region.bytes(result + range.start, range.len()) };
            here[range].copy_from_slice(values);
        }
    }

    fn raise(&self, flag: usize, value: u64) {
        self.flag(self.rank, flag).store(value, PUBLISH);
        fence(FENCE);
        for rank in (0..self.layout.size).filter(|&r| r != self.rank) {
            self.nudge_fenced(rank);
        }
    }

    fn wait_all(&self, flag: usize, value: u64, what: Signature, deadline: Instant) -> Result<()> {
        // Each rank begins with the next one. If all began with the same one, that one would have
        // to wake all others.
        let n = self.layout.size;
        for rank in (1..n).map(|distance| (self.rank + distance) % n) {
            let theirs = self.flag(rank, flag);
            let up = || theirs.load(OBSERVE) >= value;
            let mut looks = 0;
            while !up() {
                looks += 1;
                if self.spin.pause(looks) {
                    continue;
                }
                self.sleep(deadline, Some(rank), up)?;
                if !up() && Instant::now() >= deadline {
                    return Err(err!(
                        DeadlineExceeded,
                        "{what}: rank {} reached the timeout while it waited for rank {rank}",
                        self.rank
                    ));
                }
            }
        }
        Ok(())
    }
}
