"""The part of a graph between its inputs and outputs."""

import copy

from ferroflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2
from ferroflow.python.framework import graph_util


def strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum):
    """A graph whose inputs are placeholders and that has nothing but what the outputs need.

    `placeholder_type_enum` is the type of all inputs, or a list with one for each.
    """
    for name in input_node_names:
        if ":" in name:
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not an Operation.")
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError(f"The following input nodes were not found: {missing}")
    types = placeholder_type_enum
    if not isinstance(types, list):
        types = [types] * len(input_node_names)
    types = dict(zip(input_node_names, types))
    replaced = graph_pb2.GraphDef()
    for node in input_graph_def.node:
        if node.name not in types:
            replaced.node.extend([copy.deepcopy(node)])
            continue
        placeholder = node_def_pb2.NodeDef()
        placeholder.op = "Placeholder"
        placeholder.name = node.name
        placeholder.attr["dtype"].CopyFrom(attr_value_pb2.AttrValue(type=types[node.name]))
        for attr in ("_output_shapes", "shape"):
            if attr in node.attr:
                placeholder.attr[attr].CopyFrom(node.attr[attr])
        replaced.node.extend([placeholder])
    return graph_util.extract_sub_graph(replaced, output_node_names)
