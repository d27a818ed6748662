"""`tf.metrics`: values over many batches, in local variables."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import check_ops
from ferroflow.python.ops import counting_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables
from ferroflow.python.ops import weights_broadcast_ops
from ferroflow.python.util.api import export

_KEYS = ops.GraphKeys


def metric_variable(shape, dtype, validate_shape=True, name=None):
    """A local variable that starts with zeros."""
    return variables.Variable(
        lambda: array_ops.zeros(shape, dtype), trainable=False,
        collections=[_KEYS.LOCAL_VARIABLES, _KEYS.METRIC_VARIABLES],
        validate_shape=validate_shape, name=name)


def _squeezed(predictions, labels, weights):
    predictions = ops.convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = counting_ops.remove_squeezable_dimensions(labels, predictions)
        predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    if weights is None:
        return predictions, labels, None
    weights = ops.convert_to_tensor(weights)
    rank, wanted = weights.get_shape().ndims, predictions.get_shape().ndims
    if rank is None or wanted is None:
        raise NotImplementedError("tf.metrics: weights and values need a known rank")
    if rank and rank - wanted == 1:
        weights = array_ops.squeeze(weights, [-1])
    elif rank and wanted - rank == 1:
        weights = array_ops.expand_dims(weights, [-1])
    return predictions, labels, weights


def _published(value, update, metrics_collections, updates_collections):
    if metrics_collections:
        ops.add_to_collections(metrics_collections, value)
    if updates_collections:
        ops.add_to_collections(updates_collections, update)
    return value, update


def _quotient(total, count, name):
    return math_ops.div_no_nan(total, gen_ops.Maximum(count, 0), name=name)


@export("metrics.mean")
def mean(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, name="total")
        count = metric_variable([], dtypes.float32, name="count")
        if weights is None:
            number = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            values, _, weights = _squeezed(values, None, weights)
            weights = weights_broadcast_ops.broadcast_weights(
                math_ops.cast(weights, dtypes.float32), values)
            values = gen_ops.Mul(values, weights)
            number = math_ops.reduce_sum(weights)
        update_total = state_ops.assign_add(total, math_ops.reduce_sum(values))
        with ops.control_dependencies([values]):
            update_count = state_ops.assign_add(count, number)
        value = _quotient(total, count, "value")
        update = _quotient(update_total, update_count, "update_op")
        return _published(value, update, metrics_collections, updates_collections)


@export("metrics.accuracy")
def accuracy(labels, predictions, weights=None, metrics_collections=None,
             updates_collections=None, name=None):
    predictions, labels, weights = _squeezed(predictions, labels, weights)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    correct = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


@export("metrics.mean_absolute_error")
def mean_absolute_error(labels, predictions, weights=None, metrics_collections=None,
                        updates_collections=None, name=None):
    predictions, labels, weights = _squeezed(predictions, labels, weights)
    return mean(math_ops.abs(predictions - labels), weights, metrics_collections,
                updates_collections, name or "mean_absolute_error")


@export("metrics.mean_squared_error")
def mean_squared_error(labels, predictions, weights=None, metrics_collections=None,
                       updates_collections=None, name=None):
    predictions, labels, weights = _squeezed(predictions, labels, weights)
    error = gen_ops.SquaredDifference(labels, predictions)
    return mean(error, weights, metrics_collections, updates_collections,
                name or "mean_squared_error")


@export("metrics.root_mean_squared_error")
def root_mean_squared_error(labels, predictions, weights=None, metrics_collections=None,
                            updates_collections=None, name=None):
    predictions, labels, weights = _squeezed(predictions, labels, weights)
    value, update = mean_squared_error(labels, predictions, weights, None, None,
                                       name or "root_mean_squared_error")
    return _published(math_ops.sqrt(value), math_ops.sqrt(update), metrics_collections,
                      updates_collections)


@export("metrics.mean_relative_error")
def mean_relative_error(labels, predictions, normalizer, weights=None, metrics_collections=None,
                        updates_collections=None, name=None):
    predictions, labels, weights = _squeezed(predictions, labels, weights)
    predictions, normalizer = counting_ops.remove_squeezable_dimensions(predictions, normalizer)
    predictions.get_shape().assert_is_compatible_with(normalizer.get_shape())
    relative = array_ops.where(
        math_ops.equal(normalizer, 0.0), array_ops.zeros_like(labels),
        math_ops.divide(math_ops.abs(labels - predictions), normalizer))
    return mean(relative, weights, metrics_collections, updates_collections,
                name or "mean_relative_error")


@export("metrics.percentage_below")
def percentage_below(values, threshold, weights=None, metrics_collections=None,
                     updates_collections=None, name=None):
    below = math_ops.cast(gen_ops.Less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections,
                name or "percentage_below_threshold")


def _count_condition(values, weights, metrics_collections, updates_collections):
    check_ops.assert_type(values, dtypes.bool)
    count = metric_variable([], dtypes.float32, name="count")
    values = math_ops.cast(values, dtypes.float32)
    if weights is not None:
        with ops.control_dependencies((check_ops.assert_rank_in(weights, (
                0, array_ops.rank(values))),)):
            weights = math_ops.cast(weights, dtypes.float32)
            values = gen_ops.Mul(values, weights)
    value = array_ops.identity(count)
    update = state_ops.assign_add(count, math_ops.reduce_sum(values))
    return _published(value, update, metrics_collections, updates_collections)


def _counter(name_of, wanted_label, wanted_prediction):
    def function(labels, predictions, weights=None, metrics_collections=None,
                 updates_collections=None, name=None):
        with variable_scope.variable_scope(name, name_of, (predictions, labels, weights)):
            predictions, labels, weights = _squeezed(
                math_ops.cast(predictions, dtype=dtypes.bool),
                math_ops.cast(labels, dtype=dtypes.bool), weights)
            hit = gen_ops.LogicalAnd(math_ops.equal(labels, wanted_label),
                                     math_ops.equal(predictions, wanted_prediction))
            return _count_condition(hit, weights, metrics_collections, updates_collections)
    return function


true_positives = export("metrics.true_positives")(_counter("true_positives", True, True))
false_positives = export("metrics.false_positives")(_counter("false_positives", False, True))
true_negatives = export("metrics.true_negatives")(_counter("true_negatives", False, False))
false_negatives = export("metrics.false_negatives")(_counter("false_negatives", True, False))


def _ratio(scope_name, other):
    """true positives / (true positives + another count)"""
    def function(labels, predictions, weights=None, metrics_collections=None,
                 updates_collections=None, name=None):
        with variable_scope.variable_scope(name, scope_name, (predictions, labels, weights)):
            predictions, labels, weights = _squeezed(
                math_ops.cast(predictions, dtype=dtypes.bool),
                math_ops.cast(labels, dtype=dtypes.bool), weights)
            hits, hits_update = true_positives(labels, predictions, weights)
            others, others_update = other(labels, predictions, weights)

            def ratio(hit, miss, name):
                return array_ops.where(
                    gen_ops.Greater(hit + miss, 0), math_ops.divide(hit, hit + miss), 0,
                    name=name)

            return _published(ratio(hits, others, "value"),
                              ratio(hits_update, others_update, "update_op"),
                              metrics_collections, updates_collections)
    return function


precision = export("metrics.precision")(_ratio("precision", false_positives))
recall = export("metrics.recall")(_ratio("recall", false_negatives))


def _at_thresholds(labels, predictions, thresholds, weights, includes):
    """(values, updates) of the four counts at each threshold."""
    with ops.control_dependencies([
            check_ops.assert_greater_equal(
                predictions, math_ops.cast(0.0, dtype=predictions.dtype),
                message="predictions must be in [0, 1]"),
            check_ops.assert_less_equal(
                predictions, math_ops.cast(1.0, dtype=predictions.dtype),
                message="predictions must be in [0, 1]")]):
        predictions, labels, weights = _squeezed(
            math_ops.cast(predictions, dtypes.float32),
            math_ops.cast(labels, dtype=dtypes.bool), weights)
    count = len(thresholds)
    column = array_ops.reshape(predictions, [-1, 1])
    row = array_ops.reshape(math_ops.cast(labels, dtype=dtypes.bool), [1, -1])
    number = column.get_shape().as_list()[0]
    if number is None:
        number = array_ops.shape(column)[0]
    tiled = gen_ops.Tile(array_ops.expand_dims(constant_op.constant(thresholds), [1]),
                         array_ops.stack([1, number]))
    positive = gen_ops.Greater(gen_ops.Tile(array_ops.transpose(column), [count, 1]), tiled)
    if "fn" in includes or "tn" in includes:
        negative = gen_ops.LogicalNot(positive)
    label_positive = gen_ops.Tile(row, [count, 1])
    if "fp" in includes or "tn" in includes:
        label_negative = gen_ops.LogicalNot(label_positive)
    if weights is not None:
        weights = weights_broadcast_ops.broadcast_weights(
            math_ops.cast(weights, dtypes.float32), predictions)
        weights = gen_ops.Tile(array_ops.reshape(weights, [1, -1]), [count, 1])
    values, updates = {}, {}
    for key, name in (("tp", "true_positives"), ("fn", "false_negatives"),
                      ("tn", "true_negatives"), ("fp", "false_positives")):
        if key not in includes:
            continue
        variable = metric_variable([count], dtypes.float32, name=name)
        hit = gen_ops.LogicalAnd(label_positive if key in ("tp", "fn") else label_negative,
                                 positive if key in ("tp", "fp") else negative)
        hit = math_ops.cast(hit, dtypes.float32)
        if weights is not None:
            hit *= weights
        updates[key] = state_ops.assign_add(variable, math_ops.reduce_sum(hit, 1))
        values[key] = variable
    return values, updates


_ALL = ("tp", "fn", "tn", "fp")


@export("metrics.auc")
def auc(labels, predictions, weights=None, num_thresholds=200, metrics_collections=None,
        updates_collections=None, curve="ROC", name=None, summation_method="trapezoidal",
        thresholds=None):
    with variable_scope.variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError("Curve must be either ROC or PR. Curve %s is unknown." % curve)
        tiny = 1e-7
        if thresholds is not None:
            thresholds = sorted(thresholds)
            num_thresholds = len(thresholds) + 2
        else:
            thresholds = [(i + 1) * 1.0 / (num_thresholds - 1)
                          for i in range(num_thresholds - 2)]
        thresholds = [0.0 - tiny] + thresholds + [1.0 + tiny]
        values, updates = _at_thresholds(labels, predictions, thresholds, weights, _ALL)
        value = _area(values, num_thresholds, curve, summation_method, "value")
        update = _area(updates, num_thresholds, curve, summation_method, "update_op")
        return _published(value, update, metrics_collections, updates_collections)


def _area(counts, number, curve, method, name):
    tp, fn, tn, fp = (counts[k] for k in _ALL)
    epsilon = 1.0e-6
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn, number)
    recall_value = math_ops.divide(tp + epsilon, tp + fn + epsilon)
    if curve == "ROC":
        x, y = math_ops.divide(fp, fp + tn + epsilon), recall_value
    else:
        x, y = recall_value, math_ops.divide(tp + epsilon, tp + fp + epsilon)
    width = x[:number - 1] - x[1:]
    if method in ("trapezoidal", "careful_interpolation"):
        height = (y[:number - 1] + y[1:]) / 2.0
    elif method == "minoring":
        height = gen_ops.Minimum(y[:number - 1], y[1:])
    elif method == "majoring":
        height = gen_ops.Maximum(y[:number - 1], y[1:])
    else:
        raise ValueError("Invalid summation_method: %s summation_method should be 'trapezoidal', "
                         "'careful_interpolation', 'minoring', or 'majoring'." % method)
    return math_ops.reduce_sum(gen_ops.Mul(width, height), name=name)


def _interpolated(tp, fp, fn, number):
    dtp = tp[:number - 1] - tp[1:]
    p = tp + fp
    slope = math_ops.div_no_nan(dtp, gen_ops.Maximum(p[:number - 1] - p[1:], 0),
                                name="prec_slope")
    intercept = tp[1:] - gen_ops.Mul(slope, p[1:])
    ratio = array_ops.where(
        gen_ops.LogicalAnd(p[:number - 1] > 0, p[1:] > 0),
        math_ops.div_no_nan(p[:number - 1], gen_ops.Maximum(p[1:], 0),
                            name="recall_relative_ratio"), array_ops.ones_like(p[1:]))
    return math_ops.reduce_sum(math_ops.div_no_nan(
        slope * (dtp + intercept * gen_ops.Log(ratio)), gen_ops.Maximum(tp[1:] + fn[1:], 0),
        name="pr_auc_increment"), name="interpolate_pr_auc")


def _ratio_at_thresholds(scope_name, other):
    def function(labels, predictions, thresholds, weights=None, metrics_collections=None,
                 updates_collections=None, name=None):
        with variable_scope.variable_scope(name, scope_name, (predictions, labels, weights)):
            values, updates = _at_thresholds(labels, predictions, thresholds, weights,
                                             ("tp", other))

            def ratio(counts, label):
                return math_ops.divide(counts["tp"], 1e-7 + counts["tp"] + counts[other],
                                       name="%s_%s" % (scope_name.split("_")[0], label))

            return _published(ratio(values, "value"), ratio(updates, "update_op"),
                              metrics_collections, updates_collections)
    return function


precision_at_thresholds = export("metrics.precision_at_thresholds")(
    _ratio_at_thresholds("precision_at_thresholds", "fp"))
recall_at_thresholds = export("metrics.recall_at_thresholds")(
    _ratio_at_thresholds("recall_at_thresholds", "fn"))


@export("metrics.mean_tensor")
def mean_tensor(values, weights=None, metrics_collections=None, updates_collections=None,
                name=None):
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total = metric_variable(values.get_shape(), dtypes.float32, name="total_tensor")
        count = metric_variable(values.get_shape(), dtypes.float32, name="count_tensor")
        number = array_ops.ones_like(values)
        if weights is not None:
            values, _, weights = _squeezed(values, None, weights)
            weights = weights_broadcast_ops.broadcast_weights(
                math_ops.cast(weights, dtypes.float32), values)
            values = gen_ops.Mul(values, weights)
            number = gen_ops.Mul(number, weights)
        update_total = state_ops.assign_add(total, values)
        with ops.control_dependencies([values]):
            update_count = state_ops.assign_add(count, number)
        value = _quotient(total, count, "value")
        update = _quotient(update_total, update_count, "update_op")
        return _published(value, update, metrics_collections, updates_collections)
