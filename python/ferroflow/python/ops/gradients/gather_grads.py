"""Gradients of gather and scatter ops."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops.gradient_registry import gradient
from ferroflow.python.ops.gradients.array_grads import dense

IndexedSlices = indexed_slices.IndexedSlices


@gradient("Gather")
def _gather(op, grad):
    params, indices = op.inputs
    with ops.colocate_with(params):
        shape = array_ops.shape(params)
    size = array_ops.expand_dims(array_ops.size(indices), 0)
    values = array_ops.reshape(dense(grad), array_ops.concat([size, shape[1:]], 0))
    return [IndexedSlices(values, array_ops.reshape(indices, size), shape), None]


@gradient("GatherV2")
def _gather_v2(op, grad):
    params, indices, axis = op.inputs
    with ops.colocate_with(params):
        shape = array_ops.shape(params, out_type=dtypes.int64)
        shape = math_ops.cast(shape, dtypes.int32)
    size = array_ops.expand_dims(array_ops.size(indices), 0)
    batch_dims = int(op.get_attr("batch_dims"))
    if batch_dims < 0:
        batch_dims += indices.get_shape().ndims
    if tensor_util.constant_value(axis) == 0:
        values = array_ops.reshape(dense(grad), array_ops.concat([size, shape[1:]], 0))
        return [IndexedSlices(values, array_ops.reshape(indices, size), shape), None, None]
    outer, inner = shape[:axis], shape[axis:][1:]
    values_shape = array_ops.concat([outer, [-1], inner], 0)
    values_dims, axis_dims = array_ops.size(values_shape), array_ops.size(outer)
    outer_index = math_ops.range(batch_dims)
    batch_index = math_ops.range(batch_dims, axis_dims)
    inner_index = math_ops.range(axis_dims + 1, values_dims)
    values = array_ops.reshape(dense(grad), values_shape)
    # The gathered axis moves to the front of the non-batch axes, and back again.
    order = array_ops.concat([outer_index, [axis_dims], batch_index, inner_index], 0)
    turned = array_ops.transpose(values, order)
    turned_shape = array_ops.gather(shape, order)
    result = _batch_gather(turned_shape, turned, indices, batch_dims, shape[axis])
    back = array_ops.concat([outer_index, batch_index + 1, [batch_dims], inner_index], 0)
    return [array_ops.transpose(result, back), None, None]


def _batch_gather(shape, values, indices, batch_dims, rows):
    size = array_ops.expand_dims(array_ops.size(indices), 0)
    if batch_dims:
        values_shape = array_ops.shape(values)
        outer = values_shape[:batch_dims]
        inner = values_shape[batch_dims:][1:]
        batch = g.Prod(outer, [0], False)
        flat = array_ops.concat([[-1], inner], 0)
        rows = rows * batch
        indices = _batch_indices(shape, indices, batch_dims)
        values = array_ops.reshape(dense(values), flat)
    indices = array_ops.reshape(indices, size)
    result = g.UnsortedSegmentSum(values, indices, rows)
    if batch_dims:
        result = array_ops.reshape(result, array_ops.concat([outer, flat], 0))
    return result


def _batch_indices(shape, indices, batch_dims):
    """Indices into the flattened batches."""
    kind = indices.dtype.base_dtype
    shape = math_ops.cast(shape, kind)
    stride = array_ops.ones((), dtype=kind)
    result = indices
    for dim in range(batch_dims, 0, -1):
        length = shape[dim - 1]
        stride *= shape[dim]
        start = array_ops.zeros((), dtype=kind)
        step = array_ops.ones((), dtype=kind)
        steps = math_ops.range(start, length, step)
        steps *= stride
        wide = array_ops.concat([g.Tile([1], [dim - 1]), [length],
                                 g.Tile([1], [array_ops.rank(indices) - dim])], axis=0)
        result += array_ops.reshape(steps, wide)
    return result


@gradient("GatherNd")
def _gather_nd(op, grad):
    params, indices = op.inputs
    shape = array_ops.shape(params, out_type=indices.dtype)
    return [_nd(indices, grad, shape), None]


@gradient("ResourceGatherNd")
def _resource_gather_nd(op, grad):
    handle, indices = op.inputs
    return [_nd(indices, grad, resource_variable_ops.variable_shape(handle, indices.dtype)), None]


def _nd(indices, grad, shape):
    static = indices.get_shape()
    if static.ndims == 2 and static.as_list()[-1] == 1:
        return IndexedSlices(grad, array_ops.squeeze(indices, axis=-1), shape)
    return g.ScatterNd(indices, grad, shape)


@gradient("ScatterNd")
def _scatter_nd(op, grad):
    return [None, array_ops.gather_nd(grad, op.inputs[0]), None]


@gradient("TensorScatterUpdate")
def _tensor_scatter_update(op, grad):
    indices = op.inputs[1]
    updates = array_ops.gather_nd(grad, indices)
    kept = g.TensorScatterUpdate(array_ops.identity(grad), indices,
                                 array_ops.zeros_like(op.inputs[2], dtype=grad.dtype))
    return [kept, None, updates]


@gradient("TensorScatterAdd")
def _tensor_scatter_add(op, grad):
    updates = array_ops.gather_nd(grad, op.inputs[1])
    return [array_ops.identity(grad), None, updates]


@gradient("TensorScatterSub")
def _tensor_scatter_sub(op, grad):
    updates = array_ops.gather_nd(grad, op.inputs[1])
    return [array_ops.identity(grad), None, -updates]


@gradient("ScatterNdNonAliasingAdd")
def _scatter_nd_add(op, grad):
    return [grad, None, array_ops.gather_nd(grad, op.inputs[1])]


@gradient("TensorScatterMax", "TensorScatterMin")
def _scatter_extremes(op, grad):
    """Elements that are equal share the gradient."""
    x, indices, updates = op.inputs
    output = op.outputs[0]
    kept = math_ops.cast(math_ops.equal(x, output), x.dtype)
    chosen = math_ops.cast(math_ops.equal(updates, array_ops.gather_nd(output, indices)), x.dtype)
    count = kept + g.ScatterNd(indices, chosen, array_ops.shape(x, out_type=indices.dtype))
    share = grad / count
    return share * kept, None, array_ops.gather_nd(share, indices) * chosen
