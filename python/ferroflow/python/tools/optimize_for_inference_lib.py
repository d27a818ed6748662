"""A graph for inference: only what the outputs need, without the nodes of training."""

from ferroflow.python.framework import graph_util
from ferroflow.python.tools import strip_unused_lib


def optimize_for_inference(input_graph_def, input_node_names, output_node_names, placeholder_type_enum, toco_compatible=False):
    """Removes what inference does not need. Batch normalizations are folded when a step is compiled."""
    stripped = strip_unused_lib.strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    return graph_util.remove_training_nodes(stripped, output_node_names)
