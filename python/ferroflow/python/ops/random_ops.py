"""Random tensors."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import random_seed
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

__getattr__ = module_names.fallback(__name__)

convert = ops.convert_to_tensor


def _shape_tensor(shape):
    """A shape given as numbers, tensors or a list of both, as a vector."""
    dtype = dtypes.int32 if isinstance(shape, (tuple, list)) and not shape else None
    made = convert(shape, dtype=dtype, name="shape") if not hasattr(shape, "as_list") else (
        convert(shape.as_list(), dtype=dtypes.int32, name="shape"))
    return as_vector(made)


def as_vector(shape):
    """Refuses a shape that is a number or a matrix."""
    if shape.get_shape().ndims not in (None, 1):
        raise ValueError("Shape must be rank 1 but is rank %d for %s" % (shape.get_shape().ndims, shape.name))
    return shape


def _static(result, shape):
    known = tensor_util.constant_value_as_shape(shape)
    if known is not None and not result.get_shape().is_fully_defined():
        result.set_shape(known)
    return result


@export("random_normal", "random.normal")
def random_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    with ops.name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = convert(mean, dtype=dtype, name="mean")
        stddev = convert(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = random_seed.get_seed(seed)
        sample = gen_ops.RandomStandardNormal(shape, dtype, seed=seed1, seed2=seed2)
        value = math_ops.add(sample * stddev, mean, name=scope)
        return _static(value, shape)


@export("truncated_normal", "random.truncated_normal")
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    with ops.name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = convert(mean, dtype=dtype, name="mean")
        stddev = convert(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = random_seed.get_seed(seed)
        sample = gen_ops.TruncatedNormal(shape, dtype, seed=seed1, seed2=seed2)
        value = math_ops.add(sample * stddev, mean, name=scope)
        return _static(value, shape)


@export("random_uniform", "random.uniform")
def random_uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
                     dtypes.int32, dtypes.int64):
        raise ValueError("Argument `dtype` got invalid value %s. Accepted dtypes are (tf.float16, "
                         "tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)." % dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %s." % dtype)
        maxval = 1
    with ops.name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        shape = _shape_tensor(shape)
        # The plain range needs no arithmetic after the op.
        zero_to_one = not dtype.is_integer and not isinstance(minval, ops.Tensor) and (
            not isinstance(maxval, ops.Tensor)) and minval == 0 and maxval == 1
        if not zero_to_one:
            minval = convert(minval, dtype=dtype, name="min")
            maxval = convert(maxval, dtype=dtype, name="max")
        seed1, seed2 = random_seed.get_seed(seed)
        if dtype.is_integer:
            result = gen_ops.RandomUniformInt(shape, minval, maxval, seed=seed1, seed2=seed2,
                                              name=scope)
        elif zero_to_one:
            result = gen_ops.RandomUniform(shape, dtype, seed=seed1, seed2=seed2)
        else:
            sample = gen_ops.RandomUniform(shape, dtype, seed=seed1, seed2=seed2)
            result = math_ops.add(sample * (maxval - minval), minval, name=scope)
        return _static(result, shape)


@export("random_shuffle", "random.shuffle")
def random_shuffle(value, seed=None, name=None):
    seed1, seed2 = random_seed.get_seed(seed)
    return gen_ops.RandomShuffle(value, seed=seed1, seed2=seed2, name=name)


@export("random_crop", "image.random_crop")
def random_crop(value, size, seed=None, name=None):
    from ferroflow.python.ops import control_flow_ops
    with ops.name_scope(name, "random_crop", [value, size]) as scope:
        value = convert(value, name="value")
        size = convert(size, dtype=dtypes.int32, name="size")
        shape = array_ops.shape(value)
        check = control_flow_ops.Assert(
            math_ops.reduce_all(shape >= size),
            ["Need value.shape >= size, got ", shape, size], summarize=1000)
        shape = control_flow_ops.with_dependencies([check], shape)
        limit = shape - size + 1
        offset = random_uniform(array_ops.shape(shape), dtype=size.dtype, maxval=size.dtype.max,
                                seed=seed) % limit
        return array_ops.slice(value, offset, size, name=scope)


@export("multinomial", "random.multinomial")
def multinomial(logits, num_samples, seed=None, name=None, output_dtype=None):
    with ops.name_scope(name, "multinomial", [logits]):
        return _categorical(logits, num_samples, output_dtype, seed)


@export("random.categorical")
def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    with ops.name_scope(name, "categorical", [logits]):
        return _categorical(logits, num_samples, dtype, seed)


def _categorical(logits, num_samples, dtype, seed):
    logits = convert(logits, name="logits")
    dtype = dtypes.as_dtype(dtype) if dtype else dtypes.int64
    seed1, seed2 = random_seed.get_seed(seed)
    return gen_ops.Multinomial(logits, num_samples, seed=seed1, seed2=seed2, output_dtype=dtype)


@export("random_gamma", "random.gamma")
def random_gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    import numpy as np
    with ops.name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = convert(shape, name="shape", dtype=dtypes.int32)
        alpha = convert(alpha, name="alpha", dtype=dtype)
        beta = convert(beta if beta is not None else 1, name="beta", dtype=dtype)
        wide = array_ops.broadcast_dynamic_shape(array_ops.shape(alpha), array_ops.shape(beta))
        alpha = gen_ops.BroadcastTo(alpha, wide)
        seed1, seed2 = random_seed.get_seed(seed)
        sample = gen_ops.RandomGamma(shape, alpha, seed=seed1, seed2=seed2)
        tiny = np.finfo(alpha.dtype.as_numpy_dtype).tiny
        return gen_ops.Maximum(tiny, sample / beta)


@export("random_poisson", "random.poisson")
def random_poisson(lam, shape, dtype=dtypes.float32, seed=None, name=None):
    with ops.name_scope(name, "random_poisson", [lam, shape]):
        shape = convert(shape, name="shape", dtype=dtypes.int32)
        seed1, seed2 = random_seed.get_seed(seed)
        return gen_ops.RandomPoissonV2(shape, lam, dtype=dtype, seed=seed1, seed2=seed2)


def _stateless(op, scope_name):
    def function(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None,
                 alg="auto_select"):
        with ops.name_scope(name, scope_name, [shape, seed, mean, stddev]) as scope:
            shape = _shape_tensor(shape)
            mean = convert(mean, dtype=dtype, name="mean")
            stddev = convert(stddev, dtype=dtype, name="stddev")
            key, counter = _key_counter(seed, alg)
            sample = getattr(gen_ops, op)(shape, key=key, counter=counter, dtype=dtype,
                                          alg=_algorithm(alg))
            return _static(math_ops.add(sample * stddev, mean, name=scope), shape)
    return function


def _algorithm(alg):
    numbers = {"philox": 1, "threefry": 2, "auto_select": 3}
    if isinstance(alg, str):
        return numbers[alg.lower()]
    return int(getattr(alg, "value", alg))


def _key_counter(seed, alg):
    if _algorithm(alg) == 3:
        key, counter = gen_ops.StatelessRandomGetKeyCounter(seed)
        return key, counter
    key, counter, _ = gen_ops.StatelessRandomGetKeyCounterAlg(seed)
    return key, counter


stateless_random_normal = export("random.stateless_normal")(
    _stateless("StatelessRandomNormalV2", "stateless_random_normal"))
stateless_truncated_normal = export("random.stateless_truncated_normal")(
    _stateless("StatelessTruncatedNormalV2", "stateless_truncated_normal"))


@export("random.stateless_uniform")
def stateless_random_uniform(shape, seed, minval=0, maxval=None, dtype=dtypes.float32, name=None,
                             alg="auto_select"):
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer and (minval is None) != (maxval is None):
        raise ValueError("For integer `dtype` argument %s, argument `minval` and `maxval` must be "
                         "both None or not None." % dtype)
    if not dtype.is_integer and maxval is None:
        maxval = 1
    with ops.name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = _shape_tensor(shape)
        if dtype.is_integer and minval is None:
            key, counter = _key_counter(seed, alg)
            result = gen_ops.StatelessRandomUniformFullIntV2(
                shape, key=key, counter=counter, dtype=dtype, alg=_algorithm(alg), name=scope)
            return _static(result, shape)
        minval = convert(minval, dtype=dtype, name="min")
        maxval = convert(maxval, dtype=dtype, name="max")
        key, counter = _key_counter(seed, alg)
        if dtype.is_integer:
            result = gen_ops.StatelessRandomUniformIntV2(
                shape, key=key, counter=counter, minval=minval, maxval=maxval,
                alg=_algorithm(alg), name=scope)
        else:
            sample = gen_ops.StatelessRandomUniformV2(
                shape, key=key, counter=counter, dtype=dtype, alg=_algorithm(alg))
            result = math_ops.add(sample * (maxval - minval), minval, name=scope)
        return _static(result, shape)


@export("random.stateless_multinomial")
def stateless_multinomial(logits, num_samples, seed, output_dtype=dtypes.int64, name=None):
    with ops.name_scope(name, "stateless_multinomial", [logits, seed]):
        return gen_ops.StatelessMultinomial(convert(logits, name="logits"), num_samples, seed,
                                            output_dtype=output_dtype)
