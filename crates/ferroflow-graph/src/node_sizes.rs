//! Estimated sizes of the tensors of a node.

use crate::attr::Attrs;
use ferroflow_core::PartialShape;

/// The guess for an unknown dimension, which is nearly always the batch.
const UNKNOWN_DIM: usize = 32;

/// The dimensions of a node's inputs and outputs; unknown ones are guessed.
pub struct NodeSizes<'a> {
    /// The node's attributes.
    pub attrs: &'a Attrs,
    /// The dimensions of each input.
    pub inputs: &'a [Vec<usize>],
    /// The dimensions of each output.
    pub outputs: &'a [Vec<usize>],
}

impl NodeSizes<'_> {
    /// Elements of input `i`.
    pub fn input(&self, i: usize) -> f64 {
        self.inputs.get(i).map_or(1.0, |dims| elements(dims))
    }

    /// Elements of output `i`.
    pub fn output(&self, i: usize) -> f64 {
        self.outputs.get(i).map_or(1.0, |dims| elements(dims))
    }

    /// A dimension of input `i`, counted from the last one, which is 0.
    pub fn input_dim(&self, i: usize, from_last: usize) -> f64 {
        let dims = self.inputs.get(i).map_or(&[][..], Vec::as_slice);
        dims.len().checked_sub(from_last + 1).map_or(1.0, |at| dims[at] as f64)
    }
}

/// The dimensions of a shape, guessed where they are unknown.
pub(crate) fn guessed(shape: &PartialShape) -> Vec<usize> {
    let dims = shape.dims().unwrap_or_default();
    dims.iter().map(|d| d.unwrap_or(UNKNOWN_DIM)).collect()
}

/// The number of elements, as a float so that it does not overflow.
pub(crate) fn elements(dims: &[usize]) -> f64 {
    dims.iter().map(|&d| d as f64).product()
}
