"""Recurrent layers of `tf.keras.layers`: cells make a step, layers run them over time."""

import copy
import inspect

import numpy as np

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.keras import activations
from ferroflow.python.keras import backend
from ferroflow.python.keras import initializers
from ferroflow.python.keras.layer import Layer
from ferroflow.python.keras.layer import given
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import map_fn
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


def _tuple(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class _Cell(Layer):
    """A step. Subclasses say how many gates and states there are."""

    _GATES = _STATES = 1

    def __init__(self, units, activation="tanh", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", kernel_regularizer=None,
                 recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None,
                 bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, recurrent_activation="hard_sigmoid",
                 unit_forget_bias=True, implementation=1, reset_after=False, **kwargs):
        super().__init__(**kwargs)
        del implementation
        self.units, self.use_bias, self.unit_forget_bias = units, use_bias, unit_forget_bias
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self.reset_after = reset_after
        self._kernel = given({"kernel_initializer": kernel_initializer, "kernel_regularizer": kernel_regularizer,
                              "kernel_constraint": kernel_constraint})
        self._recurrent = given({"recurrent_initializer": recurrent_initializer, "recurrent_regularizer": recurrent_regularizer,
                                 "recurrent_constraint": recurrent_constraint})
        self._bias = given({"bias_initializer": bias_initializer, "bias_regularizer": bias_regularizer,
                            "bias_constraint": bias_constraint})

    state_size = property(lambda self: self.units if self._STATES == 1 else [self.units] * self._STATES)
    output_size = property(lambda self: self.units)

    def build(self, input_shape):
        def made(name, shape, options, initializer=None):
            kind = name.split("_")[0]
            return self.add_weight(name, shape, initializer=initializer or options[kind + "_initializer"],
                                   regularizer=options[kind + "_regularizer"], constraint=options[kind + "_constraint"])

        width = self.units * self._GATES
        self.kernel = made("kernel", [input_shape.as_list()[-1], width], self._kernel)
        self.recurrent_kernel = made("recurrent_kernel", [self.units, width], self._recurrent)
        shape = [2, width] if self.reset_after else [width]
        self.bias = made("bias", shape, self._bias, self._first_bias()) if self.use_bias else None

    def _first_bias(self):
        return None

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return _zeros(self, inputs, batch_size, dtype)

    def masks(self, inputs, states, training):
        """What to multiply inputs and states with, for each gate: the same values at all steps; or ones."""
        if not (self.dropout or self.recurrent_dropout):
            return None

        def of(like, rate):
            if not rate:
                return [1.0] * self._GATES
            ones = array_ops.ones_like(like)
            return [cond.smart_cond(training, lambda: nn_ops.dropout(ones, rate=rate), lambda: array_ops.identity(ones))
                    for _ in range(self._GATES)]

        return of(inputs, self.dropout), of(states[0], self.recurrent_dropout)

    def call(self, inputs, states, training=None, masks=None):
        states = _tuple(states)
        if masks is None:
            masks = self.masks(inputs, states, backend.learning_phase() if training is None else training)
        found = self._step(inputs, states, masks)
        return found[0], list(found[1:])

    def _gates(self, x, weights, masks, bias=None):
        """The product with the weights of each gate."""
        if masks is None or all(isinstance(m, float) for m in masks):
            y = math_ops.matmul(x, weights)
            y = y if bias is None else y + bias
            return array_ops.split(y, self._GATES, axis=1) if self._GATES > 1 else [y]
        parts = array_ops.split(weights, self._GATES, axis=1)
        found = [math_ops.matmul(x * m, w) for m, w in zip(masks, parts)]
        return found if bias is None else [y + b for y, b in zip(found, array_ops.split(bias, self._GATES, axis=0))]

    def _of_inputs(self, x, masks, bias):
        return self._gates(x, self.kernel, masks and masks[0], bias)

    def _of_state(self, h, masks, bias=None):
        return self._gates(h, self.recurrent_kernel, masks and masks[1], bias)


@export("keras.layers.SimpleRNNCell")
class SimpleRNNCell(_Cell):
    _without = ("recurrent_activation", "unit_forget_bias", "reset_after", "implementation")

    def _step(self, x, states, masks):
        h = self.activation(self._of_inputs(x, masks, self.bias)[0] + self._of_state(states[0], masks)[0])
        return h, h


@export("keras.layers.LSTMCell")
class LSTMCell(_Cell):
    _without = ("reset_after",)
    _GATES, _STATES = 4, 2

    def _first_bias(self):
        if not self.unit_forget_bias:
            return None
        plain, units, ones = self._bias["bias_initializer"], self.units, initializers.Ones()

        def make(shape, dtype=None, partition_info=None):
            del shape, partition_info
            return array_ops.concat([plain([units], dtype=dtype), ones([units], dtype=dtype), plain([units * 2], dtype=dtype)], 0)
        return make

    def _step(self, x, states, masks):
        h, c = states
        i, f, g, o = (a + b for a, b in zip(self._of_inputs(x, masks, self.bias), self._of_state(h, masks)))
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        h = self.recurrent_activation(o) * self.activation(c)
        return h, h, c


@export("keras.layers.GRUCell")
class GRUCell(_Cell):
    _without = ("unit_forget_bias",)
    _GATES = 3

    def _step(self, x, states, masks):
        h = states[0]
        ahead, back = (self.bias[0], self.bias[1]) if self.reset_after and self.bias is not None else (self.bias, None)
        xz, xr, xh = self._of_inputs(x, masks, ahead)
        if self.reset_after:
            hz, hr, hh = self._of_state(h, masks, back)
        else:
            drops = masks[1] if masks else [1.0] * 3
            wz, wr, wh = array_ops.split(self.recurrent_kernel, 3, axis=1)
            hz, hr = math_ops.matmul(h * drops[0], wz), math_ops.matmul(h * drops[1], wr)
        z, r = self.recurrent_activation(xz + hz), self.recurrent_activation(xr + hr)
        new = self.activation(xh + (r * hh if self.reset_after else math_ops.matmul(r * h * drops[2], wh)))
        h = z * h + (1 - z) * new
        return h, h


@export("keras.layers.StackedRNNCells")
class StackedRNNCells(Layer):
    """Cells, each of which gets the output of the one before."""

    def __init__(self, cells, **kwargs):
        super().__init__(**kwargs)
        for cell in cells:
            if not hasattr(cell, "call"):
                raise ValueError("All cells must have a `call` method. Received cell without a `call` method: %s" % (cell,))
            if not hasattr(cell, "state_size"):
                raise ValueError("All cells must have a `state_size` attribute. Received cell without a `state_size`: %s" % (cell,))
        self.cells = list(cells)
        self._layers.extend(c for c in self.cells if isinstance(c, Layer))

    state_size = property(lambda self: tuple(c.state_size for c in self.cells))
    output_size = property(lambda self: getattr(self.cells[-1], "output_size", _tuple(self.cells[-1].state_size)[0]))

    def build(self, input_shape):
        for cell in self.cells:
            _build_within(cell, input_shape)
            size = getattr(cell, "output_size", _tuple(cell.state_size)[0])
            input_shape = tensor_shape.TensorShape(input_shape.as_list()[:-1] + [size])

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return [_zeros(cell, inputs, batch_size, dtype) for cell in self.cells]

    def call(self, inputs, states, training=None):
        """States are a flat list."""
        left, found = list(states), []
        for cell in self.cells:
            count = len(_tuple(cell.state_size))
            inputs, new = _called(cell, inputs, left[:count], training)
            left, found = left[count:], found + list(_tuple(new))
        return inputs, found


def _called(cell, inputs, states, training, masks=None):
    """A step of a cell of the package, or of a program's own."""
    if masks is not None:
        return cell.call(inputs, states, masks=masks)
    if isinstance(cell, (_Cell, StackedRNNCells)):
        return cell.call(inputs, states, training=training)
    return cell.call(inputs, list(states))


def _zeros(cell, inputs, batch_size, dtype):
    """States at the beginning."""
    if inputs is not None:
        batch_size, dtype = array_ops.shape(inputs)[0], inputs.dtype
    made = []
    for size in _flat_sizes(cell.state_size):
        zero = array_ops.zeros(array_ops.stack([batch_size, size]), dtype)
        zero.set_shape([None if inputs is None else inputs.get_shape().as_list()[0], size])
        made.append(zero)
    return made if len(made) > 1 else made[0]


def _flat_sizes(sizes):
    if not isinstance(sizes, (list, tuple)):
        return [tensor_shape.as_dimension(sizes).value]
    return [n for size in sizes for n in _flat_sizes(size)]


def _build_within(cell, input_shape):
    """Makes the variables of a cell in the scope of its layer."""
    if not isinstance(cell, Layer) or cell.built:
        if not getattr(cell, "built", True):
            cell.build(input_shape)
        return
    cell._open_scope(cell._base_name if cell._given_name is None else cell._given_name)
    with variable_scope.variable_scope(cell._scope, auxiliary_name_scope=False) as scope:
        with ops.name_scope(scope.original_name_scope):
            cell.build(input_shape)
    cell.built = True


@export("keras.layers.RNN")
class RNN(Layer):
    """Runs a cell over the second dimension."""

    supports_masking = True

    def __init__(self, cell, return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False,
                 time_major=False, **kwargs):
        kwargs.pop("zero_output_for_mask", None)
        super().__init__(**kwargs)
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "call"):
            raise ValueError("Argument `cell` should have a `call` method. The RNN was passed: cell=%s" % (cell,))
        if not hasattr(cell, "state_size"):
            raise ValueError("The RNN cell should have an attribute `state_size` (tuple of integers, one integer per RNN state). "
                             "Received: cell=%s" % (cell,))
        self.cell = cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.stateful, self.unroll, self.time_major = stateful, unroll, time_major
        self.states, self.state_updates = None, []

    def build(self, input_shape):
        shape = (input_shape[0] if isinstance(input_shape, list) else input_shape).as_list()
        _build_within(self.cell, tensor_shape.TensorShape([shape[1 if self.time_major else 0]] + shape[2:]))
        if self.stateful:
            batch = shape[1 if self.time_major else 0]
            if batch is None:
                raise ValueError("If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input "
                                 "tensors: \n- If using a Sequential model, specify the batch size by passing a "
                                 "`batch_input_shape` argument to your first layer.\n- If using the functional API, specify the "
                                 "batch size by passing a `batch_shape` argument to your Input layer.")
            self.states = [backend.variable(np.zeros([batch, n]), name="state_%d" % i)
                           for i, n in enumerate(_flat_sizes(self.cell.state_size))]

    def reset_states(self, states=None):
        """Sets the states of a stateful layer, to zero by default."""
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        values = states if states is not None else [np.zeros(s.get_shape().as_list()) for s in self.states]
        backend.batch_set_value(zip(self.states, _tuple(values) if not isinstance(values, list) else values))

    def call(self, inputs, mask=None, training=None, initial_state=None, constants=None):
        if constants is not None:
            raise NotImplementedError("RNN: constants is not supported")
        if isinstance(inputs, (list, tuple)):
            inputs, initial_state = inputs[0], list(inputs[1:])
            mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        x = inputs if self.time_major else _time_first(inputs)
        if mask is not None:
            mask = array_ops.expand_dims(mask if self.time_major else array_ops.transpose(mask), -1)
        if self.go_backwards:
            x, mask = array_ops.reverse(x, [0]), None if mask is None else array_ops.reverse(mask, [0])
        states = initial_state if initial_state is not None else self.states
        if states is None:
            batch = inputs if not self.time_major else array_ops.transpose(inputs, [1, 0, 2])
            states = _zeros(self.cell, batch, None, None)
        states = _tuple(states)
        masks = self.cell.masks(x[0], states, training) if isinstance(self.cell, _Cell) else None
        outputs, last_output, last = self._steps(x, states, mask, masks, training)
        if self.stateful:
            self.state_updates = [state_ops.assign(s, value) for s, value in zip(self.states, last)]
        size = _flat_sizes(getattr(self.cell, "output_size", _flat_sizes(self.cell.state_size)[0]))[0]
        dims = inputs.get_shape().as_list()
        if not self.return_sequences:
            y = last_output
            y.set_shape([dims[1 if self.time_major else 0], size])
        else:
            y = outputs if self.time_major else array_ops.transpose(outputs, [1, 0] + list(range(2, 2 + len(dims) - 2)))
            y.set_shape(dims[:2] + [size])
        return [y] + list(last) if self.return_state else y

    def _steps(self, x, states, mask, masks, training):
        """All outputs, the last output and the last states. Steps that the mask leaves out change nothing."""
        def step(before, value):
            at = value[0] if mask is not None else value
            output, new = _called(self.cell, at, before[1:], training, masks)
            new = _tuple(new)
            if mask is not None:
                output, *new = (array_ops.where_v2(value[1], n, old) for n, old in zip((output, *new), before))
            return (output, *new)

        count = x.get_shape().as_list()[0]
        if self.unroll:
            if count is None:
                raise ValueError("Cannot unroll a RNN if the time dimension is undefined.")
            first = array_ops.zeros_like(_called(self.cell, x[0], states, training, masks)[0])
            at, outputs = (first, *states), []
            for i in range(count):
                at = step(at, x[i] if mask is None else (x[i], mask[i]))
                outputs.append(at[0])
            return array_ops.stack(outputs), at[0], at[1:]
        size = _flat_sizes(getattr(self.cell, "output_size", _flat_sizes(self.cell.state_size)[0]))[0]
        first = array_ops.zeros(array_ops.stack([array_ops.shape(x)[1], size]), x.dtype)
        first.set_shape([x.get_shape().as_list()[1], size])
        found = map_fn.scan(step, x if mask is None else (x, mask), initializer=(first, *states))
        return found[0], found[0][-1], [s[-1] for s in found[1:]]

    def compute_mask(self, inputs, mask=None):
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        kept = mask if self.return_sequences else None
        return [kept] + [None] * len(_flat_sizes(self.cell.state_size)) if self.return_state else kept


