"""Distributions over all real numbers: Normal, Laplace, StudentT, Uniform, and Normal of several dimensions."""

import math

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.ops.distributions import distribution as base
from ferroflow.python.ops.distributions import kullback_leibler
from ferroflow.python.util.api import export


def _tensor(value, name, like=None):
    return ops.convert_to_tensor(value, name=name, dtype=like)


def _pair(a, b, names):
    a = _tensor(a, names[0], None if hasattr(a, "dtype") else getattr(b, "dtype", None) or dtypes.float32)
    return a, _tensor(b, names[1], a.dtype)


class _LocationScale(base.Distribution):
    """A distribution with a location and a scale."""

    def __init__(self, loc, scale, validate_args, allow_nan_stats, name, parameters):
        with ops.name_scope(name, values=[loc, scale]) as scope:
            self._loc, self._scale = _pair(loc, scale, ("loc", "scale"))
        super().__init__(self._loc.dtype.base_dtype, base.FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         parameters, [self._loc, self._scale], (scope or name).rstrip("/"))

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)

    def _batch_shape(self):
        return base.broadcast_shape(self._loc, self._scale)

    def _batch_shape_tensor(self):
        return base.broadcast_dynamic(self._loc, self._scale)

    def _event_shape(self):
        return tensor_shape.TensorShape([])

    def _sample_n(self, n, seed):
        shape = array_ops.concat([[n], self.batch_shape_tensor()], 0)
        return self._standard(shape, seed) * self._scale + self._loc

    def _z(self, x):
        return (x - self._loc) / self._scale

    def _mean(self):
        return self._loc * array_ops.ones_like(self._scale)

    _mode = _mean


@export("distributions.Normal", "contrib.distributions.Normal")
class Normal(_LocationScale):
    """The normal distribution."""

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Normal"):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _standard(self, shape, seed):
        return random_ops.random_normal(shape, mean=0.0, stddev=1.0, dtype=self._loc.dtype, seed=seed)

    def _log_prob(self, x):
        return -0.5 * math_ops.square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + math_ops.log(self._scale))

    def _cdf(self, x):
        return 0.5 * gen_ops.Erfc(-self._z(x) / math.sqrt(2.0))

    def _quantile(self, p):
        return gen_ops.Ndtri(p) * self._scale + self._loc

    def _entropy(self):
        scale = self._scale * array_ops.ones_like(self._loc)
        return 0.5 * math.log(2.0 * math.pi) + 0.5 + math_ops.log(scale)

    def _stddev(self):
        return self._scale * array_ops.ones_like(self._loc)

    def _variance(self):
        return math_ops.square(self._stddev())


@kullback_leibler.RegisterKL(Normal, Normal)
def _normals(a, b, name=None):
    with ops.name_scope(name, "kl_normal_normal"):
        ratio = math_ops.square(a.scale) / math_ops.square(b.scale)
        return math_ops.square(a.loc - b.loc) / (2.0 * math_ops.square(b.scale)) + 0.5 * (
            ratio - 1.0 - math_ops.log(ratio))


@export("distributions.Laplace", "contrib.distributions.Laplace")
class Laplace(_LocationScale):
    """Two exponential distributions back to back."""

    def __init__(self, loc, scale, validate_args=False, allow_nan_stats=True, name="Laplace"):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _standard(self, shape, seed):
        low = np.nextafter(self.dtype.as_numpy_dtype(-1.0), self.dtype.as_numpy_dtype(0.0))
        u = random_ops.random_uniform(shape, minval=low, maxval=1.0, dtype=self.dtype, seed=seed)
        return -math_ops.sign(u) * math_ops.log1p(-math_ops.abs(u))

    def _log_prob(self, x):
        return -math_ops.abs(self._z(x)) - math.log(2.0) - math_ops.log(self._scale)

    def _cdf(self, x):
        z = self._z(x)
        return 0.5 + 0.5 * math_ops.sign(z) * (1.0 - math_ops.exp(-math_ops.abs(z)))

    def _entropy(self):
        return math.log(2.0) + 1.0 + math_ops.log(self._scale + array_ops.zeros_like(self._loc))

    def _stddev(self):
        return math.sqrt(2.0) * self._scale + array_ops.zeros_like(self._loc)

    def _variance(self):
        return math_ops.square(self._stddev())


@export("distributions.Uniform", "contrib.distributions.Uniform")
class Uniform(base.Distribution):
    """All values of an interval are as likely."""

    def __init__(self, low=0.0, high=1.0, validate_args=False, allow_nan_stats=True, name="Uniform"):
        parameters = dict(locals())
        with ops.name_scope(name, values=[low, high]) as scope:
            self._low, self._high = _pair(low, high, ("low", "high"))
        super().__init__(self._low.dtype.base_dtype, base.FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         parameters, [self._low, self._high], (scope or name).rstrip("/"))

    low = property(lambda self: self._low)
    high = property(lambda self: self._high)

    def range(self, name="range"):
        with ops.name_scope(self._name + "/" + name):
            return self._high - self._low

    def _batch_shape(self):
        return base.broadcast_shape(self._low, self._high)

    def _batch_shape_tensor(self):
        return base.broadcast_dynamic(self._low, self._high)

    def _event_shape(self):
        return tensor_shape.TensorShape([])

    def _sample_n(self, n, seed):
        shape = array_ops.concat([[n], self.batch_shape_tensor()], 0)
        return self._low + self.range() * random_ops.random_uniform(shape, dtype=self.dtype, seed=seed)

    def _prob(self, x):
        density = 1.0 / self.range() + array_ops.zeros_like(x)
        inside = math_ops.logical_and(math_ops.greater_equal(x, self._low), math_ops.less(x, self._high))
        return array_ops.where(inside, density, array_ops.where(gen_ops.IsNan(x + density), x + density,
                                                                array_ops.zeros_like(density)))

    def _log_prob(self, x):
        return math_ops.log(self._prob(x))

    def _cdf(self, x):
        part = (x - self._low) / self.range()
        return gen_ops.ClipByValue(part, math_ops.cast(0, self.dtype), math_ops.cast(1, self.dtype))

    def _quantile(self, p):
        return self._low + p * self.range()

    def _entropy(self):
        return math_ops.log(self.range())

    def _mean(self):
        return (self._low + self._high) / 2.0

    def _variance(self):
        return math_ops.square(self.range()) / 12.0

    def _stddev(self):
        return self.range() / math.sqrt(12.0)


