//! `cargo xtask venv`: the virtual environment with TensorFlow, for `conformance/` and `bench/`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::background::Background;
use crate::paths;
use crate::steps::{self, Failure, Result};

const FOLDER: &str = ".venv/tf-2.15.1";
const REQUIREMENTS: &str = "conformance/requirements.txt";

/// A copy of the installed requirements, written last: the environment is complete while both are
/// equal.
const STAMP: &str = "installed.txt";

/// Make the virtual environment with TensorFlow 2.15.1 that `conformance` and `bench` use.
///
/// Those commands run it themselves. It is made once, under .venv/, from the exact versions in
/// conformance/requirements.txt, and again when that file changes.
#[derive(clap::Args)]
pub struct Args {
    /// Remove the environment first
    #[arg(long)]
    fresh: bool,
}

pub fn run(args: &Args) -> Result {
    if args.fresh {
        remove(&paths::root().join(FOLDER))?;
    }
    println!("{}", paths::shown(&python()?));
    Ok(())
}

/// Starts to make the environment if it is missing or stale.
pub fn in_background() -> Result<Option<Background>> {
    if ready()?.is_some() {
        return Ok(None);
    }
    let own = std::env::current_exe().map_err(|e| Failure(format!("cannot find xtask: {e}")))?;
    let mut command = Command::new(own);
    command.arg("venv");
    Background::start("venv", command).map(Some)
}

/// The interpreter of the environment, if that has the packages of the requirements.
fn ready() -> Result<Option<PathBuf>> {
    let folder = paths::root().join(FOLDER);
    let python = folder.join("bin/python");
    let wanted = requirements()?;
    let is_ready = fs::read_to_string(folder.join(STAMP)).is_ok_and(|found| found == wanted);
    Ok((is_ready && python.is_file()).then_some(python))
}

fn requirements() -> Result<String> {
    let path = paths::root().join(REQUIREMENTS);
    fs::read_to_string(path).map_err(|e| Failure(format!("cannot read {REQUIREMENTS}: {e}")))
}

/// The interpreter of the environment. Makes the environment first if it is missing or stale.
pub fn python() -> Result<PathBuf> {
    if let Some(python) = ready()? {
        return Ok(python);
    }
    let folder = paths::root().join(FOLDER);
    let python = folder.join("bin/python");
    let wanted = requirements()?;
    let began = Instant::now();
    let base = python_3_11()?;
    println!(
        "making {FOLDER} with {base} and the {} packages of {REQUIREMENTS}",
        packages(&wanted)
    );
    println!("(once; about 300 MB to download and 1.3 GB on disk)");
    remove(&folder)?;
    steps::run(Command::new(base).args(["-m", "venv", FOLDER]))?;
    install(&python)?;
    println!("checking that TensorFlow loads");
    let check = "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'; import tensorflow as t; print(t.__version__)";
    steps::run(Command::new(&python).args(["-c", check]))?;
    fs::write(folder.join(STAMP), wanted)
        .map_err(|e| Failure(format!("cannot write {FOLDER}/{STAMP}: {e}")))?;
    println!("{FOLDER} is ready, {}", steps::time_text(began.elapsed()));
    Ok(python)
}

/// Runs pip, and prints the steps that take time: the downloads and the installation.
fn install(python: &Path) -> Result {
    let mut command = Command::new(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]);
    command.args(["-r", REQUIREMENTS]).current_dir(paths::root()).stdout(Stdio::piped());
    let cannot = |e| Failure(format!("cannot run pip: {e}"));
    let mut pip = command.spawn().map_err(cannot)?;
    let output = pip.stdout.take().expect("stdout is piped");
    for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
        let line = line.trim();
        if line.starts_with("Downloading ") {
            println!(
                "  {}",
                line.rsplit('/').next().unwrap_or(line).trim_start_matches("Downloading ")
            );
        } else if line.starts_with("Installing ") {
            println!("installing them");
        }
    }
    let status = pip.wait().map_err(cannot)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure(format!("pip could not install {REQUIREMENTS} ({status}); its output is above")))
}

/// TensorFlow 2.15.1 has no build for a newer Python, and the other packages are pinned for 3.11.
fn python_3_11() -> Result<&'static str> {
    let is_3_11 = |name: &&str| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|out| out.status.success() && out.stdout.starts_with(b"Python 3.11."))
    };
    ["python3.11", "python3", "python"].into_iter().find(is_3_11).ok_or_else(|| {
        Failure(
            "Python 3.11 is needed, and none of python3.11, python3 and python on the PATH is one"
                .into(),
        )
    })
}

fn packages(requirements: &str) -> usize {
    requirements.lines().filter(|line| line.contains("==")).count()
}

fn remove(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure(format!("cannot remove {}: {e}", paths::shown(folder))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned() {
        let text = fs::read_to_string(paths::root().join(REQUIREMENTS)).unwrap();
        let wanted: Vec<_> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(packages(&text), wanted.len());
        assert!(wanted.contains(&"tensorflow-cpu==2.15.1"));
    }
}
