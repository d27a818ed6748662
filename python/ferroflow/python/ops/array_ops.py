"""Shapes, filling, joining and picking parts of tensors."""

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import operator_stubs
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor
constant = constant_op.constant
newaxis = export("newaxis")(None)

# Larger constants become a Fill op, so that they do not swell the GraphDef.
_SMALL = 1000


def _sparse(x):
    return isinstance(x, sparse_tensor.SparseTensor)


# ------------------------------------------------------------------ inputs


@export("placeholder")
def placeholder(dtype, shape=None, name=None):
    return gen_ops.Placeholder(dtype=dtype, shape=shape, name=name)


@export("placeholder_with_default")
def placeholder_with_default(input, shape, name=None):
    return gen_ops.PlaceholderWithDefault(input, tensor_shape.as_shape(shape), name)


@export("sparse_placeholder", "sparse.placeholder")
def sparse_placeholder(dtype, shape=None, name=None):
    if shape is None:
        rank = None
        dense_shape = placeholder(dtypes.int64, shape=[rank],
                                  name=None if name is None else name + "/shape")
        static = None
    elif isinstance(shape, ops.Tensor):
        rank = shape.get_shape()[0]
        dense_shape, static = shape, tensor_util.constant_value_as_shape(shape)
    else:
        rank = len(shape)
        static = tensor_shape.TensorShape(
            tuple(None if d == -1 else d for d in tensor_shape.TensorShape(shape).as_list())
            if not isinstance(shape, (list, tuple)) else
            tuple(None if d == -1 else d for d in shape))
        filled = tuple(-1 if d is None else d for d in static.as_list())
        dense_shape = placeholder_with_default(
            convert(np.array(filled, dtype=np.int64)), shape=[rank],
            name=None if name is None else name + "/shape")
    values = placeholder(dtype, shape=[None], name=None if name is None else name + "/values")
    indices = placeholder(dtypes.int64, shape=[None, rank],
                          name=None if name is None else name + "/indices")
    result = sparse_tensor.SparseTensor(values=values, indices=indices, dense_shape=dense_shape)
    if static is not None and hasattr(result, "_dense_shape_default"):
        result._dense_shape_default = static
    return result


@export("identity")
def identity(input, name=None):
    if _sparse(input):
        with ops.name_scope(name, "Identity", [input.indices, input.values]):
            return sparse_tensor.SparseTensor(
                gen_ops.Identity(input.indices), gen_ops.Identity(input.values),
                gen_ops.Identity(input.dense_shape))
    result = gen_ops.Identity(input, name=name)
    if hasattr(input, "_handle_data"):
        result._handle_data = input._handle_data
    return result


@export("stop_gradient")
def stop_gradient(input, name=None):
    return gen_ops.StopGradient(input, name=name)


@export("guarantee_const")
def guarantee_const(input, name=None):
    return gen_ops.GuaranteeConst(input=input, name=name)


# ------------------------------------------------------------------ shapes


@export("shape")
def shape(input, name=None, out_type=None):
    return shape_internal(input, name, optimize=True,
                          out_type=dtypes.int32 if out_type is None else out_type)


def shape_internal(input, name=None, optimize=True, out_type=None):
    """The shape as a vector; without `out_type` a known one is int64 only if it must be."""
    with ops.name_scope(name, "Shape", [input]) as scope:
        if _sparse(input):
            return gen_ops.Cast(input.dense_shape, out_type or dtypes.int32)
        input = convert(input)
        static = input.get_shape()
        if optimize and static.is_fully_defined():
            if out_type is None:
                return convert(static, name="shape_as_tensor")
            return constant(static.as_list(), out_type, name=scope)
        return gen_ops.Shape(input, name=scope, out_type=out_type or dtypes.int32)


@export("shape_n")
def shape_n(input, out_type=dtypes.int32, name=None):
    return gen_ops.ShapeN(input=input, out_type=out_type, name=name)


@export("size")
def size(input, name=None, out_type=None):
    return size_internal(input, name, True, dtypes.int32 if out_type is None else out_type)


