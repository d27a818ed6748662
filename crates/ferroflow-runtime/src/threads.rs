//! The threads that run nodes, and those that may block.

use crate::blocking_threads::BlockingThreads;
use ferroflow_core::{MemoryOwner, Spawn};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The stack of a compute thread: deep calls of functions nest on it. Pages are used only when
/// touched.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// A fixed set of compute threads, and a growing set for work that blocks. Threads are started when
/// first needed, and end when the pool is dropped.
///
/// Sessions whose work waits take turns. A kernel may run for minutes, and several of them take all
/// compute threads. Then a session whose work waits, and none of whose work runs, gets a thread of
/// its own for as long as that is so.
pub struct Threads {
    compute: Arc<Queue>,
    blocking: Arc<BlockingThreads>,
    compute_threads: usize,
}

/// How long work waits before its session may get a thread of its own.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// The most threads of their own for sessions.
const MOST_EXTRA: usize = 256;

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
    /// Wakes the thread that starts extra threads.
    watch: Condvar,
}

#[derive(Default)]
struct QueueState {
    work: Turns,
    /// The sessions of the work that runs, by thread.
    running: Vec<u64>,
    idle: usize,
    threads: usize,
    /// How many of them are extra.
    extra: usize,
    watcher: Watcher,
    closed: bool,
}

#[derive(Default, PartialEq)]
enum Watcher {
    #[default]
    NotStarted,
    Asleep,
    Awake,
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
        let not_started = self.compute_threads.saturating_sub(state.threads);
        (state.idle + not_started).saturating_sub(state.work.waiting)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.compute.state.lock().closed = true;
        self.compute.ready.notify_all();
        self.compute.watch.notify_all();
        self.blocking.close();
    }
}

impl QueueState {
    /// Notes that a piece of work of this session has ended.
    fn ended(&mut self, session: u64) {
        if let Some(at) = self.running.iter().position(|s| *s == session) {
            self.running.swap_remove(at);
        }
    }
}

/// Work that waits. The sessions it belongs to take turns.
#[derive(Default)]
struct Turns {
    /// In the order of their turns.
    sessions: VecDeque<Turn>,
    waiting: usize,
    /// Lists for the next sessions.
    spare: Vec<VecDeque<Work>>,
}

struct Turn {
    session: u64,
    /// Never empty.
    work: VecDeque<Work>,
    /// The watcher saw it, and no work of the session was begun since.
    is_late: bool,
}

impl Turns {
    /// Spare lists that are kept, and the longest of them.
    const SPARE: usize = 16;
    const LONGEST_SPARE: usize = 1024;

    fn push(&mut self, session: u64, work: Work) {
        self.waiting += 1;
        if let Some(turn) = self.sessions.iter_mut().find(|turn| turn.session == session) {
            return turn.work.push_back(work);
        }
        let mut list = self.spare.pop().unwrap_or_default();
        list.push_back(work);
        self.sessions.push_back(Turn { session, work: list, is_late: false });
    }

    /// The next piece of work; after it, its session has the last turn.
    fn pop(&mut self) -> Option<(u64, Work)> {
        self.pop_of(0)
    }

    /// The next piece of work of a session none of whose work runs, and to which `applies`. Work of
    /// no session counts as a session of its own.
    fn pop_starved(
        &mut self,
        running: &[u64],
        applies: impl Fn(&Turn) -> bool,
    ) -> Option<(u64, Work)> {
        let is_starved = |turn: &Turn| turn.session == 0 || !running.contains(&turn.session);
        let at = self.sessions.iter().position(|turn| applies(turn) && is_starved(turn))?;
        self.pop_of(at)
    }

    fn pop_of(&mut self, at: usize) -> Option<(u64, Work)> {
        let mut turn = self.sessions.remove(at)?;
        let work = turn.work.pop_front()?;
        let session = turn.session;
        self.waiting -= 1;
        if !turn.work.is_empty() {
            turn.is_late = false;
            self.sessions.push_back(turn);
        } else if self.spare.len() < Turns::SPARE && turn.work.capacity() <= Turns::LONGEST_SPARE {
            self.spare.push(turn.work);
        }
        Some((session, work))
    }
}

