//! Work that begins on the thread that asks for it, and goes on on the threads of the network.
//!
//! To have it done there from the start would wake one of them only to find that there is nothing to do yet.

use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Wake, Waker};
use tokio::runtime::Handle;

/// Somebody has to wake it.
const WAITING: u8 = 0;
/// It was woken, and will run.
const DUE: u8 = 1;
const RUNNING: u8 = 2;
/// It was woken while it ran.
const AGAIN: u8 = 3;

struct Begun {
    state: AtomicU8,
    /// Gone while it runs, and when it is done.
    work: Mutex<Option<Work>>,
    io: Handle,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins `work` here; `io` does what is left of it.
pub(crate) fn begin(io: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let work = Mutex::new(Some(Box::pin(work) as Work));
    let begun = Arc::new(Begun { state: AtomicU8::new(RUNNING), work, io: io.clone() });
    let _io = io.enter();
    begun.run();
}

impl Begun {
    fn run(self: Arc<Self>) {
        let Some(mut work) = self.work.lock().take() else { return };
        let waker = Waker::from(self.clone());
        let mut cx = Context::from_waker(&waker);
        loop {
            if work.as_mut().poll(&mut cx).is_ready() {
                return;
            }
            // Back in its place before anybody can be told to run it.
            *self.work.lock() = Some(work);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            if self.state.compare_exchange(RUNNING, WAITING, success, failure).is_ok() {
                return;
            }
            self.state.store(RUNNING, Ordering::Release);
            work = match self.work.lock().take() {
                Some(work) => work,
                None => return,
            };
        }
    }
}

impl Wake for Begun {
    fn wake(self: Arc<Self>) {
        let next = |state| match state {
            WAITING => Some(DUE),
            RUNNING => Some(AGAIN),
            // It will run anyway.
            _ => None,
        };
        let was = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        if was == Ok(WAITING) {
            let io = self.io.clone();
            io.spawn(async move {
                self.state.store(RUNNING, Ordering::Release);
                self.run();
            });
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
            begin(&io, async move {
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
            begin(&Handle::current(), async move {
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

    #[tokio::test]
    async fn what_panics_is_dropped() {
        let (tell, told) = oneshot::channel::<()>();
        let panics = std::panic::AssertUnwindSafe(|| {
            begin(&Handle::current(), async move {
                let _tell = tell;
                panic!("on purpose");
            });
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(told.await.is_err());
    }
}
