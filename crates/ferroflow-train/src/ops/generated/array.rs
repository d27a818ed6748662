//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// The attributes of [`approx_top_k_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApproxTopKOptions {
    /// `reduction_dimension`: int, `-1` by default.
    pub reduction_dimension: i64,
    /// `recall_target`: float, `0.95` by default.
    pub recall_target: f32,
    /// `is_max_k`: bool, `true` by default.
    pub is_max_k: bool,
    /// `reduction_input_size_override`: int, `-1` by default.
    pub reduction_input_size_override: i64,
    /// `aggregate_to_topk`: bool, `true` by default.
    pub aggregate_to_topk: bool,
}

impl Default for ApproxTopKOptions {
    fn default() -> Self {
        ApproxTopKOptions {
            reduction_dimension: -1,
            recall_target: 0.95,
            is_max_k: true,
            reduction_input_size_override: -1,
            aggregate_to_topk: true,
        }
    }
}

/// `ApproxTopK`: The `k` largest elements of each row, and where they are; exact on the CPU.
///
/// Returns (`values`, `indices`).
#[inline]
#[track_caller]
pub fn approx_top_k(input: &Output, k: i64) -> (Output, Output) {
    approx_top_k_with(input, k, ApproxTopKOptions::default())
}

/// [`approx_top_k()`] with other attributes.
#[inline]
#[track_caller]
pub fn approx_top_k_with(input: &Output, k: i64, options: ApproxTopKOptions) -> (Output, Output) {
    let [values, indices] = input
        .graph()
        .op("ApproxTopK")
        .input(input)
        .attr("k", k)
        .attr("reduction_dimension", options.reduction_dimension)
        .attr("recall_target", options.recall_target)
        .attr("is_max_k", options.is_max_k)
        .attr("reduction_input_size_override", options.reduction_input_size_override)
        .attr("aggregate_to_topk", options.aggregate_to_topk)
        .split();
    (values, indices)
}

/// `BatchMatrixBandPart`: An old name of MatrixBandPart.
#[inline]
#[track_caller]
pub fn batch_matrix_band_part(input: &Output, num_lower: &Output, num_upper: &Output) -> Output {
    input.graph().op("BatchMatrixBandPart").input(input).input(num_lower).input(num_upper).output()
}

/// `BatchMatrixDiag`: Matrices with the given main diagonals.
#[inline]
#[track_caller]
pub fn batch_matrix_diag(diagonal: &Output) -> Output {
    diagonal.graph().op("BatchMatrixDiag").input(diagonal).output()
}

/// `BatchMatrixDiagPart`: The main diagonals of matrices.
#[inline]
#[track_caller]
pub fn batch_matrix_diag_part(input: &Output) -> Output {
    input.graph().op("BatchMatrixDiagPart").input(input).output()
}

/// `BatchMatrixSetDiag`: Matrices with their main diagonals replaced.
#[inline]
#[track_caller]
pub fn batch_matrix_set_diag(input: &Output, diagonal: &Output) -> Output {
    input.graph().op("BatchMatrixSetDiag").input(input).input(diagonal).output()
}

/// `BatchToSpace`: Moves square blocks from the batch dimension back into images, and crops them.
#[inline]
#[track_caller]
pub fn batch_to_space(input: &Output, crops: &Output, block_size: i64) -> Output {
    input
        .graph()
        .op("BatchToSpace")
        .input(input)
        .input(crops)
        .attr("block_size", block_size)
        .output()
}

/// `BatchToSpaceND`: Moves blocks from the batch dimension back into space, and crops it.
#[inline]
#[track_caller]
pub fn batch_to_space_nd(input: &Output, block_shape: &Output, crops: &Output) -> Output {
    input.graph().op("BatchToSpaceND").input(input).input(block_shape).input(crops).output()
}

/// `Bincount`: How often, or with what total weight, each integer below `size` occurs.
#[inline]
#[track_caller]
pub fn bincount(arr: &Output, size: &Output, weights: &Output) -> Output {
    arr.graph().op("Bincount").input(arr).input(size).input(weights).output()
}

/// `BroadcastArgs`: The shape that two shapes broadcast to.
#[inline]
#[track_caller]
pub fn broadcast_args(s0: &Output, s1: &Output) -> Output {
    s0.graph().op("BroadcastArgs").input(s0).input(s1).output()
}

/// `BroadcastGradientArgs`: The axes over which gradients are summed after two shapes were
/// broadcast.
///
/// Returns (`r0`, `r1`).
#[inline]
#[track_caller]
pub fn broadcast_gradient_args(s0: &Output, s1: &Output) -> (Output, Output) {
    let [r0, r1] = s0.graph().op("BroadcastGradientArgs").input(s0).input(s1).split();
    (r0, r1)
}

/// `BroadcastTo`: Repeats a tensor to fill a shape.
#[inline]
#[track_caller]
pub fn broadcast_to(input: &Output, shape: &Output) -> Output {
    input.graph().op("BroadcastTo").input(input).input(shape).output()
}

/// `CheckNumerics`: Its input, if it holds neither NaN nor infinities.
#[inline]
#[track_caller]
pub fn check_numerics(tensor: &Output, message: &str) -> Output {
    tensor.graph().op("CheckNumerics").input(tensor).attr("message", message).output()
}

/// `CheckNumericsV2`: Its input, if it holds neither NaN nor infinities; says which infinities it
/// found.
#[inline]
#[track_caller]
pub fn check_numerics_v2(tensor: &Output, message: &str) -> Output {
    tensor.graph().op("CheckNumericsV2").input(tensor).attr("message", message).output()
}

/// `Concat`: Joins tensors along a dimension.
#[inline]
#[track_caller]
pub fn concat(concat_dim: &Output, values: &[Output]) -> Output {
    concat_dim.graph().op("Concat").input(concat_dim).list(values).output()
}

/// `ConcatOffset`: Where each of several shapes begins in their concatenation.
#[inline]
#[track_caller]
pub fn concat_offset(concat_dim: &Output, shape: &[Output]) -> Vec<Output> {
    concat_dim.graph().op("ConcatOffset").input(concat_dim).list(shape).list_outputs()
}

/// `ConcatV2`: Joins tensors along a dimension.
#[inline]
#[track_caller]
pub fn concat_v2(values: &[Output], axis: &Output) -> Output {
    axis.graph().op("ConcatV2").list(values).input(axis).output()
}

/// `ConjugateTranspose`: Puts the dimensions of a tensor in another order and conjugates its
/// elements.
#[inline]
#[track_caller]
pub fn conjugate_transpose(x: &Output, perm: &Output) -> Output {
    x.graph().op("ConjugateTranspose").input(x).input(perm).output()
}

/// The attributes of [`copy_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CopyOptions<'a> {
    /// `tensor_name`: string, empty by default.
    pub tensor_name: &'a str,
    /// `debug_ops_spec`: list of strings, empty by default.
    pub debug_ops_spec: &'a [&'a str],
}

impl Default for CopyOptions<'_> {
    fn default() -> Self {
        CopyOptions { tensor_name: "", debug_ops_spec: &[] }
    }
}

/// `Copy`: A copy of its input for the debugger.
#[inline]
#[track_caller]
pub fn copy(input: &Output) -> Output {
    copy_with(input, CopyOptions::default())
}

/// [`copy()`] with other attributes.
#[inline]
#[track_caller]
pub fn copy_with(input: &Output, options: CopyOptions<'_>) -> Output {
    input
        .graph()
        .op("Copy")
        .input(input)
        .attr("tensor_name", options.tensor_name)
        .attr("debug_ops_spec", list(options.debug_ops_spec))
        .output()
}

/// The attributes of [`copy_host_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CopyHostOptions<'a> {
    /// `tensor_name`: string, empty by default.
    pub tensor_name: &'a str,
    /// `debug_ops_spec`: list of strings, empty by default.
    pub debug_ops_spec: &'a [&'a str],
}

impl Default for CopyHostOptions<'_> {
    fn default() -> Self {
        CopyHostOptions { tensor_name: "", debug_ops_spec: &[] }
    }
}

/// `CopyHost`: A copy of its input for the debugger.
#[inline]
#[track_caller]
pub fn copy_host(input: &Output) -> Output {
    copy_host_with(input, CopyHostOptions::default())
}

/// [`copy_host()`] with other attributes.
#[inline]
#[track_caller]
pub fn copy_host_with(input: &Output, options: CopyHostOptions<'_>) -> Output {
    input
        .graph()
        .op("CopyHost")
        .input(input)
        .attr("tensor_name", options.tensor_name)
        .attr("debug_ops_spec", list(options.debug_ops_spec))
        .output()
}

/// `DebugGradientIdentity`: Its input; marks a gradient for the debugger.
#[inline]
#[track_caller]
pub fn debug_gradient_identity(input: &Output) -> Output {
    input.graph().op("DebugGradientIdentity").input(input).output()
}

/// `DebugGradientRefIdentity`: Its input, a reference; marks a gradient for the debugger.
#[inline]
#[track_caller]
pub fn debug_gradient_ref_identity(input: &Output) -> Output {
    input.graph().op("DebugGradientRefIdentity").input(input).output()
}

/// The attributes of [`debug_identity_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DebugIdentityOptions<'a> {
    /// `device_name`: string, empty by default.
    pub device_name: &'a str,
    /// `tensor_name`: string, empty by default.
    pub tensor_name: &'a str,
    /// `debug_urls`: list of strings, empty by default.
    pub debug_urls: &'a [&'a str],
    /// `gated_grpc`: bool, `false` by default.
    pub gated_grpc: bool,
}

