//! Where work runs: on the thread that caused it, or on another.
//!
//! A network thread that receives a value makes nodes ready. Waking another thread for them takes
//! longer than most of them run. An [`InlineScope`] is one stretch of work of one thread, and is
//! passed along with every call made in it. Continuations and writes wait in the scope and are done
//! at its end, all on the same thread, within a budget.
//!
//! This file alone decides what stays on a thread, in one unit: nanoseconds of estimated work.

use crate::Spawn;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The approximate cost of waking another thread. Longer work is worth that.
pub const WAKE_NANOS: u64 = 20_000;
/// The budget of one scope of a network thread: other connections wait for its end.
const SCOPE_NANOS: u64 = 100_000;
/// The budget of a request on a network thread that comes once, and not in every step.
const ONCE_NANOS: u64 = 1_000_000;

/// Nodes that took a network thread this long were not the work that they were estimated to be.
const OVERRUN: Duration = Duration::from_millis(20);
/// After an overrun, network threads run no nodes for this many times as long. So such work takes a
/// small part of their time, however many sessions cause it.
const PAUSE_FACTOR: u32 = 20;

/// A cheap node, without its inputs.
const NODE_NANOS: u64 = 50;
/// Bytes of input that a cheap node passes over in a nanosecond.
const BYTES_PER_NANO: u64 = 27;
/// Resuming a run: results are handed over, and mostly one is sent.
const RESUME_NANOS: u64 = 1_500;
/// Compiling a node of a graph.
const COMPILE_NODE_NANOS: u64 = 2_000;
/// Adding a node of a graph to a session.
const READ_NODE_NANOS: u64 = 1_000;
/// Decoding a byte of a graph.
const READ_BYTE_NANOS: u64 = 15;
/// Bytes that a thread copies in a nanosecond.
const COPIED_BYTES_PER_NANO: u64 = 8;

/// A queue of this many cheap nodes is worth another compute thread.
pub const SHARED_NODES: usize = (WAKE_NANOS / NODE_NANOS) as usize;

/// The estimate for a cheap node with `bytes` of input.
pub fn node_nanos(bytes: usize) -> u64 {
    NODE_NANOS + bytes as u64 / BYTES_PER_NANO
}

/// Whether a network thread may compile a graph of `nodes` nodes itself.
pub fn may_compile_inline(nodes: usize) -> bool {
    nodes as u64 * COMPILE_NODE_NANOS <= ONCE_NANOS
}

/// Whether a network thread may add `nodes` nodes to a session itself.
pub fn may_read_nodes_inline(nodes: usize) -> bool {
    nodes as u64 * READ_NODE_NANOS <= ONCE_NANOS
}

/// Whether a network thread may decode a graph of `bytes` bytes itself.
pub fn may_decode_inline(bytes: usize) -> bool {
    bytes as u64 * READ_BYTE_NANOS <= ONCE_NANOS
}

/// Whether a network thread may decode or encode a message itself that has `parsed` bytes to parse
/// and `copied` bytes at most to copy.
pub fn may_convert_inline(parsed: usize, copied: usize) -> bool {
    let copying = copied as u64 / COPIED_BYTES_PER_NANO;
    parsed as u64 * READ_BYTE_NANOS + copying <= ONCE_NANOS
}

/// The kind of thread that a scope is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Serves the network: work stays within a budget, continuations wait for the end of the scope.
    Network,
    /// One of a task's compute threads.
    Compute,
    /// Belongs to a caller that blocks until its run is over.
    Blocking,
    /// Any other. Work stays within a budget, and continuations go to compute threads.
    Unknown,
}

/// Buffered output that is written at the end of a scope.
pub trait Flush: Send + Sync {
    /// Writes what is buffered.
    fn flush(&self);
}

type Continuation = Box<dyn FnOnce(&InlineScope) + Send>;

/// One stretch of work of one thread. It ends when this is dropped.
pub struct InlineScope {
    thread: ThreadKind,
    /// Estimated work that it may still do.
    nanos_left: Cell<u64>,
    continuations: RefCell<VecDeque<(Arc<dyn Spawn>, Continuation)>>,
    outputs: RefCell<Vec<Arc<dyn Flush>>>,
    /// Work that arrived while other work of this scope runs.
    queued: RefCell<VecDeque<Continuation>>,
    is_working: Cell<bool>,
}

impl InlineScope {
    /// A scope of a thread of this kind.
    pub fn new(thread: ThreadKind) -> InlineScope {
        InlineScope {
            thread,
            nanos_left: Cell::new(SCOPE_NANOS),
            continuations: RefCell::default(),
            outputs: RefCell::default(),
            queued: RefCell::default(),
            is_working: Cell::new(false),
        }
    }

    /// Does `work` in a scope of a network thread.
    pub fn network<R>(work: impl FnOnce(&InlineScope) -> R) -> R {
        work(&InlineScope::new(ThreadKind::Network))
    }

