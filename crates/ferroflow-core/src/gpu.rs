//! GPUs as kernels see them. A driver implements [`Gpu`]: CUDA, or a simulation in tests.
//!
//! A GPU has one compute stream. All calls enqueue on it in the order of the calls, and return
//! before the work is done. A kernel that depends on another runs after it, so its work comes later
//! in the stream too. Memory that is freed is used again in the order of the stream.

mod memory_plan;
mod recording;

pub use memory_plan::MemoryPlan;
pub use recording::{
    GivenBack, RecordableStep, RecordedStep, RecordedWork, Recorder, Recording, Replay,
    StepDownload, StepMemory, take_early,
};

use crate::{Buffer, DType, Error, Result, Tensor, err};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A GPU of this process.
pub trait Gpu: Send + Sync {
    /// The name that errors contain, such as `GPU:0 (NVIDIA H200)`.
    fn name(&self) -> &str;

    /// The hardware, in the words of TensorFlow's `physical_device_desc`.
    fn description(&self) -> String;

    /// Memory that tensors use and may use.
    fn memory(&self) -> GpuMemory;

    /// Memory for `bytes` bytes, aligned to 256. `ResourceExhausted` if there is none left.
    fn alloc(&self, bytes: usize) -> Result<u64>;

    /// Frees memory that `alloc` returned for `bytes`. Work that is enqueued may still use it.
    fn free(&self, address: u64, bytes: usize);

    /// Enqueues a copy from host memory. The caller may change `from` when this returns.
    fn upload(&self, from: &[u8], to: u64) -> Result<()>;

    /// Enqueues a copy to host memory. Calls `done` on another thread when all work before it and
    /// the copy are complete, with the bytes or with the error of that work.
    fn download(&self, from: u64, bytes: usize, done: DownloadDone);

    /// Enqueues a copy within the GPU's memory.
    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// Enqueues writing zero bytes.
    fn clear(&self, address: u64, bytes: usize) -> Result<()>;

    /// Compiles `text`, CUDA C++ after [`GPU_PRELUDE`], and finds its kernel `name`. Compiles each
    /// text once.
    fn load(&self, text: &str, name: &str) -> Result<GpuFunction>;

    /// Begins to compile `text` on another thread. A hint that one of its kernels is loaded soon.
    fn prepare(&self, text: &str) {
        let _ = text;
    }

    /// Enqueues a kernel.
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// Enqueues matrix products.
    fn gemm(&self, gemm: &Gemm) -> Result<()>;

    /// Whether there is a library for [`Gpu::convolve`].
    fn has_convolutions(&self) -> bool {
        false
    }

    /// Enqueues a convolution, or one of its gradients, with a library. Returns `false` if the
    /// library does not support it: the caller then computes it by other means.
    fn convolve(&self, convolution: &GpuConvolution) -> Result<bool> {
        let _ = convolution;
        Ok(false)
    }

    /// Runs `step` on this thread, and plans the memory of a step with the same allocations.
    /// Returns `None` if there is no plan; the step ran all the same.
    fn rehearse(&self, step: &mut dyn RecordableStep) -> Result<Option<MemoryPlan>> {
        let ran = step.run();
        step.finish();
        ran.map(|_| None)
    }

    /// Runs `step` on this thread, and records the work that it enqueues. Returns `None` if it
    /// cannot be recorded; the step ran all the same.
    fn record(
        &self,
        step: &mut dyn RecordableStep,
        plan: Option<&Arc<MemoryPlan>>,
    ) -> Result<Option<Arc<dyn RecordedStep>>> {
        let _ = plan;
        let ran = step.run();
        step.finish();
        ran.map(|_| None)
    }

    /// Notes that the work which this thread has enqueued computes the result of a recorded step at
    /// `address`, and that no later work of the step changes it.
    fn note_result(&self, address: u64) {
        let _ = address;
    }

    /// Bytes that recorded steps have reserved.
    fn recorded_memory(&self) -> usize {
        0
    }

    /// Whether [`Gpu::record`] records steps.
    fn records_steps(&self) -> bool {
        false
    }

    /// Blocks until all enqueued work is complete. For benchmarks and shutdown, not for kernels.
    fn synchronize(&self) -> Result<()>;

    /// Kernels, matrix products and convolutions that were enqueued so far.
    fn launches(&self) -> u64 {
        0
    }

    /// Identifies this GPU and its host, equally in all processes: two ranks with the same text
    /// share a GPU. Empty if processes cannot know.
    fn identity(&self) -> String {
        String::new()
    }

