//! A CUDA GPU: its context, its stream, and the work that is enqueued there.

use crate::CudaOptions;
use crate::allocator::{Allocator, Source, rounded};
use crate::blas::{Blas, WORKSPACE};
use crate::compile::Compiler;
use crate::dnn::Dnn;
use crate::graph::CudaStep;
use crate::ipc::{self, Imported};
use crate::libraries;
use crate::nccl;
use crate::prepare::Preparations;
use crate::status;
use crate::trace::CudaTrace;
use crate::transfer::Transfers;
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUfunction, CUmodule, CUstream,
};
use ferroflow_core::{
    DownloadDone, Gemm, GivenBack, Gpu, GpuCommunicator, GpuConvolution, GpuFunction, GpuMemory,
    GpuTrace, HashMap, Launch, MemoryPlan, RecordableStep, RecordedStep, RecordedWork, Recorder,
    Result, bail, ensure, err,
};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::ffi::{CStr, CString, c_void};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The number of GPUs that the driver lists.
pub(crate) fn count() -> Result<i32> {
    let mut count = 0;
    // SAFETY: the driver is initialized and writes one integer.
    status::driver(unsafe { sys::cuDeviceGetCount(&mut count) }, "the number of GPUs")?;
    Ok(count)
}

/// A context and its one stream. Both live as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    context: CUcontext,
    stream: CUstream,
}

// SAFETY: contexts and streams may be used from all threads.
unsafe impl Send for Context {}
// SAFETY: see above.
unsafe impl Sync for Context {}

impl Context {
    /// Makes this the current context of the thread. Costs little if it is already.
    pub fn make_current(&self) -> Result<()> {
        // SAFETY: the context is never destroyed.
        status::driver(unsafe { sys::cuCtxSetCurrent(self.context) }, "the GPU's context")
    }

    pub fn stream(&self) -> CUstream {
        self.stream
    }
}

impl Source for Context {
    fn take(&self, bytes: usize) -> Option<u64> {
        let mut address = 0;
        // SAFETY: the context is current. The driver sets `address`.
        status::driver(unsafe { sys::cuMemAlloc_v2(&mut address, bytes) }, "memory").ok()?;
        Some(address)
    }

    fn give_back(&self, address: u64) {
        // SAFETY: `take` returned the address, and no user of it remains. The driver waits for work
        // that is under way.
        let _ = unsafe { sys::cuMemFree_v2(address) };
    }
}

/// A CUDA GPU.
pub struct CudaGpu {
    name: String,
    description: String,
    /// Its address on the host's bus.
    bus: String,
    context: Context,
    prepared: Preparations,
    blas: Blas,
    /// Loaded by the first convolution: the library is large.
    dnn: OnceLock<Option<Dnn>>,
    allow_tf32: bool,
    transfers: Transfers,
    memory: Mutex<Allocator>,
    recorder: Recorder,
    /// For recorded steps, which replay on it.
    own: Weak<CudaGpu>,
    hasher: RandomState,
    /// Kernels by the hash of their text and name.
    functions: RwLock<HashMap<u64, GpuFunction>>,
    modules: Mutex<HashMap<u64, Module>>,
    launches: AtomicU64,
    imported: Imported,
}

#[derive(Clone, Copy)]
struct Module(CUmodule);

// SAFETY: modules may be used from all threads.
unsafe impl Send for Module {}

