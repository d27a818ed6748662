"""Helpers: they sample from the outputs of a decoder and choose its next inputs."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond as conditions
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import gather_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.ops import rnn
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops.distributions import discrete
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


def _as_array(value):
    array = tensor_array_ops.TensorArray(dtype=value.dtype, size=array_ops.shape(value)[0],
                                         element_shape=value.get_shape()[1:])
    return array.unstack(value)


def _lookup(embedding):
    if callable(embedding):
        return embedding
    return lambda ids: embedding_ops.embedding_lookup(embedding, ids)


@export("contrib.seq2seq.Helper")
class Helper:
    """The methods that a `BasicDecoder` calls in each step."""

    @property
    def batch_size(self):
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self):
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self):
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name=None):
        """Returns (finished, first inputs)."""
        raise NotImplementedError("initialize has not been implemented")

    def sample(self, time, outputs, state, name=None):
        raise NotImplementedError("sample has not been implemented")

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        """Returns (finished, next inputs, next state)."""
        raise NotImplementedError("next_inputs has not been implemented")


class _Ids(Helper):
    """A helper whose samples are numbers of classes."""

    batch_size = property(lambda self: self._batch_size)
    sample_ids_shape = property(lambda self: tensor_shape.TensorShape([]))
    sample_ids_dtype = property(lambda self: dtypes.int32)


@export("contrib.seq2seq.CustomHelper")
class CustomHelper(Helper):
    """A helper made of three functions."""

    def __init__(self, initialize_fn, sample_fn, next_inputs_fn, sample_ids_shape=None,
                 sample_ids_dtype=None):
        self._initialize_fn, self._sample_fn = initialize_fn, sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = None
        self._shape = tensor_shape.as_shape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = dtypes.int32 if sample_ids_dtype is None else sample_ids_dtype

    sample_ids_shape = property(lambda self: self._shape)
    sample_ids_dtype = property(lambda self: self._dtype)

    @property
    def batch_size(self):
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    def initialize(self, name=None):
        with ops.name_scope(name, "%sInitialize" % type(self).__name__):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = array_ops.size(finished)
        return finished, inputs

    def sample(self, time, outputs, state, name=None):
        with ops.name_scope(name, "%sSample" % type(self).__name__, (time, outputs, state)):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        with ops.name_scope(name, "%sNextInputs" % type(self).__name__,
                            (time, outputs, state, sample_ids)):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state,
                                        sample_ids=sample_ids)


@export("contrib.seq2seq.TrainingHelper")
class TrainingHelper(_Ids):
    """Feeds given sequences, independent of the decoder's samples."""

    def __init__(self, inputs, sequence_length, time_major=False, name=None):
        with ops.name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = nest.map_structure(ops.convert_to_tensor, inputs)
            self._inputs = inputs
            if not time_major:
                inputs = nest.map_structure(rnn._transpose_batch_time, inputs)
            self._arrays = nest.map_structure(_as_array, inputs)
            self._sequence_length = ops.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.get_shape().ndims != 1:
                raise ValueError("Expected sequence_length to be a vector, but received shape: %s" %
                                 self._sequence_length.get_shape())
            self._zeros = nest.map_structure(lambda x: array_ops.zeros_like(x[0, :]), inputs)
            self._batch_size = array_ops.size(self._sequence_length)

    inputs = property(lambda self: self._inputs)
    sequence_length = property(lambda self: self._sequence_length)

    def _at(self, time, done):
        """The inputs of a time, or zeros when all sequences have ended."""
        return conditions.cond(
            done, lambda: self._zeros,
            lambda: nest.map_structure(lambda a: a.read(time), self._arrays))

    def initialize(self, name=None):
        with ops.name_scope(name, "TrainingHelperInitialize"):
            finished = math_ops.equal(0, self._sequence_length)
            return finished, self._at(0, math_ops.reduce_all(finished))

    def sample(self, time, outputs, state, name=None):
        with ops.name_scope(name, "TrainingHelperSample", [time, outputs]):
            return math_ops.cast(math_ops.argmax(outputs, axis=-1), dtypes.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        with ops.name_scope(name, "TrainingHelperNextInputs", [time, outputs, state]):
            following = time + 1
            finished = following >= self._sequence_length
            return finished, self._at(following, math_ops.reduce_all(finished)), state


@export("contrib.seq2seq.ScheduledEmbeddingTrainingHelper")
class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """A training helper that now and then feeds the embedding of a sample instead."""

    def __init__(self, inputs, sequence_length, embedding, sampling_probability, time_major=False,
                 seed=None, scheduling_seed=None, name=None):
        with ops.name_scope(name, "ScheduledEmbeddingSamplingWrapper", [embedding, sampling_probability]):
            self._embedding_fn = _lookup(embedding)
            self._probability = ops.convert_to_tensor(sampling_probability, name="sampling_probability")
            if self._probability.get_shape().ndims not in (0, 1):
                raise ValueError("sampling_probability must be either a scalar or a vector. saw shape: %s" %
                                 self._probability.get_shape())
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs=inputs, sequence_length=sequence_length, time_major=time_major,
                             name=name)

    def sample(self, time, outputs, state, name=None):
        with ops.name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs, state]):
            chosen = discrete.Bernoulli(probs=self._probability, dtype=dtypes.bool).sample(
                sample_shape=self.batch_size, seed=self._scheduling_seed)
            drawn = discrete.Categorical(logits=outputs).sample(seed=self._seed)
            return array_ops.where(chosen, drawn, array_ops.fill([self.batch_size], -1))

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        with ops.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs",
                            [time, outputs, state, sample_ids]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)

            def mixed():
                drawn = math_ops.cast(array_ops.where(sample_ids > -1), dtypes.int32)
                other = math_ops.cast(array_ops.where(sample_ids <= -1), dtypes.int32)
                embedded = self._embedding_fn(gather_ops.gather_nd(sample_ids, drawn))
                shape = array_ops.shape(given)
                return (array_ops.scatter_nd(indices=drawn, updates=embedded, shape=shape)
                        + array_ops.scatter_nd(indices=other, updates=gather_ops.gather_nd(given, other),
                                               shape=shape))

            result = conditions.cond(math_ops.reduce_all(finished), lambda: given, mixed)
            return finished, result, state


