//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`add_many_sparse_to_tensors_map_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AddManySparseToTensorsMapOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for AddManySparseToTensorsMapOptions<'_> {
    fn default() -> Self {
        AddManySparseToTensorsMapOptions { container: "", shared_name: "" }
    }
}

/// `AddManySparseToTensorsMap`: Keeps the rows of a sparse tensor; gives their numbers.
#[inline]
#[track_caller]
pub fn add_many_sparse_to_tensors_map(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
) -> Output {
    add_many_sparse_to_tensors_map_with(
        sparse_indices,
        sparse_values,
        sparse_shape,
        AddManySparseToTensorsMapOptions::default(),
    )
}

/// [`add_many_sparse_to_tensors_map()`] with other attributes.
#[inline]
#[track_caller]
pub fn add_many_sparse_to_tensors_map_with(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
    options: AddManySparseToTensorsMapOptions<'_>,
) -> Output {
    sparse_indices
        .graph()
        .op("AddManySparseToTensorsMap")
        .input(sparse_indices)
        .input(sparse_values)
        .input(sparse_shape)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`add_sparse_to_tensors_map_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AddSparseToTensorsMapOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for AddSparseToTensorsMapOptions<'_> {
    fn default() -> Self {
        AddSparseToTensorsMapOptions { container: "", shared_name: "" }
    }
}

/// `AddSparseToTensorsMap`: Keeps a sparse tensor; gives its number.
#[inline]
#[track_caller]
pub fn add_sparse_to_tensors_map(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
) -> Output {
    add_sparse_to_tensors_map_with(
        sparse_indices,
        sparse_values,
        sparse_shape,
        AddSparseToTensorsMapOptions::default(),
    )
}

/// [`add_sparse_to_tensors_map()`] with other attributes.
#[inline]
#[track_caller]
pub fn add_sparse_to_tensors_map_with(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
    options: AddSparseToTensorsMapOptions<'_>,
) -> Output {
    sparse_indices
        .graph()
        .op("AddSparseToTensorsMap")
        .input(sparse_indices)
        .input(sparse_values)
        .input(sparse_shape)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `CSRSparseMatrixComponents`: Row pointers, columns and values of a sparse matrix of a batch.
///
/// Returns (`row_ptrs`, `col_inds`, `values`).
#[inline]
#[track_caller]
pub fn csr_sparse_matrix_components(
    csr_sparse_matrix: &Output,
    index: &Output,
    type_: DType,
) -> (Output, Output, Output) {
    let [row_ptrs, col_inds, values] = csr_sparse_matrix
        .graph()
        .op("CSRSparseMatrixComponents")
        .input(csr_sparse_matrix)
        .input(index)
        .attr("type", type_)
        .split();
    (row_ptrs, col_inds, values)
}

/// `CSRSparseMatrixToDense`: The dense form of a sparse matrix.
#[inline]
#[track_caller]
pub fn csr_sparse_matrix_to_dense(sparse_input: &Output, type_: DType) -> Output {
    sparse_input
        .graph()
        .op("CSRSparseMatrixToDense")
        .input(sparse_input)
        .attr("type", type_)
        .output()
}

/// `CSRSparseMatrixToSparseTensor`: The sparse tensor of a sparse matrix by compressed rows.
///
/// Returns (`indices`, `values`, `dense_shape`).
#[inline]
#[track_caller]
pub fn csr_sparse_matrix_to_sparse_tensor(
    sparse_matrix: &Output,
    type_: DType,
) -> (Output, Output, Output) {
    let [indices, values, dense_shape] = sparse_matrix
        .graph()
        .op("CSRSparseMatrixToSparseTensor")
        .input(sparse_matrix)
        .attr("type", type_)
        .split();
    (indices, values, dense_shape)
}

/// The attributes of [`dense_count_sparse_output_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DenseCountSparseOutputOptions {
    /// `minlength`: int, `-1` by default.
    pub minlength: i64,
    /// `maxlength`: int, `-1` by default.
    pub maxlength: i64,
}

impl Default for DenseCountSparseOutputOptions {
    fn default() -> Self {
        DenseCountSparseOutputOptions { minlength: -1, maxlength: -1 }
    }
}

/// `DenseCountSparseOutput`: How often each number occurs in a row.
///
/// Returns (`output_indices`, `output_values`, `output_dense_shape`).
#[inline]
#[track_caller]
pub fn dense_count_sparse_output(
    values: &Output,
    weights: &Output,
    binary_output: bool,
) -> (Output, Output, Output) {
    dense_count_sparse_output_with(
        values,
        weights,
        binary_output,
        DenseCountSparseOutputOptions::default(),
    )
}

/// [`dense_count_sparse_output()`] with other attributes.
#[inline]
#[track_caller]
pub fn dense_count_sparse_output_with(
    values: &Output,
    weights: &Output,
    binary_output: bool,
    options: DenseCountSparseOutputOptions,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_dense_shape] = values
        .graph()
        .op("DenseCountSparseOutput")
        .input(values)
        .input(weights)
        .attr("binary_output", binary_output)
        .attr("minlength", options.minlength)
        .attr("maxlength", options.maxlength)
        .split();
    (output_indices, output_values, output_dense_shape)
}

/// `DenseToCSRSparseMatrix`: A sparse matrix by compressed rows of the elements of a dense one at
/// `indices`.
#[inline]
#[track_caller]
pub fn dense_to_csr_sparse_matrix(dense_input: &Output, indices: &Output) -> Output {
    dense_input.graph().op("DenseToCSRSparseMatrix").input(dense_input).input(indices).output()
}

