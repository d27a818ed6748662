"""Ferroflow: distributed TensorFlow 1.x without TensorFlow.

`import ferroflow.compat.v1 as tf` is the front end; `import ferroflow as tf` finds the same names.
"""

__version__ = "0.1.0"


def __getattr__(name):
    import importlib

    if name.startswith("__"):
        raise AttributeError(f"module 'ferroflow' has no attribute {name!r}")
    return getattr(importlib.import_module("ferroflow.compat.v1"), name)


def __dir__():
    import ferroflow.compat.v1 as tf

    return sorted(set(globals()) | set(dir(tf)))
