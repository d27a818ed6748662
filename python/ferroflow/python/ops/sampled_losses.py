"""Losses over a sample of the classes: `nce_loss` and `sampled_softmax_loss`."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import random_seed
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import embedding_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import sparse_ops
from ferroflow.python.ops import variables
from ferroflow.python.util.api import export


def _sampler(op, has_range):
    def function(true_classes, num_true, num_sampled, unique, range_max=None, seed=None,
                 name=None):
        seed1, seed2 = random_seed.get_seed(seed)
        ranges = {"range_max": range_max} if has_range else {}
        return getattr(gen_ops, op)(true_classes, num_true=num_true, num_sampled=num_sampled,
                                    unique=unique, seed=seed1, seed2=seed2, name=name, **ranges)
    return function


uniform_candidate_sampler = export("nn.uniform_candidate_sampler", "random.uniform_candidate_sampler")(
    _sampler("UniformCandidateSampler", True))
log_uniform_candidate_sampler = export("nn.log_uniform_candidate_sampler", "random.log_uniform_candidate_sampler")(
    _sampler("LogUniformCandidateSampler", True))
learned_unigram_candidate_sampler = export("nn.learned_unigram_candidate_sampler", "random.learned_unigram_candidate_sampler")(
    _sampler("LearnedUnigramCandidateSampler", True))


@export("nn.all_candidate_sampler", "random.all_candidate_sampler")
def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    return _sampler("AllCandidateSampler", False)(true_classes, num_true, num_sampled, unique,
                                                  None, seed, name)


@export("nn.fixed_unigram_candidate_sampler", "random.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                    vocab_file="", distortion=1.0, num_reserved_ids=0,
                                    num_shards=1, shard=0, unigrams=(), seed=None, name=None):
    seed1, seed2 = random_seed.get_seed(seed)
    return gen_ops.FixedUnigramCandidateSampler(
        true_classes, num_true=num_true, num_sampled=num_sampled, unique=unique,
        range_max=range_max, vocab_file=vocab_file, distortion=distortion,
        num_reserved_ids=num_reserved_ids, num_shards=num_shards, shard=shard,
        unigrams=list(unigrams), seed=seed1, seed2=seed2, name=name)


@export("nn.compute_accidental_hits")
def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    seed1, seed2 = random_seed.get_seed(seed)
    return gen_ops.ComputeAccidentalHits(true_classes, sampled_candidates, num_true, seed=seed1,
                                         seed2=seed2, name=name)


def _sum_rows(x):
    """The sum of each row, as a product with ones."""
    columns = array_ops.shape(x)[1]
    ones = array_ops.ones(array_ops.stack([columns, 1]), x.dtype)
    return array_ops.reshape(math_ops.matmul(x, ones), [-1])


def _sampled_logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true,
                    sampled_values, subtract_log_q, remove_accidental_hits, partition_strategy,
                    name, seed):
    """(logits, labels) of the true classes and of a sample of the others."""
    if isinstance(weights, variables.PartitionedVariable):
        weights = list(weights)
    if not isinstance(weights, list):
        weights = [weights]
    with ops.name_scope(name, "compute_sampled_logits", weights + [biases, inputs, labels]):
        if labels.dtype != dtypes.int64:
            labels = math_ops.cast(labels, dtypes.int64)
        labels_flat = array_ops.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                true_classes=labels, num_true=num_true, num_sampled=num_sampled, unique=True,
                range_max=num_classes, seed=seed)
        sampled, true_expected, sampled_expected = (
            array_ops.stop_gradient(s) for s in sampled_values)
        sampled = math_ops.cast(sampled, dtypes.int64)
        all_ids = array_ops.concat([labels_flat, sampled], 0)
        all_w = embedding_ops.embedding_lookup(weights, all_ids,
                                               partition_strategy=partition_strategy)
        if all_w.dtype != inputs.dtype:
            all_w = math_ops.cast(all_w, inputs.dtype)
        true_w = array_ops.slice(
            all_w, [0, 0], array_ops.stack([array_ops.shape(labels_flat)[0], -1]))
        sampled_w = array_ops.slice(
            all_w, array_ops.stack([array_ops.shape(labels_flat)[0], 0]), [-1, -1])
        sampled_logits = math_ops.matmul(inputs, sampled_w, transpose_b=True)
        all_b = embedding_ops.embedding_lookup(biases, all_ids,
                                               partition_strategy=partition_strategy)
        if all_b.dtype != inputs.dtype:
            all_b = math_ops.cast(all_b, inputs.dtype)
        true_b = array_ops.slice(all_b, [0], array_ops.shape(labels_flat))
        sampled_b = array_ops.slice(all_b, array_ops.shape(labels_flat), [-1])
        depth = array_ops.shape(true_w)[1:2]
        shaped = array_ops.concat([[-1, num_true], depth], 0)
        dots = math_ops.multiply(array_ops.expand_dims(inputs, 1),
                                 array_ops.reshape(true_w, shaped))
        dots_matrix = array_ops.reshape(dots, array_ops.concat([[-1], depth], 0))
        true_logits = array_ops.reshape(_sum_rows(dots_matrix), [-1, num_true])
        true_b = array_ops.reshape(true_b, [-1, num_true])
        true_logits += true_b
        sampled_logits += sampled_b
        if remove_accidental_hits:
            rows, ids, hit_weights = compute_accidental_hits(labels, sampled, num_true=num_true)
            indices = array_ops.concat([
                array_ops.reshape(rows, [-1, 1]),
                array_ops.reshape(math_ops.cast(ids, dtypes.int32), [-1, 1])], 1,
                "sparse_indices")
            shape = array_ops.concat([
                array_ops.shape(labels)[:1], array_ops.expand_dims(num_sampled, 0)], 0)
            if sampled_logits.dtype != hit_weights.dtype:
                hit_weights = math_ops.cast(hit_weights, sampled_logits.dtype)
            sampled_logits += sparse_ops.sparse_to_dense(
                indices, shape, hit_weights, default_value=0.0, validate_indices=False)
        if subtract_log_q:
            true_logits -= gen_ops.Log(true_expected)
            sampled_logits -= gen_ops.Log(sampled_expected)
        logits = array_ops.concat([true_logits, sampled_logits], 1)
        out_labels = array_ops.concat([
            array_ops.ones_like(true_logits) / num_true, array_ops.zeros_like(sampled_logits)], 1)
        return logits, out_labels


@export("nn.nce_loss")
def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
             sampled_values=None, remove_accidental_hits=False, partition_strategy="mod",
             name="nce_loss"):
    logits, out_labels = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        True, remove_accidental_hits, partition_strategy, name, None)
    losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=out_labels, logits=logits,
                                                      name="sampled_losses")
    return _sum_rows(losses)


@export("nn.sampled_softmax_loss")
def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
                         sampled_values=None, remove_accidental_hits=True,
                         partition_strategy="mod", name="sampled_softmax_loss", seed=None):
    logits, out_labels = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        True, remove_accidental_hits, partition_strategy, name, seed)
    out_labels = array_ops.stop_gradient(out_labels, name="labels_stop_gradient")
    return nn_ops.softmax_cross_entropy_with_logits_v2(labels=out_labels, logits=logits)
