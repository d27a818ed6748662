//! Changes of a graph for gradients: the nodes that depend on others, and nodes with more outputs.

use crate::error::of_graph;
use crate::graph::{GraphCore, output_handles};
use crate::handles::PyOperation;
use ferroflow_core::{PartialShape, Result, ensure};
use ferroflow_graph::{AttrValue, Endpoint, NodeId, PortType};
use pyo3::prelude::*;
use std::sync::Arc;

impl GraphCore {
    /// Gives a node more inputs and replaces attributes, which determine its outputs. Returns the
    /// types of all outputs.
    pub fn widen(
        &mut self,
        id: NodeId,
        inputs: Vec<Endpoint>,
        attrs: Vec<(String, AttrValue)>,
    ) -> Result<Vec<PortType>> {
        let node = self.ir.node(id);
        let mut all = (*node.attrs).clone();
        for (name, value) in attrs {
            all.set(name, value);
        }
        let (takes, gives) = (node.op.input_types(&all)?, node.op.output_types(&all)?);
        let wanted: Vec<_> = takes.iter().skip(node.inputs.len()).map(|t| t.dtype).collect();
        let given: Vec<_> = inputs.iter().map(|e| self.ir.type_of(*e).dtype).collect();
        ensure!(
            wanted == given && gives.len() >= node.output_types.len(),
            InvalidArgument,
            "node '{}' takes {wanted:?} beside its inputs and was given {given:?}",
            node.name
        );
        let node = self.ir.node_mut(id);
        node.attrs = Arc::new(all);
        node.inputs.extend(inputs);
        node.input_types = takes;
        node.output_types = gives.clone();
        self.shapes[id.index()].resize(gives.len(), PartialShape::unknown());
        self.changed(id);
        Ok(gives)
    }

    /// The nodes that depend on the nodes `from` through outputs of these dtypes.
    pub fn dependents(&self, from: Vec<NodeId>, dtypes: &[u8]) -> Vec<bool> {
        let mut consumers: Vec<Vec<NodeId>> = vec![Vec::new(); self.ir.len()];
        for (id, node) in self.ir.iter() {
            for e in &node.inputs {
                let number = self.ir.type_of(*e).dtype.number();
                if u8::try_from(number).is_ok_and(|n| dtypes.contains(&n)) {
                    consumers[e.node.index()].push(id);
                }
            }
        }
        let mut reached = vec![false; self.ir.len()];
        let mut queue = from;
        while let Some(id) = queue.pop() {
            if !std::mem::replace(&mut reached[id.index()], true) {
                queue.extend(&consumers[id.index()]);
            }
        }
        reached
    }
}

/// [`GraphCore::widen`], with the Python objects of the new outputs.
pub fn widen(
    op: &Bound<'_, PyOperation>,
    inputs: Vec<Endpoint>,
    attrs: Vec<(String, AttrValue)>,
) -> PyResult<()> {
    let (graph, id) = (op.get().graph.bind(op.py()), op.get().id);
    let types = graph.borrow_mut().widen(id, inputs, attrs).map_err(|e| of_graph(&e))?;
    let first = graph.borrow().handles[id.index()].outputs.len();
    let made = output_handles(graph, op, &types, first)?;
    graph.borrow_mut().handles[id.index()].outputs.extend(made);
    Ok(())
}
