//! Steps: their number, times and the last few of them.

use crate::phases::Phase;
use crate::task::TaskMetrics;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Steps that are kept for the timeline.
const KEPT: usize = 128;
/// A client that is away for longer does not prepare its input: it is idle.
pub(crate) const LONGEST_INPUT: Duration = Duration::from_secs(10);

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// It succeeded.
    Ok,
    /// It failed or was cancelled.
    Failed,
}

/// A step or a part of one, on one task.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepRecord {
    /// The step's id, or its number on a rank.
    pub id: i64,
    /// When it began, in microseconds since 1970.
    pub start: u64,
    /// Microseconds in each phase, in the order of [`crate::PHASES`].
    pub phases: [u32; 4],
}

/// Each step is noted, and few are read: times become those of a [`StepRecord`] when they are read.
#[derive(Debug, Default)]
pub(crate) struct RecentSteps(Mutex<VecDeque<RecentStep>>);

/// A step that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentStep {
    pub id: i64,
    pub started: Instant,
    /// Nanoseconds in each phase.
    pub phases: [u64; 4],
}

impl RecentSteps {
    pub fn push(&self, step: RecentStep) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(step);
    }

    pub fn last(&self, most: usize) -> Vec<StepRecord> {
        let kept = self.0.lock();
        kept.iter().skip(kept.len().saturating_sub(most)).map(RecentStep::record).collect()
    }
}

impl RecentStep {
    fn record(&self) -> StepRecord {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = now.saturating_sub(self.started.elapsed());
        let micros = |nanos: u64| u32::try_from(nanos / 1000).unwrap_or(u32::MAX);
        let phases = self.phases.map(micros);
        StepRecord { id: self.id, start: start.as_micros() as u64, phases }
    }
}

/// A session that is open, until this is dropped.
pub struct CountedSession {
    metrics: Arc<TaskMetrics>,
    /// A number for logs. The handle of a session is a secret.
    pub number: u64,
    opened: Instant,
    /// Nanoseconds from `opened` to the end of the last step, and zero before the first.
    last_end: AtomicU64,
}

impl CountedSession {
    pub(crate) fn new(metrics: Arc<TaskMetrics>) -> CountedSession {
        metrics.counters.sessions.inc();
        let number = metrics.counters.opened_sessions.inc() + 1;
        CountedSession { metrics, number, opened: Instant::now(), last_end: AtomicU64::new(0) }
    }

    /// Begins a step of a client.
    pub fn begin_step(&self) -> StepTimer<'_> {
        let now = Instant::now();
        let last = self.last_end.swap(0, Ordering::Relaxed);
        if last > 0 {
            let input = now - self.opened;
            let input = input.saturating_sub(Duration::from_nanos(last));
            if input < LONGEST_INPUT && self.metrics.is_counting() {
                self.metrics.phases.add(Phase::input, input);
            }
        }
        StepTimer { session: self, started: now }
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.metrics.counters.sessions.dec();
    }
}

/// A connection that is open, until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<TaskMetrics>);

impl OpenConnection {
    /// Counts a connection.
    pub fn new(metrics: Arc<TaskMetrics>) -> OpenConnection {
        metrics.counters.open_connections.inc();
        OpenConnection(metrics)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.open_connections.dec();
    }
}

/// A step of a client.
pub struct StepTimer<'s> {
    session: &'s CountedSession,
    started: Instant,
}

impl StepTimer<'_> {
    /// The step has ended.
    pub fn end(self, end: StepEnd) {
        let CountedSession { metrics, opened, last_end, .. } = self.session;
        let now = Instant::now();
        metrics.count_step(end, now - self.started);
        last_end.store((now - *opened).as_nanos().max(1) as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_when_the_step_began() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let (started, second) = (Instant::now(), 1_000_000_000);
        let step = RecentStep { id: 7, started, phases: [2 * second, 1500, 0, u64::MAX] };
        let record = step.record();
        assert_eq!((record.id, record.phases), (7, [2_000_000, 1, 0, u32::MAX]));
        assert!(record.start.abs_diff(now.as_micros() as u64) < 1_000_000);
    }

    #[test]
    fn only_the_last_steps_are_kept() {
        let recent = RecentSteps::default();
        let started = Instant::now();
        (0..1000).for_each(|id| recent.push(RecentStep { id, started, phases: [0; 4] }));
        let last = recent.last(usize::MAX);
        assert_eq!((last.len(), last[0].id, last[KEPT - 1].id), (KEPT, 1000 - KEPT as i64, 999));
        assert_eq!(recent.last(2).len(), 2);
    }

    #[test]
    fn the_time_between_steps_is_input() {
        let metrics = TaskMetrics::new("worker", 0);
        let session = metrics.open_session();
        session.begin_step().end(StepEnd::Ok);
        assert_eq!(metrics.phases.seconds(Phase::input), 0.0);
        session.begin_step().end(StepEnd::Failed);
        assert!(metrics.phases.seconds(Phase::input) > 0.0);
    }
}
