//! The backward walk: visits each node between ys and xs once the gradients of all its outputs are
//! known.

use super::context::{LoopContextId, LoopContextKind, ROOT};
use super::scope::GradientScope;
use super::tape::{Flow, Tape};
use super::{EndpointGradient, GradientOptions, OpGradient, is_differentiable, while_loop};
use crate::attr::FuncRef;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::{ControlFlow, OpDef};
use ferroflow_core::{DType, Result, bail, ensure};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Does the work of [`super::gradients`].
pub(super) fn all(
    tape: &Tape,
    ys: &[Endpoint],
    xs: &[Endpoint],
    options: &GradientOptions,
) -> Result<Vec<Option<EndpointGradient>>> {
    let mut start = Vec::with_capacity(ys.len());
    for (i, &y) in ys.iter().enumerate() {
        let given = options.grad_ys.get(i).copied().flatten();
        start.push((y, first_gradient(tape, y, given)?));
    }
    for &x in xs.iter().chain(ys) {
        let state = tape.state.borrow();
        ensure!(
            state.places[x.node.index()] == ROOT,
            InvalidArgument,
            "Cannot compute gradients with respect to, or of, '{}', which is inside a while loop",
            state.graph.node(x.node).name
        );
    }
    let reached = Reached::from(&tape.graph(), xs);
    let stops = options.stop_gradients.iter().map(|e| e.node).collect();
    let found = sweep(tape, ROOT, start, xs, &stops, &reached)?;
    let mut out = Vec::with_capacity(xs.len());
    for flow in found {
        out.push(match flow {
            Flow::None => None,
            Flow::Slices(s) => Some(EndpointGradient::Slices(s)),
            other => Some(EndpointGradient::Tensor(tape.flow(other).endpoint()?)),
        });
    }
    tape.check()?;
    Ok(out)
}

/// The initial gradient of a y.
fn first_gradient(tape: &Tape, y: Endpoint, given: Option<Endpoint>) -> Result<Flow> {
    let (name, dtype) = {
        let graph = tape.graph();
        (graph.node(y.node).name.clone(), graph.type_of(y).dtype)
    };
    let Some(given) = given else {
        ensure!(
            !dtype.is_complex(),
            InvalidArgument,
            "Gradients of complex tensors ({name}) must set grad_ys (y.dtype = {dtype})"
        );
        if !is_differentiable(dtype) || dtype == DType::Resource {
            return Ok(Flow::None);
        }
        return Ok(Flow::Tensor(tape.term(y).ones_like().endpoint()?));
    };
    let of = tape.type_of(given);
    ensure!(
        of == dtype || dtype == DType::Resource || dtype == DType::Variant,
        InvalidArgument,
        "Gradient type {of} generated for tensor '{name}' must be {dtype}, the type of the tensor"
    );
    Ok(Flow::Tensor(given))
}

/// The nodes that depend on the xs through tensors that have gradients.
pub(super) struct Reached(Vec<bool>);

impl Reached {
    pub fn from(graph: &GraphIr, xs: &[Endpoint]) -> Reached {
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); graph.len()];
        for (id, node) in graph.iter() {
            for &e in &node.inputs {
                if is_differentiable(graph.type_of(e).dtype) {
                    users[e.node.index()].push(id);
                }
            }
        }
        let mut reached = vec![false; graph.len()];
        let mut queue: Vec<NodeId> = xs.iter().map(|e| e.node).collect();
        while let Some(id) = queue.pop() {
            if !std::mem::replace(&mut reached[id.index()], true) {
                queue.extend(&users[id.index()]);
            }
        }
        Reached(reached)
    }

    pub fn contains(&self, id: NodeId) -> bool {
        self.0.get(id.index()).copied().unwrap_or(false)
    }
}

/// What the walk visits: a node or a whole loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    Node(NodeId),
    Loop(LoopContextId),
}

