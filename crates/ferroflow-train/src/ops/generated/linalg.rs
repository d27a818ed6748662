//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`banded_triangular_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BandedTriangularSolveOptions {
    /// `lower`: bool, `true` by default.
    pub lower: bool,
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for BandedTriangularSolveOptions {
    fn default() -> Self {
        BandedTriangularSolveOptions { lower: true, adjoint: false }
    }
}

/// `BandedTriangularSolve`: Solutions of systems with triangular matrices given by their diagonals.
#[inline]
#[track_caller]
pub fn banded_triangular_solve(matrix: &Output, rhs: &Output) -> Output {
    banded_triangular_solve_with(matrix, rhs, BandedTriangularSolveOptions::default())
}

/// [`banded_triangular_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn banded_triangular_solve_with(
    matrix: &Output,
    rhs: &Output,
    options: BandedTriangularSolveOptions,
) -> Output {
    matrix
        .graph()
        .op("BandedTriangularSolve")
        .input(matrix)
        .input(rhs)
        .attr("lower", options.lower)
        .attr("adjoint", options.adjoint)
        .output()
}

/// `BatchCholesky`: Lower factors of positive definite matrices.
#[inline]
#[track_caller]
pub fn batch_cholesky(input: &Output) -> Output {
    input.graph().op("BatchCholesky").input(input).output()
}

/// `BatchCholeskyGrad`: Gradient of Cholesky.
#[inline]
#[track_caller]
pub fn batch_cholesky_grad(l: &Output, grad: &Output) -> Output {
    l.graph().op("BatchCholeskyGrad").input(l).input(grad).output()
}

/// The attributes of [`batch_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatMulOptions {
    /// `adj_x`: bool, `false` by default.
    pub adj_x: bool,
    /// `adj_y`: bool, `false` by default.
    pub adj_y: bool,
}

impl Default for BatchMatMulOptions {
    fn default() -> Self {
        BatchMatMulOptions { adj_x: false, adj_y: false }
    }
}

/// `BatchMatMul`: Products of matrices, batch by batch.
#[inline]
#[track_caller]
pub fn batch_mat_mul(x: &Output, y: &Output) -> Output {
    batch_mat_mul_with(x, y, BatchMatMulOptions::default())
}

/// [`batch_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_mat_mul_with(x: &Output, y: &Output, options: BatchMatMulOptions) -> Output {
    x.graph()
        .op("BatchMatMul")
        .input(x)
        .input(y)
        .attr("adj_x", options.adj_x)
        .attr("adj_y", options.adj_y)
        .output()
}

/// The attributes of [`batch_mat_mul_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatMulV2Options {
    /// `adj_x`: bool, `false` by default.
    pub adj_x: bool,
    /// `adj_y`: bool, `false` by default.
    pub adj_y: bool,
}

impl Default for BatchMatMulV2Options {
    fn default() -> Self {
        BatchMatMulV2Options { adj_x: false, adj_y: false }
    }
}

/// `BatchMatMulV2`: Products of matrices; batches broadcast.
#[inline]
#[track_caller]
pub fn batch_mat_mul_v2(x: &Output, y: &Output) -> Output {
    batch_mat_mul_v2_with(x, y, BatchMatMulV2Options::default())
}

/// [`batch_mat_mul_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_mat_mul_v2_with(x: &Output, y: &Output, options: BatchMatMulV2Options) -> Output {
    x.graph()
        .op("BatchMatMulV2")
        .input(x)
        .input(y)
        .attr("adj_x", options.adj_x)
        .attr("adj_y", options.adj_y)
        .output()
}

/// The attributes of [`batch_mat_mul_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatMulV3Options {
    /// `adj_x`: bool, `false` by default.
    pub adj_x: bool,
    /// `adj_y`: bool, `false` by default.
    pub adj_y: bool,
}

impl Default for BatchMatMulV3Options {
    fn default() -> Self {
        BatchMatMulV3Options { adj_x: false, adj_y: false }
    }
}

/// `BatchMatMulV3`: Products of matrices; batches broadcast, and types may differ.
#[inline]
#[track_caller]
pub fn batch_mat_mul_v3(x: &Output, y: &Output, tout: DType) -> Output {
    batch_mat_mul_v3_with(x, y, tout, BatchMatMulV3Options::default())
}

/// [`batch_mat_mul_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_mat_mul_v3_with(
    x: &Output,
    y: &Output,
    tout: DType,
    options: BatchMatMulV3Options,
) -> Output {
    x.graph()
        .op("BatchMatMulV3")
        .input(x)
        .input(y)
        .attr("Tout", tout)
        .attr("adj_x", options.adj_x)
        .attr("adj_y", options.adj_y)
        .output()
}