    /// Whether there is a library for [`Gpu::communicator`].
    fn has_collectives(&self) -> bool {
        false
    }

    /// A name of the memory at `address`, by which other processes of the host find it.
    fn export(&self, address: u64) -> Result<Vec<u8>> {
        let _ = address;
        Err(err!(Unimplemented, "{} does not share memory with other processes", self.name()))
    }

    /// The address in this process of `bytes` bytes that another process exported. They must
    /// outlive their use here: the two processes agree on that.
    fn import(&self, exported: &[u8], bytes: usize) -> Result<u64> {
        let _ = (exported, bytes);
        Err(err!(Unimplemented, "{} does not share memory with other processes", self.name()))
    }

    /// A new name for a group of ranks, which one rank hands to all others.
    fn new_group(&self) -> Result<Vec<u8>> {
        Err(err!(Unimplemented, "{} has no library for collectives", self.name()))
    }

    /// Joins a group of `size` ranks as `rank`. Blocks until all have joined.
    fn communicator(
        &self,
        group: &[u8],
        rank: usize,
        size: usize,
    ) -> Result<Arc<dyn GpuCommunicator>> {
        let _ = (group, rank, size);
        Err(err!(Unimplemented, "{} has no library for collectives", self.name()))
    }

    /// Starts to record when work runs, for the trace of a step. `None` if the GPU has no clock.
    fn trace(&self) -> Option<Box<dyn GpuTrace>> {
        None
    }
}

/// The ranks of a job, each with a GPU of its own, as the GPU's library connects them. All ranks
/// must enqueue the same calls in the same order.
pub trait GpuCommunicator: Send + Sync {
    /// Enqueues the reduction of `count` elements of all ranks at `from`, to `to` of each rank.
    fn all_reduce(
        &self,
        from: u64,
        to: u64,
        count: usize,
        dtype: DType,
        by: GpuReduction,
    ) -> Result<()>;

    /// Enqueues a copy of `count` elements of rank `root` to all ranks.
    fn broadcast(&self, from: u64, to: u64, count: usize, dtype: DType, root: usize) -> Result<()>;

    /// The error of calls under way, if one has failed. Does not block.
    fn failure(&self) -> Option<Error>;

    /// Ends calls under way on this rank, which may wait for a rank that is gone. All later calls
    /// fail with `cause`.
    fn abort(&self, cause: Error);
}

/// How a [`GpuCommunicator`] reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuReduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
    /// The mean.
    Mean,
}

/// Records when the work of a traced step runs on a GPU.
pub trait GpuTrace: Send + Sync {
    /// Enqueues a timestamp, and returns its number.
    fn mark(&self) -> Result<usize>;

    /// All timestamps, by number. Blocks until the work before the last one is complete.
    fn times(&self) -> Result<Vec<SystemTime>>;
}

/// Called once with the bytes of a download.
pub type DownloadDone = Box<dyn FnOnce(Result<Buffer>) + Send>;

/// The text in front of every kernel's: types of a fixed width and conversions of half types.
pub const GPU_PRELUDE: &str = include_str!("gpu/prelude.cu");

/// Memory of a GPU in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuMemory {
    /// What tensors may use.
    pub limit: usize,
    /// What tensors use.
    pub in_use: usize,
    /// The most that tensors have used.
    pub peak: usize,
}

/// A kernel that a GPU has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuFunction(pub u64);

/// One launch of a kernel.
pub struct Launch<'a> {
    /// The kernel.
    pub function: GpuFunction,
    /// Blocks in each dimension.
    pub grid: [u32; 3],
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// The arguments, in the order of the kernel's parameters.
    pub args: &'a [LaunchArg],
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum LaunchArg {
    /// An address in the GPU's memory.
    Address(u64),
    /// An `i32`.
    I32(i32),
    /// An `i64`.
    I64(i64),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
    /// A struct of `i64` fields.
    Words(Box<[i64]>),
}

impl LaunchArg {
    /// The bytes of the value, where the driver reads them.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            LaunchArg::Address(x) => (x as *const u64).cast(),
            LaunchArg::I32(x) => (x as *const i32).cast(),
            LaunchArg::I64(x) => (x as *const i64).cast(),
            LaunchArg::F32(x) => (x as *const f32).cast(),
            LaunchArg::F64(x) => (x as *const f64).cast(),
            LaunchArg::Words(x) => x.as_ptr().cast(),
        }
    }
}