/// The attributes of [`dense_to_dense_set_operation_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DenseToDenseSetOperationOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for DenseToDenseSetOperationOptions {
    fn default() -> Self {
        DenseToDenseSetOperationOptions { validate_indices: true }
    }
}

/// `DenseToDenseSetOperation`: A set operation on each pair of rows.
///
/// Returns (`result_indices`, `result_values`, `result_shape`).
#[inline]
#[track_caller]
pub fn dense_to_dense_set_operation(
    set1: &Output,
    set2: &Output,
    set_operation: &str,
) -> (Output, Output, Output) {
    dense_to_dense_set_operation_with(
        set1,
        set2,
        set_operation,
        DenseToDenseSetOperationOptions::default(),
    )
}

/// [`dense_to_dense_set_operation()`] with other attributes.
#[inline]
#[track_caller]
pub fn dense_to_dense_set_operation_with(
    set1: &Output,
    set2: &Output,
    set_operation: &str,
    options: DenseToDenseSetOperationOptions,
) -> (Output, Output, Output) {
    let [result_indices, result_values, result_shape] = set1
        .graph()
        .op("DenseToDenseSetOperation")
        .input(set1)
        .input(set2)
        .attr("set_operation", set_operation)
        .attr("validate_indices", options.validate_indices)
        .split();
    (result_indices, result_values, result_shape)
}

/// The attributes of [`dense_to_sparse_set_operation_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DenseToSparseSetOperationOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for DenseToSparseSetOperationOptions {
    fn default() -> Self {
        DenseToSparseSetOperationOptions { validate_indices: true }
    }
}

/// `DenseToSparseSetOperation`: A set operation on each pair of rows, the second ones sparse.
///
/// Returns (`result_indices`, `result_values`, `result_shape`).
#[inline]
#[track_caller]
pub fn dense_to_sparse_set_operation(
    set1: &Output,
    set2_indices: &Output,
    set2_values: &Output,
    set2_shape: &Output,
    set_operation: &str,
) -> (Output, Output, Output) {
    dense_to_sparse_set_operation_with(
        set1,
        set2_indices,
        set2_values,
        set2_shape,
        set_operation,
        DenseToSparseSetOperationOptions::default(),
    )
}

/// [`dense_to_sparse_set_operation()`] with other attributes.
#[inline]
#[track_caller]
pub fn dense_to_sparse_set_operation_with(
    set1: &Output,
    set2_indices: &Output,
    set2_values: &Output,
    set2_shape: &Output,
    set_operation: &str,
    options: DenseToSparseSetOperationOptions,
) -> (Output, Output, Output) {
    let [result_indices, result_values, result_shape] = set1
        .graph()
        .op("DenseToSparseSetOperation")
        .input(set1)
        .input(set2_indices)
        .input(set2_values)
        .input(set2_shape)
        .attr("set_operation", set_operation)
        .attr("validate_indices", options.validate_indices)
        .split();
    (result_indices, result_values, result_shape)
}

/// `DeserializeManySparse`: A batch of sparse tensors from their records, put together.
///
/// Returns (`sparse_indices`, `sparse_values`, `sparse_shape`).
#[inline]
#[track_caller]
pub fn deserialize_many_sparse(
    serialized_sparse: &Output,
    dtype: DType,
) -> (Output, Output, Output) {
    let [sparse_indices, sparse_values, sparse_shape] = serialized_sparse
        .graph()
        .op("DeserializeManySparse")
        .input(serialized_sparse)
        .attr("dtype", dtype)
        .split();
    (sparse_indices, sparse_values, sparse_shape)
}

/// `DeserializeSparse`: Sparse tensors from their records, put together.
///
/// Returns (`sparse_indices`, `sparse_values`, `sparse_shape`).
#[inline]
#[track_caller]
pub fn deserialize_sparse(serialized_sparse: &Output, dtype: DType) -> (Output, Output, Output) {
    let [sparse_indices, sparse_values, sparse_shape] = serialized_sparse
        .graph()
        .op("DeserializeSparse")
        .input(serialized_sparse)
        .attr("dtype", dtype)
        .split();
    (sparse_indices, sparse_values, sparse_shape)
}

/// The attributes of [`ragged_count_sparse_output_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RaggedCountSparseOutputOptions {
    /// `minlength`: int, `-1` by default.
    pub minlength: i64,
    /// `maxlength`: int, `-1` by default.
    pub maxlength: i64,
}

impl Default for RaggedCountSparseOutputOptions {
    fn default() -> Self {
        RaggedCountSparseOutputOptions { minlength: -1, maxlength: -1 }
    }
}

/// `RaggedCountSparseOutput`: How often each number occurs in a row of a ragged tensor.
///
/// Returns (`output_indices`, `output_values`, `output_dense_shape`).
#[inline]
#[track_caller]
pub fn ragged_count_sparse_output(
    splits: &Output,
    values: &Output,
    weights: &Output,
    binary_output: bool,
) -> (Output, Output, Output) {
    ragged_count_sparse_output_with(
        splits,
        values,
        weights,
        binary_output,
        RaggedCountSparseOutputOptions::default(),
    )
}

