//! Delays receives that would start long before their value is needed. Until then the value stays
//! on its task, and the link is free for urgent values.

use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::passes::cost::CostModel;
use crate::passes::topological_order;
use std::collections::{HashMap, HashSet};

/// Receives of smaller values are not delayed.
const WORTH_BYTES: f64 = (1 << 20) as f64;
/// A transfer starts this many times its estimated duration before its value is needed.
const MARGIN: f64 = 2.0;
/// How many nodes are searched to prove that all consumers come after a node.
const MAX_STEPS: usize = 10_000;

/// For values that a task receives early, the node of that task for which the receive waits. All
/// consumers of the value wait for that node anyway, so the delay adds no new dependency.
pub(super) fn late_receives(
    graph: &GraphIr,
    task_of: &[u32],
    model: &CostModel,
) -> HashMap<(Endpoint, u32), NodeId> {
    let mut late = HashMap::new();
    // Do not delay values of conditionals and loops.
    if graph.iter().any(|(_, n)| n.op.control_flow.is_some()) {
        return late;
    }
    let received = received(graph, task_of);
    if received.is_empty() {
        return late;
    }
    let costs = model.costs(graph, &HashMap::new());
    let bytes = |e: Endpoint| costs.bytes[e.node.index()].get(e.slot as usize).copied();
    let times = Times::earliest(graph, task_of, model, &costs.seconds, &costs.bytes);
    for ((e, task), consumers) in received {
        let bytes = bytes(e).unwrap_or(0.0);
        if bytes < WORTH_BYTES || consumers.is_empty() {
            continue;
        }
        let transfer = model.link.latency + model.link.occupied(bytes);
        let needed = |c: &NodeId| times.without(graph, task_of, *c, e);
        let Some(first) = consumers.iter().min_by(|a, b| needed(a).total_cmp(&needed(b))) else {
            continue;
        };
        let begin = needed(first) - MARGIN * transfer;
        // A value that is not ready earlier needs no delay.
        if begin <= times.end[e.node.index()] {
            continue;
        }
        let Some(node) = times.last_before(graph, task_of, *first, e, begin) else { continue };
        if consumers.iter().all(|c| c == first || comes_after(graph, *c, node)) {
            late.insert((e, task), node);
        }
    }
    late
}

/// The values that each task receives, with their consumers. References are left out: they are read
/// when their consumers run.
fn received(graph: &GraphIr, task_of: &[u32]) -> HashMap<(Endpoint, u32), Vec<NodeId>> {
    let mut all: HashMap<(Endpoint, u32), Vec<NodeId>> = HashMap::new();
    for (id, node) in graph.iter() {
        let task = task_of[id.index()];
        for &e in &node.inputs {
            if task_of[e.node.index()] != task && !graph.type_of(e).is_ref {
                let consumers = all.entry((e, task)).or_default();
                if consumers.last() != Some(&id) {
                    consumers.push(id);
                }
            }
        }
    }
    all
}

/// The earliest time at which each node can finish.
struct Times<'a> {
    end: Vec<f64>,
    model: &'a CostModel,
    bytes: &'a [Vec<f64>],
}

impl<'a> Times<'a> {
    fn earliest(
        graph: &GraphIr,
        task_of: &[u32],
        model: &'a CostModel,
        seconds: &[f64],
        bytes: &'a [Vec<f64>],
    ) -> Times<'a> {
        let mut times = Times { end: vec![0.0; graph.len()], model, bytes };
        for id in topological_order(graph) {
            let start = times.start(graph, task_of, id, |_| true);
            times.end[id.index()] = start + seconds[id.index()];
        }
        times
    }

    /// When the inputs of a node are ready, counting only those for which `counts` is true.
    fn start(
        &self,
        graph: &GraphIr,
        task_of: &[u32],
        id: NodeId,
        counts: impl Fn(Endpoint) -> bool,
    ) -> f64 {
        let node = graph.node(id);
        let is_here = |source: NodeId| task_of[source.index()] == task_of[id.index()];
        let values = node.inputs.iter().filter(|e| counts(**e)).map(|e| {
            let end = self.end[e.node.index()];
            let bytes = self.bytes[e.node.index()].get(e.slot as usize).copied().unwrap_or(0.0);
            let link = &self.model.link;
            if is_here(e.node) { end } else { end + link.latency + link.occupied(bytes) }
        });
        let controls = node.controls.iter().map(|c| {
            let latency = if is_here(*c) { 0.0 } else { self.model.link.latency };
            self.end[c.index()] + latency
        });
        values.chain(controls).fold(0.0, f64::max)
    }

    /// When all inputs of a node except `e` are ready.
    fn without(&self, graph: &GraphIr, task_of: &[u32], id: NodeId, e: Endpoint) -> f64 {
        self.start(graph, task_of, id, |other| other != e)
    }

    /// The last node on the longest path to `id` that is on the same task and finishes by `time`.
    /// Paths through `e` do not count.
    fn last_before(
        &self,
        graph: &GraphIr,
        task_of: &[u32],
        id: NodeId,
        e: Endpoint,
        time: f64,
    ) -> Option<NodeId> {
        let task = task_of[id.index()];
        let mut at = id;
        loop {
            let node = graph.node(at);
            let values = node.inputs.iter().filter(|other| **other != e).map(|other| other.node);
            let sources = values.chain(node.controls.iter().copied());
            let latest = sources
                .max_by(|a, b| self.end[a.index()].total_cmp(&self.end[b.index()]))
                .filter(|source| task_of[source.index()] == task)?;
            if self.end[latest.index()] <= time {
                return Some(latest);
            }
            at = latest;
        }
    }
}

/// Whether `id` comes after `node`, as far as a short search can prove it.
fn comes_after(graph: &GraphIr, id: NodeId, node: NodeId) -> bool {
    let (mut stack, mut seen) = (vec![id], HashSet::from([id]));
    while let Some(at) = stack.pop() {
        if at == node {
            return true;
        }
        if seen.len() > MAX_STEPS {
            return false;
        }
        let of = graph.node(at);
        let sources = of.inputs.iter().map(|e| e.node).chain(of.controls.iter().copied());
        stack.extend(sources.filter(|s| seen.insert(*s)));
    }
    false
}
