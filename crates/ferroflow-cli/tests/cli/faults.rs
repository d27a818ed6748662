//! The outcome of a client's call when a task of its cluster is killed or stopped. Cutting off
//! hosts needs network namespaces: those tests are in `hosts/`.

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
