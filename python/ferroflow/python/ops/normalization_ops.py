"""Moments and batch normalisation."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor


@export("nn.moments")
def moments(x, axes, shift=None, name=None, keep_dims=None, keepdims=None):
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
    with ops.name_scope(name, "moments", [x, axes]):
        y = math_ops.cast(x, dtypes.float32) if x.dtype in (
            dtypes.float16, dtypes.bfloat16) else x
        mean = math_ops.reduce_mean(y, axes, keepdims=True, name="mean")
        variance = math_ops.reduce_mean(
            gen_ops.SquaredDifference(y, array_ops.stop_gradient(mean)), axes, keepdims=True,
            name="variance")
        if not keepdims:
            mean = array_ops.squeeze(mean, axes)
            variance = array_ops.squeeze(variance, axes)
        if x.dtype in (dtypes.float16, dtypes.bfloat16):
            return math_ops.cast(mean, x.dtype), math_ops.cast(variance, x.dtype)
        return mean, variance


@export("nn.sufficient_statistics")
def sufficient_statistics(x, axes, shift=None, keep_dims=None, name=None, keepdims=None):
    axes = list(set(axes))
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
    with ops.name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert(x, name="x")
        dims = x.get_shape().as_list() if x.get_shape().ndims is not None else None
        if dims is not None and all(dims[a] is not None for a in axes):
            counts = 1
            for a in axes:
                counts *= dims[a]
            counts = constant_op.constant(counts, dtype=x.dtype)
        else:
            sizes = array_ops.gather(math_ops.cast(array_ops.shape(x), x.dtype), axes)
            counts = math_ops.reduce_prod(sizes, name="count")
        if shift is not None:
            shift = convert(shift, name="shift")
            mean_ss = gen_ops.Sub(x, shift)
            variance_ss = gen_ops.SquaredDifference(x, shift)
        else:
            mean_ss = x
            variance_ss = math_ops.square(x)
        mean_ss = math_ops.reduce_sum(mean_ss, axes, keepdims=keepdims, name="mean_ss")
        variance_ss = math_ops.reduce_sum(variance_ss, axes, keepdims=keepdims, name="var_ss")
        return counts, mean_ss, variance_ss, shift


@export("nn.normalize_moments")
def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    with ops.name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = gen_ops.Reciprocal(counts, name="divisor")
        if shift is not None:
            shifted = gen_ops.Mul(mean_ss, divisor, name="shifted_mean")
            mean = math_ops.add(shifted, shift, name="mean")
        else:
            shifted = gen_ops.Mul(mean_ss, divisor, name="mean")
            mean = shifted
        variance = gen_ops.Sub(gen_ops.Mul(variance_ss, divisor), math_ops.square(shifted),
                               name="variance")
        return mean, variance


@export("nn.weighted_moments")
def weighted_moments(x, axes, frequency_weights, name=None, keep_dims=None, keepdims=None):
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
    with ops.name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert(x, name="x")
        weights = convert(frequency_weights, name="frequency_weights")
        half = x.dtype in (dtypes.float16, dtypes.bfloat16)
        original = x.dtype
        if half:
            x = math_ops.cast(x, dtypes.float32)
        if weights.dtype != x.dtype:
            weights = math_ops.cast(weights, x.dtype)
        weighted = math_ops.reduce_sum(weights * x, axes, name="weighted_input_sum",
                                       keepdims=True)
        # The weights may have fewer dimensions: they count once for each element of x.
        broadcast = weights + array_ops.zeros_like(x)
        total = math_ops.reduce_sum(broadcast, axes, name="sum_of_weights", keepdims=True)
        mean = math_ops.div_no_nan(weighted, total)
        distance = math_ops.reduce_sum(
            weights * gen_ops.SquaredDifference(x, mean), axes,
            name="weighted_distsq", keepdims=True)
        variance = math_ops.div_no_nan(distance, total)
        if not keepdims:
            mean = array_ops.squeeze(mean, axis=axes)
            variance = array_ops.squeeze(variance, axis=axes)
        if half:
            mean, variance = math_ops.cast(mean, original), math_ops.cast(variance, original)
        return mean, variance


@export("nn.batch_normalization")
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    with ops.name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inverse = math_ops.rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse *= scale
        scaled = x * math_ops.cast(inverse, x.dtype)
        shift = offset - mean * inverse if offset is not None else -mean * inverse
        return scaled + math_ops.cast(shift, x.dtype)


@export("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(t=None, m=None, v=None, beta=None, gamma=None,
                                         variance_epsilon=None, scale_after_normalization=None,
                                         name=None, input=None, mean=None, variance=None):
    t = deprecated_alias("input", input, "t", t)
    m = deprecated_alias("mean", mean, "m", m)
    v = deprecated_alias("variance", variance, "v", v)
    return batch_normalization(t, m, v, beta, gamma if scale_after_normalization else None,
                               variance_epsilon, name)


@export("nn.fused_batch_norm")
def fused_batch_norm(x, scale, offset, mean=None, variance=None, epsilon=0.001,
                     data_format="NHWC", is_training=True, name=None,
                     exponential_avg_factor=1.0):
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError("Both `mean` and `variance` must be a 1D tensor when `is_training` is "
                         "False or `exponential_avg_factor` != 1.0.")
    x = convert(x, name="input")
    scale = convert(scale, name="scale")
    offset = convert(offset, name="offset")
    mean = constant_op.constant([]) if mean is None else mean
    variance = constant_op.constant([]) if variance is None else variance
    # cuDNN's minimum.
    epsilon = max(epsilon, 1.001e-5)
    y, running_mean, running_var, _, _, _ = gen_ops.FusedBatchNormV3(
        x, scale, offset, mean, variance, epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training, name=name)
    return y, running_mean, running_var