def _time_first(x):
    return array_ops.transpose(x, [1, 0] + list(range(2, x.get_shape().ndims)))


class _Recurrent(RNN):
    """A layer with a cell of its own."""

    _CELL = None
    _OWN = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major", "name", "trainable", "dtype",
            "input_shape", "batch_input_shape", "batch_size", "input_dim", "input_length", "activity_regularizer",
            "zero_output_for_mask")

    # Parameters of the layer, beside those of its cell.
    _more_parameters = [p for p in inspect.signature(RNN.__init__).parameters.values() if p.name not in ("cell", "kwargs")]

    def __init__(self, units, *args, **kwargs):
        own = {k: kwargs.pop(k) for k in self._OWN if k in kwargs}
        length = own.pop("input_length", None)
        if "input_dim" in own:
            own.setdefault("input_shape", (length, own.pop("input_dim")))
        super().__init__(self._CELL(units, *args, name=base._snake(self._CELL.__name__), **kwargs), **own)

    units = property(lambda self: self.cell.units)
    activation = property(lambda self: self.cell.activation)
    recurrent_activation = property(lambda self: self.cell.recurrent_activation)
    use_bias = property(lambda self: self.cell.use_bias)
    dropout = property(lambda self: self.cell.dropout)
    recurrent_dropout = property(lambda self: self.cell.recurrent_dropout)
    unit_forget_bias = property(lambda self: self.cell.unit_forget_bias)
    reset_after = property(lambda self: self.cell.reset_after)