impl Default for DebugIdentityOptions<'_> {
    fn default() -> Self {
        DebugIdentityOptions {
            device_name: "",
            tensor_name: "",
            debug_urls: &[],
            gated_grpc: false,
        }
    }
}

/// `DebugIdentity`: Its input; the debug URLs are not served.
#[inline]
#[track_caller]
pub fn debug_identity(input: &Output) -> Output {
    debug_identity_with(input, DebugIdentityOptions::default())
}

/// [`debug_identity()`] with other attributes.
#[inline]
#[track_caller]
pub fn debug_identity_with(input: &Output, options: DebugIdentityOptions<'_>) -> Output {
    input
        .graph()
        .op("DebugIdentity")
        .input(input)
        .attr("device_name", options.device_name)
        .attr("tensor_name", options.tensor_name)
        .attr("debug_urls", list(options.debug_urls))
        .attr("gated_grpc", options.gated_grpc)
        .output()
}

/// The attributes of [`debug_identity_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DebugIdentityV2Options<'a> {
    /// `tfdbg_context_id`: string, empty by default.
    pub tfdbg_context_id: &'a str,
    /// `op_name`: string, empty by default.
    pub op_name: &'a str,
    /// `output_slot`: int, `-1` by default.
    pub output_slot: i64,
    /// `tensor_debug_mode`: int, `-1` by default.
    pub tensor_debug_mode: i64,
    /// `debug_urls`: list of strings, empty by default.
    pub debug_urls: &'a [&'a str],
    /// `circular_buffer_size`: int, `1000` by default.
    pub circular_buffer_size: i64,
    /// `tfdbg_run_id`: string, empty by default.
    pub tfdbg_run_id: &'a str,
}

impl Default for DebugIdentityV2Options<'_> {
    fn default() -> Self {
        DebugIdentityV2Options {
            tfdbg_context_id: "",
            op_name: "",
            output_slot: -1,
            tensor_debug_mode: -1,
            debug_urls: &[],
            circular_buffer_size: 1000,
            tfdbg_run_id: "",
        }
    }
}

/// `DebugIdentityV2`: Its input; the debug URLs are not served.
#[inline]
#[track_caller]
pub fn debug_identity_v2(input: &Output) -> Output {
    debug_identity_v2_with(input, DebugIdentityV2Options::default())
}

/// [`debug_identity_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn debug_identity_v2_with(input: &Output, options: DebugIdentityV2Options<'_>) -> Output {
    input
        .graph()
        .op("DebugIdentityV2")
        .input(input)
        .attr("tfdbg_context_id", options.tfdbg_context_id)
        .attr("op_name", options.op_name)
        .attr("output_slot", options.output_slot)
        .attr("tensor_debug_mode", options.tensor_debug_mode)
        .attr("debug_urls", list(options.debug_urls))
        .attr("circular_buffer_size", options.circular_buffer_size)
        .attr("tfdbg_run_id", options.tfdbg_run_id)
        .output()
}

/// The attributes of [`debug_nan_count_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DebugNanCountOptions<'a> {
    /// `device_name`: string, empty by default.
    pub device_name: &'a str,
    /// `tensor_name`: string, empty by default.
    pub tensor_name: &'a str,
    /// `debug_urls`: list of strings, empty by default.
    pub debug_urls: &'a [&'a str],
    /// `gated_grpc`: bool, `false` by default.
    pub gated_grpc: bool,
}

impl Default for DebugNanCountOptions<'_> {
    fn default() -> Self {
        DebugNanCountOptions {
            device_name: "",
            tensor_name: "",
            debug_urls: &[],
            gated_grpc: false,
        }
    }
}

/// `DebugNanCount`: How many elements are NaN; the debug URLs are not served.
#[inline]
#[track_caller]
pub fn debug_nan_count(input: &Output) -> Output {
    debug_nan_count_with(input, DebugNanCountOptions::default())
}

/// [`debug_nan_count()`] with other attributes.
#[inline]
#[track_caller]
pub fn debug_nan_count_with(input: &Output, options: DebugNanCountOptions<'_>) -> Output {
    input
        .graph()
        .op("DebugNanCount")
        .input(input)
        .attr("device_name", options.device_name)
        .attr("tensor_name", options.tensor_name)
        .attr("debug_urls", list(options.debug_urls))
        .attr("gated_grpc", options.gated_grpc)
        .output()
}

/// The attributes of [`debug_numeric_summary_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DebugNumericSummaryOptions<'a> {
    /// `device_name`: string, empty by default.
    pub device_name: &'a str,
    /// `tensor_name`: string, empty by default.
    pub tensor_name: &'a str,
    /// `debug_urls`: list of strings, empty by default.
    pub debug_urls: &'a [&'a str],
    /// `lower_bound`: float, `f32::NEG_INFINITY` by default.
    pub lower_bound: f32,
    /// `upper_bound`: float, `f32::INFINITY` by default.
    pub upper_bound: f32,
    /// `mute_if_healthy`: bool, `false` by default.
    pub mute_if_healthy: bool,
    /// `gated_grpc`: bool, `false` by default.
    pub gated_grpc: bool,
}

impl Default for DebugNumericSummaryOptions<'_> {
    fn default() -> Self {
        DebugNumericSummaryOptions {
            device_name: "",
            tensor_name: "",
            debug_urls: &[],
            lower_bound: f32::NEG_INFINITY,
            upper_bound: f32::INFINITY,
            mute_if_healthy: false,
            gated_grpc: false,
        }
    }
}

/// `DebugNumericSummary`: Counts and statistics of a tensor; the debug URLs are not served.
#[inline]
#[track_caller]
pub fn debug_numeric_summary(input: &Output) -> Output {
    debug_numeric_summary_with(input, DebugNumericSummaryOptions::default())
}

/// [`debug_numeric_summary()`] with other attributes.
#[inline]
#[track_caller]
pub fn debug_numeric_summary_with(
    input: &Output,
    options: DebugNumericSummaryOptions<'_>,
) -> Output {
    input
        .graph()
        .op("DebugNumericSummary")
        .input(input)
        .attr("device_name", options.device_name)
        .attr("tensor_name", options.tensor_name)
        .attr("debug_urls", list(options.debug_urls))
        .attr("lower_bound", options.lower_bound)
        .attr("upper_bound", options.upper_bound)
        .attr("mute_if_healthy", options.mute_if_healthy)
        .attr("gated_grpc", options.gated_grpc)
        .output()
}

/// The attributes of [`debug_numeric_summary_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DebugNumericSummaryV2Options {
    /// `output_dtype`: type, `Float` by default.
    pub output_dtype: DType,
    /// `tensor_debug_mode`: int, `-1` by default.
    pub tensor_debug_mode: i64,
    /// `tensor_id`: int, `-1` by default.
    pub tensor_id: i64,
}

impl Default for DebugNumericSummaryV2Options {
    fn default() -> Self {
        DebugNumericSummaryV2Options {
            output_dtype: DType::Float,
            tensor_debug_mode: -1,
            tensor_id: -1,
        }
    }
}

/// `DebugNumericSummaryV2`: Counts of a tensor's elements, in the form that a mode selects.
#[inline]
#[track_caller]
pub fn debug_numeric_summary_v2(input: &Output) -> Output {
    debug_numeric_summary_v2_with(input, DebugNumericSummaryV2Options::default())
}

/// [`debug_numeric_summary_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn debug_numeric_summary_v2_with(
    input: &Output,
    options: DebugNumericSummaryV2Options,
) -> Output {
    input
        .graph()
        .op("DebugNumericSummaryV2")
        .input(input)
        .attr("output_dtype", options.output_dtype)
        .attr("tensor_debug_mode", options.tensor_debug_mode)
        .attr("tensor_id", options.tensor_id)
        .output()
}

/// `DeepCopy`: A copy of its input that shares no storage with it.
#[inline]
#[track_caller]
pub fn deep_copy(x: &Output) -> Output {
    x.graph().op("DeepCopy").input(x).output()
}

/// The attributes of [`dense_bincount_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DenseBincountOptions {
    /// `binary_output`: bool, `false` by default.
    pub binary_output: bool,
}

impl Default for DenseBincountOptions {
    fn default() -> Self {
        DenseBincountOptions { binary_output: false }
    }
}

/// `DenseBincount`: How often each integer below `size` occurs in a vector, or in each row of a
/// matrix.
#[inline]
#[track_caller]
pub fn dense_bincount(input: &Output, size: &Output, weights: &Output) -> Output {
    dense_bincount_with(input, size, weights, DenseBincountOptions::default())
}

/// [`dense_bincount()`] with other attributes.
#[inline]
#[track_caller]
pub fn dense_bincount_with(
    input: &Output,
    size: &Output,
    weights: &Output,
    options: DenseBincountOptions,
) -> Output {
    input
        .graph()
        .op("DenseBincount")
        .input(input)
        .input(size)
        .input(weights)
        .attr("binary_output", options.binary_output)
        .output()
}

/// The attributes of [`depth_to_space_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DepthToSpaceOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for DepthToSpaceOptions<'_> {
    fn default() -> Self {
        DepthToSpaceOptions { data_format: "NHWC" }
    }
}

/// `DepthToSpace`: Moves channels back into square blocks of images.
#[inline]
#[track_caller]
pub fn depth_to_space(input: &Output, block_size: i64) -> Output {
    depth_to_space_with(input, block_size, DepthToSpaceOptions::default())
}

