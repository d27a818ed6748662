"""Gradients of ops on sparse tensors."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import sparse_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable

not_differentiable("SparseAddGrad", "SparseConcat", "DeserializeSparse", "DeserializeManySparse",
                   "SerializeSparse", "SerializeManySparse")


@gradient("SparseReorder")
def _reorder(op, _, values_grad):
    indices, _, shape = op.inputs
    count = array_ops.shape(indices)[0]
    entries = math_ops.range(count)
    order = sparse_ops.sparse_reorder(
        sparse_tensor.SparseTensor(indices, entries, shape)).values
    return None, array_ops.gather(values_grad, g.InvertPermutation(order)), None


@gradient("SparseAdd")
def _add(op, *grads):
    values_grad = grads[1]
    a, b = g.SparseAddGrad(values_grad, op.inputs[0], op.inputs[3], op.outputs[0])
    a.set_shape(op.inputs[1].get_shape())
    b.set_shape(op.inputs[4].get_shape())
    return None, a, None, None, b, None, None


@gradient("SparseTensorDenseAdd")
def _dense_add(op, grad):
    return None, array_ops.gather_nd(grad, op.inputs[0]), None, grad


@gradient("SparseReduceSum")
def _reduce_sum(op, grad):
    indices, _, shape, axes = op.inputs
    shape = math_ops.cast(shape, dtypes.int32)
    kept = math_ops.reduced_shape(shape, axes)
    scale = shape // math_ops.cast(kept, shape.dtype)
    scaled = indices // math_ops.cast(scale, dtypes.int64)
    grad = array_ops.reshape(grad, kept)
    return None, array_ops.gather_nd(grad, scaled), None, None


@gradient("SparseSlice")
def _slice(op, *grads):
    values_grad = grads[1]
    indices, start = op.inputs[0], op.inputs[3]
    grad = g.SparseSliceGrad(values_grad, indices, start, op.outputs[0])
    grad.set_shape(op.inputs[1].get_shape())
    return None, grad, None, None, None


@gradient("SparseTensorDenseMatMul")
def _matmul(op, grad):
    indices, values, shape = op.inputs[:3]
    b = op.inputs[3]
    adj_a, adj_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    a = sparse_tensor.SparseTensor(indices, values, shape)
    b_grad = sparse_ops.sparse_tensor_dense_matmul(a, grad, adjoint_a=not adj_a)
    if adj_b:
        b_grad = array_ops.matrix_transpose(b_grad, conjugate=True)
    rows, columns = indices[:, 0], indices[:, 1]
    parts_a = array_ops.gather(grad, rows if not adj_a else columns)
    parts_b = array_ops.gather(b if not adj_b else array_ops.transpose(b),
                               columns if not adj_a else rows)
    return None, math_ops.reduce_sum(parts_a * parts_b, axis=1), None, b_grad


@gradient("SparseToDense")
def _to_dense(op, grad):
    values = array_ops.gather_nd(grad, op.inputs[0])
    default = math_ops.reduce_sum(grad) - math_ops.reduce_sum(values)
    return [None, None, values, default]


@gradient("SparseSoftmax")
def _softmax(op, grad):
    indices, shape = op.inputs[0], op.inputs[2]
    out = op.outputs[0]
    product = sparse_tensor.SparseTensor(indices, out * grad, shape)
    total = -sparse_ops.sparse_reduce_sum(product, [-1], keepdims=True)
    added = g.SparseDenseCwiseAdd(indices, grad, shape, total)
    return [None, added * out, None]


@gradient("SparseFillEmptyRows")
def _fill_empty_rows(op, unused_indices, values_grad, *_):
    values, default = g.SparseFillEmptyRowsGrad(
        reverse_index_map=op.outputs[3], grad_values=values_grad)
    return [None, values, None, default]


@gradient("SparseReshape")
def _reshape(op, *_):
    return [None, None, None]


def _cwise(op, grad, is_product):
    """Gradients of the values of a sparse tensor and of the dense tensor that each is multiplied with or divided by."""
    indices, values, shape, dense = op.inputs
    dense_shape = math_ops.cast(array_ops.shape(dense), dtypes.int64)
    added = array_ops.expand_dims(array_ops.size(shape) - array_ops.rank(dense), 0)
    whole = array_ops.concat([array_ops.ones(added, dtypes.int64), dense_shape], 0)
    # The element of the dense tensor that an index is broadcast from.
    places = math_ops.floordiv(indices, math_ops.floordiv(shape, whole))[:, added[0]:]
    factors = array_ops.gather_nd(dense, places)
    if is_product:
        of_values, of_factors = grad * factors, grad * values
    else:
        of_values, of_factors = grad / factors, grad * (-values / g.Square(factors))
    of_dense = g.ScatterNd(places, of_factors, dense_shape)
    return None, of_values, None, of_dense


@gradient("SparseDenseCwiseMul")
def _cwise_mul(op, grad):
    return _cwise(op, grad, True)


@gradient("SparseDenseCwiseDiv")
def _cwise_div(op, grad):
    return _cwise(op, grad, False)
