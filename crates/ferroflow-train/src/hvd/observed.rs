//! Metrics of a rank, its HTTP port, and the report of stragglers at the end of a job.

use super::World;
use crate::hooks::{Hook, Ran};
use crate::output::Output;
use ferroflow_cluster::Trust;
use ferroflow_core::Result;
use ferroflow_metrics::TaskMetrics;
use ferroflow_observe::{Observation, observe_from_env};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Lags below this share of the job's time are not reported.
const SHARE: u32 = 20;
/// Jobs shorter than this have nothing to report: their ranks start at different times.
const SHORTEST: Duration = Duration::from_secs(5);

/// What a rank shows of itself. It survives changes of the ranks of an elastic job.
#[derive(Default)]
pub(super) struct Observed(Mutex<Option<Shown>>);

struct Shown {
    metrics: Arc<TaskMetrics>,
    started: Instant,
    is_reported: bool,
    _observation: Observation,
}

impl Observed {
    /// The metrics of this process, which is `rank` at first.
    pub fn of_rank(&self, rank: usize, trust: &Trust) -> Arc<TaskMetrics> {
        let mut shown = self.0.lock();
        let shown = shown.get_or_insert_with(|| {
            let metrics = TaskMetrics::from_env("rank", u32::try_from(rank).unwrap_or(u32::MAX));
            let observation = observe_from_env(&metrics, trust);
            Shown {
                metrics,
                started: Instant::now(),
                is_reported: false,
                _observation: observation,
            }
        });
        shown.metrics.clone()
    }

    /// The metrics, once the ranks have met.
    pub fn metrics(&self) -> Option<Arc<TaskMetrics>> {
        self.0.lock().as_ref().map(|shown| shown.metrics.clone())
    }

    /// Prints the report on standard error, once.
    pub fn tell(&self) {
        let text = self.report();
        let is_reported =
            self.0.lock().as_mut().is_none_or(|s| std::mem::replace(&mut s.is_reported, true));
        if let Some(text) = text.filter(|_| !is_reported) {
            // Ignore the error: a closed standard error must not fail the job.
            let _ = writeln!(std::io::stderr(), "ferroflow: {text}");
        }
    }

    /// Which rank the others waited for, in words; none if it made no difference. Rank 0 knows.
    pub fn report(&self) -> Option<String> {
        let shown = self.0.lock();
        let shown = shown.as_ref()?;
        let took = shown.started.elapsed();
        let slowest = *shown.metrics.late_ranks(1).first()?;
        let is_late = took >= SHORTEST && slowest.lag > took / SHARE;
        is_late.then(|| {
            let since = slowest.since.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let since = since.map(|at| at.as_secs()).map_or_else(String::new, |s| {
                format!(" (since {:02}:{:02}:{:02} UTC)", s / 3600 % 24, s / 60 % 60, s % 60)
            });
            format!(
                "straggler: the ranks waited {:.1} s of {:.1} s for rank {}, which was the last to \
                 submit {} tensors: its compute or input is slow{since}",
                slowest.lag.as_secs_f64(),
                took.as_secs_f64(),
                slowest.rank,
                slowest.times_last,
            )
        })
    }
}

/// A hook that counts the time between the steps of a training as its input.
pub(super) struct InputTime {
    world: World,
    ended: Option<Instant>,
}

impl InputTime {
    pub fn of(world: &World) -> InputTime {
        InputTime { world: world.clone(), ended: None }
    }
}

impl Hook for InputTime {
    /// The next step begins.
    fn fetches(&self, _: i64) -> Vec<Output> {
        if let (Some(ended), Some(metrics)) = (self.ended, self.world.metrics()) {
            metrics.rank_prepared(ended.elapsed());
        }
        Vec::new()
    }

    fn after(&mut self, _: &mut Ran<'_>) -> Result<()> {
        self.ended = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_kept_the_others_waiting_is_reported() {
        let observed = Observed::default();
        assert_eq!(observed.report(), None);
        let metrics = observed.of_rank(0, &Trust::default());
        metrics.was_last(2, Duration::from_secs(3));
        assert_eq!(observed.report(), None, "the job was short");
        if let Some(shown) = &mut *observed.0.lock() {
            shown.started = Instant::now().checked_sub(SHORTEST).unwrap();
        }
        let text = observed.report().unwrap();
        assert!(text.contains("for rank 2, which was the last to submit 1 tensors"), "{text}");
    }
}
