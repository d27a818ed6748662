//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// `CompositeTensorVariantFromComponents`: The components of a composite tensor as one variant.
#[inline]
#[track_caller]
pub fn composite_tensor_variant_from_components(
    g: &Graph,
    components: &[Output],
    metadata: &str,
) -> Output {
    g.op("CompositeTensorVariantFromComponents")
        .list(components)
        .attr("metadata", metadata)
        .output()
}

/// `CompositeTensorVariantToComponents`: The components of a composite tensor.
#[inline]
#[track_caller]
pub fn composite_tensor_variant_to_components(
    encoded: &Output,
    metadata: &str,
    tcomponents: &[DType],
) -> Vec<Output> {
    encoded
        .graph()
        .op("CompositeTensorVariantToComponents")
        .input(encoded)
        .attr("metadata", metadata)
        .attr("Tcomponents", list(tcomponents))
        .list_outputs()
}

/// `EmptyTensorList`: A list without elements.
#[inline]
#[track_caller]
pub fn empty_tensor_list(
    element_shape: &Output,
    max_num_elements: &Output,
    element_dtype: DType,
) -> Output {
    element_shape
        .graph()
        .op("EmptyTensorList")
        .input(element_shape)
        .input(max_num_elements)
        .attr("element_dtype", element_dtype)
        .output()
}

/// `EmptyTensorMap`: A map without entries.
#[inline]
#[track_caller]
pub fn empty_tensor_map(g: &Graph) -> Output {
    g.op("EmptyTensorMap").output()
}

/// `OptionalFromValue`: An optional with a value.
#[inline]
#[track_caller]
pub fn optional_from_value(g: &Graph, components: &[Output]) -> Output {
    g.op("OptionalFromValue").list(components).output()
}

/// `OptionalGetValue`: The value of an optional.
#[inline]
#[track_caller]
pub fn optional_get_value(
    optional: &Output,
    output_types: &[DType],
    output_shapes: &[PartialShape],
) -> Vec<Output> {
    optional
        .graph()
        .op("OptionalGetValue")
        .input(optional)
        .attr("output_types", list(output_types))
        .attr("output_shapes", list(output_shapes))
        .list_outputs()
}

/// `OptionalHasValue`: Whether an optional has a value.
#[inline]
#[track_caller]
pub fn optional_has_value(optional: &Output) -> Output {
    optional.graph().op("OptionalHasValue").input(optional).output()
}

/// `OptionalNone`: An optional without a value.
#[inline]
#[track_caller]
pub fn optional_none(g: &Graph) -> Output {
    g.op("OptionalNone").output()
}

/// The attributes of [`stack_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StackOptions<'a> {
    /// `stack_name`: string, empty by default.
    pub stack_name: &'a str,
}

impl Default for StackOptions<'_> {
    fn default() -> Self {
        StackOptions { stack_name: "" }
    }
}

/// `Stack`: A new stack.
#[inline]
#[track_caller]
pub fn stack(g: &Graph, elem_type: DType) -> Output {
    stack_with(g, elem_type, StackOptions::default())
}

/// [`stack()`] with other attributes.
#[inline]
#[track_caller]
pub fn stack_with(g: &Graph, elem_type: DType, options: StackOptions<'_>) -> Output {
    g.op("Stack").attr("elem_type", elem_type).attr("stack_name", options.stack_name).output()
}

/// `StackClose`: Drops all values.
#[inline]
#[track_caller]
pub fn stack_close(handle: &Output) -> Operation {
    handle.graph().op("StackClose").input(handle).operation()
}

/// `StackCloseV2`: Drops all values.
#[inline]
#[track_caller]
pub fn stack_close_v2(handle: &Output) -> Operation {
    handle.graph().op("StackCloseV2").input(handle).operation()
}

/// `StackPop`: Takes the value on top of a stack.
#[inline]
#[track_caller]
pub fn stack_pop(handle: &Output, elem_type: DType) -> Output {
    handle.graph().op("StackPop").input(handle).attr("elem_type", elem_type).output()
}

/// `StackPopV2`: Takes the value on top of a stack.
#[inline]
#[track_caller]
pub fn stack_pop_v2(handle: &Output, elem_type: DType) -> Output {
    handle.graph().op("StackPopV2").input(handle).attr("elem_type", elem_type).output()
}

/// The attributes of [`stack_push_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StackPushOptions {
    /// `swap_memory`: bool, `false` by default.
    pub swap_memory: bool,
}