/// [`ragged_count_sparse_output()`] with other attributes.
#[inline]
#[track_caller]
pub fn ragged_count_sparse_output_with(
    splits: &Output,
    values: &Output,
    weights: &Output,
    binary_output: bool,
    options: RaggedCountSparseOutputOptions,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_dense_shape] = splits
        .graph()
        .op("RaggedCountSparseOutput")
        .input(splits)
        .input(values)
        .input(weights)
        .attr("binary_output", binary_output)
        .attr("minlength", options.minlength)
        .attr("maxlength", options.maxlength)
        .split();
    (output_indices, output_values, output_dense_shape)
}

/// `RaggedCross`: Every combination of the features of a row, of ragged, sparse and dense inputs.
///
/// Returns (`output_values`, `output_row_splits`).
#[inline]
#[track_caller]
pub fn ragged_cross(
    g: &Graph,
    ragged_values: &[Output],
    ragged_row_splits: &[Output],
    sparse_indices: &[Output],
    sparse_values: &[Output],
    sparse_shape: &[Output],
    dense_inputs: &[Output],
    input_order: &str,
    hashed_output: bool,
    num_buckets: i64,
    hash_key: i64,
    out_values_type: DType,
    out_row_splits_type: DType,
) -> (Output, Output) {
    let [output_values, output_row_splits] = g
        .op("RaggedCross")
        .list(ragged_values)
        .list(ragged_row_splits)
        .list(sparse_indices)
        .list(sparse_values)
        .list(sparse_shape)
        .list(dense_inputs)
        .attr("input_order", input_order)
        .attr("hashed_output", hashed_output)
        .attr("num_buckets", num_buckets)
        .attr("hash_key", hash_key)
        .attr("out_values_type", out_values_type)
        .attr("out_row_splits_type", out_row_splits_type)
        .split();
    (output_values, output_row_splits)
}

/// The attributes of [`serialize_many_sparse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SerializeManySparseOptions {
    /// `out_type`: type, `String` by default.
    pub out_type: DType,
}

impl Default for SerializeManySparseOptions {
    fn default() -> Self {
        SerializeManySparseOptions { out_type: DType::String }
    }
}

/// `SerializeManySparse`: The rows of a sparse tensor, each as three records.
#[inline]
#[track_caller]
pub fn serialize_many_sparse(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
) -> Output {
    serialize_many_sparse_with(
        sparse_indices,
        sparse_values,
        sparse_shape,
        SerializeManySparseOptions::default(),
    )
}

/// [`serialize_many_sparse()`] with other attributes.
#[inline]
#[track_caller]
pub fn serialize_many_sparse_with(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
    options: SerializeManySparseOptions,
) -> Output {
    sparse_indices
        .graph()
        .op("SerializeManySparse")
        .input(sparse_indices)
        .input(sparse_values)
        .input(sparse_shape)
        .attr("out_type", options.out_type)
        .output()
}

/// The attributes of [`serialize_sparse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SerializeSparseOptions {
    /// `out_type`: type, `String` by default.
    pub out_type: DType,
}

impl Default for SerializeSparseOptions {
    fn default() -> Self {
        SerializeSparseOptions { out_type: DType::String }
    }
}

/// `SerializeSparse`: A sparse tensor as three records.
#[inline]
#[track_caller]
pub fn serialize_sparse(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
) -> Output {
    serialize_sparse_with(
        sparse_indices,
        sparse_values,
        sparse_shape,
        SerializeSparseOptions::default(),
    )
}

/// [`serialize_sparse()`] with other attributes.
#[inline]
#[track_caller]
pub fn serialize_sparse_with(
    sparse_indices: &Output,
    sparse_values: &Output,
    sparse_shape: &Output,
    options: SerializeSparseOptions,
) -> Output {
    sparse_indices
        .graph()
        .op("SerializeSparse")
        .input(sparse_indices)
        .input(sparse_values)
        .input(sparse_shape)
        .attr("out_type", options.out_type)
        .output()
}

/// The attributes of [`set_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SetSizeOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for SetSizeOptions {
    fn default() -> Self {
        SetSizeOptions { validate_indices: true }
    }
}

/// `SetSize`: How many different values each sparse row has.
#[inline]
#[track_caller]
pub fn set_size(set_indices: &Output, set_values: &Output, set_shape: &Output) -> Output {
    set_size_with(set_indices, set_values, set_shape, SetSizeOptions::default())
}

/// [`set_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn set_size_with(
    set_indices: &Output,
    set_values: &Output,
    set_shape: &Output,
    options: SetSizeOptions,
) -> Output {
    set_indices
        .graph()
        .op("SetSize")
        .input(set_indices)
        .input(set_values)
        .input(set_shape)
        .attr("validate_indices", options.validate_indices)
        .output()
}

/// `SparseAdd`: The sum of two sparse tensors, without what is smaller than a threshold.
///
/// Returns (`sum_indices`, `sum_values`, `sum_shape`).
#[inline]
#[track_caller]
pub fn sparse_add(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b_indices: &Output,
    b_values: &Output,
    b_shape: &Output,
    thresh: &Output,
) -> (Output, Output, Output) {
    let [sum_indices, sum_values, sum_shape] = a_indices
        .graph()
        .op("SparseAdd")
        .input(a_indices)
        .input(a_values)
        .input(a_shape)
        .input(b_indices)
        .input(b_values)
        .input(b_shape)
        .input(thresh)
        .split();
    (sum_indices, sum_values, sum_shape)
}

