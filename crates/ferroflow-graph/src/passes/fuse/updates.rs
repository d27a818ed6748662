//! Joins updates of variables on GPUs, such as the steps of an optimizer for each of its variables.
//! The joined node launches once for all of them.
//!
//! It waits for all that one of its nodes waits for. So no node may depend on another of its group.
//! To ensure that, each update gets a level: one more than the highest level of the updates that it
//! depends on. Nodes of one level are joined. Then all edges between joined nodes lead to a higher
//! level, and there are no cycles.

use super::on_gpu::is_on_gpu;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::OpDef;
use crate::passes::waits::Waits;
use crate::passes::{Pruned, topological_order};
use std::sync::Arc;

/// The most updates in a group. Their gradients need memory until all of them are computed.
const MAX_UPDATES: usize = 64;

/// Joins updates on GPUs whose ops allow it.
pub fn join_updates_on_gpus(step: &mut Pruned) {
    let graph = &step.graph;
    let consumers = graph.consumers();
    let is_update: Vec<bool> = graph
        .iter()
        .map(|(id, node)| {
            // The joined node has no outputs.
            let is_last = consumers[id.index()].iter().all(|(_, input)| input.is_none());
            is_last && can_join(node) && is_on_gpu(&node.device)
        })
        .collect();
    // With control flow of TensorFlow 1, one update may run where another does not.
    let has_flow = |(_, node): (NodeId, &Node)| node.op.control_flow.is_some();
    if is_update.iter().filter(|is| **is).count() < 2 || graph.iter().any(has_flow) {
        return;
    }
    let mut keep = vec![true; graph.len()];
    let mut joined_into: Vec<NodeId> = graph.ids().collect();
    for group in groups_of(graph, &is_update) {
        let [others @ .., root] = &group[..] else { continue };
        if others.is_empty() {
            continue;
        }
        let node = joined_node(&step.graph, &group);
        for id in others {
            keep[id.index()] = false;
            joined_into[id.index()] = *root;
        }
        *step.graph.node_mut(*root) = node;
    }
    for id in step.graph.ids().collect::<Vec<_>>() {
        let controls = &mut step.graph.node_mut(id).controls;
        if controls.iter().any(|c| !keep[c.index()]) {
            controls.iter_mut().for_each(|c| *c = joined_into[c.index()]);
            controls.sort_unstable();
            controls.dedup();
        }
    }
    step.retain(&keep);
}

fn can_join(node: &Node) -> bool {
    let gpu = node.op.gpu.as_ref();
    gpu.is_some_and(|gpu| !gpu.shared_inputs.is_empty() && gpu.takes(&node.attrs))
}

