//! Options and counters of an engine.

use crate::compress::WireCompression;
use crate::group::SetId;
use crate::reduce::ReduceOp;
use ferroflow_core::Error;
use ferroflow_metrics::TaskMetrics;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of an [`crate::Engine`].
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Most bytes of small tensors in one fused collective, and how long a tensor waits for others
    /// to fuse with. If `None`, the engine tries several values and keeps the fastest.
    pub fusion: Option<(usize, Duration)>,
    /// Bytes of the pieces into which large tensors are cut. Urgent tensors run between two pieces.
    pub piece: usize,
    /// When to warn that a tensor waits for other ranks.
    pub stall_warning: Duration,
    /// When to fail a tensor that waits for other ranks.
    pub stall_deadline: Duration,
    /// How long a dropped engine waits for the other ranks to drop theirs. They may still need what
    /// this rank has submitted.
    pub shutdown_timeout: Duration,
    /// Give the same bits in every run: nothing is fused or tuned. The group must have a fixed cost
    /// model or algorithm instead of a probed one.
    pub deterministic: bool,
    /// Divide a mean by the number of all ranks of its set, as Horovod does, even if some of them
    /// have joined. Otherwise by the number of ranks that have data.
    pub mean_counts_joined: bool,
    /// The file for a trace of all tensors on this rank.
    pub timeline: Option<PathBuf>,
    /// Counts collectives, waits and steps.
    pub metrics: Option<Arc<TaskMetrics>>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            fusion: None,
            piece: 4 << 20,
            stall_warning: Duration::from_secs(10),
            stall_deadline: Duration::from_secs(120),
            shutdown_timeout: Duration::from_secs(10),
            deterministic: false,
            mean_counts_joined: false,
            timeline: None,
            metrics: None,
        }
    }
}

/// Counters of the coordinator, on rank 0 only.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineStats {
    /// Requests that came as a number, because the coordinator knew them.
    pub cache_hits: u64,
    /// Requests that came in full.
    pub cache_misses: u64,
    /// Collectives that ran.
    pub runs: u64,
    /// Tensors or pieces of tensors in those collectives.
    pub pieces: u64,
    /// Most bytes of a fused collective at present.
    pub fusion: usize,
    /// How long a tensor waits for others to fuse with at present.
    pub cycle: Duration,
    /// Whether the tuner has chosen both values for good.
    pub tuned: bool,
}

/// The options of a submission.
#[derive(Clone, Debug)]
pub struct SubmitOptions {
    /// How values are combined.
    pub op: ReduceOp,
    /// The process set.
    pub set: SetId,
    /// Tensors with a higher priority run first.
    pub priority: i32,
    /// How values are compressed on the wire.
    pub compression: WireCompression,
    /// The tensor's shape. A vector if `None`.
    pub shape: Option<Vec<usize>>,
    /// Why this rank cannot take part, if it cannot. All ranks then get this error instead of
    /// waiting.
    pub fault: Option<Error>,
}

impl Default for SubmitOptions {
    fn default() -> SubmitOptions {
        SubmitOptions {
            op: ReduceOp::Sum,
            set: SetId::WORLD,
            priority: 0,
            compression: WireCompression::None,
            shape: None,
            fault: None,
        }
    }
}

impl SubmitOptions {
    /// The default options with this reduction.
    pub fn op(op: ReduceOp) -> SubmitOptions {
        SubmitOptions { op, ..SubmitOptions::default() }
    }
}
