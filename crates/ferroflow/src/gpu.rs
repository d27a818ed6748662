//! The GPUs of this machine.
//!
//! ```
//! use ferroflow::gpu::{CudaOptions, find_gpus};
//! let found = find_gpus(&CudaOptions::default());
//! match found.gpus.first() {
//!     Some(gpu) => println!("{}", gpu.description()),
//!     None => println!("no GPU, because {}", found.why_not.unwrap_or_default()),
//! }
//! ```

pub use ferroflow_core::{Gpu, GpuChoice, GpuMemory};
pub use ferroflow_cuda::{CudaOptions, FoundGpus, find_gpus};
