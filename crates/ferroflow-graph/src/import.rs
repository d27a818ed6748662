//! Builds a [`GraphIr`] from a GraphDef: resolves names, looks up ops, checks types.

use crate::catalog::Catalog;
use crate::def::{GraphDef, NodeDef};
use crate::function::FunctionLibrary;
use crate::graph::{Endpoint, GraphIr, Node, NodeId, split_tensor_name};
use crate::op_def::{ControlFlow, OpDef};
use ferroflow_core::{DeviceName, Result, bail, ensure, err};
use std::collections::HashMap;
use std::sync::Arc;

/// How the inputs of nodes are written.
pub(crate) enum Naming {
    /// `node:k`.
    GraphIr,
    /// `node:output:k` and `argument`; the map holds the `_Arg` nodes of each argument.
    Function(HashMap<String, Vec<String>>),
}

/// Adds nodes to a graph.
pub(crate) struct Importer<'a> {
    catalog: &'a Catalog,
    library: &'a FunctionLibrary,
    naming: Naming,
    /// Ops looked up before. Each look-up of a function makes a new op.
    ops: HashMap<String, Arc<OpDef>>,
    /// The number of inputs and outputs of all added nodes.
    ports: usize,
}

/// One attribute can ask for a million outputs of a node; all nodes together may not.
const MAX_PORTS: usize = 1 << 25;

impl GraphIr {
    /// Reads a whole graph.
    pub fn from_def(def: &GraphDef, catalog: &Catalog) -> Result<GraphIr> {
        let mut graph = GraphIr { versions: def.versions.clone(), ..GraphIr::default() };
        graph.extend(def, catalog)?;
        Ok(graph)
    }

    /// Adds the nodes and functions of `def`. Their inputs may name existing nodes. On an error the
    /// graph is unchanged.
    pub fn extend(&mut self, def: &GraphDef, catalog: &Catalog) -> Result<()> {
        let mut library = self.library.clone();
        library.add(def.functions.iter().cloned(), def.gradients.clone(), catalog)?;
        let mut importer = Importer::new(catalog, &library, Naming::GraphIr);
        let before = self.nodes.len();
        if let Err(e) = importer.add_nodes(self, &def.nodes) {
            self.truncate(before);
            return Err(e);
        }
        self.library = library;
        Ok(())
    }

    /// Fails if there is a cycle that is not a loop. For callers that have moved edges.
    pub fn check_acyclic(&self) -> Result<()> {
        check_acyclic(self, 0)
    }

    /// Removes all but the first `len` nodes. Those must not refer to the others.
    pub fn truncate(&mut self, len: usize) {
        for node in self.nodes.drain(len..) {
            self.names.remove(&node.name);
        }
    }
}

