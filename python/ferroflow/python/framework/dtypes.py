"""Data types."""

import builtins
import functools

import numpy as np

from ferroflow.core._messages import enum_type

# Number, name, name in C++, numpy's type, bytes.
_TABLE = [
    (1, "float32", np.float32),
    (2, "float64", np.float64),
    (3, "int32", np.int32),
    (4, "uint8", np.uint8),
    (5, "int16", np.int16),
    (6, "int8", np.int8),
    (7, "string", object),
    (8, "complex64", np.complex64),
    (9, "int64", np.int64),
    (10, "bool", np.bool_),
    (11, "qint8", None),
    (12, "quint8", None),
    (13, "qint32", None),
    (14, "bfloat16", None),
    (15, "qint16", None),
    (16, "quint16", None),
    (17, "uint16", np.uint16),
    (18, "complex128", np.complex128),
    (19, "float16", np.float16),
    (20, "resource", object),
    (21, "variant", object),
    (22, "uint32", np.uint32),
    (23, "uint64", np.uint64),
    (24, "float8_e5m2", None),
    (25, "float8_e4m3fn", None),
    (29, "int4", None),
    (30, "uint4", None),
]
_QUANTIZED = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}
_SIZES = {14: 2, 24: 1, 25: 1, 29: 1, 30: 1}


@functools.lru_cache(None)
def _extension_type(name):
    """A type that numpy knows only through ml_dtypes, or `ml_types` in its place."""
    try:
        import ml_dtypes

        return getattr(ml_dtypes, name)
    except (ImportError, AttributeError):
        return None


class DType:
    """The type of a tensor's elements."""

    __slots__ = ("_type_enum", "_name", "_numpy")

    def __init__(self, type_enum):
        for number, name, numpy_type in _TABLE:
            if number == int(type_enum) % 100:
                self._type_enum, self._name, self._numpy = int(type_enum), name, numpy_type
                return
        raise TypeError(f"type_enum {type_enum} is not a valid types_pb2.DataType.")

    @property
    def name(self):
        return self._name + ("_ref" if self._is_ref_dtype else "")

    @property
    def _is_ref_dtype(self):
        return self._type_enum > 100

    @property
    def _as_ref(self):
        return self if self._is_ref_dtype else as_dtype(self._type_enum + 100)

    @property
    def base_dtype(self):
        return as_dtype(self._type_enum - 100) if self._is_ref_dtype else self

    @property
    def real_dtype(self):
        base = self.base_dtype
        return {"complex64": float32, "complex128": float64}.get(base._name, base)

    @property
    def as_datatype_enum(self):
        return self._type_enum

    @property
    def as_numpy_dtype(self):
        if self._numpy is not None:
            return self._numpy
        if self._name in _QUANTIZED:
            return np.dtype([(self._name, _QUANTIZED[self._name])])
        found = _extension_type(self._name)
        if found is not None:
            return found
        return np.dtype([(self._name, np.uint16 if self.size == 2 else np.uint8)])

    @property
    def is_numpy_compatible(self):
        return self._name not in ("resource", "variant")

    @property
    def is_bool(self):
        return self.base_dtype._name == "bool"

    @property
    def is_integer(self):
        return self._name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int4", "uint4")

    @property
    def is_floating(self):
        return self._name in ("float16", "float32", "float64", "bfloat16", "float8_e5m2", "float8_e4m3fn")

    @property
    def is_complex(self):
        return self._name in ("complex64", "complex128")

    @property
    def is_quantized(self):
        return self._name in _QUANTIZED

    @property
    def is_unsigned(self):
        return self._name in ("uint8", "uint16", "uint32", "uint64", "uint4")

    @property
    def size(self):
        if self._name in ("string", "resource", "variant"):
            return 1
        number = self._type_enum % 100
        return _SIZES.get(number) or np.dtype(self.as_numpy_dtype).itemsize

    @property
    def min(self):
        return self._limit("min")

    @property
    def max(self):
        return self._limit("max")

    @property
    def limits(self, clip_negative=True):
        """The range of values in an image of this type."""
        if self._name in ("float32", "float64"):
            low, high = -1, 1
        elif self._name in ("bool", "float16") or not (self.is_integer or self.is_bool):
            raise ValueError(f"{self!r} does not have defined limits.")
        else:
            low, high = self.min, self.max
        return (0 if clip_negative else low), high

    def _limit(self, which):
        if self.is_quantized or self.base_dtype._name in ("bool", "string", "complex64", "complex128", "resource", "variant"):
            raise TypeError(f"Cannot find {which}imum value of {self!r}.")
        if self._name == "bfloat16":
            return float.fromhex("0x1.FEp127") * (1 if which == "max" else -1)
        kind = np.finfo if self.is_floating else np.iinfo
        return getattr(kind(self.as_numpy_dtype), which)

    def is_compatible_with(self, other):
        other = as_dtype(other)
        return self._type_enum in (other._type_enum, other.base_dtype._type_enum)

    def __eq__(self, other):
        if other is None:
            return False
        if type(other) is int:
            return self._type_enum == other
        if type(other) is not DType:
            try:
                other = as_dtype(other)
            except TypeError:
                return False
        return self._type_enum == other._type_enum

    def __ne__(self, other):
        return not self.__eq__(other)

    def __hash__(self):
        return self._type_enum

    def __int__(self):
        return self._type_enum

    def __str__(self):
        return f"<dtype: {self.name!r}>"

    def __repr__(self):
        return "tf." + self.name

    def __reduce__(self):
        return as_dtype, (self.name,)


