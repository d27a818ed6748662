//! The plan: a graph compiled once, to be run many times. It has flat arrays and `u32` ids, and
//! holds all that can be computed before a step.

mod frame_info;

pub(crate) use frame_info::{FrameInfo, ROOT};

use crate::flat::FlatState;
use crate::frames::Count;
use crate::gpu_debug;
use crate::node_cost::NodeCost;
use crate::recorded::{Recordings, recordings_of};
use ferroflow_core::{DeviceInfo, KernelBox, NodeInfo, Result, bail, err};
use ferroflow_graph::passes::{self, VariableUses};
use ferroflow_graph::{
    ControlFlow, FunctionInstantiator, GraphIr, KernelInit, Node, NodeId, OpDef, OpRole, WorkFn,
};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A compiled graph.
pub struct Plan {
    pub(crate) nodes: Box<[PlanNode]>,
    /// The outgoing edges of all nodes. The edges of one node are contiguous: data edges first, by
    /// slot.
    pub(crate) edges: Box<[Edge]>,
    /// Nodes that wait for no other node.
    pub(crate) roots: Vec<u32>,
    /// The node of each argument.
    pub(crate) args: Vec<u32>,
    /// The tensor of each result, as `node:slot`.
    pub(crate) ret_names: Vec<String>,
    pub(crate) input_slots: usize,
    /// Present when the graph has control flow or may receive dead values.
    pub(crate) frames: Option<Vec<FrameInfo>>,
    /// States of finished steps, for the next ones.
    pub(crate) spare_states: Mutex<Vec<FlatState>>,
    /// Present when steps can be recorded on a GPU.
    pub(crate) recordings: Option<Recordings>,
}

pub(crate) struct PlanNode {
    pub kernel: Option<KernelBox>,
    pub info: Arc<NodeInfo>,
    /// The index of its first input slot.
    pub first_input: u32,
    pub inputs: u32,
    pub first_edge: u32,
    pub edges: u32,
    /// The number of edges to wait for, with control edges. For a Merge: 1 + 2 * control edges.
    pub pending: u32,
    pub kind: NodeKind,
    pub cost: NodeCost,
    /// Estimates its work beyond the bytes of its inputs.
    pub work: Option<WorkFn>,
    /// It may block, so it runs on a thread that may.
    pub does_io: bool,
    /// Some input is a reference that the kernel must see as a snapshot.
    pub derefs: bool,
    /// Its output is an alias of the variable that it takes, though its kernel computes a value: a
    /// consumer reads the variable when it runs.
    pub passes_ref: bool,
    /// The inputs that the kernel takes as references.
    pub ref_inputs: Box<[bool]>,
    /// Runs although inputs are dead: sends, receives.
    pub runs_dead: bool,
    /// Its index among the nodes and input slots of its frame.
    pub frame_node: u32,
    pub frame_slot: u32,
    /// Names of the inputs' nodes, for traces.
    pub input_names: Box<[String]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Compute,
    Arg,
    Ret(u32),
    Merge,
    Enter { frame: u32, is_constant: bool },
    Exit,
    NextIteration,
    ControlTrigger,
}

/// An edge to a consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Output slot, or `CONTROL`.
    pub slot: u32,
    pub to: u32,
    /// Which input of `to`.
    pub input: u32,
    /// Its index among all input slots of the plan.
    pub place: u32,
    /// `to` waits for this edge alone.
    pub is_only: bool,
    /// No later edge of this node carries the same output: the value can be moved.
    pub is_last_use: bool,
    pub is_from_enter: bool,
    /// The edge sets the order alone: `to` is not dead because this node is.
    pub is_order: bool,
}

pub(crate) const CONTROL: u32 = u32::MAX;

/// The devices and caches that kernels are made with.
pub(crate) struct PlanContext<'a> {
    /// The device of a node, by its assigned name.
    pub device_of: &'a dyn Fn(&Node) -> Result<Arc<DeviceInfo>>,
    pub functions: &'a Arc<dyn FunctionInstantiator>,
    /// Kernels that keep state, shared by the graphs of a session.
    pub kernels: &'a KernelCache,
}

