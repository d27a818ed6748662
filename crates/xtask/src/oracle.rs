//! `cargo xtask oracle`: compares every op with TensorFlow's on random calls.

use std::fs;
use std::process::Command;

use crate::paths;
use crate::steps::{self, Failure, Result};
use crate::venv;

/// Compare every op with TensorFlow's on random calls: values, dtypes, shapes and error codes.
///
/// Writes the cases (cases.bin) and the differences (report.txt, report.json) to target/oracle/.
/// Differences that oracle/explained.tsv explains are counted apart. See oracle/README.md.
#[derive(clap::Args)]
pub struct Args {
    /// Ops whose whole name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    only: Option<String>,

    /// Calls of each (op, dtype)
    #[arg(long, value_name = "N", default_value_t = 24)]
    count: u32,

    /// Seed of the random calls
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,

    /// Compare with TensorFlow's answers of the last run
    #[arg(long)]
    again: bool,

    /// Write the sample that the tests replay, from this run's cases
    #[arg(long)]
    record: bool,
}

/// The sample that the tests replay.
const RECORDED: &str = "crates/ferroflow-oracle/tests/data/recorded.bin.gz";

pub fn run(args: &Args) -> Result {
    let folder = paths::target().join("oracle");
    let cases = folder.join("cases.bin");
    steps::run(&mut steps::cargo(&["build", "--quiet", "-p", "ferroflow-oracle"]))?;
    let ours = paths::target().join("debug").join("ferroflow-oracle");
    if !args.again {
        fs::create_dir_all(&folder).map_err(|e| Failure(format!("{}: {e}", folder.display())))?;
        let list = folder.join("ops.txt");
        let ops = Command::new(&ours).arg("ops").output();
        let ops = ops.map_err(|e| Failure(format!("cannot run {}: {e}", ours.display())))?;
        fs::write(&list, ops.stdout).map_err(|e| Failure(format!("{}: {e}", list.display())))?;
        let mut ask = Command::new(venv::python()?);
        ask.arg("oracle/ask.py").arg("--ops").arg(&list).arg("--out").arg(&folder);
        ask.args(["--count", &args.count.to_string(), "--seed", &args.seed.to_string()]);
        if let Some(only) = &args.only {
            ask.args(["--only", only]);
        }
        steps::run(&mut ask)?;
    }
    if args.record {
        steps::run(Command::new(&ours).arg("sample").arg(&cases).arg(RECORDED))?;
    }
    steps::run(Command::new(&ours).arg("check").arg(&cases))
}
