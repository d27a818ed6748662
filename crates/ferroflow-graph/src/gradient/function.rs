//! Gradients of functions. The gradient is added to the body, which is then cut in two. The forward
//! function also returns the tensors that the backward function needs.

use super::backprop::{Reached, sweep};
use super::context::{LoopContextKind, ROOT};
use super::tape::{CallGradients, Flow, Tape, TapeState};
use super::{GradientOptions, is_differentiable};
use crate::attr::{Attrs, FuncRef};
use crate::catalog::Catalog;
use crate::def::{FunctionDef, NodeDef};
use crate::function::{FunctionGraph, FunctionLibrary};
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::{ArgDef, ArgTypes, OpDef, OpRole, PortType, TypeSource};
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure, err};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Deeper nested calls count as a recursion, which has no gradient.
const MAX_DEPTH: usize = 32;
/// Limits the number of functions: each call gets its own, so nested calls could make any number,
/// and each takes longer than the one before.
const MAX_FUNCTIONS: usize = 1 << 12;

/// The body of a function and, in the same graph, its gradient.
pub(super) struct DifferentiatedBody {
    pub tape: Tape,
    pub args: Vec<Endpoint>,
    /// The tensors that are its results.
    pub results: Vec<Endpoint>,
    /// The gradients of some of the results: arguments of the backward function.
    pub dys: Vec<Endpoint>,
    /// The gradients of the arguments.
    pub dxs: Vec<Option<Endpoint>>,
    /// The nodes of the backward function.
    backward: HashSet<NodeId>,
    control_ret: BTreeMap<String, String>,
    control_outputs: Vec<String>,
}

impl DifferentiatedBody {
    /// Differentiates function `func`. `dys` are the results that have gradients, with their types;
    /// `shapes` are the known shapes of the arguments.
    pub fn differentiate(
        func: &FuncRef,
        library: &FunctionLibrary,
        catalog: &Catalog,
        dys: &[(usize, DType)],
        shapes: &[PartialShape],
        depth: usize,
        calls: CallGradients,
    ) -> Result<DifferentiatedBody> {
        ensure!(
            depth <= MAX_DEPTH,
            InvalidArgument,
            "gradients go through at most {MAX_DEPTH} nested function calls"
        );
        ensure!(
            library.len() <= MAX_FUNCTIONS,
            ResourceExhausted,
            "the gradient of function {} needs more than {MAX_FUNCTIONS} functions",
            func.name
        );
        let def = library.get(&func.name).cloned();
        let def = def.ok_or_else(|| err!(NotFound, "Function {} is not defined.", func.name))?;
        let body = FunctionGraph::instantiate(func, library, catalog)?;
        let args: Vec<Endpoint> = body.args.iter().map(|&n| Endpoint::new(n, 0)).collect();
        let results: Vec<Endpoint> =
            body.rets.iter().map(|&n| body.graph.node(n).inputs[0]).collect();
        let tape = Tape::new(body.graph, catalog, &GradientOptions::default());
        tape.state.borrow_mut().depth = depth;
        tape.state.borrow_mut().calls = calls;
        tape.state.borrow_mut().learn(&args, shapes);
        let mut ys = Vec::new();
        let mut dy_args = Vec::new();
        for (k, &(result, dtype)) in dys.iter().enumerate() {
            let index = (args.len() + k) as i64;
            let attrs = Attrs::new().with("T", dtype).with("index", index);
            let dy = tape.op("_Arg", &[], attrs)?;
            let y = *results.get(result).ok_or_else(|| err!(Internal, "no result {result}"))?;
            let shape = tape.state.borrow().shape(y);
            if dtype != DType::Variant && tape.type_of(y) == dtype {
                tape.state.borrow_mut().refine(dy, &shape);
            }
            ys.push((y, Flow::Tensor(dy)));
            dy_args.push(dy);
        }
        let xs: Vec<Endpoint> =
            args.iter().copied().filter(|&a| is_differentiable(tape.type_of(a))).collect();
        let reached = Reached::from(&tape.graph(), &xs);
        let found = sweep(&tape, ROOT, ys, &xs, &HashSet::new(), &reached)?;
        let mut by_arg: HashMap<Endpoint, Endpoint> = HashMap::new();
        for (x, flow) in xs.iter().zip(found) {
            if flow != Flow::None {
                by_arg.insert(*x, tape.flow(flow).endpoint()?);
            }
        }
        tape.check()?;
        let dxs = args.iter().map(|a| by_arg.get(a).copied()).collect();
        let backward = backward_nodes(&tape.state.borrow(), &dy_args);
        Ok(DifferentiatedBody {
            tape,
            args,
            results,
            dys: dy_args,
            dxs,
            backward,
            control_ret: def.control_ret.clone(),
            control_outputs: def.control_outputs.clone(),
        })
    }

