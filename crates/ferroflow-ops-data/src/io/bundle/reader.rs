//! Reading a bundle.

use super::boxes::{copy_box, cut_box};
use super::entry::{Entry, Header};
use super::slice::Slice;
use super::table::read_table;
use super::{data_file, exists, index_file, masked, variants};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::files::OpenFile;
use ferroflow_core::{IncomingTensor, Reservation};
use ferroflow_op_kit::file::{file_error, local, read_file};
use ferroflow_op_kit::protobuf::take_varint;
use ferroflow_ops_state::list::foreign;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::FileExt;

/// Bytes that are read, and then added to the checksum, at a time: they are still in the cache.
const READ_BLOCK: usize = 1 << 20;

/// A bundle open for reading.
pub(crate) struct BundleReader {
    prefix: String,
    pub(super) shards: u32,
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
    files: Mutex<HashMap<u32, Arc<OpenFile>>>,
}

impl BundleReader {
    /// Whether there is a bundle of this name.
    pub fn is_there(prefix: &str) -> bool {
        exists(&index_file(prefix))
    }

    pub fn open(prefix: &str) -> Result<BundleReader> {
        BundleReader::from_index(prefix, &read_file(&index_file(prefix))?)
    }

    /// A bundle with this index.
    pub(super) fn from_index(prefix: &str, index: &[u8]) -> Result<BundleReader> {
        let mut table = read_table(index)?;
        let Some(header) = table.remove(&Vec::new()) else {
            bail!(DataLoss, "the bundle {prefix} has no header");
        };
        let shards = Header::decode(&header)?.shards;
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let Some(entry) = Entry::decode(&value) else {
                let name = key.escape_ascii();
                bail!(DataLoss, "the entry of {name} in the bundle {prefix} is malformed");
            };
            entries.insert(key, entry);
        }
        Ok(BundleReader { prefix: prefix.into(), shards, entries, files: Mutex::default() })
    }

    /// The names of its tensors. The parts of a sliced tensor have keys that begin with a zero
    /// byte.
    pub fn names(&self) -> Vec<String> {
        let whole = self.entries.keys().filter(|key| key.first() != Some(&0));
        whole.filter_map(|key| String::from_utf8(key.clone()).ok()).collect()
    }

    /// Dtype and shape of a tensor.
    pub fn find(&self, name: &str) -> Result<(DType, &Shape)> {
        let entry = self.entry(name)?;
        Ok((entry.dtype, &entry.shape))
    }

    /// A whole tensor, put together from its slices if it is kept in those.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let entry = self.entry(name)?;
        match entry.slices.is_empty() {
            true => self.read_entry(entry),
            false => self.assemble(name, entry, &Slice::full(entry.shape.rank())),
        }
    }

    /// A part of a tensor, however it is kept.
    pub fn read_slice(&self, name: &str, slice: &Slice) -> Result<Tensor> {
        let entry = self.entry(name)?;
        if entry.slices.is_empty() {
            let (at, shape) = slice.within(&entry.shape)?;
            let whole = self.read_entry(entry)?;
            return if shape == entry.shape { Ok(whole) } else { cut_box(&whole, &at, &shape) };
        }
        self.assemble(name, entry, slice)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        let entry = if name.is_empty() { None } else { self.entries.get(name.as_bytes()) };
        entry.ok_or_else(|| err!(NotFound, "Key {name} not found in checkpoint"))
    }

    fn assemble(&self, name: &str, entry: &Entry, wanted: &Slice) -> Result<Tensor> {
        let (at, shape) = wanted.within(&entry.shape)?;
        let mut out: Option<Tensor> = None;
        let mut covered = 0;
        for slice in &entry.slices {
            let (start, len) = slice.within(&entry.shape)?;
            // The intersection of both slices.
            let low: Vec<usize> = (0..at.len()).map(|d| std::cmp::max(at[d], start[d])).collect();
            let high = (0..at.len()).map(|d| std::cmp::min(at[d] + shape[d], start[d] + len[d]));
            let common: Option<Shape> =
                low.iter().zip(high).map(|(&l, h)| h.checked_sub(l)).collect();
            let Some(common) = common.filter(|c| c.elements() > 0) else { continue };
            let part = self.entries.get(&slice.key(name));
            let Some(part) = part.filter(|p| p.shape == len && p.dtype == entry.dtype) else {
                bail!(DataLoss, "slice {slice} of {name} is not in the bundle as it should be");
            };
            let part = self.read_entry(part)?;
            if common == shape && part.shape() == &shape {
                return Ok(part);
            }
            let to = match &mut out {
                Some(to) => to,
                none => none.insert(Tensor::alloc(entry.dtype, shape.clone())?),
            };
            let offset = |from: &[usize]| -> Vec<usize> {
                low.iter().zip(from).map(|(l, f)| l - f).collect()
            };
            copy_box(&part, &offset(&start), to, &offset(&at), &common)?;
            covered += common.elements();
        }
        ensure!(
            covered >= shape.elements(),
            InvalidArgument,
            "Does not have sufficient slices for partitioned tensor {name} to restore in \
             slice_spec: {wanted}"
        );
        match out {
            Some(out) => Ok(out),
            None => Tensor::zeros(entry.dtype, shape),
        }
    }

    fn read_entry(&self, entry: &Entry) -> Result<Tensor> {
        let name = data_file(&self.prefix, entry.shard, self.shards);
        let file = self.file(entry.shard, &name)?;
        let there = file.metadata().map_err(|e| file_error(&name, &e))?.len();
        // Check this first, so that a damaged index causes no allocation.
        let end = entry.offset.checked_add(entry.size);
        ensure!(end.is_some_and(|end| end <= there), OutOfRange, "Read less bytes than requested");
        if matches!(entry.dtype, DType::String | DType::Variant) {
            let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
            let _while_reading = Reservation::new(size)?;
            let mut bytes = vec![0; size];
            file.read_exact_at(&mut bytes, entry.offset).map_err(|e| file_error(&name, &e))?;
            return match entry.dtype {
                DType::String => self.read_strings(entry, &bytes),
                _ => self.read_variants(entry, &bytes),
            };
        }
        let mut tensor = IncomingTensor::new(entry.dtype, entry.shape.clone())?;
        ensure!(
            tensor.missing() as u64 == entry.size,
            DataLoss,
            "Invalid size in bundle entry: {} bytes stored, {} of shape {} take {}",
            entry.size,
            entry.dtype,
            entry.shape,
            tensor.missing()
        );
        let (mut at, mut crc) = (entry.offset, 0);
        while let Some(piece) = tensor.next_piece()? {
            for block in piece.chunks_mut(READ_BLOCK) {
                file.read_exact_at(block, at).map_err(|e| file_error(&name, &e))?;
                crc = crc32c::crc32c_append(crc, block);
                at += block.len() as u64;
            }
        }
        ensure!(
            masked(crc) == entry.crc,
            DataLoss,
            "TensorBundle at {} shard {} ({} bytes): Checksum does not match: stored {} vs. \
             calculated on the restored bytes {crc}",
            self.prefix,
            entry.shard,
            entry.size,
            super::unmasked(entry.crc),
        );
        tensor.finish()
    }

    fn file(&self, shard: u32, name: &str) -> Result<Arc<OpenFile>> {
        if let Some(file) = self.files.lock().get(&shard) {
            return Ok(file.clone());
        }
        let file = ferroflow_core::files::open(local(name.as_bytes()))
            .map_err(|e| file_error(name, &e))?;
        let file = Arc::new(file);
        self.files.lock().insert(shard, file.clone());
        Ok(file)
    }

    fn read_variants(&self, entry: &Entry, bytes: &[u8]) -> Result<Tensor> {
        let found = variants::read(bytes, entry.shape.elements());
        let Some((all, _)) = found.filter(|(_, crc)| masked(*crc) == entry.crc) else {
            bail!(
                DataLoss,
                "TensorBundle at {} shard {}: the variants are damaged",
                self.prefix,
                entry.shard
            );
        };
        foreign::adopt(Tensor::from_variants(entry.shape.clone(), all)?)
    }

    fn read_strings(&self, entry: &Entry, bytes: &[u8]) -> Result<Tensor> {
        let damaged = || {
            err!(
                DataLoss,
                "TensorBundle at {} shard {}: the strings are damaged",
                self.prefix,
                entry.shard
            )
        };
        let (mut rest, mut lengths, mut crc) = (bytes, Vec::new(), 0);
        // Each length takes a byte at least, so their number is bounded by the file.
        let n = entry.shape.elements();
        ensure!(n <= bytes.len(), DataLoss, "Invalid size in bundle entry: {n} strings");
        for _ in 0..n {
            let len = take_varint(&mut rest).ok_or_else(damaged)?;
            crc = match u32::try_from(len) {
                Ok(len) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
                Err(_) => crc32c::crc32c_append(crc, &len.to_le_bytes()),
            };
            lengths.push(usize::try_from(len).map_err(|_| damaged())?);
        }
        let (stored, texts) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        ensure!(
            u32::from_le_bytes(*stored) == masked(crc),
            DataLoss,
            "The length checksum does not match: expected {:08x} but actual is {:08x}",
            super::unmasked(u32::from_le_bytes(*stored)),
            crc
        );
        crc = crc32c::crc32c_append(crc, stored);
        crc = crc32c::crc32c_append(crc, texts);
        ensure!(
            masked(crc) == entry.crc,
            DataLoss,
            "Checksum does not match: stored {} vs. \
            calculated on the restored bytes {crc}",
            super::unmasked(entry.crc)
        );
        let texts = Bytes::copy_from_slice(texts);
        let (mut strings, mut at) = (Vec::with_capacity(n), 0usize);
        for len in lengths {
            let end = at.checked_add(len).filter(|&end| end <= texts.len()).ok_or_else(damaged)?;
            strings.push(texts.slice(at..end));
            at = end;
        }
        Tensor::from_strings(entry.shape.clone(), strings)
    }
}
