"""Heads: loss, metrics and predictions of a model from its logits."""

from ferroflow.python.estimator import export_output
from ferroflow.python.estimator.model_fn import EstimatorSpec, ModeKeys
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import array_ops, gen_ops, losses, math_ops, metrics, nn_ops
from ferroflow.python.summary import summary


def _columns(tensor):
    """A tensor with at least two dimensions."""
    tensor = ops.convert_to_tensor(tensor)
    return array_ops.expand_dims(tensor, -1) if tensor.get_shape().ndims == 1 else tensor


class _Head:
    """What all heads do: the spec of a mode."""

    def __init__(self, weight_column=None, loss_reduction=losses.Reduction.SUM, name=None):
        self._weight_column, self._reduction, self.name = weight_column, loss_reduction, name

    def _weights(self, features):
        if self._weight_column is None:
            return 1.0
        key = getattr(self._weight_column, "key", self._weight_column)
        return math_ops.cast(_columns(features[key]), dtypes.float32)

    def create_estimator_spec(self, features, mode, logits, labels=None, optimizer=None, train_op_fn=None):
        from ferroflow.python.training import training_util

        with ops.name_scope(self.name, "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions=predictions, export_outputs=self.export_outputs(predictions))
            weights = self._weights(features)
            labels, unweighted = self.unweighted_loss(labels, logits)
            loss = losses.compute_weighted_loss(unweighted, weights=weights, reduction=self._reduction)
            if mode == ModeKeys.EVAL:
                found = {"average_loss": metrics.mean(unweighted, weights=None if isinstance(weights, float) else weights)}
                found.update(self.metrics(labels, predictions, weights))
                return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=found)
            if train_op_fn is not None:
                train_op = train_op_fn(loss)
            else:
                train_op = optimizer.minimize(loss, global_step=training_util.get_global_step())
            with ops.name_scope(""):
                summary.scalar("average_loss", math_ops.reduce_mean(unweighted))
            return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


class RegressionHead(_Head):
    def __init__(self, label_dimension=1, **kwargs):
        super().__init__(**kwargs)
        self.logits_dimension = label_dimension

    def predictions(self, logits):
        return {"predictions": logits}

    def export_outputs(self, predictions):
        value = predictions["predictions"]
        return {
            "serving_default": export_output.RegressionOutput(value=value),
            "regression": export_output.RegressionOutput(value=value),
            "predict": export_output.PredictOutput(predictions),
        }

    def unweighted_loss(self, labels, logits):
        labels = math_ops.cast(_columns(labels), dtypes.float32)
        return labels, losses.mean_squared_error(labels=labels, predictions=logits, reduction=losses.Reduction.NONE)

    def metrics(self, labels, predictions, weights):
        weights = None if isinstance(weights, float) else weights
        return {
            "prediction/mean": metrics.mean(predictions["predictions"], weights=weights),
            "label/mean": metrics.mean(labels, weights=weights),
        }


class _ClassificationHead(_Head):
    def __init__(self, n_classes, label_vocabulary=None, **kwargs):
        super().__init__(**kwargs)
        self._n_classes, self._vocabulary = n_classes, label_vocabulary

    def _label_ids(self, labels):
        labels = _columns(labels)
        if self._vocabulary is None:
            return math_ops.cast(labels, dtypes.int64)
        from ferroflow.python.ops import lookup_ops

        return lookup_ops.index_table_from_tensor(tuple(self._vocabulary), name="class_id_lookup").lookup(labels)

    def _classes(self, class_ids):
        if self._vocabulary is None:
            return ops.apply_op("AsString", "str_classes", [class_ids]).outputs[0]
        from ferroflow.python.ops import lookup_ops

        return lookup_ops.index_to_string_table_from_tensor(tuple(self._vocabulary), name="class_string_lookup").lookup(class_ids)

    def _all_classes(self, logits):
        """All ids and names, for each example."""
        batch = array_ops.shape(logits)[0]
        ids = gen_ops.tile(array_ops.expand_dims(math_ops.range(self._n_classes), 0), [batch, 1])
        names = ops.convert_to_tensor([str(i) for i in range(self._n_classes)] if self._vocabulary is None else list(self._vocabulary))
        return ids, gen_ops.tile(array_ops.expand_dims(names, 0), [batch, 1])

    def export_outputs(self, predictions):
        classes = export_output.ClassificationOutput(scores=predictions["probabilities"], classes=predictions["all_classes"])
        return {"serving_default": classes, "classification": classes, "predict": export_output.PredictOutput(predictions)}


