//! Costs of nodes and transfers: estimates from shapes, replaced by measurements of earlier steps
//! where there are any.

use super::infer::infer_given;
use crate::block_kernel::{AnyBlockKernel, BlockKernel};
use crate::graph::{GraphIr, Node, NodeId};
use crate::node_sizes::{NodeSizes, elements, guessed};
use crate::op_def::{OpCost, OpRole};
use ferroflow_core::{DType, DeviceInfo, PartialShape};
use std::collections::HashMap;
use std::sync::Arc;

/// The speed of devices and links, and measured costs of nodes.
#[derive(Clone, Debug)]
pub struct CostModel {
    /// Floating-point operations per second of a whole device.
    pub flops: f64,
    /// Bytes per second that a device reads and writes.
    pub memory: f64,
    /// Seconds of overhead per node.
    pub node: f64,
    /// The link between tasks.
    pub link: LinkCost,
    /// The link between devices of one task.
    pub within_task: LinkCost,
    /// Uses what a task has measured of its device, where that is known, instead of `flops` and
    /// `memory`.
    pub measured_devices: bool,
    /// Measured costs, which replace estimates.
    pub measured: MeasuredCosts,
}

impl Default for CostModel {
    /// A processor of a few cores, and 10 Gb/s between hosts.
    fn default() -> CostModel {
        CostModel {
            flops: 1e11,
            memory: 1e10,
            node: 5e-7,
            link: LinkCost { latency: 5e-5, bandwidth: 1.25e9 },
            within_task: LinkCost { latency: 1e-6, bandwidth: 1e10 },
            measured_devices: true,
            measured: MeasuredCosts::default(),
        }
    }
}

impl CostModel {
    /// A model in which all devices do `flops` floating-point operations per second, whatever their
    /// measured speed.
    pub fn fixed(flops: f64) -> CostModel {
        CostModel { flops, measured_devices: false, ..CostModel::default() }
    }

    /// The speed of a device.
    pub(super) fn rates(&self, device: &DeviceInfo) -> Rates {
        let measured = device.speed.get().filter(|_| self.measured_devices);
        let known = |x: f64| (x > 0.0 && x.is_finite()).then_some(x);
        Rates {
            flops: measured.and_then(|speed| known(speed.flops)).unwrap_or(self.flops),
            memory: measured.and_then(|speed| known(speed.bandwidth)).unwrap_or(self.memory),
        }
    }

    /// A fast machine on a slow network. A receive that can be delayed by this model can be delayed
    /// nearly everywhere.
    pub fn cautious() -> CostModel {
        CostModel {
            flops: 5e12,
            memory: 2e11,
            node: 1e-7,
            link: LinkCost { latency: 2e-4, bandwidth: 1.25e8 },
            ..CostModel::default()
        }
    }
}

/// The cost of a link between two devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCost {
    /// Seconds until the first byte arrives.
    pub latency: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

impl LinkCost {
    /// Seconds that the link is busy with `bytes` bytes.
    pub fn occupied(&self, bytes: f64) -> f64 {
        bytes / self.bandwidth
    }
}

/// Measured costs of nodes in earlier steps, by name.
#[derive(Clone, Debug, Default)]
pub struct MeasuredCosts {
    nodes: HashMap<String, MeasuredNode>,
}

#[derive(Clone, Debug, Default)]
struct MeasuredNode {
    runs: u32,
    seconds: f64,
    /// Bytes of each output in the last run.
    bytes: Vec<f64>,
    /// The full name of the device of the last run; empty if that is not known.
    device: String,
}

/// Operations and bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    flops: f64,
    memory: f64,
}

/// The work of a node, which is the same on all devices.
#[derive(Clone, Copy, Default)]
struct NodeWork {
    /// Seconds on any device.
    fixed: f64,
    flops: f64,
    /// Bytes that it reads and writes.
    bytes: f64,
}

impl NodeWork {
    fn seconds(&self, rates: Rates) -> f64 {
        self.fixed + (self.flops / rates.flops).max(self.bytes / rates.memory)
    }
}

impl MeasuredCosts {
    /// Records one run of a node: its time, and the bytes of its outputs by slot.
    pub fn add(&mut self, name: &str, seconds: f64, bytes: impl IntoIterator<Item = (usize, f64)>) {
        self.add_on("", name, seconds, bytes);
    }

