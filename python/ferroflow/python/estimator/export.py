"""Inputs of exported models."""

import collections

from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import array_ops


# TensorFlow has a folder of this name. `_module_aliases.py` finds its modules.
__path__ = []


class ServingInputReceiver(collections.namedtuple("ServingInputReceiver", ["features", "receiver_tensors", "receiver_tensors_alternatives"])):
    """The features of a model, and the placeholders that requests feed."""

    def __new__(cls, features, receiver_tensors, receiver_tensors_alternatives=None):
        if features is None:
            raise ValueError("features must be defined.")
        if not isinstance(features, dict):
            features = {"feature": features}
        return super().__new__(cls, features, _receivers(receiver_tensors), receiver_tensors_alternatives)


class TensorServingInputReceiver(collections.namedtuple("TensorServingInputReceiver", ["features", "receiver_tensors", "receiver_tensors_alternatives"])):
    """As `ServingInputReceiver`, for models whose features are one tensor."""

    def __new__(cls, features, receiver_tensors, receiver_tensors_alternatives=None):
        return super().__new__(cls, features, _receivers(receiver_tensors), receiver_tensors_alternatives)


def _receivers(receiver_tensors):
    if receiver_tensors is None:
        raise ValueError("receiver_tensors must be defined.")
    if not isinstance(receiver_tensors, dict):
        receiver_tensors = {"input": receiver_tensors}
    for name, tensor in receiver_tensors.items():
        if not isinstance(tensor, ops.Tensor):
            raise ValueError("receiver_tensor {} must be a Tensor.".format(name))
    return receiver_tensors


def build_raw_serving_input_receiver_fn(features, default_batch_size=None):
    """A function that makes a placeholder for each feature."""

    def serving_input_receiver_fn():
        receiver_tensors = {}
        for name, t in features.items():
            shape = t.get_shape().as_list()
            shape[0] = default_batch_size
            receiver_tensors[name] = array_ops.placeholder(dtype=t.dtype, shape=shape, name=t.op.name)
        return ServingInputReceiver(dict(receiver_tensors), receiver_tensors)

    return serving_input_receiver_fn


def build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size=None):
    """A function that makes a placeholder for serialized examples and parses them."""

    def serving_input_receiver_fn():
        from ferroflow.python.ops import parsing_ops

        serialized = array_ops.placeholder(dtype=dtypes.string, shape=[default_batch_size], name="input_example_tensor")
        features = parsing_ops.parse_example(serialized, feature_spec)
        return ServingInputReceiver(features, {"examples": serialized})

    return serving_input_receiver_fn
