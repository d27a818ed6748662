"""Constants, and the conversions of Python's and numpy's values to tensors."""

import numbers

import numpy as np

from ferroflow.python.framework import dtypes, ops, tensor_shape, tensor_util


def constant_v1(value, dtype=None, shape=None, name="Const", verify_shape=False):
    return _constant(value, dtype, shape, name, verify_shape, False)


def constant(value, dtype=None, shape=None, name="Const"):
    return _constant(value, dtype, shape, name, False, True)


def _constant(value, dtype, shape, name, verify_shape, allow_broadcast):
    graph = ops.get_default_graph()
    made = tensor_util.tensor_value(value, dtype, shape, verify_shape, allow_broadcast)
    op = graph._create_op("Const", (), {"value": made, "dtype": made.dtype}, name or "Const")
    return op._output(0)


def is_constant(tensor_or_op):
    op = tensor_or_op.op if isinstance(tensor_or_op, ops.Tensor) else tensor_or_op
    return op.type == "Const"


def _constant_tensor_conversion_function(v, dtype=None, name=None, as_ref=False):
    del as_ref
    return _constant(v, dtype, None, name, False, False)


def _tensor_shape_tensor_conversion_function(s, dtype=None, name=None, as_ref=False):
    del as_ref
    if not s.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {s} to a Tensor.")
    dims = s.as_list()
    if dtype is not None:
        if dtype not in (dtypes.int32, dtypes.int64):
            raise TypeError(f"Cannot convert a TensorShape to dtype: {dtype.name}.")
    else:
        dtype = dtypes.int64 if any(d > np.iinfo(np.int32).max for d in dims) else dtypes.int32
    return _constant(dims, dtype, None, name or "shape_as_tensor", False, False)


def _dimension_tensor_conversion_function(d, dtype=None, name=None, as_ref=False):
    del as_ref
    if d.value is None:
        raise ValueError(f"Cannot convert an unknown Dimension {d} to a Tensor.")
    if dtype is not None:
        if dtype not in (dtypes.int32, dtypes.int64):
            raise TypeError(f"Cannot convert Dimension to dtype {dtype}.")
    else:
        dtype = dtypes.int32
    return _constant(d.value, dtype, None, name or "shape_as_tensor", False, False)


_convert = _constant_tensor_conversion_function
ops.register_tensor_conversion_function((list, tuple), _convert, 100)
ops.register_tensor_conversion_function((str, bytes), _convert, 100)
ops.register_tensor_conversion_function((np.ndarray, np.generic), _convert, 100)
ops.register_tensor_conversion_function((int, float, complex, numbers.Number), _convert, 100)
ops.register_tensor_conversion_function(tensor_shape.TensorShape, _tensor_shape_tensor_conversion_function, 100)
ops.register_tensor_conversion_function(tensor_shape.Dimension, _dimension_tensor_conversion_function, 100)
ops.register_tensor_conversion_function(object, _convert, 200)
