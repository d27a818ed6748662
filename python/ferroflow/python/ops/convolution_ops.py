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
    """A depthwise convolution, with or without dilation."""
    shape = tensor_util.constant_value(array_ops.shape(filter))
    kwargs = {} if data_format is None else {"data_format": data_format}
    if all(r == 1 for r in rate):
        ops.convert_to_tensor(list(rate), dtype=dtypes.int32, name="dilation_rate")
        return op(input, filter, strides=strides, padding=padding, name=scope, **kwargs)
    return _by_space_to_batch(
        input, shape, rate, padding, data_format,
        lambda moved, padding: op(moved, filter, strides=strides, padding=padding, name=scope, **kwargs))


def _by_space_to_batch(input, filter_shape, rate, padding, data_format, convolve):
    """A convolution whose dilation is done by moving space to batch, as TensorFlow does."""
    n = len(rate)
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    rate_tensor = ops.convert_to_tensor(list(rate), dtype=dtypes.int32, name="dilation_rate")
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("`filter_shape` must be specified for `padding='SAME'`. Received: "
                             "filter_shape=None and padding=SAME")
        if isinstance(filter_shape, list):
            ops.convert_to_tensor(filter_shape, dtype=dtypes.int32, name="filter_shape")
        extents = [(int(k) - 1) * r for k, r in zip(filter_shape[:n], rate)]
        base = array_ops.stack([[e // 2, e - e // 2] for e in extents])
    elif padding == "VALID":
        base = np.zeros([n, 2], np.int32)
    else:
        explicit = np.array(padding).reshape([-1, 2])
        base = explicit[first:first + n].astype(np.int32)
    static = input.get_shape()
    dims = [None] if static.ndims is None else static.as_list()[first:first + n]
    if any(d is None for d in dims):
        shape = array_ops.shape(input)
        dims = array_ops.stack([shape[first + i] for i in range(n)])
    paddings, crops = array_ops.required_space_to_batch_paddings(
        input_shape=dims, base_paddings=base, block_shape=rate_tensor)
    # The channels that come before space are left alone.
    block = [1] * (first - 1) + list(rate)
    paddings, crops = (_behind_channels(x, first - 1) for x in (paddings, crops))
    moved = gen_ops.SpaceToBatchND(input, block, paddings)
    return gen_ops.BatchToSpaceND(convolve(moved, "VALID"), block, crops)


def _behind_channels(pairs, count):
    """Paddings as numbers where the graph alone decides them, behind those of the channels."""
    known = tensor_util.constant_value(pairs)
    none = [np.zeros([count, 2], np.int32)] if count else []
    if known is None:
        return array_ops.concat(none + [pairs[0:pairs.get_shape().as_list()[0]]], 0)
    return np.concatenate(none + [known])


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
    index = _channel_index(data_format, n)
    space = slice(1, -1) if index == n + 1 else slice(2, None)
    if n in (1, 2, 3) and any(d != 1 for d in dilations):
        if any(stride != 1 for stride in strides[space]):
            raise ValueError("`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: strides=%s and "
                             "dilation_rate=%s" % (strides[space], dilations[space]))
        with ops.name_scope(scope) as scope:
            input = ops.convert_to_tensor(input, name="input")
            filter_shape = filter.get_shape()
            return _by_space_to_batch(
                input, filter_shape.as_list() if filter_shape.is_fully_defined() else None, dilations[space], padding, data_format,
                lambda moved, padding: _convolve(moved, filter, n, strides, padding, [1] * (n + 2), data_format, scope))
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
