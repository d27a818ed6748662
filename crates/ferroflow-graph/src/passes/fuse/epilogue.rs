//! Fuses a product, its bias and its activation into one node.

use super::finish::ByRows;
use super::kernel;
use super::originals::Original;
use super::timely::Timely;
use super::{FusionGroup, MemberInput, blocks_of, fused_node, is_fusible};
use crate::block_kernel::{AnyBlockKernel, OperandShapes};
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::KernelFn;
use crate::passes::Pruned;
use ferroflow_core::{Ctx, Kernel, KernelBox, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// Fuses an op that takes an epilogue with the bias that is added to its result, and with one unary
/// function after that. Each value may have only the next node as a consumer, and only the last
/// node may have control edges. An operand counts as a bias if its op says so, or if it is known to
/// be a vector: waiting for a larger operand could delay the product. The product never waits for a
/// node that may not finish, because the product's own error could be the one that ends the step.
pub fn fuse_epilogues(step: &mut Pruned) {
    let graph = &step.graph;
    if !graph.iter().any(|(_, n)| n.op.takes_epilogue) {
        return;
    }
    let search = Search { graph, consumers: graph.consumers(), timely: Timely::new(graph) };
    let (mut keep, mut taken) = (vec![true; graph.len()], vec![false; graph.len()]);
    let mut fused = Vec::new();
    for (id, node) in graph.iter().filter(|(_, n)| n.op.takes_epilogue) {
        if node.output_types.len() != 1 || !is_fusible(graph, node) {
            continue;
        }
        let Some(ids) = search.epilogue(id) else { continue };
        if ids.iter().any(|id| taken[id.index()]) {
            continue;
        }
        let Some((inputs, kernel)) = fused_kernel(graph, &ids) else { continue };
        let op = format!("_Fused{}", node.op.name);
        if let Some(new) = fused_node(graph, &ids, op, inputs, kernel) {
            let root = ids[ids.len() - 1];
            for id in &ids {
                keep[id.index()] = *id == root;
                taken[id.index()] = true;
            }
            fused.push((root, new));
        }
    }
    for (root, node) in fused {
        *step.graph.node_mut(root) = node;
    }
    step.retain(&keep);
}

struct Search<'g> {
    graph: &'g GraphIr,
    consumers: Vec<Vec<(NodeId, Option<usize>)>>,
    timely: Timely<'g>,
}

impl Search<'_> {
    /// The node `product`, the bias node and the activation, if there is one.
    fn epilogue(&self, product: NodeId) -> Option<SmallVec<[NodeId; 3]>> {
        let (bias, operand) = self.only_consumer(product)?;
        let operands = blocks_of(self.graph, self.graph.node(bias))?.operands()?;
        let is_bias = match operands {
            OperandShapes::Bias { .. } => operand == 0,
            OperandShapes::Broadcast => self.is_vector(bias, 1 - operand),
            OperandShapes::Alike => false,
        };
        let is_timely =
            self.timely.wait_alike(product, bias) && self.timely.reads_alike(product, bias);
        if !is_bias || !is_timely {
            return None;
        }
        let mut ids: SmallVec<[NodeId; 3]> = SmallVec::from_slice(&[product, bias]);
        if let Some((next, _)) = self.only_consumer(bias)
            && blocks_of(self.graph, self.graph.node(next)).is_some_and(|b| b.is_unary())
            && ids.iter().all(|id| self.timely.reads_alike(*id, next))
        {
            ids.push(next);
        }
        Some(ids)
    }

    /// The only consumer of `id`, and the index of the input, if both are on one device and no
    /// control edge prevents fusion.
    fn only_consumer(&self, id: NodeId) -> Option<(NodeId, usize)> {
        let node = self.graph.node(id);
        let [(consumer, Some(i))] = self.consumers[id.index()][..] else { return None };
        let fits = node.controls.is_empty() && self.graph.node(consumer).device == node.device;
        fits.then_some((consumer, i))
    }

    fn is_vector(&self, id: NodeId, input: usize) -> bool {
        self.timely.input_shape(id, input).rank().is_some_and(|rank| rank <= 1)
    }
}

/// The inputs of the fused node and its kernel function. `ids[0]` is the product.
fn fused_kernel(graph: &GraphIr, ids: &[NodeId]) -> Option<(Vec<Endpoint>, KernelFn)> {
    let product = FusionGroup::new(graph, &ids[..1]);
    let rest = FusionGroup::new(graph, &ids[1..]);
    let steps = ids[1..].iter().map(|id| blocks_of(graph, graph.node(*id)));
    let steps: Vec<AnyBlockKernel> = steps.collect::<Option<_>>()?;
    let made = rest.inputs.iter().position(|e| e.node == ids[0])?;
    let mut inputs = product.inputs.clone();
    inputs.extend(rest.inputs.iter().filter(|e| e.node != ids[0]));
    let kernel: KernelFn = Arc::new(move |init| {
        let product_kernel = Original::new(&product.members[0], init)?;
        let by_rows = ByRows::new(&rest, &steps, made);
        let rest = kernel::make(&rest, &steps, init)?;
        let inputs = product.inputs.len();
        Ok(KernelBox::new(Finished { product: product_kernel, inputs, by_rows, rest, made }))
    });
    Some((inputs, kernel))
}

/// A product, finished in place.
struct Finished {
    product: Original,
    /// The number of inputs of the product. The remaining inputs belong to the epilogue.
    inputs: usize,
    /// The epilogue, if it can be applied row by row inside the product.
    by_rows: Option<ByRows>,
    rest: Arc<dyn Kernel>,
    /// The input of the epilogue that is the product.
    made: usize,
}

impl Kernel for Finished {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let take = |ctx: &mut Ctx<'_>, i: usize| ctx.take_value(i);
        let own: Result<SmallVec<[Value; 4]>> = (0..self.inputs).map(|i| take(ctx, i)).collect();
        let own = own?;
        let sources = self.product.sources().iter().map(|s| match *s {
            MemberInput::Input(i) => own[i].clone(),
            MemberInput::Member(_) => Value::Empty,
        });
        let mut values: SmallVec<[Value; 4]> = sources.collect();
        drop(own);
        let product = match &self.by_rows {
            None => self.product.run(ctx, &mut values)?,
            Some(by_rows) => {
                let bias = ctx.input(self.inputs)?;
                let finish = by_rows.with_bias(bias);
                let (product, is_finished) =
                    self.product.run_finished(ctx, &mut values, &finish)?;
                if is_finished {
                    return ctx.set(0, product);
                }
                product
            }
        };
        drop(values);
        let others = self.inputs..ctx.num_inputs();
        let values: Result<SmallVec<[Value; 4]>> = others.map(|i| take(ctx, i)).collect();
        let mut values = values?;
        values.insert(self.made, Value::Tensor(product));
        let mut outputs = ferroflow_core::Outputs::new();
        let mut inner = Ctx::new(
            &mut values,
            &mut outputs,
            ctx.step(),
            ctx.node(),
            ctx.frame_iter(),
            ctx.scope(),
        );
        self.rest.compute(&mut inner)?;
        match outputs.pop() {
            Some(value) => ctx.set_value(0, value),
            None => Ok(()),
        }
    }
}
