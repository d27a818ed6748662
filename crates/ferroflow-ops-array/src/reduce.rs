//! Reductions, scans and segments.

pub(crate) mod axes;
pub(crate) mod fold;

mod arg;
mod ops;
mod scan;
pub mod segment;
mod segment_device;
mod sparse_segment;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    arg::register(c);
    ops::register(c);
    scan::register(c);
    segment::register(c);
    sparse_segment::register(c);
}
