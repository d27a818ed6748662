"""Gradients of matrix products."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


@gradient("MatMul")
def _matmul(op, grad):
    turn_a, turn_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    a, b = math_ops.conj(op.inputs[0]), math_ops.conj(op.inputs[1])
    if not turn_a and not turn_b:
        return g.MatMul(grad, b, transpose_b=True), g.MatMul(a, grad, transpose_a=True)
    if not turn_a:
        return g.MatMul(grad, b), g.MatMul(grad, a, transpose_a=True)
    if not turn_b:
        return g.MatMul(b, grad, transpose_b=True), g.MatMul(a, grad)
    return (g.MatMul(b, grad, transpose_a=True, transpose_b=True),
            g.MatMul(grad, a, transpose_a=True, transpose_b=True))


def _batch(op, grad):
    x, y = op.inputs
    adj_x, adj_y = op.get_attr("adj_x"), op.get_attr("adj_y")
    product = math_ops.matmul
    if not adj_x and not adj_y:
        return product(grad, y, adjoint_b=True), product(x, grad, adjoint_a=True)
    if not adj_x:
        return product(grad, y), product(grad, x, adjoint_a=True)
    if not adj_y:
        return product(y, grad, adjoint_b=True), product(x, grad)
    return (product(y, grad, adjoint_a=True, adjoint_b=True),
            product(grad, x, adjoint_a=True, adjoint_b=True))


gradient("BatchMatMul")(_batch)


@gradient("BatchMatMulV2", "BatchMatMulV3")
def _batch_v2(op, grad):
    x, y = op.inputs
    dx, dy = _batch(op, grad)
    shape_x, shape_y = x.get_shape(), y.get_shape()
    batched = any(s.ndims is None or s.ndims > 2 for s in (shape_x, shape_y))
    if not batched:
        return dx, dy
    if shape_x.ndims is not None and shape_y.ndims is not None:
        batch_x, batch_y = shape_x.as_list()[:-2], shape_y.as_list()[:-2]
        if batch_x == batch_y and None not in batch_x:
            return dx, dy
    sx, sy = array_ops.shape(x), array_ops.shape(y)
    rx, ry = g.BroadcastGradientArgs(sx[:-2], sy[:-2])
    return (array_ops.reshape(math_ops.reduce_sum(dx, rx), sx),
            array_ops.reshape(math_ops.reduce_sum(dy, ry), sy))


@gradient("SparseMatMul")
def _sparse_matmul(op, grad):
    turn_a, turn_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    a, b = op.inputs
    sparse = {id(a): op.get_attr("a_is_sparse"), id(b): op.get_attr("b_is_sparse"),
              id(grad): grad.op.type == "ReluGrad"}

    def product(x, y, dtype, transpose_a=False, transpose_b=False):
        x_sparse, y_sparse = sparse[id(x)], sparse[id(y)]
        if transpose_b:
            y = array_ops.transpose(y)
        result = math_ops.matmul(x, y, transpose_a=transpose_a, a_is_sparse=x_sparse,
                                 b_is_sparse=y_sparse)
        return result if result.dtype == dtype else math_ops.cast(result, dtype)

    if not turn_a and not turn_b:
        return (product(grad, b, a.dtype, transpose_b=True),
                product(a, grad, b.dtype, transpose_a=True))
    if not turn_a:
        return product(grad, b, a.dtype), product(grad, a, b.dtype, transpose_a=True)
    if not turn_b:
        return product(b, grad, a.dtype, transpose_b=True), product(a, grad, b.dtype)
    return (product(b, grad, a.dtype, transpose_a=True, transpose_b=True),
            product(grad, a, b.dtype, transpose_a=True, transpose_b=True))


@gradient("Cross")
def _cross(op, grad):
    u, v = op.inputs
    return g.Cross(v, grad), g.Cross(grad, u)
