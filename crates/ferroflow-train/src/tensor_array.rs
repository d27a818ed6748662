//! Arrays of tensors, for loops.

use crate::graph::Graph;
use crate::output::Output;
use crate::value::IntoOutput;
use ferroflow_core::{DType, PartialShape};

/// An array of tensors. Each write returns a new handle. The `flow` tensor of the handle orders the
/// operations; a loop carries it as a variable.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_core::{DType, PartialShape};
/// let array = g.tensor_array(DType::Float, 2, PartialShape::scalar());
/// let array = array.write(&g.constant(0), &g.constant(1.5));
/// let array = array.write(&g.constant(1), &g.constant(2.5));
/// assert_eq!(array.stack().shape().to_string(), "[?]");
/// ```
#[derive(Clone, Debug)]
pub struct TensorArray {
    handle: Output,
    /// Depends on all operations so far.
    pub flow: Output,
    dtype: DType,
    element: PartialShape,
}

impl Graph {
    /// An array of `size` tensors of this type and shape.
    #[track_caller]
    pub fn tensor_array(
        &self,
        dtype: DType,
        size: impl IntoOutput,
        element: PartialShape,
    ) -> TensorArray {
        let size = size.into_output(self, Some(DType::Int32));
        let [handle, flow] = self
            .op("TensorArrayV3")
            .input(&size)
            .attr("dtype", dtype)
            .attr("element_shape", element.clone())
            .attr("identical_element_shapes", true)
            .split();
        TensorArray { handle, flow, dtype, element }
    }
}

impl TensorArray {
    /// The same array with another flow, such as the loop variable in the body of a loop.
    #[must_use]
    pub fn with_flow(&self, flow: &Output) -> TensorArray {
        TensorArray { flow: flow.clone(), ..self.clone() }
    }

    /// Writes an element.
    #[track_caller]
    pub fn write(&self, index: &Output, value: &Output) -> TensorArray {
        let op = self.handle.graph().op("TensorArrayWriteV3").input(&self.handle).input(index);
        self.with_flow(&op.input(value).input(&self.flow).output())
    }

    /// Reads an element.
    #[track_caller]
    pub fn read(&self, index: &Output) -> Output {
        let op = self.handle.graph().op("TensorArrayReadV3").input(&self.handle).input(index);
        let value = op.input(&self.flow).attr("dtype", self.dtype).output();
        value.set_shape(&self.element);
        value
    }

    /// Writes the rows of `value`, one to each element.
    #[track_caller]
    pub fn unstack(&self, value: &Output) -> TensorArray {
        let g = self.handle.graph();
        let indices = g.range(0, value.dim(0), 1);
        let op = g.op("TensorArrayScatterV3").input(&self.handle).input(&indices).input(value);
        self.with_flow(&op.input(&self.flow).output())
    }

    /// All tensors, stacked along a new first dimension.
    #[track_caller]
    pub fn stack(&self) -> Output {
        let g = self.handle.graph();
        let size = g.op("TensorArraySizeV3").input(&self.handle).input(&self.flow).output();
        let indices = g.range(0, size, 1);
        let op = g.op("TensorArrayGatherV3").input(&self.handle).input(&indices).input(&self.flow);
        let op = op.attr("dtype", self.dtype).attr("element_shape", self.element.clone());
        let all = op.output();
        if let Some(dims) = self.element.dims() {
            all.set_shape(PartialShape::new([None].into_iter().chain(dims.iter().copied())));
        }
        all
    }
}