    /// The scope of a callback whose thread is not known.
    pub fn unknown() -> InlineScope {
        InlineScope::new(ThreadKind::Unknown)
    }

    /// The kind of thread that it is on.
    pub fn thread(&self) -> ThreadKind {
        self.thread
    }

    /// Whether the scope has a budget, because its thread also serves the network or other callers.
    pub fn has_budget(&self) -> bool {
        matches!(self.thread, ThreadKind::Network | ThreadKind::Unknown)
    }

    /// Takes `nanos` of work from the budget. Returns false if another thread should do the work.
    pub fn admit(&self, nanos: u64) -> bool {
        let left = self.nanos_left.get();
        if nanos > WAKE_NANOS || nanos > left || self.is_paused() {
            return false;
        }
        self.nanos_left.set(left - nanos);
        true
    }

    /// Whether the budget lasts for `nodes` cheap nodes.
    pub fn admits_nodes(&self, nodes: usize) -> bool {
        nodes as u64 * NODE_NANOS <= self.nanos_left.get() && !self.is_paused()
    }

    /// Runs nodes. If that takes much longer than the budget of a scope that has one, no such scope
    /// runs nodes for a while.
    pub fn run_nodes<R>(&self, run: impl FnOnce() -> R) -> R {
        if !self.has_budget() {
            return run();
        }
        let began = Instant::now();
        let result = run();
        let took = began.elapsed();
        if took > OVERRUN {
            PAUSE.extend(took);
        }
        result
    }

    /// Whether scopes with a budget run no nodes at present.
    fn is_paused(&self) -> bool {
        self.has_budget() && PAUSE.is_set() && PAUSE.covers(Instant::now())
    }

    /// Continues with `work` at the end of a network thread's scope; elsewhere on `threads`.
    pub fn defer(
        &self,
        threads: &Arc<dyn Spawn>,
        work: impl FnOnce(&InlineScope) + Send + 'static,
    ) {
        if self.thread == ThreadKind::Network {
            self.continuations.borrow_mut().push_back((threads.clone(), Box::new(work)));
        } else {
            threads.spawn(Box::new(move || work(&InlineScope::new(ThreadKind::Compute))));
        }
    }

    /// Runs `work` now. If other such work of this scope is running, runs it right after that, so
    /// that work which causes more work does not nest on the stack.
    pub fn in_order(&self, work: impl FnOnce(&InlineScope) + Send + 'static) {
        if self.is_working.get() {
            return self.queued.borrow_mut().push_back(Box::new(work));
        }
        let working = Working::begin(self);
        work(self);
        working.drain();
    }

    /// Writes `output` at the end of a network thread's scope; false if it has to be written now.
    pub fn flush_later(&self, output: impl FnOnce() -> Arc<dyn Flush>) -> bool {
        if self.thread != ThreadKind::Network {
            return false;
        }
        self.outputs.borrow_mut().push(output());
        true
    }
}

/// Work under way in a scope.
struct Working<'s>(&'s InlineScope);

impl<'s> Working<'s> {
    fn begin(scope: &'s InlineScope) -> Working<'s> {
        scope.is_working.set(true);
        Working(scope)
    }

    fn drain(&self) {
        loop {
            let next = self.0.queued.borrow_mut().pop_front();
            let Some(work) = next else { return };
            work(self.0);
        }
    }
}

impl Drop for Working<'_> {
    /// Also after a panic, which drops the work that was queued.
    fn drop(&mut self) {
        self.0.is_working.set(false);
        let dropped = self.0.queued.take();
        drop(dropped);
    }
}

impl Drop for InlineScope {
    fn drop(&mut self) {
        while let Some((threads, work)) = self.continuations.get_mut().pop_front() {
            // The continuations of a thread that panics go to others.
            if !std::thread::panicking() && self.admit(RESUME_NANOS) {
                work(self);
            } else {
                threads.spawn(Box::new(move || work(&InlineScope::new(ThreadKind::Compute))));
            }
        }
        self.outputs.get_mut().iter().for_each(|output| output.flush());
    }
}

/// Until when scopes with a budget run no nodes.
struct Pause(AtomicU64);

static PAUSE: Pause = Pause(AtomicU64::new(0));

