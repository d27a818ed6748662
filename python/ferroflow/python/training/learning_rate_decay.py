"""Learning rates that follow the global step."""

import math

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


def _need_step(global_step, what):
    if global_step is None:
        raise ValueError("global_step is required for %s." % what)


def _decay(learning_rate, global_step, decay_steps, decay_rate, staircase):
    """The initial rate, the decay rate, and the progress as a number of `decay_steps`."""
    rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
    steps = math_ops.cast(decay_steps, rate.dtype)
    decay = math_ops.cast(decay_rate, rate.dtype)
    p = math_ops.cast(global_step, rate.dtype) / steps
    return rate, decay, math_ops.floor(p) if staircase else p


@export("train.exponential_decay")
def exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False,
                      name=None):
    with ops.name_scope(name, "ExponentialDecay") as scope:
        rate, decay, p = _decay(learning_rate, global_step, decay_steps, decay_rate, staircase)
        return gen_ops.Mul(rate, math_ops.pow(decay, p), name=scope)


@export("train.piecewise_constant", "train.piecewise_constant_decay")
def piecewise_constant(x, boundaries, values, name=None):
    boundaries, values = list(boundaries), list(values)
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    boundaries = [ops.convert_to_tensor(b) for b in boundaries]
    values = [ops.convert_to_tensor(v) for v in values]
    x = ops.convert_to_tensor(x)
    for i, b in enumerate(boundaries):
        if b.dtype.base_dtype != x.dtype.base_dtype:
            if b.dtype.base_dtype == dtypes.int32 and x.dtype.base_dtype == dtypes.int64:
                boundaries[i] = math_ops.cast(b, x.dtype.base_dtype)
            else:
                raise ValueError("Boundaries (%s) must have the same dtype as x (%s)." % (
                    b.dtype.base_dtype, x.dtype.base_dtype))
    with ops.name_scope(name, "PiecewiseConstant", [x] + boundaries + values):
        cases = [(x <= boundaries[0], lambda: values[0]),
                 (x > boundaries[-1], lambda: values[-1])]
        for low, high, value in zip(boundaries[:-1], boundaries[1:], values[1:-1]):
            cases.append(((x > low) & (x <= high), lambda value=value: value))

        return control_flow_ops.case(cases, lambda: values[0], exclusive=True)


@export("train.polynomial_decay")
def polynomial_decay(learning_rate, global_step, decay_steps, end_learning_rate=0.0001, power=1.0,
                     cycle=False, name=None):
    _need_step(global_step, "polynomial_decay")
    with ops.name_scope(name, "PolynomialDecay") as scope:
        rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
        end = math_ops.cast(end_learning_rate, rate.dtype)
        power = math_ops.cast(power, rate.dtype)
        step = math_ops.cast(global_step, rate.dtype)
        steps = math_ops.cast(decay_steps, rate.dtype)
        if cycle:
            from ferroflow.python.ops import array_ops
            multiplier = array_ops.where_v2(
                math_ops.equal(step, 0), 1.0, gen_ops.Ceil(step / decay_steps))
            steps = gen_ops.Mul(steps, multiplier)
        else:
            step = gen_ops.Minimum(step, steps)
        p = math_ops.divide(step, steps)
        return math_ops.add(gen_ops.Mul(rate - end, math_ops.pow(1 - p, power)), end, name=scope)


@export("train.natural_exp_decay")
def natural_exp_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False,
                      name=None):
    return exponential_decay(learning_rate, global_step, decay_steps,
                             math_ops.exp(math_ops.negative(decay_rate)), staircase=staircase,
                             name=name)


@export("train.inverse_time_decay")
def inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False,
                       name=None):
    with ops.name_scope(name, "InverseTimeDecay") as scope:
        rate, decay, p = _decay(learning_rate, global_step, decay_steps, decay_rate, staircase)
        one = math_ops.cast(constant_op.constant(1), rate.dtype)
        return math_ops.divide(rate, math_ops.add(one, gen_ops.Mul(decay, p)), name=scope)


