//! Simulates a step: when each node runs and when each value arrives. A device runs one node at a
//! time, in the order in which nodes become ready. A link carries one tensor at a time.

use super::cost::{CostModel, LinkCost, NodeCosts, Rates};
use super::order::{closes_loop, topological_order};
use crate::graph::{Endpoint, GraphIr, NodeId};
use ferroflow_core::DeviceInfo;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// The predicted duration of a step, with the load of devices and links.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Seconds of the whole step.
    pub seconds: f64,
    /// The load of each device.
    pub devices: Vec<DeviceLoad>,
    /// In the order in which they start.
    pub transfers: Vec<Transfer>,
    /// The nodes that run on a device, in the order of the graph.
    pub nodes: Vec<PredictedNode>,
}

/// A node of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedNode {
    /// Its name.
    pub name: String,
    /// The full name of its device.
    pub device: String,
    /// When it begins, in seconds since the start of the step.
    pub begins: f64,
    /// Its duration.
    pub seconds: f64,
}

/// When a node would run on one of the devices that it could have.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceOption {
    pub device: usize,
    /// When the device has nothing else to do.
    pub free: f64,
    /// When all inputs are there.
    pub inputs: f64,
    pub ends: f64,
}

/// The work of one device in a step.
#[derive(Clone, Debug)]
pub struct DeviceLoad {
    /// The full name of the device.
    pub device: String,
    /// The number of nodes that run on it.
    pub nodes: usize,
    /// Seconds in which it computes.
    pub busy: f64,
}

/// The transfer of a value from one device to another.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// `node:slot`, or `^node` for a control edge.
    pub tensor: String,
    /// The sending device.
    pub from: String,
    /// The receiving device.
    pub to: String,
    /// The size of the value.
    pub bytes: f64,
    /// Seconds since the start of the step.
    pub begins: f64,
    /// When it arrives.
    pub arrives: f64,
}

/// Decides on which devices nodes can run, and learns where they are put.
pub(super) trait DeviceChoice {
    /// The devices on which a node can run. Empty if it runs on the devices of its consumers, at no
    /// cost.
    fn candidates(&mut self, id: NodeId) -> Vec<usize>;
    /// A node was put on a device, among these.
    fn chosen(&mut self, id: NodeId, device: usize, options: &[DeviceOption]);
}

/// Simulates a step of `graph`. Puts each node on the candidate device where it finishes first;
/// among equals on the first candidate. The step starts and ends on the first device.
pub(super) fn simulate(
    graph: &GraphIr,
    costs: &NodeCosts,
    model: &CostModel,
    devices: &[Arc<DeviceInfo>],
    choice: &mut dyn DeviceChoice,
) -> Prediction {
    let tasks: Vec<String> = devices.iter().map(|d| d.name.task_name()).collect();
    let is_far = |d: usize| tasks[d] != tasks[0];
    let begin = |d: usize| if is_far(d) { model.link.latency } else { 0.0 };
    let mut run = SimulatedRun {
        graph,
        costs,
        model,
        tasks: &tasks,
        rates: devices.iter().map(|d| model.rates(d)).collect(),
        place: vec![None; graph.len()],
        finish: vec![0.0; graph.len()],
        seconds: vec![0.0; graph.len()],
        free: (0..devices.len()).map(begin).collect(),
        load: vec![(0, 0.0); devices.len()],
        links: HashMap::new(),
        arrived: HashMap::new(),
        transfers: Vec::new(),
    };
    let (mut pending, consumers) = dependencies(graph);
    let urgency = urgency(graph, costs);
    let mut ready = BinaryHeap::new();
    let at = |id: NodeId, time: f64| ReadyNode { time, urgency: urgency[id.index()], id };
    let mut ready_time = vec![0.0f64; graph.len()];
    for id in graph.ids().filter(|id| pending[id.index()] == 0) {
        ready.push(at(id, 0.0));
    }
    while let Some(ReadyNode { id, .. }) = ready.pop() {
        let finish = run.place(id, choice);
        for &c in &consumers[id.index()] {
            let i = c.index();
            ready_time[i] = ready_time[i].max(finish);
            pending[i] -= 1;
            if pending[i] == 0 {
                ready.push(at(c, ready_time[i]));
            }
        }
    }
    let used = |d: usize| run.load[d].0 > 0;
    let back = |d: usize| if is_far(d) { model.link.latency } else { 0.0 };
    let ends = (0..devices.len()).filter(|&d| used(d)).map(|d| run.free[d] + back(d));
    let seconds = ends.fold(0.0, f64::max);
    let device = |(d, &(nodes, busy)): (usize, &(usize, f64))| DeviceLoad {
        device: devices[d].text.clone(),
        nodes,
        busy,
    };
    let loads = run.load.iter().enumerate().map(device).collect();
    let placed = |(id, at): (NodeId, &Option<usize>)| {
        let (seconds, finish) = (run.seconds[id.index()], run.finish[id.index()]);
        Some(PredictedNode {
            name: graph.node(id).name.clone(),
            device: devices[(*at)?].text.clone(),
            begins: finish - seconds,
            seconds,
        })
    };
    let nodes = graph.ids().zip(&run.place).filter_map(placed).collect();
    let mut transfers: Vec<Transfer> = run
        .transfers
        .into_iter()
        .map(|t| Transfer {
            tensor: match t.slot {
                Some(slot) => format!("{}:{slot}", graph.node(t.source).name),
                None => format!("^{}", graph.node(t.source).name),
            },
            from: devices[t.from].text.clone(),
            to: devices[t.to].text.clone(),
            bytes: t.bytes,
            begins: t.begins,
            arrives: t.arrives,
        })
        .collect();
    transfers.sort_by(|a, b| a.begins.total_cmp(&b.begins));
    Prediction { seconds, devices: loads, transfers, nodes }
}

