"""Transposed and separable convolutions as layers."""

from ferroflow.python.layers import base
from ferroflow.python.layers.convolutional import layout_of, sizes_of
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.util.api import export


class _Filtered(base.Layer):
    """What transposed and separable convolutions have in common."""

    _RANK = 2

    def __init__(self, filters, kernel_size, strides, padding, data_format, activation, use_bias,
                 bias, **kwargs):
        super().__init__(**kwargs)
        n = self._RANK
        self.filters = filters
        self.kernel_size = sizes_of(kernel_size, n, "kernel_size")
        self.strides = sizes_of(strides, n, "strides")
        self.padding, self.data_format = padding.upper(), data_format
        self.activation, self.use_bias = activation, use_bias
        self._bias = dict(zip(("initializer", "regularizer", "constraint"), bias))
        self._ndim = n + 2

    @property
    def _channel_axis(self):
        return 1 if self.data_format == "channels_first" else self._RANK + 1

    def _channels(self, input_shape):
        channels = input_shape.as_list()[self._channel_axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs to `%s` should be defined. Found `None`." %
                             type(self).__name__)
        return channels

    def _add_bias(self):
        self.bias = self.add_weight("bias", [self.filters], **self._bias) if self.use_bias else None

    def _finish(self, outputs, layout):
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format=layout)
        return outputs if self.activation is None else self.activation(outputs)

    def _all(self, sizes):
        """Strides of all axes from those of the spatial ones."""
        sizes = list(sizes)
        return [1, 1] + sizes if self._channel_axis == 1 else [1] + sizes + [1]


def _stretched(length, size, padding, stride):
    """The output length of a transposed convolution."""
    length = length * stride
    return length + max(size - stride, 0) if padding == "VALID" else length


class _Transposed(_Filtered):
    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format="channels_last", activation=None,
                 use_bias=True, kernel_initializer=None, bias_initializer=init_ops.zeros_initializer(),
                 kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
                 bias_constraint=None, trainable=True, name=None, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, activation, use_bias,
                         (bias_initializer, bias_regularizer, bias_constraint), trainable=trainable, name=name,
                         activity_regularizer=activity_regularizer, **kwargs)
        self._kernel = dict(initializer=kernel_initializer, regularizer=kernel_regularizer, constraint=kernel_constraint)
        self._base_name = name or "conv%dd_transpose" % self._RANK

    def build(self, input_shape):
        shape = list(self.kernel_size) + [self.filters, self._channels(input_shape)]
        self.kernel = self.add_weight("kernel", shape, **self._kernel)
        self._add_bias()

    def call(self, inputs):
        n, at = self._RANK, self._channel_axis
        layout = layout_of(self.data_format, n)
        dynamic, static = array_ops.shape(inputs), inputs.get_shape().as_list()
        first = 2 if at == 1 else 1
        batch = dynamic[0]
        known = self._known_lengths(static[first:first + n])
        lengths = [dynamic[first + i] if k is None else static[first + i] for i, k in enumerate(known)]
        lengths = [_stretched(lengths[i], self.kernel_size[i], self.padding, self.strides[i]) for i in range(n)]
        shape = [batch, self.filters] + lengths if at == 1 else [batch] + lengths + [self.filters]
        transpose = convolution_ops.conv2d_transpose if n == 2 else convolution_ops.conv3d_transpose
        shape = array_ops.stack(shape)
        if n == 2:
            shape[0]  # TensorFlow's graph has this node, which nothing uses.
        outputs = transpose(inputs, self.kernel, shape, self._all(self.strides), self.padding, data_format=layout)
        whole = [None if k is None else _stretched(k, self.kernel_size[i], self.padding, self.strides[i])
                 for i, k in enumerate(static[first:first + n])]
        outputs.set_shape([static[0], self.filters] + whole if at == 1 else [static[0]] + whole + [self.filters])
        return self._finish(outputs, layout if n == 2 else None)

    @staticmethod
    def _known_lengths(lengths):
        return lengths


@export("layers.Conv2DTranspose")
class Conv2DTranspose(_Transposed):
    _RANK = 2


@export("layers.Conv3DTranspose")
class Conv3DTranspose(_Transposed):
    _RANK = 3

    @staticmethod
    def _known_lengths(lengths):
        # TensorFlow's graph requires all of them when the step runs.
        return [None] * len(lengths)


