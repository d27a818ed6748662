//! A moment of patience before a thread of the network sleeps.
//!
//! A task that calls another one of its host is mostly answered within less time than it takes to be put to sleep
//! and woken again, above all on a virtual machine, where an idle core has to be got back first. So the thread
//! that called looks for the answer before it sleeps, as long as looking has paid. It yields between looks, so
//! that on a busy host whoever has to answer gets the core.

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// For as long it is looked for an answer.
const MOMENT: Duration = Duration::from_micros(80);
/// Looks in vain that are made up for by one that found something.
const WORTH: i32 = 2;
/// The most that was ever found does not count more than this.
const MOST_CREDIT: i32 = 16;
/// Without credit, one call out of so many is looked for, to see whether it pays by now.
const PROBE: usize = 64;

/// What looking has brought lately.
#[derive(Default)]
pub(crate) struct Credit {
    credit: AtomicI32,
    asked: AtomicUsize,
}

impl Credit {
    /// As good as can be.
    pub fn full() -> Credit {
        Credit { credit: AtomicI32::new(MOST_CREDIT), asked: AtomicUsize::new(0) }
    }

    /// Whether to look this time.
    pub fn is_good(&self) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.credit.load(Ordering::Relaxed) > 0 || asked.is_multiple_of(PROBE)
    }

    pub fn learn(&self, has_paid: bool) {
        let credit = self.credit.load(Ordering::Relaxed);
        let credit = if has_paid { credit + WORTH } else { credit - 1 };
        self.credit.store(credit.clamp(0, MOST_CREDIT), Ordering::Relaxed);
    }
}

thread_local! {
    /// What this thread has called last and not looked for yet.
    static CALLED: RefCell<Option<Arc<Answers>>> = const { RefCell::new(None) };
}

/// To be called by a thread of the network when it has nothing more to do.
pub fn before_park() {
    if let Some(answers) = CALLED.take() {
        answers.look();
    }
}

/// The answers of another task of this host to the calls of this one.
#[derive(Default)]
pub(crate) struct Answers {
    /// Where they come from, once that is known.
    from: Mutex<Weak<UnixStream>>,
    /// Calls that are not answered yet.
    due: AtomicUsize,
    credit: Credit,
}

impl Answers {
    /// Says where answers come from.
    pub fn come_from(&self, stream: &Weak<UnixStream>) {
        *self.from.lock() = stream.clone();
        self.credit.credit.store(MOST_CREDIT, Ordering::Relaxed);
    }

    /// This thread has called; it may look for the answer.
    pub fn called(self: &Arc<Self>) {
        self.due.fetch_add(1, Ordering::Relaxed);
        if self.credit.is_good() {
            CALLED.set(Some(self.clone()));
        }
    }

    /// A call was answered, or given up.
    pub fn settled(&self) {
        self.due.fetch_sub(1, Ordering::Relaxed);
    }

    fn look(&self) {
        let Some(from) = self.from.lock().upgrade() else { return };
        let began = Instant::now();
        while self.due.load(Ordering::Relaxed) > 0 {
            let has_come = is_readable(&from);
            let in_time = began.elapsed() < MOMENT;
            if has_come || !in_time {
                return self.credit.learn(has_come && in_time);
            }
            std::thread::yield_now();
        }
    }
}

fn is_readable(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    // Whatever is wrong with it, whoever reads it will see.
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

    #[test]
    fn a_thread_that_called_looks_once_and_then_sleeps() {
        let (answers, _near, mut far) = answers();
        far.write_all(b"x").unwrap();
        before_park();
        answers.called();
        assert!(CALLED.with_borrow(Option::is_some));
        before_park();
        assert!(CALLED.with_borrow(Option::is_none));
    }

    #[test]
    fn who_is_mostly_too_late_is_not_looked_for_except_now_and_then() {
        let (answers, _near, _far) = answers();
        let looks = |answers: &Arc<Answers>| {
            answers.called();
            let looks = CALLED.with_borrow(Option::is_some);
            before_park();
            answers.settled();
            looks
        };
        let count = (0..2 * PROBE).filter(|_| looks(&answers)).count();
        assert!((MOST_CREDIT as usize..=MOST_CREDIT as usize + 2).contains(&count), "{count}");
    }

    #[test]
    fn nobody_looks_for_what_has_come_or_cannot_come_any_more() {
        let (answers, near, _far) = answers();
        answers.called();
        answers.settled();
        before_park();
        answers.called();
        drop(near);
        before_park();
        assert_eq!(
            answers.credit.credit.load(Ordering::Relaxed),
            MOST_CREDIT,
            "neither paid nor failed"
        );
    }
}
