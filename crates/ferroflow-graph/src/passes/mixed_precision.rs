//! Mixed precision: nodes that are fast and safe with 16-bit floats compute with them.
//!
//! Each op declares its class, as TensorFlow's `auto_mixed_precision` lists them. Products and
//! convolutions (`Allow`) are converted. Nodes between them follow if their op keeps the precision
//! (`Infer`) or does not care (`Clear`). Nodes that follow one that needs the range of `float`
//! (`Deny`) are not converted. Casts are inserted where a converted node meets another one.
//! Variables, fed values and fetched values keep their type.

use super::Pruned;
use crate::attr::{AttrValue, Attrs};
use crate::catalog::Catalog;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{AttrKind, OpDef, PortType};
use ferroflow_core::{DType, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// What 16-bit floats mean to an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrecisionClass {
    /// It is never converted.
    #[default]
    Unlisted,
    /// It is much faster with 16-bit floats, and safe.
    Allow,
    /// It is safe if its inputs are in range; converted between converted nodes.
    Infer,
    /// It only moves or compares values; converted if a neighbour is.
    Clear,
    /// It needs the range of `float`.
    Deny,
}

/// How graphs are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedPrecision {
    /// `half` or `bfloat16`.
    pub dtype: DType,
    /// Converts nodes on CPUs instead of those on GPUs.
    pub on_cpu: bool,
}

/// Converts the nodes of `step` that are safe with 16-bit floats.
pub fn mix_precision(step: &mut Pruned, catalog: &Catalog, wanted: MixedPrecision) {
    let Some(cast) = catalog.get("Cast") else { return };
    let graph = &mut step.graph;
    let converted: Vec<Option<Converted>> =
        graph.iter().map(|(_, node)| Converted::of(node, wanted)).collect();
    let chosen = Classes::of(graph, &converted).chosen();
    let mut is_changed = false;
    for (id, node) in graph.ids().zip(converted) {
        if let Some(node) = node.filter(|_| chosen[id.index()]) {
            let old = graph.node_mut(id);
            (old.attrs, old.input_types) = (Arc::new(node.attrs), node.inputs);
            old.output_types = node.outputs;
            is_changed = true;
        }
    }
    if is_changed {
        Casts { cast, low: wanted.dtype, made: HashMap::new() }.insert(graph);
    }
}

/// A node with 16-bit floats in place of its `float` types.
struct Converted {
    attrs: Attrs,
    inputs: Vec<PortType>,
    outputs: Vec<PortType>,
}

impl Converted {
    /// `None` if the op is of no class, or has no kernel for the type.
    fn of(node: &Node, wanted: MixedPrecision) -> Option<Converted> {
        let on_gpu = node.device.contains("/device:GPU:");
        let ports = || node.input_types.iter().chain(&node.output_types);
        if on_gpu == wanted.on_cpu
            || matches!(node.op.precision, PrecisionClass::Unlisted | PrecisionClass::Deny)
            || ports().any(|port| port.is_ref)
        {
            return None;
        }
        let mut attrs = Attrs::clone(&node.attrs);
        let low = AttrValue::Type(wanted.dtype);
        for def in node.op.attrs.iter().filter(|def| def.kind == AttrKind::Type && !def.is_list) {
            let is_float = node.attrs.dtype(&def.name).is_ok_and(|t| t == DType::Float);
            if is_float && def.check(&low).is_ok() {
                attrs.set(def.name.clone(), low.clone());
            }
        }
        let has_kernel = if on_gpu { node.op.runs_on_gpu(&attrs) } else { node.op.cpu.is_some() };
        let side = |args: &[crate::op_def::ArgDef]| -> Result<Vec<PortType>> {
            let mut all = Vec::new();
            for arg in args {
                all.extend(arg.port_types(&attrs)?);
            }
            Ok(all)
        };
        let (inputs, outputs) = (side(&node.op.inputs).ok()?, side(&node.op.outputs).ok()?);
        let is_changed = inputs != node.input_types || outputs != node.output_types;
        (has_kernel && is_changed).then_some(Converted { attrs, inputs, outputs })
    }
}

/// The classes of a graph's nodes, and the consumers of each.
struct Classes<'a> {
    graph: &'a GraphIr,
    /// Whether a node can be converted.
    can: Vec<bool>,
    consumers: Vec<Vec<NodeId>>,
}