/// Kernels of stateful nodes by node name: a queue or a random generator that occurs in several
/// plans of one session is the same object.
#[derive(Default)]
pub struct KernelCache {
    kernels: Mutex<HashMap<String, (String, KernelBox)>>,
}

impl KernelCache {
    fn get_or_make(
        &self,
        op: &OpDef,
        name: &str,
        make: impl FnOnce() -> Result<KernelBox>,
    ) -> Result<KernelBox> {
        // Sends and receives have no state, and two graphs may use one name for different
        // transfers.
        if !op.is_stateful || matches!(op.role, OpRole::Send | OpRole::Recv) {
            return make();
        }
        if let Some((of, kernel)) = self.kernels.lock().get(name)
            && *of == op.name
        {
            return Ok(kernel.clone());
        }
        let made = make()?;
        let mut kernels = self.kernels.lock();
        let (_, kernel) =
            kernels.entry(name.to_string()).or_insert_with(|| (op.name.clone(), made));
        Ok(kernel.clone())
    }

    /// Forgets all kernels, and drops the resources that are private to them.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.kernels.lock());
        drop(dropped);
    }
}

impl Plan {
    /// Compiles a graph whose arguments are `args` (`_Arg` nodes, by index) and whose results are
    /// `rets` (`_Retval` nodes, by index). Every node of the graph will run.
    pub(crate) fn compile(
        graph: &GraphIr,
        args: &[NodeId],
        rets: &[NodeId],
        context: &PlanContext<'_>,
    ) -> Result<Plan> {
        let mut infos = NodeInfos { context, devices: HashMap::new() };
        let ret_index: HashMap<NodeId, u32> =
            rets.iter().enumerate().map(|(i, id)| (*id, i as u32)).collect();
        let variables = VariableUses::of(graph);
        let first = passes::reads_before_writes(graph, &variables);
        let mut waits_for_reads = vec![0u32; graph.len()];
        first.iter().for_each(|(_, writer)| waits_for_reads[writer.index()] += 1);
        let (mut edges, ranges) = collect_edges(graph, &first);
        mark_last_uses(&mut edges, &ranges);

        let needs_frames =
            graph.iter().any(|(_, n)| n.op.control_flow.is_some() || n.op.role == OpRole::Recv);
        let frames = if needs_frames { Some(frame_info::analyse(graph)?) } else { None };

        let mut nodes = Vec::with_capacity(graph.len());
        let mut input_slots = 0u32;
        for (id, node) in graph.iter() {
            let kind = match (&node.op.control_flow, node.op.role) {
                (_, OpRole::Argument) => NodeKind::Arg,
                (_, OpRole::Return) => NodeKind::Ret(*ret_index.get(&id).ok_or_else(|| {
                    err!(Internal, "'{}' is a result that was not asked for", node.name)
                })?),
                (Some(ControlFlow::Merge), _) => NodeKind::Merge,
                (Some(ControlFlow::Enter), _) => NodeKind::Enter {
                    frame: frames.as_ref().map_or(ROOT, |f| f.enters[&id]),
                    is_constant: node.attrs.bool("is_constant")?,
                },
                (Some(ControlFlow::Exit), _) => NodeKind::Exit,
                (Some(ControlFlow::NextIteration), _) => NodeKind::NextIteration,
                (Some(ControlFlow::ControlTrigger), _) => NodeKind::ControlTrigger,
                _ => NodeKind::Compute,
            };
            let info = infos.make(node)?;
            let kernel = match kind {
                NodeKind::Arg | NodeKind::Ret(_) => None,
                _ if gpu_debug::is_on() => {
                    Some(gpu_debug::waiting(make_kernel(node, &info, context)?, &info))
                }
                _ => Some(make_kernel(node, &info, context)?),
            };
            let on_gpu = info.device.gpu.is_some() && node.op.runs_on_gpu(&node.attrs);
            let controls = node.controls.len() as u32 + waits_for_reads[id.index()];
            // A result that is a reference is read after the step.
            let is_result = matches!(kind, NodeKind::Ret(_));
            let (first_edge, edge_count) = ranges[id.index()];
            let place = frames.as_ref().map_or((ROOT, 0, 0), |f| f.places[id.index()]);
            nodes.push(PlanNode {
                kernel,
                info,
                first_input: input_slots,
                inputs: node.inputs.len() as u32,
                first_edge,
                edges: edge_count,
                pending: match kind {
                    NodeKind::Merge => 1 + 2 * controls,
                    _ => node.inputs.len() as u32 + controls,
                },
                kind,
                cost: NodeCost::of(node, on_gpu),
                work: node.op.work,
                does_io: node.op.does_io,
                derefs: !is_result && variables.reads_alias(graph, id),
                passes_ref: variables.is_alias(id) && node.op.control_flow.is_none(),
                ref_inputs: ref_inputs(node, id, &variables),
                runs_dead: matches!(node.op.role, OpRole::Send | OpRole::Recv),
                frame_node: place.1,
                frame_slot: place.2,
                input_names: node.inputs.iter().map(|e| graph.node(e.node).name.clone()).collect(),
            });
            input_slots += node.inputs.len() as u32;
        }
        for edge in &mut edges {
            let to = &nodes[edge.to as usize];
            edge.place = to.first_input + edge.input;
            edge.is_only = to.pending == 1;
        }
        let mut frames = frames.map(|f| f.frames);
        for frame in frames.iter_mut().flatten() {
            let count = |&id: &u32| Count { pending: nodes[id as usize].pending, dead: 0 };
            frame.counts = frame.nodes.iter().map(count).collect();
        }
        let mut roots: Vec<u32> = nodes
            .iter()
            .enumerate()
            .filter(|(_, n)| n.pending == 0 && n.kind != NodeKind::Arg)
            .map(|(i, _)| i as u32)
            .collect();
        // The last root is run first: async nodes start to wait at once.
        roots.sort_by_key(|&i| matches!(nodes[i as usize].kernel, Some(KernelBox::Async(_))));
        let args = args.iter().map(|id| id.0).collect();
        let ret_name = |id: &NodeId| {
            let from = graph.node(*id).inputs.first();
            from.map_or(String::new(), |e| format!("{}:{}", graph.node(e.node).name, e.slot))
        };
        let ret_names = rets.iter().map(ret_name).collect();
        let recordings = match frames {
            None => recordings_of(graph, &nodes, &edges),
            Some(_) => None,
        };
        Ok(Plan {
            nodes: nodes.into(),
            edges: edges.into(),
            roots,
            args,
            ret_names,
            input_slots: input_slots as usize,
            frames,
            spare_states: Mutex::new(Vec::new()),
            recordings,
        })
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The data of a frame. The plan must have frames.
    pub(crate) fn frame(&self, info: u32) -> &FrameInfo {
        &self.frames.as_deref().expect("only plans with frames run with frames")[info as usize]
    }

    pub(crate) fn edges_of(&self, node: &PlanNode) -> &[Edge] {
        &self.edges[node.first_edge as usize..(node.first_edge + node.edges) as usize]
    }
}

/// The inputs of node `id` that its kernel takes as references. The kernels of control flow forward
/// what they receive.
fn ref_inputs(node: &Node, id: NodeId, variables: &VariableUses) -> Box<[bool]> {
    let is_flow = node.op.control_flow.is_some();
    let inputs = node.input_types.iter().enumerate();
    inputs.map(|(i, t)| t.is_ref || is_flow && variables.passes_alias(node, id, i)).collect()
}

struct NodeInfos<'a> {
    context: &'a PlanContext<'a>,
    devices: HashMap<String, Arc<DeviceInfo>>,
}

