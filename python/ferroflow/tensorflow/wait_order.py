"""The order in which a session of a v1 graph waits for collectives.

Each wait occupies a thread of the session. If all threads wait, and other ranks wait for other
tensors, none of them submits what the others need. So a wait follows the wait that was added before
it, on all ranks alike, and at most one of them occupies a thread. In `tf.function`, TensorFlow orders
them itself.
"""

import weakref

from tensorflow.python.framework import ops

# Ops with state that a step may run once more: they take nothing away.
_HARMLESS = frozenset((
    "Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "IsVariableInitialized",
    "VarIsInitializedOp", "FerroflowSubmit", "FerroflowWait", "FerroflowPlace", "Multinomial",
    "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoissonV2", "RandomStandardNormal",
    "RandomUniform", "RandomUniformInt", "TruncatedNormal"))
# Ancestors are not looked for in larger graphs.
_MOST = 50_000

# The last wait of each graph, and what ops of it depend on. These are names: ops keep their graph.
_last = weakref.WeakKeyDictionary()
_known = weakref.WeakKeyDictionary()


def earlier(handles):
    """A list of the wait that the next one follows, or an empty one.

    A step that runs the later wait runs the earlier one, too. So the earlier one must not need feeds,
    or elements of queues and datasets, that the later one does not need.
    """
    graph = ops.get_default_graph()
    name = _last.get(graph)
    if name is None or _is_function(graph):
        return []
    last = graph.get_operation_by_name(name)
    if last._get_control_flow_context() is not graph._get_control_flow_context():
        return []
    needed = _needs(graph, [h.op for h in handles])
    before = _needs(graph, [last])
    return [last] if needed is not None and before is not None and before <= needed else []


def added(wait):
    """Notes that this wait is the last one of its graph."""
    if not _is_function(wait.graph):
        _last[wait.graph] = wait.name


def _is_function(graph):
    return getattr(graph, "building_function", False)


def _needs(graph, roots):
    """The placeholders and the ops with state that ops depend on, or None if the graph is too large."""
    known = _known.setdefault(graph, {})
    found, seen, open_ = set(), set(), list(roots)
    while open_:
        op = open_.pop()
        if op.name in seen:
            continue
        seen.add(op.name)
        if op.name in known:
            found |= known[op.name]
            continue
        if len(seen) > _MOST:
            return None
        definition = op.op_def
        if op.type == "Placeholder" or definition is None or (
                definition.is_stateful and op.type not in _HARMLESS):
            found.add(op.name)
        open_.extend(t.op for t in op.inputs)
        open_.extend(op.control_inputs)
    if len(roots) == 1:
        known[roots[0].name] = frozenset(found)
    return found
