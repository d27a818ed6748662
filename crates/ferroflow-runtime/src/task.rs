//! A task: what one process offers to sessions.

use crate::threads::Threads;
use ferroflow_core::{ComputePool, DeviceInfo, Gpu, Resources};
use ferroflow_graph::Catalog;
use std::sync::Arc;

/// The devices, resources, threads and ops of one process. Resources outlive sessions, so the
/// workers of a training job can share one variable.
pub struct Task {
    pub catalog: Arc<Catalog>,
    /// Its devices. Feeds enter and fetches leave at the first.
    pub devices: Vec<Arc<DeviceInfo>>,
    pub resources: Arc<Resources>,
    pub threads: Arc<Threads>,
}

impl Task {
    /// Task `index` of `job` with `cpus` CPU devices. Each start gets new incarnations.
    pub fn new(catalog: Arc<Catalog>, job: &str, index: u32, cpus: u32) -> Arc<Task> {
        Task::with_gpus(catalog, job, index, cpus, &[])
    }

    /// The same with GPUs.
    pub fn with_gpus(
        catalog: Arc<Catalog>,
        job: &str,
        index: u32,
        cpus: u32,
        gpus: &[Arc<dyn Gpu>],
    ) -> Arc<Task> {
        let new = || fastrand::u64(1..);
        let cpus = (0..cpus.max(1)).map(|id| DeviceInfo::cpu(job, index, id, new()));
        let gpus = (0..).zip(gpus).map(|(id, g)| DeviceInfo::gpu(job, index, id, new(), g.clone()));
        let devices = cpus.chain(gpus).map(Arc::new).collect();
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