    /// Runs `make`. The nodes that it adds belong to the backward function.
    pub fn on_the_way_back<R>(&mut self, make: impl FnOnce(&Tape) -> Result<R>) -> Result<R> {
        let before = self.tape.graph().len();
        let made = make(&self.tape)?;
        let after = self.tape.graph().len();
        self.backward.extend((before..after).map(|i| NodeId(i as u32)));
        Ok(made)
    }

    /// The forward tensors that the backward function uses or returns: arguments and others.
    /// Constants are copied instead.
    pub fn crossing(&self, returned: &[Endpoint]) -> Vec<Endpoint> {
        let graph = self.tape.graph();
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut order: Vec<NodeId> = self.backward.iter().copied().collect();
        order.sort_unstable();
        let used = order.iter().flat_map(|&id| graph.node(id).inputs.iter().copied());
        for e in used.chain(returned.iter().copied()) {
            let is_ours = self.backward.contains(&e.node) || self.dys.contains(&e);
            if !is_ours && !is_plain_constant(&graph, e.node) && seen.insert(e) {
                found.push(e);
            }
        }
        found
    }

    /// The forward function: the original with more results.
    pub fn forward(&self, name: String, more: &[Endpoint]) -> FunctionDef {
        let results: Vec<Endpoint> = self.results.iter().chain(more).copied().collect();
        self.forward_of(&name, &self.args, &results)
    }

    /// The forward function with these arguments and results.
    pub fn forward_of(&self, name: &str, args: &[Endpoint], results: &[Endpoint]) -> FunctionDef {
        let graph = self.tape.graph();
        let is_in = |id: NodeId| !self.backward.contains(&id);
        let mut def = function_def(name.to_string(), &graph, is_in, args, results);
        def.control_ret = self.control_ret.clone();
        def.control_outputs = self.control_outputs.clone();
        def
    }

    /// Replaces tensors in the inputs of the backward nodes.
    pub fn rewire(&mut self, instead: &[(Endpoint, Endpoint)]) {
        let mut state = self.tape.state.borrow_mut();
        for &id in &self.backward {
            let node = state.graph.node_mut(id);
            for e in &mut node.inputs {
                if let Some((_, to)) = instead.iter().find(|(from, _)| from == e) {
                    *e = *to;
                }
            }
        }
    }

    /// The backward function with these arguments and results.
    pub fn backward(&self, name: String, args: &[Endpoint], results: &[Endpoint]) -> FunctionDef {
        let graph = self.tape.graph();
        let wanted: HashSet<NodeId> = self
            .backward
            .iter()
            .flat_map(|&id| graph.node(id).inputs.iter().copied())
            .chain(results.iter().copied())
            .map(|e| e.node)
            .collect();
        let is_in = |id: NodeId| {
            self.backward.contains(&id) || (wanted.contains(&id) && is_plain_constant(&graph, id))
        };
        function_def(name, &graph, is_in, args, results)
    }

    /// Whether the backward function has an effect or reads state.
    pub fn is_stateful(&self) -> bool {
        let graph = self.tape.graph();
        self.backward.iter().any(|&id| graph.node(id).op.is_stateful)
    }

    pub fn library(&self) -> FunctionLibrary {
        self.tape.graph().library.clone()
    }
}

