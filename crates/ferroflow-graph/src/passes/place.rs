//! Placement: every node gets the full name of a device.
//!
//! Nodes that must share a device form groups: both ends of an edge that carries a reference or a
//! resource, and nodes that name each other in `_class`. A group goes to the first device that
//! matches the requests of its members. As in TensorFlow, a GPU comes first if all members have
//! kernels for it. Devices of the session's own task come before others. Nodes that were placed
//! before stay where they are.

mod by_cost;
mod groups;
mod specs;

pub use by_cost::{
    PlacementOption, PlacementReason, explain_place_by_cost, place_by_cost, predict,
};

use crate::graph::{GraphIr, Node, NodeId};
use crate::op_def::PortType;
use ferroflow_core::{DType, DeviceInfo, DeviceName, Error, Result, bail, err};
use groups::ColocationGroups;
use specs::Specs;
use std::collections::HashMap;
use std::sync::Arc;

/// The devices on which nodes can be placed.
pub struct Devices {
    /// In order of preference.
    preferred: Vec<Arc<DeviceInfo>>,
    /// In the order in which error messages list them.
    names: String,
    has_gpus: bool,
}

impl Devices {
    /// The devices of the session's own task, and those of other tasks. A device that is neither a
    /// GPU nor a CPU is used only by nodes that request it.
    pub fn new(own: &[Arc<DeviceInfo>], others: &[Arc<DeviceInfo>]) -> Devices {
        let by_name = |devices: &[Arc<DeviceInfo>]| {
            let mut sorted = devices.to_vec();
            sorted.sort_by(|a, b| a.text.cmp(&b.text));
            sorted
        };
        let mut preferred = by_name(own);
        preferred.extend(by_name(others));
        let mut names: Vec<&str> = preferred.iter().map(|d| d.text.as_str()).collect();
        names.sort_unstable();
        let names = names.join(", ");
        preferred.sort_by_key(|d| match d.kind() {
            "GPU" => 0,
            "CPU" => 1,
            _ => 2,
        });
        let has_gpus = preferred.iter().any(|d| d.kind() == "GPU");
        Devices { preferred, names, has_gpus }
    }

    fn first_match(&self, wanted: &DeviceName, needs_cpu: bool) -> Option<&Arc<DeviceInfo>> {
        let fits = |d: &&Arc<DeviceInfo>| {
            d.name.is_compatible(wanted) && !(needs_cpu && d.kind() == "GPU")
        };
        self.preferred.iter().find(fits)
    }

    /// Soft placement drops the kind and the number of the device, never the task.
    fn choose(&self, wanted: &DeviceName, needs_cpu: bool, soft: bool) -> Option<&Arc<DeviceInfo>> {
        let task = || DeviceName { kind: None, id: None, ..wanted.clone() };
        let found = self.first_match(wanted, needs_cpu);
        found.or_else(|| if soft { self.first_match(&task(), needs_cpu) } else { None })
    }
}

/// Places the nodes of `graph` from `first` on; the nodes before are placed already. With `soft`, a
/// device that does not exist is replaced by one that does, and nodes that cannot share a device
/// are separated. On an error some nodes may have been placed.
pub fn place(graph: &mut GraphIr, first: usize, devices: &Devices, soft: bool) -> Result<()> {
    Placer::grouped(graph, first, devices, soft)?.assign(graph)
}

struct Placer<'a> {
    groups: ColocationGroups,
    specs: Specs,
    devices: &'a Devices,
    soft: bool,
    first: usize,
}

impl<'a> Placer<'a> {
    /// Collects the groups and their requests. No node is placed yet.
    fn grouped(
        graph: &GraphIr,
        first: usize,
        devices: &'a Devices,
        soft: bool,
    ) -> Result<Placer<'a>> {
        let (groups, specs) = (ColocationGroups::new(graph.len()), Specs::default());
        let mut placer = Placer { groups, specs, devices, soft, first };
        if devices.has_gpus {
            placer.find_kernels(graph);
        }
        placer.read_requests(graph)?;
        placer.join_references(graph)?;
        placer.join_classes(graph)?;
        Ok(placer)
    }
}

