"""`train_and_evaluate`: the same program alone and in a cluster."""

import collections
import os
import time

from ferroflow.python.estimator import exporter as exporter_lib
from ferroflow.python.estimator import run_config as run_config_lib
from ferroflow.python.estimator import estimator as estimator_lib
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import basic_session_run_hooks, server_lib

_MAX_DELAY_SECS = 60
_DELAY_SECS_PER_WORKER = 5
_CHECK_SECS = 5


class TrainSpec(collections.namedtuple("TrainSpec", ["input_fn", "max_steps", "hooks", "saving_listeners"])):
    """What to train with, and how long."""

    def __new__(cls, input_fn, max_steps=None, hooks=None, saving_listeners=None):
        if not callable(input_fn):
            raise TypeError("`input_fn` must be callable, given: {}".format(input_fn))
        if max_steps is not None and max_steps <= 0:
            raise ValueError("Must specify max_steps > 0, given: {}".format(max_steps))
        return super().__new__(cls, input_fn, max_steps, tuple(hooks or []), tuple(saving_listeners or []))


class EvalSpec(collections.namedtuple("EvalSpec", ["input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"])):
    """What to evaluate with, when, and what to export."""

    def __new__(cls, input_fn, steps=100, name=None, hooks=None, exporters=None, start_delay_secs=120, throttle_secs=600):
        if not callable(input_fn):
            raise TypeError("`input_fn` must be callable, given: {}".format(input_fn))
        if steps is not None and steps <= 0:
            raise ValueError("Must specify steps > 0, given: {}".format(steps))
        if exporters is None:
            exporters = ()
        elif isinstance(exporters, exporter_lib.Exporter):
            exporters = (exporters,)
        if len({e.name for e in exporters}) != len(list(exporters)):
            raise ValueError("`exporters` must have different names")
        if start_delay_secs < 0 or throttle_secs < 0:
            raise ValueError("start_delay_secs and throttle_secs must be >= 0")
        return super().__new__(cls, input_fn, steps, name, tuple(hooks or []), tuple(exporters), start_delay_secs, throttle_secs)


def train_and_evaluate(estimator, train_spec, eval_spec):
    """Plays the role of this task: trains, evaluates, or serves variables."""
    if not isinstance(estimator, estimator_lib.Estimator):
        raise TypeError("`estimator` must have type `tf.estimator.Estimator`, given {}".format(type(estimator)))
    executor = _TrainingExecutor(estimator, train_spec, eval_spec)
    config = estimator.config
    if config.task_type == run_config_lib.TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError("For distributed training, there can only be one `evaluator` task (with task id 0).  Given task id {}".format(config.task_id))
    logging.info("Not using Distribute Coordinator.")
    return executor.run()


class _EvalListener(basic_session_run_hooks.CheckpointSaverListener):
    """Evaluates after each checkpoint of a local run."""

    def __init__(self, evaluator, max_training_steps):
        self.evaluator, self._max_training_steps, self._is_first = evaluator, max_training_steps, True
        self.eval_result, self.export_results = None, None

    def after_save(self, session, global_step_value):
        del session
        if self._is_first:
            # The first checkpoint is from before the first step.
            self._is_first = False
            return None
        if self.evaluator.should_wait(global_step_value, self._max_training_steps):
            return None
        self._evaluate(global_step_value)
        return None

    def end(self, session, global_step_value):
        del session
        if global_step_value != self.evaluator.last_step:
            self._evaluate(global_step_value)

    def _evaluate(self, step):
        self.eval_result, self.export_results = self.evaluator.evaluate_and_export(step)