impl Default for StackPushOptions {
    fn default() -> Self {
        StackPushOptions { swap_memory: false }
    }
}

/// `StackPush`: Puts a value on a stack, and passes it on.
#[inline]
#[track_caller]
pub fn stack_push(handle: &Output, elem: &Output) -> Output {
    stack_push_with(handle, elem, StackPushOptions::default())
}

/// [`stack_push()`] with other attributes.
#[inline]
#[track_caller]
pub fn stack_push_with(handle: &Output, elem: &Output, options: StackPushOptions) -> Output {
    handle
        .graph()
        .op("StackPush")
        .input(handle)
        .input(elem)
        .attr("swap_memory", options.swap_memory)
        .output()
}

/// The attributes of [`stack_push_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StackPushV2Options {
    /// `swap_memory`: bool, `false` by default.
    pub swap_memory: bool,
}

impl Default for StackPushV2Options {
    fn default() -> Self {
        StackPushV2Options { swap_memory: false }
    }
}

/// `StackPushV2`: Puts a value on a stack, and passes it on.
#[inline]
#[track_caller]
pub fn stack_push_v2(handle: &Output, elem: &Output) -> Output {
    stack_push_v2_with(handle, elem, StackPushV2Options::default())
}

/// [`stack_push_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stack_push_v2_with(handle: &Output, elem: &Output, options: StackPushV2Options) -> Output {
    handle
        .graph()
        .op("StackPushV2")
        .input(handle)
        .input(elem)
        .attr("swap_memory", options.swap_memory)
        .output()
}

/// The attributes of [`stack_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StackV2Options<'a> {
    /// `stack_name`: string, empty by default.
    pub stack_name: &'a str,
}

impl Default for StackV2Options<'_> {
    fn default() -> Self {
        StackV2Options { stack_name: "" }
    }
}

/// `StackV2`: A new stack.
#[inline]
#[track_caller]
pub fn stack_v2(max_size: &Output, elem_type: DType) -> Output {
    stack_v2_with(max_size, elem_type, StackV2Options::default())
}

/// [`stack_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stack_v2_with(max_size: &Output, elem_type: DType, options: StackV2Options<'_>) -> Output {
    max_size
        .graph()
        .op("StackV2")
        .input(max_size)
        .attr("elem_type", elem_type)
        .attr("stack_name", options.stack_name)
        .output()
}

/// The attributes of [`tensor_array_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayOptions<'a> {
    /// `dynamic_size`: bool, `false` by default.
    pub dynamic_size: bool,
    /// `clear_after_read`: bool, `true` by default.
    pub clear_after_read: bool,
    /// `tensor_array_name`: string, empty by default.
    pub tensor_array_name: &'a str,
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorArrayOptions<'_> {
    fn default() -> Self {
        TensorArrayOptions {
            dynamic_size: false,
            clear_after_read: true,
            tensor_array_name: "",
            element_shape: PartialShape::unknown(),
        }
    }
}

/// `TensorArray`: A new tensor array.
#[inline]
#[track_caller]
pub fn tensor_array(size: &Output, dtype: DType) -> Output {
    tensor_array_with(size, dtype, TensorArrayOptions::default())
}

/// [`tensor_array()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_with(size: &Output, dtype: DType, options: TensorArrayOptions<'_>) -> Output {
    size.graph()
        .op("TensorArray")
        .input(size)
        .attr("dtype", dtype)
        .attr("dynamic_size", options.dynamic_size)
        .attr("clear_after_read", options.clear_after_read)
        .attr("tensor_array_name", options.tensor_array_name)
        .attr("element_shape", options.element_shape)
        .output()
}

/// `TensorArrayClose`: Drops all elements.
#[inline]
#[track_caller]
pub fn tensor_array_close(handle: &Output) -> Operation {
    handle.graph().op("TensorArrayClose").input(handle).operation()
}

/// `TensorArrayCloseV2`: Drops all elements.
#[inline]
#[track_caller]
pub fn tensor_array_close_v2(handle: &Output) -> Operation {
    handle.graph().op("TensorArrayCloseV2").input(handle).operation()
}

/// `TensorArrayCloseV3`: Drops all elements.
#[inline]
#[track_caller]
pub fn tensor_array_close_v3(handle: &Output) -> Operation {
    handle.graph().op("TensorArrayCloseV3").input(handle).operation()
}

/// The attributes of [`tensor_array_concat_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayConcatOptions {
    /// `element_shape_except0`: shape, unknown by default.
    pub element_shape_except0: PartialShape,
}

