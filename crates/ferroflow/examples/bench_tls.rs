//! Steps of a running cluster, for `bench/tls_cost.py`. Credentials come from
//! `FERROFLOW_CREDENTIALS`.
//!
//!     bench_tls step grpcs://HOST:PORT STEPS        median time of a null step, in microseconds
//!     bench_tls transfer grpcs://HOST:PORT STEPS    median time of 16 MB from the ps to the worker

use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{DType, PartialShape, Tensor};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ELEMENTS: i64 = 4_000_000;
const PS: &str = "/job:ps/task:0";
const WORKER: &str = "/job:worker/task:0";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, target, steps] = &words[..] else {
        return Err("usage: bench_tls step|transfer TARGET STEPS".into());
    };
    let steps: usize = steps.parse()?;
    let fetch = match what.as_str() {
        "step" => "null:0",
        "transfer" => "first:0",
        other => return Err(format!("unknown measurement {other}").into()),
    };
    let session = GraphDefSession::connect(target, &graph())?;
    session.run_with(&[], &[], &["v/init", "large/init"], None)?;
    let mut micros = Vec::with_capacity(steps);
    for i in 0..steps + steps / 10 + 2 {
        let started = Instant::now();
        session.run(&[], &[fetch])?;
        if i >= steps / 10 + 2 {
            micros.push(started.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    micros.sort_by(f64::total_cmp);
    println!("{:.1}", micros[micros.len() / 2]);
    session.close()?;
    Ok(())
}

/// A small variable on the worker, and a large one on the ps of which the worker takes one element.
fn graph() -> GraphDef {
    let node = |name: &str, op: &str, inputs: &[&str], device: &str, attrs: Attrs| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        device: device.into(),
        attrs,
        ..NodeDef::default()
    };
    let constant = |value: Tensor| Attrs::new().with("dtype", value.dtype()).with("value", value);
    let float = || Attrs::new().with("T", DType::Float);
    let variable =
        |shape: PartialShape| Attrs::new().with("dtype", DType::Float).with("shape", shape);
    let fill = float().with("index_type", DType::Int64);
    let slice = float().with("Index", DType::Int64);
    let nodes = vec![
        node("v", "VariableV2", &[], WORKER, variable(PartialShape::scalar())),
        node("one", "Const", &[], WORKER, constant(Tensor::scalar(1f32))),
        node("v/init", "Assign", &["v", "one"], WORKER, float()),
        node("null", "AddV2", &["v", "one"], WORKER, float()),
        node("large", "VariableV2", &[], PS, variable(PartialShape::from([ELEMENTS as usize]))),
        node("dims", "Const", &[], PS, constant(Tensor::vector(&[ELEMENTS]))),
        node("two", "Const", &[], PS, constant(Tensor::scalar(2f32))),
        node("ones", "Fill", &["dims", "two"], PS, fill),
        node("large/init", "Assign", &["large", "ones"], PS, float()),
        node("begin", "Const", &[], WORKER, constant(Tensor::vector(&[0i64]))),
        node("size", "Const", &[], WORKER, constant(Tensor::vector(&[1i64]))),
        node("first", "Slice", &["large", "begin", "size"], WORKER, slice),
    ];
    GraphDef { nodes, ..GraphDef::default() }
}
