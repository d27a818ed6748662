"""Initial values that use other variables: each of these counts as initialised first."""

from ferroflow.python.framework import ops

_READS = ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def guard(name, initial_value):
    """`initial_value` with the variables in it replaced by their initialised values."""
    if _has_cycle(initial_value.op, {}):
        return initial_value
    return _safe_tensor(name.rstrip("/"), initial_value, {})


def _has_cycle(op, state):
    """Whether `op` depends on itself, as ops of loops do."""
    known = state.get(op.name)
    if known is not None:
        return known == "open"
    state[op.name] = "open"
    for dependency in [t.op for t in op.inputs] + list(op.control_inputs):
        if _has_cycle(dependency, state):
            return True
    state[op.name] = "done"
    return False


def _safe_tensor(name, tensor, made):
    op = tensor.op
    new = made.get(op)
    if new is None:
        new = made[op] = _safe_op(name, op, made)
    return new.outputs[tensor.value_index]


def _safe_op(name, op, made):
    if op.type in _READS:
        return op
    if op.type in _VARIABLES:
        value = _initialized_value(op)
        return op if value is None else value.op
    inputs = [_safe_tensor(name, t, made) for t in op.inputs]
    if all(a is b for a, b in zip(inputs, op.inputs)):
        return op
    new_type = "Switch" if op.type == "RefSwitch" else op.type
    new_name = (op.node_def.name + "_" + name).replace(":", "_")
    with ops.name_scope(None):
        return ops.get_default_graph().create_op(
            new_type, inputs, [t.dtype.base_dtype for t in op.outputs], name=new_name,
            attrs={k: op.node_def.attr[k] for k in op.node_def.attr})


def _initialized_value(op):
    names = (op.name, op.name + ":0")
    for key in (ops.GraphKeys.GLOBAL_VARIABLES, ops.GraphKeys.LOCAL_VARIABLES):
        for var in ops.get_default_graph().get_collection(key):
            if var.name in names:
                return var.initialized_value()
    return None