/// `BatchMatrixDeterminant`: Determinants of square matrices.
#[inline]
#[track_caller]
pub fn batch_matrix_determinant(input: &Output) -> Output {
    input.graph().op("BatchMatrixDeterminant").input(input).output()
}

/// The attributes of [`batch_matrix_inverse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatrixInverseOptions {
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for BatchMatrixInverseOptions {
    fn default() -> Self {
        BatchMatrixInverseOptions { adjoint: false }
    }
}

/// `BatchMatrixInverse`: Inverses of square matrices, or of their adjoints.
#[inline]
#[track_caller]
pub fn batch_matrix_inverse(input: &Output) -> Output {
    batch_matrix_inverse_with(input, BatchMatrixInverseOptions::default())
}

/// [`batch_matrix_inverse()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_matrix_inverse_with(input: &Output, options: BatchMatrixInverseOptions) -> Output {
    input.graph().op("BatchMatrixInverse").input(input).attr("adjoint", options.adjoint).output()
}

/// The attributes of [`batch_matrix_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatrixSolveOptions {
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for BatchMatrixSolveOptions {
    fn default() -> Self {
        BatchMatrixSolveOptions { adjoint: false }
    }
}

/// `BatchMatrixSolve`: Solutions of systems of linear equations.
#[inline]
#[track_caller]
pub fn batch_matrix_solve(matrix: &Output, rhs: &Output) -> Output {
    batch_matrix_solve_with(matrix, rhs, BatchMatrixSolveOptions::default())
}

/// [`batch_matrix_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_matrix_solve_with(
    matrix: &Output,
    rhs: &Output,
    options: BatchMatrixSolveOptions,
) -> Output {
    matrix
        .graph()
        .op("BatchMatrixSolve")
        .input(matrix)
        .input(rhs)
        .attr("adjoint", options.adjoint)
        .output()
}

/// The attributes of [`batch_matrix_solve_ls_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatrixSolveLsOptions {
    /// `fast`: bool, `true` by default.
    pub fast: bool,
}

impl Default for BatchMatrixSolveLsOptions {
    fn default() -> Self {
        BatchMatrixSolveLsOptions { fast: true }
    }
}

/// `BatchMatrixSolveLs`: Least-squares solutions of systems of linear equations.
#[inline]
#[track_caller]
pub fn batch_matrix_solve_ls(matrix: &Output, rhs: &Output, l2_regularizer: &Output) -> Output {
    batch_matrix_solve_ls_with(matrix, rhs, l2_regularizer, BatchMatrixSolveLsOptions::default())
}

/// [`batch_matrix_solve_ls()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_matrix_solve_ls_with(
    matrix: &Output,
    rhs: &Output,
    l2_regularizer: &Output,
    options: BatchMatrixSolveLsOptions,
) -> Output {
    matrix
        .graph()
        .op("BatchMatrixSolveLs")
        .input(matrix)
        .input(rhs)
        .input(l2_regularizer)
        .attr("fast", options.fast)
        .output()
}

/// The attributes of [`batch_matrix_triangular_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchMatrixTriangularSolveOptions {
    /// `lower`: bool, `true` by default.
    pub lower: bool,
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for BatchMatrixTriangularSolveOptions {
    fn default() -> Self {
        BatchMatrixTriangularSolveOptions { lower: true, adjoint: false }
    }
}

/// `BatchMatrixTriangularSolve`: Solutions of systems with triangular matrices.
#[inline]
#[track_caller]
pub fn batch_matrix_triangular_solve(matrix: &Output, rhs: &Output) -> Output {
    batch_matrix_triangular_solve_with(matrix, rhs, BatchMatrixTriangularSolveOptions::default())
}

/// [`batch_matrix_triangular_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_matrix_triangular_solve_with(
    matrix: &Output,
    rhs: &Output,
    options: BatchMatrixTriangularSolveOptions,
) -> Output {
    matrix
        .graph()
        .op("BatchMatrixTriangularSolve")
        .input(matrix)
        .input(rhs)
        .attr("lower", options.lower)
        .attr("adjoint", options.adjoint)
        .output()
}

/// `BatchSelfAdjointEig`: Eigenvalues above the eigenvectors of self-adjoint matrices.
#[inline]
#[track_caller]
pub fn batch_self_adjoint_eig(input: &Output) -> Output {
    input.graph().op("BatchSelfAdjointEig").input(input).output()
}

