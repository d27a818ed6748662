"""`tf.logging`: the logger "tensorflow" of Python's logging module, with TensorFlow's functions."""

import collections
import logging as _logging
import os
import sys
import threading
import traceback
from logging import DEBUG, ERROR, FATAL, INFO, WARN  # noqa: F401

_logger = None
_logger_lock = threading.Lock()
_counts = collections.Counter()
_counts_lock = threading.Lock()
_LEVEL_NAMES = {FATAL: "FATAL", ERROR: "ERROR", WARN: "WARN", INFO: "INFO", DEBUG: "DEBUG"}
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class _Logger(_logging.Logger):
    """Reports the line that called `tf.logging`, not the line in this module."""

    def findCaller(self, stack_info=False, stacklevel=1):  # pylint: disable=invalid-name
        frame = sys._getframe(1)
        while frame is not None:
            path = frame.f_code.co_filename
            if path != __file__ and os.path.basename(os.path.dirname(path)) != "logging":
                break
            frame = frame.f_back
        if frame is None:
            return "(unknown file)", 0, "(unknown function)", None
        text = "".join(traceback.format_stack(frame)) if stack_info else None
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, text


def get_logger():
    """The logger. The first call gives it a handler unless the program configured logging."""
    global _logger
    if _logger is not None:
        return _logger
    with _logger_lock:
        if _logger is not None:
            return _logger
        old = _logging.getLoggerClass()
        _logging.setLoggerClass(_Logger)
        try:
            logger = _logging.getLogger("tensorflow")
        finally:
            _logging.setLoggerClass(old)
        if not _logging.getLogger().handlers and not logger.handlers:
            interactive = bool(getattr(sys, "ps1", None)) or bool(sys.flags.interactive)
            if interactive:
                logger.setLevel(INFO)
            handler = _logging.StreamHandler(sys.stdout if interactive else sys.stderr)
            handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT, None))
            logger.addHandler(handler)
        _logger = logger
        return _logger


def log(level, msg, *args, **kwargs):
    get_logger().log(level, msg, *args, **kwargs)


def debug(msg, *args, **kwargs):
    get_logger().debug(msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    get_logger().info(msg, *args, **kwargs)


def warning(msg, *args, **kwargs):
    get_logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg, *args, **kwargs):
    get_logger().error(msg, *args, **kwargs)


def fatal(msg, *args, **kwargs):
    get_logger().fatal(msg, *args, **kwargs)


def vlog(level, msg, *args, **kwargs):
    get_logger().log(level, msg, *args, **kwargs)


def error_log(error_msg, *args, level=ERROR, **kwargs):
    log(level, error_msg, *args, **kwargs)


def log_if(level, msg, condition, *args):
    if condition:
        vlog(level, msg, *args)


def _count_of_caller():
    frame = sys._getframe(2)
    key = (frame.f_code.co_filename, frame.f_lineno)
    with _counts_lock:
        count = _counts[key]
        _counts[key] += 1
    return count


def log_every_n(level, msg, n, *args):
    """Logs the first of every `n` calls from one line of a program."""
    count = _count_of_caller()
    log_if(level, msg, not count % n, *args)


def log_first_n(level, msg, n, *args):
    """Logs the first `n` calls from one line of a program."""
    count = _count_of_caller()
    log_if(level, msg, count < n, *args)


def TaskLevelStatusMessage(msg):  # pylint: disable=invalid-name
    error(msg)


def flush():
    for handler in get_logger().handlers:
        handler.flush()


def get_verbosity():
    return get_logger().getEffectiveLevel()


def set_verbosity(v):
    """Sets the least level that is logged: a constant of this module or its name."""
    get_logger().setLevel(v)


def google2_log_prefix(level, timestamp=None, file_and_line=None):
    """The prefix that TensorFlow's own C++ log lines have."""
    import time

    now = timestamp or time.time()
    at = time.localtime(now)
    filename, line = file_and_line or (sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno)
    severity = {FATAL: "F", ERROR: "E", WARN: "W"}.get(level, "I")
    micros = int(1e6 * (now % 1.0))
    return "%c%02d%02d %02d:%02d:%02d.%06d %5d %s:%d] " % (
        severity, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, micros,
        threading.get_ident() % 100000, os.path.basename(filename), line,
    )
