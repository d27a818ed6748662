//! How values travel when there is control flow: dead values, and loops whose iterations each have
//! slots and counters of their own. One lock per frame instance.
//!
//! A frame instance is one run of a loop. Its iterations are a window: iteration `i + 1` starts
//! when a NextIteration fires in `i` and fewer than `parallel_iterations` are under way, else its
//! first values wait. An iteration is over when nothing in it, nor in a child it entered, is left
//! to run and the one before it is over; a frame when all its inputs came and all its iterations
//! are over. Then its Exits that were only ever dead tell the parent so.

use crate::executor::Propagator;
use crate::frame_id::child_frame_id;
use crate::plan::{CONTROL, Edge, NodeKind, Plan, PlanNode, ROOT};
use ferroflow_core::{Outputs, Tensor, Value};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The frames of one step.
pub(crate) struct Frames {
    root: Arc<Frame>,
    /// Nodes whose async kernels are under way.
    parked: Mutex<Parked>,
}

#[derive(Default)]
struct Parked {
    nodes: HashMap<u64, ReadyNode>,
    next: u64,
}

/// One instance of a frame.
pub(crate) struct Frame {
    /// Index of its `FrameInfo`.
    info: u32,
    id: u64,
    /// The frame it was entered from, and the iteration.
    parent: Option<(Arc<Frame>, u64)>,
    state: Mutex<FrameState>,
}

struct FrameState {
    /// Iterations under way; the front one is number `first`.
    iterations: VecDeque<Box<Iteration>>,
    first: u64,
    /// Enters that have not fired yet.
    pending_enters: u32,
    /// Iterations that are not over.
    under_way: u32,
    /// Values of loop invariants, for iterations to come.
    invariants: Vec<(u32, Value)>,
    /// NextIteration nodes that wait for room, with their values.
    waiting_next: Vec<(u32, Value)>,
    /// Exits that were dead.
    dead_exits: Vec<u32>,
    /// Child instances that have inputs to come or iterations under way, by frame and iteration.
    children: HashMap<(u32, u64), Arc<Frame>>,
    /// A finished iteration's memory, for the next.
    spare: Option<Box<Iteration>>,
}

struct Iteration {
    slots: Vec<Value>,
    counts: Vec<Count>,
    /// Nodes ready or running, and children entered that are not done.
    outstanding: u32,
}

#[derive(Clone, Copy)]
struct Count {
    pending: u32,
    dead: u32,
}

/// A node ready to run, with its inputs.
pub(crate) struct ReadyNode {
    node: u32,
    is_dead: bool,
    iteration: u64,
    frame: Arc<Frame>,
    inputs: SmallVec<[Value; 2]>,
}

impl Frames {
    pub fn new(plan: &Plan) -> Frames {
        let root = Frame::new(plan, ROOT, 0, None);
        Frames { root, parked: Mutex::default() }
    }
}

impl Propagator for Frames {
    type Ready = ReadyNode;

    fn start(&self, plan: &Plan, args: Vec<Tensor>, ready: &mut Vec<ReadyNode>) {
        {
            let mut state = self.root.state.lock();
            if let Some(iteration) = state.iteration(0) {
                // The start itself counts, so that the root is not over before it has begun.
                iteration.outstanding += 1 + plan.roots.len() as u32;
            }
        }
        for &node in &plan.roots {
            ready.push(ReadyNode {
                node,
                is_dead: false,
                iteration: 0,
                frame: self.root.clone(),
                inputs: SmallVec::new(),
            });
        }
        let mut outputs = Outputs::new();
        let mut state = self.root.state.lock();
        for (&node, arg) in plan.args.iter().zip(args) {
            outputs.clear();
            outputs.push(Value::Tensor(arg));
            let edges = plan.edges_of(&plan.nodes[node as usize]);
            self.root.activate(&mut state, plan, 0, edges, Some(&mut outputs), ready);
        }
    }

    fn node(ready: &ReadyNode) -> u32 {
        ready.node
    }

    fn is_dead(ready: &ReadyNode) -> bool {
        ready.is_dead
    }

    fn frame_iter(ready: &ReadyNode) -> (u64, u64) {
        (ready.frame.id, ready.iteration)
    }

    fn inputs<'a>(&'a self, _: &Plan, ready: &'a mut ReadyNode) -> &'a mut [Value] {
        &mut ready.inputs
    }

