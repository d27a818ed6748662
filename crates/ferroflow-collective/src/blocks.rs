//! Blocks of shared memory that one process fills and another reads in place: a large value crosses
//! with a single copy. Who sends word of a block, and how, is left to the users.
//!
//! A block is free or in use, which a flag in the shared memory says. Its writer takes it when free,
//! fills it, marks it, and tells the reader; the reader marks it free when it has done with it.

use crate::mesh::shared::region::Region;
use ferroflow_core::{Result, ensure};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const IN_USE: u32 = 1;
/// Blocks there can be; a flag for each comes first.
const MAX_BLOCKS: usize = 1024;
const FLAGS: usize = MAX_BLOCKS * size_of::<u32>();
/// Where the mark is that tells this memory from any other.
const MARK: usize = FLAGS.next_multiple_of(size_of::<u64>());
/// Where blocks begin: huge pages, where there are any, are not shared with the flags.
const DATA: usize = 2 << 20;
/// Blocks are whole pages, so that any element type is aligned and few sizes occur.
const PAGE: usize = 4096;
const _: () = assert!(MARK + size_of::<u64>() <= DATA);

/// Where a block is, for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    pub offset: u64,
    pub block: u32,
}

/// Where a process of the same host and user finds the memory of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMemory {
    pub path: String,
    pub len: u64,
    /// What is in it: under the same path, a process in another namespace finds another's, or its own.
    pub mark: u64,
}

/// The end that fills blocks.
pub struct BlockWriter {
    region: Region,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// Offset and capacity of each.
    known: Vec<(usize, usize)>,
    /// How much of the memory they take.
    used: usize,
}

impl BlockWriter {
    /// Shared memory for `len` bytes of blocks. Pages are only taken when they are first written to.
    pub fn create(len: usize) -> Result<BlockWriter> {
        let len = len.next_multiple_of(PAGE);
        let region = Region::create(DATA + len)?;
        // Never zero, which fresh memory is full of.
        region.u64(MARK).store(fastrand::u64(1..), Ordering::Release);
        Ok(BlockWriter { region, blocks: Mutex::default() })
    }

    /// What the reader must know to open it.
    pub fn memory(&self) -> BlockMemory {
        BlockMemory {
            path: self.region.path(),
            len: self.region.len() as u64,
            mark: self.region.u64(MARK).load(Ordering::Acquire),
        }
    }

    /// Copies `bytes` into a free block; none if there is no room now.
    pub fn put(&self, bytes: &[u8]) -> Option<BlockPlace> {
        let mut blocks = self.blocks.lock();
        let capacity = capacity_for(bytes.len())?;
        let is_free = |block: &usize| flag(&self.region, *block).load(Ordering::Acquire) == FREE;
        let room = self.region.len() - DATA;
        // The last one freed is most likely still in the cache; the first fit is near enough to it.
        let fitting = |blocks: &Blocks| {
            (0..blocks.known.len()).find(|b| blocks.known[*b].1 == capacity && is_free(b))
        };
        let block = match fitting(&blocks) {
            Some(block) => block,
            None => {
                if blocks.used.checked_add(capacity)? > room || blocks.known.len() == MAX_BLOCKS {
                    // Sizes have changed: begin anew, unless something is still in use.
                    if !(0..blocks.known.len()).all(|b| is_free(&b)) {
                        return None;
                    }
                    *blocks = Blocks::default();
                }
                if capacity > room {
                    return None;
                }
                let offset = DATA + blocks.used;
                blocks.known.push((offset, capacity));
                blocks.used += capacity;
                blocks.known.len() - 1
            }
        };
        flag(&self.region, block).store(IN_USE, Ordering::Relaxed);
        let offset = blocks.known[block].0;
        // Ours from here on, so others may look for theirs while this one is filled.
        drop(blocks);
        // SAFETY: the block was free: the reader is done with it, and this writer took it under the
        // lock. It is within the region by construction.
        let into = unsafe { self.region.bytes_mut(offset, bytes.len()) };
        into.copy_from_slice(bytes);
        Some(BlockPlace { offset: offset as u64, block: block as u32 })
    }

    /// Takes back a block that the reader was not told of.
    pub fn take_back(&self, place: BlockPlace) {
        flag(&self.region, place.block as usize).store(FREE, Ordering::Release);
    }
}

/// The end that reads blocks in place.
pub struct BlockReader {
    region: Region,
}

impl BlockReader {
    /// Maps the memory of a writer, which said where it is.
    pub fn open(memory: &BlockMemory) -> Result<Arc<BlockReader>> {
        let BlockMemory { path, mark, .. } = memory;
        let len = usize::try_from(memory.len).unwrap_or(usize::MAX);
        ensure!(len >= DATA, InvalidArgument, "{len} bytes of shared memory hold no block");
        let region = Region::open(path, len)?;
        let found = region.u64(MARK).load(Ordering::Acquire);
        ensure!(found == *mark, DataLoss, "{path} is other shared memory than was meant");
        Ok(Arc::new(BlockReader { region }))
    }

