//! Threads for work that may block, such as reading a file. Sessions share them. A session whose
//! work blocks forever keeps only its share, and each other session has a thread at least.

use ferroflow_core::HashMap;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::threads::{STACK_BYTES, Work};

/// How long an idle thread waits for the next piece of work.
const IDLE: Duration = Duration::from_secs(5);
/// The most threads of one session.
const MOST_OF_SESSION: usize = 64;
/// The most threads of all sessions. Beyond them, a session without a thread still gets one.
const MOST: usize = 512;
/// The most threads in any case.
const MOST_EVER: usize = 4096;

/// The threads. They are started when first needed. They end once [`BlockingThreads::close`] was
/// called and no work waits.
#[derive(Default)]
pub(crate) struct BlockingThreads {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    /// Sessions with work that runs or waits, by number; 0 stands for work of no session.
    sessions: HashMap<u64, Session>,
    /// Sessions whose work waits, in the order of their turns.
    turns: VecDeque<u64>,
    /// Pieces of work that wait.
    waiting: usize,
    idle: usize,
    threads: usize,
    closed: bool,
}

#[derive(Default)]
struct Session {
    waiting: VecDeque<Work>,
    running: usize,
}

impl State {
    /// The next piece of work, of a session that may have another thread.
    fn next(&mut self) -> Option<(u64, Work)> {
        for _ in 0..self.turns.len() {
            let number = self.turns.pop_front()?;
            let session = self.sessions.entry(number).or_default();
            if session.running >= MOST_OF_SESSION && number != 0 {
                self.turns.push_back(number);
                continue;
            }
            let Some(work) = session.waiting.pop_front() else { continue };
            session.running += 1;
            self.waiting -= 1;
            if !session.waiting.is_empty() {
                self.turns.push_back(number);
            }
            return Some((number, work));
        }
        None
    }

    /// Notes that a piece of work of this session has ended.
    fn ended(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.running -= 1;
        if session.waiting.is_empty() {
            if session.running == 0 {
                self.sessions.remove(&number);
            }
        } else if session.running == 0
            && let Some(at) = self.turns.iter().position(|turn| *turn == number)
        {
            // The session has no thread at present, so it is next.
            self.turns.swap(0, at);
        }
    }

    /// Whether new work of a session gets a new thread, if no thread is idle.
    fn may_start(&self, number: u64) -> bool {
        let running = self.sessions.get(&number).map_or(0, |session| session.running);
        match (number, running) {
            (_, 0) => self.threads < MOST_EVER,
            (0, _) => self.threads < MOST,
            _ => running < MOST_OF_SESSION && self.threads < MOST,
        }
    }
}

impl BlockingThreads {
    /// Runs `work` of the session with this number.
    pub(crate) fn push(self: &Arc<Self>, session: u64, work: Work) {
        let mut state = self.state.lock();
        let of_session = state.sessions.entry(session).or_default();
        of_session.waiting.push_back(work);
        if of_session.waiting.len() == 1 {
            state.turns.push_back(session);
        }
        state.waiting += 1;
        if state.idle >= state.waiting {
            drop(state);
            self.ready.notify_one();
            return;
        }
        if !state.may_start(session) {
            return;
        }
        state.threads += 1;
        // The thread starts with this session, whose work may be the last in the queue.
        let taken = Self::take_of(&mut state, session);
        let number = state.threads;
        drop(state);
        let own = self.clone();
        let slot = Arc::new(Mutex::new(taken));
        let given = slot.clone();
        let started = std::thread::Builder::new()
            .name(format!("ff-blocking-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let first = given.lock().take();
                own.run(first);
            });
        if started.is_err() {
            // The system has no thread left, so the caller runs the work.
            self.state.lock().threads -= 1;
            let taken = slot.lock().take();
            if let Some((session, work)) = taken {
                work();
                self.state.lock().ended(session);
            }
        }
    }

    /// Lets the threads end: no more work will be pushed.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }

    /// Takes the first waiting work of a session.
    fn take_of(state: &mut State, number: u64) -> Option<(u64, Work)> {
        let session = state.sessions.get_mut(&number)?;
        let work = session.waiting.pop_front()?;
        session.running += 1;
        state.waiting -= 1;
        if session.waiting.is_empty() {
            state.turns.retain(|turn| *turn != number);
        }
        Some((number, work))
    }

    fn run(&self, first: Option<(u64, Work)>) {
        let mut next = first;
        let mut state = self.state.lock();
        loop {
            if let Some((session, work)) = next.take().or_else(|| state.next()) {
                drop(state);
                // Kernels are guarded already. This keeps the thread alive when a callback panics.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("work on {:?} panicked", std::thread::current().name());
                }
                state = self.state.lock();
                state.ended(session);
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let timed_out = self.ready.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.turns.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_session_whose_work_blocks_does_not_keep_others_from_theirs() {
        let threads = Arc::new(BlockingThreads::default());
        let (go, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (done, ended) = channel();
        // More work than one session may run, in more sessions than there are threads for.
        for session in 1..=(MOST / MOST_OF_SESSION) as u64 + 2 {
            for _ in 0..MOST_OF_SESSION + 3 {
                let (gate, done) = (gate.clone(), done.clone());
                let work = move || {
                    let _ = gate.lock().recv();
                    done.send(session).unwrap();
                };
                threads.push(session, Box::new(work));
            }
        }
        let (answer, answered) = channel();
        for _ in 0..3 {
            let answer = answer.clone();
            threads.push(4711, Box::new(move || answer.send(()).unwrap()));
        }
        for _ in 0..3 {
            answered.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        assert!(threads.state.lock().threads <= MOST + 16);
        // All waiting work runs in the end.
        drop(go);
        let all = (MOST / MOST_OF_SESSION + 2) * (MOST_OF_SESSION + 3);
        for _ in 0..all {
            ended.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        threads.close();
    }

    #[test]
    fn a_panic_does_not_take_its_thread_away() {
        let threads = Arc::new(BlockingThreads::default());
        let (answer, answered) = channel();
        for i in 0..200 {
            let answer = answer.clone();
            let work = move || {
                answer.send(i).unwrap();
                assert!(i % 7 != 0, "a callback panics");
            };
            threads.push(i % 3, Box::new(work));
        }
        let mut seen: Vec<u64> = (0..200).map(|_| answered.recv().unwrap()).collect();
        seen.sort();
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
    }
}
