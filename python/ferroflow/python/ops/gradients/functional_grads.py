"""Gradients of If and Case: the same branch is taken backwards."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops.gradient_registry import gradient


def _differentiable(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _name(function):
    return getattr(function, "name", function)


def _backwards(function, inputs, grads):
    """A function that computes the gradients of the inputs of a branch."""
    wanted = [i for i, x in enumerate(inputs) if _differentiable(x)]

    def compute():
        found = g.SymbolicGradient(input=list(inputs) + list(grads),
                                   Tout=[x.dtype.base_dtype for x in inputs],
                                   f=_name(function))
        parts = [found[i] for i in wanted]
        for part, i in zip(parts, wanted):
            part.set_shape(inputs[i].get_shape())
        return parts
    return compute


def _spread(found, inputs):
    """The gradients at the places of their inputs, None elsewhere."""
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    return [found.pop(0) if _differentiable(x) else None for x in inputs]


def _given(op, grads):
    return [array_ops.zeros_like(t) if grad is None else grad
            for t, grad in zip(op.outputs, grads)]


@gradient("If", "StatelessIf")
def _if(op, *grads):
    from ferroflow.python.ops import functional_control_flow
    inputs = list(op.inputs)[1:]
    if not any(_differentiable(x) for x in inputs):
        return [None] * len(op.inputs)
    grads = _given(op, grads)
    found = functional_control_flow.cond(
        op.inputs[0], _backwards(op.get_attr("then_branch"), inputs, grads),
        _backwards(op.get_attr("else_branch"), inputs, grads), True, None)
    return [None] + _spread(found, inputs)


@gradient("Case", "StatelessCase")
def _case(op, *grads):
    from ferroflow.python.ops import functional_control_flow
    inputs = list(op.inputs)[1:]
    if not any(_differentiable(x) for x in inputs):
        return [None] * len(op.inputs)
    grads = _given(op, grads)
    found = functional_control_flow.indexed_case(
        op.inputs[0], [_backwards(f, inputs, grads) for f in op.get_attr("branches")], None)
    return [None] + _spread(found, inputs)


@gradient("While", "StatelessWhile")
def _while(op, *grads):
    raise NotImplementedError(
        "the gradient of the functional loop '%s' is not supported: build it without "
        "enable_control_flow_v2()" % op.name)