@export("keras.layers.SimpleRNN")
class SimpleRNN(_Recurrent):
    _CELL, _signature, _without = SimpleRNNCell, SimpleRNNCell.__init__, SimpleRNNCell._without


@export("keras.layers.LSTM")
class LSTM(_Recurrent):
    _CELL, _signature, _without = LSTMCell, LSTMCell.__init__, LSTMCell._without


@export("keras.layers.GRU")
class GRU(_Recurrent):
    _CELL, _signature, _without = GRUCell, GRUCell.__init__, GRUCell._without


def _clone(layer, prefix=""):
    """A layer of the same kind, without variables of its own yet."""
    found = copy.copy(layer)
    found._base_name = prefix + layer._base_name
    found._given_name = layer._given_name and prefix + layer._given_name
    found._trainable_weights, found._non_trainable_weights, found._inbound = [], [], []
    found._layers, found._updates, found._losses = [], [], []
    if hasattr(layer, "cell"):
        found.cell = _clone(layer.cell)
    if hasattr(layer, "cells"):
        found.cells = [_clone(c) for c in layer.cells]
        found._layers.extend(found.cells)
    return found


@export("keras.layers.Bidirectional")
class Bidirectional(Layer):
    """Two copies of a recurrent layer, one of which reads backwards."""

    supports_masking = True

    def __init__(self, layer, merge_mode="concat", weights=None, backward_layer=None, **kwargs):
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError("Invalid merge mode. Received: %s. Merge mode should be one of {\"sum\", \"mul\", \"ave\", \"concat\", "
                             "None}" % merge_mode)
        if layer._batch_input_shape is not None:
            kwargs.setdefault("batch_input_shape", layer._batch_input_shape)
        super().__init__(**kwargs)
        del weights
        self.forward_layer = _clone(layer, "forward_")
        self.backward_layer = _clone(layer, "backward_") if backward_layer is None else backward_layer
        if backward_layer is None:
            self.backward_layer.go_backwards = not layer.go_backwards
        self.merge_mode, self.return_sequences, self.return_state = merge_mode, layer.return_sequences, layer.return_state

    def call(self, inputs, mask=None, training=None, initial_state=None):
        halves = [None, None]
        if initial_state is not None:
            half = len(initial_state) // 2
            halves = [list(initial_state[:half]), list(initial_state[half:])]
        found = [layer(inputs, mask=mask, training=training, **({} if s is None else {"initial_state": s}))
                 for layer, s in zip((self.forward_layer, self.backward_layer), halves)]
        states = [s for y in found for s in y[1:]] if self.return_state else []
        ahead, back = (y[0] for y in found) if self.return_state else found
        if self.return_sequences:
            back = array_ops.reverse(back, [1])
        merged = {"concat": lambda: array_ops.concat([ahead, back], -1), "sum": lambda: ahead + back, "mul": lambda: ahead * back,
                  "ave": lambda: (ahead + back) / 2, None: lambda: [ahead, back]}[self.merge_mode]()
        if states:
            return (merged if isinstance(merged, list) else [merged]) + states
        return merged

    def compute_mask(self, inputs, mask=None):
        kept = mask if self.return_sequences else None
        outputs = [kept, kept] if self.merge_mode is None else [kept]
        if self.return_state:
            return outputs + [None] * (2 * len(_flat_sizes(self.forward_layer.cell.state_size)))
        return outputs if self.merge_mode is None else kept


@export("keras.layers.TimeDistributed")
class TimeDistributed(Layer):
    """A layer for each step of a sequence."""

    supports_masking = True

    def __init__(self, layer, **kwargs):
        if layer._batch_input_shape is not None:
            kwargs.setdefault("batch_input_shape", layer._batch_input_shape)
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs):
        dims, shape = inputs.get_shape().as_list(), array_ops.shape(inputs)
        flat = array_ops.reshape(inputs, array_ops.concat([[-1], shape[2:]], 0))
        flat.set_shape([None] + dims[2:])
        if self.layer._scope is None and not self.layer._layers:
            # The variables of the layer have the name of this one.
            self.layer._scope = variable_scope.get_variable_scope()
        y = self.layer(flat)
        result = array_ops.reshape(y, array_ops.concat([shape[:2], array_ops.shape(y)[1:]], 0))
        result.set_shape(dims[:2] + y.get_shape().as_list()[1:])
        return result