    /// The same, with the device that it ran on.
    pub fn add_on(
        &mut self,
        device: &str,
        name: &str,
        seconds: f64,
        bytes: impl IntoIterator<Item = (usize, f64)>,
    ) {
        let node = match self.nodes.get_mut(name) {
            Some(node) => node,
            None => self.nodes.entry(name.to_string()).or_default(),
        };
        node.runs = node.runs.saturating_add(1);
        node.seconds += seconds;
        if node.device != device {
            node.device = device.to_string();
        }
        for (slot, bytes) in bytes {
            // Ignore a slot that no real op has, to bound the memory.
            if slot < 1 << 16 {
                node.bytes.resize(node.bytes.len().max(slot + 1), 0.0);
                node.bytes[slot] = bytes;
            }
        }
    }

    /// Adds measurements of other tasks.
    pub fn merge(&mut self, other: MeasuredCosts) {
        for (name, node) in other.nodes {
            let own = self.nodes.entry(name).or_default();
            own.runs = own.runs.saturating_add(node.runs);
            own.seconds += node.seconds;
            own.bytes = node.bytes;
            own.device = node.device;
        }
    }

    /// Takes over the measurements of a later step. They count as much as all earlier ones
    /// together, so that a change shows soon and a single slow step does not.
    pub fn follow(&mut self, later: MeasuredCosts) {
        for (name, mut node) in later.nodes {
            node.seconds /= f64::from(node.runs.max(1));
            node.runs = 1;
            if let Some(before) = self.nodes.get(&name).filter(|b| b.device == node.device) {
                node.seconds =
                    (node.seconds + before.seconds / f64::from(before.runs.max(1))) / 2.0;
            }
            self.nodes.insert(name, node);
        }
    }

    /// The difference between these costs and those of a prediction: the sum of all differences as
    /// a share of all costs.
    pub fn distance(&self, predicted: &[super::simulate::PredictedNode]) -> f64 {
        let (mut apart, mut all) = (0.0, 0.0);
        for node in predicted {
            all += node.seconds;
            let measured = self.nodes.get(&node.name).filter(|m| m.device == node.device);
            if let Some(measured) = measured {
                let seconds = measured.seconds / f64::from(measured.runs.max(1));
                apart += (seconds - node.seconds).abs();
            }
        }
        if all > 0.0 { apart / all } else { 0.0 }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The mean time of a node.
    pub fn seconds(&self, name: &str) -> Option<f64> {
        self.nodes.get(name).map(|n| n.seconds / f64::from(n.runs.max(1)))
    }

    fn bytes(&self, name: &str, slot: usize) -> Option<f64> {
        self.nodes.get(name)?.bytes.get(slot).copied()
    }
}

/// The costs of the nodes of one graph.
pub struct NodeCosts {
    /// Seconds of each node: measured if possible, else on a device with the speed of the model.
    pub seconds: Vec<f64>,
    /// Bytes of each output of each node.
    pub bytes: Vec<Vec<f64>>,
    work: Vec<NodeWork>,
    /// The device of each measurement; `None` for a node that has only an estimate.
    measured_on: Vec<Option<MeasuredDevice>>,
}

#[derive(Clone, Copy)]
enum MeasuredDevice {
    /// The node is part of another one, or its device is not among those of the session.
    Any,
    At(Rates),
}

impl NodeCosts {
    /// Seconds of a node on a device.
    pub(super) fn on(&self, id: NodeId, device: Rates) -> f64 {
        let i = id.index();
        let seconds = self.seconds[i];
        match self.measured_on[i] {
            None => self.work[i].seconds(device),
            Some(MeasuredDevice::Any) => seconds,
            // The estimates say by how much another device is faster.
            Some(MeasuredDevice::At(rates)) => {
                let (here, there) = (self.work[i].seconds(rates), self.work[i].seconds(device));
                if here > 0.0 { seconds * there / here } else { seconds }
            }
        }
    }
}

/// The speed of the processor for which kernels declare the cost of an element.
const DECLARED_FLOPS: f64 = 1e11;

impl CostModel {
    /// The costs of `graph`. `given` holds shapes that are known from elsewhere, such as those of
    /// feeds.
    pub fn costs(&self, graph: &GraphIr, given: &HashMap<NodeId, PartialShape>) -> NodeCosts {
        self.costs_on(graph, given, &[])
    }