impl<'a> Importer<'a> {
    pub fn new(catalog: &'a Catalog, library: &'a FunctionLibrary, naming: Naming) -> Importer<'a> {
        Importer { catalog, library, naming, ops: HashMap::new(), ports: 0 }
    }

    /// Adds `defs` in two passes: names first, since a node may refer to a later one. On an error
    /// some of them may stay in the graph.
    pub fn add_nodes(&mut self, graph: &mut GraphIr, defs: &[NodeDef]) -> Result<()> {
        let first = graph.nodes.len();
        ensure!(
            first + defs.len() < u32::MAX as usize,
            ResourceExhausted,
            "a graph may not have more than {} nodes",
            u32::MAX
        );
        for def in defs {
            // Check for a duplicate first: `push` cannot give the name back.
            if graph.names.contains_key(&def.name) {
                bail!(InvalidArgument, "Node name '{}' already exists in the Graph", def.name);
            }
            let node = self.node(def).map_err(|e| e.at_node(&def.name))?;
            graph.push(node)?;
        }
        for (i, def) in defs.iter().enumerate() {
            self.connect(graph, NodeId((first + i) as u32), def)?;
        }
        check_acyclic(graph, first)
    }

    fn node(&mut self, def: &NodeDef) -> Result<Node> {
        let op = self.op(&def.op)?;
        let attrs = op.complete_attrs(def.attrs.clone())?;
        DeviceName::parse(&def.device)?;
        let (input_types, output_types) = (op.input_types(&attrs)?, op.output_types(&attrs)?);
        self.ports += input_types.len() + output_types.len();
        ensure!(
            self.ports <= MAX_PORTS,
            ResourceExhausted,
            "a graph may not have more than {MAX_PORTS} inputs and outputs"
        );
        Ok(Node {
            name: def.name.clone(),
            input_types,
            output_types,
            attrs: Arc::new(attrs),
            op,
            inputs: Vec::new(),
            controls: Vec::new(),
            device: def.device.clone(),
            original_names: def.original_names.clone(),
        })
    }

    fn op(&mut self, name: &str) -> Result<Arc<OpDef>> {
        if let Some(op) = self.catalog.get(name).or_else(|| self.ops.get(name)) {
            return Ok(op.clone());
        }
        let Some(op) = self.library.op(name) else {
            bail!(
                NotFound,
                "Op type not registered '{name}' in this Ferroflow binary. Make sure the Op is one \
                 of TensorFlow 2.15's, or a function in the graph's library."
            );
        };
        self.ops.insert(name.to_string(), op.clone());
        Ok(op)
    }

    fn connect(&self, graph: &mut GraphIr, id: NodeId, def: &NodeDef) -> Result<()> {
        let (mut inputs, mut controls) = (Vec::with_capacity(def.inputs.len()), Vec::new());
        for text in &def.inputs {
            if let Some(name) = text.strip_prefix('^') {
                controls.push(self.source(graph, name, def)?);
                continue;
            }
            ensure!(
                controls.is_empty(),
                InvalidArgument,
                "Node '{}': data inputs must come before control inputs",
                def.name
            );
            // Inside functions one name can stand for all tensors of an argument.
            if let Naming::Function(args) = &self.naming
                && let Some(names) = args.get(text)
                && names.len() != 1
            {
                for name in names {
                    inputs.push(Endpoint { node: self.source(graph, name, def)?, slot: 0 });
                }
                continue;
            }
            inputs.push(self.resolve(graph, text, 0).map_err(|e| self.at(def, text, e))?);
        }
        let node = graph.node(id);
        ensure!(
            inputs.len() == node.input_types.len(),
            InvalidArgument,
            "NodeDef expected {} inputs, got {}: node '{}' (op {})",
            node.input_types.len(),
            inputs.len(),
            node.name,
            node.op.name
        );
        for (i, &e) in inputs.iter().enumerate() {
            graph.check_edge(graph.node(id), i, e)?;
        }
        let node = graph.node_mut(id);
        node.inputs = inputs;
        node.controls = controls;
        Ok(())
    }

    fn source(&self, graph: &GraphIr, name: &str, def: &NodeDef) -> Result<NodeId> {
        graph.find(name).ok_or_else(|| {
            err!(InvalidArgument, "Node '{}': Unknown input node '{name}'", def.name)
        })
    }

    fn at(&self, def: &NodeDef, text: &str, e: ferroflow_core::Error) -> ferroflow_core::Error {
        if e.code() == ferroflow_core::Code::NotFound {
            return err!(InvalidArgument, "Node '{}': Unknown input node '{text}'", def.name);
        }
        e.context(format!("Node '{}'", def.name))
    }

    /// The endpoint that an input's `text` names. `k` selects one of several tensors of a
    /// function's output argument if the text does not.
    pub fn resolve(&self, graph: &GraphIr, text: &str, k: usize) -> Result<Endpoint> {
        let Naming::Function(args) = &self.naming else {
            let (name, slot) = split_tensor_name(text);
            let node =
                graph.find(name).ok_or_else(|| err!(NotFound, "Unknown input node '{name}'"))?;
            return Ok(Endpoint { node, slot });
        };
        if let Some(names) = args.get(text) {
            let name = names.get(k).map_or(text, String::as_str);
            let node =
                graph.find(name).ok_or_else(|| err!(NotFound, "Unknown argument '{name}'"))?;
            return Ok(Endpoint { node, slot: 0 });
        }
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        let id = graph.find(name).ok_or_else(|| err!(NotFound, "Unknown input node '{name}'"))?;
        let node = graph.node(id);
        let slot = match (parts.next(), parts.next()) {
            (None, _) => k,
            (Some(output), index) => {
                let range = node.op.output_range(&node.attrs, output)?;
                let i = match index {
                    Some(text) => text
                        .parse::<usize>()
                        .map_err(|_| err!(InvalidArgument, "bad output index in '{text}'"))?,
                    None => k,
                };
                ensure!(i < range.len().max(1), InvalidArgument, "'{text}' is out of range");
                range.start + i
            }
        };
        Ok(Endpoint::new(id, slot))
    }
}

/// Refuses cycles other than loops through `NextIteration`.
fn check_acyclic(graph: &GraphIr, first: usize) -> Result<()> {
    // Old nodes cannot refer to new ones, so a cycle consists of new nodes.
    let new = graph.nodes.len() - first;
    let mut pending = vec![0u32; new];
    let mut consumers: Vec<Vec<u32>> = vec![Vec::new(); new];
    for (i, node) in graph.nodes[first..].iter().enumerate() {
        let merge = node.op.control_flow == Some(ControlFlow::Merge);
        let sources = node
            .inputs
            .iter()
            .map(|e| (e.node, true))
            .chain(node.controls.iter().map(|c| (*c, false)));
        for (source, is_data) in sources {
            let back = merge
                && is_data
                && graph.node(source).op.control_flow == Some(ControlFlow::NextIteration);
            if source.index() >= first && !back {
                pending[i] += 1;
                consumers[source.index() - first].push(i as u32);
            }
        }
    }
    let mut ready: Vec<u32> = (0..new as u32).filter(|&i| pending[i as usize] == 0).collect();
    let mut seen = 0;
    while let Some(i) = ready.pop() {
        seen += 1;
        for &c in &consumers[i as usize] {
            pending[c as usize] -= 1;
            if pending[c as usize] == 0 {
                ready.push(c);
            }
        }
    }
    if seen < new {
        let stuck = (0..new).find(|&i| pending[i] > 0).map(|i| &graph.nodes[first + i].name);
        bail!(
            InvalidArgument,
            "Graph is invalid, contains a cycle with {} nodes, including: {}",
            new - seen,
            stuck.map_or("", |s| s)
        );
    }
    Ok(())
}
