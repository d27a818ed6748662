"""TensorFlow's API of version 1. Names are loaded when they are first used.

The tables `_api_*.py` say where each name is defined.
"""

import importlib
import pkgutil
import sys

from ferroflow import _lazy


def _tables():
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("_api_")):
        yield importlib.import_module(f"{__name__}.{module}").NAMES


_names = _lazy.tree(_tables())
sys.meta_path.append(_lazy.Finder(__name__, _names))
sys.meta_path.append(_lazy.MlTypes)


def __getattr__(name):
    return _lazy._load(sys.modules[__name__], name)


def __dir__():
    return sorted(n for n in set(globals()) | set(_names) if not n.startswith("_"))
