//! What every node of one run of a graph shares.

use crate::{CancelToken, Collectives, DType, Rendezvous, Resources, Shape};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

/// Threads that run nodes.
pub trait Spawn: Send + Sync {
    /// Runs `work` on a compute thread; it must not block.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>);

    /// Runs `work` on a thread of its own that may block.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// How many compute threads have nothing to do.
    fn idle(&self) -> usize {
        0
    }
}

/// One step: what its nodes, and the functions they call, share.
pub struct StepCtx {
    pub step_id: i64,
    pub rendezvous: Arc<dyn Rendezvous>,
    /// Resources of the session: those of the task, or its own when it is isolated.
    pub resources: Arc<Resources>,
    /// Resources that end with the step: tensor arrays, stacks, temporary variables.
    pub step_resources: Arc<Resources>,
    pub cancel: CancelToken,
    pub threads: Arc<dyn Spawn>,
    /// Runs what the step does together with other devices and tasks.
    pub collectives: Arc<dyn Collectives>,
    /// Present when the step is traced.
    pub stats: Option<Arc<StepStats>>,
    /// How many function calls this is nested in.
    pub depth: u32,
}

/// The times and outputs of the nodes of a traced step.
#[derive(Default)]
pub struct StepStats {
    pub nodes: Mutex<Vec<NodeStats>>,
}

/// One execution of one node.
#[derive(Clone, Debug)]
pub struct NodeStats {
    pub node: String,
    pub op: String,
    pub device: String,
    /// The inputs' node names, for the label of the timeline.
    pub inputs: Vec<String>,
    pub scheduled: SystemTime,
    pub start: SystemTime,
    pub end: SystemTime,
    pub thread: u32,
    /// Slot, dtype, shape and bytes of each output tensor.
    pub outputs: Vec<(usize, DType, Shape, usize)>,
}
