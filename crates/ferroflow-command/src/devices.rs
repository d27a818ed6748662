//! `ferroflow devices`: the devices that a server of this machine offers.

use crate::say::say;
use ferroflow::Result;
use ferroflow::gpu::{CudaOptions, FoundGpus, find_gpus};

/// Show the CPU and the GPUs of this machine
///
/// Without a usable GPU it prints the reason.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    say!("/device:CPU:0  {cores} cores");
    let FoundGpus { gpus, why_not } = find_gpus(&CudaOptions::default());
    for (i, gpu) in gpus.iter().enumerate() {
        let gib = gpu.memory().limit as f64 / (1u64 << 30) as f64;
        say!("/device:GPU:{i}  {}, {gib:.1} GiB for tensors", gpu.description());
    }
    if let Some(why) = why_not {
        say!("no {}GPU, because {why}", if gpus.is_empty() { "" } else { "other " });
    }
    Ok(())
}
