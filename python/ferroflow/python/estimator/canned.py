"""Estimators with ready models: linear, deep, both together, and baselines."""

import contextlib
import math

from ferroflow.python.estimator import estimator, head as head_lib
from ferroflow.python.feature_column import feature_column as fc
from ferroflow.python.framework import ops
from ferroflow.python.layers import core as layers
from ferroflow.python.ops import array_ops, control_flow_ops, gen_ops, init_ops, losses, partitioned_variables, state_ops, variable_scope
from ferroflow.python.ops import math_ops
from ferroflow.python.summary import summary
from ferroflow.python.training import optimizers, training_util

# TensorFlow has a folder of this name. `_module_aliases.py` finds its modules.
__path__ = []
_DNN_LEARNING_RATE = 0.05
_LINEAR_LEARNING_RATE = 0.2
# When both parts are trained together.
_JOINT_DNN_LEARNING_RATE = 0.001
_JOINT_LINEAR_LEARNING_RATE = 0.005


def _optimizer(given, default, learning_rate):
    """An optimizer from its name, an object, or a function that makes one."""
    if given is None:
        return default(learning_rate)
    if isinstance(given, str):
        kinds = {
            "Adagrad": optimizers.AdagradOptimizer,
            "Adam": optimizers.AdamOptimizer,
            "Ftrl": optimizers.FtrlOptimizer,
            "RMSProp": optimizers.RMSPropOptimizer,
            "SGD": optimizers.GradientDescentOptimizer,
        }
        if given not in kinds:
            raise ValueError("Unsupported optimizer name: {}. Supported names are: {}".format(given, tuple(sorted(kinds))))
        return kinds[given](learning_rate=learning_rate)
    return given() if callable(given) and not hasattr(given, "minimize") else given


def _partitioner(config, min_slice_size=256 << 10):
    """Every variable is partitioned, often into one part: its slots are named after the part."""
    count = config.num_ps_replicas if config else 0
    return partitioned_variables.min_max_variable_partitioner(max_partitions=count, min_slice_size=min_slice_size)


def _input_partitioner(given, config):
    return given or _partitioner(config, 64 << 20)


def _dnn_scope(features, config):
    return variable_scope.variable_scope("dnn", values=tuple(features.values()), partitioner=_partitioner(config))


def _linear_scope(features, partitioner, config):
    return variable_scope.variable_scope("linear", values=tuple(features.values()), partitioner=_input_partitioner(partitioner, config))


def _dict_of(features):
    if not isinstance(features, dict):
        raise ValueError("features should be a dictionary of `Tensor`s. Given type: {}".format(type(features)))
    return features


def _dnn_logits(features, units, hidden_units, columns, activation, dropout, training, batch_norm, partitioner, config):
    """The logits of a deep network, in the current scope."""
    with variable_scope.variable_scope("input_from_feature_columns", values=tuple(features.values()), partitioner=_input_partitioner(partitioner, config)):
        net = fc.input_layer(features, columns)
    for i, count in enumerate(hidden_units):
        with variable_scope.variable_scope("hiddenlayer_%d" % i, values=(net,)) as scope:
            net = layers.dense(net, units=count, activation=activation, kernel_initializer=init_ops.glorot_uniform_initializer(), name=scope)
            if dropout is not None and training:
                net = layers.dropout(net, rate=dropout, training=True)
            if batch_norm:
                from ferroflow.python.layers import normalization

                net = normalization.batch_normalization(net, momentum=0.999, training=training, name="batchnorm_%d" % i)
        _add_hidden_layer_summary(net, scope.name)
    with variable_scope.variable_scope("logits", values=(net,)) as scope:
        logits = layers.dense(net, units=units, activation=None, kernel_initializer=init_ops.glorot_uniform_initializer(), name=scope)
    _add_hidden_layer_summary(logits, scope.name)
    return logits


def _add_hidden_layer_summary(value, tag):
    zeros = math_ops.reduce_mean(math_ops.cast(math_ops.equal(value, array_ops.zeros_like(value)), value.dtype))
    summary.scalar("%s/fraction_of_zero_values" % tag, zeros)
    summary.histogram("%s/activation" % tag, value)


def _linear_logits(features, units, columns, sparse_combiner="sum"):
    """The logits of a linear model, in the current scope."""
    logits = fc.linear_model(features, columns, units=units, sparse_combiner=sparse_combiner)
    summary.scalar("linear/bias", math_ops.reduce_mean(logits))
    return logits


