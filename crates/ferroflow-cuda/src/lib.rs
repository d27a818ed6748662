//! CUDA GPUs. The driver and NVIDIA's libraries are loaded at run time, so one binary runs with and
//! without them. [`find_gpus`] says why there is no GPU where there is none.
#![warn(missing_docs)]

mod allocator;
mod blas;
mod compile;
mod dnn;
mod gpu;
mod libraries;
mod status;
mod transfer;

pub use compile::Compiler;
pub use gpu::CudaGpu;

use ferroflow_core::{Gpu, Result};
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
    /// The part of a GPU's memory that tensors may use. `None` leaves some to the libraries.
    pub memory_fraction: Option<f64>,
    /// Multiplies `f32` matrices with 10 bits of mantissa, which is much faster.
    pub allow_tf32: bool,
}

impl Default for CudaOptions {
    fn default() -> CudaOptions {
        CudaOptions { memory_fraction: None, allow_tf32: true }
    }
}

/// Finds the GPUs of this machine. Never fails: without a GPU it says why.
pub fn find_gpus(options: &CudaOptions) -> FoundGpus {
    let nothing = |why: String| FoundGpus { gpus: Vec::new(), why_not: Some(why) };
    if let Err(why) = libraries::check() {
        return nothing(why);
    }
    match open_all(options) {
        Ok((gpus, _)) if gpus.is_empty() => nothing("the driver lists no GPU".into()),
        Ok((gpus, why_not)) => FoundGpus { gpus, why_not },
        Err(e) => nothing(e.message().to_string()),
    }
}

fn open_all(options: &CudaOptions) -> Result<(Vec<Arc<dyn Gpu>>, Option<String>)> {
    let (mut gpus, mut why_not) = (Vec::new(), None);
    let compiler = Arc::new(Compiler::new()?);
    for ordinal in 0..gpu::count()? {
        match CudaGpu::open(ordinal, gpus.len() as u32, options, compiler.clone()) {
            Ok(gpu) => gpus.push(gpu as Arc<dyn Gpu>),
            Err(e) => why_not = Some(format!("GPU {ordinal} cannot be used: {}", e.message())),
        }
    }
    Ok((gpus, why_not))
}
