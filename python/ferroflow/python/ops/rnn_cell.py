"""Cells of recurrent networks."""

import collections
import contextlib
import hashlib

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


def _vector(value):
    """A size or shape as (a vector or None, its static dimensions)."""
    if isinstance(value, ops.Tensor):
        known = tensor_util.constant_value(value)
        if value.get_shape().ndims == 0:
            value = array_ops.expand_dims(value, 0)
        elif value.get_shape().ndims != 1:
            raise ValueError("a size must be a scalar or a vector, but has shape: %s" %
                             value.get_shape())
        static = [None] if known is None else [int(d) for d in known.reshape(-1)]
        return value, static
    shape = tensor_shape.TensorShape([value]) if isinstance(value, int) else (
        tensor_shape.as_shape(value))
    dims = shape.as_list() if shape.ndims is not None else None
    return (constant_op.constant(dims, dtype=dtypes.int32)
            if shape.is_fully_defined() else None), dims


def concat_shape(prefix, suffix, static=False):
    """The dimensions of `prefix` followed by those of `suffix`, as a vector or a list.

    A static list is None if one of them has an unknown rank.
    """
    p, p_static = _vector(prefix)
    s, s_static = _vector(suffix)
    if static:
        return None if p_static is None or s_static is None else p_static + s_static
    if p is None or s is None:
        raise ValueError("Prefix or suffix can't be None. Received prefix = %s and suffix = %s" % (
            prefix, suffix))
    return array_ops.concat((p, s), 0)


def zero_state_tensors(state_size, batch_size, dtype):
    """Zeros in the structure of `state_size`."""
    def zeros(size):
        result = array_ops.zeros(concat_shape(batch_size, size), dtype=dtype)
        result.set_shape(concat_shape(batch_size, size, static=True))
        return result
    return nest.map_structure(zeros, state_size)


@export("nn.rnn_cell.RNNCell", "contrib.rnn.RNNCell")
class RNNCell(base.Layer):
    """A step of a recurrent network: (output, new state) from (input, state)."""

    _only_floats = _reenters = False

    @property
    def state_size(self):
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self):
        raise NotImplementedError("Abstract method")

    def __call__(self, inputs, state, scope=None):
        if scope is not None:
            with variable_scope.variable_scope(scope) as found:
                return self._step(inputs, state, found)
        return self._step(inputs, state, None)

    def _step(self, inputs, state, scope):
        if self._scope is None:
            if scope is not None:
                self._scope = scope
            else:
                # TensorFlow enters the current scope once more for cells that are no layers.
                outer = variable_scope.get_variable_scope().name.split("/")[-1]
                again = ops.name_scope(outer) if self._reenters and outer else contextlib.nullcontext()
                with again, variable_scope.variable_scope(
                        self._given_name, default_name=self._base_name) as found:
                    self._scope = found
        ops.get_collection_ref(ops.GraphKeys.UPDATE_OPS)
        self._check_rank(inputs)
        with variable_scope.variable_scope(self._scope, reuse=self.built or self._reuse or None,
                                           auxiliary_name_scope=False):
            with ops.name_scope(self._scope.original_name_scope):
                if not self.built:
                    first = nest.flatten(inputs)[0]
                    if self._dtype is None:
                        self._dtype = first.dtype.base_dtype
                    self.build(first.get_shape())
                    self.built = True
                if self._only_floats:
                    _check_floats([inputs, state])
                return self.call(inputs, state)

    def zero_state(self, batch_size, dtype):
        with ops.name_scope(type(self).__name__ + "ZeroState"):
            return zero_state_tensors(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        if inputs is not None:
            inputs = ops.convert_to_tensor(inputs, name="inputs")
            batch_size = inputs.get_shape().as_list()[0] or array_ops.shape(inputs)[0]
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError("batch_size and dtype cannot be None while constructing initial "
                             "state: batch_size=%s, dtype=%s" % (batch_size, dtype))
        return self.zero_state(batch_size, dtype)

    def _depth(self, input_shape):
        depth = input_shape.as_list()[-1]
        if depth is None:
            raise ValueError("Expected inputs.shape[-1] to be known, received shape: %s" %
                             input_shape)
        return depth


def _check_floats(values):
    for t in nest.flatten(values):
        if hasattr(t, "dtype") and not t.dtype.is_floating:
            raise ValueError("RNN cell only supports floating point inputs, but received dtype: %r" % t.dtype)


@export("nn.rnn_cell.BasicRNNCell", "contrib.rnn.BasicRNNCell")
class BasicRNNCell(RNNCell):
    """output = new state = activation(W * [input, state] + B)"""

    _ndim, _only_floats = 2, True

    def __init__(self, num_units, activation=None, reuse=None, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = activation or math_ops.tanh

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, input_shape):
        n = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape) + n, n])
        self._bias = self.add_weight("bias", [n], initializer=init_ops.zeros_initializer())

    def call(self, inputs, state):
        gates = math_ops.matmul(array_ops.concat([inputs, state], 1), self._kernel)
        output = self._activation(nn_ops.bias_add(gates, self._bias))
        return output, output