    fn complete(
        &self,
        plan: &Plan,
        ready: ReadyNode,
        outputs: Option<&mut Outputs>,
        queue: &mut Vec<ReadyNode>,
    ) {
        let node = &plan.nodes[ready.node as usize];
        let (frame, iteration) = (&ready.frame, ready.iteration);
        let edges = plan.edges_of(node);
        match node.kind {
            NodeKind::Enter { frame: child, is_constant } => {
                let from = (frame, iteration, ready.node);
                enter(from, (child, is_constant), outputs, plan, queue);
            }
            NodeKind::Exit => match (outputs, &frame.parent) {
                (Some(outputs), Some((parent, at))) => {
                    let mut state = parent.state.lock();
                    parent.activate(&mut state, plan, *at, edges, Some(outputs), queue);
                }
                _ => {
                    // Dead in every iteration but the last: only the newest one's word counts.
                    let mut state = frame.state.lock();
                    if iteration == state.newest() {
                        state.dead_exits.push(ready.node);
                    }
                }
            },
            NodeKind::NextIteration => {
                if let Some(outputs) = outputs {
                    let value = outputs.first_mut().map(std::mem::take).unwrap_or_default();
                    next_iteration(frame, iteration, ready.node, value, plan, queue);
                }
            }
            _ => {
                let mut state = frame.state.lock();
                frame.activate(&mut state, plan, iteration, edges, outputs, queue);
                if !state.count_down(iteration) {
                    return;
                }
                drop(state);
                return iteration_idle(frame, plan, queue);
            }
        }
        let idle = frame.state.lock().count_down(iteration);
        if idle {
            iteration_idle(frame, plan, queue);
        }
    }

    fn park(&self, ready: ReadyNode) -> u64 {
        let mut parked = self.parked.lock();
        let token = parked.next;
        parked.next += 1;
        parked.nodes.insert(token, ready);
        token
    }

    fn parked_node(&self, token: u64) -> Option<u32> {
        self.parked.lock().nodes.get(&token).map(|ready| ready.node)
    }

    fn unpark(&self, token: u64) -> Option<ReadyNode> {
        self.parked.lock().nodes.remove(&token)
    }

    fn finish(self, _: &Plan, _: bool) {}
}

impl Drop for Frames {
    fn drop(&mut self) {
        // A step that failed leaves frames behind, which parents and children keep alive in turn.
        let mut left = vec![self.root.clone()];
        while let Some(frame) = left.pop() {
            left.extend(std::mem::take(&mut frame.state.lock().children).into_values());
        }
    }
}

impl Frame {
    fn new(plan: &Plan, info: u32, id: u64, parent: Option<(Arc<Frame>, u64)>) -> Arc<Frame> {
        let frames = plan.frames.as_deref().unwrap_or_default();
        let enters = frames.get(info as usize).map_or(0, |f| f.enters);
        let frame = Frame {
            info,
            id,
            parent,
            state: Mutex::new(FrameState {
                iterations: VecDeque::new(),
                first: 0,
                pending_enters: enters,
                under_way: 0,
                invariants: Vec::new(),
                waiting_next: Vec::new(),
                dead_exits: Vec::new(),
                children: HashMap::new(),
                spare: None,
            }),
        };
        frame.state.lock().push_iteration(plan, info);
        Arc::new(frame)
    }

    /// Hands the outputs of a node (`None`: all dead) to the consumers in `edges`, in iteration
    /// `iteration` of this frame, whose lock is held. Consumers that became ready are queued.
    fn activate(
        self: &Arc<Frame>,
        state: &mut FrameState,
        plan: &Plan,
        iteration: u64,
        edges: &[Edge],
        mut outputs: Option<&mut Outputs>,
        queue: &mut Vec<ReadyNode>,
    ) {
        let Some(current) = state.iteration(iteration) else { return };
        for edge in edges {
            let to = &plan.nodes[edge.to as usize];
            let mut value = match &mut outputs {
                None => Value::Dead,
                Some(_) if edge.slot == CONTROL => Value::Empty,
                Some(outputs) => match outputs.get_mut(edge.slot as usize) {
                    Some(value) if edge.is_last_use => std::mem::take(value),
                    Some(value) => value.clone(),
                    None => Value::Empty,
                },
            };
            let is_control = edge.slot == CONTROL;
            if !is_control && value.is_empty() {
                value = Value::Dead; // the branch of a Switch that was not taken
            }
            let count = &mut current.counts[to.frame_node as usize];
            // In a loop whose Exit is alive more than once, more arrives than was waited for.
            if count.pending == 0 || (is_control && to.kind == NodeKind::Merge && count.pending < 2)
            {
                continue;
            }
            let (is_ready, is_dead) = if to.kind == NodeKind::Merge {
                count.merge(edge, &mut value, to)
            } else {
                count.pending -= 1;
                count.dead += u32::from(value.is_dead());
                let is_dead = count.dead > 0 && to.kind != NodeKind::ControlTrigger;
                (count.pending == 0, is_dead)
            };
            if !is_control && !value.is_dead() && !value.is_empty() {
                current.slots[(to.frame_slot + edge.input) as usize] = value;
            }
            if is_ready {
                current.outstanding += 1;
                let from = to.frame_slot as usize;
                let inputs = current.slots[from..from + to.inputs as usize].iter_mut();
                queue.push(ReadyNode {
                    node: edge.to,
                    is_dead,
                    iteration,
                    frame: self.clone(),
                    inputs: inputs.map(std::mem::take).collect(),
                });
            }
        }
    }
}

