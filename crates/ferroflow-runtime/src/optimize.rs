//! Simplifies the graph of a step before it is planned, with the passes of `ferroflow-graph`. They
//! fold constants with the task's own kernels.

use crate::functions::{FunctionRuntime, detached_step};
use ferroflow_core::{
    Ctx, DeviceInfo, InlineScope, KernelBox, NodeInfo, Outputs, Result, StepCtx, Tensor, Value,
    bail,
};
use ferroflow_graph::passes::{self, Pruned, Rewrites};
use ferroflow_graph::{Catalog, FunctionInstantiator, KernelInit, Node};
use std::sync::Arc;

/// The catalog, device and functions that constants are folded with.
pub(crate) struct GraphOptimizer<'a> {
    catalog: &'a Catalog,
    device: &'a Arc<DeviceInfo>,
    functions: Arc<dyn FunctionInstantiator>,
    step: Arc<StepCtx>,
}

impl<'a> GraphOptimizer<'a> {
    /// An optimizer for a graph whose compilation `depth` other functions wait for.
    pub fn new(runtime: &'a Arc<FunctionRuntime>, depth: u32) -> GraphOptimizer<'a> {
        GraphOptimizer {
            catalog: runtime.catalog(),
            device: runtime.device(),
            functions: runtime.nested(depth + 1),
            step: detached_step(runtime.threads().clone()),
        }
    }

    /// Simplifies the graph of `step`, keeping its arguments and results.
    pub fn optimize(&self, step: &mut Pruned, wanted: Rewrites) {
        let evaluate = |node: &Node, inputs: &[Tensor]| self.evaluate(node, inputs);
        passes::optimize(step, self.catalog, wanted, &evaluate);
    }

    /// The outputs of one node for given inputs. Only for sync kernels: folding must not wait.
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let info = Arc::new(NodeInfo {
            name: node.name.clone(),
            op: node.op.name.clone(),
            device: self.device.clone(),
            default_container: String::new(),
            outputs: node.output_types.len(),
        });
        let kernel = node.op.kernel(&KernelInit {
            node: &info,
            attrs: &node.attrs,
            inputs: &node.input_types,
            outputs: &node.output_types,
            functions: &self.functions,
            is_fallback: false,
        })?;
        let KernelBox::Sync(kernel) = kernel else {
            bail!(Unimplemented, "{} waits, and cannot be folded", node.op.name);
        };
        let mut values: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let mut outputs = Outputs::new();
        let scope = InlineScope::unknown();
        let mut ctx = Ctx::new(&mut values, &mut outputs, &self.step, &info, (0, 0), &scope);
        crate::executor::guarded(|| kernel.compute(&mut ctx))?;
        outputs.into_iter().map(Value::into_tensor).collect()
    }
}