@export("nn.rnn_cell.GRUCell", "contrib.rnn.GRUCell")
class GRUCell(RNNCell):
    """A gated recurrent unit."""

    _ndim, _only_floats = 2, True

    def __init__(self, num_units, activation=None, reuse=None, kernel_initializer=None,
                 bias_initializer=None, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = activation or math_ops.tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, input_shape):
        n = self._num_units
        rows = self._depth(input_shape) + n
        self._gate_kernel = self.add_weight("gates/kernel", [rows, 2 * n],
                                            initializer=self._kernel_initializer)
        self._gate_bias = self.add_weight(
            "gates/bias", [2 * n], initializer=self._bias_initializer
            or init_ops.constant_initializer(1.0, dtype=self._dtype))
        self._candidate_kernel = self.add_weight("candidate/kernel", [rows, n],
                                                 initializer=self._kernel_initializer)
        self._candidate_bias = self.add_weight(
            "candidate/bias", [n],
            initializer=self._bias_initializer or init_ops.zeros_initializer())

    def call(self, inputs, state):
        gates = math_ops.matmul(array_ops.concat([inputs, state], 1), self._gate_kernel)
        value = math_ops.sigmoid(nn_ops.bias_add(gates, self._gate_bias))
        r, u = array_ops.split(value=value, num_or_size_splits=2, axis=1)
        r_state = r * state
        candidate = math_ops.matmul(array_ops.concat([inputs, r_state], 1),
                                    self._candidate_kernel)
        c = self._activation(nn_ops.bias_add(candidate, self._candidate_bias))
        new_h = u * state + (1 - u) * c
        return new_h, new_h


@export("nn.rnn_cell.LSTMStateTuple", "contrib.rnn.LSTMStateTuple")
class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ("c", "h"))):
    """The state of an LSTM."""

    __slots__ = ()

    @property
    def dtype(self):
        c, h = self
        if c.dtype != h.dtype:
            raise TypeError("Inconsistent dtypes for internal state: %s vs %s" % (
                c.dtype, h.dtype))
        return c.dtype


def _split_state(cell, state):
    if cell._state_is_tuple:
        return state
    return array_ops.split(value=state, num_or_size_splits=2, axis=1)


def _join_state(cell, c, h):
    return LSTMStateTuple(c, h) if cell._state_is_tuple else array_ops.concat([c, h], 1)


