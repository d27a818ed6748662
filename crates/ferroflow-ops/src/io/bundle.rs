//! Checkpoints as files: tensor bundles (an index, and data files beside it), and the single file
//! of TensorFlow's first format. Knows nothing of ops; [`super::checkpoint`] has those.
//!
//! Files are written under temporary names and renamed when they are whole, so that a reader never
//! meets half of one.

mod boxes;
mod entry;
mod first_format;
mod merge;
mod reader;
mod slice;
mod snappy;
mod table;
mod writer;

pub(crate) use first_format::{FirstReader, FirstWriter};
pub(crate) use merge::merge;
pub(crate) use reader::BundleReader;
pub(crate) use slice::{Slice, parse_spec};
pub(crate) use writer::BundleWriter;

use super::file::{file_error, local};
use crate::prelude::*;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a checksum differ from those of the data it may be embedded in, as LevelDB does.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn unmasked(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

fn index_file(prefix: &str) -> String {
    format!("{prefix}.index")
}

fn data_file(prefix: &str, shard: u32, shards: u32) -> String {
    format!("{prefix}.data-{shard:05}-of-{shards:05}")
}

/// A file that appears under its name when it is whole, and not at all otherwise.
struct NewFile {
    name: String,
    temporary: PathBuf,
    file: Option<File>,
}

impl NewFile {
    fn create(name: &str) -> Result<NewFile> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{name}.tempstate{}_{n}", std::process::id());
        let temporary = local(temporary.as_bytes()).to_path_buf();
        let file = File::create(&temporary).map_err(|e| file_error(name, &e))?;
        Ok(NewFile { name: name.into(), temporary, file: Some(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let file = self.file.as_mut().expect("open until it is finished");
        file.write_all(bytes).map_err(|e| file_error(&self.name, &e))
    }

    fn finish(mut self) -> Result<()> {
        drop(self.file.take());
        std::fs::rename(&self.temporary, local(self.name.as_bytes())).map_err(|e| {
            let _ = std::fs::remove_file(&self.temporary);
            file_error(&self.name, &e)
        })
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Makes the directory a file goes to, unless it is there; its parent must be.
fn ensure_directory(file: &str) -> Result<()> {
    let Some(dir) = local(file.as_bytes()).parent() else { return Ok(()) };
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    match std::fs::create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(file_error(&dir.to_string_lossy(), &e))
        }
        _ => Ok(()),
    }
}

fn exists(name: &str) -> bool {
    Path::exists(local(name.as_bytes()))
}
