//! Fuses nodes on GPUs: element-wise nodes, and reductions of rows or columns with the nodes before
//! and after them. The fused kernel reads and writes memory once for all of them.
//!
//! A value that several nodes take is computed in each of their kernels, if that reads no more
//! memory. The node that made it is dropped when all its consumers do so. Values are rounded to
//! their types in between, so a fused node gives the bits of its nodes, but for the order of sums.

use super::originals::Originals;
use super::rows_on_gpu::{Domain, Formula, FormulaKind, RowValue, SMALL_PART};
use super::timely::Timely;
use super::{FusionGroup, MemberInput, fused_node};
use crate::attr::{AttrList, AttrValue};
use crate::block_kernel::OperandShapes;
use crate::catalog::Catalog;
use crate::gpu_support::{
    FormulaOperand, FormulaStep, FormulaText, FusedFormulas, FusedRows, GpuFuser, GpuSupport,
};
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::kernel_init::KernelInit;
use crate::op_def::{ArgDef, ArgTypes, AttrDef, AttrKind, KernelFn, PortType};
use crate::passes::{Pruned, topological_order};
use ferroflow_core::{Ctx, DeviceName, Kernel, KernelBox, PartialShape, Result};
use std::sync::Arc;

/// The largest group: larger ones take long to compile.
const MAX_MEMBERS: usize = 48;
/// The same for groups with reductions, which read their inputs for all of them.
const MAX_ROW_MEMBERS: usize = 80;
/// The most values that a kernel takes, and one with reductions, which joins more nodes.
const MAX_INPUTS: usize = 10;
const MAX_ROW_INPUTS: usize = 16;

/// Fuses nodes with formulas and reductions that are on one GPU.
pub fn fuse_on_gpus(step: &mut Pruned, catalog: &Catalog) {
    let Some(fuser) = catalog.gpu_fuser() else { return };
    let graph = &step.graph;
    if graph.iter().filter(|(_, n)| n.op.gpu.is_some() && is_on_gpu(&n.device)).count() < 2 {
        return;
    }
    let groups = Groups::new(graph);
    let mut fused = Vec::new();
    let mut keep = vec![true; graph.len()];
    let (found, dropped) = groups.find();
    for Found { ids, domain } in found {
        let Some(&root) = ids.last() else { continue };
        let mut group = FusionGroup::new(graph, &ids);
        let on_host = groups.host_inputs_last(&ids, &mut group);
        let inputs = group.inputs.clone();
        let Some(formulas) = groups.formulas(graph, &ids, &group, on_host, domain.as_ref()) else {
            continue;
        };
        let kernel = fused_kernel(Arc::new(group), formulas, fuser);
        let on_gpu = GpuSupport { make: Some(kernel.clone()), ..GpuSupport::default() };
        if let Some(mut node) = fused_node(graph, &ids, "_FusedOnGpu".into(), inputs, kernel) {
            Arc::make_mut(&mut node.op).gpu = Some(on_gpu);
            take_on_host(&mut node, on_host);
            fused.push((root, node));
        }
    }
    dropped.iter().for_each(|id| keep[id.index()] = false);
    for (root, node) in fused {
        *step.graph.node_mut(root) = node;
    }
    step.retain(&keep);
}

pub(super) fn is_on_gpu(device: &str) -> bool {
    let kind = DeviceName::parse(device).ok().and_then(|name| name.kind);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("GPU"))
}

/// A group of several nodes.
struct Found {
    /// In an order in which they can run.
    ids: Vec<NodeId>,
    /// The dimensions that are reduced, if any.
    domain: Option<Domain>,
}

/// A group that grows.
struct Growth {
    members: Vec<NodeId>,
    inputs: Vec<Endpoint>,
    domain: Option<Domain>,
}

struct Groups<'g> {
    graph: &'g GraphIr,
    formulas: Vec<Option<Formula>>,
    timely: Timely<'g>,
    consumers: Vec<Vec<(NodeId, Option<usize>)>>,
}

