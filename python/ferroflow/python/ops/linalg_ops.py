"""Matrices: solving, decompositions, norms."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import deprecated_alias, export

__getattr__ = module_names.fallback(__name__)


@export("eye", "linalg.eye")
def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None):
    with ops.name_scope(name, default_name="eye", values=[num_rows, num_columns, batch_shape]):
        square = num_columns is None
        batch_shape = [] if batch_shape is None else batch_shape
        num_columns = num_rows if num_columns is None else num_columns
        if isinstance(num_rows, ops.Tensor) or isinstance(num_columns, ops.Tensor):
            size = gen_ops.Minimum(num_rows, num_columns)
        else:
            square = num_rows == num_columns
            size = np.minimum(num_rows, num_columns)
        if isinstance(batch_shape, ops.Tensor) or isinstance(size, ops.Tensor):
            batch_shape = ops.convert_to_tensor(batch_shape, name="shape", dtype=dtypes.int32)
            diagonal = array_ops.concat((batch_shape, [size]), axis=0)
            if not square:
                shape = array_ops.concat((batch_shape, [num_rows, num_columns]), axis=0)
        else:
            diagonal = list(batch_shape) + [size]
            shape = list(batch_shape) + [num_rows, num_columns]
        ones = array_ops.ones(diagonal, dtype=dtype)
        if square:
            return array_ops.matrix_diag(ones)
        return array_ops.matrix_set_diag(array_ops.zeros(shape, dtype=dtype), ones)


@export("matrix_triangular_solve", "linalg.triangular_solve")
def matrix_triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    with ops.name_scope(name, "triangular_solve", [matrix, rhs]):
        return gen_ops.MatrixTriangularSolve(matrix, rhs, lower=lower, adjoint=adjoint)


@export("cholesky_solve", "linalg.cholesky_solve")
def cholesky_solve(chol, rhs, name=None):
    with ops.name_scope(name, "cholesky_solve", [chol, rhs]):
        y = gen_ops.MatrixTriangularSolve(chol, rhs, adjoint=False, lower=True)
        return gen_ops.MatrixTriangularSolve(chol, y, adjoint=True, lower=True)


def _gramian_cholesky(matrix, l2_regularizer, first_kind):
    gramian = math_ops.matmul(matrix, matrix, adjoint_a=first_kind, adjoint_b=not first_kind)
    if isinstance(l2_regularizer, ops.Tensor) or l2_regularizer != 0:
        shape = array_ops.shape(matrix)
        batch = shape[:-2]
        small = shape[-1] if first_kind else shape[-2]
        identity = eye(small, batch_shape=batch, dtype=matrix.dtype)
        known = matrix.get_shape()[-1 if first_kind else -2]
        identity.set_shape(matrix.get_shape()[:-2].concatenate([known, known]))
        gramian += l2_regularizer * identity
    return gen_ops.Cholesky(gramian)


def _overdetermined(matrix, rhs, l2_regularizer):
    chol = _gramian_cholesky(matrix, l2_regularizer, True)
    return cholesky_solve(chol, math_ops.matmul(matrix, rhs, adjoint_a=True))


def _underdetermined(matrix, rhs, l2_regularizer):
    chol = _gramian_cholesky(matrix, l2_regularizer, False)
    return math_ops.matmul(matrix, cholesky_solve(chol, rhs), adjoint_a=True)


def _composite_is_faster(shape, dtype):
    """Large batches of small matrices are better left to the op."""
    if not shape.is_fully_defined():
        return True
    dims = shape.as_list()
    size = int(np.prod(dims, dtype=np.int64)) * dtype.size
    return not (size > 256000 and int(np.prod(dims[:-2], dtype=np.int64)) > min(dims[-2:]))


@export("matrix_solve_ls", "linalg.lstsq")
def matrix_solve_ls(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    matrix = ops.convert_to_tensor(matrix, name="matrix")
    if matrix.dtype == dtypes.complex128 and l2_regularizer != 0:
        raise NotImplementedError("matrix_solve_ls is currently disabled for complex128 and "
                                  "l2_regularizer != 0 due to poor accuracy.")
    if fast is False or not _composite_is_faster(matrix.get_shape(), matrix.dtype):
        return gen_ops.MatrixSolveLs(matrix, rhs, l2_regularizer, fast=fast, name=name)
    with ops.name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):
        shape = matrix.get_shape()[-2:]
        if shape.is_fully_defined():
            rows, columns = shape.as_list()
            solve = _overdetermined if rows >= columns else _underdetermined
            return solve(matrix, rhs, l2_regularizer)
        from ferroflow.python.ops import cond
        dynamic = array_ops.shape(matrix)[-2:]
        return cond.cond(dynamic[-2] >= dynamic[-1],
                         lambda: _overdetermined(matrix, rhs, l2_regularizer),
                         lambda: _underdetermined(matrix, rhs, l2_regularizer))


@export("self_adjoint_eig", "linalg.eigh")
def self_adjoint_eig(tensor, name=None):
    e, v = gen_ops.SelfAdjointEigV2(tensor, compute_v=True, name=name)
    return e, v


@export("self_adjoint_eigvals", "linalg.eigvalsh")
def self_adjoint_eigvals(tensor, name=None):
    e, _ = gen_ops.SelfAdjointEigV2(tensor, compute_v=False, name=name)
    return e


@export("svd", "linalg.svd")
def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    s, u, v = gen_ops.Svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (math_ops.real(s), u, v) if compute_uv else math_ops.real(s)


@export("linalg.slogdet")
def slogdet(input, name=None):
    sign, log_abs = gen_ops.LogMatrixDeterminant(input, name=name)
    import collections
    return collections.namedtuple("SlogdetResult", ["sign", "log_abs_determinant"])(sign, log_abs)


@export("linalg.logdet")
def logdet(matrix, name=None):
    with ops.name_scope(name, "logdet", [matrix]):
        chol = gen_ops.Cholesky(matrix)
        return 2.0 * math_ops.reduce_sum(
            gen_ops.Log(math_ops.real(array_ops.matrix_diag_part(chol))), axis=[-1])


@export("norm", "linalg.norm")
def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None, keep_dims=None):
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
    matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    if matrix:
        axis = tuple(axis)
        if axis[0] == axis[1] or not all(isinstance(a, int) for a in axis):
            raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers, "
                             "got %s" % (axis,))
        if ord not in ["euclidean", "fro", 1, 2, np.inf]:
            raise ValueError("'ord' must be a supported matrix norm in %s, got %s" % (
                ["euclidean", "fro", 1, 2, np.inf], ord))
    else:
        if not (isinstance(axis, int) or axis is None):
            raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers, "
                             "got %s" % axis)
        if ord not in ["euclidean", 1, 2, np.inf] and (isinstance(ord, str) or ord <= 0):
            raise ValueError("'ord' must be a supported vector norm, got %s" % ord)
        if axis is not None:
            axis = (axis,)
    with ops.name_scope(name, "norm", [tensor]):
        tensor = ops.convert_to_tensor(tensor)
        result = _norm(tensor, ord, axis, matrix)
        return result if keepdims else array_ops.squeeze(result, axis)


def _norm(tensor, ord, axis, matrix):
    if ord in ("fro", "euclidean") or ord == 2:
        if matrix and ord == 2:
            return _spectral_norm(tensor, axis)
        return math_ops.sqrt(math_ops.reduce_sum(tensor * math_ops.conj(tensor), axis,
                                                 keepdims=True))
    result = math_ops.abs(tensor)
    if ord == 1:
        result = math_ops.reduce_sum(result, None if axis is None else axis[0], keepdims=True)
        return math_ops.reduce_max(result, axis[-1], keepdims=True) if matrix else result
    if ord == np.inf:
        if matrix:
            result = math_ops.reduce_sum(result, axis[1], keepdims=True)
        return math_ops.reduce_max(result, None if axis is None else axis[0], keepdims=True)
    return math_ops.pow(math_ops.reduce_sum(math_ops.pow(result, ord), axis, keepdims=True),
                        1.0 / ord)


def _spectral_norm(tensor, axis):
    """The largest singular value, with the matrix axes moved to the end and back."""
    from ferroflow.python.ops import cond
    from ferroflow.python.ops import map_fn
    rank = array_ops.rank(tensor)
    positive = map_fn.map_fn(lambda i: cond.cond(i >= 0, lambda: i, lambda: i + rank),
                             ops.convert_to_tensor(axis))
    axes = math_ops.range(rank)
    before = array_ops.concat([gen_ops.ListDiff(axes, positive, dtypes.int32)[0], positive],
                              axis=0)
    after = map_fn.map_fn(lambda i: math_ops.cast(array_ops.squeeze(
        array_ops.where_v2(math_ops.equal(before, i))), dtype=dtypes.int32), axes)
    turned = array_ops.transpose(tensor, perm=before)
    values = gen_ops.Svd(turned, compute_uv=False)[0]
    largest = array_ops.expand_dims(
        math_ops.reduce_max(math_ops.abs(values), axis=-1, keepdims=True), axis=-1)
    return array_ops.transpose(largest, perm=after)