@export("nn.rnn_cell.BasicLSTMCell", "contrib.rnn.BasicLSTMCell")
class BasicLSTMCell(RNNCell):
    """An LSTM without peepholes, clipping or projection."""

    _ndim, _only_floats = 2, True

    def __init__(self, num_units, forget_bias=1.0, state_is_tuple=True, activation=None,
                 reuse=None, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation or math_ops.tanh
        self._base_name = name or "basic_lstm_cell"

    @property
    def state_size(self):
        n = self._num_units
        return LSTMStateTuple(n, n) if self._state_is_tuple else 2 * n

    output_size = property(lambda self: self._num_units)

    def build(self, input_shape):
        n = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape) + n, 4 * n])
        self._bias = self.add_weight("bias", [4 * n], initializer=init_ops.zeros_initializer())

    def call(self, inputs, state):
        one = ops.convert_to_tensor(1, dtype=dtypes.int32)
        c, h = _split_state(self, state)
        gates = math_ops.matmul(array_ops.concat([inputs, h], 1), self._kernel)
        gates = nn_ops.bias_add(gates, self._bias)
        i, j, f, o = array_ops.split(value=gates, num_or_size_splits=4, axis=one)
        bias = ops.convert_to_tensor(self._forget_bias, dtype=f.dtype)
        add, multiply = math_ops.add, math_ops.multiply
        new_c = add(multiply(c, math_ops.sigmoid(add(f, bias))),
                    multiply(math_ops.sigmoid(i), self._activation(j)))
        new_h = multiply(self._activation(new_c), math_ops.sigmoid(o))
        return new_h, _join_state(self, new_c, new_h)


@export("nn.rnn_cell.LSTMCell", "contrib.rnn.LSTMCell")
class LSTMCell(RNNCell):
    """An LSTM with optional peepholes, clipping and projection."""

    _ndim, _only_floats = 2, True

    def __init__(self, num_units, use_peepholes=False, cell_clip=None, initializer=None,
                 num_proj=None, proj_clip=None, num_unit_shards=None, num_proj_shards=None,
                 forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None, name=None,
                 dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        if num_unit_shards is not None or num_proj_shards is not None:
            raise NotImplementedError("LSTMCell: use a variable_scope with a partitioner instead "
                                      "of num_unit_shards and num_proj_shards")
        self._num_units, self._use_peepholes = num_units, use_peepholes
        self._cell_clip, self._initializer = cell_clip, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = activation or math_ops.tanh
        self._base_name = name or "lstm_cell"

    @property
    def output_size(self):
        return self._num_proj or self._num_units

    @property
    def state_size(self):
        if self._state_is_tuple:
            return LSTMStateTuple(self._num_units, self.output_size)
        return self._num_units + self.output_size

    def build(self, input_shape):
        n = self._num_units
        rows = self._depth(input_shape) + self.output_size
        self._kernel = self.add_weight("kernel", [rows, 4 * n], initializer=self._initializer)
        self._bias = self.add_weight("bias", [4 * n], initializer=init_ops.zeros_initializer())
        if self._use_peepholes:
            self._w_f, self._w_i, self._w_o = (
                self.add_weight("w_%s_diag" % x, [n], initializer=self._initializer)
                for x in "fio")
        if self._num_proj is not None:
            self._proj = self.add_weight("projection/kernel", [n, self._num_proj],
                                         initializer=self._initializer)

    def call(self, inputs, state):
        from ferroflow.python.ops import clip_ops
        sigmoid = math_ops.sigmoid
        if self._state_is_tuple:
            c, m = state
        else:
            c = array_ops.slice(state, [0, 0], [-1, self._num_units])
            m = array_ops.slice(state, [0, self._num_units], [-1, self.output_size])
        gates = math_ops.matmul(array_ops.concat([inputs, m], 1), self._kernel)
        gates = nn_ops.bias_add(gates, self._bias)
        i, j, f, o = array_ops.split(value=gates, num_or_size_splits=4, axis=1)
        if self._use_peepholes:
            new_c = sigmoid(f + self._forget_bias + self._w_f * c) * c + sigmoid(
                i + self._w_i * c) * self._activation(j)
        else:
            new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            new_c = clip_ops.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            new_m = sigmoid(o + self._w_o * new_c) * self._activation(new_c)
        else:
            new_m = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            new_m = math_ops.matmul(new_m, self._proj)
            if self._proj_clip is not None:
                new_m = clip_ops.clip_by_value(new_m, -self._proj_clip, self._proj_clip)
        return new_m, _join_state(self, new_c, new_m)


@export("nn.rnn_cell.MultiRNNCell", "contrib.rnn.MultiRNNCell")
class MultiRNNCell(RNNCell):
    """Cells on top of each other."""

    _reenters = True

    def __init__(self, cells, state_is_tuple=True):
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, (list, tuple)):
            raise TypeError("cells must be a list or tuple, but received: %s." % cells)
        if len({id(c) for c in cells}) < len(cells):
            raise ValueError("MultiRNNCell: each layer needs a cell of its own")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        self._base_name = "multi_rnn_cell"

    @property
    def state_size(self):
        if self._state_is_tuple:
            return tuple(c.state_size for c in self._cells)
        return sum(c.state_size for c in self._cells)

    output_size = property(lambda self: self._cells[-1].output_size)

    def zero_state(self, batch_size, dtype):
        with ops.name_scope(type(self).__name__ + "ZeroState"):
            if self._state_is_tuple:
                return tuple(c.zero_state(batch_size, dtype) for c in self._cells)
            return super().zero_state(batch_size, dtype)

    def call(self, inputs, state):
        position, new_states, current = 0, [], inputs
        for i, cell in enumerate(self._cells):
            with variable_scope.variable_scope("cell_%d" % i):
                if self._state_is_tuple:
                    own = state[i]
                else:
                    own = array_ops.slice(state, [0, position], [-1, cell.state_size])
                    position += cell.state_size
                current, new_state = cell(current, own)
                new_states.append(new_state)
        return current, tuple(new_states) if self._state_is_tuple else (
            array_ops.concat(new_states, 1))


