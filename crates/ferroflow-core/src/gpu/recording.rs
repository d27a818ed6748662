//! Recorded steps: the work that a step enqueued on a GPU, to be enqueued again at once. A replay
//! skips the kernels' host code, and a driver may turn the work into one graph.
//!
//! A step is recorded while it runs. Its allocations come from the *arena* of its GPU, which only
//! recorded steps use, so the recorded addresses stay valid. A rehearsal of the step shows when it
//! allocates and frees memory. The places in the arena ([`MemoryPlan`]) follow from that. All
//! recordings of a GPU share the arena, because nothing in it outlives a step and the stream runs
//! one step after the other. So one step at a time is recorded or replayed: the step that has the
//! *turn*.

use super::memory_plan::{MemoryPlan, MemoryTrace};
use super::{Gemm, Gpu, GpuConvolution, GpuFunction, Launch, LaunchArg};
use crate::{HashMap, HashSet, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

/// Recorded work of one step.
pub trait RecordedStep: Send + Sync {
    /// Enqueues copies of `feeds` to their addresses, the recorded work, and `fetches`, which it
    /// takes. Each download follows the work that computes its value, so the caller gets a result
    /// while the GPU still works on the rest of the step. If the outcome is not [`Replay::Done`],
    /// `fetches` is unchanged.
    fn replay(&self, feeds: &[(&[u8], u64)], fetches: &mut Vec<StepDownload>) -> Result<Replay>;
}

/// A download at the end of a step.
pub struct StepDownload {
    /// The address in the GPU's memory.
    pub from: u64,
    /// The number of bytes.
    pub bytes: usize,
    /// Called once with the bytes.
    pub done: super::DownloadDone,
}

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The work is enqueued.
    Done,
    /// Another step is being recorded. Nothing is enqueued.
    Busy,
    /// The memory of the recording was needed elsewhere. Nothing is enqueued, and no later replay
    /// will work.
    Gone,
}

/// A step that a GPU records while it runs.
pub trait RecordableStep {
    /// Enqueues the work of the step on this thread.
    fn run(&mut self) -> Result<StepMemory>;

    /// Enqueues the downloads of the step. They are not recorded.
    fn finish(&mut self);
}

/// Addresses that the caller of a recorded step uses.
#[derive(Clone, Debug, Default)]
pub struct StepMemory {
    /// The destinations of the step's feeds. Copies to them are not recorded.
    pub feeds: Vec<u64>,
    /// The memory that is downloaded at the end. No other memory of the step may be in use then.
    pub fetches: Vec<u64>,
}

/// One piece of recorded work.
#[derive(Clone, Debug)]
pub enum RecordedWork {
    /// A kernel.
    Launch {
        /// The kernel.
        function: GpuFunction,
        /// Blocks in each dimension.
        grid: [u32; 3],
        /// Threads of a block in each dimension.
        block: [u32; 3],
        /// The arguments.
        args: Box<[LaunchArg]>,
    },
    /// Matrix products.
    Gemm(Gemm),
    /// A convolution, with the address of its scratch memory.
    Convolution(GpuConvolution, u64),
    /// A copy within the GPU's memory.
    Copy {
        /// The source.
        from: u64,
        /// The destination.
        to: u64,
        /// The number of bytes.
        bytes: usize,
    },
    /// Zero bytes.
    Clear {
        /// Where they go.
        address: u64,
        /// The number of bytes.
        bytes: usize,
    },
    /// A copy of constants from the host.
    Upload {
        /// The bytes.
        from: Arc<[u8]>,
        /// The destination.
        to: u64,
    },
}

impl RecordedWork {
    /// Enqueues the work again through `gpu`. For drivers without graphs.
    pub fn enqueue(&self, gpu: &dyn Gpu) -> Result<()> {
        match self {
            RecordedWork::Launch { function, grid, block, args } => {
                gpu.launch(&Launch { function: *function, grid: *grid, block: *block, args })
            }
            RecordedWork::Gemm(gemm) => gpu.gemm(gemm),
            RecordedWork::Convolution(convolution, _) => gpu.convolve(convolution).map(|_| ()),
            &RecordedWork::Copy { from, to, bytes } => gpu.copy(from, to, bytes),
            &RecordedWork::Clear { address, bytes } => gpu.clear(address, bytes),
            RecordedWork::Upload { from, to } => gpu.upload(from, *to),
        }
    }
}

