"""Gradients of reductions and scans."""

import weakref

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient


# Graph -> {(shape, axes): (shape with ones, multiples)}
_TILINGS = weakref.WeakKeyDictionary()


def _tiling(dims, axes):
    """How the gradient of a sum is tiled back.  Its nodes are made once for each graph."""
    known = _TILINGS.setdefault(ops.get_default_graph(), {})
    if (dims, axes) not in known:
        kept = np.array(dims, dtype=np.int32)
        kept[list(axes)] = 1
        dims // g.Maximum(kept, 1)
        known[dims, axes] = (tuple(int(k) for k in kept),
                             tuple(d // max(int(k), 1) for d, k in zip(dims, kept)))
    return known[dims, axes]


def _sum(op, grad):
    x, axes_input = op.inputs
    static = x.get_shape()
    if static.ndims is not None:
        axes = tensor_util.constant_value(axes_input)
        dims = static.as_list()
        if axes is not None:
            if np.array_equal(axes, np.arange(len(dims))):
                # All axes in order: reshape to ones and tile.
                grad = array_ops.reshape(grad, [1] * len(dims))
                if None not in dims:
                    shape = constant_op.constant(dims, dtype=dtypes.int32)
                else:
                    shape = array_ops.shape(x)
                return g.Tile(grad, shape)
            if None not in dims:
                kept, scaling = _tiling(tuple(dims), tuple(int(a) for a in np.reshape(axes, [-1])))
                return g.Tile(array_ops.reshape(grad, kept), scaling)
    shape = array_ops.shape(x)
    if not op.get_attr("keep_dims"):
        with ops.colocate_with(shape):
            kept = math_ops.reduced_shape(shape, axes_input)
        grad = array_ops.reshape(grad, kept)
    return g.BroadcastTo(grad, shape)


@gradient("Sum")
def _sum_grad(op, grad):
    return [_sum(op, grad), None]


@gradient("Mean")
def _mean(op, grad):
    total = _sum(op, grad)
    before, after = op.inputs[0].get_shape(), op.outputs[0].get_shape()
    if before.is_fully_defined() and after.is_fully_defined():
        factor = int(np.prod(before.as_list(), dtype=np.int64)) // max(
            int(np.prod(after.as_list(), dtype=np.int64)), 1)
        factor = constant_op.constant(factor, dtype=total.dtype)
    else:
        shape = array_ops.shape(op.inputs[0])
        rank = array_ops.size(shape)
        axes = (op.inputs[1] + rank) % rank
        factor = math_ops.reduce_prod(array_ops.gather(shape, axes))
    return math_ops.truediv(total, math_ops.cast(factor, total.dtype)), None


@gradient("Max", "Min")
def _extreme(op, grad):
    shape = array_ops.shape(op.inputs[0])
    y = op.outputs[0]
    if op.get_attr("keep_dims"):
        kept = array_ops.shape(y)
    else:
        kept = math_ops.reduced_shape(shape, op.inputs[1])
        y = array_ops.reshape(y, kept)
        grad = array_ops.reshape(grad, kept)
    chosen = math_ops.cast(math_ops.equal(y, op.inputs[0]), grad.dtype)
    count = array_ops.reshape(math_ops.reduce_sum(chosen, op.inputs[1]), kept)
    return [math_ops.divide(chosen, count) * grad, None]


@gradient("Prod")
def _prod(op, grad):
    x = op.inputs[0]
    shape = array_ops.shape(x)
    axes = array_ops.reshape(op.inputs[1], [-1])
    if not op.get_attr("keep_dims"):
        grad = array_ops.reshape(grad, math_ops.reduced_shape(shape, op.inputs[1]))
    grad = g.BroadcastTo(grad, shape)
    with ops.device("/cpu:0"):
        rank = array_ops.rank(x)
        axes = (axes + rank) % rank
        reduced = math_ops.cast(axes, dtypes.int32)
        index = math_ops.range(0, rank)
        other, _ = g.ListDiff(index, reduced, dtypes.int32)
        perm = array_ops.concat([reduced, other], 0)
        reduced_size = math_ops.reduce_prod(array_ops.gather(shape, reduced))
        other_size = math_ops.reduce_prod(array_ops.gather(shape, other))
    turned = array_ops.transpose(x, perm)
    turned.set_shape(_turned_shape(x.get_shape(), op.inputs[1]))
    turned_shape = array_ops.shape(turned)
    rows = array_ops.reshape(turned, (reduced_size, other_size))
    left = math_ops.cumprod(rows, axis=0, exclusive=True)
    right = math_ops.cumprod(rows, axis=0, exclusive=True, reverse=True)
    others = array_ops.reshape(math_ops.conj(left) * math_ops.conj(right), turned_shape)
    out = grad * array_ops.transpose(others, g.InvertPermutation(perm))
    return array_ops.reshape(out, shape), None


def _turned_shape(shape, axes):
    """The dimensions of `axes`, then the others, as far as they are known."""
    axes = tensor_util.constant_value(axes)
    if shape.ndims is None or axes is None:
        return None
    first = [int(a) % shape.ndims for a in np.reshape(axes, [-1])]
    dims = shape.as_list()
    return [dims[a] for a in first] + [d for i, d in enumerate(dims) if i not in first]


@gradient("EuclideanNorm")
def _norm(op, grad):
    output = op.outputs[0]
    if not op.get_attr("keep_dims"):
        kept = math_ops.reduced_shape(array_ops.shape(op.inputs[0]), op.inputs[1])
        output = array_ops.reshape(output, kept)
        grad = array_ops.reshape(grad, kept)
    return math_ops.truediv(op.inputs[0], output / grad), None


@gradient("ArgMax", "ArgMin")
def _arg(op, grad):
    return [None, None]


@gradient("Cumsum")
def _cumsum(op, grad):
    return [math_ops.cumsum(grad, op.inputs[1], exclusive=op.get_attr("exclusive"),
                            reverse=not op.get_attr("reverse")), None]


@gradient("Cumprod")
def _cumprod(op, grad):
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    prod = math_ops.cumprod(x, axis, exclusive=exclusive, reverse=reverse)
    out = math_ops.cumsum(prod * grad, axis, exclusive=exclusive, reverse=not reverse)
    return [math_ops.div_no_nan(out, x), None]


@gradient("CumulativeLogsumexp")
def _cumulative_logsumexp(op, grad):
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")

    def log_where(condition, value):
        return array_ops.where_v2(condition, g.Log(value), grad.dtype.min)

    positive = log_where(grad > 0, grad)
    negative = log_where(grad < 0, -grad)

    def part(log_grad):
        return g.Exp(math_ops.cumulative_logsumexp(
            log_grad - op.outputs[0], axis=axis, reverse=not reverse, exclusive=exclusive) + x)
    return [part(positive) - part(negative), None]
