//! Placement of nodes without a requested device. Simulates the step, and puts each node on the
//! device where it would finish first, including the transfers of its inputs.

use super::groups::ColocationGroup;
use super::{Devices, Placer, is_generator, place, specs, used_on};
use crate::graph::{GraphIr, Node, NodeId};
use crate::node_sizes::{elements, guessed};
use crate::op_def::ControlFlow;
use crate::passes::cost::{CostModel, NodeCosts};
use crate::passes::partition::Loops;
use crate::passes::simulate::{DeviceChoice, DeviceOption, Prediction, simulate};
use ferroflow_core::{DeviceInfo, DeviceName, PartialShape, Result, err};
use std::collections::HashMap;
use std::sync::Arc;

/// Why a node is on its device.
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementReason {
    /// It asks for this device, or shares a variable or a colocation group with a node that does.
    Requested,
    /// It shares the device of this node, which was placed before it.
    With(String),
    /// No other device fits.
    Only,
    /// Nothing but its consumers decides about it.
    BesideConsumers,
    /// It ends first there. All devices that fit, the chosen one first.
    EndsFirst(Vec<PlacementOption>),
    /// The step would take longer if nodes were spread: all go to the first device that fits.
    NotSpread,
}

/// When a node would run on a device, in seconds since the start of the step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementOption {
    /// The full name of the device.
    pub device: String,
    /// When the device has nothing else to do.
    pub free: f64,
    /// When the inputs of the node are there.
    pub inputs: f64,
    /// When the node ends.
    pub ends: f64,
}

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
    Ok(explain_place_by_cost(graph, devices, soft, model, given)?.0)
}

/// [`place_by_cost`], with the reason for the device of each node.
pub fn explain_place_by_cost(
    graph: &mut GraphIr,
    devices: &Devices,
    soft: bool,
    model: &CostModel,
    given: &HashMap<NodeId, PartialShape>,
) -> Result<(Prediction, Vec<PlacementReason>)> {
    // A node that cannot be placed at all fails here, with the same message as in `place`.
    let mut plainly = graph.clone();
    place(&mut plainly, 0, devices, soft)?;
    let costs = model.costs_on(graph, given, &devices.preferred);
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
        reasons: vec![PlacementReason::BesideConsumers; graph.len()],
        leaders: HashMap::new(),
    };
    simulate(graph, &costs, model, &devices.preferred, &mut free);
    let FreeChoice { chosen, reasons, .. } = free;
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
    if prediction.seconds >= plain.seconds && fits(&plainly, devices, &costs) {
        *graph = plainly;
        let decided = |reason| match reason {
            PlacementReason::EndsFirst(_) | PlacementReason::With(_) => PlacementReason::NotSpread,
            other => other,
        };
        return Ok((plain, reasons.into_iter().map(decided).collect()));
    }
    Ok((prediction, reasons))
}