/// `batch` products `c = a * b` of row-major matrices, `m x k` and `k x n`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// The type of all elements. Half types are multiplied and added in `f32`.
    pub dtype: DType,
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// Columns of `a` and rows of `b`.
    pub k: usize,
    /// Address of `a`.
    pub a: u64,
    /// Address of `b`.
    pub b: u64,
    /// Address of `c`.
    pub c: u64,
    /// `a` is stored as `k x m`.
    pub transpose_a: bool,
    /// `b` is stored as `n x k`.
    pub transpose_b: bool,
    /// The number of products.
    pub batch: usize,
    /// Elements between the matrices `a`, `b` and `c` of one product and the next.
    pub strides: [usize; 3],
    /// Address of `n` elements that are added to each row of `c`, for floats of at most 32 bits.
    pub bias: Option<u64>,
    /// Adds to `c` instead of replacing it.
    pub accumulate: bool,
}

/// The result of a [`GpuConvolution`]; the other two are its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvolutionResult {
    /// The images.
    Output,
    /// The gradient of the input.
    Input,
    /// The gradient of the filter.
    Filter,
}

/// A convolution of images with channels last. Pairs are for rows and columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GpuConvolution {
    /// What is computed.
    pub result: ConvolutionResult,
    /// The type of all elements. Half types are multiplied and added in `f32`.
    pub dtype: DType,
    /// Images.
    pub batch: usize,
    /// Channels of the input and of the output.
    pub channels: [usize; 2],
    /// Groups of channels that do not mix.
    pub groups: usize,
    /// Size of an input image.
    pub input: [usize; 2],
    /// Size of a filter.
    pub filter: [usize; 2],
    /// Size of an output image.
    pub output: [usize; 2],
    /// Steps of the window.
    pub strides: [usize; 2],
    /// Steps within the window.
    pub dilations: [usize; 2],
    /// Zeros before the first row and column, and as many after the last.
    pub padding: [usize; 2],
    /// Address of the input, or of its gradient: batch, rows, columns, channels.
    pub x: u64,
    /// Address of the filter, or of its gradient: output channels, rows, columns, input channels.
    pub w: u64,
    /// Address of the output, or of its gradient: batch, rows, columns, channels.
    pub y: u64,
}

impl fmt::Debug for dyn Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Memory of a GPU that belongs to tensors. It is freed when the last of them is dropped.
pub struct DeviceBuffer {
    gpu: Arc<dyn Gpu>,
    address: u64,
    len: usize,
}

impl DeviceBuffer {
    /// `len` bytes with unspecified values.
    pub fn alloc(gpu: &Arc<dyn Gpu>, len: usize) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer { gpu: gpu.clone(), address: gpu.alloc(len)?, len })
    }

    /// The GPU.
    pub fn gpu(&self) -> &Arc<dyn Gpu> {
        &self.gpu
    }

    /// The address in the GPU's memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        self.gpu.free(self.address, self.len);
    }
}

/// Called once with a tensor in host memory.
pub type ToHostDone = Box<dyn FnOnce(Result<Tensor>) + Send>;

impl Tensor {
    /// A copy in the memory of `gpu`. The tensor itself if it is there already.
    pub fn to_device(&self, gpu: &Arc<dyn Gpu>) -> Result<Tensor> {
        if self.gpu().is_some_and(|mine| Arc::ptr_eq(mine, gpu)) {
            return Ok(self.clone());
        }
        let bytes = self.bytes()?;
        let copy = Tensor::on_device(gpu, self.dtype(), self.shape().clone())?;
        gpu.upload(bytes, copy.device_address()?)?;
        Ok(copy)
    }

    /// Calls `done` with a copy in host memory, on another thread. Calls it at once with the tensor
    /// itself if it is in host memory.
    pub fn to_host(&self, done: ToHostDone) {
        let Some(gpu) = self.gpu() else { return done(Ok(self.clone())) };
        let address = match self.device_address() {
            Ok(address) => address,
            Err(e) => return done(Err(e)),
        };
        let (kept, dtype, shape) = (self.clone(), self.dtype(), self.shape().clone());
        let take = move |copied: Result<Buffer>| {
            let made = copied.and_then(|buffer| Tensor::from_buffer(dtype, shape, buffer));
            drop(kept);
            done(made);
        };
        gpu.download(address, self.byte_len(), Box::new(take));
    }

    /// A copy in host memory. Blocks until it is there: for tests and programs, not for kernels.
    pub fn to_host_blocking(&self) -> Result<Tensor> {
        let (tell, wait) = std::sync::mpsc::channel();
        // The receiver waits for exactly this message.
        self.to_host(Box::new(move |copied| drop(tell.send(copied))));
        wait.recv().unwrap_or_else(|_| Err(err!(Internal, "a copy to the host was dropped")))
    }
}
