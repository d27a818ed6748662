//! `cargo xtask wheel` and `cargo xtask python`: the Python package in `python/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::{AS_TESTS, Profile};
use crate::linted;
use crate::paths;
use crate::steps::{self, Failure, Result};

const MATURIN: &str = "maturin==1.9.4";
const WHEELS: &str = "target/wheels";
const TESTS: &str = "python/tests";
/// Makes a wheel from an extension that is built already.
const PACK: &str = "python/tools/pack_wheel.py";

/// Environments with frameworks, and the tests that run in them. The first TensorFlow is the oldest
/// that is supported, the second the newest. torch brings several gigabytes.
const FRAMEWORKS: [(&str, &[&str], &[&str]); 3] = [
    (
        "torch",
        &["torch", "jax", "keras"],
        &[
            "test_torch",
            "test_torch_distributed",
            "test_jax",
            "test_keras",
            "test_functions",
            "test_data_parallel",
            "test_wrong_calls",
            "test_launch",
            "test_examples",
        ],
    ),
    ("tensorflow-2.15", &["tensorflow-cpu==2.15.1"], &TENSORFLOW_TESTS),
    ("tensorflow", &["tensorflow-cpu"], &TENSORFLOW_TESTS),
];

/// The trainings of `python/tests/soak.py`, and the environment of each.
const SOAKS: [(&str, usize); 6] =
    [("numpy", 0), ("graph", 0), ("torch", 0), ("jax", 0), ("keras", 2), ("tensorflow", 2)];

const TENSORFLOW_TESTS: [&str; 7] = [
    "test_tensorflow",
    "test_keras",
    "test_functions",
    "test_data_parallel",
    "test_wrong_calls",
    "test_launch",
    "test_examples",
];

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

    /// Also run the tests with torch, JAX, Keras and two versions of TensorFlow. The first run
    /// downloads several gigabytes into .venv/
    #[arg(long, conflicts_with = "develop")]
    all: bool,

    /// Instead of the tests: train with each framework for so many minutes while ranks are killed
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["develop", "all"])]
    soak: Option<f64>,

    /// Test this wheel instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "develop")]
    wheel: Option<PathBuf>,

    /// Run the tests of these modules only, such as `test_graph`; with --soak: these frameworks
    #[arg(value_name = "MODULE")]
    only: Vec<String>,
}

pub fn run_wheel(_: &WheelArgs) -> Result {
    println!("{}", paths::shown(&wheel(Profile::Release)?));
    Ok(())
}

pub fn run(args: &Args) -> Result {
    if args.develop {
        return develop(args.release);
    }
    let wheel = match &args.wheel {
        Some(file) => fs::canonicalize(file)
            .map_err(|e| Failure(format!("cannot read {}: {e}", paths::shown(file))))?,
        None => wheel(Profile::Release)?,
    };
    if let Some(minutes) = args.soak {
        return soak(&wheel, minutes, &args.only);
    }
    test(&wheel, &args.only)?;
    if args.all { test_frameworks(&wheel, &args.only) } else { Ok(()) }
}

/// The step of the check: the package works without TensorFlow. Tests that need a framework are
/// listed as skipped.
pub fn checked(profile: Profile) -> Result {
    test(&wheel(profile)?, &[])?;
    launch_example(&environment_of_tests().join("bin/python"), profile)?;
    println!("skipped: the tests with frameworks, which `cargo xtask python --all` runs:");
    for (_, packages, modules) in FRAMEWORKS {
        println!("  with {}: {}", packages.join(", "), modules.join(", "));
    }
    Ok(())
}

/// Runs an example of the package under the launchers that this machine has. The tests of the
/// command start it as `python graph_mlp.py`, as they start the Rust example.
fn launch_example(python: &Path, profile: Profile) -> Result {
    let example = paths::root().join("python/examples/graph_mlp.py");
    let mut tests = steps::cargo(&["test", "--workspace", "--test", "hosts", "runs_the_example"]);
    tests.env("HVD_EXAMPLE", format!("{} -I {}", python.display(), example.display()));
    // torchrun is beside the interpreter of an environment with torch.
    let programs = python.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    tests.env("PATH", format!("{programs}:{path}"));
    if profile == Profile::Checked {
        linted::with_clippy(&mut tests)?;
    }
    steps::run(&mut tests)
}

/// The tests that need frameworks.
fn test_frameworks(wheel: &Path, only: &[String]) -> Result {
    for (name, packages, modules) in FRAMEWORKS {
        let modules: Vec<String> = modules.iter().map(|m| m.to_string()).collect();
        let chosen: Vec<String> =
            modules.into_iter().filter(|m| only.is_empty() || only.contains(m)).collect();
        if chosen.is_empty() {
            continue;
        }
        let python = environment(&format!(".venv/{name}"), packages)?.join("bin/python");
        pip(&python, &["--force-reinstall", "--no-deps", &paths::shown(wheel)])?;
        println!("with {}:", packages.join(", "));
        run_tests(&python, &chosen)?;
        if chosen.iter().any(|module| module == "test_launch") && packages.contains(&"torch") {
            launch_example(&python, Profile::Dev)?;
        }
    }
    Ok(())
}

