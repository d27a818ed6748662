//! How values travel when there is control flow: dead values, and loops whose iterations each have
//! slots and counters of their own. One lock per frame instance.
//!
//! A frame instance is one run of a loop. Its iterations form a window. Iteration `i + 1` starts
//! when a NextIteration fires in `i` and fewer than `parallel_iterations` are under way; otherwise
//! its first values wait. An iteration is over when the one before it is over and nothing remains
//! to run in it or in a child frame that it entered. A frame is over when all its inputs have come
//! and all its iterations are over. Exits that were dead in every iteration then send a dead value
//! to the parent.

use crate::executor::Propagator;
use crate::frame_id::child_frame_id;
use crate::plan::{CONTROL, Edge, NodeKind, Plan, PlanNode, ROOT};
use crate::slots::Slots;
use ferroflow_core::{HashMap, Tensor, Value};
use parking_lot::Mutex;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// The frames of one step.
pub(crate) struct Frames {
    root: Arc<Frame>,
    /// Nodes whose async kernels are under way.
    parked: Mutex<Slab<ReadyNode>>,
}

/// One instance of a frame.
pub(crate) struct Frame {
    /// Index of the loop's `FrameInfo`.
    info: u32,
    id: u64,
    /// The frame it was entered from, and the iteration.
    parent: Option<(Arc<Frame>, u64)>,
    state: Mutex<FrameState>,
}

struct FrameState {
    /// Iterations under way; the front one is number `first`.
    iterations: VecDeque<Iteration>,
    first: u64,
    /// The number of Enters that have not fired yet.
    pending_enters: u32,
    /// Iterations that are not over.
    under_way: u32,
    /// Values of loop invariants, for later iterations.
    invariants: Vec<(u32, Value)>,
    /// NextIteration nodes that wait for room, with their values.
    waiting_next: Vec<(u32, Value)>,
    /// Exits that received a dead value.
    dead_exits: Vec<u32>,
    /// Child instances that have inputs to come or iterations under way, by frame and iteration.
    children: HashMap<(u32, u64), Arc<Frame>>,
    /// The memory of finished iterations, for reuse.
    spare: Vec<Iteration>,
}

/// What the frame's lock guards of an iteration.
struct Iteration {
    place: Arc<Place>,
    counts: Vec<Count>,
    /// The number of ready or running nodes, and of entered child frames that are not over.
    outstanding: u32,
}

/// Where a node runs: an iteration of a frame, and its slots. Writers hold the frame's lock. The
/// reader holds the [`ReadyNode`].
struct Place {
    frame: Arc<Frame>,
    number: u64,
    slots: Slots,
}

/// What has arrived at a node.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub pending: u32,
    pub dead: u32,
}

/// A node that is ready to run. Each node has at most one of these in an iteration.
pub(crate) struct ReadyNode {
    node: u32,
    is_dead: bool,
    place: Arc<Place>,
}

impl Frames {
    pub fn new(plan: &Plan) -> Frames {
        let root = Frame::new(plan, ROOT, 0, None);
        Frames { root, parked: Mutex::default() }
    }
}

impl Propagator for Frames {
    type Ready = ReadyNode;
    /// Every completion takes the frame's lock.
    const IS_SHARED_CHEAPLY: bool = false;

    fn start(&self, plan: &Plan, args: Vec<Tensor>, ready: &mut Vec<ReadyNode>) {
        let mut state = self.root.state.lock();
        let Some(current) = state.iteration(0) else { return };
        // The start itself counts, so that the root is not over before it has begun.
        current.outstanding += 1 + plan.roots.len() as u32;
        for &node in &plan.roots {
            ready.push(ReadyNode { node, is_dead: false, place: current.place.clone() });
        }
        for (&node, arg) in plan.args.iter().zip(args) {
            let edges = plan.edges_of(&plan.nodes[node as usize]);
            current.activate(plan, edges, Some(&mut [Value::Tensor(arg)]), ready);
        }
    }

    fn node(ready: &ReadyNode) -> u32 {
        ready.node
    }

    fn is_dead(ready: &ReadyNode) -> bool {
        ready.is_dead
    }

    fn frame_iter(ready: &ReadyNode) -> (u64, u64) {
        (ready.place.frame.id, ready.place.number)
    }

