"""`tf.contrib.crf`: linear chains of tags, their likelihood and the best one."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import map_fn
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


def _mask(lengths, count, dtype=dtypes.float32):
    return array_ops.sequence_mask(lengths, maxlen=count, dtype=dtype)


def _steps(inputs):
    return inputs.get_shape().as_list()[1] or array_ops.shape(inputs)[1]


@export("contrib.crf.crf_unary_score")
def crf_unary_score(tag_indices, sequence_lengths, inputs):
    """The sum of the scores that the inputs give to the tags."""
    tags = array_ops.one_hot(tag_indices, array_ops.shape(inputs)[2], dtype=inputs.dtype)
    each = math_ops.reduce_sum(inputs * tags, axis=2)
    return math_ops.reduce_sum(each * _mask(sequence_lengths, _steps(inputs), inputs.dtype), 1)


@export("contrib.crf.crf_binary_score")
def crf_binary_score(tag_indices, sequence_lengths, transition_params):
    """The sum of the scores of all transitions of a chain."""
    count = array_ops.shape(transition_params)[0]
    steps = array_ops.shape(tag_indices)[1] - 1
    before = array_ops.slice(tag_indices, [0, 0], [-1, steps])
    after = array_ops.slice(tag_indices, [0, 1], [-1, steps])
    places = before * count + after
    scores = array_ops.gather(array_ops.reshape(transition_params, [-1]), places)
    mask = _mask(math_ops.maximum(sequence_lengths - 1, 0), steps, scores.dtype)
    return math_ops.reduce_sum(scores * mask, 1)


@export("contrib.crf.crf_sequence_score")
def crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params):
    """The score of a chain of tags; zero for an empty one."""
    inputs = ops.convert_to_tensor(inputs)
    tag_indices = math_ops.cast(tag_indices, dtypes.int32)
    sequence_lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params)


@export("contrib.crf.crf_multitag_sequence_score")
def crf_multitag_sequence_score(inputs, tag_bitmap, sequence_lengths, transition_params):
    """The logarithm of the summed scores of all chains that a bitmap of tags allows."""
    inputs = ops.convert_to_tensor(inputs)
    low = array_ops.zeros_like(inputs) - np.inf
    return crf_log_norm(array_ops.where(math_ops.cast(tag_bitmap, dtypes.bool), inputs, low),
                        sequence_lengths, transition_params)


def _forward(inputs, transition_params):
    """The logarithm of the summed scores of all chains up to each time, as [time, batch, tags]."""
    rows = array_ops.transpose(inputs, [1, 0, 2])
    transitions = array_ops.expand_dims(transition_params, 0)

    def step(alpha, scores):
        return scores + math_ops.reduce_logsumexp(array_ops.expand_dims(alpha, 2) + transitions, [1])
    rest = map_fn.scan(step, rows[1:], initializer=rows[0])
    return array_ops.concat([rows[:1], rest], axis=0)


def _at_end(values, lengths):
    """The rows of [time, batch, …] at the last time of each example."""
    last = math_ops.maximum(lengths - 1, 0)
    picks = array_ops.stack([last, math_ops.range(array_ops.shape(lengths)[0])], axis=1)
    return array_ops.gather_nd(values, picks)


@export("contrib.crf.crf_log_norm")
def crf_log_norm(inputs, sequence_lengths, transition_params):
    """The logarithm of the summed scores of all chains."""
    inputs = ops.convert_to_tensor(inputs)
    lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    norms = math_ops.reduce_logsumexp(_at_end(_forward(inputs, transition_params), lengths), [1])
    return array_ops.where(math_ops.less_equal(lengths, 0), array_ops.zeros_like(norms), norms)


@export("contrib.crf.crf_log_likelihood")
def crf_log_likelihood(inputs, tag_indices, sequence_lengths, transition_params=None):
    """(logarithm of the probability of each chain, the transition scores)."""
    count = inputs.get_shape().as_list()[2]
    if transition_params is None:
        transition_params = variable_scope.get_variable("transitions", [count, count])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


@export("contrib.crf.viterbi_decode")
def viterbi_decode(score, transition_params):
    """The best chain for scores of [time, tags] in numpy: (list of tags, its score)."""
    score, transition_params = np.asarray(score), np.asarray(transition_params)
    best, backs = score[0], []
    for row in score[1:]:
        paths = best[:, None] + transition_params
        backs.append(paths.argmax(0))
        best = row + paths.max(0)
    chain = [int(best.argmax())]
    for back in reversed(backs):
        chain.append(int(back[chain[-1]]))
    return chain[::-1], best.max()


@export("contrib.crf.crf_decode")
def crf_decode(potentials, transition_params, sequence_length):
    """The best chains: (tags of [batch, time], their scores). Tags behind a chain's end are zero."""
    potentials = ops.convert_to_tensor(potentials)
    lengths = math_ops.cast(sequence_length, dtypes.int32)
    rows = array_ops.transpose(potentials, [1, 0, 2])
    transitions = array_ops.expand_dims(transition_params, 0)
    steps, batch = array_ops.shape(rows)[0], array_ops.shape(rows)[1]

    def forward(carried, scores):
        best, _ = carried
        paths = array_ops.expand_dims(best, 2) + transitions
        return scores + math_ops.reduce_max(paths, 1), math_ops.argmax(paths, 1, output_type=dtypes.int32)
    no_backs = array_ops.zeros(array_ops.shape(rows[0]), dtype=dtypes.int32)
    bests, backs = map_fn.scan(forward, rows[1:], initializer=(rows[0], no_backs))
    bests = array_ops.concat([rows[:1], bests], axis=0)
    end = _at_end(bests, lengths)
    last_tags = math_ops.argmax(end, axis=1, output_type=dtypes.int32)
    scores = math_ops.reduce_max(end, axis=1)
    scores = array_ops.where(math_ops.less_equal(lengths, 0), array_ops.zeros_like(scores), scores)
    numbers = math_ops.range(batch)

    def backward(tag, pair):
        back, time = pair
        # `back` leads from a time to the one before it; behind the end, the last tag waits.
        inside = math_ops.less(time, lengths)
        return array_ops.where(inside, array_ops.gather_nd(back, array_ops.stack([numbers, tag], axis=1)), tag)
    times = math_ops.range(steps - 1, 0, -1)
    earlier = map_fn.scan(backward, (array_ops.reverse(backs, [0]), times), initializer=last_tags)
    tags = array_ops.concat([array_ops.reverse(earlier, [0]), array_ops.expand_dims(last_tags, 0)], axis=0)
    tags = array_ops.transpose(tags, [1, 0])
    tags *= _mask(lengths, steps, dtypes.int32)
    tags.set_shape(potentials.get_shape()[:2])
    return tags, scores
