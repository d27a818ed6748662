//! Partitioning: cuts the graph of a step into one graph for each task, with a Send and a Recv for
//! each edge between tasks. Together they compute what the whole graph computes.

mod control_flow;
mod late;
mod loops;

use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::def::{GraphDef, NodeDef};
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::passes::cost::CostModel;
use crate::passes::read_order::order_across_tasks;
use crate::passes::variables::VariableUses;
use crate::passes::waits::{PROMPT, Waits};
use ferroflow_core::{DType, DeviceInfo, DeviceName, Result, Tensor, err};
pub(super) use loops::Loops;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The part of a step that one task runs.
pub struct Partition {
    /// `/job:J/replica:R/task:T`.
    pub task: String,
    /// Its nodes.
    pub graph: GraphDef,
}

/// Cuts `graph`, whose nodes are all placed on one of `devices`.
///
/// A tensor that several nodes of a task need is sent there once. The value of a reference is read
/// and sent for each node. So is an alias of a variable, for a node that follows an update. A
/// control edge becomes the transfer of an empty tensor. If a loop spans tasks, each task without
/// the loop condition gets a loop of control edges that follows the condition, so that it receives
/// values once in each iteration. If `model` predicts that a value arrives long before it is
/// needed, the task receives it later.
pub fn partition(
    mut graph: GraphIr,
    devices: &[Arc<DeviceInfo>],
    catalog: &Catalog,
    model: &CostModel,
) -> Result<Vec<Partition>> {
    control_flow::colocate(&mut graph);
    let mut tasks = Tasks::new(devices);
    let mut task_of = tasks.of_nodes(&graph)?;
    order_across_tasks(&mut graph, &mut task_of, catalog)?;
    let mut loops = Loops::find(&graph)?;
    loops.follow(&mut graph, &mut task_of, catalog)?;
    let variables = VariableUses::of(&graph);
    let cutter = Cutter {
        parts: vec![Vec::new(); tasks.names.len()],
        graph: &graph,
        devices,
        task_of: &task_of,
        loops: &loops,
        waits: Waits::of(&graph),
        after_updates: variables.after_updates(&graph),
        variables: &variables,
        late: late::late_receives(&graph, &task_of, model),
        received: HashMap::new(),
        made: HashSet::new(),
        next_name: 0,
        next_edge: 0,
    };
    let parts = cutter.cut()?;
    let with_graph = |(task, nodes): (String, Vec<NodeDef>)| {
        let reachable = graph.library.reachable(nodes.iter().map(|n| (n.op.as_str(), &n.attrs)));
        let graph = GraphDef {
            nodes,
            functions: reachable.functions().cloned().collect(),
            gradients: reachable.gradients().clone(),
            versions: graph.versions.clone(),
        };
        Partition { task, graph }
    };
    let parts = tasks.names.into_iter().zip(parts).filter(|(_, nodes)| !nodes.is_empty());
    Ok(parts.map(with_graph).collect())
}

/// The tasks of the nodes, in order of appearance.
struct Tasks<'d> {
    names: Vec<String>,
    of_device: HashMap<&'d str, DeviceName>,
}

impl<'d> Tasks<'d> {
    fn new(devices: &'d [Arc<DeviceInfo>]) -> Tasks<'d> {
        let of_device = devices.iter().map(|d| (d.text.as_str(), d.name.clone())).collect();
        Tasks { names: Vec::new(), of_device }
    }

    fn of_nodes(&mut self, graph: &GraphIr) -> Result<Vec<u32>> {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut all = Vec::with_capacity(graph.len());
        for (_, node) in graph.iter() {
            let task = match known.get(node.device.as_str()) {
                Some(task) => *task,
                None => {
                    let name = self.of_device.get(node.device.as_str()).ok_or_else(|| {
                        err!(Internal, "'{}' is on {:?}, no device", node.name, node.device)
                    })?;
                    let task = self.number(name.task_name());
                    known.insert(&node.device, task);
                    task
                }
            };
            all.push(task);
        }
        Ok(all)
    }

    fn number(&mut self, name: String) -> u32 {
        let found = self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        found as u32
    }
}

/// What an edge between tasks carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sent {
    Value(Endpoint),
    /// The fact that a node has run.
    Control(NodeId),
}