/// The attributes of [`batch_self_adjoint_eig_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchSelfAdjointEigV2Options {
    /// `compute_v`: bool, `true` by default.
    pub compute_v: bool,
}

impl Default for BatchSelfAdjointEigV2Options {
    fn default() -> Self {
        BatchSelfAdjointEigV2Options { compute_v: true }
    }
}

/// `BatchSelfAdjointEigV2`: Eigenvalues, in rising order, and vectors of self-adjoint matrices.
///
/// Returns (`e`, `v`).
#[inline]
#[track_caller]
pub fn batch_self_adjoint_eig_v2(input: &Output) -> (Output, Output) {
    batch_self_adjoint_eig_v2_with(input, BatchSelfAdjointEigV2Options::default())
}

/// [`batch_self_adjoint_eig_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_self_adjoint_eig_v2_with(
    input: &Output,
    options: BatchSelfAdjointEigV2Options,
) -> (Output, Output) {
    let [e, v] = input
        .graph()
        .op("BatchSelfAdjointEigV2")
        .input(input)
        .attr("compute_v", options.compute_v)
        .split();
    (e, v)
}

/// The attributes of [`batch_svd_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchSvdOptions {
    /// `compute_uv`: bool, `true` by default.
    pub compute_uv: bool,
    /// `full_matrices`: bool, `false` by default.
    pub full_matrices: bool,
}

impl Default for BatchSvdOptions {
    fn default() -> Self {
        BatchSvdOptions { compute_uv: true, full_matrices: false }
    }
}

/// `BatchSvd`: Singular values and vectors of matrices.
///
/// Returns (`s`, `u`, `v`).
#[inline]
#[track_caller]
pub fn batch_svd(input: &Output) -> (Output, Output, Output) {
    batch_svd_with(input, BatchSvdOptions::default())
}

/// [`batch_svd()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_svd_with(input: &Output, options: BatchSvdOptions) -> (Output, Output, Output) {
    let [s, u, v] = input
        .graph()
        .op("BatchSvd")
        .input(input)
        .attr("compute_uv", options.compute_uv)
        .attr("full_matrices", options.full_matrices)
        .split();
    (s, u, v)
}

/// `Cholesky`: Lower factors of positive definite matrices.
#[inline]
#[track_caller]
pub fn cholesky(input: &Output) -> Output {
    input.graph().op("Cholesky").input(input).output()
}

/// `CholeskyGrad`: Gradient of Cholesky.
#[inline]
#[track_caller]
pub fn cholesky_grad(l: &Output, grad: &Output) -> Output {
    l.graph().op("CholeskyGrad").input(l).input(grad).output()
}

/// `Cross`: Cross products of vectors of three.
#[inline]
#[track_caller]
pub fn cross(a: &Output, b: &Output) -> Output {
    a.graph().op("Cross").input(a).input(b).output()
}

/// The attributes of [`eig_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EigOptions {
    /// `compute_v`: bool, `true` by default.
    pub compute_v: bool,
}

impl Default for EigOptions {
    fn default() -> Self {
        EigOptions { compute_v: true }
    }
}

/// `Eig`: Eigenvalues and vectors of square matrices.
///
/// Returns (`e`, `v`).
#[inline]
#[track_caller]
pub fn eig(input: &Output, tout: DType) -> (Output, Output) {
    eig_with(input, tout, EigOptions::default())
}

/// [`eig()`] with other attributes.
#[inline]
#[track_caller]
pub fn eig_with(input: &Output, tout: DType, options: EigOptions) -> (Output, Output) {
    let [e, v] = input
        .graph()
        .op("Eig")
        .input(input)
        .attr("Tout", tout)
        .attr("compute_v", options.compute_v)
        .split();
    (e, v)
}

/// `Einsum`: Products and sums over the dimensions that an equation names.
#[inline]
#[track_caller]
pub fn einsum(g: &Graph, inputs: &[Output], equation: &str) -> Output {
    g.op("Einsum").list(inputs).attr("equation", equation).output()
}

/// `LogMatrixDeterminant`: Signs of determinants, and logarithms of their sizes.
///
/// Returns (`sign`, `log_abs_determinant`).
#[inline]
#[track_caller]
pub fn log_matrix_determinant(input: &Output) -> (Output, Output) {
    let [sign, log_abs_determinant] = input.graph().op("LogMatrixDeterminant").input(input).split();
    (sign, log_abs_determinant)
}

