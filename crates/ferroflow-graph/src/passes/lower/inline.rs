//! Inlines a function's body into the graph that calls it.

use super::{LoweredCall, Lowering};
use crate::function::FunctionGraph;
use crate::graph::{Endpoint, NodeId};
use ferroflow_core::{DeviceName, Result, ensure, err};
use std::collections::HashMap;
use std::sync::Arc;

/// An inlined body.
pub(super) struct Inlined {
    /// Its results.
    pub rets: Vec<Endpoint>,
    /// Nodes with effects, which run even if no result needs them.
    pub targets: Vec<NodeId>,
}

impl Inlined {
    /// The nodes that have run when the body has.
    pub fn all(&self) -> Vec<NodeId> {
        let mut all: Vec<NodeId> = self.rets.iter().map(|e| e.node).collect();
        all.extend(&self.targets);
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Lowering<'_> {
    /// Adds the nodes of `body`, called with `args`. Nodes without inputs wait for `pivot`. A node
    /// with no device or a partial one gets the rest from the call.
    pub(super) fn inline(
        &mut self,
        call: &LoweredCall,
        part: &str,
        body: &FunctionGraph,
        args: &[Endpoint],
        pivot: Option<NodeId>,
    ) -> Result<Inlined> {
        ensure!(
            body.args.len() == args.len(),
            InvalidArgument,
            "{{{{node {}}}}} gives {} arguments to a function that takes {}",
            call.name,
            args.len(),
            body.args.len()
        );
        let prefix = match part {
            "" => call.name.clone(),
            part => format!("{}/{part}", call.name),
        };
        let arg_of: HashMap<NodeId, Endpoint> =
            body.args.iter().copied().zip(args.iter().copied()).collect();
        let is_ret = |id: NodeId| body.rets.contains(&id);
        let mut ids: HashMap<NodeId, NodeId> = HashMap::new();
        for (id, node) in body.graph.iter() {
            if arg_of.contains_key(&id) || is_ret(id) {
                continue;
            }
            let mut node = node.clone();
            node.name = self.graph.unique_name(&format!("{prefix}/{}", node.name));
            node.device = DeviceName::parse(&node.device)?.or(&call.device).to_string();
            if node.attrs.contains("_class") {
                // These are names inside the body.
                Arc::make_mut(&mut node.attrs).remove("_class");
            }
            (node.inputs, node.controls) = (Vec::new(), Vec::new());
            let new = self.graph.push(node)?;
            self.depth.push(self.depth[call.id.index()] + 1);
            ids.insert(id, new);
        }
        let lost =
            || err!(Internal, "the function of {} lacks an input of one of its nodes", call.name);
        let endpoint = |e: &Endpoint| -> Result<Endpoint> {
            match arg_of.get(&e.node) {
                Some(arg) => Ok(*arg),
                None => Ok(Endpoint { node: *ids.get(&e.node).ok_or_else(lost)?, slot: e.slot }),
            }
        };
        let control = |id: &NodeId| endpoint(&Endpoint { node: *id, slot: 0 }).map(|e| e.node);
        for (id, node) in body.graph.iter() {
            let Some(new) = ids.get(&id) else { continue };
            let inputs = node.inputs.iter().map(endpoint).collect::<Result<Vec<_>>>()?;
            let mut controls = node.controls.iter().map(control).collect::<Result<Vec<_>>>()?;
            if inputs.is_empty() && controls.is_empty() {
                controls.extend(pivot);
            }
            let to = self.graph.node_mut(*new);
            (to.inputs, to.controls) = (inputs, controls);
        }
        let ret = |id: &NodeId| {
            let input = body.graph.node(*id).inputs.first();
            input.ok_or_else(lost).and_then(endpoint)
        };
        Ok(Inlined {
            rets: body.rets.iter().map(ret).collect::<Result<_>>()?,
            targets: body.targets.iter().filter_map(|id| ids.get(id).copied()).collect(),
        })
    }
}
