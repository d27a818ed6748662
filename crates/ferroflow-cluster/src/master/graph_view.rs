//! The graph of a session as the dashboard shows it: nodes, their inputs and their tasks.

use ferroflow_graph::{AttrValue, GraphDef, NodeDef};
use ferroflow_metrics::TaskMetrics;
use serde_json::{Value, json};

/// Nodes that are shown. A larger graph is cut.
const MOST_NODES: usize = 400;
/// Inputs of a node that are shown.
const MOST_INPUTS: usize = 16;

/// Runs after which a step counts as repeated. Steps that initialize or restore run once.
pub(super) const REPEATED: u32 = 3;

/// How much a graph shows of a job. A later stage replaces an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GraphStage {
    /// A client has sent it.
    Sent,
    /// A step of it was placed.
    Placed,
    /// That step was run again and again, as a training step is.
    Repeated,
}

/// Shows a graph that a client has sent, with the devices that it asks for.
pub(super) fn note_graph(metrics: &TaskMetrics, graph: &GraphDef) {
    note(metrics, std::iter::once(("", graph)), GraphStage::Sent);
}

/// Shows the parts of a step with their tasks.
pub(super) fn note_placement<'a>(
    metrics: &TaskMetrics,
    parts: impl Iterator<Item = (&'a str, &'a GraphDef)> + Clone,
    is_repeated: bool,
) {
    note(metrics, parts, if is_repeated { GraphStage::Repeated } else { GraphStage::Placed });
}

/// Shows a graph if it is of a later stage than the current one, or larger and of the same stage.
fn note<'a>(
    metrics: &TaskMetrics,
    parts: impl Iterator<Item = (&'a str, &'a GraphDef)> + Clone,
    stage: GraphStage,
) {
    let nodes: usize = parts.clone().map(|(_, graph)| graph.nodes.len()).sum();
    let says_more = metrics.graph().is_none_or(|shown| {
        let of = |key: &str| shown[key].as_u64().unwrap_or(0);
        (stage as u64, nodes as u64) > (of("stage"), of("total"))
    });
    if says_more {
        metrics.set_graph(view(parts, nodes, stage));
    }
}

fn view<'a>(
    parts: impl Iterator<Item = (&'a str, &'a GraphDef)>,
    total: usize,
    stage: GraphStage,
) -> Value {
    let nodes = parts.flat_map(|(task, graph)| graph.nodes.iter().map(move |n| node(task, n)));
    json!({
        "placed": stage > GraphStage::Sent,
        "stage": stage as u64,
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
    fn the_largest_placed_graph_is_shown_until_a_step_is_repeated() {
        let metrics = TaskMetrics::new("worker", 0);
        note_graph(&metrics, &graph(1000));
        assert_eq!(metrics.graph().unwrap()["nodes"].as_array().unwrap().len(), MOST_NODES);
        let parts = [("/job:ps/task:0", graph(2)), ("/job:worker/task:0", graph(3))];
        note_placement(&metrics, parts.iter().map(|(task, graph)| (*task, graph)), false);
        note_graph(&metrics, &graph(2000));
        let small = graph(1);
        note_placement(&metrics, std::iter::once(("/job:ps/task:0", &small)), false);
        let shown = metrics.graph().unwrap();
        assert_eq!(
            (&shown["total"], &shown["nodes"][4]["task"]),
            (&5.into(), &"/job:worker/task:0".into())
        );
        note_placement(&metrics, std::iter::once(("/job:ps/task:0", &small)), true);
        assert_eq!(metrics.graph().unwrap()["total"], 1);
    }
}
