//! The graph to which gradients are added, with the shapes that are known.

use super::context::{BranchGuard, LoopContext, LoopContextId, ROOT};
use super::slices::EndpointSlices;
use super::term::Term;
use super::{GradientOptions, frames};
use crate::attr::{AttrList, AttrValue, Attrs};
use crate::catalog::Catalog;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::ControlFlow;
use crate::passes;
use ferroflow_core::{DType, Error, PartialShape, Result, Tensor, err};
use std::cell::{Ref, RefCell};
use std::collections::HashMap;

/// A graph to which gradients are added. It keeps the first error, so that gradient functions can
/// combine [`Term`]s without checking each step.
pub struct Tape {
    pub(super) state: RefCell<TapeState>,
}

/// The gradient of one tensor while it is collected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    None,
    Tensor(Endpoint),
    /// Zeros of the shape of this tensor, made when they are needed.
    Zeros(Endpoint),
    Slices(EndpointSlices),
}

/// How the gradient of a call gets the values that the function's body has computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallGradients {
    /// The call is changed to return them. That makes two functions for each call.
    Kept,
    /// The function runs again, as `SymbolicGradient` does. That makes no functions.
    Again,
}

pub(super) struct TapeState {
    pub graph: GraphIr,
    pub catalog: Catalog,
    /// The known part of the shape of each output.
    pub shapes: Vec<Vec<PartialShape>>,
    /// The loop or backward loop that each node is in.
    pub places: Vec<LoopContextId>,
    pub contexts: Vec<LoopContext>,
    /// The predicates under which each node runs.
    pub guards: Vec<Vec<BranchGuard>>,
    /// The loop condition of each backward loop.
    pub conditions: HashMap<LoopContextId, Endpoint>,
    /// The context to which nodes are added.
    pub current: LoopContextId,
    /// The node whose gradient is added.
    pub around: Option<NodeId>,
    /// How many function calls enclose the graph.
    pub depth: usize,
    pub calls: CallGradients,
    colocate: bool,
    prefix: String,
    /// How often each name was used.
    names: HashMap<String, u32>,
    error: Option<Error>,
}

impl Tape {
    pub(super) fn new(graph: GraphIr, catalog: &Catalog, options: &GradientOptions) -> Tape {
        let shapes = passes::infer(&graph);
        let (places, contexts) = frames::contexts(&graph);
        let base = if options.name.is_empty() { "gradients" } else { &options.name };
        let taken = |prefix: &str| {
            let inside = format!("{prefix}/");
            graph.iter().any(|(_, n)| n.name == prefix || n.name.starts_with(&inside))
        };
        let prefix = (0..)
            .map(|i| if i == 0 { base.to_string() } else { format!("{base}_{i}") })
            .find(|name| !taken(name))
            .expect("some number is free");
        let guards = frames::guards(&graph, &places, &contexts);
        let state = TapeState {
            graph,
            catalog: catalog.clone(),
            shapes,
            places,
            contexts,
            guards,
            conditions: HashMap::new(),
            current: ROOT,
            around: None,
            depth: 0,
            calls: CallGradients::Kept,
            colocate: options.colocate,
            prefix,
            names: HashMap::new(),
            error: None,
        };
        Tape { state: RefCell::new(state) }
    }

    pub(super) fn into_graph(self) -> GraphIr {
        self.state.into_inner().graph
    }

