//! What becomes of a client's work when a task of its cluster is killed, stopped or cut off: every
//! role, at every phase, with real processes. `docs/src/reference/faults.md` is the table of what is tested here.
#![allow(clippy::unwrap_used)]

mod common;
mod faults {
    pub mod cell;
    pub mod cluster;
    pub mod document;
    pub mod graphs;
    pub mod sockets;
}

use common::netns;
use faults::cell::{Cell, Fault, Phase, Role};
use faults::document;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cells that are tried at the same time: most of them wait, for a silence to be noticed.
const AT_ONCE: usize = 6;

/// Tries all cells of a fault, and fails with what went wrong in any of them. `FAULTS=Checkpoint` tries those
/// with that in their name alone.
fn try_all(fault: Fault) {
    let only = std::env::var("FAULTS").unwrap_or_default();
    let cells: Vec<Cell> = Role::ALL
        .iter()
        .flat_map(|role| {
            Phase::ALL.iter().map(move |phase| Cell { role: *role, phase: *phase, fault })
        })
        .filter(|cell| cell.to_string().contains(&only))
        .collect();
    try_cells(&cells);
}

fn try_cells(cells: &[Cell]) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match cell.check() {
                        Ok(report) => println!("{cell}: {report}"),
                        Err(why) => wrong.lock().unwrap().push(format!("{cell}: {why}")),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}

#[test]
fn a_killed_task_hangs_nobody() {
    try_all(Fault::Killed);
}

#[test]
fn a_stopped_task_hangs_nobody() {
    try_all(Fault::Stopped);
}

#[test]
fn a_task_that_is_cut_off_hangs_nobody() {
    match netns::missing() {
        None => try_all(Fault::CutOff),
        Some(why) => eprintln!("skipped, since hosts are network namespaces here: {why}"),
    }
}

#[test]
fn tasks_that_only_the_master_reaches_hang_nobody() {
    match netns::missing() {
        None => try_cells(&[Cell::APART]),
        Some(why) => eprintln!("skipped, since hosts are network namespaces here: {why}"),
    }
}

#[test]
fn the_table_in_the_docs_says_what_is_tested() {
    document::check();
}
