//! `cargo xtask bench`: Ferroflow beside TensorFlow, by `bench/compare.py`.

use std::path::PathBuf;
use std::process::Command;

use crate::paths;
use crate::release;
use crate::steps::{self, Result};
use crate::venv;

/// Measure Ferroflow beside TensorFlow, in one run with the same client, and hold the result against the goals.
///
/// Leaves every single figure (lines.jsonl) and the tables (report.md) in target/bench/. For figures to quote, the
/// machine should have nothing else to do; the report says how much else there was. bench/README.md tells more.
#[derive(clap::Args)]
pub struct Args {
    /// One short round of everything: rough figures in a few minutes
    #[arg(long)]
    quick: bool,

    /// This benchmark only; may be repeated (null_step, concurrency, feed_fetch, large_graph, checkpoint, startup, distributed,
    /// kernels, rust)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Rounds, in each of which every implementation has its turn
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// A Python that has torch, to measure kernels in PyTorch too
    #[arg(long, value_name = "PATH")]
    torch_python: Option<String>,

    /// TensorFlow beside itself: how far apart two equal things are measured on this machine
    #[arg(long)]
    noise: bool,
}

pub fn run(args: &Args) -> Result {
    let mut options: Vec<String> =
        vec!["--out".into(), paths::target().join("bench").display().to_string()];
    if !args.noise {
        release::build()?;
        build_own_benches()?;
        options.extend(["--server-cmd".into(), paths::server_command()]);
        options.extend(["--binary".into(), paths::ferroflow().display().to_string()]);
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

/// What `--rust-cmd` runs: this very chore's other half, below.
const RUST_COMMAND: &str = "cargo xtask bench-rust";

/// Print the figures that are measured in Rust, as JSON lines (bench/README.md has the format).
///
/// `cargo xtask bench` calls this once a round.
#[derive(clap::Args)]
pub struct RustArgs {}

pub fn run_rust(_: &RustArgs) -> Result {
    steps::run(&mut Command::new(example("bench_executor")))?;
    for client in ["bench_grpc", "bench_edge"] {
        steps::run(Command::new(example(client)).arg(paths::ferroflow()))?;
    }
    Ok(())
}

/// All at once: features are united over what is built together, and each other union would compile
/// the op library again.
fn build_own_benches() -> Result {
    let packages = ["ferroflow-runtime", "ferroflow-cluster", "ferroflow"];
    let examples = ["bench_executor", "bench_floor", "bench_grpc", "bench_edge"];
    let mut build = steps::cargo(&["build", "--release", "--quiet"]);
    build.args(packages.iter().flat_map(|package| ["--package", package]));
    build.args(examples.iter().flat_map(|example| ["--example", example]));
    steps::run(&mut build)
}

/// An echo server, the floor of what a client sees.
fn floor_command() -> String {
    format!("{} {{port}}", paths::quoted(&example("bench_floor").display().to_string()))
}

fn example(name: &str) -> PathBuf {
    paths::target().join("release").join("examples").join(name)
}
