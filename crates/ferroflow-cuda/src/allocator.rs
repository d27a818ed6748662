//! Memory of a GPU. Blocks come in size classes, small ones cut from large chunks. A block that is
//! freed is used again at once: all work is in one stream, so the new use comes after the old.

use ferroflow_core::{GpuMemory, HashMap, Result, err};

/// What the driver gives and takes.
pub(crate) trait Source {
    /// A chunk of the GPU's memory, or `None` if there is none left.
    fn take(&self, bytes: usize) -> Option<u64>;
    /// Returns a chunk.
    fn give_back(&self, address: u64);
}

/// Blocks up to this size are cut from chunks.
const LARGEST_CUT: usize = 4 << 20;
const CHUNK: usize = 64 << 20;
/// Alignment of all blocks.
const ALIGN: usize = 256;

/// The free blocks of a GPU.
pub(crate) struct Allocator {
    limit: usize,
    in_use: usize,
    peak: usize,
    /// Free blocks by size.
    free: HashMap<usize, Vec<u64>>,
    /// The rest of the current chunk.
    rest: (u64, usize),
}

impl Allocator {
    pub fn new(limit: usize) -> Allocator {
        Allocator { limit, in_use: 0, peak: 0, free: HashMap::default(), rest: (0, 0) }
    }

    pub fn memory(&self) -> GpuMemory {
        GpuMemory { limit: self.limit, in_use: self.in_use, peak: self.peak }
    }

    /// A block for `bytes` bytes.
    pub fn alloc(&mut self, bytes: usize, source: &dyn Source) -> Result<u64> {
        let size = size_class(bytes);
        let out = |in_use: usize, limit: usize| {
            err!(
                ResourceExhausted,
                "OOM when allocating {bytes} bytes: tensors may use {limit} bytes of this GPU and \
                 {in_use} are in use"
            )
        };
        if size > self.limit.saturating_sub(self.in_use) {
            return Err(out(self.in_use, self.limit));
        }
        let known = self.free.get_mut(&size).and_then(Vec::pop);
        let address = match known {
            Some(address) => address,
            None if size <= LARGEST_CUT => {
                self.cut(size, source).ok_or_else(|| out(self.in_use, self.limit))?
            }
            None => self.take(size, source).ok_or_else(|| out(self.in_use, self.limit))?,
        };
        self.in_use += size;
        self.peak = self.peak.max(self.in_use);
        Ok(address)
    }

    /// Takes back a block that `alloc` returned for `bytes`.
    pub fn free(&mut self, address: u64, bytes: usize) {
        let size = size_class(bytes);
        self.in_use -= size;
        self.free.entry(size).or_default().push(address);
    }

    fn cut(&mut self, size: usize, source: &dyn Source) -> Option<u64> {
        if self.rest.1 < size {
            // The rest of the chunk stays usable as blocks of the largest class that fits.
            while self.rest.1 >= ALIGN {
                let part = largest_class_within(self.rest.1);
                self.free.entry(part).or_default().push(self.rest.0);
                self.rest = (self.rest.0 + part as u64, self.rest.1 - part);
            }
            self.rest = (self.take(CHUNK, source)?, CHUNK);
        }
        let address = self.rest.0;
        self.rest = (address + size as u64, self.rest.1 - size);
        Some(address)
    }

    /// Takes from the driver. If it has no memory left, returns free large blocks to it first.
    fn take(&mut self, size: usize, source: &dyn Source) -> Option<u64> {
        source.take(size).or_else(|| {
            for (class, blocks) in self.free.iter_mut().filter(|(class, _)| **class > LARGEST_CUT) {
                debug_assert!(*class > LARGEST_CUT);
                blocks.drain(..).for_each(|address| source.give_back(address));
            }
            source.take(size)
        })
    }
}

/// Multiples of the alignment for small sizes, else four classes to a power of two.
pub(crate) fn size_class(bytes: usize) -> usize {
    if bytes <= 4 * ALIGN {
        return bytes.next_multiple_of(ALIGN).max(ALIGN);
    }
    let step = (bytes - 1).next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(ALIGN))
}

/// The largest class that is at most `bytes`, which is at least the alignment.
fn largest_class_within(bytes: usize) -> usize {
    let mut size = bytes.min(LARGEST_CUT) / ALIGN * ALIGN;
    while size_class(size) != size {
        size -= ALIGN;
    }
    size
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
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let pick = (seed >> 33) as usize;
            if pick.is_multiple_of(3) && !live.is_empty() {
                let (address, bytes) = live.swap_remove(pick % live.len());
                allocator.free(address, bytes);
                continue;
            }
            let bytes = (pick % 100_000) + 1;
            let Ok(address) = allocator.alloc(bytes, &source) else { continue };
            let ends = address + bytes as u64;
            assert!(address.is_multiple_of(ALIGN as u64));
            assert!(live.iter().all(|(a, n)| ends <= *a || a + *n as u64 <= address));
            live.push((address, bytes));
        }
        live.drain(..).for_each(|(address, bytes)| allocator.free(address, bytes));
        assert_eq!(allocator.memory().in_use, 0);
        assert!(allocator.memory().peak > 0);
    }

    #[test]
    fn the_limit_holds_and_free_large_blocks_are_returned() {
        let source = memory(256 << 20);
        let mut allocator = Allocator::new(200 << 20);
        let a = allocator.alloc(100 << 20, &source).unwrap();
        let e = allocator.alloc(120 << 20, &source).unwrap_err();
        assert!(e.message().contains("are in use"), "{e}");
        allocator.free(a, 100 << 20);
        // The driver has 156 MiB left: only the free block makes room for this one.
        allocator.alloc(180 << 20, &source).unwrap();
    }
}
