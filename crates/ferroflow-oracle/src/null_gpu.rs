//! A GPU that does nothing, to see what the host enqueues in a step and how long that takes.

use ferroflow_core::{
    Buffer, DType, DownloadDone, Gemm, GivenBack, Gpu, GpuConvolution, GpuFunction, GpuMemory,
    HashMap, Launch, LaunchArg, MemoryPlan, RecordableStep, RecordedStep, RecordedWork, Recorder,
    Recording, Replay, Result, StepDownload,
};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A GPU whose memory is made up and whose kernels do not run. It counts them, and lists them on
/// request.
pub struct NullGpu {
    has_convolutions: bool,
    launches: AtomicU64,
    memory: Mutex<NullMemory>,
    recorder: Recorder,
    /// What kernels are called in lists.
    labels: Mutex<HashMap<u64, String>>,
    /// The texts of all kernels.
    texts: Mutex<BTreeSet<String>>,
    /// The texts that were prepared.
    prepared: Mutex<BTreeSet<String>>,
    /// Kernels whose texts were not prepared when they were loaded, with their formulas.
    unprepared: Mutex<BTreeSet<String>>,
    list: Mutex<Option<Vec<ListedWork>>>,
    /// For recorded steps, which replay on it.
    own: Weak<NullGpu>,
}

/// A kernel, product or copy in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedWork {
    /// The kernel and its formulas, or the sizes of a product.
    pub label: String,
    /// Bytes of all tensors that it reads and writes.
    pub bytes: u64,
    /// Multiplications and additions of products.
    pub flops: f64,
}

impl ListedWork {
    /// Seconds that an H200 takes at least: 4.8 TB/s, and 790 TFLOP/s with 16-bit floats.
    pub fn least_seconds(&self) -> f64 {
        (self.bytes as f64 / 4.8e12).max(self.flops / 790e12)
    }
}

#[derive(Default)]
struct NullMemory {
    /// The end of the last block. Addresses are used once.
    next: u64,
    /// Blocks that are not freed, but for those of recorded steps.
    live: HashMap<u64, usize>,
    in_use: usize,
    peak: usize,
    /// All tensors that are alive.
    tensors: BTreeMap<u64, usize>,
    alive: usize,
    most_alive: usize,
}

impl NullGpu {
    /// A GPU without a driver.
    pub fn new() -> Arc<NullGpu> {
        NullGpu::with_convolutions(false)
    }

    /// The same, with a library for convolutions or without.
    pub fn with_convolutions(has_convolutions: bool) -> Arc<NullGpu> {
        Arc::new_cyclic(|own| NullGpu {
            has_convolutions,
            launches: AtomicU64::new(0),
            memory: Mutex::default(),
            recorder: Recorder::default(),
            labels: Mutex::default(),
            texts: Mutex::default(),
            prepared: Mutex::default(),
            unprepared: Mutex::default(),
            list: Mutex::default(),
            own: own.clone(),
        })
    }

    /// Kernels, products and copies so far.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// The most bytes of tensors that were alive at once since the last call.
    pub fn most_alive(&self) -> usize {
        let mut memory = lock(&self.memory);
        let most = memory.most_alive;
        memory.most_alive = memory.alive;
        most
    }

    /// The texts of all kernels that were loaded.
    pub fn texts(&self) -> Vec<String> {
        lock(&self.texts).iter().cloned().collect()
    }

    /// Kernels whose compilation began only when a step needed them.
    pub fn unprepared(&self) -> Vec<String> {
        lock(&self.unprepared).iter().cloned().collect()
    }

    /// How many texts were prepared.
    pub fn prepared(&self) -> usize {
        lock(&self.prepared).len()
    }

    /// Begins a list of all work.
    pub fn begin_list(&self) {
        *lock(&self.list) = Some(Vec::new());
    }

    /// The list since it was begun.
    pub fn end_list(&self) -> Vec<ListedWork> {
        lock(&self.list).take().unwrap_or_default()
    }

