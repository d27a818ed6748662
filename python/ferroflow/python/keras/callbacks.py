"""`tf.keras.callbacks`."""

import numpy as np

from ferroflow.python.keras import backend
from ferroflow.python.util.api import export


@export("keras.callbacks.Callback")
class Callback:
    """Methods that training calls."""

    model = None
    params = None

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def on_train_begin(self, logs=None):
        pass

    def on_train_end(self, logs=None):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        pass

    def on_epoch_end(self, epoch, logs=None):
        pass

    def on_batch_begin(self, batch, logs=None):
        pass

    def on_batch_end(self, batch, logs=None):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.on_batch_end(batch, logs)


@export("keras.callbacks.History")
class History(Callback):
    """What `fit` returns: the numbers of each epoch."""

    def __init__(self):
        self.epoch, self.history = [], {}

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class _Watching(Callback):
    """Tracks whether a metric has improved."""

    def _watch(self, monitor, mode, min_delta=0.0):
        self.monitor = monitor
        rising = mode == "max" or mode == "auto" and "acc" in monitor
        self._sign, self._delta = (1 if rising else -1), abs(min_delta)
        self.best = -np.inf if rising else np.inf

    def _better(self, value):
        return self._sign * (value - self.best) > self._delta


@export("keras.callbacks.EarlyStopping")
class EarlyStopping(_Watching):
    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto", baseline=None, restore_best_weights=False):
        self._watch(monitor, mode, min_delta)
        if baseline is not None:
            self.best = baseline
        self.patience, self.verbose, self._restore, self._kept = patience, verbose, restore_best_weights, None
        self.wait = self.stopped_epoch = 0

    def on_epoch_end(self, epoch, logs=None):
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        if self._better(value):
            self.best, self.wait = value, 0
            if self._restore:
                self._kept = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self._kept is not None:
                self.model.set_weights(self._kept)
            if self.verbose:
                print("Epoch %05d: early stopping" % (epoch + 1))


@export("keras.callbacks.ModelCheckpoint")
class ModelCheckpoint(_Watching):
    """Saves the weights after each epoch."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto", period=1):
        if not save_weights_only:
            raise NotImplementedError("ModelCheckpoint: only save_weights_only=True is supported")
        self._watch(monitor, mode)
        self.filepath, self.verbose, self._best_only, self._period = filepath, verbose, save_best_only, period

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        if (epoch + 1) % self._period:
            return
        if self._best_only:
            if self.monitor not in logs or not self._better(logs[self.monitor]):
                return
            self.best = logs[self.monitor]
        self.model.save_weights(self.filepath.format(epoch=epoch + 1, **logs))


@export("keras.callbacks.LearningRateScheduler")
class LearningRateScheduler(Callback):
    def __init__(self, schedule, verbose=0):
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        rate = backend.get_value(self.model.optimizer.lr)
        try:
            rate = self.schedule(epoch, float(rate))
        except TypeError:
            rate = self.schedule(epoch)
        backend.set_value(self.model.optimizer.lr, rate)


@export("keras.callbacks.ReduceLROnPlateau")
class ReduceLROnPlateau(_Watching):
    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0, min_lr=0):
        self._watch(monitor, mode, min_delta)
        self.factor, self.patience, self.verbose, self.min_lr, self.cooldown = factor, patience, verbose, min_lr, cooldown
        self._wait = self._cooling = 0

    def on_epoch_end(self, epoch, logs=None):
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        if self._cooling:
            self._cooling, self._wait = self._cooling - 1, 0
        if self._better(value):
            self.best, self._wait = value, 0
        elif not self._cooling:
            self._wait += 1
            if self._wait >= self.patience:
                rate = float(backend.get_value(self.model.optimizer.lr))
                backend.set_value(self.model.optimizer.lr, max(rate * self.factor, self.min_lr))
                self._cooling, self._wait = self.cooldown, 0


@export("keras.callbacks.TerminateOnNaN")
class TerminateOnNaN(Callback):
    def on_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print("Batch %d: Invalid loss, terminating training" % batch)
            self.model.stop_training = True


@export("keras.callbacks.LambdaCallback")
class LambdaCallback(Callback):
    def __init__(self, **functions):
        for name, function in functions.items():
            if function is not None:
                setattr(self, name, function)


@export("keras.callbacks.TensorBoard")
class TensorBoard(Callback):
    """Writes the numbers of each epoch as events."""

    def __init__(self, log_dir="./logs", **_):
        self.log_dir, self._writer = log_dir, None

    def on_epoch_end(self, epoch, logs=None):
        from ferroflow.core.messages import Summary
        from ferroflow.python.summary.writer import writer

        if self._writer is None:
            self._writer = writer.FileWriter(self.log_dir, self.model._graph)
        values = [Summary.Value(tag=key, simple_value=float(value)) for key, value in (logs or {}).items()]
        self._writer.add_summary(Summary(value=values), epoch)
        self._writer.flush()

    def on_train_end(self, logs=None):
        if self._writer is not None:
            self._writer.close()
