"""`tf.metrics` of rankings and classes: at k, at thresholds, intersection over union."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import counting_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import metrics
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import sets_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


def _confusion(labels, predictions, num_classes, weights):
    """(the counts of pairs of classes, the operation that adds a batch to them)"""
    total = metrics.metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
    whole = [math_ops.cast(x, dtypes.int64) for x in (predictions, labels)]
    num_classes = math_ops.cast(num_classes, dtypes.int64)
    flat = [_flat(x) for x in whole]
    if weights is not None:
        weights = _flat(ops.convert_to_tensor(weights))
    batch = counting_ops.confusion_matrix(flat[1], flat[0], num_classes, weights=weights, dtype=dtypes.float64)
    return total, state_ops.assign_add(total, batch)


def _flat(x):
    """Vectors stay as they are."""
    rank = x.get_shape().ndims
    return x if rank is not None and rank < 2 else array_ops.reshape(x, [-1])


@export("metrics.mean_iou")
def mean_iou(labels, predictions, num_classes, weights=None, metrics_collections=None, updates_collections=None,
             name=None):
    """The mean over classes of the intersection of labels and predictions over their union."""
    with variable_scope.variable_scope(name, "mean_iou", (predictions, labels, weights)):
        total, update = _confusion(labels, predictions, num_classes, weights)
        rows = math_ops.cast(math_ops.reduce_sum(total, 0), dtypes.float32)
        columns = math_ops.cast(math_ops.reduce_sum(total, 1), dtypes.float32)
        both = math_ops.cast(array_ops.tensor_diag_part(total), dtypes.float32)
        union = rows + columns - both
        present = math_ops.reduce_sum(math_ops.cast(math_ops.not_equal(union, 0), dtypes.float32))
        safe = array_ops.where(math_ops.greater(union, 0), union, array_ops.ones_like(union))
        ratio = math_ops.divide(both, safe)
        value = array_ops.where(math_ops.greater(present, 0),
                                math_ops.reduce_sum(ratio, name="mean_iou") / present, 0)
        return metrics._published(value, update, metrics_collections, updates_collections)


@export("metrics.mean_per_class_accuracy")
def mean_per_class_accuracy(labels, predictions, num_classes, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    """The mean over classes of the part of their examples that is predicted right."""
    with variable_scope.variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = _flat(math_ops.cast(labels, dtypes.int64))
        predictions = _flat(math_ops.cast(predictions, dtypes.int64))
        total = metrics.metric_variable([num_classes], dtypes.float32, name="total")
        count = metrics.metric_variable([num_classes], dtypes.float32, name="count")
        ones = array_ops.ones([array_ops.size(labels)], dtypes.float32)
        right = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
        if weights is not None:
            weights = math_ops.cast(_flat(ops.convert_to_tensor(weights)), dtypes.float32)
            right, ones = right * weights, ones * weights
        update_total = state_ops.scatter_add(total, labels, ones)
        update_count = state_ops.scatter_add(count, labels, right)
        value = math_ops.reduce_mean(math_ops.div_no_nan(count, gen_ops.Maximum(total, 0)), name="mean_accuracy")
        update = math_ops.div_no_nan(update_count, gen_ops.Maximum(update_total, 0), name="update_op")
        return metrics._published(value, update, metrics_collections, updates_collections)


@export("metrics.mean_cosine_distance")
def mean_cosine_distance(labels, predictions, dim, weights=None, metrics_collections=None, updates_collections=None,
                         name=None):
    """One minus the mean of the products of unit vectors."""
    predictions, labels = ops.convert_to_tensor(predictions), ops.convert_to_tensor(labels)
    products = math_ops.reduce_sum(math_ops.multiply(predictions, labels), axis=[dim], keepdims=True)
    mean, update = metrics.mean(products, weights, None, None, name or "mean_cosine_distance")
    return metrics._published(math_ops.subtract(1.0, mean), math_ops.subtract(1.0, update),
                              metrics_collections, updates_collections)


# ------------------------------------------------------------------- at k


def _top_k(predictions, k):
    _, found = nn_ops.top_k(predictions, k)
    return math_ops.cast(found, dtypes.int64)


def _as_sets(labels, predictions_idx):
    labels = sparse_tensor.convert_to_tensor_or_sparse_tensor(labels)
    if not isinstance(labels, sparse_tensor.SparseTensor):
        labels = math_ops.cast(labels, dtypes.int64)
        rank, wanted = labels.get_shape().ndims, predictions_idx.get_shape().ndims
        if rank is not None and wanted is not None and rank == wanted - 1:
            labels = array_ops.expand_dims(labels, -1)
    return labels


def _selected(labels, predictions_idx, class_id):
    """Labels and predictions of one class alone: others become values that fit nothing."""
    if class_id is None:
        return labels, predictions_idx
    if isinstance(labels, sparse_tensor.SparseTensor):
        kept = array_ops.where(math_ops.equal(labels.values, class_id), labels.values,
                               array_ops.zeros_like(labels.values) - 1)
        labels = sparse_tensor.SparseTensor(labels.indices, kept, labels.dense_shape)
    else:
        labels = array_ops.where(math_ops.equal(labels, class_id), labels, array_ops.zeros_like(labels) - 1)
    chosen = array_ops.where(math_ops.equal(predictions_idx, class_id), predictions_idx,
                             array_ops.zeros_like(predictions_idx) - 2)
    return labels, chosen


_SETS = {"true_positive": lambda chosen, labels: sets_ops.set_intersection(chosen, labels),
         "false_positive": lambda chosen, labels: sets_ops.set_difference(chosen, labels),
         "false_negative": lambda chosen, labels: sets_ops.set_difference(chosen, labels, aminusb=False)}


def _count_at_k(labels, predictions_idx, what, end, class_id, weights):
    """(a sum over all batches, the operation that adds this one): hits, misses, or labels not predicted."""
    with ops.name_scope(None, what + end, (predictions_idx, labels, weights)) as scope:
        with ops.name_scope(None, what + "s", (predictions_idx, labels, weights)):
            labels, chosen = _selected(labels, predictions_idx, class_id)
            found = _SETS[what](chosen, labels)
            if class_id is None:
                count = math_ops.cast(sets_ops.set_size(found), dtypes.float64)
            else:
                from ferroflow.python.ops import sparse_ops
                ours = math_ops.cast(math_ops.equal(found.values, class_id), dtypes.float64)
                count = sparse_ops.sparse_reduce_sum(
                    sparse_tensor.SparseTensor(found.indices, ours, found.dense_shape), -1)
            if weights is not None:
                count = count * math_ops.cast(weights, dtypes.float64)
        batch = math_ops.reduce_sum(count)
        total = metrics.metric_variable([], dtypes.float64, name=scope)
        return total, state_ops.assign_add(total, batch, name="update")


def _end(k, class_id):
    return "_at_%s" % ("k" if k is None else k) + ("" if class_id is None else "_class%s" % class_id)


def _at_k(labels, predictions_idx, k, class_id, weights, name, what, collections):
    end = _end(k, class_id)
    with ops.name_scope(name, what + end, (predictions_idx, labels, weights)) as scope:
        labels = _as_sets(labels, predictions_idx)
        found = math_ops.cast(predictions_idx, dtypes.int64)
        good, good_update = _count_at_k(labels, found, "true_positive", end, class_id, weights)
        other = "false_positive" if what == "precision" else "false_negative"
        bad, bad_update = _count_at_k(labels, found, other, end, class_id, weights)
        value = math_ops.div(good, math_ops.add(good, bad, name="Add"), name=scope)
        update = math_ops.div(good_update, math_ops.add(good_update, bad_update, name="Add"), name="update")
        return metrics._published(value, update, *collections)


def _of_best(labels, predictions, k, class_id, weights, name, what, collections):
    """The same for the k best predictions."""
    with ops.name_scope(name, what + _end(k, class_id), (predictions, labels, weights)) as scope:
        _, found = nn_ops.top_k(predictions, k)
        return _at_k(labels, found, k, class_id, weights, scope, what, collections)


@export("metrics.precision_at_top_k")
def precision_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                       updates_collections=None, name=None):
    """The part of the k best predictions that is right."""
    return _at_k(labels, predictions_idx, k, class_id, weights, name, "precision", (metrics_collections, updates_collections))


@export("metrics.precision_at_k", "metrics.sparse_precision_at_k")
def precision_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                   updates_collections=None, name=None):
    """The part of the k best predictions that is right."""
    return _of_best(labels, predictions, k, class_id, weights, name, "precision", (metrics_collections, updates_collections))


@export("metrics.recall_at_top_k")
def recall_at_top_k(labels, predictions_idx, k=None, class_id=None, weights=None, metrics_collections=None,
                    updates_collections=None, name=None):
    """The part of the labels that is among the k best predictions."""
    return _at_k(labels, predictions_idx, k, class_id, weights, name, "recall", (metrics_collections, updates_collections))


@export("metrics.recall_at_k")
def recall_at_k(labels, predictions, k, class_id=None, weights=None, metrics_collections=None,
                updates_collections=None, name=None):
    """The part of the labels that is among the k best predictions."""
    return _of_best(labels, predictions, k, class_id, weights, name, "recall", (metrics_collections, updates_collections))


@export("metrics.average_precision_at_k", "metrics.sparse_average_precision_at_k")
def average_precision_at_k(labels, predictions, k, weights=None, metrics_collections=None, updates_collections=None,
                           name=None):
    """The mean over examples of the precision at each of the ranks at which a prediction is right."""
    with ops.name_scope(name, "average_precision_at_%s" % k, (predictions, labels, weights)) as scope:
        found = _top_k(predictions, k)
        labels = _as_sets(labels, found)
        relevant = []
        for i in range(k):
            one = sets_ops.set_intersection(found[..., i:i + 1], labels)
            relevant.append(math_ops.cast(sets_ops.set_size(one), dtypes.float64))
        relevant = array_ops.stack(relevant, axis=-1)
        ranks = math_ops.cast(math_ops.range(1, k + 1), dtypes.float64)
        precision = math_ops.cumsum(relevant, axis=-1) / ranks
        number = labels if isinstance(labels, sparse_tensor.SparseTensor) else None
        if number is None:
            count = math_ops.cast(array_ops.shape(labels, out_type=dtypes.int64)[-1], dtypes.float64)
        else:
            count = math_ops.cast(sets_ops.set_size(labels), dtypes.float64)
        best = math_ops.minimum(count, ops.convert_to_tensor(float(k), dtypes.float64))
        each = math_ops.div_no_nan(math_ops.reduce_sum(precision * relevant, -1), best)
        if weights is None:
            amount = math_ops.cast(array_ops.size(each), dtypes.float64)
        else:
            weights = math_ops.cast(weights, dtypes.float64)
            each, amount = each * weights, math_ops.reduce_sum(weights * array_ops.ones_like(each))
        most = metrics.metric_variable([], dtypes.float64, name="max")
        total = metrics.metric_variable([], dtypes.float64, name="total")
        update_total = state_ops.assign_add(total, math_ops.reduce_sum(each), name="update")
        update_most = state_ops.assign_add(most, amount, name="update")
        value = math_ops.div_no_nan(total, most, name=scope)
        return metrics._published(value, math_ops.div_no_nan(update_total, update_most, name="update"),
                                  metrics_collections, updates_collections)


# ----------------------------------------------------------- at thresholds


def _counts(labels, predictions, thresholds, weights, which):
    """Sums of weights for each threshold: of pairs with a positive or negative label and prediction."""
    label_wanted, prediction_wanted = which
    labels = math_ops.cast(array_ops.reshape(ops.convert_to_tensor(labels), [1, -1]), dtypes.bool)
    predictions = array_ops.reshape(math_ops.cast(predictions, dtypes.float32), [1, -1])
    limits = array_ops.reshape(ops.convert_to_tensor(list(thresholds), dtypes.float32), [-1, 1])
    positive = math_ops.greater(predictions, limits)
    positive = positive if prediction_wanted else math_ops.logical_not(positive)
    labels = labels if label_wanted else math_ops.logical_not(labels)
    counted = math_ops.cast(math_ops.logical_and(labels, positive), dtypes.float32)
    if weights is not None:
        shape = array_ops.ones_like(predictions)
        counted *= shape * array_ops.reshape(math_ops.cast(weights, dtypes.float32) * array_ops.ones_like(
            array_ops.reshape(predictions, [-1])), [1, -1])
    return math_ops.reduce_sum(counted, 1)


def _threshold_counts(names, labels, predictions, thresholds, weights):
    kinds = {"true_positives": (True, True), "false_negatives": (True, False), "true_negatives": (False, False),
             "false_positives": (False, True)}
    values, updates = {}, {}
    for name in names:
        values[name] = metrics.metric_variable([len(thresholds)], dtypes.float32, name=name)
        updates[name] = state_ops.assign_add(values[name], _counts(
            labels, predictions, thresholds, weights, kinds[name]))
    return values, updates


def _at_thresholds(kind):
    def function(labels, predictions, thresholds, weights=None, metrics_collections=None, updates_collections=None,
                 name=None):
        with variable_scope.variable_scope(name, kind, (predictions, labels, weights)):
            values, updates = _threshold_counts([kind], labels, predictions, thresholds, weights)
            return metrics._published(values[kind], updates[kind], metrics_collections, updates_collections)
    function.__name__ = kind + "_at_thresholds"
    return function


true_positives_at_thresholds = export("metrics.true_positives_at_thresholds")(_at_thresholds("true_positives"))
true_negatives_at_thresholds = export("metrics.true_negatives_at_thresholds")(_at_thresholds("true_negatives"))
false_positives_at_thresholds = export("metrics.false_positives_at_thresholds")(_at_thresholds("false_positives"))
false_negatives_at_thresholds = export("metrics.false_negatives_at_thresholds")(_at_thresholds("false_negatives"))


def _grid(num_thresholds):
    small = 1e-7
    inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
    return [0.0 - small] + inner + [1.0 + small]


def _at_rate(labels, predictions, wanted, weights, num_thresholds, collections, name, default, hit, miss, found):
    """The best rate `found` where the rate of `hit` is nearest to the wanted one."""
    if wanted < 0 or wanted > 1:
        raise ValueError("`%s` must be in the range [0, 1]. Currently, it is %s." % (default.split("_at_")[1], wanted))
    with variable_scope.variable_scope(name, default, (predictions, labels, weights)):
        names = ["true_positives", "false_negatives", "true_negatives", "false_positives"]
        values, updates = _threshold_counts(names, labels, predictions, _grid(num_thresholds), weights)

        def rate(of, which, what):
            with ops.name_scope(what):
                distance = math_ops.abs(of[hit] / (of[hit] + of[miss] + 1e-7) - wanted)
                if hit == "true_positives":
                    # Of equal thresholds the last one counts.
                    place = num_thresholds - 1 - math_ops.cast(math_ops.argmin(distance[::-1], 0), dtypes.int32)
                else:
                    place = math_ops.cast(math_ops.argmin(distance, 0), dtypes.int32)
                return math_ops.div(of[which[0]][place], of[which[0]][place] + of[which[1]][place] + 1e-7)

        value, update = rate(values, found, "value"), rate(updates, found, "update_op")
        return metrics._published(value, update, *collections)


@export("metrics.sensitivity_at_specificity")
def sensitivity_at_specificity(labels, predictions, specificity, weights=None, num_thresholds=200,
                               metrics_collections=None, updates_collections=None, name=None):
    return _at_rate(labels, predictions, specificity, weights, num_thresholds,
                    (metrics_collections, updates_collections), name, "sensitivity_at_specificity",
                    "true_negatives", "false_positives", ("true_positives", "false_negatives"))


@export("metrics.specificity_at_sensitivity")
def specificity_at_sensitivity(labels, predictions, sensitivity, weights=None, num_thresholds=200,
                               metrics_collections=None, updates_collections=None, name=None):
    return _at_rate(labels, predictions, sensitivity, weights, num_thresholds,
                    (metrics_collections, updates_collections), name, "specificity_at_sensitivity",
                    "true_positives", "false_negatives", ("true_negatives", "false_positives"))

