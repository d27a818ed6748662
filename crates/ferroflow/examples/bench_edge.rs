//! Measures the cost of an edge of 8 bytes from a ps to a worker: steps with and without it, run
//! from Rust over gRPC. Prints JSON lines for `bench/compare.py`.
//!
//!     bench_edge target/release/ferroflow

use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{DType, PartialShape, Tensor};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 5;
const TURNS: usize = 50;
/// Steps of one kind in a row.
const STEPS: usize = 100;
const PS: &str = "/job:ps/task:0";
const WORKER: &str = "/job:worker/task:0";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let binary = std::env::args().nth(1).ok_or("usage: bench_edge PATH-OF-FERROFLOW")?;
    let cluster = format!("ps=127.0.0.1:{};worker=127.0.0.1:{}", free_port()?, free_port()?);
    let mut servers =
        [Server::start(&binary, &cluster, "ps")?, Server::start(&binary, &cluster, "worker")?];
    let [_, target] = [servers[0].ready()?, servers[1].ready()?];
    let session = GraphDefSession::connect(&target, &graph())?;
    session.run_with(&[], &[], &["here/init", "there/init"], None)?;
    let [without, with] = median_micros(&session, ["without:0", "with:0"])?;
    for (metric, value) in
        [("edge", with - without), ("edge_step", with), ("no_edge_step", without)]
    {
        println!(
            "{{\"name\": \"rust\", \"metric\": \"{metric}\", \"value\": {value:.1}, \"unit\": \"us\", \
             \"better\": \"lower\", \"impl\": \"ferroflow\", \"params\": {{}}}}"
        );
    }
    session.close()?;
    Ok(())
}

/// The median time of a step of each kind. The kinds alternate, so that load on the machine affects
/// both.
fn median_micros(session: &GraphDefSession, fetches: [&str; 2]) -> Result<[f64; 2], Failure> {
    let mut micros = [Vec::new(), Vec::new()];
    for turn in 0..WARM_UP + TURNS {
        for (fetch, micros) in fetches.iter().zip(&mut micros) {
            for _ in 0..STEPS {
                let started = Instant::now();
                session.run(&[], &[fetch])?;
                if turn >= WARM_UP {
                    micros.push(started.elapsed().as_nanos() as f64 / 1e3);
                }
            }
        }
    }
    Ok(micros.map(|mut micros| {
        micros.sort_by(f64::total_cmp);
        micros[micros.len() / 2]
    }))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A task in a child process, which ends with this one.
struct Server(Child);

impl Server {
    fn start(binary: &str, cluster: &str, job: &str) -> std::io::Result<Server> {
        Command::new(binary)
            .args(["server", "--cluster", cluster, "--job", job, "--task", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .map(Server)
    }

    /// Waits until it serves; returns its address.
    fn ready(&mut self) -> Result<String, Failure> {
        let stdout = self.0.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(line.trim().strip_prefix("ready ").ok_or("the server did not start")?.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A variable on each task, and an addition of each on the worker.
fn graph() -> GraphDef {
    let node = |name: &str, op: &str, inputs: &[&str], device: &str, attrs: Attrs| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        device: device.into(),
        attrs,
        ..NodeDef::default()
    };
    let double = || Attrs::new().with("T", DType::Double);
    let one = || Attrs::new().with("dtype", DType::Double).with("value", Tensor::scalar(1f64));
    let variable =
        || Attrs::new().with("dtype", DType::Double).with("shape", PartialShape::scalar());
    let nodes = vec![
        node("here", "VariableV2", &[], WORKER, variable()),
        node("there", "VariableV2", &[], PS, variable()),
        node("here/one", "Const", &[], WORKER, one()),
        node("there/one", "Const", &[], PS, one()),
        node("here/init", "Assign", &["here", "here/one"], WORKER, double()),
        node("there/init", "Assign", &["there", "there/one"], PS, double()),
        node("without", "AddV2", &["here", "here/one"], WORKER, double()),
        node("with", "AddV2", &["there", "here/one"], WORKER, double()),
    ];
    GraphDef { nodes, ..GraphDef::default() }
}
