//! Work that begins on the thread that asks for it, and goes on on the threads of the network.
//!
//! To have it done there from the start would wake one of them only to find that there is nothing to do yet.

use parking_lot::Mutex;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Stage {
    /// On the thread that asked for it.
    Beginning,
    /// There still, and woken already.
    Woken,
    Waiting(Work),
    /// A task of the network's, or done.
    Gone,
}

struct Inline {
    stage: Mutex<Stage>,
    io: Handle,
}

/// Begins `work` here; `io` does what is left of it.
pub(crate) fn poll_inline(io: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Work = Box::pin(work);
    let begun = Arc::new(Inline { stage: Mutex::new(Stage::Beginning), io: io.clone() });
    let waker = Waker::from(begun.clone());
    let _io = io.enter();
    if work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        return;
    }
    let mut stage = begun.stage.lock();
    match *stage {
        // Asked again here it might only answer the same: a task whose turn is over is told to wait until its next.
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
    async fn it_begins_here_and_goes_on_there() {
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
    async fn no_wake_is_lost_however_they_fall() {
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

    /// A task may take only so much that is ready in one turn, and what it does past that waits for its next.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_begun_at_the_end_of_a_turn_goes_on_in_the_next() {
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
    async fn what_panics_is_dropped() {
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