/// [`depth_to_space()`] with other attributes.
#[inline]
#[track_caller]
pub fn depth_to_space_with(
    input: &Output,
    block_size: i64,
    options: DepthToSpaceOptions<'_>,
) -> Output {
    input
        .graph()
        .op("DepthToSpace")
        .input(input)
        .attr("block_size", block_size)
        .attr("data_format", options.data_format)
        .output()
}

/// `Diag`: A tensor of twice the rank with its input on the diagonal.
#[inline]
#[track_caller]
pub fn diag(diagonal: &Output) -> Output {
    diagonal.graph().op("Diag").input(diagonal).output()
}

/// `DiagPart`: The diagonal of a tensor of even rank.
#[inline]
#[track_caller]
pub fn diag_part(input: &Output) -> Output {
    input.graph().op("DiagPart").input(input).output()
}

/// `DynamicPartition`: Deals the rows of a tensor out to several, as the numbers in `partitions`
/// say.
#[inline]
#[track_caller]
pub fn dynamic_partition(data: &Output, partitions: &Output, num_partitions: i64) -> Vec<Output> {
    data.graph()
        .op("DynamicPartition")
        .input(data)
        .input(partitions)
        .attr("num_partitions", num_partitions)
        .list_outputs()
}

/// `DynamicStitch`: Puts the rows of several tensors where the indices say; later ones win.
#[inline]
#[track_caller]
pub fn dynamic_stitch(g: &Graph, indices: &[Output], data: &[Output]) -> Output {
    g.op("DynamicStitch").list(indices).list(data).output()
}

/// The attributes of [`edit_distance_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EditDistanceOptions {
    /// `normalize`: bool, `true` by default.
    pub normalize: bool,
}

impl Default for EditDistanceOptions {
    fn default() -> Self {
        EditDistanceOptions { normalize: true }
    }
}

/// `EditDistance`: How many edits turn each hypothesis sequence into the true one.
#[inline]
#[track_caller]
pub fn edit_distance(
    hypothesis_indices: &Output,
    hypothesis_values: &Output,
    hypothesis_shape: &Output,
    truth_indices: &Output,
    truth_values: &Output,
    truth_shape: &Output,
) -> Output {
    edit_distance_with(
        hypothesis_indices,
        hypothesis_values,
        hypothesis_shape,
        truth_indices,
        truth_values,
        truth_shape,
        EditDistanceOptions::default(),
    )
}

/// [`edit_distance()`] with other attributes.
#[inline]
#[track_caller]
pub fn edit_distance_with(
    hypothesis_indices: &Output,
    hypothesis_values: &Output,
    hypothesis_shape: &Output,
    truth_indices: &Output,
    truth_values: &Output,
    truth_shape: &Output,
    options: EditDistanceOptions,
) -> Output {
    hypothesis_indices
        .graph()
        .op("EditDistance")
        .input(hypothesis_indices)
        .input(hypothesis_values)
        .input(hypothesis_shape)
        .input(truth_indices)
        .input(truth_values)
        .input(truth_shape)
        .attr("normalize", options.normalize)
        .output()
}

/// The attributes of [`empty_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EmptyOptions {
    /// `init`: bool, `false` by default.
    pub init: bool,
}

impl Default for EmptyOptions {
    fn default() -> Self {
        EmptyOptions { init: false }
    }
}

/// `Empty`: A tensor of the given shape whose elements are unspecified, or zero if `init`.
#[inline]
#[track_caller]
pub fn empty(shape: &Output, dtype: DType) -> Output {
    empty_with(shape, dtype, EmptyOptions::default())
}

/// [`empty()`] with other attributes.
#[inline]
#[track_caller]
pub fn empty_with(shape: &Output, dtype: DType, options: EmptyOptions) -> Output {
    shape.graph().op("Empty").input(shape).attr("dtype", dtype).attr("init", options.init).output()
}

/// `EnsureShape`: Its input, which must have the given shape.
#[inline]
#[track_caller]
pub fn ensure_shape(input: &Output, shape: &PartialShape) -> Output {
    input.graph().op("EnsureShape").input(input).attr("shape", shape.clone()).output()
}

/// `ExpandDims`: Inserts a dimension of size 1.
#[inline]
#[track_caller]
pub fn expand_dims(input: &Output, dim: &Output) -> Output {
    input.graph().op("ExpandDims").input(input).input(dim).output()
}

/// `ExtractImagePatches`: The patches that a sliding window sees in images, each put into the
/// channels.
#[inline]
#[track_caller]
pub fn extract_image_patches(
    images: &Output,
    ksizes: &[i64],
    strides: &[i64],
    rates: &[i64],
    padding: &str,
) -> Output {
    images
        .graph()
        .op("ExtractImagePatches")
        .input(images)
        .attr("ksizes", list(ksizes))
        .attr("strides", list(strides))
        .attr("rates", list(rates))
        .attr("padding", padding)
        .output()
}

/// `ExtractVolumePatches`: The patches that a sliding window sees in volumes, each put into the
/// channels.
#[inline]
#[track_caller]
pub fn extract_volume_patches(
    input: &Output,
    ksizes: &[i64],
    strides: &[i64],
    padding: &str,
) -> Output {
    input
        .graph()
        .op("ExtractVolumePatches")
        .input(input)
        .attr("ksizes", list(ksizes))
        .attr("strides", list(strides))
        .attr("padding", padding)
        .output()
}

/// `Fill`: A tensor of the given shape, all elements of which are `value`.
#[inline]
#[track_caller]
pub fn fill(dims: &Output, value: &Output) -> Output {
    dims.graph().op("Fill").input(dims).input(value).output()
}

/// The attributes of [`gather_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct GatherOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for GatherOptions {
    fn default() -> Self {
        GatherOptions { validate_indices: true }
    }
}

/// `Gather`: The rows of a tensor that the indices name.
#[inline]
#[track_caller]
pub fn gather(params: &Output, indices: &Output) -> Output {
    gather_with(params, indices, GatherOptions::default())
}

/// [`gather()`] with other attributes.
#[inline]
#[track_caller]
pub fn gather_with(params: &Output, indices: &Output, options: GatherOptions) -> Output {
    params
        .graph()
        .op("Gather")
        .input(params)
        .input(indices)
        .attr("validate_indices", options.validate_indices)
        .output()
}

/// `GatherNd`: The slices of a tensor that the index tuples name.
#[inline]
#[track_caller]
pub fn gather_nd(params: &Output, indices: &Output) -> Output {
    params.graph().op("GatherNd").input(params).input(indices).output()
}

/// The attributes of [`gather_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct GatherV2Options {
    /// `batch_dims`: int, `0` by default.
    pub batch_dims: i64,
}

impl Default for GatherV2Options {
    fn default() -> Self {
        GatherV2Options { batch_dims: 0 }
    }
}

/// `GatherV2`: The slices along an axis of a tensor that the indices name.
#[inline]
#[track_caller]
pub fn gather_v2(params: &Output, indices: &Output, axis: &Output) -> Output {
    gather_v2_with(params, indices, axis, GatherV2Options::default())
}

/// [`gather_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn gather_v2_with(
    params: &Output,
    indices: &Output,
    axis: &Output,
    options: GatherV2Options,
) -> Output {
    params
        .graph()
        .op("GatherV2")
        .input(params)
        .input(indices)
        .input(axis)
        .attr("batch_dims", options.batch_dims)
        .output()
}

/// `GuaranteeConst`: Its input, promised to be constant.
#[inline]
#[track_caller]
pub fn guarantee_const(input: &Output) -> Output {
    input.graph().op("GuaranteeConst").input(input).output()
}

/// The attributes of [`histogram_fixed_width_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct HistogramFixedWidthOptions {
    /// `dtype`: type, `Int32` by default.
    pub dtype: DType,
}

impl Default for HistogramFixedWidthOptions {
    fn default() -> Self {
        HistogramFixedWidthOptions { dtype: DType::Int32 }
    }
}

/// `HistogramFixedWidth`: How many values fall into each of `nbins` equal parts of a range.
#[inline]
#[track_caller]
pub fn histogram_fixed_width(values: &Output, value_range: &Output, nbins: &Output) -> Output {
    histogram_fixed_width_with(values, value_range, nbins, HistogramFixedWidthOptions::default())
}

/// [`histogram_fixed_width()`] with other attributes.
#[inline]
#[track_caller]
pub fn histogram_fixed_width_with(
    values: &Output,
    value_range: &Output,
    nbins: &Output,
    options: HistogramFixedWidthOptions,
) -> Output {
    values
        .graph()
        .op("HistogramFixedWidth")
        .input(values)
        .input(value_range)
        .input(nbins)
        .attr("dtype", options.dtype)
        .output()
}

/// `InTopK`: Whether the target class of each row is among its `k` largest predictions.
#[inline]
#[track_caller]
pub fn in_top_k(predictions: &Output, targets: &Output, k: i64) -> Output {
    predictions.graph().op("InTopK").input(predictions).input(targets).attr("k", k).output()
}

/// `InTopKV2`: Whether the target class of each row is among its `k` largest predictions.
#[inline]
#[track_caller]
pub fn in_top_k_v2(predictions: &Output, targets: &Output, k: &Output) -> Output {
    predictions.graph().op("InTopKV2").input(predictions).input(targets).input(k).output()
}

/// `InplaceAdd`: Its input with something added to rows.
#[inline]
#[track_caller]
pub fn inplace_add(x: &Output, i: &Output, v: &Output) -> Output {
    x.graph().op("InplaceAdd").input(x).input(i).input(v).output()
}