@export("distributions.StudentT", "contrib.distributions.StudentT")
class StudentT(_LocationScale):
    """Student's t with `df` degrees of freedom."""

    def __init__(self, df, loc, scale, validate_args=False, allow_nan_stats=True, name="StudentT"):
        parameters = dict(locals())
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, parameters)
        self._df = _tensor(df, "df", self._loc.dtype)
        self._reparameterization_type = base.NOT_REPARAMETERIZED

    df = property(lambda self: self._df)

    def _batch_shape(self):
        return base.broadcast_shape(self._df, self._loc, self._scale)

    def _batch_shape_tensor(self):
        return base.broadcast_dynamic(self._df, self._loc, self._scale)

    def _standard(self, shape, seed):
        normal = random_ops.random_normal(shape, dtype=self.dtype, seed=seed)
        df = self._df * array_ops.ones(self.batch_shape_tensor(), dtype=self.dtype)
        gamma = random_ops.random_gamma([shape[0]], 0.5 * df, beta=0.5, dtype=self.dtype, seed=seed)
        return normal * gen_ops.Rsqrt(gamma / df)

    def _log_prob(self, x):
        y = self._z(x)
        free = -0.5 * (self._df + 1.0) * math_ops.log1p(y ** 2.0 / self._df)
        scale = (math_ops.log(math_ops.abs(self._scale)) + 0.5 * math_ops.log(self._df) + 0.5 * math.log(math.pi) +
                 gen_ops.Lgamma(0.5 * self._df) - gen_ops.Lgamma(0.5 * (self._df + 1.0)))
        return free - scale

    def _mean(self):
        mean = self._loc * array_ops.ones(self.batch_shape_tensor(), dtype=self.dtype)
        nan = array_ops.fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(np.nan))
        more = math_ops.greater(self._df, array_ops.ones(self.batch_shape_tensor(), dtype=self.dtype))
        return array_ops.where(more, mean, nan)


@export("contrib.distributions.MultivariateNormalDiag")
class MultivariateNormalDiag(base.Distribution):
    """Independent normal values along the last axis."""

    def __init__(self, loc=None, scale_diag=None, scale_identity_multiplier=None, validate_args=False,
                 allow_nan_stats=True, name="MultivariateNormalDiag"):
        parameters = dict(locals())
        with ops.name_scope(name, values=[loc, scale_diag]) as scope:
            given = loc if loc is not None else scale_diag
            given = ops.convert_to_tensor(given)
            self._loc = array_ops.zeros_like(given) if loc is None else ops.convert_to_tensor(loc, name="loc")
            diag = array_ops.ones_like(given) if scale_diag is None else ops.convert_to_tensor(scale_diag)
            if scale_identity_multiplier is not None:
                scaled = array_ops.expand_dims(ops.convert_to_tensor(scale_identity_multiplier), -1)
                diag = scaled * array_ops.ones_like(diag) if scale_diag is None else diag + scaled
            self._diag = diag
        super().__init__(self._loc.dtype.base_dtype, base.FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
                         parameters, [self._loc, self._diag], (scope or name).rstrip("/"))

    loc = property(lambda self: self._loc)

    def _whole(self):
        return base.broadcast_shape(self._loc, self._diag)

    def _batch_shape(self):
        return self._whole()[:-1]

    def _event_shape(self):
        return self._whole()[-1:]

    def _batch_shape_tensor(self):
        return base.broadcast_dynamic(self._loc, self._diag)[:-1]

    def _event_shape_tensor(self):
        return base.broadcast_dynamic(self._loc, self._diag)[-1:]

    def _sample_n(self, n, seed):
        shape = array_ops.concat([[n], base.broadcast_dynamic(self._loc, self._diag)], 0)
        return random_ops.random_normal(shape, dtype=self.dtype, seed=seed) * self._diag + self._loc

    def _log_prob(self, x):
        z = (x - self._loc) / self._diag
        each = -0.5 * math_ops.square(z) - 0.5 * math.log(2.0 * math.pi) - math_ops.log(math_ops.abs(self._diag))
        return math_ops.reduce_sum(each, axis=-1)

    def _entropy(self):
        diag = self._diag + array_ops.zeros_like(self._loc)
        return math_ops.reduce_sum(0.5 + 0.5 * math.log(2.0 * math.pi) + math_ops.log(math_ops.abs(diag)), axis=-1)

    def _mean(self):
        return self._loc + array_ops.zeros_like(self._diag)

    _mode = _mean

    def _stddev(self):
        return math_ops.abs(self._diag) + array_ops.zeros_like(self._loc)

    def _variance(self):
        return math_ops.square(self._stddev())


@kullback_leibler.RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _diagonals(a, b, name=None):
    with ops.name_scope(name, "kl_mvn"):
        ratio = math_ops.square(a.stddev() / b.stddev())
        distance = math_ops.square((b.loc - a.loc) / b.stddev())
        return 0.5 * math_ops.reduce_sum(ratio + distance - 1.0 - math_ops.log(ratio), axis=-1)
