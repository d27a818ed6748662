"""Gradients of matrix decompositions and solvers, and of Einsum."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import linalg_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient

matmul = math_ops.matmul


def _adjoint(x):
    return array_ops.matrix_transpose(x, conjugate=True)


@gradient("MatrixInverse")
def _inverse(op, grad):
    inverse = op.outputs[0]
    adjoint = op.get_attr("adjoint")
    return -matmul(inverse, matmul(grad, inverse, adjoint_a=adjoint, adjoint_b=not adjoint),
                   adjoint_a=not adjoint)


@gradient("MatrixDeterminant")
def _determinant(op, grad):
    a, c = op.inputs[0], op.outputs[0]
    inverse = g.MatrixInverse(a, adjoint=True)
    scale = array_ops.reshape(grad * c, array_ops.concat([array_ops.shape(c), [1, 1]], 0))
    return scale * inverse


@gradient("LogMatrixDeterminant")
def _log_determinant(op, _, grad):
    a, c = op.inputs[0], op.outputs[1]
    inverse = g.MatrixInverse(a, adjoint=True)
    scale = array_ops.reshape(grad, array_ops.concat([array_ops.shape(c), [1, 1]], 0))
    return scale * inverse


@gradient("Cholesky")
def _cholesky(op, grad):
    lower = op.outputs[0]
    rows = array_ops.shape(lower)[-1]
    batch = array_ops.shape(lower)[:-2]
    inverse = linalg_ops.matrix_triangular_solve(
        lower, linalg_ops.eye(rows, batch_shape=batch, dtype=lower.dtype))
    middle = matmul(lower, grad, adjoint_a=True)
    middle = array_ops.matrix_set_diag(middle, 0.5 * array_ops.matrix_diag_part(middle))
    middle = g.MatrixBandPart(middle, -1, 0)
    result = matmul(matmul(inverse, middle, adjoint_a=True), inverse)
    result += _adjoint(result)
    return result * 0.5


@gradient("MatrixSolve")
def _solve(op, grad):
    a, adjoint = op.inputs[0], op.get_attr("adjoint")
    c = op.outputs[0]
    grad_b = g.MatrixSolve(a, grad, adjoint=not adjoint)
    if adjoint:
        return -matmul(c, grad_b, adjoint_b=True), grad_b
    return -matmul(grad_b, c, adjoint_b=True), grad_b


@gradient("MatrixTriangularSolve")
def _triangular_solve(op, grad):
    a, b = op.inputs
    adjoint, lower = op.get_attr("adjoint"), op.get_attr("lower")
    c = op.outputs[0]
    grad_b = linalg_ops.matrix_triangular_solve(a, grad, lower=lower, adjoint=not adjoint)
    if adjoint:
        grad_a = -matmul(c, grad_b, adjoint_b=True)
    else:
        grad_a = -matmul(grad_b, c, adjoint_b=True)
    grad_a = g.MatrixBandPart(grad_a, -1, 0) if lower else g.MatrixBandPart(grad_a, 0, -1)
    if a.get_shape().is_fully_defined() and b.get_shape().is_fully_defined() and (
            a.get_shape().as_list()[:-2] == b.get_shape().as_list()[:-2]):
        return grad_a, grad_b
    a_shape, b_shape = array_ops.shape(a), array_ops.shape(b)
    ra, rb = g.BroadcastGradientArgs(a_shape[:-2], b_shape[:-2])
    return (array_ops.reshape(math_ops.reduce_sum(grad_a, axis=ra), a_shape),
            array_ops.reshape(math_ops.reduce_sum(grad_b, axis=rb), b_shape))


@gradient("Qr")
def _qr(op, dq, dr):
    q, r = op.outputs
    dims = r.get_shape().as_list() if r.get_shape().ndims is not None else [None, None]
    if None in dims[-2:] or q.get_shape().as_list()[-2] != dims[-2] and dims[-2] > dims[-1]:
        raise NotImplementedError("QrGrad not implemented for these shapes: %s" % r.get_shape())
    if dims[-2] < dims[-1]:
        raise NotImplementedError("QrGrad not implemented when ncols > nrows: %s" % r.get_shape())

    def solve(x, upper):
        return _adjoint(linalg_ops.matrix_triangular_solve(upper, _adjoint(x), lower=False,
                                                           adjoint=False))

    qdq = matmul(q, dq, adjoint_a=True)
    rdr = matmul(r, dr, adjoint_b=True)
    lower = g.MatrixBandPart((qdq - _adjoint(qdq)) + (rdr - _adjoint(rdr)), -1, 0)
    return matmul(q, dr + solve(lower, r)) + solve(dq - matmul(q, qdq), r)


@gradient("SelfAdjointEigV2")
def _self_adjoint_eig(op, grad_e, grad_v):
    e, v = op.outputs
    if not op.get_attr("compute_v"):
        _, v = linalg_ops.self_adjoint_eig(op.inputs[0])
        inner = array_ops.matrix_diag(grad_e)
    else:
        difference = array_ops.expand_dims(e, -2) - array_ops.expand_dims(e, -1)
        factor = array_ops.matrix_set_diag(_safe_reciprocal(difference),
                                           array_ops.zeros_like(e))
        inner = array_ops.matrix_diag(grad_e) + math_ops.cast(factor, v.dtype) * matmul(
            v, grad_v, adjoint_a=True)
    result = matmul(v, matmul(inner, v, adjoint_b=True))
    # Only the lower triangle of the input counts.
    result = g.MatrixBandPart(result + _adjoint(result), -1, 0)
    return array_ops.matrix_set_diag(result, 0.5 * array_ops.matrix_diag_part(result))


def _safe_reciprocal(x, epsilon=1e-20):
    return x * g.Reciprocal(x * x + epsilon)


@gradient("Svd")
def _svd(op, grad_s, grad_u, grad_v):
    """The real case of A = U S V^T, where U and V have as many columns as there are singular values."""
    a = op.inputs[0]
    compute_uv = op.get_attr("compute_uv")
    if compute_uv and (a.dtype.is_complex or (
            op.get_attr("full_matrices") and a.get_shape()[-1:] != a.get_shape()[-2:-1])):
        raise NotImplementedError("The gradient of svd has no rule for complex matrices, nor for full_matrices of a "
                                  "matrix that is not square: compute_uv=False or full_matrices=False has one.")
    s, u, v = (op.outputs if compute_uv else g.Svd(a))
    grad_s = math_ops.cast(grad_s, a.dtype)
    middle = array_ops.matrix_diag(grad_s)
    if not compute_uv:
        return matmul(u, matmul(middle, v, adjoint_b=True))
    squares = g.Square(s)
    f = array_ops.matrix_set_diag(
        _safe_reciprocal(array_ops.expand_dims(squares, -2) - array_ops.expand_dims(squares, -1)),
        array_ops.zeros_like(s))
    diagonal, inverse = array_ops.matrix_diag(s), _safe_reciprocal(s)
    of_u, of_v = matmul(u, grad_u, adjoint_a=True), matmul(v, grad_v, adjoint_a=True)
    middle += matmul(f * (of_u - _adjoint(of_u)), diagonal) + matmul(diagonal, f * (of_v - _adjoint(of_v)))
    result = matmul(u, matmul(middle, v, adjoint_b=True))
    rest_u = (grad_u - matmul(u, of_u)) * array_ops.expand_dims(inverse, -2)
    rest_v = (grad_v - matmul(v, of_v)) * array_ops.expand_dims(inverse, -2)
    return result + matmul(rest_u, v, adjoint_b=True) + matmul(u, rest_v, adjoint_b=True)


@gradient("Einsum")
def _einsum(op, grad):
    equation = op.get_attr("equation")
    equation = equation.decode() if isinstance(equation, bytes) else equation
    left, output = equation.split("->")
    terms = left.split(",")
    if "." in equation or any(len(set(t)) != len(t) for t in terms):
        raise NotImplementedError("the gradient of this einsum is not supported: %s" % equation)
    if len(terms) == 1:
        return _einsum_one(op.inputs[0], terms[0], output, grad)
    x, y = op.inputs
    return (_einsum_part(x, terms[0], y, terms[1], output, grad),
            _einsum_part(y, terms[1], x, terms[0], output, grad))


def _einsum_one(x, term, output, grad):
    missing = [c for c in term if c not in output]
    if not missing:
        return g.Einsum([grad], "%s->%s" % (output, term))
    shape = array_ops.shape(x)
    kept = "".join(c for c in term if c in output)
    part = g.Einsum([grad], "%s->%s" % (output, kept))
    for i, c in enumerate(term):
        if c in missing:
            part = array_ops.expand_dims(part, i)
    return g.BroadcastTo(part, shape)


def _einsum_part(x, own, other, other_term, output, grad):
    """The gradient of one factor; axes that only it has were summed and are spread again."""
    kept = "".join(c for c in own if c in output or c in other_term)
    part = g.Einsum([grad, other], "%s,%s->%s" % (output, other_term, kept))
    if kept == own:
        return part
    for i, c in enumerate(own):
        if c not in kept:
            part = array_ops.expand_dims(part, i)
    return g.BroadcastTo(part, array_ops.shape(x))
