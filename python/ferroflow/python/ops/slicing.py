"""`tensor[...]` and the slice ops."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import constant_op
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export


def _int_index(index):
    return isinstance(index, (int, np.integer, ops.Tensor, tensor_shape.Dimension)) or hasattr(
        index, "_as_graph_element")


def _check_index(index):
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return
    dtype = getattr(index, "dtype", None)
    if (dtype is None or dtypes.as_dtype(dtype) not in (
            dtypes.int16, dtypes.int32, dtypes.int64, dtypes.int32_ref, dtypes.int64_ref)
            or getattr(index, "shape", None) is not None and len(index.shape) == 1):
        raise TypeError("Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and "
                        "scalar tf.int32/tf.int64 tensors are valid indices, got %r" % (index,))


class _Spec:
    """The arguments of a StridedSlice, collected index by index."""

    def __init__(self):
        self.begin, self.end, self.strides = [], [], []
        self.masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
                      "shrink_axis_mask": 0}

    def add(self, begin, end, stride, *masks):
        bit = 1 << len(self.begin)
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)
        for mask in masks:
            self.masks[mask] |= bit


def _parse(spec):
    parsed = _Spec()
    for one in spec:
        if isinstance(one, tensor_shape.Dimension):
            one = one.value
        if isinstance(one, slice_type):
            masks = []
            bounds = [_plain(bound) for bound in (one.start, one.stop, one.step)]
            fill = _filler(bounds)
            for bound in bounds:
                if bound is not None:
                    _check_index(bound)
            if bounds[0] is None:
                masks.append("begin_mask")
            if bounds[1] is None:
                masks.append("end_mask")
            parsed.add(*(fill(default) if bound is None else bound
                         for bound, default in zip(bounds, (0, 0, 1))), *masks)
        elif one is Ellipsis:
            parsed.add(0, 0, 1, "ellipsis_mask")
        elif one is None:
            parsed.add(0, 0, 1, "new_axis_mask")
        else:
            _check_index(one)
            stride = 1
            if isinstance(one, ops.Tensor) and one.dtype in (dtypes.int16, dtypes.int64):
                after, stride = one + 1, constant_op.constant(1, dtype=one.dtype)
            else:
                after = one + 1
            parsed.add(one, after, stride, "shrink_axis_mask")
    return parsed


def _plain(value):
    return value.value if isinstance(value, tensor_shape.Dimension) else value


def _filler(bounds):
    """How a missing bound is written: as a number, or as a constant of the type of the others."""
    kinds = [b.dtype for b in bounds if isinstance(b, ops.Tensor)]
    for kind in (dtypes.int64, dtypes.int32, dtypes.int16):
        if kind in kinds:
            return lambda value: constant_op.constant(value, dtype=kind)
    return lambda value: value


def getitem(tensor, spec, var=None):
    """`tensor[spec]`."""
    from ferroflow.python.ops import array_ops
    if (isinstance(spec, ops.Tensor) and spec.dtype == dtypes.bool) or (
            isinstance(spec, np.ndarray) and spec.dtype == bool):
        return array_ops.boolean_mask(tensor=tensor, mask=spec)
    if not isinstance(spec, (list, tuple)):
        spec = [spec]
    parsed = _parse(spec)
    values = [tensor] + parsed.begin + parsed.end + parsed.strides
    with ops.name_scope(None, "strided_slice", values) as scope:
        if parsed.begin:
            begin, end, strides = (array_ops.stack(parsed.begin), array_ops.stack(parsed.end),
                                   array_ops.stack(parsed.strides))
            if dtypes.int64 in (begin.dtype, end.dtype, strides.dtype):
                begin, end, strides = (
                    x if x.dtype == dtypes.int64 else gen_ops.Cast(x, dtypes.int64)
                    for x in (begin, end, strides))
        else:
            begin = end = strides = constant_op.constant([], dtype=dtypes.int32)
        return strided_slice(tensor, begin, end, strides, var=var, name=scope, **parsed.masks)


slice_type = slice


@export("slice")
def slice(input_, begin, size, name=None):
    return gen_ops.Slice(input_, begin, size, name=name)


@export("strided_slice")
def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0,
                  new_axis_mask=0, shrink_axis_mask=0, var=None, name=None):
    if strides is None:
        from ferroflow.python.ops import array_ops
        strides = array_ops.ones_like(begin)
    masks = dict(begin_mask=begin_mask, end_mask=end_mask, ellipsis_mask=ellipsis_mask,
                 new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask)
    result = gen_ops.StridedSlice(input_, begin, end, strides, name=name, **masks)
    parent_name = name

    def assign(value, name=None):
        """Writes to the part of the variable that this tensor was sliced from."""
        if var is None:
            raise ValueError("Sliced assignment is only supported for variables")
        if name is None:
            name = (parent_name or "strided_slice") + "_assign"
        if hasattr(var, "handle"):
            op = gen_ops.ResourceStridedSliceAssign(
                ref=var.handle, begin=begin, end=end, strides=strides, value=value, name=name,
                **masks)
            from ferroflow.python.ops import resource_variable_ops
            return resource_variable_ops.lazy_read(var, op)
        return gen_ops.StridedSliceAssign(
            ref=var._ref() if hasattr(var, "_ref") else var, begin=begin, end=end,
            strides=strides, value=value, name=name, **masks)

    if var is not None:
        result.assign = assign
    return result
