//! Polls for the answer to a call before a network thread parks.
//!
//! Another task of this host mostly answers in less time than it takes to park a thread and wake it
//! again. So the thread that called polls the socket first, for as long as that pays. It yields
//! between polls, so that on a busy host the task that has to answer gets the core.

use ferroflow_core::{Polled, Spin};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

const LIMIT: Duration = Duration::from_micros(80);

thread_local! {
    /// The peer that this thread has called last and not polled for yet. The runtime's park hook
    /// takes no argument, so this is a thread-local.
    static CALLED: RefCell<Option<Arc<Answers>>> = const { RefCell::new(None) };
}

/// The hook of a network thread that is about to park.
pub(crate) fn before_park() {
    if let Some(answers) = CALLED.take() {
        answers.spin();
    }
}

/// The answers of another task of this host to the calls of this one.
pub(crate) struct Answers {
    /// The socket that they come from, once that is known.
    from: Mutex<Weak<UnixStream>>,
    /// Calls without an answer.
    due: AtomicUsize,
    spin: Spin,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers { from: Mutex::default(), due: AtomicUsize::new(0), spin: Spin::timed(LIMIT) }
    }
}

impl Answers {
    /// Sets the socket from which answers come.
    pub fn come_from(&self, stream: &Weak<UnixStream>) {
        *self.from.lock() = stream.clone();
        self.spin.restore_credit();
    }

    /// Notes that this thread has called: it may poll for the answer before it parks.
    pub fn called(self: &Arc<Self>) {
        self.due.fetch_add(1, Ordering::Relaxed);
        if self.spin.is_due() {
            CALLED.set(Some(self.clone()));
        }
    }

    /// Notes that a call was answered or cancelled.
    pub fn settled(&self) {
        self.due.fetch_sub(1, Ordering::Relaxed);
    }

    fn spin(&self) {
        let Some(from) = self.from.lock().upgrade() else { return };
        self.spin.until(|| match self.due.load(Ordering::Relaxed) {
            0 => Polled::Gone,
            _ if is_readable(&from) => Polled::Ready,
            _ => Polled::NotYet,
        });
    }
}

fn is_readable(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    // An error counts as readable: the reader of the socket will report it.
    poll(&mut fds, Some(&at_once)) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn answers() -> (Arc<Answers>, Arc<UnixStream>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let (near, answers) = (Arc::new(near), Arc::new(Answers::default()));
        answers.come_from(&Arc::downgrade(&near));
        (answers, near, far)
    }

    fn will_spin() -> bool {
        CALLED.with_borrow(Option::is_some)
    }

    #[test]
    fn a_thread_that_called_spins_once_and_then_parks() {
        let (answers, _near, mut far) = answers();
        far.write_all(b"x").unwrap();
        before_park();
        answers.called();
        assert!(will_spin());
        before_park();
        assert!(!will_spin());
    }

    #[test]
    fn a_peer_that_answers_late_is_not_polled_except_for_probes() {
        let (answers, _near, _far) = answers();
        let spins = |answers: &Arc<Answers>| {
            answers.called();
            let spins = will_spin();
            before_park();
            answers.settled();
            spins
        };
        let calls = 200;
        let count = (0..calls).filter(|_| spins(&answers)).count();
        assert!((1..calls / 4).contains(&count), "{count}");
    }

    #[test]
    fn a_spin_ends_when_no_answer_is_due_or_the_socket_is_gone() {
        let (answers, near, _far) = answers();
        answers.called();
        answers.settled();
        before_park();
        answers.called();
        drop(near);
        before_park();
        assert!(!will_spin());
    }
}
