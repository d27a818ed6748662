"""`tf.losses`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import counting_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import weights_broadcast_ops
from ferroflow.python.util.api import deprecated_alias, export

# TensorFlow has a folder of this name. `_module_aliases.py` finds its modules.
__path__ = []
LOSSES = ops.GraphKeys.LOSSES


@export("losses.Reduction")
class Reduction:
    """How the losses of the elements become one."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls):
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE,
                cls.SUM_OVER_NONZERO_WEIGHTS, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key):
        if key not in cls.all():
            raise ValueError("Invalid Reduction Key %s. Key should be one of %s." % (key, cls.all()))


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def _num_present(losses, weights, per_batch=False):
    """How many elements have a weight that is not zero."""
    with ops.name_scope(None, "num_present", (losses, weights)) as scope:
        weights = math_ops.cast(weights, dtype=dtypes.float32)
        present = array_ops.where(math_ops.equal(weights, 0.0), array_ops.zeros_like(weights),
                                  array_ops.ones_like(weights))
        present = weights_broadcast_ops.broadcast_weights(present, losses)
        if per_batch:
            return math_ops.reduce_sum(
                present, axis=math_ops.range(1, array_ops.rank(present)), keepdims=True,
                name=scope)
        return math_ops.reduce_sum(present, name=scope)


@export("losses.compute_weighted_loss")
def compute_weighted_loss(losses, weights=1.0, scope=None, loss_collection=LOSSES,
                          reduction=_DEFAULT):
    Reduction.validate(reduction)
    with ops.name_scope(scope, "weighted_loss", (losses, weights)):
        with ops.control_dependencies(
                (weights_broadcast_ops.assert_broadcastable(weights, losses),)):
            losses = ops.convert_to_tensor(losses)
            input_dtype = losses.dtype
            losses = math_ops.cast(losses, dtype=dtypes.float32)
            weights = math_ops.cast(weights, dtype=dtypes.float32)
            weighted = gen_ops.Mul(losses, weights)
            if reduction == Reduction.NONE:
                loss = weighted
            else:
                loss = math_ops.reduce_sum(weighted)
                if reduction == Reduction.MEAN:
                    loss = _mean(loss, math_ops.reduce_sum(
                        array_ops.ones_like(losses) * weights))
                elif reduction in (Reduction.SUM_BY_NONZERO_WEIGHTS,):
                    loss = _mean(loss, _num_present(losses, weights))
                elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                    with ops.name_scope(None, "num_elements", [losses]) as inner:
                        count = math_ops.cast(array_ops.size(losses, name=inner),
                                              dtype=losses.dtype)
                    loss = _mean(loss, count)
            loss = math_ops.cast(loss, input_dtype)
            add_loss(loss, loss_collection)
            return loss


def _mean(losses, count):
    return math_ops.div_no_nan(math_ops.reduce_sum(losses), count, name="value")


@export("losses.add_loss")
def add_loss(loss, loss_collection=LOSSES):
    if loss_collection:
        ops.add_to_collection(loss_collection, loss)


@export("losses.get_losses")
def get_losses(scope=None, loss_collection=LOSSES):
    return ops.get_collection(loss_collection, scope)


@export("losses.get_regularization_losses")
def get_regularization_losses(scope=None):
    return ops.get_collection(ops.GraphKeys.REGULARIZATION_LOSSES, scope)


@export("losses.get_regularization_loss")
def get_regularization_loss(scope=None, name="total_regularization_loss"):
    found = get_regularization_losses(scope)
    if found:
        return math_ops.add_n(found, name=name)
    return ops.convert_to_tensor(0.0)


@export("losses.get_total_loss")
def get_total_loss(add_regularization_losses=True, name="total_loss", scope=None):
    found = get_losses(scope=scope)
    if add_regularization_losses:
        found = found + get_regularization_losses(scope=scope)
    return math_ops.add_n(found, name=name)


def _floats(labels, predictions):
    predictions = math_ops.cast(predictions, dtype=dtypes.float32)
    labels = math_ops.cast(labels, dtype=dtypes.float32)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return labels, predictions


def _need(**values):
    for name, value in values.items():
        if value is None:
            raise ValueError("Argument `%s` must not be None." % name)


@export("losses.mean_squared_error")
def mean_squared_error(labels, predictions, weights=1.0, scope=None, loss_collection=LOSSES,
                       reduction=_DEFAULT):
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as scope:
        labels, predictions = _floats(labels, predictions)
        return compute_weighted_loss(gen_ops.SquaredDifference(predictions, labels), weights,
                                     scope, loss_collection, reduction=reduction)


