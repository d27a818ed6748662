"""Convolutions."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops.pooling_ops import _channel_index, _sizes
from ferroflow.python.util.api import deprecated_alias, export


def _padding(padding):
    """(padding, explicit paddings) from a name or a list of pairs."""
    if not isinstance(padding, (list, tuple)):
        return padding, []
    for pair in padding:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError("When padding is a list, each element of the list must be a list/"
                             "tuple of size 2.")
    return "EXPLICIT", [int(x) for pair in padding for x in pair]


@export("nn.conv2d")
def conv2d(input, filter=None, strides=None, padding=None, use_cudnn_on_gpu=True,
           data_format="NHWC", dilations=[1, 1, 1, 1], name=None, filters=None):
    filter = deprecated_alias("filters", filters, "filter", filter)
    padding, explicit = _padding(padding)
    data_format = "NHWC" if data_format is None else data_format
    index = 1 if data_format.startswith("NC") else 3
    strides = _sizes(strides, 2, index, "strides")
    dilations = _sizes(dilations, 2, index, "dilations")
    rank = getattr(getattr(input, "shape", None), "ndims", None)
    if rank is not None and rank > 4:
        raise NotImplementedError("conv2d: inputs with more than one batch dimension are not "
                                  "supported; reshape them to rank 4")
    return gen_ops.Conv2D(input, filter=filter, strides=strides, padding=padding,
                          use_cudnn_on_gpu=use_cudnn_on_gpu, explicit_paddings=explicit,
                          data_format=data_format, dilations=dilations, name=name)


@export("nn.conv2d_backprop_filter")
def conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding,
                           use_cudnn_on_gpu=True, data_format="NHWC", dilations=[1, 1, 1, 1],
                           name=None):
    padding, explicit = _padding(padding)
    return gen_ops.Conv2DBackpropFilter(
        input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu, explicit,
        data_format, dilations, name)


@export("nn.conv2d_backprop_input")
def conv2d_backprop_input(input_sizes, filter=None, out_backprop=None, strides=None, padding=None,
                          use_cudnn_on_gpu=True, data_format="NHWC", dilations=[1, 1, 1, 1],
                          name=None, filters=None):
    filter = deprecated_alias("filters", filters, "filter", filter)
    padding, explicit = _padding(padding)
    return gen_ops.Conv2DBackpropInput(
        input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu, explicit,
        data_format, dilations, name)


@export("nn.conv2d_transpose")
def conv2d_transpose(value=None, filter=None, output_shape=None, strides=None, padding="SAME",
                     data_format="NHWC", name=None, input=None, filters=None, dilations=None):
    value = deprecated_alias("input", input, "value", value)
    filter = deprecated_alias("filters", filters, "filter", filter)
    with ops.name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        data_format = "NHWC" if data_format is None else data_format
        index = 1 if data_format.startswith("NC") else 3
        strides = _sizes(strides, 2, index, "strides")
        dilations = _sizes(dilations, 2, index, "dilations")
        padding, explicit = _padding(padding)
        return gen_ops.Conv2DBackpropInput(
            input_sizes=output_shape, filter=filter, out_backprop=value, strides=strides,
            padding=padding, explicit_paddings=explicit, data_format=data_format,
            dilations=dilations, name=scope)


@export("nn.conv1d")
def conv1d(value=None, filters=None, stride=None, padding=None, use_cudnn_on_gpu=None,
           data_format=None, name=None, input=None, dilations=None):
    value = deprecated_alias("input", input, "value", value)
    with ops.name_scope(name, "conv1d", [value, filters]) as scope:
        if data_format is None or data_format in ("NHWC", "NWC"):
            layout, axis = "NHWC", -3
            index = 2
        elif data_format in ("NCHW", "NCW"):
            layout, axis = "NCHW", -2
            index = 1
        else:
            raise ValueError("`data_format` must be \"NWC\" or \"NCW\". Received: data_format=%s" %
                             data_format)
        strides = [1] + _sizes(stride, 1, index, "stride")
        dilations = [1] + _sizes(dilations, 1, index, "dilations")
        value = array_ops.expand_dims(value, axis)
        filters = array_ops.expand_dims(filters, 0)
        result = gen_ops.Conv2D(value, filters, strides, padding,
                                use_cudnn_on_gpu=use_cudnn_on_gpu, data_format=layout,
                                dilations=dilations, name=scope)
        return array_ops.squeeze(result, [axis])


@export("nn.conv3d")
def conv3d(input, filter=None, strides=None, padding=None, data_format="NDHWC",
           dilations=[1, 1, 1, 1, 1], name=None, filters=None):
    filter = deprecated_alias("filters", filters, "filter", filter)
    return gen_ops.Conv3D(input, filter, strides, padding, data_format, dilations, name)


@export("nn.conv3d_transpose")
def conv3d_transpose(value, filter=None, output_shape=None, strides=None, padding="SAME",
                     data_format="NDHWC", name=None, input=None, filters=None, dilations=None):
    filter = deprecated_alias("filters", filters, "filter", filter)
    value = deprecated_alias("input", input, "value", value)
    with ops.name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        data_format = "NDHWC" if data_format is None else data_format
        index = 1 if data_format.startswith("NC") else 4
        return gen_ops.Conv3DBackpropInputV2(
            input_sizes=output_shape, filter=filter, out_backprop=value,
            strides=_sizes(strides, 3, index, "strides"), padding=padding,
            data_format=data_format, dilations=_sizes(dilations, 3, index, "dilations"),
            name=scope)


@export("nn.depthwise_conv2d_native")
def depthwise_conv2d_native(input, filter, strides, padding, data_format="NHWC",
                            dilations=[1, 1, 1, 1], name=None):
    padding, explicit = _padding(padding)
    return gen_ops.DepthwiseConv2dNative(input, filter, strides, padding,
                                         explicit_paddings=explicit, data_format=data_format,
                                         dilations=dilations, name=name)


@export("nn.depthwise_conv2d")
def depthwise_conv2d(input, filter, strides, padding, rate=None, name=None, data_format=None,
                     dilations=None):
    rate = deprecated_alias("dilations", dilations, "rate", rate)
    with ops.name_scope(name, "depthwise", [input, filter]) as scope:
        input = ops.convert_to_tensor(input, name="tensor_in")
        filter = ops.convert_to_tensor(filter, name="filter_in")
        if rate is None:
            rate = [1, 1]
        return _dilated(input, filter, strides, padding, rate, data_format, scope,
                        depthwise_conv2d_native)


def _dilated(input, filter, strides, padding, rate, data_format, scope, op):
    """A convolution whose dilation is done by moving space to batch, as TensorFlow does."""
    shape = tensor_util.constant_value(array_ops.shape(filter))
    ops.convert_to_tensor(list(rate), dtype=dtypes.int32, name="dilation_rate")
    if all(r == 1 for r in rate):
        kwargs = {} if data_format is None else {"data_format": data_format}
        return op(input, filter, strides=strides, padding=padding, name=scope, **kwargs)
    spatial = [2, 3] if data_format == "NCHW" else [1, 2]
    if padding == "SAME":
        if shape is None:
            raise NotImplementedError("a dilated convolution with SAME padding needs a filter of "
                                      "known shape")
        extents = [(int(k) - 1) * r for k, r in zip(shape[:2], rate)]
        base = array_ops.stack([[e // 2, e - e // 2] for e in extents])
    else:
        base = np.zeros([2, 2], np.int32)
    static = input.get_shape()
    dims = [static.as_list()[d] for d in spatial] if static.ndims is not None else [None]
    if any(d is None for d in dims):
        dims = array_ops.gather(array_ops.shape(input), [d for d in spatial])
    paddings, crops = array_ops.required_space_to_batch_paddings(
        input_shape=dims, base_paddings=base, block_shape=rate)
    moved = gen_ops.SpaceToBatchND(input, rate, paddings)
    kwargs = {} if data_format is None else {"data_format": data_format}
    result = op(moved, filter, strides=strides, padding="VALID", name=scope, **kwargs)
    return gen_ops.BatchToSpaceND(result, rate, crops)


@export("nn.separable_conv2d")
def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, rate=None,
                     name=None, data_format=None, dilations=None):
    rate = deprecated_alias("dilations", dilations, "rate", rate)
    with ops.name_scope(name, "separable_conv2d",
                        [input, depthwise_filter, pointwise_filter]) as scope:
        input = ops.convert_to_tensor(input, name="tensor_in")
        depthwise_filter = ops.convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = ops.convert_to_tensor(pointwise_filter, name="pointwise_filter")
        if rate is None:
            rate = [1, 1]
        middle = _dilated(input, depthwise_filter, strides, padding, rate, data_format,
                          "depthwise", depthwise_conv2d_native)
        return gen_ops.Conv2D(middle, pointwise_filter, [1, 1, 1, 1], padding="VALID",
                              data_format=data_format, name=scope)


@export("nn.convolution")
def convolution(input, filter, padding, strides=None, dilation_rate=None, name=None,
                data_format=None, filters=None, dilations=None):
    dilation_rate = deprecated_alias("dilations", dilations, "dilation_rate", dilation_rate)
    filter = deprecated_alias("filters", filters, "filter", filter)
    rank = tensor_shape.as_shape(getattr(filter, "shape", None)).ndims
    n = rank - 2 if rank is not None else ops.convert_to_tensor(input).get_shape().ndims - 2
    with ops.name_scope(name, "convolution", [input, filter]) as scope:
        index = _channel_index(data_format, n)
        return _convolve(input, filter, n, _sizes(strides, n, index, "strides"), padding,
                         _sizes(dilation_rate, n, index, "dilations"), data_format, scope)


def _convolve(input, filter, n, strides, padding, dilations, data_format, scope):
    if n == 1:
        spatial = 2 if data_format is not None and data_format.startswith("NC") else 1
        return conv1d(input, filter, stride=strides[spatial], padding=padding,
                      data_format=data_format, dilations=dilations[spatial], name=scope)
    if n == 2:
        return conv2d(input, filter, strides=strides, padding=padding,
                      data_format=data_format or "NHWC", dilations=dilations, name=scope)
    if n == 3:
        return conv3d(input, filter, strides=strides, padding=padding,
                      data_format=data_format or "NDHWC", dilations=dilations, name=scope)
    raise ValueError("`input.shape.rank` must be 3, 4 or 5. Received: %d" % (n + 2))


@export("nn.atrous_conv2d")
def atrous_conv2d(value, filters, rate, padding, name=None):
    return convolution(value, filters, padding, dilation_rate=np.broadcast_to(rate, (2,)).tolist(),
                       name=name)
