"""Reductions, scans and arg-max over the axes of a tensor."""

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor


def _axes(x, axis):
    """The axes to reduce; all of them if `axis` is None, as a constant where the rank is known."""
    if axis is not None:
        return axis
    try:
        rank = x.get_shape().ndims if not isinstance(x, sparse_tensor.SparseTensor) else (
            x.dense_shape.get_shape()[0].value if x.dense_shape.get_shape().ndims else None)
    except AttributeError:
        rank = None
    if rank:
        return constant_op.constant(np.arange(rank, dtype=np.int32))
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    return math_ops.range(0, array_ops.rank(x))


def _done(keepdims, axis, output):
    """A full reduction without kept dimensions is a scalar, even if the rank is unknown."""
    if not keepdims and axis is None:
        output.set_shape(())
    return output


def _reduction(op, check=None):
    """The v1 function of a reduction op: old argument names, then the op."""
    def function(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None,
                 keep_dims=None):
        axis = deprecated_alias("axis", axis, "reduction_indices", reduction_indices)
        keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims)
        keepdims = False if keepdims is None else bool(keepdims)
        return _reduce(op, input_tensor, axis, keepdims, name)
    return function


def _reduce(op, input_tensor, axis, keepdims, name):
    axes = _axes_of_value(input_tensor, axis)
    return _done(keepdims, axis, getattr(gen_ops, op)(input_tensor, axes, keepdims, name=name))


def _axes_of_value(value, axis):
    if axis is not None:
        return axis
    if isinstance(value, ops.Tensor) or hasattr(value, "get_shape"):
        return _axes(value, None)
    # A plain value is converted by the op; its rank is known by then only.
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    return math_ops.range(0, array_ops.rank(value))


reduce_sum = export("reduce_sum", "math.reduce_sum")(_reduction("Sum"))
reduce_prod = export("reduce_prod", "math.reduce_prod")(_reduction("Prod"))
reduce_max = export("reduce_max", "math.reduce_max")(_reduction("Max"))
reduce_min = export("reduce_min", "math.reduce_min")(_reduction("Min"))
reduce_mean = export("reduce_mean", "math.reduce_mean")(_reduction("Mean"))
reduce_all = export("reduce_all", "math.reduce_all")(_reduction("All"))
reduce_any = export("reduce_any", "math.reduce_any")(_reduction("Any"))


@export("math.reduce_euclidean_norm")
def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    return _reduce("EuclideanNorm", input_tensor, axis, bool(keepdims), name)


@export("math.reduce_variance")
def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    with ops.name_scope(name or "reduce_variance"):
        input_tensor = convert(input_tensor)
        means = reduce_mean(input_tensor, axis=axis, keepdims=True)
        if means.dtype.is_integer:
            raise TypeError("Input must be either real or complex. Received integer type %s." % (
                means.dtype,))
        diff = input_tensor - means
        if diff.dtype.is_complex:
            from ferroflow.python.ops import math_ops
            diff = math_ops.square(math_ops.abs(diff))
        else:
            diff = gen_ops.Square(diff)
        return reduce_mean(diff, axis=axis, keepdims=keepdims)


@export("math.reduce_std")
def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    with ops.name_scope(name or "reduce_std"):
        return gen_ops.Sqrt(
            reduce_variance(convert(input_tensor), axis=axis, keepdims=keepdims))


@export("reduce_logsumexp", "math.reduce_logsumexp")
def reduce_logsumexp(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None,
                     keep_dims=None):
    axis = deprecated_alias("axis", axis, "reduction_indices", reduction_indices)
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims)
    keepdims = False if keepdims is None else keepdims
    from ferroflow.python.ops import array_ops
    with ops.name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        raw_max = reduce_max(input_tensor, axis=axis, keepdims=True)
        my_max = array_ops.stop_gradient(gen_ops.Select(
            gen_ops.IsFinite(raw_max), raw_max, gen_ops.ZerosLike(raw_max)))
        result = gen_ops.Log(reduce_sum(
            gen_ops.Exp(gen_ops.Sub(input_tensor, my_max)), axis=axis, keepdims=keepdims))
        if not keepdims:
            my_max = array_ops.reshape(my_max, gen_ops.Shape(result))
        from ferroflow.python.ops import math_ops
        result = math_ops.add(result, my_max, name=scope)
        return _done(keepdims, axis, result)


@export("count_nonzero", "math.count_nonzero")
def count_nonzero(input_tensor=None, axis=None, keepdims=None, dtype=dtypes.int64, name=None,
                  reduction_indices=None, keep_dims=None, input=None):
    keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims)
    input_tensor = deprecated_alias("input", input, "input_tensor", input_tensor)
    axis = deprecated_alias("axis", axis, "reduction_indices", reduction_indices)
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "count_nonzero", [input_tensor]):
        value = convert(input_tensor, name="input")
        if value.dtype == dtypes.string:
            zero = ""
        else:
            zero = array_ops.zeros([], dtype=value.dtype)
        nonzero = gen_ops.NotEqual(value, zero)
        return math_ops.cast(
            reduce_sum(math_ops.cast(nonzero, dtypes.int64), axis=axis,
                       keepdims=bool(keepdims)), dtype=dtypes.as_dtype(dtype))


def _arg(op):
    def function(input, axis=None, name=None, dimension=None, output_type=dtypes.int64):
        axis = deprecated_alias("axis", axis, "dimension", dimension)
        if axis is None:
            axis = 0
        return getattr(gen_ops, op)(input, axis, output_type=output_type, name=name)
    return function


argmax = export("argmax", "math.argmax")(_arg("ArgMax"))
argmin = export("argmin", "math.argmin")(_arg("ArgMin"))


def _scan(op, scope_name):
    def function(x, axis=0, exclusive=False, reverse=False, name=None):
        with ops.name_scope(name, scope_name, [x]) as scope:
            x = convert(x, name="x")
            return getattr(gen_ops, op)(x, axis, exclusive=exclusive, reverse=reverse, name=scope)
    return function


cumsum = export("cumsum", "math.cumsum")(_scan("Cumsum", "Cumsum"))
cumprod = export("cumprod", "math.cumprod")(_scan("Cumprod", "Cumprod"))
cumulative_logsumexp = export("math.cumulative_logsumexp")(
    _scan("CumulativeLogsumexp", "CumulativeLogsumexp"))


def reduced_shape(input_shape, axes):
    """The shape of a reduction that keeps its dimensions, as a vector."""
    from ferroflow.python.framework import tensor_util
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    constant_shape = tensor_util.constant_value(input_shape)
    if constant_shape is not None:
        constant_axes = tensor_util.constant_value(axes)
        if constant_axes is not None:
            kept = np.array(constant_shape, dtype=np.int32)
            kept[constant_axes] = 1
            return kept
    axes = convert(axes)
    rank = array_ops.size(input_shape)
    axes = (axes + rank) % rank
    axes_shape = array_ops.shape(axes)
    return gen_ops.DynamicStitch(
        [math_ops.range(rank), axes],
        [input_shape, array_ops.ones(axes_shape, dtype=dtypes.int32)])
