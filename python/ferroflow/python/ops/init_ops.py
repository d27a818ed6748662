"""Initializers of variables."""

import math

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.util.api import export


def _float_dtype(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError("Argument `dtype` expected to be numeric or boolean. Received %s." %
                         dtype)
    return dtype


class Initializer:
    """A callable that makes the first value of a variable."""

    def __call__(self, shape, dtype=None, partition_info=None):
        raise NotImplementedError

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@export("zeros_initializer", "initializers.zeros")
class Zeros(Initializer):
    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self):
        return {"dtype": self.dtype.name}


@export("ones_initializer", "initializers.ones")
class Ones(Initializer):
    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.ones(shape, self.dtype if dtype is None else dtype)

    def get_config(self):
        return {"dtype": self.dtype.name}


@export("constant_initializer", "initializers.constant")
class Constant(Initializer):
    def __init__(self, value=0, dtype=dtypes.float32, verify_shape=False):
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError("Invalid type for initial value=%s of type: %s. Expected Python "
                            "scalar, list or tuple of values, or numpy.ndarray." % (
                                value, type(value).__name__))
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(self, shape, dtype=None, partition_info=None, verify_shape=None):
        dtype = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        if verify_shape or (verify_shape is None and self._verify_shape):
            return constant_op.constant_v1(self.value, dtype=dtype, shape=shape,
                                           verify_shape=True)
        wanted = tensor_shape.as_shape(shape).num_elements() if isinstance(shape, (list, tuple, tensor_shape.TensorShape)) else None
        if wanted is not None and np.size(self.value) > wanted:
            raise ValueError("Too many elements provided. Takes at most %d, but got %d." % (wanted, np.size(self.value)))
        return constant_op.constant(self.value, dtype=dtype, shape=shape)

    def get_config(self):
        return {"value": self.value, "dtype": self.dtype.name}


@export("random_uniform_initializer", "initializers.random_uniform")
class RandomUniform(Initializer):
    def __init__(self, minval=0.0, maxval=None, seed=None, dtype=dtypes.float32):
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return random_ops.random_uniform(shape, self.minval, self.maxval,
                                         self.dtype if dtype is None else dtype, seed=self.seed)

    def get_config(self):
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed,
                "dtype": self.dtype.name}


class _Normal(Initializer):
    def __init__(self, mean=0.0, stddev=1.0, seed=None, dtype=dtypes.float32):
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = _float_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return self._sample(shape, self.mean, self.stddev, self.dtype if dtype is None else dtype,
                            seed=self.seed)

    def get_config(self):
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed,
                "dtype": self.dtype.name}


@export("random_normal_initializer", "initializers.random_normal")
class RandomNormal(_Normal):
    _sample = staticmethod(random_ops.random_normal)


@export("truncated_normal_initializer", "initializers.truncated_normal")
class TruncatedNormal(_Normal):
    _sample = staticmethod(random_ops.truncated_normal)


@export("uniform_unit_scaling_initializer", "initializers.uniform_unit_scaling")
class UniformUnitScaling(Initializer):
    def __init__(self, factor=1.0, seed=None, dtype=dtypes.float32):
        self.factor, self.seed = factor, seed
        self.dtype = _float_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        scale_shape = shape if partition_info is None else partition_info.full_shape
        input_size = 1.0
        for dim in scale_shape[:-1]:
            input_size *= float(dim)
        limit = math.sqrt(3 / max(input_size, 1.0)) * self.factor
        return random_ops.random_uniform(shape, -limit, limit,
                                         self.dtype if dtype is None else dtype, seed=self.seed)

    def get_config(self):
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


def _fans(shape):
    """(inputs, outputs) of one unit of a kernel."""
    if len(shape) < 1:
        return 1, 1
    if len(shape) == 1:
        return int(shape[0]), int(shape[0])
    if len(shape) == 2:
        return int(shape[0]), int(shape[1])
    field = 1
    for dim in shape[:-2]:
        field *= dim
    return int(shape[-2] * field), int(shape[-1] * field)


