//! Places the nodes of a session on devices: when they are added, or when a step first needs them.

use super::compiled::Signature;
use super::{RunOptions, RunOutput, TaskSession};
use ferroflow_core::{Result, StepStats};
use ferroflow_graph::passes::{self, CostModel, MeasuredCosts, Prediction, Pruned};
use ferroflow_graph::{GraphIr, Node, NodeId, RunMetadata};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// How nodes get a device if they ask for none, or for one of several.
#[derive(Clone, Debug, Default)]
pub enum Placement {
    /// The first device that fits, those of the session's own task first, for all nodes when they
    /// are added, as in TensorFlow.
    #[default]
    First,
    /// The same, for what a step needs when it is first run: nodes that no step needs may ask for
    /// devices that do not exist.
    FirstNeeded,
    /// When a step is first run: the placement with the shortest predicted step. The step is placed
    /// anew, except for nodes with state, once it has been measured.
    ByCost(Box<CostModel>),
}

/// The run of a step that is measured. The first ones are slow for other reasons.
const MEASURED_RUN: u32 = 3;

/// The placement of earlier steps of a session.
#[derive(Default)]
pub(super) struct Placed {
    /// The devices of nodes with state, which all steps share.
    stateful: Mutex<HashMap<String, String>>,
    measured: Mutex<MeasuredCosts>,
}

/// How often a step was run, and the state of its measurement.
#[derive(Default)]
pub(crate) struct Trials {
    /// All of them; then those of a step that was placed by cost.
    all: AtomicI64,
    runs: AtomicU32,
    is_outdated: AtomicBool,
    prediction: Option<Prediction>,
}

impl Trials {
    pub fn of(prediction: Option<Prediction>) -> Trials {
        Trials { prediction, ..Trials::default() }
    }

    /// The number of the run that begins.
    pub fn count(&self) -> i64 {
        self.all.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Whether the step should be compiled again, with what was measured.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// Whether this run, which begins, is the one to be measured.
    pub fn is_measured(&self) -> bool {
        self.prediction.is_some()
            && self.runs.load(Ordering::Relaxed) < MEASURED_RUN
            && self.runs.fetch_add(1, Ordering::Relaxed) + 1 == MEASURED_RUN
    }
}

impl Placed {
    /// Takes the measurements out of the output of a step.
    pub fn learn(&self, output: &mut RunOutput, options: &RunOptions, trials: &Trials) {
        let mut measured = std::mem::take(&mut output.measured);
        if let Some(stats) = &output.stats {
            add_stats(&mut measured, stats);
        }
        self.measured.lock().merge(measured);
        trials.is_outdated.store(true, Ordering::Release);
        if !options.trace {
            output.stats = None;
            output.metadata = RunMetadata::default();
        }
    }
}

impl TaskSession {
    /// Places the graph of a step that is compiled, unless its nodes were placed when they were
    /// added. `graph` is the whole graph.
    pub(super) fn place_step(
        &self,
        step: &mut Pruned,
        graph: &GraphIr,
        signature: &Signature,
    ) -> Result<Option<Prediction>> {
        if matches!(self.options.placement, Placement::First) {
            return Ok(None);
        }
        for &id in step.args.iter().chain(&step.rets) {
            step.graph.node_mut(id).device = self.own[0].text.clone();
        }
        let measured = self.placed.measured.lock().clone();
        // Held until the end, so that steps that are compiled at the same time agree.
        let mut stateful = self.placed.stateful.lock();
        let ids: Vec<NodeId> =
            step.graph.iter().filter(|(_, n)| holds_state(n)).map(|(id, _)| id).collect();
        for &id in &ids {
            let node = step.graph.node_mut(id);
            if let Some(device) = stateful.get(&node.name) {
                node.device = device.clone();
            }
        }
        let soft = self.options.allow_soft_placement;
        let prediction = match &self.options.placement {
            Placement::ByCost(model) => {
                let mut model = CostModel::clone(model);
                model.measured.merge(measured);
                let shapes = passes::infer(graph);
                let shape = |name: &String| {
                    let e = graph.endpoint(name).ok()?;
                    shapes[e.node.index()].get(e.slot as usize).cloned()
                };
                let fed = step.args.iter().zip(&signature.feeds);
                let given = fed.filter_map(|(id, name)| Some((*id, shape(name)?))).collect();
                let devices = &self.devices;
                Some(passes::place_by_cost(&mut step.graph, devices, soft, &model, &given)?)
            }
            _ => {
                passes::place(&mut step.graph, 0, &self.devices, soft)?;
                None
            }
        };
        for id in ids {
            let node = step.graph.node(id);
            stateful.entry(node.name.clone()).or_insert_with(|| node.device.clone());
        }
        if self.options.log_device_placement {
            log_placement(step.graph.iter().map(|(_, node)| node));
            if let Some(p) = &prediction {
                tracing::info!(target: "placement", "predicted step time: {:.6} s", p.seconds);
            }
        }
        Ok(prediction)
    }
}

/// Logs where nodes are placed.
pub(super) fn log_placement<'a>(nodes: impl Iterator<Item = &'a Node>) {
    for node in nodes {
        let (name, op, device) = (&node.name, &node.op.name, &node.device);
        tracing::info!(target: "placement", "{name}: ({op}): {device}");
    }
}

fn holds_state(node: &Node) -> bool {
    node.op.is_stateful || node.output_types.iter().any(|t| t.is_ref)
}

fn add_stats(measured: &mut MeasuredCosts, stats: &StepStats) {
    for node in stats.nodes.lock().iter() {
        let seconds = node.end.duration_since(node.start).unwrap_or_default().as_secs_f64();
        let bytes = node.outputs.iter().map(|(slot, _, _, bytes)| (*slot, *bytes as f64));
        measured.add(&node.node, seconds, bytes);
    }
}
