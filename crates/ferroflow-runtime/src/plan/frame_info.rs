//! Which loop each node of a graph belongs to.

use crate::frames::Count;
use ferroflow_core::{Result, bail, ensure};
use ferroflow_graph::{ControlFlow, GraphIr, NodeId};
use std::collections::HashMap;

/// The frame outside all loops.
pub(crate) const ROOT: u32 = 0;

/// A loop of the graph. Each of its runs is an instance.
pub(crate) struct FrameInfo {
    pub name: String,
    pub parallel_iterations: u32,
    /// The number of Enter nodes that feed it.
    pub enters: u32,
    /// The numbers of input slots and of nodes in one iteration.
    pub slots: u32,
    /// The ids of its nodes, in the order of their places.
    pub nodes: Vec<u32>,
    /// The initial count of each node in an iteration.
    pub counts: Vec<Count>,
}

/// The result of [`analyse`].
pub(crate) struct Analysis {
    pub frames: Vec<FrameInfo>,
    /// For each node: frame, place among the frame's nodes, first of its input slots.
    pub places: Vec<(u32, u32, u32)>,
    /// The frame that each Enter leads into.
    pub enters: HashMap<NodeId, u32>,
}

/// Finds the frames. A node runs in the frame of its inputs; an Enter leads from there into a
/// child, an Exit leads back to the parent.
pub(crate) fn analyse(graph: &GraphIr) -> Result<Analysis> {
    let mut frames = vec![FrameInfo {
        name: String::new(),
        parallel_iterations: 1,
        enters: 0,
        slots: 0,
        nodes: Vec::new(),
        counts: Vec::new(),
    }];
    let mut parents = vec![ROOT];
    let mut by_name: HashMap<String, u32> = HashMap::new();
    let mut enters = HashMap::new();
    // The frame a node runs in, and the one its outputs go to.
    let mut runs_in = vec![None; graph.len()];
    let mut leads_to = vec![ROOT; graph.len()];

    for id in forward_order(graph) {
        let node = graph.node(id);
        let mut frame = None;
        let data = node.inputs.iter().map(|e| e.node);
        for source in data.chain(node.controls.iter().copied()) {
            if runs_in[source.index()].is_none() {
                continue; // a back edge, not analysed yet; it comes from the same frame
            }
            let from = leads_to[source.index()];
            match frame {
                None => frame = Some((from, source)),
                Some((other, first)) => ensure!(
                    other == from,
                    InvalidArgument,
                    "{{{{node {}}}}} has inputs from different frames. The input {{{{node {}}}}} is \
                     in frame '{}'. The input {{{{node {}}}}} is in frame '{}'.",
                    node.name,
                    graph.node(first).name,
                    frames[other as usize].name,
                    graph.node(source).name,
                    frames[from as usize].name
                ),
            }
        }
        let frame = frame.map_or(ROOT, |f| f.0);
        runs_in[id.index()] = Some(frame);
        leads_to[id.index()] = match node.op.control_flow {
            Some(ControlFlow::Enter) => {
                let name = node.attrs.string("frame_name")?;
                let child = *by_name.entry(name.clone()).or_insert_with(|| {
                    parents.push(frame);
                    frames.push(FrameInfo {
                        name,
                        parallel_iterations: 1,
                        enters: 0,
                        slots: 0,
                        nodes: Vec::new(),
                        counts: Vec::new(),
                    });
                    frames.len() as u32 - 1
                });
                ensure!(
                    parents[child as usize] == frame,
                    InvalidArgument,
                    "{{{{node {}}}}}: frame '{}' is entered from two different frames",
                    node.name,
                    frames[child as usize].name
                );
                let info = &mut frames[child as usize];
                info.enters += 1;
                let parallel = node.attrs.int("parallel_iterations")?;
                ensure!(
                    parallel > 0,
                    InvalidArgument,
                    "{{{{node {}}}}}: parallel_iterations must be positive, not {parallel}",
                    node.name
                );
                info.parallel_iterations = parallel.min(1 << 20) as u32;
                enters.insert(id, child);
                child
            }
            Some(ControlFlow::Exit) => {
                if frame == ROOT {
                    bail!(InvalidArgument, "{{{{node {}}}}} exits no frame", node.name);
                }
                parents[frame as usize]
            }
            _ => frame,
        };
    }

    // The back edges, which the loop above passed over, must stay within their frames too.
    for (id, node) in graph.iter() {
        let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        for source in sources {
            let (from, to) = (leads_to[source.index()], runs_in[id.index()].unwrap_or(ROOT));
            ensure!(
                from == to,
                InvalidArgument,
                "{{{{node {}}}}} in frame '{}' has an input from {{{{node {}}}}} in frame '{}'",
                node.name,
                frames[to as usize].name,
                graph.node(source).name,
                frames[from as usize].name
            );
        }
    }

    let mut places = Vec::with_capacity(graph.len());
    for (id, node) in graph.iter() {
        let frame = runs_in[id.index()].unwrap_or(ROOT);
        let info = &mut frames[frame as usize];
        places.push((frame, info.nodes.len() as u32, info.slots));
        info.nodes.push(id.0);
        info.slots += node.inputs.len() as u32;
    }
    Ok(Analysis { frames, places, enters })
}

/// An order in which every node comes after its inputs, back edges of loops aside.
fn forward_order(graph: &GraphIr) -> Vec<NodeId> {
    let is_back = |to: &ferroflow_graph::Node, from: NodeId| {
        to.op.control_flow == Some(ControlFlow::Merge)
            && graph.node(from).op.control_flow == Some(ControlFlow::NextIteration)
    };
    let mut pending = vec![0u32; graph.len()];
    let mut consumers = vec![Vec::new(); graph.len()];
    for (id, node) in graph.iter() {
        let data = node.inputs.iter().map(|e| e.node).filter(|&s| !is_back(node, s));
        for source in data.chain(node.controls.iter().copied()) {
            pending[id.index()] += 1;
            consumers[source.index()].push(id);
        }
    }
    let mut order: Vec<NodeId> = graph.ids().filter(|id| pending[id.index()] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for &to in &consumers[order[at].index()] {
            pending[to.index()] -= 1;
            if pending[to.index()] == 0 {
                order.push(to);
            }
        }
        at += 1;
    }
    order
}
