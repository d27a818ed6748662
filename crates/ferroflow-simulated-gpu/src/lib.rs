//! A GPU for tests, on machines without one. It has its own poisoned memory, a stream that runs as
//! late as it may, and kernels that are compiled for the processor from the same text that CUDA
//! gets. Memory can run out and the device can get lost on request.
#![warn(missing_docs)]

mod emulator;
mod group;
mod product;
mod stream;

pub use emulator::{EmulatedKernel, Emulator, kernel_names};

use ferroflow_core::{
    DownloadDone, Gemm, GivenBack, Gpu, GpuCommunicator, GpuFunction, GpuMemory, GpuTrace, HashMap,
    Launch, MemoryPlan, RecordableStep, RecordedStep, RecordedWork, Recorder, Recording, Replay,
    Result, StepDownload, bail, ensure, err, take_early,
};
use parking_lot::Mutex;
use std::alloc::Layout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;
use stream::{Stream, StreamQueue, Work};

/// The bytes of memory that was not written.
const POISON: u8 = 0xa5;

/// How a simulated GPU behaves.
#[derive(Clone, Debug)]
pub struct SimulatedGpuOptions {
    /// Bytes that tensors may use.
    pub memory_limit: usize,
    /// Decides the order of threads.
    pub seed: u64,
    /// The device is lost at this launch, counted from 1.
    pub lost_at_launch: Option<u64>,
    /// The kernel of this launch faults when it runs, which is later.
    pub fault_at_launch: Option<u64>,
    /// Records steps and replays them.
    pub records_steps: bool,
}

impl Default for SimulatedGpuOptions {
    fn default() -> SimulatedGpuOptions {
        SimulatedGpuOptions {
            memory_limit: 1 << 30,
            seed: 1,
            lost_at_launch: None,
            fault_at_launch: None,
            records_steps: true,
        }
    }
}

/// A simulated GPU.
pub struct SimulatedGpu {
    name: String,
    index: u32,
    options: SimulatedGpuOptions,
    memory: Mutex<Memory>,
    emulator: Emulator,
    loaded: Mutex<Vec<EmulatedKernel>>,
    launches: AtomicU64,
    imports: AtomicU64,
    replays: AtomicU64,
    recorder: Recorder,
    stream: Stream,
    /// For recorded steps, which replay on it.
    own: Weak<SimulatedGpu>,
}

#[derive(Default)]
struct Memory {
    live: HashMap<u64, usize>,
    in_use: usize,
    peak: usize,
}

impl SimulatedGpu {
    /// GPU number `index`.
    pub fn new(index: u32, options: SimulatedGpuOptions) -> Arc<SimulatedGpu> {
        Arc::new_cyclic(|own| SimulatedGpu {
            name: format!("GPU:{index} (simulated)"),
            index,
            stream: Stream::new(options.seed),
            options,
            memory: Mutex::default(),
            emulator: Emulator::default(),
            loaded: Mutex::default(),
            launches: AtomicU64::new(0),
            imports: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            recorder: Recorder::default(),
            own: own.clone(),
        })
    }

    /// Recorded steps that were replayed so far.
    pub fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }

    /// How often memory was imported.
    pub fn imports(&self) -> u64 {
        self.imports.load(Ordering::Relaxed)
    }

    fn alloc_plainly(&self, bytes: usize) -> Result<u64> {
        self.ensure_live()?;
        let limit = self.options.memory_limit;
        let full = |in_use| {
            err!(
                ResourceExhausted,
                "OOM when allocating {bytes} bytes on {}: tensors may use {limit} bytes and \
                 {in_use} are in use",
                self.name
            )
        };
        let wanted = layout(bytes);
        let mut memory = self.memory.lock();
        let in_use = memory.in_use;
        let Some(layout) = wanted.filter(|l| l.size() <= limit - in_use.min(limit)) else {
            return Err(full(in_use));
        };
        // SAFETY: the layout has a size of at least 256.
        let address = unsafe { std::alloc::alloc(layout) } as u64;
        ensure!(address != 0, ResourceExhausted, "{}", full(in_use).message());
        memory.live.insert(address, layout.size());
        memory.in_use += layout.size();
        memory.peak = memory.peak.max(memory.in_use);
        drop(memory);
        self.stream.push(Work::Fill { to: address, bytes: layout.size(), value: POISON });
        Ok(address)
    }

    fn free_plainly(&self, address: u64, bytes: usize) {
        let mut memory = self.memory.lock();
        let Some(size) = memory.live.remove(&address) else { return };
        debug_assert!(size >= bytes, "freed with another size");
        memory.in_use -= size;
        drop(memory);
        // Work before this in the stream may use the memory.
        self.stream.push(Work::Free { address, bytes: size });
    }

    fn ensure_live(&self) -> Result<()> {
        match self.stream.failure() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    fn enqueue(&self, work: Work) -> Result<()> {
        self.ensure_live()?;
        self.stream.push(work);
        Ok(())
    }

    fn count_launch(&self) -> Result<()> {
        let number = self.launches.fetch_add(1, Ordering::Relaxed) + 1;
        if self.options.lost_at_launch == Some(number) {
            self.stream.fail(err!(Unavailable, "{} was lost", self.name));
        }
        self.ensure_live()?;
        if self.options.fault_at_launch == Some(number) {
            let why = err!(Internal, "{}: a kernel accessed an illegal address", self.name);
            self.stream.push(Work::Fault(why));
        }
        Ok(())
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1).checked_next_multiple_of(256)?, 256).ok()
}