@export("variance_scaling_initializer", "initializers.variance_scaling")
class VarianceScaling(Initializer):
    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None,
                 dtype=dtypes.float32):
        if scale <= 0.0:
            raise ValueError("Argument `scale` must be a positive float. Received: %s" % scale)
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). "
                             "Received: %s" % mode)
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError("Argument `distribution` should be one of ('normal', 'uniform', "
                             "'truncated_normal', 'untruncated_normal'). Received: %s" %
                             distribution)
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        self.dtype = _float_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self.dtype if dtype is None else dtype
        fan_in, fan_out = _fans(shape if partition_info is None else partition_info.full_shape)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}
        scale = self.scale / max(1.0, count[self.mode])
        if self.distribution in ("normal", "truncated_normal"):
            # The factor makes up for the tails that are cut off.
            stddev = math.sqrt(scale) / .87962566103423978
            return random_ops.truncated_normal(shape, 0.0, stddev, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        limit = math.sqrt(3.0 * scale)
        return random_ops.random_uniform(shape, -limit, limit, dtype, seed=self.seed)

    def get_config(self):
        return {"scale": self.scale, "mode": self.mode, "distribution": self.distribution,
                "seed": self.seed, "dtype": self.dtype.name}


@export("glorot_uniform_initializer", "initializers.glorot_uniform")
class GlorotUniform(VarianceScaling):
    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self):
        return {"seed": self.seed, "dtype": self.dtype.name}


@export("glorot_normal_initializer", "initializers.glorot_normal")
class GlorotNormal(VarianceScaling):
    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self):
        return {"seed": self.seed, "dtype": self.dtype.name}


@export("initializers.lecun_normal")
def lecun_normal(seed=None):
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


@export("initializers.lecun_uniform")
def lecun_uniform(seed=None):
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


@export("initializers.he_normal")
def he_normal(seed=None):
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


@export("initializers.he_uniform")
def he_uniform(seed=None):
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


@export("orthogonal_initializer", "initializers.orthogonal")
class Orthogonal(Initializer):
    def __init__(self, gain=1.0, seed=None, dtype=dtypes.float32):
        self.gain, self.seed = gain, seed
        self.dtype = _float_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self.dtype if dtype is None else dtype
        if len(shape) < 2:
            raise ValueError("The tensor to initialize, specified by argument `shape` must be at "
                             "least two-dimensional. Received shape=%s" % (shape,))
        rows = 1
        for dim in shape[:-1]:
            rows *= dim
        rows, cols = int(rows), int(shape[-1])
        flat = (cols, rows) if rows < cols else (rows, cols)
        q, r = gen_ops.Qr(random_ops.random_normal(flat, dtype=dtype, seed=self.seed),
                          full_matrices=False)
        q *= math_ops.sign(gen_ops.DiagPart(r))
        if rows < cols:
            q = array_ops.matrix_transpose(q)
        return self.gain * array_ops.reshape(q, shape)

    def get_config(self):
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


@export("initializers.identity")
class Identity(Initializer):
    def __init__(self, gain=1.0, dtype=dtypes.float32):
        self.gain = gain
        self.dtype = _float_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        from ferroflow.python.ops import linalg_ops
        shape = shape if partition_info is None else partition_info.full_shape
        if len(shape) != 2:
            raise ValueError("The tensor to initialize, specified by argument `shape` must be at "
                             "least two-dimensional. Received shape=%s" % (shape,))
        dtype = self.dtype if dtype is None else dtype
        initializer = linalg_ops.eye(*shape, dtype=dtype)
        if partition_info is not None:
            initializer = array_ops.slice(initializer, partition_info.var_offset, shape)
        return self.gain * initializer

    def get_config(self):
        return {"gain": self.gain, "dtype": self.dtype.name}


zeros_initializer, ones_initializer, constant_initializer = Zeros, Ones, Constant
random_uniform_initializer, random_normal_initializer = RandomUniform, RandomNormal
truncated_normal_initializer, orthogonal_initializer = TruncatedNormal, Orthogonal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer, glorot_normal_initializer = GlorotUniform, GlorotNormal
