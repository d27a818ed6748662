"""Beam search: keeps the best few sequences of each example."""

import collections

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond as conditions
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import gather_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops import while_loop as loops
from ferroflow.python.seq2seq import attention_wrapper
from ferroflow.python.seq2seq import decoder
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("contrib.seq2seq.BeamSearchDecoderState")
class BeamSearchDecoderState(collections.namedtuple("BeamSearchDecoderState", (
        "cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"))):
    """The state of a `BeamSearchDecoder`."""

    __slots__ = ()


@export("contrib.seq2seq.BeamSearchDecoderOutput")
class BeamSearchDecoderOutput(collections.namedtuple("BeamSearchDecoderOutput", (
        "scores", "predicted_ids", "parent_ids"))):
    """What a `BeamSearchDecoder` gives in a step."""

    __slots__ = ()


@export("contrib.seq2seq.FinalBeamSearchDecoderOutput")
class FinalBeamSearchDecoderOutput(collections.namedtuple("FinalBeamDecoderOutput", (
        "predicted_ids", "beam_search_decoder_output"))):
    """The sequences that were found, best first, and the outputs of all steps."""

    __slots__ = ()


@export("contrib.seq2seq.tile_batch")
def tile_batch(t, multiplier, name=None):
    """Repeats each example `multiplier` times."""
    with ops.name_scope(name, "tile_batch", nest.flatten(t) + [multiplier]):
        def tiled(x):
            x = ops.convert_to_tensor(x, name="t")
            static = x.get_shape()
            if static.ndims is None:
                raise ValueError("t must have statically known rank")
            shape = array_ops.shape(x)
            copies = [1] * (static.ndims + 1)
            copies[1] = multiplier
            repeated = array_ops.tile(array_ops.expand_dims(x, 1), copies)
            repeated = array_ops.reshape(
                repeated, array_ops.concat(([shape[0] * multiplier], shape[1:]), 0))
            count = tensor_util.constant_value(multiplier) if isinstance(multiplier, ops.Tensor) else multiplier
            batch = static.as_list()[0]
            batch = None if batch is None or count is None else batch * int(count)
            repeated.set_shape(tensor_shape.TensorShape([batch]).concatenate(static[1:]))
            return repeated
        return nest.map_structure(tiled, t)


@export("contrib.seq2seq.gather_tree")
def gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token, name=None):
    """Follows parents from the last step back: the whole sequences of all beams, as [time, batch, beam].

    Behind the length of an example, and behind its first `end_token`, all ids are `end_token`.
    """
    with ops.name_scope(name, "GatherTree", [step_ids, parent_ids, max_sequence_lengths, end_token]):
        step_ids = ops.convert_to_tensor(step_ids, name="step_ids")
        parent_ids = ops.convert_to_tensor(parent_ids, name="parent_ids")
        lengths = ops.convert_to_tensor(max_sequence_lengths, dtype=dtypes.int32, name="max_sequence_lengths")
        end = ops.convert_to_tensor(end_token, dtype=step_ids.dtype, name="end_token")
        shape = array_ops.shape(step_ids)
        steps, batch, beams = shape[0], shape[1], shape[2]
        last = array_ops.expand_dims(math_ops.minimum(lengths, steps) - 1, 1)
        place = array_ops.tile(array_ops.expand_dims(math_ops.range(beams), 0), [batch, 1])
        rows = array_ops.tile(array_ops.expand_dims(math_ops.range(batch), 1), [1, beams])
        found = tensor_array_ops.TensorArray(step_ids.dtype, size=steps, element_shape=[None, None])

        def back(time, place, found):
            at = array_ops.stack([rows, place], axis=2)
            ids = gather_ops.gather_nd(step_ids[time], at)
            parents = gather_ops.gather_nd(parent_ids[time], at)
            alive = math_ops.logical_and(time <= last, array_ops.ones_like(place, dtype=dtypes.bool))
            ids = array_ops.where(alive, ids, array_ops.zeros_like(ids) + end)
            place = array_ops.where(alive, math_ops.cast(parents, dtypes.int32), place)
            return time - 1, place, found.write(time, ids)

        _, _, found = loops.while_loop(lambda time, *_: time >= 0, back, (steps - 1, place, found),
                                       shape_invariants=(tensor_shape.TensorShape([]), tensor_shape.TensorShape([None, None]),
                                                         tensor_shape.TensorShape(None)))
        ids = found.stack()
        ended = math_ops.cumsum(math_ops.cast(math_ops.equal(ids, end), dtypes.int32), axis=0, exclusive=True) > 0
        ids = array_ops.where(ended, array_ops.zeros_like(ids) + end, ids)
        ids.set_shape(step_ids.get_shape())
        return ids


