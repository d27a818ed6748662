//! Reads LMDB databases: the entries of the main database of a file, in order of keys.
//!
//! A file is a sequence of pages. The first two describe the database, of which the newer one
//! counts; the others are the branches and leaves of a tree, or large values.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Reservation, files, limits};
use ferroflow_op_kit::file::{file_error, local};
use std::os::unix::fs::FileExt;

const MAGIC: u32 = 0xbeef_c0de;
const PAGE_HEADER: usize = 16;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
/// A node whose value is in pages of its own.
const LARGE: u16 = 1;
/// A node that is a database of its own, or one with several values of a key.
const NESTED: u16 = 2 | 4;
/// Pages are no larger than this, and trees no higher.
const LARGEST_PAGE: usize = 1 << 16;
const HIGHEST: usize = 64;

/// A database being read from front to back.
pub(crate) struct LmdbReader {
    name: String,
    file: files::OpenFile,
    page_size: usize,
    pages: u64,
    /// Pages of the tree that were read. Each is in it once.
    read: u64,
    /// The pages from the root down to the next entry, each with the next node in it.
    path: Vec<(Vec<u8>, usize)>,
}

/// A number of `N` bytes at a place; `None` beyond the end.
fn at<const N: usize>(bytes: &[u8], from: usize) -> Option<[u8; N]> {
    bytes.get(from..)?.first_chunk::<N>().copied()
}

fn u16_at(bytes: &[u8], from: usize) -> Option<u16> {
    at(bytes, from).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], from: usize) -> Option<u32> {
    at(bytes, from).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], from: usize) -> Option<u64> {
    at(bytes, from).map(u64::from_le_bytes)
}

impl LmdbReader {
    /// Opens a file, or the `data.mdb` in a folder.
    pub fn open(name: &str) -> Result<LmdbReader> {
        let name = match files::is_dir(local(name.as_bytes())) {
            true => format!("{name}/data.mdb"),
            false => name.to_string(),
        };
        let file = files::open(local(name.as_bytes())).map_err(|e| file_error(&name, &e))?;
        let len = file.metadata().map_err(|e| file_error(&name, &e))?.len();
        let mut reader =
            LmdbReader { name, file, page_size: 0, pages: 0, read: 0, path: Vec::new() };
        let head = reader.bytes(0, PAGE_HEADER + 136)?;
        // The size of pages is in the description of the database of free pages.
        let size = u32_at(&head, PAGE_HEADER + 24).unwrap_or(0) as usize;
        let has_magic = u32_at(&head, PAGE_HEADER) == Some(MAGIC);
        if !has_magic || !size.is_power_of_two() || !(512..=LARGEST_PAGE).contains(&size) {
            return Err(reader.damaged());
        }
        (reader.page_size, reader.pages) = (size, len / size as u64);
        let newest = (0..2)
            .filter_map(|page| reader.page(page).ok())
            .filter(|page| u32_at(page, PAGE_HEADER) == Some(MAGIC))
            .max_by_key(|page| u64_at(page, PAGE_HEADER + 128));
        let newest = newest.ok_or_else(|| reader.damaged())?;
        let root = u64_at(&newest, PAGE_HEADER + 112).ok_or_else(|| reader.damaged())?;
        if root != u64::MAX {
            let root = reader.page(root)?;
            reader.path.push((root, 0));
        }
        Ok(reader)
    }

    fn damaged(&self) -> Error {
        err!(DataLoss, "{} is not an LMDB database, or is damaged", self.name)
    }