/// The attributes of [`lu_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LuOptions {
    /// `output_idx_type`: type, `Int32` by default.
    pub output_idx_type: DType,
}

impl Default for LuOptions {
    fn default() -> Self {
        LuOptions { output_idx_type: DType::Int32 }
    }
}

/// `Lu`: Lower and upper factors of square matrices, with the order of rows.
///
/// Returns (`lu`, `p`).
#[inline]
#[track_caller]
pub fn lu(input: &Output) -> (Output, Output) {
    lu_with(input, LuOptions::default())
}

/// [`lu()`] with other attributes.
#[inline]
#[track_caller]
pub fn lu_with(input: &Output, options: LuOptions) -> (Output, Output) {
    let [lu, p] = input
        .graph()
        .op("Lu")
        .input(input)
        .attr("output_idx_type", options.output_idx_type)
        .split();
    (lu, p)
}

/// The attributes of [`mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatMulOptions {
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
}

impl Default for MatMulOptions {
    fn default() -> Self {
        MatMulOptions { transpose_a: false, transpose_b: false }
    }
}

/// `MatMul`: The product of two matrices.
#[inline]
#[track_caller]
pub fn mat_mul(a: &Output, b: &Output) -> Output {
    mat_mul_with(a, b, MatMulOptions::default())
}

/// [`mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn mat_mul_with(a: &Output, b: &Output, options: MatMulOptions) -> Output {
    a.graph()
        .op("MatMul")
        .input(a)
        .input(b)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .output()
}

/// `MatrixDeterminant`: Determinants of square matrices.
#[inline]
#[track_caller]
pub fn matrix_determinant(input: &Output) -> Output {
    input.graph().op("MatrixDeterminant").input(input).output()
}

/// `MatrixExponential`: Exponentials of matrices.
#[inline]
#[track_caller]
pub fn matrix_exponential(input: &Output) -> Output {
    input.graph().op("MatrixExponential").input(input).output()
}

/// The attributes of [`matrix_inverse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixInverseOptions {
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for MatrixInverseOptions {
    fn default() -> Self {
        MatrixInverseOptions { adjoint: false }
    }
}

/// `MatrixInverse`: Inverses of square matrices, or of their adjoints.
#[inline]
#[track_caller]
pub fn matrix_inverse(input: &Output) -> Output {
    matrix_inverse_with(input, MatrixInverseOptions::default())
}

/// [`matrix_inverse()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_inverse_with(input: &Output, options: MatrixInverseOptions) -> Output {
    input.graph().op("MatrixInverse").input(input).attr("adjoint", options.adjoint).output()
}

/// `MatrixLogarithm`: Principal logarithms of matrices; NaN where there is none.
#[inline]
#[track_caller]
pub fn matrix_logarithm(input: &Output) -> Output {
    input.graph().op("MatrixLogarithm").input(input).output()
}

/// The attributes of [`matrix_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixSolveOptions {
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for MatrixSolveOptions {
    fn default() -> Self {
        MatrixSolveOptions { adjoint: false }
    }
}

/// `MatrixSolve`: Solutions of systems of linear equations.
#[inline]
#[track_caller]
pub fn matrix_solve(matrix: &Output, rhs: &Output) -> Output {
    matrix_solve_with(matrix, rhs, MatrixSolveOptions::default())
}

/// [`matrix_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_solve_with(matrix: &Output, rhs: &Output, options: MatrixSolveOptions) -> Output {
    matrix
        .graph()
        .op("MatrixSolve")
        .input(matrix)
        .input(rhs)
        .attr("adjoint", options.adjoint)
        .output()
}

/// The attributes of [`matrix_solve_ls_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixSolveLsOptions {
    /// `fast`: bool, `true` by default.
    pub fast: bool,
}

impl Default for MatrixSolveLsOptions {
    fn default() -> Self {
        MatrixSolveLsOptions { fast: true }
    }
}

/// `MatrixSolveLs`: Least-squares solutions of systems of linear equations.
#[inline]
#[track_caller]
pub fn matrix_solve_ls(matrix: &Output, rhs: &Output, l2_regularizer: &Output) -> Output {
    matrix_solve_ls_with(matrix, rhs, l2_regularizer, MatrixSolveLsOptions::default())
}

/// [`matrix_solve_ls()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_solve_ls_with(
    matrix: &Output,
    rhs: &Output,
    l2_regularizer: &Output,
    options: MatrixSolveLsOptions,
) -> Output {
    matrix
        .graph()
        .op("MatrixSolveLs")
        .input(matrix)
        .input(rhs)
        .input(l2_regularizer)
        .attr("fast", options.fast)
        .output()
}

