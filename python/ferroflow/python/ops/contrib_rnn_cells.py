"""Cells of `tf.contrib.rnn` beside those of `tf.nn.rnn_cell`, and stacks of bidirectional layers."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import normalization_ops
from ferroflow.python.ops import rnn
from ferroflow.python.ops import rnn_cell
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops.rnn_cell import LSTMStateTuple
from ferroflow.python.util.api import export

_get = variable_scope.get_variable


@export("contrib.rnn.LayerNormBasicLSTMCell")
class LayerNormBasicLSTMCell(rnn_cell.RNNCell):
    """An LSTM that normalizes its gates and applies dropout to the update of its memory."""

    def __init__(self, num_units, forget_bias=1.0, input_size=None, activation=math_ops.tanh, layer_norm=True,
                 norm_gain=1.0, norm_shift=0.0, dropout_keep_prob=1.0, dropout_prob_seed=None, reuse=None):
        super().__init__(_reuse=reuse)
        self._num_units, self._activation, self._forget_bias = num_units, activation, forget_bias
        self._keep, self._seed = dropout_keep_prob, dropout_prob_seed
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._base_name = "layer_norm_basic_lstm_cell"

    state_size = property(lambda self: LSTMStateTuple(self._num_units, self._num_units))
    output_size = property(lambda self: self._num_units)

    def _norm(self, value, scope):
        shape = value.get_shape()[-1:]
        with variable_scope.variable_scope(scope):
            gamma = _get("gamma", shape, dtype=value.dtype, initializer=init_ops.constant_initializer(self._gain))
            beta = _get("beta", shape, dtype=value.dtype, initializer=init_ops.constant_initializer(self._shift))
        mean, variance = nn_ops.moments(value, [1], keep_dims=True)
        return normalization_ops.batch_normalization(value, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs, state):
        c, h = state
        args = array_ops.concat([inputs, h], 1)
        kernel = _get("kernel", [args.get_shape().as_list()[-1], 4 * self._num_units], dtype=args.dtype)
        gates = math_ops.matmul(args, kernel)
        if not self._layer_norm:
            gates = nn_ops.bias_add(gates, _get("bias", [4 * self._num_units], dtype=args.dtype))
        i, j, f, o = array_ops.split(value=gates, num_or_size_splits=4, axis=1)
        if self._layer_norm:
            i, j, f, o = (self._norm(g, name) for g, name in zip(
                (i, j, f, o), ("input", "transform", "forget", "output")))
        g = self._activation(j)
        if not isinstance(self._keep, float) or self._keep < 1:
            g = nn_ops.dropout(g, keep_prob=self._keep, seed=self._seed)
        new_c = c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * g
        if self._layer_norm:
            new_c = self._norm(new_c, "state")
        new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


@export("contrib.rnn.CoupledInputForgetGateLSTMCell")
class CoupledInputForgetGateLSTMCell(rnn_cell.RNNCell):
    """An LSTM whose input gate is one minus its forget gate."""

    def __init__(self, num_units, use_peepholes=False, initializer=None, num_proj=None, proj_clip=None, num_unit_shards=1,
                 num_proj_shards=1, forget_bias=1.0, state_is_tuple=True, activation=math_ops.tanh, reuse=None,
                 layer_norm=False, norm_gain=1.0, norm_shift=0.0):
        super().__init__(_reuse=reuse)
        if layer_norm:
            raise NotImplementedError("CoupledInputForgetGateLSTMCell: layer_norm is not supported")
        self._num_units, self._use_peepholes, self._initializer = num_units, use_peepholes, initializer
        self._num_proj, self._proj_clip, self._forget_bias = num_proj, proj_clip, forget_bias
        self._state_is_tuple, self._activation = state_is_tuple, activation
        self._base_name = "coupled_input_forget_gate_lstm_cell"

    output_size = property(lambda self: self._num_proj or self._num_units)

    @property
    def state_size(self):
        pair = (self._num_units, self.output_size)
        return LSTMStateTuple(*pair) if self._state_is_tuple else sum(pair)

    def call(self, inputs, state):
        n, dtype, start = self._num_units, inputs.dtype, self._initializer
        if self._state_is_tuple:
            c, m = state
        else:
            c = array_ops.slice(state, [0, 0], [-1, n])
            m = array_ops.slice(state, [0, n], [-1, self.output_size])
        args = array_ops.concat([inputs, m], 1)
        kernel = _get("kernel", [args.get_shape().as_list()[1], 3 * n], dtype=dtype, initializer=start)
        bias = _get("bias", [3 * n], dtype=dtype, initializer=init_ops.zeros_initializer())
        j, f, o = array_ops.split(value=nn_ops.bias_add(math_ops.matmul(args, kernel), bias), num_or_size_splits=3, axis=1)
        if self._use_peepholes:
            w_f, w_o = (_get(name, [n], dtype=dtype, initializer=start) for name in ("W_F_diag", "W_O_diag"))
            gate = math_ops.sigmoid(f + self._forget_bias + w_f * c)
        else:
            gate = math_ops.sigmoid(f + self._forget_bias)
        c = gate * c + (1 - gate) * self._activation(j)
        m = math_ops.sigmoid(o + w_o * c if self._use_peepholes else o) * self._activation(c)
        if self._num_proj is not None:
            m = math_ops.matmul(m, _get("projection/kernel", [n, self._num_proj], dtype=dtype, initializer=start))
            if self._proj_clip is not None:
                m = clip_ops.clip_by_value(m, -self._proj_clip, self._proj_clip)
        new_state = LSTMStateTuple(c, m) if self._state_is_tuple else array_ops.concat([c, m], 1)
        return m, new_state


@export("contrib.rnn.UGRNNCell")
class UGRNNCell(rnn_cell.RNNCell):
    """A cell with one gate, between the old state and a candidate."""

    def __init__(self, num_units, initializer=None, forget_bias=1.0, activation=math_ops.tanh, reuse=None):
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer = num_units, initializer
        self._forget_bias, self._activation = forget_bias, activation

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def call(self, inputs, state):
        args = array_ops.concat([inputs, state], 1)
        n = self._num_units
        kernel = _get("kernel", [args.get_shape().as_list()[1], 2 * n], dtype=args.dtype, initializer=self._initializer)
        bias = _get("bias", [2 * n], dtype=args.dtype, initializer=init_ops.zeros_initializer())
        g_act, c_act = array_ops.split(nn_ops.bias_add(math_ops.matmul(args, kernel), bias), 2, axis=1)
        c, g = self._activation(c_act), math_ops.sigmoid(g_act + self._forget_bias)
        new = g * state + (1.0 - g) * c
        return new, new


@export("contrib.rnn.LSTMBlockCell")
class LSTMBlockCell(rnn_cell.RNNCell):
    """An LSTM whose step is one operation."""

    def __init__(self, num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, dtype=None, reuse=None,
                 name="lstm_cell"):
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._use_peephole, self._cell_clip = use_peephole, cell_clip if cell_clip is not None else -1

    state_size = property(lambda self: LSTMStateTuple(self._num_units, self._num_units))
    output_size = property(lambda self: self._num_units)

    def build(self, input_shape):
        n = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape) + n, 4 * n])
        self._bias = self.add_weight("bias", [4 * n], initializer=init_ops.zeros_initializer())
        if self._use_peephole:
            self._w_i, self._w_f, self._w_o = (self.add_weight("w_%s_diag" % x, [n]) for x in "ifo")

    def call(self, inputs, state):
        c, h = state
        zeros = array_ops.zeros([self._num_units], dtype=inputs.dtype)
        wci, wcf, wco = (self._w_i, self._w_f, self._w_o) if self._use_peephole else (zeros, zeros, zeros)
        made = gen_ops.LSTMBlockCell(x=inputs, cs_prev=c, h_prev=h, w=self._kernel, wci=wci, wcf=wcf, wco=wco, b=self._bias,
                                     forget_bias=self._forget_bias, cell_clip=self._cell_clip,
                                     use_peephole=self._use_peephole)
        return made[6], LSTMStateTuple(made[1], made[6])


@export("contrib.rnn.GRUBlockCell", "contrib.rnn.GRUBlockCellV2")
class GRUBlockCell(rnn_cell.RNNCell):
    """A GRU whose step is one operation."""

    def __init__(self, num_units=None, cell_size=None, reuse=None, name="gru_cell"):
        super().__init__(name=name, _reuse=reuse)
        if (num_units is None) == (cell_size is None):
            raise ValueError("Must specify exactly one of num_units or cell_size.")
        self._num_units = num_units if cell_size is None else cell_size

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, input_shape):
        n = self._num_units
        rows = self._depth(input_shape) + n
        self._w_ru = self.add_weight("w_ru", [rows, 2 * n])
        self._b_ru = self.add_weight("b_ru", [2 * n], initializer=init_ops.constant_initializer(1.0))
        self._w_c = self.add_weight("w_c", [rows, n])
        self._b_c = self.add_weight("b_c", [n], initializer=init_ops.constant_initializer(0.0))

    def call(self, inputs, state):
        new = gen_ops.GRUBlockCell(inputs, state, self._w_ru, self._w_c, self._b_ru, self._b_c)[3]
        return new, new


class _Projection(rnn_cell._Wrapper):
    def _wrapped(self, inputs, state, scope):
        with variable_scope.variable_scope(scope or self._NAME):
            return self._projected(inputs, state)


def _linear(args, size, activation=None):
    kernel = _get("kernel", [args.get_shape().as_list()[1], size], dtype=args.dtype)
    bias = _get("bias", [size], dtype=args.dtype, initializer=init_ops.zeros_initializer())
    value = nn_ops.bias_add(math_ops.matmul(args, kernel), bias)
    return value if activation is None else activation(value)


@export("contrib.rnn.OutputProjectionWrapper")
class OutputProjectionWrapper(_Projection):
    """Multiplies the output of a cell by a matrix."""

    _NAME = "output_projection_wrapper"

    def __init__(self, cell, output_size, activation=None, reuse=None):
        super().__init__(cell)
        if output_size < 1:
            raise ValueError("Parameter output_size must be > 0: %d." % output_size)
        self._size, self._activation = output_size, activation

    output_size = property(lambda self: self._size)

    def _projected(self, inputs, state):
        output, state = self._cell(inputs, state)
        return _linear(output, self._size, self._activation), state


@export("contrib.rnn.InputProjectionWrapper")
class InputProjectionWrapper(_Projection):
    """Multiplies the input of a cell by a matrix."""

    _NAME = "input_projection_wrapper"

    def __init__(self, cell, num_proj, activation=None, input_size=None, reuse=None):
        super().__init__(cell)
        self._num_proj, self._activation = num_proj, activation

    def _projected(self, inputs, state):
        return self._cell(_linear(inputs, self._num_proj, self._activation), state)


@export("contrib.rnn.EmbeddingWrapper")
class EmbeddingWrapper(_Projection):
    """Feeds a cell with the embeddings of ids."""

    _NAME = "embedding_wrapper"

    def __init__(self, cell, embedding_classes, embedding_size, initializer=None, reuse=None):
        super().__init__(cell)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError("Both embedding_classes and embedding_size must be > 0: %d, %d." % (
                embedding_classes, embedding_size))
        self._shape, self._initializer = [embedding_classes, embedding_size], initializer

    def _projected(self, inputs, state):
        initializer = self._initializer
        if initializer is None:
            bound = 3.0 ** 0.5
            initializer = variable_scope.get_variable_scope().initializer or init_ops.random_uniform_initializer(-bound, bound)
        first = state[0] if isinstance(state, tuple) else state
        with ops.device("/cpu:0"):
            table = _get("embedding", self._shape, initializer=initializer, dtype=first.dtype)
            embedded = embedding_ops.embedding_lookup(table, array_ops.reshape(inputs, [-1]))
        return self._cell(embedded, state)


@export("contrib.rnn.stack_bidirectional_dynamic_rnn")
def stack_bidirectional_dynamic_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None, dtype=None,
                                    sequence_length=None, parallel_iterations=None, time_major=False, scope=None,
                                    swap_memory=False):
    """Bidirectional layers on top of each other: (outputs, forward states, backward states)."""
    cells_fw, cells_bw = list(cells_fw or []), list(cells_bw or [])
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth, and at least one.")
    states_fw, states_bw, layer = [], [], inputs
    with variable_scope.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope.variable_scope("cell_%d" % i):
                outputs, (state_fw, state_bw) = rnn.bidirectional_dynamic_rnn(
                    fw, bw, layer, sequence_length=sequence_length, dtype=dtype, time_major=time_major,
                    initial_state_fw=None if initial_states_fw is None else initial_states_fw[i],
                    initial_state_bw=None if initial_states_bw is None else initial_states_bw[i],
                    parallel_iterations=parallel_iterations, swap_memory=swap_memory)
                layer = array_ops.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)


@export("contrib.rnn.stack_bidirectional_rnn")
def stack_bidirectional_rnn(cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None, dtype=None,
                            sequence_length=None, scope=None):
    """As `stack_bidirectional_dynamic_rnn`, for a list of inputs."""
    cells_fw, cells_bw = list(cells_fw or []), list(cells_bw or [])
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth, and at least one.")
    states_fw, states_bw, layer = [], [], inputs
    with variable_scope.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope.variable_scope("cell_%d" % i):
                layer, state_fw, state_bw = rnn.static_bidirectional_rnn(
                    fw, bw, layer, None if initial_states_fw is None else initial_states_fw[i],
                    None if initial_states_bw is None else initial_states_bw[i], sequence_length=sequence_length, dtype=dtype)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)


@export("contrib.rnn.AttentionCellWrapper")
class AttentionCellWrapper(rnn_cell.RNNCell):
    """Attends to the last states of a cell."""

    def __init__(self, cell, attn_length, attn_size=None, attn_vec_size=None, input_size=None, state_is_tuple=True,
                 reuse=None):
        super().__init__(_reuse=reuse)
        if attn_length <= 0:
            raise ValueError("attn_length should be greater than zero, got %s" % attn_length)
        if not state_is_tuple:
            raise NotImplementedError("AttentionCellWrapper: states that are no tuples are not supported")
        self._cell, self._length = cell, attn_length
        self._size = cell.output_size if attn_size is None else attn_size
        self._vec_size = self._size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size

    @property
    def state_size(self):
        return self._cell.state_size, self._size, self._size * self._length

    output_size = property(lambda self: self._size)

    def call(self, inputs, state):
        state, attns, attn_states = state
        attn_states = array_ops.reshape(attn_states, [-1, self._length, self._size])
        size = self._input_size or inputs.get_shape().as_list()[1]
        with variable_scope.variable_scope("linear1"):
            fed = _linear(array_ops.concat([inputs, attns], 1), size)
        output, new_state = self._cell(fed, state)
        flat = [p for s in (new_state if isinstance(new_state, tuple) else (new_state,)) for p in (
            s if isinstance(s, tuple) else (s,))]
        new_attns, kept = self._attention(array_ops.concat(flat, 1), attn_states)
        with variable_scope.variable_scope("attn_output_projection"):
            output = _linear(array_ops.concat([output, new_attns], 1), self._size)
        kept = array_ops.concat([kept, array_ops.expand_dims(output, 1)], 1)
        return output, (new_state, new_attns, array_ops.reshape(kept, [-1, self._size * self._length]))

    def _attention(self, query, attn_states):
        with variable_scope.variable_scope("attention"):
            k = _get("attn_w", [1, 1, self._size, self._vec_size], dtype=query.dtype)
            v = _get("attn_v", [self._vec_size], dtype=query.dtype)
            hidden = array_ops.reshape(attn_states, [-1, self._length, 1, self._size])
            features = gen_ops.Conv2D(hidden, k, [1, 1, 1, 1], "SAME")
            with variable_scope.variable_scope("linear2"):
                y = array_ops.reshape(_linear(query, self._vec_size), [-1, 1, 1, self._vec_size])
            weights = nn_ops.softmax(math_ops.reduce_sum(v * math_ops.tanh(features + y), [2, 3]))
            found = math_ops.reduce_sum(array_ops.reshape(weights, [-1, self._length, 1, 1]) * hidden, [1, 2])
            return array_ops.reshape(found, [-1, self._size]), array_ops.slice(attn_states, [0, 1, 0], [-1, -1, -1])


@export("contrib.rnn.TimeReversedFusedRNN")
class TimeReversedFusedRNN:
    """Runs a fused cell from the end of the sequences."""

    def __init__(self, cell):
        self._cell = cell

    def _reversed(self, t, lengths):
        if lengths is None:
            return array_ops.reverse(t, [0])
        return array_ops.reverse_sequence(t, lengths, 0, 1)

    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
        outputs, state = self._cell(self._reversed(inputs, sequence_length), initial_state, dtype, sequence_length, scope)
        return self._reversed(outputs, sequence_length), state


@export("contrib.rnn.LSTMBlockFusedCell")
class LSTMBlockFusedCell:
    """An LSTM over whole sequences of [time, batch, depth] in one operation."""

    def __init__(self, num_units, forget_bias=1.0, cell_clip=None, use_peephole=False, reuse=None, dtype=None,
                 name="lstm_fused_cell"):
        self._num_units, self._forget_bias, self._reuse, self._name = num_units, forget_bias, reuse, name
        self._cell_clip, self._use_peephole = -1 if cell_clip is None else cell_clip, use_peephole

    num_units = property(lambda self: self._num_units)

    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
        inputs = ops.convert_to_tensor(inputs)
        n, depth, dtype = self._num_units, inputs.get_shape().as_list()[2], inputs.dtype
        with variable_scope.variable_scope(scope or self._name, reuse=self._reuse):
            kernel = _get("kernel", [depth + n, 4 * n], dtype=dtype)
            bias = _get("bias", [4 * n], dtype=dtype, initializer=init_ops.zeros_initializer())
            zeros = array_ops.zeros([n], dtype=dtype)
            diagonals = [_get("w_%s_diag" % x, [n], dtype=dtype) for x in "ifo"] if self._use_peephole else [zeros] * 3
            batch = array_ops.shape(inputs)[1]
            if initial_state is None:
                empty = array_ops.zeros(array_ops.stack([batch, n]), dtype=dtype)
                initial_state = (empty, empty)
            c, h = initial_state
            steps = array_ops.shape(inputs)[0]
            longest = math_ops.cast(steps if sequence_length is None else math_ops.reduce_max(sequence_length), dtypes.int64)
            made = gen_ops.BlockLSTM(seq_len_max=longest, x=inputs, cs_prev=c, h_prev=h, w=kernel, wci=diagonals[0],
                                     wcf=diagonals[1], wco=diagonals[2], b=bias, forget_bias=self._forget_bias,
                                     cell_clip=self._cell_clip, use_peephole=self._use_peephole)
            cells, outputs = made[1], made[6]
            if sequence_length is None:
                return outputs, LSTMStateTuple(cells[-1], outputs[-1])
            mask = array_ops.expand_dims(array_ops.transpose(
                array_ops.sequence_mask(sequence_length, steps, dtype=dtype), [1, 0]), 2)
            cells = array_ops.concat([array_ops.expand_dims(c, 0), cells], 0)
            all_outputs = array_ops.concat([array_ops.expand_dims(h, 0), outputs], 0)
            at = array_ops.stack([math_ops.cast(sequence_length, dtypes.int32), math_ops.range(batch)], axis=1)
            return outputs * mask, LSTMStateTuple(array_ops.gather_nd(cells, at), array_ops.gather_nd(all_outputs, at))
