//! The release build of the `ferroflow` command.

use crate::paths;
use crate::steps::{self, Failure, Result};

/// Builds the command and checks that it lies where `paths::ferroflow` says.
pub fn build() -> Result {
    steps::run(&mut steps::cargo(&[
        "build",
        "--release",
        "--package",
        "ferroflow-cli",
        "--bin",
        "ferroflow",
    ]))?;
    let binary = paths::ferroflow();
    match binary.metadata() {
        Ok(file) => {
            println!("{}: {:.1} MB", paths::shown(&binary), file.len() as f64 / (1 << 20) as f64);
            Ok(())
        }
        Err(e) => Err(Failure(format!("the build left no {}: {e}", paths::shown(&binary)))),
    }
}
