"""Element-wise math and activations."""

import numpy as np

from . import recipe

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Conj Cos Cosh Erf Erfc Exp Expm1 Floor Inv Invert IsFinite IsInf
IsNan Log Log1p Neg Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh Sqrt Square Tan Tanh PopulationCount LogicalNot
Angle ComplexAbs Imag Real""".split()
SPECIAL = """BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Dawsn
Digamma Erfinv Expint FresnelCos FresnelSin Lgamma Ndtri Spence""".split()
BINARY = """Add AddV2 Sub Mul Div RealDiv Maximum Minimum SquaredDifference DivNoNan MulNoNan Xdivy Xlogy Xlog1py Atan2
BitwiseAnd BitwiseOr BitwiseXor Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr NextAfter Complex
FloorDiv FloorMod Mod TruncateDiv TruncateMod""".split()
SAME = """InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad ApproximateEqual EluGrad LeakyReluGrad Relu6Grad
ReluGrad SeluGrad SoftplusGrad SoftsignGrad""".split()


def names(c):
    from case import signature
    return [a.name for a in signature(c.op).input_arg], signature(c.op).input_arg


def value_of(c, arg, shape, style=None):
    from case import NAME_OF
    return c.of(arg.type_attr, shape, style) if arg.type_attr else c.values(NAME_OF[arg.type], shape, style)


@recipe(*UNARY)
def unary(c):
    if "Tout" in c.types:
        c.types["Tout"] = "float32" if c.types["T"] == "complex64" else "float64"
    (name,), (arg,) = names(c)
    c.call(**{name: value_of(c, arg, c.shape())})


@recipe(*SPECIAL)
def special(c):
    style = c.pick(["small", "small", "unit", "positive", "special"])
    x = c.of("T", c.shape(), style)
    if c.op.startswith(("BesselJ", "BesselY")):
        # The phase of a huge number is undefined.
        x = np.where(np.abs(x) > 1e4, np.array(50, x.dtype), x)
    if c.op in ("Erfinv", "Ndtri") and style != "special":
        x = c.of("T", c.shape(), "unit")
    c.call(x=x)


@recipe(*"Elu LeakyRelu Relu Relu6 Selu Softplus Softsign".split())
def activation(c):
    given = {"alpha": c.rng.uniform(-0.5, 1.0)} if c.op == "LeakyRelu" else {}
    c.call(features=c.of("T", c.shape()), **given)


@recipe(*BINARY)
def binary(c):
    (a, b), (arg_a, arg_b) = names(c)
    if c.op == "Complex":
        c.types["Tout"] = "complex64" if c.types["T"] == "float32" else "complex128"
    sa, sb = c.broadcast(2)
    x, y = value_of(c, arg_a, sa), value_of(c, arg_b, sb)
    if c.op in ("FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod", "Div") and y.dtype.kind in "iu" and c.chance(0.8):
        y = np.where(y == 0, np.array(1, y.dtype), y)
    c.call(**{a: x, b: y})


@recipe(*"LeftShift RightShift".split())
def shift(c):
    sa, sb = c.broadcast(2)
    x = c.of("T", sa)
    bits = x.dtype.itemsize * 8
    y = c.rng.randint(-2 if c.chance(0.2) and x.dtype.kind == "i" else 0, bits + 3, size=sb)
    c.call(x=x, y=y)


@recipe("Pow")
def power(c):
    sa, sb = c.broadcast(2)
    x, y = c.of("T", sa), c.of("T", sb)
    if y.dtype.kind in "iu":
        y = np.array(c.rng.randint(-1 if c.chance(0.1) and y.dtype.kind == "i" else 0, 7, size=sb), y.dtype)
    c.call(x=x, y=y)


@recipe(*"Igamma Igammac IgammaGradA RandomGammaGrad".split())
def incomplete_gamma(c):
    sa, sb = c.broadcast(2)
    style = c.pick(["positive", "positive", "positive", "small"])
    (a, b), _ = names(c)
    c.call(**{a: c.of("T", sa, style), b: c.of("T", sb, style)})


@recipe("Betainc")
def betainc(c):
    shape = c.shape()
    pick = lambda: [] if c.chance(0.2) else shape
    c.call(a=c.of("T", pick(), "positive"), b=c.of("T", pick(), "positive"), x=c.of("T", pick(), "unit"))


@recipe("Polygamma")
def polygamma(c):
    sa, sb = c.broadcast(2)
    c.call(a=c.rng.randint(-1 if c.chance(0.1) else 0, 5, size=sa), x=c.of("T", sb, c.pick(["positive", "small"])))


@recipe("Zeta")
def zeta(c):
    sa, sb = c.broadcast(2)
    c.call(x=c.of("T", sa, c.pick(["positive", "small"])), q=c.of("T", sb, "positive"))


@recipe(*SAME)
def same_shape(c):
    (a, b), (arg_a, arg_b) = names(c)
    shape = c.shape()
    c.call(**{a: value_of(c, arg_a, shape), b: value_of(c, arg_b, shape)})


@recipe("AddN", "AccumulateNV2")
def add_n(c):
    shape = c.shape()
    if c.op == "AccumulateNV2":
        # TensorFlow adds its inputs in any order.
        c.mode, c.style, c.tolerance = "norm", "small", 8.0
    given = {"shape": shape} if c.op == "AccumulateNV2" else {}
    c.call(inputs=[c.of("T", shape) for _ in range(c.int(1, 9))], **given)


@recipe("Cast", "_HostCast")
def cast(c):
    x = c.of("SrcT", c.shape(), c.pick(["small", "whole", "wide"]))
    to = c.types["DstT"]
    if x.dtype.kind not in "iubO" and to.startswith(("int", "uint")):
        # TensorFlow does not define the result for floats outside the integer's range.
        x = np.abs(c.of("SrcT", c.shape(), "small").real.astype(np.float64)) * c.pick([1, 10])
    c.call(x=x)


UNARY_COMPOSED = ["Abs", "Ceil", "Cos", "Elu", "Exp", "Expm1", "Floor", "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin",
                  "Sqrt", "Square", "Tanh"]


@recipe("_UnaryOpsComposition")
def composition(c):
    c.mode, c.style, c.tolerance = "norm", "positive", 16.0
    c.call(x=c.of("T", c.shape()), op_names=[c.pick(UNARY_COMPOSED) for _ in range(c.int(1, 3))])


@recipe("_EagerConst")
def eager_const(c):
    c.call(input=c.of("T", c.shape()))


@recipe("_ArrayToList", "_ListToArray")
def lists(c):
    n, t = c.int(1, 4), c.types["T"]
    given = {"out_types": [t] * n} if c.op == "_ArrayToList" else {"T": t, "N": n}
    c.call(input=[c.of("T", c.shape(0, 2)) for _ in range(n)], **given)


@recipe("Bitcast")
def bitcast(c):
    from case import NUMPY
    a, b = (np.dtype(NUMPY[c.types[t]]).itemsize for t in ("T", "type"))
    shape = c.shape(1, 3)
    if a < b:
        shape[-1] = b // a
    c.call(input=c.of("T", shape, "wide"))


@recipe("Bucketize")
def bucketize(c):
    bounds = sorted(c.rng.uniform(-4, 8, size=c.int(0, 6)).tolist())
    if c.chance(0.1):
        bounds = bounds[::-1]
    c.call(input=c.of("T", c.shape()), boundaries=bounds)


@recipe("ClipByValue")
def clip(c):
    shape = c.shape()
    low, high = (c.of("T", [] if c.chance(0.5) else shape) for _ in range(2))
    c.call(t=c.of("T", shape), clip_value_min=low, clip_value_max=high)


@recipe("Select")
def select(c):
    shape = c.shape()
    cond = shape if c.chance(0.6) or not shape else c.pick([[], shape[:1]])
    c.call(condition=c.values("bool", cond), t=c.of("T", shape), e=c.of("T", shape))


@recipe("SelectV2")
def select_v2(c):
    a, b, d = c.broadcast(3)
    c.call(condition=c.values("bool", a), t=c.of("T", b), e=c.of("T", d))
