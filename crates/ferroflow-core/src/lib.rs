//! The shared types of Ferroflow: [`Error`], [`DType`], [`Shape`], [`Tensor`], and the traits
//! between graphs, kernels, devices and transports ([`Kernel`], [`AsyncKernel`], [`Rendezvous`],
//! [`InstantiatedFunction`]). This crate does not depend on graphs, protocols or particular ops.
#![warn(missing_docs)]

mod buffer;
mod cancel;
mod cgroup;
mod collective;
mod counted_vec;
mod denormals;
mod device;
mod dtype;
mod element;
mod error;
pub mod files;
mod function;
mod gpu;
mod gpu_choice;
mod gpu_timeline;
mod hash;
mod heap;
mod incoming_tensor;
pub mod inline;
mod kernel;
mod limits;
mod list;
mod memory_owner;
mod movable;
mod panic;
mod parallel;
mod rendezvous;
mod resource;
mod shape;
mod spin;
mod step;
mod tensor;
mod value;
mod variable;
mod variant;

pub use buffer::{Buffer, Reservation, memory_limit, set_memory_limit, trim_recycled};
pub use cancel::{CancelToken, OnCancel};
pub use collective::{
    CollectiveCall, CollectiveDone, CollectiveKind, Collectives, Merge, SingleDeviceCollectives,
    divide, merge, single_device_result,
};
pub use counted_vec::CountedVec;
pub use denormals::FlushDenormals;
pub use device::{DeviceInfo, DeviceName, DeviceSpeed};
pub use dtype::DType;
pub use element::{Element, FloatElement, RealElement};
pub use error::{Code, Error, Result, Within};
pub use function::{CallDone, InstantiatedFunction};
pub use gpu::{
    ConvolutionResult, DeviceBuffer, DownloadDone, GPU_PRELUDE, Gemm, GivenBack, Gpu,
    GpuCommunicator, GpuConvolution, GpuFunction, GpuMemory, GpuReduction, GpuTrace, Launch,
    LaunchArg, MemoryPlan, RecordableStep, RecordedStep, RecordedWork, Recorder, Recording, Replay,
    StepDownload, StepMemory, ToHostDone, take_early,
};
pub use gpu_choice::GpuChoice;
pub use gpu_timeline::{GpuTimeline, GpuWork};
pub use half::{bf16, f16};
pub use hash::{HashMap, HashSet};
pub use heap::{CountedHeap, Mimalloc, count_heap};
pub use incoming_tensor::IncomingTensor;
pub use inline::{Flush, InlineScope, ThreadKind};
pub use kernel::{
    AsyncCtx, AsyncKernel, Completion, Ctx, Done, Epilogue, Kernel, KernelBox, NodeInfo, Outputs,
    Rows,
};
pub use limits::{Limit, Limits, Quota, QuotaShare, limits, set_limits};
pub use list::List;
pub use memory_owner::MemoryOwner;
pub use movable::Movable;
pub use num_complex::{Complex32, Complex64};
pub use panic::panic_text;
pub use parallel::{ComputePool, set_compute_threads};
pub use rendezvous::{Received, RecvDone, Rendezvous, RendezvousKey};
pub use resource::{Resource, ResourceHandle, Resources};
pub use shape::{PartialShape, Shape};
pub use spin::{Polled, Spin};
pub use step::{NodeStats, Spawn, StepCtx, StepStats};
pub use tensor::{Storage, Tensor};
pub use value::Value;
pub use variable::StoredVariable;
pub use variant::{Variant, VariantObject};