    fn inputs<'a>(&'a self, plan: &Plan, ready: &'a mut ReadyNode) -> &'a mut [Value] {
        let node = &plan.nodes[ready.node as usize];
        let range = node.frame_slot as usize..(node.frame_slot + node.inputs) as usize;
        // SAFETY: `ready` is the node's only token: it is made, under the frame's lock, when all
        // that the node waits for has arrived. Its borrow keeps a second call away.
        unsafe { ready.place.slots.of_ready(range) }
    }

    fn complete(
        &self,
        plan: &Plan,
        ready: ReadyNode,
        outputs: Option<&mut [Value]>,
        queue: &mut Vec<ReadyNode>,
    ) {
        let node = &plan.nodes[ready.node as usize];
        let (frame, iteration) = (&ready.place.frame, ready.place.number);
        let edges = plan.edges_of(node);
        let mut state = match node.kind {
            NodeKind::Enter { frame: child, is_constant } => {
                let from = (frame, iteration, ready.node);
                enter(from, (child, is_constant), outputs, plan, queue);
                frame.state.lock()
            }
            NodeKind::Exit => match (outputs, &frame.parent) {
                (Some(outputs), Some((parent, at))) => {
                    if let Some(to) = parent.state.lock().iteration(*at) {
                        to.activate(plan, edges, Some(outputs), queue);
                    }
                    frame.state.lock()
                }
                _ => {
                    // Exits are dead in every iteration but the last, so only the newest iteration
                    // counts.
                    let mut state = frame.state.lock();
                    if iteration == state.newest() {
                        state.dead_exits.push(ready.node);
                    }
                    state
                }
            },
            NodeKind::NextIteration => {
                let mut state = frame.state.lock();
                if let Some(outputs) = outputs {
                    next_iteration(
                        frame,
                        &mut state,
                        (iteration, ready.node),
                        outputs,
                        plan,
                        queue,
                    );
                }
                state
            }
            _ => {
                let mut state = frame.state.lock();
                if let Some(current) = state.iteration(iteration) {
                    current.activate(plan, edges, outputs, queue);
                }
                state
            }
        };
        if state.count_down(iteration) {
            drop(state);
            iteration_idle(frame, plan, queue);
        }
    }

    fn park(&self, ready: ReadyNode) -> u64 {
        self.parked.lock().insert(ready) as u64
    }

    fn parked_node(&self, token: u64) -> Option<u32> {
        self.parked.lock().get(token as usize).map(|ready| ready.node)
    }

    fn unpark(&self, token: u64) -> Option<ReadyNode> {
        self.parked.lock().try_remove(token as usize)
    }

    fn finish(self, _: &Plan, _: bool) {}
}

impl Drop for Frames {
    fn drop(&mut self) {
        // Frames and iterations refer to each other. A loop that has ended has dropped its own
        // references. The root, and the frames that a failed step leaves behind, are taken apart
        // here.
        let mut left = vec![self.root.clone()];
        while let Some(frame) = left.pop() {
            let mut state = frame.state.lock();
            left.extend(std::mem::take(&mut state.children).into_values());
            let iterations = std::mem::take(&mut state.iterations);
            let spare = std::mem::take(&mut state.spare);
            drop(state);
            drop((iterations, spare));
        }
    }
}

impl Frame {
    fn new(plan: &Plan, info: u32, id: u64, parent: Option<(Arc<Frame>, u64)>) -> Arc<Frame> {
        let frame = Arc::new(Frame {
            info,
            id,
            parent,
            state: Mutex::new(FrameState {
                iterations: VecDeque::new(),
                first: 0,
                pending_enters: plan.frame(info).enters,
                under_way: 0,
                invariants: Vec::new(),
                waiting_next: Vec::new(),
                dead_exits: Vec::new(),
                children: HashMap::default(),
                spare: Vec::new(),
            }),
        });
        frame.state.lock().push_iteration(plan, &frame);
        frame
    }
}

