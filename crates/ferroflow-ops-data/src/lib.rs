//! Ops that read and write data outside a graph: datasets, files and checkpoints, records, text,
//! and sparse tensors.
#![forbid(unsafe_code)]

mod checkpoint_files;
mod data;
#[doc(hidden)]
pub mod fuzzing;
mod io;
mod parse;
mod sparse;
mod string;
#[cfg(test)]
mod testing;

pub use checkpoint_files::CheckpointFile;

use ferroflow_graph::Catalog;
use ferroflow_op_kit::prelude;

/// Adds the ops of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    data::register(c);
    io::register(c);
    parse::register(c);
    sparse::register(c);
    string::register(c);
}
