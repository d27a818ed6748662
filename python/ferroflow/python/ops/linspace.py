"""`tf.linspace`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import gen_ops


def linspace_nd(start, stop, num, name=None, axis=0):
    """`num` evenly spaced values from `start` to `stop`, along a new axis."""
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "linspace", [start, stop]):
        start = ops.convert_to_tensor(start, name="start")
        stop = ops.convert_to_tensor(stop, name="stop", dtype=start.dtype)
        num_int = _count(num)
        num = math_ops.cast(num_int, dtype=start.dtype)
        shape = array_ops.broadcast_dynamic_shape(array_ops.shape(start), array_ops.shape(stop))
        start = gen_ops.BroadcastTo(start, shape)
        stop = gen_ops.BroadcastTo(stop, shape)
        wide_start = array_ops.expand_dims(start, axis=axis)
        wide_stop = array_ops.expand_dims(stop, axis=axis)
        shape = array_ops.shape(wide_start)
        rank = array_ops.shape(shape)[0]
        axis = array_ops.where_v2(axis >= 0, axis, rank + axis)
        inner = gen_ops.Maximum(num_int - 2, 0)
        steps = gen_ops.Maximum(num_int - 1, 1)
        delta = (wide_stop - wide_start) / math_ops.cast(steps, wide_stop.dtype)
        wide_start = math_ops.cast(wide_start, delta.dtype)
        wide_stop = math_ops.cast(wide_stop, delta.dtype)
        # A negative count makes the range fail.
        range_end = array_ops.where_v2(num_int >= 0, steps, -1)
        wanted = math_ops.cast(math_ops.range(1, range_end, dtype=dtypes.int64), delta.dtype)
        mask = gen_ops.Equal(axis, math_ops.range(rank))
        wanted = array_ops.reshape(wanted, array_ops.where_v2(mask, inner, 1))
        body = wide_start + delta * wanted
        joined = array_ops.concat((wide_start, body, wide_stop), axis=axis)
        begin = array_ops.zeros_like(shape)
        size = array_ops.concat(
            (shape[0:axis], array_ops.reshape(num_int, [1]), shape[axis + 1:]), axis=0)
        return gen_ops.Slice(joined, begin, size)


def _count(num):
    """A count as an int32 tensor."""
    num = ops.convert_to_tensor(num, name="num", preferred_dtype=dtypes.int32)
    if not num.dtype.is_integer:
        raise TypeError("Argument `tensor` (name: num) must be of type integer. Received `tensor` = %s of dtype: %r" % (
            num, num.dtype))
    return gen_ops.Cast(num, dtypes.int32)
