//! The node builder: an op by name, inputs in order, and the attributes that do not follow from
//! them.

use crate::context::ContextId;
use crate::device::NodeSpec;
use crate::graph::{Graph, GraphState};
use crate::names::{is_valid, join};
use crate::output::{Operation, Output};
use ferroflow_core::{DType, PartialShape, Result, Tensor, bail, ensure, err};
use ferroflow_graph::{
    ArgTypes, AttrList, AttrValue, Attrs, Endpoint, NodeId, OpDef, OpRole, ShapeCtx, TypeSource,
};
use std::panic::Location;
use std::sync::Arc;

/// A node under construction. [`NodeBuilder::output`], [`NodeBuilder::outputs`] and
/// [`NodeBuilder::operation`] add it to the graph. [`crate::ops`] has a function for each op.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// let x = g.constant([[1.0, 2.0]]);
/// let y = g.op("MatMul").input(&x).input(&x).attr("transpose_b", true).output();
/// assert_eq!(y.shape().to_string(), "[1,1]");
/// ```
#[must_use = "a node is added by `output`, `outputs` or `operation`"]
pub struct NodeBuilder {
    graph: Graph,
    op: String,
    name: Option<String>,
    /// The name is complete and unused.
    is_exact: bool,
    /// Inputs, by argument of the op's signature: one argument may take several tensors.
    inputs: Vec<Vec<Output>>,
    attrs: Attrs,
    controls: Vec<NodeId>,
    device: Option<String>,
    /// Whether an input is an output of a failed node.
    is_broken: bool,
    at: &'static Location<'static>,
}

impl Graph {
    /// Starts a node of any op the catalog has, or of a function of this graph.
    #[track_caller]
    pub fn op(&self, op: &str) -> NodeBuilder {
        NodeBuilder {
            graph: self.clone(),
            op: op.to_string(),
            name: None,
            is_exact: false,
            inputs: Vec::new(),
            attrs: Attrs::new(),
            controls: Vec::new(),
            device: None,
            is_broken: false,
            at: Location::caller(),
        }
    }
}

impl NodeBuilder {
    /// The node's name, within the name scope; the op's name if none is given.
    pub fn name(self, name: &str) -> Self {
        self.name_opt(Some(name))
    }

    /// [`NodeBuilder::name`] if there is a name.
    pub fn name_opt(mut self, name: Option<&str>) -> Self {
        self.name = name.map(str::to_string);
        self
    }

    /// The complete name of the node, which must be unused.
    pub(crate) fn exact_name(mut self, name: &str) -> Self {
        self.is_exact = true;
        self.name_opt(Some(name))
    }

    /// The next argument, one tensor.
    pub fn input(mut self, input: &Output) -> Self {
        self.is_broken |= input.endpoint.is_none();
        self.inputs.push(vec![input.clone()]);
        self
    }

    /// The next argument, a list of tensors.
    pub fn list(mut self, inputs: &[Output]) -> Self {
        self.is_broken |= inputs.iter().any(|i| i.endpoint.is_none());
        self.inputs.push(inputs.to_vec());
        self
    }

