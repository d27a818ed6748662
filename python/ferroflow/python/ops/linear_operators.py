"""`tf.linalg.LinearOperator…`: matrices that know their structure."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import linalg_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


@export("linalg.LinearOperator")
class LinearOperator:
    """A matrix, or a batch of them. Subclasses have `to_dense`, and better ways where there are any."""

    def __init__(self, name=None):
        self.name = name or type(self).__name__

    def to_dense(self):
        raise NotImplementedError("to_dense is not implemented.")

    dtype = property(lambda self: self._of.dtype)
    shape = property(lambda self: self.to_dense().get_shape())
    batch_shape = property(lambda self: self.shape[:-2])
    domain_dimension = property(lambda self: self.shape[-1])
    range_dimension = property(lambda self: self.shape[-2])
    graph_parents = property(lambda self: [self._of])

    def shape_tensor(self):
        return array_ops.shape(self.to_dense())

    def matmul(self, x, adjoint=False, adjoint_arg=False):
        if isinstance(x, LinearOperator):
            return LinearOperatorFullMatrix(self.matmul(x.to_dense(), adjoint, adjoint_arg))
        return math_ops.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def matvec(self, x, adjoint=False):
        return array_ops.squeeze(self.matmul(array_ops.expand_dims(x, -1), adjoint), [-1])

    def solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = ops.convert_to_tensor(rhs, dtype=self.dtype)
        rhs = array_ops.matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        return self._solve(rhs, adjoint)

    def _solve(self, rhs, adjoint):
        return gen_ops.MatrixSolve(self.to_dense(), rhs, adjoint=adjoint)

    def solvevec(self, rhs, adjoint=False):
        return array_ops.squeeze(self.solve(array_ops.expand_dims(rhs, -1), adjoint), [-1])

    def diag_part(self):
        return array_ops.matrix_diag_part(self.to_dense())

    def trace(self):
        return math_ops.reduce_sum(self.diag_part(), axis=-1)

    def determinant(self):
        return gen_ops.MatrixDeterminant(self.to_dense())

    def log_abs_determinant(self):
        return math_ops.log(math_ops.abs(self.determinant()))

    def inverse(self):
        return LinearOperatorFullMatrix(gen_ops.MatrixInverse(self.to_dense()))

    def adjoint(self):
        return LinearOperatorFullMatrix(array_ops.matrix_transpose(self.to_dense(), conjugate=True))

    def add_to_tensor(self, x):
        return x + self.to_dense()


class _Of(LinearOperator):
    """An operator that one tensor describes."""

    def __init__(self, of, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None, name=None):
        super().__init__(name)
        self._of = ops.convert_to_tensor(of)
        self.is_non_singular, self.is_self_adjoint = is_non_singular, is_self_adjoint
        self.is_positive_definite, self.is_square = is_positive_definite, is_square


@export("linalg.LinearOperatorFullMatrix")
class LinearOperatorFullMatrix(_Of):
    def to_dense(self):
        return self._of


@export("linalg.LinearOperatorLowerTriangular")
class LinearOperatorLowerTriangular(_Of):
    """The lower triangle of a matrix; elements above the diagonal count as zero."""

    def to_dense(self):
        return gen_ops.MatrixBandPart(self._of, -1, 0)

    def _solve(self, rhs, adjoint):
        return linalg_ops.matrix_triangular_solve(self._of, rhs, lower=True, adjoint=adjoint)

    def diag_part(self):
        return array_ops.matrix_diag_part(self._of)

    def determinant(self):
        return math_ops.reduce_prod(self.diag_part(), axis=-1)


@export("linalg.LinearOperatorDiag")
class LinearOperatorDiag(_Of):
    def to_dense(self):
        return array_ops.matrix_diag(self._of)

    def matmul(self, x, adjoint=False, adjoint_arg=False):
        if isinstance(x, LinearOperator):
            return super().matmul(x, adjoint, adjoint_arg)
        x = array_ops.matrix_transpose(x, conjugate=True) if adjoint_arg else x
        return array_ops.expand_dims(math_ops.conj(self._of) if adjoint else self._of, -1) * x

    def _solve(self, rhs, adjoint):
        return rhs / array_ops.expand_dims(math_ops.conj(self._of) if adjoint else self._of, -1)

    def diag_part(self):
        return self._of

    def determinant(self):
        return math_ops.reduce_prod(self._of, axis=-1)


@export("linalg.LinearOperatorIdentity")
class LinearOperatorIdentity(LinearOperatorDiag):
    def __init__(self, num_rows, batch_shape=None, dtype=None, **kwargs):
        batch = tensor_shape.as_shape(batch_shape or []).as_list()
        kwargs.pop("assert_proper_shapes", None)
        super().__init__(array_ops.ones(batch + [num_rows], dtypes.as_dtype(dtype or dtypes.float32)), **kwargs)
