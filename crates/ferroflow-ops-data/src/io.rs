//! Files, checkpoints, summaries and messages.

pub(crate) mod bundle;
mod checkpoint;
mod file;
pub(crate) mod lmdb;
mod message;
mod reader;
mod record_input;
pub(crate) mod records;
mod remap;
mod skipgram;
pub(crate) mod summarize;
pub(crate) mod summary;
mod wav;

pub(crate) use file::files_matching;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    checkpoint::register(c);
    file::register(c);
    message::register(c);
    reader::register(c);
    record_input::register(c);
    remap::register(c);
    skipgram::register(c);
    summary::register(c);
    wav::register(c);
}
