"""`tf.case` and `tf.switch_case`: chains of conditionals."""

import collections
import functools

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond as cond_module
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops


def _pairs(pred_fn_pairs):
    if isinstance(pred_fn_pairs, collections.OrderedDict):
        items = list(pred_fn_pairs.items())
    elif isinstance(pred_fn_pairs, dict):
        items = sorted(pred_fn_pairs.items(), key=lambda item: item[0].name)
    else:
        if not isinstance(pred_fn_pairs, (list, tuple)):
            raise TypeError("'pred_fn_pairs' must be a list, tuple, or dict. Received: %s" %
                            type(pred_fn_pairs))
        items = list(pred_fn_pairs)
    for pair in items:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in 'pred_fn_pairs' must be a 2-tuple. Received %s." % (
                pair,))
        pred, fn = pair
        if isinstance(pred, ops.Tensor) and pred.dtype != dtypes.bool:
            raise TypeError("pred must be Tensor of type bool: %s" % pred.name)
        if not callable(fn):
            raise TypeError("fn for pred %s must be callable." % pred.name)
    return [p for p, _ in items], [f for _, f in items]


def case(pred_fn_pairs, default, exclusive, strict, name):
    """The first function whose predicate is true, else the default."""
    preds, actions = _pairs(pred_fn_pairs)
    with ops.name_scope(name, "case", [preds]):
        if default is None:
            default, preds, actions = _default_action(preds, actions)
        fn = default
        for pred, action in reversed(list(zip(preds, actions))):
            fn = functools.partial(cond_module.cond, pred, true_fn=action, false_fn=fn,
                                   strict=strict)
        if exclusive:
            with ops.control_dependencies([_at_most(preds, 1, "Input error: exclusive=True")]):
                return fn()
        return fn()


def _default_action(preds, actions):
    """Without a default the last function is it, checked by assertions."""
    from ferroflow.python.ops import control_flow_ops
    last = len(preds) - 1

    def default():
        others = ("Implementation error: selected default action #%d was called, but some of "
                  "other predicates are True: " % last)
        none = ("Input error: None of conditions evaluated as True:",
                array_ops.stack(preds, name="preds_c"))
        with ops.control_dependencies([
                _at_most(preds[:last], 0, others),
                control_flow_ops.Assert(preds[last], data=none)]):
            return actions[last]()
    return default, preds[:last], actions[:last]


def _at_most(preds, n, message):
    """An assertion that at most `n` predicates are true."""
    from ferroflow.python.ops import control_flow_ops
    preds_c = array_ops.stack(preds, name="preds_c")
    count = math_ops.reduce_sum(math_ops.cast(preds_c, dtypes.int32), name="num_true_conds")
    condition = gen_ops.LessEqual(count, ops.convert_to_tensor(n, name="n_true_conds"))
    names = ", ".join(getattr(p, "name", "?") for p in preds)
    data = ["%s: more than %d conditions (%s) evaluated as True:" % (message, n, names), preds_c]
    return control_flow_ops.Assert(condition, data=data, summarize=len(preds))


def switch_case(branch_index, branch_fns, default, name):
    """The function with the index `branch_index`, else the default (or the last one)."""
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    elif branch_fns and isinstance(branch_fns[0], (list, tuple)):
        pairs = sorted((i, f) for i, f in branch_fns)
    else:
        pairs = list(enumerate(branch_fns))
    for index, fn in pairs:
        if not isinstance(index, int) or not callable(fn):
            raise TypeError("branch_fns must be callables, or pairs of an int and a callable.")
    keys = [i for i, _ in pairs]
    if min(keys) < 0 or max(keys) >= len(keys) or len(set(keys)) != len(keys):
        raise ValueError("branch indices (keys) must form contiguous range of [0 to %d) but found "
                         "{%s}." % (len(keys), ",".join(map(str, sorted(set(keys))))))
    functions = [f for _, f in pairs]
    if default is not None:
        functions.append(default)
    from ferroflow.python.ops import control_flow_v2
    with ops.name_scope(name, "case", [branch_index]):
        if not isinstance(branch_index, ops.Tensor):
            branch_index = ops.convert_to_tensor(branch_index, name="branch_index")
        return control_flow_v2.indexed_case(branch_index, functions, "indexed_case")