impl Count {
    /// Counts an arrival at a Merge, which fires on its first live value, or when all its inputs
    /// are dead, and in any case after its control inputs. `pending` is 1 until a value came, plus
    /// 2 for each control edge. A value that comes too late is dropped. At the head of a loop that
    /// is entered dead the other input is never going to come: a NextIteration says nothing rather
    /// than something dead.
    fn merge(&mut self, edge: &Edge, value: &mut Value, to: &PlanNode) -> (bool, bool) {
        if edge.slot == CONTROL {
            self.pending -= 2;
            let all_dead = self.dead == to.inputs;
            (self.pending == 0 || (self.pending == 1 && all_dead), all_dead)
        } else if value.is_dead() {
            self.dead = if edge.is_from_enter { to.inputs } else { self.dead + 1 };
            let all_dead = self.dead == to.inputs;
            (self.pending == 1 && all_dead, all_dead)
        } else if self.pending & 1 == 1 {
            self.pending -= 1;
            (self.pending == 0, false)
        } else {
            *value = Value::Empty;
            (false, false)
        }
    }
}

impl FrameState {
    fn iteration(&mut self, number: u64) -> Option<&mut Iteration> {
        let at = number.checked_sub(self.first)?;
        self.iterations.get_mut(at as usize).map(|i| &mut **i)
    }

    /// Starts the next iteration.
    fn push_iteration(&mut self, plan: &Plan, info: u32) -> u64 {
        let nodes = plan
            .frames
            .as_deref()
            .and_then(|frames| frames.get(info as usize))
            .map_or(&[][..], |f| &f.nodes[..]);
        let slots = plan.frames.as_deref().map_or(0, |f| f[info as usize].slots as usize);
        let mut iteration = self.spare.take().unwrap_or_else(|| {
            Box::new(Iteration { slots: Vec::new(), counts: Vec::new(), outstanding: 0 })
        });
        iteration.slots.clear();
        iteration.slots.resize(slots, Value::Empty);
        iteration.counts.clear();
        iteration.counts.extend(
            nodes.iter().map(|&n| Count { pending: plan.nodes[n as usize].pending, dead: 0 }),
        );
        iteration.outstanding = 0;
        self.iterations.push_back(iteration);
        self.under_way += 1;
        self.first + self.iterations.len() as u64 - 1
    }

    /// One thing less outstanding in an iteration; whether that was the last.
    fn count_down(&mut self, iteration: u64) -> bool {
        match self.iteration(iteration) {
            Some(current) => {
                current.outstanding -= 1;
                current.outstanding == 0
            }
            None => false,
        }
    }

    /// Number of the newest iteration.
    fn newest(&self) -> u64 {
        (self.first + self.iterations.len() as u64).saturating_sub(1)
    }

    /// Whether another iteration may start.
    fn has_room(&self, plan: &Plan, info: u32) -> bool {
        let parallel = plan.frames.as_deref().map_or(1, |f| f[info as usize].parallel_iterations);
        self.under_way < parallel
    }

    fn is_done(&self) -> bool {
        self.pending_enters == 0 && self.under_way == 0
    }
}

