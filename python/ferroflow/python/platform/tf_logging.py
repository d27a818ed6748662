"""`tf.logging`."""

import logging as _logging
import sys as _sys
import threading as _threading
import time as _time

DEBUG, INFO, WARN, ERROR, FATAL = _logging.DEBUG, _logging.INFO, _logging.WARN, _logging.ERROR, _logging.FATAL
_LETTERS = {FATAL: "F", ERROR: "E", WARN: "W", INFO: "I", DEBUG: "D"}
_NAMES = {FATAL: "FATAL", ERROR: "ERROR", WARN: "WARN", INFO: "INFO", DEBUG: "DEBUG"}
_lock = _threading.Lock()
_state = {}
_counts = {}


def get_logger():
    """The logger `tensorflow`, as in TensorFlow, so that programs that configure it still do."""
    logger = _state.get("logger")
    if logger is not None:
        return logger
    with _lock:
        if "logger" not in _state:
            logger = _logging.getLogger("tensorflow")
            if not _logging.getLogger().handlers and not logger.handlers:
                interactive = hasattr(_sys, "ps1") or bool(_sys.flags.interactive)
                if interactive:
                    logger.setLevel(INFO)
                handler = _logging.StreamHandler(_sys.stdout if interactive else _sys.stderr)
                handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT, None))
                logger.addHandler(handler)
            _state["logger"] = logger
    return _state["logger"]


def log(level, msg, *args, **kwargs):
    get_logger().log(level, msg, *args, **kwargs)


def debug(msg, *args, **kwargs):
    get_logger().debug(msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    get_logger().info(msg, *args, **kwargs)


def warn(msg, *args, **kwargs):
    get_logger().warning(msg, *args, **kwargs)


warning = warn


def error(msg, *args, **kwargs):
    get_logger().error(msg, *args, **kwargs)


def fatal(msg, *args, **kwargs):
    get_logger().fatal(msg, *args, **kwargs)


def vlog(level, msg, *args, **kwargs):
    get_logger().log(level, msg, *args, **kwargs)


def get_verbosity():
    return get_logger().getEffectiveLevel()


def set_verbosity(v):
    get_logger().setLevel(_NAMES.get(v, v) if v != WARN else WARN)


def flush():
    for handler in get_logger().handlers:
        handler.flush()


def _count(key):
    _counts[key] = _counts.get(key, -1) + 1
    return _counts[key]


def log_every_n(level, msg, n, *args):
    log_if(level, msg, _count((_caller(), msg)) % n == 0, *args)


def log_first_n(level, msg, n, *args):
    log_if(level, msg, _count((_caller(), msg)) < n, *args)


def log_if(level, msg, condition, *args):
    if condition:
        vlog(level, msg, *args)


def _caller():
    frame = _sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def TaskLevelStatusMessage(msg):  # pylint: disable=invalid-name
    error(msg)


def google2_log_prefix(level, timestamp=None, file_and_line=None):
    now = timestamp or _time.time()
    parts = _time.localtime(now)
    file, line = file_and_line or _caller()
    return f"{_LETTERS.get(level, 'I')}{_time.strftime('%m%d %H:%M:%S', parts)}.{int(now % 1 * 1e6):06d} {file}:{line}] "
