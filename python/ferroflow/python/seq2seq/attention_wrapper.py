"""A cell that attends to memories."""

import collections

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.layers import core
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import rnn_cell
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("contrib.seq2seq.AttentionWrapperState")
class AttentionWrapperState(collections.namedtuple("AttentionWrapperState", (
        "cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"))):
    """The state of an `AttentionWrapper`."""

    __slots__ = ()

    def clone(self, **kwargs):
        """A copy with other fields, whose shapes are those of the fields before."""
        def with_shape(old, new):
            if isinstance(old, ops.Tensor) and isinstance(new, ops.Tensor):
                new.set_shape(old.get_shape())
            return new
        return nest.map_structure(with_shape, self, self._replace(**kwargs))


def _attend(mechanism, cell_output, state, layer):
    """(attention, alignments, next state) of one mechanism."""
    alignments, next_state = mechanism(cell_output, state=state)
    context = math_ops.matmul(array_ops.expand_dims(alignments, 1), mechanism.values)
    context = array_ops.squeeze(context, [1])
    if layer is not None:
        context = layer(array_ops.concat([cell_output, context], 1))
    return context, alignments, next_state


@export("contrib.seq2seq.AttentionWrapper")
class AttentionWrapper(rnn_cell.RNNCell):
    """Feeds a cell with its input and the attention of the step before."""

    def __init__(self, cell, attention_mechanism, attention_layer_size=None, alignment_history=False,
                 cell_input_fn=None, output_attention=True, initial_cell_state=None, name=None, attention_layer=None,
                 attention_fn=None):
        super().__init__(name=name)
        self._base_name = name or "attention_wrapper"
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for m in self._mechanisms:
            if not hasattr(m, "alignments_size"):
                raise TypeError("attention_mechanism must be an AttentionMechanism or list of multiple "
                                "AttentionMechanism instances, saw type: %s" % type(m).__name__)
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError("cell_input_fn must be callable, saw type: %s" % type(cell_input_fn).__name__)
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: array_ops.concat([inputs, attention], -1))
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._layers = self._attention_layers(attention_layer_size, attention_layer)
        self._attention_size = sum(
            m.values.get_shape().as_list()[-1] if layer is None else (
                layer.units if hasattr(layer, "units") else layer.compute_output_shape(
                    [None, cell.output_size + m.values.get_shape().as_list()[-1]]).as_list()[-1])
            for m, layer in zip(self._mechanisms, self._layers))
        self._attention_fn = attention_fn or _attend
        self._cell, self._output_attention = cell, output_attention
        self._alignment_history = alignment_history
        self._initial_cell_state = initial_cell_state
        if initial_cell_state is not None:
            with ops.name_scope(name, "AttentionWrapperInit"):
                self._initial_cell_state = nest.map_structure(
                    lambda s: array_ops.identity(s, name="check_initial_cell_state"), initial_cell_state)

    def _attention_layers(self, sizes, layers):
        count = len(self._mechanisms)
        if sizes is not None:
            sizes = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
            if len(sizes) != count:
                raise ValueError("If provided, attention_layer_size must contain exactly one integer per "
                                 "attention_mechanism, saw: %d vs %d" % (len(sizes), count))
            return tuple(core.Dense(n, name="attention_layer", use_bias=False, dtype=m.dtype)
                         for n, m in zip(sizes, self._mechanisms))
        if layers is not None:
            layers = tuple(layers) if isinstance(layers, (list, tuple)) else (layers,)
            if len(layers) != count:
                raise ValueError("If provided, attention_layer must contain exactly one layer per attention_mechanism, "
                                 "saw: %d vs %d" % (len(layers), count))
            return layers
        return (None,) * count

    def _one_or_tuple(self, values):
        values = tuple(values)
        return values if self._is_multi else values[0]

    @property
    def output_size(self):
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self):
        return AttentionWrapperState(
            cell_state=self._cell.state_size, time=tensor_shape.TensorShape([]), attention=self._attention_size,
            alignments=self._one_or_tuple(m.alignments_size for m in self._mechanisms),
            attention_state=self._one_or_tuple(m.state_size for m in self._mechanisms),
            alignment_history=self._one_or_tuple(
                m.alignments_size if self._alignment_history else () for m in self._mechanisms))

    def zero_state(self, batch_size, dtype):
        with ops.name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            cell_state = nest.map_structure(lambda s: array_ops.identity(s, name="checked_cell_state"), cell_state)
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            histories = (tensor_array_ops.TensorArray(dtype=dtype, size=0, dynamic_size=True,
                                                      element_shape=a.get_shape())
                         if self._alignment_history else () for a in alignments)
            return AttentionWrapperState(
                cell_state=cell_state, time=array_ops.zeros([], dtype=dtypes.int32),
                attention=rnn_cell.zero_state_tensors(self._attention_size, batch_size, dtype),
                alignments=self._one_or_tuple(alignments),
                attention_state=self._one_or_tuple(m.initial_state(batch_size, dtype) for m in self._mechanisms),
                alignment_history=self._one_or_tuple(histories))

    def call(self, inputs, state):
        if not isinstance(state, AttentionWrapperState):
            raise TypeError("Expected state to be instance of AttentionWrapperState. Received type %s instead." %
                            type(state))
        cell_output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        cell_output = array_ops.identity(cell_output, name="checked_cell_output")
        states = state.attention_state if self._is_multi else [state.attention_state]
        histories = state.alignment_history if self._is_multi else [state.alignment_history]
        attentions, alignments, next_states, next_histories = [], [], [], []
        for mechanism, layer, own, history in zip(self._mechanisms, self._layers, states, histories):
            attention, aligned, next_own = self._attention_fn(mechanism, cell_output, own, layer)
            attentions.append(attention)
            alignments.append(aligned)
            next_states.append(next_own)
            next_histories.append(history.write(state.time, aligned) if self._alignment_history else ())
        attention = array_ops.concat(attentions, 1)
        next_state = AttentionWrapperState(
            time=state.time + 1, cell_state=cell_state, attention=attention,
            attention_state=self._one_or_tuple(next_states), alignments=self._one_or_tuple(alignments),
            alignment_history=self._one_or_tuple(next_histories))
        return (attention if self._output_attention else cell_output), next_state