impl<'g> Groups<'g> {
    fn new(graph: &'g GraphIr) -> Groups<'g> {
        let timely = Timely::new(graph);
        let formulas = graph.iter().map(|(id, node)| Formula::of(graph, id, node, &timely));
        let mut groups =
            Groups { graph, formulas: formulas.collect(), timely, consumers: graph.consumers() };
        // Only broadcasting is as forgiving as a fused kernel. Others must be sure to be valid.
        for id in graph.ids() {
            if let Some(formula) = &groups.formulas[id.index()]
                && formula.operands != OperandShapes::Broadcast
                && !groups.timely.cannot_fail(id, formula.operands)
            {
                groups.formulas[id.index()] = None;
            }
        }
        groups
    }

    /// All groups, and the nodes that have no consumer after that.
    fn find(&self) -> (Vec<Found>, Vec<NodeId>) {
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
            let Growth { members, domain, .. } = self.grown(id);
            for &member in &members {
                for e in &graph.node(member).inputs {
                    is_needed[e.node.index()] |= !members.contains(&e.node);
                }
            }
            if members.len() > 1 {
                found.push(Found { ids: in_order(graph, id, &members), domain });
            }
        }
        (found, dropped)
    }

    fn is_fusible(&self, id: NodeId) -> bool {
        self.formulas[id.index()].is_some()
    }

    fn formula(&self, id: NodeId) -> Option<&Formula> {
        self.formulas[id.index()].as_ref()
    }

    /// The group of `root`, with all nodes that are computed together with it.
    fn grown(&self, root: NodeId) -> Growth {
        let domain = self.formula(root).and_then(|f| f.domain.clone());
        let mut group = Growth { members: vec![root], inputs: self.added(&[], root), domain };
        if !self.is_uniform(&group) {
            group.domain = None;
            return group;
        }
        loop {
            let next = group.inputs.iter().find_map(|e| self.joined(e.node, &group, root));
            let most = if group.domain.is_some() { MAX_ROW_MEMBERS } else { MAX_MEMBERS };
            let Some(next) = next.filter(|next| next.members.len() <= most) else {
                return group;
            };
            group = next;
        }
    }

    /// The inputs of the group when node `id` becomes a member.
    fn added(&self, inputs: &[Endpoint], id: NodeId) -> Vec<Endpoint> {
        let mut inputs: Vec<Endpoint> = inputs.iter().copied().filter(|e| e.node != id).collect();
        let computed = self.formula(id).map_or(usize::MAX, |f| f.computed_inputs());
        for e in self.graph.node(id).inputs.iter().take(computed) {
            if !inputs.contains(e) {
                inputs.push(*e);
            }
        }
        inputs
    }

    /// The group with node `id`, if it may join.
    fn joined(&self, id: NodeId, group: &Growth, root: NodeId) -> Option<Growth> {
        let Growth { members, inputs, domain } = group;
        let formula = self.formula(id)?;
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
        let added: Vec<Endpoint> =
            self.added(inputs, id).into_iter().filter(|e| !members.contains(&e.node)).collect();
        let consumers = &self.consumers[id.index()];
        let is_own = consumers.iter().all(|(c, i)| i.is_some() && members.contains(c));
        let may_vanish = consumers.iter().all(|(c, i)| i.is_some() && self.is_fusible(*c));
        let domain = match (domain, &formula.domain) {
            (Some(domain), Some(other)) => Some(domain.joined(other)?),
            (domain, other) => domain.clone().or_else(|| other.clone()),
        };
        let whole = self.timely.shape(Endpoint::new(root, 0));
        let is_large = |e: &&Endpoint| self.is_large(**e, domain.as_ref(), &whole);
        let large = |inputs: &[Endpoint]| inputs.iter().filter(is_large).count();
        let is_cheap = may_vanish
            && (large(&added) <= large(inputs)
                || domain.is_some()
                    && is_cheaper_again(large(&self.added(&[], id)), consumers.len()));
        let most = if domain.is_some() { MAX_ROW_INPUTS } else { MAX_INPUTS };
        if added.len() > most || !is_own && !is_cheap {
            return None;
        }
        let members = members.iter().copied().chain([id]).collect();
        let joined = Growth { members, inputs: added, domain };
        self.is_uniform(&joined).then_some(joined)
    }