impl Pause {
    /// Adds to the pause, after a scope that took so long.
    fn extend(&self, took: Duration) {
        let more = u64::try_from((took * PAUSE_FACTOR).as_nanos()).unwrap_or(u64::MAX);
        let now = nanos_of(Instant::now());
        let later = |until: u64| Some(until.max(now).saturating_add(more));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn covers(&self, time: Instant) -> bool {
        nanos_of(time) < self.0.load(Ordering::Relaxed)
    }
}

/// A time as nanoseconds since the first call.
fn nanos_of(time: Instant) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(time.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_keeps_nodes_off_network_threads_for_a_while() {
        let (pause, now) = (Pause(AtomicU64::new(0)), Instant::now());
        assert!(!pause.is_set() && !pause.covers(now));
        pause.extend(Duration::from_secs(1));
        pause.extend(Duration::from_secs(2));
        let in_secs = |secs| now + Duration::from_secs(secs);
        assert!(pause.covers(now) && pause.covers(in_secs(59)) && !pause.covers(in_secs(70)));
    }

    use parking_lot::Mutex;

    /// Keeps the work that it receives.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

    impl Spawn for Kept {
        fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
            self.0.lock().push(work);
        }
        fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
            self.spawn(work);
        }
    }

    type Seen = Arc<Mutex<Vec<(usize, ThreadKind)>>>;

    /// Notes its number and thread, and queues the lower numbers after itself.
    fn countdown(scope: &InlineScope, threads: Arc<dyn Spawn>, seen: Seen, n: usize) {
        let to = threads.clone();
        scope.defer(&threads, move |scope| {
            seen.lock().push((n, scope.thread()));
            if n > 0 {
                countdown(scope, to, seen, n - 1);
            }
        });
    }

    fn kept() -> (Arc<Kept>, Arc<dyn Spawn>, Seen) {
        let kept = Arc::new(Kept::default());
        (kept.clone(), kept, Seen::default())
    }

    #[test]
    fn continuations_run_at_the_end_of_the_scope_in_order() {
        let (kept, threads, seen) = kept();
        InlineScope::network(|scope| {
            countdown(scope, threads.clone(), seen.clone(), 1);
            countdown(scope, threads, seen.clone(), 0);
            assert!(seen.lock().is_empty(), "the scope is not over");
        });
        let order: Vec<usize> = seen.lock().iter().map(|(n, _)| *n).collect();
        assert_eq!(order, [1, 0, 0]);
        assert!(kept.0.lock().is_empty());
    }

    #[test]
    fn a_scope_ends_with_its_budget_and_loses_nothing() {
        const COUNT: usize = 1000;
        let (kept, threads, seen) = kept();
        InlineScope::network(|scope| countdown(scope, threads, seen.clone(), COUNT));
        let inline = seen.lock().len();
        assert_eq!(inline as u64, SCOPE_NANOS / RESUME_NANOS);
        assert_eq!(kept.0.lock().len(), 1);
        // On a compute thread, each item goes back to the threads.
        loop {
            let Some(work) = kept.0.lock().pop() else { break };
            work();
        }
        let seen = seen.lock();
        assert_eq!(seen.len(), COUNT + 1);
        assert!(seen.iter().skip(inline).all(|(_, thread)| *thread == ThreadKind::Compute));
    }

    #[test]
    fn a_panic_gives_the_continuations_to_other_threads() {
        let (kept, threads, seen) = kept();
        let work = std::panic::AssertUnwindSafe(|| {
            InlineScope::network(|scope| {
                countdown(scope, threads, seen.clone(), 0);
                panic!("on purpose");
            })
        });
        assert!(std::panic::catch_unwind(work).is_err());
        assert_eq!((seen.lock().len(), kept.0.lock().len()), (0, 1));
    }

    #[test]
    fn work_that_causes_work_does_not_nest() {
        fn again(scope: &InlineScope, seen: Seen, n: usize) {
            scope.in_order(move |scope| {
                seen.lock().push((n, scope.thread()));
                if n > 0 {
                    again(scope, seen.clone(), n - 1);
                }
                seen.lock().push((n, scope.thread()));
            });
        }
        let seen = Seen::default();
        again(&InlineScope::unknown(), seen.clone(), 100_000);
        let first: Vec<usize> = seen.lock().iter().take(4).map(|(n, _)| *n).collect();
        assert_eq!((first, seen.lock().len()), (vec![100_000, 100_000, 99_999, 99_999], 200_002));
    }

    #[test]
    fn only_network_threads_collect_output() {
        struct Written(Mutex<usize>);
        impl Flush for Written {
            fn flush(&self) {
                *self.0.lock() += 1;
            }
        }
        let written = Arc::new(Written(Mutex::new(0)));
        assert!(!InlineScope::unknown().flush_later(|| written.clone()));
        InlineScope::network(|scope| {
            assert!(scope.flush_later(|| written.clone()));
            assert_eq!(*written.0.lock(), 0);
        });
        assert_eq!(*written.0.lock(), 1);
    }

    #[test]
    fn work_that_is_worth_a_thread_is_not_admitted() {
        let scope = InlineScope::unknown();
        assert!(!scope.admit(WAKE_NANOS + 1));
        assert!(!scope.admit(node_nanos(1 << 20)) && scope.admit(node_nanos(256 << 10)));
        while scope.admit(WAKE_NANOS) {}
        assert!(!scope.admit(WAKE_NANOS) && !scope.admits_nodes(1000));
    }
}