_BY_NUMBER = {}
for _number, _name, _ in _TABLE:
    for _offset, _suffix in ((0, ""), (100, "_ref")):
        _BY_NUMBER[_number + _offset] = DType(_number + _offset)
        globals()[_name + _suffix] = _BY_NUMBER[_number + _offset]
double, half = float64, float16  # noqa: F821
double_ref, half_ref = float64_ref, float16_ref  # noqa: F821

_BY_NAME = {dtype.name: dtype for dtype in _BY_NUMBER.values()}
_BY_NAME.update(
    half=_BY_NUMBER[19],
    float=_BY_NUMBER[1],
    double=_BY_NUMBER[2],
    half_ref=_BY_NUMBER[119],
    float_ref=_BY_NUMBER[101],
    double_ref=_BY_NUMBER[102],
    object=_BY_NUMBER[7],
    str=_BY_NUMBER[7],
    int=_BY_NUMBER[3],
)
_BY_NUMPY = {np.dtype(t): _BY_NUMBER[n] for n, _, t in _TABLE if t not in (None, object)}
_BY_PYTHON = {float: _BY_NUMBER[1], builtins.bool: _BY_NUMBER[10], object: _BY_NUMBER[7], int: _BY_NUMBER[3], str: _BY_NUMBER[7], bytes: _BY_NUMBER[7]}
_BY_PYTHON_PLAIN = {float: _BY_NUMBER[1], builtins.bool: _BY_NUMBER[10], object: _BY_NUMBER[7]}


def as_dtype(type_value):
    """A `DType` from a number, a name, a numpy or a Python type."""
    if type(type_value) is DType:
        return type_value
    try:
        found = _BY_PYTHON_PLAIN.get(type_value)
        if found is not None:
            return found
        found = _BY_NUMBER.get(type_value) or _BY_NAME.get(type_value)
        if found is not None:
            return found
    except TypeError:
        pass
    if isinstance(type_value, np.dtype) or isinstance(type_value, type):
        try:
            return _from_numpy(np.dtype(type_value))
        except TypeError:
            pass
    if hasattr(type_value, "dtype"):
        try:
            return _from_numpy(np.dtype(type_value.dtype)) if isinstance(type_value.dtype, (np.dtype, type)) else as_dtype(type_value.dtype)
        except TypeError:
            pass
    raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")


def _from_numpy(dtype):
    found = _BY_NUMPY.get(dtype)
    if found is not None:
        return found
    if dtype.kind in "SUO":
        return _BY_NUMBER[7]
    if dtype.names and len(dtype.names) == 1 and dtype.names[0] in _BY_NAME:
        return _BY_NAME[dtype.names[0]]
    if dtype.name in _BY_NAME:
        return _BY_NAME[dtype.name]
    if dtype.newbyteorder("=") in _BY_NUMPY:
        return _BY_NUMPY[dtype.newbyteorder("=")]
    raise TypeError(f"Cannot convert numpy dtype {dtype} to a TensorFlow DType.")


QUANTIZED_DTYPES = frozenset(_BY_NAME[n] for n in _QUANTIZED)
all_dtypes = list(_BY_NUMBER.values())


def array_types():
    """`numpy.dtype` by number, for Rust."""
    found = {}
    for number, name, _ in _TABLE:
        if name not in ("string", "resource", "variant", "bfloat16"):
            found[number] = np.dtype(_BY_NUMBER[number].as_numpy_dtype)
    return found


def _enum():
    return enum_type("tensorflow.DataType")
