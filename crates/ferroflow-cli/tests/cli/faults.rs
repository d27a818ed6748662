//! What a client's call ends with when a task of its cluster is killed or stopped. The tests of
//! hosts that are cut off need network namespaces and are in `hosts/`.

use crate::common::faults::cell::Fault;
use crate::common::faults::{document, try_all};

#[test]
fn every_call_ends_after_a_task_is_killed() {
    try_all(Fault::Killed);
}

#[test]
fn every_call_ends_after_a_task_is_stopped() {
    try_all(Fault::Stopped);
}

#[test]
fn the_table_in_the_docs_says_what_is_tested() {
    document::check();
}