    /// Sets an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.set(name, value);
        self
    }

    /// Sets an attribute if there is a value; without one the op's default holds.
    pub(crate) fn attr_if_given(self, name: &str, value: Option<impl Into<AttrValue>>) -> Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    /// Sets an attribute if the op declares it.
    pub(crate) fn attr_if_declared(self, name: &str, value: impl Into<AttrValue>) -> Self {
        match self.graph.catalog().get(&self.op).is_some_and(|op| op.attr(name).is_some()) {
            true => self.attr(name, value),
            false => self,
        }
    }

    /// Adds a control dependency.
    pub fn after(mut self, operation: &Operation) -> Self {
        match self.graph.own(operation, self.at) {
            Some(id) => self.controls.push(id),
            None => self.is_broken = true,
        }
        self
    }

    /// The device; overrides the device scope.
    pub fn device(mut self, device: &str) -> Self {
        self.device = Some(device.to_string());
        self
    }

    /// The source line of the node, if it is not the caller's.
    pub(crate) fn made_at(mut self, at: &'static Location<'static>) -> Self {
        self.at = at;
        self
    }

    /// Adds the node, which has one output.
    pub fn output(self) -> Output {
        let graph = self.graph.clone();
        let id = self.add();
        Output::new(&graph, id.map(|id| Endpoint::new(id, 0)))
    }

    /// Adds the node and returns its outputs; none if the node is invalid.
    pub fn outputs(self) -> Vec<Output> {
        let graph = self.graph.clone();
        let Some(id) = self.add() else { return Vec::new() };
        let n = graph.state().ir.node(id).output_types.len();
        (0..n).map(|slot| Output::new(&graph, Some(Endpoint::new(id, slot)))).collect()
    }

    /// Adds the node and returns its `count` outputs, also if the node is invalid.
    pub(crate) fn count_of_outputs(self, count: usize) -> Vec<Output> {
        let graph = self.graph.clone();
        let outputs = self.outputs();
        if outputs.len() == count { outputs } else { graph.broken(count) }
    }

    /// Adds the node and returns its first `N` outputs.
    pub fn split<const N: usize>(self) -> [Output; N] {
        let graph = self.graph.clone();
        let id = self.add();
        std::array::from_fn(|slot| Output::new(&graph, id.map(|id| Endpoint::new(id, slot))))
    }

    /// Adds the node, whose outputs are one list, and returns them. An invalid node returns as
    /// many, if their number is known.
    pub(crate) fn list_outputs(self) -> Vec<Output> {
        self.outputs_by_argument().next_list()
    }

    /// Adds the node and returns its outputs by argument of the op's signature. An invalid node
    /// returns as many, if their number is known.
    pub(crate) fn outputs_by_argument(self) -> OutputArguments {
        let graph = self.graph.clone();
        let op = graph.catalog().get(&self.op).cloned();
        let attrs = self.attrs.clone();
        let id = self.add();
        let attrs = id.map_or(attrs, |id| (*graph.state().ir.node(id).attrs).clone());
        let lengths = op.iter().flat_map(|op| &op.outputs).map(|arg| match &arg.types {
            ArgTypes::One(_) => 1,
            ArgTypes::Repeated { count, .. } => {
                attrs.int(count).ok().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
            }
            ArgTypes::Listed(types) => attrs.dtypes(types).map_or(0, |types| types.len()),
        });
        let mut slot = 0;
        let mut arguments = Vec::new();
        for length in lengths {
            let endpoint = |slot| id.map(|id| Endpoint::new(id, slot));
            let outputs = (slot..slot + length).map(|slot| Output::new(&graph, endpoint(slot)));
            arguments.push(outputs.collect());
            slot += length;
        }
        OutputArguments { graph, arguments: arguments.into_iter() }
    }

    /// Adds the node and returns it.
    pub fn operation(self) -> Operation {
        let graph = self.graph.clone();
        let id = self.add();
        Operation::new(&graph, id)
    }

    fn add(self) -> Option<NodeId> {
        if self.is_broken {
            return None;
        }
        let (graph, at, device) = (self.graph.clone(), self.at, self.device.clone());
        let added = {
            let mut state = graph.state();
            match self.add_to(&mut state) {
                Ok(id) => Some(id),
                Err(e) => {
                    state.fail(e, at);
                    None
                }
            }
        };
        let id = added?;
        match graph.place(id, device) {
            Ok(()) => Some(id),
            Err(e) => {
                graph.state().fail(e, at);
                None
            }
        }
    }

    fn add_to(self, state: &mut GraphState) -> Result<NodeId> {
        let op = match self.graph.catalog().get(&self.op) {
            Some(op) => op.clone(),
            None => state
                .ir
                .library
                .op(&self.op)
                .ok_or_else(|| err!(NotFound, "there is no op '{}'", self.op))?,
        };
        let base = self.name.as_deref().unwrap_or(&self.op);
        let full = if self.is_exact { base.to_string() } else { join(&state.name_scope, base) };
        ensure!(
            is_valid(&full) || self.name.is_none(),
            InvalidArgument,
            "'{full}' is not a valid name of a node"
        );
        let mut attrs = self.attrs;
        let mut inputs = Vec::new();
        let mut types: Vec<Vec<DType>> = Vec::with_capacity(self.inputs.len());
        for list in &self.inputs {
            let mut list_types = Vec::with_capacity(list.len());
            for input in list {
                ensure!(
                    input.graph.is(&self.graph),
                    InvalidArgument,
                    "an input of {} '{full}' belongs to another graph",
                    op.name
                );
                let e = input
                    .endpoint
                    .ok_or_else(|| err!(Internal, "an input is an output of a failed node"))?;
                list_types.push(state.ir.type_of(e).dtype);
                inputs.push(e);
            }
            types.push(list_types);
        }
        attrs_from_inputs(&op, &types, &mut attrs).map_err(|e| e.context(&full))?;
        let name = if self.is_exact { full } else { state.names.unique(&full) };
        let node = NewNode { name, op, attrs, inputs, controls: self.controls, at: self.at };
        state.add(node)
    }
}