    pub(super) fn graph(&self) -> Ref<'_, GraphIr> {
        Ref::map(self.state.borrow(), |s| &s.graph)
    }

    pub(super) fn type_of(&self, e: Endpoint) -> DType {
        self.graph().type_of(e).dtype
    }

    pub(super) fn term(&self, e: Endpoint) -> Term<'_> {
        self.flow(Flow::Tensor(e))
    }

    pub(super) fn flow(&self, flow: Flow) -> Term<'_> {
        Term { tape: self, flow }
    }

    /// Keeps the first error.
    pub(super) fn fail(&self, e: Error) {
        self.state.borrow_mut().error.get_or_insert(e);
    }

    /// Returns the first error, if there was one.
    pub(super) fn check(&self) -> Result<()> {
        match self.state.borrow_mut().error.take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    pub(super) fn constant(&self, value: Tensor) -> Result<Endpoint> {
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
        self.op("Const", &[], attrs)
    }

    /// Adds a node and returns its first output.
    pub(super) fn op(&self, op: &str, inputs: &[Term<'_>], attrs: Attrs) -> Result<Endpoint> {
        self.ops(op, inputs, attrs).map(|node| Endpoint { node, slot: 0 })
    }

    /// Adds a node.
    pub(super) fn ops(&self, op: &str, inputs: &[Term<'_>], attrs: Attrs) -> Result<NodeId> {
        let mut endpoints = Vec::with_capacity(inputs.len());
        for (i, term) in inputs.iter().enumerate() {
            endpoints.push(term.endpoint().map_err(|e| e.context(format!("input {i} of {op}")))?);
        }
        // If an input failed, that is the error to report.
        self.check()?;
        self.state.borrow_mut().add(op, endpoints, attrs)
    }
}

impl TapeState {
    /// Adds a node to the current context and brings its inputs there.
    pub fn add(&mut self, op: &str, inputs: Vec<Endpoint>, attrs: Attrs) -> Result<NodeId> {
        let here = self.current;
        let mut brought = Vec::with_capacity(inputs.len());
        for e in inputs {
            brought.push(self.bring(e, here)?);
        }
        self.insert(op, brought, attrs, vec![], here)
    }

    /// Adds a node to context `place`. Its inputs must be there too. Attributes that follow from
    /// the inputs can be left out.
    pub fn insert(
        &mut self,
        op: &str,
        inputs: Vec<Endpoint>,
        mut attrs: Attrs,
        mut controls: Vec<NodeId>,
        place: LoopContextId,
    ) -> Result<NodeId> {
        let def = self.catalog.get(op).cloned();
        let def = def.or_else(|| self.graph.library.op(op)).ok_or_else(|| {
            err!(Unimplemented, "the gradient needs the op '{op}', which is not in the catalog")
        })?;
        let types: Vec<DType> = inputs.iter().map(|&e| self.graph.type_of(e).dtype).collect();
        def.attrs_from_inputs(&types, &mut attrs);
        // A node without inputs is in a loop only through its control inputs.
        if inputs.is_empty() && controls.is_empty() {
            controls.extend(self.contexts[place].pivot());
        }
        let name = self.fresh_name(op);
        let id = self.graph.add(name, def, attrs, inputs, controls)?;
        if self.colocate
            && let Some(around) = self.around
        {
            let (device, name) = {
                let node = self.graph.node(around);
                (node.device.clone(), format!("loc:@{}", node.name))
            };
            let node = self.graph.node_mut(id);
            node.device = device;
            let mut attrs = (*node.attrs).clone();
            attrs.set("_class", AttrValue::List(AttrList::Strs(vec![name.into()])));
            node.attrs = attrs.into();
        }
        self.places.push(place);
        self.guards.push(self.guards_of(id));
        self.shapes.push(self.infer(id));
        Ok(id)
    }

    fn guards_of(&self, id: NodeId) -> Vec<BranchGuard> {
        let mut all = Vec::new();
        if self.contexts.len() == 1 {
            return all;
        }
        let node = self.graph.node(id);
        if node.op.control_flow == Some(ControlFlow::Enter) {
            return all;
        }
        let from = node.inputs.iter().map(|&e| frames::on_edge(&self.graph, &self.guards, e));
        let after = node.controls.iter().map(|c| self.guards[c.index()].clone());
        for guard in from.chain(after).flatten() {
            if !all.contains(&guard) {
                all.push(guard);
            }
        }
        all
    }

    /// The name scope of added nodes.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Infers the output shapes of a node.
    pub fn infer(&self, id: NodeId) -> Vec<PartialShape> {
        let node = self.graph.node(id);
        let inputs: Vec<PartialShape> = node.inputs.iter().map(|&e| self.shape(e)).collect();
        // The value of the next iteration may have another shape.
        let found = match node.op.control_flow {
            Some(ControlFlow::Merge) => None,
            _ => passes::node_shapes(node, &inputs, |i| self.value(node.inputs[i])),
        };
        let count = node.output_types.len();
        found.filter(|f| f.len() == count).unwrap_or_else(|| vec![PartialShape::unknown(); count])
    }

    /// The known shape of a tensor.
    pub fn shape(&self, e: Endpoint) -> PartialShape {
        let of_node = self.shapes.get(e.node.index());
        of_node.and_then(|s| s.get(e.slot as usize)).cloned().unwrap_or_default()
    }

    /// Adds knowledge about a tensor's shape.
    pub fn refine(&mut self, e: Endpoint, shape: &PartialShape) {
        if let Some(known) = self.shapes.get_mut(e.node.index())
            && let Some(known) = known.get_mut(e.slot as usize)
            && let Ok(both) = known.merge(shape)
        {
            *known = both;
        }
    }

    /// The value of a tensor if it is constant.
    pub fn value(&self, e: Endpoint) -> Option<Tensor> {
        passes::constant(self.graph.node(e.node)).filter(|_| e.slot == 0).cloned()
    }

    fn fresh_name(&mut self, op: &str) -> String {
        let base = match self.around {
            Some(id) => format!("{}/{}_grad/{op}", self.prefix, self.graph.node(id).name),
            None => format!("{}/{op}", self.prefix),
        };
        loop {
            let count = self.names.entry(base.clone()).or_insert(0);
            let name = if *count == 0 { base.clone() } else { format!("{base}_{count}") };
            *count += 1;
            if self.graph.find(&name).is_none() {
                return name;
            }
        }
    }
}