/// The gradient of a function, as a function of its arguments and the gradients of its results. It
/// is the gradient in the library, if there is one. Otherwise it runs the body again, then the
/// gradient. Branches and loops need functions that are in the library of the result alone.
pub(crate) fn symbolic(
    func: &FuncRef,
    library: &FunctionLibrary,
    catalog: &Catalog,
) -> Result<FunctionGraph> {
    if let Some(own) = library.gradients().get(&func.name) {
        let own = FuncRef { name: own.clone(), attrs: func.attrs.clone() };
        return FunctionGraph::instantiate(&own, library, catalog);
    }
    let types = FunctionGraph::instantiate(func, library, catalog)?.result_types;
    let dys: Vec<(usize, DType)> = types.iter().map(|p| p.dtype).enumerate().collect();
    let has = |d: &(usize, DType)| is_differentiable(d.1);
    let live: Vec<(usize, DType)> = dys.iter().copied().filter(has).collect();
    let again = CallGradients::Again;
    let body = DifferentiatedBody::differentiate(func, library, catalog, &live, &[], 1, again)?;
    let mut args: Vec<NodeId> = body.args.iter().map(|e| e.node).collect();
    let mut live = body.dys.iter();
    for d in &dys {
        let given = if has(d) { live.next() } else { None };
        // The caller passes gradients for all results, even for those that have none.
        args.push(match given {
            Some(e) => e.node,
            None => {
                let attrs = Attrs::new().with("T", d.1).with("index", args.len() as i64);
                body.tape.op("_Arg", &[], attrs)?.node
            }
        });
    }
    let (mut rets, mut result_types) = (Vec::new(), Vec::new());
    for (i, dx) in body.dxs.iter().enumerate() {
        let e = match dx {
            Some(e) => *e,
            None => body.tape.zeros_of(body.args[i])?,
        };
        let dtype = body.tape.type_of(e);
        let attrs = Attrs::new().with("T", dtype).with("index", i as i64);
        rets.push(body.tape.ops("_Retval", &[body.tape.term(e)], attrs)?);
        result_types.push(PortType { dtype, is_ref: false });
    }
    for (i, &id) in args.iter().enumerate() {
        let mut state = body.tape.state.borrow_mut();
        let node = state.graph.node_mut(id);
        node.attrs = Arc::new((*node.attrs).clone().with("index", i as i64));
    }
    let graph = body.tape.into_graph();
    Ok(FunctionGraph { graph, args, rets, targets: Vec::new(), result_types })
}

impl TapeState {
    /// Sets the shapes of some tensors and infers the rest.
    fn learn(&mut self, args: &[Endpoint], shapes: &[PartialShape]) {
        for (&e, shape) in args.iter().zip(shapes) {
            self.refine(e, shape);
        }
        for id in crate::passes::topological_order(&self.graph) {
            if self.graph.node(id).op.role == OpRole::Argument {
                continue;
            }
            for (slot, shape) in self.infer(id).iter().enumerate() {
                self.refine(Endpoint::new(id, slot), shape);
            }
        }
    }
}

/// The nodes that depend on the incoming gradients, and all nodes of backward loops.
fn backward_nodes(state: &TapeState, dys: &[Endpoint]) -> HashSet<NodeId> {
    let mut found: HashSet<NodeId> = HashSet::new();
    let dys: HashSet<NodeId> = dys.iter().map(|e| e.node).collect();
    let in_loop = |id: NodeId| {
        matches!(state.contexts[state.places[id.index()]].kind, LoopContextKind::Backward(_))
    };
    let consumers = state.graph.consumers();
    let mut queue: Vec<NodeId> =
        state.graph.ids().filter(|id| dys.contains(id) || in_loop(*id)).collect();
    while let Some(id) = queue.pop() {
        if found.insert(id) {
            queue.extend(consumers[id.index()].iter().map(|c| c.0));
        }
    }
    found.retain(|id| !dys.contains(id));
    found
}

fn is_plain_constant(graph: &GraphIr, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op.role == OpRole::Constant && node.controls.is_empty()
}

