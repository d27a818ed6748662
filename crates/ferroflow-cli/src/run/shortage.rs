//! Fewer slots than an elastic job needs.

use crate::launch::tell;
use ferroflow::{Code, Error, Result};
use std::time::{Duration, Instant};

/// What has been said about it, and since when it lasts.
#[derive(Default)]
pub struct Shortage(Option<(Instant, usize)>);

impl Shortage {
    /// Says so if `slots` are too few and it has not been said. An error if that has lasted for longer than `patience`
    /// and nothing runs any more.
    pub fn mind(
        &mut self,
        slots: usize,
        needed: usize,
        patience: Duration,
        is_idle: bool,
    ) -> Result<()> {
        if slots >= needed {
            self.0 = None;
            return Ok(());
        }
        let since = self.0.map_or_else(Instant::now, |(since, _)| since);
        if self.0.is_none_or(|(_, said)| said != slots) {
            let wait = patience.as_secs();
            tell(format!("{slots} of {needed} slots; waiting up to {wait} s (--elastic-timeout)"));
        }
        self.0 = Some((since, slots));
        if is_idle && since.elapsed() >= patience {
            let text = format!("{slots} of {needed} slots, and no more within {patience:?}");
            return Err(Error::new(Code::DeadlineExceeded, text));
        }
        Ok(())
    }
}