/// An Enter fired: its value goes to the child frame, which the first of them makes.
fn enter(
    (frame, iteration, node): (&Arc<Frame>, u64, u32),
    (child, is_constant): (u32, bool),
    mut outputs: Option<&mut Outputs>,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    let instance = {
        let mut state = frame.state.lock();
        match state.children.get(&(child, iteration)) {
            Some(found) => found.clone(),
            None => {
                let name = plan.frames.as_deref().map_or("", |f| &f[child as usize].name);
                let id = child_frame_id(frame.id, iteration, name);
                let made = Frame::new(plan, child, id, Some((frame.clone(), iteration)));
                state.children.insert((child, iteration), made.clone());
                if let Some(current) = state.iteration(iteration) {
                    current.outstanding += 1;
                }
                made
            }
        }
    };
    let edges = plan.edges_of(&plan.nodes[node as usize]);
    let mut state = instance.state.lock();
    if is_constant {
        // A loop invariant is seen by the iterations under way and by those to come.
        let value = match &mut outputs {
            Some(outputs) => outputs.first_mut().map(std::mem::take).unwrap_or_default(),
            None => Value::Dead,
        };
        let last = state.first + state.iterations.len() as u64;
        for number in state.first..last {
            activate_invariant(&instance, &mut state, plan, number, edges, &value, queue);
        }
        state.invariants.push((node, value));
    } else {
        instance.activate(&mut state, plan, 0, edges, outputs, queue);
    }
    state.pending_enters -= 1;
    let settled =
        state.pending_enters == 0 && state.iteration(0).is_some_and(|i| i.outstanding == 0);
    drop(state);
    if settled {
        iteration_idle(&instance, plan, queue);
    }
}

fn activate_invariant(
    frame: &Arc<Frame>,
    state: &mut FrameState,
    plan: &Plan,
    iteration: u64,
    edges: &[Edge],
    value: &Value,
    queue: &mut Vec<ReadyNode>,
) {
    if value.is_dead() {
        return frame.activate(state, plan, iteration, edges, None, queue);
    }
    let mut outputs: Outputs = [value.clone()].into_iter().collect();
    frame.activate(state, plan, iteration, edges, Some(&mut outputs), queue);
}

/// A NextIteration fired in `iteration`: its value goes to the next one, which starts if there is
/// room, else the value waits.
fn next_iteration(
    frame: &Arc<Frame>,
    iteration: u64,
    node: u32,
    value: Value,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    let mut state = frame.state.lock();
    if iteration == state.newest() {
        if !state.has_room(plan, frame.info) {
            state.waiting_next.push((node, value));
            return;
        }
        start_iteration(frame, &mut state, plan, queue);
    }
    let mut outputs: Outputs = [value].into_iter().collect();
    let edges = plan.edges_of(&plan.nodes[node as usize]);
    frame.activate(&mut state, plan, iteration + 1, edges, Some(&mut outputs), queue);
}

/// Starts the next iteration with the loop invariants and whatever waited for it.
fn start_iteration(
    frame: &Arc<Frame>,
    state: &mut FrameState,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    state.dead_exits.clear();
    let number = state.push_iteration(plan, frame.info);
    for (node, value) in state.invariants.clone() {
        let edges = plan.edges_of(&plan.nodes[node as usize]);
        activate_invariant(frame, state, plan, number, edges, &value, queue);
    }
    for (node, value) in std::mem::take(&mut state.waiting_next) {
        let mut outputs: Outputs = [value].into_iter().collect();
        let edges = plan.edges_of(&plan.nodes[node as usize]);
        frame.activate(state, plan, number, edges, Some(&mut outputs), queue);
    }
}

/// Nothing is outstanding in some iteration any more: it, those after it that only waited for it, and
/// the frame itself may be over; then the same goes for the parent.
fn iteration_idle(frame: &Arc<Frame>, plan: &Plan, queue: &mut Vec<ReadyNode>) {
    let mut frame = frame.clone();
    loop {
        let dead_exits = {
            let mut state = frame.state.lock();
            retire_iterations(&frame, &mut state, plan, queue);
            if !state.is_done() || frame.parent.is_none() {
                return;
            }
            // Done for good; a second caller must not find it so again.
            state.under_way = u32::MAX;
            std::mem::take(&mut state.dead_exits)
        };
        let Some((parent, at)) = frame.parent.clone() else { return };
        let idle = {
            let mut state = parent.state.lock();
            for exit in dead_exits {
                let edges = plan.edges_of(&plan.nodes[exit as usize]);
                parent.activate(&mut state, plan, at, edges, None, queue);
            }
            state.children.remove(&(frame.info, at));
            state.count_down(at)
        };
        if !idle {
            return;
        }
        frame = parent;
    }
}

/// Drops iterations at the front that are over, and starts the next one if values wait for it and
/// there is room now.
fn retire_iterations(
    frame: &Arc<Frame>,
    state: &mut FrameState,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    if state.under_way == u32::MAX {
        return;
    }
    loop {
        let is_over = state.iterations.front().is_some_and(|front| {
            front.outstanding == 0 && (state.first > 0 || state.pending_enters == 0)
        });
        if !is_over {
            return;
        }
        state.spare = state.iterations.pop_front();
        state.under_way -= 1;
        state.first += 1;
        if !state.waiting_next.is_empty() && state.has_room(plan, frame.info) {
            start_iteration(frame, state, plan, queue);
        }
    }
}
