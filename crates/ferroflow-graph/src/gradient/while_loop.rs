//! The gradient of a v1 while loop: a backward loop.
//!
//! The gradient of a loop variable is a variable of the backward loop. It starts with the gradient
//! of the loop's result. Each iteration turns the gradient of the body's output into the gradient
//! of the body's input. The gradient of a tensor that the loop only reads is summed over the
//! iterations.

use super::backprop::{Reached, sweep};
use super::context::{BackwardLoop, LoopContext, LoopContextId, LoopContextKind, LoopVariable};
use super::history::frame_attrs;
use super::is_differentiable;
use super::slices::EndpointSlices;
use super::tape::{Flow, Tape, TapeState};
use crate::attr::Attrs;
use crate::graph::{Endpoint, NodeId};
use ferroflow_core::{DType, Result, Tensor, bail};
use std::collections::{HashMap, HashSet};

/// Adds the backward loop of loop `of`. `exits` holds the gradients of its results by `Exit` node.
/// Returns the gradients of the tensors that enter the loop.
pub(super) fn gradient(
    tape: &Tape,
    of: LoopContextId,
    exits: &HashMap<NodeId, Flow>,
    reached: &Reached,
) -> Result<Vec<(Endpoint, Flow)>> {
    let (variables, invariants) = {
        let state = tape.state.borrow();
        let LoopContextKind::Forward(forward) = &state.contexts[of].kind else {
            bail!(Internal, "only forward loops have gradients");
        };
        let variables: Vec<LoopVariable> = forward
            .variables
            .iter()
            .filter(|v| {
                reached.contains(v.merge)
                    && is_differentiable(state.graph.node(v.merge).output_types[0].dtype)
            })
            .cloned()
            .collect();
        let invariants: Vec<NodeId> = forward
            .enters
            .iter()
            .copied()
            .filter(|&e| {
                let node = state.graph.node(e);
                node.attrs.bool("is_constant").unwrap_or(false)
                    && reached.contains(e)
                    && is_differentiable(node.output_types[0].dtype)
            })
            .collect();
        (active(&state, variables, exits), invariants)
    };
    if variables.is_empty() {
        return Ok(Vec::new());
    }
    let outside = tape.state.borrow().current;
    let mut start = Vec::new();
    for v in &variables {
        let mut flows = Vec::new();
        for exit in &v.exits {
            flows.push(exits.get(exit).copied().unwrap_or(Flow::None));
        }
        let flow = match (tape.sum(&flows)?, v.exits.first()) {
            (Flow::None, Some(&exit)) => Flow::Zeros(Endpoint { node: exit, slot: 0 }),
            // Not a result of the loop: it has its initial shape, or the shape is unknown.
            (Flow::None, None) => Flow::Zeros(tape.graph().node(v.enter).inputs[0]),
            (flow, _) => flow,
        };
        let e = tape.flow(flow).endpoint()?;
        start.push(tape.state.borrow_mut().bring(e, outside)?);
    }

    let back = tape.state.borrow_mut().begin_backward(of)?;
    let mut carried = Vec::new();
    for &e in &start {
        carried.push(tape.state.borrow_mut().carry(e, back)?);
    }
    tape.state.borrow_mut().current = back;
    let graph_inputs = |id: NodeId| tape.graph().node(id).inputs[0];
    let ys: Vec<(Endpoint, Flow)> = variables
        .iter()
        .zip(&carried)
        .map(|(v, c)| (graph_inputs(v.next), Flow::Tensor(c.within)))
        .collect();
    let mut xs: Vec<Endpoint> = Vec::new();
    for v in &variables {
        let Some(switch) = v.switch else {
            bail!(InvalidArgument, "a while loop lacks the Switch of a variable");
        };
        xs.push(Endpoint { node: switch, slot: 1 });
    }
    xs.extend(invariants.iter().map(|&node| Endpoint { node, slot: 0 }));
    let stops: HashSet<NodeId> = xs.iter().map(|e| e.node).collect();
    let found = sweep(tape, of, ys, &xs, &stops, reached)?;

    let mut results = Vec::new();
    for ((v, c), flow) in variables.iter().zip(&carried).zip(&found) {
        let next = match *flow {
            Flow::None => tape.op("ZerosLike", &[tape.term(c.within)], Attrs::new())?,
            flow => tape.flow(flow).endpoint()?,
        };
        let mut state = tape.state.borrow_mut();
        let next = state.bring(next, back)?;
        let end = state.close(c, next, back)?;
        results.push((state.graph.node(v.enter).inputs[0], Flow::Tensor(end)));
    }
    for (&enter, &flow) in invariants.iter().zip(&found[variables.len()..]) {
        let source = graph_inputs(enter);
        let flow = match flow {
            Flow::None => continue,
            Flow::Slices(s) => Flow::Slices(gather_slices(tape, s, source, back, outside)?),
            flow => Flow::Tensor(gather_sum(tape, flow, source, back, outside)?),
        };
        results.push((source, flow));
    }
    tape.state.borrow_mut().current = outside;
    Ok(results)
}