    /// Whether reading a value takes time beside the group's work: it is no scalar, no vector of a
    /// matrix, and no statistics of rows. `whole` is the shape of the result.
    fn is_large(&self, e: Endpoint, domain: Option<&Domain>, whole: &PartialShape) -> bool {
        let shape = self.timely.shape(e);
        match (domain, shape.elements(), whole.elements()) {
            (Some(domain), ..) => domain.is_large(&shape),
            (None, Some(n), Some(all)) => n > 1 && n > all / SMALL_PART,
            (None, n, _) => n != Some(1),
        }
    }

    /// Whether the members compute over one shape and fit to each other in one kernel.
    fn is_uniform(&self, group: &Growth) -> bool {
        let Growth { members, inputs, domain } = group;
        let Some(root) = members.first() else { return false };
        let kind = |id: &NodeId| self.formula(*id).map(|f| &f.kind);
        let is_spread = |id: &NodeId| matches!(kind(id), Some(FormulaKind::Broadcast));
        let Some(domain) = domain else {
            // The result has the shape of the largest input, unless it is known to have another.
            return !members.iter().any(is_spread)
                || self.timely.shape(Endpoint::new(*root, 0)).known().is_some();
        };
        let fits = |e: Endpoint| domain.value(&self.timely.shape(e)).is_some();
        let inner = &members[1..];
        inputs.iter().all(|e| fits(*e))
            && inner.iter().all(|id| fits(Endpoint::new(*id, 0)))
            && inner.iter().all(|id| !matches!(kind(id), Some(FormulaKind::Columns { .. })))
            && inner
                .iter()
                .all(|id| !matches!(kind(id), Some(FormulaKind::Row { keeps: false, .. })))
            && (!members.iter().any(is_spread) || domain.shape.known().is_some())
            && match kind(root) {
                // Rows of a matrix are not complete where its columns are reduced.
                Some(FormulaKind::Columns { .. }) => {
                    inner.iter().all(|id| self.formula(*id).is_some_and(|f| f.domain.is_none()))
                }
                Some(FormulaKind::Row { .. }) => true,
                _ => fits(Endpoint::new(*root, 0)),
            }
    }

    /// Moves the inputs that stay in host memory behind the others, and counts them.
    fn host_inputs_last(&self, ids: &[NodeId], group: &mut FusionGroup) -> usize {
        let mut on_host = vec![false; group.inputs.len()];
        for (id, member) in ids.iter().zip(&group.members) {
            let computed = self.formula(*id).map_or(usize::MAX, |f| f.computed_inputs());
            for source in member.sources.iter().skip(computed) {
                if let MemberInput::Input(i) = *source {
                    on_host[i] = true;
                }
            }
        }
        let mut order: Vec<usize> = (0..on_host.len()).collect();
        order.sort_by_key(|i| on_host[*i]);
        group.inputs = order.iter().map(|i| group.inputs[*i]).collect();
        for member in &mut group.members {
            for source in &mut member.sources {
                if let MemberInput::Input(i) = source
                    && let Some(at) = order.iter().position(|old| old == i)
                {
                    *i = at;
                }
            }
        }
        on_host.iter().filter(|is| **is).count()
    }