impl Default for TensorArrayConcatOptions {
    fn default() -> Self {
        TensorArrayConcatOptions { element_shape_except0: PartialShape::unknown() }
    }
}

/// `TensorArrayConcat`: All elements, joined along their first dimension.
///
/// Returns (`value`, `lengths`).
#[inline]
#[track_caller]
pub fn tensor_array_concat(handle: &Output, flow_in: &Output, dtype: DType) -> (Output, Output) {
    tensor_array_concat_with(handle, flow_in, dtype, TensorArrayConcatOptions::default())
}

/// [`tensor_array_concat()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_concat_with(
    handle: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayConcatOptions,
) -> (Output, Output) {
    let [value, lengths] = handle
        .graph()
        .op("TensorArrayConcat")
        .input(handle)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape_except0", options.element_shape_except0)
        .split();
    (value, lengths)
}

/// The attributes of [`tensor_array_concat_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayConcatV2Options {
    /// `element_shape_except0`: shape, unknown by default.
    pub element_shape_except0: PartialShape,
}

impl Default for TensorArrayConcatV2Options {
    fn default() -> Self {
        TensorArrayConcatV2Options { element_shape_except0: PartialShape::unknown() }
    }
}

/// `TensorArrayConcatV2`: All elements, joined along their first dimension.
///
/// Returns (`value`, `lengths`).
#[inline]
#[track_caller]
pub fn tensor_array_concat_v2(handle: &Output, flow_in: &Output, dtype: DType) -> (Output, Output) {
    tensor_array_concat_v2_with(handle, flow_in, dtype, TensorArrayConcatV2Options::default())
}

/// [`tensor_array_concat_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_concat_v2_with(
    handle: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayConcatV2Options,
) -> (Output, Output) {
    let [value, lengths] = handle
        .graph()
        .op("TensorArrayConcatV2")
        .input(handle)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape_except0", options.element_shape_except0)
        .split();
    (value, lengths)
}

/// The attributes of [`tensor_array_concat_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayConcatV3Options {
    /// `element_shape_except0`: shape, unknown by default.
    pub element_shape_except0: PartialShape,
}

impl Default for TensorArrayConcatV3Options {
    fn default() -> Self {
        TensorArrayConcatV3Options { element_shape_except0: PartialShape::unknown() }
    }
}

/// `TensorArrayConcatV3`: All elements, joined along their first dimension.
///
/// Returns (`value`, `lengths`).
#[inline]
#[track_caller]
pub fn tensor_array_concat_v3(handle: &Output, flow_in: &Output, dtype: DType) -> (Output, Output) {
    tensor_array_concat_v3_with(handle, flow_in, dtype, TensorArrayConcatV3Options::default())
}

/// [`tensor_array_concat_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_concat_v3_with(
    handle: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayConcatV3Options,
) -> (Output, Output) {
    let [value, lengths] = handle
        .graph()
        .op("TensorArrayConcatV3")
        .input(handle)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape_except0", options.element_shape_except0)
        .split();
    (value, lengths)
}

/// The attributes of [`tensor_array_gather_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayGatherOptions {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorArrayGatherOptions {
    fn default() -> Self {
        TensorArrayGatherOptions { element_shape: PartialShape::unknown() }
    }
}

/// `TensorArrayGather`: Some elements, stacked.
#[inline]
#[track_caller]
pub fn tensor_array_gather(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    tensor_array_gather_with(handle, indices, flow_in, dtype, TensorArrayGatherOptions::default())
}

/// [`tensor_array_gather()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_gather_with(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayGatherOptions,
) -> Output {
    handle
        .graph()
        .op("TensorArrayGather")
        .input(handle)
        .input(indices)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .output()
}

/// The attributes of [`tensor_array_gather_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayGatherV2Options {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorArrayGatherV2Options {
    fn default() -> Self {
        TensorArrayGatherV2Options { element_shape: PartialShape::unknown() }
    }
}

/// `TensorArrayGatherV2`: Some elements, stacked.
#[inline]
#[track_caller]
pub fn tensor_array_gather_v2(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    tensor_array_gather_v2_with(
        handle,
        indices,
        flow_in,
        dtype,
        TensorArrayGatherV2Options::default(),
    )
}

/// [`tensor_array_gather_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_gather_v2_with(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayGatherV2Options,
) -> Output {
    handle
        .graph()
        .op("TensorArrayGatherV2")
        .input(handle)
        .input(indices)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .output()
}

