//! Runs small graphs node by node, without an executor, to test the results of passes and
//! gradients. Control flow and functions need the real executor.

use crate::check::execute;
use crate::standalone_step;
use ferroflow_core::{DeviceInfo, NodeInfo, Resources, Result, Tensor, Value, err};
use ferroflow_graph::passes::topological_order;
use ferroflow_graph::{Endpoint, FunctionInstantiator, GraphIr, KernelInit, NoFunctions};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The values of `fetches`, for these values of `feeds`.
pub fn evaluate(
    graph: &GraphIr,
    feeds: &[(Endpoint, Tensor)],
    fetches: &[Endpoint],
) -> Result<Vec<Tensor>> {
    let mut values: HashMap<Endpoint, Value> =
        feeds.iter().map(|(e, t)| (*e, t.clone().into())).collect();
    let mut needed = HashSet::new();
    let mut queue: Vec<Endpoint> = fetches.to_vec();
    while let Some(e) = queue.pop() {
        if !values.contains_key(&e) && needed.insert(e.node) {
            queue.extend(&graph.node(e.node).inputs);
        }
    }
    let step = standalone_step(Arc::new(Resources::new()));
    let functions: Arc<dyn FunctionInstantiator> = Arc::new(NoFunctions);
    for id in topological_order(graph).into_iter().filter(|id| needed.contains(id)) {
        let node = graph.node(id);
        let info = Arc::new(NodeInfo {
            name: node.name.clone(),
            op: node.op.name.clone(),
            device: Arc::new(DeviceInfo::cpu("localhost", 0, 0, 1)),
            default_container: "localhost".into(),
            outputs: node.output_types.len(),
        });
        let init = KernelInit {
            node: &info,
            attrs: &node.attrs,
            inputs: &node.input_types,
            outputs: &node.output_types,
            functions: &functions,
            is_fallback: false,
        };
        let inputs = node.inputs.iter().map(|e| {
            let value = values.get(e).cloned();
            value.ok_or_else(|| err!(Internal, "{e:?} was not computed"))
        });
        let inputs = inputs.collect::<Result<Vec<Value>>>()?;
        let at = |e: ferroflow_core::Error| e.context(format!("{} ({})", node.name, node.op.name));
        let kernel = node.op.kernel(&init).map_err(at)?;
        let outputs = execute(kernel, inputs, step.clone(), &info).map_err(at)?;
        for (slot, value) in outputs.into_iter().enumerate() {
            values.insert(Endpoint::new(id, slot), value);
        }
    }
    let value = |e: &Endpoint| {
        let value = values.get(e).cloned();
        value.ok_or_else(|| err!(Internal, "{e:?} was not computed"))?.into_tensor()
    };
    fetches.iter().map(value).collect()
}
