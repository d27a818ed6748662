//! Polls for the answers to calls before a network thread parks.
//!
//! Another task of this host mostly answers in less time than it takes to park a thread and wake it
//! again. So the thread that called polls the sockets of the tasks that it has called first, for as
//! long as that pays. It yields between polls, so that on a busy host the tasks that have to answer
//! get the core.

use ferroflow_core::{Polled, Spin};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

const LIMIT: Duration = Duration::from_micros(80);

/// The most sockets that a thread polls.
const MOST_POLLED: usize = 16;

thread_local! {
    /// The tasks for which this thread has not polled yet. The runtime's park hook takes no
    /// argument, so this is a thread-local.
    static CALLED: RefCell<Vec<Arc<Answers>>> = const { RefCell::new(Vec::new()) };
}

/// The hook of a network thread that is about to park.
pub(crate) fn before_park() {
    CALLED.with_borrow_mut(|called| {
        spin(called);
        called.clear();
    });
}

/// Polls until one of these tasks has sent something. The last one learns whether that paid.
/// Returns whether one did in time.
fn spin(called: &[Arc<Answers>]) -> bool {
    let Some(last) = called.last() else { return false };
    let sockets: Vec<_> = called.iter().filter_map(|task| task.from.lock().upgrade()).collect();
    let mut fds: Vec<_> = sockets.iter().map(|from| PollFd::new(from, PollFlags::IN)).collect();
    let is_due = |task: &Arc<Answers>| task.due.load(Ordering::Relaxed) > 0;
    last.spin.until(|| match !fds.is_empty() && called.iter().any(is_due) {
        false => Polled::Gone,
        true if is_any_readable(&mut fds) => Polled::Ready,
        true => Polled::NotYet,
    })
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
        let is_known = self.from.lock().strong_count() > 0;
        if is_known && self.spin.is_due() {
            CALLED.with_borrow_mut(|called| {
                if called.len() < MOST_POLLED {
                    called.push(self.clone());
                }
            });
        }
    }

    /// Notes that a call was answered or cancelled.
    pub fn settled(&self) {
        self.due.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_any_readable(sockets: &mut [PollFd<'_>]) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error counts as readable: the reader of the socket will report it.
    poll(sockets, Some(&at_once)) != Ok(0)
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
        CALLED.with_borrow(|called| !called.is_empty())
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
        answers.called();
        assert!(!will_spin());
    }

    #[test]
    fn the_first_answer_of_several_tasks_ends_the_spin() {
        let [(slow, _slow, _), (quick, _quick, mut far)] = [answers(), answers()];
        // The last one has no socket yet. It may spin for longer than a busy machine interrupts it.
        let long_spin = Spin::timed(Duration::from_secs(60));
        let last = Arc::new(Answers { spin: long_spin, ..Answers::default() });
        let all = [slow, quick, last];
        all.iter().for_each(Answers::called);
        far.write_all(b"x").unwrap();
        assert!(spin(&all));
        all[1].settled();
        let [slow, _, last] = &all;
        slow.settled();
        last.settled();
        assert!(!spin(&all), "no answer is due");
    }
}