/// The attributes of [`tensor_array_gather_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayGatherV3Options {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorArrayGatherV3Options {
    fn default() -> Self {
        TensorArrayGatherV3Options { element_shape: PartialShape::unknown() }
    }
}

/// `TensorArrayGatherV3`: Some elements, stacked.
#[inline]
#[track_caller]
pub fn tensor_array_gather_v3(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    tensor_array_gather_v3_with(
        handle,
        indices,
        flow_in,
        dtype,
        TensorArrayGatherV3Options::default(),
    )
}

/// [`tensor_array_gather_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_gather_v3_with(
    handle: &Output,
    indices: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayGatherV3Options,
) -> Output {
    handle
        .graph()
        .op("TensorArrayGatherV3")
        .input(handle)
        .input(indices)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .output()
}

/// `TensorArrayGrad`: The array of the gradients of another.
#[inline]
#[track_caller]
pub fn tensor_array_grad(handle: &Output, flow_in: &Output, source: &str) -> Output {
    handle
        .graph()
        .op("TensorArrayGrad")
        .input(handle)
        .input(flow_in)
        .attr("source", source)
        .output()
}

/// `TensorArrayGradV2`: The array of the gradients of another.
#[inline]
#[track_caller]
pub fn tensor_array_grad_v2(handle: &Output, flow_in: &Output, source: &str) -> Output {
    handle
        .graph()
        .op("TensorArrayGradV2")
        .input(handle)
        .input(flow_in)
        .attr("source", source)
        .output()
}

/// `TensorArrayGradV3`: The array of the gradients of another.
///
/// Returns (`grad_handle`, `flow_out`).
#[inline]
#[track_caller]
pub fn tensor_array_grad_v3(handle: &Output, flow_in: &Output, source: &str) -> (Output, Output) {
    let [grad_handle, flow_out] = handle
        .graph()
        .op("TensorArrayGradV3")
        .input(handle)
        .input(flow_in)
        .attr("source", source)
        .split();
    (grad_handle, flow_out)
}

/// `TensorArrayGradWithShape`: The array of the gradients of another, whose elements have more
/// dimensions in front.
///
/// Returns (`grad_handle`, `flow_out`).
#[inline]
#[track_caller]
pub fn tensor_array_grad_with_shape(
    handle: &Output,
    flow_in: &Output,
    shape_to_prepend: &Output,
    source: &str,
) -> (Output, Output) {
    let [grad_handle, flow_out] = handle
        .graph()
        .op("TensorArrayGradWithShape")
        .input(handle)
        .input(flow_in)
        .input(shape_to_prepend)
        .attr("source", source)
        .split();
    (grad_handle, flow_out)
}

/// The attributes of [`tensor_array_pack_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayPackOptions {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorArrayPackOptions {
    fn default() -> Self {
        TensorArrayPackOptions { element_shape: PartialShape::unknown() }
    }
}

/// `TensorArrayPack`: All elements, stacked.
#[inline]
#[track_caller]
pub fn tensor_array_pack(handle: &Output, flow_in: &Output, dtype: DType) -> Output {
    tensor_array_pack_with(handle, flow_in, dtype, TensorArrayPackOptions::default())
}

/// [`tensor_array_pack()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_pack_with(
    handle: &Output,
    flow_in: &Output,
    dtype: DType,
    options: TensorArrayPackOptions,
) -> Output {
    handle
        .graph()
        .op("TensorArrayPack")
        .input(handle)
        .input(flow_in)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .output()
}

/// `TensorArrayRead`: Reads an element.
#[inline]
#[track_caller]
pub fn tensor_array_read(
    handle: &Output,
    index: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    handle
        .graph()
        .op("TensorArrayRead")
        .input(handle)
        .input(index)
        .input(flow_in)
        .attr("dtype", dtype)
        .output()
}

/// `TensorArrayReadV2`: Reads an element.
#[inline]
#[track_caller]
pub fn tensor_array_read_v2(
    handle: &Output,
    index: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    handle
        .graph()
        .op("TensorArrayReadV2")
        .input(handle)
        .input(index)
        .input(flow_in)
        .attr("dtype", dtype)
        .output()
}

/// `TensorArrayReadV3`: Reads an element.
#[inline]
#[track_caller]
pub fn tensor_array_read_v3(
    handle: &Output,
    index: &Output,
    flow_in: &Output,
    dtype: DType,
) -> Output {
    handle
        .graph()
        .op("TensorArrayReadV3")
        .input(handle)
        .input(index)
        .input(flow_in)
        .attr("dtype", dtype)
        .output()
}

