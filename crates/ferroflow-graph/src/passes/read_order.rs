//! The order of reads and writes of a variable that the client left open.
//!
//! A node that reads a variable sees the value of before the step's updates, unless the graph puts
//! it after one of them. So an update waits for the reads that it could otherwise overtake, and
//! then also finds the variable's storage free to be changed in place.

use super::order::{closes_loop, topological_order};
use super::variables::VariableUses;
use super::waits::Waits;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::graph::{GraphIr, NodeId};
use crate::op_def::ControlFlow;
use ferroflow_core::Result;

/// A variable with more pairs of a reader and a writer than this keeps the order of its graph.
const MAX_PAIRS: usize = 1 << 16;
/// As many edges are looked at to leave out pairs that the graph orders by itself.
const MAX_LOOKS: usize = 1 << 24;

/// Pairs of a reader and a writer of one variable. The writer must wait until the reader has run,
/// or turned out to be on a branch that is not taken. With these pairs as edges, the graph has no
/// new cycle.
///
/// Leaves out pairs whose edge could do harm. Either the reader waits for something that the writer
/// does not wait for, such as another task, which may wait for the writer; or one of them is in a
/// loop.
pub fn reads_before_writes(graph: &GraphIr, uses: &VariableUses) -> Vec<(NodeId, NodeId)> {
    let mut pairs = Vec::new();
    if uses.contended().next().is_none() {
        return pairs;
    }
    let position = writers_last(graph, uses);
    let (waits, in_loop) = (Waits::of_all(graph), in_loops(graph));
    for (_, uses) in uses.contended() {
        if uses.readers.len() * uses.writers.len() > MAX_PAIRS {
            continue;
        }
        for &writer in uses.writers.iter().filter(|w| !in_loop[w.index()]) {
            let node = graph.node(writer);
            for &reader in uses.readers.iter().filter(|r| !in_loop[r.index()]) {
                let is_known =
                    node.inputs.iter().any(|e| e.node == reader) || node.controls.contains(&reader);
                if position[reader.index()] < position[writer.index()]
                    && !is_known
                    && waits.includes(writer, reader)
                {
                    pairs.push((reader, writer));
                }
            }
        }
    }
    pairs
}

/// Orders reads and writes whose order only the whole graph shows. The task of the writer knows
/// that the reader waits for another task, and not what that task waits for. Each of these writers
/// gets a control edge from a node that fires when its readers have run or are dead.
pub(super) fn order_across_tasks(
    graph: &mut GraphIr,
    task_of: &mut Vec<u32>,
    catalog: &Catalog,
) -> Result<()> {
    let Some(trigger) = catalog.get("ControlTrigger") else { return Ok(()) };
    let mut pairs = pairs_across_tasks(graph, task_of);
    pairs.sort_unstable();
    pairs.dedup();
    let (mut looks, mut rest) = (0, &pairs[..]);
    while let Some(&(writer, _)) = rest.first() {
        let (of_writer, others) = rest.split_at(rest.partition_point(|(w, _)| *w == writer));
        rest = others;
        let is_before = ancestors(graph, writer, &mut looks);
        if looks > MAX_LOOKS {
            break;
        }
        let readers = of_writer.iter().map(|(_, r)| *r).filter(|r| !is_before[r.index()]);
        let readers: Vec<NodeId> = readers.collect();
        if readers.is_empty() {
            continue;
        }
        let name = graph.unique_name(&format!("{}/reads", graph.node(writer).name));
        let id = graph.add(name, trigger.clone(), Attrs::new(), Vec::new(), readers)?;
        graph.node_mut(id).device = graph.node(writer).device.clone();
        graph.node_mut(writer).controls.push(id);
        task_of.push(task_of[writer.index()]);
    }
    Ok(())
}

