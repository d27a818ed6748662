"""What all probability distributions share."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


@export("distributions.ReparameterizationType", "contrib.distributions.ReparameterizationType")
class ReparameterizationType:
    """Whether gradients flow through samples."""

    def __init__(self, rep_type):
        self._rep_type = rep_type

    def __repr__(self):
        return "<Reparameterization Type: %s>" % self._rep_type

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


FULLY_REPARAMETERIZED = export("distributions.FULLY_REPARAMETERIZED", "contrib.distributions.FULLY_REPARAMETERIZED")(
    ReparameterizationType("FULLY_REPARAMETERIZED"))
NOT_REPARAMETERIZED = export("distributions.NOT_REPARAMETERIZED", "contrib.distributions.NOT_REPARAMETERIZED")(
    ReparameterizationType("NOT_REPARAMETERIZED"))


@export("distributions.Distribution", "contrib.distributions.Distribution")
class Distribution:
    """A distribution of values. Subclasses define `_sample_n`, `_log_prob` and the like."""

    def __init__(self, dtype, reparameterization_type, validate_args, allow_nan_stats, parameters=None,
                 graph_parents=None, name=None):
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {k: v for k, v in (parameters or {}).items() if k not in ("self", "__class__")}
        self._graph_parents = list(graph_parents or [])
        self._name = name or type(self).__name__

    name = property(lambda self: self._name + "/")
    dtype = property(lambda self: self._dtype)
    parameters = property(lambda self: dict(self._parameters))
    reparameterization_type = property(lambda self: self._reparameterization_type)
    allow_nan_stats = property(lambda self: self._allow_nan_stats)
    validate_args = property(lambda self: self._validate_args)

    def copy(self, **override_parameters_kwargs):
        return type(self)(**dict(self.parameters, **override_parameters_kwargs))

    @property
    def batch_shape(self):
        return tensor_shape.as_shape(self._batch_shape())

    @property
    def event_shape(self):
        return tensor_shape.as_shape(self._event_shape())

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        with ops.name_scope(self._name + "/" + name):
            if self.batch_shape.is_fully_defined():
                return ops.convert_to_tensor(self.batch_shape.as_list(), dtype=dtypes.int32, name="batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name="event_shape_tensor"):
        with ops.name_scope(self._name + "/" + name):
            if self.event_shape.is_fully_defined():
                return ops.convert_to_tensor(self.event_shape.as_list(), dtype=dtypes.int32, name="event_shape")
            return self._event_shape_tensor()

    def sample(self, sample_shape=(), seed=None, name="sample"):
        """Random values; the result has `sample_shape` before the batch's shape."""
        with ops.name_scope(self._name + "/" + name):
            shape = ops.convert_to_tensor(sample_shape, dtype=dtypes.int32, name="sample_shape")
            static = shape.get_shape().ndims
            flat = array_ops.reshape(shape, [-1]) if static == 0 else shape
            count = math_ops.reduce_prod(flat)
            values = self._sample_n(count, seed)
            rest = array_ops.shape(values)[1:]
            values = array_ops.reshape(values, array_ops.concat([flat, rest], 0))
            known = tensor_shape.TensorShape(flat._constant_shape()) if flat._constant_shape() is not None else (
                tensor_shape.unknown_shape())
            values.set_shape(known.concatenate(self.batch_shape).concatenate(self.event_shape))
            return values

    def _value(self, value):
        return ops.convert_to_tensor(value, preferred_dtype=self.dtype, name="value")

    def _call(self, what, name, *args):
        with ops.name_scope(self._name + "/" + name, values=args):
            return getattr(self, what)(*args)

    def log_prob(self, value, name="log_prob"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._log_prob(self._value(value))

    def prob(self, value, name="prob"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._prob(self._value(value))

    def _prob(self, value):
        return math_ops.exp(self._log_prob(value))

    def cdf(self, value, name="cdf"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._cdf(self._value(value))

    def log_cdf(self, value, name="log_cdf"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._log_cdf(self._value(value))

    def _log_cdf(self, value):
        return math_ops.log(self._cdf(value))

    def survival_function(self, value, name="survival_function"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return 1.0 - self._cdf(self._value(value))

    def log_survival_function(self, value, name="log_survival_function"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return math_ops.log1p(-self._cdf(self._value(value)))

    def quantile(self, value, name="quantile"):
        with ops.name_scope(self._name + "/" + name, values=[value]):
            return self._quantile(ops.convert_to_tensor(value, dtype=self.dtype))

    def entropy(self, name="entropy"):
        return self._call("_entropy", name)

    def mean(self, name="mean"):
        return self._call("_mean", name)

    def mode(self, name="mode"):
        return self._call("_mode", name)

    def variance(self, name="variance"):
        return self._call("_variance", name)

    def stddev(self, name="stddev"):
        return self._call("_stddev", name)

    def _stddev(self):
        return math_ops.sqrt(self._variance())

    def covariance(self, name="covariance"):
        return self._call("_covariance", name)

    def kl_divergence(self, other, name="kl_divergence"):
        from ferroflow.python.ops.distributions import kullback_leibler
        with ops.name_scope(self._name + "/" + name):
            return kullback_leibler.kl_divergence(self, other)

    def cross_entropy(self, other, name="cross_entropy"):
        """Entropy plus divergence."""
        with ops.name_scope(self._name + "/" + name):
            return self.entropy() + self.kl_divergence(other)

    def __getattr__(self, name):
        if name.startswith("_") and name.lstrip("_") in (
                "log_prob", "sample_n", "cdf", "quantile", "entropy", "mean", "mode", "variance", "covariance"):
            raise NotImplementedError("%s is not implemented: %s" % (name.lstrip("_"), type(self).__name__))
        raise AttributeError("'%s' object has no attribute '%s'" % (type(self).__name__, name))

    def __str__(self):
        return 'tfp.distributions.%s("%s", batch_shape=%s, event_shape=%s, dtype=%s)' % (
            type(self).__name__, self.name, self.batch_shape, self.event_shape, self.dtype.name)


def broadcast_shape(*tensors):
    """The static shape of tensors that broadcast together."""
    shape = tensors[0].get_shape()
    for t in tensors[1:]:
        shape = array_ops.broadcast_static_shape(shape, t.get_shape())
    return shape


def broadcast_dynamic(*tensors):
    """The shape of tensors that broadcast together, as a tensor."""
    shape = array_ops.shape(tensors[0])
    for t in tensors[1:]:
        shape = array_ops.broadcast_dynamic_shape(shape, array_ops.shape(t))
    return shape
