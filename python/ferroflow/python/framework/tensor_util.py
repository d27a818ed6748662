"""Tensors as messages and as numpy's arrays."""

import numbers

import numpy as np

from ferroflow import _ferroflow
from ferroflow.core._messages import message_class
from ferroflow.python.framework import dtypes, tensor_shape

_Tensor = _ferroflow.Tensor


class TensorValue:
    """A constant: an array, its dtype, and the tensor's shape if the array has fewer values."""

    __slots__ = ("array", "dtype", "shape", "_values_given")

    def __init__(self, array, dtype, shape):
        self.array, self.dtype, self.shape = array, dtype, shape
        size = 1
        for dim in shape or ():
            size *= dim
        self._values_given = None
        if shape is not None and size != array.size:
            self._values_given = array.size


def _mismatch(values, dtype):
    """The first value that does not fit a dtype, or None."""
    if isinstance(values, (list, tuple)):
        for item in values:
            found = _mismatch(item, dtype)
            if found is not None:
                return found
        return None
    if isinstance(values, np.ndarray) and values.ndim:
        return None
    if values is None:
        return (values,)
    if isinstance(values, _Tensor):
        return (values,)
    if dtype == dtypes.string:
        ok = isinstance(values, (str, bytes, np.str_, np.bytes_, np.ndarray))
    elif dtype == dtypes.bool:
        ok = isinstance(values, (bool, np.bool_))
    elif dtype.is_integer or dtype.is_quantized:
        ok = isinstance(values, (numbers.Integral, np.integer, tensor_shape.Dimension)) and not (
            isinstance(values, tensor_shape.Dimension) and values.value is None
        )
        ok = ok or isinstance(values, np.ndarray) and values.dtype.kind in "iu"
    elif dtype.is_floating:
        ok = isinstance(values, (numbers.Real, np.floating, np.integer, np.ndarray)) and not isinstance(values, (bool, np.bool_))
        ok = ok or isinstance(values, tensor_shape.Dimension) or type(values).__name__ == "bfloat16"
    elif dtype.is_complex:
        ok = isinstance(values, (numbers.Number, np.number, np.ndarray))
    else:
        ok = True
    return None if ok else (values,)


def _assert_compatible(values, dtype):
    if dtype is None:
        found = _mismatch_none(values)
        if found is not None:
            raise TypeError("Expected any non-tensor type, but got a tensor instead.")
        return
    found = _mismatch(values, dtype)
    if found is not None:
        value = found[0]
        if isinstance(value, _Tensor):
            raise TypeError(f"Expected {dtype.name}, but got a tensor of type '{type(value).__name__}': {value}")
        raise TypeError(f"Expected {dtype.name}, but got {value} of type '{type(value).__name__}'.")


def _mismatch_none(values):
    if isinstance(values, (list, tuple)):
        for item in values:
            found = _mismatch_none(item)
            if found is not None:
                return found
        return None
    return (values,) if isinstance(values, _Tensor) else None


def _none_inside(values):
    if values is None:
        return True
    return isinstance(values, (list, tuple)) and any(_none_inside(item) for item in values)


