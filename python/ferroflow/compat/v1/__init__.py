"""TensorFlow's API of version 1. Names are loaded when they are first used.

The tables `_api_*.py` say where each name is defined.
"""

import sys

from ferroflow import _lazy
from ferroflow.compat.v1 import _api_aliases, _api_core, _api_early, _api_ops, _api_platform, _api_train

_names = _lazy.tree(table.NAMES for table in (_api_core, _api_ops, _api_platform, _api_train, _api_aliases, _api_early))
sys.meta_path.append(_lazy.Finder(__name__, _names))
sys.meta_path.append(_lazy.MlTypes)
sys.meta_path.append(_lazy.Protobuf)


def __getattr__(name):
    return _lazy._load(sys.modules[__name__], name)


def __dir__():
    return sorted(n for n in set(globals()) | set(_names) if not n.startswith("_"))
