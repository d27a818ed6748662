//! `ferroflow place`: shows the placement of a step's nodes and predicts its time.

use crate::inspect::read_graph;
use crate::say::say;
use crate::units;
use ferroflow::cluster::ClusterSpec;
use ferroflow::placement::{
    CostModel, PlacedStep, Placement, PlacementOption, PlacementReason, PlacementRequest,
    PredictedNode, place_step,
};
use ferroflow::{Code, Error, PartialShape, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Show how a graph would be placed on a cluster, and predict the time of a step
///
/// Nodes with a device keep it. With --policy cost, the other nodes go where a simulated step ends
/// first. The simulation uses estimated costs, or the measured costs of a traced step. With
/// --policy first, as in TensorFlow, they go to the first device that fits.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    ferroflow place graph.pb --cluster 'worker=a:2222,b:2222' --feed x=128x784 --fetch loss --link 10Gb/s")]
pub struct Args {
    /// A .pb of a GraphDef, a .meta or a saved_model.pb file
    graph: String,
    /// All tasks: JSON {"ps":["h:p"],"worker":["h:p"]}, or ps=h:p;worker=h:p,h:p, or @FILE
    #[arg(long, value_name = "SPEC")]
    cluster: String,
    /// The task whose master runs the step, such as worker:0 [default: the first worker, chief or
    /// task]
    #[arg(long, value_name = "JOB:TASK")]
    master: Option<String>,
    /// CPU devices of each task
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: u32,
    /// A tensor that is fed, and its shape: x or x=128x784
    #[arg(long, value_name = "TENSOR[=SHAPE]")]
    feed: Vec<String>,
    /// A tensor that is fetched
    #[arg(long, value_name = "TENSOR")]
    fetch: Vec<String>,
    /// A node to run [default without fetches and targets: all nodes without consumers]
    #[arg(long, value_name = "NODE")]
    target: Vec<String>,
    /// How nodes without a device get one
    #[arg(long, value_enum, default_value_t = Policy::Cost)]
    policy: Policy,
    /// Replace devices that do not exist by ones that do
    #[arg(long)]
    soft: bool,
    /// RunMetadata file of a traced step, with the measured cost of its nodes
    #[arg(long, value_name = "FILE")]
    measured: Option<String>,
    /// Speed of a device in operations a second, such as 100G
    #[arg(long, value_name = "FLOPS", default_value = "100G")]
    flops: String,
    /// Speed of a device's memory
    #[arg(long, value_name = "SPEED", default_value = "10GB/s")]
    memory: String,
    /// Speed of the link between tasks
    #[arg(long, value_name = "SPEED", default_value = "10Gb/s")]
    link: String,
    /// Latency of a message between tasks
    #[arg(long, value_name = "TIME", default_value = "50us")]
    latency: String,
    /// List every node
    #[arg(long)]
    nodes: bool,
    /// Print for each node when it runs, why it is on its device, and when it would end elsewhere
    #[arg(long)]
    explain: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How nodes without a device get one.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Policy {
    Cost,
    First,
}

impl Policy {
    /// As the placement of a session, with the known properties of devices.
    pub fn placement(self) -> Placement {
        match self {
            Policy::First => Placement::First,
            Policy::Cost => Placement::ByCost(Box::default()),
        }
    }
}

pub fn run(args: Args) -> Result<()> {
    let cluster = ClusterSpec::parse(&args.cluster)?;
    let master = master(&cluster, args.master.as_deref())?;
    let mut model = CostModel {
        measured_devices: false,
        flops: units::bytes(&args.flops)?,
        memory: units::bytes_per_second(&args.memory)?,
        ..CostModel::default()
    };
    if model.flops <= 0.0 {
        return Err(wrong("--flops must be more than 0"));
    }
    model.link.bandwidth = units::bytes_per_second(&args.link)?;
    model.link.latency = units::seconds(&args.latency)?;
    if let Some(path) = &args.measured {
        let bytes = std::fs::read(path).map_err(|e| wrong(format!("{path}: {e}")))?;
        model.measured = ferroflow::RunMetadata::from_bytes(bytes).measured()?;
    }
    let graph = read_graph(Path::new(&args.graph))?;
    if graph.nodes.is_empty() {
        return Err(wrong(format!("{} has no nodes: is it a GraphDef?", args.graph)));
    }
    let request = PlacementRequest {
        cluster,
        master,
        cpus: args.cpus,
        feeds: args.feed.iter().map(|text| feed(text)).collect::<Result<_>>()?,
        fetches: args.fetch,
        targets: args.target,
        soft: args.soft,
        placement: Placement::First,
        model: model.clone(),
    };
    let first = place_step(&graph, &request)?;
    let placed = match args.policy {
        Policy::First => first.clone(),
        Policy::Cost => {
            let placement = Placement::ByCost(Box::new(model));
            place_step(&graph, &PlacementRequest { placement, ..request })?
        }
    };
    if args.json {
        say!("{}", report(&placed, &first));
    } else {
        say!("{}", table(&placed, &first, args.nodes).trim_end());
        if args.explain {
            say!("\n{}", explanation(&placed).trim_end());
        }
    }
    Ok(())
}

fn wrong(text: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, text.into())
}

fn master(cluster: &ClusterSpec, asked: Option<&str>) -> Result<(String, u32)> {
    if let Some(text) = asked {
        let parsed = text.split_once(':').and_then(|(j, t)| Some((j.to_string(), t.parse().ok()?)));
        return parsed.ok_or_else(|| wrong(format!("--master {text:?} is not JOB:TASK")));
    }
    let rank = |job: &str| ["worker", "chief"].iter().position(|j| *j == job).unwrap_or(2);
    let first = cluster.tasks().min_by_key(|(job, task, _)| (rank(job), *task));
    let first = first.map(|(job, task, _)| (job.to_string(), task));
    first.ok_or_else(|| wrong("the cluster has no task"))
}

/// Parses `x` or `x=128x784`; `?` stands for an unknown dimension.
fn feed(text: &str) -> Result<(String, Option<PartialShape>)> {
    let Some((name, shape)) = text.split_once('=') else { return Ok((text.to_string(), None)) };
    let dim = |d: &str| match d {
        "?" => Ok(-1),
        d => d
            .parse::<i64>()
            .map_err(|_| wrong(format!("--feed {text:?}: {d:?} is not a dimension"))),
    };
    let dims = shape.split('x').filter(|d| !d.is_empty()).map(dim).collect::<Result<Vec<i64>>>()?;
    Ok((name.to_string(), Some(PartialShape::from_i64s(&dims)?)))
}

fn report(placed: &PlacedStep, first: &PlacedStep) -> Value {
    let p = &placed.prediction;
    json!({
        "step_seconds": p.seconds,
        "first_device_step_seconds": first.prediction.seconds,
        "devices": p.devices.iter().map(|d| json!({
            "device": d.device,
            "nodes": d.nodes,
            "busy_seconds": d.busy,
        })).collect::<Vec<_>>(),
        "transfers": p.transfers.iter().map(|t| json!({
            "tensor": t.tensor,
            "from": t.from,
            "to": t.to,
            "bytes": t.bytes,
            "begins_seconds": t.begins,
            "arrives_seconds": t.arrives,
        })).collect::<Vec<_>>(),
        "nodes": placed.nodes.iter().map(|n| json!({
            "name": n.name,
            "op": n.op,
            "device": n.device,
            "reason": n.reason.as_ref().map(reason),
            "options": options(n.reason.as_ref()).iter().map(|o| json!({
                "device": o.device,
                "device_free_seconds": o.free,
                "inputs_seconds": o.inputs,
                "ends_seconds": o.ends,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn options(reason: Option<&PlacementReason>) -> &[PlacementOption] {
    match reason {
        Some(PlacementReason::EndsFirst(options)) => options,
        _ => &[],
    }
}

fn reason(reason: &PlacementReason) -> String {
    match reason {
        PlacementReason::Requested => "requested".into(),
        PlacementReason::With(node) => format!("with {node}, whose device it shares"),
        PlacementReason::Only => "no other device fits".into(),
        PlacementReason::BesideConsumers => "beside the nodes that use it".into(),
        PlacementReason::EndsFirst(options) => match options.as_slice() {
            [best, next, ..] if best.ends == next.ends => {
                "ends as early as elsewhere, and is nearest".into()
            }
            _ => "ends first".into(),
        },
        PlacementReason::NotSpread => "a step on several devices would take longer".into(),
    }
}

/// The nodes in the order of their starts, with the reason for the device of each.
fn explanation(placed: &PlacedStep) -> String {
    let times: HashMap<&str, &PredictedNode> =
        placed.prediction.nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let begins = |name: &str| times.get(name).map_or(0.0, |node| node.begins);
    let mut nodes: Vec<_> = placed.nodes.iter().collect();
    nodes.sort_by(|a, b| begins(&a.name).total_cmp(&begins(&b.name)));
    let mut out = format!("{:>10} {:>10}  node, device and reason\n", "begins", "takes");
    for node in nodes {
        let takes = times.get(node.name.as_str()).map_or(0.0, |node| node.seconds);
        let (begins, takes) = (show_seconds(begins(&node.name)), show_seconds(takes));
        let why = node.reason.as_ref().map_or("the first device that fits".into(), reason);
        out += &format!("{begins:>10} {takes:>10}  {}: {}: {why}\n", node.name, node.device);
        for o in options(node.reason.as_ref()).iter().skip(1) {
            let ends = show_seconds(o.ends);
            let late = match o.inputs > o.free {
                true => format!("its inputs arrive at {}", show_seconds(o.inputs)),
                false => format!("the device is free at {}", show_seconds(o.free)),
            };
            out += &format!("{:>23} {}: would end at {ends}; {late}\n", "", o.device);
        }
    }
    out
}

fn table(placed: &PlacedStep, first: &PlacedStep, with_nodes: bool) -> String {
    let p = &placed.prediction;
    let mut out = format!("predicted step {}", show_seconds(p.seconds));
    if p.seconds < first.prediction.seconds {
        let other = show_seconds(first.prediction.seconds);
        out += &format!(" ({other} with every node on the first device that fits)");
    }
    out += &format!("\n\n{:>8} {:>10} {:>6}  device\n", "nodes", "busy", "of it");
    for d in &p.devices {
        let part = if p.seconds > 0.0 { 100.0 * d.busy / p.seconds } else { 0.0 };
        let busy = show_seconds(d.busy);
        out += &format!("{:>8} {busy:>10} {part:>5.0}%  {}\n", d.nodes, d.device);
    }
    if !p.transfers.is_empty() {
        let bytes = p.transfers.iter().map(|t| t.bytes).sum();
        out += &format!(
            "\n{} tensors cross, {}\n{:>10} {:>10} {:>10}  tensor\n",
            p.transfers.len(),
            units::show_bytes(bytes),
            "begins",
            "arrives",
            "bytes"
        );
        for t in &p.transfers {
            out += &format!(
                "{:>10} {:>10} {:>10}  {}  {} -> {}\n",
                show_seconds(t.begins),
                show_seconds(t.arrives),
                units::show_bytes(t.bytes),
                t.tensor,
                t.from,
                t.to
            );
        }
    }
    if with_nodes {
        out.push('\n');
        for n in &placed.nodes {
            out += &format!("{}: ({}): {}\n", n.name, n.op, n.device);
        }
    }
    out
}

fn show_seconds(s: f64) -> String {
    match s {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::DType;
    use ferroflow::graph::{AttrValue, Attrs, GraphDef, NodeDef};

    fn placed() -> (PlacedStep, PlacedStep) {
        let node = |name: &str, op: &str, inputs: &[&str], type_attr: &str| NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs: Attrs::new().with(type_attr, AttrValue::from(DType::Float)),
            ..NodeDef::default()
        };
        let nodes = vec![
            node("x", "Placeholder", &[], "dtype"),
            node("a", "MatMul", &["x", "x"], "T"),
            node("b", "MatMul", &["x", "x"], "T"),
        ];
        let graph = GraphDef { nodes, ..GraphDef::default() };
        let cluster = ClusterSpec::parse("worker=a:1,b:1").unwrap();
        let request = |placement| PlacementRequest {
            master: master(&cluster, None).unwrap(),
            cluster: cluster.clone(),
            cpus: 1,
            feeds: vec![feed("x=4000x4000").unwrap()],
            fetches: vec!["a".into(), "b".into()],
            targets: vec![],
            soft: false,
            placement,
            model: CostModel::default(),
        };
        let by_cost = place_step(&graph, &request(Placement::ByCost(Box::default()))).unwrap();
        (by_cost, place_step(&graph, &request(Placement::First)).unwrap())
    }

    #[test]
    fn the_table_names_devices_and_transferred_tensors() {
        let (by_cost, first) = placed();
        let text = table(&by_cost, &first, true);
        assert!(text.contains("with every node on the first device that fits"), "{text}");
        assert!(text.contains("64.0 MB"), "{text}");
        assert!(text.contains("/job:worker/replica:0/task:0/device:CPU:0 -> "), "{text}");
        assert!(text.contains("b: (MatMul): /job:worker/replica:0/task:1/device:CPU:0"), "{text}");
        assert!(!table(&first, &first, false).contains("first device that fits"));
    }

    #[test]
    fn the_report_has_the_same_numbers() {
        let (by_cost, first) = placed();
        let report = report(&by_cost, &first);
        assert_eq!(report["step_seconds"], by_cost.prediction.seconds);
        assert_eq!(report["transfers"][0]["bytes"], 64e6);
        assert_eq!(report["nodes"].as_array().unwrap().len(), by_cost.nodes.len());
    }

    #[test]
    fn the_explanation_says_when_nodes_would_end_elsewhere() {
        let (by_cost, first) = placed();
        let text = explanation(&by_cost);
        let lines: Vec<&str> = text.lines().collect();
        let b = lines.iter().position(|line| line.contains(" b: ")).unwrap();
        assert!(lines[b].ends_with("task:1/device:CPU:0: ends first"), "{text}");
        assert!(lines[b + 1].contains("task:0/device:CPU:0: would end at"), "{text}");
        assert!(lines[b + 1].contains("the device is free at"), "{text}");
        assert!(explanation(&first).contains("the first device that fits"));
        let report = report(&by_cost, &first);
        let b = report["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "b").unwrap();
        assert_eq!(
            (&b["reason"], b["options"].as_array().unwrap().len()),
            (&json!("ends first"), 2)
        );
    }

    #[test]
    fn feed_shapes_may_have_unknown_dimensions() {
        assert_eq!(feed("x").unwrap(), ("x".into(), None));
        let shape = PartialShape::from_i64s(&[-1, 784]).unwrap();
        assert_eq!(feed("x:0=?x784").unwrap(), ("x:0".into(), Some(shape)));
        assert!(feed("x=a").is_err());
        let cluster = ClusterSpec::parse("ps=a:1;chief=b:1").unwrap();
        assert_eq!(master(&cluster, None).unwrap(), ("chief".into(), 0));
        assert!(master(&cluster, Some("chief")).is_err());
    }
}
