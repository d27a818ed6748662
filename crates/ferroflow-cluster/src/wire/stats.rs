//! Traces as RunMetadata, which TensorFlow's timeline tool opens.

use super::costs::cost_graph_def;
use bytes::Bytes;
use ferroflow_core::{NodeStats, Result, StepStats};
use ferroflow_graph::RunMetadata;
use ferroflow_graph::wire::graph::graph_to_proto;
use ferroflow_graph::wire::tensor::shape_to_proto;
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::RunOutput;
use prost::Message;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything that was recorded of a step, on this task and on others.
pub fn run_metadata(output: &RunOutput) -> Result<RunMetadata> {
    let RunOutput { stats, partition_graphs, metadata, costs, .. } = output;
    if stats.is_none() && partition_graphs.is_empty() && costs.is_none() {
        return Ok(metadata.clone());
    }
    let partition_graphs = partition_graphs.iter().map(graph_to_proto).collect::<Result<_>>()?;
    let step_stats = stats.as_deref().map(step_stats_proto);
    let cost_graph = costs.as_ref().map(|(graph, stats)| cost_graph_def(graph, stats));
    let own = pb::RunMetadata { step_stats, cost_graph, partition_graphs, ..Default::default() };
    Ok(RunMetadata::from_bytes(own.encode_to_vec()).joined(metadata))
}

/// What this task recorded of a step, as serialized StepStats.
pub(crate) fn step_stats(stats: &StepStats) -> Bytes {
    step_stats_proto(stats).encode_to_vec().into()
}

fn step_stats_proto(stats: &StepStats) -> pb::StepStats {
    let mut by_device: BTreeMap<String, Vec<pb::NodeExecStats>> = BTreeMap::new();
    for node in stats.nodes.lock().iter() {
        by_device.entry(node.device.clone()).or_default().push(node_stats(node));
    }
    let dev_stats = by_device
        .into_iter()
        .map(|(device, node_stats)| pb::DeviceStepStats {
            device,
            node_stats,
            ..Default::default()
        })
        .collect();
    pb::StepStats { dev_stats }
}

fn node_stats(node: &NodeStats) -> pb::NodeExecStats {
    let nanos = |t: SystemTime| t.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
    let (scheduled, start, end) = (nanos(node.scheduled), nanos(node.start), nanos(node.end));
    // The timeline does not show nodes of less than a microsecond.
    let micros = ((end - start) / 1000).max(1);
    let output = node
        .outputs
        .iter()
        .map(|(slot, dtype, shape, bytes)| pb::NodeOutput {
            slot: *slot as i32,
            tensor_description: Some(pb::TensorDescription {
                dtype: dtype.number(),
                shape: Some(shape_to_proto(&shape.into())),
                allocation_description: Some(pb::AllocationDescription {
                    requested_bytes: *bytes as i64,
                    allocated_bytes: *bytes as i64,
                    allocator_name: "cpu".into(),
                    ..Default::default()
                }),
            }),
        })
        .collect();
    pb::NodeExecStats {
        node_name: node.node.clone(),
        all_start_micros: start / 1000,
        op_start_rel_micros: 0,
        op_end_rel_micros: micros,
        all_end_rel_micros: micros,
        timeline_label: format!("{} = {}({})", node.node, node.op, node.inputs.join(", ")),
        scheduled_micros: scheduled / 1000,
        thread_id: node.thread,
        output,
        all_start_nanos: start,
        op_end_rel_nanos: end - start,
        all_end_rel_nanos: end - start,
        scheduled_nanos: scheduled,
        ..Default::default()
    }
}