/// A rehearsal needs as much memory again, so it first releases a region larger than this.
const LARGE_REGION: usize = 64 << 20;

/// The recorder of a driver: which step has the turn, the recorded work, and the arena.
#[derive(Default)]
pub struct Recorder {
    /// Whether a step is being recorded. Every launch checks this flag, and the next one at every
    /// free, because both are rarely set.
    is_recording: AtomicBool,
    has_arena: AtomicBool,
    /// Whether a step is being rehearsed.
    is_rehearsing: AtomicBool,
    state: Mutex<RecorderState>,
    changed: Condvar,
}

#[derive(Default)]
struct RecorderState {
    turn: Turn,
    work: Vec<RecordedWork>,
    /// Complete results, and the number of pieces of work at that time.
    results: Vec<(u64, usize)>,
    /// The step cannot be recorded. It has waited for values of the GPU, on which its work may
    /// depend, or memory ran out.
    is_refused: bool,
    arena: Arena,
    /// The step that is being rehearsed.
    rehearsal: Option<(ThreadId, MemoryTrace)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Free,
    /// The work of this thread is recorded.
    Recording(ThreadId),
    /// A recorded step, or its downloads, are being enqueued.
    Replaying,
}

/// Memory that recorded steps share: a region with planned places, and separate blocks.
#[derive(Default)]
struct Arena {
    /// Incremented whenever the arena releases memory.
    generation: u64,
    region: Region,
    /// Released regions in which tensors still have memory.
    orphans: Vec<Region>,
    /// The plan of the step that is being recorded, and its next allocation.
    plan: Option<(Arc<MemoryPlan>, usize)>,
    /// The size of every other block.
    blocks: HashMap<u64, usize>,
    /// Blocks that the step which is being recorded may take, by size.
    free: HashMap<usize, Vec<u64>>,
    /// Blocks that the step which is being recorded has taken and not freed.
    taken: HashSet<u64>,
}

/// A large piece of memory in which tensors have places.
#[derive(Default)]
struct Region {
    base: u64,
    size: usize,
    /// The places of tensors that are alive, by address.
    live: BTreeMap<u64, usize>,
}

impl Region {
    fn contains(&self, address: u64) -> bool {
        self.base <= address && address < self.base + self.size as u64
    }

    /// Whether no tensor is within these bytes.
    fn is_free(&self, address: u64, size: usize) -> bool {
        let before = self.live.range(..address + size as u64).next_back();
        before.is_none_or(|(at, size)| at + *size as u64 <= address)
    }
}

/// What the driver must do with memory that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// Nothing: the memory belongs to the arena.
    ToArena,
    /// Free this region: the memory was the last in use of it.
    Region(u64, usize),
    /// Free the memory.
    No,
}

/// The work of a step, as [`Recorder::record`] collected it.
pub struct Recording {
    /// The work, in order.
    pub work: Vec<RecordedWork>,
    /// The addresses of results that are complete before the rest of the work.
    pub early: Vec<u64>,
    /// The number of pieces of work that compute them.
    pub split: usize,
    /// For [`Recorder::replay`].
    pub generation: u64,
}

/// Results are not downloaded early if less work than this follows.
const LEAST_REST: usize = 4;

impl Recording {
    fn new(work: Vec<RecordedWork>, results: Vec<(u64, usize)>, generation: u64) -> Recording {
        let split = results.iter().map(|(_, after)| *after).max().unwrap_or(0);
        let pays = !results.is_empty() && split + LEAST_REST <= work.len();
        let early = if pays { results } else { Vec::new() };
        let early = early.into_iter().map(|(address, _)| address).collect();
        let split = if pays { split } else { work.len() };
        Recording { work, early, split, generation }
    }
}

/// Takes the downloads of `early` results from `fetches`.
pub fn take_early(fetches: &mut Vec<StepDownload>, early: &[u64]) -> Vec<StepDownload> {
    let (first, rest) =
        std::mem::take(fetches).into_iter().partition(|fetch| early.contains(&fetch.from));
    *fetches = rest;
    first
}

