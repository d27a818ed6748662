"""`TensorSpec` and `SparseTensorSpec`: the type and static shape of a value."""

from ferroflow.python.framework import dtypes, sparse_tensor, tensor_shape


class TypeSpec:
    """The type of a value."""

    __slots__ = ("_shape", "_dtype")

    def __init__(self, shape=None, dtype=dtypes.float32):
        self._shape, self._dtype = tensor_shape.as_shape(shape), dtypes.as_dtype(dtype)

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)

    def is_compatible_with(self, other):
        """Whether a value, or the values of another spec, may have this type."""
        return self._dtype.is_compatible_with(other.dtype) and self._shape.is_compatible_with(other.shape)

    def _key(self):
        shape = None if self._shape.ndims is None else tuple(self._shape.as_list())
        return type(self), shape, self._dtype

    def __eq__(self, other):
        return isinstance(other, TypeSpec) and self._key() == other._key()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self._key())


class TensorSpec(TypeSpec):
    """The type and shape of a tensor, and its name."""

    __slots__ = ("_name",)

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        super().__init__(shape, dtype)
        self._name = name

    name = property(lambda self: self._name)

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(tensor.shape, tensor.dtype.base_dtype, name or tensor.op.name)

    def __repr__(self):
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


class SparseTensorSpec(TypeSpec):
    """The type and dense shape of a sparse tensor."""

    __slots__ = ()

    value_type = sparse_tensor.SparseTensor

    @classmethod
    def from_value(cls, value):
        return cls(value.get_shape(), value.dtype.base_dtype)

    def __repr__(self):
        return f"SparseTensorSpec({self._shape}, {self._dtype!r})"