impl Iteration {
    /// Hands the outputs of a node (`None`: all dead) to the consumers in `edges`. Consumers that
    /// became ready are queued. The frame's lock is held.
    fn activate(
        &mut self,
        plan: &Plan,
        edges: &[Edge],
        mut outputs: Option<&mut [Value]>,
        queue: &mut Vec<ReadyNode>,
    ) {
        let all_dead = outputs.is_none();
        for edge in edges {
            let to = &plan.nodes[edge.to as usize];
            let count = &mut self.counts[to.frame_node as usize];
            // In a loop whose Exit is alive more than once, a node may receive more values than it
            // waits for. It is queued already, and its slots belong to the thread that runs it.
            let is_extra_control = edge.slot == CONTROL && count.pending < 2;
            if count.pending == 0 || (to.kind == NodeKind::Merge && is_extra_control) {
                continue;
            }
            let source = match &mut outputs {
                Some(outputs) if edge.slot != CONTROL => outputs.get_mut(edge.slot as usize),
                _ => None,
            };
            // An output that the kernel did not set is dead: the branch of a Switch that was not
            // taken.
            let source = source.filter(|v| !v.is_dead() && !v.is_empty());
            let is_dead = match edge.slot {
                CONTROL => all_dead && !edge.is_order,
                _ => source.is_none(),
            };
            let (takes, is_ready, is_dead) = if to.kind == NodeKind::Merge {
                count.merge(edge, is_dead, to)
            } else {
                count.pending -= 1;
                count.dead += u32::from(is_dead);
                let is_dead = count.dead > 0 && to.kind != NodeKind::ControlTrigger;
                (true, count.pending == 0, is_dead)
            };
            if let (Some(value), true) = (source, takes) {
                let value = if edge.is_last_use { std::mem::take(value) } else { value.clone() };
                let slot = (to.frame_slot + edge.input) as usize;
                // SAFETY: this thread completes the edge's source and holds the frame's lock, which
                // is what orders it with the other writers and, since the node is queued with the
                // lock held, with the reader.
                unsafe { self.place.slots.put(slot, value) };
            }
            if is_ready {
                self.outstanding += 1;
                queue.push(ReadyNode { node: edge.to, is_dead, place: self.place.clone() });
            }
        }
    }
}

impl Count {
    /// Counts an arrival at a Merge. A Merge fires after its control inputs, on its first live
    /// value, or when all its inputs are dead. `pending` is 1 until a value came, plus 2 for each
    /// control edge. A value after the first live one is dropped. At the head of a loop that is
    /// entered dead, the other input never arrives: a NextIteration sends no dead values.
    ///
    /// Returns whether the Merge takes the value, whether it is ready, and whether it is dead.
    fn merge(&mut self, edge: &Edge, is_dead: bool, to: &PlanNode) -> (bool, bool, bool) {
        let is_taken = edge.slot != CONTROL && !is_dead && self.pending & 1 == 1;
        if edge.slot == CONTROL {
            self.pending -= 2;
        } else if is_taken {
            self.pending -= 1;
        } else if is_dead {
            self.dead = if edge.is_from_enter { to.inputs } else { self.dead + 1 };
        }
        let all_dead = self.pending == 1 && self.dead >= to.inputs;
        if all_dead {
            self.pending = 0; // fired: nothing is taken any more
        }
        // A live value that came too late to be taken changes nothing.
        let counts = edge.slot == CONTROL || is_taken || is_dead;
        (is_taken, counts && self.pending == 0, all_dead)
    }
}

impl FrameState {
    fn iteration(&mut self, number: u64) -> Option<&mut Iteration> {
        let at = number.checked_sub(self.first)?;
        self.iterations.get_mut(at as usize)
    }

    /// Starts the next iteration of `frame`; `self` is the frame's state.
    fn push_iteration(&mut self, plan: &Plan, frame: &Arc<Frame>) -> &mut Iteration {
        let info = plan.frame(frame.info);
        let number = self.first + self.iterations.len() as u64;
        // Reuses the memory of an iteration that is over, unless a thread still holds a reference
        // to it.
        let spare = self.spare.pop().and_then(|mut spare| {
            let place = Arc::get_mut(&mut spare.place)?;
            // A node whose inputs did not all arrive keeps the values that did. A Merge of the next
            // iteration must not find them.
            place.slots.clear();
            place.number = number;
            Some(spare)
        });
        let mut iteration = spare.unwrap_or_else(|| {
            let slots = Slots::new(info.slots as usize);
            let place = Arc::new(Place { frame: frame.clone(), number, slots });
            Iteration { place, counts: Vec::new(), outstanding: 0 }
        });
        iteration.counts.clear();
        iteration.counts.extend_from_slice(&info.counts);
        self.under_way += 1;
        self.iterations.push_back(iteration);
        self.iterations.back_mut().expect("just pushed")
    }

