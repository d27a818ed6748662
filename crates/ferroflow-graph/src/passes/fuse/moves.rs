//! Fuses moves of elements on GPUs. A part of a tensor that is reshaped and transposed, such as the
//! queries of an attention, is copied once, and so are tensors that are transposed, reshaped and
//! joined.

use super::on_gpu::is_on_gpu;
use super::{fused_node, run_on_gpu};
use crate::catalog::Catalog;
use crate::gpu_support::GpuMoves;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{KernelFn, OpMoves};
use crate::passes::{Pruned, constant, infer};
use ferroflow_core::{DType, PartialShape, Shape};
use std::sync::Arc;

/// Replaces transposed parts and joined transposes by nodes that copy once. Nodes that have no
/// consumer after that are removed.
pub fn fuse_moves_on_gpus(step: &mut Pruned, catalog: &Catalog) {
    let Some(mover) = catalog.gpu_mover() else { return };
    let graph = &step.graph;
    let may_end = |node: &Node| {
        matches!(node.op.moves, Some(OpMoves::Transpose | OpMoves::Join)) && moves_on_gpu(node)
    };
    let roots: Vec<NodeId> = graph.iter().filter(|(_, n)| may_end(n)).map(|(id, _)| id).collect();
    if roots.is_empty() {
        return;
    }
    let search = Search { graph, shapes: infer(graph) };
    let mut fused = Vec::new();
    for root in roots {
        let Some((inner, inputs, moves)) = search.part(root).or_else(|| search.join(root)) else {
            continue;
        };
        let shape = PartialShape::from(&Shape::from(&moves.shape[..]));
        let kernel: KernelFn = Arc::new(move |init| mover(&moves, init));
        let ids: Vec<NodeId> = inner.iter().copied().chain([root]).collect();
        if let Some(mut node) = fused_node(graph, &ids, "_MovedOnGpu".into(), inputs, kernel) {
            run_on_gpu(&mut node, shape);
            fused.push((root, inner, node));
        }
    }
    let mut unused: Vec<NodeId> = Vec::new();
    for (root, inner, node) in fused {
        *step.graph.node_mut(root) = node;
        unused.extend(inner);
    }
    let mut keep = vec![true; step.graph.len()];
    let mut consumers: Vec<usize> = step.graph.consumers().iter().map(Vec::len).collect();
    // Removing a node can make its sources unused.
    while let Some(i) = unused.iter().position(|id| consumers[id.index()] == 0) {
        let id = unused.swap_remove(i);
        if std::mem::replace(&mut keep[id.index()], false) {
            for e in &step.graph.node(id).inputs {
                consumers[e.node.index()] -= 1;
            }
        }
    }
    step.retain(&keep);
}

/// Whether a node moves elements in the memory of a GPU.
fn moves_on_gpu(node: &Node) -> bool {
    let is_there = |dtype: DType| dtype.is_plain() && dtype != DType::Int32;
    is_on_gpu(&node.device) && node.output_types.iter().all(|t| !t.is_ref && is_there(t.dtype))
}

/// The nodes before the root, the inputs, and the copies.
type Found = (Vec<NodeId>, Vec<Endpoint>, GpuMoves);

struct Search<'g> {
    graph: &'g GraphIr,
    shapes: Vec<Vec<PartialShape>>,
}