class BinaryHead(_ClassificationHead):
    logits_dimension = 1

    def __init__(self, label_vocabulary=None, **kwargs):
        super().__init__(2, label_vocabulary, **kwargs)

    def predictions(self, logits):
        logistic = math_ops.sigmoid(logits, name="logistic")
        two_class = array_ops.concat((array_ops.zeros_like(logits), logits), axis=-1, name="two_class_logits")
        class_ids = array_ops.expand_dims(math_ops.argmax(two_class, axis=-1), axis=-1, name="class_ids")
        all_ids, all_classes = self._all_classes(logits)
        return {
            "logits": logits,
            "logistic": logistic,
            "probabilities": nn_ops.softmax(two_class, name="probabilities"),
            "class_ids": class_ids,
            "classes": self._classes(class_ids),
            "all_class_ids": all_ids,
            "all_classes": all_classes,
        }

    def unweighted_loss(self, labels, logits):
        labels = math_ops.cast(self._label_ids(labels), dtypes.float32)
        return labels, nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="loss")

    def metrics(self, labels, predictions, weights):
        weights = None if isinstance(weights, float) else weights
        logistic, class_ids = predictions["logistic"], predictions["class_ids"]
        label_mean = metrics.mean(labels, weights=weights)
        return {
            "accuracy": metrics.accuracy(labels, class_ids, weights=weights),
            "precision": metrics.precision(labels, class_ids, weights=weights),
            "recall": metrics.recall(labels, class_ids, weights=weights),
            "prediction/mean": metrics.mean(logistic, weights=weights),
            "label/mean": label_mean,
            "accuracy_baseline": (
                gen_ops.maximum(label_mean[0], 1.0 - label_mean[0], name="accuracy_baseline_value"),
                gen_ops.maximum(label_mean[1], 1.0 - label_mean[1], name="accuracy_baseline_update"),
            ),
            "auc": metrics.auc(labels, logistic, weights=weights),
            "auc_precision_recall": metrics.auc(labels, logistic, weights=weights, curve="PR"),
        }


class MultiClassHead(_ClassificationHead):
    @property
    def logits_dimension(self):
        return self._n_classes

    def predictions(self, logits):
        class_ids = array_ops.expand_dims(math_ops.argmax(logits, axis=-1), axis=-1, name="class_ids")
        all_ids, all_classes = self._all_classes(logits)
        return {
            "logits": logits,
            "probabilities": nn_ops.softmax(logits, name="probabilities"),
            "class_ids": class_ids,
            "classes": self._classes(class_ids),
            "all_class_ids": all_ids,
            "all_classes": all_classes,
        }

    def unweighted_loss(self, labels, logits):
        labels = self._label_ids(labels)
        unweighted = losses.sparse_softmax_cross_entropy(labels=labels, logits=logits, reduction=losses.Reduction.NONE)
        return labels, array_ops.expand_dims(unweighted, axis=-1) if unweighted.get_shape().ndims == 1 else unweighted

    def metrics(self, labels, predictions, weights):
        weights = None if isinstance(weights, float) else weights
        return {"accuracy": metrics.accuracy(labels, predictions["class_ids"], weights=weights)}


def classification_head(n_classes, weight_column=None, label_vocabulary=None, loss_reduction=losses.Reduction.SUM):
    options = {"weight_column": weight_column, "label_vocabulary": label_vocabulary, "loss_reduction": loss_reduction}
    return BinaryHead(**options) if n_classes == 2 else MultiClassHead(n_classes, **options)