impl Placer<'_> {
    fn new_nodes<'g>(
        &self,
        graph: &'g GraphIr,
    ) -> impl Iterator<Item = (NodeId, &'g Node)> + use<'g> {
        graph.iter().skip(self.first)
    }

    /// Marks the nodes without a kernel for GPUs. Functions run on a CPU, and so does what uses
    /// the resources that they take.
    fn find_kernels(&mut self, graph: &GraphIr) {
        for (id, node) in graph.iter().skip(self.first) {
            let has_kernel = node.op.runs_on_gpu(&node.attrs);
            self.groups.of_mut(id).needs_cpu |= !has_kernel;
            if node.op.takes_resources_from_anywhere && !has_kernel {
                let resources = node.inputs.iter().zip(&node.input_types);
                for (e, _) in resources.filter(|(_, port)| is_bound(**port)) {
                    self.groups.of_mut(e.node).needs_cpu = true;
                }
            }
        }
    }

    fn read_requests(&mut self, graph: &GraphIr) -> Result<()> {
        let mut known: HashMap<&str, u32> = HashMap::new();
        for (id, node) in graph.iter().filter(|(_, n)| !n.device.is_empty()) {
            let spec = match known.get(node.device.as_str()) {
                Some(spec) => *spec,
                None => {
                    let spec = self.specs.intern(DeviceName::parse(&node.device)?);
                    known.insert(&node.device, spec);
                    spec
                }
            };
            let group = self.groups.of_mut(id);
            if id.index() < self.first {
                group.assigned = spec;
                continue;
            }
            group.requested = spec;
            if makes_a_resource(node) {
                group.resource = spec;
            }
        }
        Ok(())
    }

    /// A reference or a resource stays on its device, and so do the nodes that use it. The device
    /// of the resource has priority over the requests of those nodes.
    fn join_references(&mut self, graph: &GraphIr) -> Result<()> {
        for (id, node) in self.new_nodes(graph) {
            if node.op.takes_resources_from_anywhere {
                continue;
            }
            for (e, port) in node.inputs.iter().zip(&node.input_types) {
                if is_bound(*port) {
                    self.join_edge(graph, e.node, id)?;
                }
            }
        }
        Ok(())
    }

    fn join_edge(&mut self, graph: &GraphIr, from: NodeId, to: NodeId) -> Result<()> {
        let (source, target) = (self.groups.of(from), self.groups.of(to));
        let pairs = [
            ("assigned", source.assigned, target.assigned),
            ("resource", source.resource, target.resource),
        ];
        for (what, a, b) in pairs {
            if !self.specs.are_compatible(a, b) {
                bail!(
                    InvalidArgument,
                    "Cannot place the graph because a reference or resource edge connects \
                     colocation groups with incompatible {what} devices: {} vs {}. The edge src \
                     node is {{{{node {}}}}}, and the dst node is {{{{node {}}}}}.",
                    self.specs.get(a),
                    self.specs.get(b),
                    graph.node(from).name,
                    graph.node(to).name
                );
            }
        }
        if !self.specs.are_compatible(source.requested, target.requested) {
            self.groups.of_mut(to).requested = source.requested;
        }
        self.join(graph, from, to).map_err(|e| {
            err!(
                InvalidArgument,
                "Nodes were connected by a reference or resource connection (requiring them to be \
                 on the same device), but the two nodes were assigned two different devices: {}",
                e.message()
            )
            .at_node(&graph.node(to).name)
        })
    }

    /// `_class` lists the groups of a node as `loc:@NAME`. A node is in the group of its own name.
    /// The named node need not exist.
    fn join_classes(&mut self, graph: &GraphIr) -> Result<()> {
        let mut members: HashMap<String, NodeId> = HashMap::new();
        for (id, node) in graph.iter().filter(|(_, n)| n.attrs.contains("_class")) {
            let is_new = id.index() >= self.first;
            for class in node.attrs.byte_strings("_class").unwrap_or_default() {
                let Some(name) =
                    std::str::from_utf8(&class).ok().and_then(|c| c.strip_prefix("loc:@"))
                else {
                    continue;
                };
                let other = members.get(name).copied().or_else(|| graph.find(name));
                let other = *members.entry(name.to_string()).or_insert(other.unwrap_or(id));
                // Soft placement may have separated nodes that were placed before.
                if !is_new && other.index() < self.first {
                    continue;
                }
                match self.join(graph, id, other) {
                    Err(e) if !self.soft => return Err(e.at_node(&node.name)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, graph: &GraphIr, a: NodeId, b: NodeId) -> Result<()> {
        let Some((x, y)) = self.groups.roots(a, b) else { return Ok(()) };
        let (gx, gy) = (self.groups.at(x), self.groups.at(y));
        let merged = self.specs.merge_groups(gx, gy, self.soft).map_err(|why| {
            err!(
                InvalidArgument,
                "Cannot colocate nodes {{{{colocation_node {}}}}} and {{{{colocation_node {}}}}}: \
                 {why}",
                graph.node(a).name,
                graph.node(b).name
            )
        })?;
        self.groups.unite(x, y, merged);
        Ok(())
    }

    /// Some nodes are placed after others: a constant goes where it is used, and a node that reads
    /// only metadata goes where the tensor is.
    fn assign(&mut self, graph: &mut GraphIr) -> Result<()> {
        let is_follower =
            |node: &Node| is_generator(node) || (node.op.is_metadata && !node.inputs.is_empty());
        let mut followers = Vec::new();
        for id in graph.ids().skip(self.first) {
            if is_follower(graph.node(id)) {
                followers.push(id);
            } else {
                self.assign_one(graph, id, None)?;
            }
        }
        let mut used_on = used_on(graph, &followers);
        for id in followers {
            let node = graph.node(id);
            let beside = match is_generator(node) {
                true => used_on.remove(&id).flatten(),
                false => Some(graph.node(node.inputs[0].node).device.clone()),
            };
            self.assign_one(graph, id, beside.as_deref())?;
        }
        Ok(())
    }

    /// Assigns a node to the device of its group, and chooses that device if needed. `beside` is
    /// the preferred device, if the node can run there.
    fn assign_one(&mut self, graph: &mut GraphIr, id: NodeId, beside: Option<&str>) -> Result<()> {
        let group = self.groups.of(id);
        let device = if group.assigned != specs::OPEN {
            self.specs.get(group.assigned).to_string()
        } else {
            let wanted = self.specs.wanted(group);
            let best = beside.and_then(|beside| {
                let d = self.devices.preferred.iter().find(|d| d.text == beside)?;
                let runs = !(group.needs_cpu && d.kind() == "GPU");
                (runs && d.name.is_compatible(&wanted)).then_some(d)
            });
            let chosen = best.or_else(|| self.devices.choose(&wanted, group.needs_cpu, self.soft));
            let device = chosen.ok_or_else(|| self.nowhere(graph.node(id), &wanted))?;
            let assigned = self.specs.intern(device.name.clone());
            self.groups.of_mut(id).assigned = assigned;
            device.text.clone()
        };
        graph.node_mut(id).device = device;
        Ok(())
    }

    fn nowhere(&self, node: &Node, wanted: &DeviceName) -> Error {
        let (name, asked, names) = (&node.name, &node.device, &self.devices.names);
        let why = if asked.is_empty() {
            format!(
                "Could not satisfy device specification '{wanted}'. enable_soft_placement={}. \
                 Supported device types [CPU]. All available devices [{names}].",
                u8::from(self.soft)
            )
        } else if self.devices.first_match(wanted, false).is_some() {
            format!(
                "Could not satisfy explicit device specification '{asked}' because no supported \
                 kernel for GPU devices is available."
            )
        } else {
            let note = match wanted.kind.as_deref() {
                Some("GPU") if !self.devices.has_gpus => {
                    " The requested device appears to be a GPU, but CUDA is not enabled."
                }
                _ => "",
            };
            format!(
                "{{{{node {name}}}}} was explicitly assigned to {asked} but available devices are \
                 [ {names} ]. Make sure the device specification refers to a valid device.{note}"
            )
        };
        err!(InvalidArgument, "Cannot assign a device for operation {name}: {why}\n\t [[{name}]]")
    }
}

/// A value that cannot leave its device.
fn is_bound(port: PortType) -> bool {
    port.is_ref || port.dtype == DType::Resource
}

fn makes_a_resource(node: &Node) -> bool {
    node.inputs.is_empty() && matches!(node.output_types[..], [port] if is_bound(port))
}

/// Whether it has no inputs and one output, like a constant, so that it can run anywhere.
fn is_generator(node: &Node) -> bool {
    node.inputs.is_empty() && matches!(node.output_types[..], [port] if !port.is_ref)
}

/// For each of `nodes`, the device of its consumers, if they share one.
fn used_on(graph: &GraphIr, nodes: &[NodeId]) -> HashMap<NodeId, Option<String>> {
    let mut found: HashMap<NodeId, Option<Option<&str>>> =
        nodes.iter().map(|id| (*id, None)).collect();
    for (_, node) in graph.iter() {
        let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        for source in sources {
            let Some(device) = found.get_mut(&source) else { continue };
            *device = match device {
                None => Some(Some(&node.device)),
                Some(Some(same)) if **same == node.device => continue,
                _ => Some(None),
            };
        }
    }
    found.into_iter().map(|(id, d)| (id, d.flatten().map(str::to_string))).collect()
}

#[cfg(test)]
mod gpu_tests;
#[cfg(test)]
mod tests;
