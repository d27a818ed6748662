"""Losses and metrics of `tf.contrib` whose arguments stand in another order than in `tf.losses` and `tf.metrics`."""

from ferroflow.python.ops import losses
from ferroflow.python.ops import metrics
from ferroflow.python.ops import ranking_metrics
from ferroflow.python.util.api import export


def _swapped(function, first="predictions", second="labels", target="labels", source="predictions"):
    """A function that takes predictions before labels."""
    def call(*args, **kwargs):
        names = (first, second)
        given = dict(zip(names, args))
        given.update(kwargs)
        labels, predictions = given.pop(second, None), given.pop(first, None)
        return function(**{target: labels, source: predictions}, **_positional(args[2:], given))

    def _positional(rest, given):
        return {**dict(zip(("weights",), rest)), **given}
    call.__name__ = function.__name__
    return call


streaming_mean = export("contrib.metrics.streaming_mean")(metrics.mean)
streaming_mean_tensor = export("contrib.metrics.streaming_mean_tensor")(metrics.mean_tensor)
streaming_accuracy = export("contrib.metrics.streaming_accuracy", "contrib.slim.metrics.streaming_accuracy")(_swapped(metrics.accuracy))
streaming_precision = export("contrib.metrics.streaming_precision")(_swapped(metrics.precision))
streaming_recall = export("contrib.metrics.streaming_recall")(_swapped(metrics.recall))
streaming_auc = export("contrib.metrics.streaming_auc")(_swapped(metrics.auc))
streaming_mean_absolute_error = export("contrib.metrics.streaming_mean_absolute_error")(_swapped(metrics.mean_absolute_error))
streaming_mean_squared_error = export("contrib.metrics.streaming_mean_squared_error")(_swapped(metrics.mean_squared_error))
streaming_root_mean_squared_error = export("contrib.metrics.streaming_root_mean_squared_error")(
    _swapped(metrics.root_mean_squared_error))


@export("contrib.metrics.streaming_mean_iou")
def streaming_mean_iou(predictions, labels, num_classes, weights=None, metrics_collections=None, updates_collections=None, name=None):
    return ranking_metrics.mean_iou(labels, predictions, num_classes, weights, metrics_collections, updates_collections, name)


@export("contrib.metrics.aggregate_metrics", "contrib.slim.metrics.aggregate_metrics")
def aggregate_metrics(*value_update_tuples):
    """Lists of the values and of the updates of metrics."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


@export("contrib.metrics.aggregate_metric_map", "contrib.slim.metrics.aggregate_metric_map")
def aggregate_metric_map(names_to_tuples):
    """Dicts of the values and of the updates of metrics."""
    values, updates = zip(*names_to_tuples.values())
    return dict(zip(names_to_tuples, values)), dict(zip(names_to_tuples, updates))


@export("contrib.metrics.accuracy")
def accuracy(predictions, labels, weights=None, name=None):
    """The share of predictions that are right in one batch."""
    from ferroflow.python.framework import dtypes
    from ferroflow.python.framework import ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "accuracy", [predictions, labels]):
        right = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
        if weights is not None:
            return math_ops.reduce_sum(right * weights) / math_ops.reduce_sum(weights)
        return math_ops.reduce_mean(right)


absolute_difference = export("contrib.losses.absolute_difference", "contrib.slim.losses.absolute_difference")(
    _swapped(losses.absolute_difference))
mean_squared_error = export("contrib.losses.mean_squared_error", "contrib.slim.losses.mean_squared_error")(
    _swapped(losses.mean_squared_error))
log_loss = export("contrib.losses.log_loss", "contrib.slim.losses.log_loss")(_swapped(losses.log_loss))
hinge_loss = export("contrib.losses.hinge_loss", "contrib.slim.losses.hinge_loss")(
    _swapped(losses.hinge_loss, "logits", "labels", "labels", "logits"))
softmax_cross_entropy = export("contrib.losses.softmax_cross_entropy", "contrib.slim.losses.softmax_cross_entropy")(
    _swapped(losses.softmax_cross_entropy, "logits", "onehot_labels", "onehot_labels", "logits"))
sparse_softmax_cross_entropy = export("contrib.losses.sparse_softmax_cross_entropy", "contrib.slim.losses.sparse_softmax_cross_entropy")(
    _swapped(losses.sparse_softmax_cross_entropy, "logits", "labels", "labels", "logits"))
sigmoid_cross_entropy = export("contrib.losses.sigmoid_cross_entropy", "contrib.slim.losses.sigmoid_cross_entropy")(
    _swapped(losses.sigmoid_cross_entropy, "logits", "multi_class_labels", "multi_class_labels", "logits"))
add_loss = export("contrib.losses.add_loss", "contrib.slim.losses.add_loss")(losses.add_loss)
get_losses = export("contrib.losses.get_losses", "contrib.slim.losses.get_losses")(losses.get_losses)
get_regularization_losses = export("contrib.losses.get_regularization_losses", "contrib.slim.losses.get_regularization_losses")(
    losses.get_regularization_losses)
get_total_loss = export("contrib.losses.get_total_loss", "contrib.slim.losses.get_total_loss")(losses.get_total_loss)
compute_weighted_loss = export("contrib.losses.compute_weighted_loss", "contrib.slim.losses.compute_weighted_loss")(
    losses.compute_weighted_loss)