/// `InplaceSub`: Its input with something subtracted from rows.
#[inline]
#[track_caller]
pub fn inplace_sub(x: &Output, i: &Output, v: &Output) -> Output {
    x.graph().op("InplaceSub").input(x).input(i).input(v).output()
}

/// `InplaceUpdate`: Its input with rows replaced.
#[inline]
#[track_caller]
pub fn inplace_update(x: &Output, i: &Output, v: &Output) -> Output {
    x.graph().op("InplaceUpdate").input(x).input(i).input(v).output()
}

/// `InvertPermutation`: The permutation that undoes a permutation.
#[inline]
#[track_caller]
pub fn invert_permutation(x: &Output) -> Output {
    x.graph().op("InvertPermutation").input(x).output()
}

/// `LinSpace`: `num` numbers at equal distances from `start` to `stop`, both included.
#[inline]
#[track_caller]
pub fn lin_space(start: &Output, stop: &Output, num: &Output) -> Output {
    start.graph().op("LinSpace").input(start).input(stop).input(num).output()
}

/// The attributes of [`list_diff_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ListDiffOptions {
    /// `out_idx`: type, `Int32` by default.
    pub out_idx: DType,
}

impl Default for ListDiffOptions {
    fn default() -> Self {
        ListDiffOptions { out_idx: DType::Int32 }
    }
}

/// `ListDiff`: The elements of `x` that are not in `y`, and where they were.
///
/// Returns (`out`, `idx`).
#[inline]
#[track_caller]
pub fn list_diff(x: &Output, y: &Output) -> (Output, Output) {
    list_diff_with(x, y, ListDiffOptions::default())
}

/// [`list_diff()`] with other attributes.
#[inline]
#[track_caller]
pub fn list_diff_with(x: &Output, y: &Output, options: ListDiffOptions) -> (Output, Output) {
    let [out, idx] =
        x.graph().op("ListDiff").input(x).input(y).attr("out_idx", options.out_idx).split();
    (out, idx)
}

/// The attributes of [`lower_bound_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LowerBoundOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for LowerBoundOptions {
    fn default() -> Self {
        LowerBoundOptions { out_type: DType::Int32 }
    }
}

/// `LowerBound`: How many elements of a sorted row are less than each value.
#[inline]
#[track_caller]
pub fn lower_bound(sorted_inputs: &Output, values: &Output) -> Output {
    lower_bound_with(sorted_inputs, values, LowerBoundOptions::default())
}

/// [`lower_bound()`] with other attributes.
#[inline]
#[track_caller]
pub fn lower_bound_with(
    sorted_inputs: &Output,
    values: &Output,
    options: LowerBoundOptions,
) -> Output {
    sorted_inputs
        .graph()
        .op("LowerBound")
        .input(sorted_inputs)
        .input(values)
        .attr("out_type", options.out_type)
        .output()
}

/// `MatrixBandPart`: Matrices with everything outside a band around the diagonal set to zero.
#[inline]
#[track_caller]
pub fn matrix_band_part(input: &Output, num_lower: &Output, num_upper: &Output) -> Output {
    input.graph().op("MatrixBandPart").input(input).input(num_lower).input(num_upper).output()
}

/// `MatrixDiag`: Matrices with the given main diagonals.
#[inline]
#[track_caller]
pub fn matrix_diag(diagonal: &Output) -> Output {
    diagonal.graph().op("MatrixDiag").input(diagonal).output()
}

/// `MatrixDiagPart`: The main diagonals of matrices.
#[inline]
#[track_caller]
pub fn matrix_diag_part(input: &Output) -> Output {
    input.graph().op("MatrixDiagPart").input(input).output()
}

/// `MatrixDiagPartV2`: Some diagonals of matrices.
#[inline]
#[track_caller]
pub fn matrix_diag_part_v2(input: &Output, k: &Output, padding_value: &Output) -> Output {
    input.graph().op("MatrixDiagPartV2").input(input).input(k).input(padding_value).output()
}

/// The attributes of [`matrix_diag_part_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixDiagPartV3Options<'a> {
    /// `align`: string, `"RIGHT_LEFT"` by default.
    pub align: &'a str,
}

impl Default for MatrixDiagPartV3Options<'_> {
    fn default() -> Self {
        MatrixDiagPartV3Options { align: "RIGHT_LEFT" }
    }
}

/// `MatrixDiagPartV3`: Some diagonals of matrices.
#[inline]
#[track_caller]
pub fn matrix_diag_part_v3(input: &Output, k: &Output, padding_value: &Output) -> Output {
    matrix_diag_part_v3_with(input, k, padding_value, MatrixDiagPartV3Options::default())
}

/// [`matrix_diag_part_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_diag_part_v3_with(
    input: &Output,
    k: &Output,
    padding_value: &Output,
    options: MatrixDiagPartV3Options<'_>,
) -> Output {
    input
        .graph()
        .op("MatrixDiagPartV3")
        .input(input)
        .input(k)
        .input(padding_value)
        .attr("align", options.align)
        .output()
}

/// `MatrixDiagV2`: Matrices with the given diagonals.
#[inline]
#[track_caller]
pub fn matrix_diag_v2(
    diagonal: &Output,
    k: &Output,
    num_rows: &Output,
    num_cols: &Output,
    padding_value: &Output,
) -> Output {
    diagonal
        .graph()
        .op("MatrixDiagV2")
        .input(diagonal)
        .input(k)
        .input(num_rows)
        .input(num_cols)
        .input(padding_value)
        .output()
}

/// The attributes of [`matrix_diag_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixDiagV3Options<'a> {
    /// `align`: string, `"RIGHT_LEFT"` by default.
    pub align: &'a str,
}

impl Default for MatrixDiagV3Options<'_> {
    fn default() -> Self {
        MatrixDiagV3Options { align: "RIGHT_LEFT" }
    }
}

/// `MatrixDiagV3`: Matrices with the given diagonals.
#[inline]
#[track_caller]
pub fn matrix_diag_v3(
    diagonal: &Output,
    k: &Output,
    num_rows: &Output,
    num_cols: &Output,
    padding_value: &Output,
) -> Output {
    matrix_diag_v3_with(
        diagonal,
        k,
        num_rows,
        num_cols,
        padding_value,
        MatrixDiagV3Options::default(),
    )
}

/// [`matrix_diag_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_diag_v3_with(
    diagonal: &Output,
    k: &Output,
    num_rows: &Output,
    num_cols: &Output,
    padding_value: &Output,
    options: MatrixDiagV3Options<'_>,
) -> Output {
    diagonal
        .graph()
        .op("MatrixDiagV3")
        .input(diagonal)
        .input(k)
        .input(num_rows)
        .input(num_cols)
        .input(padding_value)
        .attr("align", options.align)
        .output()
}

/// `MatrixSetDiag`: Matrices with their main diagonals replaced.
#[inline]
#[track_caller]
pub fn matrix_set_diag(input: &Output, diagonal: &Output) -> Output {
    input.graph().op("MatrixSetDiag").input(input).input(diagonal).output()
}

/// `MatrixSetDiagV2`: Matrices with some of their diagonals replaced.
#[inline]
#[track_caller]
pub fn matrix_set_diag_v2(input: &Output, diagonal: &Output, k: &Output) -> Output {
    input.graph().op("MatrixSetDiagV2").input(input).input(diagonal).input(k).output()
}

/// The attributes of [`matrix_set_diag_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixSetDiagV3Options<'a> {
    /// `align`: string, `"RIGHT_LEFT"` by default.
    pub align: &'a str,
}

impl Default for MatrixSetDiagV3Options<'_> {
    fn default() -> Self {
        MatrixSetDiagV3Options { align: "RIGHT_LEFT" }
    }
}

/// `MatrixSetDiagV3`: Matrices with some of their diagonals replaced.
#[inline]
#[track_caller]
pub fn matrix_set_diag_v3(input: &Output, diagonal: &Output, k: &Output) -> Output {
    matrix_set_diag_v3_with(input, diagonal, k, MatrixSetDiagV3Options::default())
}

/// [`matrix_set_diag_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_set_diag_v3_with(
    input: &Output,
    diagonal: &Output,
    k: &Output,
    options: MatrixSetDiagV3Options<'_>,
) -> Output {
    input
        .graph()
        .op("MatrixSetDiagV3")
        .input(input)
        .input(diagonal)
        .input(k)
        .attr("align", options.align)
        .output()
}

/// `MirrorPad`: Surrounds a tensor with its mirror images.
#[inline]
#[track_caller]
pub fn mirror_pad(input: &Output, paddings: &Output, mode: &str) -> Output {
    input.graph().op("MirrorPad").input(input).input(paddings).attr("mode", mode).output()
}

/// `MirrorPadGrad`: Folds the mirror images around a tensor back onto it.
#[inline]
#[track_caller]
pub fn mirror_pad_grad(input: &Output, paddings: &Output, mode: &str) -> Output {
    input.graph().op("MirrorPadGrad").input(input).input(paddings).attr("mode", mode).output()
}

/// The attributes of [`nth_element_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NthElementOptions {
    /// `reverse`: bool, `false` by default.
    pub reverse: bool,
}

impl Default for NthElementOptions {
    fn default() -> Self {
        NthElementOptions { reverse: false }
    }
}

/// `NthElement`: The element of each row that would be number `n` if the row were sorted.
#[inline]
#[track_caller]
pub fn nth_element(input: &Output, n: &Output) -> Output {
    nth_element_with(input, n, NthElementOptions::default())
}

