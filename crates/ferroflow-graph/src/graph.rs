//! The graph IR: nodes by id, edges resolved, types known.

use crate::attr::Attrs;
use crate::def::{GraphDef, NodeDef, Versions};
use crate::function::FunctionLibrary;
use crate::op_def::{OpDef, PortType};
use ferroflow_core::{Result, bail, ensure, err};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Its position in the graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The node.
    pub node: NodeId,
    /// The number of the output.
    pub slot: u32,
}

impl Endpoint {
    /// Output `slot` of `node`.
    pub fn new(node: NodeId, slot: usize) -> Endpoint {
        Endpoint { node, slot: slot as u32 }
    }
}

/// A node: an op applied to inputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name, unique in the graph.
    pub name: String,
    /// The op.
    pub op: Arc<OpDef>,
    /// All attributes, defaults included.
    pub attrs: Arc<Attrs>,
    /// The inputs.
    pub inputs: Vec<Endpoint>,
    /// Nodes that must run before this one.
    pub controls: Vec<NodeId>,
    /// The types that the op takes.
    pub input_types: Vec<PortType>,
    /// The types of the outputs.
    pub output_types: Vec<PortType>,
    /// The requested device: a possibly partial device name.
    pub device: String,
    /// Names of the nodes that a rewrite made it from.
    pub original_names: Vec<String>,
}

impl Node {
    /// The name of the node in the user's graph: its own, or that of the node it was made from.
    pub fn display_name(&self) -> &str {
        self.original_names.first().unwrap_or(&self.name)
    }
}

/// A graph. Node ids are dense and stay valid, because nodes are added and never removed. A pass
/// that removes nodes makes a new graph.
#[derive(Clone, Default)]
pub struct GraphIr {
    pub(crate) nodes: Vec<Node>,
    pub(crate) names: HashMap<String, NodeId>,
    /// The functions that its nodes can call.
    pub library: FunctionLibrary,
    /// The versions of TensorFlow that wrote and may read it.
    pub versions: Versions,
}

impl GraphIr {
    /// An empty graph with these functions.
    pub fn new(library: FunctionLibrary) -> GraphIr {
        GraphIr { library, ..GraphIr::default() }
    }

    /// An empty graph as written by this version of TensorFlow.
    pub fn with_versions(versions: Versions) -> GraphIr {
        GraphIr { versions, ..GraphIr::default() }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A node, to be changed.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// The ids of all nodes, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All nodes with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The endpoint of a tensor name: `node` or `node:k`.
    pub fn endpoint(&self, name: &str) -> Result<Endpoint> {
        let (node, slot) = split_tensor_name(name);
        let id =
            self.find(node).ok_or_else(|| err!(NotFound, "node '{node}' is not in the graph"))?;
        let outputs = self.node(id).output_types.len();
        ensure!(
            (slot as usize) < outputs,
            InvalidArgument,
            "'{name}': output index should be < {outputs}"
        );
        Ok(Endpoint { node: id, slot })
    }

    /// The type of a tensor.
    pub fn type_of(&self, e: Endpoint) -> PortType {
        self.node(e.node).output_types[e.slot as usize]
    }

    /// Adds a node whose attributes and inputs are checked against its op.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        op: Arc<OpDef>,
        attrs: Attrs,
        inputs: Vec<Endpoint>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        let name = name.into();
        let attrs = op.complete_attrs(attrs)?;
        let node = Node {
            input_types: op.input_types(&attrs)?,
            output_types: op.output_types(&attrs)?,
            attrs: Arc::new(attrs),
            device: String::new(),
            original_names: Vec::new(),
            name,
            op,
            inputs,
            controls,
        };
        ensure!(
            node.inputs.len() == node.input_types.len(),
            InvalidArgument,
            "node '{}' has {} inputs, its op {} takes {}",
            node.name,
            node.inputs.len(),
            node.op.name,
            node.input_types.len()
        );
        for (i, &e) in node.inputs.iter().enumerate() {
            self.check_edge(&node, i, e)?;
        }
        self.push(node)
    }

