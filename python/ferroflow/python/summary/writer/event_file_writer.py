"""Writes events to a file from a thread of its own."""

import collections
import os
import socket
import threading
import time

from ferroflow.core.util import event_pb2
from ferroflow.python.lib.io import file_io, tf_record


class EventsWriter:
    """An events file. Its first event has the version of the format."""

    def __init__(self, prefix, suffix=""):
        self._prefix, self._suffix, self._file, self._name = prefix, suffix, None, None

    def _open(self):
        now = time.time()
        self._name = "%s.out.tfevents.%010d.%s%s" % (self._prefix, int(now), socket.gethostname(), self._suffix)
        # Two writers of one second share the file.
        fresh = not os.path.exists(self._name)
        self._file = open(self._name, "ab")  # noqa: SIM115
        if fresh:
            self.write(event_pb2.Event(wall_time=now, file_version="brain.Event:2"))

    @property
    def name(self):
        if self._file is None:
            self._open()
        return self._name

    def write(self, event):
        if self._file is None:
            self._open()
        self._file.write(tf_record.frame(event.SerializeToString()))

    def flush(self):
        if self._file is None:
            self._open()
        self._file.flush()

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None


class EventFileWriter:
    """Puts events in a queue that a thread writes to a file."""

    def __init__(self, logdir, max_queue=10, flush_secs=120, filename_suffix=None):
        self._logdir = os.fspath(logdir)
        file_io.recursive_create_dir(self._logdir)
        self._max_queue, self._flush_secs = max(1, max_queue), flush_secs
        self._suffix = filename_suffix or ""
        self._closed = False
        self._start()

    def _start(self):
        self._writer = EventsWriter(os.path.join(self._logdir, "events"), self._suffix)
        self._events = collections.deque()
        self._changed = threading.Condition()
        self._busy, self._stop, self._error = False, False, None
        self._thread = threading.Thread(target=self._run, daemon=True, name="EventLoggerThread")
        self._thread.start()

    def _run(self):
        next_flush = time.monotonic() + self._flush_secs
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._events and not self._stop:
                    left = next_flush - time.monotonic()
                    if left <= 0 or not self._changed.wait(left):
                        break
                events = list(self._events)
                self._events.clear()
                stop = self._stop
                self._busy = bool(events)
                self._changed.notify_all()
            try:
                for event in events:
                    self._writer.write(event)
                if time.monotonic() >= next_flush:
                    self._writer.flush()
                    next_flush = time.monotonic() + self._flush_secs
            except Exception as e:  # pylint: disable=broad-except
                # The program sees the error at its next call.
                with self._changed:
                    self._error, self._busy = e, False
                    self._changed.notify_all()
                return
            if stop and not events:
                return

    def _raise_error(self):
        if self._error is not None:
            raise self._error

    def get_logdir(self):
        return self._logdir

    def reopen(self):
        """Opens another file, if this writer was closed."""
        if self._closed:
            self._closed = False
            self._start()

    def add_event(self, event):
        if self._closed:
            return
        with self._changed:
            self._raise_error()
            while len(self._events) >= self._max_queue and self._error is None:
                self._changed.wait()
            self._raise_error()
            self._events.append(event)
            self._changed.notify_all()

    def flush(self):
        """Waits until all events are in the file."""
        if self._closed:
            return
        with self._changed:
            while (self._events or self._busy) and self._error is None:
                self._changed.wait()
            self._raise_error()
            self._writer.flush()

    def close(self):
        if self._closed:
            return
        try:
            self.flush()
        finally:
            with self._changed:
                self._stop = True
                self._changed.notify_all()
            self._thread.join()
            self._writer.close()
            self._closed = True