struct SimulatedRun<'a> {
    graph: &'a GraphIr,
    costs: &'a NodeCosts,
    model: &'a CostModel,
    /// The task and the speed of each device.
    tasks: &'a [String],
    rates: Vec<Rates>,
    /// `None` if it has not run yet, or runs everywhere.
    place: Vec<Option<usize>>,
    finish: Vec<f64>,
    /// The duration of each node.
    seconds: Vec<f64>,
    /// When each device is idle again.
    free: Vec<f64>,
    /// The number of nodes and their seconds.
    load: Vec<(usize, f64)>,
    /// When the link between two devices is idle again, by sender and receiver.
    links: HashMap<(usize, usize), f64>,
    /// When a value arrives on another device.
    arrived: HashMap<(NodeId, Option<u32>, usize), f64>,
    transfers: Vec<Moved>,
}

struct Moved {
    source: NodeId,
    slot: Option<u32>,
    from: usize,
    to: usize,
    bytes: f64,
    begins: f64,
    arrives: f64,
}

impl SimulatedRun<'_> {
    /// Puts a node on a device and returns when it finishes.
    fn place(&mut self, id: NodeId, choice: &mut dyn DeviceChoice) -> f64 {
        let option = |device: usize| {
            let (free, inputs) = (self.free[device], self.inputs_on(id, device));
            let ends = free.max(inputs) + self.costs.on(id, self.rates[device]);
            DeviceOption { device, free, inputs, ends }
        };
        let options: Vec<DeviceOption> = choice.candidates(id).into_iter().map(option).collect();
        let first = options.iter().copied().reduce(|a, b| if b.ends < a.ends { b } else { a });
        let Some(DeviceOption { device, ends: end, .. }) = first else { return 0.0 };
        let seconds = self.costs.on(id, self.rates[device]);
        self.receive(id, device);
        self.place[id.index()] = Some(device);
        self.finish[id.index()] = end;
        self.seconds[id.index()] = seconds;
        self.free[device] = end;
        self.load[device].0 += 1;
        self.load[device].1 += seconds;
        choice.chosen(id, device, &options);
        end
    }

    /// When all inputs of a node would be on a device.
    fn inputs_on(&self, id: NodeId, device: usize) -> f64 {
        let arrivals =
            self.needs(id).map(|(source, slot)| match self.transfer(source, slot, device) {
                Some(moved) => moved.arrives,
                None => self
                    .arrived
                    .get(&(source, slot, device))
                    .copied()
                    .unwrap_or(self.finish[source.index()]),
            });
        arrivals.fold(0.0, f64::max)
    }

    /// Transfers the inputs of a node to its device.
    fn receive(&mut self, id: NodeId, device: usize) {
        let needs: Vec<(NodeId, Option<u32>)> = self.needs(id).collect();
        for (source, slot) in needs {
            let Some(moved) = self.transfer(source, slot, device) else { continue };
            let link = self.link(moved.from, device);
            let free = self.links.entry((moved.from, device)).or_default();
            *free = moved.begins + link.occupied(moved.bytes);
            self.arrived.insert((source, slot, device), moved.arrives);
            self.transfers.push(moved);
        }
    }

    /// The inputs of a node, and its control inputs with no slot.
    fn needs(&self, id: NodeId) -> impl Iterator<Item = (NodeId, Option<u32>)> + use<'_> {
        let node = self.graph.node(id);
        let values = node
            .inputs
            .iter()
            .enumerate()
            .filter(move |(i, _)| !closes_loop(self.graph, node, *i))
            .map(|(_, e): (usize, &Endpoint)| (e.node, Some(e.slot)));
        values.chain(node.controls.iter().map(|c| (*c, None)))
    }

    /// The transfer of a value to a device where it is not yet.
    fn transfer(&self, source: NodeId, slot: Option<u32>, to: usize) -> Option<Moved> {
        let from = self.place[source.index()]?;
        if from == to || self.arrived.contains_key(&(source, slot, to)) {
            return None;
        }
        let bytes = slot.map_or(0.0, |slot| {
            self.costs.bytes[source.index()].get(slot as usize).copied().unwrap_or(0.0)
        });
        let link = self.link(from, to);
        let free = self.links.get(&(from, to)).copied().unwrap_or(0.0);
        let begins = self.finish[source.index()].max(free);
        let arrives = begins + link.latency + link.occupied(bytes);
        Some(Moved { source, slot, from, to, bytes, begins, arrives })
    }

    fn link(&self, from: usize, to: usize) -> LinkCost {
        match self.tasks[from] == self.tasks[to] {
            true => self.model.within_task,
            false => self.model.link,
        }
    }
}

