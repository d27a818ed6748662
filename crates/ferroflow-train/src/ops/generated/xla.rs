//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::function::Function;
use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;

/// `XlaBroadcastHelper`: Two tensors, the one of lower rank with dimensions of size 1 inserted.
///
/// Returns (`lhs_output`, `rhs_output`).
#[inline]
#[track_caller]
pub fn xla_broadcast_helper(
    lhs: &Output,
    rhs: &Output,
    broadcast_dims: &Output,
) -> (Output, Output) {
    let [lhs_output, rhs_output] =
        lhs.graph().op("XlaBroadcastHelper").input(lhs).input(rhs).input(broadcast_dims).split();
    (lhs_output, rhs_output)
}

/// `XlaConv`: A convolution in any layout, with dilations and groups.
#[inline]
#[track_caller]
pub fn xla_conv(
    lhs: &Output,
    rhs: &Output,
    window_strides: &Output,
    padding: &Output,
    lhs_dilation: &Output,
    rhs_dilation: &Output,
    feature_group_count: &Output,
    dimension_numbers: &str,
    precision_config: &str,
) -> Output {
    lhs.graph()
        .op("XlaConv")
        .input(lhs)
        .input(rhs)
        .input(window_strides)
        .input(padding)
        .input(lhs_dilation)
        .input(rhs_dilation)
        .input(feature_group_count)
        .attr("dimension_numbers", dimension_numbers)
        .attr("precision_config", precision_config)
        .output()
}

/// The attributes of [`xla_conv_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct XlaConvV2Options {
    /// `batch_group_count`: int, `1` by default.
    pub batch_group_count: i64,
}

impl Default for XlaConvV2Options {
    fn default() -> Self {
        XlaConvV2Options { batch_group_count: 1 }
    }
}

/// `XlaConvV2`: A convolution in any layout, with dilations and groups, in a given dtype.
#[inline]
#[track_caller]
pub fn xla_conv_v2(
    lhs: &Output,
    rhs: &Output,
    window_strides: &Output,
    padding: &Output,
    lhs_dilation: &Output,
    rhs_dilation: &Output,
    feature_group_count: &Output,
    dimension_numbers: &str,
    precision_config: &str,
    preferred_element_type: DType,
) -> Output {
    xla_conv_v2_with(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        feature_group_count,
        dimension_numbers,
        precision_config,
        preferred_element_type,
        XlaConvV2Options::default(),
    )
}

/// [`xla_conv_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn xla_conv_v2_with(
    lhs: &Output,
    rhs: &Output,
    window_strides: &Output,
    padding: &Output,
    lhs_dilation: &Output,
    rhs_dilation: &Output,
    feature_group_count: &Output,
    dimension_numbers: &str,
    precision_config: &str,
    preferred_element_type: DType,
    options: XlaConvV2Options,
) -> Output {
    lhs.graph()
        .op("XlaConvV2")
        .input(lhs)
        .input(rhs)
        .input(window_strides)
        .input(padding)
        .input(lhs_dilation)
        .input(rhs_dilation)
        .input(feature_group_count)
        .attr("dimension_numbers", dimension_numbers)
        .attr("precision_config", precision_config)
        .attr("preferred_element_type", preferred_element_type)
        .attr("batch_group_count", options.batch_group_count)
        .output()
}

/// `XlaDot`: The product of two tensors over any of their dimensions.
#[inline]
#[track_caller]
pub fn xla_dot(
    lhs: &Output,
    rhs: &Output,
    dimension_numbers: &str,
    precision_config: &str,
) -> Output {
    lhs.graph()
        .op("XlaDot")
        .input(lhs)
        .input(rhs)
        .attr("dimension_numbers", dimension_numbers)
        .attr("precision_config", precision_config)
        .output()
}

/// `XlaDotV2`: The product of two tensors over any of their dimensions, in a given dtype.
#[inline]
#[track_caller]
pub fn xla_dot_v2(
    lhs: &Output,
    rhs: &Output,
    dimension_numbers: &str,
    precision_config: &str,
    preferred_element_type: DType,
) -> Output {
    lhs.graph()
        .op("XlaDotV2")
        .input(lhs)
        .input(rhs)
        .attr("dimension_numbers", dimension_numbers)
        .attr("precision_config", precision_config)
        .attr("preferred_element_type", preferred_element_type)
        .output()
}