    /// Adds a node without checks.
    pub fn push(&mut self, node: Node) -> Result<NodeId> {
        let id = NodeId(self.nodes.len() as u32);
        if self.names.insert(node.name.clone(), id).is_some() {
            bail!(InvalidArgument, "Duplicate node name in graph: '{}'", node.name);
        }
        self.nodes.push(node);
        Ok(id)
    }

    /// Renames a node, unless the name is taken.
    pub(crate) fn rename(&mut self, id: NodeId, name: String) {
        if !self.names.contains_key(&name) {
            let old = std::mem::replace(&mut self.nodes[id.index()].name, name.clone());
            self.names.remove(&old);
            self.names.insert(name, id);
        }
    }

    /// A free name that starts with `base`.
    pub fn unique_name(&self, base: &str) -> String {
        if !self.names.contains_key(base) {
            return base.to_string();
        }
        (1..)
            .map(|i| format!("{base}_{i}"))
            .find(|name| !self.names.contains_key(name))
            .expect("some number is free")
    }

    /// Checks that `e` can be input `i` of `node`.
    pub(crate) fn check_edge(&self, node: &Node, i: usize, e: Endpoint) -> Result<()> {
        let (want, from) = (node.input_types[i], self.node(e.node));
        let Some(have) = from.output_types.get(e.slot as usize) else {
            // The client added outputs to a conditional or loop that a session already has.
            let hint = match from.op.calls {
                Some(_) => " Try using tf.compat.v1.experimental.output_all_intermediates(True).",
                None => "",
            };
            bail!(
                InvalidArgument,
                "Node '{}': Connecting to invalid output {} of source node {} which has {} \
                 outputs.{hint}",
                node.name,
                e.slot,
                from.name,
                from.output_types.len()
            );
        };
        ensure!(
            have.dtype == want.dtype && (have.is_ref || !want.is_ref),
            InvalidArgument,
            "Input {i} of node {} was passed {}{} from {}:{} incompatible with expected {}{}.",
            node.name,
            have.dtype,
            if have.is_ref { "_ref" } else { "" },
            from.name,
            e.slot,
            want.dtype,
            if want.is_ref { "_ref" } else { "" }
        );
        Ok(())
    }

    /// Consumers of each node: `(consumer, input index)`, with `None` for control edges.
    pub fn consumers(&self) -> Vec<Vec<(NodeId, Option<usize>)>> {
        let mut all = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.iter() {
            for (i, e) in node.inputs.iter().enumerate() {
                all[e.node.index()].push((id, Some(i)));
            }
            for c in &node.controls {
                all[c.index()].push((id, None));
            }
        }
        all
    }

    /// The graph as a GraphDef.
    pub fn to_def(&self) -> GraphDef {
        let nodes = self.nodes.iter().map(|n| self.node_def(n)).collect();
        GraphDef {
            nodes,
            functions: self.library.functions().cloned().collect(),
            gradients: self.library.gradients().clone(),
            versions: self.versions.clone(),
        }
    }

    fn node_def(&self, n: &Node) -> NodeDef {
        let data = n.inputs.iter().map(|e| {
            let name = &self.node(e.node).name;
            if e.slot == 0 { name.clone() } else { format!("{name}:{}", e.slot) }
        });
        let control = n.controls.iter().map(|c| format!("^{}", self.node(*c).name));
        NodeDef {
            name: n.name.clone(),
            op: n.op.name.clone(),
            inputs: data.chain(control).collect(),
            device: n.device.clone(),
            attrs: (*n.attrs).clone(),
            full_type: None,
            original_names: n.original_names.clone(),
        }
    }
}

/// Splits `node:k`; `k` is 0 if it is missing.
pub fn split_tensor_name(name: &str) -> (&str, u32) {
    match name.rsplit_once(':') {
        Some((node, slot)) if !slot.is_empty() && slot.bytes().all(|b| b.is_ascii_digit()) => {
            (node, slot.parse().unwrap_or(u32::MAX))
        }
        _ => (name, 0),
    }
}
