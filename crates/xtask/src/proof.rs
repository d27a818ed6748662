//! `cargo xtask miri` and `sanitize`: the tests under tools that find undefined behaviour and data
//! races. They need a nightly compiler.

use std::process::Command;

use crate::paths;
use crate::steps::{self, Failure, Result, Steps};

/// Run the tests of buffers, tensors and the slot protocol under Miri.
///
/// Needs `rustup component add miri rust-src --toolchain nightly`.
#[derive(clap::Args)]
pub struct MiriArgs {}

pub fn miri(_: &MiriArgs) -> Result {
    needs(
        &["+nightly", "miri", "--version"],
        "rustup component add miri rust-src --toolchain nightly",
    )?;
    let mut steps = Steps::default();
    // Files and the clock are not part of the check, but buffers read limits from files.
    let core =
        ["buffer", "tensor", "memory_owner", "list", "variable", "variant", "movable", "heap"];
    let mut args = vec!["miri", "test", "-p", "ferroflow-core", "--lib", "--"];
    args.extend(core);
    steps.step("core", "cargo xtask miri", || {
        steps::run(nightly(&args).env("MIRIFLAGS", "-Zmiri-disable-isolation"))
    })?;
    let args = ["miri", "test", "-p", "ferroflow-runtime", "--lib", "--", "slots"];
    steps.step("slots", "cargo xtask miri", || {
        steps::run(nightly(&args).env("MIRIFLAGS", "-Zmiri-disable-isolation"))
    })?;
    println!("{}", steps.summary());
    Ok(())
}

/// Run the cluster's and the collectives' tests with a sanitizer.
#[derive(clap::Args)]
pub struct SanitizeArgs {
    /// What to look for
    #[arg(value_enum)]
    kind: Sanitizer,

    /// Only tests whose names contain this
    filter: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Sanitizer {
    /// Invalid accesses and leaks of memory
    Address,
    /// Data races; needs rust-src, because the standard library is built with it too
    Thread,
}

pub fn sanitize(args: &SanitizeArgs) -> Result {
    needs(&["+nightly", "--version"], "rustup toolchain install nightly")?;
    let name = match args.kind {
        Sanitizer::Address => "address",
        Sanitizer::Thread => "thread",
    };
    let mut words = vec!["test", "--target", HOST];
    if matches!(args.kind, Sanitizer::Thread) {
        words.push("-Zbuild-std");
    }
    words.extend(["-p", "ferroflow-cluster", "-p", "ferroflow-collective", "--lib", "--tests"]);
    if let Some(filter) = &args.filter {
        words.extend(["--", filter]);
    }
    let mut command = nightly(&words);
    command.env("RUSTFLAGS", format!("-Zsanitizer={name}"));
    command.env("CARGO_TARGET_DIR", paths::target().join(name));
    steps::run(&mut command)
}

pub const HOST: &str = "x86_64-unknown-linux-gnu";

/// Cargo of the nightly compiler.
pub fn nightly(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(args).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Fails, with the command that installs what is missing, unless `cargo` with these words succeeds.
pub fn needs(words: &[&str], install: &str) -> Result {
    let mut probe = Command::new("cargo");
    probe.args(words).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Failure(format!("`cargo {}` does not work; run: {install}", words.join(" ")))),
    }
}
