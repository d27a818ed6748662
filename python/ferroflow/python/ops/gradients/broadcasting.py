"""Gradients of functions of two elements, summed over the broadcast axes."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient

conj = math_ops.conj


def _static_axes(x_shape, y_shape):
    """The axes that broadcasting x op y made of x and of y; None if that is not known."""
    if x_shape.ndims is None or y_shape.ndims is None:
        return None, None
    x, y = x_shape.as_list(), y_shape.as_list()
    rank = max(len(x), len(y))
    x = [1] * (rank - len(x)) + x
    y = [1] * (rank - len(y)) + y
    x_axes, y_axes = [], []
    for axis, (a, b) in enumerate(zip(x, y)):
        if a == 1 and b != 1:
            x_axes.append(axis)
        elif b == 1 and a != 1:
            y_axes.append(axis)
        elif a is None or b is None:
            return None, None
    return x_axes, y_axes


def broadcast_args(x, y):
    """For x and y: the shape, the axes to sum over, and whether there is anything to do."""
    x_shape, y_shape = array_ops.shape(x), array_ops.shape(y)
    x_axes, y_axes = _static_axes(x.get_shape(), y.get_shape())
    if x_axes is None:
        x_axes, y_axes = g.BroadcastGradientArgs(x_shape, y_shape)
        return (x_shape, x_axes, True), (y_shape, y_axes, True)
    x_rank, y_rank = x.get_shape().ndims, y.get_shape().ndims
    return ((x_shape, x_axes, bool(x_axes) or x_rank < y_rank),
            (y_shape, y_axes, bool(y_axes) or y_rank < x_rank))


def _reduce_one(dy, args):
    shape, axes, needed = args
    if dy is not None and needed:
        dy = array_ops.reshape(math_ops.reduce_sum(dy, axes, keepdims=True), shape)
    return dy


def reduce_both(x, y, dx, dy):
    """Sums the gradients of x and y over the axes that were broadcast."""
    if dx is not None or dy is not None:
        for_x, for_y = broadcast_args(x, y)
        dx, dy = _reduce_one(dx, for_x), _reduce_one(dy, for_y)
    return dx, dy


def same_static_shape(x, y, grad):
    if not isinstance(grad, ops.Tensor):
        return False
    shapes = [t.get_shape() for t in (x, y, grad)]
    return all(s.is_fully_defined() for s in shapes) and (
        shapes[0].as_list() == shapes[1].as_list() == shapes[2].as_list())


@gradient("Add", "AddV2")
def _add(op, grad):
    x, y = op.inputs
    if same_static_shape(x, y, grad):
        return grad, grad
    return reduce_both(x, y, grad, grad)


@gradient("Sub")
def _sub(op, grad):
    x, y = op.inputs
    if same_static_shape(x, y, grad):
        return grad, -grad
    return reduce_both(x, y, grad, -grad)


@gradient("Mul")
def _mul(op, grad):
    x, y = op.inputs
    if same_static_shape(x, y, grad) and grad.dtype in (dtypes.int32, dtypes.float32):
        return g.Mul(grad, y), g.Mul(grad, x)
    dx = g.Mul(grad, conj(y))
    dy = g.Mul(conj(x), grad)
    return reduce_both(x, y, dx, dy)


@gradient("MulNoNan")
def _mul_no_nan(op, grad):
    x, y = op.inputs
    dx, dy = g.MulNoNan(grad, y), g.MulNoNan(x, grad)
    return (dx, dy) if same_static_shape(x, y, grad) else reduce_both(x, y, dx, dy)


@gradient("Div")
def _div(op, grad):
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    dx = math_ops.divide(grad, cy)
    dy = grad * math_ops.divide(math_ops.divide(-cx, cy), cy)
    return reduce_both(x, y, dx, dy)


@gradient("RealDiv")
def _real_div(op, grad):
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    dx = g.RealDiv(grad, cy)
    dy = grad * g.RealDiv(g.RealDiv(-cx, cy), cy)
    return reduce_both(x, y, dx, dy)


@gradient("DivNoNan")
def _div_no_nan(op, grad):
    x, y = conj(op.inputs[0]), conj(op.inputs[1])
    dx = math_ops.div_no_nan(grad, y)
    dy = grad * math_ops.div_no_nan(math_ops.div_no_nan(-x, y), y)
    return reduce_both(x, y, dx, dy)


@gradient("FloorDiv", "TruncateDiv")
def _floor_div(op, grad):
    return None, None


@gradient("FloorMod")
def _floor_mod(op, grad):
    x, y = conj(op.inputs[0]), conj(op.inputs[1])
    times = g.FloorDiv(x, y)
    return reduce_both(x, y, grad, grad * g.Neg(times))


@gradient("Pow")
def _pow(op, grad):
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    dx = grad * cy * math_ops.pow(cx, cy - 1)
    mask = math_ops.not_equal(cx, 0) if x.dtype.is_complex else cx > 0
    safe = array_ops.where(mask, cx, array_ops.ones_like(x))
    log_x = array_ops.where(mask, g.Log(safe), array_ops.zeros_like(x))
    dy = grad * conj(op.outputs[0]) * log_x
    return reduce_both(x, y, dx, dy)


def _extreme(chosen):
    def function(op, grad):
        x, y = op.inputs
        zeros = array_ops.zeros_like(grad)
        mask = getattr(g, chosen)(x, y)
        return reduce_both(x, y, g.SelectV2(mask, grad, zeros), g.SelectV2(mask, zeros, grad))
    return function


gradient("Maximum")(_extreme("GreaterEqual"))
gradient("Minimum")(_extreme("LessEqual"))


@gradient("SquaredDifference")
def _squared_difference(op, grad):
    x, y = op.inputs
    with ops.control_dependencies([grad]):
        dx = math_ops.scalar_mul(2.0, grad) * (x - y)
    if same_static_shape(x, y, grad):
        return dx, -dx
    return reduce_both(x, y, dx, -dx)


@gradient("Atan2")
def _atan2(op, grad):
    y, x = op.inputs
    with ops.control_dependencies([grad]):
        scaled = grad / (g.Square(y) + g.Square(x))
        dy = x * scaled
        dx = -y * scaled
        return reduce_both(y, x, dy, dx)


@gradient("Select")
def _select(op, grad):
    condition, x, _ = op.inputs
    zeros = array_ops.zeros_like(x)
    return (None, array_ops.where(condition, grad, zeros),
            array_ops.where(condition, zeros, grad))


@gradient("SelectV2")
def _select_v2(op, grad):
    condition, x, y = op.inputs
    z = op.outputs[0]
    zeros = array_ops.zeros([], dtype=grad.dtype.base_dtype)
    dx = g.SelectV2(condition, grad, zeros)
    dy = g.SelectV2(condition, zeros, grad)
    dx, _ = reduce_both(x, z, dx, None)
    dy, _ = reduce_both(y, z, dy, None)
    return None, dx, dy


@gradient("ClipByValue")
def _clip_by_value(op, grad):
    x, low, high = op.inputs
    zeros = array_ops.zeros_like(grad)
    below, above = x < low, x > high
    _, for_low = g.BroadcastGradientArgs(array_ops.shape(x), array_ops.shape(low))
    _, for_high = g.BroadcastGradientArgs(array_ops.shape(x), array_ops.shape(high))
    dx = array_ops.where_v2(g.LogicalOr(below, above), zeros, grad)
    d_low = array_ops.reshape(math_ops.reduce_sum(
        array_ops.where_v2(below, grad, zeros), for_low), array_ops.shape(low))
    d_high = array_ops.reshape(math_ops.reduce_sum(
        array_ops.where_v2(above, grad, zeros), for_high), array_ops.shape(high))
    return dx, d_low, d_high


def _by_parts(op, grad, partials):
    """Two partial derivatives, each times the gradient, summed to the shapes of the inputs."""
    x, y = op.inputs
    sx, sy = array_ops.shape(x), array_ops.shape(y)
    rx, ry = g.BroadcastGradientArgs(sx, sy)
    with ops.control_dependencies([grad]):
        px, py = partials(x, y)
        dx = None if px is None else array_ops.reshape(math_ops.reduce_sum(px * grad, rx), sx)
        return dx, array_ops.reshape(math_ops.reduce_sum(py * grad, ry), sy)


def _not_zero(x):
    return math_ops.cast(math_ops.not_equal(x, math_ops.cast(0.0, dtype=x.dtype)), dtype=x.dtype)


@gradient("Xlogy")
def _xlogy(op, grad):
    return _by_parts(op, grad, lambda x, y: (g.Xlogy(_not_zero(x), y), g.Xdivy(x, y)))


@gradient("Xlog1py")
def _xlog1py(op, grad):
    return _by_parts(op, grad, lambda x, y: (g.Xlog1py(_not_zero(x), y), g.Xdivy(x, y + 1.0)))


@gradient("Xdivy")
def _xdivy(op, grad):
    return _by_parts(op, grad, lambda x, y: (g.Xdivy(_not_zero(x), y), g.Xdivy(g.Neg(x), y ** 2)))


def _igamma(op, grad):
    return _by_parts(op, grad, lambda a, x: (
        g.IgammaGradA(a, x), g.Exp(-x + (a - 1) * g.Log(x) - g.Lgamma(a))))


gradient("Igamma")(_igamma)


@gradient("Igammac")
def _igammac(op, grad):
    da, dx = _igamma(op, grad)
    return -da, -dx


@gradient("Zeta")
def _zeta(op, grad):
    return _by_parts(op, grad, lambda x, q: (None, -conj(x) * g.Zeta(conj(x) + 1, conj(q))))


@gradient("Polygamma")
def _polygamma(op, grad):
    return _by_parts(op, grad, lambda n, x: (None, g.Polygamma(conj(n) + 1, conj(x))))


@gradient("Betainc")
def _betainc(op, grad):
    a, b, x = op.inputs
    sa, sx = array_ops.shape(a), array_ops.shape(x)
    _, rx = g.BroadcastGradientArgs(sa, sx)
    log_beta = g.Lgamma(a) + g.Lgamma(b) - g.Lgamma(a + b)
    partial = g.Exp(math_ops.xlog1py(b - 1, -x) + g.Xlogy(a - 1, x) - log_beta)
    return None, None, array_ops.reshape(math_ops.reduce_sum(partial * grad, rx), sx)


@gradient("NextAfter")
def _next_after(op, grad):
    return _by_parts(op, grad, lambda x, y: (
        array_ops.ones(array_ops.shape(x), dtype=x.dtype),
        array_ops.zeros(array_ops.shape(y), dtype=y.dtype)))