/// `XlaDynamicSlice`: A block of a tensor; it is moved if it would not lie within.
#[inline]
#[track_caller]
pub fn xla_dynamic_slice(input: &Output, start_indices: &Output, size_indices: &Output) -> Output {
    input
        .graph()
        .op("XlaDynamicSlice")
        .input(input)
        .input(start_indices)
        .input(size_indices)
        .output()
}

/// `XlaDynamicUpdateSlice`: A tensor with a block replaced; the block is moved if it would not lie
/// within.
#[inline]
#[track_caller]
pub fn xla_dynamic_update_slice(input: &Output, update: &Output, indices: &Output) -> Output {
    input.graph().op("XlaDynamicUpdateSlice").input(input).input(update).input(indices).output()
}

/// `XlaEinsum`: Einsum of two tensors.
#[inline]
#[track_caller]
pub fn xla_einsum(a: &Output, b: &Output, equation: &str) -> Output {
    a.graph().op("XlaEinsum").input(a).input(b).attr("equation", equation).output()
}

/// `XlaGather`: Blocks of a tensor that start where indices say.
#[inline]
#[track_caller]
pub fn xla_gather(
    operand: &Output,
    start_indices: &Output,
    slice_sizes: &Output,
    dimension_numbers: &str,
    indices_are_sorted: bool,
) -> Output {
    operand
        .graph()
        .op("XlaGather")
        .input(operand)
        .input(start_indices)
        .input(slice_sizes)
        .attr("dimension_numbers", dimension_numbers)
        .attr("indices_are_sorted", indices_are_sorted)
        .output()
}

/// `XlaKeyValueSort`: Rows of keys in rising order, and values moved along with them.
///
/// Returns (`sorted_keys`, `sorted_values`).
#[inline]
#[track_caller]
pub fn xla_key_value_sort(keys: &Output, values: &Output) -> (Output, Output) {
    let [sorted_keys, sorted_values] =
        keys.graph().op("XlaKeyValueSort").input(keys).input(values).split();
    (sorted_keys, sorted_values)
}

/// `XlaOptimizationBarrier`: Its inputs; a compiler moves nothing across it.
#[inline]
#[track_caller]
pub fn xla_optimization_barrier(g: &Graph, input: &[Output]) -> Vec<Output> {
    g.op("XlaOptimizationBarrier").list(input).list_outputs()
}

/// `XlaPad`: Pads the edges of a tensor, and between its elements; crops where padding is negative.
#[inline]
#[track_caller]
pub fn xla_pad(
    input: &Output,
    padding_value: &Output,
    padding_low: &Output,
    padding_high: &Output,
    padding_interior: &Output,
) -> Output {
    input
        .graph()
        .op("XlaPad")
        .input(input)
        .input(padding_value)
        .input(padding_low)
        .input(padding_high)
        .input(padding_interior)
        .output()
}

/// `XlaReduce`: Combines the elements of some dimensions by a function of two scalars.
#[inline]
#[track_caller]
pub fn xla_reduce(
    input: &Output,
    init_value: &Output,
    dimensions_to_reduce: &[i64],
    reducer: &Function,
) -> Output {
    input
        .graph()
        .op("XlaReduce")
        .input(input)
        .input(init_value)
        .attr("dimensions_to_reduce", list(dimensions_to_reduce))
        .attr("reducer", reducer.reference())
        .output()
}

/// `XlaReducePrecision`: Floats rounded as if they had fewer bits.
#[inline]
#[track_caller]
pub fn xla_reduce_precision(operand: &Output, exponent_bits: i64, mantissa_bits: i64) -> Output {
    operand
        .graph()
        .op("XlaReducePrecision")
        .input(operand)
        .attr("exponent_bits", exponent_bits)
        .attr("mantissa_bits", mantissa_bits)
        .output()
}

/// `XlaReduceWindow`: Combines the elements under a window that moves, by a function of two
/// scalars.
#[inline]
#[track_caller]
pub fn xla_reduce_window(
    input: &Output,
    init_value: &Output,
    window_dimensions: &Output,
    window_strides: &Output,
    base_dilations: &Output,
    window_dilations: &Output,
    padding: &Output,
    computation: &Function,
) -> Output {
    input
        .graph()
        .op("XlaReduceWindow")
        .input(input)
        .input(init_value)
        .input(window_dimensions)
        .input(window_strides)
        .input(base_dilations)
        .input(window_dilations)
        .input(padding)
        .attr("computation", computation.reference())
        .output()
}

