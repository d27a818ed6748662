//! Threads on which futures of XLA are completed.
//!
//! XLA runs the rest of a program on the thread that completes a future. That program may compute
//! for a long time, or wait for another collective in a callback, so the engine's thread cannot run
//! it. Each piece of work runs at once: if all threads are busy, a new one starts.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long an idle thread waits for work.
const IDLE: Duration = Duration::from_secs(10);
/// The longest wait of [`settle`].
const DEADLINE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

struct Queue {
    waiting: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    /// Pieces of work that run.
    running: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: VecDeque::new(), idle: 0, running: 0 });
static MORE: Condvar = Condvar::new();
static ENDED: Condvar = Condvar::new();

/// Runs `work` on a thread that runs nothing else during that time.
pub(super) fn complete(work: Work) {
    let mut queue = QUEUE.lock();
    queue.waiting.push_back(work);
    if queue.waiting.len() <= queue.idle {
        MORE.notify_one();
        return;
    }
    drop(queue);
    if std::thread::Builder::new().name("ff-xla".into()).spawn(run_all).is_err() {
        // No thread could be started, so the caller's runs the work.
        run_waiting();
    }
}

/// Waits until no work runs, so that the programs of the previous ranks have ended.
pub(super) fn settle() {
    let until = Instant::now() + DEADLINE;
    let mut queue = QUEUE.lock();
    while queue.running > 0 || !queue.waiting.is_empty() {
        if ENDED.wait_until(&mut queue, until).timed_out() {
            return;
        }
    }
}

fn run_waiting() {
    loop {
        let mut queue = QUEUE.lock();
        let Some(work) = queue.waiting.pop_front() else { return };
        queue.running += 1;
        drop(queue);
        work();
        QUEUE.lock().running -= 1;
        ENDED.notify_all();
    }
}

fn run_all() {
    loop {
        run_waiting();
        let mut queue = QUEUE.lock();
        if !queue.waiting.is_empty() {
            continue;
        }
        queue.idle += 1;
        let is_over = MORE.wait_for(&mut queue, IDLE).timed_out();
        queue.idle -= 1;
        if is_over && queue.waiting.is_empty() {
            return;
        }
    }
}