def _linear_rate(columns, most=_LINEAR_LEARNING_RATE):
    return min(most, 1.0 / math.sqrt(len(list(columns))))


class _Canned(estimator.Estimator):
    """An estimator whose model function is a method."""

    def _start(self, head, model_dir, config, warm_start_from):
        self._head = head

        def model_fn(features, labels, mode, config):
            # The scope of the model is also that of its optimizer, and so part of names of slots.
            with self._scope(_dict_of(features), config):
                logits, train_op_fn = self._build(features, mode, config)
                return head.create_estimator_spec(features, mode, logits, labels=labels, train_op_fn=train_op_fn)

        estimator.Estimator.__init__(self, model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)

    def _scope(self, features, config):
        """What the model and its optimizer are built in."""
        del features, config
        return contextlib.nullcontext()


class _Linear(_Canned):
    def _scope(self, features, config):
        return _linear_scope(features, self._partitioner, config)

    def _build(self, features, mode, config):
        columns = self._columns
        logits = _linear_logits(features, self._head.logits_dimension, columns, self._combiner)

        def train(loss):
            opt = _optimizer(self._optimizer, optimizers.FtrlOptimizer, _linear_rate(columns))
            return opt.minimize(loss, global_step=training_util.get_global_step())

        return logits, train


class LinearClassifier(_Linear):
    """A linear model for classes."""

    def __init__(self, feature_columns, model_dir=None, n_classes=2, weight_column=None, label_vocabulary=None, optimizer="Ftrl", config=None, partitioner=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, sparse_combiner="sum"):
        self._columns, self._partitioner, self._combiner = list(feature_columns), partitioner, sparse_combiner
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        head = head_lib.classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class LinearRegressor(_Linear):
    """A linear model for numbers."""

    def __init__(self, feature_columns, model_dir=None, label_dimension=1, weight_column=None, optimizer="Ftrl", config=None, partitioner=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, sparse_combiner="sum"):
        self._columns, self._partitioner, self._combiner = list(feature_columns), partitioner, sparse_combiner
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        head = head_lib.RegressionHead(label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class _DNN(_Canned):
    def _scope(self, features, config):
        return _dnn_scope(features, config)

    def _build(self, features, mode, config):
        training = mode == "train"
        logits = _dnn_logits(
            features, self._head.logits_dimension, self._hidden_units, self._columns, self._activation, self._dropout, training, self._batch_norm, self._partitioner, config
        )

        def train(loss):
            opt = _optimizer(self._optimizer, optimizers.AdagradOptimizer, _DNN_LEARNING_RATE)
            return _with_updates(lambda: opt.minimize(loss, global_step=training_util.get_global_step()))

        return logits, train


def _with_updates(make):
    """The training operation after the updates of batch normalization."""
    updates = ops.get_collection(ops.GraphKeys.UPDATE_OPS)
    if not updates:
        return make()
    with ops.control_dependencies(updates):
        return make()


class DNNClassifier(_DNN):
    """A deep network for classes."""

    def __init__(self, hidden_units, feature_columns, model_dir=None, n_classes=2, weight_column=None, label_vocabulary=None, optimizer="Adagrad", activation_fn=gen_ops.relu, dropout=None, input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, batch_norm=False):
        self._hidden_units, self._columns, self._optimizer = list(hidden_units), list(feature_columns), optimizer
        self._activation, self._dropout, self._partitioner, self._batch_norm = activation_fn, dropout, input_layer_partitioner, batch_norm
        head = head_lib.classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class DNNRegressor(_DNN):
    """A deep network for numbers."""

    def __init__(self, hidden_units, feature_columns, model_dir=None, label_dimension=1, weight_column=None, optimizer="Adagrad", activation_fn=gen_ops.relu, dropout=None, input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, batch_norm=False):
        self._hidden_units, self._columns, self._optimizer = list(hidden_units), list(feature_columns), optimizer
        self._activation, self._dropout, self._partitioner, self._batch_norm = activation_fn, dropout, input_layer_partitioner, batch_norm
        head = head_lib.RegressionHead(label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class _DNNLinear(_Canned):
    def _set(self, linear_columns, linear_optimizer, dnn_columns, dnn_optimizer, hidden_units, activation, dropout, partitioner, batch_norm, combiner):
        self._linear_columns, self._linear_optimizer = list(linear_columns or []), None if linear_optimizer == "Ftrl" else linear_optimizer
        self._dnn_columns, self._dnn_optimizer, self._hidden_units = list(dnn_columns or []), dnn_optimizer, list(hidden_units or [])
        self._activation, self._dropout, self._partitioner = activation, dropout, partitioner
        self._batch_norm, self._combiner = batch_norm, combiner
        if not self._linear_columns and not self._dnn_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")

    def _build(self, features, mode, config):
        units, parts = self._head.logits_dimension, []
        if self._dnn_columns:
            with _dnn_scope(features, config):
                parts.append(
                    _dnn_logits(features, units, self._hidden_units, self._dnn_columns, self._activation, self._dropout, mode == "train", self._batch_norm, self._partitioner, config)
                )
        if self._linear_columns:
            with _linear_scope(features, self._partitioner, config):
                parts.append(_linear_logits(features, units, self._linear_columns, self._combiner))
        logits = parts[0] + parts[1] if len(parts) == 2 else parts[0]

        def train(loss):
            train_ops, step = [], training_util.get_global_step()
            if self._dnn_columns:
                opt = _optimizer(self._dnn_optimizer, optimizers.AdagradOptimizer, _JOINT_DNN_LEARNING_RATE)
                train_ops.append(opt.minimize(loss, var_list=ops.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES, scope="dnn")))
            if self._linear_columns:
                opt = _optimizer(
                    self._linear_optimizer, optimizers.FtrlOptimizer, _linear_rate(self._linear_columns, _JOINT_LINEAR_LEARNING_RATE))
                train_ops.append(opt.minimize(loss, var_list=ops.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES, scope="linear")))
            with ops.control_dependencies([control_flow_ops.group(*train_ops)]):
                return state_ops.assign_add(step, 1).op

        return logits, lambda loss: _with_updates(lambda: train(loss))


