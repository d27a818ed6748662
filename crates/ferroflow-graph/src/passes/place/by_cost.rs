//! Placement of nodes without a requested device: simulates the step and puts each node on the
//! device where it would finish first, transfers of its inputs included.

use super::groups::ColocationGroup;
use super::{Devices, Placer, is_generator, place, specs, used_on};
use crate::graph::{GraphIr, Node, NodeId};
use crate::node_sizes::{elements, guessed};
use crate::op_def::ControlFlow;
use crate::passes::cost::{CostModel, NodeCosts};
use crate::passes::partition::Loops;
use crate::passes::simulate::{DeviceChoice, Prediction, simulate};
use ferroflow_core::{DeviceInfo, DeviceName, PartialShape, Result, err};
use std::collections::HashMap;
use std::sync::Arc;

/// Places the graph of a step by the costs in `model`. Arguments and results are placed already. A
/// node that requests one device gets it, as with [`place`]; the others go where the step is
/// predicted to finish first. `given` holds the shapes of arguments. Returns the prediction.
pub fn place_by_cost(
    graph: &mut GraphIr,
    devices: &Devices,
    soft: bool,
    model: &CostModel,
    given: &HashMap<NodeId, PartialShape>,
) -> Result<Prediction> {
    // A node that cannot be placed at all fails here, with the same message as in `place`.
    let mut plainly = graph.clone();
    place(&mut plainly, 0, devices, soft)?;
    let costs = model.costs(graph, given);
    let plain = predict_costs(&plainly, devices, model, &costs)?;

    let mut placer = Placer::grouped(graph, 0, devices, soft)?;
    placer.join_loops(graph)?;
    let mut free = FreeChoice {
        is_floating: floating(graph, &mut placer),
        placer,
        graph,
        fallback: &plainly,
        costs: &costs,
        candidates: HashMap::new(),
        resident: vec![0.0; devices.preferred.len()],
        chosen: vec![None; graph.len()],
    };
    simulate(graph, &costs, model, &devices.preferred, &mut free);
    let FreeChoice { chosen, .. } = free;
    for (id, device) in graph.ids().zip(&chosen) {
        if let Some(device) = device {
            graph.node_mut(id).device = devices.preferred[*device].text.clone();
        }
    }
    // A floating node goes to the device of its consumers, if they share one.
    let floats: Vec<NodeId> = graph.ids().filter(|id| chosen[id.index()].is_none()).collect();
    let mut used_on = used_on(graph, &floats);
    for id in floats {
        let device = used_on.remove(&id).flatten().filter(|d| !d.is_empty());
        let device = device.unwrap_or_else(|| plainly.node(id).device.clone());
        graph.node_mut(id).device = device;
    }
    // Greedy choices can be worse than the default placement.
    let prediction = predict_costs(graph, devices, model, &costs)?;
    if prediction.seconds >= plain.seconds {
        *graph = plainly;
        return Ok(plain);
    }
    Ok(prediction)
}

/// Predicts a step whose nodes are all placed.
pub fn predict(
    graph: &GraphIr,
    devices: &Devices,
    model: &CostModel,
    given: &HashMap<NodeId, PartialShape>,
) -> Result<Prediction> {
    predict_costs(graph, devices, model, &model.costs(graph, given))
}

fn predict_costs(
    graph: &GraphIr,
    devices: &Devices,
    model: &CostModel,
    costs: &NodeCosts,
) -> Result<Prediction> {
    let numbers: HashMap<&str, usize> =
        devices.preferred.iter().enumerate().map(|(i, d)| (d.text.as_str(), i)).collect();
    let of = |node: &Node| {
        let number = numbers.get(node.device.as_str()).copied();
        number.ok_or_else(|| err!(Internal, "'{}' is on {:?}, no device", node.name, node.device))
    };
    let places = graph.iter().map(|(_, node)| of(node)).collect::<Result<_>>()?;
    Ok(simulate(graph, costs, model, &devices.preferred, &mut Fixed(places)))
}

/// Nodes that are placed.
struct Fixed(Vec<usize>);

impl DeviceChoice for Fixed {
    fn candidates(&mut self, id: NodeId) -> Vec<usize> {
        vec![self.0[id.index()]]
    }

    fn chosen(&mut self, _: NodeId, _: usize) {}
}

