//! The times at which GPUs worked on a traced step. A node enqueues its work and returns, so the
//! node's own times say little. The GPU records when it starts and completes that work.

use crate::{Gpu, GpuTrace, NodeInfo};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

/// The work of one node on a GPU.
#[derive(Clone, Debug)]
pub struct GpuWork {
    /// The name of the node.
    pub node: String,
    /// The name of its op.
    pub op: String,
    /// The full name of the GPU.
    pub device: String,
    /// When the GPU began with the node's work: the work before it was complete.
    pub start: SystemTime,
    /// When the GPU had completed it.
    pub end: SystemTime,
}

/// Collects the work of a step's nodes on the GPUs of this task.
#[derive(Default)]
pub struct GpuTimeline {
    gpus: Mutex<Vec<TracedGpu>>,
}

struct TracedGpu {
    gpu: Arc<dyn Gpu>,
    /// `None` for a GPU without a clock.
    trace: Option<Box<dyn GpuTrace>>,
    /// Node, and the numbers of the marks before and after its work.
    spans: Vec<(Arc<NodeInfo>, usize, usize)>,
}

impl GpuTimeline {
    /// Notes that work of a node on `gpu` begins. Returns the number of the mark.
    pub fn mark(&self, gpu: &Arc<dyn Gpu>) -> Option<usize> {
        let mut gpus = self.gpus.lock();
        let at = gpus.iter().position(|known| Arc::ptr_eq(&known.gpu, gpu)).unwrap_or_else(|| {
            let (gpu, trace) = (gpu.clone(), gpu.trace());
            gpus.push(TracedGpu { gpu, trace, spans: Vec::new() });
            gpus.len() - 1
        });
        gpus[at].trace.as_ref()?.mark().ok()
    }

    /// Notes that all work of `node`, which began at mark `from`, is enqueued.
    pub fn note(&self, node: &Arc<NodeInfo>, gpu: &Arc<dyn Gpu>, from: usize) {
        let Some(to) = self.mark(gpu) else { return };
        let mut gpus = self.gpus.lock();
        if let Some(known) = gpus.iter_mut().find(|known| Arc::ptr_eq(&known.gpu, gpu)) {
            known.spans.push((node.clone(), from, to));
        }
    }

    /// The work of all nodes, in the order in which they enqueued it. Blocks until the GPUs have
    /// completed it. Leaves out a GPU that fails.
    pub fn work(&self) -> Vec<GpuWork> {
        let mut all = Vec::new();
        for known in self.gpus.lock().iter() {
            let Some(Ok(times)) = known.trace.as_ref().map(|trace| trace.times()) else { continue };
            all.extend(known.spans.iter().filter_map(|(node, from, to)| {
                Some(GpuWork {
                    node: node.name.clone(),
                    op: node.op.clone(),
                    device: node.device.text.clone(),
                    start: *times.get(*from)?,
                    end: *times.get(*to)?,
                })
            }));
        }
        all
    }
}
