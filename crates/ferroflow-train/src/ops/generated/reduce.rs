//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`all_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AllOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for AllOptions {
    fn default() -> Self {
        AllOptions { keep_dims: false }
    }
}

/// `All`: Whether all elements over the given dimensions are true.
#[inline]
#[track_caller]
pub fn all(input: &Output, reduction_indices: &Output) -> Output {
    all_with(input, reduction_indices, AllOptions::default())
}

/// [`all()`] with other attributes.
#[inline]
#[track_caller]
pub fn all_with(input: &Output, reduction_indices: &Output, options: AllOptions) -> Output {
    input
        .graph()
        .op("All")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`any_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AnyOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for AnyOptions {
    fn default() -> Self {
        AnyOptions { keep_dims: false }
    }
}

/// `Any`: Whether some element over the given dimensions is true.
#[inline]
#[track_caller]
pub fn any(input: &Output, reduction_indices: &Output) -> Output {
    any_with(input, reduction_indices, AnyOptions::default())
}

/// [`any()`] with other attributes.
#[inline]
#[track_caller]
pub fn any_with(input: &Output, reduction_indices: &Output, options: AnyOptions) -> Output {
    input
        .graph()
        .op("Any")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`arg_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ArgMaxOptions {
    /// `output_type`: type, `Int64` by default.
    pub output_type: DType,
}

impl Default for ArgMaxOptions {
    fn default() -> Self {
        ArgMaxOptions { output_type: DType::Int64 }
    }
}

/// `ArgMax`: Position of the largest element along a dimension.
#[inline]
#[track_caller]
pub fn arg_max(input: &Output, dimension: &Output) -> Output {
    arg_max_with(input, dimension, ArgMaxOptions::default())
}

/// [`arg_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn arg_max_with(input: &Output, dimension: &Output, options: ArgMaxOptions) -> Output {
    input
        .graph()
        .op("ArgMax")
        .input(input)
        .input(dimension)
        .attr("output_type", options.output_type)
        .output()
}

/// The attributes of [`arg_min_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ArgMinOptions {
    /// `output_type`: type, `Int64` by default.
    pub output_type: DType,
}

impl Default for ArgMinOptions {
    fn default() -> Self {
        ArgMinOptions { output_type: DType::Int64 }
    }
}

/// `ArgMin`: Position of the smallest element along a dimension.
#[inline]
#[track_caller]
pub fn arg_min(input: &Output, dimension: &Output) -> Output {
    arg_min_with(input, dimension, ArgMinOptions::default())
}

/// [`arg_min()`] with other attributes.
#[inline]
#[track_caller]
pub fn arg_min_with(input: &Output, dimension: &Output, options: ArgMinOptions) -> Output {
    input
        .graph()
        .op("ArgMin")
        .input(input)
        .input(dimension)
        .attr("output_type", options.output_type)
        .output()
}

/// The attributes of [`cumprod_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CumprodOptions {
    /// `exclusive`: bool, `false` by default.
    pub exclusive: bool,
    /// `reverse`: bool, `false` by default.
    pub reverse: bool,
}

impl Default for CumprodOptions {
    fn default() -> Self {
        CumprodOptions { exclusive: false, reverse: false }
    }
}

/// `Cumprod`: Running product along a dimension.
#[inline]
#[track_caller]
pub fn cumprod(x: &Output, axis: &Output) -> Output {
    cumprod_with(x, axis, CumprodOptions::default())
}

/// [`cumprod()`] with other attributes.
#[inline]
#[track_caller]
pub fn cumprod_with(x: &Output, axis: &Output, options: CumprodOptions) -> Output {
    x.graph()
        .op("Cumprod")
        .input(x)
        .input(axis)
        .attr("exclusive", options.exclusive)
        .attr("reverse", options.reverse)
        .output()
}

/// The attributes of [`cumsum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CumsumOptions {
    /// `exclusive`: bool, `false` by default.
    pub exclusive: bool,
    /// `reverse`: bool, `false` by default.
    pub reverse: bool,
}

impl Default for CumsumOptions {
    fn default() -> Self {
        CumsumOptions { exclusive: false, reverse: false }
    }
}

/// `Cumsum`: Running sum along a dimension.
#[inline]
#[track_caller]
pub fn cumsum(x: &Output, axis: &Output) -> Output {
    cumsum_with(x, axis, CumsumOptions::default())
}

/// [`cumsum()`] with other attributes.
#[inline]
#[track_caller]
pub fn cumsum_with(x: &Output, axis: &Output, options: CumsumOptions) -> Output {
    x.graph()
        .op("Cumsum")
        .input(x)
        .input(axis)
        .attr("exclusive", options.exclusive)
        .attr("reverse", options.reverse)
        .output()
}

