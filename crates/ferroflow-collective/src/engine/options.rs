//! What an engine can be told, and what it tells.

use crate::compress::WireCompression;
use crate::group::SetId;
use crate::reduce::ReduceOp;
use ferroflow_core::Error;
use std::path::PathBuf;
use std::time::Duration;

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of small tensors in one collective, and how long one waits for company; found by trying
    /// if there are none.
    pub fusion: Option<(usize, Duration)>,
    /// Bytes of the pieces that large tensors are cut into, between which urgent ones pass.
    pub piece: usize,
    /// When to warn that a tensor waits for ranks, and when to give it up.
    pub stall_warning: Duration,
    pub stall_deadline: Duration,
    /// How long an engine that is dropped waits for the others to be dropped, too: they may still want
    /// what this rank has submitted.
    pub shutdown_timeout: Duration,
    /// The same bits in every run: nothing is fused or tuned. The group must have a fixed model or
    /// algorithm, not a probed one.
    pub deterministic: bool,
    /// Where to leave a trace of what happens to each tensor on this rank.
    pub timeline: Option<PathBuf>,
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
            timeline: None,
        }
    }
}

/// What the coordinator has seen; on rank 0 only.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineStats {
    /// Requests that came as numbers, and those that came in full.
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Collectives run, and tensors or pieces in them.
    pub runs: u64,
    pub pieces: u64,
    /// Fusion bytes and cycle time in use.
    pub fusion: usize,
    pub cycle: Duration,
    pub tuned: bool,
}

/// Everything about a submission but its name and values.
#[derive(Clone, Debug)]
pub struct SubmitOptions {
    pub op: ReduceOp,
    pub set: SetId,
    /// More is sooner.
    pub priority: i32,
    pub compression: WireCompression,
    /// The tensor's shape; flat if there is none.
    pub shape: Option<Vec<usize>>,
    /// Why this rank cannot do its part, if that is so: an error on all ranks, instead of a wait.
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
    pub fn op(op: ReduceOp) -> SubmitOptions {
        SubmitOptions { op, ..SubmitOptions::default() }
    }
}
