"""`tf.keras.layers` without recurrent ones and those of `more_layers`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.keras import activations
from ferroflow.python.keras import backend
from ferroflow.python.keras import initializers
from ferroflow.python.keras.layer import Layer
from ferroflow.python.layers import convolutional
from ferroflow.python.layers import core
from ferroflow.python.layers import normalization
from ferroflow.python.layers import pooling
from ferroflow.python.layers import transposed
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.util.api import export


def _like(cls, **defaults):
    """A layer of Keras with the variables and the call of a layer of `tf.layers`."""
    class Made(Layer, cls):
        def __init__(self, *args, **kwargs):
            left = {k: v for k, v in defaults.items() if k not in kwargs}
            names = list(left)[len(args):] if args else list(left)
            cls.__init__(self, *args, **self._begin({**{n: left[n] for n in names}, **kwargs}))
            self._number_name()

    Made.__name__ = Made.__qualname__ = cls.__name__
    Made.__doc__ = cls.__doc__
    Made._signature = cls.__init__
    Made.supports_masking = cls in (core.Dense, core.Dropout, normalization.BatchNormalization)
    return Made


Dense = export("keras.layers.Dense")(_like(core.Dense))


@export("keras.layers.Conv1D", "keras.layers.Convolution1D")
class Conv1D(_like(convolutional.Conv1D)):
    """A convolution of sequences. The padding `causal` makes an output from inputs up to its own time."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", **kwargs):
        self._is_causal = padding == "causal"
        super().__init__(filters, kernel_size, strides=strides, padding="valid" if self._is_causal else padding, **kwargs)

    def call(self, inputs):
        if self._is_causal:
            inputs = array_ops.pad(inputs, [[0, 0], [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0], [0, 0]])
        return super().call(inputs)


Conv2D = export("keras.layers.Conv2D", "keras.layers.Convolution2D")(_like(convolutional.Conv2D))
Conv3D = export("keras.layers.Conv3D", "keras.layers.Convolution3D")(_like(convolutional.Conv3D))
Conv2DTranspose = export("keras.layers.Conv2DTranspose")(_like(transposed.Conv2DTranspose))
Conv3DTranspose = export("keras.layers.Conv3DTranspose")(_like(transposed.Conv3DTranspose))
SeparableConv1D = export("keras.layers.SeparableConv1D")(_like(transposed.SeparableConv1D))
SeparableConv2D = export("keras.layers.SeparableConv2D")(_like(transposed.SeparableConv2D))
MaxPooling1D = export("keras.layers.MaxPooling1D", "keras.layers.MaxPool1D")(_like(pooling.MaxPooling1D, pool_size=2, strides=None))
MaxPooling2D = export("keras.layers.MaxPooling2D", "keras.layers.MaxPool2D")(_like(pooling.MaxPooling2D, pool_size=2, strides=None))
MaxPooling3D = export("keras.layers.MaxPooling3D", "keras.layers.MaxPool3D")(_like(pooling.MaxPooling3D, pool_size=2, strides=None))
AveragePooling1D = export("keras.layers.AveragePooling1D", "keras.layers.AvgPool1D")(_like(pooling.AveragePooling1D, pool_size=2, strides=None))
AveragePooling2D = export("keras.layers.AveragePooling2D", "keras.layers.AvgPool2D")(_like(pooling.AveragePooling2D, pool_size=2, strides=None))
AveragePooling3D = export("keras.layers.AveragePooling3D", "keras.layers.AvgPool3D")(_like(pooling.AveragePooling3D, pool_size=2, strides=None))
Flatten = export("keras.layers.Flatten")(_like(core.Flatten))
Dropout = export("keras.layers.Dropout")(_like(core.Dropout))
BatchNormalization = export("keras.layers.BatchNormalization")(_like(normalization.BatchNormalization))


@export("keras.layers.InputLayer")
class InputLayer(Layer):
    """Where a model begins: a placeholder."""

    def __init__(self, input_shape=None, batch_size=None, dtype=None, input_tensor=None, sparse=False, name=None,
                 batch_input_shape=None):
        super().__init__(name=name or backend_name("input"))
        del sparse
        if batch_input_shape is None:
            batch_input_shape = (batch_size,) + tuple(input_shape or ())
        if input_tensor is None:
            input_tensor = array_ops.placeholder(dtypes.as_dtype(dtype or backend.floatx()), batch_input_shape, name=self._base_name)
        self._dtype = input_tensor.dtype
        self.built = True
        node = (self, [], (), {}, input_tensor)
        self._inbound.append(node)
        input_tensor._keras_history = node

    def get_config(self):
        dims = self._inbound[0][4].get_shape().as_list()
        return {"batch_input_shape": dims, "dtype": self._dtype.name, "sparse": False, "ragged": False, "name": self.name}


