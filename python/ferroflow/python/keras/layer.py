"""The base of `tf.keras.layers`: a layer that remembers the inputs of its calls."""

import inspect

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.keras import activations
from ferroflow.python.keras import backend
from ferroflow.python.keras import initializers
from ferroflow.python.keras import regularizers
from ferroflow.python.keras import saving
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


def given(kwargs):
    """The arguments of a layer, with objects in place of names."""
    for key, value in kwargs.items():
        if key.endswith("_initializer"):
            kwargs[key] = initializers.get(value)
        elif key.endswith("_regularizer"):
            kwargs[key] = regularizers.get(value)
        elif key.endswith("_constraint"):
            kwargs[key] = regularizers.get_constraint(value)
        elif key == "activation":
            kwargs[key] = activations.get(value)
    return kwargs


def _masks(inputs):
    """The masks of the inputs: a list for a list, None if there is none."""
    if isinstance(inputs, (list, tuple)):
        found = [getattr(x, "_keras_mask", None) for x in inputs]
        return None if all(m is None for m in found) else found
    return getattr(inputs, "_keras_mask", None)


@export("keras.layers.Layer")
class Layer(base.Layer):
    """A layer of Keras. Its variables are resources; its updates and losses belong to it alone."""

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        made._init_call = args, kwargs
        return made

    def __init__(self, trainable=True, name=None, dtype=None, dynamic=False, **kwargs):
        del dynamic
        kwargs = self._begin(kwargs)
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._number_name()

    def _number_name(self):
        """Without a name of its own, a layer has that of its class with a number: dense, dense_1."""
        if self._given_name is None:
            known = ops.get_default_graph().__dict__.setdefault("_keras_names", {})
            count = known[self._base_name] = known.get(self._base_name, -1) + 1
            self._base_name += "_%d" % count if count else ""

    def _begin(self, kwargs):
        """Takes off the arguments that only models need; returns the others."""
        kwargs = given(dict(kwargs))
        shape = kwargs.pop("input_shape", None)
        if shape is None and "input_dim" in kwargs:
            shape = (kwargs["input_dim"],)
        kwargs.pop("input_dim", None)
        batch = kwargs.pop("batch_input_shape", None)
        size = kwargs.pop("batch_size", None)
        if batch is None and shape is not None:
            batch = (size,) + tuple(shape)
        self._layers, self._inbound, self._takes_training = [], [], None
        self._batch_input_shape = batch
        return kwargs

    @property
    def name(self):
        return self._base_name

    def _open_scope(self, scope=None):
        # Two layers may have one name. The variables of the second have the name with a number.
        if self._scope is None and self._given_scope is None and isinstance(scope, str) and not self._reuse:
            with variable_scope.variable_scope(None, default_name=scope) as self._scope:
                return
        super()._open_scope(scope)

    def __setattr__(self, name, value):
        if isinstance(value, Layer) and name != "_layers" and hasattr(self, "_layers"):
            self._layers.append(value)
        super().__setattr__(name, value)

    def _nested(self, attribute):
        found = list(getattr(self, attribute))
        for layer in self._layers:
            found.extend(v for v in layer._nested(attribute) if not any(v is f for f in found))
        return found

    @property
    def trainable_weights(self):
        return self._nested("_trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self):
        rest = self._nested("_non_trainable_weights")
        return rest if self.trainable else self._nested("_trainable_weights") + rest

    @property
    def weights(self):
        found = self._trainable_weights + self._non_trainable_weights
        for layer in self._layers:
            found = found + [v for v in layer.weights if not any(v is f for f in found)]
        return found

    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights
    variables = weights
    updates = property(lambda self: self._nested("_updates") if self.trainable else [])
    losses = property(lambda self: self._nested("_losses"))

    def get_updates_for(self, inputs):
        del inputs
        return self.updates

    def get_losses_for(self, inputs):
        del inputs
        return self.losses

    def _updates_added(self):
        # Keras keeps updates out of the graph's collection.
        return True

    def add_loss(self, losses, inputs=None):
        self._losses.extend(losses if isinstance(losses, (list, tuple)) else [losses])

    def add_weight(self, name=None, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None,
                   constraint=None, **kwargs):
        shape = () if shape is None else shape
        dtype = dtypes.as_dtype(dtype or self._dtype or backend.floatx())
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), use_resource=True, auxiliary_name_scope=False):
            return super().add_weight(
                name or "variable", tensor_shape.as_shape(shape), dtype=dtype, initializer=initializers.get(initializer),
                regularizer=regularizers.get(regularizer), trainable=trainable,
                constraint=regularizers.get_constraint(constraint))

    add_variable = add_weight

    def __call__(self, inputs, *args, **kwargs):
        if self._takes_training is None:
            known = inspect.signature(self.call).parameters
            self._takes_training, self._takes_mask = "training" in known, "mask" in known
        if self._takes_training and kwargs.get("training") is None and not args:
            kwargs["training"] = backend.learning_phase()
        mask = kwargs.get("mask")
        if mask is None:
            mask = _masks(inputs)
            if self._takes_mask and mask is not None and len(args) == 0:
                kwargs["mask"] = mask
        outputs = super().__call__(inputs, *args, **kwargs)
        flat = nest.flatten(outputs)
        if any(t is i for t in flat for i in nest.flatten(inputs)):
            # A layer that changes nothing makes new tensors, by which models distinguish layers.
            outputs = nest.map_structure(array_ops.identity, outputs)
            flat = nest.flatten(outputs)
        node = (self, inputs, args, {k: v for k, v in kwargs.items() if k not in ("training", "mask")}, outputs)
        self._inbound.append(node)
        for tensor in flat:
            if isinstance(tensor, ops.Tensor):
                tensor._keras_history = node
        if mask is not None or type(self).compute_mask is not Layer.compute_mask:
            with ops.name_scope(self._scope.original_name_scope if self._scope is not None else None):
                found = self.compute_mask(inputs, mask)
            for tensor, one in zip(flat, found if isinstance(found, (list, tuple)) else [found]):
                if isinstance(tensor, ops.Tensor) and one is not None:
                    tensor._keras_mask = one
        return outputs

    apply = __call__

    # Whether a mask of the input is one of the output, too.
    supports_masking = False

    def compute_mask(self, inputs, mask=None):
        """Which steps of the output count: a boolean tensor, or None for all."""
        if not self.supports_masking or not isinstance(mask, (list, tuple)):
            return mask if self.supports_masking else None
        found = [m for m in mask if m is not None]
        together = found[0]
        for one in found[1:]:
            together = math_ops.logical_and(together, one)
        return together

    def _last(self, at):
        if not self._inbound:
            raise AttributeError("The layer has never been called and thus has no defined input or output.")
        return self._inbound[0][at]

    input = property(lambda self: self._last(1))
    output = property(lambda self: self._last(4))
    input_shape = property(lambda self: nest.map_structure(backend.int_shape, self.input))
    output_shape = property(lambda self: nest.map_structure(backend.int_shape, self.output))

    def get_weights(self):
        return backend.batch_get_value(self.weights)

    def set_weights(self, weights):
        own = self.weights
        if len(own) != len(weights):
            raise ValueError('You called `set_weights(weights)` on layer "%s" with a weight list of length %d, but the layer was '
                             "expecting %d weights." % (self.name, len(weights), len(own)))
        for variable, value in zip(own, weights):
            if tuple(variable.get_shape().as_list()) != tuple(getattr(value, "shape", ())):
                raise ValueError("Layer weight shape %s not compatible with provided weight shape %s" % (
                    variable.get_shape(), getattr(value, "shape", ())))
        backend.batch_set_value(zip(own, weights))

    def get_config(self):
        """The arguments with which the layer can be made again."""
        return saving.layer_config(self)

    @classmethod
    def from_config(cls, config):
        return saving.layer_from_config(cls, config)
