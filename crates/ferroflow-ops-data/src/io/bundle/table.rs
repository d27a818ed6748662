//! Sorted tables, in LevelDB's format: blocks of entries whose keys share prefixes, an index of the
//! blocks, a footer.

use super::{masked, snappy::decompress, unmasked};
use crate::prelude::*;
use ferroflow_op_kit::protobuf::{put_varint, take_varint};
use std::collections::BTreeMap;

const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const FOOTER: usize = 48;
/// Keys from one whole key to the next.
const RESTART: usize = 16;
/// A block is ended when it has so many bytes.
const BLOCK: usize = 256 << 10;

/// A block being written.
struct BlockWriter {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    since: usize,
    last: Vec<u8>,
}

impl BlockWriter {
    fn new(interval: usize) -> BlockWriter {
        BlockWriter { bytes: vec![], restarts: vec![0], interval, since: 0, last: vec![] }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since < self.interval {
            shared = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.since = 0;
        }
        for n in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.bytes, n as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last = key.to_vec();
        self.since += 1;
    }

    /// Appends the block with its trailer; gives where it is.
    fn finish(mut self, out: &mut Vec<u8>) -> Handle {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        let handle = Handle { offset: out.len() as u64, size: self.bytes.len() as u64 };
        self.bytes.push(0);
        let crc = masked(crc32c::crc32c(&self.bytes));
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&crc.to_le_bytes());
        handle
    }
}

/// Where a block is; its size is without the trailer.
#[derive(Clone, Copy)]
struct Handle {
    offset: u64,
    size: u64,
}

impl Handle {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, self.offset);
        put_varint(&mut bytes, self.size);
        bytes
    }

    fn take(from: &mut &[u8]) -> Option<Handle> {
        Some(Handle { offset: take_varint(from)?, size: take_varint(from)? })
    }
}

/// A table of these entries.
pub(super) fn write_table(entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut index = BlockWriter::new(1);
    let mut block = BlockWriter::new(RESTART);
    let mut is_empty = true;
    for (key, value) in entries {
        block.add(key, value);
        is_empty = false;
        if block.bytes.len() >= BLOCK {
            let whole = std::mem::replace(&mut block, BlockWriter::new(RESTART));
            index.add(key, &whole.finish(&mut out).bytes());
            is_empty = true;
        }
    }
    if !is_empty {
        let last = block.last.clone();
        index.add(&last, &block.finish(&mut out).bytes());
    }
    let meta = BlockWriter::new(RESTART).finish(&mut out);
    let index = index.finish(&mut out);
    let mut footer = [meta.bytes(), index.bytes()].concat();
    footer.resize(FOOTER - 8, 0);
    footer.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&footer);
    out
}

/// The entries of a table.
pub(super) fn read_table(file: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let Some(start) = file.len().checked_sub(FOOTER) else {
        bail!(DataLoss, "file is too short to be an sstable");
    };
    let footer = &file[start..];
    ensure!(
        footer[FOOTER - 8..] == MAGIC.to_le_bytes(),
        DataLoss,
        "not an sstable (bad magic number)"
    );
    let mut handles = footer;
    let _meta = Handle::take(&mut handles);
    let Some(index) = Handle::take(&mut handles) else {
        bail!(DataLoss, "bad block handle");
    };
    let mut entries = BTreeMap::new();
    for (_, handle) in read_block(file, index)? {
        let Some(handle) = Handle::take(&mut &handle[..]) else {
            bail!(DataLoss, "bad block handle");
        };
        entries.extend(read_block(file, handle)?);
    }
    Ok(entries)
}

fn read_block(file: &[u8], handle: Handle) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let bounds = || -> Option<(usize, usize)> {
        let start = usize::try_from(handle.offset).ok()?;
        Some((start, start.checked_add(usize::try_from(handle.size).ok()?)?))
    };
    let block = bounds().and_then(|(start, end)| {
        let (bytes, trailer) = (file.get(start..end)?, file.get(end..end.checked_add(5)?)?);
        Some((bytes, trailer, &file[start..=end]))
    });
    let Some((bytes, trailer, checked)) = block else {
        bail!(DataLoss, "truncated block read");
    };
    let stored = u32::from_le_bytes(trailer[1..].try_into().expect("four bytes"));
    ensure!(unmasked(stored) == crc32c::crc32c(checked), DataLoss, "block checksum mismatch");
    let inflated;
    let bytes = match trailer[0] {
        0 => bytes,
        1 => match decompress(bytes) {
            Some(b) => {
                inflated = b;
                &inflated
            }
            None => bail!(DataLoss, "corrupted compressed block contents"),
        },
        _ => bail!(DataLoss, "bad block type"),
    };
    entries_of(bytes).ok_or_else(|| err!(DataLoss, "bad entry in block"))
}

fn entries_of(block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let (rest, count) = block.split_last_chunk::<4>()?;
    let restarts = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
    let mut rest = rest.get(..rest.len().checked_sub(restarts)?)?;
    let (mut entries, mut key) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let shared = usize::try_from(take_varint(&mut rest)?).ok()?;
        let unshared = usize::try_from(take_varint(&mut rest)?).ok()?;
        let len = usize::try_from(take_varint(&mut rest)?).ok()?;
        if shared > key.len() {
            return None;
        }
        let (suffix, tail) = rest.split_at_checked(unshared)?;
        let (value, tail) = tail.split_at_checked(len)?;
        key.truncate(shared);
        key.extend_from_slice(suffix);
        entries.push((key.clone(), value.to_vec()));
        rest = tail;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut entries = BTreeMap::new();
        for i in 0..40_000u32 {
            entries.insert(format!("some/long/name/{i}").into_bytes(), i.to_le_bytes().to_vec());
        }
        let file = write_table(&entries);
        assert!(file.len() > BLOCK);
        assert_eq!(read_table(&file).unwrap(), entries);
        assert!(read_table(&write_table(&BTreeMap::new())).unwrap().is_empty());
    }

    #[test]
    fn damage_is_noticed() {
        let entries = BTreeMap::from([(b"k".to_vec(), b"v".to_vec())]);
        let file = write_table(&entries);
        for i in 0..file.len() {
            let mut damaged = file.clone();
            damaged[i] ^= 0x55;
            // Padding in the footer is ignored; anything else is an error.
            if let Ok(read) = read_table(&damaged) {
                assert_eq!(read, entries, "byte {i}");
            }
        }
        for n in 0..file.len() {
            assert!(read_table(&file[..n]).is_err());
        }
        let e = read_table(b"short").unwrap_err();
        assert_eq!(e.message(), "file is too short to be an sstable");
    }
}
