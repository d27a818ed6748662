"""Questions about ops and control-flow contexts."""

_SWITCHES = ("Switch", "RefSwitch")
_MERGES = ("Merge", "RefMerge")
_ENTERS = ("Enter", "RefEnter")
_EXITS = ("Exit", "RefExit")


def is_switch(op):
    return op.type in _SWITCHES


def is_merge(op):
    return op.type in _MERGES


def is_loop_enter(op):
    return op.type in _ENTERS


def is_loop_exit(op):
    return op.type in _EXITS


def is_loop_constant_enter(op):
    return is_loop_enter(op) and op.get_attr("is_constant")


def is_loop_switch(op):
    """Whether `op` is the switch of a loop variable."""
    if not is_switch(op):
        return False
    context = op._get_control_flow_context()
    return context is not None and context.IsWhileContext() and not is_cond_switch(op)


def is_cond_switch(op):
    """Whether `op` is a switch of a conditional."""
    if not is_switch(op) or not op.outputs:
        return False
    # A switch inside a conditional belongs to its context or to the one around it. The consumers
    # show which.
    for output in op.outputs:
        for consumer in output.consumers():
            context = consumer._get_control_flow_context()
            if is_loop_enter(consumer) and context is not None:
                context = context.outer_context
            if not (context is not None and context.IsCondContext()):
                return False
    return True


def is_loop_merge(op):
    if not is_merge(op):
        return False
    context = op._get_control_flow_context()
    return context is not None and context.IsWhileContext() and not is_cond_merge(op)


def is_cond_merge(op):
    if not is_merge(op) or not op.inputs:
        return False
    return all(is_cond_switch(t.op) or _context_is_cond(t.op) for t in op.inputs)


def _context_is_cond(op):
    context = op._get_control_flow_context()
    return context is not None and context.IsCondContext()


def output_context(op):
    """The context that the outputs of `op` are in."""
    context = op._get_control_flow_context()
    if context is not None and is_loop_exit(op):
        context = context.outer_context
    return context


def while_context_of(op):
    """The loop that `op` is in, or None."""
    context = op._get_control_flow_context()
    return None if context is None else context.GetWhileContext()


def loop_enter_of(tensor):
    """The Enter that a tensor comes from, through Identity and Switch ops, or None."""
    op = tensor.op
    while op.type in ("Identity", "RefIdentity") + _SWITCHES:
        op = op.inputs[0].op
    return op if is_loop_enter(op) else None


def is_containing(outer, inner):
    """Whether context `outer` is `inner` or contains it."""
    while inner is not outer and inner is not None:
        inner = inner.outer_context
    return inner is outer
