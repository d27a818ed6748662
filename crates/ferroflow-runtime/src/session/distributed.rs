//! Steps over several tasks: the interface between a session and the master that runs them.

use super::{RunOptions, SessionDone};
use crate::plan::KernelCache;
use crate::task::Task;
use ferroflow_core::{
    CancelToken, Collectives, DeviceInfo, InlineScope, MemoryOwner, Resources, Result,
    SingleDeviceCollectives, Tensor,
};
use ferroflow_graph::passes::Pruned;
use std::sync::Arc;

/// The devices and state that a session runs on.
pub struct SessionScope {
    /// Devices of its own task, by the names the session knows them. Feeds enter and fetches leave
    /// at the first.
    pub own: Vec<Arc<DeviceInfo>>,
    /// Devices of other tasks.
    pub others: Vec<Arc<DeviceInfo>>,
    /// Runs the steps that need devices of other tasks.
    pub distribute: Option<Arc<dyn Distribute>>,
    /// Variables and queues of its own task.
    pub resources: Arc<Resources>,
    /// The owner of the memory that its steps allocate on its own task.
    pub memory: Arc<MemoryOwner>,
    /// Kernels with state of its own task.
    pub kernels: Arc<KernelCache>,
    /// Runs the collective ops of its steps.
    pub collectives: Arc<dyn Collectives>,
}

impl SessionScope {
    /// The scope of a session on one task. `is_isolated` keeps its variables and queues apart from
    /// those of the task.
    pub fn of(task: &Task, is_isolated: bool) -> SessionScope {
        let resources = if is_isolated { Arc::default() } else { task.resources.clone() };
        SessionScope {
            own: task.devices.clone(),
            others: Vec::new(),
            distribute: None,
            resources,
            memory: MemoryOwner::unlimited(),
            kernels: Arc::default(),
            collectives: Arc::new(SingleDeviceCollectives),
        }
    }
}

/// Runs steps over several tasks.
pub trait Distribute: Send + Sync {
    /// Prepares a step whose nodes are placed on several tasks. Must return soon: other tasks
    /// register their parts when the step first runs.
    fn prepare(
        &self,
        step: Pruned,
        feeds: &[String],
        fetches: &[String],
    ) -> Result<Arc<dyn DistributedStep>>;
}

/// A step that is ready to run on several tasks, any number of times.
pub trait DistributedStep: Send + Sync {
    /// Runs the step, with values for the feeds in order. Must return soon. `cancel` ends the step
    /// early.
    fn run(
        self: Arc<Self>,
        feeds: Vec<Tensor>,
        options: &RunOptions,
        cancel: CancelToken,
        scope: &InlineScope,
        done: SessionDone,
    );

    /// Begins a run that is fed and fetched in several calls. `cancel` ends all of it.
    fn begin(self: Arc<Self>, cancel: CancelToken) -> Arc<dyn DistributedPartialRun>;
}

/// A partial run of a distributed step.
pub trait DistributedPartialRun: Send + Sync {
    /// Makes one call: feeds some values and fetches some. The last call also waits for the end of
    /// the run. After a failed call no other may follow.
    fn part(
        self: Arc<Self>,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        is_last: bool,
        cancel: CancelToken,
        done: SessionDone,
    );
}
