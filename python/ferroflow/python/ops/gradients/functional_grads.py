"""Gradients of calls, conditionals and loops whose bodies are functions."""

from ferroflow.python.ops import functional_backprop
from ferroflow.python.ops import functional_control_flow
from ferroflow.python.ops.gradient_registry import gradient


def _takes_none(function):
    """Outputs without a gradient stay None: most are values that a gradient reads."""
    function.takes_none = True
    return function


def _plain(grads):
    from ferroflow.python.framework import ops
    return [None if g is None else ops.convert_to_tensor(g) for g in grads]


@gradient("If", "StatelessIf")
@_takes_none
def _if(op, *grads):
    bodies = [functional_backprop.body_of(op, "then_branch"),
              functional_backprop.body_of(op, "else_branch")]

    def make(backs, outputs):
        return functional_control_flow.add_if(op.inputs[0], backs, outputs, None)[0]
    return [None] + functional_backprop.branch_gradients(op, bodies, 1, _plain(grads), make)


@gradient("Case", "StatelessCase")
@_takes_none
def _case(op, *grads):
    bodies = functional_backprop.bodies_of(op, "branches")

    def make(backs, outputs):
        return functional_control_flow.add_case(op.inputs[0], backs, outputs, None)[0]
    return [None] + functional_backprop.branch_gradients(op, bodies, 1, _plain(grads), make)


@gradient("PartitionedCall", "StatefulPartitionedCall")
@_takes_none
def _call(op, *grads):
    bodies = [functional_backprop.body_of(op, "f")]

    def make(backs, outputs):
        return functional_control_flow.add_call(backs[0], outputs[0])
    return functional_backprop.branch_gradients(op, bodies, 0, _plain(grads), make)


@gradient("While", "StatelessWhile")
@_takes_none
def _while(op, *grads):
    def make(cond, body, start, shapes):
        return functional_control_flow.add_while(
            cond, body, start, shapes, op.get_attr("parallel_iterations"), None)
    return functional_backprop.loop_gradients(op, _plain(grads), make)