def _linear(args, output_size, bias, bias_initializer=None, kernel_initializer=None, bias_start=0.0, scope=None):
    """The sum of products of matrices with new variables `kernel`, plus `bias`: what cells of programs use."""
    if args is None or isinstance(args, (list, tuple)) and not args:
        raise ValueError("`args` must be specified")
    args = list(args) if isinstance(args, (list, tuple)) else [args]
    total = 0
    for a in args:
        shape = a.get_shape()
        if shape.ndims != 2:
            raise ValueError("linear is expecting 2D arguments: %s" % [str(x.get_shape()) for x in args])
        if shape.dims[1].value is None:
            raise ValueError("linear expects shape[1] to be provided for shape %s, but saw %s" % (shape, shape[1]))
        total += shape.dims[1].value
    dtype = args[0].dtype
    with variable_scope.variable_scope(scope or variable_scope.get_variable_scope()):
        kernel = variable_scope.get_variable("kernel", [total, output_size], dtype=dtype, initializer=kernel_initializer)
        result = math_ops.matmul(args[0] if len(args) == 1 else array_ops.concat(args, 1), kernel)
        if not bias:
            return result
        offset = variable_scope.get_variable(
            "bias", [output_size], dtype=dtype,
            initializer=bias_initializer or init_ops.constant_initializer(bias_start, dtype=dtype))
    return nn_ops.bias_add(result, offset)


def check_cell(cell):
    """Refuses objects that are not cells."""
    problems = [text for ok, text in (
        (hasattr(cell, "output_size"), "'output_size' property is missing"),
        (hasattr(cell, "state_size"), "'state_size' property is missing"),
        (hasattr(cell, "zero_state") or hasattr(cell, "get_initial_state"),
         "either 'zero_state' or 'get_initial_state' method is required"),
        (callable(cell), "is not callable"),
    ) if not ok]
    if problems:
        raise TypeError("The argument 'cell' (%s) is not an RNNCell: %s." % (cell, ", ".join(problems)))


class _Wrapper(RNNCell):
    def __init__(self, cell):
        super().__init__()
        check_cell(cell)
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    def zero_state(self, batch_size, dtype):
        with ops.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs, state, scope=None):
        return self._wrapped(inputs, state, scope)


