//! Makes the graph of a step cheaper before it is compiled: the passes of the graph crate, with our
//! kernels to fold constants by.

use crate::functions::detached_step;
use ferroflow_core::{
    Ctx, DeviceInfo, KernelBox, NodeInfo, Outputs, Result, Spawn, StepCtx, Tensor, Value, bail,
};
use ferroflow_graph::passes::{self, Pruned};
use ferroflow_graph::{Catalog, FunctionInstantiator, KernelInit, Node};
use std::sync::Arc;

/// What constants are folded with.
pub struct GraphOptimizer<'a> {
    pub catalog: &'a Catalog,
    pub device: &'a Arc<DeviceInfo>,
    pub functions: &'a Arc<dyn FunctionInstantiator>,
    pub threads: Arc<dyn Spawn>,
}

impl GraphOptimizer<'_> {
    /// Simplifies the graph of `step`, keeping what its arguments and results are.
    pub fn optimize(&self, step: &mut Pruned) {
        let run = detached_step(self.threads.clone());
        passes::optimize(step, self.catalog, &|node, inputs| self.evaluate(&run, node, inputs));
    }

    /// The outputs of one node for given inputs. Only plain kernels: folding must not wait.
    fn evaluate(&self, step: &Arc<StepCtx>, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
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
            functions: self.functions,
        })?;
        let KernelBox::Sync(kernel) = kernel else {
            bail!(Unimplemented, "{} waits, and cannot be folded", node.op.name);
        };
        let mut values: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let mut outputs = Outputs::new();
        crate::executor::guarded(|| {
            kernel.compute(&mut Ctx::new(&mut values, &mut outputs, step, &info, (0, 0)))
        })?;
        outputs.into_iter().map(Value::into_tensor).collect()
    }
}
