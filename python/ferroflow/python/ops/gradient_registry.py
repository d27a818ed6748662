"""Registration of the gradient functions of this library."""

from ferroflow.python.framework import ops


def gradient(*op_types):
    """Registers the gradient function of some op types."""
    def mark(function):
        for op_type in op_types:
            ops.gradient_registry.register(function, op_type)
        return function
    return mark


def not_differentiable(*op_types):
    """Says that ops of these types have no gradient."""
    for op_type in op_types:
        ops.gradient_registry.register(None, op_type)


def get_gradient_function(op):
    """The gradient function of an op, None if it has no inputs or is not differentiable."""
    direct = op.__dict__.get("_gradient_function") if hasattr(op, "__dict__") else None
    return ops.get_gradient_function(op) if direct is None else direct
