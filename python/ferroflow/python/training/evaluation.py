"""Evaluation of a checkpoint in a monitored session."""

import time

from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import init_ops, state_ops, variable_scope
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import basic_session_run_hooks, monitored_session, session_run_hook


def _get_or_create_eval_step():
    """A local variable that counts the steps of an evaluation."""
    found = ops.get_default_graph().get_collection(ops.GraphKeys.EVAL_STEP)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    return variable_scope.get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=init_ops.zeros_initializer(),
        trainable=False,
        collections=[ops.GraphKeys.LOCAL_VARIABLES, ops.GraphKeys.EVAL_STEP],
    )


class _StopAfterNEvalsHook(session_run_hook.SessionRunHook):
    """Stops after some evaluation steps."""

    def __init__(self, num_evals, log_progress=True):
        self._num_evals, self._log_progress = num_evals, log_progress
        self._evals_completed = None
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else max(1, num_evals // 10)

    def _set_evals_completed_tensor(self, updated_eval_step):
        self._evals_completed = updated_eval_step

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context, run_values):
        done = run_values.results["evals_completed"]
        if self._log_progress:
            if self._num_evals is None:
                logging.info("Evaluation [%d]", done)
            elif done % self._log_frequency == 0 or done == self._num_evals:
                logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def _evaluate_once(checkpoint_path, master="", scaffold=None, eval_ops=None, feed_dict=None, final_ops=None, final_ops_feed_dict=None, hooks=None, config=None):
    """Restores a checkpoint, runs `eval_ops` until the input or a hook ends, returns `final_ops`."""
    eval_step = _get_or_create_eval_step()
    hooks = list(hooks or [])
    if eval_ops is not None:
        update_eval_step = state_ops.assign_add(eval_step, 1)
        if isinstance(eval_ops, dict):
            eval_ops = dict(eval_ops, update_eval_step=update_eval_step)
        elif isinstance(eval_ops, (tuple, list)):
            eval_ops = list(eval_ops) + [update_eval_step]
        else:
            eval_ops = [eval_ops, update_eval_step]
        with ops.control_dependencies([update_eval_step]):
            step_value = eval_step.read_value()
        for h in hooks:
            if isinstance(h, _StopAfterNEvalsHook):
                h._set_evals_completed_tensor(step_value)
    logging.info("Starting evaluation at " + time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime()))
    start = time.time()
    creator = monitored_session.ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    final_ops_hook = basic_session_run_hooks.FinalOpsHook(final_ops, final_ops_feed_dict)
    hooks.append(final_ops_hook)
    with monitored_session.MonitoredSession(session_creator=creator, hooks=hooks) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run(eval_ops, feed_dict)
    logging.info("Inference Time : {:0.5f}s".format(time.time() - start))
    logging.info("Finished evaluation at " + time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
    return final_ops_hook.final_ops_values
