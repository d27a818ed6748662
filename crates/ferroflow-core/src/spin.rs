//! Spinning: polls for a short time before a thread blocks in the kernel.
//!
//! A thread that blocks takes tens of microseconds to wake, above all on a virtual machine whose
//! idle core has to be scheduled again. Most waits end sooner. A [`Spin`] says how long to poll
//! before blocking, and learns when to block at once instead: after spins that found nothing, and
//! after yields that lost the core to another program.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The number of failed spins that one successful spin makes up for.
const WORTH: i32 = 2;
/// A success is remembered for at most this many failed spins.
const MAX_CREDIT: i32 = 16;
/// Without credit, one wait out of this many still spins, to find out whether spinning pays again.
const PROBE_EVERY: u32 = 64;

/// Longer than any thread of ours keeps a core that others wait for, and shorter than the time
/// slice of another program.
const LONG_YIELD: Duration = Duration::from_millis(1);
const MIN_PENALTY: u32 = 16;
const MAX_PENALTY: u32 = 1 << 16;

/// A spin policy and its history. Threads share it without locks.
#[derive(Debug)]
pub struct Spin {
    limit: SpinLimit,
    /// The first polls keep the core; later ones yield it in between.
    busy_polls: u32,
    /// Successes less failures. A thread spins while it is positive.
    credit: AtomicI32,
    waits: AtomicU32,
    /// Waits that have to block at once, after a yield that took long.
    blocks: AtomicU32,
    /// The value of `blocks` after the next long yield.
    penalty: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
enum SpinLimit {
    Time(Duration),
    Polls(u32),
}

/// What a poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Nothing so far.
    NotYet,
    /// What the thread waits for.
    Ready,
    /// There is nothing to wait for any more.
    Gone,
}

impl Spin {
    /// Spins for up to `limit`, and yields between polls. Starts with full credit.
    pub fn timed(limit: Duration) -> Spin {
        Spin::new(SpinLimit::Time(limit), 0)
    }

    /// Spins for up to `polls` polls. The first `busy_polls` keep the core. Use none where threads
    /// outnumber cores: two threads that spin on one core hold each other up.
    pub fn counted(polls: u32, busy_polls: u32) -> Spin {
        Spin::new(SpinLimit::Polls(polls), busy_polls)
    }

    fn new(limit: SpinLimit, busy_polls: u32) -> Spin {
        Spin {
            limit,
            busy_polls,
            credit: AtomicI32::new(MAX_CREDIT),
            waits: AtomicU32::new(0),
            blocks: AtomicU32::new(0),
            penalty: AtomicU32::new(MIN_PENALTY),
        }
    }

    /// Whether to spin for the next wait: spinning has paid lately, or it is time to try again.
    pub fn is_due(&self) -> bool {
        let waits = self.waits.fetch_add(1, Relaxed);
        self.credit.load(Relaxed) > 0 || waits.is_multiple_of(PROBE_EVERY)
    }

