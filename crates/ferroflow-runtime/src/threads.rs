//! The threads that run nodes, and those that may block.

use crate::blocking_threads::BlockingThreads;
use ferroflow_core::{MemoryOwner, Spawn};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The stack of a compute thread: deep calls of functions nest on it. Pages are used only when
/// touched.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// A fixed set of compute threads, and a growing set for work that blocks. Threads are started when
/// first needed, and end when the pool is dropped.
pub struct Threads {
    compute: Arc<Queue>,
    blocking: Arc<BlockingThreads>,
    compute_threads: usize,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    work: VecDeque<Work>,
    idle: usize,
    threads: usize,
    closed: bool,
}

impl Threads {
    /// A pool with this many compute threads.
    pub fn new(compute_threads: usize) -> Arc<Threads> {
        Arc::new(Threads {
            compute: Arc::default(),
            blocking: Arc::default(),
            compute_threads: compute_threads.max(1),
        })
    }
}

impl Spawn for Threads {
    fn spawn(&self, work: Work) {
        Queue::push(&self.compute, work, self.compute_threads);
    }

    fn spawn_blocking(&self, work: Work) {
        self.blocking.push(MemoryOwner::current_id(), work);
    }

    fn idle(&self) -> usize {
        let state = self.compute.state.lock();
        let not_started = self.compute_threads - state.threads;
        (state.idle + not_started).saturating_sub(state.work.len())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.compute.state.lock().closed = true;
        self.compute.ready.notify_all();
        self.blocking.close();
    }
}

impl Queue {
    fn push(queue: &Arc<Queue>, work: Work, max: usize) {
        let mut state = queue.state.lock();
        state.work.push_back(work);
        if state.idle >= state.work.len() {
            drop(state);
            queue.ready.notify_one();
        } else if state.threads < max {
            state.threads += 1;
            let number = state.threads;
            drop(state);
            let own = queue.clone();
            let started = std::thread::Builder::new()
                .name(format!("ff-node-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || own.run());
            if started.is_err() {
                // The system has no thread left. A running thread will take the work; if there is
                // none, the caller runs it.
                let alone = {
                    let mut state = queue.state.lock();
                    state.threads -= 1;
                    if state.threads == 0 { state.work.pop_back() } else { None }
                };
                if let Some(work) = alone {
                    work();
                }
            }
        }
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                drop(state);
                // Kernels are guarded already. This keeps the thread alive when a callback panics.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("work on {:?} panicked", std::thread::current().name());
                }
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            self.ready.wait(&mut state);
            state.idle -= 1;
        }
        state.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_runs_and_blocking_work_does_not_hold_it_up() {
        let threads = Threads::new(1);
        let (done, wait) = channel();
        let (go, blocked) = channel::<()>();
        threads.spawn_blocking(Box::new(move || blocked.recv().unwrap()));
        for i in 0..100 {
            let done = done.clone();
            threads.spawn(Box::new(move || done.send(i).unwrap()));
        }
        let mut seen: Vec<i32> = (0..100).map(|_| wait.recv().unwrap()).collect();
        seen.sort();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        go.send(()).unwrap();
    }
}