/// The outputs of a node, by argument of its op's signature.
pub(crate) struct OutputArguments {
    graph: Graph,
    arguments: std::vec::IntoIter<Vec<Output>>,
}

impl OutputArguments {
    /// The next argument, which is a list.
    pub fn next_list(&mut self) -> Vec<Output> {
        self.arguments.next().unwrap_or_default()
    }

    /// The next argument, which is one tensor.
    pub fn next_output(&mut self) -> Output {
        let output = self.next_list().into_iter().next();
        output.unwrap_or_else(|| Output::new(&self.graph, None))
    }
}

/// A complete node, ready to be added.
pub(crate) struct NewNode {
    pub name: String,
    pub op: Arc<OpDef>,
    pub attrs: Attrs,
    pub inputs: Vec<Endpoint>,
    pub controls: Vec<NodeId>,
    pub at: &'static Location<'static>,
}

impl GraphState {
    /// Adds a node to the current context. Brings its inputs into the branch or loop, adds control
    /// dependencies, infers shapes.
    pub fn add(&mut self, mut spec: NewNode) -> Result<NodeId> {
        let context = self.context;
        for i in 0..spec.inputs.len() {
            spec.inputs[i] = self.bring(spec.inputs[i], context, spec.at)?;
        }
        self.add_dependencies(&mut spec);
        self.add_pivot(&mut spec, context)?;
        self.add_plain(spec, context)
    }

    /// Adds the enclosing control dependencies, except those that an input already has.
    fn add_dependencies(&mut self, spec: &mut NewNode) {
        for scope in &self.controls {
            let waits = spec.inputs.iter().any(|e| scope.within.contains(&e.node))
                || spec.controls.iter().any(|c| scope.within.contains(c));
            if waits {
                continue;
            }
            for &node in &scope.nodes {
                let is_input = spec.inputs.iter().any(|e| e.node == node);
                if !is_input && !spec.controls.contains(&node) {
                    spec.controls.push(node);
                }
            }
        }
    }

    /// Adds a node unchanged, to context `place`.
    pub fn add_plain(&mut self, spec: NewNode, place: ContextId) -> Result<NodeId> {
        let NewNode { name, op, attrs, inputs, controls, at } = spec;
        let id = self.ir.add(name.clone(), op, attrs, inputs, controls).map_err(|e| {
            let known = e.message().contains(&name);
            if known { e } else { e.context(format!("node '{name}'")) }
        })?;
        match self.infer(id) {
            Ok(shapes) => self.shapes.push(shapes),
            Err(e) => {
                self.ir.truncate(id.index());
                let op = format!("{} '{name}'", "shapes do not fit");
                return Err(e.context(op));
            }
        }
        self.made_at.push(at);
        self.places.push(place);
        for scope in &mut self.controls {
            scope.within.insert(id);
        }
        Ok(id)
    }