impl<'a> Classes<'a> {
    fn of(graph: &'a GraphIr, converted: &[Option<Converted>]) -> Classes<'a> {
        let mut consumers = vec![Vec::new(); graph.len()];
        for (id, node) in graph.iter() {
            // Shapes and indices carry no precision.
            let floats = node.inputs.iter().zip(&node.input_types);
            for (e, _) in floats.filter(|(_, port)| port.dtype == DType::Float) {
                consumers[e.node.index()].push(id);
            }
        }
        Classes { graph, can: converted.iter().map(Option::is_some).collect(), consumers }
    }

    fn class(&self, id: NodeId) -> PrecisionClass {
        self.graph.node(id).op.precision
    }

    fn has_class(&self, id: NodeId, classes: &[PrecisionClass]) -> bool {
        classes.contains(&self.class(id))
    }

    fn sources(&self, id: NodeId) -> Vec<NodeId> {
        let node = self.graph.node(id);
        let floats = node.inputs.iter().zip(&node.input_types);
        floats.filter(|(_, port)| port.dtype == DType::Float).map(|(e, _)| e.node).collect()
    }

    /// The nodes that can be reached from `roots` in steps of `next` over nodes that `enters`
    /// accepts, with the roots.
    fn reached(
        &self,
        roots: impl Iterator<Item = NodeId>,
        next: impl Fn(NodeId) -> Vec<NodeId>,
        enters: impl Fn(NodeId) -> bool,
    ) -> Vec<bool> {
        let mut seen = vec![false; self.graph.len()];
        let mut queue: Vec<NodeId> = roots.collect();
        queue.iter().for_each(|id| seen[id.index()] = true);
        while let Some(id) = queue.pop() {
            for neighbour in next(id) {
                if !seen[neighbour.index()] && enters(neighbour) {
                    seen[neighbour.index()] = true;
                    queue.push(neighbour);
                }
            }
        }
        seen
    }

    /// The nodes to convert.
    fn chosen(&self) -> Vec<bool> {
        use PrecisionClass::{Allow, Clear, Deny, Infer};
        let of = |classes: &'static [PrecisionClass]| {
            self.graph.ids().filter(move |id| self.has_class(*id, classes))
        };
        let marked = |set: &[bool]| {
            let set = set.to_vec();
            self.graph.ids().filter(move |id| set[id.index()])
        };
        let (down, up) =
            (|id: NodeId| self.consumers[id.index()].clone(), |id: NodeId| self.sources(id));

        // What follows a denied node is denied, if it leads to a node that computes.
        let before_infer = self.reached(of(&[Deny, Infer]), up, |id| self.has_class(id, &[Clear]));
        let denied = self.reached(of(&[Deny]), down, |id| {
            before_infer[id.index()] && self.has_class(id, &[Infer, Clear])
        });
        let passes = |id: NodeId| {
            self.can[id.index()] && !denied[id.index()] && self.has_class(id, &[Infer, Clear])
        };

        // Nodes between allowed ones.
        let allowed = || of(&[Allow]).filter(|id| self.can[id.index()]);
        let after = self.reached(allowed(), down, passes);
        let between = self.reached(allowed(), up, |id| after[id.index()] && passes(id));

        // Their neighbours that do not care.
        self.reached(
            marked(&between),
            |id| {
                let mut all = down(id);
                all.extend(up(id));
                all
            },
            |id| passes(id) && self.has_class(id, &[Clear]),
        )
    }
}

/// Inserts casts between nodes whose types differ now.
struct Casts<'a> {
    cast: &'a Arc<OpDef>,
    low: DType,
    made: HashMap<(Endpoint, DType, String), Endpoint>,
}