impl CudaGpu {
    /// Opens GPU `ordinal` of the driver, which becomes number `index` of the process.
    pub(crate) fn open(
        ordinal: i32,
        index: u32,
        options: &CudaOptions,
        compiler: Arc<Compiler>,
    ) -> Result<Arc<CudaGpu>> {
        let device = device(ordinal)?;
        let mut context = Context { context: std::ptr::null_mut(), stream: std::ptr::null_mut() };
        // SAFETY: the device exists. The driver sets the context.
        let status = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context.context, device) };
        status::driver(status, "the GPU's context")?;
        context.make_current()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current. The driver sets the stream.
        let status = unsafe { sys::cuStreamCreate(&mut context.stream, flags) };
        status::driver(status, "the GPU's stream")?;
        let (free, total) = memory_info()?;
        let limit = options.choice.memory_limit(free, total)?;
        let workspace = context.take(WORKSPACE);
        let workspace =
            workspace.ok_or_else(|| err!(ResourceExhausted, "no memory for cuBLASLt"))?;
        let (major, minor) = (
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let model = text(|to, len| {
            // SAFETY: the driver writes at most `len` bytes.
            unsafe { sys::cuDeviceGetName(to, len, device) }
        })?;
        let bus = text(|to, len| {
            // SAFETY: the driver writes at most `len` bytes.
            unsafe { sys::cuDeviceGetPCIBusId(to, len, device) }
        })?;
        let architecture = format!("sm_{major}{minor}");
        let blas = Blas::new(workspace, options.allow_tf32)?;
        let transfers = Transfers::new(context)?;
        Ok(Arc::new_cyclic(|own| CudaGpu {
            name: format!("GPU:{index} ({model})"),
            description: format!(
                "device: {index}, name: {model}, pci bus id: {bus}, compute capability: \
                 {major}.{minor}"
            ),
            bus,
            context,
            prepared: Preparations::new(move |text| compiler.binary(text, &architecture)),
            blas,
            dnn: OnceLock::new(),
            allow_tf32: options.allow_tf32,
            transfers,
            memory: Mutex::new(Allocator::new(limit)),
            recorder: Recorder::default(),
            own: own.clone(),
            hasher: RandomState::new(),
            functions: RwLock::default(),
            modules: Mutex::default(),
            launches: AtomicU64::new(0),
            imported: Imported::default(),
        }))
    }

    /// cuDNN, if it is installed.
    fn dnn(&self) -> Option<&Dnn> {
        let load = || {
            let is_there = libraries::has_dnn() && self.context.make_current().is_ok();
            let stream = self.context.stream().cast();
            is_there.then(|| Dnn::new(stream, self.allow_tf32).ok()).flatten()
        };
        self.dnn.get_or_init(load).as_ref()
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub(crate) fn count_launches(&self, n: usize) {
        self.launches.fetch_add(n as u64, Ordering::Relaxed);
    }

    fn alloc_plainly(&self, bytes: usize) -> Result<u64> {
        let made = self.memory.lock().alloc(bytes, &self.context);
        made.map_err(|e| e.context(&self.name))
    }

    fn launch_on(&self, launch: &Launch<'_>, stream: CUstream) -> Result<()> {
        let mut args: SmallVec<[*mut c_void; 16]> =
            launch.args.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let function = launch.function.0 as CUfunction;
        ensure!(!function.is_null(), Internal, "a kernel that was not loaded");
        let (args, none) = (args.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: `load` made the function. The driver copies the arguments before it returns; the
        // kernel's author vouches for their number and types.
        let status =
            unsafe { sys::cuLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, stream, args, none) };
        status::driver(status, "launching a kernel").map_err(|e| e.context(&self.name))
    }

    fn copy_on(&self, from: u64, to: u64, bytes: usize, stream: CUstream) -> Result<()> {
        // SAFETY: both ranges belong to tensors that are alive.
        let status = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
        status::driver(status, "a copy on the GPU")
    }

    fn clear_on(&self, address: u64, bytes: usize, stream: CUstream) -> Result<()> {
        // SAFETY: the range belongs to a tensor that is alive.
        let status = unsafe { sys::cuMemsetD8Async(address, 0, bytes, stream) };
        status::driver(status, "clearing memory of the GPU")
    }

    /// Enqueues recorded work on a stream of the current context.
    pub(crate) fn enqueue_on(&self, work: &RecordedWork, stream: CUstream) -> Result<()> {
        match work {
            RecordedWork::Launch { function, grid, block, args } => {
                let launch =
                    Launch { function: *function, grid: *grid, block: *block, args: &args[..] };
                self.launch_on(&launch, stream)
            }
            RecordedWork::Gemm(gemm) => self.blas.multiply(gemm, stream.cast()),
            RecordedWork::Convolution(convolution, scratch) => match self.dnn() {
                Some(dnn) => {
                    let own = self.context.stream().cast();
                    dnn.convolve_again(convolution, *scratch, stream.cast(), own)
                }
                None => bail!(Internal, "cuDNN is gone"),
            },
            &RecordedWork::Copy { from, to, bytes } => self.copy_on(from, to, bytes, stream),
            &RecordedWork::Clear { address, bytes } => self.clear_on(address, bytes, stream),
            RecordedWork::Upload { .. } => bail!(Internal, "a constant in host memory"),
        }
    }

    fn module(&self, text: &str) -> Result<CUmodule> {
        let key = self.hasher.hash_one(text);
        if let Some(module) = self.modules.lock().get(&key) {
            return Ok(module.0);
        }
        let binary = self.prepared.binary(text)?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the binary is the compiler's output, and outlives the call.
        let status = unsafe { sys::cuModuleLoadData(&mut module, binary.as_ptr().cast()) };
        status::driver(status, "loading a kernel")?;
        self.modules.lock().insert(key, Module(module));
        Ok(module)
    }
}