class _Separable(_Filtered):
    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format="channels_last", dilation_rate=1,
                 depth_multiplier=1, activation=None, use_bias=True, depthwise_initializer=None,
                 pointwise_initializer=None, bias_initializer=init_ops.zeros_initializer(), depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, activity_regularizer=None, depthwise_constraint=None,
                 pointwise_constraint=None, bias_constraint=None, trainable=True, name=None, **kwargs):
        super().__init__(filters, kernel_size, strides, padding, data_format, activation, use_bias,
                         (bias_initializer, bias_regularizer, bias_constraint), trainable=trainable, name=name,
                         activity_regularizer=activity_regularizer, **kwargs)
        self.dilation_rate = sizes_of(dilation_rate, self._RANK, "dilation_rate")
        self.depth_multiplier = depth_multiplier
        self._depthwise = dict(initializer=depthwise_initializer, regularizer=depthwise_regularizer,
                               constraint=depthwise_constraint)
        self._pointwise = dict(initializer=pointwise_initializer, regularizer=pointwise_regularizer,
                               constraint=pointwise_constraint)
        self._base_name = name or "separable_conv%dd" % self._RANK

    def build(self, input_shape):
        channels, n = self._channels(input_shape), self._RANK
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", list(self.kernel_size) + [channels, self.depth_multiplier], **self._depthwise)
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", [1] * n + [self.depth_multiplier * channels, self.filters], **self._pointwise)
        self._add_bias()


@export("layers.SeparableConv2D")
class SeparableConv2D(_Separable):
    _RANK = 2

    def call(self, inputs):
        layout = layout_of(self.data_format, 2)
        outputs = convolution_ops.separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, self._all(self.strides), self.padding,
            rate=list(self.dilation_rate), data_format=layout)
        return self._finish(outputs, layout)


@export("layers.SeparableConv1D")
class SeparableConv1D(_Separable):
    _RANK = 1

    def call(self, inputs):
        layout = layout_of(self.data_format, 2)
        # A sequence is an image of height one.
        at = 2 if self._channel_axis == 1 else 1
        inputs = array_ops.expand_dims(inputs, at)
        depthwise = array_ops.expand_dims(self.depthwise_kernel, 0)
        pointwise = array_ops.expand_dims(self.pointwise_kernel, 0)
        outputs = convolution_ops.separable_conv2d(
            inputs, depthwise, pointwise, self._all(self.strides * 2), self.padding,
            rate=[1] + list(self.dilation_rate), data_format=layout)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format=layout)
        outputs = array_ops.squeeze(outputs, [at])
        return outputs if self.activation is None else self.activation(outputs)


@export("layers.conv2d_transpose")
def conv2d_transpose(inputs, filters, kernel_size, strides=(1, 1), padding="valid", data_format="channels_last",
                     activation=None, use_bias=True, kernel_initializer=None,
                     bias_initializer=init_ops.zeros_initializer(), kernel_regularizer=None, bias_regularizer=None,
                     activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True, name=None,
                     reuse=None):
    return Conv2DTranspose(filters, kernel_size, strides, padding, data_format, activation, use_bias, kernel_initializer,
                           bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
                           kernel_constraint, bias_constraint, trainable, name, _scope=name, _reuse=reuse).apply(inputs)


@export("layers.conv3d_transpose")
def conv3d_transpose(inputs, filters, kernel_size, strides=(1, 1, 1), padding="valid", data_format="channels_last",
                     activation=None, use_bias=True, kernel_initializer=None,
                     bias_initializer=init_ops.zeros_initializer(), kernel_regularizer=None, bias_regularizer=None,
                     activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True, name=None,
                     reuse=None):
    return Conv3DTranspose(filters, kernel_size, strides, padding, data_format, activation, use_bias, kernel_initializer,
                           bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
                           kernel_constraint, bias_constraint, trainable, name, _scope=name, _reuse=reuse).apply(inputs)


def _separable(cls, ones):
    def function(inputs, filters, kernel_size, strides=ones, padding="valid", data_format="channels_last",
                 dilation_rate=ones, depth_multiplier=1, activation=None, use_bias=True, depthwise_initializer=None,
                 pointwise_initializer=None, bias_initializer=init_ops.zeros_initializer(), depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, activity_regularizer=None, depthwise_constraint=None,
                 pointwise_constraint=None, bias_constraint=None, trainable=True, name=None, reuse=None):
        return cls(filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation,
                   use_bias, depthwise_initializer, pointwise_initializer, bias_initializer, depthwise_regularizer,
                   pointwise_regularizer, bias_regularizer, activity_regularizer, depthwise_constraint,
                   pointwise_constraint, bias_constraint, trainable, name, _scope=name, _reuse=reuse).apply(inputs)
    return function


separable_conv1d = export("layers.separable_conv1d")(_separable(SeparableConv1D, 1))
separable_conv2d = export("layers.separable_conv2d")(_separable(SeparableConv2D, (1, 1)))