    fn bytes(&self, from: u64, n: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        match self.file.read_exact_at(&mut bytes, from) {
            Ok(()) => Ok(bytes),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.damaged()),
            Err(e) => Err(file_error(&self.name, &e)),
        }
    }

    fn page(&self, number: u64) -> Result<Vec<u8>> {
        ensure!(number < self.pages, DataLoss, "{}", self.damaged().message());
        self.bytes(number * self.page_size as u64, self.page_size)
    }

    /// The next key and value; `None` behind the last one.
    pub fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        loop {
            let Some((page, next)) = self.path.last_mut() else { return Ok(None) };
            let (flags, lower) = (u16_at(page, 10), u16_at(page, 12));
            let (Some(flags), Some(lower)) = (flags, lower) else { return Err(self.damaged()) };
            let nodes = usize::from(lower).saturating_sub(PAGE_HEADER) / 2;
            if *next >= nodes {
                self.path.pop();
                continue;
            }
            let place = u16_at(page, PAGE_HEADER + 2 * *next);
            *next += 1;
            let node = place.and_then(|place| page.get(usize::from(place)..)).map(<[u8]>::to_vec);
            let node = node.ok_or_else(|| self.damaged())?;
            match flags & (BRANCH | LEAF) {
                BRANCH => self.descend(&node)?,
                LEAF => return self.entry(&node).map(Some),
                _ => return Err(self.damaged()),
            }
        }
    }

    fn descend(&mut self, node: &[u8]) -> Result<()> {
        let words = [0, 2, 4].map(|from| u16_at(node, from).map(u64::from));
        let [Some(low), Some(middle), Some(high)] = words else { return Err(self.damaged()) };
        self.read += 1;
        let is_tree = self.path.len() < HIGHEST && self.read <= self.pages;
        ensure!(is_tree, DataLoss, "{}", self.damaged().message());
        let page = self.page(low | middle << 16 | high << 32)?;
        self.path.push((page, 0));
        Ok(())
    }

    fn entry(&self, node: &[u8]) -> Result<(Bytes, Bytes)> {
        let parsed = (|| {
            let size = u32_at(node, 0)? as usize;
            let (flags, key_size) = (u16_at(node, 4)?, usize::from(u16_at(node, 6)?));
            let (key, value) = node.get(8..)?.split_at_checked(key_size)?;
            Some((size, flags, Bytes::copy_from_slice(key), value))
        })();
        let (size, flags, key, value) = parsed.ok_or_else(|| self.damaged())?;
        ensure!(
            flags & NESTED == 0,
            Unimplemented,
            "{} has named databases or several values of a key, which are not supported",
            self.name
        );
        if flags & LARGE == 0 {
            let value = value.get(..size).ok_or_else(|| self.damaged())?;
            return Ok((key, Bytes::copy_from_slice(value)));
        }
        let first = u64_at(value, 0).ok_or_else(|| self.damaged())?;
        let head = self.page(first)?;
        let start = first.saturating_mul(self.page_size as u64).saturating_add(PAGE_HEADER as u64);
        let end = start.saturating_add(size as u64);
        let is_there = end <= self.pages.saturating_mul(self.page_size as u64);
        if u16_at(&head, 10).is_none_or(|flags| flags & OVERFLOW == 0) || !is_there {
            return Err(self.damaged());
        }
        limits().record.admit(size, format_args!("the reader of {}", self.name))?;
        let _while_reading = Reservation::new(size)?;
        Ok((key, Bytes::from(self.bytes(start, size)?)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SIZE: usize = 4096;

    /// A database of one leaf, with the last value in pages of its own.
    pub(crate) fn database(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let meta = |number: u64| {
            let mut page = vec![0u8; SIZE];
            page[..8].copy_from_slice(&number.to_le_bytes());
            page[10] = 8;
            let mut put = |at: usize, bytes: &[u8]| {
                page[PAGE_HEADER + at..][..bytes.len()].copy_from_slice(bytes);
            };
            put(0, &MAGIC.to_le_bytes());
            put(4, &1u32.to_le_bytes());
            put(24, &(SIZE as u32).to_le_bytes());
            put(64, &u64::MAX.to_le_bytes());
            // Of two descriptions the newer one counts: the first has no root.
            put(112, &(if number == 1 { 2 } else { u64::MAX }).to_le_bytes());
            put(128, &number.to_le_bytes());
            page
        };
        let (mut leaf, mut large) = (vec![0u8; SIZE], Vec::new());
        leaf[..8].copy_from_slice(&2u64.to_le_bytes());
        leaf[10] = LEAF as u8;
        let mut end = SIZE;
        for (i, (key, value)) in entries.iter().enumerate() {
            let is_large = value.len() > 1000;
            let mut node = (value.len() as u32).to_le_bytes().to_vec();
            node.extend(u16::from(is_large).to_le_bytes());
            node.extend((key.len() as u16).to_le_bytes());
            node.extend(key.as_bytes());
            match is_large {
                true => {
                    node.extend(3u64.to_le_bytes());
                    large = vec![0u8; (PAGE_HEADER + value.len()).next_multiple_of(SIZE)];
                    large[..8].copy_from_slice(&3u64.to_le_bytes());
                    large[10] = OVERFLOW as u8;
                    large[PAGE_HEADER..][..value.len()].copy_from_slice(value);
                }
                false => node.extend(*value),
            }
            end -= node.len().next_multiple_of(2);
            leaf[end..][..node.len()].copy_from_slice(&node);
            leaf[PAGE_HEADER + 2 * i..][..2].copy_from_slice(&(end as u16).to_le_bytes());
        }
        let lower = (PAGE_HEADER + 2 * entries.len()) as u16;
        leaf[12..14].copy_from_slice(&lower.to_le_bytes());
        leaf[14..16].copy_from_slice(&(end as u16).to_le_bytes());
        [meta(0), meta(1), leaf, large].concat()
    }

    #[test]
    fn entries_come_in_order_and_damage_is_an_error() {
        let file = std::env::temp_dir().join(format!("ferroflow-{}.mdb", std::process::id()));
        let name = file.to_string_lossy().into_owned();
        let long = vec![7u8; 5000];
        let whole = database(&[("a", b"one"), ("b", b""), ("c", &long)]);
        std::fs::write(&file, &whole).unwrap();
        let mut reader = LmdbReader::open(&name).unwrap();
        let mut found = Vec::new();
        while let Some(pair) = reader.next().unwrap() {
            found.push(pair);
        }
        assert_eq!(found.len(), 3);
        assert_eq!((&found[0].0[..], &found[0].1[..]), (&b"a"[..], &b"one"[..]));
        assert_eq!(found[1].1, Bytes::new());
        assert_eq!(found[2].1, long);
        for end in [0, 10, 2 * SIZE + 20, 3 * SIZE + 8] {
            std::fs::write(&file, &whole[..end]).unwrap();
            let read = LmdbReader::open(&name).and_then(|mut reader| {
                while reader.next()?.is_some() {}
                Ok(())
            });
            assert_eq!(read.unwrap_err().code(), Code::DataLoss, "{end} bytes");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