impl Recorder {
    /// Runs `step` on this thread and notes its allocations and frees. Returns `None` if another
    /// step is being rehearsed. Releases a large region through `free`: steps that use it are
    /// recorded again.
    pub fn rehearse(
        &self,
        step: &mut dyn RecordableStep,
        free: &mut dyn FnMut(u64, usize),
    ) -> Result<Option<MemoryPlan>> {
        let me = std::thread::current().id();
        let (begun, region) = {
            let mut state = self.state.lock();
            let begun = state.rehearsal.is_none();
            if begun {
                state.rehearsal = Some((me, MemoryTrace::default()));
                self.is_rehearsing.store(true, Ordering::Release);
            }
            let Region { size, live, .. } = &state.arena.region;
            let is_idle = begun && state.turn == Turn::Free && live.is_empty();
            let gives_up = is_idle && *size > LARGE_REGION;
            state.arena.generation += u64::from(gives_up);
            (begun, gives_up.then(|| std::mem::take(&mut state.arena.region)))
        };
        if let Some(Region { base, size, .. }) = region {
            free(base, size);
        }
        let ran = step.run();
        let trace = begun.then(|| {
            self.is_rehearsing.store(false, Ordering::Release);
            self.state.lock().rehearsal.take()
        });
        step.finish();
        let fetches = ran?.fetches;
        let trace = trace.flatten().map(|(_, trace)| trace);
        Ok(trace.map(|trace| trace.plan(&fetches)))
    }

    /// Notes an allocation of this thread, if its step is being rehearsed.
    pub fn note_alloc(&self, address: u64, size: usize) {
        if !self.is_rehearsing.load(Ordering::Acquire) {
            return;
        }
        if let Some((thread, trace)) = &mut self.state.lock().rehearsal
            && *thread == std::thread::current().id()
        {
            trace.alloc(address, size);
        }
    }

    /// Notes that memory was freed.
    pub fn note_free(&self, address: u64) {
        if self.is_rehearsing.load(Ordering::Acquire)
            && let Some((_, trace)) = &mut self.state.lock().rehearsal
        {
            trace.free(address);
        }
    }

    /// The bytes that the arena lacks for `plan`. Releases a region that is too small through
    /// `free`.
    pub fn lacks(&self, plan: &MemoryPlan, free: &mut dyn FnMut(u64, usize)) -> usize {
        let mut state = self.state.lock();
        if state.turn != Turn::Free || plan.bytes() <= state.arena.region.size {
            return 0;
        }
        let old = std::mem::take(&mut state.arena.region);
        if old.size > 0 {
            state.arena.generation += 1;
            if old.live.is_empty() {
                drop(state);
                free(old.base, old.size);
            } else {
                state.arena.orphans.push(old);
            }
        }
        plan.bytes()
    }

    /// Adds a region to the arena. If the arena has got one meanwhile, returns this one through
    /// `free`.
    pub fn provide(&self, base: u64, size: usize, free: &mut dyn FnMut(u64, usize)) {
        let mut state = self.state.lock();
        if state.turn == Turn::Free && state.arena.region.size == 0 {
            state.arena.region = Region { base, size, live: BTreeMap::new() };
            self.has_arena.store(true, Ordering::Release);
            return;
        }
        drop(state);
        free(base, size);
    }

