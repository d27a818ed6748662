//! The state that all nodes of one step share.

use crate::{
    CancelToken, Collectives, DType, GpuMemory, GpuTimeline, MemoryOwner, Rendezvous, Reservation,
    Resources, Result, Shape,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

/// The threads that run nodes.
pub trait Spawn: Send + Sync {
    /// Runs `work` on a compute thread. `work` must not block.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>);

    /// Runs `work` on its own thread, where it may block.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// The number of idle compute threads.
    fn idle(&self) -> usize {
        0
    }
}

/// The state that the nodes of a step, and the functions they call, share.
pub struct StepCtx {
    /// The number of the step.
    pub step_id: i64,
    /// Passes values between the parts of the step.
    pub rendezvous: Arc<dyn Rendezvous>,
    /// Resources of the session: those of the task, or the session's own if it is isolated.
    pub resources: Arc<Resources>,
    /// Resources that exist only during the step: tensor arrays, stacks, temporary variables.
    pub step_resources: Arc<Resources>,
    /// Cancels the step.
    pub cancel: CancelToken,
    /// The session that owns the memory which the step's nodes allocate.
    pub memory: Arc<MemoryOwner>,
    /// The threads that run the step's nodes.
    pub threads: Arc<dyn Spawn>,
    /// Runs the collectives with other devices and tasks.
    pub collectives: Arc<dyn Collectives>,
    /// Collects times, if the step is traced.
    pub stats: Option<Arc<StepStats>>,
    /// The depth of nested function calls.
    pub depth: u32,
}

/// Times and outputs of the nodes of a traced step.
#[derive(Default)]
pub struct StepStats {
    /// One entry for each execution of a node.
    pub nodes: Mutex<Vec<NodeStats>>,
    /// When the work of nodes ran on GPUs.
    pub gpus: GpuTimeline,
    /// Counts the entries for the session.
    memory: Mutex<Reservation>,
}

impl StepStats {
    /// Adds an entry. An error if the session, or the process, may not hold it: a loop can run its
    /// nodes without end.
    pub fn note(&self, node: NodeStats) -> Result<()> {
        self.memory.lock().grow(node.bytes())?;
        self.nodes.lock().push(node);
        Ok(())
    }
}

/// One execution of one node.
#[derive(Clone, Debug)]
pub struct NodeStats {
    /// The name of the node.
    pub node: String,
    /// The name of its op.
    pub op: String,
    /// The full name of its device.
    pub device: String,
    /// The names of the input nodes, for the label in the timeline.
    pub inputs: Vec<String>,
    /// When the node became ready.
    pub scheduled: SystemTime,
    /// When its kernel started.
    pub start: SystemTime,
    /// When its kernel ended.
    pub end: SystemTime,
    /// The number of the thread that ran it.
    pub thread: u32,
    /// Slot, dtype, shape and bytes of each output tensor.
    pub outputs: Vec<(usize, DType, Shape, usize)>,
    /// The memory of its GPU when it had run, if it has one.
    pub memory: Option<GpuMemory>,
}

impl NodeStats {
    /// The approximate bytes that it takes.
    fn bytes(&self) -> usize {
        let NodeStats { node, op, device, inputs, outputs, .. } = self;
        let texts = node.len() + op.len() + device.len();
        let inputs = inputs.iter().map(|input| size_of::<String>() + input.len());
        size_of::<NodeStats>() + texts + inputs.sum::<usize>() + size_of_val(&**outputs)
    }
}
