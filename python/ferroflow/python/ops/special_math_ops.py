"""Special functions, and random numbers that only a seed decides."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


def _unary(name, op):
    def function(x, name=None):
        with ops.name_scope(name, scope, [x]):
            return getattr(gen_ops, op)(x)
    scope = name
    function.__name__ = name
    return function


dawsn = export("math.special.dawsn")(_unary("dawsn", "Dawsn"))
expint = export("math.special.expint")(_unary("expint", "Expint"))
fresnel_cos = export("math.special.fresnel_cos")(_unary("fresnel_cos", "FresnelCos"))
fresnel_sin = export("math.special.fresnel_sin")(_unary("fresnel_sin", "FresnelSin"))
spence = export("math.special.spence")(_unary("spence", "Spence"))
bessel_j0 = export("math.special.bessel_j0")(_unary("bessel_j0", "BesselJ0"))
bessel_j1 = export("math.special.bessel_j1")(_unary("bessel_j1", "BesselJ1"))
bessel_k0 = export("math.special.bessel_k0")(_unary("bessel_k0", "BesselK0"))
bessel_k0e = export("math.special.bessel_k0e")(_unary("bessel_k0e", "BesselK0e"))
bessel_k1 = export("math.special.bessel_k1")(_unary("bessel_k1", "BesselK1"))
bessel_k1e = export("math.special.bessel_k1e")(_unary("bessel_k1e", "BesselK1e"))
bessel_y0 = export("math.special.bessel_y0")(_unary("bessel_y0", "BesselY0"))
bessel_y1 = export("math.special.bessel_y1")(_unary("bessel_y1", "BesselY1"))


@export("random.stateless_binomial")
def stateless_random_binomial(shape, seed, counts, probs, output_dtype=dtypes.int32, name=None):
    with ops.name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]) as scope:
        shape = ops.convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        probs = ops.convert_to_tensor(probs, dtype_hint=dtypes.float32, name="probs")
        counts = ops.convert_to_tensor(counts, dtype=probs.dtype, name="counts")
        return gen_ops.StatelessRandomBinomial(shape, seed, counts, probs, output_dtype, name=scope)


@export("random.stateless_poisson")
def stateless_random_poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    with ops.name_scope(name, "stateless_random_poisson", [shape, seed, lam]) as scope:
        shape = ops.convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        return gen_ops.StatelessRandomPoisson(shape, seed, lam, dtype, name=scope)


@export("random.stateless_gamma")
def stateless_random_gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    with ops.name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]) as scope:
        shape = ops.convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        alpha = ops.convert_to_tensor(alpha, dtype=dtype, name="alpha")
        beta = ops.convert_to_tensor(1 if beta is None else beta, dtype=dtype, name="beta")
        alpha = alpha + array_ops.zeros_like(beta)
        drawn = gen_ops.StatelessRandomGammaV2(shape, seed, alpha)
        return math_ops.maximum(np.finfo(alpha.dtype.as_numpy_dtype).tiny, drawn / beta, name=scope)


@export("random.stateless_categorical")
def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64, name=None):
    with ops.name_scope(name, "stateless_categorical", [logits, seed]):
        logits = ops.convert_to_tensor(logits, name="logits")
        return gen_ops.StatelessMultinomial(logits, num_samples, seed, dtype)


@export("random.stateless_parameterized_truncated_normal")
def stateless_parameterized_truncated_normal(shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None):
    with ops.name_scope(name, "stateless_parameterized_truncated_normal", [shape, seed, means, stddevs, minvals, maxvals]):
        shape = ops.convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        return gen_ops.StatelessParameterizedTruncatedNormal(shape, seed, means, stddevs, minvals, maxvals)
