//! The outside world: files, checkpoints, summaries, messages.

pub(crate) mod bundle;
mod checkpoint;
mod file;
mod message;
pub(crate) mod pb;
mod reader;
pub(crate) mod records;
pub(crate) mod summarize;
mod summary;

pub(crate) use file::{file_error, files_matching, local, read_file};

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    checkpoint::register(c);
    file::register(c);
    message::register(c);
    reader::register(c);
    summary::register(c);
}
