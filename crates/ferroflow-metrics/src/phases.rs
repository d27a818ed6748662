//! What a task does during a step.

use prometheus_client::encoding::EncodeLabelValue;
use prometheus_client::metrics::counter::Counter;
use std::sync::atomic::AtomicU64;
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
pub struct PhaseSeconds([Counter<f64, AtomicU64>; 4]);

impl PhaseSeconds {
    /// Adds time to a phase.
    pub fn add(&self, phase: Phase, time: Duration) {
        self.0[phase as usize].inc_by(time.as_secs_f64());
    }

    /// The seconds in a phase.
    pub fn seconds(&self, phase: Phase) -> f64 {
        self.0[phase as usize].get()
    }

    /// With these counters, in the order of [`PHASES`].
    pub(crate) fn new(counters: [Counter<f64, AtomicU64>; 4]) -> PhaseSeconds {
        PhaseSeconds(counters)
    }
}