    /// Runs and records `step`, whose memory is planned if it was rehearsed. Returns `None` if its
    /// work depends on more than its feeds, or if another step has the turn; the step ran all the
    /// same.
    pub fn record(
        &self,
        step: &mut dyn RecordableStep,
        plan: Option<&Arc<MemoryPlan>>,
    ) -> Result<Option<Recording>> {
        let begun = self.begin(plan);
        let ran = step.run();
        if begun {
            self.is_recording.store(false, Ordering::Release);
            self.state.lock().turn = Turn::Replaying;
        }
        // Before the turn ends, because the downloaded memory belongs to the arena.
        step.finish();
        if !begun {
            return ran.map(|_| None);
        }
        let mut state = self.state.lock();
        let mut work = std::mem::take(&mut state.work);
        let mut results = std::mem::take(&mut state.results);
        let generation = state.arena.generation;
        let memory = ran.as_ref().ok();
        let fetched = |a: &u64| memory.is_some_and(|m| m.fetches.contains(a));
        let arena = &mut state.arena;
        let kept: Vec<u64> = arena.taken.iter().copied().filter(|a| !fetched(a)).collect();
        let keeps_place = arena.region.live.keys().any(|a| !fetched(a));
        if !kept.is_empty() || keeps_place {
            // These blocks belong to tensors that outlive the step. Earlier recordings may write
            // there.
            arena.generation += 1;
            for address in &kept {
                arena.blocks.remove(address);
            }
        }
        if keeps_place {
            let region = std::mem::take(&mut arena.region);
            arena.orphans.push(region);
        }
        arena.plan = None;
        arena.taken.clear();
        let is_whole = kept.is_empty() && !keeps_place && !std::mem::take(&mut state.is_refused);
        state.turn = Turn::Free;
        drop(state);
        self.changed.notify_all();
        let memory = ran?;
        for feed in &memory.feeds {
            let is_it =
                |w: &RecordedWork| matches!(w, RecordedWork::Upload { to, .. } if to == feed);
            if let Some(at) = work.iter().position(is_it) {
                work.remove(at);
                for (_, after) in &mut results {
                    *after -= usize::from(at < *after);
                }
            }
        }
        Ok(is_whole.then(|| Recording::new(work, results, generation)))
    }

    fn begin(&self, plan: Option<&Arc<MemoryPlan>>) -> bool {
        let mut state = self.state.lock();
        if state.turn != Turn::Free {
            return false;
        }
        state.turn = Turn::Recording(std::thread::current().id());
        state.is_refused = false;
        let fits = |plan: &&Arc<MemoryPlan>| plan.bytes() <= state.arena.region.size;
        state.arena.plan = plan.filter(fits).map(|plan| (plan.clone(), 0));
        self.is_recording.store(true, Ordering::Release);
        true
    }

