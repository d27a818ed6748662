//! Fusion: several nodes become one, whose kernel does the same in fewer passes over memory.
//!
//! Only the value of a group's last node, the root, is used outside the group. The fused node takes
//! the root's place and name, and waits for all nodes that the group waited for. Its kernel is fast
//! for the usual shapes. For others it runs the kernels of the original nodes one by one
//! ([`originals`]), so values and errors are always theirs. The fused node waits for more than some
//! of its nodes did, so nodes that can fail must have waited for as much ([`timely`]).

mod bias_on_gpu;
mod elementwise;
mod epilogue;
mod finish;
mod kernel;
mod moves;
mod on_gpu;
mod originals;
mod program;
mod repeat;
mod rows_on_gpu;
mod timely;
mod updates;

pub use bias_on_gpu::fuse_biases_on_gpus;
pub use elementwise::fuse_elementwise;
pub use epilogue::fuse_epilogues;
pub use moves::fuse_moves_on_gpus;
pub use on_gpu::fuse_on_gpus;
pub use updates::join_updates_on_gpus;

use crate::attr::{AttrList, AttrValue, Attrs};
use crate::block_kernel::AnyBlockKernel;
use crate::gpu_support::GpuSupport;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{
    ArgDef, ArgTypes, AttrDef, AttrKind, KernelFn, OpCost, OpDef, PortType, TypeSource,
};
use ferroflow_core::{DeviceName, PartialShape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a member of a group takes an input from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberInput {
    /// Input number `i` of the group.
    Input(usize),
    /// The value of an earlier member.
    Member(usize),
}

/// A node of a group.
struct FusionMember {
    node: Node,
    sources: SmallVec<[MemberInput; 2]>,
}

/// Some nodes of a graph and how they hang together.
struct FusionGroup {
    /// In an order in which they can run; the last is the root.
    members: Vec<FusionMember>,
    /// Its inputs from other nodes, each once.
    inputs: Vec<Endpoint>,
}

impl FusionGroup {
    /// The group of `ids`, in an order in which each comes after its inputs. All have one output.
    fn new(graph: &GraphIr, ids: &[NodeId]) -> FusionGroup {
        let mut group = FusionGroup { members: Vec::with_capacity(ids.len()), inputs: Vec::new() };
        for &id in ids {
            let node = graph.node(id).clone();
            let sources = node.inputs.iter().map(|e| group.source(ids, *e)).collect();
            group.members.push(FusionMember { node, sources });
        }
        group
    }

    fn source(&mut self, ids: &[NodeId], e: Endpoint) -> MemberInput {
        if let Some(member) = ids.iter().position(|id| *id == e.node) {
            return MemberInput::Member(member);
        }
        let known = self.inputs.iter().position(|input| *input == e);
        MemberInput::Input(known.unwrap_or_else(|| {
            self.inputs.push(e);
            self.inputs.len() - 1
        }))
    }
}

/// The node that replaces `ids`, the last of which is the root.
fn fused_node(
    graph: &GraphIr,
    ids: &[NodeId],
    op: String,
    inputs: Vec<Endpoint>,
    kernel: KernelFn,
) -> Option<Node> {
    let nodes = || ids.iter().rev().map(|id| graph.node(*id));
    let root = nodes().next()?;
    let [output] = root.output_types[..] else { return None };
    let input_types: Vec<PortType> =
        inputs.iter().map(|e| PortType { is_ref: false, ..graph.type_of(*e) }).collect();
    let attrs = Attrs::new()
        .with(
            "Tin",
            AttrValue::List(AttrList::Types(input_types.iter().map(|t| t.dtype).collect())),
        )
        .with("T", output.dtype);
    let arg = |name: &str, types| ArgDef { name: name.into(), is_ref: false, types };
    let attr = |name: &str, is_list| AttrDef {
        name: name.into(),
        kind: AttrKind::Type,
        is_list,
        default: None,
        minimum: None,
        allowed: None,
    };
    let is_expensive = nodes().any(|n| n.op.cost == OpCost::Expensive);
    let op = OpDef {
        inputs: vec![arg("inputs", ArgTypes::Listed("Tin".into()))],
        outputs: vec![arg("output", ArgTypes::One(TypeSource::Attr("T".into())))],
        attrs: vec![attr("Tin", true), attr("T", false)],
        cost: if is_expensive { OpCost::Expensive } else { OpCost::Cheap },
        work: Some(crate::work::broadcast),
        cpu: Some(kernel),
        ..OpDef::named(op)
    };
    Some(Node {
        name: root.name.clone(),
        op: Arc::new(op),
        attrs: Arc::new(attrs),
        inputs,
        controls: root.controls.clone(),
        input_types,
        output_types: vec![output],
        device: root.device.clone(),
        original_names: nodes().map(|n| n.display_name().to_string()).collect(),
    })
}

/// Lets a fused node run on GPUs too, and give its shape.
fn run_on_gpu(node: &mut Node, shape: PartialShape) {
    let op = Arc::make_mut(&mut node.op);
    op.gpu = Some(GpuSupport { make: op.cpu.clone(), ..GpuSupport::default() });
    op.shape = Some(Arc::new(move |_| Ok(vec![shape.clone()])));
}

/// The element-wise form of a node, if the node may be fused. It must be pure and on a CPU, and
/// must not read a variable through a reference, because the value would depend on the time of the
/// read.
fn blocks_of(graph: &GraphIr, node: &Node) -> Option<AnyBlockKernel> {
    let blocks = node.op.blocks?(&node.attrs)?;
    let operands = if blocks.is_unary() { 1 } else { 2 };
    let fits = node.inputs.len() == operands && node.output_types.len() == 1;
    (fits && is_fusible(graph, node)).then_some(blocks)
}

fn is_fusible(graph: &GraphIr, node: &Node) -> bool {
    node.op.is_pure()
        && !node.inputs.iter().any(|e| graph.type_of(*e).is_ref)
        && is_on_cpu(&node.device)
}

fn is_on_cpu(device: &str) -> bool {
    let kind = DeviceName::parse(device).map(|name| name.kind);
    kind.is_ok_and(|kind| kind.is_none_or(|kind| kind.eq_ignore_ascii_case("CPU")))
}

fn same_dtype(a: &AnyBlockKernel, b: &AnyBlockKernel) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