    /// Counts one outstanding node or child less in an iteration. Returns whether it was the last.
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
        self.under_way < plan.frame(info).parallel_iterations
    }

    fn is_done(&self) -> bool {
        self.pending_enters == 0 && self.under_way == 0
    }
}

/// An Enter fired. Its value goes to the child frame, which the frame's first Enter creates.
fn enter(
    (frame, iteration, node): (&Arc<Frame>, u64, u32),
    (child, is_constant): (u32, bool),
    outputs: Option<&mut [Value]>,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    let instance = {
        let mut state = frame.state.lock();
        match state.children.get(&(child, iteration)) {
            Some(found) => found.clone(),
            None => {
                let id = child_frame_id(frame.id, iteration, &plan.frame(child).name);
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
        // The iterations under way and all later ones receive a loop invariant.
        let value = outputs.and_then(<[Value]>::first_mut).map_or(Value::Dead, std::mem::take);
        for current in &mut state.iterations {
            activate_invariant(current, plan, edges, &value, queue);
        }
        state.invariants.push((node, value));
    } else if let Some(first) = state.iteration(0) {
        first.activate(plan, edges, outputs, queue);
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
    iteration: &mut Iteration,
    plan: &Plan,
    edges: &[Edge],
    value: &Value,
    queue: &mut Vec<ReadyNode>,
) {
    let outputs = &mut [value.clone()];
    iteration.activate(plan, edges, if value.is_dead() { None } else { Some(outputs) }, queue);
}

/// A NextIteration fired in `iteration`. Its value goes to the next iteration, which starts if
/// there is room for it; otherwise the value waits. The caller holds the frame's lock.
fn next_iteration(
    frame: &Arc<Frame>,
    state: &mut FrameState,
    (iteration, node): (u64, u32),
    outputs: &mut [Value],
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    if iteration == state.newest() {
        if !state.has_room(plan, frame.info) {
            let value = outputs.first_mut().map(std::mem::take).unwrap_or_default();
            state.waiting_next.push((node, value));
            return;
        }
        start_iteration(frame, state, plan, queue);
    }
    let edges = plan.edges_of(&plan.nodes[node as usize]);
    if let Some(next) = state.iteration(iteration + 1) {
        next.activate(plan, edges, Some(outputs), queue);
    }
}

/// Starts the next iteration with the loop invariants and the values that waited for it.
fn start_iteration(
    frame: &Arc<Frame>,
    state: &mut FrameState,
    plan: &Plan,
    queue: &mut Vec<ReadyNode>,
) {
    state.dead_exits.clear();
    let (invariants, mut waiting) =
        (std::mem::take(&mut state.invariants), std::mem::take(&mut state.waiting_next));
    let next = state.push_iteration(plan, frame);
    for (node, value) in &invariants {
        let edges = plan.edges_of(&plan.nodes[*node as usize]);
        activate_invariant(next, plan, edges, value, queue);
    }
    for (node, value) in &mut waiting {
        let edges = plan.edges_of(&plan.nodes[*node as usize]);
        next.activate(plan, edges, Some(std::slice::from_mut(value)), queue);
    }
    waiting.clear();
    (state.invariants, state.waiting_next) = (invariants, waiting);
}

/// Handles an iteration in which nothing is outstanding. It may be over, and so may the later
/// iterations that waited for it alone, the frame, and in turn the parent.
fn iteration_idle(frame: &Arc<Frame>, plan: &Plan, queue: &mut Vec<ReadyNode>) {
    let mut frame = frame.clone();
    loop {
        let dead_exits = {
            let mut state = frame.state.lock();
            retire_iterations(&frame, &mut state, plan, queue);
            if !state.is_done() || frame.parent.is_none() {
                return;
            }
            // The frame is over. A second caller must not end it again.
            state.under_way = u32::MAX;
            state.spare.clear();
            std::mem::take(&mut state.dead_exits)
        };
        let Some((parent, at)) = frame.parent.clone() else { return };
        let idle = {
            let mut state = parent.state.lock();
            if let Some(to) = state.iteration(at) {
                for exit in dead_exits {
                    to.activate(plan, plan.edges_of(&plan.nodes[exit as usize]), None, queue);
                }
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
        let over = state.iterations.pop_front();
        state.spare.extend(over);
        state.under_way -= 1;
        state.first += 1;
        if !state.waiting_next.is_empty() && state.has_room(plan, frame.info) {
            start_iteration(frame, state, plan, queue);
        }
    }
}
