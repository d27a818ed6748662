"""Attention: how much each part of a memory matters to a query."""

import functools

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.layers import core
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import map_fn
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("contrib.seq2seq.AttentionMechanism")
class AttentionMechanism:
    """Anything with a memory that an `AttentionWrapper` can ask."""

    @property
    def alignments_size(self):
        raise NotImplementedError

    @property
    def state_size(self):
        raise NotImplementedError


def _mask(lengths, memory):
    return array_ops.sequence_mask(lengths, maxlen=array_ops.shape(nest.flatten(memory)[0])[1],
                                   dtype=nest.flatten(memory)[0].dtype)


def _masked_memory(memory, lengths, check_inner_dims):
    """The memory with zeros behind the end of each sequence."""
    memory = nest.map_structure(lambda m: ops.convert_to_tensor(m, name="memory"), memory)
    if lengths is not None:
        lengths = ops.convert_to_tensor(lengths, name="memory_sequence_length")
    if check_inner_dims:
        for m in nest.flatten(memory):
            if not m.get_shape()[2:].is_fully_defined():
                raise ValueError("Expected memory %s to have fully defined inner dims, but saw shape: %s" % (
                    m.name, m.get_shape()))
    if lengths is None:
        return memory
    mask = _mask(lengths, memory)

    def masked(m):
        rank = m.get_shape().ndims
        rank = array_ops.rank(m) if rank is None else rank
        ones = array_ops.ones(array_ops.expand_dims(rank - 2, 0), dtype=dtypes.int32)
        return m * array_ops.reshape(mask, array_ops.concat((array_ops.shape(mask), ones), 0))
    return nest.map_structure(masked, memory)


