"""Gradients of Fourier transforms."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


def _size(x, rank):
    """How many elements one transform has."""
    return math_ops.cast(math_ops.reduce_prod(array_ops.shape(x)[-rank:]), x.dtype.real_dtype)


def _forward(op_type, inverse, rank):
    @gradient(op_type)
    def function(op, grad):
        size = math_ops.cast(_size(grad, rank), grad.dtype)
        return getattr(g, inverse)(grad) * size


def _inverse(op_type, forward, rank):
    @gradient(op_type)
    def function(op, grad):
        scale = math_ops.cast(1.0 / _size(grad, rank), grad.dtype)
        return getattr(g, forward)(grad) * scale


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _forward("FFT" + _suffix, "IFFT" + _suffix, _rank)
    _inverse("IFFT" + _suffix, "FFT" + _suffix, _rank)


def _fitted(grad, x, rank):
    """Crops or pads the last dimensions of `grad` to those of `x`: what the transform left out counts nothing."""
    wanted, found = array_ops.shape(x), array_ops.shape(grad)
    common = math_ops.minimum(wanted, found)
    inner = array_ops.slice(grad, array_ops.zeros_like(found), array_ops.concat([found[:-rank], common[-rank:]], 0))
    after = array_ops.concat([array_ops.zeros_like(found[:-rank]), (wanted - common)[-rank:]], 0)
    padded = array_ops.pad(inner, array_ops.stack([array_ops.zeros_like(after), after], axis=1))
    padded.set_shape(x.get_shape())
    return padded


def _edge(grad, index, rank):
    """The part of the sum over frequencies whose last one is `index`, over the other axes."""
    column = grad[..., index]
    if rank == 1:
        return math_ops.real(column)[..., None]
    size = math_ops.cast(array_ops.shape(column)[-1], grad.dtype)
    return math_ops.real(g.IFFT(column) * size)[..., None]


def _real(op_type, inverse, rank):
    @gradient(op_type)
    def function(op, grad):
        x, length = op.inputs
        size = math_ops.cast(math_ops.reduce_prod(length), x.dtype)
        # The inverse counts all frequencies but the first and the middle one twice.
        twice = getattr(g, inverse)(grad, length, Treal=x.dtype) * size + _edge(grad, 0, rank)
        even = math_ops.cast(1 - length[-1] % 2, x.dtype)
        signs = 1 - 2 * math_ops.cast(math_ops.range(length[-1]) % 2, x.dtype)
        return _fitted(0.5 * (twice + even * signs * _edge(grad, -1, rank)), x, rank), None


def _real_inverse(op_type, forward, rank):
    @gradient(op_type)
    def function(op, grad):
        y, length = op.inputs
        size = math_ops.cast(math_ops.reduce_prod(length), grad.dtype)
        last = length[-1]
        at = math_ops.range(last // 2 + 1)
        once = math_ops.logical_or(math_ops.equal(at, 0), math_ops.equal(2 * at, last))
        weights = math_ops.cast(2 - math_ops.cast(once, at.dtype), grad.dtype) / size
        spectrum = getattr(g, forward)(grad, length, Tcomplex=y.dtype)
        return _fitted(spectrum * math_ops.cast(weights, y.dtype), y, rank), None


for _rank, _suffix in ((1, ""), (2, "2D")):
    _real("RFFT" + _suffix, "IRFFT" + _suffix, _rank)
    _real_inverse("IRFFT" + _suffix, "RFFT" + _suffix, _rank)
