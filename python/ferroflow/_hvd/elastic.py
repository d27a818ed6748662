"""Elastic training: runs a function again when ranks are lost or join."""

import copy
import functools

from . import core
from .errors import HorovodInternalError, HostsUpdatedInterrupt


class State:
    """What a training commits, restores and synchronizes. See `run`."""

    def __init__(self, bcast_object=None, get_rank=None):
        self._bcast_object = bcast_object or _broadcast_state
        self._rank = get_rank or core.rank
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """Functions that are called after the ranks have changed, e.g. to scale a learning rate."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp=None, update_res=None):
        """For compatibility: each commit polls the driver."""

    def commit(self):
        """Saves the state. If new ranks wait, all ranks stop here and reconnect."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """Stops on all ranks if new ranks wait to join."""
        import numpy as np

        from . import arrays
        wanted = np.array([core.has_newcomers()], np.uint8)
        if arrays.allreduce(wanted, name="elastic.wanted", op=core.Max)[0]:
            raise HostsUpdatedInterrupt()

    def save(self):
        raise NotImplementedError

    def restore(self):
        raise NotImplementedError

    def sync(self):
        raise NotImplementedError

    def reset(self):
        """After the ranks have changed, before the state is synchronized."""


def _broadcast_state(obj):
    """The object of rank 0."""
    from . import arrays
    return arrays.broadcast_object(obj, 0, "elastic.state")


class ObjectState(State):
    """A state of plain values, which are attributes. `bcast_object(obj)` returns the object of
    rank 0."""

    def __init__(self, bcast_object=None, get_rank=None, **kwargs):
        super().__init__(bcast_object, get_rank)
        self._saved_state = dict(kwargs)
        for name, value in kwargs.items():
            object.__setattr__(self, name, value)
        self._saved_state = copy.deepcopy(self._saved_state)

    def save(self):
        self._saved_state = {n: copy.deepcopy(getattr(self, n)) for n in self._saved_state}

    def restore(self):
        for name, value in self._saved_state.items():
            object.__setattr__(self, name, copy.deepcopy(value))

    def sync(self):
        if self._saved_state:
            self.save()
            self._saved_state = self._bcast_object(self._saved_state)
            self.restore()


def runner(*lost, restart=core.restart):
    """The function `run` of a framework that raises exceptions of the classes `lost` when a rank is
    lost. `restart` connects the ranks again."""
    lost += (HorovodInternalError,)

    def run(func):
        """Makes `func(state, ...)` elastic.

        Before each call all ranks have the state of rank 0. When a rank is lost, the state of the
        last commit is restored on the others, which reconnect and call `func` again. If the job
        is not elastic, that is an error.
        """
        @functools.wraps(func)
        def wrapper(state, *args, **kwargs):
            changed, skip_sync = False, False
            while True:
                try:
                    if changed:
                        restart()
                        state.on_reset()
                    if not skip_sync:
                        state.sync()
                    changed, skip_sync = False, False
                    return func(state, *args, **kwargs)
                except HostsUpdatedInterrupt as e:
                    changed, skip_sync = True, e.skip_sync
                except Exception as e:
                    if not isinstance(e, lost) and core.failure() is None:
                        raise
                    # Other ranks of a job that is not elastic do not come back.
                    if not core.is_elastic() and core.is_initialized() and core.size() > 1:
                        raise
                    state.restore()
                    changed, skip_sync = True, False
        return wrapper

    return run


run = runner()


def run_fn(func, reset=None):
    """The same as `run`. A job that is not elastic calls `reset` to connect its ranks again; the
    ranks of an elastic job reconnect by themselves."""
    if reset is None or core.is_elastic():
        return run(func)
    return runner(restart=reset)(func)
