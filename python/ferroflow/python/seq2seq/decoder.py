"""The loop that runs a decoder step by step."""

import collections

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import rnn
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import while_loop as loops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("contrib.seq2seq.Decoder")
class Decoder:
    """What `dynamic_decode` needs: a start, a step, and the form of the outputs."""

    @property
    def batch_size(self):
        raise NotImplementedError

    @property
    def output_size(self):
        raise NotImplementedError

    @property
    def output_dtype(self):
        raise NotImplementedError

    def initialize(self, name=None):
        """Returns (finished, first inputs, first state)."""
        raise NotImplementedError

    def step(self, time, inputs, state, name=None):
        """Returns (outputs, next state, next inputs, finished)."""
        raise NotImplementedError

    def finalize(self, outputs, final_state, sequence_lengths):
        raise NotImplementedError

    @property
    def tracks_own_finished(self):
        """Whether the decoder itself remembers which sequences have ended."""
        return False


@export("contrib.seq2seq.BasicDecoderOutput")
class BasicDecoderOutput(collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """What a `BasicDecoder` gives in a step."""

    __slots__ = ()


def output_size(cell, layer):
    """The size of a cell's output, behind an optional layer."""
    size = cell.output_size
    if layer is None:
        return size
    given = nest.map_structure(lambda s: tensor_shape.TensorShape([None]).concatenate(s), size)
    shape = layer.compute_output_shape(given)
    return nest.map_structure(lambda s: s[1:], shape)


@export("contrib.seq2seq.BasicDecoder")
class BasicDecoder(Decoder):
    """Runs a cell; a helper samples from the output and chooses the next input."""

    def __init__(self, cell, helper, initial_state, output_layer=None):
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    batch_size = property(lambda self: self._helper.batch_size)

    @property
    def output_size(self):
        return BasicDecoderOutput(rnn_output=output_size(self._cell, self._output_layer),
                                  sample_id=self._helper.sample_ids_shape)

    @property
    def output_dtype(self):
        dtype = nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            nest.map_structure(lambda _: dtype, output_size(self._cell, self._output_layer)),
            self._helper.sample_ids_dtype)

    def initialize(self, name=None):
        return self._helper.initialize() + (self._initial_state,)

    def step(self, time, inputs, state, name=None):
        with ops.name_scope(name, "BasicDecoderStep", (time, inputs, state)):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids)
        return BasicDecoderOutput(outputs, sample_ids), state, inputs, finished


def _zeros(decoder, batch_size):
    def zeros(size, dtype):
        size = tensor_shape.as_shape(size)
        tail = constant_op.constant(size.as_list(), dtype=dtypes.int32)
        return array_ops.zeros(
            array_ops.concat([array_ops.expand_dims(batch_size, 0), tail], 0), dtype=dtype)
    sizes = decoder.output_size
    return nest.map_structure_up_to(decoder.output_dtype, lambda dtype, size: zeros(size, dtype),
                                    decoder.output_dtype, sizes)


@export("contrib.seq2seq.dynamic_decode")
def dynamic_decode(decoder, output_time_major=False, impute_finished=False, maximum_iterations=None,
                   parallel_iterations=32, swap_memory=False, scope=None):
    """Runs a decoder until all sequences have ended, or `maximum_iterations`.

    Returns (outputs, final state, sequence lengths).
    """
    if not isinstance(decoder, Decoder):
        raise TypeError("Expected decoder to be type Decoder, but saw: %s" % type(decoder))
    with variable_scope.variable_scope(scope, "decoder") as found:
        if found.caching_device is None and not rnn._in_loop():
            found.set_caching_device(lambda op: op.device)
        if maximum_iterations is not None:
            maximum_iterations = ops.convert_to_tensor(
                maximum_iterations, dtype=dtypes.int32, name="maximum_iterations")
            if maximum_iterations.get_shape().ndims != 0:
                raise ValueError("maximum_iterations must be a scalar")
        finished, inputs, state = decoder.initialize()
        batch_size = ops.convert_to_tensor(decoder.batch_size, name="batch_size")
        zero_outputs = _zeros(decoder, batch_size)
        if maximum_iterations is not None:
            finished = math_ops.logical_or(finished, 0 >= maximum_iterations)
        lengths = array_ops.zeros_like(finished, dtype=dtypes.int32)
        static_batch = tensor_util.constant_value(batch_size)
        static_batch = None if static_batch is None else int(static_batch)

        def array(dtype, size):
            shape = tensor_shape.TensorShape([static_batch]).concatenate(tensor_shape.as_shape(size))
            return tensor_array_ops.TensorArray(
                dtype=dtype, size=0, dynamic_size=True, element_shape=shape)

        arrays = nest.map_structure_up_to(decoder.output_dtype, array, decoder.output_dtype,
                                          decoder.output_size)

        def cond(time, arrays, state, inputs, finished, lengths):
            return math_ops.logical_not(math_ops.reduce_all(finished))

        def body(time, arrays, state, inputs, finished, lengths):
            outputs, new_state, new_inputs, ended = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                ended = math_ops.logical_or(ended, finished)
            new_lengths = array_ops.where(
                math_ops.logical_not(finished), array_ops.fill(array_ops.shape(lengths), time + 1),
                lengths)
            nest.assert_same_structure(state, new_state)
            nest.assert_same_structure(arrays, outputs)
            nest.assert_same_structure(inputs, new_inputs)
            emit = outputs
            if impute_finished:
                emit = nest.map_structure(
                    lambda new, zero: array_ops.where(finished, zero, new), outputs, zero_outputs)

                def keep(new, old):
                    if isinstance(old, tensor_array_ops.TensorArray) or (
                            new.get_shape().ndims == 0):
                        return new
                    new.set_shape(old.get_shape())
                    return array_ops.where(finished, old, new)
                new_state = nest.map_structure(keep, new_state, state)
            arrays = nest.map_structure(lambda a, value: a.write(time, value), arrays, emit)
            return time + 1, arrays, new_state, new_inputs, ended, new_lengths

        time = constant_op.constant(0, dtype=dtypes.int32)
        _, arrays, state, _, _, lengths = loops.while_loop(
            cond, body, loop_vars=(time, arrays, state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations, maximum_iterations=maximum_iterations,
            swap_memory=swap_memory)
        outputs = nest.map_structure(lambda a: a.stack(), arrays)
        try:
            outputs, state = decoder.finalize(outputs, state, lengths)
        except NotImplementedError:
            pass
        if not output_time_major:
            outputs = nest.map_structure(rnn._transpose_batch_time, outputs)
    return outputs, state, lengths
