//! The `ferroflow` command inside the wheel.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the command with these words, the first of which is its name. Returns the exit status.
/// `program` is the script that starts the command again, for the processes that it starts.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>, program: PathBuf) -> i32 {
    py.detach(|| i32::from(ferroflow_command::main_from(words, Some(program))))
}
