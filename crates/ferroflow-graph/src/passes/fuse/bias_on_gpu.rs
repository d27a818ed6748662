//! Fuses products on GPUs with the bias that is added to them, if no fused kernel can add it.

use super::on_gpu::is_on_gpu;
use super::timely::Timely;
use super::{fused_node, run_on_gpu};
use crate::block_kernel::OperandShapes;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::kernel_init::KernelInit;
use crate::op_def::KernelFn;
use crate::passes::Pruned;
use ferroflow_core::DType;
use std::sync::Arc;

/// Lets products add the bias. The product and the bias have no other consumers, and what takes the
/// sum does not compute with its elements: fused formulas would add the bias for free.
pub fn fuse_biases_on_gpus(step: &mut Pruned) {
    let graph = &step.graph;
    let makes = |node: &Node| node.op.gpu.as_ref().and_then(|gpu| gpu.with_bias.clone());
    if !graph.iter().any(|(_, node)| makes(node).is_some() && is_on_gpu(&node.device)) {
        return;
    }
    let (consumers, timely) = (graph.consumers(), Timely::new(graph));
    let (mut keep, mut fused) = (vec![true; graph.len()], Vec::new());
    for (id, node) in graph.iter() {
        let Some(make) = makes(node) else { continue };
        let [(sum, Some(0))] = consumers[id.index()][..] else { continue };
        let Some(bias) = bias_of(graph, id, sum, &timely) else { continue };
        let is_formula =
            |c: NodeId| graph.node(c).op.gpu.as_ref().is_some_and(|gpu| gpu.formula.is_some());
        if consumers[sum.index()].iter().any(|(c, input)| input.is_some() && is_formula(*c)) {
            continue;
        }
        let inputs: Vec<Endpoint> = node.inputs.iter().copied().chain([bias]).collect();
        let product = node.clone();
        let kernel: KernelFn = Arc::new(move |init: &KernelInit<'_>| {
            make(&KernelInit {
                node: init.node,
                attrs: &product.attrs,
                inputs: &product.input_types,
                outputs: &product.output_types,
                functions: init.functions,
                is_fallback: init.is_fallback,
            })
        });
        let op = format!("_Fused{}OnGpu", node.op.name);
        if let Some(mut node) = fused_node(graph, &[id, sum], op, inputs, kernel) {
            run_on_gpu(&mut node, timely.shape(Endpoint::new(sum, 0)));
            keep[id.index()] = false;
            fused.push((sum, node));
        }
    }
    for (sum, node) in fused {
        *step.graph.node_mut(sum) = node;
    }
    step.retain(&keep);
}

/// The bias that `sum` adds to `product`, if one kernel can do both.
fn bias_of(graph: &GraphIr, product: NodeId, sum: NodeId, timely: &Timely<'_>) -> Option<Endpoint> {
    let (node, to) = (graph.node(product), graph.node(sum));
    let formula = to.op.gpu.as_ref()?.formula.as_ref()?;
    (formula.text)(&to.attrs, formula.given)?;
    let operands = formula.operands;
    let takes = |node: &Node| node.op.gpu.as_ref().is_some_and(|gpu| gpu.takes(&node.attrs));
    let is_narrow = |dtype: DType| matches!(dtype, DType::Half | DType::BFloat16 | DType::Float);
    let fits = operands == OperandShapes::Bias { is_nchw: false }
        && takes(node)
        && takes(to)
        && is_on_gpu(&node.device)
        && node.device == to.device
        && node.controls.is_empty()
        && node.output_types.iter().all(|t| is_narrow(t.dtype))
        && timely.cannot_fail(sum, operands)
        && timely.reads_alike(product, sum)
        && timely.wait_alike(product, sum);
    to.inputs.get(1).copied().filter(|_| fits)
}
