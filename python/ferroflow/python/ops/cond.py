"""`tf.cond`, `tf.case` and `tf.switch_case`."""

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_context
from ferroflow.python.ops import control_flow_v2
from ferroflow.python.util import nest
from ferroflow.python.util.api import deprecated_alias, export


def _unpack(result):
    """A list or tuple of one member counts as that member."""
    if isinstance(result, (list, tuple)) and len(result) == 1 and not hasattr(result, "_fields"):
        return result[0]
    return result


@export("cond")
def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None):
    true_fn = deprecated_alias("true_fn", true_fn, "fn1", fn1)
    false_fn = deprecated_alias("false_fn", false_fn, "fn2", fn2)
    if true_fn is None:
        raise TypeError("cond(): 'true_fn' argument required")
    if false_fn is None:
        raise TypeError("cond(): 'false_fn' argument required")
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    if control_flow_v2.enabled(ops.get_default_graph()):
        return control_flow_v2.cond(pred, true_fn, false_fn, strict, name)
    with ops.name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("'pred' must not be a Python bool.")
        p_2, p_1 = control_flow_context.switch(pred, pred)
        pivot_1 = array_ops.identity(p_1, name="switch_t")
        pivot_2 = array_ops.identity(p_2, name="switch_f")
        pred = array_ops.identity(pred, name="pred_id")
        for tensor in (p_1, p_2, pivot_1, pivot_2, pred):
            tensor.op.graph.prevent_fetching(tensor.op)
        context_t, original_t, result_t = _branch(pred, pivot_1, 1, true_fn, "true_fn")
        context_f, original_f, result_f = _branch(pred, pivot_2, 0, false_fn, "false_fn")
        if not strict:
            original_t, original_f = _unpack(original_t), _unpack(original_f)
        try:
            nest.assert_same_structure(original_t, original_f, expand_composites=True)
        except TypeError as e:
            raise TypeError("Incompatible return types of 'true_fn' and 'false_fn': %s" %
                            e) from None
        if not result_t:
            raise ValueError("'true_fn' and 'false_fn' must return at least one result.")
        flat_t = nest.flatten(result_t, expand_composites=True)
        flat_f = nest.flatten(result_f, expand_composites=True)
        for x, y in zip(flat_t, flat_f):
            if x.dtype.base_dtype != y.dtype.base_dtype:
                raise ValueError(
                    "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received %s "
                    "from 'true_fn' and %s from 'false_fn'." % (x.dtype.name, y.dtype.name))
        merges = [control_flow_context.merge(list(pair))[0] for pair in zip(flat_f, flat_t)]
        from ferroflow.python.ops import tensor_array_ops
        merges = [tensor_array_ops.with_flow(o, m) for o, m in zip(
            nest.flatten(original_t, expand_composites=True), merges)]
        if context_t.outer_context is None:
            ops.add_to_collection(ops.GraphKeys.COND_CONTEXT, context_t)
            ops.add_to_collection(ops.GraphKeys.COND_CONTEXT, context_f)
        merges = nest.pack_sequence_as(original_t, merges, expand_composites=True)
        return merges if strict else _unpack(merges)


def _branch(pred, pivot, number, function, what):
    context = control_flow_context.CondContext(pred, pivot, branch=number)
    context.Enter()
    try:
        original, result = context.BuildCondBranch(function)
        if original is None:
            raise ValueError("'%s' must have a return value." % what)
        context.ExitResult(result)
    finally:
        context.Exit()
    return context, original, result


def smart_cond(pred, true_fn, false_fn, name=None):
    """A conditional whose predicate may be known already."""
    value = smart_constant_value(pred)
    if value is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if value else false_fn()


def smart_constant_value(pred):
    """The value of a predicate if it is known, else None."""
    if isinstance(pred, ops.Tensor):
        return tensor_util.constant_value(pred)
    if pred in (0, 1) or isinstance(pred, bool):
        return bool(pred)
    raise TypeError("Argument `pred` must be a Tensor, or a Python bool, or 1 or 0. Received: "
                    "pred=%s of type %s" % (pred, type(pred).__name__))


@export("case")
def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    from ferroflow.python.ops import case_ops
    return case_ops.case(pred_fn_pairs, default, exclusive, strict, name)


@export("switch_case")
def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    from ferroflow.python.ops import case_ops
    return case_ops.switch_case(branch_index, branch_fns, default, name)
