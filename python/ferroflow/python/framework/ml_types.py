"""The numpy dtype `bfloat16` where the package ml_dtypes is not installed.

Arrays that were pickled elsewhere name `ml_dtypes.bfloat16`, so this type has that name too.
"""

import ctypes
import importlib.machinery

import numpy as np


class bfloat16(np.float16):  # pylint: disable=invalid-name
    """A scalar. It has the size of its base class, but other bits."""

    def __float__(self):
        # The bits follow the head of the object. Methods of the base class would ask for the value.
        bits = ctypes.c_uint16.from_address(id(self) + object.__basicsize__).value << 16
        return float(np.array(bits, np.uint32).view(np.float32))

    def __int__(self):
        return int(float(self))

    def __bool__(self):
        return float(self) != 0

    def __eq__(self, other):
        return float(self) == other

    def __ne__(self, other):
        return float(self) != other

    def __hash__(self):
        return hash(float(self))

    def __repr__(self):
        return repr(float(self))

    __str__ = __repr__


bfloat16.__module__ = "ml_dtypes"


def register():
    from ferroflow import _ferroflow

    _ferroflow.register_bfloat16(bfloat16)
    return bfloat16


class Finder:
    """Finds `ml_dtypes` if it is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "ml_dtypes":
            return None
        return importlib.machinery.ModuleSpec(name, Finder)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.bfloat16 = register()
