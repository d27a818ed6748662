"""Picking elements by index or by mask."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor


@export("gather")
def gather(params, indices, validate_indices=None, name=None, axis=None, batch_dims=0):
    del validate_indices
    if axis is None:
        axis = batch_dims
    if _constant(axis) != 0:
        return gen_ops.GatherV2(params, indices, axis, batch_dims=batch_dims, name=name)
    if hasattr(params, "sparse_read"):
        return params.sparse_read(indices, name=name)
    return gen_ops.GatherV2(params, indices, axis, name=name)


def _constant(value):
    return tensor_util.constant_value(value) if isinstance(value, ops.Tensor) else value


@export("gather_nd", "manip.gather_nd")
def gather_nd(params, indices, name=None, batch_dims=0):
    if _constant(batch_dims) != 0:
        raise NotImplementedError("gather_nd: batch_dims other than 0 are not supported")
    if hasattr(params, "gather_nd") and not isinstance(params, ops.Tensor):
        return params.gather_nd(indices, name=name)
    return gen_ops.GatherNd(params, indices, name=name)


@export("batch_gather")
def batch_gather(params, indices, name=None):
    with ops.name_scope(name, "BatchGather", [params, indices]):
        indices = convert(indices, name="indices")
        params = convert(params, name="params")
        if indices.get_shape().ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        return gather(params, indices, axis=indices.get_shape().ndims - 1,
                      batch_dims=indices.get_shape().ndims - 1)


@export("where")
def where(condition, x=None, y=None, name=None):
    return _where(gen_ops.Select, condition, x, y, name)


@export("where_v2")
def where_v2(condition, x=None, y=None, name=None):
    return _where(gen_ops.SelectV2, condition, x, y, name)


def _where(select, condition, x, y, name):
    if x is None and y is None:
        with ops.name_scope(name, "Where", [condition]) as scope:
            condition = convert(condition, preferred_dtype=dtypes.bool, name="condition")
            return gen_ops.Where(condition, name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return select(condition, x, y, name=name)


@export("boolean_mask")
def boolean_mask(tensor, mask, name="boolean_mask", axis=None):
    from ferroflow.python.framework import tensor_shape
    from ferroflow.python.ops import array_ops
    with ops.name_scope(name, values=[tensor, mask]):
        tensor = convert(tensor, name="tensor")
        mask = convert(mask, name="mask")
        mask_shape = mask.get_shape()
        width = mask_shape.ndims
        tensor_dims = tensor.get_shape()
        if width == 0:
            raise ValueError("mask cannot be scalar.")
        if width is None:
            raise ValueError("Number of mask dimensions must be specified, even if some "
                             "dimensions are None.  E.g. shape=[None] is ok, but shape=None is "
                             "not.")
        axis = 0 if axis is None else axis
        axis_value = _constant(axis)
        if axis_value is not None:
            axis = axis_value
            tensor_dims[axis:axis + width].assert_is_compatible_with(mask_shape)
        leading = gen_ops.Prod(array_ops.shape(tensor)[axis:axis + width], [0])
        tensor = array_ops.reshape(tensor, array_ops.concat(
            [array_ops.shape(tensor)[:axis], [leading], array_ops.shape(tensor)[axis + width:]],
            0))
        if axis_value is not None:
            first = tensor_dims[axis:axis + width].num_elements()
            tensor.set_shape(tensor_shape.as_shape(tensor_dims[:axis]).concatenate([first])
                             .concatenate(tensor_dims[axis + width:]))
        flat = array_ops.reshape(mask, [-1])
        picked = array_ops.squeeze(where(flat), axis=[1])
        return gather(tensor, picked, axis=axis)


@export("unique")
def unique(x, out_idx=dtypes.int32, name=None):
    return gen_ops.Unique(x, out_idx, name)


@export("unique_with_counts")
def unique_with_counts(x, out_idx=dtypes.int32, name=None):
    return gen_ops.UniqueWithCounts(x, out_idx, name)


@export("setdiff1d")
def setdiff1d(x, y, index_dtype=dtypes.int32, name=None):
    return gen_ops.ListDiff(x, y, index_dtype, name)


@export("sparse_mask", "sparse.mask")
def sparse_mask(a, mask_indices, name=None):
    with ops.name_scope(name, "sparse_mask", [a, mask_indices]) as scope:
        indices = a.indices
        out_indices, to_gather = setdiff1d(indices, mask_indices)
        out_values = gather(a.values, to_gather, name=scope)
        return indexed_slices.IndexedSlices(out_values, out_indices, a.dense_shape)


@export("searchsorted")
def searchsorted(sorted_sequence, values, side="left", out_type=dtypes.int32, name=None):
    from ferroflow.python.ops import array_ops
    sequence_size = array_ops.shape_internal(sorted_sequence)[-1]
    values_size = array_ops.shape_internal(values)[-1]
    rows = array_ops.reshape(sorted_sequence, [-1, sequence_size])
    wanted = array_ops.reshape(values, [-1, values_size])
    if side == "right":
        output = gen_ops.UpperBound(rows, wanted, out_type, name)
    elif side == "left":
        output = gen_ops.LowerBound(rows, wanted, out_type, name)
    else:
        raise ValueError("Argument `side` must be either 'right' or 'left'. Received: `side` = "
                         "'%s'." % side)
    return array_ops.reshape(output, array_ops.shape_internal(values))