@export("train.cosine_decay")
def cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0, name=None):
    _need_step(global_step, "cosine decay")
    with ops.name_scope(name, "CosineDecay"):
        rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps = math_ops.cast(decay_steps, rate.dtype)
        step = gen_ops.Minimum(math_ops.cast(global_step, rate.dtype), steps)
        done = step / steps
        cosine = 0.5 * (1.0 + gen_ops.Cos(constant_op.constant(math.pi, dtype=rate.dtype) * done))
        decayed = (1 - alpha) * cosine + alpha
        return gen_ops.Mul(rate, decayed)


@export("train.cosine_decay_restarts")
def cosine_decay_restarts(learning_rate, global_step, first_decay_steps, t_mul=2.0, m_mul=1.0,
                          alpha=0.0, name=None):
    _need_step(global_step, "cosine decay restarts")
    from ferroflow.python.ops import cond
    with ops.name_scope(name, "SGDRDecay") as scope:
        rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps = math_ops.cast(first_decay_steps, rate.dtype)
        alpha, t_mul, m_mul = (math_ops.cast(v, rate.dtype) for v in (alpha, t_mul, m_mul))
        done = math_ops.cast(global_step, rate.dtype) / steps

        def part(geometric):
            if geometric:
                restart = math_ops.floor(
                    gen_ops.Log(1.0 - done * (1.0 - t_mul)) / gen_ops.Log(t_mul))
                before = (1.0 - t_mul ** restart) / (1.0 - t_mul)
                return restart, (done - before) / t_mul ** restart
            restart = math_ops.floor(done)
            return restart, done - restart

        restart, fraction = cond.cond(math_ops.equal(t_mul, 1.0), lambda: part(False),
                                      lambda: part(True))
        height = m_mul ** restart
        cosine = 0.5 * height * (1.0 + gen_ops.Cos(
            constant_op.constant(math.pi, dtype=rate.dtype) * fraction))
        return gen_ops.Mul(rate, (1 - alpha) * cosine + alpha, name=scope)


def _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, noise=None):
    """A line times a cosine: (alpha + line, maybe with noise) * cosine + beta."""
    steps = math_ops.cast(decay_steps, rate.dtype)
    if noise is not None:
        noise = [math_ops.cast(v, rate.dtype) for v in noise]
    periods, alpha, beta = (math_ops.cast(v, rate.dtype) for v in (num_periods, alpha, beta))
    step = gen_ops.Minimum(math_ops.cast(global_step, rate.dtype), steps)
    line = (steps - step) / steps
    if noise is not None:
        line += _noise(step, *noise)
    done = step / steps
    turned = 2.0 * periods * done
    cosine = 0.5 * (1.0 + gen_ops.Cos(constant_op.constant(math.pi, dtype=rate.dtype) * turned))
    return (alpha + line) * cosine + beta


def _noise(step, initial_variance, variance_decay):
    """Noise whose variance falls with the steps."""
    from ferroflow.python.ops import random_ops
    variance = initial_variance / gen_ops.Pow(1.0 + step, variance_decay)
    return random_ops.random_normal(step.get_shape(), stddev=math_ops.sqrt(variance))


@export("train.linear_cosine_decay")
def linear_cosine_decay(learning_rate, global_step, decay_steps, num_periods=0.5, alpha=0.0, beta=0.001, name=None):
    _need_step(global_step, "linear cosine decay")
    with ops.name_scope(name, "LinearCosineDecay") as scope:
        rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
        shape = _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta)
        return gen_ops.Mul(rate, shape, name=scope)


@export("train.noisy_linear_cosine_decay")
def noisy_linear_cosine_decay(learning_rate, global_step, decay_steps, initial_variance=1.0, variance_decay=0.55,
                              num_periods=0.5, alpha=0.0, beta=0.001, name=None):
    _need_step(global_step, "noisy linear cosine decay")
    with ops.name_scope(name, "NoisyLinearCosineDecay") as scope:
        rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
        shape = _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, (initial_variance, variance_decay))
        return gen_ops.Mul(rate, shape, name=scope)
