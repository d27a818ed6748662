"""Elastic training of Keras models."""

from ferroflow._hvd import arrays
from ferroflow._hvd.elastic import ObjectState, run  # noqa: F401

from .framework import keras, optimizer_variables, to_numpy


class KerasState(ObjectState):
    """A model, its optimizer and plain values that survive lost ranks."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__(lambda obj, root, name: arrays.broadcast_object(obj, root, name), **kwargs)
        self._values = self._all()

    def _variables(self):
        return list(self.model.weights) + optimizer_variables(self.optimizer)

    def _all(self):
        return [to_numpy(v) for v in self._variables()]

    def save(self):
        self._values = self._all()
        super().save()

    def restore(self):
        for variable, value in zip(self._variables(), self._values):
            variable.assign(value)
        super().restore()

    def sync(self):
        for i, variable in enumerate(self._variables()):
            variable.assign(arrays.broadcast(to_numpy(variable), 0, f"keras.state.{i}"))
        self._values = self._all()
        super().sync()


class CommitStateCallback(keras.callbacks.Callback):
    """Commits the state every few batches, and at the end of each epoch."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self.batches = 0

    def on_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches % self.batches_per_commit == 0:
            self.state.commit()

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.batches = 0
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):
    """Notes the number of the batch in `state.batch`."""

    def __init__(self, state):
        super().__init__()
        self.state = state

    def on_batch_end(self, batch, logs=None):
        self.state.batch = batch

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):
    """Notes the number of the epoch in `state.epoch`."""

    def __init__(self, state):
        super().__init__()
        self.state = state

    def on_epoch_end(self, epoch, logs=None):
        self.state.epoch = epoch
