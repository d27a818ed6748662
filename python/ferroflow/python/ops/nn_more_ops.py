"""More of `tf.nn`: transposed and depthwise convolutions, morphology, fractional pooling."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import random_seed
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import pooling_ops
from ferroflow.python.util.api import deprecated_alias, export


@export("nn.conv1d_transpose")
def conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None,  # pylint: disable=redefined-builtin
                     name=None):
    """The gradient of `conv1d`: a height of one is added for it."""
    with ops.name_scope(name, "conv1d_transpose", [input, filters, output_shape]):
        if data_format not in (None, "NWC", "NCW"):
            raise ValueError("`data_format` must be 'NWC' or 'NCW'. Received: data_format=%s" % data_format)
        first = data_format == "NCW"
        axis = 2 if first else 1

        def spread(value):
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            values = values if len(values) == 3 else [1] + ([1] if first else []) + values + ([] if first else [1])
            return values[:axis] + [1] + values[axis:]

        shape = array_ops.unstack(ops.convert_to_tensor(output_shape))
        shape = array_ops.stack(shape[:axis] + [1] + shape[axis:])
        out = convolution_ops.conv2d_transpose(
            array_ops.expand_dims(input, axis), array_ops.expand_dims(filters, 0), shape, spread(strides),
            padding=padding, data_format="NCHW" if first else "NHWC")
        return array_ops.squeeze(out, [axis])


@export("nn.conv_transpose")
def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):  # pylint: disable=redefined-builtin
    """The transposed convolution of one, two or three dimensions, by the rank of the filters."""
    with ops.name_scope(name, "conv_transpose", [input, filters, output_shape]):
        dimensions = ops.convert_to_tensor(filters).get_shape().ndims - 2
        functions = {1: conv1d_transpose, 2: convolution_ops.conv2d_transpose, 3: convolution_ops.conv3d_transpose}
        formats = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
        whole = list(strides) if isinstance(strides, (list, tuple)) else [strides] * dimensions
        if len(whole) != dimensions + 2:
            whole = [1] + whole + [1]
        return functions[dimensions](input, filters, output_shape, whole, padding=padding,
                                     data_format=data_format or formats[dimensions], name=name)


@export("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    """The gradient of `atrous_conv2d`."""
    with ops.name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        value, filters = ops.convert_to_tensor(value, name="value"), ops.convert_to_tensor(filters, name="filters")
        return gen_ops.Conv2DBackpropInput(
            input_sizes=ops.convert_to_tensor(output_shape, name="output_shape"), filter=filters, out_backprop=value,
            strides=[1, 1, 1, 1], padding=padding, dilations=[1, rate, rate, 1])


@export("nn.depthwise_conv2d_backprop_input", "nn.depthwise_conv2d_native_backprop_input")
def depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, strides, padding, data_format="NHWC",  # pylint: disable=redefined-builtin
                                    dilations=None, name=None):
    return gen_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes, filter, out_backprop, strides, padding, data_format=data_format,
        dilations=dilations or [1, 1, 1, 1], name=name)


@export("nn.depthwise_conv2d_backprop_filter", "nn.depthwise_conv2d_native_backprop_filter")
def depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding, data_format="NHWC",  # pylint: disable=redefined-builtin
                                     dilations=None, name=None):
    return gen_ops.DepthwiseConv2dNativeBackpropFilter(
        input, filter_sizes, out_backprop, strides, padding, data_format=data_format,
        dilations=dilations or [1, 1, 1, 1], name=name)


@export("nn.dilation2d")
def dilation2d(input, filter=None, strides=None, rates=None, padding=None, name=None, filters=None, dilations=None):  # pylint: disable=redefined-builtin
    """The largest sum of an image and a filter at each place."""
    filter = deprecated_alias("filters", filters, "filter", filter)
    rates = deprecated_alias("dilations", dilations, "rates", rates)
    return gen_ops.Dilation2D(input, filter, strides, rates, padding, name=name)


@export("nn.erosion2d")
def erosion2d(value, kernel, strides, rates, padding, name=None):
    """The smallest difference of an image and a filter at each place."""
    with ops.name_scope(name, "erosion2d", [value, kernel]) as scope:
        turned = gen_ops.ReverseV2(kernel, [0, 1])
        return gen_ops.Neg(gen_ops.Dilation2D(gen_ops.Neg(value), turned, strides, rates, padding), name=scope)


def _fractional(op):
    def function(value, pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False, seed=0, seed2=0,
                 name=None):
        if not deterministic and seed and not seed2:
            seed, seed2 = random_seed.get_seed(seed)
        return getattr(gen_ops, op)(value, pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2,
                                    name=name)
    return function


fractional_max_pool = export("nn.fractional_max_pool")(_fractional("FractionalMaxPool"))
fractional_avg_pool = export("nn.fractional_avg_pool")(_fractional("FractionalAvgPool"))


@export("nn.max_pool_v2")
def max_pool_v2(input, ksize, strides, padding, data_format="NHWC", name=None):  # pylint: disable=redefined-builtin
    return pooling_ops.max_pool(input, _four(ksize), _four(strides), padding, data_format=data_format, name=name)


@export("nn.avg_pool_v2")
def avg_pool_v2(input, ksize, strides, padding, data_format="NHWC", name=None):  # pylint: disable=redefined-builtin
    return pooling_ops.avg_pool(input, _four(ksize), _four(strides), padding, data_format=data_format, name=name)


def _four(sizes):
    sizes = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes]
    if len(sizes) == 1:
        sizes = sizes * 2
    return sizes if len(sizes) == 4 else [1] + sizes + [1]


@export("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss):
    """The loss unchanged: a graph has one replica."""
    return math_ops.reduce_sum(regularization_loss)


@export("nn.compute_average_loss")
def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None, max_scale_factor=None):
    """The sum of weighted losses over the size of the whole batch."""
    loss = ops.convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        loss *= math_ops.cast(sample_weight, loss.dtype)
    size = global_batch_size if global_batch_size is not None else array_ops.shape(loss)[0]
    return math_ops.reduce_sum(loss) / math_ops.cast(size, loss.dtype)


@export("math.bessel_i0", "math.special.bessel_i0")
def bessel_i0(x, name=None):
    return gen_ops.BesselI0(x, name=name)


@export("math.bessel_i0e", "math.special.bessel_i0e")
def bessel_i0e(x, name=None):
    return gen_ops.BesselI0e(x, name=name)


@export("math.bessel_i1", "math.special.bessel_i1")
def bessel_i1(x, name=None):
    return gen_ops.BesselI1(x, name=name)


@export("math.bessel_i1e", "math.special.bessel_i1e")
def bessel_i1e(x, name=None):
    return gen_ops.BesselI1e(x, name=name)


@export("serialize_tensor", "io.serialize_tensor")
def serialize_tensor(tensor, name=None):
    return gen_ops.SerializeTensor(tensor, name=name)


@export("dequantize", "quantization.dequantize")
def dequantize(input, min_range, max_range, mode="MIN_COMBINED", name=None, axis=-1, narrow_range=False,  # pylint: disable=redefined-builtin
               dtype=dtypes.float32):
    return gen_ops.Dequantize(input, min_range, max_range, mode=mode, narrow_range=narrow_range, axis=axis,
                              dtype=dtype, name=name)


@export("fingerprint")
def fingerprint(data, method="farmhash64", name=None):
    """Bytes that stand for the values of each row."""
    return gen_ops.Fingerprint(data, method=method, name=name)


@export("quantize_v2")
def quantize_v2(input, min_range, max_range, T, mode="MIN_COMBINED", name=None, round_mode="HALF_AWAY_FROM_ZERO",  # pylint: disable=redefined-builtin
                narrow_range=False, axis=None, ensure_minimum_range=0.01):
    return gen_ops.QuantizeV2(input, min_range, max_range, T=T, mode=mode, round_mode=round_mode, narrow_range=narrow_range,
                              axis=-1 if axis is None else axis, ensure_minimum_range=ensure_minimum_range, name=name)


@export("quantize", "quantization.quantize")
def quantize(input, min_range, max_range, T, mode="MIN_COMBINED", round_mode="HALF_AWAY_FROM_ZERO", name=None,  # pylint: disable=redefined-builtin
             narrow_range=False, axis=None, ensure_minimum_range=0.01):
    return quantize_v2(input, min_range, max_range, T, mode, name, round_mode, narrow_range, axis, ensure_minimum_range)


@export("quantization.quantize_and_dequantize")
def quantize_and_dequantize(input, input_min, input_max, signed_input=True, num_bits=8, range_given=False,  # pylint: disable=redefined-builtin
                            round_mode="HALF_TO_EVEN", name=None, narrow_range=False, axis=None):
    return gen_ops.QuantizeAndDequantizeV2(input, input_min, input_max, signed_input=signed_input, num_bits=num_bits,
                                           range_given=range_given, round_mode=round_mode, narrow_range=narrow_range,
                                           axis=-1 if axis is None else axis, name=name)
