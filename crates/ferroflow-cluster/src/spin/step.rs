//! A moment of patience before a thread that waits for its step sleeps: short steps mostly end within less time
//! than it takes to wake it again.

use super::answers::Credit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// For as long the end of a step is looked for.
const MOMENT: Duration = Duration::from_micros(400);
/// A future may be told to ask again in its next turn, which is not here.
const ASKED_IN_A_TURN: usize = 8;

/// Threads of this process that look, always fewer than there are cores.
static LOOKING: AtomicUsize = AtomicUsize::new(0);
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// What is known of the steps of one session.
pub struct StepSpin(Credit);

impl Default for StepSpin {
    fn default() -> StepSpin {
        StepSpin(Credit::full())
    }
}

impl StepSpin {
    /// `work`, for a thread that does nothing but wait for it, and not for one that drives it.
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
        for _ in 0..ASKED_IN_A_TURN {
            woken.is_set.store(false, Ordering::Release);
            if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if !self.look(woken) {
                break;
            }
        }
        Poll::Pending
    }

    /// Whether it was woken within a moment.
    fn look(&self, woken: &Woken) -> bool {
        let Some(_looking) = self.0.is_good().then(Looking::begin).flatten() else { return false };
        let began = Instant::now();
        while !woken.is_set.load(Ordering::Acquire) {
            if began.elapsed() >= MOMENT {
                self.0.learn(false);
                return false;
            }
            std::thread::yield_now();
        }
        self.0.learn(true);
        true
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

/// One of the few that may look.
struct Looking;

impl Looking {
    fn begin() -> Option<Looking> {
        let more = |looking| (looking + 1 < *CORES).then_some(looking + 1);
        LOOKING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Looking)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_ends_whether_it_is_soon_or_late() {
        let patience = StepSpin::default();
        for late in [Duration::ZERO, 3 * MOMENT] {
            let (tell, told) = oneshot::channel();
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                tell.send(7).unwrap();
            });
            assert_eq!(patience.wait_for(told).await.unwrap(), 7);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn more_than_one_turn_of_work_is_done_in_several() {
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