impl Queue {
    fn push(queue: &Arc<Queue>, work: Work, max: usize) {
        let mut state = queue.state.lock();
        state.work.push(MemoryOwner::current_id(), work);
        if state.idle >= state.work.waiting {
            drop(state);
            queue.ready.notify_one();
        } else if state.threads < max {
            state.threads += 1;
            let number = state.threads;
            drop(state);
            let own = queue.clone();
            if !start(format!("ff-node-{number}"), move || own.run()) {
                // The system has no thread left. A running thread will take the work; if there is
                // none, the caller runs it.
                let alone = {
                    let mut state = queue.state.lock();
                    state.threads -= 1;
                    if state.threads == 0 { state.work.pop() } else { None }
                };
                if let Some((_, work)) = alone {
                    work();
                }
            }
        } else if state.watcher != Watcher::Awake {
            let is_new = state.watcher == Watcher::NotStarted;
            state.watcher = Watcher::Awake;
            drop(state);
            let own = queue.clone();
            if !is_new {
                queue.watch.notify_one();
            } else if !start("ff-node-watch".into(), move || own.watch_over()) {
                queue.state.lock().watcher = Watcher::NotStarted;
            }
        }
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((session, work)) = state.work.pop() {
                state = self.run_one(state, session, work);
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

    fn run_one<'q>(
        &'q self,
        mut state: MutexGuard<'q, QueueState>,
        session: u64,
        work: Work,
    ) -> MutexGuard<'q, QueueState> {
        state.running.push(session);
        drop(state);
        // Kernels are guarded already. This keeps the thread alive when a callback panics.
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!("work on {:?} panicked", std::thread::current().name());
        }
        let mut state = self.state.lock();
        state.ended(session);
        state
    }

    /// Starts an extra thread for each session whose work has waited while none of it ran.
    fn watch_over(self: Arc<Queue>) {
        let mut state = self.state.lock();
        while !state.closed {
            if state.work.waiting == 0 {
                state.watcher = Watcher::Asleep;
                self.watch.wait(&mut state);
                continue;
            }
            state.work.sessions.iter_mut().for_each(|turn| turn.is_late = true);
            self.watch.wait_for(&mut state, LONGEST_WAIT);
            while state.extra < MOST_EXTRA {
                let QueueState { work, running, .. } = &mut *state;
                let Some((session, work)) = work.pop_starved(running, |turn| turn.is_late) else {
                    break;
                };
                state.extra += 1;
                // It counts as running, so that the session gets one thread.
                state.running.push(session);
                drop(state);
                let own = self.clone();
                let given = Arc::new(Mutex::new(Some(work)));
                let slot = given.clone();
                let run = move || own.run_extra(session, given.lock().take());
                let has_started = start("ff-node-extra".into(), run);
                state = self.state.lock();
                if !has_started {
                    state.extra -= 1;
                    state.ended(session);
                    if let Some(work) = slot.lock().take() {
                        state.work.push(session, work);
                    }
                    break;
                }
            }
        }
    }

    /// Runs `first`, whose session counts as running, and then work of sessions none of whose work
    /// runs, until there is none.
    fn run_extra(&self, session: u64, first: Option<Work>) {
        let mut state = self.state.lock();
        state.ended(session);
        let mut next = first.map(|work| (session, work));
        while let Some((session, work)) = next {
            state = self.run_one(state, session, work);
            let QueueState { work, running, .. } = &mut *state;
            next = work.pop_starved(running, |_| true);
        }
        state.extra -= 1;
    }
}

/// Whether the thread could be started.
fn start(name: String, run: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run).is_ok()
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

    #[test]
    fn a_kernel_that_runs_long_holds_up_no_other_session() {
        let threads = Threads::new(1);
        let (done, wait) = channel();
        let mut gates = Vec::new();
        for _ in 0..3 {
            let (go, blocked) = channel::<()>();
            gates.push(go);
            threads.spawn(Box::new(move || {
                // Fails when the gate is dropped.
                let _ = blocked.recv();
            }));
        }
        threads.spawn(Box::new(move || done.send(7).unwrap()));
        assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(7));
        // Extra threads end when nothing waits, and the pool goes on without them.
        drop(gates);
        let (done, wait) = channel();
        threads.spawn(Box::new(move || done.send(8).unwrap()));
        assert_eq!(wait.recv(), Ok(8));
        let began = std::time::Instant::now();
        while threads.compute.state.lock().extra > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "an extra thread stays");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_session_whose_work_runs_gets_no_thread_of_its_own() {
        let mut turns = Turns::default();
        [1, 1, 2, 1].into_iter().for_each(|session| turns.push(session, Box::new(|| {})));
        let mut starved = |running: &[u64]| turns.pop_starved(running, |_| true).map(|(s, _)| s);
        assert_eq!(starved(&[1, 1]), Some(2));
        assert_eq!(starved(&[1, 1]), None);
        assert_eq!(starved(&[]), Some(1));
        assert_eq!(turns.waiting, 2);
    }

    #[test]
    fn sessions_take_turns() {
        let mut turns = Turns::default();
        [1, 1, 1, 2, 3, 3].into_iter().for_each(|session| turns.push(session, Box::new(|| {})));
        let order: Vec<u64> =
            std::iter::from_fn(|| turns.pop().map(|(session, _)| session)).collect();
        assert_eq!(order, [1, 2, 3, 1, 3, 1]);
        assert_eq!(turns.waiting, 0);
    }

    #[test]
    fn many_pieces_of_work_hold_up_no_other_session() {
        let threads = Threads::new(1);
        let sessions: Vec<_> = (0..2).map(|_| MemoryOwner::unlimited()).collect();
        let (done, wait) = channel();
        let (go, blocked) = channel::<()>();
        sessions[0].run(|| {
            threads.spawn(Box::new(move || {
                let _ = blocked.recv();
            }));
            for i in 0..1000 {
                let done = done.clone();
                threads.spawn(Box::new(move || done.send(i).unwrap()));
            }
        });
        let last = done.clone();
        sessions[1].run(|| threads.spawn(Box::new(move || last.send(4711).unwrap())));
        drop(go);
        let at = (0..1001).position(|_| wait.recv().unwrap() == 4711);
        assert!(at < Some(2), "{at:?}");
    }
}
