//! Measures what fusion saves: steps of element-wise chains and of a layer, with passes and
//! without. Prints one JSON line for each.
//!
//!     cargo run --release -p ferroflow-runtime --example bench_fusion

use ferroflow_core::{DType, Result, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunRequest, SessionOptions, Task, TaskSession};
use ferroflow_testing::graph;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ops with two arguments take `w` as the second.
const CHEAP: [&str; 8] = ["Mul", "AddV2", "Neg", "Maximum", "Sub", "Abs", "Mul", "Relu"];
const DEAR: [&str; 8] = ["Mul", "Exp", "AddV2", "Tanh", "Mul", "Sigmoid", "Sub", "Sqrt"];

fn main() -> Result<()> {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    let task = Task::local(Arc::new(catalog));
    for (name, ops) in [("cheap", CHEAP), ("dear", DEAR)] {
        let g = chain(&ops);
        for bytes in [4, 4 << 10, 1 << 20, 64 << 20] {
            let n = bytes / 4;
            let feeds = [("x", ramp(&[n])?), ("w", ramp(&[n])?)];
            compare(&task, &g, &format!("chain of 8, {name}, {bytes} bytes"), &feeds)?;
        }
        let feeds = [("x", ramp(&[1 << 18])?), ("w", Tensor::scalar(0.7f32))];
        compare(&task, &g, &format!("chain of 8, {name}, 1048576 bytes and a scalar"), &feeds)?;
        let feeds = [("x", ramp(&[1024, 256])?), ("w", ramp(&[256])?)];
        compare(&task, &g, &format!("chain of 8, {name}, 1048576 bytes and a row"), &feeds)?;
    }
    for (m, k, n) in [(32, 256, 256), (1024, 64, 1024), (512, 512, 512)] {
        let feeds = [("a", ramp(&[m, k])?), ("b", ramp(&[k, n])?), ("bias", ramp(&[n])?)];
        compare(&task, &layer(), &format!("relu(a b + bias), {m} x {k} x {n}"), &feeds)?;
    }
    Ok(())
}

fn chain(ops: &[&str]) -> GraphDef {
    let mut g = graph().dtype(DType::Float).placeholder("x").placeholder("w");
    let mut last = "x".to_string();
    for (i, op) in ops.iter().enumerate() {
        let takes_two = matches!(*op, "Mul" | "AddV2" | "Sub" | "Maximum");
        let inputs = if takes_two { vec![last.as_str(), "w"] } else { vec![last.as_str()] };
        let name = if i + 1 == ops.len() { "y".to_string() } else { format!("n{i}") };
        g = g.op(&name, op, &inputs).t();
        last = name;
    }
    g.build()
}

fn layer() -> GraphDef {
    graph()
        .dtype(DType::Float)
        .placeholder("a")
        .placeholder("b")
        .placeholder("bias")
        .op("product", "MatMul", &["a", "b"])
        .t()
        .op("sum", "BiasAdd", &["product", "bias"])
        .t()
        .op("y", "Relu", &["sum"])
        .t()
        .build()
}

fn ramp(dims: &[usize]) -> Result<Tensor> {
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.001 + 0.1).collect();
    Tensor::from_slice(dims, &values)
}

fn compare(task: &Arc<Task>, g: &GraphDef, what: &str, feeds: &[(&str, Tensor)]) -> Result<()> {
    let session = |disable_optimizer| {
        let options = SessionOptions { disable_optimizer, ..SessionOptions::default() };
        TaskSession::new(task.clone(), g, options)
    };
    let request = RunRequest {
        feeds: feeds.iter().map(|(name, t)| (name.to_string(), t.clone())).collect(),
        fetches: vec!["y".into()],
        ..RunRequest::default()
    };
    let (fused, plain) = (session(false)?, session(true)?);
    // Alternates, so that both see the same load; takes the median of each.
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while with.len() < 5 || (begun.elapsed() < Duration::from_secs(1) && with.len() < 2000) {
        with.push(time(&fused, &request)?);
        without.push(time(&plain, &request)?);
    }
    let (with, without) = (Distribute::of(with), Distribute::of(without));
    println!(
        "{{\"bench\": \"fusion\", \"what\": \"{what}\", \"fused_us\": {}, \"plain_us\": {}, \
         \"speedup\": {:.2}}}",
        with,
        without,
        without.median / with.median
    );
    Ok(())
}

fn time(session: &TaskSession, request: &RunRequest) -> Result<f64> {
    let begun = Instant::now();
    session.run_blocking(request.clone())?;
    Ok(begun.elapsed().as_secs_f64() * 1e6)
}

/// Quartiles.
struct Distribute {
    low: f64,
    median: f64,
    high: f64,
}

impl Distribute {
    fn of(mut times: Vec<f64>) -> Distribute {
        times.sort_by(f64::total_cmp);
        let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
        Distribute { low: at(1), median: at(2), high: at(3) }
    }
}

impl std::fmt::Display for Distribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{:.1}, {:.1}, {:.1}]", self.low, self.median, self.high)
    }
}
