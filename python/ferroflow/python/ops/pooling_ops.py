"""Pooling."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import deprecated_alias, export


def _sizes(value, n, channel_index, name):
    """A window or stride for each dimension, from one number or one per spatial dimension."""
    if value is None:
        value = [1]
    if not isinstance(value, (list, tuple, np.ndarray)):
        value = [value]
    value = list(value)
    if len(value) == n + 2:
        return value
    if len(value) == 1:
        value = value * n
    elif len(value) != n:
        raise ValueError("`%s` should be of length 1, %d or %d. Received: %s=%s of length %d" % (
            name, n, n + 2, name, value, len(value)))
    return [1, 1] + value if channel_index == 1 else [1] + value + [1]


def _channel_index(data_format, n):
    return 1 if data_format is not None and data_format.startswith("NC") else n + 1


@export("nn.max_pool")
def max_pool(value, ksize, strides, padding, data_format="NHWC", name=None, input=None):
    value = deprecated_alias("input", input, "value", value)
    with ops.name_scope(name, "MaxPool", [value]) as scope:
        value = ops.convert_to_tensor(value, name="input")
        index = _channel_index(data_format, 2)
        padding, explicit = _explicit(padding)
        return gen_ops.MaxPool(
            value, ksize=_sizes(ksize, 2, index, "ksize"),
            strides=_sizes(strides, 2, index, "strides"), padding=padding,
            explicit_paddings=explicit, data_format=data_format, name=scope)


def _explicit(padding):
    if isinstance(padding, (list, tuple)):
        return "EXPLICIT", [int(x) for pair in padding for x in pair]
    return padding, []


@export("nn.max_pool2d")
def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    with ops.name_scope(name, "MaxPool2d", [input]) as scope:
        index = _channel_index(data_format, 2)
        padding, explicit = _explicit(padding)
        return gen_ops.MaxPool(
            input, ksize=_sizes(ksize, 2, index, "ksize"),
            strides=_sizes(strides, 2, index, "strides"), padding=padding,
            explicit_paddings=explicit, data_format=data_format, name=scope)


@export("nn.avg_pool", "nn.avg_pool2d")
def avg_pool(value, ksize, strides, padding, data_format="NHWC", name=None, input=None):
    with ops.name_scope(name, "AvgPool", [value]) as scope:
        value = deprecated_alias("input", input, "value", value)
        data_format = "NHWC" if data_format is None else data_format
        index = _channel_index(data_format, 2)
        return gen_ops.AvgPool(value, ksize=_sizes(ksize, 2, index, "ksize"),
                               strides=_sizes(strides, 2, index, "strides"), padding=padding,
                               data_format=data_format, name=scope)


@export("nn.max_pool3d")
def max_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):
    with ops.name_scope(name, "MaxPool3D", [input]) as scope:
        data_format = "NDHWC" if data_format is None else data_format
        index = _channel_index(data_format, 3)
        return gen_ops.MaxPool3D(input, ksize=_sizes(ksize, 3, index, "ksize"),
                                 strides=_sizes(strides, 3, index, "strides"), padding=padding,
                                 data_format=data_format, name=scope)


@export("nn.avg_pool3d")
def avg_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None):
    with ops.name_scope(name, "AvgPool3D", [input]) as scope:
        data_format = "NDHWC" if data_format is None else data_format
        index = _channel_index(data_format, 3)
        return gen_ops.AvgPool3D(input, ksize=_sizes(ksize, 3, index, "ksize"),
                                 strides=_sizes(strides, 3, index, "strides"), padding=padding,
                                 data_format=data_format, name=scope)


def _pool1d(op, scope_name):
    def function(input, ksize, strides, padding, data_format="NWC", name=None):
        with ops.name_scope(name, scope_name, [input]) as scope:
            data_format = "NWC" if data_format is None else data_format
            index = _channel_index(data_format, 1)
            ksize = [1] + _sizes(ksize, 1, index, "ksize")
            strides = [1] + _sizes(strides, 1, index, "strides")
            axis = 2 if data_format == "NCW" else 1
            wide = array_ops.expand_dims(input, axis)
            layout = "NCHW" if data_format == "NCW" else "NHWC"
            result = getattr(gen_ops, op)(wide, ksize=ksize, strides=strides, padding=padding,
                                          data_format=layout, name=scope)
            return array_ops.squeeze(result, axis)
    return function


avg_pool1d = export("nn.avg_pool1d")(_pool1d("AvgPool", "AvgPool1D"))
max_pool1d = export("nn.max_pool1d")(_pool1d("MaxPool", "MaxPool1d"))


@export("nn.max_pool_with_argmax")
def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", Targmax=None,
                         name=None, output_dtype=None, include_batch_in_index=False):
    if data_format != "NHWC":
        raise ValueError("`data_format` values other  than \"NHWC\" are not supported. Received: "
                         "data_format=%s" % data_format)
    Targmax = deprecated_alias("output_dtype", output_dtype, "Targmax", Targmax)
    return gen_ops.MaxPoolWithArgmax(
        input=input, ksize=ksize, strides=strides, padding=padding,
        Targmax=dtypes.int64 if Targmax is None else Targmax,
        include_batch_in_index=include_batch_in_index, name=name)


@export("nn.pool")
def pool(input, window_shape, pooling_type, padding, dilation_rate=None, strides=None, name=None,
         data_format=None, dilations=None):
    dilation_rate = deprecated_alias("dilations", dilations, "dilation_rate", dilation_rate)
    n = len(window_shape)
    with ops.name_scope(name, "%s_pool" % pooling_type.lower(), [input]) as scope:
        input = ops.convert_to_tensor(input, name="input")
        if dilation_rate is not None and any(d != 1 for d in dilation_rate):
            raise NotImplementedError("nn.pool: dilation rates other than 1 are not supported")
        index = _channel_index(data_format, n)
        kinds = {("MAX", 1): max_pool1d, ("AVG", 1): avg_pool1d, ("MAX", 2): max_pool,
                 ("AVG", 2): avg_pool, ("MAX", 3): max_pool3d, ("AVG", 3): avg_pool3d}
        function = kinds.get((pooling_type, n))
        if function is None:
            raise ValueError("`input.shape.rank` must be 3, 4 or 5. Received: %d" % (n + 2))
        kwargs = {} if data_format is None else {"data_format": data_format}
        return function(input, _sizes(list(window_shape), n, index, "window_shape"),
                        _sizes(strides, n, index, "strides"), padding, name=scope, **kwargs)
