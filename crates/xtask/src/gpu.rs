//! `cargo xtask gpu`: packs the programs that check and measure Ferroflow on a GPU machine.

use std::fs;
use std::path::Path;

use crate::paths;
use crate::steps::{self, Failure, Result};

/// Pack a folder that checks ops on a GPU and trains there, for a machine that has one.
///
/// Builds the checker, and copies it with TensorFlow's recorded answers and a script to
/// target/gpu/. The machine needs the NVIDIA driver, NVRTC and cuBLASLt; nothing is installed
/// there. Run `bash target/gpu/run.sh` on it: results go to $OUT. docs/gpu.jsonl keeps them, and
/// bench/gpu/README.md says which figures are missing.
#[derive(clap::Args)]
pub struct Args {
    /// Also runs the script here
    #[arg(long)]
    run: bool,
}

/// TensorFlow's recorded answers.
const RECORDED: &str = "crates/ferroflow-oracle/tests/data/recorded.bin.gz";
/// The script, and the same models in PyTorch and JAX.
const SCRIPTS: [&str; 4] = ["run.sh", "torch_models.py", "jax_models.py", "compare_losses.py"];

pub fn run(args: &Args) -> Result {
    steps::run(&mut steps::cargo(&["build", "--release", "-p", "ferroflow-oracle"]))?;
    let folder = paths::target().join("gpu");
    fs::create_dir_all(&folder).map_err(|e| Failure(format!("{}: {e}", folder.display())))?;
    let program = paths::target().join("release").join("ferroflow-oracle");
    let scripts = SCRIPTS.map(|name| (Path::new("bench/gpu").join(name), name));
    let others = [(program, "ferroflow-oracle"), (RECORDED.into(), "recorded.bin.gz")];
    for (from, name) in others.into_iter().chain(scripts) {
        let copied = fs::copy(&from, folder.join(name));
        copied.map_err(|e| Failure(format!("cannot copy {}: {e}", from.display())))?;
    }
    println!("packed {}", folder.display());
    if args.run {
        steps::run(std::process::Command::new("bash").arg(folder.join("run.sh")))?;
    }
    Ok(())
}