impl Gpu for CudaGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn memory(&self) -> GpuMemory {
        self.memory.lock().memory()
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.context.make_current()?;
        let is_recording = self.recorder.is_recording();
        if is_recording && let Some(address) = self.recorder.take(rounded(bytes)) {
            return Ok(address);
        }
        let address = self.alloc_plainly(bytes).or_else(|e| {
            let free = &mut |address, _| self.memory.lock().free(address);
            if self.recorder.release(free) { self.alloc_plainly(bytes) } else { Err(e) }
        })?;
        match is_recording {
            true => self.recorder.adopt(address, rounded(bytes)),
            false => self.recorder.note_alloc(address, rounded(bytes)),
        }
        Ok(address)
    }

    fn free(&self, address: u64, _: usize) {
        match self.recorder.give_back(address) {
            GivenBack::ToArena => {}
            GivenBack::Region(base, _) => self.memory.lock().free(base),
            GivenBack::No => {
                self.recorder.note_free(address);
                self.memory.lock().free(address);
            }
        }
    }

    fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        self.context.make_current()?;
        self.transfers.upload(from, to).map_err(|e| e.context(&self.name))?;
        if !from.is_empty() {
            self.recorder.note(|| RecordedWork::Upload { from: from.into(), to });
        }
        Ok(())
    }

    fn download(&self, from: u64, bytes: usize, done: DownloadDone) {
        self.recorder.note_wait();
        match self.context.make_current() {
            Ok(()) => self.transfers.download(from, bytes, done),
            Err(e) => done(Err(e)),
        }
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        self.copy_on(from, to, bytes, self.context.stream())?;
        self.recorder.note(|| RecordedWork::Copy { from, to, bytes });
        Ok(())
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        self.clear_on(address, bytes, self.context.stream())?;
        self.recorder.note(|| RecordedWork::Clear { address, bytes });
        Ok(())
    }

    fn load(&self, text: &str, name: &str) -> Result<GpuFunction> {
        let key = self.hasher.hash_one((text, name));
        if let Some(known) = self.functions.read().get(&key) {
            return Ok(*known);
        }
        self.context.make_current()?;
        let module = self.module(text)?;
        let symbol = CString::new(name).map_err(|_| err!(Internal, "a kernel's name"))?;
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name outlives the call.
        let status = unsafe { sys::cuModuleGetFunction(&mut function, module, symbol.as_ptr()) };
        status::driver(status, &format!("kernel '{name}'"))?;
        let function = GpuFunction(function as u64);
        self.functions.write().insert(key, function);
        Ok(function)
    }

    fn prepare(&self, text: &str) {
        if !self.modules.lock().contains_key(&self.hasher.hash_one(text)) {
            self.prepared.begin(text);
        }
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.context.make_current()?;
        self.launch_on(launch, self.context.stream())?;
        let &Launch { function, grid, block, args } = launch;
        self.recorder.note(|| RecordedWork::Launch { function, grid, block, args: args.into() });
        Ok(())
    }

    fn gemm(&self, gemm: &Gemm) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.context.make_current()?;
        let stream = self.context.stream();
        self.blas.multiply(gemm, stream.cast()).map_err(|e| e.context(&self.name))?;
        self.recorder.note(|| RecordedWork::Gemm(gemm.clone()));
        Ok(())
    }

    fn has_convolutions(&self) -> bool {
        self.dnn().is_some()
    }

    fn convolve(&self, convolution: &GpuConvolution) -> Result<bool> {
        self.context.make_current()?;
        let Some(dnn) = self.dnn() else { return Ok(false) };
        self.launches.fetch_add(1, Ordering::Relaxed);
        dnn.convolve(convolution, &|bytes, run| {
            let scratch = if bytes == 0 { 0 } else { self.alloc(bytes)? };
            let ran = run(scratch);
            if bytes > 0 {
                self.free(scratch, bytes);
            }
            ran?;
            self.recorder.note(|| RecordedWork::Convolution(convolution.clone(), scratch));
            Ok(())
        })
        .map_err(|e| e.context(&self.name))
    }

    fn records_steps(&self) -> bool {
        true
    }

    fn note_result(&self, address: u64) {
        self.recorder.note_result(address);
    }

    fn recorded_memory(&self) -> usize {
        self.recorder.memory()
    }

    fn rehearse(&self, step: &mut dyn RecordableStep) -> Result<Option<MemoryPlan>> {
        self.recorder.rehearse(step, &mut |address, _| self.memory.lock().free(address))
    }

    fn record(
        &self,
        step: &mut dyn RecordableStep,
        plan: Option<&Arc<MemoryPlan>>,
    ) -> Result<Option<Arc<dyn RecordedStep>>> {
        self.context.make_current()?;
        let free = &mut |address, _| self.memory.lock().free(address);
        if let Some(lacks) = plan.map(|plan| self.recorder.lacks(plan, free)).filter(|n| *n > 0) {
            // The memory of earlier steps is free. Unless it is returned, the GPU must hold both.
            self.memory.lock().give_back_free(&self.context);
            if let Ok(base) = self.alloc_plainly(lacks) {
                self.recorder.provide(base, lacks, free);
            }
        }
        let Some((recording, gpu)) = self.recorder.record(step, plan)?.zip(self.own.upgrade())
        else {
            return Ok(None);
        };
        // The step has run. If its recording cannot be prepared, the next step runs like this one.
        Ok(CudaStep::new(gpu, recording).ok().map(|step| Arc::new(step) as _))
    }

    fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the stream is valid.
        let status = unsafe { sys::cuStreamSynchronize(self.context.stream()) };
        status::driver(status, "work on the GPU").map_err(|e| e.context(&self.name))
    }

    fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    fn identity(&self) -> String {
        format!("{} {}", host_name(), self.bus)
    }

    fn has_collectives(&self) -> bool {
        nccl::is_there()
    }

    fn export(&self, address: u64) -> Result<Vec<u8>> {
        self.context.make_current()?;
        self.memory.lock().share();
        ipc::export(address).map_err(|e| e.context(&self.name))
    }

    fn import(&self, exported: &[u8], bytes: usize) -> Result<u64> {
        self.context.make_current()?;
        self.imported.import(exported, bytes).map_err(|e| e.context(&self.name))
    }

    fn new_group(&self) -> Result<Vec<u8>> {
        nccl::new_group()
    }

    fn communicator(
        &self,
        group: &[u8],
        rank: usize,
        size: usize,
    ) -> Result<Arc<dyn GpuCommunicator>> {
        nccl::join(self.context, group, rank, size).map_err(|e| e.context(&self.name))
    }

    fn trace(&self) -> Option<Box<dyn GpuTrace>> {
        Some(Box::new(CudaTrace::begin(self.context).ok()?))
    }
}

/// The name of this host in its boot, equal in all processes and containers of it.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

fn device(ordinal: i32) -> Result<CUdevice> {
    let mut device = 0;
    // SAFETY: the driver writes one integer.
    status::driver(unsafe { sys::cuDeviceGet(&mut device, ordinal) }, "the GPU")?;
    Ok(device)
}

fn attribute(device: CUdevice, which: Attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: the driver writes one integer.
    let status = unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) };
    status::driver(status, "an attribute of the GPU")?;
    Ok(value)
}

/// Free and total bytes of the current context's GPU.
fn memory_info() -> Result<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the context is current, and the driver writes two integers.
    status::driver(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "the GPU's memory")?;
    Ok((free, total))
}

/// A text that a driver function writes into a buffer of a given length.
fn text(write: impl Fn(*mut std::ffi::c_char, i32) -> sys::CUresult) -> Result<String> {
    let mut bytes = [0u8; 256];
    status::driver(write(bytes.as_mut_ptr().cast(), bytes.len() as i32), "a name")?;
    let text = CStr::from_bytes_until_nul(&bytes);
    Ok(text.map(|t| t.to_string_lossy().into_owned()).unwrap_or_default())
}
