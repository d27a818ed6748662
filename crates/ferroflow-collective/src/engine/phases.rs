//! The phases of a rank, as metrics: it computes, waits for other ranks, or exchanges data.
//!
//! Nothing tells an engine where a step begins. A rank submits the same tensors in each step, so a
//! step ends when a tensor is submitted for the second time.

use ferroflow_metrics::TaskMetrics;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program that keeps making up names has no steps: its names are forgotten then.
const MOST_NAMES: usize = 1 << 16;

pub(super) struct RankPhases {
    metrics: Arc<TaskMetrics>,
    /// Hashes of the names that the present step has submitted.
    names: HashSet<u64>,
    hasher: RandomState,
    step: i64,
    step_start: Instant,
    /// The last submission, and the end of the last collective.
    last_submission: Instant,
    last_end: Instant,
    wait: Duration,
    send: Duration,
}

impl RankPhases {
    pub fn new(metrics: Arc<TaskMetrics>, ranks: usize) -> RankPhases {
        metrics.set_ranks(ranks, None);
        let now = Instant::now();
        RankPhases {
            metrics,
            names: HashSet::new(),
            hasher: RandomState::new(),
            step: 0,
            step_start: now,
            last_submission: now,
            last_end: now,
            wait: Duration::ZERO,
            send: Duration::ZERO,
        }
    }

    /// The rank has submitted a tensor.
    pub fn submitted(&mut self, set: u16, name: &str, at: Instant) {
        let hash = self.hasher.hash_one((set, name));
        if !self.names.insert(hash) || self.names.len() > MOST_NAMES {
            let total = at.saturating_duration_since(self.step_start);
            self.metrics.rank_step(self.step, total, self.send, self.wait);
            self.step += 1;
            self.step_start = at;
            (self.wait, self.send) = (Duration::ZERO, Duration::ZERO);
            self.names.clear();
            self.names.insert(hash);
        }
        self.last_submission = self.last_submission.max(at);
    }

    /// A collective has run. Its decision arrived at `arrived`.
    pub fn ran(
        &mut self,
        kind: &'static str,
        bytes: u64,
        arrived: Instant,
        start: Instant,
        end: Instant,
    ) {
        // While the rank submits tensors it still computes.
        let idle = self.last_submission.max(self.last_end);
        let waited = arrived.saturating_duration_since(idle);
        let queued = start.saturating_duration_since(arrived.max(self.last_end));
        let run = end.saturating_duration_since(start);
        self.wait += waited;
        self.send += run;
        self.last_end = end;
        self.metrics.collectives().ran(kind, bytes, run, waited, queued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_when_its_tensors_come_again() {
        let metrics = TaskMetrics::new("rank", 1);
        let mut phases = RankPhases::new(metrics.clone(), 2);
        let start = phases.step_start;
        let at = |ms: u64| start + Duration::from_millis(ms);
        for step in 0..3 {
            let t = step * 100;
            // Both are computed in 60 ms; the other rank is 20 ms late; then both are reduced.
            phases.submitted(0, "a", at(t + 50));
            phases.submitted(0, "b", at(t + 60));
            phases.ran("all-reduce", 8, at(t + 80), at(t + 80), at(t + 85));
            phases.ran("all-reduce", 8, at(t + 80), at(t + 85), at(t + 90));
        }
        let found = metrics.snapshot();
        assert_eq!((&found["steps"], &found["collectives"]["count"]), (&2.into(), &6.into()));
        let [_, start, _, compute, send, wait] =
            std::array::from_fn(|i| found["recent"][1][i].as_u64().unwrap());
        assert!(start > 0);
        assert_eq!((compute, send, wait), (70_000, 10_000, 20_000));
        assert!((found["waits"]["ranks"].as_f64().unwrap() - 0.06).abs() < 1e-9);
    }
}
