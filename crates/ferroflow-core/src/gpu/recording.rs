//! Recorded steps: the work that a step enqueued on a GPU, to be enqueued again as a whole. A
//! replay skips the kernels' host code, and a driver may make one graph of the work.
//!
//! A step is recorded while it runs. What it allocates meanwhile comes from the *arena* of its GPU:
//! blocks that only recorded steps use, at the addresses that the recorded work has. All recordings
//! of a GPU share the arena, because nothing in it outlives a step and the stream runs one step
//! after the other. So one step at a time is recorded or replayed: it has the *turn*.

use super::{Gemm, Gpu, GpuConvolution, GpuFunction, Launch, LaunchArg};
use crate::{HashMap, HashSet, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

/// Recorded work of one step.
pub trait RecordedStep: Send + Sync {
    /// Enqueues copies of `feeds` to their addresses, the recorded work, and `fetches`, which it
    /// takes. They stay where they are if the outcome is not [`Replay::Done`].
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
    /// The memory of the recording was needed elsewhere. Nothing is enqueued, now and later.
    Gone,
}

/// A step that a GPU records while it runs.
pub trait RecordableStep {
    /// Enqueues the work of the step on this thread.
    fn run(&mut self) -> Result<StepMemory>;

    /// Enqueues the downloads of the step. They are not recorded.
    fn finish(&mut self);
}

/// Addresses with a meaning to the caller of a recorded step.
#[derive(Clone, Debug, Default)]
pub struct StepMemory {
    /// Where the step's feeds were copied to. Copies to these are not recorded.
    pub feeds: Vec<u64>,
    /// What is downloaded at the end. No other memory of the step may still be in use then.
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

/// The recorder of a driver: whose turn it is, what is recorded, and the arena.
#[derive(Default)]
pub struct Recorder {
    /// Whether a step is being recorded, and whether the arena has blocks: both are rare, and
    /// every launch and every free asks.
    is_recording: AtomicBool,
    has_arena: AtomicBool,
    state: Mutex<RecorderState>,
    changed: Condvar,
}

#[derive(Default)]
struct RecorderState {
    turn: Turn,
    work: Vec<RecordedWork>,
    /// The step cannot be recorded: it has waited for values of the GPU, on which its work may
    /// depend, or memory ran out.
    is_refused: bool,
    arena: Arena,
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

/// Blocks that recorded steps share.
#[derive(Default)]
struct Arena {
    /// Counts how often its blocks were given up.
    generation: u64,
    /// The size of every block.
    blocks: HashMap<u64, usize>,
    /// Blocks that the step which is being recorded may take, by size.
    free: HashMap<usize, Vec<u64>>,
    /// Blocks that the step which is being recorded has taken and not freed.
    taken: HashSet<u64>,
}

/// The work of a step as [`Recorder::record`] found it.
pub struct Recording {
    /// The work, in order.
    pub work: Vec<RecordedWork>,
    /// For [`Recorder::replay`].
    pub generation: u64,
}

impl Recorder {
    /// Runs and records `step`. `None` if its work depends on more than its feeds, or if another
    /// step has the turn; the step ran all the same.
    pub fn record(&self, step: &mut dyn RecordableStep) -> Result<Option<Recording>> {
        let begun = self.begin();
        let ran = step.run();
        if begun {
            self.is_recording.store(false, Ordering::Release);
            self.state.lock().turn = Turn::Replaying;
        }
        // Before the turn ends: the memory that is downloaded belongs to the arena.
        step.finish();
        if !begun {
            return ran.map(|_| None);
        }
        let mut state = self.state.lock();
        let mut work = std::mem::take(&mut state.work);
        let generation = state.arena.generation;
        let memory = ran.as_ref().ok();
        let fetched = |a: &u64| memory.is_some_and(|m| m.fetches.contains(a));
        let kept: Vec<u64> = state.arena.taken.iter().copied().filter(|a| !fetched(a)).collect();
        if !kept.is_empty() {
            // They belong to tensors that outlive the step. Recordings from before may write there.
            state.arena.generation += 1;
            for address in &kept {
                state.arena.blocks.remove(address);
            }
        }
        state.arena.taken.clear();
        let is_whole = kept.is_empty() && !std::mem::take(&mut state.is_refused);
        state.turn = Turn::Free;
        drop(state);
        self.changed.notify_all();
        let memory = ran?;
        for feed in &memory.feeds {
            let is_it =
                |w: &RecordedWork| matches!(w, RecordedWork::Upload { to, .. } if to == feed);
            if let Some(at) = work.iter().position(is_it) {
                work.remove(at);
            }
        }
        Ok(is_whole.then_some(Recording { work, generation }))
    }

    fn begin(&self) -> bool {
        let mut state = self.state.lock();
        if state.turn != Turn::Free {
            return false;
        }
        state.turn = Turn::Recording(std::thread::current().id());
        state.is_refused = false;
        self.is_recording.store(true, Ordering::Release);
        true
    }

    /// Has the turn while it calls `enqueue`, which replays a recording of this generation.
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

    /// Notes that this thread waits for a value of the GPU.
    pub fn note_wait(&self) {
        if self.is_recording() {
            self.state.lock().is_refused = true;
        }
    }

    /// A free block of the arena, for the step that is being recorded on this thread.
    pub fn take(&self, size: usize) -> Option<u64> {
        let mut state = self.state.lock();
        let address = state.arena.free.get_mut(&size)?.pop()?;
        state.arena.taken.insert(address);
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
            true => self.state.lock().arena.blocks.values().sum(),
            false => 0,
        }
    }

    /// Takes back a block. False if it is none of the arena: the driver frees it.
    pub fn give_back(&self, address: u64) -> bool {
        if !self.has_arena.load(Ordering::Acquire) {
            return false;
        }
        let mut state = self.state.lock();
        let Some(&size) = state.arena.blocks.get(&address) else { return false };
        state.arena.taken.remove(&address);
        state.arena.free.entry(size).or_default().push(address);
        true
    }

    /// Gives up the arena, when memory has run out: calls `free` for its free blocks. False if
    /// there are none, or if a step of another thread has the turn. A step that is being recorded
    /// on this thread goes on without being recorded.
    pub fn release(&self, free: &mut dyn FnMut(u64, usize)) -> bool {
        let mut state = self.state.lock();
        let is_own = state.turn == Turn::Recording(std::thread::current().id());
        if state.turn != Turn::Free && !is_own || state.arena.blocks.is_empty() {
            return false;
        }
        if is_own {
            state.is_refused = true;
            state.arena.taken.clear();
        }
        let blocks = std::mem::take(&mut state.arena.free);
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

    /// A step that calls `run`, which gets the recorder.
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
        recorder.record(&mut Step(recorder, run))
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
    fn a_step_whose_memory_stays_in_use_is_not_recorded() {
        let recorder = Recorder::default();
        let keep = |r: &Recorder| {
            r.adopt(256, 256);
            Ok(StepMemory::default())
        };
        let before = record(&recorder, |_| Ok(StepMemory::default())).unwrap().unwrap();
        assert!(record(&recorder, keep).unwrap().is_none());
        assert!(!recorder.give_back(256), "the driver frees it");
        let replayed = recorder.replay(before.generation, &mut || Ok(()));
        assert_eq!(replayed.unwrap(), Replay::Gone, "it may write to that memory");
        let fetch = |r: &Recorder| {
            r.adopt(512, 256);
            Ok(StepMemory { fetches: vec![512], ..StepMemory::default() })
        };
        assert!(record(&recorder, fetch).unwrap().is_some());
        assert!(recorder.give_back(512), "the next recording uses it again");
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
            assert!(!r.give_back(512), "the driver frees it");
            Ok(StepMemory::default())
        };
        assert!(record(&recorder, step).unwrap().is_none());
    }
}
