"""Coordinator: stops a group of threads together and reports the error of one."""

import contextlib
import sys
import threading
import time

from ferroflow.python.framework import errors
from ferroflow.python.platform import tf_logging as logging

# How long `join` waits for a thread that only the end of its session stops.
_BLOCKED_SECS = 1.0


class Coordinator:
    """Stops threads together: they poll `should_stop()`, any may `request_stop()`, `join` waits."""

    def __init__(self, clean_stop_exception_types=None):
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._exc_info_to_raise = None
        self._joined = False
        self._registered_threads = set()

    def _filter_exception(self, ex):
        """The exc_info to keep, or None if `ex` means a clean stop."""
        ex = ex if isinstance(ex, tuple) else (type(ex), ex, getattr(ex, "__traceback__", None))
        return None if isinstance(ex[1], self._clean_stop_exception_types) else ex

    def request_stop(self, ex=None):
        """Asks the threads to stop; `ex` is an exception or exc_info that `join` raises."""
        with self._lock:
            kept = self._filter_exception(ex) if ex is not None else None
            if self._joined:
                # join has returned: a new error is raised here.
                if kept is not None:
                    raise kept[1].with_traceback(kept[2])
                if ex is not None:
                    return
            if not self._stop_event.is_set():
                if ex is not None and self._exc_info_to_raise is None:
                    if kept is not None:
                        shown = ex[1] if isinstance(ex, tuple) else ex
                        logging.info("Error reported to Coordinator: %s, %s", type(shown), shown)
                        self._exc_info_to_raise = kept
                        if len(kept) == 3 and kept[1] is None:
                            raise ValueError("ex must be an exception or the result of sys.exc_info()")
                self._stop_event.set()

    def clear_stop(self):
        with self._lock:
            self._joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def should_stop(self):
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self):
        try:
            yield
        except BaseException:  # noqa: B902
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout=None):
        return self._stop_event.wait(timeout)

    def register_thread(self, thread):
        """Adds a thread that `join` waits for; briefly if its attribute `ends_with_session` is true."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(self, threads=None, stop_grace_period_secs=120, ignore_live_threads=False):
        """Waits for the threads, then raises the error that one of them reported."""
        with self._lock:
            if threads is None:
                threads = self._registered_threads
            else:
                threads = self._registered_threads.union(set(threads))
            threads = list(threads)
        while any(t.is_alive() for t in threads) and not self.wait_for_stop(1.0):
            pass
        now = time.monotonic()
        brief = min(stop_grace_period_secs, _BLOCKED_SECS)
        deadlines = {t: now + (brief if getattr(t, "ends_with_session", False) else stop_grace_period_secs) for t in threads}
        pause = 0.001
        while any(t.is_alive() and time.monotonic() < deadlines[t] for t in threads):
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        stragglers = [t.name for t in threads if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._exc_info_to_raise:
                _, error, trace = self._exc_info_to_raise
                raise error.with_traceback(trace)
            if stragglers:
                if not ignore_live_threads:
                    raise RuntimeError("Coordinator stopped with threads still running: %s" % " ".join(stragglers))
                logging.info("Coordinator stopped with threads still running: %s", " ".join(stragglers))

    @property
    def joined(self):
        return self._joined

    def raise_requested_exception(self):
        with self._lock:
            if self._exc_info_to_raise:
                _, error, trace = self._exc_info_to_raise
                raise error.with_traceback(trace)


class LooperThread(threading.Thread):
    """Calls `run_loop` every `timer_interval_secs`, or all the time, until the coordinator stops."""

    def __init__(self, coord, timer_interval_secs, target=None, args=None, kwargs=None):
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" % coord)
        super().__init__(daemon=True)
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._target, self._args, self._kwargs = target, args or (), kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(coord, timer_interval_secs, target, args=None, kwargs=None):
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self):
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                # The first call comes at once; lateness does not add up.
                next_time = time.time()
                while not self._coord.wait_for_stop(max(0, next_time - time.time())):
                    next_time += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self):
        pass

    def stop_loop(self):
        pass

    def run_loop(self):
        if self._target:
            self._target(*self._args, **self._kwargs)
