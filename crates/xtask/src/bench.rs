//! `cargo xtask bench`: Ferroflow beside TensorFlow, by `bench/compare.py`.

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

    /// This benchmark only; may be repeated (null_step, concurrency, feed_fetch, large_graph, startup, rust)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Rounds, in each of which every implementation has its turn
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// TensorFlow beside itself: how far apart two equal things are measured on this machine
    #[arg(long)]
    noise: bool,

    /// Command of an echo server, the floor of the null step; {port} is filled in (bench/README.md has the contract)
    #[arg(long, value_name = "CMD")]
    floor_cmd: Option<String>,

    /// Command that prints the figures of the Rust benches as JSON lines (bench/README.md has the format)
    #[arg(long, value_name = "CMD")]
    rust_cmd: Option<String>,
}

pub fn run(args: &Args) -> Result {
    let mut options: Vec<String> =
        vec!["--out".into(), paths::target().join("bench").display().to_string()];
    if !args.noise {
        release::build()?;
        options.extend(["--server-cmd".into(), paths::server_command()]);
        options.extend(["--binary".into(), paths::ferroflow().display().to_string()]);
    }
    if args.quick {
        options.push("--quick".into());
    }
    if let Some(rounds) = args.rounds {
        options.extend(["--rounds".into(), rounds.to_string()]);
    }
    for name in &args.only {
        options.extend(["--only".into(), name.clone()]);
    }
    for (option, command) in [("--floor-cmd", &args.floor_cmd), ("--rust-cmd", &args.rust_cmd)] {
        if let Some(command) = command {
            options.extend([option.into(), command.clone()]);
        }
    }
    let python = venv::python()?;
    steps::run(Command::new(python).arg("bench/compare.py").args(options))
}
