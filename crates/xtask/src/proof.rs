//! `cargo xtask miri`, `sanitize` and `fuzz`: the tests under tools that find undefined behaviour,
//! data races and inputs that break parsers. They need a nightly compiler.

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
    // Files and the clock are not part of what is checked, but buffers read limits.
    let core = ["buffer", "tensor", "memory_owner", "list", "variable", "movable"];
    let mut args = vec!["miri", "test", "-p", "ferroflow-core", "--lib", "--"];
    args.extend(core);
    steps.step("core", "cargo xtask miri", || {
        steps::run(nightly(&args).env("MIRIFLAGS", "-Zmiri-disable-isolation"))
    })?;
    let args = ["miri", "test", "-p", "ferroflow-runtime", "--lib", "--", "slots", "flat"];
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

/// Run the fuzz targets, each for some time.
///
/// Needs `cargo install cargo-fuzz`. See fuzz/README.md.
#[derive(clap::Args)]
pub struct FuzzArgs {
    /// Seconds for each target
    #[arg(long, value_name = "S", default_value_t = 60)]
    seconds: u64,

    /// This target only; may be repeated
    #[arg(long, value_name = "TARGET")]
    only: Vec<String>,
}

pub fn fuzz(args: &FuzzArgs) -> Result {
    needs(&["+nightly", "fuzz", "--version"], "cargo install cargo-fuzz")?;
    let mut targets = targets()?;
    if let Some(unknown) = args.only.iter().find(|name| !targets.contains(name)) {
        return Err(Failure(format!("no target '{unknown}'; there are {}", targets.join(", "))));
    }
    targets.retain(|name| args.only.is_empty() || args.only.contains(name));
    for target in &targets {
        println!("\n=== {target}");
        let time = format!("-max_total_time={}", args.seconds);
        let limits = ["-timeout=60", "-rss_limit_mb=4096", "-max_len=4096", "-print_final_stats=1"];
        let mut command = nightly(&["fuzz", "run", target, "--", &time]);
        steps::run(command.args(limits))?;
    }
    println!("\n{} targets, {} s each, no finding", targets.len(), args.seconds);
    Ok(())
}

/// The targets: the files of `fuzz/fuzz_targets/`.
fn targets() -> Result<Vec<String>> {
    let folder = paths::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder)
        .map_err(|e| Failure(format!("cannot read {}: {e}", folder.display())))?;
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        Some(entry.ok()?.path().file_stem()?.to_str()?.to_string())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    Ok(names)
}

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Cargo of the nightly compiler.
fn nightly(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(args).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Fails, and says how to install what is missing, unless `cargo` with these words succeeds.
fn needs(words: &[&str], install: &str) -> Result {
    let mut probe = Command::new("cargo");
    probe.args(words).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Failure(format!("`cargo {}` does not work; run: {install}", words.join(" ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_folder_is_a_binary_of_the_package() {
        let manifest = std::fs::read_to_string(paths::root().join("fuzz/Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() > 10, "{targets:?}");
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
    }
}
