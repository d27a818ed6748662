//! The graph of a session as the dashboard shows it: nodes, their inputs and their tasks.

use ferroflow_graph::{AttrValue, GraphDef, NodeDef};
use ferroflow_metrics::TaskMetrics;
use serde_json::{Value, json};

/// Nodes that are shown. A larger graph is cut.
const MOST_NODES: usize = 400;
/// Inputs of a node that are shown.
const MOST_INPUTS: usize = 16;

/// Shows a graph that a client has sent, with the devices that it asks for.
pub(super) fn note_graph(metrics: &TaskMetrics, graph: &GraphDef) {
    if is_larger(metrics, graph.nodes.len(), false) {
        metrics.set_graph(view(std::iter::once(("", graph)), false));
    }
}

/// Shows the parts of a step with their tasks. A placed graph replaces one that is not.
pub(super) fn note_placement<'a>(
    metrics: &TaskMetrics,
    parts: impl Iterator<Item = (&'a str, &'a GraphDef)> + Clone,
) {
    let nodes = parts.clone().map(|(_, graph)| graph.nodes.len()).sum();
    if is_larger(metrics, nodes, true) {
        metrics.set_graph(view(parts, true));
    }
}

/// Whether a graph has more to show than the one that is shown. The training step is the largest.
fn is_larger(metrics: &TaskMetrics, nodes: usize, is_placed: bool) -> bool {
    metrics.graph().is_none_or(|shown| {
        let was_placed = shown["placed"].as_bool().unwrap_or(false);
        let larger = shown["total"].as_u64().is_none_or(|total| nodes as u64 > total);
        (is_placed && !was_placed) || (is_placed == was_placed && larger)
    })
}

fn view<'a>(
    parts: impl Iterator<Item = (&'a str, &'a GraphDef)> + Clone,
    is_placed: bool,
) -> Value {
    let total: usize = parts.clone().map(|(_, graph)| graph.nodes.len()).sum();
    let nodes = parts.flat_map(|(task, graph)| graph.nodes.iter().map(move |n| node(task, n)));
    json!({
        "placed": is_placed,
        "total": total,
        "nodes": nodes.take(MOST_NODES).collect::<Vec<_>>(),
    })
}

fn node(task: &str, node: &NodeDef) -> Value {
    let shape = match node.attrs.get("shape") {
        Some(AttrValue::Shape(shape)) => shape.to_string(),
        _ => String::new(),
    };
    json!({
        "name": node.name,
        "op": node.op,
        "task": if task.is_empty() { node.device.as_str() } else { task },
        "shape": shape,
        "inputs": node.inputs.iter().take(MOST_INPUTS).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize) -> GraphDef {
        let node = |i| NodeDef { name: format!("n{i}"), op: "NoOp".into(), ..NodeDef::default() };
        GraphDef { nodes: (0..nodes).map(node).collect(), ..GraphDef::default() }
    }

    #[test]
    fn the_largest_placed_graph_is_shown() {
        let metrics = TaskMetrics::new("worker", 0);
        note_graph(&metrics, &graph(1000));
        assert_eq!(metrics.graph().unwrap()["nodes"].as_array().unwrap().len(), MOST_NODES);
        let parts = [("/job:ps/task:0", graph(2)), ("/job:worker/task:0", graph(3))];
        note_placement(&metrics, parts.iter().map(|(task, graph)| (*task, graph)));
        note_graph(&metrics, &graph(2000));
        let small = graph(1);
        note_placement(&metrics, std::iter::once(("/job:ps/task:0", &small)));
        let shown = metrics.graph().unwrap();
        assert_eq!(
            (&shown["total"], &shown["nodes"][4]["task"]),
            (&5.into(), &"/job:worker/task:0".into())
        );
    }
}
