"""Conditionals and loops as functional ops: If, Case and While."""

from ferroflow.python.framework import versions


def enabled(graph):
    """Whether conditionals and loops of `graph` become functional ops."""
    return versions.control_flow_v2_enabled() or getattr(graph, "_functional_control_flow", False)


def cond(pred, true_fn, false_fn, strict, name):
    from ferroflow.python.ops import functional_control_flow
    return functional_control_flow.cond(pred, true_fn, false_fn, strict, name)


def indexed_case(branch_index, functions, name):
    from ferroflow.python.ops import functional_control_flow
    return functional_control_flow.indexed_case(branch_index, functions, name)


def while_loop(cond, body, loop_vars, **kwargs):
    from ferroflow.python.ops import functional_control_flow
    return functional_control_flow.while_loop(cond, body, loop_vars, **kwargs)