/// `TensorArrayScatter`: Writes the rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_scatter(
    handle: &Output,
    indices: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayScatter")
        .input(handle)
        .input(indices)
        .input(value)
        .input(flow_in)
        .output()
}

/// `TensorArrayScatterV2`: Writes the rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_scatter_v2(
    handle: &Output,
    indices: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayScatterV2")
        .input(handle)
        .input(indices)
        .input(value)
        .input(flow_in)
        .output()
}

/// `TensorArrayScatterV3`: Writes the rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_scatter_v3(
    handle: &Output,
    indices: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayScatterV3")
        .input(handle)
        .input(indices)
        .input(value)
        .input(flow_in)
        .output()
}

/// `TensorArraySize`: How many elements there are.
#[inline]
#[track_caller]
pub fn tensor_array_size(handle: &Output, flow_in: &Output) -> Output {
    handle.graph().op("TensorArraySize").input(handle).input(flow_in).output()
}

/// `TensorArraySizeV2`: How many elements there are.
#[inline]
#[track_caller]
pub fn tensor_array_size_v2(handle: &Output, flow_in: &Output) -> Output {
    handle.graph().op("TensorArraySizeV2").input(handle).input(flow_in).output()
}

/// `TensorArraySizeV3`: How many elements there are.
#[inline]
#[track_caller]
pub fn tensor_array_size_v3(handle: &Output, flow_in: &Output) -> Output {
    handle.graph().op("TensorArraySizeV3").input(handle).input(flow_in).output()
}

/// `TensorArraySplit`: Writes runs of rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_split(
    handle: &Output,
    value: &Output,
    lengths: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArraySplit")
        .input(handle)
        .input(value)
        .input(lengths)
        .input(flow_in)
        .output()
}

/// `TensorArraySplitV2`: Writes runs of rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_split_v2(
    handle: &Output,
    value: &Output,
    lengths: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArraySplitV2")
        .input(handle)
        .input(value)
        .input(lengths)
        .input(flow_in)
        .output()
}

/// `TensorArraySplitV3`: Writes runs of rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_split_v3(
    handle: &Output,
    value: &Output,
    lengths: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArraySplitV3")
        .input(handle)
        .input(value)
        .input(lengths)
        .input(flow_in)
        .output()
}

/// `TensorArrayUnpack`: Writes the rows of a tensor as elements.
#[inline]
#[track_caller]
pub fn tensor_array_unpack(handle: &Output, value: &Output, flow_in: &Output) -> Output {
    handle.graph().op("TensorArrayUnpack").input(handle).input(value).input(flow_in).output()
}

/// The attributes of [`tensor_array_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayV2Options<'a> {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
    /// `dynamic_size`: bool, `false` by default.
    pub dynamic_size: bool,
    /// `clear_after_read`: bool, `true` by default.
    pub clear_after_read: bool,
    /// `tensor_array_name`: string, empty by default.
    pub tensor_array_name: &'a str,
}

impl Default for TensorArrayV2Options<'_> {
    fn default() -> Self {
        TensorArrayV2Options {
            element_shape: PartialShape::unknown(),
            dynamic_size: false,
            clear_after_read: true,
            tensor_array_name: "",
        }
    }
}

/// `TensorArrayV2`: A new tensor array.
#[inline]
#[track_caller]
pub fn tensor_array_v2(size: &Output, dtype: DType) -> Output {
    tensor_array_v2_with(size, dtype, TensorArrayV2Options::default())
}

/// [`tensor_array_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_v2_with(
    size: &Output,
    dtype: DType,
    options: TensorArrayV2Options<'_>,
) -> Output {
    size.graph()
        .op("TensorArrayV2")
        .input(size)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .attr("dynamic_size", options.dynamic_size)
        .attr("clear_after_read", options.clear_after_read)
        .attr("tensor_array_name", options.tensor_array_name)
        .output()
}

/// The attributes of [`tensor_array_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorArrayV3Options<'a> {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
    /// `dynamic_size`: bool, `false` by default.
    pub dynamic_size: bool,
    /// `clear_after_read`: bool, `true` by default.
    pub clear_after_read: bool,
    /// `identical_element_shapes`: bool, `false` by default.
    pub identical_element_shapes: bool,
    /// `tensor_array_name`: string, empty by default.
    pub tensor_array_name: &'a str,
}

