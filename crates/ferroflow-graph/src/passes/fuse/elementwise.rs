//! Fuses connected element-wise nodes into one node.

use super::kernel::elementwise_kernel;
use super::timely::Timely;
use super::{FusionGroup, blocks_of, fused_node, same_dtype};
use crate::block_kernel::AnyBlockKernel;
use crate::graph::{GraphIr, NodeId};
use crate::passes::{Pruned, topological_order};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest group: larger ones gain nothing and need more cache.
const MAX_MEMBERS: usize = 64;

/// Fuses element-wise nodes of one dtype and device. A node joins the group of its consumers if it
/// has no other consumers (a fetch is one) and no control edges. So only the root of a group is
/// visible outside and can have control edges. A node that can fail joins only if the root waits
/// for no more than the node does.
pub fn fuse_elementwise(step: &mut Pruned) {
    let graph = &step.graph;
    let blocks: Vec<Option<AnyBlockKernel>> =
        graph.iter().map(|(_, n)| blocks_of(graph, n)).collect();
    let mut fused = Vec::new();
    let mut keep = vec![true; graph.len()];
    for (root, members) in groups(graph, &blocks) {
        if members.len() < 2 {
            continue;
        }
        let ids = in_order(graph, root, &members);
        let steps = ids.iter().filter_map(|id| blocks[id.index()].clone()).collect();
        let group = FusionGroup::new(graph, &ids);
        let inputs = group.inputs.clone();
        let kernel = elementwise_kernel(Arc::new(group), steps);
        if let Some(node) = fused_node(graph, &ids, "_FusedElementwise".into(), inputs, kernel) {
            members.iter().for_each(|id| keep[id.index()] = *id == root);
            fused.push((root, node));
        }
    }
    for (root, node) in fused {
        *step.graph.node_mut(root) = node;
    }
    step.retain(&keep);
}

/// The members of each group, by root, which is among them.
fn groups(graph: &GraphIr, blocks: &[Option<AnyBlockKernel>]) -> BTreeMap<NodeId, Vec<NodeId>> {
    let consumers = graph.consumers();
    let timely = Timely::new(graph);
    let mut root_of: Vec<Option<NodeId>> = vec![None; graph.len()];
    let mut groups: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    // Consumers first, so that their groups are known.
    for id in topological_order(graph).into_iter().rev() {
        let Some(own) = &blocks[id.index()] else { continue };
        let node = graph.node(id);
        let consumers = &consumers[id.index()];
        let first = consumers.first().and_then(|(c, _)| root_of[c.index()]);
        let joins = |root: NodeId| {
            let other = graph.node(root);
            node.controls.is_empty()
                && consumers.iter().all(|(c, i)| i.is_some() && root_of[c.index()] == Some(root))
                && blocks[root.index()].as_ref().is_some_and(|b| same_dtype(b, own))
                && other.device == node.device
                && groups[&root].len() < MAX_MEMBERS
                && timely.may_run_with(id, own, root)
        };
        let root = first.filter(|root| joins(*root)).unwrap_or(id);
        root_of[id.index()] = Some(root);
        groups.entry(root).or_default().push(id);
    }
    groups
}

/// Orders the members so that each comes soon after its inputs and few values are live at a time.
fn in_order(graph: &GraphIr, root: NodeId, members: &[NodeId]) -> Vec<NodeId> {
    fn visit(graph: &GraphIr, id: NodeId, members: &[NodeId], order: &mut Vec<NodeId>) {
        for e in &graph.node(id).inputs {
            if members.contains(&e.node) && !order.contains(&e.node) {
                visit(graph, e.node, members, order);
            }
        }
        order.push(id);
    }
    let mut order = Vec::with_capacity(members.len());
    visit(graph, root, members, &mut order);
    order
}