impl Sent {
    fn source(self) -> NodeId {
        match self {
            Sent::Value(e) => e.node,
            Sent::Control(id) => id,
        }
    }
}

/// A value that a task receives.
#[derive(Clone)]
struct Received {
    /// The endpoint for consumers.
    name: String,
    /// The Recv node in its part.
    at: usize,
}

struct Cutter<'a> {
    graph: &'a GraphIr,
    devices: &'a [Arc<DeviceInfo>],
    task_of: &'a [u32],
    loops: &'a Loops,
    waits: Waits,
    variables: &'a VariableUses,
    /// Variables, and the nodes that come after an update of them.
    after_updates: HashSet<(u32, NodeId)>,
    /// Nodes that the receives of some values wait for.
    late: HashMap<(Endpoint, u32), NodeId>,
    parts: Vec<Vec<NodeDef>>,
    /// Transfers that exist already.
    received: HashMap<(Sent, u32), Received>,
    /// The names of added nodes.
    made: HashSet<String>,
    next_name: u32,
    next_edge: u32,
}

impl Cutter<'_> {
    fn cut(mut self) -> Result<Vec<Vec<NodeDef>>> {
        for (id, node) in self.graph.iter() {
            let def = self.node(id, node)?;
            self.parts[self.task_of[id.index()] as usize].push(def);
        }
        Ok(self.parts)
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<NodeDef> {
        let task = self.task_of[id.index()];
        let (mut inputs, mut controls) = (Vec::new(), Vec::new());
        // References from another task are read late: after the other inputs of the node.
        let (mut references, mut others) = (Vec::new(), Vec::new());
        for &e in &node.inputs {
            let is_ref = self.graph.type_of(e).is_ref;
            let from = &self.graph.node(e.node).name;
            if self.task_of[e.node.index()] == task {
                inputs.push(tensor_name(from, e.slot));
                if !is_ref {
                    others.push(from.clone());
                }
                continue;
            }
            if is_ref || self.is_new_value(e.node, id) {
                let after = self.known_at(e.node, node)?;
                let received = self.transfer(Sent::Value(e), id, after)?;
                inputs.push(received.name.clone());
                references.push(received.at);
            } else {
                let received = self.received(Sent::Value(e), id)?;
                inputs.push(received.name.clone());
                others.push(received.name);
            }
        }
        for &c in &node.controls {
            let name = if self.task_of[c.index()] == task {
                self.graph.node(c).name.clone()
            } else {
                self.received(Sent::Control(c), id)?.name
            };
            others.push(name.clone());
            controls.push(format!("^{name}"));
        }
        for at in references {
            let recv = &mut self.parts[task as usize][at];
            recv.inputs.extend(others.iter().map(|name| format!("^{name}")));
        }
        controls.dedup();
        inputs.extend(controls);
        Ok(NodeDef {
            name: node.name.clone(),
            op: node.op.name.clone(),
            inputs,
            device: node.device.clone(),
            attrs: (*node.attrs).clone(),
            full_type: None,
            original_names: node.original_names.clone(),
        })
    }

    /// Whether `source` is an alias of a variable whose value after an update `reader` must see.
    fn is_new_value(&self, source: NodeId, reader: NodeId) -> bool {
        let mut variables = self.variables.aliased(source).iter();
        variables.any(|&v| self.after_updates.contains(&(v, reader)))
    }

    fn received(&mut self, sent: Sent, by: NodeId) -> Result<Received> {
        let key = (sent, self.task_of[by.index()]);
        if let Some(known) = self.received.get(&key) {
            return Ok(known.clone());
        }
        let received = self.transfer(sent, by, Vec::new())?;
        self.received.insert(key, received.clone());
        Ok(received)
    }

    /// The nodes after which the task of the variable `source` may read it for `reader`, which is
    /// on another task: a read must not happen before the control inputs of the reader.
    fn known_at(&mut self, source: NodeId, reader: &Node) -> Result<Vec<String>> {
        let here = self.task_of[source.index()];
        let is_here = |id: NodeId| self.task_of[id.index()] == here;
        let data = reader.inputs.iter().map(|e| e.node).filter(|id| is_here(*id) && *id != source);
        let mut names: Vec<String> = data.map(|id| self.graph.node(id).name.clone()).collect();
        for &c in &reader.controls {
            names.push(match is_here(c) {
                true => self.graph.node(c).name.clone(),
                false => self.received(Sent::Control(c), source)?.name,
            });
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Adds a transfer to the task of `by` that waits for nodes of the sending task.
    fn transfer(&mut self, sent: Sent, by: NodeId, after: Vec<String>) -> Result<Received> {
        let source = sent.source();
        let (from, to) = (self.graph.node(source), self.graph.node(by));
        let (here, there) = (self.task_of[source.index()], self.task_of[by.index()]);
        let (value, dtype) = match sent {
            Sent::Value(e) => (tensor_name(&from.name, e.slot), self.graph.type_of(e).dtype),
            Sent::Control(_) => {
                let name = self.new_name(&format!("{}/ctrl", from.name));
                let inputs = vec![format!("^{}", from.name)];
                self.parts[here as usize].push(node_def(
                    &name,
                    "Const",
                    inputs,
                    &from.device,
                    nothing()?,
                ));
                (name, DType::Float)
            }
        };
        let incarnation = self.devices.iter().find(|d| d.text == from.device);
        let incarnation = incarnation.map_or(0, |d| d.incarnation) as i64;
        let tensor = format!("edge_{}_{}", self.next_edge, from.name);
        self.next_edge += 1;
        let attrs = Attrs::new()
            .with("tensor_name", tensor.as_str())
            .with("send_device", from.device.as_str())
            .with("send_device_incarnation", incarnation)
            .with("recv_device", to.device.as_str())
            .with("client_terminated", false)
            .with("_src", from.name.as_str())
            .with("_dst", to.name.as_str());
        let name = self.new_name(&from.name);
        let send = attrs.clone().with("T", dtype);
        let mut inputs = vec![value];
        inputs.extend(after.iter().map(|name| format!("^{name}")));
        self.parts[here as usize].push(node_def(&name, "_Send", inputs, &from.device, send));

        let recv = self.new_name(&from.name);
        let mut attrs = attrs.with("tensor_type", dtype);
        if self.waits.is_prompt(source) {
            attrs.set(PROMPT, true);
        }
        let late = match sent {
            Sent::Value(e) => self.late.get(&(e, there)).copied(),
            Sent::Control(_) => None,
        };
        let controls = self.loops.pivot(source, there).or(late).map(|id| {
            let name = &self.graph.node(id).name;
            format!("^{name}")
        });
        let part = &mut self.parts[there as usize];
        let at = part.len();
        part.push(node_def(&recv, "_Recv", controls.into_iter().collect(), &to.device, attrs));
        if let Sent::Value(_) = sent {
            return Ok(Received { name: recv, at });
        }
        // Only a node with a data input can stand for the arrival.
        let name = self.new_name(&from.name);
        let attrs = Attrs::new().with("T", DType::Float);
        let arrived = node_def(&name, "Identity", vec![recv], &to.device, attrs);
        self.parts[there as usize].push(arrived);
        Ok(Received { name, at })
    }

    fn new_name(&mut self, base: &str) -> String {
        loop {
            let name = format!("{base}_S{}", self.next_name);
            self.next_name += 1;
            if self.graph.find(&name).is_none() && self.made.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn node_def(name: &str, op: &str, inputs: Vec<String>, device: &str, attrs: Attrs) -> NodeDef {
    NodeDef {
        name: name.to_string(),
        op: op.to_string(),
        inputs,
        device: device.to_string(),
        attrs,
        ..NodeDef::default()
    }
}

fn tensor_name(node: &str, slot: u32) -> String {
    if slot == 0 { node.to_string() } else { format!("{node}:{slot}") }
}

/// A constant that is an empty tensor, for nodes that only wait for it.
fn nothing() -> Result<Attrs> {
    Ok(Attrs::new().with("dtype", DType::Float).with("value", Tensor::zeros(DType::Float, [0])?))
}

#[cfg(test)]
mod tests;