class DNNLinearCombinedClassifier(_DNNLinear):
    """Wide and deep, for classes."""

    def __init__(self, model_dir=None, linear_feature_columns=None, linear_optimizer="Ftrl", dnn_feature_columns=None, dnn_optimizer="Adagrad", dnn_hidden_units=None, dnn_activation_fn=gen_ops.relu, dnn_dropout=None, n_classes=2, weight_column=None, label_vocabulary=None, input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, batch_norm=False, linear_sparse_combiner="sum"):
        self._set(linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout, input_layer_partitioner, batch_norm, linear_sparse_combiner)
        head = head_lib.classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class DNNLinearCombinedRegressor(_DNNLinear):
    """Wide and deep, for numbers."""

    def __init__(self, model_dir=None, linear_feature_columns=None, linear_optimizer="Ftrl", dnn_feature_columns=None, dnn_optimizer="Adagrad", dnn_hidden_units=None, dnn_activation_fn=gen_ops.relu, dnn_dropout=None, label_dimension=1, weight_column=None, input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction=losses.Reduction.SUM, batch_norm=False, linear_sparse_combiner="sum"):
        self._set(linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout, input_layer_partitioner, batch_norm, linear_sparse_combiner)
        head = head_lib.RegressionHead(label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)
        self._start(head, model_dir, config, warm_start_from)


class _Baseline(_Canned):
    def _build(self, features, mode, config):
        batch = array_ops.shape(next(iter(features.values())))[0]
        with variable_scope.variable_scope("baseline", values=tuple(features.values())):
            bias = variable_scope.get_variable("bias", [self._head.logits_dimension], initializer=init_ops.zeros_initializer())
            logits = array_ops.ones(array_ops.stack([batch, 1])) * bias

        def train(loss):
            opt = _optimizer(self._optimizer, optimizers.FtrlOptimizer, 0.3)
            return opt.minimize(loss, global_step=training_util.get_global_step())

        return logits, train


class BaselineClassifier(_Baseline):
    """Predicts the frequency of each class, ignoring the features."""

    def __init__(self, model_dir=None, n_classes=2, weight_column=None, label_vocabulary=None, optimizer="Ftrl", config=None, loss_reduction=losses.Reduction.SUM):
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        head = head_lib.classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        self._start(head, model_dir, config, None)


class BaselineRegressor(_Baseline):
    """Predicts the mean of the labels."""

    def __init__(self, model_dir=None, label_dimension=1, weight_column=None, optimizer="Ftrl", config=None, loss_reduction=losses.Reduction.SUM):
        self._optimizer = None if optimizer == "Ftrl" else optimizer
        head = head_lib.RegressionHead(label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)
        self._start(head, model_dir, config, None)