/// [`nth_element()`] with other attributes.
#[inline]
#[track_caller]
pub fn nth_element_with(input: &Output, n: &Output, options: NthElementOptions) -> Output {
    input.graph().op("NthElement").input(input).input(n).attr("reverse", options.reverse).output()
}

/// The attributes of [`one_hot_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OneHotOptions {
    /// `axis`: int, `-1` by default.
    pub axis: i64,
}

impl Default for OneHotOptions {
    fn default() -> Self {
        OneHotOptions { axis: -1 }
    }
}

/// `OneHot`: A new axis on which the place that each index names is on and all others are off.
#[inline]
#[track_caller]
pub fn one_hot(indices: &Output, depth: &Output, on_value: &Output, off_value: &Output) -> Output {
    one_hot_with(indices, depth, on_value, off_value, OneHotOptions::default())
}

/// [`one_hot()`] with other attributes.
#[inline]
#[track_caller]
pub fn one_hot_with(
    indices: &Output,
    depth: &Output,
    on_value: &Output,
    off_value: &Output,
    options: OneHotOptions,
) -> Output {
    indices
        .graph()
        .op("OneHot")
        .input(indices)
        .input(depth)
        .input(on_value)
        .input(off_value)
        .attr("axis", options.axis)
        .output()
}

/// `OnesLike`: Ones in the shape of its input.
#[inline]
#[track_caller]
pub fn ones_like(x: &Output) -> Output {
    x.graph().op("OnesLike").input(x).output()
}

/// The attributes of [`pack_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// `axis`: int, `0` by default.
    pub axis: i64,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions { axis: 0 }
    }
}

/// `Pack`: Stacks tensors of one shape along a new dimension.
#[inline]
#[track_caller]
pub fn pack(g: &Graph, values: &[Output]) -> Output {
    pack_with(g, values, PackOptions::default())
}

/// [`pack()`] with other attributes.
#[inline]
#[track_caller]
pub fn pack_with(g: &Graph, values: &[Output], options: PackOptions) -> Output {
    g.op("Pack").list(values).attr("axis", options.axis).output()
}

/// `Pad`: Surrounds a tensor with zeros.
#[inline]
#[track_caller]
pub fn pad(input: &Output, paddings: &Output) -> Output {
    input.graph().op("Pad").input(input).input(paddings).output()
}

/// `PadV2`: Surrounds a tensor with a value.
#[inline]
#[track_caller]
pub fn pad_v2(input: &Output, paddings: &Output, constant_values: &Output) -> Output {
    input.graph().op("PadV2").input(input).input(paddings).input(constant_values).output()
}

/// `ParallelConcat`: Joins tensors of one row each.
#[inline]
#[track_caller]
pub fn parallel_concat(g: &Graph, values: &[Output], shape: &PartialShape) -> Output {
    g.op("ParallelConcat").list(values).attr("shape", shape.clone()).output()
}

/// `ParallelDynamicStitch`: Puts the rows of several tensors where the indices say; later ones win.
#[inline]
#[track_caller]
pub fn parallel_dynamic_stitch(g: &Graph, indices: &[Output], data: &[Output]) -> Output {
    g.op("ParallelDynamicStitch").list(indices).list(data).output()
}

/// The attributes of [`prevent_gradient_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PreventGradientOptions<'a> {
    /// `message`: string, empty by default.
    pub message: &'a str,
}

impl Default for PreventGradientOptions<'_> {
    fn default() -> Self {
        PreventGradientOptions { message: "" }
    }
}

/// `PreventGradient`: Its input; asking for a gradient through it is an error.
#[inline]
#[track_caller]
pub fn prevent_gradient(input: &Output) -> Output {
    prevent_gradient_with(input, PreventGradientOptions::default())
}

/// [`prevent_gradient()`] with other attributes.
#[inline]
#[track_caller]
pub fn prevent_gradient_with(input: &Output, options: PreventGradientOptions<'_>) -> Output {
    input.graph().op("PreventGradient").input(input).attr("message", options.message).output()
}

/// The attributes of [`ragged_bincount_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RaggedBincountOptions {
    /// `binary_output`: bool, `false` by default.
    pub binary_output: bool,
}

impl Default for RaggedBincountOptions {
    fn default() -> Self {
        RaggedBincountOptions { binary_output: false }
    }
}

/// `RaggedBincount`: How often each integer below `size` occurs in each row of a ragged matrix.
#[inline]
#[track_caller]
pub fn ragged_bincount(
    splits: &Output,
    values: &Output,
    size: &Output,
    weights: &Output,
) -> Output {
    ragged_bincount_with(splits, values, size, weights, RaggedBincountOptions::default())
}

/// [`ragged_bincount()`] with other attributes.
#[inline]
#[track_caller]
pub fn ragged_bincount_with(
    splits: &Output,
    values: &Output,
    size: &Output,
    weights: &Output,
    options: RaggedBincountOptions,
) -> Output {
    splits
        .graph()
        .op("RaggedBincount")
        .input(splits)
        .input(values)
        .input(size)
        .input(weights)
        .attr("binary_output", options.binary_output)
        .output()
}

/// The outputs of [`ragged_fill_empty_rows`].
#[derive(Clone, Debug)]
pub struct RaggedFillEmptyRowsOutputs {
    /// Output `output_value_rowids`.
    pub output_value_rowids: Output,
    /// Output `output_values`.
    pub output_values: Output,
    /// Output `empty_row_indicator`.
    pub empty_row_indicator: Output,
    /// Output `reverse_index_map`.
    pub reverse_index_map: Output,
}

/// `RaggedFillEmptyRows`: Gives every empty row of a ragged matrix one default value.
#[inline]
#[track_caller]
pub fn ragged_fill_empty_rows(
    value_rowids: &Output,
    values: &Output,
    nrows: &Output,
    default_value: &Output,
) -> RaggedFillEmptyRowsOutputs {
    let [output_value_rowids, output_values, empty_row_indicator, reverse_index_map] = value_rowids
        .graph()
        .op("RaggedFillEmptyRows")
        .input(value_rowids)
        .input(values)
        .input(nrows)
        .input(default_value)
        .split();
    RaggedFillEmptyRowsOutputs {
        output_value_rowids,
        output_values,
        empty_row_indicator,
        reverse_index_map,
    }
}

/// `RaggedFillEmptyRowsGrad`: The gradient of RaggedFillEmptyRows for its values and its default.
///
/// Returns (`d_values`, `d_default_value`).
#[inline]
#[track_caller]
pub fn ragged_fill_empty_rows_grad(
    reverse_index_map: &Output,
    grad_values: &Output,
) -> (Output, Output) {
    let [d_values, d_default_value] = reverse_index_map
        .graph()
        .op("RaggedFillEmptyRowsGrad")
        .input(reverse_index_map)
        .input(grad_values)
        .split();
    (d_values, d_default_value)
}

/// `RaggedGather`: The rows of a ragged tensor that the indices name.
///
/// Returns (`output_nested_splits`, `output_dense_values`).
#[inline]
#[track_caller]
pub fn ragged_gather(
    params_nested_splits: &[Output],
    params_dense_values: &Output,
    indices: &Output,
    output_ragged_rank: i64,
) -> (Vec<Output>, Output) {
    let mut arguments = params_dense_values
        .graph()
        .op("RaggedGather")
        .list(params_nested_splits)
        .input(params_dense_values)
        .input(indices)
        .attr("OUTPUT_RAGGED_RANK", output_ragged_rank)
        .outputs_by_argument();
    let output_nested_splits = arguments.next_list();
    let output_dense_values = arguments.next_output();
    (output_nested_splits, output_dense_values)
}

/// The attributes of [`ragged_range_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RaggedRangeOptions {
    /// `Tsplits`: type, `Int64` by default.
    pub tsplits: DType,
}

impl Default for RaggedRangeOptions {
    fn default() -> Self {
        RaggedRangeOptions { tsplits: DType::Int64 }
    }
}

/// `RaggedRange`: A range for each row.
///
/// Returns (`rt_nested_splits`, `rt_dense_values`).
#[inline]
#[track_caller]
pub fn ragged_range(starts: &Output, limits: &Output, deltas: &Output) -> (Output, Output) {
    ragged_range_with(starts, limits, deltas, RaggedRangeOptions::default())
}

/// [`ragged_range()`] with other attributes.
#[inline]
#[track_caller]
pub fn ragged_range_with(
    starts: &Output,
    limits: &Output,
    deltas: &Output,
    options: RaggedRangeOptions,
) -> (Output, Output) {
    let [rt_nested_splits, rt_dense_values] = starts
        .graph()
        .op("RaggedRange")
        .input(starts)
        .input(limits)
        .input(deltas)
        .attr("Tsplits", options.tsplits)
        .split();
    (rt_nested_splits, rt_dense_values)
}

/// The attributes of [`ragged_tensor_from_variant_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RaggedTensorFromVariantOptions {
    /// `Tsplits`: type, `Int64` by default.
    pub tsplits: DType,
}

impl Default for RaggedTensorFromVariantOptions {
    fn default() -> Self {
        RaggedTensorFromVariantOptions { tsplits: DType::Int64 }
    }
}

/// `RaggedTensorFromVariant`: The ragged tensor that a value holds, or several as the rows of one.
///
/// Returns (`output_nested_splits`, `output_dense_values`).
#[inline]
#[track_caller]
pub fn ragged_tensor_from_variant(
    encoded_ragged: &Output,
    input_ragged_rank: i64,
    output_ragged_rank: i64,
    tvalues: DType,
) -> (Vec<Output>, Output) {
    ragged_tensor_from_variant_with(
        encoded_ragged,
        input_ragged_rank,
        output_ragged_rank,
        tvalues,
        RaggedTensorFromVariantOptions::default(),
    )
}

