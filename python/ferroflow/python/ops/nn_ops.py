"""Neural networks: activations, convolutions, pooling and their arguments."""

import numbers

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import random_seed
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.ops import random_ops
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor


@export("nn.relu6")
def relu6(features, name=None):
    with ops.name_scope(name, "Relu6", [features]) as scope:
        return gen_ops.Relu6(convert(features, name="features"), name=scope)


@export("nn.leaky_relu")
def leaky_relu(features, alpha=0.2, name=None):
    with ops.name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert(features, name="features")
        if features.dtype.is_integer:
            features = math_ops.cast(features, dtypes.float32)
        if isinstance(alpha, np.ndarray):
            alpha = alpha.item()
        return gen_ops.LeakyRelu(features, alpha=alpha, name=scope)


@export("nn.crelu")
def crelu(features, name=None, axis=-1):
    with ops.name_scope(name, "CRelu", [features]) as scope:
        features = convert(features, name="features")
        joined = array_ops.concat([features, -features], axis, name=scope)
        return gen_ops.Relu(joined)


@export("nn.swish", "nn.silu")
def swish(features, beta=1.0):
    from ferroflow.python.ops import custom_gradient
    features = convert(features, name="features")
    beta = convert(beta, name="beta")
    beta = math_ops.cast(beta, features.dtype)

    def backward(features, beta, grad):
        # The sigmoid is computed again, which is cheaper than keeping it.
        with ops.control_dependencies([grad]):
            s = math_ops.sigmoid(beta * features)
        by_features = s * (1.0 + (beta * features) * (1.0 - s))
        by_beta = math_ops.reduce_sum(grad * math_ops.square(features) * s * (1.0 - s))
        return grad * by_features, by_beta

    @custom_gradient.custom_gradient
    def forward(features, beta):
        return features * math_ops.sigmoid(beta * features), (
            lambda grad: backward(features, beta, grad))
    return forward(features, beta)


def _softmax(op, logits, axis, name):
    """A softmax op on any axis: the op itself takes the last."""
    if axis is None:
        axis = -1
    logits = convert(logits)
    shape = logits.get_shape()
    last = axis == -1 or (shape.ndims is not None and axis == shape.ndims - 1)
    if last:
        return op(logits, name=name)
    axis_value = axis
    if shape.ndims is not None:
        if not -shape.ndims <= axis_value < shape.ndims:
            from ferroflow.python.framework import errors
            raise errors.InvalidArgumentError(
                None, None, "dim must be in the range [-%d, %d) where %d is the number of "
                "dimensions in the input. Received: dim=%d" % (
                    shape.ndims, shape.ndims, shape.ndims, axis_value))
        axis_value %= shape.ndims
    array_ops.rank(logits)
    rank = array_ops.rank(logits)
    axis_value = axis_value % rank if shape.ndims is None else axis_value

    def swap(tensor, last, out_name=None):
        return array_ops.transpose(tensor, array_ops.concat([
            math_ops.range(axis_value), [last], math_ops.range(axis_value + 1, last),
            [axis_value]], 0), name=out_name)

    output = op(swap(logits, gen_ops.Sub(rank, 1)))
    output = swap(output, gen_ops.Sub(rank, 1), name)
    output.set_shape(shape)
    return output