/// For each node the number of nodes it waits for, and the nodes that wait for it.
fn dependencies(graph: &GraphIr) -> (Vec<u32>, Vec<Vec<NodeId>>) {
    let mut pending = vec![0u32; graph.len()];
    let mut consumers = vec![Vec::new(); graph.len()];
    for (id, node) in graph.iter() {
        for (i, e) in node.inputs.iter().enumerate() {
            if !closes_loop(graph, node, i) {
                pending[id.index()] += 1;
                consumers[e.node.index()].push(id);
            }
        }
        for c in &node.controls {
            pending[id.index()] += 1;
            consumers[c.index()].push(id);
        }
    }
    (pending, consumers)
}

/// The critical path of each node: seconds from its start to the end of the nodes that depend on
/// it.
fn urgency(graph: &GraphIr, costs: &NodeCosts) -> Vec<f64> {
    let mut after = vec![0.0f64; graph.len()];
    for id in topological_order(graph).into_iter().rev() {
        let all = after[id.index()] + costs.seconds[id.index()];
        let node = graph.node(id);
        for (i, e) in node.inputs.iter().enumerate() {
            if !closes_loop(graph, node, i) {
                after[e.node.index()] = after[e.node.index()].max(all);
            }
        }
        for c in &node.controls {
            after[c.index()] = after[c.index()].max(all);
        }
    }
    after.iter().zip(&costs.seconds).map(|(after, own)| after + own).collect()
}

/// A node that is ready at some time. The earliest is the greatest, then the one with the longest
/// critical path.
struct ReadyNode {
    time: f64,
    urgency: f64,
    id: NodeId,
}

impl Ord for ReadyNode {
    fn cmp(&self, other: &ReadyNode) -> Ordering {
        let by_time = other.time.total_cmp(&self.time);
        by_time.then(self.urgency.total_cmp(&other.urgency)).then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for ReadyNode {
    fn partial_cmp(&self, other: &ReadyNode) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ReadyNode {
    fn eq(&self, other: &ReadyNode) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ReadyNode {}
