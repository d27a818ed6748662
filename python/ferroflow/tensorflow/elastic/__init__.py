"""Elastic training: goes on when ranks are lost, and lets new ranks in."""

import tensorflow as tf

from ferroflow._hvd.elastic import ObjectState
from ferroflow._hvd.elastic import run as _run
from ferroflow._hvd.errors import HorovodInternalError

from ..functions import broadcast_object, broadcast_variables

_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
         tf.errors.DeadlineExceededError)


def run(func):
    """Makes `func(state, ...)` elastic, see `ferroflow.torch.elastic.run`."""
    def translated(state, *args, **kwargs):
        try:
            return func(state, *args, **kwargs)
        except _LOST as e:
            raise HorovodInternalError(e.message) from e
    translated.__name__ = getattr(func, "__name__", "train")
    return _run(translated)


class TensorFlowState(ObjectState):
    """Variables and plain values that survive lost ranks."""

    def __init__(self, variables=None, session=None, **kwargs):
        self.variables = list(variables) if variables is not None else []
        super().__init__(lambda obj, root, name: broadcast_object(obj, root, name=name), **kwargs)
        self._values = []
        self.save_variables()

    def save_variables(self):
        self._values = [v.numpy() for v in self.variables]

    def save(self):
        self.save_variables()
        super().save()

    def restore(self):
        for variable, value in zip(self.variables, self._values):
            variable.assign(value)
        super().restore()

    def sync(self):
        if self.variables:
            broadcast_variables(self.variables, root_rank=0)
            self.save_variables()
        super().sync()


class TensorFlowKerasState(ObjectState):
    """A Keras model, its optimizer and plain values that survive lost ranks."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__(lambda obj, root, name: broadcast_object(obj, root, name=name), **kwargs)
        self._weights = self._all()

    def _variables(self):
        found = list(self.model.weights)
        variables = getattr(self.optimizer, "variables", None)
        if variables is not None:
            found += list(variables() if callable(variables) else variables)
        return found

    def _all(self):
        return [v.numpy() for v in self._variables()]

    def save(self):
        self._weights = self._all()
        super().save()

    def restore(self):
        for variable, value in zip(self._variables(), self._weights):
            variable.assign(value)
        super().restore()

    def sync(self):
        broadcast_variables(self._variables(), root_rank=0)
        self._weights = self._all()
        super().sync()
