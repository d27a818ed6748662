"""`tf.import_graph_def`."""

import contextlib

from ferroflow import _ferroflow
from ferroflow.core._messages import message_class
from ferroflow.python.framework import errors_impl, ops


def import_graph_def(graph_def, input_map=None, return_elements=None, name=None, op_dict=None, producer_op_list=None, validate_colocation_constraints=True):
    """Adds the nodes of a GraphDef to the default graph, below the scope `name`."""
    del op_dict, producer_op_list, validate_colocation_constraints
    graph_def = _as_graph_def(graph_def)
    input_map = _checked_map(input_map)
    if return_elements is not None:
        return_elements = tuple(return_elements)
        for item in return_elements:
            if not isinstance(item, (str, bytes)):
                raise TypeError(f"Argument `return_elements` must be a list of strings. Obtained: {return_elements}.")
    graph = ops.get_default_graph()
    graph._check_not_finalized()
    prefix = "import" if name is None else name
    with ops.name_scope(prefix, "import", []) as scope:
        scope = scope[:-1] if scope else ""
        # A scope at the root may not begin with an underscore. Only values that are no tensors
        # need one.
        with ops.name_scope("_inputs" if scope else "inputs") if input_map else contextlib.nullcontext():
            input_map = {k: v if isinstance(v, ops.Operation) else ops.convert_to_tensor(v) for k, v in input_map.items()}
        try:
            made = graph._import(graph_def.SerializeToString(), scope, input_map)
        except ValueError:
            _check_ops(graph, graph_def)
            raise
    _check_used(graph_def, input_map)
    for op in made:
        # Rust does not ask Python while it imports.
        _surround(graph, op)
    if return_elements is None:
        return None
    return _elements(graph, scope, return_elements)


def _surround(graph, op):
    op._control_flow_context_value = graph._control_flow_context_value
    if graph._device_entries:
        graph._apply_device_functions(op)
    for controller in graph._control_dependencies_stack:
        controller.add_op(op)


def _as_graph_def(graph_def):
    kind = message_class("tensorflow.GraphDef")
    if isinstance(graph_def, kind):
        return graph_def
    if type(graph_def).__name__ == "GraphDef" and hasattr(graph_def, "SerializeToString"):
        return kind.FromString(graph_def.SerializeToString())
    raise TypeError("Argument `graph_def` must be a GraphDef proto.")


def _check_ops(graph, graph_def):
    """TensorFlow has an error of its own for ops that it does not know."""
    known = set(_ferroflow.op_names()) | {f.signature.name for f in graph_def.library.function}
    for node in graph_def.node:
        if node.op not in known and not graph._is_function(node.op):
            raise errors_impl.NotFoundError(
                None, None, f"Op type not registered '{node.op}', which node '{node.name}' has. Ferroflow knows TensorFlow's ops only.")


def _checked_map(input_map):
    if input_map is None:
        return {}
    if not isinstance(input_map, dict) or not all(isinstance(k, (str, bytes)) for k in input_map):
        raise TypeError(f"Argument `input_map` must be a dictionary. Its keys must all be strings. Obtained: {input_map}")
    return {k.decode("utf-8") if isinstance(k, bytes) else k: v for k, v in input_map.items()}


def _check_used(graph_def, input_map):
    if not input_map:
        return
    named = set()
    for node in graph_def.node:
        for text in node.input:
            named.add(text)
            named.add(text[:-2] if text.endswith(":0") else text)
        named.add(node.name)
    missing = [k for k in input_map if k not in named and (k[:-2] if k.endswith(":0") else k) not in named]
    if missing:
        raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(missing)}]")


def _elements(graph, scope, names):
    found = []
    for name in names:
        name = name.decode("utf-8") if isinstance(name, bytes) else name
        full = f"{scope}/{name}" if scope else name
        try:
            found.append(graph.as_graph_element(full))
        except (KeyError, ValueError):
            kind = "tensor" if ":" in name else "operation"
            raise ValueError(f"Requested return {kind} {name!r} not found in graph def") from None
    return found
