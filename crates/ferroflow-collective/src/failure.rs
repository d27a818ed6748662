//! Whether a group still lives: the first cause of its failure, known to everyone who waits.

use ferroflow_core::{Error, Result};
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The life of a group as one rank knows it. The first failure is the one that counts; it wakes
/// whoever waits, through a file descriptor to poll and through the listeners that were hung up.
pub(crate) struct GroupFailure {
    failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    listeners: Mutex<Vec<Box<dyn Fn() + Send>>>,
    wake: UnixStream,
    woken: UnixStream,
}

impl GroupFailure {
    pub(crate) fn new() -> Result<GroupFailure> {
        let (wake, woken) = UnixStream::pair().map_err(|e| crate::io_error("a socket pair", &e))?;
        Ok(GroupFailure {
            failed: AtomicBool::new(false),
            cause: Mutex::new(None),
            listeners: Mutex::new(Vec::new()),
            wake,
            woken,
        })
    }

    /// Fails the group, unless it has failed already; returns whether this was the first cause.
    pub(crate) fn fail(&self, cause: Error) -> bool {
        let mut slot = self.cause.lock();
        if slot.is_some() {
            return false;
        }
        *slot = Some(cause);
        drop(slot);
        self.failed.store(true, Ordering::SeqCst);
        // Never read: once written, every poll of the other end returns at once.
        let _ = (&self.wake).write(&[1]);
        self.listeners.lock().iter().for_each(|listener| listener());
        true
    }

    /// The first cause, once there is one.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::SeqCst) {
            return Ok(());
        }
        match &*self.cause.lock() {
            Some(cause) => Err(cause.clone()),
            None => Ok(()),
        }
    }

    /// Calls `listener` when the group fails, or now if it has.
    pub(crate) fn add_listener(&self, listener: impl Fn() + Send + 'static) {
        if self.failed.load(Ordering::SeqCst) {
            listener();
        }
        self.listeners.lock().push(Box::new(listener));
        if self.failed.load(Ordering::SeqCst) {
            self.listeners.lock().iter().for_each(|listener| listener());
        }
    }

    /// Readable once the group has failed.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The cause of the group's failure, for which it waits a moment: a link that breaks is mostly a
    /// consequence, and who died first is about to be told. `otherwise` if nothing is.
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
            // Peeking is not stable, so the byte is put back for the next who polls.
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
    fn the_first_cause_stays() {
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
