"""Gradients of functions of one element."""

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable

conj = math_ops.conj


def _constant(value, like):
    return constant_op.constant(value, dtype=like.dtype)


def _of_input(op_type, formula):
    """Registers `formula(dy, x)`, computed once the incoming gradient is there."""
    @gradient(op_type)
    def function(op, dy):
        with ops.control_dependencies([dy]):
            return formula(dy, conj(op.inputs[0]))


def _of_output(op_type, formula):
    """Registers `formula(dy, y)`, computed once the incoming gradient is there."""
    @gradient(op_type)
    def function(op, dy):
        with ops.control_dependencies([dy]):
            return formula(dy, conj(op.outputs[0]))


def _scaled(op_type, factor, formula):
    """Registers `dy * factor * formula(x, y)`; the factor is a constant made beforehand."""
    @gradient(op_type)
    def function(op, dy):
        scale = _constant(factor, dy)
        with ops.control_dependencies([dy]):
            return dy * scale * formula(op)


_of_input("Square", lambda dy, x: g.Mul(dy, g.Mul(x, _constant(2.0, x))))
_of_input("Expm1", lambda dy, x: dy * g.Exp(x))
_of_input("Log", lambda dy, x: dy * g.Reciprocal(x))
_of_input("Log1p", lambda dy, x: dy * g.Reciprocal(1 + x))
_of_input("Sinh", lambda dy, x: dy * g.Cosh(x))
_of_input("Cosh", lambda dy, x: dy * g.Sinh(x))
_of_input("Sin", lambda dy, x: dy * g.Cos(x))
_of_input("Cos", lambda dy, x: -dy * g.Sin(x))
_of_input("Tan", lambda dy, x: g.Square(g.Reciprocal(g.Cos(x))) * dy)
_of_input("Lgamma", lambda dy, x: dy * g.Digamma(x))
_of_input("Digamma", lambda dy, x: dy * g.Polygamma(_constant(1, x), x))
_of_output("Exp", lambda dy, y: dy * y)
_of_output("Tanh", lambda dy, y: g.TanhGrad(y, dy))
_of_output("Sigmoid", lambda dy, y: g.SigmoidGrad(y, dy))
_of_output("Asinh", lambda dy, y: dy / g.Cosh(y))
_of_output("Acosh", lambda dy, y: dy / g.Sinh(y))
_scaled("Erf", 2 / np.sqrt(np.pi), lambda op: g.Exp(-g.Square(conj(op.inputs[0]))))
_scaled("Erfc", -2 / np.sqrt(np.pi), lambda op: g.Exp(-g.Square(conj(op.inputs[0]))))
_scaled("Erfinv", np.sqrt(np.pi) / 2, lambda op: g.Exp(g.Square(op.outputs[0])))
_scaled("Ndtri", np.sqrt(2 * np.pi), lambda op: g.Exp(g.Square(op.outputs[0]) / 2.0))


def _one_minus_square_root(dy, x):
    square = g.Square(x)
    return g.Reciprocal(g.Sqrt(g.Sub(_constant(1, dy), square)))


_of_input("Asin", lambda dy, x: dy * _one_minus_square_root(dy, x))


@gradient("Acos")
def _acos(op, dy):
    with ops.control_dependencies([dy]):
        inverse = _one_minus_square_root(dy, conj(op.inputs[0]))
        return -dy * inverse


def _atan(dy, x):
    square = g.Square(x)
    return dy * g.Reciprocal(math_ops.add(_constant(1, dy), square))


def _atanh(dy, x):
    square = g.Square(x)
    return dy * g.Reciprocal(g.Sub(_constant(1, dy), square))


_of_input("Atan", _atan)
_of_input("Atanh", _atanh)


@gradient("Abs")
def _abs(op, dy):
    return dy * math_ops.sign(op.inputs[0])


@gradient("Neg")
def _neg(op, dy):
    return -dy


@gradient("Sign")
def _sign(op, dy):
    return array_ops.zeros_like(op.inputs[0])


@gradient("Reciprocal", "Inv")
def _reciprocal(op, dy):
    return g.ReciprocalGrad(op.outputs[0], dy)


