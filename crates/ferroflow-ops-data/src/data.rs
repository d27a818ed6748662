//! Data pipelines: datasets, which are values, and iterators, which are resources.
//!
//! A dataset ([`dataset::Dataset`]) describes a sequence. Iterating over it gives
//! [`dataset::Elements`], which are pulled: `next()` is a future composed of the futures of the
//! input datasets and of the functions that they call. No thread ever waits for an element.
//! Background work (prefetching, parallel calls) is a [`task::Background`] that its iterator owns
//! and that fills a bounded [`wait::Buffer`].

mod batch;
mod cache;
mod combine;
mod count;
mod csv;
mod dataset;
mod dense_to_sparse;
mod element;
mod fill_table;
mod filter;
mod function;
mod generator;
mod group;
mod handle;
mod interleave;
mod iterator;
mod lmdb;
mod map;
mod map_defun;
mod matching_files;
mod multi_device;
mod padded_batch;
mod parallel_interleave;
mod parallel_map;
mod parse_example;
mod prefetch;
mod random;
mod records;
mod same;
mod scan;
mod scope;
mod seeds;
mod shuffle;
mod sleep;
mod snapshot;
mod snapshot_files;
mod sources;
mod sparse_slices;
mod sql;
mod stats;
mod task;
#[cfg(test)]
mod testing;
mod unbatch;
mod unique;
mod wait;
mod whole;
mod window;

pub(crate) use task::{before_io, run_kernel, take_turn};
pub(crate) use wait::Turns;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    batch::register(c);
    cache::register(c);
    combine::register(c);
    count::register(c);
    csv::register(c);
    dense_to_sparse::register(c);
    element::register(c);
    fill_table::register(c);
    filter::register(c);
    generator::register(c);
    group::register(c);
    handle::register(c);
    interleave::register(c);
    iterator::register(c);
    lmdb::register(c);
    map::register(c);
    map_defun::register(c);
    matching_files::register(c);
    multi_device::register(c);
    padded_batch::register(c);
    parallel_interleave::register(c);
    parallel_map::register(c);
    parse_example::register(c);
    prefetch::register(c);
    random::register(c);
    records::register(c);
    same::register(c);
    scan::register(c);
    seeds::register(c);
    shuffle::register(c);
    sleep::register(c);
    snapshot::register(c);
    sources::register(c);
    sparse_slices::register(c);
    sql::register(c);
    stats::register(c);
    unbatch::register(c);
    unique::register(c);
    whole::register(c);
    window::register(c);
}
