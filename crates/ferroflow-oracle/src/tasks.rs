//! The time of a value between two tasks that use one GPU: a parameter server in a process of its
//! own, and a worker in this one.

use ferroflow::cluster::{BackgroundServer, ClusterSpec, ServerOptions, loopback_spec};
use ferroflow::prelude::*;
use ferroflow::train::init;
use ferroflow_core::{Gpu, err};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// Steps that are measured.
const STEPS: u32 = 20;
const PS: &str = "/job:ps/task:0/device:GPU:0";
const WORKER: &str = "/job:worker/task:0/device:GPU:0";

/// Serves the parameter server of `cluster` until standard input is closed.
pub fn serve(gpu: &Arc<dyn Gpu>, cluster: &str) -> Result<()> {
    let _server = start(gpu, ClusterSpec::parse(cluster)?, "ps")?;
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Milliseconds of a step that moves `megabytes` from the ps to the worker, within the memory of
/// the GPU and through host memory, and of a step that moves one element. Also says whether the
/// values are right.
pub fn measure(gpu: &Arc<dyn Gpu>, megabytes: usize) -> Result<Json> {
    let cluster = loopback_spec(&[("ps", 1), ("worker", 1)])?;
    let addresses: Vec<String> =
        cluster.tasks().map(|(job, _, address)| format!("{job}={address}")).collect();
    let _ps = Ps::start(&addresses.join(";"))?;
    let worker = start(gpu, cluster, "worker")?;
    let bytes = megabytes * 1_000_000;
    let (near, least_ms, near_is_right) = moved(&worker, bytes, DType::Float)?;
    // Booleans travel through host memory.
    let (far, _, far_is_right) = moved(&worker, bytes, DType::Bool)?;
    Ok(json!({"kind": "tasks", "mb": megabytes, "host_ms": far, "device_ms": near,
        "one_element_ms": least_ms, "ratio": far / near,
        "right": near_is_right && far_is_right}))
}

fn start(gpu: &Arc<dyn Gpu>, cluster: ClusterSpec, job: &str) -> Result<BackgroundServer> {
    let gpus = vec![gpu.clone()];
    BackgroundServer::start(ServerOptions { gpus, ..ServerOptions::new(cluster, job, 0) })
}

/// Milliseconds of a step that reads a variable of the ps on the worker, and of one that reads an
/// element, and whether the last element is right.
fn moved(worker: &BackgroundServer, bytes: usize, dtype: DType) -> Result<(f64, f64, bool)> {
    let g = Graph::new();
    let on_worker = |n: usize| {
        let v = g.device(PS, || g.variable(&format!("v{n}"), init::ones([n])).cast(dtype));
        // The value that crosses is made in every step.
        let made = g.device(PS, || v.reshape([-1, 1]));
        g.device(WORKER, || made.reshape([-1]).slice(&[n as i32 - 1], &[1]).cast(DType::Float))
    };
    let n = bytes / dtype.size().unwrap_or(1);
    let (large, small) = (on_worker(n), on_worker(1));
    let init = g.global_initializer();
    let session = worker.session(&g, &[])?;
    session.run(&init)?;
    let time = |of: &Output| -> Result<(f64, bool)> {
        let mut is_right = true;
        for _ in 0..5 {
            session.run(of)?;
        }
        let began = Instant::now();
        for _ in 0..STEPS {
            is_right &= session.run(of)?.as_slice::<f32>()? == [1.0];
        }
        Ok((began.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS), is_right))
    };
    let ((large, is_right), (small, _)) = (time(&large)?, time(&small)?);
    Ok((large, small, is_right))
}

/// The parameter server, which ends with its standard input.
struct Ps(Child);

impl Ps {
    fn start(cluster: &str) -> Result<Ps> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["gpu-tasks", "--serve", cluster])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take();
        let ps = Ps(child);
        let out = out.ok_or_else(|| err!(Internal, "the ps has no output"))?;
        for line in BufReader::new(out).lines() {
            if line? == "ready" {
                return Ok(ps);
            }
        }
        Err(err!(Unavailable, "the ps did not start"))
    }
}

impl Drop for Ps {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
