//! Builds in which clippy checks the crates of the workspace while it compiles them.
//!
//! `cargo clippy` compiles nothing that a test or a program can use, so a check that builds the
//! tests after it compiles twice. Cargo keeps these builds apart from others: every command that
//! uses the results of one must be prepared in the same way.

use std::path::Path;
use std::process::Command;

use crate::steps::{Failure, Result};

/// Makes `command` compile with clippy's driver. Warnings are errors.
pub fn with_clippy(command: &mut Command) -> Result {
    let failed = |e| Failure(format!("cannot run rustc: {e}"));
    let found = Command::new("rustc").args(["--print", "sysroot"]).output().map_err(failed)?;
    let sysroot = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let driver = Path::new(&sysroot).join("bin/clippy-driver");
    if !driver.is_file() {
        return Err(Failure("clippy is missing: rustup component add clippy".into()));
    }
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    // The value that `cargo clippy -- -D warnings` sets.
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    Ok(())
}