    /// The formulas of a group, whose last `on_host` inputs are not computed with.
    fn formulas(
        &self,
        graph: &GraphIr,
        ids: &[NodeId],
        group: &FusionGroup,
        on_host: usize,
        domain: Option<&Domain>,
    ) -> Option<FusedFormulas> {
        let computed = &group.inputs[..group.inputs.len() - on_host];
        let inputs = computed.iter().map(|e| graph.type_of(*e).dtype).collect();
        let mut steps: Vec<FormulaStep> = Vec::with_capacity(ids.len());
        // The formula that makes the value of each member.
        let mut made = Vec::with_capacity(ids.len());
        for (id, member) in ids.iter().zip(&group.members) {
            let formula = self.formula(*id)?;
            let operand = |source: &MemberInput| match *source {
                MemberInput::Input(i) => FormulaOperand::Input(i),
                MemberInput::Member(i) => FormulaOperand::Step(made[i]),
            };
            let sources = member.sources.iter().take(formula.computed_inputs());
            let operands: Vec<FormulaOperand> = sources.map(operand).collect();
            let output = member.node.output_types.first()?.dtype;
            let text = match &formula.kind {
                FormulaKind::Each(text) => FormulaText::Each((*text).to_string()),
                FormulaKind::Broadcast => FormulaText::Each("x".into()),
                FormulaKind::Row { fold, .. } | FormulaKind::Columns { fold, .. } => {
                    FormulaText::Fold(*fold)
                }
                FormulaKind::Steps(make) => {
                    let first = steps.len();
                    for mut step in make(output) {
                        for of in &mut step.operands {
                            *of = match *of {
                                FormulaOperand::Input(i) => *operands.get(i)?,
                                FormulaOperand::Step(i) => FormulaOperand::Step(first + i),
                            };
                        }
                        steps.push(step);
                    }
                    made.push(steps.len() - 1);
                    continue;
                }
            };
            steps.push(FormulaStep { text, output, operands });
            made.push(steps.len() - 1);
        }
        let root = *ids.last()?;
        let Some(domain) = domain else {
            let is_spread = |id: &NodeId| self.formula(*id).is_some_and(|f| f.kind.is_broadcast());
            let shape = match ids.iter().any(is_spread) {
                true => self.timely.shape(Endpoint::new(root, 0)),
                false => PartialShape::unknown(),
            };
            return Some(FusedFormulas { inputs, steps, shape, rows: None });
        };
        let values = computed.iter().map(|e| domain.value(&self.timely.shape(*e)));
        let is_same_in_row: Option<Vec<bool>> =
            values.map(|value| value.map(RowValue::is_same_in_row)).collect();
        let result = self.formula(root)?.result(domain, &self.timely.shape(Endpoint::new(root, 0)));
        let rows =
            FusedRows { cols: domain.cols, is_same_in_row: is_same_in_row?, result: result? };
        Some(FusedFormulas { inputs, steps, shape: domain.shape.clone(), rows: Some(rows) })
    }
}

/// Whether `consumers` kernels that compute a value of `inputs` large inputs read and write less
/// than one that writes it and `consumers` that read it.
fn is_cheaper_again(inputs: usize, consumers: usize) -> bool {
    consumers * inputs <= inputs + 1 + consumers
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

/// Lets a fused node take its last `count` inputs in host memory.
fn take_on_host(node: &mut Node, count: usize) {
    if count == 0 {
        return;
    }
    let types = |ports: &[PortType]| {
        AttrValue::List(AttrList::Types(ports.iter().map(|t| t.dtype).collect()))
    };
    let (on_gpu, on_host) = node.input_types.split_at(node.input_types.len() - count);
    let attrs = (*node.attrs).clone().with("Tin", types(on_gpu)).with("Thost", types(on_host));
    node.attrs = Arc::new(attrs);
    let op = Arc::make_mut(&mut node.op);
    let listed = ArgTypes::Listed("Thost".into());
    op.inputs.push(ArgDef { name: "on_host".into(), is_ref: false, types: listed });
    op.attrs.push(AttrDef {
        name: "Thost".into(),
        kind: AttrKind::Type,
        is_list: true,
        default: None,
        minimum: None,
        allowed: None,
    });
    if let Some(gpu) = &mut op.gpu {
        gpu.host_inputs = vec!["on_host"];
    }
}

/// Runs the kernel that `fuser` makes, or the nodes one by one where shapes are unusual.
fn fused_kernel(group: Arc<FusionGroup>, formulas: FusedFormulas, fuser: GpuFuser) -> KernelFn {
    Arc::new(move |init: &KernelInit<'_>| {
        let (fused, inputs) = (fuser(&formulas, init)?, formulas.inputs.len());
        let kernel = FusedNodes { fused, inputs, originals: Originals::new(&group, init)? };
        Ok(KernelBox::new(kernel))
    })
}

struct FusedNodes {
    fused: crate::gpu_support::FusedOnGpu,
    /// The number of inputs that the fused kernel takes.
    inputs: usize,
    originals: Originals,
}

impl Kernel for FusedNodes {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut inputs = (0..self.inputs).map(|i| ctx.take(i)).collect::<Result<Vec<_>>>()?;
        if let Some(out) = (self.fused)(ctx.gpu()?, &mut inputs)? {
            return ctx.set(0, out);
        }
        for (i, input) in inputs.into_iter().enumerate() {
            ctx.put_back(i, input);
        }
        self.originals.run(ctx)
    }
}