class _Attention(AttentionMechanism):
    """Attention over a memory of [batch, time, depth]. Calling it gives (alignments, next state)."""

    def __init__(self, query_layer, memory, probability_fn, memory_sequence_length, memory_layer,
                 check_inner_dims_defined, score_mask_value, custom_key_value_fn=None):
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype if memory_layer is not None else None
        value = ops.convert_to_tensor(-np.inf if score_mask_value is None else score_mask_value)
        self._lengths = memory_sequence_length

        def normalized(score, previous):
            if memory_sequence_length is not None:
                mask = array_ops.sequence_mask(memory_sequence_length, maxlen=array_ops.shape(score)[1])
                low = math_ops.cast(value, score.dtype) * array_ops.ones_like(score)
                score = array_ops.where(mask, score, low)
            return probability_fn(score, previous)
        self.probability_fn = normalized
        with ops.name_scope(None, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self.values = _masked_memory(memory, memory_sequence_length, check_inner_dims_defined)
            self.keys = self.memory_layer(self.values) if self.memory_layer is not None else self.values
            if custom_key_value_fn is not None:
                self.keys, self.values = custom_key_value_fn(self.keys, self.values)
            first = self.keys.get_shape().as_list()
            self.batch_size = first[0] or array_ops.shape(self.keys)[0]
            self._alignments_size = first[1] or array_ops.shape(self.keys)[1]

    alignments_size = property(lambda self: self._alignments_size)
    state_size = property(lambda self: self._alignments_size)

    def initial_alignments(self, batch_size, dtype):
        size = self._alignments_size
        result = array_ops.zeros(array_ops.stack([batch_size, size]), dtype=dtype)
        result.set_shape([None, size if isinstance(size, int) else None])
        return result

    def initial_state(self, batch_size, dtype):
        return self.initial_alignments(batch_size, dtype)

    def _score(self, query):
        raise NotImplementedError

    def __call__(self, query, state):
        with variable_scope.variable_scope(None, self._SCOPE, [query]):
            alignments = self.probability_fn(self._score(query), state)
        return alignments, alignments


def _dense(units, name, dtype):
    return core.Dense(units, name=name, use_bias=False, dtype=dtype)


def _softmax(probability_fn):
    probability_fn = probability_fn or nn_ops.softmax
    return lambda score, _: probability_fn(score)


def _dot_score(query, keys, g):
    """The product of a query with each key."""
    depth, units = query.get_shape().as_list()[-1], keys.get_shape().as_list()[-1]
    if depth != units:
        raise ValueError("Incompatible or unknown inner dimensions between query and keys. Query (%s) has units: %s. "
                         "Keys (%s) have units: %s. Perhaps you need to set num_units to the keys' dimension (%s)?" % (
                             query, depth, keys, units, units))
    score = math_ops.matmul(array_ops.expand_dims(query, 1), keys, transpose_b=True)
    score = array_ops.squeeze(score, [1])
    return score if g is None else g * score


def _additive_score(query, keys, v, g=None, bias=None):
    """The sum over tanh of query and key, weighted by `v`."""
    query = array_ops.expand_dims(query, 1)
    if g is None:
        return math_ops.reduce_sum(v * math_ops.tanh(keys + query), [2])
    direction = g * v * math_ops.rsqrt(math_ops.reduce_sum(math_ops.square(v)))
    return math_ops.reduce_sum(direction * math_ops.tanh(keys + query + bias), [2])


class _Luong(_Attention):
    def __init__(self, num_units, memory, memory_sequence_length, scale, probability_fn, score_mask_value, dtype,
                 custom_key_value_fn):
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(None, memory, probability_fn, memory_sequence_length, _dense(num_units, "memory_layer", dtype),
                         True, score_mask_value, custom_key_value_fn)
        self._num_units, self._scale = num_units, scale

    def _score(self, query):
        g = variable_scope.get_variable("attention_g", dtype=query.dtype, initializer=init_ops.ones_initializer(),
                                        shape=()) if self._scale else None
        return _dot_score(query, self.keys, g)


class _Bahdanau(_Attention):
    def __init__(self, num_units, memory, memory_sequence_length, normalize, probability_fn, score_mask_value, dtype,
                 custom_key_value_fn):
        dtype = dtypes.float32 if dtype is None else dtype
        super().__init__(_dense(num_units, "query_layer", dtype), memory, probability_fn, memory_sequence_length,
                         _dense(num_units, "memory_layer", dtype), True, score_mask_value, custom_key_value_fn)
        self._num_units, self._normalize = num_units, normalize

    def _score(self, query):
        query = self.query_layer(query) if self.query_layer is not None else query
        n, dtype, get = self._num_units, query.dtype, variable_scope.get_variable
        v = get("attention_v", [n], dtype=dtype)
        if not self._normalize:
            return _additive_score(query, self.keys, v)
        g = get("attention_g", dtype=dtype, initializer=init_ops.constant_initializer(np.sqrt(1.0 / n)), shape=())
        b = get("attention_b", [n], dtype=dtype, initializer=init_ops.zeros_initializer())
        return _additive_score(query, self.keys, v, g, b)


@export("contrib.seq2seq.LuongAttention")
class LuongAttention(_Luong):
    """Attention by the product of query and keys, optionally scaled by a learned number."""

    _SCOPE = "luong_attention"

    def __init__(self, num_units, memory, memory_sequence_length=None, scale=False, probability_fn=None,
                 score_mask_value=None, dtype=None, custom_key_value_fn=None, name="LuongAttention"):
        super().__init__(num_units, memory, memory_sequence_length, scale, _softmax(probability_fn), score_mask_value,
                         dtype, custom_key_value_fn)


@export("contrib.seq2seq.BahdanauAttention")
class BahdanauAttention(_Bahdanau):
    """Additive attention, optionally with a normalized weight vector."""

    _SCOPE = "bahdanau_attention"

    def __init__(self, num_units, memory, memory_sequence_length=None, normalize=False, probability_fn=None,
                 score_mask_value=None, dtype=None, custom_key_value_fn=None, name="BahdanauAttention"):
        super().__init__(num_units, memory, memory_sequence_length, normalize, _softmax(probability_fn), score_mask_value,
                         dtype, custom_key_value_fn)


@export("contrib.seq2seq.safe_cumprod")
def safe_cumprod(x, *args, **kwargs):
    """A cumulative product by logarithms, so that small factors have gradients."""
    with ops.name_scope(None, "SafeCumprod", [x]):
        x = ops.convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return math_ops.exp(math_ops.cumsum(math_ops.log(clip_ops.clip_by_value(x, tiny, 1)), *args, **kwargs))


@export("contrib.seq2seq.monotonic_attention")
def monotonic_attention(p_choose_i, previous_attention, mode):
    """The attention of a step that only moves forward, from the probabilities to stop at each place."""
    p_choose_i = ops.convert_to_tensor(p_choose_i, name="p_choose_i")
    previous_attention = ops.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = p_choose_i.get_shape().as_list()[0] or array_ops.shape(p_choose_i)[0]
        # The chance to come to a place from the one before it.
        shifted = array_ops.concat([array_ops.ones((batch, 1), dtype=p_choose_i.dtype), 1 - p_choose_i[:, :-1]], 1)
        reached = map_fn.scan(
            lambda x, pair: array_ops.reshape(pair[0] * x + pair[1], (batch,)),
            [array_ops.transpose(shifted), array_ops.transpose(previous_attention)],
            array_ops.zeros((batch,), dtype=p_choose_i.dtype))
        return p_choose_i * array_ops.transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - p_choose_i, axis=1, exclusive=True)
        return p_choose_i * passed * math_ops.cumsum(
            previous_attention / clip_ops.clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        allowed = p_choose_i * math_ops.cumsum(previous_attention, axis=1)
        return allowed * math_ops.cumprod(1 - allowed, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _monotonic(score, previous, sigmoid_noise, mode, seed=None):
    if sigmoid_noise > 0:
        score += sigmoid_noise * random_ops.random_normal(array_ops.shape(score), dtype=score.dtype, seed=seed)
    if mode == "hard":
        choose = math_ops.cast(score > 0, score.dtype)
    else:
        choose = math_ops.sigmoid(score)
    return monotonic_attention(choose, previous, mode)


class _MonotonicStart:
    """Before the first step, all attention is on the first place."""

    def initial_alignments(self, batch_size, dtype):
        size = self._alignments_size
        return array_ops.one_hot(array_ops.zeros(array_ops.expand_dims(batch_size, 0), dtype=dtypes.int32), size,
                                 dtype=dtype)

    def _score(self, query):
        score = super()._score(query)
        return score + variable_scope.get_variable(
            "attention_score_bias", dtype=query.dtype, initializer=self._score_bias_init, shape=())


def _score_bias(value):
    return init_ops.constant_initializer(value)


@export("contrib.seq2seq.LuongMonotonicAttention")
class LuongMonotonicAttention(_MonotonicStart, _Luong):
    """Luong's attention that only moves forward."""

    _SCOPE = "luong_monotonic_attention"

    def __init__(self, num_units, memory, memory_sequence_length=None, scale=False, score_mask_value=None,
                 sigmoid_noise=0.0, sigmoid_noise_seed=None, score_bias_init=0.0, mode="parallel", dtype=None,
                 name="LuongMonotonicAttention"):
        self._score_bias_init = _score_bias(score_bias_init)
        super().__init__(num_units, memory, memory_sequence_length, scale, functools.partial(
            _monotonic, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed), score_mask_value, dtype, None)


@export("contrib.seq2seq.BahdanauMonotonicAttention")
class BahdanauMonotonicAttention(_MonotonicStart, _Bahdanau):
    """Additive attention that only moves forward."""

    _SCOPE = "bahdanau_monotonic_attention"

    def __init__(self, num_units, memory, memory_sequence_length=None, normalize=False, score_mask_value=None,
                 sigmoid_noise=0.0, sigmoid_noise_seed=None, score_bias_init=0.0, mode="parallel", dtype=None,
                 name="BahdanauMonotonicAttention"):
        self._score_bias_init = _score_bias(score_bias_init)
        super().__init__(num_units, memory, memory_sequence_length, normalize, functools.partial(
            _monotonic, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed), score_mask_value, dtype, None)


@export("contrib.seq2seq.hardmax")
def hardmax(logits, name=None):
    """One where a row is largest, else zero."""
    with ops.name_scope(name, "Hardmax", [logits]):
        logits = ops.convert_to_tensor(logits, name="logits")
        static = logits.get_shape().as_list()[-1]
        depth = array_ops.shape(logits)[-1] if static is None else static
        return array_ops.one_hot(math_ops.argmax(logits, -1), depth, dtype=logits.dtype)
