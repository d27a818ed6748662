//! Constant folding: nodes that depend only on constants are computed when the step is compiled.

use super::Pruned;
use super::infer::{constant, node_shapes};
use super::order::topological_order;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::node_sizes::{NodeSizes, guessed};
use crate::op_def::{OpCost, OpDef, OpRole, PortType};
use ferroflow_core::{DType, PartialShape, Result, Tensor, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Computes a node's outputs from its inputs. The runtime supplies it.
pub type EvaluateFn<'a> = &'a dyn Fn(&Node, &[Tensor]) -> Result<Vec<Tensor>>;

/// Larger results are not folded: a graph that holds them costs more than computing them.
const MAX_BYTES: usize = 10 << 20;

/// Nodes that take long are not folded: a step can be cancelled, compiling one cannot, and may be
/// done by a network thread. An op that does much work for each byte counts as such beyond these.
const MAX_EXPENSIVE_BYTES: usize = 64 << 10;
const MAX_FLOPS: f64 = 1e7;
const MAX_WORK: u64 = 100 << 20;
/// What all nodes of a graph together may take.
const MAX_TIME: Duration = Duration::from_millis(50);

/// Replaces pure nodes whose inputs are all constants by constants. A node whose evaluation fails
/// stays, and fails again when the step runs. So does a node with a control input from a node that
/// is not constant: that edge can tie it to a branch or a loop.
pub fn fold(step: &mut Pruned, catalog: &Catalog, evaluate: EvaluateFn<'_>) {
    let Some(constant_op) = catalog.get("Const") else { return };
    let values = evaluate_constants(&step.graph, evaluate);
    if values.folded.is_empty() {
        return;
    }
    let graph = &mut step.graph;
    let Needs { slots, mut keep } = values.needs(graph);
    let mut moved: BTreeMap<Endpoint, Endpoint> = BTreeMap::new();
    for (&id, results) in &values.folded {
        for &slot in slots.get(&id).into_iter().flatten() {
            let old = graph.node(id);
            let mut node = as_constant(old, constant_op, &results[slot as usize]);
            node.name = graph.unique_name(&format!("{}/folded_{slot}", old.name));
            if node.original_names.is_empty() {
                node.original_names = vec![old.name.clone()];
            }
            let new = graph.push(node).expect("the name is free");
            keep.push(true);
            moved.insert(Endpoint { node: id, slot }, Endpoint::new(new, 0));
        }
        if keep[id.index()] {
            *graph.node_mut(id) = as_constant(graph.node(id), constant_op, &results[0]);
        }
    }
    if !moved.is_empty() {
        for node in &mut graph.nodes {
            for e in &mut node.inputs {
                *e = moved.get(e).copied().unwrap_or(*e);
            }
        }
    }
    step.retain(&keep);
}

/// Whether nodes from number `first` on may be folded. The first ones to be folded have only inputs
/// that are constants already.
pub fn has_nodes_to_fold(graph: &GraphIr, first: usize) -> bool {
    let is_constant = |e: &Endpoint| graph.node(e.node).op.role == OpRole::Constant;
    let mut nodes = graph.iter().skip(first).map(|(_, node)| node);
    nodes.any(|node| may_be_folded(node) && node.inputs.iter().all(is_constant))
}

fn may_be_folded(node: &Node) -> bool {
    let inner = |p: &PortType| matches!(p.dtype, DType::Resource | DType::Variant);
    node.op.is_pure()
        && node.op.role != OpRole::Constant
        && !node.inputs.is_empty()
        && !node.output_types.is_empty()
        && !node.output_types.iter().any(inner)
}

/// The constants of a graph.
struct Values {
    /// Nodes that were constants before.
    given: Vec<bool>,
    /// Nodes that turned out to be constant, with their values.
    folded: BTreeMap<NodeId, Vec<Tensor>>,
}

/// The constants that the remaining nodes need.
struct Needs {
    /// Outputs of folded nodes other than the first that are needed; each becomes a constant.
    slots: BTreeMap<NodeId, BTreeSet<u32>>,
    /// Nodes to keep.
    keep: Vec<bool>,
}

fn evaluate_constants(graph: &GraphIr, evaluate: EvaluateFn<'_>) -> Values {
    let mut values = Values { given: vec![false; graph.len()], folded: BTreeMap::new() };
    let began = Instant::now();
    let mut is_late = false;
    for id in topological_order(graph) {
        let node = graph.node(id);
        // A constant with a control input may not run at all.
        if !node.controls.iter().all(|c| values.is_constant(*c)) {
            continue;
        }
        if constant(node).is_some() {
            values.given[id.index()] = true;
        } else if !is_late && let Some(results) = values.evaluate(graph, node, evaluate) {
            values.folded.insert(id, results);
            is_late = began.elapsed() > MAX_TIME;
        }
    }
    values
}

impl Values {
    fn is_constant(&self, id: NodeId) -> bool {
        self.given[id.index()] || self.folded.contains_key(&id)
    }

    fn value(&self, graph: &GraphIr, e: Endpoint) -> Option<Tensor> {
        if self.given[e.node.index()] {
            return constant(graph.node(e.node)).filter(|_| e.slot == 0).cloned();
        }
        self.folded.get(&e.node)?.get(e.slot as usize).cloned()
    }

    /// A node's outputs, if it may be folded and could be evaluated.
    fn evaluate(
        &self,
        graph: &GraphIr,
        node: &Node,
        evaluate: EvaluateFn<'_>,
    ) -> Option<Vec<Tensor>> {
        if !may_be_folded(node) {
            return None;
        }
        let inputs = node.inputs.iter().map(|e| self.value(graph, *e));
        let inputs: Vec<Tensor> = inputs.collect::<Option<_>>()?;
        if is_large_or_long(node, &inputs) {
            return None;
        }
        let results = evaluate(node, &inputs).ok()?;
        let fits = results.len() == node.output_types.len()
            && results.iter().zip(&node.output_types).all(|(t, p)| t.dtype() == p.dtype)
            && results.iter().map(Tensor::byte_len).sum::<usize>() <= MAX_BYTES;
        fits.then_some(results)
    }

    fn needs(&self, graph: &GraphIr) -> Needs {
        let mut slots: BTreeMap<NodeId, BTreeSet<u32>> = BTreeMap::new();
        // A constant stays if a remaining node uses it, or if it had no consumer: it is a target.
        let mut keep: Vec<bool> = graph.ids().map(|id| !self.is_constant(id)).collect();
        let mut has_consumer = vec![false; graph.len()];
        for (id, node) in graph.iter() {
            let stays = !self.is_constant(id);
            for e in &node.inputs {
                has_consumer[e.node.index()] = true;
                if stays && e.slot > 0 && self.folded.contains_key(&e.node) {
                    slots.entry(e.node).or_default().insert(e.slot);
                } else {
                    keep[e.node.index()] |= stays;
                }
            }
            for c in &node.controls {
                has_consumer[c.index()] = true;
                keep[c.index()] |= stays;
            }
        }
        for id in graph.ids() {
            keep[id.index()] |= !has_consumer[id.index()];
        }
        self.keep_what_constants_wait_for(graph, &mut keep);
        Needs { slots, keep }
    }

    /// Keeps nodes that were constants before, with their control inputs.
    fn keep_what_constants_wait_for(&self, graph: &GraphIr, keep: &mut [bool]) {
        let kept = |id: &NodeId| keep[id.index()] && self.given[id.index()];
        let mut stack: Vec<NodeId> = graph.ids().filter(kept).collect();
        while let Some(id) = stack.pop() {
            for &c in &graph.node(id).controls {
                if !std::mem::replace(&mut keep[c.index()], true) && self.given[c.index()] {
                    stack.push(c);
                }
            }
        }
    }
}

/// Whether the inferred shape is too large, or the work too much.
fn is_large_or_long(node: &Node, inputs: &[Tensor]) -> bool {
    let read: usize = inputs.iter().map(Tensor::byte_len).sum();
    let is_expensive = || {
        let values: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
        let work = node.op.work.map_or(0, |work| work(&values));
        node.op.cost == OpCost::Expensive || work > MAX_WORK
    };
    if read > MAX_EXPENSIVE_BYTES && is_expensive() {
        return true;
    }
    let shapes: Vec<PartialShape> = inputs.iter().map(|t| t.shape().into()).collect();
    let outputs = node_shapes(node, &shapes, |i| inputs.get(i).cloned());
    if let Some(flops) = node.op.flops {
        let dims = |shapes: &[PartialShape]| shapes.iter().map(guessed).collect::<Vec<_>>();
        let (inputs, outputs) = (dims(&shapes), dims(outputs.as_deref().unwrap_or_default()));
        let sizes = NodeSizes { attrs: &node.attrs, inputs: &inputs, outputs: &outputs };
        if flops(&sizes) > MAX_FLOPS {
            return true;
        }
    }
    let bytes = |(shape, port): (&PartialShape, &PortType)| {
        let n = shape.elements().unwrap_or(0);
        n.saturating_mul(port.dtype.size().unwrap_or(1))
    };
    let sizes = outputs.iter().flatten().zip(&node.output_types).map(bytes);
    sizes.fold(0usize, |sum, n| sum.saturating_add(n)) > MAX_BYTES
}

fn as_constant(node: &Node, op: &Arc<OpDef>, value: &Tensor) -> Node {
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value.clone());
    Node {
        name: node.name.clone(),
        op: op.clone(),
        attrs: Arc::new(attrs),
        inputs: Vec::new(),
        controls: Vec::new(),
        input_types: Vec::new(),
        output_types: vec![PortType { dtype: value.dtype(), is_ref: false }],
        device: node.device.clone(),
        original_names: node.original_names.clone(),
    }
}