impl Default for TensorArrayV3Options<'_> {
    fn default() -> Self {
        TensorArrayV3Options {
            element_shape: PartialShape::unknown(),
            dynamic_size: false,
            clear_after_read: true,
            identical_element_shapes: false,
            tensor_array_name: "",
        }
    }
}

/// `TensorArrayV3`: A new tensor array.
///
/// Returns (`handle`, `flow`).
#[inline]
#[track_caller]
pub fn tensor_array_v3(size: &Output, dtype: DType) -> (Output, Output) {
    tensor_array_v3_with(size, dtype, TensorArrayV3Options::default())
}

/// [`tensor_array_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_array_v3_with(
    size: &Output,
    dtype: DType,
    options: TensorArrayV3Options<'_>,
) -> (Output, Output) {
    let [handle, flow] = size
        .graph()
        .op("TensorArrayV3")
        .input(size)
        .attr("dtype", dtype)
        .attr("element_shape", options.element_shape)
        .attr("dynamic_size", options.dynamic_size)
        .attr("clear_after_read", options.clear_after_read)
        .attr("identical_element_shapes", options.identical_element_shapes)
        .attr("tensor_array_name", options.tensor_array_name)
        .split();
    (handle, flow)
}

/// `TensorArrayWrite`: Writes an element.
#[inline]
#[track_caller]
pub fn tensor_array_write(
    handle: &Output,
    index: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayWrite")
        .input(handle)
        .input(index)
        .input(value)
        .input(flow_in)
        .output()
}

/// `TensorArrayWriteV2`: Writes an element.
#[inline]
#[track_caller]
pub fn tensor_array_write_v2(
    handle: &Output,
    index: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayWriteV2")
        .input(handle)
        .input(index)
        .input(value)
        .input(flow_in)
        .output()
}

/// `TensorArrayWriteV3`: Writes an element.
#[inline]
#[track_caller]
pub fn tensor_array_write_v3(
    handle: &Output,
    index: &Output,
    value: &Output,
    flow_in: &Output,
) -> Output {
    handle
        .graph()
        .op("TensorArrayWriteV3")
        .input(handle)
        .input(index)
        .input(value)
        .input(flow_in)
        .output()
}

/// The attributes of [`tensor_list_concat_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorListConcatOptions {
    /// `element_shape`: shape, unknown by default.
    pub element_shape: PartialShape,
}

impl Default for TensorListConcatOptions {
    fn default() -> Self {
        TensorListConcatOptions { element_shape: PartialShape::unknown() }
    }
}

/// `TensorListConcat`: The elements of a list, joined along their first dimension.
///
/// Returns (`tensor`, `lengths`).
#[inline]
#[track_caller]
pub fn tensor_list_concat(input_handle: &Output, element_dtype: DType) -> (Output, Output) {
    tensor_list_concat_with(input_handle, element_dtype, TensorListConcatOptions::default())
}

/// [`tensor_list_concat()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_list_concat_with(
    input_handle: &Output,
    element_dtype: DType,
    options: TensorListConcatOptions,
) -> (Output, Output) {
    let [tensor, lengths] = input_handle
        .graph()
        .op("TensorListConcat")
        .input(input_handle)
        .attr("element_dtype", element_dtype)
        .attr("element_shape", options.element_shape)
        .split();
    (tensor, lengths)
}

/// `TensorListConcatLists`: The elements of two lists in one.
#[inline]
#[track_caller]
pub fn tensor_list_concat_lists(
    input_a: &Output,
    input_b: &Output,
    element_dtype: DType,
) -> Output {
    input_a
        .graph()
        .op("TensorListConcatLists")
        .input(input_a)
        .input(input_b)
        .attr("element_dtype", element_dtype)
        .output()
}

/// `TensorListConcatV2`: The elements of a list, joined along their first dimension.
///
/// Returns (`tensor`, `lengths`).
#[inline]
#[track_caller]
pub fn tensor_list_concat_v2(
    input_handle: &Output,
    element_shape: &Output,
    leading_dims: &Output,
    element_dtype: DType,
) -> (Output, Output) {
    let [tensor, lengths] = input_handle
        .graph()
        .op("TensorListConcatV2")
        .input(input_handle)
        .input(element_shape)
        .input(leading_dims)
        .attr("element_dtype", element_dtype)
        .split();
    (tensor, lengths)
}

/// `TensorListElementShape`: What is known of the shape of a list's elements.
#[inline]
#[track_caller]
pub fn tensor_list_element_shape(input_handle: &Output, shape_type: DType) -> Output {
    input_handle
        .graph()
        .op("TensorListElementShape")
        .input(input_handle)
        .attr("shape_type", shape_type)
        .output()
}

