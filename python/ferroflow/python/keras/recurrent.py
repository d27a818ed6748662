"""Recurrent layers of `tf.keras.layers`."""

from ferroflow.python.keras import activations
from ferroflow.python.keras import initializers
from ferroflow.python.keras.layer import Layer
from ferroflow.python.keras.layer import given
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import map_fn
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


class _Recurrent(Layer):
    """A layer over the second dimension. Subclasses say how many gates there are and how a step goes."""

    _GATES = 1
    _STATES = 1

    def __init__(self, units, activation="tanh", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", kernel_regularizer=None,
                 recurrent_regularizer=None, bias_regularizer=None, dropout=0.0, recurrent_dropout=0.0,
                 return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False,
                 recurrent_activation="hard_sigmoid", unit_forget_bias=True, implementation=1, reset_after=False, **kwargs):
        super().__init__(**kwargs)
        del unroll, implementation
        if dropout or recurrent_dropout or stateful or reset_after:
            raise NotImplementedError("%s: dropout, recurrent_dropout, stateful and reset_after are not supported" % type(self).__name__)
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self._kernel = given({"kernel_initializer": kernel_initializer, "kernel_regularizer": kernel_regularizer})
        self._recurrent = given({"recurrent_initializer": recurrent_initializer, "recurrent_regularizer": recurrent_regularizer})
        self._bias = given({"bias_initializer": bias_initializer, "bias_regularizer": bias_regularizer})
        self.unit_forget_bias = unit_forget_bias
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards

    def build(self, input_shape):
        size, width = input_shape.as_list()[-1], self.units * self._GATES
        self.kernel = self.add_weight("kernel", [size, width], initializer=self._kernel["kernel_initializer"],
                                      regularizer=self._kernel["kernel_regularizer"])
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", [self.units, width], initializer=self._recurrent["recurrent_initializer"],
            regularizer=self._recurrent["recurrent_regularizer"])
        self.bias = self.add_weight("bias", [width], initializer=self._first_bias(), regularizer=self._bias["bias_regularizer"]) if (
            self.use_bias) else None

    def _first_bias(self):
        return self._bias["bias_initializer"]

    def call(self, inputs, initial_state=None):
        x = array_ops.transpose(inputs, [1, 0, 2])
        if self.go_backwards:
            x = array_ops.reverse(x, [0])
        if initial_state is None:
            zeros = array_ops.zeros(array_ops.stack([array_ops.shape(inputs)[0], self.units]), inputs.dtype)
            zeros.set_shape([inputs.get_shape().as_list()[0], self.units])
            initial_state = [zeros] * self._STATES
        states = tuple(initial_state) if isinstance(initial_state, (list, tuple)) else (initial_state,)
        found = map_fn.scan(lambda before, value: self._step(value, before), x, initializer=states)
        last = [s[-1] for s in found]
        y = array_ops.transpose(found[0], [1, 0, 2]) if self.return_sequences else last[0]
        dims = inputs.get_shape().as_list()
        y.set_shape([dims[0], dims[1], self.units] if self.return_sequences else [dims[0], self.units])
        return [y] + last if self.return_state else y

    def _projected(self, x):
        y = math_ops.matmul(x, self.kernel)
        return y if self.bias is None else y + self.bias


@export("keras.layers.SimpleRNN")
class SimpleRNN(_Recurrent):
    def _step(self, x, states):
        return (self.activation(self._projected(x) + math_ops.matmul(states[0], self.recurrent_kernel)),)


@export("keras.layers.LSTM")
class LSTM(_Recurrent):
    _GATES, _STATES = 4, 2

    def _first_bias(self):
        plain = self._bias["bias_initializer"]
        if not self.unit_forget_bias:
            return plain
        units, ones = self.units, initializers.Ones()

        def make(shape, dtype=None, partition_info=None):
            del shape, partition_info
            return array_ops.concat([plain([units], dtype=dtype), ones([units], dtype=dtype), plain([units * 2], dtype=dtype)], 0)
        return make

    def _step(self, x, states):
        h, c = states
        i, f, g, o = array_ops.split(self._projected(x) + math_ops.matmul(h, self.recurrent_kernel), 4, axis=1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        return self.recurrent_activation(o) * self.activation(c), c


@export("keras.layers.GRU")
class GRU(_Recurrent):
    _GATES = 3

    def _step(self, x, states):
        h = states[0]
        units = self.units
        xz, xr, xh = array_ops.split(self._projected(x), 3, axis=1)
        gates = math_ops.matmul(h, self.recurrent_kernel[:, :2 * units])
        z = self.recurrent_activation(xz + gates[:, :units])
        r = self.recurrent_activation(xr + gates[:, units:])
        new = self.activation(xh + math_ops.matmul(r * h, self.recurrent_kernel[:, 2 * units:]))
        return (z * h + (1 - z) * new,)


@export("keras.layers.Bidirectional")
class Bidirectional(Layer):
    """Two copies of a recurrent layer, one of which reads backwards."""

    def __init__(self, layer, merge_mode="concat", weights=None, **kwargs):
        super().__init__(**kwargs)
        del weights
        import copy

        self.forward_layer, self.backward_layer = copy.copy(layer), copy.copy(layer)
        for one, prefix in ((self.forward_layer, "forward_"), (self.backward_layer, "backward_")):
            one._base_name = prefix + layer._base_name
            one._given_name = one._given_name and prefix + one._given_name
            one._trainable_weights, one._non_trainable_weights, one._inbound, one._layers = [], [], [], []
        self.backward_layer.go_backwards = not layer.go_backwards
        self.merge_mode, self.return_sequences = merge_mode, layer.return_sequences

    def call(self, inputs):
        ahead, back = self.forward_layer(inputs), self.backward_layer(inputs)
        if self.return_sequences:
            back = array_ops.reverse(back, [1])
        if self.merge_mode == "concat":
            return array_ops.concat([ahead, back], -1)
        if self.merge_mode is None:
            return [ahead, back]
        return {"sum": lambda: ahead + back, "mul": lambda: ahead * back, "ave": lambda: (ahead + back) / 2}[self.merge_mode]()


@export("keras.layers.TimeDistributed")
class TimeDistributed(Layer):
    """A layer for each step of a sequence."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs):
        dims, shape = inputs.get_shape().as_list(), array_ops.shape(inputs)
        flat = array_ops.reshape(inputs, array_ops.concat([[-1], shape[2:]], 0))
        flat.set_shape([None] + dims[2:])
        y = self.layer(flat)
        result = array_ops.reshape(y, array_ops.concat([shape[:2], array_ops.shape(y)[1:]], 0))
        result.set_shape(dims[:2] + y.get_shape().as_list()[1:])
        return result
