"""Layers of `tf.keras.layers` for sequences and the edges of images."""

from ferroflow.python.keras import backend
from ferroflow.python.keras.layer import Layer
from ferroflow.python.keras.layers import Dropout
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.util.api import export


@export("keras.layers.Masking")
class Masking(Layer):
    """Masks the steps all of whose values are `mask_value`."""

    supports_masking = True

    def __init__(self, mask_value=0.0, **kwargs):
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def call(self, inputs):
        some = math_ops.reduce_any(math_ops.not_equal(inputs, self.mask_value), axis=-1, keepdims=True)
        return inputs * math_ops.cast(some, inputs.dtype)

    def compute_mask(self, inputs, mask=None):
        return math_ops.reduce_any(math_ops.not_equal(inputs, self.mask_value), axis=-1)


def _spatial(name, rank):
    """Drops whole channels."""
    def __init__(self, rate, data_format=None, **kwargs):
        Dropout.__init__(self, rate, **kwargs)
        self.data_format = data_format or backend.image_data_format()

    def call(self, inputs, training=None):
        shape = array_ops.shape(inputs)
        ones = [1] * (rank - 2)
        first = self.data_format == "channels_first" and rank > 3
        self.noise_shape = [shape[0], shape[1], *ones] if first else [shape[0], *ones, shape[rank - 1]]
        return Dropout.call(self, inputs, training=training)

    return type(name, (Dropout,), {"__init__": __init__, "call": call, "_ndim": rank, "__doc__": _spatial.__doc__})


SpatialDropout1D = export("keras.layers.SpatialDropout1D")(_spatial("SpatialDropout1D", 3))
SpatialDropout2D = export("keras.layers.SpatialDropout2D")(_spatial("SpatialDropout2D", 4))


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


@export("keras.layers.ZeroPadding1D")
class ZeroPadding1D(Layer):
    _ndim = 3

    def __init__(self, padding=1, **kwargs):
        super().__init__(**kwargs)
        self.padding = _pair(padding)

    def call(self, inputs):
        return array_ops.pad(inputs, [[0, 0], list(self.padding), [0, 0]])


@export("keras.layers.UpSampling1D")
class UpSampling1D(Layer):
    _ndim = 3

    def __init__(self, size=2, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def call(self, inputs):
        y = array_ops.repeat(inputs, self.size, axis=1)
        batch, steps, channels = inputs.get_shape().as_list()
        y.set_shape([batch, None if steps is None else steps * self.size, channels])
        return y


def _end(length):
    return -length if length else None


@export("keras.layers.Cropping1D")
class Cropping1D(Layer):
    _ndim = 3

    def __init__(self, cropping=(1, 1), **kwargs):
        super().__init__(**kwargs)
        self.cropping = _pair(cropping)

    def call(self, inputs):
        return inputs[:, self.cropping[0]:_end(self.cropping[1]), :]


@export("keras.layers.Cropping2D")
class Cropping2D(Layer):
    _ndim = 4

    def __init__(self, cropping=((0, 0), (0, 0)), data_format=None, **kwargs):
        super().__init__(**kwargs)
        rows, columns = _pair(cropping)
        self.cropping = (_pair(rows), _pair(columns))
        self.data_format = data_format or backend.image_data_format()

    def call(self, inputs):
        rows, columns = (slice(a, _end(b)) for a, b in self.cropping)
        return inputs[:, :, rows, columns] if self.data_format == "channels_first" else inputs[:, rows, columns, :]


@export("keras.layers.Attention")
class Attention(Layer):
    """Dot-product attention of a query over values: inputs are query, value and, if it differs, key."""

    def __init__(self, use_scale=False, **kwargs):
        super().__init__(**kwargs)
        self.use_scale, self.scale = use_scale, None

    def build(self, input_shape):
        if self.use_scale:
            self.scale = self.add_weight("scale", (), initializer="ones")

    def call(self, inputs, mask=None):
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        scores = math_ops.matmul(query, key, transpose_b=True)
        scores = scores if self.scale is None else scores * self.scale
        if mask is not None and mask[1] is not None:
            left_out = math_ops.cast(math_ops.logical_not(array_ops.expand_dims(mask[1], -2)), scores.dtype)
            scores = scores - 1e9 * left_out
        return math_ops.matmul(nn_ops.softmax(scores), value)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[0]