    /// The same; the measurements may come from any of `devices`.
    pub(super) fn costs_on(
        &self,
        graph: &GraphIr,
        given: &HashMap<NodeId, PartialShape>,
        devices: &[Arc<DeviceInfo>],
    ) -> NodeCosts {
        let rates: HashMap<&str, Rates> =
            devices.iter().map(|d| (d.text.as_str(), self.rates(d))).collect();
        let shapes = infer_given(graph, given);
        let sizes: Vec<Vec<Vec<usize>>> =
            shapes.iter().map(|outputs| outputs.iter().map(guessed).collect()).collect();
        let mut costs = NodeCosts {
            seconds: Vec::new(),
            bytes: Vec::new(),
            work: Vec::new(),
            measured_on: Vec::new(),
        };
        let own = Rates { flops: self.flops, memory: self.memory };
        for (id, node) in graph.iter() {
            let bytes = node.output_types.iter().enumerate().map(|(slot, port)| {
                let measured = self.measured.bytes(&node.name, slot);
                measured.unwrap_or_else(|| elements(&sizes[id.index()][slot]) * width(port.dtype))
            });
            costs.bytes.push(bytes.collect());
        }
        for (id, node) in graph.iter() {
            let work = {
                let from = |e: &crate::Endpoint| sizes[e.node.index()].get(e.slot as usize);
                let inputs: Vec<Vec<usize>> =
                    node.inputs.iter().map(|e| from(e).cloned().unwrap_or_default()).collect();
                let outputs = &sizes[id.index()];
                let read = node.inputs.iter().map(|e| {
                    costs.bytes[e.node.index()].get(e.slot as usize).copied().unwrap_or(0.0)
                });
                let written: f64 = costs.bytes[id.index()].iter().sum();
                let sizes = NodeSizes { attrs: &node.attrs, inputs: &inputs, outputs };
                self.work(node, &sizes, read.sum::<f64>() + written)
            };
            let measured = self.measured.nodes.get(&node.name);
            costs.measured_on.push(measured.map(|m| match rates.get(m.device.as_str()) {
                Some(rates) => MeasuredDevice::At(*rates),
                None => MeasuredDevice::Any,
            }));
            let seconds = self.measured.seconds(&node.name);
            costs.seconds.push(seconds.unwrap_or_else(|| work.seconds(own)));
            costs.work.push(work);
        }
        self.leave_out_fused(graph, &mut costs);
        costs
    }

    /// The work of a node that reads and writes `bytes` bytes.
    fn work(&self, node: &Node, sizes: &NodeSizes<'_>, bytes: f64) -> NodeWork {
        let fixed = self.node;
        if is_free(node) {
            return NodeWork { fixed, ..NodeWork::default() };
        }
        if let Some(flops) = node.op.flops {
            return NodeWork { fixed, flops: flops(sizes), bytes };
        }
        let per_element = node.op.blocks.and_then(|of| of(&node.attrs)).map(|b| match b {
            AnyBlockKernel::F32(BlockKernel { cost, .. })
            | AnyBlockKernel::F64(BlockKernel { cost, .. }) => cost as f64 * 1e-9,
        });
        // Assume a few operations on each element that is read or written.
        let flops = match (per_element, node.op.cost) {
            (Some(seconds), _) => sizes.output(0) * seconds * DECLARED_FLOPS,
            (None, OpCost::Cheap) => 0.0,
            (None, OpCost::Expensive) => 8.0 * bytes,
        };
        NodeWork { fixed, flops, bytes }
    }