/// `MatrixSquareRoot`: Principal square roots of matrices; NaN where there is none.
#[inline]
#[track_caller]
pub fn matrix_square_root(input: &Output) -> Output {
    input.graph().op("MatrixSquareRoot").input(input).output()
}

/// The attributes of [`matrix_triangular_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MatrixTriangularSolveOptions {
    /// `lower`: bool, `true` by default.
    pub lower: bool,
    /// `adjoint`: bool, `false` by default.
    pub adjoint: bool,
}

impl Default for MatrixTriangularSolveOptions {
    fn default() -> Self {
        MatrixTriangularSolveOptions { lower: true, adjoint: false }
    }
}

/// `MatrixTriangularSolve`: Solutions of systems with triangular matrices.
#[inline]
#[track_caller]
pub fn matrix_triangular_solve(matrix: &Output, rhs: &Output) -> Output {
    matrix_triangular_solve_with(matrix, rhs, MatrixTriangularSolveOptions::default())
}

/// [`matrix_triangular_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn matrix_triangular_solve_with(
    matrix: &Output,
    rhs: &Output,
    options: MatrixTriangularSolveOptions,
) -> Output {
    matrix
        .graph()
        .op("MatrixTriangularSolve")
        .input(matrix)
        .input(rhs)
        .attr("lower", options.lower)
        .attr("adjoint", options.adjoint)
        .output()
}

/// The attributes of [`qr_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QrOptions {
    /// `full_matrices`: bool, `false` by default.
    pub full_matrices: bool,
}

impl Default for QrOptions {
    fn default() -> Self {
        QrOptions { full_matrices: false }
    }
}

/// `Qr`: Orthogonal and upper triangular factors of matrices.
///
/// Returns (`q`, `r`).
#[inline]
#[track_caller]
pub fn qr(input: &Output) -> (Output, Output) {
    qr_with(input, QrOptions::default())
}

/// [`qr()`] with other attributes.
#[inline]
#[track_caller]
pub fn qr_with(input: &Output, options: QrOptions) -> (Output, Output) {
    let [q, r] =
        input.graph().op("Qr").input(input).attr("full_matrices", options.full_matrices).split();
    (q, r)
}

/// `SelfAdjointEig`: Eigenvalues above the eigenvectors of self-adjoint matrices.
#[inline]
#[track_caller]
pub fn self_adjoint_eig(input: &Output) -> Output {
    input.graph().op("SelfAdjointEig").input(input).output()
}

/// The attributes of [`self_adjoint_eig_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SelfAdjointEigV2Options {
    /// `compute_v`: bool, `true` by default.
    pub compute_v: bool,
}

impl Default for SelfAdjointEigV2Options {
    fn default() -> Self {
        SelfAdjointEigV2Options { compute_v: true }
    }
}

/// `SelfAdjointEigV2`: Eigenvalues, in rising order, and vectors of self-adjoint matrices.
///
/// Returns (`e`, `v`).
#[inline]
#[track_caller]
pub fn self_adjoint_eig_v2(input: &Output) -> (Output, Output) {
    self_adjoint_eig_v2_with(input, SelfAdjointEigV2Options::default())
}

/// [`self_adjoint_eig_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn self_adjoint_eig_v2_with(
    input: &Output,
    options: SelfAdjointEigV2Options,
) -> (Output, Output) {
    let [e, v] = input
        .graph()
        .op("SelfAdjointEigV2")
        .input(input)
        .attr("compute_v", options.compute_v)
        .split();
    (e, v)
}

/// The attributes of [`sparse_mat_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseMatMulOptions {
    /// `transpose_a`: bool, `false` by default.
    pub transpose_a: bool,
    /// `transpose_b`: bool, `false` by default.
    pub transpose_b: bool,
    /// `a_is_sparse`: bool, `false` by default.
    pub a_is_sparse: bool,
    /// `b_is_sparse`: bool, `false` by default.
    pub b_is_sparse: bool,
}

impl Default for SparseMatMulOptions {
    fn default() -> Self {
        SparseMatMulOptions {
            transpose_a: false,
            transpose_b: false,
            a_is_sparse: false,
            b_is_sparse: false,
        }
    }
}

/// `SparseMatMul`: The product of two matrices, of which either may be bfloat16.
#[inline]
#[track_caller]
pub fn sparse_mat_mul(a: &Output, b: &Output) -> Output {
    sparse_mat_mul_with(a, b, SparseMatMulOptions::default())
}

