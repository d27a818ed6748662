//! The costs of nodes in a step, as a CostGraphDef.

use bytes::Bytes;
use ferroflow_core::{NodeStats, StepStats};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::tensor::shape_to_proto;
use ferroflow_proto::tensorflow as pb;
use pb::cost_graph_def::Node;
use pb::cost_graph_def::node::{InputInfo, OutputInfo};
use prost::Message;
use std::collections::HashMap;

/// The costs of the nodes of `graph` in a step, as a serialized CostGraphDef.
pub(crate) fn cost_graph(graph: &GraphDef, stats: &StepStats) -> Bytes {
    cost_graph_def(graph, stats).encode_to_vec().into()
}

/// The nodes of `graph` by number, with their times and bytes from `stats`. A node that did not run
/// or was not recorded costs nothing.
pub(super) fn cost_graph_def(graph: &GraphDef, stats: &StepStats) -> pb::CostGraphDef {
    let recorded = stats.nodes.lock();
    // A node in a loop runs more than once: add up its costs.
    let mut by_name: HashMap<&str, (i64, &NodeStats)> = HashMap::new();
    for node in recorded.iter() {
        let nanos = node.end.duration_since(node.start).unwrap_or_default().as_nanos();
        let entry = by_name.entry(&node.node).or_insert((0, node));
        *entry = (entry.0.saturating_add(i64::try_from(nanos).unwrap_or(i64::MAX)), node);
    }
    let ids: HashMap<&str, i32> =
        graph.nodes.iter().enumerate().map(|(i, n)| (n.name.as_str(), i as i32)).collect();
    let mut is_used = vec![false; graph.nodes.len()];
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes.iter().enumerate() {
        let mut made = Node {
            name: node.name.clone(),
            device: node.device.clone(),
            id: id as i32,
            ..Default::default()
        };
        for input in &node.inputs {
            let (name, port) = match input.strip_prefix('^') {
                Some(name) => (name, None),
                None => match input.rsplit_once(':') {
                    Some((name, port)) => (name, Some(port.parse().unwrap_or(0))),
                    None => (input.as_str(), Some(0)),
                },
            };
            let Some(&from) = ids.get(name) else { continue };
            is_used[from as usize] = true;
            match port {
                Some(preceding_port) => {
                    made.input_info.push(InputInfo { preceding_node: from, preceding_port });
                }
                None => made.control_input.push(from),
            }
        }
        if let Some((nanos, last)) = by_name.get(node.name.as_str()) {
            made.compute_time = nanos / 1000;
            made.compute_cost = made.compute_time;
            for (slot, dtype, shape, bytes) in &last.outputs {
                let none = || OutputInfo { alias_input_port: -1, ..Default::default() };
                let len = made.output_info.len().max(slot + 1);
                made.output_info.resize_with(len, none);
                made.output_info[*slot] = OutputInfo {
                    size: i64::try_from(*bytes).unwrap_or(i64::MAX),
                    alias_input_port: -1,
                    shape: Some(shape_to_proto(&shape.into())),
                    dtype: dtype.number(),
                };
            }
        }
        nodes.push(made);
    }
    for (node, is_used) in nodes.iter_mut().zip(is_used) {
        node.is_final = !is_used;
    }
    pb::CostGraphDef { node: nodes, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{DType, Shape};
    use ferroflow_graph::NodeDef;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn nodes_have_times_bytes_and_edges() {
        let node = |name: &str, inputs: &[&str]| NodeDef {
            name: name.into(),
            op: "Op".into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            device: "/cpu:0".into(),
            ..NodeDef::default()
        };
        let nodes = vec![node("a", &[]), node("b", &["a:1", "^c"]), node("c", &[])];
        let stats = StepStats::default();
        for _ in 0..2 {
            stats.nodes.lock().push(NodeStats {
                memory: None,
                node: "a".into(),
                op: "Op".into(),
                device: "/cpu:0".into(),
                inputs: vec![],
                scheduled: UNIX_EPOCH,
                start: UNIX_EPOCH,
                end: UNIX_EPOCH + Duration::from_micros(30),
                thread: 0,
                outputs: vec![(1, DType::Float, Shape::from([2, 3]), 24)],
            });
        }
        let costs = cost_graph_def(&GraphDef { nodes, ..GraphDef::default() }, &stats);
        let [a, b, c] = &costs.node[..] else { panic!("{costs:?}") };
        assert_eq!((a.compute_cost, a.output_info[1].size, a.is_final), (60, 24, false));
        assert_eq!(a.output_info[0].alias_input_port, -1);
        assert_eq!((b.input_info[0].preceding_node, b.input_info[0].preceding_port), (0, 1));
        assert_eq!((&b.control_input[..], b.is_final), (&[2][..], true));
        assert_eq!((c.id, c.compute_cost, &c.device[..]), (2, 0, "/cpu:0"));
    }
}