/// `SparseAddGrad`: The gradient of SparseAdd.
///
/// Returns (`a_val_grad`, `b_val_grad`).
#[inline]
#[track_caller]
pub fn sparse_add_grad(
    backprop_val_grad: &Output,
    a_indices: &Output,
    b_indices: &Output,
    sum_indices: &Output,
) -> (Output, Output) {
    let [a_val_grad, b_val_grad] = backprop_val_grad
        .graph()
        .op("SparseAddGrad")
        .input(backprop_val_grad)
        .input(a_indices)
        .input(b_indices)
        .input(sum_indices)
        .split();
    (a_val_grad, b_val_grad)
}

/// `SparseConcat`: Sparse tensors one behind the other along a dimension.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_concat(
    g: &Graph,
    indices: &[Output],
    values: &[Output],
    shapes: &[Output],
    concat_dim: i64,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = g
        .op("SparseConcat")
        .list(indices)
        .list(values)
        .list(shapes)
        .attr("concat_dim", concat_dim)
        .split();
    (output_indices, output_values, output_shape)
}

/// The attributes of [`sparse_count_sparse_output_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseCountSparseOutputOptions {
    /// `minlength`: int, `-1` by default.
    pub minlength: i64,
    /// `maxlength`: int, `-1` by default.
    pub maxlength: i64,
}

impl Default for SparseCountSparseOutputOptions {
    fn default() -> Self {
        SparseCountSparseOutputOptions { minlength: -1, maxlength: -1 }
    }
}

/// `SparseCountSparseOutput`: How often each number occurs in a row of a sparse tensor.
///
/// Returns (`output_indices`, `output_values`, `output_dense_shape`).
#[inline]
#[track_caller]
pub fn sparse_count_sparse_output(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
    weights: &Output,
    binary_output: bool,
) -> (Output, Output, Output) {
    sparse_count_sparse_output_with(
        indices,
        values,
        dense_shape,
        weights,
        binary_output,
        SparseCountSparseOutputOptions::default(),
    )
}

/// [`sparse_count_sparse_output()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_count_sparse_output_with(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
    weights: &Output,
    binary_output: bool,
    options: SparseCountSparseOutputOptions,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_dense_shape] = indices
        .graph()
        .op("SparseCountSparseOutput")
        .input(indices)
        .input(values)
        .input(dense_shape)
        .input(weights)
        .attr("binary_output", binary_output)
        .attr("minlength", options.minlength)
        .attr("maxlength", options.maxlength)
        .split();
    (output_indices, output_values, output_dense_shape)
}

/// `SparseCross`: Every combination of the features of each row, as text or hashed.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_cross(
    g: &Graph,
    indices: &[Output],
    values: &[Output],
    shapes: &[Output],
    dense_inputs: &[Output],
    hashed_output: bool,
    num_buckets: i64,
    hash_key: i64,
    out_type: DType,
    internal_type: DType,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = g
        .op("SparseCross")
        .list(indices)
        .list(values)
        .list(shapes)
        .list(dense_inputs)
        .attr("hashed_output", hashed_output)
        .attr("num_buckets", num_buckets)
        .attr("hash_key", hash_key)
        .attr("out_type", out_type)
        .attr("internal_type", internal_type)
        .split();
    (output_indices, output_values, output_shape)
}

/// `SparseCrossHashed`: Every combination of the features of each row, hashed into buckets.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_cross_hashed(
    indices: &[Output],
    values: &[Output],
    shapes: &[Output],
    dense_inputs: &[Output],
    num_buckets: &Output,
    strong_hash: &Output,
    salt: &Output,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = num_buckets
        .graph()
        .op("SparseCrossHashed")
        .list(indices)
        .list(values)
        .list(shapes)
        .list(dense_inputs)
        .input(num_buckets)
        .input(strong_hash)
        .input(salt)
        .split();
    (output_indices, output_values, output_shape)
}

/// `SparseCrossV2`: Every combination of the features of each row, joined by a separator.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_cross_v2(
    indices: &[Output],
    values: &[Output],
    shapes: &[Output],
    dense_inputs: &[Output],
    sep: &Output,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = sep
        .graph()
        .op("SparseCrossV2")
        .list(indices)
        .list(values)
        .list(shapes)
        .list(dense_inputs)
        .input(sep)
        .split();
    (output_indices, output_values, output_shape)
}

/// `SparseDenseCwiseAdd`: The values of a sparse tensor plus a dense one at their places.
#[inline]
#[track_caller]
pub fn sparse_dense_cwise_add(
    sp_indices: &Output,
    sp_values: &Output,
    sp_shape: &Output,
    dense: &Output,
) -> Output {
    sp_indices
        .graph()
        .op("SparseDenseCwiseAdd")
        .input(sp_indices)
        .input(sp_values)
        .input(sp_shape)
        .input(dense)
        .output()
}

/// `SparseDenseCwiseDiv`: The values of a sparse tensor by a dense one at their places.
#[inline]
#[track_caller]
pub fn sparse_dense_cwise_div(
    sp_indices: &Output,
    sp_values: &Output,
    sp_shape: &Output,
    dense: &Output,
) -> Output {
    sp_indices
        .graph()
        .op("SparseDenseCwiseDiv")
        .input(sp_indices)
        .input(sp_values)
        .input(sp_shape)
        .input(dense)
        .output()
}

