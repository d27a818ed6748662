"""`tf.contrib.learn`: experiments, and the runner that starts the part of one that belongs to a task."""

import time

from ferroflow.python.estimator import run_config as run_config_lib
from ferroflow.python.estimator import training
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import basic_session_run_hooks
from ferroflow.python.util.api import export


@export("contrib.learn.Experiment")
class Experiment:
    """An Estimator with the data and the numbers of steps to train and evaluate it."""

    def __init__(self, estimator, train_input_fn, eval_input_fn, eval_metrics=None, train_steps=None, eval_steps=100,
                 train_monitors=None, eval_hooks=None, local_eval_frequency=None, eval_delay_secs=120,
                 continuous_eval_throttle_secs=60, min_eval_frequency=None, delay_workers_by_global_step=False,
                 export_strategies=None, train_steps_per_iteration=None, checkpoint_and_export=False, saving_listeners=None):
        if eval_metrics is not None:
            raise ValueError("`eval_metrics` must be `None` with `tf.estimator.Estimator`: its model_fn has the metrics")
        if export_strategies or checkpoint_and_export:
            raise NotImplementedError("Experiment: export_strategies is not supported; use tf.estimator.EvalSpec(exporters=...)")
        if delay_workers_by_global_step:
            raise NotImplementedError("Experiment: delay_workers_by_global_step is not supported")
        del train_steps_per_iteration
        self._estimator = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._train_steps, self._eval_steps = train_steps, eval_steps
        self._train_hooks, self._eval_hooks = list(train_monitors or []), list(eval_hooks or [])
        self._eval_delay_secs, self._throttle_secs = eval_delay_secs, continuous_eval_throttle_secs
        self._min_eval_frequency = local_eval_frequency or min_eval_frequency
        self._saving_listeners = list(saving_listeners or [])

    estimator = property(lambda self: self._estimator)
    train_steps = property(lambda self: self._train_steps)
    eval_steps = property(lambda self: self._eval_steps)

    def _executor(self):
        train = training.TrainSpec(self._train_input_fn, max_steps=self._train_steps, hooks=self._train_hooks)
        evaluate = training.EvalSpec(self._eval_input_fn, steps=self._eval_steps, hooks=self._eval_hooks,
                                     start_delay_secs=self._eval_delay_secs, throttle_secs=self._throttle_secs)
        return training._TrainingExecutor(self._estimator, train, evaluate)

    def extend_train_hooks(self, additional_hooks):
        self._train_hooks.extend(additional_hooks)

    def train(self, delay_secs=None):
        """Trains up to the number of steps; in a cluster, with the server of this task."""
        config = self._estimator.config
        if config.cluster_spec.jobs and config.master:
            self._server = self._executor()._start_std_server(config)
            if delay_secs is None:
                delay_secs = min(60, 5 * (config.task_id + 1)) if config.task_type == run_config_lib.TaskType.WORKER else 0
        if delay_secs:
            logging.info("Waiting %d secs before starting training.", delay_secs)
            time.sleep(delay_secs)
        return self._estimator.train(input_fn=self._train_input_fn, max_steps=self._train_steps, hooks=list(self._train_hooks),
                                     saving_listeners=self._saving_listeners)

    def evaluate(self, delay_secs=None, name=None):
        """Evaluates the newest checkpoint."""
        delay = 0 if delay_secs is None else delay_secs
        if delay:
            logging.info("Waiting %d secs before starting eval.", delay)
            time.sleep(delay)
        return self._estimator.evaluate(input_fn=self._eval_input_fn, steps=self._eval_steps, hooks=list(self._eval_hooks),
                                        name=name)

    def train_and_evaluate(self):
        """Trains, evaluates every `min_eval_frequency` steps if that is given, and at the end: (metrics, [])."""
        if not self._min_eval_frequency or self._estimator.config.cluster_spec.jobs:
            self.train(delay_secs=0)
            return self.evaluate(delay_secs=0), []
        result, done = None, self._steps_done()
        while result is None or self._train_steps is None or done < self._train_steps:
            hook = basic_session_run_hooks.StopAtStepHook(num_steps=self._min_eval_frequency)
            self._estimator.train(input_fn=self._train_input_fn, max_steps=self._train_steps, hooks=self._train_hooks + [hook],
                                  saving_listeners=self._saving_listeners)
            result = self.evaluate(delay_secs=0)
            before, done = done, self._steps_done()
            if done - before < self._min_eval_frequency:
                break
        return result, []

    def _steps_done(self):
        return int(self._estimator.get_variable_value("global_step")) if self._estimator.latest_checkpoint() else 0

    def continuous_eval(self, delay_secs=None, throttle_delay_secs=None, **_):
        """Evaluates each new checkpoint until the training has reached its last step."""
        self._eval_delay_secs = self._eval_delay_secs if delay_secs is None else delay_secs
        self._throttle_secs = self._throttle_secs if throttle_delay_secs is None else throttle_delay_secs
        return self._executor().run_evaluator()

    def run_std_server(self):
        """Serves the task; does not return."""
        self._executor().run_ps()

    def test(self):
        """Trains one step and evaluates, to see that everything works."""
        self._estimator.train(input_fn=self._train_input_fn, steps=1, hooks=list(self._train_hooks))
        return self._estimator.evaluate(input_fn=self._eval_input_fn, steps=1, name="one_pass"), []


def _schedule(config):
    """What a task does unless the caller says it."""
    kinds = run_config_lib.TaskType
    if not config or not config.cluster_spec.jobs:
        return "train_and_evaluate"
    known = {kinds.PS: "run_std_server", kinds.WORKER: "train", kinds.CHIEF: "train", kinds.MASTER: "train_and_evaluate",
             kinds.EVALUATOR: "continuous_eval"}
    if config.task_type not in known:
        raise ValueError("No default schedule for task type: %s. Please specify a schedule." % config.task_type)
    return known[config.task_type]


@export("contrib.learn.learn_runner.run", "contrib.learn.python.learn.learn_runner.run")
def run(experiment_fn, output_dir=None, schedule=None, run_config=None, hparams=None):
    """Makes the experiment and calls the method that `schedule` names, or that belongs to the task."""
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`. Please specify the directory in `run_config`.")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError("Experiment builder \"%s\" is not callable." % (experiment_fn,))
    if run_config is None:
        experiment = experiment_fn(output_dir=output_dir)
    else:
        if not run_config.model_dir:
            raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
        experiment = experiment_fn(run_config, hparams)
    if not isinstance(experiment, Experiment):
        raise TypeError("Experiment builder did not return an Experiment instance, got %s instead." % type(experiment))
    config = experiment.estimator.config
    schedule = schedule or _schedule(config)
    task = getattr(experiment, schedule, None)
    if task is None:
        raise ValueError("Schedule references non-existent task %s" % schedule)
    if not callable(task):
        raise TypeError("Schedule references non-callable member %s" % schedule)
    return task()


@export("contrib.learn.learn_runner.tune", "contrib.learn.python.learn.learn_runner.tune")
def tune(experiment_fn, tuner):
    raise NotImplementedError("learn_runner.tune: tuners are not supported")