def size_internal(input, name=None, optimize=True, out_type=dtypes.int32):
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "Size", [input]) as scope:
        if _sparse(input):
            return gen_ops.Prod(math_ops.cast(input.dense_shape, out_type), 0, name=scope)
        input = convert(input)
        static = input.get_shape()
        if optimize and static.is_fully_defined():
            count = int(np.prod(static.as_list(), dtype=np.int64))
            if out_type == dtypes.int32 and count > np.iinfo(np.int32).max:
                raise ValueError("the size %d does not fit into int32" % count)
            return constant(count, out_type, name=scope)
        return gen_ops.Size(input, name=scope, out_type=out_type)


@export("rank")
def rank(input, name=None):
    return rank_internal(input, name, True)


def rank_internal(input, name=None, optimize=True):
    with ops.name_scope(name, "Rank", [input]) as scope:
        if _sparse(input):
            return gen_ops.Size(input.dense_shape, name=scope)
        input = convert(input)
        static = input.get_shape()
        if optimize and static.ndims is not None:
            return constant(static.ndims, dtypes.int32, name=scope)
        return gen_ops.Rank(input, name=scope)


def _static_from(result, shape):
    """Gives `result` the shape that the tensor or list `shape` is known to hold."""
    if result.get_shape().is_fully_defined():
        return result
    known = tensor_util.constant_value_as_shape(shape) if isinstance(shape, ops.Tensor) else None
    if known is not None:
        result.set_shape(known)
    return result


@export("reshape", "manip.reshape")
def reshape(tensor, shape, name=None):
    reshaped = gen_ops.Reshape(tensor, shape, name=name)
    rank = reshaped.op.inputs[1].get_shape().ndims
    if rank not in (None, 1):
        raise ValueError("Shape must be rank 1 but is rank %d for '%s'" % (rank, reshaped.op.name))
    return _static_from(reshaped, shape)


@export("ensure_shape")
def ensure_shape(x, shape, name=None):
    if not isinstance(shape, tensor_shape.TensorShape):
        shape = tensor_shape.TensorShape(shape)
    return gen_ops.EnsureShape(x, shape, name=name)


