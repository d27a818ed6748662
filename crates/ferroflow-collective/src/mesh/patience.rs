//! How a rank passes the short time until its peers have come as far: it looks again, gives its processor away, or
//! sleeps.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What waiting costs depends on who else is there. Who gives its processor to a rank has it back in
/// microseconds; who gives it to another program is without it for that program's whole turn, while a sleeper
/// is woken as soon as its bytes are there. So processors are given away until one was seen to stay away,
/// and then the rank sleeps instead, for longer each time that this is found again.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Looks before the rank waits in the kernel.
    looks: u32,
    /// The first looks, between which the processor is kept; none when ranks exceed processors. Between
    /// the others it is given away, because the peer may have been put on the same one: ranks that
    /// spin there, or sleep and are woken there, stay together and lose all that time at every step.
    spins: u32,
    /// Waits that are still to be slept through.
    sleeps: AtomicU32,
    /// How many that will be the next time.
    penalty: AtomicU32,
}

/// Longer than any rank keeps a processor that others wait for, and shorter than another program's turn.
const LONG: Duration = Duration::from_millis(1);
const LEAST_PENALTY: u32 = 16;
const MOST_PENALTY: u32 = 1 << 16;

impl Patience {
    pub(crate) fn new(looks: u32, spins: u32) -> Patience {
        let (sleeps, penalty) = (AtomicU32::new(0), AtomicU32::new(LEAST_PENALTY));
        Patience { looks, spins, sleeps, penalty }
    }

    /// Passes the time after so many looks in vain; false if it is now to be waited for in the kernel.
    pub(crate) fn pause(&self, looks: u32) -> bool {
        if looks > self.looks {
            return false;
        }
        if looks <= self.spins {
            std::hint::spin_loop();
            return true;
        }
        if self.must_sleep() {
            return false;
        }
        let start = Instant::now();
        std::thread::yield_now();
        self.was_away(start.elapsed());
        true
    }

    /// Whether this wait is one of those to be slept through.
    fn must_sleep(&self) -> bool {
        let sleeps = self.sleeps.load(Relaxed);
        self.sleeps.store(sleeps.saturating_sub(1), Relaxed);
        sleeps > 0
    }

    fn was_away(&self, time: Duration) {
        let penalty = self.penalty.load(Relaxed);
        if time >= LONG {
            self.sleeps.store(penalty, Relaxed);
            self.penalty.store((penalty * 4).min(MOST_PENALTY), Relaxed);
        } else if penalty > LEAST_PENALTY {
            // Forgotten within as many short turns as there were sleeps.
            self.penalty.store(penalty - 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_stays_away_is_not_given_away_for_a_while() {
        let patience = Patience::new(10, 2);
        patience.was_away(Duration::from_micros(20));
        assert!(!patience.must_sleep());
        patience.was_away(LONG);
        assert!(patience.pause(2), "it is still kept for the first looks");
        assert!(!patience.pause(3) && !patience.pause(11));
        for _ in 1..LEAST_PENALTY {
            assert!(patience.must_sleep());
        }
        assert!(!patience.must_sleep());
    }

    #[test]
    fn the_penalty_grows_with_what_is_found_and_is_forgotten() {
        let patience = Patience::new(10, 0);
        for _ in 0..20 {
            patience.was_away(LONG);
        }
        assert_eq!(patience.sleeps.load(Relaxed), MOST_PENALTY);
        assert_eq!(patience.penalty.load(Relaxed), MOST_PENALTY);
        for _ in 0..2 * MOST_PENALTY {
            patience.was_away(Duration::ZERO);
        }
        assert_eq!(patience.penalty.load(Relaxed), LEAST_PENALTY);
    }
}