/// The variables whose gradient may not be zero: those whose results have gradients, and those from
/// which they are computed.
fn active(
    state: &TapeState,
    variables: Vec<LoopVariable>,
    exits: &HashMap<NodeId, Flow>,
) -> Vec<LoopVariable> {
    let mut is_active: Vec<bool> = variables
        .iter()
        .map(|v| v.exits.iter().any(|e| exits.get(e).is_some_and(|f| *f != Flow::None)))
        .collect();
    let by_switch: HashMap<NodeId, usize> =
        variables.iter().enumerate().filter_map(|(i, v)| Some((v.switch?, i))).collect();
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut queue: Vec<NodeId> =
        variables.iter().zip(&is_active).filter(|(_, a)| **a).map(|(v, _)| v.next).collect();
    while let Some(id) = queue.pop() {
        if !seen.insert(id) {
            continue;
        }
        if let Some(&i) = by_switch.get(&id) {
            if !is_active[i] {
                is_active[i] = true;
                queue.push(variables[i].next);
            }
            continue;
        }
        queue.extend(state.graph.node(id).inputs.iter().map(|e| e.node));
    }
    variables.into_iter().zip(is_active).filter(|(_, a)| *a).map(|(v, _)| v).collect()
}

/// A variable of the backward loop.
struct Carried {
    merge: NodeId,
    /// Its value when the loop ends.
    end: Endpoint,
    /// Its value in an iteration.
    within: Endpoint,
}

impl TapeState {
    /// The frame of the backward loop of `of`, with its counter.
    fn begin_backward(&mut self, of: LoopContextId) -> Result<LoopContextId> {
        let outside = self.current;
        let counter = self.counter(of)?;
        let total = self.bring(counter.total, outside)?;
        let LoopContextKind::Forward(forward) = &self.contexts[of].kind else {
            bail!(Internal, "only forward loops have gradients");
        };
        let parallel_iterations = forward.parallel_iterations;
        let frame = format!("{}/{}_back_{}", self.prefix(), forward.frame, self.contexts.len());
        let id = self.contexts.len();
        let unset = NodeId(u32::MAX);
        self.contexts.push(LoopContext {
            parent: outside,
            kind: LoopContextKind::Backward(BackwardLoop {
                of,
                frame: frame.clone(),
                parallel_iterations,
                pivot: unset,
                sync: unset,
                entered: HashMap::new(),
                recalled: HashMap::new(),
                branches: HashMap::new(),
            }),
        });
        let attrs = frame_attrs(&frame, parallel_iterations, false);
        let enter = self.insert_first("Enter", vec![total], attrs, vec![], id)?;
        let merge = self.insert_first("Merge", vec![enter, enter], Attrs::new(), vec![], id)?;
        let number = |x: i32| {
            let value = Tensor::scalar(x);
            Attrs::new().with("dtype", value.dtype()).with("value", value)
        };
        let one = self.insert_first("Const", vec![], number(1), vec![merge.node], id)?;
        let more = self.insert_first("GreaterEqual", vec![merge, one], Attrs::new(), vec![], id)?;
        let condition = self.insert_first("LoopCond", vec![more], Attrs::new(), vec![], id)?;
        let switch = self.insert("Switch", vec![merge, condition], Attrs::new(), vec![], id)?;
        let goes_on = Endpoint { node: switch, slot: 1 };
        let index = self.insert_first("Sub", vec![goes_on, one], Attrs::new(), vec![], id)?;
        let pivot = index.node;
        let sync = self.insert("ControlTrigger", vec![], Attrs::new(), vec![pivot], id)?;
        let next = self.insert_first("NextIteration", vec![index], Attrs::new(), vec![sync], id)?;
        self.graph.node_mut(merge.node).inputs[1] = next;
        let backward = self.backward(id);
        (backward.pivot, backward.sync) = (pivot, sync);
        self.conditions.insert(id, condition);
        Ok(id)
    }