/// [`ragged_tensor_from_variant()`] with other attributes.
#[inline]
#[track_caller]
pub fn ragged_tensor_from_variant_with(
    encoded_ragged: &Output,
    input_ragged_rank: i64,
    output_ragged_rank: i64,
    tvalues: DType,
    options: RaggedTensorFromVariantOptions,
) -> (Vec<Output>, Output) {
    let mut arguments = encoded_ragged
        .graph()
        .op("RaggedTensorFromVariant")
        .input(encoded_ragged)
        .attr("input_ragged_rank", input_ragged_rank)
        .attr("output_ragged_rank", output_ragged_rank)
        .attr("Tvalues", tvalues)
        .attr("Tsplits", options.tsplits)
        .outputs_by_argument();
    let output_nested_splits = arguments.next_list();
    let output_dense_values = arguments.next_output();
    (output_nested_splits, output_dense_values)
}

/// `RaggedTensorToSparse`: A ragged tensor as a sparse one.
///
/// Returns (`sparse_indices`, `sparse_values`, `sparse_dense_shape`).
#[inline]
#[track_caller]
pub fn ragged_tensor_to_sparse(
    rt_nested_splits: &[Output],
    rt_dense_values: &Output,
) -> (Output, Output, Output) {
    let [sparse_indices, sparse_values, sparse_dense_shape] = rt_dense_values
        .graph()
        .op("RaggedTensorToSparse")
        .list(rt_nested_splits)
        .input(rt_dense_values)
        .split();
    (sparse_indices, sparse_values, sparse_dense_shape)
}

/// `RaggedTensorToTensor`: A ragged tensor as a dense one, cut or filled up with a default.
#[inline]
#[track_caller]
pub fn ragged_tensor_to_tensor(
    shape: &Output,
    values: &Output,
    default_value: &Output,
    row_partition_tensors: &[Output],
    row_partition_types: &[&str],
) -> Output {
    shape
        .graph()
        .op("RaggedTensorToTensor")
        .input(shape)
        .input(values)
        .input(default_value)
        .list(row_partition_tensors)
        .attr("row_partition_types", list(row_partition_types))
        .output()
}

/// `RaggedTensorToVariant`: A ragged tensor as a value, or its rows as a vector of values.
#[inline]
#[track_caller]
pub fn ragged_tensor_to_variant(
    rt_nested_splits: &[Output],
    rt_dense_values: &Output,
    batched_input: bool,
) -> Output {
    rt_dense_values
        .graph()
        .op("RaggedTensorToVariant")
        .list(rt_nested_splits)
        .input(rt_dense_values)
        .attr("batched_input", batched_input)
        .output()
}

/// `RaggedTensorToVariantGradient`: The gradient of the values that RaggedTensorToVariant put into
/// variants.
#[inline]
#[track_caller]
pub fn ragged_tensor_to_variant_gradient(
    encoded_ragged_grad: &Output,
    row_splits: &Output,
    dense_values_shape: &Output,
    tvalues: DType,
) -> Output {
    encoded_ragged_grad
        .graph()
        .op("RaggedTensorToVariantGradient")
        .input(encoded_ragged_grad)
        .input(row_splits)
        .input(dense_values_shape)
        .attr("Tvalues", tvalues)
        .output()
}

/// `Range`: The numbers from `start` to before `limit`, `delta` apart.
#[inline]
#[track_caller]
pub fn range(start: &Output, limit: &Output, delta: &Output) -> Output {
    start.graph().op("Range").input(start).input(limit).input(delta).output()
}

/// `Rank`: The number of dimensions of a tensor.
#[inline]
#[track_caller]
pub fn rank(input: &Output) -> Output {
    input.graph().op("Rank").input(input).output()
}

/// `Reshape`: The same elements in another shape, of which one dimension may be -1.
#[inline]
#[track_caller]
pub fn reshape(tensor: &Output, shape: &Output) -> Output {
    tensor.graph().op("Reshape").input(tensor).input(shape).output()
}

/// `Reverse`: Turns the marked axes of a tensor round.
#[inline]
#[track_caller]
pub fn reverse(tensor: &Output, dims: &Output) -> Output {
    tensor.graph().op("Reverse").input(tensor).input(dims).output()
}

/// The attributes of [`reverse_sequence_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ReverseSequenceOptions {
    /// `batch_dim`: int, `0` by default.
    pub batch_dim: i64,
}

impl Default for ReverseSequenceOptions {
    fn default() -> Self {
        ReverseSequenceOptions { batch_dim: 0 }
    }
}

/// `ReverseSequence`: Turns the beginning of each sequence of a batch round.
#[inline]
#[track_caller]
pub fn reverse_sequence(input: &Output, seq_lengths: &Output, seq_dim: i64) -> Output {
    reverse_sequence_with(input, seq_lengths, seq_dim, ReverseSequenceOptions::default())
}

/// [`reverse_sequence()`] with other attributes.
#[inline]
#[track_caller]
pub fn reverse_sequence_with(
    input: &Output,
    seq_lengths: &Output,
    seq_dim: i64,
    options: ReverseSequenceOptions,
) -> Output {
    input
        .graph()
        .op("ReverseSequence")
        .input(input)
        .input(seq_lengths)
        .attr("seq_dim", seq_dim)
        .attr("batch_dim", options.batch_dim)
        .output()
}

/// `ReverseV2`: Turns the given axes of a tensor round.
#[inline]
#[track_caller]
pub fn reverse_v2(tensor: &Output, axis: &Output) -> Output {
    tensor.graph().op("ReverseV2").input(tensor).input(axis).output()
}

/// `Roll`: Shifts elements along axes; what falls off one end comes back at the other.
#[inline]
#[track_caller]
pub fn roll(input: &Output, shift: &Output, axis: &Output) -> Output {
    input.graph().op("Roll").input(input).input(shift).input(axis).output()
}

/// `ScatterNd`: Zeros of the given shape, with the updates added to the slices that indices name.
#[inline]
#[track_caller]
pub fn scatter_nd(indices: &Output, updates: &Output, shape: &Output) -> Output {
    indices.graph().op("ScatterNd").input(indices).input(updates).input(shape).output()
}

/// `ScatterNdNonAliasingAdd`: Its input with the updates added to the slices that indices name.
#[inline]
#[track_caller]
pub fn scatter_nd_non_aliasing_add(input: &Output, indices: &Output, updates: &Output) -> Output {
    input.graph().op("ScatterNdNonAliasingAdd").input(input).input(indices).input(updates).output()
}

/// The attributes of [`shape_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShapeOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for ShapeOptions {
    fn default() -> Self {
        ShapeOptions { out_type: DType::Int32 }
    }
}

/// `Shape`: The dimensions of a tensor.
#[inline]
#[track_caller]
pub fn shape(input: &Output) -> Output {
    shape_with(input, ShapeOptions::default())
}

/// [`shape()`] with other attributes.
#[inline]
#[track_caller]
pub fn shape_with(input: &Output, options: ShapeOptions) -> Output {
    input.graph().op("Shape").input(input).attr("out_type", options.out_type).output()
}

/// The attributes of [`shape_n_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ShapeNOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for ShapeNOptions {
    fn default() -> Self {
        ShapeNOptions { out_type: DType::Int32 }
    }
}

/// `ShapeN`: The dimensions of each of several tensors.
#[inline]
#[track_caller]
pub fn shape_n(g: &Graph, input: &[Output]) -> Vec<Output> {
    shape_n_with(g, input, ShapeNOptions::default())
}

/// [`shape_n()`] with other attributes.
#[inline]
#[track_caller]
pub fn shape_n_with(g: &Graph, input: &[Output], options: ShapeNOptions) -> Vec<Output> {
    g.op("ShapeN").list(input).attr("out_type", options.out_type).list_outputs()
}

/// The attributes of [`size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SizeOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for SizeOptions {
    fn default() -> Self {
        SizeOptions { out_type: DType::Int32 }
    }
}

/// `Size`: The number of elements of a tensor.
#[inline]
#[track_caller]
pub fn size(input: &Output) -> Output {
    size_with(input, SizeOptions::default())
}

/// [`size()`] with other attributes.
#[inline]
#[track_caller]
pub fn size_with(input: &Output, options: SizeOptions) -> Output {
    input.graph().op("Size").input(input).attr("out_type", options.out_type).output()
}

/// `Slice`: The block of a tensor that begins at `begin` and has shape `size`.
#[inline]
#[track_caller]
pub fn slice(input: &Output, begin: &Output, size: &Output) -> Output {
    input.graph().op("Slice").input(input).input(begin).input(size).output()
}

/// `Snapshot`: Its input as it is now.
#[inline]
#[track_caller]
pub fn snapshot(input: &Output) -> Output {
    input.graph().op("Snapshot").input(input).output()
}

/// `SpaceToBatch`: Moves square blocks of images, after padding, into the batch dimension.
#[inline]
#[track_caller]
pub fn space_to_batch(input: &Output, paddings: &Output, block_size: i64) -> Output {
    input
        .graph()
        .op("SpaceToBatch")
        .input(input)
        .input(paddings)
        .attr("block_size", block_size)
        .output()
}

/// `SpaceToBatchND`: Moves blocks of space, after padding, into the batch dimension.
#[inline]
#[track_caller]
pub fn space_to_batch_nd(input: &Output, block_shape: &Output, paddings: &Output) -> Output {
    input.graph().op("SpaceToBatchND").input(input).input(block_shape).input(paddings).output()
}

