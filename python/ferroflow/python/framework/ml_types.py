"""The numpy dtype `bfloat16` where the package ml_dtypes is not installed.

Arrays that were pickled elsewhere name `ml_dtypes.bfloat16`, so this type has that name too.
"""

import ctypes
import importlib.machinery

import numpy as np

from ferroflow import _ferroflow


class bfloat16(_ferroflow.bfloat16_base(np.generic)):  # pylint: disable=invalid-name
    """A scalar. numpy keeps its bits after the head of the object."""

    __slots__ = ()

    def __new__(cls, value=0.0):
        return np.array(float(value), np.float32).astype(np.dtype(cls))[()]

    def __float__(self):
        bits = ctypes.c_uint16.from_address(id(self) + object.__basicsize__).value << 16
        return float(np.array(bits, np.uint32).view(np.float32))

    def __int__(self):
        return int(float(self))

    def __bool__(self):
        return float(self) != 0

    def __lt__(self, other):
        return float(self) < other

    def __le__(self, other):
        return float(self) <= other

    def __gt__(self, other):
        return float(self) > other

    def __ge__(self, other):
        return float(self) >= other

    def __eq__(self, other):
        return float(self) == other

    def __ne__(self, other):
        return float(self) != other

    def __hash__(self):
        return hash(float(self))

    def __format__(self, spec):
        return format(float(self), spec) if spec else str(self)

    def __repr__(self):
        return "%g" % float(self)

    __str__ = __repr__


bfloat16.__module__ = "ml_dtypes"


def register():
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