@export("nn.rnn_cell.DropoutWrapper", "contrib.rnn.DropoutWrapper")
class DropoutWrapper(_Wrapper):
    """Drops inputs, outputs and states of a cell."""

    def __init__(self, cell, input_keep_prob=1.0, output_keep_prob=1.0, state_keep_prob=1.0,
                 variational_recurrent=False, input_size=None, dtype=None, seed=None,
                 dropout_state_filter_visitor=None):
        super().__init__(cell)
        self._seed = seed
        names = ("input_keep_prob", "state_keep_prob", "output_keep_prob")
        keep = []
        with ops.name_scope("DropoutWrapperInit"):
            for name, value in zip(names, (input_keep_prob, state_keep_prob, output_keep_prob)):
                tensor = ops.convert_to_tensor(value)
                known = tensor_util.constant_value(tensor)
                if known is not None and not 0 <= known <= 1:
                    raise ValueError("Parameter %s must be between 0 and 1: %g" % (name, known))
                keep.append(tensor if known is None else float(known))
        self._keep = tuple(keep)
        self._noise = None
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            if input_size is None and not self._keeps_all(self._keep[0]):
                raise ValueError("When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be "
                                 "provided")
            sizes = (input_size, cell.state_size, cell.output_size)
            self._noise = tuple(
                None if self._keeps_all(k) else self._mapped(which, lambda seed, n: self._draw(n, dtype, seed), size)
                for which, (k, size) in enumerate(zip(self._keep, sizes)))

    @staticmethod
    def _keeps_all(keep):
        return isinstance(keep, float) and keep >= 1.0

    def _mapped(self, which, function, *structures):
        """Maps structures; the function also gets a seed for its place, as TensorFlow makes it."""
        place = iter(range(len(nest.flatten(structures[0]))))

        def call(*parts):
            i, seed = next(place), None
            if self._seed is not None:
                text = "%s%s_%d" % (self._seed, ("input", "state", "output")[which], i)
                seed = int(hashlib.md5(text.encode()).hexdigest()[:8], 16) & 0x7FFFFFFF
            return function(seed, *parts)
        return nest.map_structure(call, *structures)

    @staticmethod
    def _draw(size, dtype, seed):
        """Noise that is the same at all times and for all examples."""
        from ferroflow.python.ops import random_ops
        shape = [1] + tensor_shape.as_shape(size).as_list()
        return random_ops.random_uniform(shape, dtype=dtype, seed=seed)

    def _drop(self, value, which):
        keep = self._keep[which]
        if self._keeps_all(keep):
            return value
        if self._noise is not None:
            def masked(v, noise):
                kept = math_ops.divide(v, keep) * math_ops.floor(keep + noise)
                kept.set_shape(v.get_shape())
                return kept
            return nest.map_structure(masked, value, self._noise[which])
        return self._mapped(
            which, lambda seed, v: nn_ops.dropout(v, keep_prob=keep, seed=seed), value)

    def _drop_state(self, state):
        if not isinstance(state, LSTMStateTuple):
            return self._drop(state, 1)
        # The memory of an LSTM is kept.
        return LSTMStateTuple(state.c, self._drop(state, 1).h)

    def _wrapped(self, inputs, state, scope):
        output, new_state = self._cell(self._drop(inputs, 0), state, scope)
        new_state = self._drop_state(new_state)
        return self._drop(output, 2), new_state


@export("nn.rnn_cell.ResidualWrapper", "contrib.rnn.ResidualWrapper")
class ResidualWrapper(_Wrapper):
    """Adds the input to the output of a cell."""

    def __init__(self, cell, residual_fn=None):
        super().__init__(cell)
        self._residual_fn = residual_fn

    def _wrapped(self, inputs, state, scope):
        output, new_state = self._cell(inputs, state, scope)
        combine = self._residual_fn or (lambda i, o: nest.map_structure(
            lambda a, b: a + b, i, o))
        return combine(inputs, output), new_state


@export("nn.rnn_cell.DeviceWrapper", "contrib.rnn.DeviceWrapper")
class DeviceWrapper(_Wrapper):
    """Runs a cell on a device."""

    def __init__(self, cell, device):
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size, dtype):
        with ops.name_scope(type(self).__name__ + "ZeroState"), ops.device(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def _wrapped(self, inputs, state, scope):
        with ops.device(self._device):
            return self._cell(inputs, state, scope)


