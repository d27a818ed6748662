"""Python's operators on tensors."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops


def _add(x, y, name):
    if x.dtype == dtypes.string:
        return gen_ops.Add(x, y, name=name)
    return gen_ops.AddV2(x, y, name=name)


def _mul(x, y, name):
    if isinstance(y, sparse_tensor.SparseTensor):
        values = gen_ops.SparseDenseCwiseMul(y.indices, y.values, y.dense_shape, x, name=name)
        return sparse_tensor.SparseTensor(y.indices, values, y.dense_shape)
    return gen_ops.Mul(x, y, name=name)


def _truediv(x, y, name):
    return math_ops.truediv(x, y, name=name)


def _and(x, y, name):
    return (gen_ops.LogicalAnd if x.dtype == dtypes.bool else gen_ops.BitwiseAnd)(x, y, name=name)


def _or(x, y, name):
    return (gen_ops.LogicalOr if x.dtype == dtypes.bool else gen_ops.BitwiseOr)(x, y, name=name)


def _xor(x, y, name):
    if x.dtype == dtypes.bool:
        return math_ops.logical_xor(x, y, name=name)
    return gen_ops.BitwiseXor(x, y, name=name)


_BINARY = {
    "add": _add,
    "sub": lambda x, y, name: gen_ops.Sub(x, y, name=name),
    "mul": _mul,
    "div": lambda x, y, name: math_ops.div(x, y, name=name),
    "truediv": _truediv,
    "floordiv": lambda x, y, name: math_ops.floordiv(x, y, name=name),
    "mod": lambda x, y, name: gen_ops.FloorMod(x, y, name=name),
    "pow": lambda x, y, name: math_ops.pow(x, y, name=name),
    "and": _and,
    "or": _or,
    "xor": _xor,
    "matmul": lambda x, y, name: math_ops.matmul(x, y, name=name),
}


def _binary(name, function):
    argument = "b" if name == "matmul" else "y"

    def operator(x, y):
        with ops.name_scope(None, name, [x, y]) as scope:
            if not isinstance(y, (ops.Tensor, sparse_tensor.SparseTensor)):
                # The other operand may know how to work with a tensor.
                try:
                    y = ops.convert_to_tensor(y, dtype=x.dtype.base_dtype, name=argument)
                except (TypeError, ValueError):
                    if hasattr(type(y), "__r%s__" % name):
                        return NotImplemented
                    raise
            return function(x, y, scope)
    return operator


def _reflected(name, function):
    argument = "a" if name == "matmul" else "x"

    def operator(y, x):
        with ops.name_scope(None, name, [x, y]) as scope:
            x = ops.convert_to_tensor(x, dtype=y.dtype.base_dtype, name=argument)
            return function(x, y, scope)
    return operator


def _compare(op):
    return lambda x, y: getattr(gen_ops, op)(x, y)


def _invert(x):
    return gen_ops.LogicalNot(x) if x.dtype == dtypes.bool else gen_ops.Invert(x)


def _getitem(x, index):
    from ferroflow.python.ops import slicing
    return slicing.getitem(x, index)


OPERATORS = {}
for _name, _function in _BINARY.items():
    OPERATORS["__%s__" % _name] = _binary(_name, _function)
    OPERATORS["__r%s__" % _name] = _reflected(_name, _function)
OPERATORS.update({
    "__lt__": _compare("Less"), "__le__": _compare("LessEqual"),
    "__gt__": _compare("Greater"), "__ge__": _compare("GreaterEqual"),
    "__neg__": lambda x: gen_ops.Neg(x), "__abs__": lambda x: math_ops.abs(x),
    "__invert__": _invert, "__getitem__": _getitem,
})


def apply(name, *operands):
    """Applies the operator method `name`, such as `__add__`, to its operands."""
    return OPERATORS[name](*operands)


def install(cls):
    """Gives a tensor class its operators."""
    for name, function in OPERATORS.items():
        setattr(cls, name, function)
    cls.__array_priority__ = 100
