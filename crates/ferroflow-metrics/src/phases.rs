//! What a task does during a step.

use crate::seconds::Seconds;
use prometheus_client::encoding::EncodeLabelValue;
use std::time::Duration;

/// A part of a step's time on one task.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[allow(non_camel_case_types)]
pub enum Phase {
    /// Between two steps: the program reads and prepares its next batch.
    input,
    /// Kernels run.
    compute,
    /// Values are written to other tasks, or reduced with other ranks.
    send,
    /// Nothing to do until values of other tasks or ranks arrive.
    wait,
}

/// All phases, in the order of a step.
pub const PHASES: [Phase; 4] = [Phase::input, Phase::compute, Phase::send, Phase::wait];

impl Phase {
    /// Its name in metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::input => "input",
            Phase::compute => "compute",
            Phase::send => "send",
            Phase::wait => "wait",
        }
    }
}

/// Seconds in each phase.
#[derive(Debug)]
pub struct PhaseSeconds([Seconds; 4]);

impl PhaseSeconds {
    /// Adds time to a phase.
    pub fn add(&self, phase: Phase, time: Duration) {
        self.0[phase as usize].inner().add(time);
    }

    /// Adds nanoseconds to all phases, in the order of [`PHASES`].
    pub(crate) fn add_all(&self, nanos: [u64; 4]) {
        for (phase, nanos) in self.0.iter().zip(nanos) {
            phase.inner().add_nanos(nanos);
        }
    }

    /// The seconds in a phase.
    pub fn seconds(&self, phase: Phase) -> f64 {
        self.0[phase as usize].get()
    }

    /// With these counters, in the order of [`PHASES`].
    pub(crate) fn new(counters: [Seconds; 4]) -> PhaseSeconds {
        PhaseSeconds(counters)
    }
}
