//! CUDA GPUs. The driver and NVIDIA's libraries are loaded at run time, so one binary runs with and
//! without them. If there is no GPU, [`find_gpus`] returns the reason.
#![warn(missing_docs)]

mod allocator;
mod blas;
mod compile;
mod dnn;
mod gpu;
mod graph;
mod ipc;
mod libraries;
mod nccl;
mod prepare;
mod status;
mod trace;
mod transfer;

pub use compile::Compiler;
pub use gpu::CudaGpu;

use ferroflow_core::{Gpu, GpuChoice, Result};
use std::sync::Arc;

/// The GPUs of this machine.
pub struct FoundGpus {
    /// Usable GPUs, in the driver's order.
    pub gpus: Vec<Arc<dyn Gpu>>,
    /// Why there is none, or why some cannot be used.
    pub why_not: Option<String>,
}

/// Options of all GPUs of a process.
#[derive(Clone, Debug)]
pub struct CudaOptions {
    /// The GPUs to use, and how much of their memory.
    pub choice: GpuChoice,
    /// Multiplies `f32` matrices with 10 bits of mantissa, which is much faster.
    pub allow_tf32: bool,
}

impl Default for CudaOptions {
    fn default() -> CudaOptions {
        CudaOptions { choice: GpuChoice::default(), allow_tf32: true }
    }
}

/// Finds the GPUs of this machine. Never fails: without a GPU it returns the reason.
pub fn find_gpus(options: &CudaOptions) -> FoundGpus {
    let nothing = |why: String| FoundGpus { gpus: Vec::new(), why_not: Some(why) };
    if let Err(why) = libraries::check() {
        return nothing(why);
    }
    match open_all(options) {
        Ok((gpus, None)) if gpus.is_empty() => nothing(none_listed()),
        Ok((gpus, why_not)) => FoundGpus { gpus, why_not },
        Err(e) => nothing(e.message().to_string()),
    }
}

/// Why the driver lists no GPU.
fn none_listed() -> String {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(list) => format!("CUDA_VISIBLE_DEVICES={list} hides all GPUs"),
        Err(_) => "the driver lists no GPU".into(),
    }
}

fn open_all(options: &CudaOptions) -> Result<(Vec<Arc<dyn Gpu>>, Option<String>)> {
    let (mut gpus, mut why_not) = (Vec::new(), None);
    let compiler = Arc::new(Compiler::new()?);
    let count = usize::try_from(gpu::count()?).unwrap_or(0);
    for ordinal in options.choice.ordinals(count)? {
        let index = gpus.len() as u32;
        match CudaGpu::open(ordinal as i32, index, options, compiler.clone()) {
            Ok(gpu) => gpus.push(gpu as Arc<dyn Gpu>),
            Err(e) => why_not = Some(format!("GPU {ordinal} cannot be used: {}", e.message())),
        }
    }
    Ok((gpus, why_not))
}
