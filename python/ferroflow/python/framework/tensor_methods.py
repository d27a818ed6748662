"""The methods of `Tensor` that are written in Python. `ops/math_ops.py` adds the operators."""

from ferroflow import _ferroflow
from ferroflow.python.framework import errors_impl, ops, tensor_shape

Tensor = _ferroflow.Tensor
TensorShape = tensor_shape.TensorShape

OVERLOADABLE_OPERATORS = {
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__div__", "__rdiv__",
    "__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__",
    "__lt__", "__le__", "__gt__", "__ge__", "__ne__", "__eq__", "__and__", "__rand__", "__or__",
    "__ror__", "__xor__", "__rxor__", "__getitem__", "__pow__", "__rpow__", "__invert__",
    "__neg__", "__abs__", "__matmul__", "__rmatmul__",
}  # fmt: skip


def shape(self):
    return TensorShape._make(self._dims)


def get_shape(self):
    return TensorShape._make(self._dims)


def set_shape(self, shape):  # pylint: disable=redefined-outer-name
    self._merge_shape(shape)


def _shape_as_list(self):
    dims = self._dims
    return None if dims is None else list(dims)


def eval(self, feed_dict=None, session=None):  # pylint: disable=redefined-builtin
    return ops._eval_using_default_session(self, feed_dict, self.graph, session)


def __iter__(self):
    raise errors_impl.OperatorNotAllowedInGraphError(
        "Iterating over a symbolic `tf.Tensor` is not allowed: it has no elements before a step runs. Use `tf.unstack`, "
        "or `tf.map_fn` for a first dimension that is unknown."
    )


def __len__(self):
    raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}). Please call `x.shape` rather than `len(x)` for shape information.")


def __bool__(self):
    raise errors_impl.OperatorNotAllowedInGraphError(
        "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` instead of `if t:` to test if a "
        "tensor is defined, and use TensorFlow ops such as tf.cond to execute subgraphs conditioned on the value of a tensor."
    )


def __array__(self, dtype=None, copy=None):
    del dtype, copy
    raise NotImplementedError(
        f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This error may indicate that you're trying "
        "to pass a Tensor to a NumPy call, which is not supported."
    )


def __str__(self):
    dims = self._dims
    text = "" if dims is None else f", shape={get_shape(self)}"
    device = self.op.device
    device = f", device={device}" if device else ""
    return f'Tensor("{self.name}"{text}, dtype={self.dtype.name}{device})'


def _as_node_def_input(self):
    return self.op.name if self.value_index == 0 else f"{self.op.name}:{self.value_index}"


def experimental_ref(self):
    return _Reference(self)


class _Reference:
    """Holds a tensor where equality means identity."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        return self._wrapped

    def __eq__(self, other):
        return isinstance(other, _Reference) and self._wrapped is other._wrapped

    def __hash__(self):
        return id(self._wrapped)


def _override_operator(cls, operator, func):
    if operator not in OVERLOADABLE_OPERATORS:
        raise ValueError(f"Overriding {operator} is disallowed")
    setattr(cls, operator, func)


Tensor.shape = property(shape)
Tensor.get_shape = get_shape
Tensor.set_shape = set_shape
Tensor._shape_as_list = _shape_as_list
Tensor._shape_tuple = lambda self: self._dims
Tensor.ndim = property(lambda self: self._rank)
Tensor.eval = eval
Tensor.__iter__ = __iter__
Tensor.__len__ = __len__
Tensor.__bool__ = __bool__
Tensor.__array__ = __array__
Tensor.__str__ = __str__
Tensor.__array_priority__ = 100
Tensor._as_node_def_input = _as_node_def_input
Tensor.experimental_ref = experimental_ref
Tensor.ref = experimental_ref
Tensor._id = property(id)
Tensor._override_operator = classmethod(_override_operator)
Tensor.OVERLOADABLE_OPERATORS = OVERLOADABLE_OPERATORS

from ferroflow.python.framework import operator_stubs  # noqa: E402  pylint: disable=wrong-import-position

operator_stubs.install(Tensor)
