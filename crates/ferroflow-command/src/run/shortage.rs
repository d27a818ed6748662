//! Reports when an elastic job has fewer slots than it needs.

use crate::launch::tell;
use ferroflow::{Code, Error, Result};
use std::time::{Duration, Instant};

/// The start of the shortage, and the last reported number of slots.
#[derive(Default)]
pub struct Shortage(Option<(Instant, usize)>);

impl Shortage {
    /// Reports a shortage once per number of slots. Fails if it lasts longer than `timeout` while
    /// no process is running.
    pub fn check(
        &mut self,
        slots: usize,
        needed: usize,
        timeout: Duration,
        is_idle: bool,
    ) -> Result<()> {
        if slots >= needed {
            self.0 = None;
            return Ok(());
        }
        let since = self.0.map_or_else(Instant::now, |(since, _)| since);
        if self.0.is_none_or(|(_, said)| said != slots) {
            let wait = timeout.as_secs();
            tell(format!("{slots} of {needed} slots; waiting up to {wait} s (--elastic-timeout)"));
        }
        self.0 = Some((since, slots));
        if is_idle && since.elapsed() >= timeout {
            let text = format!("{slots} of {needed} slots, and no more within {timeout:?}");
            return Err(Error::new(Code::DeadlineExceeded, text));
        }
        Ok(())
    }
}
