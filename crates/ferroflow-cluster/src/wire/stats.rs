//! Traces as RunMetadata, which TensorFlow's timeline tool opens.

use super::costs::cost_graph_def;
use bytes::Bytes;
use ferroflow_core::{GpuWork, NodeStats, Result, StepStats};
use ferroflow_graph::RunMetadata;
use ferroflow_graph::passes::copies_between_memories;
use ferroflow_graph::wire::graph::graph_to_proto;
use ferroflow_graph::wire::tensor::shape_to_proto;
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::RunOutput;
use prost::Message;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// All records of a step, on this task and on others.
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

/// The records of this task of a step, as serialized StepStats.
pub(crate) fn step_stats(stats: &StepStats) -> Bytes {
    step_stats_proto(stats).encode_to_vec().into()
}

fn step_stats_proto(stats: &StepStats) -> pb::StepStats {
    let mut by_device: BTreeMap<String, Vec<pb::NodeExecStats>> = BTreeMap::new();
    for node in stats.nodes.lock().iter() {
        by_device.entry(node.device.clone()).or_default().push(node_stats(node));
    }
    for work in stats.gpus.work() {
        for stream in streams_of(&work) {
            let device = format!("{}/{stream}", work.device);
            by_device.entry(device).or_default().push(work_stats(&work));
        }
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

/// The rows of TensorFlow's timeline in which work of a GPU is shown.
fn streams_of(work: &GpuWork) -> [&'static str; 2] {
    match copies_between_memories(&work.op) {
        true => ["stream:all", "memcpy"],
        false => ["stream:all", "stream:0"],
    }
}

/// Work of a GPU. The timeline takes the node and the op from the name.
fn work_stats(work: &GpuWork) -> pb::NodeExecStats {
    let (start, end) = (nanos(work.start), nanos(work.end));
    let micros = ((end - start) / 1000).max(1);
    pb::NodeExecStats {
        node_name: format!("{}:{}", work.node, work.op),
        all_start_micros: start / 1000,
        op_end_rel_micros: micros,
        all_end_rel_micros: micros,
        timeline_label: format!("{} = {}", work.node, work.op),
        scheduled_micros: start / 1000,
        all_start_nanos: start,
        op_end_rel_nanos: end - start,
        all_end_rel_nanos: end - start,
        scheduled_nanos: start,
        ..Default::default()
    }
}

fn nanos(t: SystemTime) -> i64 {
    t.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// TensorFlow's name of the allocator of a device such as `…/device:GPU:0`.
fn allocator_name(device: &str) -> String {
    match device.rsplit_once("/device:GPU:") {
        Some((_, number)) => format!("GPU_{number}_bfc"),
        None => "cpu".into(),
    }
}

fn node_stats(node: &NodeStats) -> pb::NodeExecStats {
    let (scheduled, start, end) = (nanos(node.scheduled), nanos(node.start), nanos(node.end));
    let allocator = allocator_name(&node.device);
    let memory = node.memory.iter().map(|memory| pb::AllocatorMemoryUsed {
        allocator_name: allocator.clone(),
        total_bytes: node.outputs.iter().map(|(_, _, _, bytes)| *bytes as i64).sum(),
        peak_bytes: memory.peak as i64,
        live_bytes: memory.in_use as i64,
        allocator_bytes_in_use: memory.in_use as i64,
        ..Default::default()
    });
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
                    allocator_name: allocator.clone(),
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
        memory: memory.collect(),
        output,
        all_start_nanos: start,
        op_end_rel_nanos: end - start,
        all_end_rel_nanos: end - start,
        scheduled_nanos: scheduled,
        ..Default::default()
    }
}
