"""Checks of values: finite, near each other, ordered, of one type."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import deprecated_alias, export


@export("verify_tensor_all_finite", "debugging.assert_all_finite")
def verify_tensor_all_finite(t=None, msg=None, name=None, x=None, message=None):
    """`t`, once it is known to have neither NaN nor infinity."""
    x = deprecated_alias("x", x, "t", t)
    message = deprecated_alias("message", message, "msg", msg)
    with ops.name_scope(name, "VerifyFinite", [x]):
        x = ops.convert_to_tensor(x, name="x")
        with ops.colocate_with(x):
            checked = gen_ops.CheckNumerics(x, message=message)
            return control_flow_ops.with_dependencies([checked], x)


@export("add_check_numerics_ops")
def add_check_numerics_ops():
    """An operation that checks all tensors of the graph with values of floating types."""
    checks = []
    for op in ops.get_default_graph().get_operations():
        if op._get_control_flow_context() is not None:
            raise ValueError("`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations "
                             "such as `tf.cond()` or `tf.while_loop()`.")
        for output in op.outputs:
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                with ops.control_dependencies(checks[-1:]):
                    checks.append(gen_ops.CheckNumerics(output, message="%s:%d" % (op.name, output.value_index)))
    return control_flow_ops.group(*checks)


@export("assert_near", "debugging.assert_near")
def assert_near(x, y, rtol=None, atol=None, data=None, summarize=None, message=None, name=None):
    """Asserts that `|x - y| <= atol + rtol * |y|` for all elements."""
    with ops.name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y", dtype=x.dtype)
        small = np.finfo(x.dtype.as_numpy_dtype).eps * 10
        rtol = ops.convert_to_tensor(small if rtol is None else rtol, name="rtol", dtype=x.dtype)
        atol = ops.convert_to_tensor(small if atol is None else atol, name="atol", dtype=x.dtype)
        if data is None:
            data = [message or "", "x and y not equal to tolerance rtol = %s, atol = %s" % (rtol, atol),
                    "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
        distance = math_ops.abs(x - y)
        return control_flow_ops.Assert(math_ops.reduce_all(gen_ops.LessEqual(
            distance, atol + rtol * math_ops.abs(y))), data, summarize=summarize)


@export("assert_same_float_dtype", "debugging.assert_same_float_dtype")
def assert_same_float_dtype(tensors=None, dtype=None):
    """The dtype of all tensors, which must be one floating type."""
    for tensor in tensors or ():
        if tensor is None:
            continue
        if dtype is None:
            dtype = tensor.dtype.base_dtype
        elif tensor.dtype.base_dtype != dtypes.as_dtype(dtype):
            raise ValueError("Tensor %s has type %s, not %s." % (tensor, tensor.dtype.name, dtypes.as_dtype(dtype).name))
    dtype = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError("Expected floating point type, got %s." % dtype)
    return dtype


@export("assert_proper_iterable", "debugging.assert_proper_iterable")
def assert_proper_iterable(values):
    """Raises TypeError for tensors, sparse tensors, arrays and strings."""
    if isinstance(values, (sparse_tensor.SparseTensor, np.ndarray, str, bytes)) or tensor_util.is_tensor(values):
        raise TypeError("Expected argument 'values' to be a 'proper' iterable.  Found: %s" % type(values))
    if not hasattr(values, "__iter__"):
        raise TypeError("Expected argument 'values' to be iterable.  Found: %s" % type(values))


def _ordered(name, compare):
    def function(x, name=None):
        with ops.name_scope(name, function.__name__, [x]):
            x = array_ops.reshape(ops.convert_to_tensor(x, name="x"), [-1])
            steps = x[1:] - x[:-1]
            return math_ops.reduce_all(compare(ops.convert_to_tensor(0, dtype=x.dtype), steps))
    function.__name__ = name
    return function


is_non_decreasing = export("is_non_decreasing", "debugging.is_non_decreasing", "math.is_non_decreasing")(
    _ordered("is_non_decreasing", lambda zero, steps: gen_ops.LessEqual(zero, steps)))
is_strictly_increasing = export(
    "is_strictly_increasing", "debugging.is_strictly_increasing", "math.is_strictly_increasing")(
        _ordered("is_strictly_increasing", lambda zero, steps: gen_ops.Less(zero, steps)))


@export("lbeta", "math.lbeta")
def lbeta(x, name=None):
    """The logarithm of the Beta function along the last axis."""
    with ops.name_scope(name, "lbeta", [x]):
        x = ops.convert_to_tensor(x, name="x")
        return math_ops.subtract(math_ops.reduce_sum(gen_ops.Lgamma(x), axis=[-1]),
                                 gen_ops.Lgamma(math_ops.reduce_sum(x, axis=[-1])))


@export("histogram_fixed_width_bins")
def histogram_fixed_width_bins(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    """The number of the bin of each value."""
    with ops.name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = ops.convert_to_tensor(values, name="values")
        shape = array_ops.shape(values)
        flat = array_ops.reshape(values, [-1])
        bounds = ops.convert_to_tensor(value_range, name="value_range")
        nbins = ops.convert_to_tensor(nbins, dtype=dtypes.int32, name="nbins")
        scaled = math_ops.truediv(flat - bounds[0], bounds[1] - bounds[0], name="scaled_values")
        bins = math_ops.floor(math_ops.cast(nbins, scaled.dtype) * scaled, name="indices")
        last = math_ops.cast(nbins - 1, scaled.dtype)
        bins = gen_ops.ClipByValue(bins, math_ops.cast(0, scaled.dtype), last)
        return array_ops.reshape(math_ops.cast(bins, dtype), shape)
