"""Gradients of segment reductions."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


@gradient("SegmentSum")
def _segment_sum(op, grad):
    return array_ops.gather(grad, op.inputs[1]), None


@gradient("SegmentMean")
def _segment_mean(op, grad):
    data, ids = op.inputs
    rank = array_ops.rank(data)
    ones_shape = array_ops.concat([
        array_ops.shape(ids),
        array_ops.ones(array_ops.expand_dims(rank - 1, 0), dtype=dtypes.int32)], 0)
    ones = array_ops.ones(ones_shape, dtype=grad.dtype)
    scaled = math_ops.divide(grad, g.SegmentSum(ones, ids))
    return array_ops.gather(scaled, ids), None


def _sparse_segment(op_type, grad_op):
    def function(op, grad):
        rest = [None] * (len(op.inputs) - 1)
        data, indices, ids = op.inputs[0], op.inputs[1], op.inputs[2]
        try:
            sparse = op.get_attr("sparse_gradient")
        except ValueError:
            sparse = False
        if sparse:
            shape = array_ops.shape(data)
            values, rows = getattr(g, grad_op + "V2")(grad, indices, ids, shape[0])
            return [indexed_slices.IndexedSlices(values, rows, shape)] + rest
        size = array_ops.shape(data)[0]
        return [getattr(g, grad_op)(grad, indices, ids, size)] + rest
    gradient(op_type, op_type + "WithNumSegments")(function)


_sparse_segment("SparseSegmentSum", "SparseSegmentSumGrad")
_sparse_segment("SparseSegmentMean", "SparseSegmentMeanGrad")
_sparse_segment("SparseSegmentSqrtN", "SparseSegmentSqrtNGrad")


@gradient("SegmentMin", "SegmentMax")
def _segment_extreme(op, grad):
    data, ids = op.inputs
    zeros = array_ops.zeros_like(data, dtype=data.dtype)
    chosen = math_ops.equal(data, array_ops.gather(op.outputs[0], ids))
    count = g.SegmentSum(math_ops.cast(chosen, grad.dtype), ids)
    shared = array_ops.gather(math_ops.divide(grad, count), ids)
    return array_ops.where_v2(chosen, shared, zeros), None


@gradient("SegmentProd")
def _segment_prod(op, grad):
    data, ids = op.inputs
    is_zero = math_ops.equal(data, 0)
    zeros = g.SegmentSum(math_ops.cast(is_zero, dtype=dtypes.int32), ids)
    grad = array_ops.where_v2(g.Greater(zeros, 1), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where_v2(is_zero, array_ops.ones_like(data), data)
    nonzero_product = g.SegmentProd(nonzero, ids)
    product = array_ops.gather(op.outputs[0], ids)
    gathered_nonzero = array_ops.gather(nonzero_product, ids)
    partial = array_ops.where_v2(is_zero, gathered_nonzero, product / nonzero)
    return array_ops.gather(grad, ids) * partial, None


def _gather_positive(params, ids, clipped=None, positive=None):
    """Gathers rows; those of negative ids are zero."""
    if clipped is None:
        clipped = g.Maximum(ids, array_ops.zeros_like(ids))
    gathered = array_ops.gather(params, clipped)
    if positive is None:
        positive = g.GreaterEqual(ids, 0)
        shape = array_ops.shape(positive)
        wide = array_ops.concat([shape, array_ops.ones(
            [array_ops.rank(gathered) - array_ops.rank(positive)], dtype=shape.dtype)], axis=0)
        positive = array_ops.reshape(positive, wide)
        positive = positive & array_ops.ones_like(gathered, dtype=dtypes.bool)
    zeros = array_ops.zeros_like(gathered)
    return array_ops.where_v2(positive, gathered, zeros), clipped, positive


@gradient("UnsortedSegmentSum")
def _unsorted_sum(op, grad):
    return _gather_positive(grad, op.inputs[1])[0], None, None


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_extreme(op, grad):
    outputs, clipped, positive = _gather_positive(op.outputs[0], op.inputs[1])
    chosen = g.LogicalAnd(math_ops.equal(op.inputs[0], outputs), positive)
    count = g.UnsortedSegmentSum(math_ops.cast(chosen, grad.dtype), op.inputs[1], op.inputs[2])
    shared, _, _ = _gather_positive(math_ops.divide(grad, count), None, clipped, positive)
    zeros = array_ops.zeros_like(shared)
    return array_ops.where_v2(chosen, shared, zeros), None, None


@gradient("UnsortedSegmentProd")
def _unsorted_prod(op, grad):
    data, ids, segments = op.inputs
    is_zero = math_ops.equal(data, 0)
    zeros = g.UnsortedSegmentSum(math_ops.cast(is_zero, dtype=dtypes.int32), ids, segments)
    grad = array_ops.where_v2(g.Greater(zeros, 1), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where_v2(is_zero, array_ops.ones_like(data), data)
    nonzero_product = g.UnsortedSegmentProd(nonzero, ids, segments)
    clipped = g.Maximum(ids, array_ops.zeros_like(ids))
    product = array_ops.gather(op.outputs[0], clipped)
    gathered_nonzero = array_ops.gather(nonzero_product, clipped)
    partial = array_ops.where_v2(is_zero, gathered_nonzero, product / data)
    return _gather_positive(grad, ids, clipped)[0] * partial, None, None


@gradient("AddN")
def _add_n(op, grad):
    return [grad] * len(op.inputs)