/// The attributes of [`space_to_depth_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SpaceToDepthOptions<'a> {
    /// `data_format`: string, `"NHWC"` by default.
    pub data_format: &'a str,
}

impl Default for SpaceToDepthOptions<'_> {
    fn default() -> Self {
        SpaceToDepthOptions { data_format: "NHWC" }
    }
}

/// `SpaceToDepth`: Moves square blocks of images into the channels.
#[inline]
#[track_caller]
pub fn space_to_depth(input: &Output, block_size: i64) -> Output {
    space_to_depth_with(input, block_size, SpaceToDepthOptions::default())
}

/// [`space_to_depth()`] with other attributes.
#[inline]
#[track_caller]
pub fn space_to_depth_with(
    input: &Output,
    block_size: i64,
    options: SpaceToDepthOptions<'_>,
) -> Output {
    input
        .graph()
        .op("SpaceToDepth")
        .input(input)
        .attr("block_size", block_size)
        .attr("data_format", options.data_format)
        .output()
}

/// The attributes of [`sparse_bincount_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseBincountOptions {
    /// `binary_output`: bool, `false` by default.
    pub binary_output: bool,
}

impl Default for SparseBincountOptions {
    fn default() -> Self {
        SparseBincountOptions { binary_output: false }
    }
}

/// `SparseBincount`: How often each integer below `size` occurs in a sparse vector, or each row of
/// a matrix.
#[inline]
#[track_caller]
pub fn sparse_bincount(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
    size: &Output,
    weights: &Output,
) -> Output {
    sparse_bincount_with(
        indices,
        values,
        dense_shape,
        size,
        weights,
        SparseBincountOptions::default(),
    )
}

/// [`sparse_bincount()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_bincount_with(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
    size: &Output,
    weights: &Output,
    options: SparseBincountOptions,
) -> Output {
    indices
        .graph()
        .op("SparseBincount")
        .input(indices)
        .input(values)
        .input(dense_shape)
        .input(size)
        .input(weights)
        .attr("binary_output", options.binary_output)
        .output()
}

/// `Split`: Splits a tensor into equal parts along a dimension.
#[inline]
#[track_caller]
pub fn split(split_dim: &Output, value: &Output, num_split: i64) -> Vec<Output> {
    split_dim
        .graph()
        .op("Split")
        .input(split_dim)
        .input(value)
        .attr("num_split", num_split)
        .list_outputs()
}

/// `SplitV`: Splits a tensor into parts of the given sizes along a dimension.
#[inline]
#[track_caller]
pub fn split_v(
    value: &Output,
    size_splits: &Output,
    split_dim: &Output,
    num_split: i64,
) -> Vec<Output> {
    value
        .graph()
        .op("SplitV")
        .input(value)
        .input(size_splits)
        .input(split_dim)
        .attr("num_split", num_split)
        .list_outputs()
}

/// The attributes of [`squeeze_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SqueezeOptions<'a> {
    /// `squeeze_dims`: list of ints, empty by default.
    pub squeeze_dims: &'a [i64],
}

impl Default for SqueezeOptions<'_> {
    fn default() -> Self {
        SqueezeOptions { squeeze_dims: &[] }
    }
}

/// `Squeeze`: Drops dimensions of size 1: those named, or all.
#[inline]
#[track_caller]
pub fn squeeze(input: &Output) -> Output {
    squeeze_with(input, SqueezeOptions::default())
}

/// [`squeeze()`] with other attributes.
#[inline]
#[track_caller]
pub fn squeeze_with(input: &Output, options: SqueezeOptions<'_>) -> Output {
    input
        .graph()
        .op("Squeeze")
        .input(input)
        .attr("squeeze_dims", list(options.squeeze_dims))
        .output()
}

/// `StopGradient`: Its input, which gradients do not flow through.
#[inline]
#[track_caller]
pub fn stop_gradient(input: &Output) -> Output {
    input.graph().op("StopGradient").input(input).output()
}

/// The attributes of [`strided_slice_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StridedSliceOptions {
    /// `begin_mask`: int, `0` by default.
    pub begin_mask: i64,
    /// `end_mask`: int, `0` by default.
    pub end_mask: i64,
    /// `ellipsis_mask`: int, `0` by default.
    pub ellipsis_mask: i64,
    /// `new_axis_mask`: int, `0` by default.
    pub new_axis_mask: i64,
    /// `shrink_axis_mask`: int, `0` by default.
    pub shrink_axis_mask: i64,
}

impl Default for StridedSliceOptions {
    fn default() -> Self {
        StridedSliceOptions {
            begin_mask: 0,
            end_mask: 0,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
        }
    }
}

/// `StridedSlice`: Every `strides`-th element from `begin` to before `end`, in each dimension.
#[inline]
#[track_caller]
pub fn strided_slice(input: &Output, begin: &Output, end: &Output, strides: &Output) -> Output {
    strided_slice_with(input, begin, end, strides, StridedSliceOptions::default())
}

/// [`strided_slice()`] with other attributes.
#[inline]
#[track_caller]
pub fn strided_slice_with(
    input: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    options: StridedSliceOptions,
) -> Output {
    input
        .graph()
        .op("StridedSlice")
        .input(input)
        .input(begin)
        .input(end)
        .input(strides)
        .attr("begin_mask", options.begin_mask)
        .attr("end_mask", options.end_mask)
        .attr("ellipsis_mask", options.ellipsis_mask)
        .attr("new_axis_mask", options.new_axis_mask)
        .attr("shrink_axis_mask", options.shrink_axis_mask)
        .output()
}

/// The attributes of [`strided_slice_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StridedSliceGradOptions {
    /// `begin_mask`: int, `0` by default.
    pub begin_mask: i64,
    /// `end_mask`: int, `0` by default.
    pub end_mask: i64,
    /// `ellipsis_mask`: int, `0` by default.
    pub ellipsis_mask: i64,
    /// `new_axis_mask`: int, `0` by default.
    pub new_axis_mask: i64,
    /// `shrink_axis_mask`: int, `0` by default.
    pub shrink_axis_mask: i64,
}

impl Default for StridedSliceGradOptions {
    fn default() -> Self {
        StridedSliceGradOptions {
            begin_mask: 0,
            end_mask: 0,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
        }
    }
}

/// `StridedSliceGrad`: Zeros of the given shape with `dy` where a StridedSlice would have taken it
/// from.
#[inline]
#[track_caller]
pub fn strided_slice_grad(
    shape: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    dy: &Output,
) -> Output {
    strided_slice_grad_with(shape, begin, end, strides, dy, StridedSliceGradOptions::default())
}

/// [`strided_slice_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn strided_slice_grad_with(
    shape: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    dy: &Output,
    options: StridedSliceGradOptions,
) -> Output {
    shape
        .graph()
        .op("StridedSliceGrad")
        .input(shape)
        .input(begin)
        .input(end)
        .input(strides)
        .input(dy)
        .attr("begin_mask", options.begin_mask)
        .attr("end_mask", options.end_mask)
        .attr("ellipsis_mask", options.ellipsis_mask)
        .attr("new_axis_mask", options.new_axis_mask)
        .attr("shrink_axis_mask", options.shrink_axis_mask)
        .output()
}

/// `TensorScatterAdd`: Its input with the updates added to the slices that indices name.
#[inline]
#[track_caller]
pub fn tensor_scatter_add(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.graph().op("TensorScatterAdd").input(tensor).input(indices).input(updates).output()
}

/// `TensorScatterMax`: Its input, with the larger of it and the updates in the slices that indices
/// name.
#[inline]
#[track_caller]
pub fn tensor_scatter_max(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.graph().op("TensorScatterMax").input(tensor).input(indices).input(updates).output()
}

/// `TensorScatterMin`: Its input, with the smaller of it and the updates in the slices that indices
/// name.
#[inline]
#[track_caller]
pub fn tensor_scatter_min(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.graph().op("TensorScatterMin").input(tensor).input(indices).input(updates).output()
}

/// `TensorScatterSub`: Its input with the updates subtracted from the slices that indices name.
#[inline]
#[track_caller]
pub fn tensor_scatter_sub(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.graph().op("TensorScatterSub").input(tensor).input(indices).input(updates).output()
}

/// `TensorScatterUpdate`: Its input with the slices that indices name replaced by the updates.
#[inline]
#[track_caller]
pub fn tensor_scatter_update(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.graph().op("TensorScatterUpdate").input(tensor).input(indices).input(updates).output()
}

/// The attributes of [`tensor_strided_slice_update_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TensorStridedSliceUpdateOptions {
    /// `begin_mask`: int, `0` by default.
    pub begin_mask: i64,
    /// `end_mask`: int, `0` by default.
    pub end_mask: i64,
    /// `ellipsis_mask`: int, `0` by default.
    pub ellipsis_mask: i64,
    /// `new_axis_mask`: int, `0` by default.
    pub new_axis_mask: i64,
    /// `shrink_axis_mask`: int, `0` by default.
    pub shrink_axis_mask: i64,
}

impl Default for TensorStridedSliceUpdateOptions {
    fn default() -> Self {
        TensorStridedSliceUpdateOptions {
            begin_mask: 0,
            end_mask: 0,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
        }
    }
}

/// `TensorStridedSliceUpdate`: Its input with a strided slice of it replaced by `value`.
#[inline]
#[track_caller]
pub fn tensor_strided_slice_update(
    input: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
) -> Output {
    tensor_strided_slice_update_with(
        input,
        begin,
        end,
        strides,
        value,
        TensorStridedSliceUpdateOptions::default(),
    )
}

