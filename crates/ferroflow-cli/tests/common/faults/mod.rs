//! The matrix of faults: every role, at every phase, with real processes.

pub mod cell;
pub mod cluster;
pub mod document;
mod graphs;
mod sockets;

use cell::{Cell, Fault, Phase, Role};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cells that run at the same time: most of them wait for a timeout.
const AT_ONCE: usize = 6;

/// Runs all cells of a fault and reports all failures. `FAULTS=Checkpoint` runs only the cells
/// whose names contain that.
pub fn try_all(fault: Fault) {
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

pub fn try_cells(cells: &[Cell]) {
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
