//! Places a step and predicts its time, without running it.

use ferroflow_cluster::ClusterSpec;
use ferroflow_core::{DeviceInfo, PartialShape, Result, ensure};
use ferroflow_graph::passes::{self, Devices};
pub use ferroflow_graph::passes::{
    CostModel, DeviceLoad, LinkCost, MeasuredCosts, PlacementOption, PlacementReason,
    PredictedNode, Prediction, Transfer,
};
use ferroflow_graph::{GraphDef, GraphIr};
pub use ferroflow_runtime::Placement;
use ferroflow_train::default_catalog;
use std::collections::HashMap;
use std::sync::Arc;

/// A step to be placed.
#[derive(Clone, Debug)]
pub struct PlacementRequest {
    /// The cluster.
    pub cluster: ClusterSpec,
    /// The task whose master runs the step: job and index. It must be one of the cluster's.
    pub master: (String, u32),
    /// CPU devices of each task.
    pub cpus: u32,
    /// Tensors that are fed, and their shapes if they are not those of the graph.
    pub feeds: Vec<(String, Option<PartialShape>)>,
    /// Tensors to fetch.
    pub fetches: Vec<String>,
    /// Nodes to run for their effect. Without fetches and targets, all nodes without consumers.
    pub targets: Vec<String>,
    /// Replaces a device that does not exist by one that does.
    pub soft: bool,
    /// How nodes without a device are placed.
    pub placement: Placement,
    /// The cost model of the prediction, unless the placement has its own.
    pub model: CostModel,
}

/// A placed step.
#[derive(Clone, Debug)]
pub struct PlacedStep {
    /// The nodes of the step.
    pub nodes: Vec<PlacedNode>,
    /// The predicted times and transfers.
    pub prediction: Prediction,
}

/// A node and its device.
#[derive(Clone, Debug)]
pub struct PlacedNode {
    /// Its name.
    pub name: String,
    /// Its op.
    pub op: String,
    /// Its device.
    pub device: String,
    /// Why it is there; `None` if costs did not decide.
    pub reason: Option<PlacementReason>,
}

/// Places a step of `graph` as a session of that cluster would.
pub fn place_step(graph: &GraphDef, request: &PlacementRequest) -> Result<PlacedStep> {
    let catalog = default_catalog();
    let mut whole = GraphIr::from_def(graph, &catalog)?;
    passes::lower(&mut whole, 0, &catalog)?;
    let (job, task) = &request.master;
    request.cluster.address(job, *task)?;
    ensure!(request.cpus > 0, InvalidArgument, "a task has at least one CPU device");
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for (j, t, _) in request.cluster.tasks() {
        let to = if (j, t) == (job, *task) { &mut own } else { &mut others };
        to.extend((0..request.cpus).map(|id| Arc::new(DeviceInfo::cpu(j, t, id, 1))));
    }
    let devices = Devices::new(&own, &others);
    let soft = request.soft;
    if matches!(request.placement, Placement::First) {
        passes::place(&mut whole, 0, &devices, soft)?;
    }

    let feeds: Vec<String> = request.feeds.iter().map(|(name, _)| name.clone()).collect();
    let mut targets = request.targets.clone();
    if targets.is_empty() && request.fetches.is_empty() {
        targets = unused(&whole);
    }
    let mut step = passes::prune(&whole, &feeds, &request.fetches, &targets, &catalog)?;
    let shapes = passes::infer(&whole);
    let mut given = HashMap::new();
    for (id, (name, shape)) in step.args.iter().zip(&request.feeds) {
        let e = whole.endpoint(name)?;
        let known = shapes[e.node.index()].get(e.slot as usize).cloned().unwrap_or_default();
        given.insert(*id, shape.clone().unwrap_or(known));
    }
    for &id in step.args.iter().chain(&step.rets) {
        step.graph.node_mut(id).device = own[0].text.clone();
    }
    let graph = &mut step.graph;
    let mut reasons = Vec::new();
    let prediction = match &request.placement {
        Placement::ByCost(model) => {
            let (prediction, why) =
                passes::explain_place_by_cost(graph, &devices, soft, model, &given)?;
            reasons = why;
            prediction
        }
        other => {
            if matches!(other, Placement::FirstNeeded) {
                passes::place(graph, 0, &devices, soft)?;
            }
            passes::predict(graph, &devices, &request.model, &given)?
        }
    };
    let placed = graph.iter().map(|(id, n)| PlacedNode {
        name: n.name.clone(),
        op: n.op.name.clone(),
        device: n.device.clone(),
        reason: reasons.get(id.index()).cloned(),
    });
    Ok(PlacedStep { nodes: placed.collect(), prediction })
}

/// The nodes without consumers.
fn unused(graph: &GraphIr) -> Vec<String> {
    let consumers = graph.consumers();
    let ends = graph.iter().filter(|(id, _)| consumers[id.index()].is_empty());
    ends.map(|(_, n)| n.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::DType;
    use ferroflow_testing::graph;

    fn request(placement: Placement) -> PlacementRequest {
        PlacementRequest {
            cluster: ClusterSpec::parse("ps=a:1;worker=b:1,c:1").unwrap(),
            master: ("worker".into(), 0),
            cpus: 1,
            feeds: vec![("x".into(), Some(PartialShape::from([1000, 1000])))],
            fetches: vec!["y".into()],
            targets: vec![],
            soft: false,
            placement,
            model: CostModel::default(),
        }
    }

    /// Two chains of products and their sum.
    fn two_chains() -> GraphDef {
        let mut g = graph().dtype(DType::Float).placeholder("x");
        for chain in ["a", "b"] {
            let mut last = "x".to_string();
            for i in 0..10 {
                let name = format!("{chain}{i}");
                g = g.op(&name, "MatMul", &[&last, "x"]).t();
                last = name;
            }
        }
        g.op("y", "AddV2", &["a9", "b9"]).t().build()
    }

    #[test]
    fn long_chains_are_placed_on_two_tasks() {
        let def = two_chains();
        let by_cost = place_step(&def, &request(Placement::ByCost(Box::default()))).unwrap();
        let plain = place_step(&def, &request(Placement::First)).unwrap();
        assert!(by_cost.prediction.seconds < 0.7 * plain.prediction.seconds, "{by_cost:?}");
        assert!(plain.prediction.transfers.is_empty());
        let on = |prefix: &str| {
            let of =
                by_cost.nodes.iter().filter(|n| n.name.starts_with(prefix) && n.op == "MatMul");
            let mut devices: Vec<&str> = of.map(|n| n.device.as_str()).collect();
            devices.dedup();
            devices
        };
        assert_eq!((on("a").len(), on("b").len()), (1, 1), "a chain stays together");
        assert_ne!(on("a"), on("b"));
    }

    #[test]
    fn without_fetches_all_nodes_without_consumers_are_placed() {
        let mut wanted = request(Placement::First);
        wanted.fetches.clear();
        let placed = place_step(&two_chains(), &wanted).unwrap();
        assert!(placed.nodes.iter().any(|n| n.name == "y"));
        wanted.master.1 = 7;
        assert!(place_step(&two_chains(), &wanted).is_err());
    }
}
