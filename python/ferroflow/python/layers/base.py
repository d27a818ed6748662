"""The base of `tf.layers`: variables in a scope of their own."""

import copy

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


def _snake(name):
    text = ""
    for i, c in enumerate(name):
        if c.isupper() and i and (name[i - 1].islower() or i + 1 < len(name)
                                  and name[i + 1].islower()):
            text += "_"
        text += c.lower()
    return text


def called(name):
    """Names a function that is made for a class, for messages."""
    def mark(function):
        function.__name__ = function.__qualname__ = name
        return function
    return mark


def activation_of(value):
    """An activation function, which may be given by its name."""
    if not isinstance(value, str):
        return value
    import ferroflow.compat.v1 as api

    if value == "linear":
        return None
    found = getattr(api.nn, value, None)
    if found is None:
        raise ValueError("Unknown activation function: '%s'" % value)
    return found


@export("layers.Layer")
class Layer:
    """A layer makes its variables at its first call and uses them again at later ones."""

    def __init__(self, trainable=True, name=None, dtype=None, activity_regularizer=None,
                 _scope=None, _reuse=None, **kwargs):
        self.trainable = trainable
        self.built = False
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._given_name = name
        self._base_name = name or _snake(type(self).__name__)
        self._given_scope = _scope
        self._reuse = _reuse
        self._scope = None
        self._activity_regularizer = activity_regularizer
        self._trainable_weights, self._non_trainable_weights = [], []
        self._updates, self._losses = [], []

    @property
    def name(self):
        return self._scope.name if self._scope is not None else self._base_name

    @property
    def scope_name(self):
        if self._scope is None:
            raise ValueError('No name available for layer scope because the layer "%s" has not '
                             "been used yet. The scope name is determined the first time the "
                             "layer instance is called." % self._base_name)
        return self._scope.name

    trainable_weights = property(lambda self: self._trainable_weights if self.trainable else [])
    trainable_variables = trainable_weights
    non_trainable_weights = property(
        lambda self: self._non_trainable_weights if self.trainable else
        self._trainable_weights + self._non_trainable_weights)
    non_trainable_variables = non_trainable_weights
    weights = property(lambda self: self._trainable_weights + self._non_trainable_weights)
    variables = weights
    updates = property(lambda self: self._updates)
    losses = property(lambda self: self._losses)
    graph = property(lambda self: ops.get_default_graph())
    dtype = property(lambda self: None if self._dtype is None else self._dtype.name)

    # The rank that inputs must have, and the smallest one.
    _ndim = _min_ndim = None

    # The size that the last dimension must have, once the layer has variables.
    _last_axis = None

    def _check_rank(self, inputs):
        """Fails if the input has a rank that the layer cannot take."""
        shape = getattr(inputs, "get_shape", lambda: None)()
        rank = None if shape is None else shape.ndims
        if rank is None:
            return
        wanted = None
        if self._ndim is not None and rank != self._ndim:
            wanted = "ndim=%d" % self._ndim
        elif self._min_ndim is not None and rank < self._min_ndim:
            wanted = "min_ndim=%d" % self._min_ndim
        if wanted:
            raise ValueError('Input 0 of layer "%s" is incompatible with the layer: expected %s, found ndim=%d. '
                             "Full shape received: %s" % (self.name, wanted, rank, shape))
        if self._last_axis is not None and shape.as_list()[-1] not in (None, self._last_axis):
            raise ValueError('Input 0 of layer "%s" is incompatible with the layer: expected axis -1 of input shape to '
                             "have value %d, but received input with shape %s" % (self.name, self._last_axis, shape))

    def build(self, input_shape):
        self.built = True

    def call(self, inputs, *args, **kwargs):
        return inputs

    def _open_scope(self, scope=None):
        if self._scope is None:
            target = self._given_scope if self._given_scope is not None else scope
            if self._reuse:
                with variable_scope.variable_scope(
                        target if target is not None else self._base_name) as found:
                    self._scope = found
            else:
                with variable_scope.variable_scope(target, default_name=self._base_name) as found:
                    self._scope = found

    def __call__(self, inputs, *args, **kwargs):
        self._open_scope(kwargs.pop("scope", None) or self._given_name)
        reuse = self.built or self._reuse
        if not hasattr(inputs, "get_shape") and not isinstance(inputs, (list, tuple, dict)):
            inputs = ops.convert_to_tensor(inputs)
        self._check_rank(inputs)
        with variable_scope.variable_scope(self._scope, reuse=reuse,
                                           auxiliary_name_scope=False) as scope:
            with ops.name_scope(scope.original_name_scope):
                if not self.built:
                    first = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
                    first = ops.convert_to_tensor(first) if not hasattr(first, "dtype") else first
                    if self._dtype is None:
                        self._dtype = first.dtype.base_dtype
                    if isinstance(inputs, (list, tuple)):
                        self.build([x.get_shape() for x in inputs])
                    else:
                        self.build(first.get_shape())
                    self.built = True
                if not isinstance(inputs, (list, tuple)) and not isinstance(inputs, ops.Tensor):
                    inputs = ops.convert_to_tensor(inputs)
                outputs = self.call(inputs, *args, **kwargs)
                if self._activity_regularizer is not None:
                    self._regularize_activity(outputs)
        if not self._updates_added():
            for update in self._updates:
                ops.add_to_collection(ops.GraphKeys.UPDATE_OPS, update)
        return outputs

    apply = __call__

    def _regularize_activity(self, outputs):
        """The loss of a regularizer for the mean example of a batch."""
        from ferroflow.python.ops import array_ops, math_ops
        from ferroflow.python.util import nest
        with ops.name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                self.add_loss(loss / math_ops.cast(array_ops.shape(output)[0], loss.dtype))

    def _updates_added(self):
        ops.get_collection_ref(ops.GraphKeys.UPDATE_OPS)
        return all(u in ops.get_collection(ops.GraphKeys.UPDATE_OPS) for u in self._updates)

    def add_update(self, updates, inputs=None):
        updates = updates if isinstance(updates, (list, tuple)) else [updates]
        self._updates.extend(u if isinstance(u, ops.Operation) else u.op for u in updates)

    def add_loss(self, losses, inputs=None):
        losses = losses if isinstance(losses, (list, tuple)) else [losses]
        self._losses.extend(losses)
        for loss in losses:
            ops.add_to_collection(ops.GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_weight(self, name, shape, dtype=None, initializer=None, regularizer=None,
                   trainable=None, constraint=None, partitioner=None, **kwargs):
        trainable = True if trainable is None else trainable
        before = len(ops.get_collection_ref(ops.GraphKeys.GLOBAL_VARIABLES))
        var = variable_scope.get_variable(
            name, shape=shape, dtype=dtype or self._dtype or dtypes.float32,
            initializer=initializer, trainable=trainable and self.trainable, constraint=constraint,
            partitioner=partitioner)
        is_new = len(ops.get_collection_ref(ops.GraphKeys.GLOBAL_VARIABLES)) > before
        if regularizer is not None and is_new:
            parts = list(var) if hasattr(var, "_variable_list") else [var]
            for part in parts:
                with ops.name_scope(name + "/Regularizer"):
                    loss = regularizer(part)
                if loss is not None:
                    self.add_loss(loss)
        (self._trainable_weights if trainable else self._non_trainable_weights).append(var)
        return var

    add_variable = add_weight

    def compute_output_shape(self, input_shape):
        """The static shape of what the layer makes of an input of this shape."""
        probe = copy.copy(self)
        probe.built, probe._scope, probe._reuse = False, None, None
        probe._trainable_weights, probe._non_trainable_weights, probe._updates, probe._losses = [], [], [], []
        with ops.Graph().as_default():
            return probe(array_ops.placeholder(self._dtype or dtypes.float32, input_shape)).get_shape()

    def count_params(self):
        return sum(v.get_shape().num_elements() for v in self.weights)