impl NodeInfos<'_> {
    fn make(&mut self, node: &Node) -> Result<Arc<NodeInfo>> {
        let device = match self.devices.get(&node.device) {
            Some(found) => found.clone(),
            None => {
                let found = (self.context.device_of)(node)?;
                self.devices.insert(node.device.clone(), found.clone());
                found
            }
        };
        Ok(Arc::new(NodeInfo {
            name: node.name.clone(),
            op: node.op.name.clone(),
            default_container: device.name.job.clone().unwrap_or_default(),
            device,
            outputs: node.output_types.len(),
        }))
    }
}

fn make_kernel(node: &Node, info: &Arc<NodeInfo>, context: &PlanContext<'_>) -> Result<KernelBox> {
    context
        .kernels
        .get_or_make(&node.op, &node.name, || {
            node.op.kernel(&KernelInit {
                node: info,
                attrs: &node.attrs,
                inputs: &node.input_types,
                outputs: &node.output_types,
                functions: context.functions,
                is_fallback: false,
            })
        })
        .map_err(|e| e.at_node(&node.name))
}

/// All edges by source node, and the start and length of each node's run of edges. `first` holds
/// additional control edges as pairs of nodes.
fn collect_edges(graph: &GraphIr, first: &[(NodeId, NodeId)]) -> (Vec<Edge>, Vec<(u32, u32)>) {
    let mut ranges = vec![(0u32, 0u32); graph.len()];
    for (_, node) in graph.iter() {
        let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
        sources.for_each(|source| ranges[source.index()].1 += 1);
    }
    first.iter().for_each(|(source, _)| ranges[source.index()].1 += 1);
    let mut total = 0;
    for range in &mut ranges {
        range.0 = total;
        total += range.1;
    }
    let none = Edge {
        slot: 0,
        to: 0,
        input: 0,
        place: 0,
        is_only: false,
        is_last_use: false,
        is_from_enter: false,
        is_order: false,
    };
    let mut edges = vec![none; total as usize];
    let mut next: Vec<u32> = ranges.iter().map(|r| r.0).collect();
    let mut put = |source: NodeId, edge: Edge| {
        edges[next[source.index()] as usize] = edge;
        next[source.index()] += 1;
    };
    for (id, node) in graph.iter() {
        for (i, e) in node.inputs.iter().enumerate() {
            let is_from_enter = graph.node(e.node).op.control_flow == Some(ControlFlow::Enter);
            put(e.node, Edge { slot: e.slot, to: id.0, input: i as u32, is_from_enter, ..none });
        }
    }
    for (id, node) in graph.iter() {
        for c in &node.controls {
            put(*c, Edge { slot: CONTROL, to: id.0, ..none });
        }
    }
    for (source, to) in first {
        put(*source, Edge { slot: CONTROL, to: to.0, is_order: true, ..none });
    }
    (edges, ranges)
}

fn mark_last_uses(edges: &mut [Edge], ranges: &[(u32, u32)]) {
    for &(first, count) in ranges {
        let run = &mut edges[first as usize..(first + count) as usize];
        if run.len() > 64 {
            let mut seen = HashSet::new();
            for edge in run.iter_mut().rev() {
                edge.is_last_use = edge.slot != CONTROL && seen.insert(edge.slot);
            }
            continue;
        }
        let mut seen = Vec::new();
        for edge in run.iter_mut().rev() {
            if edge.slot != CONTROL && !seen.contains(&edge.slot) {
                seen.push(edge.slot);
                edge.is_last_use = true;
            }
        }
    }
}

impl Plan {
    /// Checks that the number of values equals the number of arguments.
    pub(crate) fn check_args(&self, given: usize) -> Result<()> {
        if given != self.args.len() {
            bail!(InvalidArgument, "{} arguments given, {} expected", given, self.args.len());
        }
        Ok(())
    }
}