/// `TensorListFromTensor`: The list of a tensor's rows.
#[inline]
#[track_caller]
pub fn tensor_list_from_tensor(tensor: &Output, element_shape: &Output) -> Output {
    tensor.graph().op("TensorListFromTensor").input(tensor).input(element_shape).output()
}

/// `TensorListGather`: Some elements of a list, stacked.
#[inline]
#[track_caller]
pub fn tensor_list_gather(
    input_handle: &Output,
    indices: &Output,
    element_shape: &Output,
    element_dtype: DType,
) -> Output {
    input_handle
        .graph()
        .op("TensorListGather")
        .input(input_handle)
        .input(indices)
        .input(element_shape)
        .attr("element_dtype", element_dtype)
        .output()
}

/// `TensorListGetItem`: An element of a list.
#[inline]
#[track_caller]
pub fn tensor_list_get_item(
    input_handle: &Output,
    index: &Output,
    element_shape: &Output,
    element_dtype: DType,
) -> Output {
    input_handle
        .graph()
        .op("TensorListGetItem")
        .input(input_handle)
        .input(index)
        .input(element_shape)
        .attr("element_dtype", element_dtype)
        .output()
}

/// `TensorListLength`: How many elements a list has.
#[inline]
#[track_caller]
pub fn tensor_list_length(input_handle: &Output) -> Output {
    input_handle.graph().op("TensorListLength").input(input_handle).output()
}

/// `TensorListPopBack`: A list without its last element, and that element.
///
/// Returns (`output_handle`, `tensor`).
#[inline]
#[track_caller]
pub fn tensor_list_pop_back(
    input_handle: &Output,
    element_shape: &Output,
    element_dtype: DType,
) -> (Output, Output) {
    let [output_handle, tensor] = input_handle
        .graph()
        .op("TensorListPopBack")
        .input(input_handle)
        .input(element_shape)
        .attr("element_dtype", element_dtype)
        .split();
    (output_handle, tensor)
}

/// `TensorListPushBack`: A list with one more element at its end.
#[inline]
#[track_caller]
pub fn tensor_list_push_back(input_handle: &Output, tensor: &Output) -> Output {
    input_handle.graph().op("TensorListPushBack").input(input_handle).input(tensor).output()
}

/// `TensorListPushBackBatch`: Lists with one more element at the end of each.
#[inline]
#[track_caller]
pub fn tensor_list_push_back_batch(input_handles: &Output, tensor: &Output) -> Output {
    input_handles.graph().op("TensorListPushBackBatch").input(input_handles).input(tensor).output()
}

/// `TensorListReserve`: A list of elements that are not set.
#[inline]
#[track_caller]
pub fn tensor_list_reserve(
    element_shape: &Output,
    num_elements: &Output,
    element_dtype: DType,
) -> Output {
    element_shape
        .graph()
        .op("TensorListReserve")
        .input(element_shape)
        .input(num_elements)
        .attr("element_dtype", element_dtype)
        .output()
}

/// `TensorListResize`: A list cut off, or with elements added that are not set.
#[inline]
#[track_caller]
pub fn tensor_list_resize(input_handle: &Output, size: &Output) -> Output {
    input_handle.graph().op("TensorListResize").input(input_handle).input(size).output()
}

/// `TensorListScatter`: A list with a tensor's rows at some indices.
#[inline]
#[track_caller]
pub fn tensor_list_scatter(tensor: &Output, indices: &Output, element_shape: &Output) -> Output {
    tensor
        .graph()
        .op("TensorListScatter")
        .input(tensor)
        .input(indices)
        .input(element_shape)
        .output()
}

/// `TensorListScatterIntoExistingList`: A list with some elements replaced by a tensor's rows.
#[inline]
#[track_caller]
pub fn tensor_list_scatter_into_existing_list(
    input_handle: &Output,
    tensor: &Output,
    indices: &Output,
) -> Output {
    input_handle
        .graph()
        .op("TensorListScatterIntoExistingList")
        .input(input_handle)
        .input(tensor)
        .input(indices)
        .output()
}

/// `TensorListScatterV2`: A list with a tensor's rows at some indices.
#[inline]
#[track_caller]
pub fn tensor_list_scatter_v2(
    tensor: &Output,
    indices: &Output,
    element_shape: &Output,
    num_elements: &Output,
) -> Output {
    tensor
        .graph()
        .op("TensorListScatterV2")
        .input(tensor)
        .input(indices)
        .input(element_shape)
        .input(num_elements)
        .output()
}

