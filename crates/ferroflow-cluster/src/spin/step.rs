//! Polls for the end of a short step before its caller blocks.

use ferroflow_core::{Polled, Spin};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const LIMIT: Duration = Duration::from_micros(400);
/// A future may ask to be polled again in its next turn, which never comes while this thread spins.
const MAX_POLLS: usize = 8;

/// Threads of this process that spin for a step: always fewer than there are cores.
static SPINNING: AtomicUsize = AtomicUsize::new(0);
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Spins for the steps of one session.
pub struct StepSpin(Spin);

impl Default for StepSpin {
    fn default() -> StepSpin {
        StepSpin(Spin::timed(LIMIT))
    }
}

impl StepSpin {
    /// Waits for `work` on a thread that does nothing else. Not for threads that drive the work.
    pub fn wait_for<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut work = Box::pin(work);
        std::future::poll_fn(move |cx| {
            woken.forward_to(cx.waker());
            self.poll(work.as_mut(), &woken, &waker)
        })
    }

    fn poll<F: Future>(
        &self,
        mut work: Pin<&mut F>,
        woken: &Woken,
        waker: &Waker,
    ) -> Poll<F::Output> {
        for _ in 0..MAX_POLLS {
            woken.is_set.store(false, Ordering::Release);
            if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if !self.spin(woken) {
                break;
            }
        }
        Poll::Pending
    }

    /// Whether the work was woken in time.
    fn spin(&self, woken: &Woken) -> bool {
        let Some(_spinning) = self.0.is_due().then(Spinning::begin).flatten() else { return false };
        self.0.until(|| match woken.is_set.load(Ordering::Acquire) {
            true => Polled::Ready,
            false => Polled::NotYet,
        })
    }
}

#[derive(Default)]
struct Woken {
    is_set: AtomicBool,
    waiting: parking_lot::Mutex<Option<Waker>>,
}

impl Woken {
    fn forward_to(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock();
        if !waiting.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *waiting = Some(waker.clone());
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        let waiting = self.waiting.lock().clone();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

/// The permit of one thread to spin.
struct Spinning;

impl Spinning {
    fn begin() -> Option<Spinning> {
        let more = |spinning| (spinning + 1 < *CORES).then_some(spinning + 1);
        SPINNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Spinning)
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        SPINNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_result_arrives_within_the_spin_or_after_it() {
        let spin = StepSpin::default();
        for delay in [Duration::ZERO, 3 * LIMIT] {
            let (tell, told) = oneshot::channel();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                tell.send(7).unwrap();
            });
            assert_eq!(spin.wait_for(told).await.unwrap(), 7);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_yields_to_the_runtime_is_polled_again() {
        let (send, mut receive) = mpsc::unbounded_channel();
        (0..1000).for_each(|i| send.send(i).unwrap());
        drop(send);
        let all = async move {
            let mut taken = 0;
            while receive.recv().await.is_some() {
                taken += 1;
            }
            taken
        };
        assert_eq!(StepSpin::default().wait_for(all).await, 1000);
    }
}
