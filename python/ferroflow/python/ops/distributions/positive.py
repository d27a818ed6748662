"""Distributions of positive numbers and of proportions: Gamma, Exponential, Beta, Dirichlet."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import numeric_checks
from ferroflow.python.ops import random_ops
from ferroflow.python.ops.distributions import distribution as base
from ferroflow.python.ops.distributions import kullback_leibler
from ferroflow.python.util.api import export


class _TwoParameters(base.Distribution):
    def __init__(self, a, b, names, validate_args, allow_nan_stats, name, parameters, reparameterized):
        with ops.name_scope(name, values=[a, b]) as scope:
            first = ops.convert_to_tensor(a, name=names[0], dtype=None if hasattr(a, "dtype") else getattr(
                b, "dtype", None) or dtypes.float32)
            second = ops.convert_to_tensor(b, name=names[1], dtype=first.dtype)
        self._pair = (first, second)
        super().__init__(first.dtype.base_dtype, reparameterized, validate_args, allow_nan_stats, parameters,
                         [first, second], (scope or name).rstrip("/"))

    def _batch_shape(self):
        return base.broadcast_shape(*self._pair)

    def _batch_shape_tensor(self):
        return base.broadcast_dynamic(*self._pair)

    def _event_shape(self):
        return tensor_shape.TensorShape([])


@export("distributions.Gamma", "contrib.distributions.Gamma")
class Gamma(_TwoParameters):
    """The gamma distribution with a concentration and a rate."""

    def __init__(self, concentration, rate, validate_args=False, allow_nan_stats=True, name="Gamma"):
        super().__init__(concentration, rate, ("concentration", "rate"), validate_args, allow_nan_stats, name,
                         dict(locals()), base.FULLY_REPARAMETERIZED)

    concentration = property(lambda self: self._pair[0])
    rate = property(lambda self: self._pair[1])

    def _sample_n(self, n, seed):
        return random_ops.random_gamma([n], alpha=self.concentration, beta=self.rate, dtype=self.dtype, seed=seed)

    def _log_prob(self, x):
        free = gen_ops.Xlogy(self.concentration - 1.0, x) - self.rate * x
        return free - (gen_ops.Lgamma(self.concentration) - self.concentration * math_ops.log(self.rate))

    def _cdf(self, x):
        whole = self.concentration + array_ops.zeros_like(self.rate * x)
        return gen_ops.Igamma(whole, self.rate * x + array_ops.zeros_like(whole))

    def _entropy(self):
        return (self.concentration - math_ops.log(self.rate) + gen_ops.Lgamma(self.concentration) +
                (1.0 - self.concentration) * gen_ops.Digamma(self.concentration))

    def _mean(self):
        return self.concentration / self.rate

    def _variance(self):
        return self.concentration / math_ops.square(self.rate)

    def _stddev(self):
        return math_ops.sqrt(self.concentration) / self.rate

    def _mode(self):
        mode = (self.concentration - 1.0) / self.rate
        nan = array_ops.fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(np.nan))
        return array_ops.where(math_ops.greater(self.concentration + array_ops.zeros_like(mode), 1.0), mode, nan)


@kullback_leibler.RegisterKL(Gamma, Gamma)
def _gammas(a, b, name=None):
    with ops.name_scope(name, "kl_gamma_gamma"):
        return ((a.concentration - b.concentration) * gen_ops.Digamma(a.concentration) +
                gen_ops.Lgamma(b.concentration) - gen_ops.Lgamma(a.concentration) +
                b.concentration * math_ops.log(a.rate) - b.concentration * math_ops.log(b.rate) +
                a.concentration * (b.rate / a.rate - 1.0))


@export("distributions.Exponential", "contrib.distributions.Exponential")
class Exponential(Gamma):
    """Times between events that come at a constant rate."""

    def __init__(self, rate, validate_args=False, allow_nan_stats=True, name="Exponential"):
        parameters = dict(locals())
        rate = ops.convert_to_tensor(rate, name="rate")
        super().__init__(array_ops.ones([], dtype=rate.dtype), rate, validate_args, allow_nan_stats, name)
        self._parameters = {"rate": rate, "validate_args": validate_args, "allow_nan_stats": allow_nan_stats,
                            "name": parameters["name"]}

    def _sample_n(self, n, seed):
        shape = array_ops.concat([[n], array_ops.shape(self.rate)], 0)
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = random_ops.random_uniform(shape, minval=tiny, maxval=1.0, seed=seed, dtype=self.dtype)
        return -math_ops.log(drawn) / self.rate

    def _cdf(self, x):
        return -gen_ops.Expm1(-self.rate * x)


@export("distributions.Beta", "contrib.distributions.Beta")
class Beta(_TwoParameters):
    """The beta distribution of proportions."""

    def __init__(self, concentration1=None, concentration0=None, validate_args=False, allow_nan_stats=True,
                 name="Beta"):
        super().__init__(concentration1, concentration0, ("concentration1", "concentration0"), validate_args,
                         allow_nan_stats, name, dict(locals()), base.FULLY_REPARAMETERIZED)

    concentration1 = property(lambda self: self._pair[0])
    concentration0 = property(lambda self: self._pair[1])

    @property
    def total_concentration(self):
        return self.concentration1 + self.concentration0

    def _sample_n(self, n, seed):
        ones = array_ops.ones_like(self.total_concentration)
        first = random_ops.random_gamma([n], alpha=ones * self.concentration1, dtype=self.dtype, seed=seed)
        second = random_ops.random_gamma([n], alpha=ones * self.concentration0, dtype=self.dtype,
                                         seed=None if seed is None else seed + 1)
        return first / (first + second)

    def _log_prob(self, x):
        free = gen_ops.Xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * gen_ops.Log1p(-x)
        return free - self._log_normalizer()

    def _log_normalizer(self):
        return (gen_ops.Lgamma(self.concentration1) + gen_ops.Lgamma(self.concentration0) -
                gen_ops.Lgamma(self.total_concentration))

    def _cdf(self, x):
        zeros = array_ops.zeros_like(self.total_concentration + x)
        return gen_ops.Betainc(self.concentration1 + zeros, self.concentration0 + zeros, x + zeros)

    def _entropy(self):
        return (self._log_normalizer() - (self.concentration1 - 1.0) * gen_ops.Digamma(self.concentration1) -
                (self.concentration0 - 1.0) * gen_ops.Digamma(self.concentration0) +
                (self.total_concentration - 2.0) * gen_ops.Digamma(self.total_concentration))

    def _mean(self):
        return self.concentration1 / self.total_concentration

    def _variance(self):
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self):
        return (self.concentration1 - 1.0) / (self.total_concentration - 2.0)


@kullback_leibler.RegisterKL(Beta, Beta)
def _betas(a, b, name=None):
    with ops.name_scope(name, "kl_beta_beta"):
        def change(first, second):
            return (first - second) * gen_ops.Digamma(first)
        return (b._log_normalizer() - a._log_normalizer() + change(a.concentration1, b.concentration1) +
                change(a.concentration0, b.concentration0) -
                (a.total_concentration - b.total_concentration) * gen_ops.Digamma(a.total_concentration))


@export("distributions.Dirichlet", "contrib.distributions.Dirichlet")
class Dirichlet(base.Distribution):
    """Proportions that add up to one."""

    def __init__(self, concentration, validate_args=False, allow_nan_stats=True, name="Dirichlet"):
        parameters = dict(locals())
        with ops.name_scope(name, values=[concentration]) as scope:
            self._concentration = ops.convert_to_tensor(concentration, name="concentration")
            self._total = math_ops.reduce_sum(self._concentration, -1)
        super().__init__(self._concentration.dtype.base_dtype, base.FULLY_REPARAMETERIZED, validate_args,
                         allow_nan_stats, parameters, [self._concentration], (scope or name).rstrip("/"))

    concentration = property(lambda self: self._concentration)
    total_concentration = property(lambda self: self._total)

    def _batch_shape(self):
        return self._total.get_shape()

    def _batch_shape_tensor(self):
        return array_ops.shape(self._total)

    def _event_shape(self):
        return self._concentration.get_shape()[-1:]

    def _event_shape_tensor(self):
        return array_ops.shape(self._concentration)[-1:]

    def _sample_n(self, n, seed):
        drawn = random_ops.random_gamma([n], alpha=self._concentration, dtype=self.dtype, seed=seed)
        return drawn / math_ops.reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x):
        free = math_ops.reduce_sum(gen_ops.Xlogy(self._concentration - 1.0, x), -1)
        return free - numeric_checks.lbeta(self._concentration)

    def _entropy(self):
        k = math_ops.cast(self.event_shape_tensor()[0], self.dtype)
        return (numeric_checks.lbeta(self._concentration) + (self._total - k) * gen_ops.Digamma(self._total) -
                math_ops.reduce_sum((self._concentration - 1.0) * gen_ops.Digamma(self._concentration), axis=-1))

    def _mean(self):
        return self._concentration / self._total[..., None]

    def _variance(self):
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self._total[..., None])
