"""Distributions of classes and counts: Bernoulli, Categorical, Multinomial."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cross_entropy_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.ops.distributions import distribution as base
from ferroflow.python.ops.distributions import kullback_leibler
from ferroflow.python.util.api import export


def _logits_and_probs(logits, probs, multidimensional):
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    if probs is None:
        logits = ops.convert_to_tensor(logits, name="logits")
        return logits, nn_ops.softmax(logits, name="probs") if multidimensional else gen_ops.Sigmoid(logits, name="probs")
    probs = ops.convert_to_tensor(probs, name="probs")
    if multidimensional:
        return math_ops.log(probs), probs
    return math_ops.log(probs) - math_ops.log1p(-1.0 * probs), probs


class _OfLogits(base.Distribution):
    def __init__(self, logits, probs, dtype, validate_args, allow_nan_stats, name, parameters, multidimensional):
        with ops.name_scope(name, values=[logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, multidimensional)
        super().__init__(dtypes.as_dtype(dtype), base.NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
                         [self._logits, self._probs], (scope or name).rstrip("/"))

    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)


@export("distributions.Bernoulli", "contrib.distributions.Bernoulli")
class Bernoulli(_OfLogits):
    """One with probability `probs`, else zero."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True,
                 name="Bernoulli"):
        super().__init__(logits, probs, dtype, validate_args, allow_nan_stats, name, dict(locals()), False)

    def _batch_shape(self):
        return self._logits.get_shape()

    def _batch_shape_tensor(self):
        return array_ops.shape(self._logits)

    def _event_shape(self):
        return tensor_shape.TensorShape([])

    def _sample_n(self, n, seed):
        shape = array_ops.concat([[n], self.batch_shape_tensor()], 0)
        drawn = random_ops.random_uniform(shape, seed=seed, dtype=self._probs.dtype)
        return math_ops.cast(math_ops.less(drawn, self._probs), self.dtype)

    def _log_prob(self, event):
        event = math_ops.cast(event, self._logits.dtype)
        logits = self._logits + array_ops.zeros_like(event)
        return -cross_entropy_ops.sigmoid_cross_entropy_with_logits(
            labels=event + array_ops.zeros_like(self._logits), logits=logits)

    def _entropy(self):
        return -self._logits * (gen_ops.Sigmoid(self._logits) - 1.0) + gen_ops.Softplus(-self._logits)

    def _mean(self):
        return array_ops.identity(self._probs)

    def _variance(self):
        return self._mean() * (1.0 - self._probs)

    def _mode(self):
        return math_ops.cast(math_ops.greater(self._probs, 0.5), self.dtype)


@kullback_leibler.RegisterKL(Bernoulli, Bernoulli)
def _bernoullis(a, b, name=None):
    with ops.name_scope(name, "kl_bernoulli_bernoulli"):
        off = gen_ops.Softplus(b.logits) - gen_ops.Softplus(a.logits)
        on = gen_ops.Softplus(-b.logits) - gen_ops.Softplus(-a.logits)
        return gen_ops.Sigmoid(a.logits) * on + gen_ops.Sigmoid(-a.logits) * off


