"""`tf.repeat`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops


def repeat(input, repeats, axis=None, name=None):
    """Repeats each element along an axis; `repeats` is a number or one number per element."""
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "Repeat", [input, repeats]):
        data = ops.convert_to_tensor(input, name="data")
        if axis is None:
            data = array_ops.reshape(data, [-1])
            axis = 0
        repeats = ops.convert_to_tensor(repeats, name="repeats")
        if repeats.dtype not in (dtypes.int32, dtypes.int64):
            repeats = math_ops.cast(repeats, dtypes.int32)
        rank = data.get_shape().ndims
        if rank is None:
            raise ValueError("tf.repeat needs a tensor of known rank")
        axis = axis + rank if axis < 0 else axis
        shape = array_ops.shape(data, out_type=repeats.dtype)
        if repeats.get_shape().ndims == 0:
            expanded = array_ops.expand_dims(data, axis + 1)
            multiples = [1] * (rank + 1)
            multiples[axis + 1] = repeats
            from ferroflow.python.ops import gen_ops
            tiled = gen_ops.Tile(expanded, array_ops.stack(multiples))
            return array_ops.reshape(tiled, array_ops.concat(
                [shape[:axis], [-1], shape[axis + 1:]], axis=0))
        mask = array_ops.sequence_mask(repeats, math_ops.reduce_max(repeats))
        positions = array_ops.where(mask)[:, 0]
        return array_ops.gather(data, positions, axis=axis)
