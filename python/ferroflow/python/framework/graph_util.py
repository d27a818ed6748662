"""`tf.graph_util`: GraphDefs cut down to what some outputs need, with variables as constants."""

from ferroflow.core._messages import message_class
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.platform import tf_logging
from ferroflow.python.util.api import export

_VARIABLES = ("Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp")
_KEPT_ON_CPU = ("Print", "PyFunc", "PyFuncStateless", "ReadFile", "WriteFile")


def _node_name(text):
    """The name of the node that an input refers to."""
    return text[1:] if text.startswith("^") else text.split(":")[0]


def _checked(graph_def):
    kind = message_class("tensorflow.GraphDef")
    if isinstance(graph_def, kind):
        return graph_def
    if type(graph_def).__name__ == "GraphDef" and hasattr(graph_def, "SerializeToString"):
        return kind.FromString(graph_def.SerializeToString())
    raise TypeError("graph_def must be a graph_pb2.GraphDef proto, but got type %s." % type(graph_def))


@export("graph_util.extract_sub_graph")
def extract_sub_graph(graph_def, dest_nodes):
    """The nodes that `dest_nodes` need, in the order of `graph_def`."""
    graph_def = _checked(graph_def)
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be an iterable of strings, but got type %s." % type(dest_nodes))
    nodes = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        if name not in nodes:
            raise AssertionError("%s is not in graph" % name)
    needed, queue = set(), list(dest_nodes)
    while queue:
        name = queue.pop()
        if name not in needed:
            needed.add(name)
            queue.extend(_node_name(text) for text in nodes[name].input)
    cut = message_class("tensorflow.GraphDef")()
    for node in graph_def.node:
        if node.name in needed:
            cut.node.add().CopyFrom(node)
    cut.library.CopyFrom(graph_def.library)
    cut.versions.CopyFrom(graph_def.versions)
    return cut


def _wanted(name, whitelist, blacklist):
    return (whitelist is None or name in whitelist) and (blacklist is None or name not in blacklist)


@export("graph_util.convert_variables_to_constants")
def convert_variables_to_constants(sess, input_graph_def, output_node_names, variable_names_whitelist=None,
                                   variable_names_blacklist=None):
    """The part of a graph that some nodes need, with the values of its variables."""
    cut = extract_sub_graph(input_graph_def, output_node_names)
    names = [node.name for node in cut.node if node.op in _VARIABLES and
             _wanted(node.name, variable_names_whitelist, variable_names_blacklist)]
    kinds = {node.name: node.op for node in cut.node}
    reads = [n + ("/Read/ReadVariableOp:0" if kinds[n] == "VarHandleOp" else ":0") for n in names]
    values = dict(zip(names, sess.run(reads) if reads else []))
    tf_logging.info("Froze %d variables." % len(values))
    frozen = message_class("tensorflow.GraphDef")()
    handles = _handles_of(cut, values)
    for node in cut.node:
        made = frozen.node.add()
        if node.name in values:
            value = values[node.name]
            made.name, made.op = node.name, "Const"
            made.attr["dtype"].CopyFrom(node.attr["dtype"])
            made.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(
                value, dtype=node.attr["dtype"].type, shape=value.shape))
            continue
        made.CopyFrom(node)
        source = handles.get(_node_name(node.input[0])) if node.input else None
        if source is None:
            continue
        if node.op == "ReadVariableOp":
            _become_identity(made, node, "dtype")
        elif node.op == "Identity":
            made.attr["T"].type = _dtype_of(cut, source)
        elif node.op == "ResourceGather":
            _become_gather(made, node)
        elif node.op not in ("Switch", "Enter"):
            raise ValueError("Op %s (node %s) uses a variable that is converted to a constant and cannot be converted"
                             % (node.op, node.name))
    frozen.library.CopyFrom(cut.library)
    frozen.versions.CopyFrom(cut.versions)
    return frozen


def _handles_of(graph_def, values):
    """The nodes that hand on the handle of a frozen variable: their variable by name."""
    handles = {n.name: n.name for n in graph_def.node if n.op == "VarHandleOp" and n.name in values}
    changed = True
    while changed:
        changed = False
        for node in graph_def.node:
            if node.op in ("Identity", "Switch", "Enter") and node.input and node.name not in handles:
                source = handles.get(_node_name(node.input[0]))
                if source is not None:
                    handles[node.name] = source
                    changed = True
    return handles


def _dtype_of(graph_def, variable):
    return next(n.attr["dtype"].type for n in graph_def.node if n.name == variable)


def _become_identity(made, node, attr):
    made.Clear()
    made.name, made.op, made.device = node.name, "Identity", node.device
    made.input.extend(node.input)
    made.attr["T"].CopyFrom(node.attr[attr])


def _become_gather(made, node):
    made.Clear()
    made.name, made.op, made.device = node.name, "Gather", node.device
    made.input.extend(node.input)
    made.attr["Tparams"].CopyFrom(node.attr["dtype"])
    made.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    made.attr["validate_indices"].b = True


@export("graph_util.remove_training_nodes")
def remove_training_nodes(input_graph, protected_nodes=None):
    """A graph without CheckNumerics and without Identity nodes that nothing else depends on."""
    protected = set(protected_nodes or ())
    waited_for = {_node_name(t) for n in input_graph.node for t in n.input if t.startswith("^")}
    checks = {n.name for n in input_graph.node if n.op == "CheckNumerics" and n.name not in protected}
    one = _without(input_graph, {n for n in checks if n not in waited_for})
    identities = {n.name for n in one.node if n.op == "Identity" and n.name not in protected
                  and n.name not in waited_for and not any(t.startswith("^") for t in n.input)}
    several = {_node_name(t) for n in one.node for t in n.input if ":" in t}
    kept_inputs = {n.name for n in one.node if n.name in identities and ":" in n.input[0]}
    return _without(one, identities - several - kept_inputs)


def _without(graph_def, names):
    """A graph in which the first inputs of these nodes take their places."""
    source = {n.name: n.input[0] for n in graph_def.node if n.name in names}

    def real(text):
        name = _node_name(text)
        while name in source and not text.startswith("^"):
            text = source[name]
            name = _node_name(text)
        return text

    result = message_class("tensorflow.GraphDef")()
    for node in graph_def.node:
        if node.name in names:
            continue
        made = result.node.add()
        made.CopyFrom(node)
        del made.input[:]
        made.input.extend(real(t) for t in node.input)
    result.library.CopyFrom(graph_def.library)
    result.versions.CopyFrom(graph_def.versions)
    return result


@export("graph_util.must_run_on_cpu")
def must_run_on_cpu(node, pin_variables_on_cpu=False):
    """Whether a node has to be on a CPU."""
    node = node.node_def if isinstance(node, ops.Operation) else node
    if pin_variables_on_cpu and node.op in _VARIABLES:
        return True
    if node.op == "Const":
        return node.attr["dtype"].type in (7, 9)
    return node.op in _KEPT_ON_CPU or node.op in ("DynamicStitch", "ParallelDynamicStitch") and (
        node.attr["T"].type == 3)


@export("graph_util.tensor_shape_from_node_def_name")
def tensor_shape_from_node_def_name(graph, input_name):
    """The static shape of a tensor by its name, with or without the output's number."""
    name = input_name if ":" in input_name else input_name + ":0"
    return graph.get_tensor_by_name(name).get_shape()
