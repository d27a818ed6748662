//! Splits the work of one kernel over the compute threads.

use crate::{FlushDenormals, MemoryOwner};
use std::ops::Range;
use std::sync::OnceLock;

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
    let parts = threads.min(len);
    let part = |i: usize| len * i / parts..len * (i + 1) / parts;
    let owner = &MemoryOwner::current();
    pool.in_place_scope(|scope| {
        for i in 1..parts {
            scope.spawn(move |_| match owner {
                Some(owner) => owner.run(|| work(part(i))),
                None => work(part(i)),
            });
        }
        work(part(0));
    });
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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
}
