"""Estimators that take a head, heads under their public names, and additions to estimators."""

from ferroflow.python.estimator import canned, estimator as estimator_lib, head as head_lib
from ferroflow.python.estimator.model_fn import EstimatorSpec, ModeKeys
from ferroflow.python.feature_column import feature_column as fc
from ferroflow.python.framework import dtypes
from ferroflow.python.ops import gen_ops, losses, math_ops, metrics as metrics_lib, nn_ops, parsing_ops
from ferroflow.python.util.api import export

_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE


@export("estimator.Head")
class Head(head_lib._Head):
    """The base of heads."""


def _reduction(given):
    """The reduction of `tf.losses` for one of `tf.keras.losses`."""
    return _MEAN if given in (None, "auto", "sum_over_batch_size") else given


@export("estimator.BinaryClassHead")
class BinaryClassHead(head_lib.BinaryHead):
    def __init__(self, weight_column=None, thresholds=None, label_vocabulary=None, loss_reduction=None, loss_fn=None, name=None):
        super().__init__(label_vocabulary=label_vocabulary, weight_column=weight_column,
                         loss_reduction=_reduction(loss_reduction), name=name)
        self._thresholds, self._loss_fn = tuple(thresholds or ()), loss_fn

    def unweighted_loss(self, labels, logits):
        labels, loss = super().unweighted_loss(labels, logits)
        return labels, loss if self._loss_fn is None else self._loss_fn(labels=labels, logits=logits)

    def metrics(self, labels, predictions, weights):
        found = super().metrics(labels, predictions, weights)
        weights = None if isinstance(weights, float) else weights
        for t in self._thresholds:
            above = math_ops.cast(predictions["logistic"] >= t, dtypes.float32)
            for name, metric in (("accuracy", metrics_lib.accuracy), ("precision", metrics_lib.precision), ("recall", metrics_lib.recall)):
                found["%s/positive_threshold_%g" % (name, t)] = metric(labels, above, weights=weights)
        return found


@export("estimator.MultiClassHead")
class MultiClassHead(head_lib.MultiClassHead):
    def __init__(self, n_classes, weight_column=None, label_vocabulary=None, loss_reduction=None, loss_fn=None, name=None):
        if n_classes is None or n_classes <= 2:
            raise ValueError("n_classes must be > 2: {}.".format(n_classes))
        super().__init__(n_classes, label_vocabulary=label_vocabulary, weight_column=weight_column,
                         loss_reduction=_reduction(loss_reduction), name=name)
        self._loss_fn = loss_fn

    def unweighted_loss(self, labels, logits):
        labels, loss = super().unweighted_loss(labels, logits)
        return labels, loss if self._loss_fn is None else self._loss_fn(labels=labels, logits=logits)


@export("estimator.RegressionHead")
class RegressionHead(head_lib.RegressionHead):
    def __init__(self, label_dimension=1, weight_column=None, loss_reduction=None, loss_fn=None, inverse_link_fn=None, name=None):
        super().__init__(label_dimension, weight_column=weight_column, loss_reduction=_reduction(loss_reduction), name=name)
        self._loss_fn, self._inverse_link_fn = loss_fn, inverse_link_fn

    def predictions(self, logits):
        if self._inverse_link_fn is None:
            return super().predictions(logits)
        return {"predictions": self._inverse_link_fn(logits), "logits": logits}

    def unweighted_loss(self, labels, logits):
        labels, loss = super().unweighted_loss(labels, logits)
        return labels, loss if self._loss_fn is None else self._loss_fn(labels=labels, logits=logits)


@export("estimator.PoissonRegressionHead")
class PoissonRegressionHead(RegressionHead):
    def __init__(self, label_dimension=1, weight_column=None, loss_reduction=None, compute_full_loss=True, name=None):
        super().__init__(label_dimension, weight_column, loss_reduction, inverse_link_fn=math_ops.exp, name=name,
                         loss_fn=lambda labels, logits: nn_ops.log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss))