/// The attributes of [`cumulative_logsumexp_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CumulativeLogsumexpOptions {
    /// `exclusive`: bool, `false` by default.
    pub exclusive: bool,
    /// `reverse`: bool, `false` by default.
    pub reverse: bool,
}

impl Default for CumulativeLogsumexpOptions {
    fn default() -> Self {
        CumulativeLogsumexpOptions { exclusive: false, reverse: false }
    }
}

/// `CumulativeLogsumexp`: Logarithm of the running sum of exponentials along a dimension.
#[inline]
#[track_caller]
pub fn cumulative_logsumexp(x: &Output, axis: &Output) -> Output {
    cumulative_logsumexp_with(x, axis, CumulativeLogsumexpOptions::default())
}

/// [`cumulative_logsumexp()`] with other attributes.
#[inline]
#[track_caller]
pub fn cumulative_logsumexp_with(
    x: &Output,
    axis: &Output,
    options: CumulativeLogsumexpOptions,
) -> Output {
    x.graph()
        .op("CumulativeLogsumexp")
        .input(x)
        .input(axis)
        .attr("exclusive", options.exclusive)
        .attr("reverse", options.reverse)
        .output()
}

/// The attributes of [`euclidean_norm_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EuclideanNormOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for EuclideanNormOptions {
    fn default() -> Self {
        EuclideanNormOptions { keep_dims: false }
    }
}

/// `EuclideanNorm`: Root of the sum of squares over the given dimensions.
#[inline]
#[track_caller]
pub fn euclidean_norm(input: &Output, reduction_indices: &Output) -> Output {
    euclidean_norm_with(input, reduction_indices, EuclideanNormOptions::default())
}

