"""Gradients of Bessel functions and other special functions, and of samples of gamma distributions."""

import math

from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


def _at_zero(x, value, elsewhere):
    """`elsewhere(x)`, but `value` where x is zero."""
    zero = math_ops.equal(x, 0)
    safe = array_ops.where_v2(zero, array_ops.ones_like(x), x)
    return array_ops.where_v2(zero, math_ops.cast(value, x.dtype), elsewhere(safe))


def _derivatives():
    """The derivative of each function, from its argument and its value."""
    return {
        "BesselI0": lambda x, y: g.BesselI1(x),
        "BesselI0e": lambda x, y: g.BesselI1e(x) - math_ops.sign(x) * y,
        "BesselI1": lambda x, y: _at_zero(x, 0.5, lambda s: g.BesselI0(s) - y / s),
        "BesselI1e": lambda x, y: _at_zero(x, 0.5, lambda s: g.BesselI0e(s) - y * (math_ops.sign(s) + 1 / s)),
        "BesselK0": lambda x, y: -g.BesselK1(x),
        "BesselK0e": lambda x, y: y - g.BesselK1e(x),
        "BesselK1": lambda x, y: -g.BesselK0(x) - y / x,
        "BesselK1e": lambda x, y: y * (1 - 1 / x) - g.BesselK0e(x),
        "BesselJ0": lambda x, y: -g.BesselJ1(x),
        "BesselJ1": lambda x, y: _at_zero(x, 0.5, lambda s: g.BesselJ0(s) - y / s),
        "BesselY0": lambda x, y: -g.BesselY1(x),
        "BesselY1": lambda x, y: g.BesselY0(x) - y / x,
        "Dawsn": lambda x, y: 1 - 2 * x * y,
        "Expint": lambda x, y: g.Exp(x) / x,
        "FresnelCos": lambda x, y: g.Cos(math.pi / 2 * g.Square(x)),
        "FresnelSin": lambda x, y: g.Sin(math.pi / 2 * g.Square(x)),
        "Spence": lambda x, y: _at_zero(x - 1, -1.0, lambda s: -g.Log(s + 1) / s),
    }


def _register(op_type, derivative):
    @gradient(op_type)
    def function(op, grad):
        with ops.control_dependencies([grad]):
            return grad * derivative(op.inputs[0], op.outputs[0])


for _type, _derivative in _derivatives().items():
    _register(_type, _derivative)


@gradient("RandomGamma")
def _random_gamma(op, grad):
    shape, alpha = op.inputs
    samples = array_ops.size(shape)
    leading = array_ops.concat([array_ops.ones([samples], array_ops.shape(alpha).dtype), array_ops.shape(alpha)], 0)
    partial = g.RandomGammaGrad(array_ops.reshape(alpha, leading), op.outputs[0])
    return None, math_ops.reduce_sum(grad * partial, axis=math_ops.range(samples))
