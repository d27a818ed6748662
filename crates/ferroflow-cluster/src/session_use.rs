//! The use of a session: its pending steps, and when it was used last.

use ferroflow_core::{Limit, Quota, QuotaShare, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts the steps of a session and notes when it was used.
pub(crate) struct SessionUse {
    name: String,
    steps: Arc<Quota>,
    opened: Instant,
    /// Whether it was used since `last` was set. Each step sets this, and reads no clock.
    is_used: AtomicBool,
    /// Milliseconds from `opened` to when a use was seen last.
    last: AtomicU64,
}

impl SessionUse {
    /// A new session, which errors call `name`. It may have so many pending steps.
    pub fn new(name: String, limit: Limit) -> SessionUse {
        let (steps, opened) = (Quota::new(limit), Instant::now());
        let (is_used, last) = (AtomicBool::new(false), AtomicU64::new(0));
        SessionUse { name, steps, opened, is_used, last }
    }

    /// Notes that it is used.
    pub fn touch(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Counts a step until the result is dropped. An error if too many are pending.
    pub fn begin_step(&self) -> Result<QuotaShare> {
        self.steps.take(1, &self.name)
    }

    /// Whether it has no pending step, and was not used for this long. A use counts from the first
    /// call after it, so this is called more often than once in `limit`.
    pub fn is_idle(&self, limit: Duration) -> bool {
        let now = self.opened.elapsed();
        if self.is_used.swap(false, Ordering::Relaxed) {
            self.last.store(now.as_millis() as u64, Ordering::Relaxed);
        }
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.steps.used() == 0 && now.saturating_sub(last) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, Limits};

    #[test]
    fn a_session_with_a_step_is_not_idle() {
        let uses = SessionUse::new("s".into(), Limits::DEFAULT.steps);
        assert!(uses.is_idle(Duration::ZERO) && !uses.is_idle(Duration::from_secs(3600)));
        let step = uses.begin_step().unwrap();
        assert!(!uses.is_idle(Duration::ZERO));
        drop(step);
        assert!(uses.is_idle(Duration::ZERO));
    }

    #[test]
    fn a_use_counts_from_when_it_is_seen() {
        const MS: Duration = Duration::from_millis(1);
        let mut uses = SessionUse::new("s".into(), Limits::DEFAULT.steps);
        uses.opened -= 5 * MS;
        assert!(uses.is_idle(MS));
        uses.touch();
        assert!(!uses.is_idle(Duration::from_secs(60)));
        let seen = uses.last.load(Ordering::Relaxed);
        assert!(seen >= 5 && !uses.is_used.load(Ordering::Relaxed));
        uses.opened -= 5 * MS;
        assert!(uses.is_idle(MS));
    }

    #[test]
    fn too_many_steps_are_refused() {
        let uses = SessionUse::new("session 7".into(), Limit { most: 2, ..Limits::DEFAULT.steps });
        let steps = [uses.begin_step().unwrap(), uses.begin_step().unwrap()];
        let e = uses.begin_step().unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        assert!(e.message().starts_with("session 7 asked for 3 pending steps"), "{e}");
        drop(steps);
        assert!(uses.begin_step().is_ok());
    }
}
