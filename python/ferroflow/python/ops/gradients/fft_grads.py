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