    /// Calls `enqueue` during its turn, to replay a recording of this generation.
    pub fn replay(
        &self,
        generation: u64,
        enqueue: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Replay> {
        {
            let mut state = self.state.lock();
            self.changed.wait_while(&mut state, |s| s.turn == Turn::Replaying);
            if state.arena.generation != generation {
                return Ok(Replay::Gone);
            }
            if state.turn != Turn::Free {
                return Ok(Replay::Busy);
            }
            state.turn = Turn::Replaying;
        }
        let done = enqueue();
        self.state.lock().turn = Turn::Free;
        self.changed.notify_one();
        done.map(|()| Replay::Done)
    }

    /// Whether this thread's work is being recorded.
    pub fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Acquire)
            && self.state.lock().turn == Turn::Recording(std::thread::current().id())
    }

    /// Records work of this thread, if it is being recorded.
    pub fn note(&self, work: impl FnOnce() -> RecordedWork) {
        if self.is_recording() {
            let work = work();
            self.state.lock().work.push(work);
        }
    }

    /// Notes that a result of the step is complete after the work so far.
    pub fn note_result(&self, address: u64) {
        if self.is_recording() {
            let mut state = self.state.lock();
            let after = state.work.len();
            state.results.push((address, after));
        }
    }

    /// Notes that this thread waits for a value of the GPU.
    pub fn note_wait(&self) {
        if self.is_recording() {
            self.state.lock().is_refused = true;
        }
    }

    /// Memory of the arena for the step that is being recorded on this thread: its planned place,
    /// or a free block.
    pub fn take(&self, size: usize) -> Option<u64> {
        let mut state = self.state.lock();
        let arena = &mut state.arena;
        if let Some((plan, next)) = &mut arena.plan {
            let place = plan.place(*next, size);
            *next += 1;
            match place {
                Some(Some(offset)) => {
                    let address = arena.region.base + offset as u64;
                    if arena.region.is_free(address, size) {
                        arena.region.live.insert(address, size);
                        return Some(address);
                    }
                    // Another tensor lives longer than in the rehearsal.
                    arena.plan = None;
                }
                // The memory outlives the step.
                Some(None) => return None,
                // The step differs from the rehearsal.
                None => arena.plan = None,
            }
        }
        let address = arena.free.get_mut(&size)?.pop()?;
        arena.taken.insert(address);
        Some(address)
    }

    /// Adds a block to the arena, which the step that is being recorded has taken.
    pub fn adopt(&self, address: u64, size: usize) {
        let mut state = self.state.lock();
        state.arena.blocks.insert(address, size);
        state.arena.taken.insert(address);
        self.has_arena.store(true, Ordering::Release);
    }

    /// Bytes of the arena.
    pub fn memory(&self) -> usize {
        match self.has_arena.load(Ordering::Acquire) {
            true => {
                let state = self.state.lock();
                state.arena.region.size + state.arena.blocks.values().sum::<usize>()
            }
            false => 0,
        }
    }

    /// Takes back memory of the arena.
    pub fn give_back(&self, address: u64) -> GivenBack {
        if !self.has_arena.load(Ordering::Acquire) {
            return GivenBack::No;
        }
        let mut state = self.state.lock();
        let arena = &mut state.arena;
        if arena.region.contains(address) {
            arena.region.live.remove(&address);
            return GivenBack::ToArena;
        }
        if let Some(i) = arena.orphans.iter().position(|orphan| orphan.contains(address)) {
            arena.orphans[i].live.remove(&address);
            if !arena.orphans[i].live.is_empty() {
                return GivenBack::ToArena;
            }
            let Region { base, size, .. } = arena.orphans.swap_remove(i);
            return GivenBack::Region(base, size);
        }
        let Some(&size) = arena.blocks.get(&address) else { return GivenBack::No };
        arena.taken.remove(&address);
        arena.free.entry(size).or_default().push(address);
        GivenBack::ToArena
    }

    /// Releases the arena's free blocks through `free`, when memory has run out. Returns false if
    /// there are none, or if a step of another thread has the turn. A step that this thread is
    /// recording goes on unrecorded.
    pub fn release(&self, free: &mut dyn FnMut(u64, usize)) -> bool {
        let mut state = self.state.lock();
        let is_own = state.turn == Turn::Recording(std::thread::current().id());
        let has_memory = !state.arena.blocks.is_empty() || state.arena.region.size > 0;
        if state.turn != Turn::Free && !is_own || !has_memory {
            return false;
        }
        if is_own {
            state.is_refused = true;
            state.arena.taken.clear();
            state.arena.plan = None;
        }
        let mut blocks = std::mem::take(&mut state.arena.free);
        let region = std::mem::take(&mut state.arena.region);
        match region.size {
            0 => {}
            size if region.live.is_empty() => blocks.entry(size).or_default().push(region.base),
            // The last tensor in the region frees it.
            _ => state.arena.orphans.push(region),
        }
        // Blocks that are still being downloaded are freed by their tensors.
        state.arena.blocks.clear();
        state.arena.generation += 1;
        drop(state);
        let mut any = false;
        for (size, addresses) in blocks {
            addresses.into_iter().for_each(|address| free(address, size));
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::err;

    /// A step that calls `run` with the recorder.
    struct Step<'a, F>(&'a Recorder, F);

    impl<F: FnMut(&Recorder) -> Result<StepMemory>> RecordableStep for Step<'_, F> {
        fn run(&mut self) -> Result<StepMemory> {
            (self.1)(self.0)
        }
        fn finish(&mut self) {}
    }

    fn clear(address: u64) -> RecordedWork {
        RecordedWork::Clear { address, bytes: 1 }
    }

    fn record(
        recorder: &Recorder,
        run: impl FnMut(&Recorder) -> Result<StepMemory>,
    ) -> Result<Option<Recording>> {
        recorder.record(&mut Step(recorder, run), None)
    }

    #[test]
    fn a_recording_has_the_work_of_its_thread_alone() {
        let recorder = Recorder::default();
        let made = record(&recorder, |r| {
            r.note(|| clear(1));
            std::thread::scope(|s| s.spawn(|| r.note(|| clear(2))).join()).expect("a thread");
            Ok(StepMemory::default())
        });
        recorder.note(|| clear(3));
        let work = made.unwrap().unwrap().work;
        assert!(matches!(work[..], [RecordedWork::Clear { address: 1, .. }]), "{work:?}");
    }

    #[test]
    fn results_are_downloaded_before_work_that_does_not_change_them() {
        let recorder = Recorder::default();
        let recorded = |rest: usize| {
            let made = record(&recorder, |r| {
                r.note(|| RecordedWork::Upload { from: [7][..].into(), to: 9 });
                r.note(|| clear(1));
                r.note_result(1);
                (0..rest).for_each(|_| r.note(|| clear(2)));
                Ok(StepMemory { feeds: vec![9], ..StepMemory::default() })
            });
            made.unwrap().unwrap()
        };
        let long = recorded(LEAST_REST);
        assert_eq!((long.split, &long.early[..], long.work.len()), (1, &[1][..], 1 + LEAST_REST));
        let short = recorded(LEAST_REST - 1);
        assert_eq!((short.split, &short.early[..]), (LEAST_REST, &[][..]));
        let fetch = |from| StepDownload { from, bytes: 4, done: Box::new(|_| ()) };
        let mut fetches = vec![fetch(2), fetch(1)];
        let first = take_early(&mut fetches, &long.early);
        assert_eq!([first[0].from, fetches[0].from], [1, 2]);
    }

    #[test]
    fn a_step_whose_memory_stays_in_use_is_not_recorded() {
        let recorder = Recorder::default();
        let keep = |r: &Recorder| {
            r.adopt(256, 256);
            Ok(StepMemory::default())
        };
        let before = record(&recorder, |_| Ok(StepMemory::default())).unwrap().unwrap();
        assert!(record(&recorder, keep).unwrap().is_none());
        assert_eq!(recorder.give_back(256), GivenBack::No, "the driver frees it");
        let replayed = recorder.replay(before.generation, &mut || Ok(()));
        assert_eq!(replayed.unwrap(), Replay::Gone, "it may write to that memory");
        let fetch = |r: &Recorder| {
            r.adopt(512, 256);
            Ok(StepMemory { fetches: vec![512], ..StepMemory::default() })
        };
        assert!(record(&recorder, fetch).unwrap().is_some());
        assert_eq!(recorder.give_back(512), GivenBack::ToArena, "it is used again");
    }

    #[test]
    fn a_step_that_waits_for_values_is_not_recorded() {
        let recorder = Recorder::default();
        let wait = |r: &Recorder| {
            r.note_wait();
            Ok(StepMemory::default())
        };
        assert!(record(&recorder, wait).unwrap().is_none());
        let failed = record(&recorder, |_| Err(err!(Internal, "a fault")));
        assert!(failed.is_err() && !recorder.is_recording());
    }

    #[test]
    fn recordings_end_when_their_memory_is_needed() {
        let recorder = Recorder::default();
        let step = |r: &Recorder| {
            r.adopt(256, 256);
            let others = || r.release(&mut |_, _| ());
            let released = std::thread::scope(|s| s.spawn(others).join()).expect("a thread");
            assert!(!released, "the step has the turn");
            r.give_back(256);
            assert_eq!(r.take(256), Some(256));
            r.give_back(256);
            Ok(StepMemory::default())
        };
        let made = record(&recorder, step).unwrap().unwrap();
        let mut enqueue = || Ok(());
        assert_eq!(recorder.replay(made.generation, &mut enqueue).unwrap(), Replay::Done);
        let mut freed = Vec::new();
        assert!(recorder.release(&mut |address, size| freed.push((address, size))));
        assert_eq!(freed, [(256, 256)]);
        assert_eq!(recorder.replay(made.generation, &mut enqueue).unwrap(), Replay::Gone);
    }

    #[test]
    fn a_step_that_runs_out_of_memory_goes_on_without_being_recorded() {
        let recorder = Recorder::default();
        let step = |r: &Recorder| {
            r.adopt(256, 256);
            r.adopt(512, 256);
            r.give_back(256);
            let mut freed = Vec::new();
            assert!(r.release(&mut |address, _| freed.push(address)));
            assert_eq!(freed, [256]);
            assert_eq!(r.give_back(512), GivenBack::No, "the driver frees it");
            Ok(StepMemory::default())
        };
        assert!(record(&recorder, step).unwrap().is_none());
    }

    /// Memory of a driver: addresses count up, and frees are noted.
    fn planned(recorder: &Recorder, sizes: &[usize]) -> Arc<MemoryPlan> {
        let step = |r: &Recorder| {
            for (i, size) in sizes.iter().enumerate() {
                r.note_alloc(1 << 20 | (i as u64) << 12, *size);
                // Each block is freed when the next but one is allocated.
                if let Some(old) = i.checked_sub(1) {
                    r.note_free(1 << 20 | (old as u64) << 12);
                }
            }
            r.note_free(1 << 20 | (sizes.len() as u64 - 1) << 12);
            Ok(StepMemory::default())
        };
        let rehearsed = recorder.rehearse(&mut Step(recorder, step), &mut |_, _| ());
        Arc::new(rehearsed.unwrap().unwrap())
    }

    #[test]
    fn a_rehearsed_step_gets_its_planned_places() {
        let recorder = Recorder::default();
        let plan = planned(&recorder, &[1024, 512, 1024]);
        assert_eq!((plan.bytes(), plan.least_bytes()), (1536, 1536));
        let mut freed = Vec::new();
        let lacks = recorder.lacks(&plan, &mut |address, size| freed.push((address, size)));
        assert_eq!(lacks, 1536);
        recorder.provide(4096, lacks, &mut |_, _| ());
        let step = |r: &Recorder| {
            let (a, b) = (r.take(1024).unwrap(), r.take(512).unwrap());
            assert!(a + 1024 <= b || b + 512 <= a, "{a} {b}");
            assert_eq!(r.give_back(a), GivenBack::ToArena);
            let c = r.take(1024).unwrap();
            assert!(b + 512 <= c || c + 1024 <= b, "{b} {c}");
            assert_eq!(r.take(256), None, "it was not planned");
            assert_eq!(r.give_back(b), GivenBack::ToArena);
            assert_eq!(r.give_back(c), GivenBack::ToArena);
            Ok(StepMemory::default())
        };
        assert!(recorder.record(&mut Step(&recorder, step), Some(&plan)).unwrap().is_some());
        assert_eq!(recorder.memory(), 1536);
        // A larger plan needs another region, and earlier recordings end.
        let larger = planned(&recorder, &[4096, 256]);
        let lacks = recorder.lacks(&larger, &mut |address, size| freed.push((address, size)));
        assert_eq!((lacks, &freed[..]), (4352, &[(4096, 1536)][..]));
        let replayed = recorder.replay(0, &mut || Ok(()));
        assert_eq!(replayed.unwrap(), Replay::Gone);
    }

    #[test]
    fn a_region_is_freed_with_the_last_tensor_in_it() {
        let recorder = Recorder::default();
        let plan = planned(&recorder, &[256, 256]);
        recorder.provide(4096, plan.bytes(), &mut |_, _| ());
        let keep = |r: &Recorder| {
            let _kept = (r.take(256), r.take(256));
            Ok(StepMemory::default())
        };
        assert!(recorder.record(&mut Step(&recorder, keep), Some(&plan)).unwrap().is_none());
        assert_eq!(recorder.memory(), 0);
        assert_eq!(recorder.give_back(4096), GivenBack::ToArena);
        assert_eq!(recorder.give_back(4096 + 256), GivenBack::Region(4096, 512));
        assert_eq!(recorder.give_back(4096), GivenBack::No);
    }

    #[test]
    fn a_large_region_is_given_up_for_a_rehearsal() {
        let recorder = Recorder::default();
        recorder.provide(4096, LARGE_REGION + 256, &mut |_, _| ());
        let mut freed = Vec::new();
        let step = |_: &Recorder| Ok(StepMemory::default());
        let mut free = |address, size| freed.push((address, size));
        assert!(recorder.rehearse(&mut Step(&recorder, step), &mut free).unwrap().is_some());
        assert_eq!(freed, [(4096, LARGE_REGION + 256)]);
        assert_eq!(recorder.replay(0, &mut || Ok(())).unwrap(), Replay::Gone);
    }

    #[test]
    fn a_place_is_not_given_twice_when_a_tensor_lives_longer() {
        let recorder = Recorder::default();
        let plan = planned(&recorder, &[256, 512, 256]);
        recorder.provide(4096, plan.bytes(), &mut |_, _| ());
        let step = |r: &Recorder| {
            let (a, b) = (r.take(256).unwrap(), r.take(512).unwrap());
            assert_eq!(r.take(256), None, "the first is still there");
            assert_eq!([r.give_back(a), r.give_back(b)], [GivenBack::ToArena; 2]);
            Ok(StepMemory::default())
        };
        assert!(recorder.record(&mut Step(&recorder, step), Some(&plan)).unwrap().is_some());
    }
}