/// Walks back from the ys, whose gradients are given, to the xs within one context of the graph. It
/// does not go beyond `stops`.
pub(super) fn sweep(
    tape: &Tape,
    context: LoopContextId,
    ys: Vec<(Endpoint, Flow)>,
    xs: &[Endpoint],
    stops: &HashSet<NodeId>,
    reached: &Reached,
) -> Result<Vec<Flow>> {
    let plan = BackpropPlan::new(tape, context, &ys, stops, reached);
    let mut pending = plan.uses.clone();
    let mut flows: HashMap<Endpoint, Vec<Flow>> = HashMap::new();
    let mut queue = VecDeque::new();
    let mut queued = HashSet::new();
    for (y, flow) in ys {
        flows.entry(y).or_default().push(flow);
        if let Some(item) = plan.item(tape, y.node)
            && pending.get(&item).copied().unwrap_or(0) == 0
            && queued.insert(item)
        {
            queue.push_back(item);
        }
    }
    while let Some(item) = queue.pop_front() {
        let sources = plan.sources(tape, item);
        let worth = match item {
            Item::Node(id) => !stops.contains(&id),
            Item::Loop(_) => true,
        } && sources.iter().any(|e| plan.has(tape, e.node));
        let found = match item {
            _ if !worth => Vec::new(),
            Item::Node(id) => node_gradient(tape, id, &mut flows)?,
            Item::Loop(of) => {
                let mut exits = HashMap::new();
                for &exit in &plan.exits[&of] {
                    let e = Endpoint { node: exit, slot: 0 };
                    let flow = tape.sum(flows.get(&e).map_or(&[], |f| f.as_slice()))?;
                    exits.insert(exit, flow);
                }
                if exits.values().all(|f| *f == Flow::None) {
                    Vec::new()
                } else {
                    while_loop::gradient(tape, of, &exits, reached)?
                }
            }
        };
        for (e, flow) in found {
            flows.entry(e).or_default().push(flow);
        }
        for e in sources {
            let Some(item) = plan.item(tape, e.node) else { continue };
            let Some(count) = pending.get_mut(&item) else { continue };
            *count -= 1;
            if *count == 0 && queued.insert(item) {
                queue.push_back(item);
            }
        }
    }
    xs.iter().map(|x| tape.sum(flows.get(x).map_or(&[], |f| f.as_slice()))).collect()
}

/// The items between the ys and the xs.
struct BackpropPlan {
    /// How many inputs of the other items come from each item.
    uses: HashMap<Item, usize>,
    between: HashSet<Item>,
    /// The results of each loop.
    exits: HashMap<LoopContextId, Vec<NodeId>>,
}

impl BackpropPlan {
    fn new(
        tape: &Tape,
        context: LoopContextId,
        ys: &[(Endpoint, Flow)],
        stops: &HashSet<NodeId>,
        reached: &Reached,
    ) -> BackpropPlan {
        let mut plan =
            BackpropPlan { uses: HashMap::new(), between: HashSet::new(), exits: HashMap::new() };
        {
            let state = tape.state.borrow();
            for (i, c) in state.contexts.iter().enumerate() {
                if let LoopContextKind::Forward(forward) = &c.kind
                    && c.parent == context
                {
                    let exits = forward.variables.iter().flat_map(|v| v.exits.iter().copied());
                    plan.exits.insert(i, exits.collect());
                }
            }
        }
        let mut queue: Vec<Item> = Vec::new();
        let consider = |plan: &mut BackpropPlan, queue: &mut Vec<Item>, id: NodeId| {
            if !reached.contains(id) {
                return;
            }
            if let Some(item) = item_of(tape, id)
                && plan.between.insert(item)
            {
                queue.push(item);
            }
        };
        for (y, _) in ys {
            consider(&mut plan, &mut queue, y.node);
        }
        while let Some(item) = queue.pop() {
            if matches!(item, Item::Node(id) if stops.contains(&id)) {
                continue;
            }
            for e in plan.sources(tape, item) {
                consider(&mut plan, &mut queue, e.node);
            }
        }
        for &item in &plan.between.clone() {
            for e in plan.sources(tape, item) {
                if let Some(source) = plan.item(tape, e.node) {
                    *plan.uses.entry(source).or_insert(0) += 1;
                }
            }
        }
        plan
    }

    /// The item of a node, if it is between the ys and the xs.
    fn item(&self, tape: &Tape, id: NodeId) -> Option<Item> {
        item_of(tape, id).filter(|item| self.between.contains(item))
    }

    fn has(&self, tape: &Tape, id: NodeId) -> bool {
        self.item(tape, id).is_some()
    }

    /// The inputs of an item.
    fn sources(&self, tape: &Tape, item: Item) -> Vec<Endpoint> {
        let state = tape.state.borrow();
        match item {
            Item::Node(id) => state.graph.node(id).inputs.clone(),
            Item::Loop(of) => match &state.contexts[of].kind {
                LoopContextKind::Forward(f) => {
                    f.enters.iter().map(|&e| state.graph.node(e).inputs[0]).collect()
                }
                _ => Vec::new(),
            },
        }
    }
}