@export("losses.absolute_difference")
def absolute_difference(labels, predictions, weights=1.0, scope=None, loss_collection=LOSSES,
                        reduction=_DEFAULT):
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "absolute_difference", (predictions, labels, weights)) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = math_ops.abs(gen_ops.Sub(predictions, labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.huber_loss")
def huber_loss(labels, predictions, weights=1.0, delta=1.0, scope=None, loss_collection=LOSSES,
               reduction=_DEFAULT):
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "huber_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _floats(labels, predictions)
        error = math_ops.abs(gen_ops.Sub(predictions, labels))
        quadratic = gen_ops.Minimum(error, delta)
        linear = gen_ops.Sub(error, quadratic)
        losses = math_ops.add(
            gen_ops.Mul(ops.convert_to_tensor(0.5, dtype=quadratic.dtype),
                        gen_ops.Mul(quadratic, quadratic)), gen_ops.Mul(delta, linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.log_loss")
def log_loss(labels, predictions, weights=1.0, epsilon=1e-7, scope=None, loss_collection=LOSSES,
             reduction=_DEFAULT):
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "log_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = -gen_ops.Mul(labels, gen_ops.Log(predictions + epsilon)) - gen_ops.Mul(
            1 - labels, gen_ops.Log(1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.hinge_loss")
def hinge_loss(labels, logits, weights=1.0, scope=None, loss_collection=LOSSES,
               reduction=_DEFAULT):
    _need(labels=labels, logits=logits)
    with ops.name_scope(scope, "hinge_loss", (logits, labels, weights)) as scope:
        labels, logits = _floats(labels, logits)
        ones = array_ops.ones_like(labels)
        labels = gen_ops.Sub(2 * labels, ones)
        losses = gen_ops.Relu(gen_ops.Sub(ones, gen_ops.Mul(labels, logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.cosine_distance")
def cosine_distance(labels, predictions, axis=None, weights=1.0, scope=None,
                    loss_collection=LOSSES, reduction=_DEFAULT, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as scope:
        labels, predictions = _floats(labels, predictions)
        losses = 1 - math_ops.reduce_sum(gen_ops.Mul(predictions, labels), axis=(axis,),
                                         keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.sigmoid_cross_entropy")
def sigmoid_cross_entropy(multi_class_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=LOSSES, reduction=_DEFAULT):
    _need(multi_class_labels=multi_class_labels, logits=logits)
    with ops.name_scope(scope, "sigmoid_cross_entropy_loss",
                        (logits, multi_class_labels, weights)) as scope:
        logits = ops.convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits,
                                                          name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.softmax_cross_entropy")
def softmax_cross_entropy(onehot_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=LOSSES, reduction=_DEFAULT):
    _need(onehot_labels=onehot_labels, logits=logits)
    with ops.name_scope(scope, "softmax_cross_entropy_loss",
                        (logits, onehot_labels, weights)) as scope:
        logits = ops.convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        losses = nn_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits,
                                                             name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


def _squeezed(labels, predictions, weights, expected_rank_diff):
    labels, predictions = counting_ops.remove_squeezable_dimensions(
        labels, predictions, expected_rank_diff=expected_rank_diff)
    if weights is not None:
        weights = ops.convert_to_tensor(weights)
        labels_rank, rank = labels.get_shape().ndims, weights.get_shape().ndims
        if labels_rank is not None and rank is not None:
            if rank - labels_rank == 1:
                weights = array_ops.squeeze(weights, [-1])
            return labels, predictions, weights
        diff = array_ops.rank(weights) - array_ops.rank(labels)
        if rank is None or rank > 0 and weights.get_shape().as_list()[-1] in (1, None):
            wide = weights
            weights = cond.cond(math_ops.equal(1, diff),
                                lambda: array_ops.squeeze(wide, [-1]), lambda: wide)
    return labels, predictions, weights


@export("losses.sparse_softmax_cross_entropy")
def sparse_softmax_cross_entropy(labels, logits, weights=1.0, scope=None, loss_collection=LOSSES,
                                 reduction=_DEFAULT):
    _need(labels=labels, logits=logits)
    with ops.name_scope(scope, "sparse_softmax_cross_entropy_loss",
                        (logits, labels, weights)) as scope:
        labels, logits, weights = _squeezed(labels, logits, weights, expected_rank_diff=1)
        losses = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits,
                                                                 name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction=reduction)


@export("losses.mean_pairwise_squared_error")
def mean_pairwise_squared_error(labels, predictions, weights=1.0, scope=None,
                                loss_collection=LOSSES):
    _need(labels=labels, predictions=predictions)
    with ops.name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        weights = math_ops.cast(weights, dtype=dtypes.float32)
        labels = math_ops.cast(labels, dtype=dtypes.float32)
        with ops.control_dependencies(
                (weights_broadcast_ops.assert_broadcastable(weights, labels),)):
            predictions = math_ops.cast(predictions, dtype=dtypes.float32)
            predictions.get_shape().assert_is_compatible_with(labels.get_shape())
            diffs = gen_ops.Sub(predictions, labels)
            axis = math_ops.range(1, array_ops.rank(diffs))
            squares = math_ops.reduce_sum(math_ops.square(diffs), axis=axis, keepdims=True)
            count = _num_present(diffs, weights, per_batch=True)
            term1 = 2.0 * math_ops.div_no_nan(squares, gen_ops.Maximum(count - 1, 0),
                                              name="value")
            total = math_ops.reduce_sum(diffs, axis=axis, keepdims=True)
            term2 = 2.0 * math_ops.div_no_nan(
                math_ops.square(total), gen_ops.Maximum(gen_ops.Mul(count, count - 1), 0),
                name="value")
            loss = math_ops.reduce_sum(gen_ops.Mul(term1 - term2, weights))
            mean_loss = array_ops.where(math_ops.reduce_sum(count) > 0, loss,
                                        array_ops.zeros_like(loss), name="value")
            add_loss(mean_loss, loss_collection)
            return mean_loss
