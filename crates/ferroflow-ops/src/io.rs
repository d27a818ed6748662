//! The outside world: files, checkpoints, summaries, messages.

mod file;

pub(crate) use file::read_file;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    file::register(c);
}
