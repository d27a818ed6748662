"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

import tensorflow as tf

from ferroflow._hvd.elastic import ObjectState, State, run_fn, runner  # noqa: F401
from ferroflow._hvd.v1 import SessionVariables

from ..functions import broadcast_variables

run = runner(tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
             tf.errors.DeadlineExceededError)


def __getattr__(name):
    if name == "TensorFlowKerasState":
        from ferroflow.keras.elastic import KerasState
        return KerasState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _EagerVariables:
    """The values of variables outside of sessions."""

    def __init__(self, variables):
        self.variables = list(variables)

    def values(self):
        return [v.numpy() for v in self.variables]

    def assign(self, values):
        for variable, value in zip(self.variables, values):
            variable.assign(value)

    def broadcast(self, root_rank):
        if self.variables:
            broadcast_variables(self.variables, root_rank)


class TensorFlowState(ObjectState):
    """Variables and plain values that survive lost ranks. In a graph, `session` has the variables,
    which must be initialized."""

    def __init__(self, variables=None, session=None, **kwargs):
        v1 = tf.compat.v1
        if session is None and not tf.executing_eagerly():
            session = v1.get_default_session()
        if variables is None:
            variables = v1.global_variables() if session is not None else []
        self._held = SessionVariables(variables, session) if session is not None else \
            _EagerVariables(variables)
        self.variables = self._held.variables
        super().__init__(**kwargs)
        self._values = self._held.values()

    def save(self):
        self._values = self._held.values()
        super().save()

    def restore(self):
        self._held.assign(self._values)
        super().restore()

    def sync(self):
        self._held.broadcast(0)
        self._values = self._held.values()
        super().sync()