    fn count(&self, work: impl FnOnce() -> ListedWork) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        if lock(&self.list).is_some() {
            let work = work();
            lock(&self.list).get_or_insert_default().push(work);
        }
        Ok(())
    }

    fn alloc_plainly(&self, size: usize) -> u64 {
        let mut memory = lock(&self.memory);
        memory.next = (memory.next + 256).next_multiple_of(256);
        let address = memory.next;
        memory.next += size as u64;
        memory.live.insert(address, size);
        memory.in_use += size;
        memory.peak = memory.peak.max(memory.in_use);
        address
    }

    fn free_plainly(&self, address: u64) {
        let mut memory = lock(&self.memory);
        if let Some(size) = memory.live.remove(&address) {
            memory.in_use -= size;
        }
    }

    /// The bytes of the tensor at an address, which may be within it.
    fn bytes_at(&self, address: u64) -> u64 {
        let memory = lock(&self.memory);
        let before = memory.tensors.range(..=address).next_back();
        let size = before.filter(|(at, size)| address < **at + **size as u64).map(|(_, s)| *s);
        size.unwrap_or(0) as u64
    }

    fn listed_launch(&self, launch: &Launch<'_>) -> ListedWork {
        let label = lock(&self.labels).get(&launch.function.0).cloned().unwrap_or_default();
        let bytes = launch.args.iter().map(|arg| match arg {
            LaunchArg::Address(address) => self.bytes_at(*address),
            // Lists of tensors.
            LaunchArg::Words(words) => words.iter().map(|word| self.bytes_at(*word as u64)).sum(),
            _ => 0,
        });
        ListedWork { label, bytes: bytes.sum(), flops: 0.0 }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rounded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(256)
}

/// The name of a kernel and the formulas in its text.
fn label_of(text: &str, name: &str) -> String {
    let mut label = name.to_string();
    let mut is_formula = false;
    for line in text.lines() {
        is_formula |= line.starts_with("__device__ inline auto wide");
        let formula = match is_formula {
            true => line.trim().strip_prefix("return ").and_then(|rest| rest.strip_suffix(';')),
            // A reduction.
            false => {
                let rest = line.split_once("Narrow<Out>::from(").map(|(_, rest)| rest);
                rest.and_then(|rest| rest.rsplit_once(')')).map(|(formula, _)| formula)
            }
        };
        if let Some(formula) = formula {
            label.push_str("; ");
            label.push_str(formula);
            is_formula = false;
        }
    }
    label
}

fn listed_product(gemm: &Gemm) -> ListedWork {
    let &Gemm { dtype, m, n, k, batch, transpose_a, transpose_b, .. } = gemm;
    let letter = |transposed| if transposed { 'T' } else { 'N' };
    let label = format!(
        "product {dtype} {}{} {batch} x [{m}, {k}] [{k}, {n}]",
        letter(transpose_a),
        letter(transpose_b)
    );
    let label = if gemm.bias.is_some() { format!("{label} + bias") } else { label };
    let elements = batch * (m * k + k * n + m * n);
    let size = dtype.size().unwrap_or(1);
    // Products of floats have half the speed.
    let slower = if dtype == DType::Float { 2.0 } else { 1.0 };
    let flops = 2.0 * (batch * m * n) as f64 * k as f64 * slower;
    ListedWork { label, bytes: (elements * size) as u64, flops }
}

fn listed_convolution(of: &GpuConvolution) -> ListedWork {
    let &GpuConvolution { result, dtype, batch, channels, input, filter, output, .. } = of;
    let label =
        format!("convolution {dtype} {result:?} {batch} x {input:?} {filter:?} {channels:?}");
    let [from, to] = channels;
    let area = |[rows, cols]: [usize; 2]| rows * cols;
    let weights = area(filter) * from / of.groups.max(1) * to;
    let elements = batch * (area(input) * from + area(output) * to) + weights;
    let flops = 2.0 * (batch * area(output)) as f64 * weights as f64;
    ListedWork { label, bytes: (elements * dtype.size().unwrap_or(1)) as u64, flops }
}

impl Gpu for NullGpu {
    fn name(&self) -> &str {
        "GPU:0 (nothing)"
    }

    fn description(&self) -> String {
        "device: 0, name: nothing, pci bus id: 0000:00:00.0, compute capability: 9.0".into()
    }

    fn memory(&self) -> GpuMemory {
        let memory = lock(&self.memory);
        GpuMemory { limit: 1 << 40, in_use: memory.in_use, peak: memory.peak }
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let (size, is_recording) = (rounded(bytes), self.recorder.is_recording());
        let planned = if is_recording { self.recorder.take(size) } else { None };
        let address = match planned {
            Some(address) => address,
            None => {
                let address = self.alloc_plainly(size);
                match is_recording {
                    true => self.recorder.adopt(address, size),
                    false => self.recorder.note_alloc(address, size),
                }
                address
            }
        };
        let mut memory = lock(&self.memory);
        memory.tensors.insert(address, size);
        memory.alive += size;
        memory.most_alive = memory.most_alive.max(memory.alive);
        Ok(address)
    }

