"""Assertions about tensors."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import errors
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

__getattr__ = module_names.fallback(__name__)

convert = ops.convert_to_tensor


def _static_text(item):
    known = tensor_util.constant_value(item) if isinstance(item, ops.Tensor) else item
    return str(item if known is None else known)


def _prefix(message):
    return message + ".  " if message else ""


def _binary(symbol, op_name, static, dynamic):
    """An assertion `x op y`, checked at once where both are known."""
    def function(x, y, data=None, summarize=None, message=None, name=None):
        with ops.name_scope(name, op_name, [x, y, data]):
            x, y = convert(x, name="x"), convert(y, name="y")
            if data is None:
                data = ["Condition x %s y did not hold element-wise:" % symbol,
                        "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
            if message is not None:
                data = [message] + list(data)
            condition = math_ops.reduce_all(dynamic(x, y))
            x_static, y_static = tensor_util.constant_value(x), tensor_util.constant_value(y)
            if x_static is not None and y_static is not None:
                if not np.all(static(x_static, y_static)):
                    raise errors.InvalidArgumentError(None, None, "\n".join(_static_text(d) for d in data))
            return control_flow_ops.Assert(condition, data, summarize=summarize)
    return function


_assert_equal = _binary("==", "assert_equal", np.equal, lambda x, y: gen_ops.Equal(x, y))


@export("assert_equal", "debugging.assert_equal")
def assert_equal(x, y, data=None, summarize=None, message=None, name=None):
    # TensorFlow enters the scope twice, which the names of the nodes show.
    with ops.name_scope(name, "assert_equal", [x, y, data]):
        if x is y:
            return control_flow_ops.no_op()
    return _assert_equal(x, y, data, summarize, message, name)


assert_none_equal = export("assert_none_equal", "debugging.assert_none_equal")(
    _binary("!=", "assert_none_equal", np.not_equal, lambda x, y: gen_ops.NotEqual(x, y)))
assert_less = export("assert_less", "debugging.assert_less")(
    _binary("<", "assert_less", np.less, lambda x, y: gen_ops.Less(x, y)))
assert_less_equal = export("assert_less_equal", "debugging.assert_less_equal")(
    _binary("<=", "assert_less_equal", np.less_equal, lambda x, y: gen_ops.LessEqual(x, y)))
assert_greater = export("assert_greater", "debugging.assert_greater")(
    _binary(">", "assert_greater", np.greater, lambda x, y: gen_ops.Greater(x, y)))
assert_greater_equal = export("assert_greater_equal", "debugging.assert_greater_equal")(
    _binary(">=", "assert_greater_equal", np.greater_equal,
            lambda x, y: gen_ops.GreaterEqual(x, y)))


def _against_zero(op_name, symbol, compare, zero_first):
    def function(x, data=None, summarize=None, message=None, name=None):
        with ops.name_scope(name, op_name, [x, data]):
            x = convert(x, name="x")
            if data is None:
                data = [message + ".  " if message else "",
                        "Condition x %s 0 did not hold element-wise:" % symbol,
                        "x (%s) = " % x.name, x]
            zero = convert(0, dtype=x.dtype)
            if zero_first:
                return compare(zero, x, data=data, summarize=summarize)
            return compare(x, zero, data=data, summarize=summarize)
    return function


assert_positive = export("assert_positive", "debugging.assert_positive")(
    _against_zero("assert_positive", ">", assert_less, True))
assert_negative = export("assert_negative", "debugging.assert_negative")(
    _against_zero("assert_negative", "<", assert_less, False))
assert_non_negative = export("assert_non_negative", "debugging.assert_non_negative")(
    _against_zero("assert_non_negative", ">=", assert_less_equal, True))
assert_non_positive = export("assert_non_positive", "debugging.assert_non_positive")(
    _against_zero("assert_non_positive", "<=", assert_less_equal, False))


@export("assert_rank", "debugging.assert_rank")
def assert_rank(x, rank, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_rank", [x, rank] + list(data or [])):
        x = convert(x, name="x")
        rank = convert(rank, name="rank")
        wanted = tensor_util.constant_value(rank)
        found = x.get_shape().ndims
        if wanted is not None and found is not None:
            if found != wanted:
                raise ValueError("%sTensor %s must have rank %d.  Received rank %d, shape %s" % (
                    _prefix(message), x.name, wanted, found, x.get_shape()))
            return control_flow_ops.no_op(name="static_checks_determined_all_ok")
        if data is None:
            data = [message or "", "Tensor %s must have rank" % x.name, rank, "Received shape: ",
                    array_ops.shape(x)]
        return control_flow_ops.Assert(math_ops.equal(array_ops.rank(x), rank), data,
                                       summarize=summarize)


@export("assert_rank_at_least", "debugging.assert_rank_at_least")
def assert_rank_at_least(x, rank, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_rank_at_least", [x, rank] + list(data or [])):
        x = convert(x, name="x")
        rank = convert(rank, name="rank")
        wanted = tensor_util.constant_value(rank)
        found = x.get_shape().ndims
        if wanted is not None and found is not None:
            if found < wanted:
                raise ValueError("%sTensor %s must have rank at least %d.  Received rank %d, "
                                 "shape %s" % (_prefix(message), x.name, wanted, found,
                                               x.get_shape()))
            return control_flow_ops.no_op(name="static_checks_determined_all_ok")
        if data is None:
            data = [message or "", "Tensor %s must have rank at least" % x.name, rank,
                    "Received shape: ", array_ops.shape(x)]
        return control_flow_ops.Assert(array_ops.rank(x) >= rank, data, summarize=summarize)


@export("assert_type", "debugging.assert_type")
def assert_type(tensor, tf_type, message=None, name=None):
    tf_type = dtypes.as_dtype(tf_type)
    with ops.name_scope(name, "assert_type", [tensor]):
        tensor = convert(tensor, name="tensor")
        if tensor.dtype != tf_type:
            raise TypeError("%s%s must be of type %r; got %r" % (
                message or "", tensor.name, tf_type, tensor.dtype))
        return control_flow_ops.no_op("statically_determined_correct_type")


@export("assert_integer", "debugging.assert_integer")
def assert_integer(x, message=None, name=None):
    with ops.name_scope(name, "assert_integer", [x]):
        x = convert(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError("%s  Expected \"x\" to be integer type.  Found: %s" % (
                message or "", x.dtype))
        return control_flow_ops.no_op("statically_determined_was_integer")


@export("assert_scalar", "debugging.assert_scalar")
def assert_scalar(tensor, name=None, message=None):
    with ops.name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert(tensor, name=scope)
        if tensor.get_shape().ndims != 0:
            raise ValueError("%sExpected scalar shape for %s, saw shape: %s." % (
                message or "", tensor.name, tensor.get_shape()))
        return tensor


@export("is_numeric_tensor", "debugging.is_numeric_tensor")
def is_numeric_tensor(tensor):
    return isinstance(tensor, ops.Tensor) and (
        tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_complex)


@export("assert_rank_in", "debugging.assert_rank_in")
def assert_rank_in(x, ranks, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_rank_in", (x,) + tuple(ranks) + tuple(data or [])):
        x = convert(x, name="x")
        ranks = tuple(convert(rank, name="rank") for rank in ranks)
        if data is None:
            data = [message or "", "Tensor %s must have rank in" % x.name] + list(ranks) + [
                "Received shape: ", array_ops.shape(x)]
        for rank in ranks:
            assert_type(rank, dtypes.int32)
        known = [tensor_util.constant_value(rank) for rank in ranks]
        found = x.get_shape().ndims
        if found is not None and all(k is not None for k in known):
            if found not in [int(k) for k in known]:
                raise ValueError("%sTensor %s must have rank in %s.  Received rank %d, shape "
                                 "%s" % (_prefix(message), x.name, tuple(int(k) for k in known),
                                         found, x.get_shape()))
            return control_flow_ops.no_op(name="static_checks_determined_all_ok")
        matches = [math_ops.equal(array_ops.rank(x), rank) for rank in ranks]
        return control_flow_ops.Assert(math_ops.reduce_any(array_ops.stack(matches)), data,
                                       summarize=summarize)