impl Search<'_> {
    /// A part of a tensor that is reshaped, and transposed by `root`.
    fn part(&self, root: NodeId) -> Option<Found> {
        let (reshaped, perm) = self.transposed(root)?;
        let reshape = self.inner(reshaped, OpMoves::Reshape, root)?;
        let part = *self.graph.node(reshape).inputs.first()?;
        let split = self.inner(part, OpMoves::Split, root)?;
        let &[axis, value] = &self.graph.node(split).inputs[..] else { return None };
        let (whole, dims) = (self.dims(value)?, self.dims(part)?);
        let axis = self.axis(axis, whole.len())?;
        let steps = strides(&whole);
        let viewed = view(&dims, &steps, &self.dims(reshaped)?)?;
        let shape = self.dims(Endpoint::new(root, 0))?;
        let to = strides(&shape);
        let loops = (0..shape.len()).map(|d| (shape[d], viewed[perm[d]], to[d])).collect();
        let first = (part.slot as usize * dims[axis]) as isize * steps[axis];
        let parts = vec![(whole.iter().product(), first, 0)];
        Some((vec![split, reshape], vec![value], GpuMoves { shape, loops, parts }))
    }

    /// Tensors that are transposed alike, reshaped alike, and joined by `root`.
    fn join(&self, root: NodeId) -> Option<Found> {
        let node = self.graph.node(root);
        if node.op.moves != Some(OpMoves::Join) {
            return None;
        }
        let (&axis, values) = node.inputs.split_last()?;
        let shape = self.dims(Endpoint::new(root, 0))?;
        let axis = self.axis(axis, shape.len())?;
        let steps = strides(&shape);
        let (mut ids, mut inputs, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut alike, mut first) = (None, 0);
        for &value in values {
            let reshape = self.inner(value, OpMoves::Reshape, root)?;
            let moved = *self.graph.node(reshape).inputs.first()?;
            let transpose = self.inner(moved, OpMoves::Transpose, root)?;
            let (source, perm) = self.transposed(transpose)?;
            let (dims, from) = (self.dims(value)?, self.dims(source)?);
            let moved = self.dims(moved)?;
            let (own, viewed) = (strides(&from), view(&dims, &steps, &moved)?);
            let loops: Vec<_> =
                (0..moved.len()).map(|d| (moved[d], own[perm[d]], viewed[d])).collect();
            if *alike.get_or_insert_with(|| loops.clone()) != loops {
                return None;
            }
            parts.push((from.iter().product(), 0, first));
            first += dims[axis] as isize * steps[axis];
            inputs.push(source);
            ids.extend([transpose, reshape]);
        }
        Some((ids, inputs, GpuMoves { shape, loops: alike?, parts }))
    }

    /// What a node transposes, and the order of the dimensions.
    fn transposed(&self, id: NodeId) -> Option<(Endpoint, Vec<usize>)> {
        let node = self.graph.node(id);
        let &[value, order] = &node.inputs[..] else { return None };
        if node.op.moves != Some(OpMoves::Transpose) {
            return None;
        }
        let rank = self.dims(value)?.len();
        let order = constant(self.graph.node(order.node))?.to_indices().ok()?;
        let order: Vec<usize> = order.iter().map(|&d| d as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..rank).then_some((value, order))
    }

    /// The node that makes `e`, if it moves elements like this where `root` is.
    fn inner(&self, e: Endpoint, moves: OpMoves, root: NodeId) -> Option<NodeId> {
        let node = self.graph.node(e.node);
        let fits = node.op.moves == Some(moves)
            && moves_on_gpu(node)
            && node.controls.is_empty()
            && node.device == self.graph.node(root).device;
        fits.then_some(e.node)
    }

    /// The dimension that a constant names.
    fn axis(&self, e: Endpoint, rank: usize) -> Option<usize> {
        let axis = *constant(self.graph.node(e.node))?.to_indices().ok()?.first()?;
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(axis).ok().filter(|axis| *axis < rank)
    }

    /// The shape of a value that is known and has elements.
    fn dims(&self, e: Endpoint) -> Option<Vec<usize>> {
        let shape = self.shapes[e.node.index()].get(e.slot as usize)?.known()?;
        (shape.elements() > 0).then(|| shape.dims().to_vec())
    }
}

/// Strides of a row-major tensor.
fn strides(dims: &[usize]) -> Vec<isize> {
    Shape::from(dims).strides().iter().map(|&stride| stride as isize).collect()
}

/// The strides of a tensor with these dimensions and strides when it is seen with dimensions `to`,
/// if no element must move for that.
fn view(dims: &[usize], strides: &[isize], to: &[usize]) -> Option<Vec<isize>> {
    let mut seen = Vec::with_capacity(to.len());
    let (mut i, mut j) = (0, 0);
    while i < dims.len() && j < to.len() {
        // A few dimensions with as many elements as a few of the others.
        let (first, first_to) = (i, j);
        let (mut have, mut want) = (dims[i], to[j]);
        while have != want {
            if have < want {
                i += 1;
                have *= dims.get(i)?;
            } else {
                j += 1;
                want *= to.get(j)?;
            }
        }
        if !(first..i).all(|k| strides[k] == strides[k + 1] * dims[k + 1] as isize) {
            return None;
        }
        let mut step = strides[i];
        let mut group: Vec<isize> = Vec::new();
        for &dim in to[first_to..=j].iter().rev() {
            group.push(step);
            step *= dim as isize;
        }
        seen.extend(group.iter().rev());
        (i, j) = (i + 1, j + 1);
    }
    let is_over = dims[i..].iter().chain(&to[j..]).all(|&dim| dim == 1);
    seen.resize(to.len(), 1);
    is_over.then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_cut_and_joined_where_no_element_moves() {
        // Columns 6 to 12 of a 4 x 18 matrix, as 2 x 2 x 3 x 2.
        assert_eq!(view(&[4, 6], &[18, 1], &[2, 2, 3, 2]), Some(vec![36, 18, 2, 1]));
        assert_eq!(view(&[2, 2, 3], &[36, 18, 1], &[4, 3]), Some(vec![18, 1]));
        assert_eq!(view(&[4, 6], &[18, 1], &[24]), None);
        assert_eq!(view(&[4, 6], &[18, 1], &[8, 3]), None);
        assert_eq!(view(&[4, 6], &[6, 1], &[8, 3]), Some(vec![3, 1]));
        assert_eq!(view(&[4, 1], &[18, 1], &[4]), Some(vec![18]));
        assert_eq!(view(&[4], &[18], &[4, 1]), Some(vec![18, 1]));
    }
}