/// `SparseDenseCwiseMul`: The values of a sparse tensor times a dense one at their places.
#[inline]
#[track_caller]
pub fn sparse_dense_cwise_mul(
    sp_indices: &Output,
    sp_values: &Output,
    sp_shape: &Output,
    dense: &Output,
) -> Output {
    sp_indices
        .graph()
        .op("SparseDenseCwiseMul")
        .input(sp_indices)
        .input(sp_values)
        .input(sp_shape)
        .input(dense)
        .output()
}

/// The outputs of [`sparse_fill_empty_rows`].
#[derive(Clone, Debug)]
pub struct SparseFillEmptyRowsOutputs {
    /// Output `output_indices`.
    pub output_indices: Output,
    /// Output `output_values`.
    pub output_values: Output,
    /// Output `empty_row_indicator`.
    pub empty_row_indicator: Output,
    /// Output `reverse_index_map`.
    pub reverse_index_map: Output,
}

/// `SparseFillEmptyRows`: A sparse tensor with a default value in the first column of every empty
/// row.
#[inline]
#[track_caller]
pub fn sparse_fill_empty_rows(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
    default_value: &Output,
) -> SparseFillEmptyRowsOutputs {
    let [output_indices, output_values, empty_row_indicator, reverse_index_map] = indices
        .graph()
        .op("SparseFillEmptyRows")
        .input(indices)
        .input(values)
        .input(dense_shape)
        .input(default_value)
        .split();
    SparseFillEmptyRowsOutputs {
        output_indices,
        output_values,
        empty_row_indicator,
        reverse_index_map,
    }
}

/// `SparseFillEmptyRowsGrad`: The gradient of SparseFillEmptyRows.
///
/// Returns (`d_values`, `d_default_value`).
#[inline]
#[track_caller]
pub fn sparse_fill_empty_rows_grad(
    reverse_index_map: &Output,
    grad_values: &Output,
) -> (Output, Output) {
    let [d_values, d_default_value] = reverse_index_map
        .graph()
        .op("SparseFillEmptyRowsGrad")
        .input(reverse_index_map)
        .input(grad_values)
        .split();
    (d_values, d_default_value)
}

/// The attributes of [`sparse_matrix_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseMatrixMatMulOptions {
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `adjoint_a`: bool, `false` by default.
    pub adjoint_a: bool,
    /// `adjoint_b`: bool, `false` by default.
    pub adjoint_b: bool,
    /// `transpose_output`: bool, `false` by default.
    pub transpose_output: bool,
    /// `conjugate_output`: bool, `false` by default.
    pub conjugate_output: bool,
}

impl Default for SparseMatrixMatMulOptions {
    fn default() -> Self {
        SparseMatrixMatMulOptions {
            transpose_a: false,
            transpose_b: false,
            adjoint_a: false,
            adjoint_b: false,
            transpose_output: false,
            conjugate_output: false,
        }
    }
}

/// `SparseMatrixMatMul`: A sparse matrix times a dense one.
#[inline]
#[track_caller]
pub fn sparse_matrix_mat_mul(a: &Output, b: &Output) -> Output {
    sparse_matrix_mat_mul_with(a, b, SparseMatrixMatMulOptions::default())
}

/// [`sparse_matrix_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_matrix_mat_mul_with(
    a: &Output,
    b: &Output,
    options: SparseMatrixMatMulOptions,
) -> Output {
    a.graph()
        .op("SparseMatrixMatMul")
        .input(a)
        .input(b)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("adjoint_a", options.adjoint_a)
        .attr("adjoint_b", options.adjoint_b)
        .attr("transpose_output", options.transpose_output)
        .attr("conjugate_output", options.conjugate_output)
        .output()
}

/// `SparseMatrixNNZ`: How many entries a sparse matrix has.
#[inline]
#[track_caller]
pub fn sparse_matrix_nnz(sparse_matrix: &Output) -> Output {
    sparse_matrix.graph().op("SparseMatrixNNZ").input(sparse_matrix).output()
}

/// `SparseMatrixOrderingAMD`: An order of rows in which a sparse Cholesky factor has few entries.
#[inline]
#[track_caller]
pub fn sparse_matrix_ordering_amd(input: &Output) -> Output {
    input.graph().op("SparseMatrixOrderingAMD").input(input).output()
}

/// `SparseMatrixSparseCholesky`: The Cholesky factor of a sparse matrix with permuted rows and
/// columns.
#[inline]
#[track_caller]
pub fn sparse_matrix_sparse_cholesky(input: &Output, permutation: &Output, type_: DType) -> Output {
    input
        .graph()
        .op("SparseMatrixSparseCholesky")
        .input(input)
        .input(permutation)
        .attr("type", type_)
        .output()
}

/// The attributes of [`sparse_matrix_sparse_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseMatrixSparseMatMulOptions {
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `adjoint_a`: bool, `false` by default.
    pub adjoint_a: bool,
    /// `adjoint_b`: bool, `false` by default.
    pub adjoint_b: bool,
}

impl Default for SparseMatrixSparseMatMulOptions {
    fn default() -> Self {
        SparseMatrixSparseMatMulOptions {
            transpose_a: false,
            transpose_b: false,
            adjoint_a: false,
            adjoint_b: false,
        }
    }
}

/// `SparseMatrixSparseMatMul`: A product of two sparse matrices.
#[inline]
#[track_caller]
pub fn sparse_matrix_sparse_mat_mul(a: &Output, b: &Output, type_: DType) -> Output {
    sparse_matrix_sparse_mat_mul_with(a, b, type_, SparseMatrixSparseMatMulOptions::default())
}