@export("contrib.seq2seq.gather_tree_from_array")
def gather_tree_from_array(t, parent_ids, sequence_length):
    """Sorts an array of [time, batch * beam, …] or [time, batch, beam, …] as `parent_ids` say."""
    shape = array_ops.shape(parent_ids)
    steps, batch, beams = shape[0], shape[1], shape[2]
    own = array_ops.tile(array_ops.expand_dims(array_ops.expand_dims(math_ops.range(beams), 0), 0), [steps, batch, 1])
    mask = _time_major_mask(sequence_length, steps)
    # Behind the end of a beam, the padding is no beam's number.
    sorted_ids = gather_tree(own * mask + (1 - mask) * (beams + 1), parent_ids,
                             math_ops.cast(math_ops.reduce_max(sequence_length, axis=1), dtypes.int32), beams + 1)
    sorted_ids = array_ops.where(math_ops.cast(mask, dtypes.bool), sorted_ids, own)
    rows = math_ops.cast(array_ops.where(array_ops.ones_like(sorted_ids, dtype=dtypes.bool)), dtypes.int32)
    at = array_ops.stack([rows[:, 0], rows[:, 1], array_ops.reshape(sorted_ids, [-1])], axis=1)
    ordered = gather_ops.gather_nd(t, at)
    return array_ops.reshape(ordered, array_ops.shape(t))


def _time_major_mask(sequence_length, steps):
    return array_ops.transpose(array_ops.sequence_mask(sequence_length, maxlen=steps, dtype=dtypes.int32), perm=[2, 0, 1])


def _length_penalty(lengths, weight):
    weight = ops.convert_to_tensor(weight, name="penalty_factor")
    if tensor_util.constant_value(weight) == 0:
        return 1.0
    return math_ops.divide((5.0 + math_ops.cast(lengths, dtypes.float32)) ** weight, (5.0 + 1.0) ** weight)


def _coverage_penalty(attention, weight):
    """Small for beams whose attention left out parts of the input."""
    covered = math_ops.minimum(attention, 1.0)
    logs = math_ops.log(math_ops.maximum(covered, np.finfo(np.float32).tiny))
    return weight * math_ops.reduce_sum(array_ops.where(attention > 0, logs, array_ops.zeros_like(logs)), -1)


def _only_end(log_probs, finished, end_token):
    """Beams that have ended get their end token again, at no cost."""
    classes = array_ops.shape(log_probs)[2]
    low = log_probs.dtype.min
    row = array_ops.one_hot(end_token, classes, dtype=log_probs.dtype, on_value=ops.convert_to_tensor(0.0, log_probs.dtype),
                            off_value=low)
    ended = array_ops.zeros_like(log_probs) + row
    mask = math_ops.logical_and(array_ops.expand_dims(finished, 2), array_ops.ones_like(log_probs, dtype=dtypes.bool))
    return array_ops.where(mask, ended, log_probs)


