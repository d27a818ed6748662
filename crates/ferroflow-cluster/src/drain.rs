//! The door of a task that is about to leave: what is inside finishes, nothing new comes in.

use ferroflow_core::{Error, Result, err};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Counts what is under way.
#[derive(Default)]
pub(crate) struct Drain {
    /// How many are inside, and [`CLOSED`].
    state: AtomicUsize,
    emptied: Notify,
    closing: Notify,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Drain {
    /// Lets a call in, until what is returned is dropped.
    pub fn enter(&self) -> Result<Inside<'_>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let inside = Inside(self);
        if before & CLOSED == 0 { Ok(inside) } else { Err(leaving()) }
    }

    /// Completes when the drain closes: for what waits outside.
    pub async fn closed(&self) {
        let mut closing = std::pin::pin!(self.closing.notified());
        // Registered before looking, so that no notice is missed.
        closing.as_mut().enable();
        if self.state.load(Ordering::Acquire) & CLOSED == 0 {
            closing.await;
        }
    }

    /// Lets nobody in any more; waits for those inside, up to `limit`. Whoever takes longer is for the
    /// caller to end.
    pub async fn close(&self, limit: Duration) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        self.closing.notify_waiters();
        let empty = async {
            while self.state.load(Ordering::Acquire) != CLOSED {
                self.emptied.notified().await;
            }
        };
        let _ = tokio::time::timeout(limit, empty).await;
    }
}

/// Somebody inside.
pub(crate) struct Inside<'a>(&'a Drain);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            // Kept for one who is about to wait.
            self.0.emptied.notify_one();
        }
    }
}

/// What whoever needs this task is told: another may take its place.
pub(crate) fn leaving() -> Error {
    err!(Unavailable, "the task is shutting down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Code;

    #[tokio::test]
    async fn those_inside_finish_and_nobody_enters() {
        let drain = Drain::default();
        let inside = drain.enter().unwrap();
        drop(drain.enter().unwrap());
        let leave = async {
            tokio::task::yield_now().await;
            assert_eq!(drain.enter().err().unwrap().code(), Code::Unavailable);
            drop(inside);
        };
        tokio::join!(drain.close(Duration::from_secs(3600)), drain.closed(), leave);
        drain.closed().await;
    }

    #[tokio::test]
    async fn nobody_is_waited_for_without_end() {
        let drain = Drain::default();
        let _inside = drain.enter().unwrap();
        drain.close(Duration::from_millis(1)).await;
        assert!(drain.enter().is_err());
    }
}
