"""Weights that broadcast to the values they weigh."""

from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops

_PREFIX = "weights can not be broadcast to values."


def _measured(value, label):
    with ops.name_scope(None, label, (value,)) as scope:
        value = ops.convert_to_tensor(value, name=scope)
        shape = array_ops.shape(value, name="shape")
        rank = array_ops.rank(value, name="rank")
    return value, shape, rank, tensor_util.constant_value(rank)


def assert_broadcastable(weights, values):
    """An assertion that weights are a scalar, or of the rank of the values with equal or 1 dims."""
    with ops.name_scope(None, "assert_broadcastable", (weights, values)) as scope:
        weights, weights_shape, weights_rank, known_weights = _measured(weights, "weights")
        values, values_shape, values_rank, known_values = _measured(values, "values")
        if known_weights is not None and known_values is not None:
            if known_weights == 0:
                return control_flow_ops.no_op(name="static_scalar_check_success")
            if known_weights != known_values:
                raise ValueError("%s values.rank=%s. weights.rank=%s. values.shape=%s. "
                                 "weights.shape=%s. Received weights=%s, values=%s" % (
                                     _PREFIX, known_values, known_weights, values.get_shape(),
                                     weights.get_shape(), weights, values))
            w, v = tensor_util.constant_value(weights_shape), tensor_util.constant_value(
                values_shape)
            if w is not None and v is not None:
                for i, (a, b) in enumerate(zip(w, v)):
                    if a not in (1, b):
                        raise ValueError("%s Mismatch at dim %d. values.shape=%s, weights.shape=%s. "
                                         "Received weights=%s, values=%s" % (_PREFIX, i, v, w, weights, values))
                return control_flow_ops.no_op(name="static_dims_check_success")
        is_scalar = math_ops.equal(0, weights_rank, name="is_scalar")
        data = (_PREFIX, "weights.shape=", weights.name, weights_shape, "values.shape=",
                values.name, values_shape, "is_scalar=", is_scalar)
        valid = cond.cond(
            is_scalar, lambda: is_scalar,
            lambda: _valid_shape(weights_rank, weights_shape, values_rank, values_shape),
            name="is_valid_shape")
        return control_flow_ops.Assert(valid, data, name=scope)


def _valid_shape(weights_rank, weights_shape, values_rank, values_shape):
    with ops.name_scope(None, "has_valid_nonscalar_shape",
                        (weights_rank, weights_shape, values_rank, values_shape)) as scope:
        same = math_ops.equal(values_rank, weights_rank, name="is_same_rank")
        return cond.cond(same, lambda: _valid_dims(weights_shape, values_shape), lambda: same,
                         name=scope)


def _valid_dims(weights_shape, values_shape):
    with ops.name_scope(None, "has_invalid_dims", (weights_shape, values_shape)) as scope:
        values_2d = array_ops.expand_dims(values_shape, -1)
        valid = array_ops.concat((values_2d, array_ops.ones_like(values_2d)), axis=1)
        weights_2d = array_ops.expand_dims(weights_shape, -1)
        indices, found, shape = gen_ops.DenseToDenseSetOperation(weights_2d, valid, "a-b", True)
        invalid = sparse_tensor.SparseTensor(indices, found, shape)
        count = array_ops.size(invalid.values, name="num_invalid_dims")
        return math_ops.equal(0, count, name=scope)


def broadcast_weights(weights, values):
    """The weights in the shape of the values."""
    with ops.name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = ops.convert_to_tensor(values, name="values")
        weights = ops.convert_to_tensor(weights, dtype=values.dtype.base_dtype, name="weights")
        w, v = weights.get_shape(), values.get_shape()
        if w.is_fully_defined() and v.is_fully_defined() and w.is_compatible_with(v):
            return weights
        with ops.control_dependencies((assert_broadcastable(weights, values),)):
            return gen_ops.Mul(weights, array_ops.ones_like(values), name=scope)
