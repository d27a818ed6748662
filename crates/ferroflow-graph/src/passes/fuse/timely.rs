//! Checks that fused nodes run no later than they may. A node that can fail must not wait for more
//! nodes than before, or its error might not appear. A node that reads a variable must not move
//! behind an update.

use crate::block_kernel::{AnyBlockKernel, OperandShapes};
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::passes::variables::VariableUses;
use crate::passes::waits::Waits;
use crate::passes::{infer, topological_order};
use ferroflow_core::PartialShape;
use std::cell::OnceCell;

/// What fusion must know of a graph so as not to hide an error behind a wait, or a value behind an
/// update.
pub(super) struct Timely<'g> {
    graph: &'g GraphIr,
    waits: Waits,
    variables: VariableUses,
    /// Which nodes come after an update of some variable.
    is_after_update: Vec<bool>,
    /// The inferred shapes; computed on first use.
    shapes: OnceCell<Vec<Vec<PartialShape>>>,
}

impl<'g> Timely<'g> {
    pub fn new(graph: &'g GraphIr) -> Timely<'g> {
        let variables = VariableUses::of(graph);
        Timely {
            graph,
            waits: Waits::of(graph),
            is_after_update: after_updates(graph, &variables),
            variables,
            shapes: OnceCell::new(),
        }
    }

    /// Whether `id` reads the same values of variables when it runs with `root`, which comes after
    /// it.
    pub fn reads_alike(&self, id: NodeId, root: NodeId) -> bool {
        let is_after = |id: NodeId| self.is_after_update[id.index()];
        is_after(id) == is_after(root) || !self.variables.reads_alias(self.graph, id)
    }

    /// The inferred shape of input `i` of a node.
    pub fn input_shape(&self, id: NodeId, i: usize) -> PartialShape {
        let e = self.graph.node(id).inputs.get(i);
        e.map(|e| self.shape(*e)).unwrap_or_default()
    }

    /// The inferred shape of a value.
    pub fn shape(&self, e: Endpoint) -> PartialShape {
        let shapes = self.shapes.get_or_init(|| infer(self.graph));
        shapes[e.node.index()].get(e.slot as usize).cloned().unwrap_or_default()
    }

    /// Whether `id` waits for everything that its consumer `root` waits for.
    pub fn wait_alike(&self, id: NodeId, root: NodeId) -> bool {
        self.waits.are_alike(id, root)
    }

    /// Whether the element-wise node `id` can run together with `root`. It must wait for as much,
    /// or be unable to fail, so that the delay has no visible effect.
    pub fn may_run_with(&self, id: NodeId, blocks: &AnyBlockKernel, root: NodeId) -> bool {
        let cannot_fail = || match blocks.operands() {
            Some(operands) => self.cannot_fail(id, operands),
            None => true,
        };
        (self.wait_alike(id, root) || cannot_fail()) && self.reads_alike(id, root)
    }

    /// Whether the shapes of the inputs of `id` are surely valid.
    pub fn cannot_fail(&self, id: NodeId, operands: OperandShapes) -> bool {
        let inputs = self.graph.node(id).inputs.len();
        if inputs > 2 {
            let shapes: Vec<PartialShape> = (0..inputs).map(|i| self.input_shape(id, i)).collect();
            let fits = |a: &PartialShape| match operands {
                OperandShapes::Broadcast => shapes.iter().all(|b| surely_broadcast(a, b)),
                OperandShapes::Alike => a.known().is_some() && *a == shapes[0],
                OperandShapes::Bias { .. } => false,
            };
            return shapes.iter().all(fits);
        }
        if inputs < 2 {
            return true;
        }
        let (a, b) = (self.input_shape(id, 0), self.input_shape(id, 1));
        match operands {
            OperandShapes::Broadcast => surely_broadcast(&a, &b),
            OperandShapes::Alike => {
                a == b && a.dims().is_some_and(|d| d.iter().all(Option::is_some))
            }
            OperandShapes::Bias { is_nchw } => {
                let Some(rank) = a.rank().filter(|rank| *rank >= 2) else { return false };
                let channels = a.dim(if is_nchw { 1 } else { rank - 1 });
                b.rank() == Some(1) && channels.is_some() && channels == b.dim(0)
            }
        }
    }
}

fn after_updates(graph: &GraphIr, variables: &VariableUses) -> Vec<bool> {
    let mut is_after = vec![false; graph.len()];
    variables.writers().for_each(|id| is_after[id.index()] = true);
    if is_after.contains(&true) {
        for id in topological_order(graph) {
            let node = graph.node(id);
            let mut sources =
                node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
            is_after[id.index()] |= sources.any(|source| is_after[source.index()]);
        }
    }
    is_after
}

/// Whether the known parts guarantee that two shapes broadcast against each other.
fn surely_broadcast(a: &PartialShape, b: &PartialShape) -> bool {
    let (Some(a), Some(b)) = (a.dims(), b.dims()) else { return false };
    a.iter().rev().zip(b.iter().rev()).all(|pair| match pair {
        (Some(1), _) | (_, Some(1)) => true,
        (Some(x), Some(y)) => x == y,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_dimensions_may_not_fit() {
        let s = |dims: &[i64]| PartialShape::from_i64s(dims).unwrap();
        assert!(surely_broadcast(&s(&[-1, 3]), &s(&[3])));
        assert!(surely_broadcast(&s(&[-1, 1]), &s(&[1, 5])));
        assert!(!surely_broadcast(&s(&[-1]), &s(&[3])));
        assert!(!surely_broadcast(&s(&[-1]), &s(&[-1])));
        assert!(!surely_broadcast(&s(&[2]), &s(&[3])));
        assert!(!surely_broadcast(&PartialShape::unknown(), &s(&[])));
    }
}
