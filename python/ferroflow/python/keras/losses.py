"""`tf.keras.losses` and `tf.keras.metrics`: functions of targets and predictions, a number for each example."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.keras import backend
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import cross_entropy_ops
from ferroflow.python.util.api import export


def _pair(y_true, y_pred):
    y_pred = ops.convert_to_tensor(y_pred)
    return math_ops.cast(y_true, y_pred.dtype), y_pred


def _mean(x):
    return math_ops.reduce_mean(x, axis=-1)


@export("keras.losses.mean_squared_error", "keras.losses.MSE", "keras.losses.mse", "keras.metrics.mean_squared_error", "keras.metrics.mse")
def mean_squared_error(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.squared_difference(y_pred, y_true))


@export("keras.losses.mean_absolute_error", "keras.losses.MAE", "keras.losses.mae", "keras.metrics.mean_absolute_error", "keras.metrics.mae")
def mean_absolute_error(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.abs(y_pred - y_true))


@export("keras.losses.mean_absolute_percentage_error", "keras.losses.mape", "keras.metrics.mape")
def mean_absolute_percentage_error(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    return 100.0 * _mean(math_ops.abs((y_true - y_pred) / math_ops.maximum(math_ops.abs(y_true), backend.epsilon())))


@export("keras.losses.mean_squared_logarithmic_error", "keras.losses.msle", "keras.metrics.msle")
def mean_squared_logarithmic_error(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    logs = [math_ops.log(math_ops.maximum(y, backend.epsilon()) + 1.0) for y in (y_pred, y_true)]
    return _mean(math_ops.squared_difference(*logs))


def _signed(y_true):
    """Labels of 0 and 1 become -1 and 1."""
    is_binary = math_ops.reduce_all(math_ops.logical_or(math_ops.equal(y_true, 0), math_ops.equal(y_true, 1)))
    return cond.smart_cond(is_binary, lambda: 2.0 * y_true - 1.0, lambda: array_ops.identity(y_true))


@export("keras.losses.hinge", "keras.metrics.hinge")
def hinge(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    y_true = _signed(y_true)
    return _mean(math_ops.maximum(1.0 - y_true * y_pred, 0.0))


@export("keras.losses.squared_hinge", "keras.metrics.squared_hinge")
def squared_hinge(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(math_ops.square(math_ops.maximum(1.0 - _signed(y_true) * y_pred, 0.0)))


@export("keras.losses.categorical_hinge", "keras.metrics.categorical_hinge")
def categorical_hinge(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    right = math_ops.reduce_sum(y_true * y_pred, axis=-1)
    wrong = math_ops.reduce_max((1.0 - y_true) * y_pred, axis=-1)
    return math_ops.maximum(wrong - right + 1.0, 0.0)


def huber(y_true, y_pred, delta=1.0):
    y_true, y_pred = _pair(y_true, y_pred)
    size = math_ops.abs(y_pred - y_true)
    return _mean(array_ops.where_v2(size <= delta, 0.5 * math_ops.square(size), delta * size - 0.5 * delta * delta))


@export("keras.losses.logcosh", "keras.losses.log_cosh", "keras.metrics.logcosh", "keras.metrics.log_cosh")
def logcosh(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    x = y_pred - y_true
    return _mean(x + nn_ops.softplus(-2.0 * x) - 0.6931471805599453)


@export("keras.losses.kullback_leibler_divergence", "keras.losses.kl_divergence", "keras.losses.kld", "keras.losses.KLD",
        "keras.metrics.kullback_leibler_divergence", "keras.metrics.kl_divergence", "keras.metrics.kld", "keras.metrics.KLD")
def kullback_leibler_divergence(y_true, y_pred):
    y_true, y_pred = (clip_ops.clip_by_value(y, backend.epsilon(), 1.0) for y in _pair(y_true, y_pred))
    return math_ops.reduce_sum(y_true * math_ops.log(y_true / y_pred), axis=-1)


@export("keras.losses.poisson", "keras.metrics.poisson")
def poisson(y_true, y_pred):
    y_true, y_pred = _pair(y_true, y_pred)
    return _mean(y_pred - y_true * math_ops.log(y_pred + backend.epsilon()))


@export("keras.losses.binary_crossentropy", "keras.metrics.binary_crossentropy", "keras.backend.binary_crossentropy")
def binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0, axis=-1):
    y_true, y_pred = _pair(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if axis != -1:
        raise NotImplementedError("binary_crossentropy: axis must be -1")
    if from_logits:
        return _mean(cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=y_true, logits=y_pred))
    small = backend.epsilon()
    y_pred = clip_ops.clip_by_value(y_pred, small, 1.0 - small)
    return _mean(-(y_true * math_ops.log(y_pred + small) + (1 - y_true) * math_ops.log(1 - y_pred + small)))


@export("keras.losses.categorical_crossentropy", "keras.metrics.categorical_crossentropy", "keras.backend.categorical_crossentropy")
def categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0, axis=-1):
    y_true, y_pred = _pair(y_true, y_pred)
    if label_smoothing:
        count = math_ops.cast(array_ops.shape(y_true)[-1], y_pred.dtype)
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / count
    if axis != -1:
        raise NotImplementedError("categorical_crossentropy: axis must be -1")
    if from_logits:
        return cross_entropy_ops.softmax_cross_entropy_with_logits_v2(labels=y_true, logits=y_pred)
    y_pred = y_pred / math_ops.reduce_sum(y_pred, axis=-1, keepdims=True)
    small = backend.epsilon()
    return -math_ops.reduce_sum(y_true * math_ops.log(clip_ops.clip_by_value(y_pred, small, 1.0 - small)), axis=-1)


def _classes(y_true, y_pred):
    """Class numbers, without a last dimension of one."""
    return array_ops.reshape(math_ops.cast(y_true, dtypes.int64), array_ops.shape(y_pred)[:-1])


@export("keras.losses.sparse_categorical_crossentropy", "keras.metrics.sparse_categorical_crossentropy", "keras.backend.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False):
    y_pred = ops.convert_to_tensor(y_pred)
    if not from_logits:
        small = backend.epsilon()
        y_pred = math_ops.log(clip_ops.clip_by_value(y_pred, small, 1.0 - small))
    return cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=_classes(y_true, y_pred), logits=y_pred)


@export("keras.losses.cosine_similarity", "keras.losses.cosine_proximity", "keras.losses.cosine",
        "keras.metrics.cosine_proximity", "keras.metrics.cosine")
def cosine_similarity(y_true, y_pred, axis=-1):
    y_true, y_pred = (y * math_ops.rsqrt(math_ops.maximum(math_ops.reduce_sum(math_ops.square(y), axis=axis, keepdims=True), 1e-12))
                      for y in _pair(y_true, y_pred))
    return -math_ops.reduce_sum(y_true * y_pred, axis=axis)


cosine_proximity = cosine_similarity


@export("keras.metrics.binary_accuracy")
def binary_accuracy(y_true, y_pred, threshold=0.5):
    y_true, y_pred = _pair(y_true, y_pred)
    hit = math_ops.equal(y_true, math_ops.cast(math_ops.greater(y_pred, threshold), y_pred.dtype))
    return _mean(math_ops.cast(hit, dtypes.float32))


@export("keras.metrics.categorical_accuracy")
def categorical_accuracy(y_true, y_pred):
    return math_ops.cast(math_ops.equal(math_ops.argmax(y_true, -1), math_ops.argmax(y_pred, -1)), dtypes.float32)


@export("keras.metrics.sparse_categorical_accuracy")
def sparse_categorical_accuracy(y_true, y_pred):
    return math_ops.cast(math_ops.equal(_classes(y_true, y_pred), math_ops.argmax(y_pred, -1)), dtypes.float32)


@export("keras.metrics.top_k_categorical_accuracy")
def top_k_categorical_accuracy(y_true, y_pred, k=5):
    return math_ops.cast(nn_ops.in_top_k(y_pred, math_ops.argmax(y_true, -1), k), dtypes.float32)


_SHORT = {
    "mse": mean_squared_error, "MSE": mean_squared_error, "mae": mean_absolute_error, "MAE": mean_absolute_error,
    "mape": mean_absolute_percentage_error, "msle": mean_squared_logarithmic_error, "kld": kullback_leibler_divergence,
}
_LOSSES = {f.__name__: f for f in (
    mean_squared_error, mean_absolute_error, mean_absolute_percentage_error, mean_squared_logarithmic_error, hinge, squared_hinge,
    logcosh, kullback_leibler_divergence, poisson, binary_crossentropy, categorical_crossentropy, sparse_categorical_crossentropy,
    cosine_similarity, categorical_hinge)}
_LOSSES.update(cosine_proximity=cosine_similarity, cosine=cosine_similarity, log_cosh=logcosh, kl_divergence=kullback_leibler_divergence)
_METRICS = {f.__name__: f for f in (
    binary_accuracy, categorical_accuracy, sparse_categorical_accuracy, top_k_categorical_accuracy)}


def _found(tables, identifier, what):
    if callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        from ferroflow.python.keras import loss_objects

        return getattr(loss_objects, identifier["class_name"]).from_config(identifier["config"])
    for table in tables:
        if identifier in table:
            return table[identifier]
    raise ValueError("Unknown %s: %s" % (what, identifier))


@export("keras.losses.get", "keras.losses.deserialize")
def get(identifier):
    return _found((_LOSSES, _SHORT), identifier, "loss function")


@export("keras.metrics.get", "keras.metrics.deserialize")
def get_metric(identifier):
    return _found((_METRICS, _LOSSES, _SHORT), identifier, "metric function")


def function_of(loss):
    """The function behind a loss, which gives a number for each example."""
    return getattr(loss, "_FUNCTION", None) or loss


def accuracy_for(loss, output):
    """What `accuracy` means for a loss and an output."""
    loss = function_of(loss)
    if loss in (binary_crossentropy,) or output.get_shape().as_list()[-1] == 1:
        return binary_accuracy
    return sparse_categorical_accuracy if loss is sparse_categorical_crossentropy else categorical_accuracy
