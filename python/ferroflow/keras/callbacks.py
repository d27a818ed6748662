"""Keras callbacks: broadcast of the initial state, averages of metrics, learning rates."""

import numpy as np

from ferroflow._hvd import arrays, core

from .framework import build_optimizer, keras, optimizer_variables, read_state, to_numpy


def _broadcast_model(model, root_rank, local):
    variables = list(model.variables if hasattr(model, "variables") else model.weights)
    if getattr(model, "optimizer", None) is not None:
        variables += optimizer_variables(model.optimizer)
    handles = []
    for i, variable in enumerate(variables):
        if id(variable) in local:
            continue
        value = to_numpy(variable)
        if value.dtype.name not in core.DTYPE_NUMBERS:
            continue
        handles.append((variable, arrays.broadcast_async(value, root_rank, f"keras.variable.{i}")))
    for variable, handle in handles:
        variable.assign(handle.wait())


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Gives all ranks the variables of one rank, before the training or after its first batch if
    there are none before."""

    def __init__(self, root_rank, device="", local_variables=None):
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        self._local = set()
        several = isinstance(local_variables, (list, tuple, set))
        for variable in local_variables if several else [local_variables]:
            self.register_local_var(variable)

    def register_local_var(self, var):
        """This variable is not broadcast."""
        self._local.add(id(var))

    def on_train_begin(self, logs=None):
        model = self.model
        if not getattr(model, "built", False) or not model.weights:
            return
        if not build_optimizer(getattr(model, "optimizer", None), model):
            return
        _broadcast_model(model, self.root_rank, self._local)
        self.broadcast_done = True

    def on_batch_end(self, batch, logs=None):
        if self.broadcast_done:
            return
        read_state(self.model)
        _broadcast_model(self.model, self.root_rank, self._local)
        self.broadcast_done = True

    on_train_batch_end = on_batch_end


class MetricAverageCallback(keras.callbacks.Callback):
    """Averages the metrics of an epoch over all ranks, for the callbacks that follow it."""

    def __init__(self, device=""):
        super().__init__()

    def on_epoch_end(self, epoch, logs=None):
        if not logs:
            return
        names = sorted(n for n, v in logs.items() if np.isscalar(v) or np.ndim(v) == 0)
        values = np.array([float(logs[n]) for n in names], np.float64)
        if len(names):
            reduced = arrays.allreduce(values, name="keras.metrics")
            logs.update(zip(names, (float(v) for v in reduced)))


class LearningRateScheduleCallback(keras.callbacks.Callback):
    """Multiplies the initial learning rate by a function of the epoch, or by a number."""

    def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True,
                 momentum_correction=True, steps_per_epoch=None):
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is needed")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase, self.steps_per_epoch = staircase, steps_per_epoch
        self.momentum_correction = momentum_correction
        self.current_epoch, self.restore_momentum = 0, None
        # A number is the factor of each epoch.
        self.multiplier = multiplier if callable(multiplier) else \
            lambda epoch: multiplier ** (epoch - start_epoch)

    def _covers(self, epoch):
        return epoch >= self.start_epoch and (self.end_epoch is None or epoch < self.end_epoch)

    def _rate(self):
        return float(to_numpy(self.model.optimizer.learning_rate))

    def _set_rate(self, rate):
        optimizer = self.model.optimizer
        read_state(self.model)
        before = self._rate()
        current = optimizer.learning_rate
        if hasattr(current, "assign"):
            current.assign(rate)
        else:
            optimizer.learning_rate = rate
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and momentum and before > 0 and not callable(momentum) and \
                isinstance(momentum, (int, float)):
            self.restore_momentum = momentum
            optimizer.momentum = momentum * rate / before

    def _restore_momentum(self):
        if self.restore_momentum is not None:
            self.model.optimizer.momentum = self.restore_momentum
            self.restore_momentum = None

    def on_epoch_begin(self, epoch, logs=None):
        self.current_epoch = epoch
        if self.staircase and self._covers(epoch):
            self._set_rate(self.initial_lr * self.multiplier(epoch))

    def on_batch_begin(self, batch, logs=None):
        if self.staircase or not self._covers(self.current_epoch):
            return
        steps = self.steps_per_epoch or (self.params or {}).get("steps")
        if not steps:
            raise ValueError("steps_per_epoch is needed, because Keras does not know it")
        self._set_rate(self.initial_lr * self.multiplier(self.current_epoch + float(batch) / steps))

    on_train_batch_begin = on_batch_begin

    def on_batch_end(self, batch, logs=None):
        self._restore_momentum()

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["lr"] = self._rate()


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from that of one rank to `initial_lr` within some epochs."""

    def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None,
                 verbose=0):
        def multiplier(epoch):
            # Reach the full rate at the end of the last batch of the warm-up.
            steps = self.steps_per_epoch or (self.params or {}).get("steps") or 1
            epoch += 1.0 / steps
            ranks = core.size()
            return 1.0 / ranks * (epoch * (ranks - 1) / warmup_epochs + 1)

        super().__init__(initial_lr, multiplier, start_epoch=0, end_epoch=warmup_epochs,
                         staircase=False, momentum_correction=momentum_correction,
                         steps_per_epoch=steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.end_epoch is not None and epoch == self.end_epoch - 1 and self.verbose > 0 and \
                core.rank() == 0:
            print(f"\nEpoch {epoch + 1}: the learning rate has warmed up to {self._rate()}.")


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Keeps the best model. Give it to the callbacks of rank 0 only."""

    def __init__(self, monitor="val_loss", verbose=0, save_weights_only=False, mode="auto",
                 save_freq="epoch", filepath="best.keras", **kwargs):
        super().__init__(filepath=filepath, monitor=monitor, verbose=verbose, save_best_only=True,
                         save_weights_only=save_weights_only, mode=mode, save_freq=save_freq,
                         **kwargs)