class _Evaluator:
    def __init__(self, estimator, eval_spec, max_training_steps):
        self._estimator, self._eval_spec, self._max = estimator, eval_spec, max_training_steps
        self.last_step, self._previous_path, self._last_time = None, None, 0.0

    def should_wait(self, step, max_steps):
        if max_steps is not None and step >= max_steps:
            return False
        if self._last_time and time.time() - self._last_time < self._eval_spec.throttle_secs:
            logging.info("Skip the current checkpoint eval due to throttle secs ({} secs).".format(self._eval_spec.throttle_secs))
            return True
        return False

    def evaluate_and_export(self, step=None):
        path = self._estimator.latest_checkpoint()
        if not path:
            logging.warning("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
            return None, []
        if path == self._previous_path:
            logging.warning("No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation results are expected to be same for the same checkpoint.")
            return None, []
        self._last_time = time.time()
        result = self._estimator.evaluate(
            input_fn=self._eval_spec.input_fn, steps=self._eval_spec.steps, name=self._eval_spec.name, checkpoint_path=path, hooks=self._eval_spec.hooks
        )
        self.last_step = int(result["global_step"]) if step is None else step
        self._previous_path = path
        is_final = self._max is not None and result["global_step"] >= self._max
        exports = []
        for exporter in self._eval_spec.exporters:
            exports.append(
                exporter.export(
                    estimator=self._estimator,
                    export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
                    checkpoint_path=path,
                    eval_result=result,
                    is_the_final_export=is_final,
                )
            )
        return result, exports


class _TrainingExecutor:
    def __init__(self, estimator, train_spec, eval_spec):
        if not isinstance(train_spec, TrainSpec):
            raise TypeError("`train_spec` must have type `tf.estimator.TrainSpec`.")
        if not isinstance(eval_spec, EvalSpec):
            raise TypeError("`eval_spec` must have type `tf.estimator.EvalSpec`.")
        self._estimator, self._train_spec, self._eval_spec = estimator, train_spec, eval_spec

    def run(self):
        config = self._estimator.config
        if not config.cluster_spec.jobs or not config.master and config.task_type != run_config_lib.TaskType.EVALUATOR:
            logging.info("Running training and evaluation locally (non-distributed).")
            return self.run_local()
        kinds = run_config_lib.TaskType
        roles = {kinds.CHIEF: self.run_chief, kinds.WORKER: self.run_worker, kinds.PS: self.run_ps, kinds.MASTER: self.run_master, kinds.EVALUATOR: self.run_evaluator}
        if config.task_type not in roles:
            raise ValueError("Task type {} is not supported. Supported task types are {}".format(config.task_type, sorted(roles)))
        return roles[config.task_type]()

    def run_chief(self):
        return self._start_distributed_training()

    def run_worker(self):
        return self._start_distributed_training()

    def run_master(self):
        evaluator = _Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)
        return self._start_distributed_training([_EvalListener(evaluator, self._train_spec.max_steps)])

    def run_ps(self):
        self._start_std_server(self._estimator.config).join()

    def run_evaluator(self):
        """Evaluates each new checkpoint until the training has reached its last step."""
        time.sleep(self._eval_spec.start_delay_secs)
        evaluator = _Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)
        while True:
            start = time.time()
            result, _ = evaluator.evaluate_and_export()
            if result and self._train_spec.max_steps and result["global_step"] >= self._train_spec.max_steps:
                return
            left = self._eval_spec.throttle_secs - (time.time() - start)
            if left > 0:
                logging.info("Waiting %f secs before starting next eval run.", left)
                time.sleep(left)
            else:
                time.sleep(_CHECK_SECS if not result else 0)

    def run_local(self):
        logging.info(
            "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is "
            "determined based on RunConfig arguments: save_checkpoints_steps {} or save_checkpoints_secs {}.".format(
                self._estimator.config.save_checkpoints_steps, self._estimator.config.save_checkpoints_secs
            )
        )
        evaluator = _Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)
        listener = _EvalListener(evaluator, self._train_spec.max_steps)
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=list(self._train_spec.hooks),
            saving_listeners=list(self._train_spec.saving_listeners) + [listener],
        )
        result = listener.eval_result
        if result is None:
            result, listener.export_results = evaluator.evaluate_and_export()
        return result, listener.export_results

    def _start_std_server(self, config):
        if not config.cluster_spec.jobs or not config.task_type or config.task_id is None:
            raise RuntimeError("Could not start server; be sure to specify cluster_spec, task_type, and task in RunConfig or set the TF_CONFIG environment variable.")
        logging.info("Start Tensorflow server.")
        return server_lib.Server(
            config.cluster_spec, job_name=config.task_type, task_index=config.task_id, config=config.session_config, start=True, protocol=config.protocol
        )

    def _start_distributed_training(self, saving_listeners=()):
        config = self._estimator.config
        self._server = self._start_std_server(config)
        if config.task_type == run_config_lib.TaskType.WORKER:
            most = _MAX_DELAY_SECS if config.experimental_max_worker_delay_secs is None else int(config.experimental_max_worker_delay_secs)
            delay = min(most, (config.task_id + 1) * _DELAY_SECS_PER_WORKER)
            if delay > 0:
                logging.info("Waiting %d secs before starting training.", delay)
                time.sleep(delay)
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=list(self._train_spec.hooks),
            saving_listeners=list(self._train_spec.saving_listeners) + list(saving_listeners),
        )