impl Casts<'_> {
    fn insert(mut self, graph: &mut GraphIr) {
        for id in graph.ids() {
            for i in 0..graph.node(id).inputs.len() {
                let node = graph.node(id);
                let (e, to) = (node.inputs[i], node.input_types[i].dtype);
                let from = graph.type_of(e).dtype;
                if from != to && [DType::Float, self.low].contains(&to) {
                    let device = node.device.clone();
                    graph.node_mut(id).inputs[i] = self.made(graph, e, from, to, device);
                }
            }
        }
    }

    fn made(
        &mut self,
        graph: &mut GraphIr,
        e: Endpoint,
        from: DType,
        to: DType,
        device: String,
    ) -> Endpoint {
        let key = (e, to, device);
        if let Some(known) = self.made.get(&key) {
            return *known;
        }
        let source = graph.node(e.node);
        let port = |dtype| vec![PortType { dtype, is_ref: false }];
        let attrs = Attrs::new().with("SrcT", from).with("DstT", to).with("Truncate", false);
        let node = Node {
            name: graph.unique_name(&format!("{}/to_{to}_{}", source.name, e.slot)),
            op: self.cast.clone(),
            attrs: Arc::new(attrs),
            inputs: vec![e],
            controls: Vec::new(),
            input_types: port(from),
            output_types: port(to),
            device: key.2.clone(),
            original_names: vec![source.display_name().to_string()],
        };
        let made = Endpoint::new(graph.push(node).expect("the name is free"), 0);
        self.made.insert(key, made);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphDef, NodeDef};

    const GPU: &str = "/job:worker/replica:0/task:0/device:GPU:0";
    const HALF: MixedPrecision = MixedPrecision { dtype: DType::Half, on_cpu: false };

    fn catalog() -> Catalog {
        let mut c = Catalog::new();
        c.op("Read").output("y: float").anywhere();
        c.op("Keep").input("x: float").output("y: float").anywhere();
        c.op("Cast")
            .input("x: SrcT")
            .output("y: DstT")
            .attr("SrcT: type")
            .attr("DstT: type")
            .attr("Truncate: bool = false")
            .anywhere();
        for (name, class) in [
            ("Product", PrecisionClass::Allow),
            ("Bias", PrecisionClass::Infer),
            ("Relu", PrecisionClass::Clear),
            ("Sum", PrecisionClass::Deny),
        ] {
            c.op(name).input("x: T").output("y: T").attr("T: {half, float} = DT_FLOAT").anywhere();
            c.set_precision(&[name], class);
        }
        c
    }

    /// Names and types of the first output of all nodes after the pass.
    fn mixed(lines: &[(&str, &str, &str)], device: &str) -> Vec<(String, DType)> {
        let node = |(name, op, from): &(&str, &str, &str)| NodeDef {
            name: name.to_string(),
            op: op.to_string(),
            inputs: Some(from.to_string()).into_iter().filter(|from| !from.is_empty()).collect(),
            device: device.into(),
            ..NodeDef::default()
        };
        let def = GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() };
        let graph = GraphIr::from_def(&def, &catalog()).unwrap();
        let mut step = Pruned { graph, args: Vec::new(), rets: Vec::new() };
        mix_precision(&mut step, &catalog(), HALF);
        let types = step.graph.iter().map(|(_, n)| (n.name.clone(), n.output_types[0].dtype));
        types.collect()
    }

    fn type_of(all: &[(String, DType)], name: &str) -> DType {
        all.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name} in {all:?}")).1
    }

    const CHAIN: &[(&str, &str, &str)] = &[
        ("w", "Read", ""),
        ("a", "Product", "w"),
        ("bias", "Bias", "a"),
        ("relu", "Relu", "bias"),
        ("b", "Product", "relu"),
        ("last", "Bias", "b"),
        ("sum", "Sum", "last"),
        ("after", "Relu", "sum"),
        ("kept", "Keep", "after"),
    ];

    #[test]
    fn nodes_between_products_are_converted() {
        let all = mixed(CHAIN, GPU);
        for name in ["a", "bias", "relu", "b"] {
            assert_eq!(type_of(&all, name), DType::Half, "{name}: {all:?}");
        }
        for name in ["w", "last", "sum", "after", "kept"] {
            assert_eq!(type_of(&all, name), DType::Float, "{name}: {all:?}");
        }
        assert_eq!(type_of(&all, "w/to_half_0"), DType::Half);
        assert_eq!(type_of(&all, "b/to_float_0"), DType::Float);
        assert_eq!(all.len(), CHAIN.len() + 2);
    }

    #[test]
    fn what_follows_a_denied_node_keeps_its_type() {
        let lines = [
            ("w", "Read", ""),
            ("sum", "Sum", "w"),
            ("bias", "Bias", "sum"),
            ("a", "Product", "bias"),
            ("kept", "Keep", "a"),
        ];
        let all = mixed(&lines, GPU);
        assert_eq!(type_of(&all, "bias"), DType::Float);
        assert_eq!(type_of(&all, "a"), DType::Half);
    }

    #[test]
    fn nodes_on_other_devices_are_not_touched() {
        let all = mixed(CHAIN, "/job:worker/replica:0/task:0/device:CPU:0");
        assert_eq!(all.len(), CHAIN.len());
    }
}