    /// Adds a variable to the loop `back`. Its initial value `start` is outside the loop.
    fn carry(&mut self, start: Endpoint, back: LoopContextId) -> Result<Carried> {
        let enter = self.enter(start, back, false)?;
        let merge = self.insert_first("Merge", vec![enter, enter], Attrs::new(), vec![], back)?;
        let condition = self.conditions[&back];
        let switch = self.insert("Switch", vec![merge, condition], Attrs::new(), vec![], back)?;
        let identity = Endpoint { node: switch, slot: 1 };
        let within = self.insert_first("Identity", vec![identity], Attrs::new(), vec![], back)?;
        Ok(Carried { merge: merge.node, end: Endpoint { node: switch, slot: 0 }, within })
    }

    /// Sets the variable's value in the next iteration. Returns its value after the loop.
    fn close(&mut self, c: &Carried, next: Endpoint, back: LoopContextId) -> Result<Endpoint> {
        let outside = self.contexts[back].parent;
        let next = self.insert_first("NextIteration", vec![next], Attrs::new(), vec![], back)?;
        self.graph.node_mut(c.merge).inputs[1] = next;
        self.insert_first("Exit", vec![c.end], Attrs::new(), vec![], outside)
    }
}

/// Runs `make` in another context.
fn within<R>(tape: &Tape, context: LoopContextId, make: impl FnOnce() -> Result<R>) -> Result<R> {
    let before = std::mem::replace(&mut tape.state.borrow_mut().current, context);
    let result = make();
    tape.state.borrow_mut().current = before;
    result
}

/// The sum over all iterations of the gradient of a tensor that the loop reads.
fn gather_sum(
    tape: &Tape,
    flow: Flow,
    source: Endpoint,
    back: LoopContextId,
    outside: LoopContextId,
) -> Result<Endpoint> {
    let gradient = tape.flow(flow).endpoint()?;
    let dtype = tape.type_of(gradient);
    let zeros = within(tape, outside, || match tape.type_of(source) {
        DType::Resource => tape.zeros_of_variable(source, dtype),
        _ => {
            let zeros = tape.zeros_of(source)?;
            tape.state.borrow_mut().bring(zeros, outside)
        }
    })?;
    let carried = tape.state.borrow_mut().carry(zeros, back)?;
    let sum = tape.op("AddN", &[tape.term(carried.within), tape.term(gradient)], Attrs::new())?;
    tape.state.borrow_mut().close(&carried, sum, back)
}

/// All rows of all iterations.
fn gather_slices(
    tape: &Tape,
    s: EndpointSlices,
    source: Endpoint,
    back: LoopContextId,
    outside: LoopContextId,
) -> Result<EndpointSlices> {
    let index_type = tape.type_of(s.indices);
    let dtype = tape.type_of(s.values);
    // No rows yet: the shape of the whole tensor with a first dimension of 0.
    let (values, indices, shape) = within(tape, outside, || {
        let whole = tape.term(source);
        let shape = whole.shape();
        let ints = |values: &[i64]| tape.integers(values, DType::Int32).map(|e| tape.term(e));
        let attrs = Attrs::new().with("end_mask", 1i64);
        let rest =
            tape.op("StridedSlice", &[shape, ints(&[1])?, ints(&[0])?, ints(&[1])?], attrs)?;
        let axis = tape.term(tape.number(0.0, DType::Int32)?);
        let empty = tape.op("ConcatV2", &[ints(&[0])?, tape.term(rest), axis], Attrs::new())?;
        let zero = tape.term(tape.number(0.0, dtype)?);
        let values = tape.op("Fill", &[tape.term(empty), zero], Attrs::new())?;
        let indices = tape.constant(Tensor::zeros(index_type, [0])?)?;
        Ok((values, indices, shape.endpoint()?))
    })?;
    let join = |start: Endpoint, more: Endpoint| -> Result<Endpoint> {
        let carried = tape.state.borrow_mut().carry(start, back)?;
        let axis = tape.term(tape.number(0.0, DType::Int32)?);
        let inputs = [tape.term(carried.within), tape.term(more), axis];
        let joined = tape.op("ConcatV2", &inputs, Attrs::new())?;
        tape.state.borrow_mut().close(&carried, joined, back)
    };
    Ok(EndpointSlices {
        values: join(values, s.values)?,
        indices: join(indices, s.indices)?,
        shape,
    })
}
