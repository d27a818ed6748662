//! Draining: a task that shuts down finishes its running calls and refuses new ones.

use ferroflow_core::{Error, Result, err};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Counts the running calls.
#[derive(Default)]
pub(crate) struct Drain {
    /// The number of calls, and [`CLOSED`].
    state: AtomicUsize,
    emptied: Notify,
    closing: Notify,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Drain {
    /// Whether new calls are refused.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Admits a call, which runs until the guard is dropped.
    pub fn enter(&self) -> Result<Inside<'_>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let inside = Inside(self);
        if before & CLOSED == 0 { Ok(inside) } else { Err(leaving()) }
    }

    /// Completes when draining starts: for calls that are not counted.
    pub async fn closed(&self) {
        let mut closing = std::pin::pin!(self.closing.notified());
        // Registered before the check, so that no notification is missed.
        closing.as_mut().enable();
        if self.state.load(Ordering::Acquire) & CLOSED == 0 {
            closing.await;
        }
    }

    /// Refuses new calls and waits up to `limit` for the running ones. The caller ends those that
    /// take longer.
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

/// A running call.
pub(crate) struct Inside<'a>(&'a Drain);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            // Stored for a waiter that is about to wait.
            self.0.emptied.notify_one();
        }
    }
}

/// The error of calls to a task that shuts down. Clients may retry: another may take its place.
pub(crate) fn leaving() -> Error {
    err!(Unavailable, "the task is shutting down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Code;

    #[tokio::test]
    async fn calls_under_way_finish_and_new_ones_are_refused() {
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
    async fn draining_ends_at_its_limit() {
        let drain = Drain::default();
        let _inside = drain.enter().unwrap();
        drain.close(Duration::from_millis(1)).await;
        assert!(drain.enter().is_err());
    }
}
