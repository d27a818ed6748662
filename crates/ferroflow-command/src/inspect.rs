//! `ferroflow inspect`: shows the contents of a checkpoint, event file, graph or SavedModel, and
//! compares two checkpoints.

use crate::say::say;
use ferroflow::checkpoint::{
    CheckpointFile, SavedGraph, TensorInfo, latest_checkpoint, saved_graphs,
};
use ferroflow::graph::{GraphDef, decode_graph, graph_of_meta_graph};
use ferroflow::train::{EventKind, read_events};
use ferroflow::{Code, DType, Error, Result, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

/// Show the contents of a checkpoint, event file, graph or SavedModel, or compare two checkpoints
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ferroflow inspect ferroflow-out/linear\n  ferroflow inspect model.ckpt-100 model.ckpt-200"
)]
pub struct Args {
    /// A checkpoint (its prefix, one of its files, or a directory of them), an event file, a .meta
    /// or .pb file, or the directory of a SavedModel
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

/// Finds a checkpoint by its prefix, one of its files, or its directory.
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
        elements = elements.saturating_add(shape.elements());
        bytes = bytes.saturating_add(shape.elements().saturating_mul(dtype.size().unwrap_or(0)));
        let stats = numbers(&file.read(&name)?).and_then(|v| Stats::of(&v));
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
            say!("{line}");
        } else {
            let stats = stats.map(|s| s.to_string()).unwrap_or_default();
            say!("{name:<40} {:<8} {:<14} {stats}", dtype.name(), shape.to_string());
        }
    }
    if !json {
        say!("{} tensors, {elements} elements, {bytes} bytes", file.names().len());
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
            _ => match difference(&a.read(name)?, &b.read(name)?) {
                Some(difference) => difference,
                None => {
                    same += 1;
                    continue;
                }
            },
        };
        match json {
            true => say!("{}", serde_json::json!({"name": name, "difference": difference})),
            false => say!("{name:<40} {difference}"),
        }
    }
    if !json {
        say!("{same} tensors are the same");
    }
    Ok(())
}

/// Describes how two tensors differ; `None` if all elements are equal or NaN in both.
fn difference(x: &Tensor, y: &Tensor) -> Option<String> {
    if x == y {
        return None;
    }
    if (x.dtype(), x.shape()) != (y.dtype(), y.shape()) {
        return Some(format!("{}{} and {}{}", x.dtype(), x.shape(), y.dtype(), y.shape()));
    }
    let (Some(x), Some(y)) = (numbers(x), numbers(y)) else { return Some("different".into()) };
    let is_same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    let differ: Vec<(f64, f64)> =
        x.iter().copied().zip(y).filter(|&(a, b)| !is_same(a, b)).collect();
    if differ.is_empty() {
        return None;
    }
    let mut text = format!("{} of {} elements differ", differ.len(), x.len());
    let finite = differ.iter().map(|(a, b)| (a - b).abs()).filter(|d| d.is_finite());
    match finite.reduce(f64::max) {
        Some(largest) => text += &format!(", by up to {}", Number(largest)),
        None => text += ", where one of the two is not a finite number",
    }
    Some(text)
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
            say!("{}", serde_json::json!({"tag": tag, "points": points}));
        }
        return Ok(());
    }
    say!("{} events", all.len());
    for (tag, points) in &scalars {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        say!(
            "{tag:<32} {:>6} points   {:.5} at step {} … {:.5} at step {}",
            points.len(),
            first.1,
            first.0,
            last.1,
            last.0
        );
    }
    for ((tag, kind), count) in &others {
        say!("{tag:<32} {count:>6} of kind {kind}");
    }
    notes.iter().for_each(|note| say!("{note}"));
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

/// The graphs of a SavedModel with their signatures and ops.
fn saved_model(dir: &Path, json: bool) -> Result<()> {
    for of in &saved_graphs(dir)? {
        match json {
            true => say!("{}", signatures_json(of)),
            false => print_signatures(of),
        }
    }
    graph(&dir.join("saved_model.pb"), json)
}

fn print_signatures(graph: &SavedGraph) {
    say!("graph for: {}", graph.tags.join(", "));
    let print = |direction: &str, tensors: &BTreeMap<String, TensorInfo>| {
        for (name, t) in tensors {
            say!("    {direction:<3} {name:<24} {:<8} {:<14} {}", t.dtype.name(), t.shape, t.name);
        }
    };
    for (name, signature) in &graph.signatures {
        say!("  {name} ({})", signature.method);
        print("in", &signature.inputs);
        print("out", &signature.outputs);
    }
    for name in &graph.composite {
        say!("  {name} (takes or gives sparse or composite tensors)");
    }
    for file in &graph.assets {
        say!("  asset {file}");
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
        say!("{line}");
        return Ok(());
    }
    say!("{} nodes, {} functions", def.nodes.len(), def.functions.len());
    let mut by_count: Vec<_> = ops.into_iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    by_count.iter().for_each(|(op, count)| say!("{count:>6}  {op}"));
    for (device, count) in devices.iter().filter(|(device, _)| !device.is_empty()) {
        say!("{count:>6}  on {device}");
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
    /// `None` for a tensor without elements.
    fn of(values: &[f64]) -> Option<Stats> {
        if values.is_empty() {
            return None;
        }
        let (min, max) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let only = if let [one] = values { Some(*one) } else { None };
        Some(Stats { min, max, mean, only })
    }
}

impl std::fmt::Display for Stats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.only {
            Some(value) => Number(value).fmt(f),
            None => {
                let [min, max, mean] = [self.min, self.max, self.mean].map(Number);
                write!(f, "min {min}  max {max}  mean {mean}")
            }
        }
    }
}

/// Formats a number: integers without fraction, very small and very large ones in scientific
/// notation.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = self.0.abs();
        if self.0.fract() == 0.0 && size < 1e15 {
            write!(f, "{:.0}", self.0)
        } else if size.is_finite() && !(1e-4..1e9).contains(&size) {
            write!(f, "{:.4e}", self.0)
        } else {
            write!(f, "{:.6}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let text = |x: f64| Number(x).to_string();
        assert_eq!([0.0, 200.0, -3.0].map(text), ["0", "200", "-3"]);
        assert_eq!(
            [1.44608, 2.5e-7, 3.25e12].map(text),
            ["1.446080", "2.5000e-7", "3250000000000"]
        );
        assert_eq!([f64::NAN, f64::INFINITY].map(text), ["NaN", "inf"]);
    }

    #[test]
    fn nan_in_both_tensors_is_no_difference() {
        let t = |xs: &[f32]| Tensor::vector(xs);
        assert_eq!(difference(&t(&[1.0, f32::NAN]), &t(&[1.0, f32::NAN])), None);
        let text = difference(&t(&[1.0, f32::NAN]), &t(&[1.5, 2.0])).unwrap();
        assert_eq!(text, "2 of 2 elements differ, by up to 0.500000");
        let text = difference(&t(&[f32::INFINITY]), &t(&[2.0])).unwrap();
        assert!(text.contains("not a finite number"), "{text}");
        assert!(Stats::of(&[]).is_none());
    }
}