/// Places groups of nodes one after the other.
struct FreeChoice<'a> {
    placer: Placer<'a>,
    graph: &'a GraphIr,
    /// The device of each node for which no device matches exactly.
    fallback: &'a GraphIr,
    costs: &'a NodeCosts,
    /// Nodes such as constants, which run wherever they are used.
    is_floating: Vec<bool>,
    /// The matching devices for each request.
    candidates: HashMap<(u32, u32), Vec<usize>>,
    /// Bytes of variables on each device.
    resident: Vec<f64>,
    chosen: Vec<Option<usize>>,
}

impl FreeChoice<'_> {
    /// The devices that match a group's request. A device that is not a CPU must be requested.
    fn matching(&mut self, group: ColocationGroup) -> Vec<usize> {
        let key = (group.requested, group.resource);
        if let Some(known) = self.candidates.get(&key) {
            return known.clone();
        }
        let wanted = self.placer.specs.wanted(group);
        let fits = |d: &Arc<DeviceInfo>| {
            d.name.is_compatible(&wanted) && (d.kind() == "CPU" || wanted.kind.is_some())
        };
        let all = self.devices().iter().enumerate().filter(|(_, d)| fits(d));
        let found: Vec<usize> = all.map(|(i, _)| i).collect();
        self.candidates.insert(key, found.clone());
        found
    }

    fn devices(&self) -> &[Arc<DeviceInfo>] {
        &self.placer.devices.preferred
    }

    fn number(&self, name: &DeviceName) -> Option<usize> {
        self.devices().iter().position(|d| d.name == *name)
    }
}

impl DeviceChoice for FreeChoice<'_> {
    fn candidates(&mut self, id: NodeId) -> Vec<usize> {
        if self.is_floating[id.index()] {
            return Vec::new();
        }
        let group = self.placer.groups.of(id);
        if group.assigned != specs::OPEN {
            let name = self.placer.specs.get(group.assigned).clone();
            return self.number(&name).into_iter().collect();
        }
        let mut found = self.matching(group);
        if found.is_empty() {
            let device = &self.fallback.node(id).device;
            found.extend(self.devices().iter().position(|d| d.text == *device));
        }
        // Among equals prefer the session's own task, then its job, then the one with fewest bytes.
        let own = &self.devices()[0].name;
        let distance = |d: &usize| {
            let name = &self.devices()[*d].name;
            (name.job != own.job, name.task_name() != own.task_name())
        };
        found.sort_by(|a, b| {
            let by_task = distance(a).cmp(&distance(b));
            by_task.then(self.resident[*a].total_cmp(&self.resident[*b]))
        });
        found
    }

    fn chosen(&mut self, id: NodeId, device: usize) {
        let name = self.devices()[device].name.clone();
        let number = self.placer.specs.intern(name);
        self.placer.groups.of_mut(id).assigned = number;
        let node = self.graph.node(id);
        if node.op.is_stateful && node.inputs.is_empty() {
            let stated = node.attrs.shape("shape").ok();
            let stated = stated.map(|s| elements(&guessed(&s)) * 4.0);
            let own: f64 = self.costs.bytes[id.index()].iter().sum();
            self.resident[device] += stated.unwrap_or(0.0).max(own);
        }
        self.chosen[id.index()] = Some(device);
    }
}

/// Nodes that can run anywhere at no cost: no inputs, no state, not colocated with others.
fn floating(graph: &GraphIr, placer: &mut Placer<'_>) -> Vec<bool> {
    let floats = |(id, node): (NodeId, &Node)| {
        let group = placer.groups.of(id);
        group.is_open() && is_generator(node) && !node.op.is_stateful && placer.groups.is_alone(id)
    };
    graph.iter().map(floats).collect()
}