def tensor_value(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    """The constant of a value, by TensorFlow's rules for dtypes and shapes."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype).base_dtype
    plain = type(values)
    if shape is None:
        # The most frequent constants.
        if plain is float and (dtype is None or dtype._type_enum == 1):
            return TensorValue(np.array(values, np.float32), dtypes.float32, None)
        if plain is int and dtype is not None and dtype._type_enum in (3, 9):
            try:
                return TensorValue(np.array(values, dtype._numpy), dtype, None)
            except OverflowError:
                raise ValueError(f"{values} is out of range for {dtype.name}") from None
    if isinstance(values, (np.ndarray, np.generic)):
        array = values.astype(dtype.as_numpy_dtype) if dtype is not None and dtype.as_numpy_dtype != values.dtype else values
        if dtype is not None and dtype == dtypes.string:
            array = np.asarray(values)
        array = np.asarray(array)
    elif callable(getattr(values, "__array__", None)) and not isinstance(values, _Tensor):
        array = np.asarray(values, dtype=dtype.as_numpy_dtype if dtype is not None else None)
    else:
        if _none_inside(values):
            raise ValueError("None values not supported.")
        numpy_type = None
        if dtype is not None and dtype.is_numpy_compatible and dtype != dtypes.string:
            numpy_type = dtype.as_numpy_dtype
        if shape is not None and 0 in tuple(shape):
            array = np.empty(tuple(shape), dtype=numpy_type)
        else:
            _assert_compatible(values, dtype)
            values = _without_dimensions(values)
            try:
                if dtype == dtypes.string or numpy_type is None and _holds_strings(values):
                    array = np.array(values, dtype=object)
                elif dtype is not None and dtype.is_quantized:
                    array = np.array(values, dtype=numpy_type.fields[dtype.name][0]).view(numpy_type)
                else:
                    array = np.array(values, dtype=numpy_type)
            except OverflowError:
                raise ValueError(f"{values} is out of range for {dtype.name if dtype else 'int64'}") from None
            except ValueError:
                raise ValueError(f"Argument must be a dense tensor: {values} - got shape {_shape_text(values)}") from None
            if array.dtype == object and array.size and not _holds_strings(values):
                if array.ndim == 0:
                    raise TypeError(f"Failed to convert elements of {values} to Tensor. Consider casting elements to a supported type.")
                raise ValueError(
                    f"Argument must be a dense tensor: {values} - got shape {list(array.shape)}, but wanted {_dense_dimensions(values)}."
                )
        if dtype is None:
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            elif array.dtype == np.int64:
                small = array.astype(np.int32)
                if np.array_equal(small, array):
                    array = small
    found = dtypes.string if array.dtype.kind in "SUO" else dtypes.as_dtype(array.dtype)
    if dtype is not None and dtype.base_dtype != found.base_dtype:
        raise TypeError(f"`dtype` {dtype!s} is not compatible with {values} of dtype {array.dtype}.")
    dtype = dtype or found
    if shape is None:
        return TensorValue(array, dtype, None)
    shape = tuple(int(d) for d in (shape.as_list() if isinstance(shape, tensor_shape.TensorShape) else shape))
    size = int(np.prod(shape, dtype=np.int64))
    if allow_broadcast and size != array.size:
        if array.size != 1:
            array = np.broadcast_to(array, shape)
    if verify_shape and array.shape != shape:
        raise TypeError(f"Expected Tensor's shape: {shape}, but got {array.shape}.")
    if array.size > size:
        raise ValueError(f"Too many elements provided. Takes at most {size:d}, but got {array.size:d}")
    return TensorValue(array, dtype, shape)


def _without_dimensions(values):
    if isinstance(values, tensor_shape.Dimension):
        return values.value
    if isinstance(values, tensor_shape.TensorShape):
        return values.as_list()
    if isinstance(values, (list, tuple)) and any(
        isinstance(v, (tensor_shape.Dimension, tensor_shape.TensorShape, list, tuple)) for v in values
    ):
        return [_without_dimensions(v) for v in values]
    return values


def _holds_strings(values):
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return isinstance(values, (str, bytes, np.str_, np.bytes_))


def _dense_dimensions(values):
    return [len(values)] + _dense_dimensions(values[0]) if isinstance(values, (list, tuple)) and values else []


def _shape_text(values):
    return str(_dense_dimensions(values))


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    if type(values).__name__ == "TensorProto":
        return values
    value = tensor_value(values, dtype, shape, verify_shape, allow_broadcast)
    data = _ferroflow.encode_tensor(value.array, value.dtype, value.shape)
    return message_class("tensorflow.TensorProto")._trusted(data)


def MakeNdarray(tensor):
    from ferroflow.python.framework import ops  # noqa: F401 (it tells Rust the types of arrays)
    return _ferroflow.decode_tensor(tensor.SerializeToString())


def constant_value(tensor, partial=False):
    """The value of a tensor if the graph alone says it, else None."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if not isinstance(tensor, _Tensor):
        element = getattr(tensor, "_as_graph_element", None)
        tensor = element() if element is not None else tensor
        if not isinstance(tensor, _Tensor):
            return None
    value = tensor._constant()
    if value is None:
        return None
    value = np.asarray(value) if not isinstance(value, bytes) else np.array(value, dtype=object)
    # A fed constant would not have this value.
    tensor.graph.prevent_feeding(tensor)
    return value[()] if value.ndim == 0 and value.dtype != object else value


def constant_value_as_shape(tensor):
    """The static shape that a tensor holds."""
    if isinstance(tensor, (list, tuple)):
        return tensor_shape.TensorShape([None if d == -1 else d for d in tensor])
    dims = tensor._constant_shape()
    return tensor_shape.TensorShape._make(dims)


def is_tensor(x):
    return isinstance(x, _Tensor) or hasattr(x, "_is_tensor_like") or type(x).__name__ in (
        "SparseTensor", "IndexedSlices", "RaggedTensor",
    ) or hasattr(x, "_as_graph_element") and not isinstance(x, _ferroflow.Operation)


is_tf_type = is_tensor


def shape_tensor(shape):
    """A shape as an int32 tensor, or int64 if a tensor in it is."""
    from ferroflow.python.framework import ops

    dtype = None
    if isinstance(shape, (tuple, list)):
        if not shape:
            dtype = dtypes.int32
        elif not any(isinstance(d, _Tensor) for d in shape):
            shape = [int(d) if not isinstance(d, tensor_shape.Dimension) else d.value for d in shape]
            dtype = dtypes.int32
    elif isinstance(shape, tensor_shape.TensorShape):
        shape, dtype = shape.as_list(), dtypes.int32
    return ops.convert_to_tensor(shape, dtype=dtype, name="shape")


def assert_same_float_dtype(tensors=None, dtype=None):
    for item in tensors or ():
        if item is not None and dtype is None:
            dtype = item.dtype.base_dtype
    dtype = dtype or dtypes.float32
    if not dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {dtype}.")
    return dtype