@export("contrib.seq2seq.BeamSearchDecoder")
class BeamSearchDecoder(decoder.Decoder):
    """Decodes by beam search. The state and memory of the cell must be tiled with `tile_batch`."""

    def __init__(self, cell, embedding, start_tokens, end_token, initial_state, beam_width, output_layer=None,
                 length_penalty_weight=0.0, coverage_penalty_weight=0.0, reorder_tensor_arrays=True):
        self._cell, self._output_layer = cell, output_layer
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._embedding_fn = embedding if callable(embedding) else (
            lambda ids: embedding_ops.embedding_lookup(embedding, ids))
        self._start_tokens = ops.convert_to_tensor(start_tokens, dtype=dtypes.int32, name="start_tokens")
        if self._start_tokens.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = ops.convert_to_tensor(end_token, dtype=dtypes.int32, name="end_token")
        if self._end_token.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size = array_ops.size(start_tokens)
        self._beam_width = beam_width
        self._length_penalty_weight, self._coverage_penalty_weight = length_penalty_weight, coverage_penalty_weight
        self._initial_cell_state = nest.map_structure(self._split_if_needed, initial_state)
        tokens = array_ops.tile(array_ops.expand_dims(self._start_tokens, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(tokens)
        self._finished = array_ops.one_hot(array_ops.zeros([self._batch_size], dtype=dtypes.int32), depth=beam_width,
                                           on_value=False, off_value=True, dtype=dtypes.bool)

    batch_size = property(lambda self: self._batch_size)
    tracks_own_finished = property(lambda self: True)

    @property
    def output_size(self):
        beams = tensor_shape.TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(scores=beams, predicted_ids=beams, parent_ids=beams)

    @property
    def output_dtype(self):
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        return BeamSearchDecoderOutput(scores=nest.map_structure(lambda _: dtype, dtype), predicted_ids=dtypes.int32,
                                       parent_ids=dtypes.int32)

    def _split(self, x):
        """[batch * beam, …] as [batch, beam, …]."""
        shape = array_ops.shape(x)
        split = array_ops.reshape(x, array_ops.concat(([self._batch_size, self._beam_width], shape[1:]), 0))
        static = tensor_util.constant_value(self._batch_size)
        static = None if static is None else int(static)
        split.set_shape(tensor_shape.TensorShape([static, self._beam_width]).concatenate(x.get_shape()[1:]))
        return split

    def _merge(self, x):
        """[batch, beam, …] as [batch * beam, …]."""
        shape = array_ops.shape(x)
        merged = array_ops.reshape(x, array_ops.concat(([self._batch_size * self._beam_width], shape[2:]), 0))
        static = tensor_util.constant_value(self._batch_size)
        merged.set_shape(tensor_shape.TensorShape([None if static is None else int(static) * self._beam_width])
                         .concatenate(x.get_shape()[2:]))
        return merged

    @staticmethod
    def _has_beams(x):
        return not isinstance(x, tensor_array_ops.TensorArray) and x.get_shape().ndims != 0

    def _split_if_needed(self, x):
        return self._split(x) if self._has_beams(x) else x

    def initialize(self, name=None):
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        log_probs = array_ops.one_hot(
            array_ops.zeros([self._batch_size], dtype=dtypes.int32), depth=self._beam_width,
            on_value=ops.convert_to_tensor(0.0, dtype=dtype), off_value=ops.convert_to_tensor(-np.inf, dtype=dtype),
            dtype=dtype)
        attention = ()
        sizes = _alignments_sizes(self._initial_cell_state)
        if sizes and self._coverage_penalty_weight != 0.0:
            attention = array_ops.zeros([self._batch_size, self._beam_width, sum(sizes)], dtype=dtype)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state, log_probs=log_probs, finished=self._finished,
            lengths=array_ops.zeros([self._batch_size, self._beam_width], dtype=dtypes.int64),
            accumulated_attention_probs=attention)
        return self._finished, self._start_inputs, state

    def step(self, time, inputs, state, name=None):
        with ops.name_scope(name, "BeamSearchDecoderStep", (time, inputs, state)):
            merge = lambda x: self._merge(x) if self._has_beams(x) else x  # noqa: E731
            outputs, cell_state = self._cell(nest.map_structure(merge, inputs),
                                             nest.map_structure(merge, state.cell_state))
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            logits = self._split(outputs)
            cell_state = nest.map_structure(self._split_if_needed, cell_state)
            output, next_state = self._search(logits, cell_state, state)
            ids = output.predicted_ids
            next_inputs = conditions.cond(math_ops.reduce_all(next_state.finished), lambda: self._start_inputs,
                                          lambda: self._embedding_fn(ids))
        return output, next_state, next_inputs, next_state.finished

    def _search(self, logits, cell_state, state):
        width, end = self._beam_width, self._end_token
        step_probs = _only_end(nn_ops.log_softmax(logits), state.finished, end)
        total = array_ops.expand_dims(state.log_probs, 2) + step_probs
        classes = logits.get_shape().as_list()[-1] or array_ops.shape(logits)[-1]
        # An unfinished beam grows by one, unless the class is the end.
        grows = array_ops.one_hot(array_ops.reshape(end, [1, 1]), classes, on_value=np.int64(0), off_value=np.int64(1),
                                  dtype=dtypes.int64)
        open_beams = math_ops.cast(math_ops.logical_not(state.finished), dtypes.int64)
        lengths = array_ops.expand_dims(state.lengths, 2) + array_ops.expand_dims(open_beams, 2) * grows
        scores = total / _length_penalty(lengths, self._length_penalty_weight)
        attention = state.accumulated_attention_probs
        aligned = _alignments(cell_state)
        if aligned is not None and self._coverage_penalty_weight != 0.0:
            attention = array_ops.where(
                math_ops.logical_and(array_ops.expand_dims(state.finished, 2),
                                     array_ops.ones_like(aligned, dtype=dtypes.bool)), attention, attention + aligned)
            scores += array_ops.expand_dims(_coverage_penalty(attention, self._coverage_penalty_weight), 2)
        flat = array_ops.reshape(scores, [self._batch_size, width * classes])
        best, places = nn_ops.top_k(flat, k=width)
        best.set_shape([None, width])
        places.set_shape([None, width])
        beams, words = places // classes, places % classes
        rows = array_ops.tile(array_ops.expand_dims(math_ops.range(self._batch_size), 1), [1, width])
        at = array_ops.stack([rows, beams], axis=2)

        def chosen(x):
            picked = gather_ops.gather_nd(x, at)
            picked.set_shape(x.get_shape())
            return picked

        probs = gather_ops.gather_nd(array_ops.reshape(total, [self._batch_size, width * classes]),
                                     array_ops.stack([rows, places], axis=2))
        finished = chosen(state.finished)
        next_lengths = chosen(state.lengths)
        now = math_ops.logical_or(finished, math_ops.equal(words, end), name="next_beam_finished")
        next_lengths += math_ops.cast(math_ops.logical_not(finished), dtypes.int64)
        cell_state = nest.map_structure(lambda x: chosen(x) if self._has_beams(x) else x, cell_state)
        next_state = BeamSearchDecoderState(
            cell_state=cell_state, log_probs=probs, finished=now, lengths=next_lengths,
            accumulated_attention_probs=nest.map_structure(chosen, attention))
        return BeamSearchDecoderOutput(scores=best, predicted_ids=words, parent_ids=beams), next_state

    def finalize(self, outputs, final_state, sequence_lengths):
        longest = math_ops.cast(math_ops.reduce_max(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            def ordered(x):
                if not isinstance(x, tensor_array_ops.TensorArray):
                    return x
                stacked = x.stack()
                shape = array_ops.shape(stacked)
                wide = array_ops.reshape(stacked, array_ops.concat(
                    ([shape[0], self._batch_size, self._beam_width], shape[2:]), 0))
                found = gather_tree_from_array(wide, outputs.parent_ids, final_state.lengths)
                return array_ops.reshape(found, shape)
            final_state = final_state._replace(cell_state=nest.map_structure(ordered, final_state.cell_state))
        return FinalBeamSearchDecoderOutput(beam_search_decoder_output=outputs, predicted_ids=ids), final_state


def _alignments(cell_state):
    """The alignments of all mechanisms beside each other; None without attention."""
    if not isinstance(cell_state, attention_wrapper.AttentionWrapperState):
        return None
    found = cell_state.alignments
    return array_ops.concat(list(found), axis=-1) if isinstance(found, tuple) else found


def _alignments_sizes(cell_state):
    if not isinstance(cell_state, attention_wrapper.AttentionWrapperState):
        return []
    found = cell_state.alignments
    found = found if isinstance(found, tuple) else (found,)
    return [f.get_shape().as_list()[-1] or array_ops.shape(f)[-1] for f in found]
