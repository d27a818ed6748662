//! Keeps errors on time: fusion must not make a node that can fail wait for more than before.

use crate::block_kernel::{AnyBlockKernel, OperandShapes};
use crate::graph::{GraphIr, NodeId};
use crate::passes::infer;
use crate::passes::waits::Waits;
use ferroflow_core::PartialShape;
use std::cell::OnceCell;

/// What fusion needs to know of a graph to keep errors on time.
pub(super) struct Timely<'g> {
    graph: &'g GraphIr,
    waits: Waits,
    /// The inferred shapes; computed on first use.
    shapes: OnceCell<Vec<Vec<PartialShape>>>,
}

impl<'g> Timely<'g> {
    pub fn new(graph: &'g GraphIr) -> Timely<'g> {
        Timely { graph, waits: Waits::of(graph), shapes: OnceCell::new() }
    }

    /// The inferred shape of input `i` of a node.
    pub fn input_shape(&self, id: NodeId, i: usize) -> PartialShape {
        let shapes = self.shapes.get_or_init(|| infer(self.graph));
        let e = self.graph.node(id).inputs.get(i);
        let shape = e.and_then(|e| shapes[e.node.index()].get(e.slot as usize));
        shape.cloned().unwrap_or_default()
    }

    /// Whether `id` waits for everything that its consumer `root` waits for.
    pub fn wait_alike(&self, id: NodeId, root: NodeId) -> bool {
        self.waits.are_alike(id, root)
    }

    /// Whether the element-wise node `id` can run together with `root`: either it waits for as
    /// much, or it cannot fail, so that the delay has no visible effect.
    pub fn may_run_with(&self, id: NodeId, blocks: &AnyBlockKernel, root: NodeId) -> bool {
        self.wait_alike(id, root) || self.cannot_fail(id, blocks)
    }

    fn cannot_fail(&self, id: NodeId, blocks: &AnyBlockKernel) -> bool {
        let Some(operands) = blocks.operands() else { return true };
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
