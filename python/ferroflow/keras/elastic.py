"""Elastic training of Keras models."""

from ferroflow._hvd import arrays
from ferroflow._hvd.elastic import ObjectState, State, run_fn  # noqa: F401

from .framework import (
    backend, build_optimizer, keras, optimizer_variables, read_state, to_numpy)

if backend() == "tensorflow":
    from ferroflow.tensorflow.elastic import run  # noqa: F401
else:
    from ferroflow._hvd.elastic import run  # noqa: F401


class KerasState(ObjectState):
    """A model, its optimizer and plain values that survive lost ranks. The model must be built."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        if not getattr(model, "built", True):
            raise ValueError("the model must be built first: call model.build(input_shape)")
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        super().__init__(**kwargs)
        self._values = self._all()

    def _variables(self):
        # A new rank's optimizer needs its variables, too.
        build_optimizer(self.optimizer, self.model)
        return list(self.model.weights) + optimizer_variables(self.optimizer)

    def _all(self):
        read_state(self.model)
        return [to_numpy(v) for v in self._variables()]

    def save(self):
        self._values = self._all()
        super().save()

    def restore(self):
        if hasattr(self.model, "_jax_state"):
            # The state of the interrupted fit() is void.
            self.model._jax_state = None
        for variable, value in zip(self._variables(), self._values):
            variable.assign(value)
        super().restore()

    def sync(self):
        handles = [(v, arrays.broadcast_async(to_numpy(v), 0, f"keras.state.{i}"))
                   for i, v in enumerate(self._variables())]
        for variable, handle in handles:
            variable.assign(handle.wait())
        self._values = self._all()
        super().sync()


TensorFlowKerasState = KerasState


class CommitStateCallback(keras.callbacks.Callback):
    """Commits the state every few batches, and at the end of each epoch."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self.batches = 0

    def on_train_begin(self, logs=None):
        # All ranks count from the start, including those that have just joined.
        self.batches = 0

    def on_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches % self.batches_per_commit == 0:
            self.state.commit()

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):
    """Notes the number of the batch in `state.batch`. An epoch that goes on after a restart has only
    the batches that are left."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.steps_per_epoch = None

    def on_train_begin(self, logs=None):
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch, logs=None):
        if (self.params or {}).get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_batch_end(self, batch, logs=None):
        self.state.batch = batch

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):
    """Notes the number of complete epochs in `state.epoch`, those before a restart included."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs=None):
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch, logs=None):
        self.state.epoch = self.initial_epoch + epoch + 1
