//! Common subexpression elimination.

use super::Pruned;
use super::order::topological_order;
use crate::attr::{AttrList, AttrValue, Attrs};
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use ferroflow_core::Tensor;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Merges pure nodes of the same op, attributes, inputs, controls and device. The inputs of
/// commutative ops may come in any order.
pub fn merge_common(step: &mut Pruned) {
    let graph = &mut step.graph;
    // The node that computes each node: itself, unless it is merged into another.
    let mut by: Vec<NodeId> = graph.ids().collect();
    let mut seen: HashMap<u64, SmallVec<[NodeId; 1]>> = HashMap::new();
    for id in topological_order(graph) {
        let node = graph.node(id);
        if !is_mergeable(graph, node) {
            continue;
        }
        let key = CommonKey::new(node, &by);
        let alike = seen.entry(key.hash(node)).or_default();
        let same = alike.iter().find(|&&other| {
            let other = graph.node(other);
            CommonKey::new(other, &by) == key && same_op(other, node)
        });
        match same {
            Some(&other) => by[id.index()] = other,
            None => alike.push(id),
        }
    }
    for node in &mut graph.nodes {
        node.inputs.iter_mut().for_each(|e| e.node = by[e.node.index()]);
        if node.controls.iter().any(|c| by[c.index()] != *c) {
            node.controls.iter_mut().for_each(|c| *c = by[c.index()]);
            node.controls.sort_unstable();
            node.controls.dedup();
        }
    }
    let keep: Vec<bool> = graph.ids().map(|id| by[id.index()] == id).collect();
    step.retain(&keep);
}

/// A read of a variable through a reference may return another value each time.
fn is_mergeable(graph: &GraphIr, node: &Node) -> bool {
    node.op.is_pure() && !node.inputs.iter().any(|e| graph.type_of(*e).is_ref)
}

/// The edges into a node in a canonical order.
#[derive(PartialEq)]
struct CommonKey {
    inputs: SmallVec<[Endpoint; 4]>,
    controls: SmallVec<[NodeId; 2]>,
}

impl CommonKey {
    fn new(node: &Node, by: &[NodeId]) -> CommonKey {
        let input = |e: &Endpoint| Endpoint { node: by[e.node.index()], slot: e.slot };
        let mut inputs: SmallVec<[Endpoint; 4]> = node.inputs.iter().map(input).collect();
        if node.op.is_commutative {
            inputs.sort_unstable();
        }
        let controls = node.controls.iter().map(|c| by[c.index()]);
        let mut controls: SmallVec<[NodeId; 2]> = controls.collect();
        controls.sort_unstable();
        controls.dedup();
        CommonKey { inputs, controls }
    }

    fn hash(&self, node: &Node) -> u64 {
        let mut h = DefaultHasher::new();
        self.inputs.hash(&mut h);
        self.controls.hash(&mut h);
        node.op.name.hash(&mut h);
        node.device.hash(&mut h);
        hash_attrs(&node.attrs, &mut h);
        h.finish()
    }
}

fn same_op(a: &Node, b: &Node) -> bool {
    a.op.name == b.op.name && a.device == b.device && a.attrs == b.attrs
}

fn hash_attrs(attrs: &Attrs, h: &mut DefaultHasher) {
    for (name, value) in attrs.iter() {
        name.hash(h);
        hash_value(value, h);
    }
}

/// Hashes a value. Equal values have equal hashes; different values may too.
fn hash_value(value: &AttrValue, h: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(h);
    match value {
        AttrValue::Str(s) => s.hash(h),
        AttrValue::Int(i) => i.hash(h),
        AttrValue::Float(f) => f.to_bits().hash(h),
        AttrValue::Bool(b) => b.hash(h),
        AttrValue::Type(t) => t.hash(h),
        AttrValue::Shape(s) => s.hash(h),
        AttrValue::Tensor(t) => hash_tensor(t, h),
        AttrValue::Func(f) => f.name.hash(h),
        AttrValue::Placeholder(name) => name.hash(h),
        AttrValue::List(list) => match list {
            AttrList::Strs(v) => v.hash(h),
            AttrList::Ints(v) => v.hash(h),
            AttrList::Bools(v) => v.hash(h),
            AttrList::Floats(v) => v.iter().for_each(|f| f.to_bits().hash(h)),
            AttrList::Types(v) => v.hash(h),
            AttrList::Shapes(v) => v.hash(h),
            other => other.len().hash(h),
        },
    }
}

/// Type, shape, and a sample of the bytes.
fn hash_tensor(t: &Tensor, h: &mut DefaultHasher) {
    const SAMPLE: usize = 64;
    t.dtype().hash(h);
    t.shape().hash(h);
    if let Ok(strings) = t.strings() {
        strings.iter().take(SAMPLE).for_each(|s| s.hash(h));
    } else if let Ok(bytes) = t.bytes() {
        let (half, end) = (bytes.len() / 2, bytes.len());
        bytes[..end.min(SAMPLE)].hash(h);
        bytes[half..end.min(half + SAMPLE)].hash(h);
        bytes[end.saturating_sub(SAMPLE)..].hash(h);
    }
}
