"""What tensors do through modules that are loaded late: operators, and packing of lists."""

from ferroflow.python.framework import ops

_NAMES = """add radd sub rsub mul rmul div rdiv truediv rtruediv floordiv rfloordiv mod rmod pow rpow
and rand or ror xor rxor matmul rmatmul lt le gt ge neg abs invert getitem""".split()


def _stub(cls, name):
    def operator(*operands):
        from ferroflow.python.ops import operators

        operators.install(cls)
        return operators.OPERATORS[name](*operands)

    return operator


def install(cls):
    """Gives a tensor class operators that load the real ones."""
    for name in _NAMES:
        setattr(cls, f"__{name}__", _stub(cls, f"__{name}__"))


_PLAIN = frozenset((int, float, bool, complex, str, bytes))


def is_tensor(value):
    """Whether a value is a tensor, or a variable, which is read."""
    if type(value) in _PLAIN:
        return False
    return isinstance(value, ops.Tensor) or hasattr(value, "_as_graph_element") and hasattr(value, "initializer")


def _holds_tensor(values):
    return any(is_tensor(v) or isinstance(v, (list, tuple)) and _holds_tensor(v) for v in values)


def _pack(values, dtype=None, name=None, as_ref=False):
    """Lists with tensors in them become a Pack."""
    if as_ref or not _holds_tensor(values):
        return NotImplemented
    from ferroflow.python.ops import array_ops

    return array_ops.autopack(values, dtype, name)


ops.register_tensor_conversion_function((list, tuple), _pack, 99)
