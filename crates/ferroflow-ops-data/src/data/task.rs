//! Work that waits without a thread: futures, driven by the threads that run nodes.
//!
//! Everything a pipeline does is a future. A [`Task`] polls one on the thread that starts or wakes
//! it; between polls no thread blocks. A kernel's task ends with its step, a background task when
//! its owner drops it.

use crate::prelude::*;
use ferroflow_core::{CancelToken, MemoryOwner, OnCancel, Spawn, StepCtx, ThreadKind};
use parking_lot::Mutex;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Idle until it is woken.
const IDLE: u8 = 0;
/// Scheduled to run on a thread.
const QUEUED: u8 = 1;
/// Being polled.
const RUNNING: u8 = 2;
/// Being polled, and woken meanwhile.
const WOKEN: u8 = 3;
const DONE: u8 = 4;

/// How many elements a task may take in a poll. After that other tasks run, and the task checks
/// whether it is cancelled.
const TURN: u32 = 256;

/// The running poll of a task.
#[derive(Clone, Copy)]
struct Polling {
    /// Elements that it may still take.
    left: u32,
    thread: ThreadKind,
    /// The task is about to read or write a file, and needs a thread that may block.
    needs_blocking: bool,
}

impl Polling {
    const fn new(thread: ThreadKind) -> Polling {
        Polling { left: TURN, thread, needs_blocking: false }
    }
}

thread_local! {
    /// Futures receive only a `Context`, so the current poll is kept in a thread-local.
    static POLLING: Cell<Polling> =
        const { Cell::new(Polling::new(ThreadKind::Unknown)) };
}

/// A scope for a function that the task under way calls.
pub(super) fn polling_scope() -> InlineScope {
    InlineScope::new(POLLING.get().thread)
}

