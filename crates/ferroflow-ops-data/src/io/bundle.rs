//! Checkpoints as files: tensor bundles (an index, and data files beside it), and the single file
//! of TensorFlow's first format. The ops are in [`super::checkpoint`].
//!
//! Files are written under temporary names and renamed when they are complete, so that a reader
//! never sees a partial file. The index is renamed last. It names the data files by their number,
//! so a bundle that replaces another has another number of data files. Until the new index is in
//! place the old bundle is valid, after that the new one. Each file is forced to the disk before it
//! is renamed, and its folder after that. So this also holds when the machine crashes.

mod boxes;
mod entry;
mod first_format;
mod merge;
mod new_file;
mod reader;
mod slice;
mod snappy;
mod table;
mod variants;
mod writer;

pub(crate) use first_format::{FirstReader, FirstWriter};
pub(crate) use merge::merge;
pub(crate) use reader::BundleReader;
pub(crate) use slice::{Slice, parse_spec};
pub(crate) use snappy::decompress as unpack_snappy;
pub(crate) use writer::BundleWriter;

use crate::prelude::*;
use ferroflow_core::files;
use ferroflow_op_kit::file::{file_error, local};
use new_file::{NewFile, remove, rename};

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

/// Makes the directory of a file unless it exists; its parent must exist.
fn ensure_directory(file: &str) -> Result<()> {
    let Some(dir) = local(file.as_bytes()).parent() else { return Ok(()) };
    if dir.as_os_str().is_empty() || files::is_dir(dir) {
        return Ok(());
    }
    match files::create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(file_error(&dir.to_string_lossy(), &e))
        }
        _ => Ok(()),
    }
}

/// How many data files the bundle of this name has; `None` if there is none, or none that can be
/// read.
fn shards_of(prefix: &str) -> Option<u32> {
    BundleReader::open(prefix).ok().map(|bundle| bundle.shards)
}

/// `shards`, or one more when the bundle that is to be replaced has as many: its data files must
/// not be touched before the new index is in place. The file with the highest number is then
/// absent.
fn apart_from(replaced: Option<u32>, shards: u32) -> u32 {
    if replaced == Some(shards) { shards + 1 } else { shards }
}

/// Removes the data files of a bundle that has been replaced.
fn remove_replaced(prefix: &str, replaced: Option<u32>) {
    let shards = replaced.unwrap_or(0);
    for shard in 0..shards {
        remove(&data_file(prefix, shard, shards));
    }
}

fn exists(name: &str) -> bool {
    files::exists(local(name.as_bytes()))
}

/// Reads an index, and what it says of its tensors.
pub(crate) fn fuzz_table(index: &[u8]) {
    if let Ok(bundle) = BundleReader::from_index("fuzz", index) {
        for name in bundle.names() {
            let _ = bundle.find(&name);
        }
    }
}

/// An index with this many tensors.
pub(crate) fn sample_index(tensors: usize) -> Vec<u8> {
    let mut entries = std::collections::BTreeMap::new();
    for i in 0..tensors {
        let entry = entry::Entry::partitioned(DType::Float, Shape::from([i, 3]));
        entries.insert(format!("tensor/{i}").into_bytes(), entry.encode());
    }
    table::write_table(&entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::{child, this_test};
    use std::process::Stdio;

    fn save(prefix: &str, value: f32) -> Result<()> {
        let mut bundle = BundleWriter::create(prefix)?;
        for name in ["a", "b"] {
            bundle.add(name, &Tensor::vector(&vec![value; 100_000]))?;
        }
        bundle.finish()
    }

    fn save_in_parts(prefix: &str, value: f32) -> Result<()> {
        let parts = ["a", "b"].map(|name| (name, format!("{prefix}_temp_{name}")));
        for (name, part) in &parts {
            let mut bundle = BundleWriter::create(part)?;
            bundle.add(name, &Tensor::vector(&vec![value; 100_000]))?;
            bundle.finish()?;
        }
        merge(&parts.map(|(_, part)| part), prefix, false)
    }

    /// The one value that all elements of both tensors have.
    fn value(prefix: &str) -> Result<f32> {
        let bundle = BundleReader::open(prefix)?;
        let mut values = Vec::new();
        for name in ["a", "b"] {
            values.extend_from_slice(bundle.read(name)?.as_slice::<f32>()?);
        }
        ensure!(values.len() == 200_000, DataLoss, "{} values", values.len());
        ensure!(values.iter().all(|v| *v == values[0]), DataLoss, "a mix of checkpoints");
        Ok(values[0])
    }

    /// The child process: saves, and exits after a number of file operations.
    fn save_and_die(scene: &str) {
        let [kind, operations, prefix] = scene.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{scene}")
        };
        new_file::crash::after(operations.parse().unwrap());
        match kind {
            "parts" => save_in_parts(prefix, 2.0).unwrap(),
            _ => save(prefix, 2.0).unwrap(),
        }
    }

    #[test]
    fn a_crash_at_any_point_leaves_the_old_or_the_new_checkpoint() {
        if let Some(scene) = child::role() {
            return save_and_die(&scene);
        }
        let dir = std::env::temp_dir().join(format!("ferroflow-crash-{}", std::process::id()));
        for kind in ["whole", "parts"] {
            let (mut old_seen, mut new_seen) = (0, 0);
            for operations in 0.. {
                let _ = std::fs::remove_dir_all(&dir);
                let prefix = format!("{}/model", dir.display());
                std::fs::create_dir_all(&dir).unwrap();
                // Written twice, because a replaced file may itself have replaced another.
                save(&prefix, 0.0).unwrap();
                if operations % 2 == 1 {
                    save_in_parts(&prefix, 0.5).unwrap();
                }
                save(&prefix, 1.0).unwrap();
                let scene = format!("{kind} {operations} {prefix}");
                let mut child = child::command(this_test!(), &scene);
                let child = child.stdout(Stdio::null()).stderr(Stdio::null()).status();
                let survived = child.unwrap().success();
                match value(&prefix) {
                    Ok(1.0) => old_seen += 1,
                    Ok(2.0) => new_seen += 1,
                    other => panic!("{kind} checkpoint, {operations} operations: {other:?}"),
                }
                // Files that a failed save left behind do not block a later save.
                save(&prefix, 3.0).unwrap();
                assert_eq!(value(&prefix).unwrap(), 3.0);
                if survived {
                    break;
                }
            }
            assert!(old_seen > 4 && new_seen > 1, "{kind}: {old_seen} old, {new_seen} new");
        }
        let _ = std::fs::remove_dir_all(&dir);
    }
}