/// Predicts a step whose nodes are all placed.
pub fn predict(
    graph: &GraphIr,
    devices: &Devices,
    model: &CostModel,
    given: &HashMap<NodeId, PartialShape>,
) -> Result<Prediction> {
    let costs = model.costs_on(graph, given, &devices.preferred);
    predict_costs(graph, devices, model, &costs)
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

/// Bytes that a node keeps between steps, if it makes a variable.
fn kept(graph: &GraphIr, id: NodeId, costs: &NodeCosts) -> Option<f64> {
    let node = graph.node(id);
    if !node.op.is_stateful || !node.inputs.is_empty() {
        return None;
    }
    let stated = node.attrs.shape("shape").ok();
    let stated = stated.map(|s| elements(&guessed(&s)) * 4.0);
    let own: f64 = costs.bytes[id.index()].iter().sum();
    Some(stated.unwrap_or(0.0).max(own))
}

/// Bytes that a device has for variables; infinite if that is not known.
fn memory_of(device: &DeviceInfo) -> f64 {
    let memory = device.speed.get().map_or(0, |speed| speed.memory);
    if memory == 0 { f64::INFINITY } else { memory as f64 }
}

/// Whether the variables of a graph that is placed fit into the memory of their devices.
fn fits(graph: &GraphIr, devices: &Devices, costs: &NodeCosts) -> bool {
    let mut kept_on: HashMap<&str, f64> = HashMap::new();
    for (id, node) in graph.iter() {
        *kept_on.entry(&node.device).or_default() += kept(graph, id, costs).unwrap_or(0.0);
    }
    devices
        .preferred
        .iter()
        .all(|d| kept_on.get(d.text.as_str()).is_none_or(|bytes| *bytes <= memory_of(d)))
}

/// Nodes that are placed.
struct Fixed(Vec<usize>);

impl DeviceChoice for Fixed {
    fn candidates(&mut self, id: NodeId) -> Vec<usize> {
        vec![self.0[id.index()]]
    }

    fn chosen(&mut self, _: NodeId, _: usize, _: &[DeviceOption]) {}
}

/// Places groups of nodes one after the other.
struct FreeChoice<'a> {
    placer: Placer<'a>,
    graph: &'a GraphIr,
    /// The device of each node for which no device matches exactly.
    fallback: &'a GraphIr,
    costs: &'a NodeCosts,
    /// Nodes such as constants, which run on the devices of their consumers.
    is_floating: Vec<bool>,
    /// The matching devices for each request.
    candidates: HashMap<(u32, u32), Vec<usize>>,
    /// Bytes of variables on each device.
    resident: Vec<f64>,
    chosen: Vec<Option<usize>>,
    reasons: Vec<PlacementReason>,
    /// The first node of each group that was placed.
    leaders: HashMap<u32, NodeId>,
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
        if let Some(bytes) = kept(self.graph, id, self.costs) {
            let has_room = |d: &usize| self.resident[*d] + bytes <= memory_of(&self.devices()[*d]);
            let with_room: Vec<usize> = found.iter().copied().filter(has_room).collect();
            if !with_room.is_empty() {
                found = with_room;
            }
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

    fn chosen(&mut self, id: NodeId, device: usize, options: &[DeviceOption]) {
        self.reasons[id.index()] = self.reason(id, device, options);
        let name = self.devices()[device].name.clone();
        let number = self.placer.specs.intern(name);
        self.placer.groups.of_mut(id).assigned = number;
        self.resident[device] += kept(self.graph, id, self.costs).unwrap_or(0.0);
        self.chosen[id.index()] = Some(device);
    }
}

impl FreeChoice<'_> {
    fn reason(&mut self, id: NodeId, device: usize, options: &[DeviceOption]) -> PlacementReason {
        let (group, root) = (self.placer.groups.of(id), self.placer.groups.root(id));
        if let Some(leader) = self.leaders.get(&root) {
            return PlacementReason::With(self.graph.node(*leader).name.clone());
        }
        if group.assigned != specs::OPEN {
            return PlacementReason::Requested;
        }
        self.leaders.insert(root, id);
        match options {
            [_] if group.requested != specs::OPEN || group.resource != specs::OPEN => {
                PlacementReason::Requested
            }
            [_] => PlacementReason::Only,
            options => {
                let mut options = options.to_vec();
                options.sort_by(|a, b| {
                    let order = (b.device == device).cmp(&(a.device == device));
                    order.then(a.ends.total_cmp(&b.ends))
                });
                let named = |o: DeviceOption| PlacementOption {
                    device: self.devices()[o.device].text.clone(),
                    free: o.free,
                    inputs: o.inputs,
                    ends: o.ends,
                };
                PlacementReason::EndsFirst(options.into_iter().map(named).collect())
            }
        }
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
    use ferroflow_core::DeviceSpeed;

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
    fn reasons_say_who_decided() {
        let mut c = catalog();
        c.op("_Retval").input("x: float").role(OpRole::Return);
        let lines: [Line<'_>; 6] = [
            ("x", "Const", &[], "", ""),
            ("v", "Handle", &[], "/job:ps/task:1", ""),
            ("r", "Read", &["v"], "", ""),
            ("a", "Add", &["x", "r"], "", ""),
            ("b", "Add", &["x", "x"], "", ""),
            ("y", "_Retval", &["b"], WORKER, ""),
        ];
        let mut graph = GraphIr::from_def(&def(&lines), &c).unwrap();
        let explained =
            explain_place_by_cost(&mut graph, &devices(), false, &model(1e-4), &HashMap::new());
        let (prediction, reasons) = explained.unwrap();
        assert_eq!(reasons[0], PlacementReason::BesideConsumers);
        assert_eq!(reasons[1], PlacementReason::Requested);
        assert_eq!(reasons[2], PlacementReason::With("v".into()));
        let PlacementReason::EndsFirst(options) = &reasons[4] else { panic!("{reasons:?}") };
        assert_eq!((options.len(), &options[0].device), (4, &graph.node(NodeId(4)).device));
        assert!(options[1..].iter().all(|o| o.ends >= options[0].ends), "{options:?}");
        let b = prediction.nodes.iter().find(|n| n.name == "b").unwrap();
        assert!((b.begins + b.seconds - options[0].ends).abs() < 1e-9, "{b:?} {options:?}");
        let mut together = GraphIr::from_def(&def(TWO_BRANCHES), &c).unwrap();
        let (_, reasons) =
            explain_place_by_cost(&mut together, &devices(), false, &model(0.6), &HashMap::new())
                .unwrap();
        assert_eq!(reasons[1], PlacementReason::NotSpread);
    }

    #[test]
    fn variables_go_where_there_is_memory_and_work_where_it_is_fast() {
        let device = |job: &str, task, flops, memory| {
            let device = DeviceInfo::cpu(job, task, 0, 1);
            device.speed.set(DeviceSpeed { flops, bandwidth: 1e12, memory }).unwrap();
            Arc::new(device)
        };
        // The near device is slow and has no room for the variable.
        let devices = Devices::new(
            &[device("worker", 0, 1e9, 100)],
            &[device("worker", 1, 1e11, 1 << 30), device("ps", 0, 1e10, 1 << 30)],
        );
        let mut c = catalog();
        c.op("_Retval").input("x: float").role(OpRole::Return);
        c.op("Work").input("x: float").output("y: float").flops(|_| 1e11);
        c.op("Large").output("handle: resource").attr("shape: shape").stateful();
        let lines: [Line<'_>; 5] = [
            ("x", "Const", &[], "", ""),
            ("w", "Work", &["x"], "", ""),
            ("v", "Large", &[], "", ""),
            ("r", "Read", &["v"], "", ""),
            ("y", "_Retval", &["w"], WORKER, ""),
        ];
        let mut lines = def(&lines);
        lines.nodes[2].attrs.set("shape", PartialShape::from([1000]));
        let placed = |model: &CostModel| {
            let mut graph = GraphIr::from_def(&lines, &c).unwrap();
            let p = place_by_cost(&mut graph, &devices, false, model, &HashMap::new()).unwrap();
            ([1, 2].map(|id| graph.node(NodeId(id)).device.clone()), p)
        };
        let ([work, variable], p) = placed(&CostModel::default());
        assert_eq!((&work[..], variable == WORKER), (OTHER, false), "{p:?}");
        assert!((0.9..1.1).contains(&p.seconds), "{p:?}");
        let ([work, variable], p) = placed(&CostModel::fixed(1e11));
        assert_eq!((&work[..], variable == WORKER), (WORKER, false), "{p:?}");
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
