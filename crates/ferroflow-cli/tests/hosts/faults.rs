//! The outcome of a client's call when a host of its cluster is cut off.

use crate::common::faults::cell::{Cell, Fault};
use crate::common::faults::{try_all, try_cells};

pub fn every_call_ends_after_a_task_is_cut_off() {
    try_all(Fault::CutOff);
}

pub fn every_call_ends_when_only_the_master_reaches_both() {
    try_cells(&[Cell::APART]);
}