@export("estimator.LogisticRegressionHead")
class LogisticRegressionHead(RegressionHead):
    def __init__(self, weight_column=None, loss_reduction=None, name=None):
        super().__init__(1, weight_column, loss_reduction, inverse_link_fn=math_ops.sigmoid, name=name,
                         loss_fn=lambda labels, logits: nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


@export("estimator.MultiLabelHead")
class MultiLabelHead(head_lib._ClassificationHead):
    """Each example may have several of the classes."""

    def __init__(self, n_classes, weight_column=None, thresholds=None, label_vocabulary=None, loss_reduction=None, loss_fn=None,
                 classes_for_class_based_metrics=None, name=None):
        super().__init__(n_classes, label_vocabulary, weight_column=weight_column, loss_reduction=_reduction(loss_reduction), name=name)
        self._thresholds, self._loss_fn = tuple(thresholds or ()), loss_fn
        self.logits_dimension = n_classes

    def predictions(self, logits):
        return {"logits": logits, "probabilities": math_ops.sigmoid(logits, name="probabilities"),
                "all_classes": self._all_classes(logits)[1]}

    def _processed(self, labels):
        from ferroflow.python.framework import sparse_tensor
        from ferroflow.python.ops import sparse_ops
        if isinstance(labels, sparse_tensor.SparseTensor):
            ids = labels
            if labels.dtype == dtypes.string:
                from ferroflow.python.ops import lookup_ops
                ids = lookup_ops.index_table_from_tensor(tuple(self._vocabulary), name="class_id_lookup").lookup(labels)
            return math_ops.cast(sparse_ops.sparse_to_indicator(ids, self._n_classes), dtypes.int64)
        return math_ops.cast(labels, dtypes.int64)

    def unweighted_loss(self, labels, logits):
        labels = math_ops.cast(self._processed(labels), dtypes.float32)
        if self._loss_fn is not None:
            return labels, self._loss_fn(labels=labels, logits=logits)
        each = losses.sigmoid_cross_entropy(multi_class_labels=labels, logits=logits, reduction=losses.Reduction.NONE)
        return labels, math_ops.reduce_mean(each, axis=-1, keepdims=True)

    def metrics(self, labels, predictions, weights):
        weights = None if isinstance(weights, float) else weights
        probabilities = predictions["probabilities"]
        found = {"auc": metrics_lib.auc(labels, probabilities, weights=weights),
                 "auc_precision_recall": metrics_lib.auc(labels, probabilities, weights=weights, curve="PR")}
        for t in self._thresholds:
            above = math_ops.cast(probabilities >= t, dtypes.float32)
            for name, metric in (("accuracy", metrics_lib.accuracy), ("precision", metrics_lib.precision), ("recall", metrics_lib.recall)):
                found["%s/positive_threshold_%g" % (name, t)] = metric(labels, above, weights=weights)
        return found


def _old_head(kind):
    def make(*args, loss_reduction=_MEAN, **kwargs):
        return kind(*args, loss_reduction=loss_reduction, **kwargs)
    return make


binary_classification_head = export("contrib.estimator.binary_classification_head")(_old_head(BinaryClassHead))
multi_class_head = export("contrib.estimator.multi_class_head")(_old_head(MultiClassHead))
regression_head = export("contrib.estimator.regression_head")(_old_head(RegressionHead))
multi_label_head = export("contrib.estimator.multi_label_head")(_old_head(MultiLabelHead))
poisson_regression_head = export("contrib.estimator.poisson_regression_head")(_old_head(PoissonRegressionHead))
logistic_regression_head = export("contrib.estimator.logistic_regression_head")(_old_head(LogisticRegressionHead))


@export("estimator.LinearEstimator", "contrib.estimator.LinearEstimator")
class LinearEstimator(canned._Linear):
    """A linear model with a head of the caller's choice."""

    def __init__(self, head, feature_columns, model_dir=None, optimizer="Ftrl", config=None, partitioner=None,
                 sparse_combiner="sum", warm_start_from=None):
        self._columns, self._partitioner, self._combiner = list(feature_columns), partitioner, sparse_combiner
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        self._start(head, model_dir, config, warm_start_from)


@export("estimator.DNNEstimator", "contrib.estimator.DNNEstimator")
class DNNEstimator(canned._DNN):
    """A deep network with a head of the caller's choice."""

    def __init__(self, head, hidden_units, feature_columns, model_dir=None, optimizer="Adagrad", activation_fn=gen_ops.relu,
                 dropout=None, input_layer_partitioner=None, config=None, warm_start_from=None, batch_norm=False):
        self._hidden_units, self._columns, self._optimizer = list(hidden_units), list(feature_columns), optimizer
        self._activation, self._dropout, self._partitioner, self._batch_norm = activation_fn, dropout, input_layer_partitioner, batch_norm
        self._start(head, model_dir, config, warm_start_from)


@export("estimator.DNNLinearCombinedEstimator", "contrib.estimator.DNNLinearCombinedEstimator")
class DNNLinearCombinedEstimator(canned._DNNLinear):
    """Wide and deep, with a head of the caller's choice."""

    def __init__(self, head, model_dir=None, linear_feature_columns=None, linear_optimizer="Ftrl", dnn_feature_columns=None,
                 dnn_optimizer="Adagrad", dnn_hidden_units=None, dnn_activation_fn=gen_ops.relu, dnn_dropout=None,
                 input_layer_partitioner=None, config=None, batch_norm=False, linear_sparse_combiner="sum"):
        self._set(linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn,
                  dnn_dropout, input_layer_partitioner, batch_norm, linear_sparse_combiner)
        self._start(head, model_dir, config, None)


@export("estimator.BaselineEstimator", "contrib.estimator.BaselineEstimator")
class BaselineEstimator(canned._Baseline):
    """Ignores the features, with a head of the caller's choice."""

    def __init__(self, head, model_dir=None, optimizer="Ftrl", config=None):
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        self._start(head, model_dir, config, None)


@export("estimator.add_metrics", "contrib.estimator.add_metrics")
def add_metrics(estimator, metric_fn):
    """An estimator that also computes the metrics that `metric_fn` returns.

    The function takes any of `features`, `labels`, `predictions` and `config`.
    """
    import inspect
    names = [p.name for p in inspect.signature(metric_fn).parameters.values()]
    wrong = sorted(set(names) - {"features", "labels", "predictions", "config"})
    if wrong:
        raise ValueError("metric_fn (%s) has following not expected args: %s" % (metric_fn, wrong))

    def model_fn(features, labels, mode, config):
        spec = estimator._call_model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        known = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        found = dict(spec.eval_metric_ops or {})
        found.update(metric_fn(**{n: known[n] for n in names}) or {})
        return spec._replace(eval_metric_ops=found)
    return estimator_lib.Estimator(model_fn, model_dir=estimator.model_dir, config=estimator.config)


def _with_labels(feature_columns, label_key, label, weight_column):
    spec = fc.make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise ValueError("label should not be used as feature. label_key: {}, features: {}".format(label_key, spec.keys()))
    spec[label_key] = label
    if weight_column is not None:
        column = fc.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
        spec.update(fc.make_parse_example_spec([column]))
    return spec


@export("estimator.classifier_parse_example_spec")
def classifier_parse_example_spec(feature_columns, label_key, label_dtype=dtypes.int64, label_default=None, weight_column=None):
    """What `tf.io.parse_example` needs to read features and labels of a classifier."""
    return _with_labels(feature_columns, label_key, parsing_ops.FixedLenFeature((1,), label_dtype, label_default), weight_column)


@export("estimator.regressor_parse_example_spec")
def regressor_parse_example_spec(feature_columns, label_key, label_dtype=dtypes.float32, label_default=None, label_dimension=1,
                                 weight_column=None):
    """What `tf.io.parse_example` needs to read features and labels of a regressor."""
    feature = parsing_ops.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_labels(feature_columns, label_key, feature, weight_column)


@export("estimator.MultiHead")
class MultiHead:
    """Several heads on one model: losses are added, metrics get the names of the heads."""

    def __init__(self, heads, head_weights=None):
        if not heads:
            raise ValueError("Must specify heads. Given: {}".format(heads))
        if any(not h.name for h in heads) or len({h.name for h in heads}) < len(heads):
            raise ValueError("All given heads must have names, and each its own. Given: {}".format([h.name for h in heads]))
        if head_weights and len(head_weights) != len(heads):
            raise ValueError("heads and head_weights must have the same size.")
        self._heads, self._weights = tuple(heads), tuple(head_weights or [1.0] * len(heads))
        self.logits_dimension = sum(h.logits_dimension for h in heads)
        self.name = "_".join(h.name for h in heads)

    def _split(self, logits):
        if isinstance(logits, dict):
            return [logits[h.name] for h in self._heads]
        at, parts = 0, []
        for h in self._heads:
            parts.append(logits[..., at:at + h.logits_dimension])
            at += h.logits_dimension
        return parts

    def create_estimator_spec(self, features, mode, logits, labels=None, optimizer=None, train_op_fn=None):
        from ferroflow.python.training import training_util
        labels = labels or {}
        inner = ModeKeys.EVAL if mode == ModeKeys.TRAIN else mode
        specs = [h.create_estimator_spec(features, inner, part, labels=labels.get(h.name)) for h, part in zip(self._heads, self._split(logits))]
        predictions = {(h.name, k): v for h, s in zip(self._heads, specs) for k, v in s.predictions.items()}
        if mode == ModeKeys.PREDICT:
            outputs = {}
            for h, s in zip(self._heads, specs):
                outputs.update({h.name if k == "serving_default" else "%s/%s" % (h.name, k): v for k, v in s.export_outputs.items()})
            outputs["serving_default"] = specs[0].export_outputs["serving_default"]
            return EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
        loss = math_ops.add_n([s.loss * w for s, w in zip(specs, self._weights)])
        if mode == ModeKeys.EVAL:
            found = {"loss/" + h.name: metrics_lib.mean(s.loss) for h, s in zip(self._heads, specs)}
            for h, s in zip(self._heads, specs):
                found.update({"%s/%s" % (k, h.name): v for k, v in s.eval_metric_ops.items()})
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=found)
        train_op = train_op_fn(loss) if train_op_fn is not None else optimizer.minimize(loss, global_step=training_util.get_global_step())
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


@export("contrib.estimator.multi_head")
def multi_head(heads, head_weights=None):
    return MultiHead(heads, head_weights)


@export("contrib.estimator.clip_gradients_by_norm")
def clip_gradients_by_norm(optimizer, clip_norm):
    """An optimizer whose gradients have at most this norm together."""
    from ferroflow.python.ops import clip_ops

    class Clipped(type(optimizer)):
        def __init__(self):
            self.__dict__.update(optimizer.__dict__)

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            grads, variables = zip(*grads_and_vars)
            grads, _ = clip_ops.clip_by_global_norm(grads, clip_norm)
            return super().apply_gradients(list(zip(grads, variables)), global_step, name)
    return Clipped()
