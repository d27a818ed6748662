//! The all-reduce example as a user starts it under a launcher: just the program, without
//! variables.
//!
//! It is the Rust example `hvd_mlp`, which this test program runs itself. `HVD_EXAMPLE` replaces it
//! by another command, such as `python train.py`: `cargo xtask python` runs these tests once more
//! with the Python package.

#[path = "../../../ferroflow/examples/hvd_mlp.rs"]
mod hvd_mlp;

use crate::common::folder;
use ferroflow_testing::child;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

const ROLE: &str = "hvd example";

/// A command that trains over all ranks that a launcher starts.
pub struct Example {
    pub words: Vec<String>,
    folder: PathBuf,
}

impl Example {
    pub fn new() -> Example {
        let folder = folder("example");
        if let Ok(command) = std::env::var("HVD_EXAMPLE") {
            return Example { words: command.split_whitespace().map(Into::into).collect(), folder };
        }
        // The launchers start a script, so that its ranks know their role on any host.
        let program = folder.join("train");
        let own = std::env::current_exe().unwrap();
        let script = format!("#!/bin/sh\n{}='{ROLE}' exec '{}'\n", child::ROLE, own.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Example { words: vec![program.display().to_string()], folder }
    }

    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether a launcher has started this process as a rank of the example.
pub fn is_rank() -> bool {
    child::role().as_deref() == Some(ROLE)
}

/// The example. It exits with an error if the training did not converge.
pub fn run() {
    if let Err(e) = hvd_mlp::main() {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

/// The training has succeeded, on two ranks.
pub fn check(out: &Output) {
    let said =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && said.contains("2 ranks"), "{said}");
}
