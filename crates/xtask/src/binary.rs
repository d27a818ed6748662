//! The `ferroflow` command, built for other commands of this program.

use std::path::PathBuf;

use crate::paths;
use crate::steps::{self, Failure, Result};

/// How the command is built.
#[derive(Clone, Copy, PartialEq)]
pub enum Profile {
    /// As the tests build it, so that little is left to compile after them.
    Dev,
    /// As users build it.
    Release,
}

impl Profile {
    /// The release profile if `release`.
    pub fn new(release: bool) -> Profile {
        if release { Profile::Release } else { Profile::Dev }
    }
}

/// Where [`build`] leaves the command.
pub fn path(profile: Profile) -> PathBuf {
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
    };
    paths::target().join(folder).join("ferroflow")
}

/// Builds the command and returns its path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let args: &[&str] = match profile {
        // With the features of the workspace, as the tests are built.
        Profile::Dev => &["--workspace"],
        Profile::Release => &["--release", "--package", "ferroflow-cli"],
    };
    steps::run(&mut steps::cargo(&[&["build", "--bin", "ferroflow"], args].concat()))?;
    let binary = path(profile);
    match binary.metadata() {
        Ok(file) => {
            println!("{}: {:.1} MB", paths::shown(&binary), file.len() as f64 / (1 << 20) as f64);
            Ok(binary)
        }
        Err(e) => Err(Failure(format!("the build left no {}: {e}", paths::shown(&binary)))),
    }
}
