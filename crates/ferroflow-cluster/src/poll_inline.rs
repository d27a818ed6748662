//! Polls a future once on the calling thread and leaves the rest of it to the network threads.
//!
//! Spawning it would wake a network thread, which would mostly find that the future has to wait.

use parking_lot::Mutex;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Stage {
    /// Polled by the calling thread.
    Beginning,
    /// Polled by the calling thread, and already woken.
    Woken,
    Waiting(Work),
    /// Spawned, or done.
    Gone,
}

struct Inline {
    stage: Mutex<Stage>,
    io: Handle,
}

/// Polls `work` here; the threads of `io` do the rest.
pub(crate) fn poll_inline(io: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Work = Box::pin(work);
    let inline = Arc::new(Inline { stage: Mutex::new(Stage::Beginning), io: io.clone() });
    let waker = Waker::from(inline.clone());
    let _io = io.enter();
    if work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        return;
    }
    let mut stage = inline.stage.lock();
    match *stage {
        // Polling again here might not help: a future that has used up tokio's cooperative budget
        // is only ready at its task's next poll.
        Stage::Woken => {
            *stage = Stage::Gone;
            io.spawn(work);
        }
        _ => *stage = Stage::Waiting(work),
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let mut stage = self.stage.lock();
        match mem::replace(&mut *stage, Stage::Gone) {
            Stage::Beginning | Stage::Woken => *stage = Stage::Woken,
            Stage::Waiting(work) => {
                self.io.spawn(work);
            }
            Stage::Gone => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use std::time::Duration;
    use tokio::sync::{mpsc, oneshot};

    const LONG: Duration = Duration::from_secs(30);

    fn here() -> ThreadId {
        std::thread::current().id()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_first_poll_is_here_and_the_rest_on_network_threads() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let io = Handle::current();
        let asking = std::thread::spawn(move || {
            poll_inline(&io, async move {
                let first = here();
                gone.await.unwrap();
                tell.send((first, here())).unwrap();
            });
            here()
        });
        let asking = asking.join().unwrap();
        go.send(()).unwrap();
        let (first, then) = tokio::time::timeout(LONG, told).await.unwrap().unwrap();
        assert_eq!(first, asking);
        assert_ne!(then, asking);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost_in_any_order() {
        for _ in 0..200 {
            let (send, mut receive) = mpsc::unbounded_channel();
            let (tell, told) = oneshot::channel();
            let sending = tokio::spawn(async move {
                for i in 0..20 {
                    send.send(i).unwrap();
                    tokio::task::yield_now().await;
                }
            });
            poll_inline(&Handle::current(), async move {
                let mut sum = 0;
                while let Some(i) = receive.recv().await {
                    sum += i;
                }
                tell.send(sum).unwrap();
            });
            let sum = tokio::time::timeout(LONG, told).await.unwrap().unwrap();
            assert_eq!(sum, 190);
            sending.await.unwrap();
        }
    }

    /// Tokio lets a task take a limited number of ready values in one poll.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_future_without_budget_continues_in_the_next_turn() {
        const MORE_THAN_A_TURN: usize = 1000;
        let (send, mut receive) = mpsc::unbounded_channel();
        (0..MORE_THAN_A_TURN).for_each(|i| send.send(i).unwrap());
        drop(send);
        let (tell, told) = oneshot::channel();
        poll_inline(&Handle::current(), async move {
            let mut taken = 0;
            while receive.recv().await.is_some() {
                taken += 1;
            }
            tell.send(taken).unwrap();
        });
        assert_eq!(tokio::time::timeout(LONG, told).await.unwrap().unwrap(), MORE_THAN_A_TURN);
    }

    #[tokio::test]
    async fn a_future_that_panics_is_dropped() {
        let (tell, told) = oneshot::channel::<()>();
        let panics = std::panic::AssertUnwindSafe(|| {
            poll_inline(&Handle::current(), async move {
                let _tell = tell;
                panic!("on purpose");
            });
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(told.await.is_err());
    }
}