/// [`sparse_matrix_sparse_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_matrix_sparse_mat_mul_with(
    a: &Output,
    b: &Output,
    type_: DType,
    options: SparseMatrixSparseMatMulOptions,
) -> Output {
    a.graph()
        .op("SparseMatrixSparseMatMul")
        .input(a)
        .input(b)
        .attr("type", type_)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("adjoint_a", options.adjoint_a)
        .attr("adjoint_b", options.adjoint_b)
        .output()
}

/// The attributes of [`sparse_matrix_transpose_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseMatrixTransposeOptions {
    /// `conjugate`: bool, `false` by default.
    pub conjugate: bool,
}

impl Default for SparseMatrixTransposeOptions {
    fn default() -> Self {
        SparseMatrixTransposeOptions { conjugate: false }
    }
}

/// `SparseMatrixTranspose`: Exchanges the rows and columns of a sparse matrix.
#[inline]
#[track_caller]
pub fn sparse_matrix_transpose(input: &Output, type_: DType) -> Output {
    sparse_matrix_transpose_with(input, type_, SparseMatrixTransposeOptions::default())
}

/// [`sparse_matrix_transpose()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_matrix_transpose_with(
    input: &Output,
    type_: DType,
    options: SparseMatrixTransposeOptions,
) -> Output {
    input
        .graph()
        .op("SparseMatrixTranspose")
        .input(input)
        .attr("type", type_)
        .attr("conjugate", options.conjugate)
        .output()
}

/// The attributes of [`sparse_reduce_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseReduceMaxOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for SparseReduceMaxOptions {
    fn default() -> Self {
        SparseReduceMaxOptions { keep_dims: false }
    }
}

/// `SparseReduceMax`: The largest values of a sparse tensor over some dimensions.
#[inline]
#[track_caller]
pub fn sparse_reduce_max(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
) -> Output {
    sparse_reduce_max_with(
        input_indices,
        input_values,
        input_shape,
        reduction_axes,
        SparseReduceMaxOptions::default(),
    )
}

/// [`sparse_reduce_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_reduce_max_with(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
    options: SparseReduceMaxOptions,
) -> Output {
    input_indices
        .graph()
        .op("SparseReduceMax")
        .input(input_indices)
        .input(input_values)
        .input(input_shape)
        .input(reduction_axes)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`sparse_reduce_max_sparse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseReduceMaxSparseOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for SparseReduceMaxSparseOptions {
    fn default() -> Self {
        SparseReduceMaxSparseOptions { keep_dims: false }
    }
}

/// `SparseReduceMaxSparse`: The largest values of a sparse tensor over some dimensions, sparse.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_reduce_max_sparse(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
) -> (Output, Output, Output) {
    sparse_reduce_max_sparse_with(
        input_indices,
        input_values,
        input_shape,
        reduction_axes,
        SparseReduceMaxSparseOptions::default(),
    )
}

/// [`sparse_reduce_max_sparse()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_reduce_max_sparse_with(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
    options: SparseReduceMaxSparseOptions,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = input_indices
        .graph()
        .op("SparseReduceMaxSparse")
        .input(input_indices)
        .input(input_values)
        .input(input_shape)
        .input(reduction_axes)
        .attr("keep_dims", options.keep_dims)
        .split();
    (output_indices, output_values, output_shape)
}

/// The attributes of [`sparse_reduce_sum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseReduceSumOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for SparseReduceSumOptions {
    fn default() -> Self {
        SparseReduceSumOptions { keep_dims: false }
    }
}

/// `SparseReduceSum`: Sums of a sparse tensor over some dimensions.
#[inline]
#[track_caller]
pub fn sparse_reduce_sum(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
) -> Output {
    sparse_reduce_sum_with(
        input_indices,
        input_values,
        input_shape,
        reduction_axes,
        SparseReduceSumOptions::default(),
    )
}

/// [`sparse_reduce_sum()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_reduce_sum_with(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
    options: SparseReduceSumOptions,
) -> Output {
    input_indices
        .graph()
        .op("SparseReduceSum")
        .input(input_indices)
        .input(input_values)
        .input(input_shape)
        .input(reduction_axes)
        .attr("keep_dims", options.keep_dims)
        .output()
}

/// The attributes of [`sparse_reduce_sum_sparse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseReduceSumSparseOptions {
    /// `keep_dims`: bool, `false` by default.
    pub keep_dims: bool,
}

impl Default for SparseReduceSumSparseOptions {
    fn default() -> Self {
        SparseReduceSumSparseOptions { keep_dims: false }
    }
}

/// `SparseReduceSumSparse`: Sums of a sparse tensor over some dimensions, sparse.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_reduce_sum_sparse(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
) -> (Output, Output, Output) {
    sparse_reduce_sum_sparse_with(
        input_indices,
        input_values,
        input_shape,
        reduction_axes,
        SparseReduceSumSparseOptions::default(),
    )
}

/// [`sparse_reduce_sum_sparse()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_reduce_sum_sparse_with(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
    reduction_axes: &Output,
    options: SparseReduceSumSparseOptions,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = input_indices
        .graph()
        .op("SparseReduceSumSparse")
        .input(input_indices)
        .input(input_values)
        .input(input_shape)
        .input(reduction_axes)
        .attr("keep_dims", options.keep_dims)
        .split();
    (output_indices, output_values, output_shape)
}