impl Gpu for SimulatedGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        let i = self.index;
        format!(
            "device: {i}, name: simulated, pci bus id: 0000:00:{i:02x}.0, compute capability: 9.0"
        )
    }

    fn memory(&self) -> GpuMemory {
        let memory = self.memory.lock();
        GpuMemory { limit: self.options.memory_limit, in_use: memory.in_use, peak: memory.peak }
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let is_recording = self.recorder.is_recording();
        let size = layout(bytes).map_or(0, |layout| layout.size());
        if is_recording && let Some(address) = self.recorder.take(size) {
            return Ok(address);
        }
        let address = self.alloc_plainly(bytes).or_else(|e| {
            let given =
                self.recorder.release(&mut |address, size| self.free_plainly(address, size));
            if given { self.alloc_plainly(bytes) } else { Err(e) }
        })?;
        match is_recording {
            true => self.recorder.adopt(address, size),
            false => self.recorder.note_alloc(address, size),
        }
        Ok(address)
    }

    fn free(&self, address: u64, bytes: usize) {
        match self.recorder.give_back(address) {
            GivenBack::ToArena if self.recorder.is_recording() => {
                // A replay must not depend on what the memory had before. A lost device fails the
                // step elsewhere.
                let _ = self.upload(&vec![POISON; bytes], address);
            }
            GivenBack::ToArena => {}
            GivenBack::Region(base, size) => self.free_plainly(base, size),
            GivenBack::No => {
                self.recorder.note_free(address);
                self.free_plainly(address, bytes);
            }
        }
    }

    fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        self.enqueue(Work::Write { from: from.into(), to })?;
        self.recorder.note(|| RecordedWork::Upload { from: from.into(), to });
        Ok(())
    }

    fn download(&self, from: u64, bytes: usize, done: DownloadDone) {
        self.recorder.note_wait();
        self.stream.push(Work::Read { from, bytes, done });
        self.stream.flush();
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        self.enqueue(Work::Copy { from, to, bytes })?;
        self.recorder.note(|| RecordedWork::Copy { from, to, bytes });
        Ok(())
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.enqueue(Work::Fill { to: address, bytes, value: 0 })?;
        self.recorder.note(|| RecordedWork::Clear { address, bytes });
        Ok(())
    }

    fn load(&self, text: &str, name: &str) -> Result<GpuFunction> {
        let kernel = self.emulator.load(text, name)?;
        let mut loaded = self.loaded.lock();
        loaded.push(kernel);
        Ok(GpuFunction(loaded.len() as u64 - 1))
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.count_launch()?;
        let kernel = self.loaded.lock().get(launch.function.0 as usize).cloned();
        let Some(kernel) = kernel else { bail!(Internal, "a kernel that was not loaded") };
        let Launch { grid, block, args, .. } = launch;
        ensure!(
            grid.iter().chain(block).all(|&n| n > 0) && block.iter().product::<u32>() <= 1024,
            Internal,
            "invalid launch: grid {grid:?}, block {block:?}"
        );
        self.enqueue(Work::Kernel { kernel, grid: *grid, block: *block, args: args.to_vec() })?;
        self.recorder.note(|| RecordedWork::Launch {
            function: launch.function,
            grid: *grid,
            block: *block,
            args: args.to_vec().into(),
        });
        Ok(())
    }

    fn gemm(&self, gemm: &Gemm) -> Result<()> {
        self.count_launch()?;
        self.enqueue(Work::Product(gemm.clone()))?;
        self.recorder.note(|| RecordedWork::Gemm(gemm.clone()));
        Ok(())
    }

    fn records_steps(&self) -> bool {
        self.options.records_steps
    }

    fn note_result(&self, address: u64) {
        self.recorder.note_result(address);
    }

    fn recorded_memory(&self) -> usize {
        self.recorder.memory()
    }

    fn rehearse(&self, step: &mut dyn RecordableStep) -> Result<Option<MemoryPlan>> {
        self.recorder.rehearse(step, &mut |address, size| self.free_plainly(address, size))
    }

    fn record(
        &self,
        step: &mut dyn RecordableStep,
        plan: Option<&Arc<MemoryPlan>>,
    ) -> Result<Option<Arc<dyn RecordedStep>>> {
        let free = &mut |address, size| self.free_plainly(address, size);
        if let Some(lacks) = plan.map(|plan| self.recorder.lacks(plan, free)).filter(|n| *n > 0)
            && let Ok(base) = self.alloc_plainly(lacks)
        {
            self.recorder.provide(base, lacks, free);
        }
        let recording = self.recorder.record(step, plan)?;
        let made = recording.zip(self.own.upgrade());
        Ok(made.map(|(recording, gpu)| Arc::new(SimulatedStep { gpu, recording }) as _))
    }

    fn synchronize(&self) -> Result<()> {
        self.stream.wait();
        self.ensure_live()
    }

    fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    fn identity(&self) -> String {
        // Other processes may have one at the same address.
        format!("simulated {:p} of process {}", self, std::process::id())
    }

    fn has_collectives(&self) -> bool {
        true
    }

    fn export(&self, address: u64) -> Result<Vec<u8>> {
        Ok(address.to_le_bytes().to_vec())
    }

    fn import(&self, exported: &[u8], _: usize) -> Result<u64> {
        let Ok(bytes) = exported.try_into() else { bail!(InvalidArgument, "not an address") };
        self.imports.fetch_add(1, Ordering::Relaxed);
        Ok(u64::from_le_bytes(bytes))
    }

    fn new_group(&self) -> Result<Vec<u8>> {
        Ok(group::new_group())
    }

    fn communicator(
        &self,
        group: &[u8],
        rank: usize,
        size: usize,
    ) -> Result<Arc<dyn GpuCommunicator>> {
        group::join(self.stream.queue(), group, rank, size)
    }

    fn trace(&self) -> Option<Box<dyn GpuTrace>> {
        Some(Box::new(SimulatedTrace { queue: self.stream.queue(), marks: Mutex::default() }))
    }
}

