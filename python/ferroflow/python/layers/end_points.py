"""End points: the outputs of layers by name, which layers of `tf.contrib.layers` collect."""

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.util.api import export


@export("contrib.layers.utils.append_tensor_alias")
def append_tensor_alias(tensor, alias):
    """Gives a tensor another name."""
    alias = alias[:-1] if alias.endswith("/") else alias
    tensor.aliases = getattr(tensor, "aliases", []) + [alias]
    return tensor


@export("contrib.layers.utils.gather_tensors_aliases")
def gather_tensors_aliases(tensors):
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


@export("contrib.layers.utils.get_tensor_aliases")
def get_tensor_aliases(tensor):
    """The names that layers gave to a tensor, or else its own without a number of an output."""
    given = getattr(tensor, "aliases", None)
    if given:
        return given
    name = tensor.name[:-2] if tensor.name.endswith(":0") else tensor.name
    return [name]


@export("contrib.layers.utils.collect_named_outputs")
def collect_named_outputs(collections, alias, outputs):
    """Adds a layer's output to collections, under a name."""
    if collections:
        append_tensor_alias(outputs, alias)
        ops.add_to_collections(collections, outputs)
    return outputs


@export("contrib.layers.utils.convert_collection_to_dict")
def convert_collection_to_dict(collection, clear_collection=False):
    """The tensors of a collection by their names."""
    found = {alias: tensor for tensor in ops.get_collection(collection) for alias in get_tensor_aliases(tensor)}
    if clear_collection:
        ops.get_default_graph().clear_collection(collection)
    return found


@export("contrib.layers.utils.last_dimension")
def last_dimension(shape, min_rank=1):
    """The size of the last dimension, which must be known."""
    dims = tensor_shape.as_shape(shape).with_rank_at_least(min_rank).as_list()
    if dims[-1] is None:
        raise ValueError("last dimension shape must be known but is None")
    return dims[-1]