def backend_name(base):
    """A name that no other input of the graph has: input_1, input_2."""
    graph = ops.get_default_graph()
    known = graph.__dict__.setdefault("_keras_names", {})
    known[base] = known.get(base, 0) + 1
    return "%s_%d" % (base, known[base])


@export("keras.layers.Input", "keras.Input")
def Input(shape=None, batch_size=None, name=None, dtype=None, sparse=False, tensor=None, batch_shape=None):
    """A tensor that a model is fed."""
    if batch_shape is None and shape is None and tensor is None:
        raise ValueError("Please provide to Input either a `shape` or a `tensor` argument. Note that `shape` does not include "
                         "the batch dimension.")
    return InputLayer(shape, batch_size, dtype, tensor, sparse, name, batch_shape).output


@export("keras.layers.Activation")
class Activation(Layer):
    supports_masking = True

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        return self.activation(inputs)


@export("keras.layers.ReLU")
class ReLU(Layer):
    supports_masking = True

    def __init__(self, max_value=None, negative_slope=0, threshold=0, **kwargs):
        super().__init__(**kwargs)
        self._given = dict(alpha=negative_slope, max_value=max_value, threshold=threshold)

    def call(self, inputs):
        return activations.relu(inputs, **self._given)


@export("keras.layers.LeakyReLU")
class LeakyReLU(Layer):
    supports_masking = True

    def __init__(self, alpha=0.3, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        return gen_ops.LeakyRelu(inputs, alpha=self.alpha)


@export("keras.layers.PReLU")
class PReLU(Layer):
    supports_masking = True

    def __init__(self, alpha_initializer="zeros", alpha_regularizer=None, alpha_constraint=None, shared_axes=None, **kwargs):
        super().__init__(**kwargs)
        self._alpha = dict(initializer=alpha_initializer, regularizer=alpha_regularizer, constraint=alpha_constraint)
        self.shared_axes = shared_axes if isinstance(shared_axes, (list, tuple)) or shared_axes is None else [shared_axes]

    def build(self, input_shape):
        shape = input_shape.as_list()[1:]
        for axis in self.shared_axes or ():
            shape[axis - 1] = 1
        self.alpha = self.add_weight("alpha", shape, **self._alpha)

    def call(self, inputs):
        return gen_ops.Relu(inputs) - self.alpha * gen_ops.Relu(-inputs)


@export("keras.layers.ELU")
class ELU(Layer):
    supports_masking = True

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        return activations.elu(inputs, self.alpha)


@export("keras.layers.Softmax")
class Softmax(Layer):
    supports_masking = True

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        return nn_ops.softmax(inputs, axis=self.axis)


@export("keras.layers.Embedding")
class Embedding(Layer):
    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", embeddings_regularizer=None,
                 activity_regularizer=None, embeddings_constraint=None, mask_zero=False, input_length=None, **kwargs):
        if input_length is not None and "input_shape" not in kwargs:
            kwargs["input_shape"] = (input_length,)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.mask_zero, self.input_length = mask_zero, input_length
        self.input_dim, self.output_dim = input_dim, output_dim
        self._table = dict(initializer=embeddings_initializer, regularizer=embeddings_regularizer, constraint=embeddings_constraint)

    def build(self, input_shape):
        self.embeddings = self.add_weight("embeddings", [self.input_dim, self.output_dim], dtype=backend.floatx(), **self._table)

    def call(self, inputs):
        if inputs.dtype not in (dtypes.int32, dtypes.int64):
            inputs = math_ops.cast(inputs, dtypes.int32)
        return embedding_ops.embedding_lookup(self.embeddings, inputs)

    def compute_mask(self, inputs, mask=None):
        return math_ops.not_equal(inputs, 0) if self.mask_zero else None