/// Counts one element of the task that is being polled. Yields when the task has taken its share.
pub(crate) async fn take_turn() {
    let mut paused = false;
    poll_fn(move |cx| {
        let polling = POLLING.get();
        if polling.left == 0 && !paused {
            paused = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        POLLING.set(Polling { left: polling.left.saturating_sub(1), ..polling });
        Poll::Ready(())
    })
    .await
}

/// Continues on a thread that may block. Called before each access to a file.
pub(crate) async fn before_io() {
    poll_fn(|cx| {
        let polling = POLLING.get();
        if polling.thread == ThreadKind::Blocking {
            return Poll::Ready(());
        }
        POLLING.set(Polling { needs_blocking: true, ..polling });
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

struct Task {
    state: AtomicU8,
    cancelled: AtomicBool,
    /// `None` while it is polled.
    future: Mutex<Option<Boxed<()>>>,
    threads: Arc<dyn Spawn>,
    memory: Arc<MemoryOwner>,
    /// Unregistered when the task is dropped.
    watches: Mutex<Vec<OnCancel>>,
}

impl Task {
    fn new(threads: &Arc<dyn Spawn>, memory: &Arc<MemoryOwner>, future: Boxed<()>) -> Arc<Task> {
        Arc::new(Task {
            state: AtomicU8::new(QUEUED),
            cancelled: AtomicBool::new(false),
            future: Mutex::new(Some(future)),
            threads: threads.clone(),
            memory: memory.clone(),
            watches: Mutex::default(),
        })
    }

    fn run(self: Arc<Self>, thread: ThreadKind) {
        self.state.store(RUNNING, Ordering::Release);
        let Some(mut future) = self.future.lock().take() else { return };
        if self.cancelled.load(Ordering::Acquire) {
            self.state.store(DONE, Ordering::Release);
            return drop(future);
        }
        let waker = Waker::from(self.clone());
        // A task may be started, and polled, by a kernel that another task's function runs.
        let before = POLLING.replace(Polling::new(thread));
        let mut cx = Context::from_waker(&waker);
        let poll = self.memory.run(|| future.as_mut().poll(&mut cx));
        let needs_blocking = POLLING.replace(before).needs_blocking;
        if poll.is_ready() {
            self.state.store(DONE, Ordering::Release);
            return drop(future);
        }
        *self.future.lock() = Some(future);
        let idle = self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if idle.is_err() {
            self.state.store(QUEUED, Ordering::Release);
            // A task that has taken its share while it reads files goes on reading.
            match needs_blocking || thread == ThreadKind::Blocking {
                true => self.queue_blocking(),
                false => self.queue(),
            }
        }
    }

    fn queue(self: Arc<Self>) {
        let threads = self.threads.clone();
        threads.spawn(Box::new(move || self.run(ThreadKind::Compute)));
    }

    fn queue_blocking(self: Arc<Self>) {
        let (threads, memory) = (self.threads.clone(), self.memory.clone());
        // The memory counts for the task's session, not for that of the thread that woke it.
        memory.run(|| threads.spawn_blocking(Box::new(move || self.run(ThreadKind::Blocking))));
    }

    /// Drops the future, now or when it has been polled.
    fn cancel(self: Arc<Self>) {
        self.cancelled.store(true, Ordering::Release);
        self.wake();
    }

    fn cancel_with(self: &Arc<Self>, token: &CancelToken) {
        let task: Weak<Task> = Arc::downgrade(self);
        let watch = token.on_cancel(move |_| {
            if let Some(task) = task.upgrade() {
                task.cancel();
            }
        });
        self.watches.lock().push(watch);
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let next = |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(WOKEN),
            _ => None,
        };
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(IDLE) {
            self.queue();
        }
    }
}

/// A task in the background; it ends when this is dropped.
pub(super) struct Background(Arc<Task>);

impl Background {
    /// Starts `work` on another thread.
    pub fn start(
        threads: &Arc<dyn Spawn>,
        memory: &Arc<MemoryOwner>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Background {
        let task = Task::new(threads, memory, Box::pin(work));
        task.clone().queue();
        Background(task)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.clone().cancel();
    }
}

/// Runs `work` for an async kernel, beginning on this thread. The work ends and the kernel fails
/// when the step or `also` is cancelled.
pub(crate) fn run_kernel(
    step: &Arc<StepCtx>,
    also: Option<&CancelToken>,
    scope: &InlineScope,
    done: Done,
    work: impl Future<Output = Result<Vec<Tensor>>> + Send + 'static,
) {
    let tokens: Vec<CancelToken> =
        [Some(&step.cancel), also].into_iter().flatten().cloned().collect();
    let kernel =
        KernelWork { work: Some(Box::pin(work)), done: Some(done), tokens: tokens.clone() };
    let task = Task::new(&step.threads, &step.memory, Box::pin(kernel));
    for token in &tokens {
        task.cancel_with(token);
    }
    task.run(scope.thread());
}

/// The work of a kernel and its `Done`, which completes the kernel however the work ends.
struct KernelWork {
    work: Option<Boxed<Result<Vec<Tensor>>>>,
    done: Option<Done>,
    tokens: Vec<CancelToken>,
}

impl Future for KernelWork {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.work else { return Poll::Ready(()) };
        let Poll::Ready(result) = work.as_mut().poll(cx) else { return Poll::Pending };
        self.work = None;
        if let Some(done) = self.done.take() {
            done.finish_tensors(result);
        }
        Poll::Ready(())
    }
}

impl Drop for KernelWork {
    fn drop(&mut self) {
        self.work = None;
        if let Some(done) = self.done.take() {
            let cancelled = self.tokens.iter().find_map(CancelToken::error);
            done.fail(match cancelled {
                Some(error) => error,
                None => err!(Internal, "a pipeline's work ended without a result"),
            });
        }
    }
}

/// Lets `work` poll futures on this thread, which may block.
#[cfg(test)]
pub(super) fn polled_here<R>(work: impl FnOnce() -> R) -> R {
    let before = POLLING.replace(Polling::new(ThreadKind::Blocking));
    let result = work();
    POLLING.set(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::standalone_step;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn background_work_ends_with_its_owner() {
        struct Tell(std::sync::mpsc::Sender<()>);
        impl Drop for Tell {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let step = standalone_step(Arc::new(Resources::new()));
        let (tell, ended) = channel();
        let tell = Tell(tell);
        let work = Background::start(&step.threads, &step.memory, async move {
            let _held = tell;
            loop {
                take_turn().await;
            }
        });
        drop(work);
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
