//! Fuses element-wise nodes on GPUs: their kernel reads and writes memory once for all of them.
//!
//! A value that several nodes take is computed in each of their kernels, if that reads no more
//! memory. The node that made it is dropped when all its consumers do so. Values are rounded to
//! their types in between, so a fused node gives the bits of its nodes.

use super::originals::Originals;
use super::timely::Timely;
use super::{FusionGroup, MemberInput, fused_node};
use crate::block_kernel::OperandShapes;
use crate::catalog::Catalog;
use crate::gpu_support::{FormulaOperand, FormulaStep, FusedFormulas, GpuFuser, GpuSupport};
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::kernel_init::KernelInit;
use crate::op_def::KernelFn;
use crate::passes::{Pruned, topological_order};
use ferroflow_core::{Ctx, DeviceName, Kernel, KernelBox, Result};
use std::sync::Arc;

/// The largest group: larger ones take long to compile.
const MAX_MEMBERS: usize = 48;
/// The most values that a kernel takes.
const MAX_INPUTS: usize = 10;

/// Fuses nodes with formulas that are on one GPU.
pub fn fuse_on_gpus(step: &mut Pruned, catalog: &Catalog) {
    let Some(fuser) = catalog.gpu_fuser() else { return };
    let graph = &step.graph;
    let formulas: Vec<Option<Formula>> = graph.iter().map(|(_, n)| formula_of(n)).collect();
    if formulas.iter().flatten().count() < 2 {
        return;
    }
    let groups = Groups::new(graph, formulas);
    let mut fused = Vec::new();
    let mut keep = vec![true; graph.len()];
    let (found, dropped) = groups.find();
    for ids in found {
        let Some(&root) = ids.last() else { continue };
        let group = FusionGroup::new(graph, &ids);
        let inputs = group.inputs.clone();
        let Some(formulas) = groups.formulas(graph, &ids, &group) else { continue };
        let kernel = fused_kernel(Arc::new(group), formulas, fuser);
        let on_gpu = GpuSupport { make: Some(kernel.clone()), ..GpuSupport::default() };
        if let Some(mut node) = fused_node(graph, &ids, "_FusedOnGpu".into(), inputs, kernel) {
            Arc::make_mut(&mut node.op).gpu = Some(on_gpu);
            fused.push((root, node));
        }
    }
    dropped.iter().for_each(|id| keep[id.index()] = false);
    for (root, node) in fused {
        *step.graph.node_mut(root) = node;
    }
    step.retain(&keep);
}

/// The formula of a node that may be fused.
#[derive(Clone, Copy)]
struct Formula {
    text: &'static str,
    operands: OperandShapes,
}

/// A node may be fused if it is pure and on a GPU. One that reads a variable through a reference
/// joins others if they read the same value ([`Timely::reads_alike`]).
fn formula_of(node: &Node) -> Option<Formula> {
    let gpu = node.op.gpu.as_ref().filter(|gpu| gpu.takes(&node.attrs))?;
    let formula = gpu.formula.as_ref()?;
    let text = (formula.text)(&node.attrs, formula.given)?;
    let is_simple = node.op.is_pure()
        && node.output_types.len() == 1
        && !node.inputs.is_empty()
        && is_on_gpu(&node.device);
    is_simple.then_some(Formula { text, operands: formula.operands })
}

fn is_on_gpu(device: &str) -> bool {
    let kind = DeviceName::parse(device).ok().and_then(|name| name.kind);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("GPU"))
}

struct Groups<'g> {
    graph: &'g GraphIr,
    formulas: Vec<Option<Formula>>,
    timely: Timely<'g>,
    consumers: Vec<Vec<(NodeId, Option<usize>)>>,
}

