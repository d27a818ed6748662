"""Convolutions as layers."""

from ferroflow.python.layers import base
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import pooling_ops
from ferroflow.python.util.api import export


def sizes_of(value, n, what):
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) != n:
        raise ValueError("The `%s` argument must be a tuple of %d integers. Received: %s" % (
            what, n, value))
    return value


def padding_of(padding):
    """The attribute of an op that a layer's `padding` means."""
    if not isinstance(padding, str) or padding.lower() not in ("valid", "same"):
        raise ValueError('The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", only for '
                         "`Conv1D). Received: %s" % (padding,))
    return padding.upper()


def layout_of(data_format, n):
    letters = {1: "W", 2: "HW", 3: "DHW"}[n]
    if data_format == "channels_first":
        return "NC" + letters
    return "N" + letters + "C"


class _Conv(base.Layer):
    _RANK = 2

    def __init__(self, filters, kernel_size, strides=1, padding="valid",
                 data_format="channels_last", dilation_rate=1, activation=None, use_bias=True,
                 kernel_initializer=None, bias_initializer=init_ops.zeros_initializer(),
                 kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, trainable=True, name=None,
                 **kwargs):
        super().__init__(trainable=trainable, name=name,
                         activity_regularizer=activity_regularizer, **kwargs)
        n = self._RANK
        self.filters = filters
        self.kernel_size = sizes_of(kernel_size, n, "kernel_size")
        self.strides = sizes_of(strides, n, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format
        self.dilation_rate = sizes_of(dilation_rate, n, "dilation_rate")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError("`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
                             "strides=%s and dilation_rate=%s" % (self.strides, self.dilation_rate))
        self._min_ndim = n + 2
        self.activation = base.activation_of(activation)
        self.use_bias = use_bias
        self._kernel = dict(initializer=kernel_initializer, regularizer=kernel_regularizer,
                            constraint=kernel_constraint)
        self._bias = dict(initializer=bias_initializer, regularizer=bias_regularizer,
                          constraint=bias_constraint)

    def build(self, input_shape):
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape.as_list()[axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found None.")
        self.kernel = self.add_weight(
            "kernel", list(self.kernel_size) + [channels, self.filters], **self._kernel)
        self.bias = self.add_weight("bias", [self.filters], **self._bias) if (
            self.use_bias) else None

    def call(self, inputs):
        n = self._RANK
        layout = layout_of(self.data_format, n)
        index = 1 if layout.startswith("NC") else n + 1
        outputs = convolution_ops._convolve(
            inputs, self.kernel, n, pooling_ops._sizes(list(self.strides), n, index, "strides"),
            self.padding, pooling_ops._sizes(list(self.dilation_rate), n, index, "dilations"),
            layout, {1: "Conv1D", 2: "Conv2D", 3: "Conv3D"}[n])
        if any(d == 0 for d in (outputs.get_shape().as_list() if outputs.get_shape().ndims else ())[1:]):
            raise ValueError("One of the dimensions in the output is <= 0 due to downsampling in %s. Consider increasing the input "
                             "size. Received input shape %s which would produce output shape with a zero or negative value in a "
                             "dimension." % (self.name, inputs.get_shape()))
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format=layout if n == 2 else None)
        return outputs if self.activation is None else self.activation(outputs)


@export("layers.Conv1D")
class Conv1D(_Conv):
    _RANK = 1


@export("layers.Conv2D")
class Conv2D(_Conv):
    _RANK = 2


@export("layers.Conv3D")
class Conv3D(_Conv):
    _RANK = 3


def _function(cls, ones):
    @base.called(cls.__name__.lower())
    def function(inputs, filters, kernel_size, strides=ones, padding="valid",
                 data_format="channels_last", dilation_rate=ones, activation=None, use_bias=True,
                 kernel_initializer=None, bias_initializer=init_ops.zeros_initializer(),
                 kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, trainable=True, name=None,
                 reuse=None):
        return cls(filters, kernel_size, strides=strides, padding=padding,
                   data_format=data_format, dilation_rate=dilation_rate, activation=activation,
                   use_bias=use_bias, kernel_initializer=kernel_initializer,
                   bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
                   bias_regularizer=bias_regularizer, activity_regularizer=activity_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint,
                   trainable=trainable, name=name, _scope=name, _reuse=reuse).apply(inputs)
    return function


conv1d = export("layers.conv1d")(_function(Conv1D, 1))
conv2d = export("layers.conv2d")(_function(Conv2D, (1, 1)))
conv3d = export("layers.conv3d")(_function(Conv3D, (1, 1, 1)))