@export("keras.layers.Reshape")
class Reshape(Layer):
    def __init__(self, target_shape, **kwargs):
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs):
        y = array_ops.reshape(inputs, array_ops.concat([array_ops.shape(inputs)[:1], self.target_shape], 0))
        known = inputs.get_shape()[1:].num_elements() if inputs.get_shape().ndims is not None else None
        sizes = list(self.target_shape)
        if -1 in sizes:
            rest = 1
            for size in sizes:
                rest *= 1 if size == -1 else size
            sizes[sizes.index(-1)] = None if known is None else known // rest
        y.set_shape(inputs.get_shape()[:1].concatenate(sizes))
        return y


@export("keras.layers.Permute")
class Permute(Layer):
    def __init__(self, dims, **kwargs):
        super().__init__(**kwargs)
        self.dims = tuple(dims)

    def call(self, inputs):
        return array_ops.transpose(inputs, perm=(0,) + self.dims)


@export("keras.layers.RepeatVector")
class RepeatVector(Layer):
    def __init__(self, n, **kwargs):
        super().__init__(**kwargs)
        self.n = n

    def call(self, inputs):
        return array_ops.tile(array_ops.expand_dims(inputs, 1), [1, self.n, 1])


@export("keras.layers.Lambda")
class Lambda(Layer):
    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        del output_shape, mask
        self.function, self.arguments = function, arguments or {}

    def call(self, inputs):
        return self.function(inputs, **self.arguments)


def _over(axes, reduce):
    """A pooling layer over all positions."""
    def __init__(self, data_format=None, **kwargs):
        Layer.__init__(self, **kwargs)
        self.data_format = data_format or backend.image_data_format()

    def call(self, inputs):
        first = self.data_format == "channels_first"
        return reduce(inputs, axis=[a + 1 for a in axes] if first else list(axes))

    return type("Global", (Layer,), {"__init__": __init__, "call": call})


def _named(cls, name):
    cls.__name__ = cls.__qualname__ = name
    return cls


GlobalAveragePooling1D = export("keras.layers.GlobalAveragePooling1D", "keras.layers.GlobalAvgPool1D")(_named(_over((1,), math_ops.reduce_mean), "GlobalAveragePooling1D"))
GlobalAveragePooling2D = export("keras.layers.GlobalAveragePooling2D", "keras.layers.GlobalAvgPool2D")(_named(_over((1, 2), math_ops.reduce_mean), "GlobalAveragePooling2D"))
GlobalMaxPooling1D = export("keras.layers.GlobalMaxPooling1D", "keras.layers.GlobalMaxPool1D")(_named(_over((1,), math_ops.reduce_max), "GlobalMaxPooling1D"))
GlobalMaxPooling2D = export("keras.layers.GlobalMaxPooling2D", "keras.layers.GlobalMaxPool2D")(_named(_over((1, 2), math_ops.reduce_max), "GlobalMaxPooling2D"))


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


@export("keras.layers.ZeroPadding2D")
class ZeroPadding2D(Layer):
    def __init__(self, padding=(1, 1), data_format=None, **kwargs):
        super().__init__(**kwargs)
        rows, columns = _pair(padding)
        self.padding = (_pair(rows), _pair(columns))
        self.data_format = data_format or backend.image_data_format()

    def call(self, inputs):
        sides = [list(p) for p in self.padding]
        none = [[0, 0]]
        return array_ops.pad(inputs, none + none + sides if self.data_format == "channels_first" else none + sides + none)


@export("keras.layers.UpSampling2D")
class UpSampling2D(Layer):
    def __init__(self, size=(2, 2), data_format=None, interpolation="nearest", **kwargs):
        super().__init__(**kwargs)
        if (data_format or backend.image_data_format()) == "channels_first":
            raise NotImplementedError("UpSampling2D: channels_first is not supported")
        self.size, self.interpolation = _pair(size), interpolation

    def call(self, inputs):
        resize = {"nearest": gen_ops.ResizeNearestNeighbor, "bilinear": gen_ops.ResizeBilinear}[self.interpolation]
        shape = array_ops.shape(inputs)
        y = resize(inputs, array_ops.stack([shape[1] * self.size[0], shape[2] * self.size[1]]), half_pixel_centers=True)
        dims = inputs.get_shape().as_list()
        y.set_shape([dims[0]] + [None if d is None else d * s for d, s in zip(dims[1:3], self.size)] + [dims[3]])
        return y


