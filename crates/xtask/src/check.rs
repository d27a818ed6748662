//! `cargo xtask check`: what CI runs.

use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::background::Background;
use crate::binary::Profile;
use crate::book;
use crate::conformance;
use crate::deny;
use crate::programs;
use crate::python;
use crate::skipped;
use crate::steps::{self, Failure, Result, Steps};
use crate::tidy;
use crate::venv;

/// Everything CI checks: format, rules, lints, tests, documentation, and programs of a TensorFlow
/// client against our servers.
///
/// Stops at the first failure and prints the command for that step alone.
#[derive(clap::Args)]
pub struct Args {
    /// Run this step only; may be repeated
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,

    /// Build the servers of the conformance programs with the release profile; do this before a
    /// release
    #[arg(long)]
    release: bool,

    /// As root on Debian: first install programs that some tests need (g++, ip, mpirun, srun, sshd)
    #[arg(long)]
    install: bool,
}

/// In the order of the check: cheap steps first.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Step {
    /// cargo fmt --check
    Fmt,
    /// The rules that no compiler checks
    Tidy,
    /// Licences, duplicates and sources of dependencies, as deny.toml says
    Deny,
    /// cargo clippy on all targets, warnings are errors
    Clippy,
    /// All Rust tests but doc tests, by cargo-nextest where it is installed
    Test,
    /// Doc tests
    Doctest,
    /// The documentation of all crates, warnings are errors
    Doc,
    /// The book in docs/
    Book,
    /// The Python wheel, installed where there is no TensorFlow, and its tests
    Python,
    /// The conformance programs that our servers must pass
    Conformance,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Fmt => "fmt",
            Step::Tidy => "tidy",
            Step::Deny => "deny",
            Step::Clippy => "clippy",
            Step::Test => "test",
            Step::Doctest => "doctest",
            Step::Doc => "doc",
            Step::Book => "book",
            Step::Python => "python",
            Step::Conformance => "conformance",
        }
    }

    /// The command to type after this step has failed.
    fn again(self) -> String {
        match self {
            Step::Fmt => "cargo xtask check --only fmt (`cargo fmt` repairs)".into(),
            Step::Tidy => "cargo xtask tidy".into(),
            Step::Deny => "cargo xtask deny".into(),
            Step::Conformance => "cargo xtask conformance [--only PROGRAM]".into(),
            Step::Python => "cargo xtask python [MODULE]".into(),
            _ => format!("cargo xtask check --only {}", self.name()),
        }
    }

    fn run(self, args: &Args) -> Result {
        match self {
            Step::Fmt => steps::run(&mut steps::cargo(&["fmt", "--all", "--check"])),
            Step::Tidy => tidy::checked(),
            Step::Deny => deny::run(&deny::Args {}),
            Step::Clippy => steps::run(&mut steps::cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])),
            Step::Test => steps::run(&mut tests()),
            Step::Book => book::build(),
            Step::Doctest => {
                steps::run(&mut steps::cargo(&["test", "--workspace", "--doc", "--quiet"]))
            }
            Step::Doc => steps::run(&mut documentation()),
            Step::Conformance => conformance::checked(Profile::new(args.release)),
            Step::Python => python::checked(Profile::new(args.release)),
        }
    }
}

pub fn run(args: &Args) -> Result {
    let is_asked = |step: Step| args.only.is_empty() || args.only.contains(&step);
    let mut install = if args.install { programs::install()? } else { None };
    let mut venv = None;
    if is_asked(Step::Conformance) {
        venv = venv::in_background()?;
    }
    let mut steps = Steps::default();
    for &step in Step::value_variants() {
        if !is_asked(step) {
            continue;
        }
        steps.step(step.name(), &step.again(), || {
            if step == Step::Test
                && let Some(Err(Failure(why))) = install.as_mut().map(Background::wait)
            {
                println!("{why}\nSome programs could not be installed; their tests are skipped.");
            }
            if step == Step::Conformance {
                venv.as_mut().map_or(Ok(()), Background::wait)?;
            }
            step.run(args)
        })?;
    }
    if is_asked(Step::Test) {
        println!("\n{}", skipped::report());
    }
    println!("\n{}", steps.summary());
    Ok(())
}

fn tests() -> Command {
    let mut command = runner();
    skipped::record(&mut command);
    command
}

/// Also builds the examples, which a test of the `ferroflow` crate runs.
fn runner() -> Command {
    if has_nextest() {
        let run = ["nextest", "run", "--workspace", "--no-fail-fast"];
        return steps::cargo(&[&run[..], &["--status-level", "fail"]].concat());
    }
    steps::cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"])
}

/// `cargo doc` as if clippy called it: Cargo then finds the crates that the clippy step has
/// checked. Were these variables to change in a later clippy, the crates would only be checked once
/// more.
fn documentation() -> Command {
    let mut doc = steps::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    let toolchain = Command::new("rustc").args(["--print", "sysroot"]).output();
    let toolchain = toolchain.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if let Ok(driver) = toolchain.map(|path| Path::new(&path).join("bin/clippy-driver"))
        && driver.is_file()
    {
        doc.env("RUSTC_WORKSPACE_WRAPPER", driver);
        doc.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
    doc
}

fn has_nextest() -> bool {
    let mut probe = steps::cargo(&["nextest", "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