impl Placer<'_> {
    /// Keeps the free nodes of a loop together. A value that leaves a device in each iteration
    /// costs more than the simulation of one iteration shows.
    fn join_loops(&mut self, graph: &GraphIr) -> Result<()> {
        let loops = Loops::find(graph)?;
        let mut first: HashMap<u32, NodeId> = HashMap::new();
        for (id, node) in graph.iter() {
            let frame = match (node.op.control_flow, node.inputs.first()) {
                (Some(ControlFlow::Exit), Some(e)) => loops.leads_to(e.node),
                _ => loops.leads_to(id),
            };
            let is_open = self.groups.of(id).is_open();
            let Some(frame) = frame.filter(|_| is_open) else { continue };
            let with = *first.entry(frame).or_insert(id);
            self.join(graph, id, with)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Line, catalog, def};
    use super::*;
    use crate::op_def::OpRole;
    use crate::passes::LinkCost;

    const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";
    const OTHER: &str = "/job:worker/replica:0/task:1/device:CPU:0";
    const PS0: &str = "/job:ps/replica:0/task:0/device:CPU:0";
    const PS1: &str = "/job:ps/replica:0/task:1/device:CPU:0";

    fn devices() -> Devices {
        let cpu = |job: &str, task| Arc::new(DeviceInfo::cpu(job, task, 0, 1));
        Devices::new(&[cpu("worker", 0)], &[cpu("worker", 1), cpu("ps", 0), cpu("ps", 1)])
    }

    /// Every `Add` takes a second.
    fn model(latency: f64) -> CostModel {
        let mut model =
            CostModel { link: LinkCost { latency, bandwidth: 1e9 }, ..Default::default() };
        for name in ["a", "b", "c", "d", "e"] {
            model.measured.add(name, 1.0, [(0, 1e6)]);
        }
        model
    }

    fn placed(lines: &[Line<'_>], latency: f64) -> (Vec<String>, Prediction) {
        let mut c = catalog();
        c.op("_Retval").input("x: float").role(OpRole::Return);
        let mut graph = GraphIr::from_def(&def(lines), &c).unwrap();
        let prediction =
            place_by_cost(&mut graph, &devices(), false, &model(latency), &HashMap::new()).unwrap();
        (graph.iter().map(|(_, n)| n.device.clone()).collect(), prediction)
    }

    const TWO_BRANCHES: &[Line<'static>] = &[
        ("x", "Const", &[], "", ""),
        ("a", "Add", &["x", "x"], "", ""),
        ("b", "Add", &["x", "x"], "", ""),
        ("y", "_Retval", &["a"], WORKER, ""),
        ("z", "_Retval", &["b"], WORKER, ""),
    ];

    #[test]
    fn long_branches_run_in_parallel() {
        let (devices, prediction) = placed(TWO_BRANCHES, 1e-4);
        assert_eq!(devices[1..], [WORKER, OTHER, WORKER, WORKER]);
        assert!((prediction.seconds - 1.0).abs() < 0.01, "{prediction:?}");
        let [x, b] = &prediction.transfers[..] else { panic!("{prediction:?}") };
        assert_eq!((&x.tensor[..], &x.to[..]), ("x:0", OTHER));
        assert_eq!((&b.tensor[..], &b.from[..], b.bytes), ("b:0", OTHER, 1e6));
    }

    #[test]
    fn a_device_behind_a_slow_link_is_not_used() {
        let (devices, prediction) = placed(TWO_BRANCHES, 0.6);
        assert_eq!(devices, [WORKER; 5]);
        assert!((prediction.seconds - 2.0).abs() < 0.01, "{prediction:?}");
        assert!(prediction.transfers.is_empty());
    }

    #[test]
    fn requested_devices_are_used() {
        let lines: [Line<'_>; 6] = [
            ("v", "Handle", &[], "/job:ps", ""),
            ("w", "Handle", &[], "/job:ps", ""),
            ("a", "Read", &["v"], "", ""),
            ("b", "Read", &["w"], "", ""),
            ("c", "Add", &["a", "b"], "/job:ps/task:1", ""),
            ("y", "_Retval", &["c"], WORKER, ""),
        ];
        let (devices, _) = placed(&lines, 1e-4);
        // Reads follow their variables; those are spread over the ps tasks.
        assert_eq!(devices, [PS0, PS1, PS0, PS1, PS1, WORKER]);
    }

    #[test]
    fn a_prediction_counts_the_work_of_each_device() {
        let mut graph = GraphIr::from_def(
            &def(&[
                ("a", "Const", &[], PS0, ""),
                ("b", "Add", &["a", "a"], WORKER, ""),
                ("c", "Add", &["b", "a"], WORKER, ""),
            ]),
            &catalog(),
        )
        .unwrap();
        place(&mut graph, 0, &devices(), false).unwrap();
        let p = predict(&graph, &devices(), &model(0.5), &HashMap::new()).unwrap();
        // There and back for the ps to begin and to send; one transfer for three uses.
        assert!((p.seconds - (0.5 + 1.0 + 0.5 + 1e-3 + 2.0)).abs() < 1e-6, "{p:?}");
        assert_eq!(p.transfers.len(), 1);
        let busy = |device: &str| p.devices.iter().find(|d| d.device == device).unwrap().busy;
        assert_eq!((busy(WORKER), busy(PS0), busy(PS1)), (2.0, 1.0, 0.0));
    }
}