@gradient("ReciprocalGrad", "InvGrad")
def _reciprocal_grad(op, dy):
    b = op.inputs[1]
    with ops.control_dependencies([dy]):
        ca = conj(op.inputs[0])
        cg = conj(dy)
        return cg * -2.0 * b * ca, g.ReciprocalGrad(ca, dy)


@gradient("Sqrt")
def _sqrt(op, dy):
    return g.SqrtGrad(op.outputs[0], dy)


@gradient("SqrtGrad")
def _sqrt_grad(op, dy):
    with ops.control_dependencies([dy]):
        ga = dy / op.inputs[0]
        return -conj(ga) * op.outputs[0], 0.5 * ga


@gradient("Rsqrt")
def _rsqrt(op, dy):
    return g.RsqrtGrad(op.outputs[0], dy)


@gradient("RsqrtGrad")
def _rsqrt_grad(op, dy):
    b = op.inputs[1]
    with ops.control_dependencies([dy]):
        ca = conj(op.inputs[0])
        cg = conj(dy)
        return -1.5 * cg * b * g.Square(ca), g.RsqrtGrad(ca, dy)


@gradient("TanhGrad")
def _tanh_grad(op, dy):
    with ops.control_dependencies([dy]):
        a = conj(op.inputs[0])
        b = conj(op.inputs[1])
        return dy * -2.0 * b * a, g.TanhGrad(a, dy)


@gradient("SigmoidGrad")
def _sigmoid_grad(op, dy):
    with ops.control_dependencies([dy]):
        a = conj(op.inputs[0])
        b = conj(op.inputs[1])
        gb = dy * b
        return gb - 2.0 * gb * a, g.SigmoidGrad(a, dy)


@gradient("Floor", "Ceil", "Round", "Rint")
def _step(op, dy):
    return [None]


@gradient("Cast")
def _cast(op, dy):
    source = op.inputs[0].dtype.base_dtype
    real = (source.is_floating or source.is_complex)
    if real and (dy.dtype.is_floating or dy.dtype.is_complex):
        return math_ops.cast(dy, source)
    return None


@gradient("Complex")
def _complex(op, dy):
    from ferroflow.python.ops.gradients.broadcasting import reduce_both
    return reduce_both(op.inputs[0], op.inputs[1], math_ops.real(dy), math_ops.imag(dy))


@gradient("Real")
def _real(op, dy):
    return math_ops.complex(dy, _constant(0, dy))


@gradient("Imag")
def _imag(op, dy):
    return math_ops.complex(_constant(0, dy), dy)


@gradient("Conj")
def _conj(op, dy):
    return conj(dy)


@gradient("Angle")
def _angle(op, dy):
    x = op.inputs[0]
    with ops.control_dependencies([dy]):
        real, imag = math_ops.real(x), math_ops.imag(x)
        z = g.Reciprocal(math_ops.complex(imag, real))
        return -math_ops.complex(dy, _constant(0, dy)) * z


@gradient("ComplexAbs")
def _complex_abs(op, dy):
    return math_ops.div_no_nan(
        math_ops.complex(dy, array_ops.zeros_like(dy)) * op.inputs[0],
        math_ops.complex(op.outputs[0], array_ops.zeros_like(op.outputs[0])))


@gradient("CheckNumerics")
def _check_numerics(op, dy):
    message = op.get_attr("message")
    return g.CheckNumerics(
        dy, "Not a number (NaN) or infinity (Inf) values detected in gradient. %s" % message)


@gradient("Identity", "PlaceholderWithDefault", "RefIdentity")
def _identity(op, dy):
    return dy


@gradient("IdentityN")
def _identity_n(op, *dys):
    return dys


@gradient("PreventGradient")
def _prevent(op, dy):
    raise LookupError("Gradient explicitly disabled. Reason: %s" % op.get_attr("message"))


not_differentiable(
    "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "ApproximateEqual", "NotEqual",
    "LogicalAnd", "LogicalOr", "LogicalNot", "Range", "LinSpace", "StopGradient", "Shape",
    "ShapeN", "Rank", "Size", "InvertPermutation", "BroadcastGradientArgs", "OneHot",
    "ConcatOffset", "Const", "EditDistance", "ZerosLike", "OnesLike", "IsNan", "IsInf",
    "IsFinite", "VariableShape", "VarIsInitializedOp", "IsVariableInitialized", "Print", "Timestamp")
