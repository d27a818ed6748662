//! The failure of a group: its first cause, which all waiters receive.

use ferroflow_core::{Error, Result};
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Listener = Arc<dyn Fn() + Send + Sync>;

/// Whether a group has failed, as far as this rank knows. The first failure counts. It makes a file
/// descriptor readable for pollers and calls all registered listeners.
pub(crate) struct GroupFailure {
    failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    listeners: Mutex<Vec<Listener>>,
    wake: UnixStream,
    woken: UnixStream,
}

impl GroupFailure {
    pub(crate) fn new() -> Result<GroupFailure> {
        let (wake, woken) =
            UnixStream::pair().map_err(|e| crate::io_error("cannot make a socket pair", &e))?;
        Ok(GroupFailure {
            failed: AtomicBool::new(false),
            cause: Mutex::new(None),
            listeners: Mutex::new(Vec::new()),
            wake,
            woken,
        })
    }

    /// Fails the group, unless it has already failed. Returns whether this was the first cause.
    pub(crate) fn fail(&self, cause: Error) -> bool {
        let mut slot = self.cause.lock();
        if slot.is_some() {
            return false;
        }
        *slot = Some(cause);
        drop(slot);
        self.failed.store(true, Ordering::SeqCst);
        // This byte is not consumed, so every later poll of the other end returns immediately.
        let _ = (&self.wake).write(&[1]);
        self.call_listeners();
        true
    }

    /// An error with the first cause if the group has failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::SeqCst) {
            return Ok(());
        }
        match &*self.cause.lock() {
            Some(cause) => Err(cause.clone()),
            None => Ok(()),
        }
    }

    /// Calls `listener` when the group fails, or now if it has failed.
    pub(crate) fn add_listener(&self, listener: impl Fn() + Send + Sync + 'static) {
        if self.failed.load(Ordering::SeqCst) {
            listener();
        }
        self.listeners.lock().push(Arc::new(listener));
        if self.failed.load(Ordering::SeqCst) {
            self.call_listeners();
        }
    }

    /// Calls the listeners without holding the lock.
    fn call_listeners(&self) {
        let listeners = self.listeners.lock().clone();
        listeners.iter().for_each(|listener| listener());
    }

    /// A descriptor that becomes readable when the group fails.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The cause of the group's failure. A broken link is usually only a consequence, so this waits
    /// up to two seconds for the first cause to arrive. Returns `otherwise` if none arrives.
    pub(crate) fn cause_or(&self, otherwise: Error) -> Error {
        const MOMENT: Duration = Duration::from_secs(2);
        let until = Instant::now() + MOMENT;
        loop {
            if let Err(cause) = self.check() {
                return cause;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.woken.set_read_timeout(Some(left)).is_err() {
                return otherwise;
            }
            // Peeking is not stable in std, so write the byte back for the next poll.
            let mut byte = [0];
            if matches!((&self.woken).read(&mut byte), Ok(1)) {
                let _ = (&self.wake).write(&byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::err;

    #[test]
    fn the_group_keeps_the_first_cause_of_its_failure() {
        let failure = GroupFailure::new().unwrap();
        assert!(failure.check().is_ok());
        assert!(failure.fail(err!(Unavailable, "rank 3 died")));
        assert!(!failure.fail(err!(Unavailable, "rank 2 left")));
        assert_eq!(failure.check().unwrap_err().message(), "rank 3 died");
        let late = failure.cause_or(err!(Unavailable, "a consequence"));
        assert_eq!(late.message(), "rank 3 died");
    }

    #[test]
    fn a_listener_added_after_the_failure_is_called_too() {
        let (sender, called) = std::sync::mpsc::channel();
        let failure = GroupFailure::new().unwrap();
        failure.fail(err!(Unavailable, "rank 1 died"));
        failure.add_listener(move || sender.send(()).unwrap());
        called.recv().unwrap();
    }
}
