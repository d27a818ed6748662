//! Memory of a GPU. Blocks are cut from segments, and are joined with their free neighbours when
//! they are freed. A freed block is reused at once: all work is in one stream, so the new use comes
//! after the old.

use ferroflow_core::{GpuMemory, Result, err};
use std::collections::{BTreeMap, BTreeSet};

/// The driver's memory.
pub(crate) trait Source {
    /// A segment of the GPU's memory, or `None` if there is none left.
    fn take(&self, bytes: usize) -> Option<u64>;
    /// Returns a segment.
    fn give_back(&self, address: u64);
}

/// Alignment of all blocks.
const ALIGN: usize = 256;
/// Blocks up to this size have segments of their own, so that they do not break up large ones.
const SMALL: usize = 1 << 20;
const SMALL_SEGMENT: usize = 16 << 20;
/// Blocks up to this size share segments of this size.
const SEGMENT: usize = 64 << 20;
/// Larger segments are multiples of this.
const SEGMENT_ALIGN: usize = 2 << 20;
/// A smaller rest of a large block is not split off.
const LARGE_REST: usize = 1 << 20;

/// The blocks of a GPU.
pub(crate) struct Allocator {
    limit: usize,
    in_use: usize,
    peak: usize,
    /// Blocks by address. Neighbours of one segment are adjacent.
    blocks: BTreeMap<u64, Block>,
    /// Free blocks of small and of large segments, by size and address.
    free: [BTreeSet<(usize, u64)>; 2],
    /// Other processes use the segments, so they are never returned.
    is_shared: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    size: usize,
    /// The address of its segment.
    segment: u64,
    is_large: bool,
    is_free: bool,
}

impl Allocator {
    pub fn new(limit: usize) -> Allocator {
        let (blocks, free) = (BTreeMap::new(), Default::default());
        Allocator { limit, in_use: 0, peak: 0, blocks, free, is_shared: false }
    }

    /// Keeps all segments from this call on, because other processes may use them.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    pub fn memory(&self) -> GpuMemory {
        GpuMemory { limit: self.limit, in_use: self.in_use, peak: self.peak }
    }

    /// A block for `bytes` bytes.
    pub fn alloc(&mut self, bytes: usize, source: &dyn Source) -> Result<u64> {
        let size = rounded(bytes);
        let (in_use, limit) = (self.in_use, self.limit);
        let out = || {
            err!(
                ResourceExhausted,
                "OOM when allocating {bytes} bytes: tensors may use {limit} bytes of this GPU and \
                 {in_use} are in use"
            )
        };
        if size > limit.saturating_sub(in_use) {
            return Err(out());
        }
        let is_large = size > SMALL;
        let found = self.free[usize::from(is_large)].range((size, 0)..).next().copied();
        let address = match found {
            Some((_, address)) => address,
            None => self.segment(size, is_large, source).ok_or_else(out)?,
        };
        self.cut(address, size);
        Ok(address)
    }

    /// Frees a block that `alloc` returned.
    pub fn free(&mut self, address: u64) {
        let Some(mut block) = self.blocks.remove(&address) else { return };
        debug_assert!(!block.is_free, "freed twice");
        self.in_use -= block.size;
        let mut from = address;
        let free = &mut self.free[usize::from(block.is_large)];
        let after = address + block.size as u64;
        if let Some(next) = self.blocks.get(&after).copied()
            && next.is_free
            && next.segment == block.segment
        {
            free.remove(&(next.size, after));
            self.blocks.remove(&after);
            block.size += next.size;
        }
        if let Some((&before, &last)) = self.blocks.range(..address).next_back()
            && last.is_free
            && last.segment == block.segment
        {
            free.remove(&(last.size, before));
            self.blocks.remove(&before);
            block.size += last.size;
            from = before;
        }
        free.insert((block.size, from));
        self.blocks.insert(from, Block { is_free: true, ..block });
    }

    /// Returns segments that are completely free.
    pub fn give_back_free(&mut self, source: &dyn Source) {
        if self.is_shared {
            return;
        }
        let is_whole = |from: u64, block: &Block| {
            let next = self.blocks.get(&(from + block.size as u64));
            block.is_free
                && from == block.segment
                && next.is_none_or(|next| next.segment != block.segment)
        };
        let whole: Vec<(u64, Block)> =
            self.blocks.iter().filter(|(a, b)| is_whole(**a, b)).map(|(a, b)| (*a, *b)).collect();
        for (address, block) in whole {
            self.blocks.remove(&address);
            self.free[usize::from(block.is_large)].remove(&(block.size, address));
            source.give_back(address);
        }
    }

    /// A new segment with room for a block. If the driver has no memory left, free segments are
    /// returned to it first.
    fn segment(&mut self, size: usize, is_large: bool, source: &dyn Source) -> Option<u64> {
        let wanted = match size {
            _ if !is_large => SMALL_SEGMENT,
            size if size <= SEGMENT => SEGMENT,
            size => size.next_multiple_of(SEGMENT_ALIGN),
        };
        let taken = source.take(wanted).map(|address| (address, wanted)).or_else(|| {
            self.give_back_free(source);
            let least = size.next_multiple_of(SEGMENT_ALIGN);
            source.take(least).map(|address| (address, least))
        });
        let (address, size) = taken?;
        let block = Block { size, segment: address, is_large, is_free: true };
        self.blocks.insert(address, block);
        self.free[usize::from(is_large)].insert((size, address));
        Some(address)
    }

    /// Uses the first `size` bytes of a free block.
    fn cut(&mut self, address: u64, size: usize) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        let free = &mut self.free[usize::from(block.is_large)];
        free.remove(&(block.size, address));
        block.is_free = false;
        let least = if block.is_large { LARGE_REST } else { ALIGN };
        let rest = block.size - size;
        let Block { segment, is_large, .. } = *block;
        if rest >= least {
            block.size = size;
            let at = address + size as u64;
            free.insert((rest, at));
            self.blocks.insert(at, Block { size: rest, segment, is_large, is_free: true });
            self.in_use += size;
        } else {
            self.in_use += block.size;
        }
        self.peak = self.peak.max(self.in_use);
    }
}