@export("distributions.Categorical", "contrib.distributions.Categorical")
class Categorical(_OfLogits):
    """The number of a class."""

    def __init__(self, logits=None, probs=None, dtype=dtypes.int32, validate_args=False, allow_nan_stats=True,
                 name="Categorical"):
        super().__init__(logits, probs, dtype, validate_args, allow_nan_stats, name, dict(locals()), True)

    @property
    def event_size(self):
        return ops.convert_to_tensor(self._logits.get_shape().as_list()[-1] or array_ops.shape(self._logits)[-1],
                                     dtype=dtypes.int32)

    def _batch_shape(self):
        return self._logits.get_shape()[:-1]

    def _batch_shape_tensor(self):
        return array_ops.shape(self._logits)[:-1]

    def _event_shape(self):
        return tensor_shape.TensorShape([])

    def _sample_n(self, n, seed):
        rank = self._logits.get_shape().ndims
        flat = self._logits if rank == 2 else array_ops.reshape(self._logits, [-1, self.event_size])
        drawn = random_ops.multinomial(flat, n, seed=seed, output_dtype=self.dtype) if (
            self.dtype in (dtypes.int32, dtypes.int64)) else math_ops.cast(
                random_ops.multinomial(flat, n, seed=seed), self.dtype)
        return array_ops.reshape(array_ops.transpose(drawn), array_ops.concat([[n], self.batch_shape_tensor()], 0))

    def log_prob(self, value, name="log_prob"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._log_prob(ops.convert_to_tensor(value, name="k"))

    def _log_prob(self, k):
        if not k.dtype.is_integer:
            k = math_ops.cast(k, dtypes.int32)
        classes = array_ops.shape(self._logits)[-1:]
        shape = array_ops.broadcast_dynamic_shape(array_ops.shape(k), array_ops.shape(self._logits)[:-1])
        logits = self._logits + array_ops.zeros(array_ops.concat([shape, classes], 0), dtype=self._logits.dtype)
        logits.set_shape(array_ops.broadcast_static_shape(
            k.get_shape(), self._logits.get_shape()[:-1]).concatenate(self._logits.get_shape()[-1:]))
        k = k + array_ops.zeros(shape, dtype=k.dtype)
        return -cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def prob(self, value, name="prob"):
        return math_ops.exp(self.log_prob(value), name=name)

    def _entropy(self):
        return -math_ops.reduce_sum(nn_ops.log_softmax(self._logits) * self._probs, axis=-1)

    def _mode(self):
        return math_ops.cast(math_ops.argmax(self._logits, axis=-1), self.dtype)


@kullback_leibler.RegisterKL(Categorical, Categorical)
def _categoricals(a, b, name=None):
    with ops.name_scope(name, "kl_categorical_categorical", values=[a.logits, b.logits]):
        difference = nn_ops.log_softmax(a.logits) - nn_ops.log_softmax(b.logits)
        return math_ops.reduce_sum(nn_ops.softmax(a.logits) * difference, axis=-1)


@export("distributions.Multinomial", "contrib.distributions.Multinomial")
class Multinomial(_OfLogits):
    """How often each class is drawn in `total_count` draws."""

    def __init__(self, total_count, logits=None, probs=None, validate_args=False, allow_nan_stats=True,
                 name="Multinomial"):
        parameters = dict(locals())
        super().__init__(logits, probs, dtypes.float32, validate_args, allow_nan_stats, name, parameters, True)
        self._dtype = self._probs.dtype.base_dtype
        self._total_count = ops.convert_to_tensor(total_count, dtype=self._dtype, name="total_count")

    total_count = property(lambda self: self._total_count)

    def _batch_shape(self):
        return self._probs.get_shape()[:-1]

    def _batch_shape_tensor(self):
        return array_ops.shape(self._probs)[:-1]

    def _event_shape(self):
        return self._probs.get_shape()[-1:]

    def _event_shape_tensor(self):
        return array_ops.shape(self._probs)[-1:]

    def _sample_n(self, n, seed):
        if self._total_count.get_shape().ndims:
            raise NotImplementedError("Multinomial.sample needs a scalar total_count")
        classes = array_ops.shape(self._logits)[-1]
        flat = array_ops.reshape(self._logits, array_ops.stack([-1, classes]))
        count = math_ops.cast(self._total_count, dtypes.int32)
        drawn = random_ops.multinomial(flat, n * count, seed=seed)
        each = array_ops.reshape(drawn, array_ops.stack([-1, n, count]))
        counts = math_ops.reduce_sum(array_ops.one_hot(each, depth=classes, dtype=self.dtype), axis=-2)
        return array_ops.reshape(array_ops.transpose(counts, [1, 0, 2]), array_ops.concat(
            [[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0))

    def _log_prob(self, counts):
        ways = gen_ops.Lgamma(self._total_count + 1.0) - math_ops.reduce_sum(gen_ops.Lgamma(counts + 1.0), axis=-1)
        return math_ops.reduce_sum(counts * nn_ops.log_softmax(self._logits), -1) + ways

    def _mean(self):
        return self._probs * array_ops.expand_dims(self._total_count, -1)