/// `SparseReorder`: A sparse tensor with its values in the order of their places.
///
/// Returns (`output_indices`, `output_values`).
#[inline]
#[track_caller]
pub fn sparse_reorder(
    input_indices: &Output,
    input_values: &Output,
    input_shape: &Output,
) -> (Output, Output) {
    let [output_indices, output_values] = input_indices
        .graph()
        .op("SparseReorder")
        .input(input_indices)
        .input(input_values)
        .input(input_shape)
        .split();
    (output_indices, output_values)
}

/// `SparseReshape`: The places of a sparse tensor in another shape.
///
/// Returns (`output_indices`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_reshape(
    input_indices: &Output,
    input_shape: &Output,
    new_shape: &Output,
) -> (Output, Output) {
    let [output_indices, output_shape] = input_indices
        .graph()
        .op("SparseReshape")
        .input(input_indices)
        .input(input_shape)
        .input(new_shape)
        .split();
    (output_indices, output_shape)
}

/// `SparseSlice`: A box of a sparse tensor.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_slice(
    indices: &Output,
    values: &Output,
    shape: &Output,
    start: &Output,
    size: &Output,
) -> (Output, Output, Output) {
    let [output_indices, output_values, output_shape] = indices
        .graph()
        .op("SparseSlice")
        .input(indices)
        .input(values)
        .input(shape)
        .input(start)
        .input(size)
        .split();
    (output_indices, output_values, output_shape)
}

/// `SparseSliceGrad`: The gradient of SparseSlice.
#[inline]
#[track_caller]
pub fn sparse_slice_grad(
    backprop_val_grad: &Output,
    input_indices: &Output,
    input_start: &Output,
    output_indices: &Output,
) -> Output {
    backprop_val_grad
        .graph()
        .op("SparseSliceGrad")
        .input(backprop_val_grad)
        .input(input_indices)
        .input(input_start)
        .input(output_indices)
        .output()
}

/// `SparseSoftmax`: Softmax over the last dimension of a sparse tensor, of the values there are.
#[inline]
#[track_caller]
pub fn sparse_softmax(sp_indices: &Output, sp_values: &Output, sp_shape: &Output) -> Output {
    sp_indices
        .graph()
        .op("SparseSoftmax")
        .input(sp_indices)
        .input(sp_values)
        .input(sp_shape)
        .output()
}

/// `SparseSparseMaximum`: The larger of two sparse tensors, place by place.
///
/// Returns (`output_indices`, `output_values`).
#[inline]
#[track_caller]
pub fn sparse_sparse_maximum(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b_indices: &Output,
    b_values: &Output,
    b_shape: &Output,
) -> (Output, Output) {
    let [output_indices, output_values] = a_indices
        .graph()
        .op("SparseSparseMaximum")
        .input(a_indices)
        .input(a_values)
        .input(a_shape)
        .input(b_indices)
        .input(b_values)
        .input(b_shape)
        .split();
    (output_indices, output_values)
}

/// `SparseSparseMinimum`: The smaller of two sparse tensors, place by place.
///
/// Returns (`output_indices`, `output_values`).
#[inline]
#[track_caller]
pub fn sparse_sparse_minimum(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b_indices: &Output,
    b_values: &Output,
    b_shape: &Output,
) -> (Output, Output) {
    let [output_indices, output_values] = a_indices
        .graph()
        .op("SparseSparseMinimum")
        .input(a_indices)
        .input(a_values)
        .input(a_shape)
        .input(b_indices)
        .input(b_values)
        .input(b_shape)
        .split();
    (output_indices, output_values)
}

/// `SparseSplit`: A sparse tensor cut into parts along a dimension.
///
/// Returns (`output_indices`, `output_values`, `output_shape`).
#[inline]
#[track_caller]
pub fn sparse_split(
    split_dim: &Output,
    indices: &Output,
    values: &Output,
    shape: &Output,
    num_split: i64,
) -> (Vec<Output>, Vec<Output>, Vec<Output>) {
    let mut arguments = split_dim
        .graph()
        .op("SparseSplit")
        .input(split_dim)
        .input(indices)
        .input(values)
        .input(shape)
        .attr("num_split", num_split)
        .outputs_by_argument();
    let output_indices = arguments.next_list();
    let output_values = arguments.next_list();
    let output_shape = arguments.next_list();
    (output_indices, output_values, output_shape)
}

/// `SparseTensorDenseAdd`: A dense tensor with a sparse one added.
#[inline]
#[track_caller]
pub fn sparse_tensor_dense_add(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b: &Output,
) -> Output {
    a_indices
        .graph()
        .op("SparseTensorDenseAdd")
        .input(a_indices)
        .input(a_values)
        .input(a_shape)
        .input(b)
        .output()
}

/// The attributes of [`sparse_tensor_dense_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseTensorDenseMatMulOptions {
    /// `adjoint_a`: bool, `false` by default.
    pub adjoint_a: bool,
    /// `adjoint_b`: bool, `false` by default.
    pub adjoint_b: bool,
}

impl Default for SparseTensorDenseMatMulOptions {
    fn default() -> Self {
        SparseTensorDenseMatMulOptions { adjoint_a: false, adjoint_b: false }
    }
}

/// `SparseTensorDenseMatMul`: The product of a sparse matrix and a dense one.
#[inline]
#[track_caller]
pub fn sparse_tensor_dense_mat_mul(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b: &Output,
) -> Output {
    sparse_tensor_dense_mat_mul_with(
        a_indices,
        a_values,
        a_shape,
        b,
        SparseTensorDenseMatMulOptions::default(),
    )
}

