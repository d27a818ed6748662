"""Static shapes."""

import functools
import operator

from ferroflow.core._messages import message_class


class Dimension:
    """The size of one dimension, which may be unknown."""

    __slots__ = ("_value",)

    def __init__(self, value):
        if isinstance(value, int):
            if value < 0:
                raise ValueError(f"Dimension {value} must be >= 0")
            self._value = value
        elif value is None:
            self._value = None
        elif isinstance(value, Dimension):
            self._value = value._value
        else:
            try:
                self._value = int(value.__index__())
            except AttributeError:
                kind = type(value)
                raise TypeError(
                    f"Dimension value must be integer or None or have an __index__ method, got "
                    f"value '{value!r}' with type '{kind!r}'"
                ) from None
            if self._value < 0:
                raise ValueError(f"Dimension {self._value} must be >= 0")

    @property
    def value(self):
        return self._value

    def is_compatible_with(self, other):
        other = as_dimension(other)
        return self._value is None or other._value is None or self._value == other._value

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other):
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    def __repr__(self):
        return f"Dimension({self._value!r})"

    def __str__(self):
        return "?" if self._value is None else str(self._value)

    def __eq__(self, other):
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None
        return self._value == other._value

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is None or equal is NotImplemented else not equal

    def __hash__(self):
        return hash(self._value)

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return self._value

    def __long__(self):
        return self._value

    def __index__(self):
        return self._value

    def __reduce__(self):
        return Dimension, (self._value,)


def _arithmetic(name, function, compares=False):
    def method(self, other):
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None if compares else Dimension(None)
        result = function(self._value, other._value)
        return result if compares else Dimension(result)

    method.__name__ = name
    setattr(Dimension, name, method)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _function = getattr(operator, _name)
    _arithmetic(f"__{_name}__", _function)
    _arithmetic(f"__r{_name}__", lambda a, b, f=_function: f(b, a))
_arithmetic("__div__", operator.floordiv)
for _name in ("lt", "le", "gt", "ge"):
    _arithmetic(f"__{_name}__", getattr(operator, _name), compares=True)


def as_dimension(value):
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension):
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape, index):
    assert isinstance(shape, TensorShape)
    return Dimension(None) if shape.rank is None else shape.dims[index]


class TensorShape:
    """The shape of a tensor, which may be partly or wholly unknown."""

    __slots__ = ("_dims",)

    def __init__(self, dims):
        if type(dims) is tuple and all(type(d) is int and d >= 0 or d is None for d in dims):
            self._dims = dims
        elif dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif type(dims).__name__ == "TensorShapeProto":
            if dims.unknown_rank:
                self._dims = None
            else:
                self._dims = tuple(None if d.size == -1 else d.size for d in dims.dim)
        elif isinstance(dims, (str, bytes)):
            raise TypeError(f"Cannot convert {dims!r} to a shape")
        else:
            try:
                items = list(dims)
            except TypeError:
                items = [dims]
            self._dims = tuple(as_dimension(d)._value if d != -1 else _refuse(d) for d in items)

    @classmethod
    def _make(cls, dims):
        """A shape of a tuple that is already checked."""
        shape = object.__new__(cls)
        shape._dims = dims
        return shape

    @property
    def rank(self):
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self):
        return None if self._dims is None else len(self._dims)

    @property
    def dims(self):
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_list(self):
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self):
        proto = message_class("tensorflow.TensorShapeProto")()
        if self._dims is None:
            proto.unknown_rank = True
        else:
            for dim in self._dims:
                proto.dim.add(size=-1 if dim is None else dim)
            if not self._dims:
                proto.SetInParent()
        return proto

    def num_elements(self):
        if not self.is_fully_defined():
            return None
        return functools.reduce(operator.mul, self._dims, 1)

    def is_fully_defined(self):
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other):
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        if len(self._dims) != len(other._dims):
            return False
        return all(a is None or b is None or a == b for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def most_specific_compatible_shape(self, other):
        other = as_shape(other)
        if self._dims is None or other._dims is None or self.rank != other.rank:
            return unknown_shape()
        return TensorShape._make(tuple(a if a == b else None for a, b in zip(self._dims, other._dims)))

    def is_subtype_of(self, other):
        if other.rank is None:
            return True
        return self.rank == other.rank and all(b is None or a == b for a, b in zip(self._dims, other._dims))

    def merge_with(self, other):
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        return TensorShape._make(tuple(b if a is None else a for a, b in zip(self._dims, other._dims)))

    def concatenate(self, other):
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape._make(self._dims + other._dims)

    def assert_same_rank(self, other):
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank):
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank):
        if self._dims is None:
            return unknown_shape(rank)
        if len(self._dims) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")
        return self

    def with_rank_at_least(self, rank):
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank):
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self):
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key):
        if self._dims is not None:
            if isinstance(key, slice):
                return TensorShape._make(self._dims[key])
            return Dimension(self._dims[key])
        if isinstance(key, slice):
            start, stop = key.start or 0, key.stop
            if key.step is not None or stop is None or start < 0 or stop < 0:
                return unknown_shape()
            return unknown_shape(max(0, stop - start))
        return Dimension(None)

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return as_shape(other).concatenate(self)

    def __eq__(self, other):
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash(self._dims)

    def __repr__(self):
        if self._dims is None:
            return "TensorShape(None)"
        return f"TensorShape([{', '.join(f'Dimension({d})' for d in self._dims)}])"

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        words = ["?" if d is None else str(d) for d in self._dims]
        return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"

    def __reduce__(self):
        return TensorShape, (self._dims if self._dims is None else list(self._dims),)


def _refuse(dim):
    raise ValueError(f"Dimension {dim} must be >= 0")


def as_shape(shape):
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank=None, **kwargs):
    rank = kwargs.get("ndims", rank)
    return TensorShape._make(None if rank is None else (None,) * rank)


def scalar():
    return TensorShape._make(())


def vector(length):
    return TensorShape([length])


def matrix(rows, cols):
    return TensorShape([rows, cols])
