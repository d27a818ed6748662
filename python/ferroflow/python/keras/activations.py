"""`tf.keras.activations`."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.util.api import export


@export("keras.activations.linear")
def linear(x):
    return x


@export("keras.activations.relu")
def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    if threshold:
        kept = x * math_ops.cast(gen_ops.Greater(x, ops.convert_to_tensor(threshold, x.dtype)), x.dtype)
        y = kept if not alpha else kept - alpha * gen_ops.Relu(threshold - x)
    else:
        y = gen_ops.LeakyRelu(x, alpha=alpha) if alpha else gen_ops.Relu(x)
    return y if max_value is None else math_ops.minimum(y, math_ops.cast(max_value, y.dtype))


@export("keras.activations.elu")
def elu(x, alpha=1.0):
    y = gen_ops.Elu(x)
    from ferroflow.python.ops import array_ops

    return y if alpha == 1.0 else array_ops.where_v2(gen_ops.Greater(x, 0.0), y, alpha * y)


@export("keras.activations.selu")
def selu(x):
    return gen_ops.Selu(x)


@export("keras.activations.sigmoid")
def sigmoid(x):
    return gen_ops.Sigmoid(x)


@export("keras.activations.tanh")
def tanh(x):
    return gen_ops.Tanh(x)


@export("keras.activations.exponential")
def exponential(x):
    return gen_ops.Exp(x)


@export("keras.activations.softplus")
def softplus(x):
    return gen_ops.Softplus(x)


@export("keras.activations.softsign")
def softsign(x):
    return gen_ops.Softsign(x)


@export("keras.activations.softmax")
def softmax(x, axis=-1):
    return nn_ops.softmax(x, axis=axis)


@export("keras.activations.hard_sigmoid")
def hard_sigmoid(x):
    return clip_ops.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


@export("keras.activations.swish")
def swish(x):
    return x * gen_ops.Sigmoid(x)


_ALL = {f.__name__: f for f in (
    linear, relu, elu, selu, sigmoid, tanh, exponential, softplus, softsign, softmax, hard_sigmoid, swish)}


@export("keras.activations.serialize")
def serialize(activation):
    return activation.__name__


@export("keras.activations.get", "keras.activations.deserialize")
def get(identifier):
    """An activation function by its name; None is the identity."""
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    found = _ALL.get(identifier) if isinstance(identifier, str) else None
    if found is None:
        raise ValueError("Unknown activation function: '%s'. Please ensure you are using a `keras.utils.custom_object_scope` "
                         "and that this object is included in the scope." % (identifier,))
    return found
