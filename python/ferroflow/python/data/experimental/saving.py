"""`tf.data.experimental`: iterators in checkpoints."""

import os

from ferroflow.python.data.ops.iterator_ops import GLOBAL_ITERATORS
from ferroflow.python.framework import ops
from ferroflow.python.training import basic_session_run_hooks
from ferroflow.python.training import checkpoint_management
from ferroflow.python.training import saver
from ferroflow.python.training import session_run_hook
from ferroflow.python.training import training_util
from ferroflow.python.training.saving import saveable_object


class _IteratorSaveable(saveable_object.SaveableObject):
    def __init__(self, resource):
        state = ops.apply_op("SerializeIterator", None, [resource], {"external_state_policy": 1}).outputs[0]
        spec = saveable_object.SaveSpec(state, "", resource.name + "-state")
        super().__init__(resource, [spec], resource.name)

    def restore(self, restored_tensors, restored_shapes):
        with ops.colocate_with(self.op):
            return ops.apply_op("DeserializeIterator", None, [self.op, restored_tensors[0]])


def make_saveable_from_iterator(iterator, external_state_policy=None):
    """What a `Saver` needs to keep the place of an iterator."""
    return _IteratorSaveable(iterator._iterator_resource)


class CheckpointInputPipelineHook(session_run_hook.SessionRunHook):
    """Saves the iterators of an estimator's input beside its model, in files of their own."""

    def __init__(self, estimator, external_state_policy=None):
        config = estimator._config
        name = "input"
        if config.num_worker_replicas > 1:
            name = "input_%s_%d" % (config.task_type, config.task_id)
        self._dir = config.model_dir
        self._path, self._latest = os.path.join(config.model_dir, name + ".ckpt"), "checkpoint_" + name
        self._timer = basic_session_run_hooks.SecondOrStepTimer(
            every_secs=config.save_checkpoints_secs, every_steps=config.save_checkpoints_steps)

    def begin(self):
        resources = ops.get_collection(GLOBAL_ITERATORS)
        if not resources:
            raise ValueError("the graph has no iterator of a dataset whose place could be saved")
        self._saver = saver.Saver([_IteratorSaveable(r) for r in resources], sharded=False)
        self._step = training_util.get_global_step()

    def after_create_session(self, session, coord):
        path = checkpoint_management.latest_checkpoint(self._dir, latest_filename=self._latest)
        if path:
            self._saver.restore(session, path)
        self._save(session, session.run(self._step))

    def _save(self, session, step):
        self._timer.update_last_triggered_step(step)
        self._saver.save(session, self._path, global_step=step, latest_filename=self._latest, write_meta_graph=False)

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if self._timer.should_trigger_for_step(run_values.results + 1):
            self._save(run_context.session, run_context.session.run(self._step))

    def end(self, session):
        step = session.run(self._step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