/// [`euclidean_norm()`] with other attributes.
#[inline]
#[track_caller]
pub fn euclidean_norm_with(
    input: &Output,
    reduction_indices: &Output,
    options: EuclideanNormOptions,
) -> Output {
    input
        .graph()
        .op("EuclideanNorm")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MaxOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for MaxOptions {
    fn default() -> Self {
        MaxOptions { keep_dims: false }
    }
}

/// `Max`: Largest element over the given dimensions; NaN if any is.
#[inline]
#[track_caller]
pub fn max(input: &Output, reduction_indices: &Output) -> Output {
    max_with(input, reduction_indices, MaxOptions::default())
}

/// [`max()`] with other attributes.
#[inline]
#[track_caller]
pub fn max_with(input: &Output, reduction_indices: &Output, options: MaxOptions) -> Output {
    input
        .graph()
        .op("Max")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`mean_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MeanOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for MeanOptions {
    fn default() -> Self {
        MeanOptions { keep_dims: false }
    }
}

/// `Mean`: Mean over the given dimensions; integers truncate.
#[inline]
#[track_caller]
pub fn mean(input: &Output, reduction_indices: &Output) -> Output {
    mean_with(input, reduction_indices, MeanOptions::default())
}

/// [`mean()`] with other attributes.
#[inline]
#[track_caller]
pub fn mean_with(input: &Output, reduction_indices: &Output, options: MeanOptions) -> Output {
    input
        .graph()
        .op("Mean")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`min_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MinOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for MinOptions {
    fn default() -> Self {
        MinOptions { keep_dims: false }
    }
}

/// `Min`: Smallest element over the given dimensions; NaN if any is.
#[inline]
#[track_caller]
pub fn min(input: &Output, reduction_indices: &Output) -> Output {
    min_with(input, reduction_indices, MinOptions::default())
}

/// [`min()`] with other attributes.
#[inline]
#[track_caller]
pub fn min_with(input: &Output, reduction_indices: &Output, options: MinOptions) -> Output {
    input
        .graph()
        .op("Min")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`prod_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ProdOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for ProdOptions {
    fn default() -> Self {
        ProdOptions { keep_dims: false }
    }
}

/// `Prod`: Product over the given dimensions.
#[inline]
#[track_caller]
pub fn prod(input: &Output, reduction_indices: &Output) -> Output {
    prod_with(input, reduction_indices, ProdOptions::default())
}

/// [`prod()`] with other attributes.
#[inline]
#[track_caller]
pub fn prod_with(input: &Output, reduction_indices: &Output, options: ProdOptions) -> Output {
    input
        .graph()
        .op("Prod")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// `SegmentMax`: Largest of the rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn segment_max(data: &Output, segment_ids: &Output) -> Output {
    data.graph().op("SegmentMax").input(data).input(segment_ids).output()
}

/// `SegmentMean`: Mean of the rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn segment_mean(data: &Output, segment_ids: &Output) -> Output {
    data.graph().op("SegmentMean").input(data).input(segment_ids).output()
}

/// `SegmentMin`: Smallest of the rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn segment_min(data: &Output, segment_ids: &Output) -> Output {
    data.graph().op("SegmentMin").input(data).input(segment_ids).output()
}

/// `SegmentProd`: Product of the rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn segment_prod(data: &Output, segment_ids: &Output) -> Output {
    data.graph().op("SegmentProd").input(data).input(segment_ids).output()
}

/// `SegmentSum`: Sum of the rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn segment_sum(data: &Output, segment_ids: &Output) -> Output {
    data.graph().op("SegmentSum").input(data).input(segment_ids).output()
}

/// The attributes of [`sparse_segment_mean_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentMeanOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentMeanOptions {
    fn default() -> Self {
        SparseSegmentMeanOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentMean`: Mean of gathered rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn sparse_segment_mean(data: &Output, indices: &Output, segment_ids: &Output) -> Output {
    sparse_segment_mean_with(data, indices, segment_ids, SparseSegmentMeanOptions::default())
}

/// [`sparse_segment_mean()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_mean_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    options: SparseSegmentMeanOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentMean")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// `SparseSegmentMeanGrad`: Gradient of SparseSegmentMean.
#[inline]
#[track_caller]
pub fn sparse_segment_mean_grad(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    output_dim0: &Output,
) -> Output {
    grad.graph()
        .op("SparseSegmentMeanGrad")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(output_dim0)
        .output()
}

/// `SparseSegmentMeanGradV2`: Gradient of SparseSegmentMean, of the gathered rows only.
///
/// Returns (`output`, `sorted_unique_indices`).
#[inline]
#[track_caller]
pub fn sparse_segment_mean_grad_v2(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    dense_output_dim0: &Output,
) -> (Output, Output) {
    let [output, sorted_unique_indices] = grad
        .graph()
        .op("SparseSegmentMeanGradV2")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(dense_output_dim0)
        .split();
    (output, sorted_unique_indices)
}

/// The attributes of [`sparse_segment_mean_with_num_segments_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentMeanWithNumSegmentsOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentMeanWithNumSegmentsOptions {
    fn default() -> Self {
        SparseSegmentMeanWithNumSegmentsOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentMeanWithNumSegments`: Mean of gathered rows with the same id, for a number of
/// segments.
#[inline]
#[track_caller]
pub fn sparse_segment_mean_with_num_segments(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
) -> Output {
    sparse_segment_mean_with_num_segments_with(
        data,
        indices,
        segment_ids,
        num_segments,
        SparseSegmentMeanWithNumSegmentsOptions::default(),
    )
}

/// [`sparse_segment_mean_with_num_segments()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_mean_with_num_segments_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
    options: SparseSegmentMeanWithNumSegmentsOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentMeanWithNumSegments")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .input(num_segments)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// The attributes of [`sparse_segment_sqrt_n_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentSqrtNOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentSqrtNOptions {
    fn default() -> Self {
        SparseSegmentSqrtNOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentSqrtN`: Sum, divided by the root of their number, of gathered rows with the same
/// id; ids are sorted.
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n(data: &Output, indices: &Output, segment_ids: &Output) -> Output {
    sparse_segment_sqrt_n_with(data, indices, segment_ids, SparseSegmentSqrtNOptions::default())
}

/// [`sparse_segment_sqrt_n()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    options: SparseSegmentSqrtNOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentSqrtN")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// `SparseSegmentSqrtNGrad`: Gradient of SparseSegmentSqrtN.
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n_grad(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    output_dim0: &Output,
) -> Output {
    grad.graph()
        .op("SparseSegmentSqrtNGrad")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(output_dim0)
        .output()
}

/// `SparseSegmentSqrtNGradV2`: Gradient of SparseSegmentSqrtN, of the gathered rows only.
///
/// Returns (`output`, `sorted_unique_indices`).
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n_grad_v2(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    dense_output_dim0: &Output,
) -> (Output, Output) {
    let [output, sorted_unique_indices] = grad
        .graph()
        .op("SparseSegmentSqrtNGradV2")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(dense_output_dim0)
        .split();
    (output, sorted_unique_indices)
}

/// The attributes of [`sparse_segment_sqrt_n_with_num_segments_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentSqrtNWithNumSegmentsOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentSqrtNWithNumSegmentsOptions {
    fn default() -> Self {
        SparseSegmentSqrtNWithNumSegmentsOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentSqrtNWithNumSegments`: Sum, divided by the root of their number, of gathered rows
/// with the same id, for a number of segments.
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n_with_num_segments(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
) -> Output {
    sparse_segment_sqrt_n_with_num_segments_with(
        data,
        indices,
        segment_ids,
        num_segments,
        SparseSegmentSqrtNWithNumSegmentsOptions::default(),
    )
}

/// [`sparse_segment_sqrt_n_with_num_segments()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_sqrt_n_with_num_segments_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
    options: SparseSegmentSqrtNWithNumSegmentsOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentSqrtNWithNumSegments")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .input(num_segments)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// The attributes of [`sparse_segment_sum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentSumOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentSumOptions {
    fn default() -> Self {
        SparseSegmentSumOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentSum`: Sum of gathered rows with the same id; ids are sorted.
#[inline]
#[track_caller]
pub fn sparse_segment_sum(data: &Output, indices: &Output, segment_ids: &Output) -> Output {
    sparse_segment_sum_with(data, indices, segment_ids, SparseSegmentSumOptions::default())
}

/// [`sparse_segment_sum()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_sum_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    options: SparseSegmentSumOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentSum")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// `SparseSegmentSumGrad`: Gradient of SparseSegmentSum.
#[inline]
#[track_caller]
pub fn sparse_segment_sum_grad(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    output_dim0: &Output,
) -> Output {
    grad.graph()
        .op("SparseSegmentSumGrad")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(output_dim0)
        .output()
}

/// `SparseSegmentSumGradV2`: Gradient of SparseSegmentSum, of the gathered rows only.
///
/// Returns (`output`, `sorted_unique_indices`).
#[inline]
#[track_caller]
pub fn sparse_segment_sum_grad_v2(
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    dense_output_dim0: &Output,
) -> (Output, Output) {
    let [output, sorted_unique_indices] = grad
        .graph()
        .op("SparseSegmentSumGradV2")
        .input(grad)
        .input(indices)
        .input(segment_ids)
        .input(dense_output_dim0)
        .split();
    (output, sorted_unique_indices)
}

/// The attributes of [`sparse_segment_sum_with_num_segments_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseSegmentSumWithNumSegmentsOptions {
    /// `sparse_gradient`: bool, `false` by default.
    pub sparse_gradient: bool,
}

impl Default for SparseSegmentSumWithNumSegmentsOptions {
    fn default() -> Self {
        SparseSegmentSumWithNumSegmentsOptions { sparse_gradient: false }
    }
}

/// `SparseSegmentSumWithNumSegments`: Sum of gathered rows with the same id, for a number of
/// segments.
#[inline]
#[track_caller]
pub fn sparse_segment_sum_with_num_segments(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
) -> Output {
    sparse_segment_sum_with_num_segments_with(
        data,
        indices,
        segment_ids,
        num_segments,
        SparseSegmentSumWithNumSegmentsOptions::default(),
    )
}

/// [`sparse_segment_sum_with_num_segments()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_segment_sum_with_num_segments_with(
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
    options: SparseSegmentSumWithNumSegmentsOptions,
) -> Output {
    data.graph()
        .op("SparseSegmentSumWithNumSegments")
        .input(data)
        .input(indices)
        .input(segment_ids)
        .input(num_segments)
        .attr("sparse_gradient", options.sparse_gradient)
        .output()
}

/// The attributes of [`sum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SumOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for SumOptions {
    fn default() -> Self {
        SumOptions { keep_dims: false }
    }
}

/// `Sum`: Sum over the given dimensions.
#[inline]
#[track_caller]
pub fn sum(input: &Output, reduction_indices: &Output) -> Output {
    sum_with(input, reduction_indices, SumOptions::default())
}

/// [`sum()`] with other attributes.
#[inline]
#[track_caller]
pub fn sum_with(input: &Output, reduction_indices: &Output, options: SumOptions) -> Output {
    input
        .graph()
        .op("Sum")
        .input(input)
        .input(reduction_indices)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// `UnsortedSegmentMax`: Largest of the rows with the same id; negative ids are left out.
#[inline]
#[track_caller]
pub fn unsorted_segment_max(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    data.graph()
        .op("UnsortedSegmentMax")
        .input(data)
        .input(segment_ids)
        .input(num_segments)
        .output()
}

/// `UnsortedSegmentMin`: Smallest of the rows with the same id; negative ids are left out.
#[inline]
#[track_caller]
pub fn unsorted_segment_min(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    data.graph()
        .op("UnsortedSegmentMin")
        .input(data)
        .input(segment_ids)
        .input(num_segments)
        .output()
}

/// `UnsortedSegmentProd`: Product of the rows with the same id; negative ids are left out.
#[inline]
#[track_caller]
pub fn unsorted_segment_prod(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    data.graph()
        .op("UnsortedSegmentProd")
        .input(data)
        .input(segment_ids)
        .input(num_segments)
        .output()
}

/// `UnsortedSegmentSum`: Sum of the rows with the same id; negative ids are left out.
#[inline]
#[track_caller]
pub fn unsorted_segment_sum(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    data.graph()
        .op("UnsortedSegmentSum")
        .input(data)
        .input(segment_ids)
        .input(num_segments)
        .output()
}
