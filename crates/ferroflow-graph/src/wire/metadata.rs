//! `RunMetadata` and the parts of it that workers send to their master.

use super::malformed;
use crate::passes::MeasuredCosts;
use crate::run_metadata::{NodeTiming, RunMetadata};
use bytes::Bytes;
use ferroflow_core::{Result, err};
use ferroflow_proto::tensorflow as pb;
use prost::{Message, encoding};

/// Field numbers of `RunMetadata`.
const STEP_STATS: u32 = 1;
const COST_GRAPH: u32 = 2;
const PARTITION_GRAPHS: u32 = 3;

/// What one task recorded of a step, as the task serialized it. The master passes it on unread, so
/// that fields that we do not know survive.
#[derive(Clone, Debug, Default)]
pub struct TaskRecord {
    /// A serialized `StepStats`.
    pub step_stats: Option<Bytes>,
    /// A serialized `CostGraphDef`.
    pub cost_graph: Option<Bytes>,
    /// Serialized `GraphDef`s.
    pub partition_graphs: Vec<Bytes>,
}

impl RunMetadata {
    /// Everything that several tasks recorded of one step.
    pub fn of_tasks(records: &[TaskRecord]) -> RunMetadata {
        let mut all = Vec::new();
        for record in records {
            if let Some(stats) = &record.step_stats {
                encoding::bytes::encode(STEP_STATS, stats, &mut all);
            }
            if let Some(costs) = &record.cost_graph {
                encoding::bytes::encode(COST_GRAPH, costs, &mut all);
            }
            for graph in &record.partition_graphs {
                encoding::bytes::encode(PARTITION_GRAPHS, graph, &mut all);
            }
        }
        RunMetadata::from_bytes(all)
    }

    /// Both together: serialized messages one after the other are read as one.
    pub fn joined(self, other: &RunMetadata) -> RunMetadata {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self,
            _ => RunMetadata::from_bytes([&self.bytes()[..], &other.bytes()[..]].concat()),
        }
    }
}

/// When the nodes of a step ran, out of a serialized `RunMetadata`.
pub(crate) fn node_timings(metadata: Bytes) -> Result<Vec<NodeTiming>> {
    let metadata =
        pb::RunMetadata::decode(metadata).map_err(|e| err!(DataLoss, "not a RunMetadata: {e}"))?;
    let mut nodes = Vec::new();
    for device in metadata.step_stats.unwrap_or_default().dev_stats {
        for n in device.node_stats {
            nodes.push(NodeTiming {
                name: n.node_name,
                label: n.timeline_label,
                device: device.device.clone(),
                thread: n.thread_id,
                start_micros: n.all_start_micros,
                micros: n.all_end_rel_micros,
            });
        }
    }
    Ok(nodes)
}

/// What nodes cost in a step that was traced, from its serialized `RunMetadata`.
pub(crate) fn measured(metadata: Bytes) -> Result<MeasuredCosts> {
    let metadata = pb::RunMetadata::decode(metadata)
        .map_err(|e| err!(InvalidArgument, "cannot read RunMetadata: {e}"))?;
    let mut measured = MeasuredCosts::default();
    add(metadata.step_stats.unwrap_or_default(), &mut measured);
    Ok(measured)
}

/// Adds the times in a task's serialized `StepStats` to the measured costs of nodes.
pub fn measure(stats: &Bytes, measured: &mut MeasuredCosts) -> Result<()> {
    add(pb::StepStats::decode(stats.clone()).map_err(malformed)?, measured);
    Ok(())
}

fn add(stats: pb::StepStats, measured: &mut MeasuredCosts) {
    let nodes = stats.dev_stats.into_iter().flat_map(|d| {
        let device = d.device;
        d.node_stats.into_iter().map(move |node| (device.clone(), node))
    });
    for (device, node) in nodes {
        let nanos = match node.op_end_rel_nanos {
            // Older tasks only record microseconds.
            0 => node.op_end_rel_micros.saturating_mul(1000),
            nanos => nanos,
        };
        let bytes = node.output.iter().filter_map(|o| {
            let tensor = o.tensor_description.as_ref()?;
            let bytes = tensor.allocation_description.as_ref()?.requested_bytes;
            Some((usize::try_from(o.slot).ok()?, bytes.max(0) as f64))
        });
        measured.add_on(&device, &node.node_name, nanos.max(0) as f64 * 1e-9, bytes);
    }
}