    /// Infers the shapes of a node's outputs.
    pub fn infer(&self, id: NodeId) -> Result<Vec<PartialShape>> {
        let node = self.ir.node(id);
        let outputs = node.output_types.len();
        if let Some(value) = self.constant(Endpoint::new(id, 0)) {
            return Ok(vec![value.shape().into()]);
        }
        let Some(infer) = &node.op.shape else {
            return Ok(vec![PartialShape::unknown(); outputs]);
        };
        let inputs: Vec<PartialShape> = node.inputs.iter().map(|e| self.shape(*e)).collect();
        let constants: Vec<Option<Tensor>> =
            node.inputs.iter().map(|e| self.constant(*e)).collect();
        let shapes = infer(&ShapeCtx {
            attrs: &node.attrs,
            inputs: &inputs,
            constants: &constants,
            outputs,
        })?;
        if shapes.len() != outputs {
            bail!(
                Internal,
                "the shape function of {} returned a wrong number of shapes",
                node.op.name
            );
        }
        Ok(shapes)
    }

    /// The value of a constant.
    pub fn constant(&self, e: Endpoint) -> Option<Tensor> {
        let node = self.ir.node(e.node);
        match node.attrs.get("value") {
            Some(AttrValue::Tensor(t)) if node.op.role == OpRole::Constant => Some(t.clone()),
            _ => None,
        }
    }
}

impl Graph {
    /// Places a node by the device scopes. An operation on a resource is placed with the resource.
    pub(crate) fn place(&self, id: NodeId, device: Option<String>) -> Result<()> {
        let (scopes, spec) = {
            let state = self.state();
            let node = state.ir.node(id);
            let resource = node.inputs.iter().zip(&node.input_types);
            let resource = resource
                .filter(|(_, t)| t.dtype == DType::Resource || t.is_ref)
                .map(|(e, _)| state.ir.node(e.node).device.clone())
                .find(|device| !device.is_empty());
            match device.or(resource) {
                Some(device) => (Vec::new(), NodeSpec { device, ..NodeSpec::default() }),
                None if state.devices.is_empty() => return Ok(()),
                None => {
                    let out = Endpoint::new(id, 0);
                    let mut shape = state.shape(out);
                    let mut dtype = node.output_types.first().map(|t| t.dtype);
                    if dtype == Some(DType::Resource) {
                        shape = node.attrs.shape("shape").unwrap_or_default();
                        dtype = node.attrs.dtype("dtype").ok();
                    }
                    let spec = NodeSpec {
                        name: node.name.clone(),
                        op: node.op.name.clone(),
                        device: node.device.clone(),
                        dtype,
                        shape,
                    };
                    (state.devices.clone(), spec)
                }
            }
        };
        let device = crate::device::apply(&scopes, spec)?;
        self.state().ir.node_mut(id).device = device;
        Ok(())
    }
}

/// Sets the attributes that follow from the types of the inputs, and checks that the inputs agree.
fn attrs_from_inputs(op: &OpDef, types: &[Vec<DType>], attrs: &mut Attrs) -> Result<()> {
    ensure!(
        op.inputs.len() == types.len(),
        InvalidArgument,
        "{} takes {} arguments, {} are given",
        op.name,
        op.inputs.len(),
        types.len()
    );
    for (arg, types) in op.inputs.iter().zip(types) {
        let mut one_type = |of: &TypeSource| -> Result<()> {
            let TypeSource::Attr(name) = of else { return Ok(()) };
            for &t in types {
                match attrs.get(name) {
                    Some(AttrValue::Type(known)) if *known != t => bail!(
                        InvalidArgument,
                        "{}: argument '{}' is {t}, where {name} is {known}",
                        op.name,
                        arg.name
                    ),
                    Some(_) => {}
                    None => attrs.set(name.clone(), t),
                }
            }
            Ok(())
        };
        match &arg.types {
            ArgTypes::One(of) => {
                ensure!(
                    types.len() == 1,
                    InvalidArgument,
                    "{}: argument '{}' is one tensor",
                    op.name,
                    arg.name
                );
                one_type(of)?;
            }
            ArgTypes::Repeated { count, of } => {
                one_type(of)?;
                if !attrs.contains(count) {
                    attrs.set(count.clone(), types.len() as i64);
                }
            }
            ArgTypes::Listed(name) => {
                if !attrs.contains(name) {
                    attrs.set(name.clone(), AttrValue::List(AttrList::Types(types.clone())));
                }
            }
        }
    }
    Ok(())
}