    /// Polls until there is something, and learns whether that paid. Returns whether it was there
    /// in time.
    pub fn until(&self, mut poll: impl FnMut() -> Polled) -> bool {
        let start = Instant::now();
        let mut polls = 0;
        loop {
            let polled = poll();
            if polled == Polled::Gone {
                return false;
            }
            let in_time = match self.limit {
                SpinLimit::Time(limit) => start.elapsed() < limit,
                SpinLimit::Polls(most) => polls < most,
            };
            if polled == Polled::Ready || !in_time {
                let has_paid = polled == Polled::Ready && in_time;
                self.learn(has_paid);
                return has_paid;
            }
            polls += 1;
            if polls <= self.busy_polls {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Makes the next waits spin, whatever the history.
    pub fn restore_credit(&self) {
        self.credit.store(MAX_CREDIT, Relaxed);
    }

    fn learn(&self, has_paid: bool) {
        let credit = self.credit.load(Relaxed);
        let credit = if has_paid { credit + WORTH } else { credit - 1 };
        self.credit.store(credit.clamp(0, MAX_CREDIT), Relaxed);
    }

    /// Passes the time after `polls` failed polls, for loops that poll on their own. Returns false
    /// when the thread should block now: the polls are used up, or yields have lost the core for
    /// long.
    ///
    /// Yielding to a thread that polls as well costs microseconds. Yielding to another program
    /// costs its whole time slice, while a blocked thread wakes as soon as its bytes arrive. So a
    /// thread yields until one yield took long, and blocks in the waits that follow: in more of
    /// them each time that happens again.
    pub fn pause(&self, polls: u32) -> bool {
        let most = match self.limit {
            SpinLimit::Time(_) => u32::MAX,
            SpinLimit::Polls(most) => most,
        };
        if polls > most {
            return false;
        }
        if polls <= self.busy_polls {
            std::hint::spin_loop();
            return true;
        }
        if self.must_block() {
            return false;
        }
        let start = Instant::now();
        std::thread::yield_now();
        self.yielded(start.elapsed());
        true
    }

    fn must_block(&self) -> bool {
        let blocks = self.blocks.load(Relaxed);
        self.blocks.store(blocks.saturating_sub(1), Relaxed);
        blocks > 0
    }

    fn yielded(&self, time: Duration) {
        let penalty = self.penalty.load(Relaxed);
        if time >= LONG_YIELD {
            self.blocks.store(penalty, Relaxed);
            self.penalty.store((penalty * 4).min(MAX_PENALTY), Relaxed);
        } else if penalty > MIN_PENALTY {
            // Forgotten after as many short yields as there were blocked waits.
            self.penalty.store(penalty - 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_that_find_nothing_stop_except_for_probes() {
        let spin = Spin::timed(Duration::ZERO);
        let spun = |spin: &Spin| spin.is_due() && !spin.until(|| Polled::NotYet);
        let count = (0..2 * PROBE_EVERY).filter(|_| spun(&spin)).count();
        assert!((MAX_CREDIT as usize..=MAX_CREDIT as usize + 2).contains(&count), "{count}");
        spin.restore_credit();
        assert!(spin.is_due());
    }

    #[test]
    fn a_spin_that_is_not_needed_any_more_teaches_nothing() {
        let spin = Spin::timed(Duration::from_secs(60));
        spin.credit.store(3, Relaxed);
        assert!(!spin.until(|| Polled::Gone));
        assert_eq!(spin.credit.load(Relaxed), 3);
        assert!(spin.until(|| Polled::Ready));
        assert_eq!(spin.credit.load(Relaxed), 3 + WORTH);
    }

    #[test]
    fn counted_spins_end_after_their_polls() {
        let (spin, mut polls) = (Spin::counted(5, 2), 0);
        let found = spin.until(|| {
            polls += 1;
            Polled::NotYet
        });
        assert_eq!((found, polls), (false, 6));
    }

    #[test]
    fn waits_block_for_a_while_after_a_long_yield() {
        let spin = Spin::counted(10, 2);
        spin.yielded(Duration::from_micros(20));
        assert!(!spin.must_block());
        spin.yielded(LONG_YIELD);
        assert!(spin.pause(2), "the first polls keep the core all the same");
        assert!(!spin.pause(3) && !spin.pause(11));
        for _ in 1..MIN_PENALTY {
            assert!(spin.must_block());
        }
        assert!(!spin.must_block());
    }

    #[test]
    fn the_penalty_grows_with_long_yields_and_is_forgotten() {
        let spin = Spin::counted(10, 0);
        for _ in 0..20 {
            spin.yielded(LONG_YIELD);
        }
        assert_eq!(spin.blocks.load(Relaxed), MAX_PENALTY);
        assert_eq!(spin.penalty.load(Relaxed), MAX_PENALTY);
        for _ in 0..2 * MAX_PENALTY {
            spin.yielded(Duration::ZERO);
        }
        assert_eq!(spin.penalty.load(Relaxed), MIN_PENALTY);
    }
}
