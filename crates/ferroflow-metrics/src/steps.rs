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

#[derive(Debug, Default)]
pub(crate) struct RecentSteps(Mutex<VecDeque<StepRecord>>);

impl RecentSteps {
    pub fn push(&self, record: StepRecord) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(record);
    }

    pub fn last(&self, most: usize) -> Vec<StepRecord> {
        let kept = self.0.lock();
        kept.iter().skip(kept.len().saturating_sub(most)).copied().collect()
    }
}

impl StepRecord {
    /// Records a step that took `total`, including the times `input`, `send` and `wait`.
    pub fn ended(
        id: i64,
        total: Duration,
        input: Duration,
        send: Duration,
        wait: Duration,
    ) -> StepRecord {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let compute = total.saturating_sub(send).saturating_sub(wait).saturating_sub(input);
        StepRecord {
            id,
            start: now.saturating_sub(total).as_micros() as u64,
            phases: [micros(input), micros(compute), micros(send), micros(wait)],
        }
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
    fn phases_of_a_record_add_up_to_its_time() {
        let ms = Duration::from_millis;
        let record = StepRecord::ended(7, ms(10), ms(2), ms(1), ms(3));
        assert_eq!(record.phases, [2_000, 4_000, 1_000, 3_000]);
        // Waits of several values overlap: they may be longer than the step.
        assert_eq!(StepRecord::ended(7, ms(1), ms(0), ms(0), ms(3)).phases[1], 0);
    }

    #[test]
    fn only_the_last_steps_are_kept() {
        let recent = RecentSteps::default();
        (0..1000).for_each(|id| recent.push(StepRecord { id, ..StepRecord::default() }));
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
