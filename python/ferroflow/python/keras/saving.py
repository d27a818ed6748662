"""Configurations of layers and models, as dictionaries and as JSON."""

import inspect
import json

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.util import nest
from ferroflow.python.util.api import export

# What `Layer` takes for all layers.
_COMMON = ("self", "name", "trainable", "dtype", "dynamic", "input_shape", "batch_input_shape", "batch_size", "weights")
# Arguments that a layer keeps in one form.
_NORMALIZED = ("kernel_size", "strides", "pool_size", "dilation_rate", "cropping", "axis")
# Arguments that TensorFlow leaves out if they are not given.
_RARE = ("renorm", "renorm_clipping", "renorm_momentum", "fused", "virtual_batch_size", "adjustment", "backward_layer")
# What TensorFlow's configurations have and the layers here do not take.
_UNUSED = ("ragged", "groups", "autocast", "dynamic", "synchronized", "keepdims", "zero_output_for_mask", "time_major", "fused")


def _signature(layer):
    """The function whose parameters are the layer's configuration."""
    return inspect.signature(getattr(type(layer), "_signature", None) or type(layer).__init__).parameters


def _initializer_config(initializer):
    named = getattr(initializer, "_keras_name", None)
    if named is not None:
        # TensorFlow's other initializers with a name of their own take no dtype.
        more = {"dtype": "float32"} if named.startswith("Glorot") else {}
        return {"class_name": named, "config": {"seed": initializer.seed, **more}}
    config = {k: v for k, v in initializer.get_config().items()}
    return {"class_name": type(initializer).__name__, "config": {**config, "dtype": dtypes.as_dtype(
        config.get("dtype") or "float32").name}}