    /// A node without measurements whose consumers have some was fused into them and costs nothing.
    fn leave_out_fused(&self, graph: &GraphIr, costs: &mut NodeCosts) {
        if self.measured.is_empty() {
            return;
        }
        let consumers = graph.consumers();
        let is_seen = |id: NodeId| self.measured.seconds(&graph.node(id).name).is_some();
        for id in graph.ids() {
            let by = &consumers[id.index()];
            if !is_seen(id) && !by.is_empty() && by.iter().all(|(c, _)| is_seen(*c)) {
                costs.seconds[id.index()] = 0.0;
                costs.measured_on[id.index()] = Some(MeasuredDevice::Any);
            }
        }
    }
}

/// Whether a node only passes values on, or has none.
fn is_free(node: &Node) -> bool {
    let role = matches!(
        node.op.role,
        OpRole::Constant
            | OpRole::Identity
            | OpRole::NoOp
            | OpRole::Placeholder
            | OpRole::Argument
            | OpRole::Return
            | OpRole::Send
            | OpRole::Recv
    );
    let is_bound = |port: &crate::PortType| port.is_ref || port.dtype == DType::Resource;
    role || node.op.is_metadata
        || node.op.control_flow.is_some()
        || (node.inputs.is_empty() && node.output_types.iter().all(is_bound))
}

/// Bytes of an element; a guess for dtypes of variable size.
fn width(dtype: DType) -> f64 {
    dtype.size().unwrap_or(32) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attrs;
    use crate::catalog::Catalog;
    use crate::def::{GraphDef, NodeDef};
    use crate::passes::simulate::PredictedNode;
    use crate::shape;
    use ferroflow_core::DeviceSpeed;

    fn graph() -> GraphIr {
        let mut c = Catalog::new();
        c.op("In").output("y: float").attr("shape: shape").shape(shape::from_attr);
        c.op("MatMul")
            .input("a: float")
            .input("b: float")
            .output("c: float")
            .flops(|s| 2.0 * s.output(0) * s.input_dim(0, 0))
            .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0), c.input(1).dim(1)])]));
        c.op("Pass")
            .input("x: float")
            .output("y: float")
            .role(OpRole::Identity)
            .shape(shape::same_as_input);
        let node = |name: &str, op: &str, inputs: &[&str], dims: &[i64]| NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs: match op {
                "In" => Attrs::new().with("shape", PartialShape::from_i64s(dims).unwrap()),
                _ => Attrs::new(),
            },
            ..NodeDef::default()
        };
        let nodes = vec![
            node("x", "In", &[], &[-1, 1000]),
            node("w", "In", &[], &[1000, 2000]),
            node("y", "MatMul", &["x", "w"], &[]),
            node("z", "Pass", &["y"], &[]),
        ];
        GraphIr::from_def(&GraphDef { nodes, ..GraphDef::default() }, &c).unwrap()
    }

    #[test]
    fn time_follows_from_shapes_and_declared_flops() {
        let (graph, mut model) = (graph(), CostModel::default());
        let costs = model.costs(&graph, &HashMap::new());
        assert_eq!(costs.bytes[1], [8e6]);
        assert_eq!(costs.bytes[2], [32.0 * 2000.0 * 4.0]);
        // 128 million operations; reading 8 MB takes less.
        assert!((costs.seconds[2] - 2.0 * 32.0 * 1000.0 * 2000.0 / 1e11 - model.node).abs() < 1e-9);
        assert_eq!(costs.seconds[3], model.node);

        let given = HashMap::from([(NodeId(0), PartialShape::from([1, 1000]))]);
        let costs = model.costs(&graph, &given);
        assert!((costs.seconds[2] - model.node - 8.012e6 / 1e10).abs() < 1e-9, "memory is slower");

        model.measured.add("y", 0.25, [(0, 100.0)]);
        model.measured.add("y", 0.75, [(0, 200.0)]);
        let costs = model.costs(&graph, &HashMap::new());
        assert_eq!((costs.seconds[2], &costs.bytes[2][..]), (0.5, &[200.0][..]));
        assert_eq!(costs.seconds[1], 0.0, "it was a part of what was measured");
    }

    #[test]
    fn a_slower_device_takes_longer_for_what_was_estimated_and_measured() {
        let device = |task, flops: f64| {
            let device = DeviceInfo::cpu("worker", task, 0, 1);
            device.speed.set(DeviceSpeed { flops, bandwidth: 1e12, memory: 0 }).unwrap();
            Arc::new(device)
        };
        let devices = [device(0, 1e11), device(1, 1e10)];
        let (graph, mut model) = (graph(), CostModel { node: 0.0, ..CostModel::default() });
        let [fast, slow] = [0, 1].map(|i| model.rates(&devices[i]));
        let y = NodeId(2);
        let costs = model.costs_on(&graph, &HashMap::new(), &devices);
        assert!((costs.on(y, slow) / costs.on(y, fast) - 10.0).abs() < 1e-9);
        // Measured on the slow device, so the fast one needs a tenth.
        model.measured.add_on(&devices[1].text, "y", 2.0, [(0, 8.0)]);
        let costs = model.costs_on(&graph, &HashMap::new(), &devices);
        assert!((costs.on(y, slow) - 2.0).abs() < 1e-9 && (costs.on(y, fast) - 0.2).abs() < 1e-9);
        let fixed = CostModel::fixed(1e9);
        assert_eq!(fixed.rates(&devices[0]).flops, fixed.rates(&devices[1]).flops);
    }

    #[test]
    fn later_measurements_count_half() {
        let mut costs = MeasuredCosts::default();
        let measured = |seconds| {
            let mut later = MeasuredCosts::default();
            later.add_on("d", "y", seconds, []);
            later
        };
        for (seconds, mean) in [(1.0, 1.0), (3.0, 2.0), (2.0, 2.0)] {
            costs.follow(measured(seconds));
            assert_eq!(costs.seconds("y"), Some(mean));
        }
        let predicted = |seconds| {
            vec![PredictedNode { name: "y".into(), device: "d".into(), seconds, begins: 0.0 }]
        };
        assert_eq!(costs.distance(&predicted(2.0)), 0.0);
        assert_eq!(costs.distance(&predicted(1.0)), 1.0);
        assert_eq!(costs.distance(&[]), 0.0);
    }
}
