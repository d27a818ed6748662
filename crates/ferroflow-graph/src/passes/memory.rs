//! Copies between host memory and the memory of GPUs, within the graph that one task runs.
//!
//! An edge whose ends are in different memories gets a node that copies. Consumers of one value on
//! one device share the copy. A constant is copied once, when its kernel is made. A fetched
//! reference is not copied: its value is read when the step is over.
//!
//! A node on a GPU without a kernel for it moves to the CPU of its task. It was placed there
//! because a variable that it uses is on the GPU.

use super::{Pruned, VariableUses};
use crate::attr::Attrs;
use crate::gpu_support::GpuPorts;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{ArgDef, ArgTypes, KernelFn, OpCost, OpDef, OpRole, PortType, TypeSource};
use ferroflow_core::{
    AsyncCtx, Ctx, DeviceName, Done, InlineScope, KernelBox, Result, Tensor, Value, err,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Adds copies to `step`, some of whose nodes are on GPUs. `is_gpu` returns whether a device name
/// is that of a GPU.
pub fn copy_between_memories(step: &mut Pruned, is_gpu: &dyn Fn(&str) -> bool) -> Result<()> {
    move_to_cpus(&mut step.graph, is_gpu)?;
    let graph = &step.graph;
    let mut known: HashMap<&str, Option<u32>> = HashMap::new();
    let mut gpus: Vec<String> = Vec::new();
    let places: Vec<Option<u32>> = graph
        .iter()
        .map(|(_, node)| {
            *known.entry(node.device.as_str()).or_insert_with(|| {
                is_gpu(&node.device).then(|| {
                    gpus.push(node.device.clone());
                    gpus.len() as u32 - 1
                })
            })
        })
        .collect();
    if gpus.is_empty() {
        return Ok(());
    }
    let ports = graph.iter().zip(&places);
    let ports = ports.map(|((_, node), gpu)| gpu.map(|gpu| (gpu, GpuPorts::of(node)))).collect();
    Copies { ports, gpus, made: HashMap::new() }.insert(&mut step.graph)
}

const TO_DEVICE: &str = "_CopyToDevice";
const TO_HOST: &str = "_CopyToHost";

/// Whether an op copies between memories.
pub fn copies_between_memories(op: &str) -> bool {
    [TO_DEVICE, TO_HOST].contains(&op)
}

/// Moves nodes without a GPU kernel from GPUs to the CPUs of their tasks.
fn move_to_cpus(graph: &mut GraphIr, is_gpu: &dyn Fn(&str) -> bool) -> Result<()> {
    for id in graph.ids() {
        let node = graph.node(id);
        let is_plain = !matches!(
            node.op.role,
            OpRole::Send | OpRole::Recv | OpRole::Argument | OpRole::Return
        );
        if is_plain && is_gpu(&node.device) && !node.op.runs_on_gpu(&node.attrs) {
            let name = DeviceName::parse(&node.device)?;
            let cpu = DeviceName { kind: Some("CPU".into()), id: Some(0), ..name };
            graph.node_mut(id).device = cpu.to_string();
        }
    }
    Ok(())
}

/// Where a value is: in host memory, or in that of a GPU.
type Memory = Option<u32>;

struct Copies {
    /// The GPU of each node that is on one, and its ports there.
    ports: Vec<Option<(u32, GpuPorts)>>,
    /// The devices, by number.
    gpus: Vec<String>,
    made: HashMap<(Endpoint, Memory), Endpoint>,
}

impl Copies {
    fn insert(mut self, graph: &mut GraphIr) -> Result<()> {
        let variables = VariableUses::of(graph);
        for id in graph.ids() {
            for i in 0..graph.node(id).inputs.len() {
                let node = graph.node(id);
                if node.input_types[i].is_ref {
                    continue;
                }
                let e = node.inputs[i];
                let is_variable = graph.type_of(e).is_ref || variables.is_alias_at(graph, e);
                if node.op.role == OpRole::Return && is_variable {
                    continue;
                }
                let wanted = self.wanted(id, i);
                if self.given(e) != wanted {
                    let copied = self.copied(graph, e, wanted, id)?;
                    graph.node_mut(id).inputs[i] = copied;
                }
            }
        }
        Ok(())
    }

    fn wanted(&self, id: NodeId, input: usize) -> Memory {
        let (gpu, ports) = self.ports[id.index()].as_ref()?;
        ports.inputs[input].then_some(*gpu)
    }

    fn given(&self, e: Endpoint) -> Memory {
        let (gpu, ports) = self.ports[e.node.index()].as_ref()?;
        ports.outputs[e.slot as usize].then_some(*gpu)
    }

    /// `e` in memory `wanted`, for node `by`.
    fn copied(
        &mut self,
        graph: &mut GraphIr,
        e: Endpoint,
        wanted: Memory,
        by: NodeId,
    ) -> Result<Endpoint> {
        // The value of a reference depends on when it is read.
        let is_ref = graph.type_of(e).is_ref;
        if !is_ref && let Some(&known) = self.made.get(&(e, wanted)) {
            return Ok(known);
        }
        let source = graph.node(e.node);
        let constant = (source.op.role == OpRole::Constant).then(|| source.attrs.tensor("value"));
        let node = match (constant, self.given(e), wanted) {
            (Some(value), None, Some(gpu)) => {
                let value = value?.clone();
                let make = move |init: &crate::KernelInit<'_>| device_constant(init, &value);
                let name = format!("{}/_on_device", source.name);
                self.node(
                    graph,
                    name,
                    "_DeviceConstant",
                    OpRole::Plain,
                    None,
                    e,
                    gpu,
                    Arc::new(make),
                )
            }
            (_, None, Some(gpu)) => {
                let name = format!("{}/_to_device_{}", source.name, e.slot);
                let make: KernelFn = Arc::new(|_| Ok(KernelBox::new(to_device)));
                self.node(graph, name, TO_DEVICE, OpRole::ToDevice, Some(e), e, gpu, make)
            }
            (_, Some(gpu), None) => {
                let name = format!("{}/_to_host_{}", source.name, e.slot);
                let make: KernelFn = Arc::new(|_| Ok(KernelBox::new_async(to_host)));
                self.node(graph, name, TO_HOST, OpRole::ToHost, Some(e), e, gpu, make)
            }
            (_, Some(_), Some(_)) => {
                let on_host = self.copied(graph, e, None, by)?;
                return self.copied(graph, on_host, wanted, by);
            }
            (_, None, None) => return Ok(e),
        };
        let mut node = node;
        if is_ref {
            node.controls = graph.node(by).controls.clone();
        } else if node.inputs.is_empty() {
            // It runs when the constant does, which may be in a branch or a loop.
            node.controls = vec![e.node];
        }
        node.name = graph.unique_name(&node.name);
        let id = graph.push(node)?;
        let gpu = wanted.map(|gpu| (gpu, GpuPorts { inputs: vec![false], outputs: vec![true] }));
        self.ports.push(gpu);
        let copied = Endpoint { node: id, slot: 0 };
        if !is_ref {
            self.made.insert((e, wanted), copied);
        }
        Ok(copied)
    }

    fn node(
        &self,
        graph: &GraphIr,
        name: String,
        op: &str,
        role: OpRole,
        input: Option<Endpoint>,
        of: Endpoint,
        gpu: u32,
        kernel: KernelFn,
    ) -> Node {
        let port = PortType { is_ref: false, ..graph.type_of(of) };
        let arg = |name: &str| ArgDef {
            name: name.into(),
            is_ref: false,
            types: ArgTypes::One(TypeSource::Fixed(port.dtype)),
        };
        let def = OpDef {
            inputs: input.iter().map(|_| arg("value")).collect(),
            outputs: vec![arg("copy")],
            cost: OpCost::Cheap,
            may_wait: role == OpRole::ToHost,
            role,
            cpu: Some(kernel),
            ..OpDef::named(op)
        };
        Node {
            name,
            op: Arc::new(def),
            attrs: Arc::new(Attrs::new()),
            input_types: input.iter().map(|_| port).collect(),
            inputs: input.into_iter().collect(),
            controls: Vec::new(),
            output_types: vec![port],
            device: self.gpus[gpu as usize].clone(),
            original_names: vec![graph.node(of.node).display_name().to_string()],
        }
    }
}

fn to_device(ctx: &mut Ctx<'_>) -> Result<()> {
    let copy = ctx.input(0)?.to_device(ctx.gpu()?)?;
    ctx.set(0, copy)
}

fn to_host(mut ctx: AsyncCtx, done: Done, _: &InlineScope) {
    let value = ctx.take_inputs(0..1).and_then(|mut all| {
        all.pop().ok_or_else(|| err!(Internal, "a copy to the host without a value"))
    });
    match value {
        Ok(value) => value.to_host(Box::new(move |copied| {
            done.finish(copied.map(|t| std::iter::once(Value::Tensor(t)).collect()));
        })),
        Err(e) => done.fail(e),
    }
}

fn device_constant(init: &crate::KernelInit<'_>, value: &Tensor) -> Result<KernelBox> {
    let gpu = init.node.device.gpu.as_ref();
    let gpu = gpu.ok_or_else(|| err!(Internal, "{} is not a GPU", init.node.device.text))?;
    let copy = value.to_device(gpu)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| ctx.set(0, copy.clone())))
}
