//! Recorded steps as CUDA graphs: one launch for all kernels, products and copies of a step.

use crate::gpu::CudaGpu;
use crate::{libraries, status};
use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};
use ferroflow_core::{
    Gpu, RecordedStep, RecordedWork, Recording, Replay, Result, StepDownload, take_early,
};
use std::sync::Arc;

/// The work of a step. Its constants are in memory of their own.
pub(crate) struct CudaStep {
    gpu: Arc<CudaGpu>,
    /// What computes the early results, and the rest.
    parts: Vec<Part>,
    early: Vec<u64>,
    generation: u64,
    /// Addresses and sizes of the constants.
    constants: Vec<(u64, usize)>,
}

struct Part {
    work: Vec<RecordedWork>,
    /// `None` if the driver could not make a graph: the pieces of work are enqueued one by one.
    graph: Option<Graph>,
}

/// A graph that is ready to be launched.
struct Graph(CUgraphExec);

// SAFETY: graphs may be used from all threads, one launch at a time. The recorder's turn ensures
// that.
unsafe impl Send for Graph {}
// SAFETY: see above.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is valid. Its owner has waited for the last launch.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

impl CudaStep {
    /// Prepares the recorded work of a step.
    pub fn new(gpu: Arc<CudaGpu>, recording: Recording) -> Result<CudaStep> {
        let Recording { work, early, split, generation } = recording;
        let mut step =
            CudaStep { gpu, parts: Vec::new(), early, generation, constants: Vec::new() };
        let mut first = Vec::with_capacity(work.len());
        for one in work {
            let RecordedWork::Upload { from, to } = one else {
                first.push(one);
                continue;
            };
            let constant = step.gpu.alloc(from.len())?;
            step.constants.push((constant, from.len()));
            step.gpu.upload(&from, constant)?;
            first.push(RecordedWork::Copy { from: constant, to, bytes: from.len() });
        }
        let rest = first.split_off(split);
        for work in [first, rest].into_iter().filter(|work| !work.is_empty()) {
            // Without a graph the work is the same, and only slower to enqueue.
            let graph = libraries::has_graphs().then(|| capture(&step.gpu, &work).ok()).flatten();
            step.parts.push(Part { work, graph });
        }
        Ok(step)
    }

    fn enqueue(&self, feeds: &[(&[u8], u64)], fetches: &mut Vec<StepDownload>) -> Result<()> {
        for (from, to) in feeds {
            self.gpu.upload(from, *to)?;
        }
        let mut first = take_early(fetches, &self.early);
        for part in &self.parts {
            self.enqueue_part(part)?;
            self.download(first.drain(..));
        }
        self.download(fetches.drain(..));
        Ok(())
    }

    fn enqueue_part(&self, part: &Part) -> Result<()> {
        let stream = self.gpu.context().stream();
        self.gpu.count_launches(part.work.len());
        let Some(graph) = &part.graph else {
            return part.work.iter().try_for_each(|work| self.gpu.enqueue_on(work, stream));
        };
        // SAFETY: graph and stream are valid. The memory of the graph's work belongs to the arena,
        // to constants of this step, and to tensors that the caller keeps.
        let status = unsafe { sys::cuGraphLaunch(graph.0, stream) };
        status::driver(status, "launching a graph")
    }

    fn download(&self, fetches: impl Iterator<Item = StepDownload>) {
        for StepDownload { from, bytes, done } in fetches {
            self.gpu.download(from, bytes, done);
        }
    }
}

impl RecordedStep for CudaStep {
    fn replay(&self, feeds: &[(&[u8], u64)], fetches: &mut Vec<StepDownload>) -> Result<Replay> {
        self.gpu.context().make_current()?;
        self.gpu.recorder().replay(self.generation, &mut || self.enqueue(feeds, fetches))
    }
}

impl Drop for CudaStep {
    fn drop(&mut self) {
        if self.parts.iter().any(|part| part.graph.is_some()) {
            // The last launch may be under way. Its error is reported elsewhere.
            let _ = self.gpu.synchronize();
        }
        for (address, bytes) in self.constants.drain(..) {
            self.gpu.free(address, bytes);
        }
    }
}

/// Makes a graph of `work`, which runs in this order.
fn capture(gpu: &CudaGpu, work: &[RecordedWork]) -> Result<Graph> {
    gpu.context().make_current()?;
    let mut stream: CUstream = std::ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: the context is current. The driver sets the stream.
    status::driver(unsafe { sys::cuStreamCreate(&mut stream, flags) }, "a stream")?;
    let captured = capture_on(gpu, work, stream);
    // SAFETY: the stream is valid, and nothing uses it any more.
    let _ = unsafe { sys::cuStreamDestroy_v2(stream) };
    let graph = captured?;
    let mut ready: CUgraphExec = std::ptr::null_mut();
    // SAFETY: the graph is valid. The driver sets `ready`.
    let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut ready, graph, 0) };
    // SAFETY: the graph is valid, and the instance does not need it.
    let _ = unsafe { sys::cuGraphDestroy(graph) };
    status::driver(made, "making a graph")?;
    Ok(Graph(ready))
}

fn capture_on(gpu: &CudaGpu, work: &[RecordedWork], stream: CUstream) -> Result<CUgraph> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is valid and idle.
    status::driver(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) }, "recording a graph")?;
    let enqueued = work.iter().try_for_each(|work| gpu.enqueue_on(work, stream));
    let mut graph: CUgraph = std::ptr::null_mut();
    // SAFETY: the stream records. The driver sets `graph`.
    let ended = unsafe { sys::cuStreamEndCapture(stream, &mut graph) };
    enqueued?;
    status::driver(ended, "recording a graph")?;
    Ok(graph)
}
