//! Measures how fast the devices of a task are, for placement by cost. Runs a matrix product and a
//! negation on each device, as a step would.

use crate::session::{RunRequest, SessionOptions, TaskSession};
use crate::task::Task;
use ferroflow_core::{DType, DeviceInfo, DeviceSpeed, Result, Tensor, memory_limit};
use ferroflow_graph::{Attrs, GraphDef, NodeDef};
use std::sync::Arc;
use std::time::Instant;

/// The seconds that a measured node should take at least. Inputs grow until it does.
const LONG_ENOUGH: f64 = 4e-3;

/// Rows of square matrices.
const MATRICES: [usize; 5] = [64, 128, 256, 512, 1024];

/// Elements of vectors; the first is larger than most caches.
const VECTORS: [usize; 2] = [1 << 20, 1 << 22];

/// The number of repetitions of a step. The fastest one counts.
const RUNS: usize = 3;

/// The number of nodes in the longer one of two steps. Their difference leaves out the cost of a
/// step itself.
const NODES: usize = 4;

impl Task {
    /// Measures the devices of this task, unless that has been done. Takes about ten milliseconds
    /// for each, and blocks. A device that cannot run the products has no known speed.
    pub fn measure_devices(self: &Arc<Task>) {
        for device in &self.devices {
            device.speed.get_or_init(|| {
                let flops = measure(self, device, "MatMul", 2, &MATRICES);
                let bandwidth = measure(self, device, "Neg", 1, &VECTORS);
                let speed = DeviceSpeed {
                    flops: flops.map_or(0.0, |(n, seconds)| 2.0 * (n as f64).powi(3) / seconds),
                    bandwidth: bandwidth.map_or(0.0, |(n, seconds)| 8.0 * n as f64 / seconds),
                    memory: self.memory_of(device),
                };
                let (name, gflops) = (&device.text, speed.flops * 1e-9);
                let gigabytes = speed.bandwidth * 1e-9;
                tracing::info!("measured {name}: {gflops:.1} GFLOP/s, {gigabytes:.1} GB/s");
                speed
            });
        }
    }

    /// The memory of a device. CPUs share the memory of the process.
    fn memory_of(&self, device: &DeviceInfo) -> u64 {
        if device.kind() != "CPU" {
            return u64::try_from(device.memory_limit).unwrap_or(0);
        }
        let cpus = self.devices.iter().filter(|d| d.kind() == "CPU").count();
        (memory_limit() / cpus.max(1)) as u64
    }
}

/// The largest input that was tried, and the seconds of one node. `None` if the op does not run on
/// this device.
fn measure(
    task: &Arc<Task>,
    device: &DeviceInfo,
    op: &str,
    rank: usize,
    sizes: &[usize],
) -> Option<(usize, f64)> {
    let mut last = None;
    for &n in sizes {
        let dims = vec![n; rank];
        let x = Tensor::from_slice(&dims[..], &vec![0.5f32; dims.iter().product()]).ok()?;
        let [one, many] = [1, NODES].map(|nodes| fastest(task, device, op, nodes, &x));
        let (one, many) = (one.ok()?, many.ok()?);
        let difference = (many - one) / (NODES - 1) as f64;
        // Other load can make the difference useless.
        let seconds = if difference > 0.0 { difference } else { many / NODES as f64 };
        last = Some((n, seconds));
        if seconds >= LONG_ENOUGH {
            break;
        }
    }
    last
}

/// The seconds of the fastest step with this many nodes in a chain.
fn fastest(
    task: &Arc<Task>,
    device: &DeviceInfo,
    op: &str,
    nodes: usize,
    x: &Tensor,
) -> Result<f64> {
    let node = |name: String, op: &str, inputs: Vec<String>, dtype: &str| NodeDef {
        name,
        op: op.into(),
        inputs,
        device: device.text.clone(),
        attrs: Attrs::new().with(dtype, DType::Float),
        ..NodeDef::default()
    };
    let mut def = GraphDef::default();
    def.nodes.push(node("x".into(), "Placeholder", Vec::new(), "dtype"));
    for i in 0..nodes {
        let mut inputs = vec!["x".to_string(); x.shape().rank()];
        if i > 0 {
            inputs.push(format!("^y{}", i - 1));
        }
        def.nodes.push(node(format!("y{i}"), op, inputs, "T"));
    }
    let options =
        SessionOptions { isolate_state: true, disable_optimizer: true, ..Default::default() };
    let session = TaskSession::new(task.clone(), &def, options)?;
    let mut best = f64::INFINITY;
    for _ in 0..=RUNS {
        let request = RunRequest {
            feeds: vec![("x".into(), x.clone())],
            // The fetched value has been computed, on a GPU too.
            fetches: vec![format!("y{}", nodes - 1)],
            ..RunRequest::default()
        };
        let begins = Instant::now();
        session.run_blocking(request)?;
        best = best.min(begins.elapsed().as_secs_f64());
    }
    Ok(best)
}