/// Pairs of a writer and a reader on its task that depends on another task. Where the reader is on
/// another task itself, it is the last node before the value is sent.
fn pairs_across_tasks(graph: &GraphIr, task_of: &[u32]) -> Vec<(NodeId, NodeId)> {
    let uses = VariableUses::of(graph);
    let pairs = reads_before_writes(graph, &uses);
    if pairs.is_empty() {
        return pairs;
    }
    let task = |id: NodeId| task_of[id.index()];
    let mut depends = vec![false; graph.len()];
    for id in topological_order(graph) {
        let node = graph.node(id);
        let mut sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        depends[id.index()] = sources.any(|s| depends[s.index()] || task(s) != task(id));
    }
    let mut found = Vec::new();
    for (reader, writer) in pairs {
        if task(reader) == task(writer) {
            found.push((writer, reader));
            continue;
        }
        for e in &graph.node(reader).inputs {
            let mut sent = e.node;
            while task(sent) != task(writer) && uses.is_alias(sent) {
                sent = graph.node(sent).inputs[0].node;
            }
            if task(sent) == task(writer) && uses.is_same_variable(sent, writer) {
                found.push((writer, sent));
            }
        }
    }
    found.retain(|(_, reader)| depends[reader.index()]);
    found
}

/// The nodes that `id` depends on. Adds to `looks` how many edges were followed.
fn ancestors(graph: &GraphIr, id: NodeId, looks: &mut usize) -> Vec<bool> {
    let mut is_before = vec![false; graph.len()];
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        let node = graph.node(id);
        *looks += node.inputs.len() + node.controls.len();
        for source in node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()) {
            if !std::mem::replace(&mut is_before[source.index()], true) {
                stack.push(source);
            }
        }
    }
    is_before
}

/// The position of each node in an order that puts writers as late as possible: after all nodes
/// that do not depend on a writer. Of several writers, one comes first whose variable has no more
/// reads.
fn writers_last(graph: &GraphIr, uses: &VariableUses) -> Vec<u32> {
    let mut reads: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    let mut writes: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    let mut reads_left = Vec::new();
    for (variable, uses) in uses.contended() {
        uses.writers.iter().for_each(|w| writes[w.index()].push(variable));
        reads_left.resize(variable + 1, 0usize);
        for r in &uses.readers {
            // A node that reads and changes a variable does not hold itself up.
            if writes[r.index()].last() != Some(&variable) {
                reads[r.index()].push(variable);
                reads_left[variable] += 1;
            }
        }
    }
    let consumers = graph.consumers();
    let mut pending = vec![0u32; graph.len()];
    for (id, node) in graph.iter() {
        let forward = (0..node.inputs.len()).filter(|i| !closes_loop(graph, node, *i)).count();
        pending[id.index()] = (forward + node.controls.len()) as u32;
    }
    let (mut ready, mut held): (Vec<NodeId>, Vec<NodeId>) = graph
        .ids()
        .filter(|id| pending[id.index()] == 0)
        .partition(|id| writes[id.index()].is_empty());
    let mut position = vec![u32::MAX; graph.len()];
    let mut next = 0;
    loop {
        let id = match ready.pop() {
            Some(id) => id,
            None if held.is_empty() => return position,
            None => {
                let is_free = |w: &NodeId| writes[w.index()].iter().all(|&v| reads_left[v] == 0);
                held.swap_remove(held.iter().position(is_free).unwrap_or(0))
            }
        };
        position[id.index()] = next;
        next += 1;
        reads[id.index()].iter().for_each(|&v| reads_left[v] -= 1);
        for &(c, input) in &consumers[id.index()] {
            if input.is_some_and(|i| closes_loop(graph, graph.node(c), i)) {
                continue;
            }
            pending[c.index()] -= 1;
            if pending[c.index()] == 0 {
                match writes[c.index()].is_empty() {
                    true => ready.push(c),
                    false => held.push(c),
                }
            }
        }
    }
}

/// The nodes that run in loops. An Enter counts as one, because its output is in the loop.
fn in_loops(graph: &GraphIr) -> Vec<bool> {
    let mut depth = vec![0i32; graph.len()];
    let mut inside = vec![false; graph.len()];
    if !graph.iter().any(|(_, n)| n.op.control_flow == Some(ControlFlow::Enter)) {
        return inside;
    }
    for id in topological_order(graph) {
        let node = graph.node(id);
        let forward = node.inputs.iter().enumerate().filter(|(i, _)| !closes_loop(graph, node, *i));
        let sources = forward.map(|(_, e)| e.node).chain(node.controls.iter().copied());
        let own = sources.map(|s| depth[s.index()]).max().unwrap_or(0);
        depth[id.index()] = match node.op.control_flow {
            Some(ControlFlow::Enter) => own + 1,
            Some(ControlFlow::Exit) => own - 1,
            _ => own,
        };
        inside[id.index()] = own > 0 || depth[id.index()] > 0;
    }
    inside
}

#[cfg(test)]
mod tests;