/// The marks of a traced step.
struct SimulatedTrace {
    queue: StreamQueue,
    marks: Mutex<Vec<Arc<OnceLock<SystemTime>>>>,
}

impl GpuTrace for SimulatedTrace {
    fn mark(&self) -> Result<usize> {
        let (mut marks, time) = (self.marks.lock(), Arc::default());
        self.queue.push(Work::Mark(Arc::clone(&time)));
        marks.push(time);
        Ok(marks.len() - 1)
    }

    fn times(&self) -> Result<Vec<SystemTime>> {
        self.queue.wait();
        let known = |time: &Arc<OnceLock<SystemTime>>| {
            time.get().copied().ok_or_else(|| err!(Internal, "a mark was not reached"))
        };
        self.marks.lock().iter().map(known).collect()
    }
}

/// A recorded step.
struct SimulatedStep {
    gpu: Arc<SimulatedGpu>,
    recording: Recording,
}

impl RecordedStep for SimulatedStep {
    fn replay(&self, feeds: &[(&[u8], u64)], fetches: &mut Vec<StepDownload>) -> Result<Replay> {
        let gpu = &self.gpu;
        let replayed = gpu.recorder.replay(self.recording.generation, &mut || {
            feeds.iter().try_for_each(|(from, to)| gpu.upload(from, *to))?;
            let Recording { work, early, split, .. } = &self.recording;
            let first = take_early(fetches, early);
            for (work, fetches) in
                [(&work[..*split], first), (&work[*split..], std::mem::take(fetches))]
            {
                work.iter().try_for_each(|work| work.enqueue(gpu.as_ref()))?;
                fetches
                    .into_iter()
                    .for_each(|fetch| gpu.download(fetch.from, fetch.bytes, fetch.done));
            }
            Ok(())
        })?;
        gpu.replays.fetch_add(u64::from(replayed == Replay::Done), Ordering::Relaxed);
        Ok(replayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, DType, LaunchArg, Tensor};

    const DOUBLE: &str = r#"
extern "C" __global__ void twice(i64 n, const f32 *x, f32 *y) {
    for (i64 i = thread_number(); i < n; i += thread_count()) y[i] = 2 * x[i];
}
"#;

    fn gpu(options: SimulatedGpuOptions) -> Arc<dyn Gpu> {
        SimulatedGpu::new(0, options)
    }

    fn twice(gpu: &Arc<dyn Gpu>, x: &Tensor) -> Result<Tensor> {
        let x = x.to_device(gpu)?;
        let y = Tensor::on_device(gpu, DType::Float, x.shape().clone())?;
        let addresses = [x.device_address()?, y.device_address()?].map(LaunchArg::Address);
        let [from, to] = addresses;
        let args = [LaunchArg::I64(x.elements() as i64), from, to];
        let function = gpu.load(DOUBLE, "twice")?;
        gpu.launch(&Launch { function, grid: [2, 1, 1], block: [32, 1, 1], args: &args })?;
        Ok(y)
    }

    #[test]
    fn kernels_run_in_the_order_of_the_stream() {
        let gpu = gpu(SimulatedGpuOptions::default());
        let x = Tensor::vector(&[1.0f32, -2.5, 1e3]);
        let y = twice(&gpu, &x).unwrap();
        // The memory of the operand is free, but the kernel has not run yet.
        let z = Tensor::on_device(&gpu, DType::Float, [3]).unwrap();
        assert_eq!(y.to_host_blocking().unwrap(), Tensor::vector(&[2.0f32, -5.0, 2e3]));
        let poison = z.to_host_blocking().unwrap();
        assert!(poison.bytes().unwrap().iter().all(|&b| b == 0xa5));
        let e = y.as_slice::<f32>().unwrap_err();
        assert!(e.message().contains("is in the memory of GPU:0 (simulated)"), "{e}");
    }

    #[test]
    fn memory_runs_out_and_comes_back() {
        let gpu = gpu(SimulatedGpuOptions { memory_limit: 4096, ..Default::default() });
        let whole = Tensor::on_device(&gpu, DType::Float, [1024]).unwrap();
        let e = Tensor::on_device(&gpu, DType::Float, [1]).unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        drop(whole);
        Tensor::on_device(&gpu, DType::Float, [1024]).unwrap();
        assert_eq!(gpu.memory().peak, 4096);
    }

    #[test]
    fn a_trace_notes_when_the_stream_reached_a_mark() {
        let gpu = gpu(SimulatedGpuOptions::default());
        let trace = gpu.trace().unwrap();
        let first = trace.mark().unwrap();
        twice(&gpu, &Tensor::vector(&[1.0f32])).unwrap();
        let second = trace.mark().unwrap();
        let times = trace.times().unwrap();
        assert!(times[first] <= times[second]);
        assert_eq!(gpu.launches(), 1);
    }

    #[test]
    fn a_fault_shows_in_the_first_result_after_it() {
        let gpu = gpu(SimulatedGpuOptions { fault_at_launch: Some(1), ..Default::default() });
        let y = twice(&gpu, &Tensor::vector(&[1.0f32])).unwrap();
        let e = y.to_host_blocking().unwrap_err();
        assert!(e.message().contains("illegal address"), "{e}");
    }

    #[test]
    fn a_lost_device_fails_what_follows() {
        let gpu = gpu(SimulatedGpuOptions { lost_at_launch: Some(2), ..Default::default() });
        let x = Tensor::vector(&[1.0f32]);
        let y = twice(&gpu, &x).unwrap();
        assert_eq!(twice(&gpu, &x).unwrap_err().code(), Code::Unavailable);
        assert_eq!(y.to_host_blocking().unwrap_err().code(), Code::Unavailable);
        assert!(gpu.synchronize().is_err());
    }
}
