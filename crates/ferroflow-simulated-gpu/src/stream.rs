//! The stream of a simulated GPU. It is as late as allowed: no work runs before a caller waits for
//! a result, or before very much work is enqueued.

use crate::emulator::EmulatedKernel;
use crate::group::GroupCall;
use crate::product::multiply;
use ferroflow_core::{Buffer, DownloadDone, Error, FlushDenormals, Gemm, LaunchArg, Result, err};
use parking_lot::{Condvar, Mutex};
use std::alloc::{Layout, dealloc};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Entries that may wait before the stream runs unasked.
const LATEST: usize = 2048;

pub(crate) enum Work {
    Fill {
        to: u64,
        bytes: usize,
        value: u8,
    },
    Write {
        from: Box<[u8]>,
        to: u64,
    },
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    Read {
        from: u64,
        bytes: usize,
        done: DownloadDone,
    },
    Kernel {
        kernel: EmulatedKernel,
        grid: [u32; 3],
        block: [u32; 3],
        args: Vec<LaunchArg>,
    },
    Product(Gemm),
    Free {
        address: u64,
        bytes: usize,
    },
    /// Notes the time.
    Mark(Arc<OnceLock<SystemTime>>),
    /// From here on, all work fails.
    Fault(Error),
    /// A collective with other GPUs.
    Group(GroupCall),
}

pub(crate) struct Stream {
    queue: StreamQueue,
    thread: Option<JoinHandle<()>>,
}

/// The work of a stream.
#[derive(Clone)]
pub(crate) struct StreamQueue(Arc<Queue>);

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    /// Entries that must run now.
    due: usize,
    is_busy: bool,
    is_closed: bool,
    failure: Option<Error>,
}

impl Stream {
    pub fn new(seed: u64) -> Stream {
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new() });
        let mine = queue.clone();
        let thread = std::thread::Builder::new().name("simulated-gpu".into());
        let thread = thread.spawn(move || mine.run(seed)).ok();
        Stream { queue: StreamQueue(queue), thread }
    }

    pub fn queue(&self) -> StreamQueue {
        self.queue.clone()
    }

    pub fn push(&self, work: Work) {
        self.queue.push(work);
    }

    /// Runs all that is enqueued, without waiting for it.
    pub fn flush(&self) {
        self.queue.flush();
    }

    /// Waits until all that is enqueued has run.
    pub fn wait(&self) {
        self.queue.wait();
    }

    pub fn failure(&self) -> Option<Error> {
        self.queue.0.state.lock().failure.clone()
    }

    /// From now on, all work fails with `error`.
    pub fn fail(&self, error: Error) {
        self.queue.0.state.lock().failure.get_or_insert(error);
        self.flush();
    }
}

impl StreamQueue {
    pub fn push(&self, work: Work) {
        let mut state = self.0.state.lock();
        state.work.push_back(work);
        if state.work.len() > LATEST {
            state.due = state.work.len();
            self.0.changed.notify_all();
        }
    }

    fn flush(&self) {
        let mut state = self.0.state.lock();
        state.due = state.work.len();
        self.0.changed.notify_all();
    }

    pub fn wait(&self) {
        self.flush();
        let mut state = self.0.state.lock();
        self.0.changed.wait_while(&mut state, |s| s.due > 0 || s.is_busy);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        {
            let mut state = self.queue.0.state.lock();
            state.due = state.work.len();
            state.is_closed = true;
        }
        self.queue.0.changed.notify_all();
        // The last owner may be a callback on the stream's own thread, which cannot join itself.
        let own =
            self.thread.as_ref().is_some_and(|t| t.thread().id() == std::thread::current().id());
        if let Some(thread) = self.thread.take().filter(|_| !own) {
            drop(thread.join());
        }
    }
}

impl Queue {
    fn run(&self, seed: u64) {
        // Kernels are compiled for GPUs so that they flush denormals.
        let _flushes = FlushDenormals::begin();
        let mut number = seed;
        loop {
            let (work, failure) = {
                let mut state = self.state.lock();
                state.is_busy = false;
                self.changed.notify_all();
                self.changed.wait_while(&mut state, |s| s.due == 0 && !s.is_closed);
                let Some(work) = state.work.pop_front() else { return };
                state.due = state.due.saturating_sub(1);
                state.is_busy = true;
                (work, state.failure.clone())
            };
            number = number.wrapping_add(1);
            let failed = match work {
                Work::Fault(why) => Err(why),
                // A group that fails does not make the GPU fail: its owner knows.
                Work::Group(call) if failure.is_none() => {
                    drop(call.run());
                    Ok(())
                }
                work => {
                    work.run(failure, number);
                    Ok(())
                }
            };
            if let Err(why) = failed {
                self.state.lock().failure.get_or_insert(why);
            }
        }
    }
}

impl Work {
    fn run(self, failure: Option<Error>, seed: u64) {
        match self {
            Work::Free { address, bytes } => {
                let layout = Layout::from_size_align(bytes, 256).expect("as it was allocated");
                // SAFETY: `SimulatedGpu::alloc` made it with this layout, and all work that was
                // enqueued before it was freed has run.
                unsafe { dealloc(address as *mut u8, layout) }
            }
            Work::Mark(time) => drop(time.set(SystemTime::now())),
            Work::Read { from, bytes, done } => done(match failure {
                Some(e) => Err(e),
                None => read(from, bytes),
            }),
            _ if failure.is_some() => {}
            // The stream's loop has taken them.
            Work::Fault(_) | Work::Group(_) => {}
            // SAFETY: addresses come from tensors that were alive when the work was enqueued. Their
            // memory is freed in the order of the stream.
            Work::Fill { to, bytes, value } => unsafe {
                std::ptr::write_bytes(to as *mut u8, value, bytes)
            },
            // SAFETY: as above.
            Work::Write { from, to } => unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len())
            },
            // SAFETY: as above.
            Work::Copy { from, to, bytes } => unsafe {
                std::ptr::copy(from as *const u8, to as *mut u8, bytes)
            },
            // SAFETY: as above. The kernel's author vouches for the arguments.
            Work::Kernel { kernel, grid, block, args } => unsafe {
                kernel.run(grid, block, &args, seed)
            },
            // SAFETY: as above.
            Work::Product(gemm) => unsafe { multiply(&gemm) },
        }
    }
}

fn read(from: u64, bytes: usize) -> Result<Buffer> {
    let mut buffer = Buffer::alloc(bytes)?;
    let to = buffer.bytes_mut().ok_or_else(|| err!(Internal, "a new buffer is not ours"))?;
    // SAFETY: the address comes from a tensor that the download keeps alive.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), bytes) };
    Ok(buffer)
}
