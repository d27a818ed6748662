"""Helpers of estimators: inputs and arguments."""

import inspect
import os
import time

from ferroflow.python.data.ops import dataset_ops
from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.training import session_run_hook


class DatasetInitializerHook(session_run_hook.SessionRunHook):
    """Starts the iterator of the input when a session is made."""

    def __init__(self, iterator):
        self._iterator = iterator

    def begin(self):
        self._initializer = self._iterator.initializer

    def after_create_session(self, session, coord):
        del coord
        session.run(self._initializer)


def parse_input_fn_result(result):
    """Features, labels and hooks of what an input function returned."""
    hooks = []
    if isinstance(result, dataset_ops.DatasetV2):
        iterator = dataset_ops.make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1], hooks
    return result, None, hooks


def fn_args(fn):
    """The names of the arguments of a function, a method, or a partial function."""
    if hasattr(fn, "func") and hasattr(fn, "keywords"):
        taken = set(fn.keywords or {})
        return tuple(a for a in fn_args(fn.func)[len(fn.args) :] if a not in taken)
    if not inspect.isfunction(fn) and not inspect.ismethod(fn) and hasattr(fn, "__call__"):
        fn = fn.__call__
    names = [p.name for p in inspect.signature(fn).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return tuple(names)


def takes_any_keyword(fn):
    try:
        return any(p.kind == p.VAR_KEYWORD for p in inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return False


def get_timestamped_dir(dir_base):
    """A folder below `dir_base` that is named after the time and does not exist."""
    for _ in range(10):
        result = os.path.join(dir_base, str(int(time.time())))
        if not file_io.file_exists(result):
            return result
        time.sleep(1)
        logging.warning("Directory %s already exists; retrying", result)
    raise RuntimeError("Failed to obtain a unique export directory name below " + dir_base)
