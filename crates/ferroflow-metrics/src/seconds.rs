//! Counters of seconds.

use prometheus_client::metrics::counter::{Atomic, Counter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter of seconds. Times are added through [`Counter::inner`].
pub(crate) type Seconds = Counter<f64, Nanos>;

/// Nanoseconds: steps add to them with one instruction, unlike to an `f64`.
#[derive(Debug, Default)]
pub(crate) struct Nanos(AtomicU64);

impl Nanos {
    pub fn add(&self, time: Duration) {
        self.add_nanos(nanos(time));
    }

    pub fn add_nanos(&self, nanos: u64) {
        if nanos > 0 {
            self.0.fetch_add(nanos, Ordering::Relaxed);
        }
    }
}

/// A time in nanoseconds, up to centuries.
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Atomic<f64> for Nanos {
    fn inc(&self) -> f64 {
        self.inc_by(1.0)
    }

    fn inc_by(&self, seconds: f64) -> f64 {
        let before = self.get();
        self.add(Duration::from_secs_f64(seconds));
        before
    }

    fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e9
    }
}
