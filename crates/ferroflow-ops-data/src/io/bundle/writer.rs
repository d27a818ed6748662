//! Writing a bundle.

use super::entry::{Entry, Header};
use super::slice::Slice;
use super::table::write_table;
use super::{
    NewFile, apart_from, data_file, ensure_directory, index_file, masked, remove_replaced,
    shards_of, variants,
};
use crate::prelude::*;
use ferroflow_op_kit::protobuf::put_varint;
use std::collections::BTreeMap;

/// Bytes that are written, and then added to the checksum, at a time. They are still in the cache,
/// and more than the write buffer holds.
const WRITE_BLOCK: usize = 1 << 20;

/// A bundle of one data file that is being written. No file is visible until it is finished.
pub(crate) struct BundleWriter {
    prefix: String,
    /// Data files of the bundle that this one replaces.
    replaced: Option<u32>,
    shards: u32,
    data: NewFile,
    size: u64,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl BundleWriter {
    pub fn create(prefix: &str) -> Result<BundleWriter> {
        ensure_directory(prefix)?;
        let replaced = shards_of(prefix);
        let shards = apart_from(replaced, 1);
        let data = NewFile::create(&data_file(prefix, 0, shards))?;
        let (prefix, entries) = (prefix.into(), BTreeMap::new());
        Ok(BundleWriter { prefix, replaced, shards, data, size: 0, entries })
    }

    /// Adds a whole tensor.
    pub fn add(&mut self, name: &str, t: &Tensor) -> Result<()> {
        ensure!(!name.is_empty(), InvalidArgument, "the name of a tensor must not be empty");
        self.add_under(name.as_bytes().to_vec(), name, t)
    }

    /// Adds a slice of a tensor that is `shape` large as a whole.
    pub fn add_slice(&mut self, name: &str, shape: &Shape, slice: Slice, t: &Tensor) -> Result<()> {
        let whole = name.as_bytes().to_vec();
        let entry = self
            .entries
            .entry(whole)
            .or_insert_with(|| Entry::partitioned(t.dtype(), shape.clone()));
        ensure!(
            entry.size == 0 && entry.dtype == t.dtype() && entry.shape == *shape,
            InvalidArgument,
            "the slices of {name} do not agree: {} of shape {} and {} of shape {shape}",
            entry.dtype,
            entry.shape,
            t.dtype()
        );
        entry.slices.push(slice.clone());
        self.add_under(slice.key(name), name, t)
    }

    /// Makes the files appear.
    pub fn finish(self) -> Result<()> {
        self.data.finish()?;
        write_index(&self.prefix, &self.entries, self.shards)?;
        remove_replaced(&self.prefix, self.replaced);
        Ok(())
    }

    fn add_under(&mut self, key: Vec<u8>, name: &str, t: &Tensor) -> Result<()> {
        ensure!(!self.entries.contains_key(&key), InvalidArgument, "Adding duplicate key: {name}");
        let (size, crc) = self.write(t)?;
        let entry = Entry {
            dtype: t.dtype(),
            shape: t.shape().clone(),
            shard: 0,
            offset: self.size,
            size,
            crc: masked(crc),
            slices: Vec::new(),
        };
        self.size += size;
        self.entries.insert(key, entry);
        Ok(())
    }

    /// Writes the elements; gives how many bytes they take and their checksum.
    fn write(&mut self, t: &Tensor) -> Result<(u64, u32)> {
        if let Ok(all) = t.variants() {
            let (bytes, crc) = variants::write(all)?;
            self.data.write(&bytes)?;
            return Ok((bytes.len() as u64, crc));
        }
        let Ok(strings) = t.strings() else {
            let bytes = t.bytes().map_err(|_| {
                err!(Unimplemented, "tensors of {} cannot be saved to a checkpoint", t.dtype())
            })?;
            // Block by block, so that the checksum reads from the cache.
            let mut crc = 0;
            for block in bytes.chunks(WRITE_BLOCK) {
                self.data.write(block)?;
                crc = crc32c::crc32c_append(crc, block);
            }
            return Ok((bytes.len() as u64, crc));
        };
        // Lengths, a checksum of them, texts. The checksum takes lengths as words, not as written.
        let (mut head, mut crc) = (Vec::new(), 0);
        for s in strings {
            put_varint(&mut head, s.len() as u64);
            crc = match u32::try_from(s.len()) {
                Ok(len) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
                Err(_) => crc32c::crc32c_append(crc, &(s.len() as u64).to_le_bytes()),
            };
        }
        let of_lengths = masked(crc).to_le_bytes();
        head.extend_from_slice(&of_lengths);
        crc = crc32c::crc32c_append(crc, &of_lengths);
        self.data.write(&head)?;
        let mut size = head.len() as u64;
        for s in strings {
            crc = crc32c::crc32c_append(crc, s);
            size += s.len() as u64;
            self.data.write(s)?;
        }
        Ok((size, crc))
    }
}

/// Writes the index of a bundle with so many data files.
pub(super) fn write_index(
    prefix: &str,
    entries: &BTreeMap<Vec<u8>, Entry>,
    shards: u32,
) -> Result<()> {
    let mut table: BTreeMap<Vec<u8>, Vec<u8>> =
        entries.iter().map(|(key, entry)| (key.clone(), entry.encode())).collect();
    table.insert(Vec::new(), Header { shards }.encode());
    let mut index = NewFile::create(&index_file(prefix))?;
    index.write(&write_table(&table))?;
    index.finish()
}
