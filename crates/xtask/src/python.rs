//! `cargo xtask wheel` and `cargo xtask python`: the Python package in `python/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::Profile;
use crate::paths;
use crate::steps::{self, Failure, Result};

const MATURIN: &str = "maturin==1.9.4";
const WHEELS: &str = "target/wheels";
const TESTS: &str = "python/tests";

/// Build the Python wheel into target/wheels/.
#[derive(clap::Args)]
pub struct WheelArgs {}

/// Install the wheel into a fresh environment with numpy alone, and run the tests in python/tests/.
#[derive(clap::Args)]
pub struct Args {
    /// Only build the extension, quickly, and put it into python/ferroflow/; then
    /// `PYTHONPATH=python python3` runs the package from its sources
    #[arg(long)]
    develop: bool,

    /// With --develop: optimize, for measurements
    #[arg(long, requires = "develop")]
    release: bool,

    /// Run the tests of these modules only, such as `test_graph`
    #[arg(value_name = "MODULE")]
    only: Vec<String>,
}

pub fn run_wheel(_: &WheelArgs) -> Result {
    println!("{}", paths::shown(&wheel(Profile::Release)?));
    Ok(())
}

pub fn run(args: &Args) -> Result {
    if args.develop { develop(args.release) } else { test(Profile::Release, &args.only) }
}

/// The step of the check: the package works where there is no TensorFlow.
pub fn checked(profile: Profile) -> Result {
    test(profile, &[])
}

fn develop(release: bool) -> Result {
    let mut build = steps::cargo(&["build", "-p", "ferroflow-python"]);
    if release {
        build.arg("--release");
    }
    steps::run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    let built = paths::target().join(profile).join("lib_ferroflow.so");
    let place = paths::root().join("python/ferroflow/_ferroflow.abi3.so");
    // A new file: a process may have loaded the old one.
    let _ = fs::remove_file(&place);
    fs::copy(&built, &place)
        .map_err(|e| Failure(format!("cannot copy {}: {e}", paths::shown(&built))))?;
    println!("{} is ready: PYTHONPATH=python python3", paths::shown(&place));
    Ok(())
}

fn wheel(profile: Profile) -> Result<PathBuf> {
    let tools = environment(".venv/wheel", &[MATURIN])?;
    let folder = paths::root().join(WHEELS);
    let _ = fs::remove_dir_all(&folder);
    let mut build = Command::new(tools.join("bin/maturin"));
    build.args(["build", "--manifest-path", "crates/ferroflow-python/Cargo.toml", "--out", WHEELS]);
    build.args(["--profile", if profile == Profile::Release { "release" } else { "dev" }]);
    steps::run(&mut build)?;
    let found = fs::read_dir(&folder).ok().and_then(|mut files| files.next()?.ok());
    found.map(|file| file.path()).ok_or_else(|| Failure(format!("{WHEELS} is empty")))
}

fn test(profile: Profile, only: &[String]) -> Result {
    let wheel = wheel(profile)?;
    let folder = paths::target().join("python-check");
    let _ = fs::remove_dir_all(&folder);
    steps::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let python = folder.join("bin/python");
    pip(&python, &[&paths::shown(&wheel)])?;
    // Outside of the sources, so that the installed package is the one that is tested.
    let mut tests = Command::new(&python);
    tests.args(["-I", "-m", "unittest"]);
    if only.is_empty() {
        tests.args(["discover", "-s", TESTS, "-t", TESTS]);
    } else {
        tests.args(only.iter().map(|module| format!("{TESTS}/{module}.py")));
    }
    steps::run(&mut tests)
}

/// A virtual environment with these packages, made once.
fn environment(folder: &str, packages: &[&str]) -> Result<PathBuf> {
    let root = paths::root().join(folder);
    let stamp = root.join("installed.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(root);
    }
    let _ = fs::remove_dir_all(&root);
    steps::run(Command::new("python3").args(["-m", "venv", folder]))?;
    pip(&root.join("bin/python"), packages)?;
    fs::write(&stamp, wanted).map_err(|e| Failure(format!("cannot write in {folder}: {e}")))?;
    Ok(root)
}

fn pip(python: &Path, packages: &[&str]) -> Result {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    install.args(packages);
    steps::run(&mut install)
}
