"""Elastic training with sessions of `ferroflow.compat.v1`."""

import ferroflow.compat.v1 as tf
from ferroflow._hvd.elastic import ObjectState, State, run_fn, runner  # noqa: F401
from ferroflow._hvd.v1 import SessionVariables

run = runner(tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
             tf.errors.DeadlineExceededError)


class TensorFlowState(ObjectState):
    """The variables of a session and plain values that survive lost ranks. The variables must be
    initialized."""

    def __init__(self, variables=None, session=None, **kwargs):
        session = session or tf.get_default_session()
        if session is None:
            raise ValueError("TensorFlowState needs a session: give one, or open it with `with`")
        variables = tf.global_variables() if variables is None else variables
        self._session_variables = SessionVariables(variables, session)
        self.variables = self._session_variables.variables
        super().__init__(**kwargs)
        self._values = self._session_variables.values()

    def save(self):
        self._values = self._session_variables.values()
        super().save()

    def restore(self):
        self._session_variables.assign(self._values)
        super().restore()

    def sync(self):
        self._session_variables.broadcast(0)
        self._values = self._session_variables.values()
        super().sync()