/// The item of a node: for `Exit` it is the whole loop.
fn item_of(tape: &Tape, id: NodeId) -> Option<Item> {
    let state = tape.state.borrow();
    let node = state.graph.node(id);
    Some(match node.op.control_flow {
        Some(ControlFlow::Exit) => Item::Loop(state.places[node.inputs.first()?.node.index()]),
        _ => Item::Node(id),
    })
}

/// The gradients of a node's inputs, from the gradients of its outputs.
fn node_gradient(
    tape: &Tape,
    id: NodeId,
    flows: &mut HashMap<Endpoint, Vec<Flow>>,
) -> Result<Vec<(Endpoint, Flow)>> {
    let (op, name, types, inputs) = {
        let graph = tape.graph();
        let n = graph.node(id);
        let types: Vec<DType> = n.output_types.iter().map(|p| p.dtype).collect();
        (n.op.clone(), n.name.clone(), types, n.inputs.clone())
    };
    tape.state.borrow_mut().around = Some(id);
    let mut incoming = Vec::with_capacity(types.len());
    for slot in 0..types.len() {
        let e = Endpoint::new(id, slot);
        // Keep the sum: this tensor may be one of the xs.
        let sum = tape.sum(flows.get(&e).map_or(&[], |f| f.as_slice()))?;
        if sum != Flow::None {
            flows.insert(e, vec![sum]);
        }
        incoming.push(sum);
    }
    if incoming.iter().all(|f| *f == Flow::None) {
        return Ok(Vec::new());
    }
    for (slot, flow) in incoming.iter_mut().enumerate() {
        if *flow == Flow::None && is_differentiable(types[slot]) {
            *flow = Flow::Zeros(Endpoint::new(id, slot));
        }
    }
    let of = match gradient_of(tape, id, &op)? {
        OpGradient::Stops => return Ok(Vec::new()),
        OpGradient::Function(f) => f,
    };
    let scope = GradientScope::new(tape, id);
    let terms: Vec<_> = incoming.iter().map(|&f| tape.flow(f)).collect();
    let made = of(&scope, &terms).and_then(|made| tape.check().map(|()| made));
    let made = made.map_err(|e| {
        let context = format!("gradient of node '{name}' (op {})", op.name);
        e.context(context)
    })?;
    ensure!(
        made.len() == inputs.len(),
        Internal,
        "Num gradients {} generated for node '{name}' (op {}) do not match num inputs {}",
        made.len(),
        op.name,
        inputs.len()
    );
    let mut out = Vec::with_capacity(made.len());
    for (&e, term) in inputs.iter().zip(made) {
        let flow = match term.flow {
            Flow::Tensor(found) => {
                let mut state = tape.state.borrow_mut();
                let here = state.current;
                let found = state.bring(found, here)?;
                let (want, shape) = (state.graph.type_of(e).dtype, state.shape(e));
                let have = state.graph.type_of(found).dtype;
                ensure!(
                    have == want || matches!(want, DType::Resource | DType::Variant),
                    Internal,
                    "the gradient of node '{name}' (op {}) is a {have} for an input of {want}",
                    op.name
                );
                if want != DType::Resource {
                    state.refine(found, &shape);
                }
                Flow::Tensor(found)
            }
            flow => flow,
        };
        if flow != Flow::None {
            out.push((e, flow));
        }
    }
    tape.state.borrow_mut().around = None;
    Ok(out)
}

/// The gradient function of a node.
fn gradient_of(tape: &Tape, id: NodeId, op: &Arc<OpDef>) -> Result<OpGradient> {
    let graph = tape.graph();
    let node = graph.node(id);
    // A client can name another op whose gradient is to be used.
    if let Ok(other) = node.attrs.string("_gradient_op_type") {
        let state = tape.state.borrow();
        if let Some(found) = state.catalog.get(&other).and_then(|op| op.gradient.clone()) {
            return Ok(found);
        }
        bail!(
            Unimplemented,
            "No gradient defined for operation '{}' (op type: {}): its gradient '{other}' is only \
             known to the client that made the graph",
            node.name,
            op.name
        );
    }
    match &op.gradient {
        Some(found) => Ok(found.clone()),
        // The op of a node can be the name of a function.
        None if graph.library.get(&op.name).is_some() => {
            let name = op.name.clone();
            Ok(OpGradient::Function(Arc::new(move |g, dy| {
                let func = FuncRef { name: name.clone(), attrs: g.attrs().clone() };
                g.call_gradient(func, None, dy)
            })))
        }
        None => bail!(
            Unimplemented,
            "No gradient defined for operation '{}' (op type: {}): the op cannot be differentiated",
            node.name,
            op.name
        ),
    }
}
