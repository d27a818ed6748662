//! `cargo xtask check`: what CI runs.

use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::background::Background;
use crate::binary::Profile;
use crate::book;
use crate::conformance;
use crate::dashboard;
use crate::deny;
use crate::linted;
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

    /// As root on Debian: first install programs that some tests need (g++, ip, mpirun, srun,
    /// sshd, Chromium)
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
    /// Clippy on all targets, warnings are errors. A whole check compiles the tests with it
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

    /// Runs it. In a whole check, clippy compiles for later steps too. A step alone uses the
    /// results of `cargo test` and `cargo clippy`.
    fn run(self, args: &Args) -> Result {
        let is_whole = args.only.is_empty();
        let profile =
            if is_whole { Profile::of_check(args.release) } else { Profile::new(args.release) };
        let run = |mut command: Command| {
            if is_whole {
                linted::with_clippy(&mut command)?;
            }
            steps::run(&mut command)
        };
        match self {
            Step::Fmt => steps::run(&mut steps::cargo(&["fmt", "--all", "--check"])),
            Step::Tidy => tidy::checked(),
            Step::Deny => deny::run(&deny::Args {}),
            Step::Clippy if is_whole => {
                // `--all-targets` would compile each example twice: as a program, which tests
                // start, and as an empty test.
                run(steps::cargo(&["test", "--workspace", "--no-run", "--quiet"]))?;
                let benches = ["test", "--workspace", "--bench", "*", "--no-run", "--quiet"];
                run(steps::cargo(&benches))
            }
            Step::Clippy => {
                let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
                run(steps::cargo(&lint))
            }
            Step::Test => {
                let mut tests = runner();
                skipped::record(&mut tests);
                run(tests)
            }
            Step::Book => book::build(),
            Step::Doctest => run(steps::cargo(&["test", "--workspace", "--doc", "--quiet"])),
            Step::Doc => steps::run(&mut documentation()),
            Step::Conformance => conformance::checked(profile),
            Step::Python => python::checked(profile),
        }
    }
}

pub fn run(args: &Args) -> Result {
    let is_asked = |step: Step| args.only.is_empty() || args.only.contains(&step);
    let mut installs = Vec::new();
    if args.install {
        installs.extend(programs::install()?);
        // If npm is among the programs, it is installed too late for this check: the next one tests
        // the dashboard.
        installs.extend(dashboard::install()?);
    }
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
            for install in installs.iter_mut().filter(|_| step == Step::Test) {
                if let Err(Failure(why)) = install.wait() {
                    println!(
                        "{why}\nSome programs could not be installed; their tests are skipped."
                    );
                }
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

/// Also builds the examples, which a test of the `ferroflow` crate runs.
fn runner() -> Command {
    if has_nextest() {
        let run = ["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "fail"];
        return steps::cargo(&run);
    }
    steps::cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"])
}

fn documentation() -> Command {
    let mut doc = steps::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    doc
}

fn has_nextest() -> bool {
    let mut probe = steps::cargo(&["nextest", "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
