//! Finds the loops of a graph, and the predicates of conditionals under which nodes run.

use super::context::{
    BranchGuard, ForwardLoop, LoopContext, LoopContextId, LoopContextKind, LoopVariable, ROOT,
};
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::ControlFlow;
use crate::passes::{closes_loop, topological_order};
use std::collections::HashMap;

/// The context of each node, and the contexts: the root, then one for each loop. `Enter` is inside
/// its loop, `Exit` outside.
pub(super) fn contexts(graph: &GraphIr) -> (Vec<LoopContextId>, Vec<LoopContext>) {
    let mut places = vec![ROOT; graph.len()];
    let mut contexts = vec![LoopContext::root()];
    let is = |id: NodeId, which: ControlFlow| graph.node(id).op.control_flow == Some(which);
    if !graph.ids().any(|id| is(id, ControlFlow::Enter)) {
        return (places, contexts);
    }
    let mut by_name: HashMap<(LoopContextId, String), LoopContextId> = HashMap::new();
    for id in topological_order(graph) {
        let node = graph.node(id);
        let from_inputs = (0..node.inputs.len())
            .filter(|&i| !closes_loop(graph, node, i))
            .map(|i| node.inputs[i].node);
        let around = from_inputs
            .chain(node.controls.iter().copied())
            .map(|from| places[from.index()])
            .max_by_key(|&c| depth(&contexts, c))
            .unwrap_or(ROOT);
        places[id.index()] = match node.op.control_flow {
            Some(ControlFlow::Enter) => {
                let frame = node.attrs.string("frame_name").unwrap_or_default();
                let found = by_name.entry((around, frame.clone())).or_insert_with(|| {
                    let parallel_iterations = node.attrs.int("parallel_iterations").unwrap_or(10);
                    let forward =
                        ForwardLoop { frame, parallel_iterations, ..ForwardLoop::default() };
                    contexts.push(LoopContext {
                        parent: around,
                        kind: LoopContextKind::Forward(forward),
                    });
                    contexts.len() - 1
                });
                if let LoopContextKind::Forward(f) = &mut contexts[*found].kind {
                    f.enters.push(id);
                }
                *found
            }
            Some(ControlFlow::Exit) => contexts[around].parent,
            Some(ControlFlow::LoopCond) => {
                if let LoopContextKind::Forward(f) = &mut contexts[around].kind {
                    f.condition = Some(id);
                }
                around
            }
            _ => around,
        };
    }
    find_variables(graph, &places, &mut contexts);
    (places, contexts)
}

fn depth(contexts: &[LoopContext], mut c: LoopContextId) -> usize {
    let mut depth = 0;
    while c != ROOT {
        c = contexts[c].parent;
        depth += 1;
    }
    depth
}

fn find_variables(graph: &GraphIr, places: &[LoopContextId], contexts: &mut [LoopContext]) {
    let consumers = graph.consumers();
    let flow = |id: NodeId| graph.node(id).op.control_flow;
    for (id, node) in graph.iter() {
        let LoopContextKind::Forward(forward) = &mut contexts[places[id.index()]].kind else {
            continue;
        };
        if node.op.control_flow != Some(ControlFlow::Merge) {
            continue;
        }
        let source = |which| node.inputs.iter().map(|e| e.node).find(|&n| flow(n) == Some(which));
        let (Some(enter), Some(next)) =
            (source(ControlFlow::Enter), source(ControlFlow::NextIteration))
        else {
            continue;
        };
        let switch = consumers[id.index()].iter().map(|c| c.0).find(|&c| {
            flow(c) == Some(ControlFlow::Switch)
                && flow(graph.node(c).inputs[1].node) == Some(ControlFlow::LoopCond)
        });
        let exits = switch.map_or(Vec::new(), |switch| {
            let out = Endpoint::new(switch, 0);
            let users = consumers[switch.index()].iter().map(|c| c.0);
            users
                .filter(|&c| flow(c) == Some(ControlFlow::Exit) && graph.node(c).inputs[0] == out)
                .collect()
        });
        forward.variables.push(LoopVariable { enter, merge: id, next, switch, exits });
    }
}

/// The predicates that decide whether each node runs, outermost first, within the loop it is in.
pub(super) fn guards(
    graph: &GraphIr,
    places: &[LoopContextId],
    contexts: &[LoopContext],
) -> Vec<Vec<BranchGuard>> {
    let mut all: Vec<Vec<BranchGuard>> = vec![Vec::new(); graph.len()];
    if contexts.len() == 1 {
        return all;
    }
    for id in topological_order(graph) {
        let node = graph.node(id);
        let inputs = || {
            let data = (0..node.inputs.len()).filter(|&i| !closes_loop(graph, node, i));
            data.map(|i| on_edge(graph, &all, node.inputs[i]))
        };
        all[id.index()] = match node.op.control_flow {
            Some(ControlFlow::Enter) => Vec::new(),
            Some(ControlFlow::Merge) => common(inputs()),
            Some(ControlFlow::Exit) => {
                let inside = places[node.inputs[0].node.index()];
                match &contexts[inside].kind {
                    LoopContextKind::Forward(f) => union(
                        f.enters.iter().map(|&e| on_edge(graph, &all, graph.node(e).inputs[0])),
                    ),
                    _ => Vec::new(),
                }
            }
            _ => {
                let place = places[id.index()];
                let controls = node.controls.iter().filter(|c| places[c.index()] == place);
                union(inputs().chain(controls.map(|c| all[c.index()].clone())))
            }
        };
    }
    all
}

/// The guards of a tensor: those of its node, and its branch if it is an output of `Switch`.
pub(super) fn on_edge(
    graph: &GraphIr,
    of_nodes: &[Vec<BranchGuard>],
    e: Endpoint,
) -> Vec<BranchGuard> {
    let node = graph.node(e.node);
    let mut guards = of_nodes.get(e.node.index()).cloned().unwrap_or_default();
    if node.op.control_flow == Some(ControlFlow::Switch)
        && let Some(&predicate) = node.inputs.get(1)
        && graph.node(predicate.node).op.control_flow != Some(ControlFlow::LoopCond)
    {
        let guard = BranchGuard { predicate, branch: e.slot == 1 };
        if !guards.contains(&guard) {
            guards.push(guard);
        }
    }
    guards
}

fn union(lists: impl Iterator<Item = Vec<BranchGuard>>) -> Vec<BranchGuard> {
    let mut all: Vec<BranchGuard> = Vec::new();
    for guard in lists.flatten() {
        if !all.contains(&guard) {
            all.push(guard);
        }
    }
    all
}

fn common(mut lists: impl Iterator<Item = Vec<BranchGuard>>) -> Vec<BranchGuard> {
    let mut all = lists.next().unwrap_or_default();
    for list in lists {
        all.retain(|g| list.contains(g));
    }
    all
}