    fn free(&self, address: u64, _: usize) {
        {
            let mut memory = lock(&self.memory);
            let size = memory.tensors.remove(&address).unwrap_or(0);
            memory.alive -= size;
        }
        match self.recorder.give_back(address) {
            GivenBack::ToArena => {}
            GivenBack::Region(base, _) => self.free_plainly(base),
            GivenBack::No => {
                self.recorder.note_free(address);
                self.free_plainly(address);
            }
        }
    }

    fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        self.recorder.note(|| RecordedWork::Upload { from: from.into(), to });
        let bytes = from.len() as u64;
        self.count(|| ListedWork { label: "upload".into(), bytes, flops: 0.0 })
    }

    fn download(&self, _: u64, bytes: usize, done: DownloadDone) {
        self.recorder.note_wait();
        let work = || ListedWork { label: "download".into(), bytes: bytes as u64, flops: 0.0 };
        done(self.count(work).and_then(|()| Buffer::zeroed(bytes)));
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        self.recorder.note(|| RecordedWork::Copy { from, to, bytes });
        self.count(|| ListedWork { label: "copy".into(), bytes: 2 * bytes as u64, flops: 0.0 })
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.recorder.note(|| RecordedWork::Clear { address, bytes });
        self.count(|| ListedWork { label: "clear".into(), bytes: bytes as u64, flops: 0.0 })
    }

    fn load(&self, text: &str, name: &str) -> Result<GpuFunction> {
        let mut hasher = DefaultHasher::new();
        (text, name).hash(&mut hasher);
        let function = hasher.finish();
        lock(&self.labels).entry(function).or_insert_with(|| label_of(text, name));
        lock(&self.texts).insert(text.to_string());
        if !lock(&self.prepared).contains(text) {
            lock(&self.unprepared).insert(label_of(text, name));
        }
        Ok(GpuFunction(function))
    }

    fn prepare(&self, text: &str) {
        lock(&self.prepared).insert(text.to_string());
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let &Launch { function, grid, block, args } = launch;
        self.recorder.note(|| RecordedWork::Launch { function, grid, block, args: args.into() });
        self.count(|| self.listed_launch(launch))
    }

    fn gemm(&self, gemm: &Gemm) -> Result<()> {
        self.recorder.note(|| RecordedWork::Gemm(gemm.clone()));
        self.count(|| listed_product(gemm))
    }

    fn has_convolutions(&self) -> bool {
        self.has_convolutions
    }

    fn convolve(&self, convolution: &GpuConvolution) -> Result<bool> {
        if self.has_convolutions {
            self.recorder.note(|| RecordedWork::Convolution(convolution.clone(), 0));
            self.count(|| listed_convolution(convolution))?;
        }
        Ok(self.has_convolutions)
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
        self.recorder.rehearse(step, &mut |address, _| self.free_plainly(address))
    }

    fn record(
        &self,
        step: &mut dyn RecordableStep,
        plan: Option<&Arc<MemoryPlan>>,
    ) -> Result<Option<Arc<dyn RecordedStep>>> {
        let free = &mut |address, _| self.free_plainly(address);
        if let Some(lacks) = plan.map(|plan| self.recorder.lacks(plan, free)).filter(|n| *n > 0) {
            self.recorder.provide(self.alloc_plainly(lacks), lacks, free);
        }
        let recorded = self.recorder.record(step, plan)?.zip(self.own.upgrade());
        Ok(recorded.map(|(recording, gpu)| Arc::new(NullStep { gpu, recording }) as _))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// A recorded step.
struct NullStep {
    gpu: Arc<NullGpu>,
    recording: Recording,
}

impl RecordedStep for NullStep {
    fn replay(&self, feeds: &[(&[u8], u64)], fetches: &mut Vec<StepDownload>) -> Result<Replay> {
        let gpu = &self.gpu;
        gpu.recorder.replay(self.recording.generation, &mut || {
            feeds.iter().try_for_each(|(from, to)| gpu.upload(from, *to))?;
            gpu.launches.fetch_add(self.recording.work.len() as u64, Ordering::Relaxed);
            fetches.drain(..).for_each(|fetch| gpu.download(fetch.from, fetch.bytes, fetch.done));
            Ok(())
        })
    }
}
