//! `ferroflow inspect`: what is in a checkpoint, an event file, a graph or a SavedModel, and how two
//! checkpoints differ.

use ferroflow::train::{
    EventKind, SavedGraph, TensorInfo, graph_of_meta_graph, latest_checkpoint, read_events,
    saved_graphs,
};
use ferroflow::{CheckpointFile, Code, DType, Error, GraphDef, Result, Tensor, decode_graph};
use std::collections::BTreeMap;
use std::path::Path;

/// Show what is in a checkpoint, an event file, a graph or a SavedModel; or how two checkpoints differ
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ferroflow inspect ferroflow-out/linear\n  ferroflow inspect model.ckpt-100 model.ckpt-200"
)]
pub struct Args {
    /// A checkpoint (its prefix, one of its files, or a directory of them), an event file, a .meta or
    /// .pb file, or the directory of a SavedModel
    file: String,
    /// A second checkpoint, to compare with
    other: Option<String>,
    /// Report in JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<()> {
    if let Some(other) = &args.other {
        return diff(&checkpoint(&args.file)?, &checkpoint(other)?, args.json);
    }
    let path = Path::new(&args.file);
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if name.contains("tfevents") {
        return events(path, args.json);
    }
    if name == "saved_model.pb" {
        return saved_model(path.parent().unwrap_or(Path::new("")), args.json);
    }
    if path.join("saved_model.pb").exists() {
        return saved_model(path, args.json);
    }
    if name.ends_with(".pb") || name.ends_with(".meta") {
        return graph(path, args.json);
    }
    if name.ends_with(".pbtxt") {
        let text = format!(
            "{name}: graphs that are written as text are not read; tf.io.write_graph(…, as_text=False) writes .pb"
        );
        return Err(Error::new(Code::Unimplemented, text));
    }
    contents(&checkpoint(&args.file)?, args.json)
}

/// A checkpoint, however it is named.
fn checkpoint(name: &str) -> Result<CheckpointFile> {
    let mut prefix = name.to_string();
    if let Some(at) = name.find(".index").or_else(|| name.find(".data-")) {
        prefix.truncate(at);
    }
    if Path::new(name).is_dir()
        && let Some(latest) = latest_checkpoint(name)
    {
        prefix = latest;
    }
    if !CheckpointFile::is_there(&prefix) {
        let text = match Path::new(name).exists() {
            true => format!(
                "{name}: neither a checkpoint nor a file this command knows (it knows checkpoints, \
                 event files, .pb and .meta)"
            ),
            false => format!("{name}: there is no such file, nor a checkpoint of that name"),
        };
        return Err(Error::new(Code::NotFound, text));
    }
    CheckpointFile::open(&prefix)
}

fn contents(file: &CheckpointFile, json: bool) -> Result<()> {
    let (mut elements, mut bytes) = (0usize, 0usize);
    for name in file.names() {
        let (dtype, shape) = file.find(&name)?;
        elements += shape.elements();
        bytes += shape.elements() * dtype.size().unwrap_or(0);
        let stats = numbers(&file.read(&name)?).map(|v| Stats::of(&v));
        if json {
            let mut line = serde_json::json!({
                "name": name,
                "dtype": dtype.name(),
                "shape": shape.to_i64s(),
            });
            if let Some(s) = stats {
                line["min"] = s.min.into();
                line["max"] = s.max.into();
                line["mean"] = s.mean.into();
            }
            println!("{line}");
        } else {
            let stats = stats.map(|s| s.to_string()).unwrap_or_default();
            println!("{name:<40} {:<8} {:<14} {stats}", dtype.name(), shape.to_string());
        }
    }
    if !json {
        println!("{} tensors, {elements} elements, {bytes} bytes", file.names().len());
    }
    Ok(())
}

fn diff(a: &CheckpointFile, b: &CheckpointFile, json: bool) -> Result<()> {
    let (left, right) = (a.names(), b.names());
    let mut all: Vec<&String> = left.iter().chain(&right).collect();
    all.sort_unstable();
    all.dedup();
    let mut same = 0;
    for name in all {
        let difference = match (left.contains(name), right.contains(name)) {
            (true, false) => "only in the first".to_string(),
            (false, true) => "only in the second".to_string(),
            _ => {
                let (x, y) = (a.read(name)?, b.read(name)?);
                if x == y {
                    same += 1;
                    continue;
                }
                if (x.dtype(), x.shape()) != (y.dtype(), y.shape()) {
                    format!("{}{} and {}{}", x.dtype(), x.shape(), y.dtype(), y.shape())
                } else {
                    largest_difference(&x, &y)
                }
            }
        };
        match json {
            true => println!("{}", serde_json::json!({"name": name, "difference": difference})),
            false => println!("{name:<40} {difference}"),
        }
    }
    if !json {
        println!("{same} tensors are the same");
    }
    Ok(())
}

fn largest_difference(x: &Tensor, y: &Tensor) -> String {
    let (Some(x), Some(y)) = (numbers(x), numbers(y)) else { return "different".into() };
    let differences: Vec<f64> = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).collect();
    let count = differences.iter().filter(|d| **d != 0.0).count();
    let largest = differences.iter().fold(0.0f64, |m, d| m.max(*d));
    format!("{count} of {} elements differ, by up to {largest:.6}", differences.len())
}

