//! Blocks of shared memory that one process fills and another reads in place. A large value needs a
//! single copy. The caller sends the place of a block to the reader.
//!
//! A flag in the shared memory says whether a block is free. The writer takes a free block, fills
//! it, sets the flag, and sends its place. The reader clears the flag when it has finished.

use crate::mesh::shared::orders::{OBSERVE, PUBLISH};
use crate::mesh::shared::region::Region;
use ferroflow_core::{Result, ensure};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const IN_USE: u32 = 1;
/// Most blocks. Their flags are at the start of the memory.
const MAX_BLOCKS: usize = 1024;
const FLAGS: usize = MAX_BLOCKS * size_of::<u32>();
/// The offset of the random mark that identifies this memory.
const MARK: usize = FLAGS.next_multiple_of(size_of::<u64>());
/// The offset of the first block. Flags and blocks do not share a huge page.
const DATA: usize = 2 << 20;
/// Block sizes are multiples of this, so that all element types are aligned and there are few
/// sizes.
const PAGE: usize = 4096;
const _: () = assert!(MARK + size_of::<u64>() <= DATA);

/// The place of a block, for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The offset of its bytes in the memory.
    pub offset: u64,
    /// The number of the block.
    pub block: u32,
}

/// How a process of the same host and user can open the memory of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMemory {
    /// The name under which the writer offers the memory, once.
    pub name: String,
    /// The bytes of the memory.
    pub len: u64,
    /// The random mark in the memory, by which the reader recognizes it.
    pub mark: u64,
}

/// The end that fills blocks.
pub struct BlockWriter {
    region: Region,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// The offset and capacity of each block.
    known: Vec<(usize, usize)>,
    /// The bytes of all blocks.
    used: usize,
    /// The most bytes of all blocks so far: their pages stay allocated.
    touched: usize,
}

impl BlockWriter {
    /// Makes shared memory for `len` bytes of blocks. Pages are allocated when they are first
    /// written to.
    pub fn create(len: usize) -> Result<BlockWriter> {
        let len = len.next_multiple_of(PAGE);
        let region = Region::create(DATA + len)?;
        // Not zero, which is the content of fresh memory.
        region.u64(MARK).store(fastrand::u64(1..), Ordering::Release);
        Ok(BlockWriter { region, blocks: Mutex::default() })
    }

    /// Offers the memory to one reader. The offer stands for a minute.
    pub fn offer(&self) -> Result<BlockMemory> {
        Ok(BlockMemory {
            name: self.region.offer(1)?,
            len: self.region.len() as u64,
            mark: self.region.u64(MARK).load(Ordering::Acquire),
        })
    }

    /// Copies `bytes` into a free block. `None` if there is no room at present.
    pub fn put(&self, bytes: &[u8]) -> Option<BlockPlace> {
        let mut blocks = self.blocks.lock();
        let capacity = capacity_for(bytes.len())?;
        let is_free = |block: &usize| flag(&self.region, *block).load(OBSERVE) == FREE;
        let room = self.region.len() - DATA;
        // The block that was freed last is most likely in the cache. The first fit is close enough
        // to that.
        let fitting = |blocks: &Blocks| {
            (0..blocks.known.len()).find(|b| blocks.known[*b].1 == capacity && is_free(b))
        };
        let block = match fitting(&blocks) {
            Some(block) => block,
            None => {
                if blocks.used.checked_add(capacity)? > room || blocks.known.len() == MAX_BLOCKS {
                    // The sizes have changed: start over, unless a block is in use.
                    if !(0..blocks.known.len()).all(|b| is_free(&b)) {
                        return None;
                    }
                    *blocks = Blocks { touched: blocks.touched, ..Blocks::default() };
                }
                if capacity > room {
                    return None;
                }
                let offset = DATA + blocks.used;
                blocks.known.push((offset, capacity));
                blocks.used += capacity;
                blocks.touched = blocks.touched.max(blocks.used);
                blocks.known.len() - 1
            }
        };
        flag(&self.region, block).store(IN_USE, Ordering::Relaxed);
        let offset = blocks.known[block].0;
        // The flag is set, so the lock is not needed while the block is filled.
        drop(blocks);
        // SAFETY: the block was free, so the reader has finished, and this writer took it under the
        // lock. It lies within the region by construction.
        let into = unsafe { self.region.bytes_mut(offset, bytes.len()) };
        into.copy_from_slice(bytes);
        Some(BlockPlace { offset: offset as u64, block: block as u32 })
    }

