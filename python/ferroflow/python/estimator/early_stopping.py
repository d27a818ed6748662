"""Hooks that end training early: by metrics of evaluations, or by a file."""

import collections
import os
import shutil
import tempfile
import time

from ferroflow.python.estimator import estimator as estimator_lib
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.ops import init_ops, state_ops, variable_scope
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.summary import summary_iterator
from ferroflow.python.training import basic_session_run_hooks, saver, session_run_hook, training_util
from ferroflow.python.util.api import export


def _stop_variable():
    with variable_scope.variable_scope("signal_early_stopping", reuse=variable_scope.AUTO_REUSE):
        return variable_scope.get_variable(
            "STOP", shape=[], dtype=dtypes.bool, initializer=init_ops.constant_initializer(False),
            collections=[ops.GraphKeys.GLOBAL_VARIABLES], trainable=False)


class _StopOnPredicateHook(session_run_hook.SessionRunHook):
    """The chief's part: evaluates the condition regularly, and notifies the other workers."""

    def __init__(self, should_stop_fn, run_every_secs=60, run_every_steps=None):
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable")
        self._should_stop_fn = should_stop_fn
        self._timer = basic_session_run_hooks.SecondOrStepTimer(every_secs=run_every_secs, every_steps=run_every_steps)

    def begin(self):
        self._step = training_util.get_global_step()
        self._stop = _stop_variable()
        self._set_stop = state_ops.assign(self._stop, True)

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop_fn():
                logging.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._set_stop)
                run_context.request_stop()


class _CheckForStoppingHook(session_run_hook.SessionRunHook):
    """The part of the other workers: they stop when the chief has set the flag."""

    def begin(self):
        self._stop = _stop_variable()

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(self._stop)

    def after_run(self, run_context, run_values):
        if run_values.results:
            logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()


@export("estimator.experimental.make_early_stopping_hook", "contrib.estimator.make_early_stopping_hook")
def make_early_stopping_hook(estimator, should_stop_fn, run_every_secs=60, run_every_steps=None):
    """A hook that ends training on all workers when `should_stop_fn()` is true on the chief."""
    if not isinstance(estimator, estimator_lib.Estimator):
        raise TypeError("`estimator` must have type `tf.estimator.Estimator`. Got: %s" % type(estimator))
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


@export("estimator.experimental.read_eval_metrics", "contrib.estimator.read_eval_metrics")
def read_eval_metrics(eval_dir):
    """The metrics of all evaluations in a folder, by global step."""
    found = {}
    names = sorted(file_io.get_matching_files(os.path.join(eval_dir, "*.tfevents.*"))) if file_io.file_exists(eval_dir) else []
    for name in names:
        for event in summary_iterator.summary_iterator(name):
            values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
            if values:
                found[event.step] = values
    return collections.OrderedDict(sorted(found.items()))


def _eval_dir(estimator, eval_dir):
    return eval_dir or estimator.eval_dir()


def _threshold_hook(estimator, metric_name, threshold, higher, eval_dir, min_steps, run_every_secs, run_every_steps):
    folder = _eval_dir(estimator, eval_dir)

    def should_stop():
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps:
                continue
            value = metrics[metric_name]
            if (value > threshold) if higher else (value < threshold):
                logging.info('At step %s, metric "%s" has value %s which is %s the configured threshold (%s) for early stopping.',
                             step, metric_name, value, "higher than" if higher else "lower than", threshold)
                return True
        return False
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


@export("estimator.experimental.stop_if_higher_hook", "contrib.estimator.stop_if_higher_hook")
def stop_if_higher_hook(estimator, metric_name, threshold, eval_dir=None, min_steps=0, run_every_secs=60, run_every_steps=None):
    return _threshold_hook(estimator, metric_name, threshold, True, eval_dir, min_steps, run_every_secs, run_every_steps)


@export("estimator.experimental.stop_if_lower_hook", "contrib.estimator.stop_if_lower_hook")
def stop_if_lower_hook(estimator, metric_name, threshold, eval_dir=None, min_steps=0, run_every_secs=60, run_every_steps=None):
    return _threshold_hook(estimator, metric_name, threshold, False, eval_dir, min_steps, run_every_secs, run_every_steps)


