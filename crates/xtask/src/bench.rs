//! `cargo xtask bench`: Ferroflow beside TensorFlow, by `bench/compare.py`.

use std::path::PathBuf;
use std::process::Command;

use crate::binary::{self, Profile};
use crate::paths;
use crate::steps::{self, Result};
use crate::venv;

/// Measure Ferroflow beside TensorFlow with the same client, and compare with the goals.
///
/// Writes every measurement (lines.jsonl) and the tables (report.md) to target/bench/. Numbers to
/// quote need an idle machine; the report shows the load of others. See bench/README.md.
#[derive(clap::Args)]
pub struct Args {
    /// One short round of everything: rough numbers in a few minutes
    #[arg(long)]
    quick: bool,

    /// This benchmark only; may be repeated (null_step, concurrency, feed_fetch, large_graph,
    /// checkpoint, startup, distributed, kernels, rust)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Rounds; each runs every implementation once
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// A Python that has torch, to measure kernels in PyTorch too
    #[arg(long, value_name = "PATH")]
    torch_python: Option<String>,

    /// Measure TensorFlow twice, to see how much equal programs differ on this machine
    #[arg(long)]
    noise: bool,
}

pub fn run(args: &Args) -> Result {
    let mut options: Vec<String> =
        vec!["--out".into(), paths::target().join("bench").display().to_string()];
    if !args.noise {
        let binary = binary::build(Profile::Release)?;
        build_own_benches()?;
        options.extend(["--server-cmd".into(), paths::server_command(&binary)]);
        options.extend(["--binary".into(), binary.display().to_string()]);
        options.extend(["--floor-cmd".into(), floor_command()]);
        options.extend(["--rust-cmd".into(), RUST_COMMAND.into()]);
    }
    if args.quick {
        options.push("--quick".into());
    }
    if let Some(rounds) = args.rounds {
        options.extend(["--rounds".into(), rounds.to_string()]);
    }
    if let Some(python) = &args.torch_python {
        options.extend(["--torch-python".into(), python.clone()]);
    }
    for name in &args.only {
        options.extend(["--only".into(), name.clone()]);
    }
    let python = venv::python()?;
    steps::run(Command::new(python).arg("bench/compare.py").args(options))
}

/// The command for `--rust-cmd`: `cargo xtask bench-rust`.
const RUST_COMMAND: &str = "cargo xtask bench-rust";

/// Print the measurements made in Rust, as JSON lines (the format is in bench/README.md).
///
/// `cargo xtask bench` calls this once a round.
#[derive(clap::Args)]
pub struct RustArgs {}

pub fn run_rust(_: &RustArgs) -> Result {
    steps::run(&mut Command::new(example("bench_executor")))?;
    for client in ["bench_grpc", "bench_edge"] {
        steps::run(Command::new(example(client)).arg(binary::path(Profile::Release)))?;
    }
    Ok(())
}

/// One command builds all: Cargo unites the features of packages that it builds together, and
/// another union would compile the op library again.
fn build_own_benches() -> Result {
    let packages = ["ferroflow-runtime", "ferroflow-cluster", "ferroflow"];
    let examples = ["bench_executor", "bench_floor", "bench_grpc", "bench_edge"];
    let mut build = steps::cargo(&["build", "--release", "--quiet"]);
    build.args(packages.iter().flat_map(|package| ["--package", package]));
    build.args(examples.iter().flat_map(|example| ["--example", example]));
    steps::run(&mut build)
}

/// An echo server: the least latency that a client can see.
fn floor_command() -> String {
    format!("{} {{port}}", paths::quoted(&example("bench_floor").display().to_string()))
}

fn example(name: &str) -> PathBuf {
    paths::target().join("release").join("examples").join(name)
}
