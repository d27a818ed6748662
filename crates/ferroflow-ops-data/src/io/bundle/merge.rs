//! Merging bundles that several tasks wrote into one.

use super::reader::BundleReader;
use super::writer::write_index;
use super::{
    apart_from, data_file, ensure_directory, exists, index_file, remove, remove_replaced, rename,
    shards_of,
};
use crate::prelude::*;
use std::collections::BTreeMap;

/// Merges several bundles into one: their data files are renamed, and a new index lists them all.
/// With `allow_missing`, missing bundles are skipped.
pub(crate) fn merge(prefixes: &[String], to: &str, allow_missing: bool) -> Result<()> {
    let mut shards: Vec<(String, u32)> = Vec::new();
    let mut old_indexes = Vec::new();
    let mut all: BTreeMap<Vec<u8>, super::entry::Entry> = BTreeMap::new();
    for prefix in prefixes {
        if !exists(&index_file(prefix)) {
            ensure!(
                allow_missing,
                InvalidArgument,
                "allow_missing_files was set to false and {prefix} did not exist.NOT_FOUND: {prefix} \
                 not found"
            );
            continue;
        }
        let bundle = BundleReader::open(prefix)?;
        old_indexes.push(index_file(prefix));
        // Data files keep their order; each has a number of its own in the new bundle.
        let first = shards.len() as u32;
        for shard in 0..bundle.shards {
            shards.push((data_file(prefix, shard, bundle.shards), first + shard));
        }
        for (key, mut entry) in bundle.entries {
            ensure!(
                entry.shard < bundle.shards,
                DataLoss,
                "an entry of {prefix} is in data file {} of {}",
                entry.shard,
                bundle.shards
            );
            if entry.slices.is_empty() {
                entry.shard += first;
            }
            match all.get_mut(&key) {
                None => {
                    all.insert(key, entry);
                }
                Some(known) if !known.slices.is_empty() && !entry.slices.is_empty() => {
                    ensure!(
                        known.dtype == entry.dtype && known.shape == entry.shape,
                        InvalidArgument,
                        "the slices of {} do not agree",
                        key.escape_ascii()
                    );
                    known.slices.extend(entry.slices);
                }
                Some(_) => bail!(
                    InvalidArgument,
                    "Duplicate tensor keyed by {} encountered, when merging prefix: {prefix}",
                    key.escape_ascii()
                ),
            }
        }
    }
    ensure!(
        !old_indexes.is_empty(),
        InvalidArgument,
        "At least one prefix checkpoint file must exist, but none existed."
    );
    ensure_directory(to)?;
    let replaced = if prefixes.iter().any(|p| p == to) { None } else { shards_of(to) };
    let count = apart_from(replaced, shards.len() as u32);
    for (old, number) in &shards {
        rename(old, &data_file(to, *number, count))?;
    }
    write_index(to, &all, count)?;
    old_indexes.iter().filter(|index| **index != index_file(to)).for_each(|index| remove(index));
    remove_replaced(to, replaced);
    Ok(())
}