/// Makes a function of a part of a graph. `args` are its arguments; inputs of its nodes from
/// outside must be among them.
pub(super) fn function_def(
    name: String,
    graph: &GraphIr,
    is_in: impl Fn(NodeId) -> bool,
    args: &[Endpoint],
    results: &[Endpoint],
) -> FunctionDef {
    let mut signature = OpDef::named(name);
    let arg_def = |name: String, dtype: DType| ArgDef {
        name,
        is_ref: false,
        types: ArgTypes::One(TypeSource::Fixed(dtype)),
    };
    let taken = |name: &str| graph.find(name).is_some();
    let free = |base: String| {
        let more = (0..).map(|i| format!("{base}_{i}"));
        std::iter::once(base.clone()).chain(more).find(|n| !taken(n)).expect("some name is free")
    };
    let mut by_endpoint: HashMap<Endpoint, String> = HashMap::new();
    for (i, &e) in args.iter().enumerate() {
        let name = free(format!("x{i}"));
        signature.inputs.push(arg_def(name.clone(), graph.type_of(e).dtype));
        by_endpoint.insert(e, name);
    }
    let text = |e: Endpoint| match by_endpoint.get(&e) {
        Some(name) => name.clone(),
        None => output_name(graph, e),
    };
    let mut nodes = Vec::new();
    for (id, node) in graph.iter() {
        if !is_in(id) || matches!(node.op.role, OpRole::Argument | OpRole::Return) {
            continue;
        }
        let data = node.inputs.iter().map(|&e| text(e));
        let controls = node.controls.iter().filter(|&&c| {
            is_in(c) && !matches!(graph.node(c).op.role, OpRole::Argument | OpRole::Return)
        });
        let controls = controls.map(|&c| format!("^{}", graph.node(c).name));
        signature.is_stateful |= node.op.is_stateful;
        nodes.push(NodeDef {
            name: node.name.clone(),
            op: node.op.name.clone(),
            inputs: data.chain(controls).collect(),
            device: node.device.clone(),
            attrs: (*node.attrs).clone(),
            full_type: None,
            original_names: node.original_names.clone(),
        });
    }
    let mut ret = BTreeMap::new();
    for (i, &e) in results.iter().enumerate() {
        let name = format!("y{i}");
        signature.outputs.push(arg_def(name.clone(), graph.type_of(e).dtype));
        ret.insert(name, text(e));
    }
    FunctionDef {
        signature,
        nodes,
        ret,
        control_ret: BTreeMap::new(),
        attrs: Attrs::new(),
        arg_attrs: BTreeMap::new(),
        resource_arg_ids: BTreeMap::new(),
        control_outputs: Vec::new(),
    }
}

/// `node:output:index`, as inputs are written within functions.
fn output_name(graph: &GraphIr, e: Endpoint) -> String {
    let node = graph.node(e.node);
    for arg in &node.op.outputs {
        if let Ok(range) = node.op.output_range(&node.attrs, &arg.name)
            && range.contains(&(e.slot as usize))
        {
            return format!("{}:{}:{}", node.name, arg.name, e.slot as usize - range.start);
        }
    }
    format!("{}:{}", node.name, e.slot)
}

impl Tape {
    /// A free name for a function.
    pub(super) fn function_name(&self, base: &str) -> String {
        let state = self.state.borrow();
        let taken =
            |n: &str| state.graph.library.get(n).is_some() || state.catalog.get(n).is_some();
        (0..)
            .map(|i| format!("__{base}_{i}"))
            .find(|name| !taken(name))
            .expect("some number is free")
    }

    /// Takes over a library that grew out of this graph's, and adds functions.
    pub(super) fn add_functions(
        &self,
        grown: FunctionLibrary,
        more: Vec<FunctionDef>,
    ) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let catalog = state.catalog.clone();
        state.graph.library = grown;
        state.graph.library.add(more.into_iter().map(Arc::new), BTreeMap::new(), &catalog)
    }

    /// Replaces the attributes of a node and adds inputs. It may gain outputs but not lose any.
    pub(super) fn replace(
        &self,
        id: NodeId,
        op: Option<Arc<OpDef>>,
        attrs: Attrs,
        more_inputs: Vec<Endpoint>,
    ) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let node = state.graph.node_mut(id);
        if let Some(op) = op {
            node.op = op;
        }
        let attrs = node.op.complete_attrs(attrs)?;
        node.inputs.extend(more_inputs);
        node.input_types = node.op.input_types(&attrs)?;
        node.output_types = node.op.output_types(&attrs)?;
        node.attrs = Arc::new(attrs);
        let count = node.output_types.len();
        let known = &mut state.shapes[id.index()];
        known.resize(count, PartialShape::unknown());
        Ok(())
    }

    /// A placeholder value of this type.
    pub(super) fn dummy(&self, dtype: DType) -> Result<Endpoint> {
        if dtype == DType::Variant {
            return self.op("OptionalNone", &[], Attrs::new());
        }
        self.constant(Tensor::zeros(dtype, [])?)
    }
}