/// [`sparse_mat_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_mat_mul_with(a: &Output, b: &Output, options: SparseMatMulOptions) -> Output {
    a.graph()
        .op("SparseMatMul")
        .input(a)
        .input(b)
        .attr("transpose_a", options.transpose_a)
        .attr("transpose_b", options.transpose_b)
        .attr("a_is_sparse", options.a_is_sparse)
        .attr("b_is_sparse", options.b_is_sparse)
        .output()
}

/// The attributes of [`svd_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SvdOptions {
    /// `compute_uv`: bool, `true` by default.
    pub compute_uv: bool,
    /// `full_matrices`: bool, `false` by default.
    pub full_matrices: bool,
}

impl Default for SvdOptions {
    fn default() -> Self {
        SvdOptions { compute_uv: true, full_matrices: false }
    }
}

/// `Svd`: Singular values and vectors of matrices.
///
/// Returns (`s`, `u`, `v`).
#[inline]
#[track_caller]
pub fn svd(input: &Output) -> (Output, Output, Output) {
    svd_with(input, SvdOptions::default())
}

/// [`svd()`] with other attributes.
#[inline]
#[track_caller]
pub fn svd_with(input: &Output, options: SvdOptions) -> (Output, Output, Output) {
    let [s, u, v] = input
        .graph()
        .op("Svd")
        .input(input)
        .attr("compute_uv", options.compute_uv)
        .attr("full_matrices", options.full_matrices)
        .split();
    (s, u, v)
}

/// `TridiagonalMatMul`: Products of tridiagonal and dense matrices.
#[inline]
#[track_caller]
pub fn tridiagonal_mat_mul(
    superdiag: &Output,
    maindiag: &Output,
    subdiag: &Output,
    rhs: &Output,
) -> Output {
    superdiag
        .graph()
        .op("TridiagonalMatMul")
        .input(superdiag)
        .input(maindiag)
        .input(subdiag)
        .input(rhs)
        .output()
}

/// The attributes of [`tridiagonal_solve_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TridiagonalSolveOptions {
    /// `partial_pivoting`: bool, `true` by default.
    pub partial_pivoting: bool,
    /// `perturb_singular`: bool, `false` by default.
    pub perturb_singular: bool,
}

impl Default for TridiagonalSolveOptions {
    fn default() -> Self {
        TridiagonalSolveOptions { partial_pivoting: true, perturb_singular: false }
    }
}

/// `TridiagonalSolve`: Solutions of systems with tridiagonal matrices; NaN where there is none.
#[inline]
#[track_caller]
pub fn tridiagonal_solve(diagonals: &Output, rhs: &Output) -> Output {
    tridiagonal_solve_with(diagonals, rhs, TridiagonalSolveOptions::default())
}

/// [`tridiagonal_solve()`] with other attributes.
#[inline]
#[track_caller]
pub fn tridiagonal_solve_with(
    diagonals: &Output,
    rhs: &Output,
    options: TridiagonalSolveOptions,
) -> Output {
    diagonals
        .graph()
        .op("TridiagonalSolve")
        .input(diagonals)
        .input(rhs)
        .attr("partial_pivoting", options.partial_pivoting)
        .attr("perturb_singular", options.perturb_singular)
        .output()
}

/// `XlaSelfAdjointEig`: Eigenvalues, in rising order, and vectors of self-adjoint matrices.
///
/// Returns (`w`, `v`).
#[inline]
#[track_caller]
pub fn xla_self_adjoint_eig(
    a: &Output,
    lower: bool,
    max_iter: i64,
    epsilon: f32,
) -> (Output, Output) {
    let [w, v] = a
        .graph()
        .op("XlaSelfAdjointEig")
        .input(a)
        .attr("lower", lower)
        .attr("max_iter", max_iter)
        .attr("epsilon", epsilon)
        .split();
    (w, v)
}

/// `XlaSvd`: Singular values, in falling order, and all singular vectors of matrices.
///
/// Returns (`s`, `u`, `v`).
#[inline]
#[track_caller]
pub fn xla_svd(
    a: &Output,
    max_iter: i64,
    epsilon: f32,
    precision_config: &str,
) -> (Output, Output, Output) {
    let [s, u, v] = a
        .graph()
        .op("XlaSvd")
        .input(a)
        .attr("max_iter", max_iter)
        .attr("epsilon", epsilon)
        .attr("precision_config", precision_config)
        .split();
    (s, u, v)
}
