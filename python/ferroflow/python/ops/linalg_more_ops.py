"""More of `tf.linalg`: factorizations, pseudo-inverses and tridiagonal systems."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import counting_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import linalg_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


@export("linalg.adjoint")
def adjoint(matrix, name=None):
    with ops.name_scope(name, "adjoint", [matrix]):
        matrix = ops.convert_to_tensor(matrix, name="matrix")
        return array_ops.matrix_transpose(matrix, conjugate=True)


@export("linalg.normalize")
def normalize(tensor, ord="euclidean", axis=None, name=None):
    """(tensor / norm, norm)."""
    with ops.name_scope(name, "normalize", [tensor]):
        tensor = ops.convert_to_tensor(tensor)
        norm = linalg_ops.norm(tensor, ord, axis, keepdims=True)
        norm = math_ops.cast(norm, tensor.dtype)
        return tensor / norm, norm


@export("linalg.expm")
def matrix_exponential(input, name=None):
    """The exponential of square matrices, by scaling, a Padé approximant, and squaring."""
    with ops.name_scope(name, "matrix_exponential", [input]):
        matrix = ops.convert_to_tensor(input, name="input")
        if matrix.get_shape().as_list()[-2:] == [0, 0]:
            return matrix
        one_norm = math_ops.reduce_max(math_ops.reduce_sum(math_ops.abs(matrix), axis=-2), axis=-1)
        real = one_norm.dtype
        zero = ops.convert_to_tensor(0.0, dtype=real)
        # The norm is brought below one half.
        scale = math_ops.ceil(math_ops.log(math_ops.maximum(one_norm * 2.0, 1.0)) / np.log(2.0))
        scale = math_ops.maximum(scale, zero)
        factor = math_ops.cast(2.0 ** -scale, matrix.dtype)[..., array_ops.newaxis, array_ops.newaxis]
        a = matrix * factor
        size = array_ops.shape(a)[-1]
        unit = linalg_ops.eye(size, batch_shape=array_ops.shape(a)[:-2], dtype=a.dtype)
        degree = 8
        term, above, below = unit, unit, unit
        coefficient = 1.0
        for k in range(1, degree + 1):
            coefficient *= (degree - k + 1) / ((2 * degree - k + 1) * k)
            term = math_ops.matmul(a, term)
            above += coefficient * term
            below += (coefficient if k % 2 == 0 else -coefficient) * term
        result = gen_ops.MatrixSolve(below, above)
        from ferroflow.python.ops import while_loop
        most = math_ops.reduce_max(scale)

        def square(i, x):
            again = math_ops.cast(math_ops.less(i, scale), x.dtype)[..., array_ops.newaxis, array_ops.newaxis]
            return i + 1, again * math_ops.matmul(x, x) + (1 - again) * x
        _, result = while_loop.while_loop(lambda i, _: i < most, square, [zero, result])
        result.set_shape(matrix.get_shape())
        return result


@export("linalg.pinv")
def pinv(a, rcond=None, validate_args=False, name=None):
    """The pseudo-inverse, by singular values."""
    with ops.name_scope(name, "pinv", [a]):
        a = ops.convert_to_tensor(a, name="a")
        if not a.dtype.is_floating:
            raise TypeError("Input `a` must have `float`-like `dtype` (saw %s)." % a.dtype.name)
        kind = a.dtype.as_numpy_dtype
        if rcond is None:
            longest = math_ops.cast(math_ops.reduce_max(array_ops.shape(a)[-2:]), a.dtype)
            rcond = 10.0 * longest * np.finfo(kind).eps
        rcond = ops.convert_to_tensor(rcond, dtype=kind, name="rcond")
        singular, left, right = linalg_ops.svd(a, full_matrices=False, compute_uv=True)
        cutoff = rcond * math_ops.reduce_max(singular, axis=-1)
        large = singular > cutoff[..., array_ops.newaxis]
        inverted = array_ops.where(large, 1.0 / singular, array_ops.zeros_like(singular))
        found = math_ops.matmul(right * inverted[..., array_ops.newaxis, :], left, adjoint_b=True)
        dims = a.get_shape().as_list()
        found.set_shape(dims[:-2] + [dims[-1], dims[-2]])
        return found


@export("linalg.matrix_rank")
def matrix_rank(a, tol=None, validate_args=False, name=None):
    with ops.name_scope(name, "matrix_rank", [a]):
        a = ops.convert_to_tensor(a, dtype_hint=dtypes.float32, name="a")
        singular = linalg_ops.svd(a, compute_uv=False)
        if tol is None:
            longest = math_ops.cast(math_ops.reduce_max(array_ops.shape(a)[-2:]), a.dtype)
            tol = np.finfo(a.dtype.as_numpy_dtype).eps * longest * math_ops.reduce_max(singular, axis=-1, keepdims=True)
        return math_ops.reduce_sum(math_ops.cast(singular > tol, dtypes.int32), axis=-1)


@export("linalg.lu_solve")
def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    """Solves a system whose matrix `tf.linalg.lu` has factored."""
    with ops.name_scope(name, "lu_solve", [lower_upper, perm, rhs]):
        lower_upper = ops.convert_to_tensor(lower_upper, name="lower_upper")
        perm = ops.convert_to_tensor(perm, dtype=dtypes.int32, name="perm")
        rhs = ops.convert_to_tensor(rhs, dtype=lower_upper.dtype, name="rhs")
        rhs = array_ops.gather(rhs, perm, batch_dims=perm.get_shape().ndims - 1, axis=-2)
        ones = array_ops.ones(array_ops.shape(lower_upper)[:-1], dtype=lower_upper.dtype)
        lower = gen_ops.MatrixSetDiagV3(gen_ops.MatrixBandPart(lower_upper, -1, 0), ones, 0)
        return linalg_ops.matrix_triangular_solve(
            lower_upper, linalg_ops.matrix_triangular_solve(lower, rhs), lower=False)


@export("linalg.lu_matrix_inverse")
def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    with ops.name_scope(name, "lu_matrix_inverse", [lower_upper, perm]):
        lower_upper = ops.convert_to_tensor(lower_upper, name="lower_upper")
        shape = array_ops.shape(lower_upper)
        unit = linalg_ops.eye(shape[-1], batch_shape=shape[:-2], dtype=lower_upper.dtype)
        return lu_solve(lower_upper, perm, unit)


@export("linalg.lu_reconstruct")
def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    """The matrix that `tf.linalg.lu` has factored."""
    with ops.name_scope(name, "lu_reconstruct", [lower_upper, perm]):
        lower_upper = ops.convert_to_tensor(lower_upper, name="lower_upper")
        perm = ops.convert_to_tensor(perm, dtype=dtypes.int32, name="perm")
        ones = array_ops.ones(array_ops.shape(lower_upper)[:-1], dtype=lower_upper.dtype)
        lower = gen_ops.MatrixSetDiagV3(gen_ops.MatrixBandPart(lower_upper, -1, 0), ones, 0)
        product = math_ops.matmul(lower, gen_ops.MatrixBandPart(lower_upper, 0, -1))
        back = counting_ops.argsort(perm, axis=-1)
        found = array_ops.gather(product, back, batch_dims=perm.get_shape().ndims - 1, axis=-2)
        found.set_shape(lower_upper.get_shape())
        return found


def _diagonals(diagonals, form):
    """The three diagonals as [..., 3, n]: above, main, below."""
    if form == "compact":
        return ops.convert_to_tensor(diagonals)
    if form == "sequence":
        above, main, below = (ops.convert_to_tensor(d) for d in diagonals)
        n = main.get_shape().as_list()[-1]
        if above.get_shape().as_list()[-1] == n - 1:
            before = [[0, 0]] * (main.get_shape().ndims - 1)
            above = array_ops.pad(above, before + [[0, 1]])
            below = array_ops.pad(below, before + [[1, 0]])
        return array_ops.stack([above, main, below], axis=-2)
    if form == "matrix":
        matrix = ops.convert_to_tensor(diagonals)
        return gen_ops.MatrixDiagPartV3(matrix, [-1, 1], ops.convert_to_tensor(0.0, dtype=matrix.dtype), "LEFT_RIGHT")
    raise ValueError("Unexpected diagonals_format: %s" % form)


@export("linalg.tridiagonal_solve")
def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None,
                      partial_pivoting=True, perturb_singular=False):
    with ops.name_scope(name, "tridiagonal_solve"):
        packed = _diagonals(diagonals, diagonals_format)
        rhs = ops.convert_to_tensor(rhs, dtype=packed.dtype)
        vector = rhs.get_shape().ndims == packed.get_shape().ndims - 1
        if vector:
            rhs = array_ops.expand_dims(rhs, -1)
        elif transpose_rhs:
            rhs = array_ops.matrix_transpose(rhs, conjugate=conjugate_rhs)
        elif conjugate_rhs:
            rhs = math_ops.conj(rhs)
        found = gen_ops.TridiagonalSolve(packed, rhs, partial_pivoting, perturb_singular)
        return array_ops.squeeze(found, -1) if vector else found


@export("linalg.tridiagonal_matmul")
def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    with ops.name_scope(name, "tridiagonal_matmul"):
        packed = _diagonals(diagonals, diagonals_format)
        rows = [array_ops.expand_dims(packed[..., i, :], -2) for i in range(3)]
        return gen_ops.TridiagonalMatMul(rows[0], rows[1], rows[2], ops.convert_to_tensor(rhs, dtype=packed.dtype))
