//! Splits the work of one kernel over the compute threads.

use crate::{FlushDenormals, MemoryOwner};
use parking_lot::Mutex;
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Least work, in cost units of about a nanosecond, that is worth a second thread. Waking a thread
/// costs about 40 µs.
const SPLIT_FROM: usize = 100_000;

static THREADS: OnceLock<usize> = OnceLock::new();
static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();

/// Sets the number of compute threads of this process. Only the first call before the first use has
/// an effect.
pub fn set_compute_threads(threads: usize) {
    let _ = THREADS.set(threads.max(1));
}

/// The threads over which kernels split their work. Nodes run on other threads: a thread that waits
/// inside rayon steals other work, and would then run one node inside another.
pub struct ComputePool;

impl ComputePool {
    /// The number of compute threads.
    pub fn threads() -> usize {
        *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    /// Runs `work` over `0..len`. Splits it into contiguous ranges if `len * cost` (in about
    /// nanoseconds) is large enough, else runs it inline. The ranges depend only on `len` and the
    /// number of threads, so results are the same in every run.
    pub fn parallel_for(len: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
        // Pass `work` by reference, so that the code for splitting is compiled only once.
        split(len, cost, &work);
    }
}

fn split(len: usize, cost: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = ComputePool::threads();
    if threads == 1 || len < 2 || len.saturating_mul(cost.max(1)) < SPLIT_FROM {
        return work(0..len);
    }
    let Some(pool) = POOL.get_or_init(build) else {
        return work(0..len);
    };
    let shared = Arc::new(Shared::new(len, threads.min(len), work));
    for _ in 1..shared.parts {
        // Helpers that wait behind a long kernel would come too late.
        if QUEUED.load(Ordering::Relaxed) >= threads * MOST_QUEUED {
            break;
        }
        QUEUED.fetch_add(1, Ordering::Relaxed);
        let shared = shared.clone();
        pool.spawn(move || {
            QUEUED.fetch_sub(1, Ordering::Relaxed);
            shared.help();
        });
    }
    shared.run_unclaimed();
    shared.wait();
}

/// Helpers that may wait for a thread, for each compute thread.
const MOST_QUEUED: usize = 8;

/// Helpers that wait for a thread.
static QUEUED: AtomicUsize = AtomicUsize::new(0);

/// The parts of one kernel's work. Its caller runs all of them that no helper has claimed, so a
/// caller waits only for parts that run already: kernels that run for minutes may have all threads.
struct Shared {
    /// Valid until all parts are finished.
    work: *const (dyn Fn(Range<usize>) + Sync),
    len: usize,
    parts: usize,
    /// The first part that no thread has claimed.
    next: AtomicUsize,
    unfinished: AtomicUsize,
    /// The first panic of a part.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
    owner: Option<Arc<MemoryOwner>>,
}

// SAFETY: `work` refers to a `Sync` closure. Only `run_unclaimed` uses it, while it is valid.
unsafe impl Send for Shared {}
// SAFETY: see above.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(len: usize, parts: usize, work: &(dyn Fn(Range<usize>) + Sync)) -> Shared {
        let work: *const (dyn Fn(Range<usize>) + Sync + '_) = work;
        // SAFETY: only the lifetime changes. `split` does not return before all parts are finished.
        let work = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(Range<usize>) + Sync + '_),
                *const (dyn Fn(Range<usize>) + Sync + 'static),
            >(work)
        };
        Shared {
            work,
            len,
            parts,
            next: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(parts),
            panic: Mutex::default(),
            caller: std::thread::current(),
            owner: MemoryOwner::current(),
        }
    }

    /// Runs parts for the session of the caller.
    fn help(&self) {
        match &self.owner {
            Some(owner) => owner.run(|| self.run_unclaimed()),
            None => self.run_unclaimed(),
        }
    }

    /// Runs parts until all are claimed.
    fn run_unclaimed(&self) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.parts {
                return;
            }
            let part = self.len * i / self.parts..self.len * (i + 1) / self.parts;
            // SAFETY: part `i` is claimed and unfinished, so the caller is still in `split`.
            let work = unsafe { &*self.work };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(part))) {
                self.panic.lock().get_or_insert(panic);
            }
            // Releases what the part has written. The last one wakes the caller.
            if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.caller.unpark();
            }
        }
    }

    /// Waits for all parts. Panics if one of them did.
    fn wait(&self) {
        while self.unfinished.load(Ordering::Acquire) > 0 {
            std::thread::park();
        }
        if let Some(panic) = self.panic.lock().take() {
            resume_unwind(panic);
        }
    }
}

fn build() -> Option<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(ComputePool::threads() - 1)
        .thread_name(|i| format!("ff-compute-{i}"))
        .start_handler(|_| FlushDenormals::for_thread())
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn every_index_is_visited_once() {
        for len in [0, 1, 2, 7, 1000, 100_001] {
            let sum = AtomicUsize::new(0);
            ComputePool::parallel_for(len, 1000, |r| {
                sum.fetch_add(r.sum::<usize>(), Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), len * len.saturating_sub(1) / 2);
        }
    }

    #[test]
    fn a_kernel_does_not_wait_for_a_long_one() {
        set_compute_threads(4);
        let (go, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let (done, ended) = channel();
        std::thread::scope(|threads| {
            // Its parts take all threads of the pool.
            let work = |_: Range<usize>| {
                let _ = gate.lock().recv();
            };
            for _ in 0..3 {
                threads.spawn(move || ComputePool::parallel_for(4, 1_000_000, work));
            }
            let short = threads.spawn(move || {
                for _ in 0..200 {
                    let sum = AtomicUsize::new(0);
                    ComputePool::parallel_for(1000, 1000, |r| {
                        sum.fetch_add(r.len(), Ordering::Relaxed);
                    });
                    assert_eq!(sum.into_inner(), 1000);
                }
                let _ = done.send(());
            });
            let ended = ended.recv_timeout(Duration::from_secs(60));
            drop(go);
            assert!(ended.is_ok(), "it waits for another kernel");
            short.join().unwrap();
        });
    }

    #[test]
    fn a_panic_of_a_part_reaches_the_caller() {
        let panicked = std::panic::catch_unwind(|| {
            ComputePool::parallel_for(1000, 1000, |r| assert!(!r.contains(&999), "the last"));
        });
        assert!(panicked.is_err());
    }
}