/// Trains with each framework while ranks are killed, one after the other.
fn soak(wheel: &Path, minutes: f64, only: &[String]) -> Result {
    let mut failed = Vec::new();
    for (framework, environment_index) in SOAKS {
        if !only.is_empty() && !only.iter().any(|o| o == framework) {
            continue;
        }
        let (name, packages, _) = FRAMEWORKS[environment_index];
        let python = environment(&format!(".venv/{name}"), packages)?.join("bin/python");
        pip(&python, &["--force-reinstall", "--no-deps", &paths::shown(wheel)])?;
        let mut train = Command::new(&python);
        train.args(["-I", &format!("{TESTS}/soak.py"), framework]);
        if steps::run(train.args(["--minutes", &minutes.to_string()])).is_err() {
            failed.push(framework);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure(format!("the training failed with: {}", failed.join(", "))))
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
    // A new file, because a process may have loaded the old one.
    let _ = fs::remove_file(&place);
    fs::copy(&built, &place)
        .map_err(|e| Failure(format!("cannot copy {}: {e}", paths::shown(&built))))?;
    println!("{} is ready: PYTHONPATH=python python3", paths::shown(&place));
    Ok(())
}

fn wheel(profile: Profile) -> Result<PathBuf> {
    match profile {
        Profile::Release => release_wheel(),
        Profile::Dev | Profile::Checked => quick_wheel(profile),
    }
}

/// The wheel, with an extension that is built like the tests, so that little remains to compile.
fn quick_wheel(profile: Profile) -> Result<PathBuf> {
    let mut build = steps::cargo(&[&["build", "--lib"], &AS_TESTS[..]].concat());
    if profile == Profile::Checked {
        linted::with_clippy(&mut build)?;
    }
    steps::run(&mut build)?;
    let folder = paths::root().join(WHEELS);
    let _ = fs::remove_dir_all(&folder);
    let mut pack = Command::new("python3");
    pack.arg(PACK).arg(paths::target().join("debug/lib_ferroflow.so")).arg(&folder);
    steps::run(&mut pack)?;
    built_wheel()
}

/// The wheel for users.
fn release_wheel() -> Result<PathBuf> {
    let tools = environment(".venv/wheel", &[MATURIN])?;
    let folder = paths::root().join(WHEELS);
    let _ = fs::remove_dir_all(&folder);
    let mut build = Command::new(tools.join("bin/maturin"));
    // In the folder of pyproject.toml, which names the crate, the package and its files.
    build.current_dir(paths::root().join("python")).args(["build", "--out"]).arg(&folder);
    build.args(["--profile", "release"]);
    steps::run(&mut build)?;
    let wheel = built_wheel()?;
    // The quick wheel, which is tested more often, must have the same files.
    steps::run(Command::new("python3").arg(PACK).arg("--compare").arg(&wheel))?;
    Ok(wheel)
}

fn built_wheel() -> Result<PathBuf> {
    let folder = paths::root().join(WHEELS);
    let found = fs::read_dir(&folder).ok().and_then(|mut files| files.next()?.ok());
    found.map(|file| file.path()).ok_or_else(|| Failure(format!("{WHEELS} is empty")))
}

/// The environment with only numpy and the package.
fn environment_of_tests() -> PathBuf {
    paths::target().join("python-check")
}

/// Runs the tests with only numpy installed.
fn test(wheel: &Path, only: &[String]) -> Result {
    let folder = environment_of_tests();
    let _ = fs::remove_dir_all(&folder);
    steps::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let python = folder.join("bin/python");
    pip(&python, &[&paths::shown(wheel)])?;
    run_tests(&python, only)
}

fn run_tests(python: &Path, only: &[String]) -> Result {
    let every = ["test*".to_string()];
    for module in if only.is_empty() { &every[..] } else { only } {
        // Outside of the sources, so that the tests use the installed package. Skipped tests are
        // listed with their reasons.
        let mut tests = Command::new(python);
        tests.args(["-I", "-m", "unittest", "discover", "-v", "-s", TESTS, "-t", TESTS, "-p"]);
        steps::run(tests.arg(format!("{module}.py")))?;
    }
    Ok(())
}

/// The interpreter of an environment with the newest TensorFlow.
pub fn newest_tensorflow() -> Result<PathBuf> {
    let (name, packages, _) = FRAMEWORKS[2];
    Ok(environment(&format!(".venv/{name}"), packages)?.join("bin/python"))
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
