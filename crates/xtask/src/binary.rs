//! The `ferroflow` command, built for other commands of this program.

use std::path::PathBuf;

use crate::linted;
use crate::paths;
use crate::steps::{self, Failure, Result};

/// How the command is built.
#[derive(Clone, Copy, PartialEq)]
pub enum Profile {
    /// As `cargo test` builds it, so that little remains to compile after the tests.
    Dev,
    /// As the check builds its tests, so that little remains to compile after them.
    Checked,
    /// As users build it.
    Release,
}

impl Profile {
    /// The release profile if `release`.
    pub fn new(release: bool) -> Profile {
        if release { Profile::Release } else { Profile::Dev }
    }

    /// The release profile if `release`, and otherwise that of a check.
    pub fn of_check(release: bool) -> Profile {
        if release { Profile::Release } else { Profile::Checked }
    }
}

/// Selects packages and targets so that dependencies have the same features as in tests: those that
/// the workspace and its tests need.
pub const AS_TESTS: [&str; 3] = ["--workspace", "--test", "cli"];

/// Where [`build`] leaves the command.
pub fn path(profile: Profile) -> PathBuf {
    let folder = match profile {
        Profile::Dev | Profile::Checked => "debug",
        Profile::Release => "release",
    };
    paths::target().join(folder).join("ferroflow")
}

/// Builds the command and returns its path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let args: &[&str] = match profile {
        Profile::Dev | Profile::Checked => &AS_TESTS,
        Profile::Release => &["--release", "--package", "ferroflow-cli"],
    };
    let mut command = steps::cargo(&[&["build", "--bin", "ferroflow"], args].concat());
    if profile == Profile::Checked {
        linted::with_clippy(&mut command)?;
    }
    steps::run(&mut command)?;
    let binary = path(profile);
    match binary.metadata() {
        Ok(file) => {
            println!("{}: {:.1} MB", paths::shown(&binary), file.len() as f64 / (1 << 20) as f64);
            Ok(binary)
        }
        Err(e) => Err(Failure(format!("the build left no {}: {e}", paths::shown(&binary)))),
    }
}