    /// The bytes of memory that the writer takes at most when it has put `len` more bytes.
    pub fn memory_with(&self, len: usize) -> usize {
        let blocks = self.blocks.lock();
        let more = blocks.used.saturating_add(capacity_for(len).unwrap_or(0));
        more.max(blocks.touched).min(self.region.len() - DATA)
    }

    /// Frees a block whose place was not sent to the reader.
    pub fn take_back(&self, place: BlockPlace) {
        flag(&self.region, place.block as usize).store(FREE, PUBLISH);
    }
}

/// The end that reads blocks in place.
pub struct BlockReader {
    region: Region,
}

impl BlockReader {
    /// Maps the memory of a writer. May block for some seconds.
    pub fn open(memory: &BlockMemory) -> Result<Arc<BlockReader>> {
        let BlockMemory { name, mark, .. } = memory;
        let len = usize::try_from(memory.len).unwrap_or(usize::MAX);
        ensure!(
            len >= DATA,
            InvalidArgument,
            "{len} bytes of shared memory are too few for a block"
        );
        let region = Region::open(name, len)?;
        let found = region.u64(MARK).load(Ordering::Acquire);
        ensure!(
            found == *mark,
            DataLoss,
            "{name} is not the shared memory that the writer announced"
        );
        Ok(Arc::new(BlockReader { region }))
    }

    /// A block with `len` bytes, at the place that the writer sent.
    pub fn block(self: &Arc<Self>, place: BlockPlace, len: usize) -> Result<SharedBlock> {
        let (offset, block) = (usize::try_from(place.offset).ok(), place.block as usize);
        let offset = offset.filter(|offset| {
            *offset >= DATA
                && offset.is_multiple_of(PAGE)
                && offset.checked_add(len).is_some_and(|end| end <= self.region.len())
        });
        let Some(offset) = offset.filter(|_| block < MAX_BLOCKS) else {
            ferroflow_core::bail!(InvalidArgument, "{place:?} with {len} bytes is not a block");
        };
        let is_filled = flag(&self.region, block).load(OBSERVE) == IN_USE;
        ensure!(is_filled, InvalidArgument, "block {block} is not in use");
        Ok(SharedBlock { reader: self.clone(), offset, len, block })
    }
}

/// A block that is being read. Dropping it frees the block.
pub struct SharedBlock {
    reader: Arc<BlockReader>,
    offset: usize,
    len: usize,
    block: usize,
}

impl AsRef<[u8]> for SharedBlock {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the writer filled the block before it sent the place, and does not touch it until
        // `drop` clears the flag.
        unsafe { self.reader.region.bytes(self.offset, self.len) }
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        flag(&self.reader.region, self.block).store(FREE, PUBLISH);
    }
}

fn flag(region: &Region, block: usize) -> &AtomicU32 {
    region.u32(block * size_of::<u32>())
}

/// Rounds up to whole pages, with four sizes per power of two, so that tensors of similar size can
/// reuse a block.
fn capacity_for(len: usize) -> Option<usize> {
    let step = (len.max(1).checked_next_power_of_two()? / 8).max(PAGE);
    len.max(1).checked_next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(len: usize) -> (BlockWriter, Arc<BlockReader>) {
        let writer = BlockWriter::create(len).unwrap();
        let reader = BlockReader::open(&writer.offer().unwrap()).unwrap();
        (writer, reader)
    }

    #[test]
    fn a_block_is_reused_after_its_reader_dropped_it() {
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
    fn blocks_of_another_size_fit_after_all_blocks_are_free() {
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
    fn a_place_outside_of_the_blocks_is_refused() {
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
        let memory = writer.offer().unwrap();
        assert!(BlockReader::open(&BlockMemory { name: "none".into(), ..memory.clone() }).is_err());
        assert!(BlockReader::open(&BlockMemory { len: 5, ..memory }).is_err());
    }

    #[test]
    fn memory_with_another_mark_is_refused() {
        let (writer, other) =
            (BlockWriter::create(1 << 20).unwrap(), BlockWriter::create(1 << 20).unwrap());
        let offer = |writer: &BlockWriter| writer.offer().unwrap();
        let mixed_up = BlockMemory { name: offer(&other).name, ..offer(&writer) };
        assert!(BlockReader::open(&mixed_up).is_err());
        assert!(BlockReader::open(&offer(&writer)).is_ok());
    }
}
