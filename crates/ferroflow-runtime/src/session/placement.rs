//! Places the nodes of a session on devices: when they are added, or when a step first needs them.

use super::compiled::Signature;
use super::{RunOptions, RunOutput, TaskSession};
use ferroflow_core::{Result, StepStats};
use ferroflow_graph::passes::{self, CostModel, MeasuredCosts, PredictedNode, Prediction, Pruned};
use ferroflow_graph::{GraphIr, Node, NodeId, RunMetadata};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// How nodes get a device if they allow more than one.
#[derive(Clone, Debug, Default)]
pub enum Placement {
    /// At once, when nodes are added: the first device that fits, with those of the session's own
    /// task first, as in TensorFlow.
    #[default]
    First,
    /// The same, when a step is first run and for its nodes alone. Nodes that no step needs may
    /// name devices that do not exist.
    FirstNeeded,
    /// When a step is first run: the placement with the shortest predicted step. Some runs are
    /// measured. If the costs differ from the prediction, the step is placed again, except for
    /// nodes with state.
    ByCost(Box<CostModel>),
}

impl Placement {
    /// Whether the placement needs the measured speed of devices.
    pub fn measures_devices(&self) -> bool {
        matches!(self, Placement::ByCost(model) if model.measured_devices)
    }
}

/// The first run of a step that is measured. Earlier runs also pay for the start.
const FIRST_MEASURED: u32 = 3;

/// Of the later runs, one in this many is measured.
const MEASURED_EVERY: u32 = 100;

/// A step is placed again if its costs differ from the prediction by more than this share.
const CHANGED: f64 = 0.25;

/// The placement of earlier steps of a session.
#[derive(Default)]
pub(super) struct Placed {
    /// The devices of nodes with state, which all steps share.
    stateful: Mutex<HashMap<String, String>>,
    measured: Mutex<MeasuredCosts>,
    /// The steps that were placed again.
    moved: Mutex<HashSet<Signature>>,
}

/// How often a step was run, and the state of its measurement.
#[derive(Default)]
pub(crate) struct Trials {
    /// The number of all runs. `runs` counts only those of a step that was placed by cost.
    all: AtomicI64,
    runs: AtomicU32,
    is_outdated: AtomicBool,
    /// Whether the step was placed again before, so that its early runs bring no new information.
    was_moved: bool,
    /// The costs of the current placement, if there was a choice.
    prediction: Option<Mutex<Prediction>>,
}

impl Trials {
    pub fn of(prediction: Option<Prediction>, was_moved: bool) -> Trials {
        // With one device there is no choice.
        let prediction = prediction.filter(|p| p.devices.len() > 1).map(Mutex::new);
        Trials { prediction, was_moved, ..Trials::default() }
    }

    /// The number of the run that begins.
    pub fn count(&self) -> i64 {
        self.all.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Whether the costs have changed since the step was placed. True once for each change.
    pub fn take_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed) && self.is_outdated.swap(false, Ordering::AcqRel)
    }

    /// Whether the run that begins is to be measured.
    pub fn is_measured(&self) -> bool {
        if self.prediction.is_none() {
            return false;
        }
        let run = self.runs.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        run.is_multiple_of(MEASURED_EVERY) || (run == FIRST_MEASURED && !self.was_moved)
    }

    /// Whether a new prediction leaves all nodes where they are. If so, it replaces the old one.
    fn stays(&self, new: Prediction) -> bool {
        let Some(present) = &self.prediction else { return true };
        let mut present = present.lock();
        let devices: HashMap<&str, &str> =
            present.nodes.iter().map(|n| (n.name.as_str(), n.device.as_str())).collect();
        let stays = |n: &PredictedNode| devices.get(n.name.as_str()) == Some(&n.device.as_str());
        let all_stay = new.nodes.len() == devices.len() && new.nodes.iter().all(stays);
        if all_stay {
            *present = new;
        }
        all_stay
    }
}

impl Placed {
    /// Takes the measurements from the output of a step.
    pub fn learn(&self, output: &mut RunOutput, options: &RunOptions, trials: &Trials) {
        let mut measured = std::mem::take(&mut output.measured);
        if let Some(stats) = &output.stats {
            add_stats(&mut measured, stats);
        }
        let known = {
            let mut known = self.measured.lock();
            known.follow(measured);
            known.clone()
        };
        if let Some(prediction) = &trials.prediction {
            let has_changed = known.distance(&prediction.lock().nodes) > CHANGED;
            trials.is_outdated.store(has_changed, Ordering::Release);
        }
        if !options.trace {
            output.stats = None;
            output.metadata = RunMetadata::default();
        }
    }
}

impl TaskSession {
    /// Whether a step whose costs have changed should be compiled again, because some of its nodes
    /// would be placed on other devices.
    pub(super) fn moves(&self, signature: &Signature, trials: &Trials) -> Result<bool> {
        let graph = self.graph.read();
        let Signature { feeds, fetches, targets } = signature;
        let mut step = passes::prune(&graph, feeds, fetches, targets, &self.task.catalog)?;
        let Some(prediction) = self.place_step(&mut step, &graph, signature)? else {
            return Ok(false);
        };
        let moves = !trials.stays(prediction);
        if moves {
            self.placed.moved.lock().insert(signature.clone());
        }
        Ok(moves)
    }

    /// Whether a step was placed again.
    pub(super) fn was_moved(&self, signature: &Signature) -> bool {
        self.placed.moved.lock().contains(signature)
    }

    /// Places the graph of a step that is being compiled, unless its nodes were placed when they
    /// were added. `graph` is the whole graph.
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
        measured.add_on(&node.device, &node.node, seconds, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_graph::passes::DeviceLoad;

    /// A step with its nodes on these devices.
    fn prediction(devices: &[&str]) -> Prediction {
        let load = |device: &&str| DeviceLoad { device: device.to_string(), nodes: 1, busy: 1.0 };
        let node = |(i, device): (usize, &&str)| PredictedNode {
            name: i.to_string(),
            device: device.to_string(),
            begins: 0.0,
            seconds: 1.0,
        };
        Prediction {
            seconds: 1.0,
            devices: ["a", "b"].iter().map(load).collect(),
            transfers: Vec::new(),
            nodes: devices.iter().enumerate().map(node).collect(),
        }
    }

    #[test]
    fn one_early_run_and_one_in_a_hundred_are_measured() {
        let measured = |was_moved| {
            let trials = Trials::of(Some(prediction(&["a", "b"])), was_moved);
            (1..=300).filter(|_| trials.is_measured()).collect::<Vec<u32>>()
        };
        assert_eq!(measured(false), [3, 100, 200, 300]);
        assert_eq!(measured(true), [100, 200, 300]);
        assert!(!(0..300).any(|_| Trials::of(None, false).is_measured()));
    }

    #[test]
    fn a_step_whose_nodes_all_stay_is_not_placed_anew() {
        let trials = Trials::of(Some(prediction(&["a", "b"])), false);
        assert!(trials.stays(prediction(&["a", "b"])));
        assert!(!trials.stays(prediction(&["a", "a"])));
        assert!(!trials.stays(prediction(&["a"])));
    }
}
