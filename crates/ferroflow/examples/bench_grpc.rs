//! The null step from Rust over gRPC, as a JSON line for `bench/compare.py`.
//!
//!     bench_grpc target/release/ferroflow

use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{DType, PartialShape, Tensor};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 500;
const STEPS: usize = 5000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let binary = std::env::args().nth(1).ok_or("usage: bench_grpc PATH-OF-FERROFLOW")?;
    let mut server = ServerProcess::start(&binary)?;
    let session = GraphDefSession::connect(&server.ready()?, &graph())?;
    session.run_with(&[], &[], &["v/init"], None)?;
    let mut micros = Vec::with_capacity(STEPS);
    for i in 0..WARM_UP + STEPS {
        let started = Instant::now();
        session.run(&[], &["null:0"])?;
        if i >= WARM_UP {
            micros.push(started.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    micros.sort_by(f64::total_cmp);
    let (median, p99) = (micros[STEPS / 2], micros[STEPS * 99 / 100]);
    println!(
        "{{\"name\": \"rust\", \"metric\": \"null_step\", \"value\": {median:.1}, \"unit\": \"us\", \
         \"better\": \"lower\", \"impl\": \"ferroflow\", \"params\": {{\"via\": \"grpc\"}}, \
         \"extra\": {{\"p99\": {p99:.1}}}}}"
    );
    session.close()?;
    Ok(())
}

/// A server in a child process, which ends with this one.
struct ServerProcess(Child);

impl ServerProcess {
    fn start(binary: &str) -> std::io::Result<ServerProcess> {
        Command::new(binary)
            .args(["server", "--cluster", "worker=127.0.0.1:0", "--job", "worker", "--task", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .map(ServerProcess)
    }

    /// Waits until it serves; returns its address.
    fn ready(&mut self) -> Result<String, Box<dyn std::error::Error>> {
        let stdout = self.0.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(line.trim().strip_prefix("ready ").ok_or("the server did not start")?.to_string())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A variable and an addition: the graph that `bench/null_step.py` runs.
fn graph() -> GraphDef {
    let node = |name: &str, op: &str, inputs: &[&str], attrs: Attrs| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        attrs,
        ..NodeDef::default()
    };
    let float = || Attrs::new().with("T", DType::Float);
    let one = Attrs::new().with("dtype", DType::Float).with("value", Tensor::scalar(1.0f32));
    let shape = PartialShape::scalar();
    let nodes = vec![
        node("v", "VariableV2", &[], Attrs::new().with("dtype", DType::Float).with("shape", shape)),
        node("one", "Const", &[], one),
        node("v/init", "Assign", &["v", "one"], float()),
        node("null", "AddV2", &["v", "one"], float()),
    ];
    GraphDef { nodes, ..GraphDef::default() }
}
