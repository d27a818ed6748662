"""`tf.contrib.tpu` without TPUs: estimators that programs made for both run on the CPU."""

import copy
import inspect

from ferroflow.python.estimator import estimator as estimator_lib
from ferroflow.python.estimator import model_fn as model_fn_lib
from ferroflow.python.estimator import run_config
from ferroflow.python.util.api import export


@export("contrib.tpu.InputPipelineConfig")
class InputPipelineConfig:
    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4


@export("contrib.tpu.TPUConfig")
class TPUConfig:
    """How steps would be laid out on TPUs; the CPU needs none of it."""

    def __init__(self, iterations_per_loop=2, num_shards=None, **others):
        self.iterations_per_loop, self.num_shards = iterations_per_loop, num_shards
        self.__dict__.update(others)


@export("contrib.tpu.RunConfig")
class RunConfig(run_config.RunConfig):
    def __init__(self, tpu_config=None, evaluation_master=None, master=None, cluster=None, **kwargs):
        if master or cluster is not None:
            raise ValueError("there are no TPUs: leave out `master` and `cluster`")
        super().__init__(**kwargs)
        self.tpu_config = tpu_config or TPUConfig()


@export("contrib.tpu.TPUEstimatorSpec")
class TPUEstimatorSpec:
    """What a model function returns. Metrics are a function and its arguments."""

    def __init__(self, mode, predictions=None, loss=None, train_op=None, eval_metrics=None, export_outputs=None, scaffold_fn=None,
                 host_call=None, training_hooks=None, evaluation_hooks=None, prediction_hooks=None):
        self.mode, self.predictions, self.loss, self.train_op = mode, predictions, loss, train_op
        self.eval_metrics, self.export_outputs, self.scaffold_fn, self.host_call = eval_metrics, export_outputs, scaffold_fn, host_call
        self._hooks = dict(training_hooks=training_hooks, evaluation_hooks=evaluation_hooks, prediction_hooks=prediction_hooks)

    def as_estimator_spec(self):
        metrics = None
        if self.eval_metrics is not None:
            function, given = self.eval_metrics
            metrics = function(**given) if isinstance(given, dict) else function(*given)
        return model_fn_lib.EstimatorSpec(
            self.mode, predictions=self.predictions, loss=self.loss, train_op=self.train_op, eval_metric_ops=metrics,
            export_outputs=self.export_outputs, scaffold=self.scaffold_fn() if self.scaffold_fn else None, **self._hooks)


@export("contrib.tpu.CrossShardOptimizer")
class CrossShardOptimizer:
    """There is one shard, so nothing is summed."""

    def __new__(cls, opt, reduction=None, name="CrossShardOptimizer", group_assignment=None):
        return opt


@export("contrib.tpu.TPUEstimator")
class TPUEstimator(estimator_lib.Estimator):
    """An estimator whose functions get the batch size in `params`."""

    def __init__(self, model_fn=None, model_dir=None, config=None, params=None, use_tpu=True, train_batch_size=None,
                 eval_batch_size=None, predict_batch_size=None, batch_axis=None, eval_on_tpu=True, export_to_tpu=True,
                 warm_start_from=None, **_):
        if use_tpu:
            raise ValueError("there are no TPUs: give use_tpu=False to run on the CPU")
        del batch_axis, eval_on_tpu, export_to_tpu
        if params is not None and "batch_size" in params:
            raise ValueError("batch_size are reserved keys but existed in params {}.".format(params))
        self._sizes = {model_fn_lib.ModeKeys.TRAIN: train_batch_size, model_fn_lib.ModeKeys.EVAL: eval_batch_size or train_batch_size,
                       model_fn_lib.ModeKeys.PREDICT: predict_batch_size or train_batch_size}
        super().__init__(self._adapted(model_fn), model_dir=model_dir, config=config, params=params or {}, warm_start_from=warm_start_from)

    def _with_size(self, mode):
        params = copy.copy(self._params)
        if self._sizes.get(mode) is not None:
            params["batch_size"] = self._sizes[mode]
        return params

    def _adapted(self, model_fn):
        names = inspect.signature(model_fn).parameters

        def call(features, labels, mode, params, config):
            given = {"mode": mode, "params": self._with_size(mode) if params is not None else {}, "config": config, "labels": labels}
            spec = model_fn(features, **{k: v for k, v in given.items() if k in names})
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec
        return call

    def _get_features_and_labels(self, input_fn, mode):
        names = inspect.signature(input_fn).parameters

        def call():
            given = {"params": self._with_size(mode), "config": self.config, "mode": mode}
            return input_fn(**{k: v for k, v in given.items() if k in names})
        return super()._get_features_and_labels(call, mode)
