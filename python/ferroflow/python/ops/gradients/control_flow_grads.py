"""Gradients of Switch, Merge, Enter, Exit and NextIteration."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import control_flow_context as base
from ferroflow.python.ops import control_flow_util as util
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import while_context
from ferroflow.python.ops.gradient_registry import gradient


def _current():
    return ops.get_default_graph()._get_control_flow_context()


@gradient("Switch", "RefSwitch")
def _switch(op, *grad):
    context = op._get_control_flow_context()
    if context is not None and context.IsWhileContext():
        state = _current().grad_state
        merged = state.switch_map.get(op)
        if merged is not None:
            # The second visit closes the loop backwards.
            if grad[1] is not None:
                while_context.add_next_and_back_edge(merged, grad[1],
                                                     enforce_shape_invariant=False)
            return None, None
        if grad[0] is None:
            return None, None
        merged = base.merge([grad[0], grad[0]], name="b_switch")[0]
        state.switch_map[op] = merged
        return merged, None
    if context is not None and context.IsCondContext():
        if grad[1 - context.branch] is None:
            if op.inputs[0].dtype == dtypes.resource:
                return base.merge([grad[context.branch]] * 2, name="cond_resource_grad")[0], None
            return None, None
        return base.merge(list(grad), name="cond_grad")[0], None
    false_grad = base.switch(grad[0], op.inputs[1])[0]
    true_grad = base.switch(grad[1], op.inputs[1])[1]
    return base.merge([false_grad, true_grad])[0], None


@gradient("Merge", "RefMerge")
def _merge(op, grad, _):
    context = util.output_context(op.inputs[0].op)
    current = _current()
    if context is not None and context.IsWhileContext():
        return base.switch_ref_or_tensor(grad, current.pivot)
    if context is not None and context.IsCondContext():
        pred = context.pred
        state = None if current is None else current.grad_state
        if state is not None:
            real = state.history_map.get(pred.name)
            if real is None:
                state.grad_context.Exit()
                history = state.AddForwardAccumulator(pred)
                state.grad_context.Enter()
                real = state.AddBackpropAccumulatedValue(history, pred)
                state.history_map[pred.name] = real
            pred = real
        return base.switch_ref_or_tensor(grad, pred, name="cond_grad")
    count = len(op.inputs)
    chosen = [g.Equal(op.outputs[1], i) for i in range(count)]
    return [base.switch_ref_or_tensor(grad, chosen[i])[1] for i in range(count)]


@gradient("Exit", "RefExit")
def _exit(op, grad):
    context = _current()
    if not context.back_prop:
        return None
    if op._get_control_flow_context().grad_state is not None:
        raise TypeError("Second-order gradient for while loops not supported.")
    if isinstance(grad, ops.Tensor):
        context.AddName(grad.name)
    else:
        for part in (grad.values, grad.indices, grad.dense_shape):
            if part is not None:
                context.AddName(part.name)
    context.Enter()
    result = base.enter(grad, context.name, is_constant=False,
                        parallel_iterations=context.parallel_iterations, name="b_exit")
    context.loop_enters.append(result)
    context.Exit()
    return result


@gradient("NextIteration", "RefNextIteration")
def _next_iteration(op, grad):
    return grad


@gradient("Enter", "RefEnter")
def _enter(op, grad):
    context = _current()
    if context is None or not context.back_prop or context.grad_state is None:
        return grad
    if op.get_attr("is_constant"):
        if isinstance(grad, ops.Tensor):
            return context.AddBackpropAccumulator(op, grad)
        assert isinstance(grad, indexed_slices.IndexedSlices)
        return context.AddBackpropIndexedSlicesAccumulator(op, grad)
    result = base.exit_loop(grad)
    context.loop_exits.append(result)
    context.ExitResult([result])
    return result


@gradient("LoopCond")
def _loop_cond(op, *_):
    return None
