//! Compiles the graph of a step, or a task's part of one: optimizes it, then plans it. Local
//! sessions, masters, workers and function bodies all come here.

use crate::functions::FunctionRuntime;
use crate::optimize::GraphOptimizer;
use crate::plan::{KernelCache, Plan, PlanContext};
use ferroflow_core::{DeviceInfo, Result};
use ferroflow_graph::passes::{self, Pruned, Rewrites};
use ferroflow_graph::{FunctionInstantiator, GraphIr, Node};
use std::collections::HashSet;
use std::sync::Arc;

/// The session that a part is compiled for.
pub struct PartContext<'a> {
    pub functions: &'a Arc<FunctionRuntime>,
    /// The device of a node, by its assigned name.
    pub device_of: &'a dyn Fn(&Node) -> Result<Arc<DeviceInfo>>,
    /// Kernels that keep state, shared by the graphs of a session.
    pub kernels: &'a KernelCache,
    /// How the graph is simplified before it is planned.
    pub rewrites: Rewrites,
}

/// A part that is ready to run.
pub struct CompiledPart {
    pub plan: Plan,
    /// The graph as it runs.
    pub graph: GraphIr,
}

/// Compiles `part`: optimizes it as the context says, then plans it.
pub fn compile_part(part: Pruned, context: &PartContext<'_>) -> Result<CompiledPart> {
    compile_at_depth(part, context, 0)
}

/// The same for a function whose compilation `depth` other functions wait for.
pub(crate) fn compile_at_depth(
    mut part: Pruned,
    context: &PartContext<'_>,
    depth: u32,
) -> Result<CompiledPart> {
    if context.rewrites != Rewrites::NONE {
        GraphOptimizer::new(context.functions, depth).optimize(&mut part, context.rewrites);
    }
    let gpus = gpus_of(&part.graph, context)?;
    if !gpus.is_empty() {
        passes::copy_between_memories(&mut part, &|device| gpus.contains(device))?;
    }
    let functions: Arc<dyn FunctionInstantiator> = context.functions.clone();
    let Pruned { graph, args, rets } = part;
    let context = PlanContext {
        device_of: context.device_of,
        functions: &functions,
        kernels: context.kernels,
    };
    let plan = Plan::compile(&graph, &args, &rets, &context)?;
    Ok(CompiledPart { plan, graph })
}

/// The names of the GPUs that nodes are on.
fn gpus_of(graph: &GraphIr, context: &PartContext<'_>) -> Result<HashSet<String>> {
    let (mut seen, mut gpus) = (HashSet::new(), HashSet::new());
    for (_, node) in graph.iter() {
        if seen.insert(node.device.as_str()) && (context.device_of)(node)?.gpu.is_some() {
            gpus.insert(node.device.clone());
        }
    }
    Ok(gpus)
}