/// The attributes of [`tensor_list_set_item_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorListSetItemOptions {
    /// `resize_if_index_out_of_bounds`: bool, `false` by default.
    pub resize_if_index_out_of_bounds: bool,
}

impl Default for TensorListSetItemOptions {
    fn default() -> Self {
        TensorListSetItemOptions { resize_if_index_out_of_bounds: false }
    }
}

/// `TensorListSetItem`: A list with one element replaced.
#[inline]
#[track_caller]
pub fn tensor_list_set_item(input_handle: &Output, index: &Output, item: &Output) -> Output {
    tensor_list_set_item_with(input_handle, index, item, TensorListSetItemOptions::default())
}

/// [`tensor_list_set_item()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_list_set_item_with(
    input_handle: &Output,
    index: &Output,
    item: &Output,
    options: TensorListSetItemOptions,
) -> Output {
    input_handle
        .graph()
        .op("TensorListSetItem")
        .input(input_handle)
        .input(index)
        .input(item)
        .attr("resize_if_index_out_of_bounds", options.resize_if_index_out_of_bounds)
        .output()
}

/// `TensorListSplit`: A list of runs of a tensor's rows.
#[inline]
#[track_caller]
pub fn tensor_list_split(tensor: &Output, element_shape: &Output, lengths: &Output) -> Output {
    tensor.graph().op("TensorListSplit").input(tensor).input(element_shape).input(lengths).output()
}

/// The attributes of [`tensor_list_stack_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorListStackOptions {
    /// `num_elements`: int, `-1` by default.
    pub num_elements: i64,
}

impl Default for TensorListStackOptions {
    fn default() -> Self {
        TensorListStackOptions { num_elements: -1 }
    }
}

/// `TensorListStack`: The elements of a list, stacked.
#[inline]
#[track_caller]
pub fn tensor_list_stack(
    input_handle: &Output,
    element_shape: &Output,
    element_dtype: DType,
) -> Output {
    tensor_list_stack_with(
        input_handle,
        element_shape,
        element_dtype,
        TensorListStackOptions::default(),
    )
}

/// [`tensor_list_stack()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_list_stack_with(
    input_handle: &Output,
    element_shape: &Output,
    element_dtype: DType,
    options: TensorListStackOptions,
) -> Output {
    input_handle
        .graph()
        .op("TensorListStack")
        .input(input_handle)
        .input(element_shape)
        .attr("element_dtype", element_dtype)
        .attr("num_elements", options.num_elements)
        .output()
}

/// `TensorMapErase`: A map without one of its entries.
#[inline]
#[track_caller]
pub fn tensor_map_erase(input_handle: &Output, key: &Output, value_dtype: DType) -> Output {
    input_handle
        .graph()
        .op("TensorMapErase")
        .input(input_handle)
        .input(key)
        .attr("value_dtype", value_dtype)
        .output()
}

/// `TensorMapHasKey`: Whether a map has a key.
#[inline]
#[track_caller]
pub fn tensor_map_has_key(input_handle: &Output, key: &Output) -> Output {
    input_handle.graph().op("TensorMapHasKey").input(input_handle).input(key).output()
}

/// `TensorMapInsert`: A map with one entry more, or replaced.
#[inline]
#[track_caller]
pub fn tensor_map_insert(input_handle: &Output, key: &Output, value: &Output) -> Output {
    input_handle.graph().op("TensorMapInsert").input(input_handle).input(key).input(value).output()
}

/// `TensorMapLookup`: The value of a key.
#[inline]
#[track_caller]
pub fn tensor_map_lookup(input_handle: &Output, key: &Output, value_dtype: DType) -> Output {
    input_handle
        .graph()
        .op("TensorMapLookup")
        .input(input_handle)
        .input(key)
        .attr("value_dtype", value_dtype)
        .output()
}

/// `TensorMapSize`: How many entries a map has.
#[inline]
#[track_caller]
pub fn tensor_map_size(input_handle: &Output) -> Output {
    input_handle.graph().op("TensorMapSize").input(input_handle).output()
}

/// `TensorMapStackKeys`: All keys, stacked.
#[inline]
#[track_caller]
pub fn tensor_map_stack_keys(input_handle: &Output, key_dtype: DType) -> Output {
    input_handle
        .graph()
        .op("TensorMapStackKeys")
        .input(input_handle)
        .attr("key_dtype", key_dtype)
        .output()
}
