//! Shapes, slices, concatenation.

use crate::graph::Graph;
use crate::output::Output;
use crate::value::IntoOutput;
use ferroflow_core::{DType, bail};

impl Output {
    /// Its shape, as a vector of int32; a constant where it is known.
    #[track_caller]
    pub fn shape_op(&self) -> Output {
        if let Some(shape) = self.shape().known()
            && let Ok(dims) = shape.iter().map(|&d| i32::try_from(d)).collect::<Result<Vec<_>, _>>()
        {
            return self.graph.named_constant("Shape", dims);
        }
        self.unary("Shape")
    }

    /// The number of its elements, as int32.
    #[track_caller]
    pub fn size(&self) -> Output {
        self.unary("Size")
    }

    /// The length of a dimension, as a scalar of int32.
    #[track_caller]
    pub fn dim(&self, axis: usize) -> Output {
        match self.shape().dim(axis).map(i32::try_from) {
            Some(Ok(n)) => self.graph.constant(n),
            _ => self.unary("Shape").at(axis as i32),
        }
    }

    /// The same elements in another shape: an array of dimensions, or a tensor of them. One
    /// dimension may be `None` in an array, or -1 in a tensor: it follows from the number of
    /// elements.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoOutput) -> Output {
        let shape = shape.into_output(&self.graph, Some(DType::Int32));
        self.graph.op("Reshape").input(self).input(&shape).output()
    }

    /// Merges all dimensions but the first.
    #[track_caller]
    pub fn flatten(&self) -> Output {
        match self.shape().dims() {
            Some(dims) if dims.iter().skip(1).all(Option::is_some) => {
                let n: usize = dims.iter().skip(1).flatten().product();
                self.reshape([None, Some(n)])
            }
            _ => {
                let n = self.shape_op().slice(&[1], &[-1]).prod_all();
                let batch = self.dim(0);
                self.reshape(self.graph.pack(&[batch, n], 0))
            }
        }
    }

    /// Permutes the dimensions.
    #[track_caller]
    pub fn transpose(&self, order: &[i32]) -> Output {
        let order = self.graph.constant(order);
        self.graph.op("Transpose").input(self).input(&order).output()
    }

    /// Inserts a dimension of length 1.
    #[track_caller]
    pub fn expand_dims(&self, axis: i32) -> Output {
        let axis = self.graph.constant(axis);
        self.graph.op("ExpandDims").input(self).input(&axis).output()
    }

    /// Removes these dimensions of length 1.
    #[track_caller]
    pub fn squeeze(&self, axes: &[i64]) -> Output {
        self.graph.op("Squeeze").input(self).attr("squeeze_dims", axes.to_vec()).output()
    }

    /// The slice that starts at `begin` and has the lengths `size`; -1 means up to the end.
    #[track_caller]
    pub fn slice(&self, begin: &[i32], size: &[i32]) -> Output {
        let (begin, size) = (self.graph.constant(begin), self.graph.constant(size));
        self.graph.op("Slice").input(self).input(&begin).input(&size).output()
    }

    /// Element, or row, number `index`.
    #[track_caller]
    pub fn at(&self, index: impl IntoOutput) -> Output {
        let index = index.into_output(&self.graph, Some(DType::Int32));
        let begin = index.expand_dims(0);
        let end = (&begin + 1.0).identity();
        let one = self.graph.constant([1]);
        let op = self.graph.op("StridedSlice").input(self).input(&begin).input(&end).input(&one);
        op.attr("shrink_axis_mask", 1i64).output()
    }

    /// The rows that `indices` name.
    #[track_caller]
    pub fn gather(&self, indices: impl IntoOutput) -> Output {
        self.gather_along(indices, 0)
    }

    /// The slices along `axis` that `indices` name.
    #[track_caller]
    pub fn gather_along(&self, indices: impl IntoOutput, axis: i32) -> Output {
        let indices = indices.into_output(&self.graph, Some(DType::Int32));
        let axis = self.graph.constant(axis);
        self.graph.op("GatherV2").input(self).input(&indices).input(&axis).output()
    }

    /// Splits into `parts` tensors of equal length along `axis`.
    #[track_caller]
    pub fn split(&self, parts: usize, axis: i32) -> Vec<Output> {
        let axis = self.graph.constant(axis);
        let op = self.graph.op("Split").input(&axis).input(self);
        op.attr("num_split", parts as i64).count_of_outputs(parts)
    }

    /// Splits into tensors of one rank less along `axis`, whose length must be known.
    #[track_caller]
    pub fn unstack(&self, axis: i64) -> Vec<Output> {
        let rows = self.shape().rank().and_then(|rank| {
            let axis = if axis < 0 { axis + rank as i64 } else { axis };
            self.shape().dim(usize::try_from(axis).ok()?)
        });
        let rows = rows.ok_or_else(|| {
            ferroflow_core::err!(InvalidArgument, "cannot unstack along an axis of unknown length")
        });
        let Some(rows) = self.graph.or_fail(rows) else { return Vec::new() };
        let op = self.graph.op("Unpack").input(self);
        op.attr("num", rows as i64).attr("axis", axis).count_of_outputs(rows)
    }

    /// Repeats the tensor along each dimension.
    #[track_caller]
    pub fn tile(&self, multiples: impl IntoOutput) -> Output {
        let multiples = multiples.into_output(&self.graph, Some(DType::Int32));
        self.graph.op("Tile").input(self).input(&multiples).output()
    }

    /// Pads each dimension with zeros before and after.
    #[track_caller]
    pub fn pad(&self, paddings: &[[i32; 2]]) -> Output {
        let flat: Vec<i32> = paddings.as_flattened().to_vec();
        let value = ferroflow_core::Tensor::from_slice([paddings.len(), 2], &flat);
        let paddings = self.graph.constant_from(value, None);
        self.graph.op("Pad").input(self).input(&paddings).output()
    }

    /// One-hot rows of length `depth`.
    #[track_caller]
    pub fn one_hot(&self, depth: i32) -> Output {
        let (depth, on, off) =
            (self.graph.constant(depth), self.graph.constant(1.0), self.graph.constant(0.0));
        self.graph.op("OneHot").input(self).input(&depth).input(&on).input(&off).output()
    }
}

impl Graph {
    /// Concatenates tensors along a dimension.
    #[track_caller]
    pub fn concat(&self, outputs: &[Output], axis: i32) -> Output {
        if let [one] = outputs {
            return one.clone();
        }
        let axis = self.constant(axis);
        self.op("ConcatV2").list(outputs).input(&axis).output()
    }

    /// Stacks tensors along a new dimension.
    #[track_caller]
    pub fn pack(&self, outputs: &[Output], axis: i64) -> Output {
        self.op("Pack").list(outputs).attr("axis", axis).output()
    }
}

/// The dimensions after the first, which must all be known.
pub(crate) fn known_dims(output: &Output) -> ferroflow_core::Result<Vec<usize>> {
    let shape = output.shape();
    match shape.dims() {
        Some([_, rest @ ..]) if rest.iter().all(Option::is_some) => {
            Ok(rest.iter().flatten().copied().collect())
        }
        _ => bail!(
            InvalidArgument,
            "'{}' has shape {shape}; all but its first dimension must be known",
            output.name()
        ),
    }
}