@export("nn.softmax", "math.softmax")
def softmax(logits, axis=None, name=None, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    return _softmax(gen_ops.Softmax, logits, axis, name)


@export("nn.log_softmax", "math.log_softmax")
def log_softmax(logits, axis=None, name=None, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    return _softmax(gen_ops.LogSoftmax, logits, axis, name)


@export("nn.bias_add")
def bias_add(value, bias, data_format=None, name=None):
    with ops.name_scope(name, "BiasAdd", [value, bias]) as scope:
        layout = None
        if data_format is not None:
            if data_format.startswith("NC"):
                layout = "NCHW"
            elif data_format.startswith("N") and data_format.endswith("C"):
                layout = "NHWC"
            else:
                raise ValueError("`data_format` must be of the form `N...C` or `NC...`. Received: "
                                 "%s" % data_format)
        value = convert(value, name="input")
        bias = convert(bias, dtype=value.dtype, name="bias")
        return gen_ops.BiasAdd(value, bias, data_format=layout, name=scope)


@export("nn.xw_plus_b")
def xw_plus_b(x, weights, biases, name=None):
    with ops.name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert(x, name="x")
        weights = convert(weights, name="weights")
        biases = convert(biases, name="biases")
        return bias_add(math_ops.matmul(x, weights), biases, name=scope)


@export("nn.relu_layer")
def relu_layer(x, weights, biases, name=None):
    with ops.name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert(x, name="x")
        weights = convert(weights, name="weights")
        biases = convert(biases, name="biases")
        return gen_ops.Relu(bias_add(math_ops.matmul(x, weights), biases), name=scope)


@export("nn.top_k", "math.top_k")
def top_k(input, k=1, sorted=True, index_type=dtypes.int32, name=None):
    return gen_ops.TopKV2(input, k=k, sorted=sorted, index_type=index_type, name=name)


@export("nn.in_top_k", "math.in_top_k")
def in_top_k(predictions, targets, k, name=None):
    with ops.name_scope(name, "in_top_k"):
        return gen_ops.InTopKV2(predictions, targets, k, name=None)


@export("nn.dropout")
def dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None):
    if rate is not None and keep_prob is not None:
        raise ValueError("Only one of `rate` and `keep_prob` can be set.")
    if rate is None and keep_prob is None:
        raise ValueError("`rate` or `keep_prob` must be provided. Received: rate=None.")
    if rate is None:
        try:
            rate = 1 - keep_prob
        except TypeError:
            raise ValueError("`keep_prob` must be a floating point number or Tensor. Received: keep_prob=%s" % (keep_prob,)) from None
    with ops.name_scope(name, "dropout", [x]):
        fixed = isinstance(rate, numbers.Real)
        if fixed and not 0 <= rate < 1:
            raise ValueError("`rate` must be a scalar tensor or a float in the range [0, 1). "
                             "Received: rate=%s" % rate)
        x = convert(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError("`x.dtype` must be a floating point tensor as `x` will be scaled. "
                             "Received: x_dtype=%s" % x.dtype)
        if fixed and rate == 0:
            random_seed.get_seed(seed)
            return x
        if not fixed:
            rate = convert(rate)
            if rate.get_shape().ndims not in (None, 0):
                raise ValueError("`rate` must be a scalar tensor.")
            if rate.dtype != x.dtype:
                raise ValueError("`x.dtype` must match `rate.dtype`. Received: x.dtype=%s and "
                                 "rate.dtype=%s" % (x.dtype, rate.dtype))
            result = gen_ops.RealDiv(x, gen_ops.Sub(constant_op.constant(1, dtype=x.dtype), rate))
        else:
            result = gen_ops.Mul(x, convert(1 / (1 - rate), dtype=x.dtype))
        shape = _noise_shape(x, noise_shape)
        random = random_ops.random_uniform(shape, seed=seed, dtype=x.dtype)
        keep = random >= rate
        zero = constant_op.constant(0, dtype=x.dtype)
        result = array_ops.where_v2(keep, result, zero)
        result.set_shape(x.get_shape())
        return result


def _noise_shape(x, noise_shape):
    if noise_shape is None:
        return array_ops.shape(x)
    from ferroflow.python.framework import tensor_shape
    try:
        static = tensor_shape.as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    dims = x.get_shape().as_list() if x.get_shape().ndims is not None else None
    if dims is not None and static.ndims == len(dims):
        return tensor_shape.TensorShape([
            d if n is None and d is not None else n
            for d, n in zip(dims, static.as_list())])
    return noise_shape


@export("nn.l2_normalize", "math.l2_normalize", "linalg.l2_normalize")
def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    with ops.name_scope(name, "l2_normalize", [x]) as scope:
        x = convert(x, name="x")
        if x.dtype.is_complex:
            squares = math_ops.reduce_sum(
                math_ops.real(x) * math_ops.real(x) + math_ops.imag(x) * math_ops.imag(x), axis,
                keepdims=True)
            inverse = math_ops.rsqrt(gen_ops.Maximum(squares, epsilon))
            return math_ops.complex(math_ops.real(x) * inverse, math_ops.imag(x) * inverse,
                                    name=scope)
        squares = math_ops.reduce_sum(math_ops.square(x), axis, keepdims=True)
        inverse = math_ops.rsqrt(gen_ops.Maximum(squares, epsilon))
        return gen_ops.Mul(x, inverse, name=scope)


@export("nn.zero_fraction", "math.zero_fraction")
def zero_fraction(value, name=None):
    from ferroflow.python.ops import cond
    with ops.name_scope(name, "zero_fraction", [value]):
        value = convert(value, name="value")
        size = array_ops.size(value, out_type=dtypes.int64)

        def count(dtype):
            return math_ops.cast(_count_nonzero(value, dtype), dtypes.int64)

        nonzero = cond.cond(size <= dtypes.int32.max, true_fn=lambda: count(dtypes.int32),
                            false_fn=lambda: count(dtypes.int64))
        with ops.name_scope("counts_to_fraction"):
            zero = size - nonzero
            fraction = math_ops.cast(zero, dtypes.float32) / math_ops.cast(size, dtypes.float32)
        return array_ops.identity(fraction, "fraction")


def _count_nonzero(value, dtype):
    with ops.name_scope("count_nonzero", values=[value]):
        zero = array_ops.zeros([], dtype=value.dtype)
        nonzero = math_ops.cast(math_ops.not_equal(value, zero), dtype)
        return math_ops.reduce_sum(nonzero, name="nonzero_count")


from ferroflow.python.ops.cross_entropy_ops import (  # noqa: E402,F401
    sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2, sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits)
from ferroflow.python.ops.convolution_ops import (  # noqa: E402,F401
    conv1d, conv2d, conv2d_transpose, conv3d, convolution, depthwise_conv2d, separable_conv2d)
from ferroflow.python.ops.normalization_ops import (  # noqa: E402,F401
    batch_normalization, fused_batch_norm, moments)
from ferroflow.python.ops.pooling_ops import avg_pool, max_pool, pool  # noqa: E402,F401

__getattr__ = module_names.fallback(__name__)