fn events(path: &Path, json: bool) -> Result<()> {
    let all = read_events(path)?;
    let mut scalars: BTreeMap<String, Vec<(i64, f32)>> = BTreeMap::new();
    let mut others: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    let mut notes = Vec::new();
    for event in &all {
        match &event.what {
            EventKind::Summary(values) => {
                for v in values {
                    match v.scalar {
                        Some(x) => scalars.entry(v.tag.clone()).or_default().push((event.step, x)),
                        None => *others.entry((v.tag.clone(), v.kind)).or_default() += 1,
                    }
                }
            }
            EventKind::Graph(bytes) => {
                let nodes = decode_graph(bytes.clone().into()).map_or(0, |g| g.nodes.len());
                notes.push(format!("a graph of {nodes} nodes"));
            }
            EventKind::Session(text) => notes.push(format!("step {}: {text}", event.step)),
            EventKind::Version(_) | EventKind::Other => {}
        }
    }
    if json {
        for (tag, points) in &scalars {
            println!("{}", serde_json::json!({"tag": tag, "points": points}));
        }
        return Ok(());
    }
    println!("{} events", all.len());
    for (tag, points) in &scalars {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        println!(
            "{tag:<32} {:>6} points   {:.5} at step {} … {:.5} at step {}",
            points.len(),
            first.1,
            first.0,
            last.1,
            last.0
        );
    }
    for ((tag, kind), count) in &others {
        println!("{tag:<32} {count:>6} of kind {kind}");
    }
    notes.iter().for_each(|note| println!("{note}"));
    Ok(())
}

/// The graph in a .pb, .meta or saved_model.pb file.
pub fn read_graph(path: &Path) -> Result<GraphDef> {
    let failed = |e: std::io::Error| Error::new(Code::NotFound, format!("{}: {e}", path.display()));
    let bytes = std::fs::read(path).map_err(failed)?;
    match graph_of_meta_graph(&bytes) {
        Ok(def) if !def.nodes.is_empty() => Ok(def),
        _ => decode_graph(bytes.into()),
    }
}

/// The graphs of a SavedModel: how each can be called, and what it is made of.
fn saved_model(dir: &Path, json: bool) -> Result<()> {
    for of in &saved_graphs(dir)? {
        match json {
            true => println!("{}", signatures_json(of)),
            false => print_signatures(of),
        }
    }
    graph(&dir.join("saved_model.pb"), json)
}

fn print_signatures(graph: &SavedGraph) {
    println!("graph for: {}", graph.tags.join(", "));
    let print = |direction: &str, tensors: &BTreeMap<String, TensorInfo>| {
        for (name, t) in tensors {
            println!(
                "    {direction:<3} {name:<24} {:<8} {:<14} {}",
                t.dtype.name(),
                t.shape,
                t.name
            );
        }
    };
    for (name, signature) in &graph.signatures {
        println!("  {name} ({})", signature.method);
        print("in", &signature.inputs);
        print("out", &signature.outputs);
    }
    for name in &graph.composite {
        println!("  {name} (takes or gives sparse or composite tensors)");
    }
    for file in &graph.assets {
        println!("  asset {file}");
    }
}

fn signatures_json(graph: &SavedGraph) -> serde_json::Value {
    let tensors = |of: &BTreeMap<String, TensorInfo>| -> BTreeMap<String, serde_json::Value> {
        let json = |t: &TensorInfo| serde_json::json!({"dtype": t.dtype.name(), "shape": t.shape.to_string(), "tensor": t.name});
        of.iter().map(|(name, t)| (name.clone(), json(t))).collect()
    };
    let signatures: BTreeMap<&String, serde_json::Value> = graph
        .signatures
        .iter()
        .map(|(name, s)| {
            let (inputs, outputs) = (tensors(&s.inputs), tensors(&s.outputs));
            (name, serde_json::json!({"method": s.method, "inputs": inputs, "outputs": outputs}))
        })
        .collect();
    serde_json::json!({
        "tags": graph.tags,
        "signatures": signatures,
        "composite_signatures": graph.composite,
        "assets": graph.assets,
    })
}

fn graph(path: &Path, json: bool) -> Result<()> {
    let def = read_graph(path)?;
    let (mut ops, mut devices) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    for node in &def.nodes {
        *ops.entry(&node.op).or_default() += 1;
        *devices.entry(&node.device).or_default() += 1;
    }
    if json {
        let line = serde_json::json!({
            "nodes": def.nodes.len(),
            "functions": def.functions.len(),
            "ops": ops,
            "devices": devices,
        });
        println!("{line}");
        return Ok(());
    }
    println!("{} nodes, {} functions", def.nodes.len(), def.functions.len());
    let mut by_count: Vec<_> = ops.into_iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    by_count.iter().for_each(|(op, count)| println!("{count:>6}  {op}"));
    for (device, count) in devices.iter().filter(|(device, _)| !device.is_empty()) {
        println!("{count:>6}  on {device}");
    }
    Ok(())
}

/// The elements of a tensor of numbers.
fn numbers(t: &Tensor) -> Option<Vec<f64>> {
    match t.dtype() {
        DType::Float => Some(t.as_slice::<f32>().ok()?.iter().map(|&x| x.into()).collect()),
        DType::Double => Some(t.as_slice::<f64>().ok()?.to_vec()),
        _ => Some(t.to_indices().ok()?.iter().map(|&x| x as f64).collect()),
    }
}

struct Stats {
    min: f64,
    max: f64,
    mean: f64,
    only: Option<f64>,
}

impl Stats {
    fn of(values: &[f64]) -> Stats {
        let (min, max) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let only = if let [one] = values { Some(*one) } else { None };
        Stats { min, max, mean, only }
    }
}

impl std::fmt::Display for Stats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.only {
            Some(value) => write!(f, "{value:.6}"),
            None => write!(f, "min {:.4}  max {:.4}  mean {:.4}", self.min, self.max, self.mean),
        }
    }
}
