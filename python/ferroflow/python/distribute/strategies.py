"""`tf.distribute` with one replica: programs that were made for several devices run on the one there is."""

import contextlib
import enum
import threading

from ferroflow.python.framework import ops
from ferroflow.python.util.api import export

_current = threading.local()


@export("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    SUM = "SUM"
    MEAN = "MEAN"


@export("distribute.Strategy")
class Strategy:
    """One replica, on the devices that the graph says."""

    num_replicas_in_sync = 1

    def __init__(self, device=None):
        self._device = device

    @contextlib.contextmanager
    def scope(self):
        before = getattr(_current, "strategy", None)
        _current.strategy = self
        try:
            with ops.device(self._device) if self._device else contextlib.nullcontext():
                yield self
        finally:
            _current.strategy = before

    def experimental_run_v2(self, fn, args=(), kwargs=None):
        with self.scope():
            return fn(*args, **(kwargs or {}))

    run = experimental_run_v2

    def reduce(self, reduce_op, value, axis=None):
        from ferroflow.python.ops import math_ops

        if axis is None:
            return value
        return (math_ops.reduce_sum if reduce_op in (ReduceOp.SUM, "SUM", "sum") else math_ops.reduce_mean)(value, axis=axis)

    def experimental_local_results(self, value):
        return (value,)

    unwrap = experimental_local_results

    def experimental_distribute_dataset(self, dataset):
        return dataset


@export("distribute.OneDeviceStrategy", "contrib.distribute.OneDeviceStrategy")
class OneDeviceStrategy(Strategy):
    def __init__(self, device):
        super().__init__(device)


@export("distribute.MirroredStrategy", "contrib.distribute.MirroredStrategy")
class MirroredStrategy(Strategy):
    """Several devices of one process are not supported; `ferroflow.hvd` has a process for each."""

    def __init__(self, devices=None, num_gpus=None, num_gpus_per_worker=None, cross_device_ops=None, **_):
        del cross_device_ops
        count = len(devices) if devices else num_gpus or num_gpus_per_worker or 1
        if count > 1:
            raise NotImplementedError("MirroredStrategy: %d devices in one process are not supported; start a process for each with "
                                      "`ferroflow run -np %d` and use ferroflow.hvd" % (count, count))
        super().__init__(devices[0] if devices else None)


@export("distribute.has_strategy")
def has_strategy():
    return getattr(_current, "strategy", None) is not None


@export("distribute.get_strategy")
def get_strategy():
    return getattr(_current, "strategy", None) or Strategy()
