"""Ferroflow: distributed TensorFlow 1.x without TensorFlow.

`import ferroflow.compat.v1 as tf` is the front end; `import ferroflow as tf` finds the same names.
"""

import sys

from ferroflow import _module_aliases

__version__ = "0.1.0"


def __getattr__(name):
    import importlib

    if name.startswith("__"):
        raise AttributeError(f"module 'ferroflow' has no attribute {name!r}")
    if name == "run":
        # Horovod's users call `horovod.run`.
        return importlib.import_module("ferroflow._hvd.launch").run
    return getattr(importlib.import_module("ferroflow.compat.v1"), name)


class _Front:
    """Finds modules such as `ferroflow.contrib.slim`, which stand for those of the front end."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        import importlib.machinery

        if not name.startswith("ferroflow.") or name.startswith("ferroflow.compat"):
            return None
        import ferroflow.compat.v1 as tf

        at = tf._names
        for part in name.split(".")[1:]:
            at = at.get(part) if isinstance(at, dict) else None
        if at is None or isinstance(at, tuple) and at[1] is not None:
            return None
        return importlib.machinery.ModuleSpec(name, _Front, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        import importlib

        sys.modules[module.__name__] = importlib.import_module("ferroflow.compat.v1" + module.__name__[len("ferroflow") :])


sys.meta_path.append(_Front)
sys.meta_path.append(_module_aliases.Finder)


def __dir__():
    import ferroflow.compat.v1 as tf

    return sorted(set(globals()) | set(dir(tf)))