/// [`tensor_strided_slice_update()`] with other attributes.
#[inline]
#[track_caller]
pub fn tensor_strided_slice_update_with(
    input: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
    options: TensorStridedSliceUpdateOptions,
) -> Output {
    input
        .graph()
        .op("TensorStridedSliceUpdate")
        .input(input)
        .input(begin)
        .input(end)
        .input(strides)
        .input(value)
        .attr("begin_mask", options.begin_mask)
        .attr("end_mask", options.end_mask)
        .attr("ellipsis_mask", options.ellipsis_mask)
        .attr("new_axis_mask", options.new_axis_mask)
        .attr("shrink_axis_mask", options.shrink_axis_mask)
        .output()
}

/// `Tile`: Repeats a tensor, in each dimension as often as `multiples` says.
#[inline]
#[track_caller]
pub fn tile(input: &Output, multiples: &Output) -> Output {
    input.graph().op("Tile").input(input).input(multiples).output()
}

/// `TileGrad`: The sum of the tiles of a tensor.
#[inline]
#[track_caller]
pub fn tile_grad(input: &Output, multiples: &Output) -> Output {
    input.graph().op("TileGrad").input(input).input(multiples).output()
}

/// The attributes of [`top_k_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TopKOptions {
    /// `sorted`: bool, `true` by default.
    pub sorted: bool,
}

impl Default for TopKOptions {
    fn default() -> Self {
        TopKOptions { sorted: true }
    }
}

/// `TopK`: The `k` largest elements of each row, and where they are.
///
/// Returns (`values`, `indices`).
#[inline]
#[track_caller]
pub fn top_k(input: &Output, k: i64) -> (Output, Output) {
    top_k_with(input, k, TopKOptions::default())
}

/// [`top_k()`] with other attributes.
#[inline]
#[track_caller]
pub fn top_k_with(input: &Output, k: i64, options: TopKOptions) -> (Output, Output) {
    let [values, indices] =
        input.graph().op("TopK").input(input).attr("k", k).attr("sorted", options.sorted).split();
    (values, indices)
}

/// The attributes of [`top_k_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TopKV2Options {
    /// `sorted`: bool, `true` by default.
    pub sorted: bool,
    /// `index_type`: type, `Int32` by default.
    pub index_type: DType,
}

impl Default for TopKV2Options {
    fn default() -> Self {
        TopKV2Options { sorted: true, index_type: DType::Int32 }
    }
}

/// `TopKV2`: The `k` largest elements of each row, and where they are.
///
/// Returns (`values`, `indices`).
#[inline]
#[track_caller]
pub fn top_k_v2(input: &Output, k: &Output) -> (Output, Output) {
    top_k_v2_with(input, k, TopKV2Options::default())
}

/// [`top_k_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn top_k_v2_with(input: &Output, k: &Output, options: TopKV2Options) -> (Output, Output) {
    let [values, indices] = input
        .graph()
        .op("TopKV2")
        .input(input)
        .input(k)
        .attr("sorted", options.sorted)
        .attr("index_type", options.index_type)
        .split();
    (values, indices)
}

/// `Transpose`: Puts the dimensions of a tensor in another order.
#[inline]
#[track_caller]
pub fn transpose(x: &Output, perm: &Output) -> Output {
    x.graph().op("Transpose").input(x).input(perm).output()
}

/// The attributes of [`unique_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniqueOptions {
    /// `out_idx`: type, `Int32` by default.
    pub out_idx: DType,
}

impl Default for UniqueOptions {
    fn default() -> Self {
        UniqueOptions { out_idx: DType::Int32 }
    }
}

/// `Unique`: The distinct elements of a vector, and which of them each element is.
///
/// Returns (`y`, `idx`).
#[inline]
#[track_caller]
pub fn unique(x: &Output) -> (Output, Output) {
    unique_with(x, UniqueOptions::default())
}

/// [`unique()`] with other attributes.
#[inline]
#[track_caller]
pub fn unique_with(x: &Output, options: UniqueOptions) -> (Output, Output) {
    let [y, idx] = x.graph().op("Unique").input(x).attr("out_idx", options.out_idx).split();
    (y, idx)
}

/// The attributes of [`unique_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniqueV2Options {
    /// `out_idx`: type, `Int32` by default.
    pub out_idx: DType,
}

impl Default for UniqueV2Options {
    fn default() -> Self {
        UniqueV2Options { out_idx: DType::Int32 }
    }
}

/// `UniqueV2`: The distinct slices of a tensor along an axis, and which of them each slice is.
///
/// Returns (`y`, `idx`).
#[inline]
#[track_caller]
pub fn unique_v2(x: &Output, axis: &Output) -> (Output, Output) {
    unique_v2_with(x, axis, UniqueV2Options::default())
}

/// [`unique_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn unique_v2_with(x: &Output, axis: &Output, options: UniqueV2Options) -> (Output, Output) {
    let [y, idx] =
        x.graph().op("UniqueV2").input(x).input(axis).attr("out_idx", options.out_idx).split();
    (y, idx)
}

/// The attributes of [`unique_with_counts_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniqueWithCountsOptions {
    /// `out_idx`: type, `Int32` by default.
    pub out_idx: DType,
}

impl Default for UniqueWithCountsOptions {
    fn default() -> Self {
        UniqueWithCountsOptions { out_idx: DType::Int32 }
    }
}

/// `UniqueWithCounts`: The distinct elements of a vector, which of them each element is, and how
/// often.
///
/// Returns (`y`, `idx`, `count`).
#[inline]
#[track_caller]
pub fn unique_with_counts(x: &Output) -> (Output, Output, Output) {
    unique_with_counts_with(x, UniqueWithCountsOptions::default())
}

/// [`unique_with_counts()`] with other attributes.
#[inline]
#[track_caller]
pub fn unique_with_counts_with(
    x: &Output,
    options: UniqueWithCountsOptions,
) -> (Output, Output, Output) {
    let [y, idx, count] =
        x.graph().op("UniqueWithCounts").input(x).attr("out_idx", options.out_idx).split();
    (y, idx, count)
}

/// The attributes of [`unique_with_counts_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniqueWithCountsV2Options {
    /// `out_idx`: type, `Int32` by default.
    pub out_idx: DType,
}

impl Default for UniqueWithCountsV2Options {
    fn default() -> Self {
        UniqueWithCountsV2Options { out_idx: DType::Int32 }
    }
}

/// `UniqueWithCountsV2`: The distinct slices of a tensor along an axis, which each slice is, and
/// how often.
///
/// Returns (`y`, `idx`, `count`).
#[inline]
#[track_caller]
pub fn unique_with_counts_v2(x: &Output, axis: &Output) -> (Output, Output, Output) {
    unique_with_counts_v2_with(x, axis, UniqueWithCountsV2Options::default())
}

/// [`unique_with_counts_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn unique_with_counts_v2_with(
    x: &Output,
    axis: &Output,
    options: UniqueWithCountsV2Options,
) -> (Output, Output, Output) {
    let [y, idx, count] = x
        .graph()
        .op("UniqueWithCountsV2")
        .input(x)
        .input(axis)
        .attr("out_idx", options.out_idx)
        .split();
    (y, idx, count)
}

/// The attributes of [`unpack_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// `axis`: int, `0` by default.
    pub axis: i64,
}

impl Default for UnpackOptions {
    fn default() -> Self {
        UnpackOptions { axis: 0 }
    }
}

/// `Unpack`: Takes a tensor apart along a dimension, which the parts do not have.
#[inline]
#[track_caller]
pub fn unpack(value: &Output, num: i64) -> Vec<Output> {
    unpack_with(value, num, UnpackOptions::default())
}

/// [`unpack()`] with other attributes.
#[inline]
#[track_caller]
pub fn unpack_with(value: &Output, num: i64, options: UnpackOptions) -> Vec<Output> {
    value
        .graph()
        .op("Unpack")
        .input(value)
        .attr("num", num)
        .attr("axis", options.axis)
        .list_outputs()
}

/// `UnravelIndex`: The coordinates of elements given by their place in row-major order.
#[inline]
#[track_caller]
pub fn unravel_index(indices: &Output, dims: &Output) -> Output {
    indices.graph().op("UnravelIndex").input(indices).input(dims).output()
}

/// The attributes of [`upper_bound_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UpperBoundOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for UpperBoundOptions {
    fn default() -> Self {
        UpperBoundOptions { out_type: DType::Int32 }
    }
}

/// `UpperBound`: How many elements of a sorted row are not greater than each value.
#[inline]
#[track_caller]
pub fn upper_bound(sorted_inputs: &Output, values: &Output) -> Output {
    upper_bound_with(sorted_inputs, values, UpperBoundOptions::default())
}

/// [`upper_bound()`] with other attributes.
#[inline]
#[track_caller]
pub fn upper_bound_with(
    sorted_inputs: &Output,
    values: &Output,
    options: UpperBoundOptions,
) -> Output {
    sorted_inputs
        .graph()
        .op("UpperBound")
        .input(sorted_inputs)
        .input(values)
        .attr("out_type", options.out_type)
        .output()
}

/// `Where`: Where a tensor is true, or not zero: one row of coordinates for each such element.
#[inline]
#[track_caller]
pub fn where_(input: &Output) -> Output {
    input.graph().op("Where").input(input).output()
}

/// `ZerosLike`: Zeros in the shape of its input.
#[inline]
#[track_caller]
pub fn zeros_like(x: &Output) -> Output {
    x.graph().op("ZerosLike").input(x).output()
}