/// [`sparse_tensor_dense_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_tensor_dense_mat_mul_with(
    a_indices: &Output,
    a_values: &Output,
    a_shape: &Output,
    b: &Output,
    options: SparseTensorDenseMatMulOptions,
) -> Output {
    a_indices
        .graph()
        .op("SparseTensorDenseMatMul")
        .input(a_indices)
        .input(a_values)
        .input(a_shape)
        .input(b)
        .attr("adjoint_a", options.adjoint_a)
        .attr("adjoint_b", options.adjoint_b)
        .output()
}

/// `SparseTensorToCSRSparseMatrix`: A sparse matrix by compressed rows, from a sparse tensor.
#[inline]
#[track_caller]
pub fn sparse_tensor_to_csr_sparse_matrix(
    indices: &Output,
    values: &Output,
    dense_shape: &Output,
) -> Output {
    indices
        .graph()
        .op("SparseTensorToCSRSparseMatrix")
        .input(indices)
        .input(values)
        .input(dense_shape)
        .output()
}

/// The attributes of [`sparse_to_dense_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseToDenseOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for SparseToDenseOptions {
    fn default() -> Self {
        SparseToDenseOptions { validate_indices: true }
    }
}

/// `SparseToDense`: A dense tensor of a default value, with other values at some places.
#[inline]
#[track_caller]
pub fn sparse_to_dense(
    sparse_indices: &Output,
    output_shape: &Output,
    sparse_values: &Output,
    default_value: &Output,
) -> Output {
    sparse_to_dense_with(
        sparse_indices,
        output_shape,
        sparse_values,
        default_value,
        SparseToDenseOptions::default(),
    )
}

/// [`sparse_to_dense()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_to_dense_with(
    sparse_indices: &Output,
    output_shape: &Output,
    sparse_values: &Output,
    default_value: &Output,
    options: SparseToDenseOptions,
) -> Output {
    sparse_indices
        .graph()
        .op("SparseToDense")
        .input(sparse_indices)
        .input(output_shape)
        .input(sparse_values)
        .input(default_value)
        .attr("validate_indices", options.validate_indices)
        .output()
}

/// The attributes of [`sparse_to_sparse_set_operation_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseToSparseSetOperationOptions {
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for SparseToSparseSetOperationOptions {
    fn default() -> Self {
        SparseToSparseSetOperationOptions { validate_indices: true }
    }
}

/// `SparseToSparseSetOperation`: A set operation on each pair of sparse rows.
///
/// Returns (`result_indices`, `result_values`, `result_shape`).
#[inline]
#[track_caller]
pub fn sparse_to_sparse_set_operation(
    set1_indices: &Output,
    set1_values: &Output,
    set1_shape: &Output,
    set2_indices: &Output,
    set2_values: &Output,
    set2_shape: &Output,
    set_operation: &str,
) -> (Output, Output, Output) {
    sparse_to_sparse_set_operation_with(
        set1_indices,
        set1_values,
        set1_shape,
        set2_indices,
        set2_values,
        set2_shape,
        set_operation,
        SparseToSparseSetOperationOptions::default(),
    )
}

/// [`sparse_to_sparse_set_operation()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_to_sparse_set_operation_with(
    set1_indices: &Output,
    set1_values: &Output,
    set1_shape: &Output,
    set2_indices: &Output,
    set2_values: &Output,
    set2_shape: &Output,
    set_operation: &str,
    options: SparseToSparseSetOperationOptions,
) -> (Output, Output, Output) {
    let [result_indices, result_values, result_shape] = set1_indices
        .graph()
        .op("SparseToSparseSetOperation")
        .input(set1_indices)
        .input(set1_values)
        .input(set1_shape)
        .input(set2_indices)
        .input(set2_values)
        .input(set2_shape)
        .attr("set_operation", set_operation)
        .attr("validate_indices", options.validate_indices)
        .split();
    (result_indices, result_values, result_shape)
}

/// The attributes of [`take_many_sparse_from_tensors_map_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TakeManySparseFromTensorsMapOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for TakeManySparseFromTensorsMapOptions<'_> {
    fn default() -> Self {
        TakeManySparseFromTensorsMapOptions { container: "", shared_name: "" }
    }
}

/// `TakeManySparseFromTensorsMap`: The sparse tensors kept under these numbers, put together.
///
/// Returns (`sparse_indices`, `sparse_values`, `sparse_shape`).
#[inline]
#[track_caller]
pub fn take_many_sparse_from_tensors_map(
    sparse_handles: &Output,
    dtype: DType,
) -> (Output, Output, Output) {
    take_many_sparse_from_tensors_map_with(
        sparse_handles,
        dtype,
        TakeManySparseFromTensorsMapOptions::default(),
    )
}

/// [`take_many_sparse_from_tensors_map()`] with other attributes.
#[inline]
#[track_caller]
pub fn take_many_sparse_from_tensors_map_with(
    sparse_handles: &Output,
    dtype: DType,
    options: TakeManySparseFromTensorsMapOptions<'_>,
) -> (Output, Output, Output) {
    let [sparse_indices, sparse_values, sparse_shape] = sparse_handles
        .graph()
        .op("TakeManySparseFromTensorsMap")
        .input(sparse_handles)
        .attr("dtype", dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .split();
    (sparse_indices, sparse_values, sparse_shape)
}