@export("expand_dims")
def expand_dims(input, axis=None, name=None, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return gen_ops.ExpandDims(input, axis, name=name)


@export("squeeze")
def squeeze(input, axis=None, name=None, squeeze_dims=None):
    axis = deprecated_alias("axis", axis, "squeeze_dims", squeeze_dims)
    if np.isscalar(axis):
        axis = [axis]
    return gen_ops.Squeeze(input, axis if axis is None else list(axis), name)


@export("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x, shape_y):
    return gen_ops.BroadcastArgs(shape_x, shape_y)


@export("broadcast_static_shape")
def broadcast_static_shape(shape_x, shape_y):
    return broadcast_shape(shape_x, shape_y)


def broadcast_shape(shape_x, shape_y):
    """The shape of x op y, as far as it is known."""
    shape_x, shape_y = tensor_shape.as_shape(shape_x), tensor_shape.as_shape(shape_y)
    if shape_x.ndims is None or shape_y.ndims is None:
        return tensor_shape.unknown_shape()
    x, y = shape_x.as_list(), shape_y.as_list()
    width = max(len(x), len(y))
    x, y = [1] * (width - len(x)) + x, [1] * (width - len(y)) + y
    out = []
    for a, b in zip(x, y):
        if a is None or b is None:
            known = a if b is None else b
            out.append(known if known is not None and known > 1 else None)
        elif a == 1 or b == 1 or a == b:
            out.append(b if a == 1 else a)
        else:
            raise ValueError("Incompatible shapes for broadcasting. Two shapes are compatible if "
                             "for each dimension pair they are either equal or one of them is 1. "
                             "Received: %s and %s." % (shape_x, shape_y))
    return tensor_shape.TensorShape(out)


# ----------------------------------------------------------------- filling


def _small_constant(value, shape, dtype, name):
    try:
        if np.prod(shape) < _SMALL:
            return constant(value, shape=shape, dtype=dtype, name=name)
    except (NotImplementedError, TypeError):
        pass  # the shape is a list with tensors in it
    return None


def _shape_tensor(shape):
    try:
        return convert(tensor_shape.TensorShape(shape), name="shape_as_tensor")
    except (TypeError, ValueError):
        return convert(shape, dtype=dtypes.int32)


def _filled(value, shape, dtype, name):
    if not isinstance(shape, ops.Tensor):
        if isinstance(shape, tensor_shape.TensorShape):
            shape = shape.as_list() if shape.is_fully_defined() else shape
        small = _small_constant(value, shape, dtype, name)
        if small is not None:
            return small
        shape = _shape_tensor(shape)
    if shape.get_shape().ndims == 0:
        shape = reshape(shape, [-1])
    return fill(shape, constant(value, dtype=dtype), name=name)


@export("zeros")
def zeros(shape, dtype=dtypes.float32, name=None, layout=None):
    dtype = dtypes.as_dtype(dtype).base_dtype
    with ops.name_scope(name, "zeros", [shape]) as scope:
        zero = False if dtype == dtypes.bool else "" if dtype == dtypes.string else 0
        output = _filled(zero, shape, dtype, scope)
    return output


@export("ones")
def ones(shape, dtype=dtypes.float32, name=None, layout=None):
    dtype = dtypes.as_dtype(dtype).base_dtype
    with ops.name_scope(name, "ones", [shape]) as scope:
        return _filled(True if dtype == dtypes.bool else 1, shape, dtype, scope)


@export("zeros_like")
def zeros_like(tensor, dtype=None, name=None, optimize=True):
    with ops.name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = convert(tensor, name="tensor")
        static = tensor.get_shape()
        wanted = dtypes.as_dtype(dtype) if dtype is not None else tensor.dtype
        if optimize and static.is_fully_defined() and tensor.dtype != dtypes.variant:
            return zeros(static, dtype=wanted, name=scope)
        if dtype is not None and wanted != tensor.dtype and wanted != dtypes.variant:
            return zeros(shape_internal(tensor, optimize=optimize), dtype=wanted, name=scope)
        return gen_ops.ZerosLike(tensor, name=scope)


@export("ones_like")
def ones_like(tensor, dtype=None, name=None, optimize=True):
    with ops.name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert(tensor, name="tensor")
        wanted = tensor.dtype if dtype is None else dtypes.as_dtype(dtype)
        result = ones(shape_internal(tensor, optimize=optimize), dtype=wanted, name=scope)
        result.set_shape(tensor.get_shape())
        return result


@export("fill")
def fill(dims, value, name=None, layout=None):
    return _static_from(gen_ops.Fill(dims, value, name=name), dims)


# ------------------------------------------------------ joining, splitting


@export("concat")
def concat(values, axis, name="concat"):
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with ops.name_scope(name) as scope:
            convert(axis, name="concat_dim", dtype=dtypes.int32).get_shape().assert_has_rank(0)
            return identity(values[0], name=name)
    return gen_ops.ConcatV2(list(values), axis, name=name)


@export("stack")
def stack(values, axis=0, name="stack"):
    if axis == 0:
        try:
            # A list of numbers becomes one constant.
            return convert(values, name=name)
        except (TypeError, ValueError, NotImplementedError):
            pass
    static = convert(values[0], name=name).get_shape()
    if static.ndims is not None:
        width = static.ndims + 1
        if axis < -width or axis >= width:
            raise ValueError("Argument `axis` = %d not in range [%d, %d)" % (axis, -width, width))
    return gen_ops.Pack(values, axis=axis, name=name)


def autopack(values, dtype, name):
    """A (nested) list with tensors in it as one tensor; numbers become constants."""
    found = _tensor_dtype(values)
    if found is None:
        return NotImplemented
    if dtype is not None and dtype != found:
        values = _cast_inside(values, dtype)
    return _pack(values, dtype or found, name or "packed")


def _tensor_dtype(values):
    for one in values:
        if operator_stubs.is_tensor(one):
            return one.dtype.base_dtype
        inner = _tensor_dtype(one) if isinstance(one, (list, tuple)) else None
        if inner is not None:
            return inner
    return None


def _cast_inside(values, dtype):
    """Casts tensors whose type is not the requested one."""
    if isinstance(values, (list, tuple)):
        return [_cast_inside(v, dtype) for v in values]
    if operator_stubs.is_tensor(values) and values.dtype.base_dtype != dtype:
        if not values.dtype.is_compatible_with(dtype):
            raise TypeError("Cannot convert a list containing a tensor of dtype %r to %r (Tensor "
                            "is: %r)" % (values.dtype, dtype, values))
    return values


def _pack(values, dtype, name):
    with ops.name_scope(name) as scope:
        parts, packed = [], False
        for i, one in enumerate(values):
            if operator_stubs.is_tensor(one):
                if one.dtype.base_dtype != dtype:
                    raise TypeError("Cannot convert a list containing a tensor of dtype %r to %r "
                                    "(Tensor is: %r)" % (one.dtype, dtype, one))
                packed = True
            elif isinstance(one, (list, tuple)):
                one = _pack(one, dtype, str(i))
                packed = packed or operator_stubs.is_tensor(one)
            parts.append(one)
        if not packed:
            return parts
        return gen_ops.Pack([one if operator_stubs.is_tensor(one) else
                             constant(one, dtype=dtype, name=str(i))
                             for i, one in enumerate(parts)], name=scope)


@export("unstack")
def unstack(value, num=None, axis=0, name="unstack"):
    if num is None:
        value = convert(value)
        static = value.get_shape()
        if static.ndims is not None:
            if axis < -static.ndims or axis >= static.ndims:
                raise ValueError("Argument `axis` = %d not in range [%d, %d)" % (
                    axis, -static.ndims, static.ndims))
            num = static.as_list()[axis]
        if num is None:
            raise ValueError("Cannot infer argument `num` from shape %s" % static)
    else:
        static = getattr(value, "get_shape", tensor_shape.unknown_shape)()
        if isinstance(axis, int) and static.ndims and -static.ndims <= axis < static.ndims:
            size = static.as_list()[axis]
            if size is not None and size != num:
                raise ValueError("Dimension must be %d but is %d for unstack along axis %d" % (num, size, axis))
    return gen_ops.Unpack(value, num=num, axis=axis, name=name)


@export("split")
def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    if isinstance(num_or_size_splits, (int, np.integer, tensor_shape.Dimension)):
        count = int(num_or_size_splits)
        static = getattr(value, "get_shape", tensor_shape.unknown_shape)()
        if isinstance(axis, (int, np.integer)) and static.ndims and count > 0 and -static.ndims <= axis < static.ndims:
            size = static.as_list()[axis]
            if size is not None and size % count:
                raise ValueError("Dimension size, given by scalar input %d must be evenly divisible by %d but is %d" % (
                    axis, count, size))
        return gen_ops.Split(axis, value, num_split=count, name=name)
    sizes = convert(num_or_size_splits)
    if sizes.get_shape().ndims == 0:
        raise ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument to "
                         "split. Argument provided: %s" % (num_or_size_splits,))
    if num is None:
        static = sizes.get_shape()
        num = static.as_list()[0] if static.ndims else None
        if num is None:
            raise ValueError("Cannot infer argument `num` from shape %s" % (num_or_size_splits,))
    return gen_ops.SplitV(value, sizes, axis, num_split=num, name=name)


@export("parallel_stack")
def parallel_stack(values, name="parallel_stack"):
    with ops.name_scope(name):
        static = convert(values[0]).get_shape()
        static = tensor_shape.TensorShape([len(values)]).concatenate(static)
        return gen_ops.ParallelConcat([expand_dims(v, 0) for v in values], shape=static)


@export("meshgrid")
def meshgrid(*args, **kwargs):
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError("'%s' is an invalid keyword argument for this function" % (
            list(kwargs)[0]))
    if indexing not in ("xy", "ij"):
        raise ValueError("Argument `indexing` parameter must be either 'xy' or 'ij', got '%s'" %
                         indexing)
    with ops.name_scope(name, "meshgrid", args):
        ndim = len(args)
        lead = (1,) * ndim
        if not ndim:
            return []
        output = [reshape(stack(x), lead[:i] + (-1,) + lead[i + 1:]) for i, x in enumerate(args)]
        shapes = [size(x) for x in args]
        kind = convert(args[0]).dtype.base_dtype
        if indexing == "xy" and ndim > 1:
            output[0] = reshape(output[0], (1, -1) + (1,) * (ndim - 2))
            output[1] = reshape(output[1], (-1, 1) + (1,) * (ndim - 2))
            shapes[0], shapes[1] = shapes[1], shapes[0]
        factor = ones(shapes, kind)
        return [x * factor for x in output]


# ------------------------------------------------------- order of elements


@export("transpose")
def transpose(a, perm=None, name="transpose", conjugate=False):
    with ops.name_scope(name, "transpose", [a]) as scope:
        if not isinstance(a, ops.Tensor):
            a = convert(a, name="a")
        op = gen_ops.ConjugateTranspose if conjugate and a.dtype.is_complex else gen_ops.Transpose
        if perm is not None:
            return op(a, perm, name=scope)
        count = a.get_shape().ndims
        if count is None:
            count = gen_ops.Rank(a)
            perm = gen_ops.Range(count - 1, -1, -1)
        else:
            perm = np.arange(count - 1, -1, -1, dtype=np.int32)
        return op(a, perm, name=scope)


@export("matrix_transpose", "linalg.transpose", "linalg.matrix_transpose")
def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    with ops.name_scope(name, values=[a]):
        a = convert(a, name="a")
        count = a.get_shape().ndims
        if count is not None:
            if count < 2:
                raise ValueError("Argument `a` should be a (batch) matrix with rank >= 2.  "
                                 "Received `a` = %s with shape: %s" % (a, a.get_shape()))
            perm = list(range(count - 2)) + [count - 1, count - 2]
        else:
            count = rank(a)
            perm = concat((gen_ops.Range(0, count - 2, 1), [count - 1, count - 2]), 0)
        return transpose(a, perm=perm, conjugate=conjugate)


@export("reverse_sequence")
def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None, seq_dim=None,
                     batch_dim=None):
    seq_axis = deprecated_alias("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = deprecated_alias("batch_axis", batch_axis, "batch_dim", batch_dim)
    return gen_ops.ReverseSequence(input, seq_lengths, seq_dim=seq_axis,
                                   batch_dim=0 if batch_axis is None else batch_axis, name=name)


@export("repeat")
def repeat(input, repeats, axis=None, name=None):
    from ferroflow.python.ops import repeat_op
    return repeat_op.repeat(input, repeats, axis, name)


from ferroflow.python.ops.batch_space_ops import (  # noqa: E402,F401
    batch_to_space, depth_to_space, extract_image_patches, required_space_to_batch_paddings,
    space_to_batch, space_to_depth)
from ferroflow.python.ops.diag_ops import (  # noqa: E402,F401
    matrix_diag, matrix_diag_part, matrix_set_diag, tensor_diag_part)
from ferroflow.python.ops.gather_ops import (  # noqa: E402,F401
    batch_gather, boolean_mask, gather, gather_nd, searchsorted, setdiff1d, sparse_mask, unique,
    unique_with_counts, where, where_v2)
from ferroflow.python.ops.masking_ops import (  # noqa: E402,F401
    edit_distance, one_hot, pad, sequence_mask)
from ferroflow.python.ops.slicing import slice, strided_slice  # noqa: E402,F401

__getattr__ = module_names.fallback(__name__)
