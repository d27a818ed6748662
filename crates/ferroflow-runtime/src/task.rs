//! A task: what one process offers to sessions.

use crate::threads::Threads;
use ferroflow_core::{ComputePool, DeviceInfo, Resources};
use ferroflow_graph::Catalog;
use std::sync::Arc;

/// The devices, resources, threads and ops of one process. Resources outlive sessions: that is how
/// the workers of a training job meet in one variable.
pub struct Task {
    pub catalog: Arc<Catalog>,
    /// Its devices; the first is where feeds enter and fetches leave.
    pub devices: Vec<Arc<DeviceInfo>>,
    pub resources: Arc<Resources>,
    pub threads: Arc<Threads>,
}

impl Task {
    /// Task `index` of `job` with `cpus` CPU devices. Each start gets new incarnations.
    pub fn new(catalog: Arc<Catalog>, job: &str, index: u32, cpus: u32) -> Arc<Task> {
        let devices = (0..cpus.max(1))
            .map(|id| Arc::new(DeviceInfo::cpu(job, index, id, fastrand::u64(1..))))
            .collect();
        Arc::new(Task {
            catalog,
            devices,
            resources: Arc::new(Resources::new()),
            threads: Threads::new(ComputePool::threads()),
        })
    }

    /// A task for sessions without a cluster: `/job:localhost/task:0`.
    pub fn local(catalog: Arc<Catalog>) -> Arc<Task> {
        Task::new(catalog, "localhost", 0, 1)
    }
}