impl<'g> Groups<'g> {
    fn new(graph: &'g GraphIr, formulas: Vec<Option<Formula>>) -> Groups<'g> {
        let timely = Timely::new(graph);
        let mut groups = Groups { graph, formulas, timely, consumers: graph.consumers() };
        // Only broadcasting is as forgiving as a fused kernel. Others must be sure to be valid.
        for id in graph.ids() {
            if let Some(formula) = groups.formulas[id.index()]
                && formula.operands != OperandShapes::Broadcast
                && !groups.timely.cannot_fail(id, formula.operands)
            {
                groups.formulas[id.index()] = None;
            }
        }
        groups
    }

    /// The members of each group of several nodes, in an order in which they can run, and the nodes
    /// that no one needs any more.
    fn find(&self) -> (Vec<Vec<NodeId>>, Vec<NodeId>) {
        let graph = self.graph;
        let mut is_needed: Vec<bool> = graph
            .ids()
            .map(|id| {
                let consumers = &self.consumers[id.index()];
                self.formulas[id.index()].is_none()
                    || consumers.is_empty()
                    || !consumers.iter().all(|(c, input)| input.is_some() && self.is_fusible(*c))
            })
            .collect();
        let (mut found, mut dropped) = (Vec::new(), Vec::new());
        // Consumers first: they decide whether they need a node.
        for id in topological_order(graph).into_iter().rev() {
            if !self.is_fusible(id) {
                continue;
            }
            if !is_needed[id.index()] {
                dropped.push(id);
                continue;
            }
            let members = self.members(id);
            for &member in &members {
                for e in &graph.node(member).inputs {
                    is_needed[e.node.index()] |= !members.contains(&e.node);
                }
            }
            if members.len() > 1 {
                found.push(in_order(graph, id, &members));
            }
        }
        (found, dropped)
    }

    fn is_fusible(&self, id: NodeId) -> bool {
        self.formulas[id.index()].is_some()
    }

    /// The nodes that are computed together with `root`, which is among them.
    fn members(&self, root: NodeId) -> Vec<NodeId> {
        let mut members = vec![root];
        let mut inputs = self.added(&[], root);
        loop {
            let next = inputs.iter().find_map(|e| {
                let joined = self.joins(e.node, &members, &inputs, root)?;
                Some((e.node, joined))
            });
            let Some((id, joined)) = next.filter(|_| members.len() < MAX_MEMBERS) else {
                return members;
            };
            members.push(id);
            inputs = joined;
        }
    }

    /// The inputs of the group when node `id` becomes a member.
    fn added(&self, inputs: &[Endpoint], id: NodeId) -> Vec<Endpoint> {
        let mut inputs: Vec<Endpoint> = inputs.iter().copied().filter(|e| e.node != id).collect();
        for e in &self.graph.node(id).inputs {
            if !inputs.contains(e) {
                inputs.push(*e);
            }
        }
        inputs
    }

    /// The inputs of the group with node `id`, if it may join.
    fn joins(
        &self,
        id: NodeId,
        members: &[NodeId],
        inputs: &[Endpoint],
        root: NodeId,
    ) -> Option<Vec<Endpoint>> {
        let formula = self.formulas[id.index()].as_ref()?;
        let (node, to) = (self.graph.node(id), self.graph.node(root));
        let is_timely =
            self.timely.wait_alike(id, root) || self.timely.cannot_fail(id, formula.operands);
        if !node.controls.is_empty()
            || node.device != to.device
            || members.contains(&id)
            || !is_timely
            || !self.timely.reads_alike(id, root)
        {
            return None;
        }
        let joined: Vec<Endpoint> =
            self.added(inputs, id).into_iter().filter(|e| !members.contains(&e.node)).collect();
        let consumers = &self.consumers[id.index()];
        let is_own = consumers.iter().all(|(c, i)| i.is_some() && members.contains(c));
        let may_vanish = consumers.iter().all(|(c, i)| i.is_some() && self.is_fusible(*c));
        let large = |inputs: &[Endpoint]| inputs.iter().filter(|e| !self.is_scalar(**e)).count();
        let is_cheap = may_vanish && large(&joined) <= large(inputs);
        (joined.len() <= MAX_INPUTS && (is_own || is_cheap)).then_some(joined)
    }

    fn is_scalar(&self, e: Endpoint) -> bool {
        let shape = self.timely.shape(e);
        shape.known().is_some_and(|shape| shape.elements() == 1)
    }

    /// The formulas of a group.
    fn formulas(
        &self,
        graph: &GraphIr,
        ids: &[NodeId],
        group: &FusionGroup,
    ) -> Option<FusedFormulas> {
        let inputs = group.inputs.iter().map(|e| graph.type_of(*e).dtype).collect();
        let steps = ids.iter().zip(&group.members).map(|(id, member)| {
            let operand = |source: &MemberInput| match *source {
                MemberInput::Input(i) => FormulaOperand::Input(i),
                MemberInput::Member(i) => FormulaOperand::Step(i),
            };
            Some(FormulaStep {
                formula: self.formulas[id.index()]?.text.to_string(),
                output: member.node.output_types.first()?.dtype,
                operands: member.sources.iter().map(operand).collect(),
            })
        });
        Some(FusedFormulas { inputs, steps: steps.collect::<Option<_>>()? })
    }
}

/// Orders the members so that each comes after its inputs.
fn in_order(graph: &GraphIr, root: NodeId, members: &[NodeId]) -> Vec<NodeId> {
    fn visit(graph: &GraphIr, id: NodeId, members: &[NodeId], order: &mut Vec<NodeId>) {
        for e in &graph.node(id).inputs {
            if members.contains(&e.node) && !order.contains(&e.node) {
                visit(graph, e.node, members, order);
            }
        }
        order.push(id);
    }
    let mut order = Vec::with_capacity(members.len());
    visit(graph, root, members, &mut order);
    order
}

/// Runs the kernel that `fuser` makes, or the nodes one by one where shapes are unusual.
fn fused_kernel(group: Arc<FusionGroup>, formulas: FusedFormulas, fuser: GpuFuser) -> KernelFn {
    Arc::new(move |init: &KernelInit<'_>| {
        let kernel =
            FusedNodes { fused: fuser(&formulas)?, originals: Originals::new(&group, init)? };
        Ok(KernelBox::new(kernel))
    })
}

struct FusedNodes {
    fused: crate::gpu_support::FusedOnGpu,
    originals: Originals,
}

impl Kernel for FusedNodes {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut inputs = (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect::<Result<Vec<_>>>()?;
        if let Some(out) = (self.fused)(ctx.gpu()?, &mut inputs)? {
            return ctx.set(0, out);
        }
        for (i, input) in inputs.into_iter().enumerate() {
            ctx.put_back(i, input);
        }
        self.originals.run(ctx)
    }
}
