"""Gradients of calls of functions."""

from ferroflow.python.framework import ops


@ops.RegisterGradient("PartitionedCall")
def _partitioned_call_grad(op, *grads):
    return _symbolic(op, op.get_attr("f"), grads)


@ops.RegisterGradient("StatefulPartitionedCall")
def _stateful_partitioned_call_grad(op, *grads):
    return _symbolic(op, op.get_attr("f"), grads)


def _symbolic(op, function, grads):
    """The gradient of a function, which the runtime derives."""
    from ferroflow.python.ops import array_ops

    grads = [array_ops.zeros_like(t) if g is None else g for t, g in zip(op.outputs, grads)]
    types = [t.dtype.base_dtype for t in op.inputs]
    found = ops.apply_op("SymbolicGradient", None, [list(op.inputs) + list(grads)], {"Tout": types, "f": function})
    for made, source in zip(found.outputs, op.inputs):
        made.set_shape(source.shape)
    return [t if t.dtype.is_floating or t.dtype.is_complex else None for t in found.outputs]