/// Updates that can be joined, each group in an order in which they can run.
fn groups_of(graph: &GraphIr, is_update: &[bool]) -> Vec<Vec<NodeId>> {
    let waits = Waits::of(graph);
    let mut levels = vec![0u32; graph.len()];
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for id in topological_order(graph) {
        let node = graph.node(id);
        let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        let after = |s: NodeId| levels[s.index()] + u32::from(is_update[s.index()]);
        levels[id.index()] = sources.map(after).max().unwrap_or(0);
        if !is_update[id.index()] {
            continue;
        }
        let fits = |group: &&mut Vec<NodeId>| {
            group.len() < MAX_UPDATES
                && group.first().is_some_and(|&first| {
                    levels[first.index()] == levels[id.index()]
                        // The error of one must not wait for more than before.
                        && waits.are_alike(first, id)
                        && are_alike(graph.node(first), node)
                })
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    groups
}

/// Whether two nodes differ only in the inputs that are not shared.
fn are_alike(a: &Node, b: &Node) -> bool {
    a.op.name == b.op.name
        && a.device == b.device
        && a.input_types == b.input_types
        && a.op.attrs.iter().all(|attr| a.attrs.get(&attr.name) == b.attrs.get(&attr.name))
        && shared_inputs(a) == shared_inputs(b)
}

fn shared_inputs(node: &Node) -> Vec<Endpoint> {
    let shared = node.op.gpu.as_ref().map(|gpu| &gpu.shared_inputs[..]).unwrap_or_default();
    let inputs = node.op.inputs.iter().zip(&node.inputs);
    inputs.filter(|(arg, _)| shared.contains(&arg.name.as_str())).map(|(_, e)| *e).collect()
}

/// The node that replaces a group. It has the place and the name of the last.
fn joined_node(graph: &GraphIr, group: &[NodeId]) -> Node {
    let nodes = || group.iter().map(|id| graph.node(*id));
    let root = graph.node(group[group.len() - 1]);
    let mut controls: Vec<NodeId> = nodes().flat_map(|n| n.controls.iter().copied()).collect();
    controls.sort_unstable();
    controls.dedup();
    let op = OpDef {
        name: format!("_Joined{}", root.op.name),
        inputs: nodes().flat_map(|n| n.op.inputs.iter().cloned()).collect(),
        outputs: Vec::new(),
        shape: Some(Arc::new(|_| Ok(Vec::new()))),
        cpu: None,
        ..(*root.op).clone()
    };
    Node {
        op: Arc::new(op),
        inputs: nodes().flat_map(|n| n.inputs.iter().copied()).collect(),
        controls,
        input_types: nodes().flat_map(|n| n.input_types.iter().copied()).collect(),
        output_types: Vec::new(),
        original_names: nodes().rev().map(|n| n.display_name().to_string()).collect(),
        ..root.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::def::{GraphDef, NodeDef};
    use ferroflow_core::{Ctx, KernelBox};

    fn catalog() -> Catalog {
        let mut c = Catalog::new();
        c.op("Value").output("y: float");
        c.op("Late").output("y: float").waits();
        c.op("Var").output("v: resource").stateful();
        c.op("Nothing");
        c.op("Update")
            .input("v: resource")
            .input("rate: float")
            .input("by: float")
            .attr("more: bool = false")
            .stateful()
            .gpu(&[], |_| Ok(KernelBox::new(|_: &mut Ctx<'_>| Ok(()))))
            .gpu_joins(&["rate"]);
        c
    }

    /// The graph of these nodes after the pass.
    fn joined(lines: &[(&str, &str, &[&str])]) -> GraphIr {
        let node = |&(name, op, inputs): &(&str, &str, &[&str])| NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            device: if name == "cpu" { "/cpu:0".into() } else { "/device:GPU:0".into() },
            ..NodeDef::default()
        };
        let def = GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() };
        let graph = GraphIr::from_def(&def, &catalog()).unwrap();
        let mut step = Pruned { graph, args: Vec::new(), rets: Vec::new() };
        join_updates_on_gpus(&mut step);
        step.graph
    }

    fn original_names(graph: &GraphIr, name: &str) -> Vec<String> {
        let mut names = graph.node(graph.find(name).unwrap()).original_names.clone();
        names.sort();
        names
    }

    #[test]
    fn updates_of_one_level_are_joined() {
        let g = joined(&[
            ("v0", "Var", &[]),
            ("v1", "Var", &[]),
            ("v2", "Var", &[]),
            ("rate", "Value", &[]),
            ("by", "Value", &[]),
            ("u0", "Update", &["v0", "rate", "by"]),
            ("u1", "Update", &["v1", "rate", "by", "^v2"]),
            ("after", "Update", &["v2", "rate", "by", "^u0"]),
            ("after_that", "Update", &["v0", "rate", "by", "^u1"]),
            ("done", "Nothing", &["^u0", "^u1", "^after", "^after_that"]),
        ]);
        let both = |a: &str, b: &str| g.find(a).xor(g.find(b)).expect("one of the two is left");
        let (first, second) = (both("u0", "u1"), both("after", "after_that"));
        assert_eq!(g.node(first).inputs.len(), 6);
        assert_eq!(g.node(first).controls, [g.find("v2").unwrap()]);
        assert_eq!(g.node(second).controls, [first]);
        let mut controls = g.node(g.find("done").unwrap()).controls.clone();
        controls.sort_unstable();
        let mut want = [first, second];
        want.sort_unstable();
        assert_eq!(controls, want);
        assert_eq!(original_names(&g, &g.node(first).name), ["u0", "u1"]);
    }

    #[test]
    fn other_rates_attributes_waits_and_devices_stay_apart() {
        let g = joined(&[
            ("v0", "Var", &[]),
            ("v1", "Var", &[]),
            ("v2", "Var", &[]),
            ("v3", "Var", &[]),
            ("rate", "Value", &[]),
            ("other", "Value", &[]),
            ("late", "Late", &[]),
            ("u0", "Update", &["v0", "rate", "other"]),
            ("u1", "Update", &["v1", "other", "rate"]),
            ("u2", "Update", &["v2", "rate", "late"]),
            ("cpu", "Update", &["v3", "rate", "other"]),
        ]);
        assert_eq!(g.len(), 11);
    }
}
