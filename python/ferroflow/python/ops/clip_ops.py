"""Clipping of values and of gradients."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

__getattr__ = module_names.fallback(__name__)

IndexedSlices = indexed_slices.IndexedSlices


def _dense(t):
    return t.values if isinstance(t, IndexedSlices) else t


@export("clip_by_value")
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    with ops.name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = ops.convert_to_tensor(_dense(t), name="t")
        low = gen_ops.Minimum(values, clip_value_max)
        values.shape.assert_is_compatible_with(low.shape)
        high = gen_ops.Maximum(low, clip_value_min, name=scope)
        values.shape.assert_is_compatible_with(high.shape)
        if isinstance(t, IndexedSlices):
            return IndexedSlices(high, t.indices, t.dense_shape)
        return high


@export("clip_by_norm")
def clip_by_norm(t, clip_norm, axes=None, name=None):
    with ops.name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = ops.convert_to_tensor(_dense(t), name="t")
        squares = math_ops.reduce_sum(values * values, axes, keepdims=True)
        positive = squares > 0
        safe = array_ops.where(positive, squares, array_ops.ones_like(squares))
        norm = array_ops.where(positive, math_ops.sqrt(safe), squares)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        clipped = array_ops.identity(scaled / gen_ops.Maximum(norm, clip_norm), name=scope)
        if isinstance(t, IndexedSlices):
            return IndexedSlices(clipped, t.indices, t.dense_shape)
        return clipped


@export("global_norm", "linalg.global_norm")
def global_norm(t_list, name=None):
    if not isinstance(t_list, (list, tuple)):
        raise TypeError("`t_list` should be a sequence of tensors. Received %s." % type(t_list))
    t_list = list(t_list)
    with ops.name_scope(name, "global_norm", t_list):
        values = [ops.convert_to_tensor(_dense(t), name="t_%d" % i) if t is not None else t
                  for i, t in enumerate(t_list)]
        halves = []
        for value in values:
            if value is not None:
                with ops.colocate_with(value):
                    halves.append(gen_ops.L2Loss(value))
        half = math_ops.reduce_sum(array_ops.stack(halves))
        return math_ops.sqrt(half * constant_op.constant(2.0, dtype=half.dtype),
                             name="global_norm")


@export("clip_by_global_norm")
def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    if not isinstance(t_list, (list, tuple)):
        raise TypeError("`t_list` should be a sequence of tensors. Received %s." % type(t_list))
    t_list = list(t_list)
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    with ops.name_scope(name, "clip_by_global_norm", t_list + [clip_norm]) as scope:
        scale_of = clip_norm * gen_ops.Minimum(
            1.0 / use_norm, constant_op.constant(1.0, dtype=use_norm.dtype) / clip_norm)
        # An infinite norm makes every gradient NaN, so that it is noticed.
        scale = scale_of + (use_norm - use_norm)
        values = [ops.convert_to_tensor(_dense(t), name="t_%d" % i) if t is not None else t
                  for i, t in enumerate(t_list)]
        clipped = []
        for i, value in enumerate(values):
            if value is None:
                clipped.append(None)
            else:
                with ops.colocate_with(value):
                    clipped.append(array_ops.identity(
                        value * math_ops.cast(scale, value.dtype), name="%s_%d" % (scope, i)))
        out = [IndexedSlices(c, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else c
               for c, t in zip(clipped, t_list)]
    return out, use_norm


@export("clip_by_average_norm")
def clip_by_average_norm(t, clip_norm, name=None):
    with ops.name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = ops.convert_to_tensor(t, name="t")
        count = math_ops.cast(array_ops.size(t), dtypes.float32)
        inverse = math_ops.rsqrt(
            math_ops.reduce_sum(t * t, gen_ops.Range(0, array_ops.rank(t), 1)))
        clipped = array_ops.identity(
            t * clip_norm * gen_ops.Minimum(
                inverse * count, constant_op.constant(1.0) / clip_norm), name=scope)
        return clipped