@export("contrib.seq2seq.ScheduledOutputTrainingHelper")
class ScheduledOutputTrainingHelper(TrainingHelper):
    """A training helper that now and then feeds the decoder's own output instead."""

    def __init__(self, inputs, sequence_length, sampling_probability, time_major=False, seed=None,
                 next_inputs_fn=None, auxiliary_inputs=None, name=None):
        with ops.name_scope(name, "ScheduledOutputTrainingHelper", [inputs, auxiliary_inputs, sampling_probability]):
            self._probability = ops.convert_to_tensor(sampling_probability, name="sampling_probability")
            if self._probability.get_shape().ndims not in (0, 1):
                raise ValueError("sampling_probability must be either a scalar or a vector. saw shape: %s" %
                                 self._probability.get_shape())
            self._auxiliary = auxiliary_inputs
            if auxiliary_inputs is not None:
                inputs = ops.convert_to_tensor(inputs, name="inputs")
                auxiliary_inputs = ops.convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                extra = auxiliary_inputs if time_major else rnn._transpose_batch_time(auxiliary_inputs)
                self._auxiliary_array = _as_array(extra)
                inputs = array_ops.concat((inputs, auxiliary_inputs), axis=-1)
            self._seed = seed
            if isinstance(next_inputs_fn, base.Layer):
                self._next_inputs_fn = next_inputs_fn
            else:
                self._next_inputs_fn = next_inputs_fn or (lambda x: x)
            super().__init__(inputs=inputs, sequence_length=sequence_length, time_major=time_major,
                             name=name)

    def sample(self, time, outputs, state, name=None):
        with ops.name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs, state]):
            return math_ops.cast(
                discrete.Bernoulli(probs=self._probability).sample(
                    sample_shape=self.batch_size, seed=self._seed), dtypes.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        with ops.name_scope(name, "ScheduledOutputTrainingHelperNextInputs",
                            [time, outputs, state, sample_ids]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
            sampled = math_ops.cast(sample_ids, dtypes.bool)

            def mixed():
                drawn = math_ops.cast(array_ops.where(sampled), dtypes.int32)
                other = math_ops.cast(array_ops.where(math_ops.logical_not(sampled)), dtypes.int32)
                own = gather_ops.gather_nd(outputs, drawn)
                if self._auxiliary is not None:
                    extra = gather_ops.gather_nd(self._auxiliary_array.read(time + 1), drawn)
                    own = array_ops.concat((own, extra), axis=-1)
                own = self._next_inputs_fn(own)
                shape = array_ops.shape(given)
                return (array_ops.scatter_nd(indices=drawn, updates=own, shape=shape)
                        + array_ops.scatter_nd(indices=other, updates=gather_ops.gather_nd(given, other),
                                               shape=shape))

            none = math_ops.logical_or(math_ops.reduce_all(finished),
                                       math_ops.logical_not(math_ops.reduce_any(sampled)))
            return finished, conditions.cond(none, lambda: given, mixed), state


@export("contrib.seq2seq.GreedyEmbeddingHelper")
class GreedyEmbeddingHelper(_Ids):
    """Feeds the embedding of the most likely class."""

    def __init__(self, embedding, start_tokens, end_token):
        self._embedding_fn = _lookup(embedding)
        self._start_tokens = ops.convert_to_tensor(start_tokens, dtype=dtypes.int32, name="start_tokens")
        self._end_token = ops.convert_to_tensor(end_token, dtype=dtypes.int32, name="end_token")
        if self._start_tokens.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = array_ops.size(start_tokens)
        if self._end_token.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name=None):
        return array_ops.tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time, outputs, state, name=None):
        if not isinstance(outputs, ops.Tensor):
            raise TypeError("Expected outputs to be a single Tensor, got: %s" % type(outputs))
        return math_ops.argmax(outputs, axis=-1, output_type=dtypes.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished = math_ops.equal(sample_ids, self._end_token)
        inputs = conditions.cond(math_ops.reduce_all(finished), lambda: self._start_inputs,
                                 lambda: self._embedding_fn(sample_ids))
        return finished, inputs, state


@export("contrib.seq2seq.SampleEmbeddingHelper")
class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of a class that is drawn."""

    def __init__(self, embedding, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time, outputs, state, name=None):
        if not isinstance(outputs, ops.Tensor):
            raise TypeError("Expected outputs to be a single Tensor, got: %s" % type(outputs))
        logits = outputs if self._temperature is None else outputs / self._temperature
        drawn = random_ops.multinomial(logits, 1, seed=self._seed)
        return math_ops.cast(array_ops.squeeze(drawn, [1]), dtypes.int32)


@export("contrib.seq2seq.InferenceHelper")
class InferenceHelper(Helper):
    """Feeds samples that a function draws."""

    def __init__(self, sample_fn, sample_shape, sample_dtype, start_inputs, end_fn, next_inputs_fn=None):
        self._sample_fn, self._end_fn = sample_fn, end_fn
        self._shape, self._dtype = tensor_shape.as_shape(sample_shape), sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = array_ops.shape(start_inputs)[0]
        self._start_inputs = ops.convert_to_tensor(start_inputs, name="start_inputs")

    batch_size = property(lambda self: self._batch_size)
    sample_ids_shape = property(lambda self: self._shape)
    sample_ids_dtype = property(lambda self: self._dtype)

    def initialize(self, name=None):
        return array_ops.tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time, outputs, state, name=None):
        return self._sample_fn(outputs)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