@export("keras.layers.GaussianNoise")
class GaussianNoise(Layer):
    supports_masking = True

    def __init__(self, stddev, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev

    def call(self, inputs, training=None):
        return cond.smart_cond(
            training, lambda: inputs + random_ops.random_normal(array_ops.shape(inputs), 0.0, self.stddev, inputs.dtype),
            lambda: array_ops.identity(inputs))


@export("keras.layers.LayerNormalization")
class LayerNormalization(Layer):
    supports_masking = True

    def __init__(self, axis=-1, epsilon=1e-3, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", **kwargs):
        super().__init__(**kwargs)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self._starts = initializers.get(beta_initializer), initializers.get(gamma_initializer)

    def build(self, input_shape):
        size = [input_shape.as_list()[self.axis]]
        self.gamma = self.add_weight("gamma", size, initializer=self._starts[1]) if self.scale else None
        self.beta = self.add_weight("beta", size, initializer=self._starts[0]) if self.center else None

    def call(self, inputs):
        mean = math_ops.reduce_mean(inputs, axis=self.axis, keepdims=True)
        variance = math_ops.reduce_mean(math_ops.squared_difference(inputs, mean), axis=self.axis, keepdims=True)
        y = (inputs - mean) * math_ops.rsqrt(variance + self.epsilon)
        y = y if self.gamma is None else y * self.gamma
        return y if self.beta is None else y + self.beta


def _merge(combine):
    class Merge(Layer):
        supports_masking = True

        def call(self, inputs):
            return combine(inputs)
    return Merge


def _fold(function):
    def combine(inputs):
        y = inputs[0]
        for x in inputs[1:]:
            y = function(y, x)
        return y
    return combine


Add = export("keras.layers.Add")(_named(_merge(_fold(lambda a, b: a + b)), "Add"))
Subtract = export("keras.layers.Subtract")(_named(_merge(_fold(lambda a, b: a - b)), "Subtract"))
Multiply = export("keras.layers.Multiply")(_named(_merge(_fold(lambda a, b: a * b)), "Multiply"))
Average = export("keras.layers.Average")(_named(_merge(lambda x: _fold(lambda a, b: a + b)(x) / len(x)), "Average"))
Maximum = export("keras.layers.Maximum")(_named(_merge(_fold(math_ops.maximum)), "Maximum"))
Minimum = export("keras.layers.Minimum")(_named(_merge(_fold(math_ops.minimum)), "Minimum"))


@export("keras.layers.Concatenate")
class Concatenate(Layer):
    supports_masking = True

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        return array_ops.concat(inputs, self.axis)


@export("keras.layers.Dot")
class Dot(Layer):
    def __init__(self, axes, normalize=False, **kwargs):
        super().__init__(**kwargs)
        self.axes, self.normalize = _pair(axes), normalize

    def call(self, inputs):
        x, y = inputs
        if self.normalize:
            x, y = (v * math_ops.rsqrt(math_ops.reduce_sum(math_ops.square(v), axis=a, keepdims=True))
                    for v, a in zip((x, y), self.axes))
        if x.get_shape().ndims == 2 and y.get_shape().ndims == 2:
            return math_ops.reduce_sum(x * y, axis=self.axes[0], keepdims=True)
        return math_ops.matmul(x, y, adjoint_a=self.axes[0] == 1, adjoint_b=self.axes[1] == 2)


add = export("keras.layers.add")(lambda inputs, **kwargs: Add(**kwargs)(inputs))
subtract = export("keras.layers.subtract")(lambda inputs, **kwargs: Subtract(**kwargs)(inputs))
multiply = export("keras.layers.multiply")(lambda inputs, **kwargs: Multiply(**kwargs)(inputs))
average = export("keras.layers.average")(lambda inputs, **kwargs: Average(**kwargs)(inputs))
maximum = export("keras.layers.maximum")(lambda inputs, **kwargs: Maximum(**kwargs)(inputs))
minimum = export("keras.layers.minimum")(lambda inputs, **kwargs: Minimum(**kwargs)(inputs))
concatenate = export("keras.layers.concatenate")(lambda inputs, axis=-1, **kwargs: Concatenate(axis, **kwargs)(inputs))
dot = export("keras.layers.dot")(lambda inputs, axes, normalize=False, **kwargs: Dot(axes, normalize, **kwargs)(inputs))