/// `XlaReplicaId`: The number of this replica: 0, because a compiler makes none.
#[inline]
#[track_caller]
pub fn xla_replica_id(g: &Graph) -> Output {
    g.op("XlaReplicaId").output()
}

/// `XlaScatter`: A tensor whose elements are combined with updates, where indices say.
#[inline]
#[track_caller]
pub fn xla_scatter(
    operand: &Output,
    scatter_indices: &Output,
    updates: &Output,
    update_computation: &Function,
    dimension_numbers: &str,
    indices_are_sorted: bool,
) -> Output {
    operand
        .graph()
        .op("XlaScatter")
        .input(operand)
        .input(scatter_indices)
        .input(updates)
        .attr("update_computation", update_computation.reference())
        .attr("dimension_numbers", dimension_numbers)
        .attr("indices_are_sorted", indices_are_sorted)
        .output()
}

/// `XlaSelectAndScatter`: Selects an element under each place of a window, and adds a source to it.
#[inline]
#[track_caller]
pub fn xla_select_and_scatter(
    operand: &Output,
    window_dimensions: &Output,
    window_strides: &Output,
    padding: &Output,
    source: &Output,
    init_value: &Output,
    select: &Function,
    scatter: &Function,
) -> Output {
    operand
        .graph()
        .op("XlaSelectAndScatter")
        .input(operand)
        .input(window_dimensions)
        .input(window_strides)
        .input(padding)
        .input(source)
        .input(init_value)
        .attr("select", select.reference())
        .attr("scatter", scatter.reference())
        .output()
}

/// The attributes of [`xla_sharding_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct XlaShardingOptions<'a> {
    /// `sharding`: string, empty by default.
    pub sharding: &'a str,
    /// `unspecified_dims`: list of ints, empty by default.
    pub unspecified_dims: &'a [i64],
}

impl Default for XlaShardingOptions<'_> {
    fn default() -> Self {
        XlaShardingOptions { sharding: "", unspecified_dims: &[] }
    }
}

/// `XlaSharding`: Its input; says how a compiler should divide it between devices.
#[inline]
#[track_caller]
pub fn xla_sharding(input: &Output) -> Output {
    xla_sharding_with(input, XlaShardingOptions::default())
}

/// [`xla_sharding()`] with other attributes.
#[inline]
#[track_caller]
pub fn xla_sharding_with(input: &Output, options: XlaShardingOptions<'_>) -> Output {
    input
        .graph()
        .op("XlaSharding")
        .input(input)
        .attr("sharding", options.sharding)
        .attr("unspecified_dims", list(options.unspecified_dims))
        .output()
}

/// `XlaSort`: Rows in rising order.
#[inline]
#[track_caller]
pub fn xla_sort(input: &Output) -> Output {
    input.graph().op("XlaSort").input(input).output()
}

/// `XlaVariadicReduce`: Combines the elements of several tensors of one type by one function.
#[inline]
#[track_caller]
pub fn xla_variadic_reduce(
    g: &Graph,
    input: &[Output],
    init_value: &[Output],
    dimensions_to_reduce: &[i64],
    reducer: &Function,
) -> Vec<Output> {
    g.op("XlaVariadicReduce")
        .list(input)
        .list(init_value)
        .attr("dimensions_to_reduce", list(dimensions_to_reduce))
        .attr("reducer", reducer.reference())
        .list_outputs()
}

/// `XlaVariadicReduceV2`: Combines the elements of several tensors by one function.
#[inline]
#[track_caller]
pub fn xla_variadic_reduce_v2(
    g: &Graph,
    inputs: &[Output],
    init_values: &[Output],
    dimensions_to_reduce: &[i64],
    reducer: &Function,
) -> Vec<Output> {
    g.op("XlaVariadicReduceV2")
        .list(inputs)
        .list(init_values)
        .attr("dimensions_to_reduce", list(dimensions_to_reduce))
        .attr("reducer", reducer.reference())
        .list_outputs()
}

/// `XlaVariadicSort`: Sorts several tensors together along a dimension, by a function that
/// compares.
#[inline]
#[track_caller]
pub fn xla_variadic_sort(
    inputs: &[Output],
    dimension: &Output,
    comparator: &Function,
    is_stable: bool,
) -> Vec<Output> {
    dimension
        .graph()
        .op("XlaVariadicSort")
        .list(inputs)
        .input(dimension)
        .attr("comparator", comparator.reference())
        .attr("is_stable", is_stable)
        .list_outputs()
}