def _value(key, value):
    """A value as JSON has it."""
    from ferroflow.python.keras import activations, backend, initializers, layer as layer_lib, regularizers

    if value is None or isinstance(value, (bool, int, float, str)):
        pass
    elif isinstance(value, layer_lib.Layer):
        return serialize(value)
    if key in ("kernel_initializer", "depthwise_initializer", "pointwise_initializer") and value is None:
        value = "glorot_uniform"
    if key == "data_format" and value is None:
        return backend.image_data_format()
    if key.endswith("_initializer"):
        made = initializers.get(value)
        return None if made is None else _initializer_config(made)
    if key.endswith("_regularizer") or key.endswith("_constraint"):
        made = (regularizers.get if key.endswith("_regularizer") else regularizers.get_constraint)(value)
        return None if made is None else {"class_name": type(made).__name__, "config": _public(made)}
    if key in ("activation", "recurrent_activation"):
        return activations.serialize(activations.get(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dtypes.DType):
        return value.name
    if isinstance(value, (list, tuple)):
        return [_value("", v) for v in value]
    if callable(value):
        raise NotImplementedError("get_config: a function (%s) has no JSON; give it to custom_objects under a name" % key)
    return value


def _public(made):
    return made.get_config() if hasattr(made, "get_config") else {k: v for k, v in vars(made).items() if not k.startswith("_")}


def layer_config(layer):
    """The arguments with which a layer can be made again."""
    args, kwargs = layer._init_call
    parameters = [p for p in _signature(layer).values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [p.name for p in parameters if p.name != "self"]
    given = {**dict(zip(names, args)), **kwargs}
    config = {"name": layer.name, "trainable": layer.trainable}
    if layer._batch_input_shape is not None:
        config["batch_input_shape"] = list(layer._batch_input_shape)
    config["dtype"] = layer._dtype.name if layer._dtype is not None and layer._dtype.is_floating else "float32"
    for parameter in parameters + list(getattr(type(layer), "_more_parameters", ())):
        key = parameter.name
        if key in _COMMON or key.startswith("_") or key in getattr(type(layer), "_without", ()):
            continue
        value = given.get(key, parameter.default)
        if key in _RARE and value == parameter.default:
            continue
        if key in _NORMALIZED and isinstance(getattr(layer, key, None), (int, tuple, list)):
            value = getattr(layer, key)
        config[key] = _value(key, value)
    if "activity_regularizer" in given and "activity_regularizer" not in config:
        config["activity_regularizer"] = _value("activity_regularizer", given["activity_regularizer"])
    return config


@export("keras.layers.serialize", "keras.utils.serialize_keras_object")
def serialize(layer):
    return {"class_name": type(layer).__name__ if type(layer).__name__ != "Model" else "Functional", "config": layer.get_config()}


@export("keras.layers.deserialize")
def deserialize(config, custom_objects=None):
    """A layer or a model from its class and configuration."""
    from ferroflow.python.keras import engine

    name = config["class_name"]
    cls = (custom_objects or {}).get(name) or {"Functional": engine.Model, "Model": engine.Model,
                                               "Sequential": engine.Sequential}.get(name) or _known(name)
    if cls is None:
        raise ValueError("Unknown layer: '%s'. Please ensure you are using a `keras.utils.custom_object_scope` and that this object "
                         "is included in the scope. See https://www.tensorflow.org/guide/keras/save_and_serialize"
                         "#registering_the_custom_object for details." % name)
    if custom_objects and "custom_objects" in inspect.signature(cls.from_config).parameters:
        return cls.from_config(config["config"], custom_objects=custom_objects)
    return cls.from_config(config["config"])


def _known(name):
    from ferroflow.compat import v1

    try:
        return getattr(v1.keras.layers, name)
    except AttributeError:
        return None


def layer_from_config(cls, config):
    """A layer from what `layer_config` gave, or TensorFlow's `get_config`."""
    made = {}
    parameters = inspect.signature(getattr(cls, "_signature", None) or cls.__init__).parameters
    for key, value in config.items():
        if key in _UNUSED and key not in parameters:
            continue
        if isinstance(value, dict) and set(value) >= {"class_name", "config"} and key in ("layer", "cell", "backward_layer"):
            value = deserialize(value)
        elif key == "cells":
            value = [deserialize(v) for v in value]
        elif isinstance(value, list) and not (value and isinstance(value[0], dict)):
            value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
        made[key] = value
    return cls(**made)


def functional_config(model):
    """A model of connected layers: each layer with the tensors that it is called with."""
    kept = {id(node) for node in model._nodes}
    places = {}
    for layer in model._layers:
        for index, node in enumerate(n for n in layer._inbound if id(n) in kept):
            for k, tensor in enumerate(nest.flatten(node[4])):
                places[id(tensor)] = [layer.name, index, k]
    described = []
    for layer in model._layers:
        inbound = []
        for node in layer._inbound:
            if id(node) in kept and nest.flatten(node[1]):
                extra = {k: _value(k, v) for k, v in node[3].items()}
                inbound.append([places[id(tensor)] + [extra] for tensor in nest.flatten(node[1])])
        described.append({**serialize(layer), "name": layer.name, "inbound_nodes": inbound})
    return {"name": model.name, "trainable": model.trainable, "layers": described,
            "input_layers": [places[id(t)] for t in model.inputs], "output_layers": [places[id(t)] for t in model.outputs]}


def functional_from_config(cls, config, custom_objects=None):
    """Makes the layers, and calls each as soon as its inputs are there."""
    layers, tensors = {}, {}
    for entry in config["layers"]:
        layer = layers[entry["name"]] = deserialize(entry, custom_objects)
        if type(layer).__name__ == "InputLayer":
            tensors[entry["name"], 0, 0] = layer.output
    left = [(entry["name"], i, node) for entry in config["layers"] for i, node in enumerate(entry["inbound_nodes"])]
    while left:
        ready = [call for call in left if all(tuple(place[:3]) in tensors for place in call[2])
                 and all((call[0], i, 0) in tensors for i in range(call[1]))]
        if not ready:
            raise ValueError("the configuration of model %r has layers without inputs: %s" % (
                config.get("name"), sorted({name for name, _, _ in left})))
        for call in ready:
            name, index, node = call
            given = [tensors[tuple(place[:3])] for place in node]
            extra = dict(node[0][3]) if len(node[0]) > 3 else {}
            outputs = layers[name](given if len(given) > 1 else given[0], **extra)
            for k, tensor in enumerate(nest.flatten(outputs)):
                tensors[name, index, k] = tensor
            left.remove(call)

    def found(places):
        places = [places] if places and isinstance(places[0], str) else places
        many = [tensors[tuple(place[:3])] for place in places]
        return many if len(many) > 1 else many[0]

    return cls(found(config["input_layers"]), found(config["output_layers"]), name=config.get("name"))


def to_json(model, **kwargs):
    return json.dumps({**serialize(model), "keras_version": "2.15.0", "backend": "tensorflow"}, **kwargs)


@export("keras.models.model_from_json")
def model_from_json(json_string, custom_objects=None):
    """A model from its architecture; without weights."""
    return deserialize(json.loads(json_string), custom_objects)


@export("keras.models.model_from_config")
def model_from_config(config, custom_objects=None):
    if isinstance(config, list):
        raise TypeError("`model_from_config` expects a dictionary, not a list. Received: config=%s. Did you meant to use "
                        "`Sequential.from_config(config)`?" % config)
    return deserialize(config, custom_objects)


@export("keras.models.clone_model")
def clone_model(model):
    """A model with the same layers and new weights."""
    return type(model).from_config(model.get_config())