    /// A block that the writer told of, with `len` bytes in it.
    pub fn block(self: &Arc<Self>, place: BlockPlace, len: usize) -> Result<SharedBlock> {
        let (offset, block) = (usize::try_from(place.offset).ok(), place.block as usize);
        let offset = offset.filter(|offset| {
            *offset >= DATA
                && offset.is_multiple_of(PAGE)
                && offset.checked_add(len).is_some_and(|end| end <= self.region.len())
        });
        let Some(offset) = offset.filter(|_| block < MAX_BLOCKS) else {
            ferroflow_core::bail!(InvalidArgument, "{place:?} with {len} bytes is no block");
        };
        let is_filled = flag(&self.region, block).load(Ordering::Acquire) == IN_USE;
        ensure!(is_filled, InvalidArgument, "block {block} is not in use");
        Ok(SharedBlock { reader: self.clone(), offset, len, block })
    }
}

/// A block being read; dropping it frees it for the writer.
pub struct SharedBlock {
    reader: Arc<BlockReader>,
    offset: usize,
    len: usize,
    block: usize,
}

impl AsRef<[u8]> for SharedBlock {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the writer filled the block before it told of it, and leaves it alone until the flag
        // says that it is free, which `drop` does.
        unsafe { self.reader.region.bytes(self.offset, self.len) }
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        flag(&self.reader.region, self.block).store(FREE, Ordering::Release);
    }
}

fn flag(region: &Region, block: usize) -> &AtomicU32 {
    region.u32(block * size_of::<u32>())
}

/// Whole pages, four sizes to a power of two: a block serves tensors of about its size.
fn capacity_for(len: usize) -> Option<usize> {
    let step = (len.max(1).checked_next_power_of_two()? / 8).max(PAGE);
    len.max(1).checked_next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(len: usize) -> (BlockWriter, Arc<BlockReader>) {
        let writer = BlockWriter::create(len).unwrap();
        let reader = BlockReader::open(&writer.memory()).unwrap();
        (writer, reader)
    }

    #[test]
    fn a_block_is_reused_once_its_reader_is_done() {
        let (writer, reader) = pair(1 << 20);
        let place = writer.put(&[7; 5000]).unwrap();
        let block = reader.block(place, 5000).unwrap();
        let other = writer.put(&[8; 5000]).unwrap();
        assert_ne!(place, other);
        assert_eq!(block.as_ref(), [7; 5000]);
        drop(block);
        assert_eq!(writer.put(&[9; 6000]), Some(place));
        writer.take_back(other);
        assert_eq!(writer.put(&[9; 6000]), Some(other));
    }

    #[test]
    fn there_is_room_again_when_all_is_read() {
        let (writer, reader) = pair(1 << 20);
        let first = writer.put(&vec![1; 600_000]).unwrap();
        assert_eq!(writer.put(&vec![2; 600_000]), None);
        let block = reader.block(first, 600_000).unwrap();
        assert_eq!(writer.put(&vec![3; 900_000]), None);
        drop(block);
        assert!(writer.put(&vec![3; 900_000]).is_some());
        assert_eq!(writer.put(&vec![0; 2 << 20]), None, "it never fits");
    }

    #[test]
    fn places_that_are_none_are_refused() {
        let (writer, reader) = pair(1 << 20);
        let place = writer.put(&[7; 5000]).unwrap();
        for (offset, block, len) in [
            (0, 0, 1),
            (place.offset + 1, 0, 1),
            (u64::MAX, 0, 1),
            (place.offset, u32::MAX, 1),
            (place.offset, 1, 1),
            (place.offset, 0, usize::MAX),
            (place.offset, 0, 2 << 20),
        ] {
            assert!(
                reader.block(BlockPlace { offset, block }, len).is_err(),
                "{offset} {block} {len}"
            );
        }
        let memory = writer.memory();
        assert!(
            BlockReader::open(&BlockMemory { path: "/dev/null".into(), ..memory.clone() }).is_err()
        );
        assert!(BlockReader::open(&BlockMemory { len: 5, ..memory }).is_err());
    }

    #[test]
    fn memory_of_another_is_told_apart() {
        let (writer, other) =
            (BlockWriter::create(1 << 20).unwrap(), BlockWriter::create(1 << 20).unwrap());
        let mixed_up = BlockMemory { path: other.memory().path, ..writer.memory() };
        assert!(BlockReader::open(&mixed_up).is_err());
        assert!(BlockReader::open(&writer.memory()).is_ok());
    }
}