/// The bytes of a block.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    struct Memory {
        left: Cell<usize>,
        next: Cell<u64>,
        taken: RefCell<Vec<(u64, usize)>>,
    }

    impl Source for Memory {
        fn take(&self, bytes: usize) -> Option<u64> {
            self.left.set(self.left.get().checked_sub(bytes)?);
            let address = self.next.get();
            self.next.set(address + bytes as u64);
            self.taken.borrow_mut().push((address, bytes));
            Some(address)
        }

        fn give_back(&self, address: u64) {
            let mut taken = self.taken.borrow_mut();
            let at = taken.iter().position(|(known, _)| *known == address).unwrap();
            self.left.set(self.left.get() + taken.swap_remove(at).1);
        }
    }

    fn memory(bytes: usize) -> Memory {
        Memory { left: Cell::new(bytes), next: Cell::new(1 << 20), taken: RefCell::default() }
    }

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let source = memory(1 << 30);
        let mut allocator = Allocator::new(1 << 30);
        let mut live: Vec<(u64, usize)> = Vec::new();
        let mut seed = 1u64;
        for round in 0..5_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let pick = (seed >> 33) as usize;
            if pick.is_multiple_of(3) && !live.is_empty() {
                let (address, _) = live.swap_remove(pick % live.len());
                allocator.free(address);
                continue;
            }
            let most = if round % 10 == 0 { 8 << 20 } else { 100_000 };
            let bytes = (pick % most) + 1;
            let Ok(address) = allocator.alloc(bytes, &source) else { continue };
            let ends = address + bytes as u64;
            assert!(address.is_multiple_of(ALIGN as u64));
            assert!(live.iter().all(|(a, n)| ends <= *a || a + *n as u64 <= address));
            live.push((address, bytes));
        }
        live.drain(..).for_each(|(address, _)| allocator.free(address));
        assert_eq!(allocator.memory().in_use, 0);
        assert!(allocator.memory().peak > 0);
        // All neighbours have joined, so only whole segments remain.
        allocator.give_back_free(&source);
        assert!(source.taken.borrow().is_empty() && allocator.blocks.is_empty());
    }

    #[test]
    fn a_large_block_is_cut_for_smaller_ones() {
        let source = memory(1 << 30);
        let mut allocator = Allocator::new(1 << 30);
        let whole = allocator.alloc(300 << 20, &source).unwrap();
        allocator.free(whole);
        let parts = [100 << 20, 150 << 20, 50 << 20].map(|n| allocator.alloc(n, &source).unwrap());
        assert_eq!(source.taken.borrow().len(), 1, "{parts:?}");
        assert_eq!(allocator.memory().peak, 300 << 20);
    }

    #[test]
    fn the_limit_holds_and_free_large_blocks_are_returned() {
        let source = memory(256 << 20);
        let mut allocator = Allocator::new(200 << 20);
        let a = allocator.alloc(100 << 20, &source).unwrap();
        let e = allocator.alloc(120 << 20, &source).unwrap_err();
        assert!(e.message().contains("are in use"), "{e}");
        allocator.free(a);
        // The driver has 156 MiB left: only the free block makes room for this one.
        allocator.alloc(180 << 20, &source).unwrap();
    }
}