def _no_better_hook(estimator, metric_name, most_steps, higher, eval_dir, min_steps, run_every_secs, run_every_steps):
    folder = _eval_dir(estimator, eval_dir)

    def should_stop():
        best, best_step = None, None
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps:
                continue
            value = metrics[metric_name]
            if best is None or (value > best if higher else value < best):
                best, best_step = value, step
            if step - best_step >= most_steps:
                logging.info('No %s in metric "%s" for %s steps, which is greater than or equal to max steps (%s) configured for '
                             "early stopping.", "increase" if higher else "decrease", metric_name, step - best_step, most_steps)
                return True
        return False
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


@export("estimator.experimental.stop_if_no_increase_hook", "contrib.estimator.stop_if_no_increase_hook")
def stop_if_no_increase_hook(estimator, metric_name, max_steps_without_increase, eval_dir=None, min_steps=0, run_every_secs=60,
                             run_every_steps=None):
    return _no_better_hook(estimator, metric_name, max_steps_without_increase, True, eval_dir, min_steps, run_every_secs,
                           run_every_steps)


@export("estimator.experimental.stop_if_no_decrease_hook", "contrib.estimator.stop_if_no_decrease_hook")
def stop_if_no_decrease_hook(estimator, metric_name, max_steps_without_decrease, eval_dir=None, min_steps=0, run_every_secs=60,
                             run_every_steps=None):
    return _no_better_hook(estimator, metric_name, max_steps_without_decrease, False, eval_dir, min_steps, run_every_secs,
                           run_every_steps)


class _StopAtCheckpointStepHook(session_run_hook.SessionRunHook):
    """Ends training when a checkpoint of a step is there."""

    def __init__(self, model_dir, last_step, wait_after_file_check_secs=30):
        if last_step is None:
            raise ValueError("last_step must be specified.")
        if model_dir is None:
            raise ValueError("model_dir must be specified.")
        self._model_dir, self._last_step, self._wait = model_dir, last_step, wait_after_file_check_secs

    def begin(self):
        self._step = training_util.get_global_step()

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if run_values.results < self._last_step:
            return
        if file_io.file_exists(os.path.join(self._model_dir, "model.ckpt-%d.index" % self._last_step)):
            run_context.request_stop()
        else:
            time.sleep(self._wait)


@export("estimator.experimental.make_stop_at_checkpoint_step_hook", "contrib.estimator.make_stop_at_checkpoint_step_hook")
def make_stop_at_checkpoint_step_hook(estimator, last_step, wait_after_file_check_secs=30):
    """Ends training at a step. Workers that are not the chief wait for the chief's checkpoint of it."""
    if estimator.config.is_chief:
        return basic_session_run_hooks.StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


@export("estimator.experimental.InMemoryEvaluatorHook", "contrib.estimator.InMemoryEvaluatorHook")
class InMemoryEvaluatorHook(session_run_hook.SessionRunHook):
    """Evaluates from time to time in the training process, with the variables of the training session."""

    def __init__(self, estimator, input_fn, steps=None, hooks=None, name=None, every_n_iter=100):
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError("invalid every_n_iter=%s." % every_n_iter)
        if estimator.config.num_ps_replicas > 0:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator, self._input_fn, self._steps = estimator, input_fn, steps
        self._hooks, self._name, self._every = list(hooks or []), name, every_n_iter
        self._iteration = 0

    def begin(self):
        self._saver = saver.Saver(save_relative_paths=True)

    def after_create_session(self, session, coord):
        self._evaluate(session)

    def after_run(self, run_context, run_values):
        self._iteration += 1
        if self._iteration % self._every == 0:
            self._evaluate(run_context.session)

    def end(self, session):
        self._evaluate(session)

    def _evaluate(self, session):
        """Saves the variables of the session into a folder of its own, and evaluates from there."""
        folder = tempfile.mkdtemp(prefix="in-memory-eval-")
        try:
            path = self._saver.save(session, os.path.join(folder, "model.ckpt"), write_meta_graph=False, write_state=False)
            self._estimator.evaluate(self._input_fn, steps=self._steps, hooks=self._hooks, checkpoint_path=path, name=self._name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
