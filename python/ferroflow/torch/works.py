"""The works that the backend's calls return, and what torch shows of them."""

import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

# Seconds for which a wait outlasts the deadline of the group.
_GRACE = 10


class PendingWork(dist._Work if hasattr(dist, "_Work") else c10d.Work):
    """The pending result of a collective."""

    def __init__(self, work, result, finish=None, timeout=None):
        super().__init__()
        self._work, self._result, self._finish = work, result, finish
        self._timeout, self._future, self._is_settled = timeout, None, False
        # The first waiting thread copies results. The others wait for it.
        self._finishing = threading.Lock() if finish is not None else None

    def _completed(self):
        if self._finish is not None:
            with self._finishing:
                if self._finish is not None:
                    self._finish()
                    self._finish = None

    def wait(self, timeout=timedelta(0)):
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if not limit or limit <= 0:
            # The group has a deadline of its own, and its error names the ranks that are missing.
            limit = self._timeout and self._timeout + _GRACE
        if not self._work.wait(limit):
            raise RuntimeError(f"the collective was not complete after {limit} s")
        self._completed()
        if self._future is not None:
            self._settle(None)
        _received.source = self._work.source
        return True

    def is_completed(self):
        if not self._work.is_completed():
            return False
        if self._finish is not None and self._work.exception() is None:
            self._completed()
        return True

    def is_success(self):
        return self.is_completed() and self._work.exception() is None

    def exception(self):
        return self._work.exception()

    def synchronize(self):
        self.wait()

    def result(self):
        self.wait()
        return self._result

    def source_rank(self):
        return self._work.source

    _source_rank = source_rank

    def get_future(self):
        if self._future is None:
            self._future, self._settling = torch.futures.Future(), threading.RLock()
            if self._work.is_completed():
                # DDP reads the result right after it has waited.
                self._settle(self._work.exception())
            else:
                self._work.add_done_callback(self._settle)
        return self._future

    def _settle(self, error):
        """Completes the future: the first of the callback and `wait` does, the other waits for it.
        Callbacks of the future may wait for this work again."""
        with self._settling:
            if self._is_settled:
                return
            self._is_settled = True
            if error is None:
                try:
                    self._completed()
                except Exception as e:
                    error = e
            if error is not None:
                self._future.set_exception(error)
            else:
                self._future.set_result(self._result)


# The sender of the message that this thread received last.
_received = threading.local()


# The type of operation of works that wrap those of Python backends.
_UNKNOWN = 100


def uncover_works():
    """Lets torch's works report whether they are complete, and the sender of a message.

    torch wraps the works of Python backends in works that can wait and have a future, but lack
    these methods. The new methods read the future, and keep the sender for `dist.recv`, which
    reads it after its wait.
    """
    of_torch = {name: getattr(c10d.Work, name)
                for name in ("is_completed", "is_success", "exception", "result", "_source_rank")}

    def future_of(work):
        try:
            return work.get_future() if work._get_op_type() == _UNKNOWN else None
        except (RuntimeError, AttributeError):
            return None

    def exception_of(future):
        try:
            future.value()
        except Exception as e:
            return e
        return None

    def is_completed(work):
        future = future_of(work)
        return of_torch["is_completed"](work) if future is None else future.done()

    def is_success(work):
        future = future_of(work)
        if future is None:
            return of_torch["is_success"](work)
        return future.done() and exception_of(future) is None

    def exception(work):
        future = future_of(work)
        if future is None:
            return of_torch["exception"](work)
        return exception_of(future) if future.done() else None

    def result(work):
        future = future_of(work)
        return of_torch["result"](work) if future is None else future.wait()

    def source_rank(work):
        try:
            return of_torch["_source_rank"](work)
        except RuntimeError:
            source = getattr(_received, "source", None)
            if source is None:
                raise
            return source

    replaced = (is_completed, is_success, exception, result, source_rank)
    for name, function in zip(of_torch, replaced):
        setattr(c10d.Work, name, function)


class SeveralWorks:
    """Several works as one."""

    def __init__(self, works):
        self._works = works

    @property
    def source(self):
        return self._works[-1].source if self._works else 0

    def wait(self, timeout=None):
        return all([w.wait(timeout) for w in self._works])

    def is_completed(self):
        return all(w.is_completed() for w in self._works)

    def exception(self):
        return next((e for e in (w.exception() for w in self._works) if e is not None), None)

    def add_done_callback(self, callback):
        left = [len(self._works)]
        if not self._works:
            callback(None)
            return

        def one(_):
            # Callbacks run one after the other, on one thread.
            left[0] -= 1
            if left[0] == 0:
                callback(self.exception())
        for work in self._works:
            work.add_done_callback(one)
