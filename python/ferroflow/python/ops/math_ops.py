"""Arithmetic on tensors, with TensorFlow's rules for the types of the operands."""

import builtins

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor

# What an integer type becomes before a true division; None: it stays.
_TRUEDIV_TYPES = {
    dtypes.uint8: dtypes.float32, dtypes.int8: dtypes.float32, dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32, dtypes.uint32: dtypes.float64, dtypes.int32: dtypes.float64,
    dtypes.uint64: dtypes.float64, dtypes.int64: dtypes.float64, dtypes.float16: None,
    dtypes.float32: None, dtypes.float64: None, dtypes.bfloat16: None, dtypes.complex64: None,
    dtypes.complex128: None,
}


def _sparse(x):
    return isinstance(x, sparse_tensor.SparseTensor)


def _map_sparse(function, x, name):
    """Applies an elementwise function that keeps zeros to the values of a sparse tensor."""
    return sparse_tensor.SparseTensor(x.indices, function(x.values, name=name), x.dense_shape)


def _unary(op, doc):
    def function(x, name=None):
        if _sparse(x):
            return _map_sparse(op, x, name)
        return op(x, name=name)
    function.__doc__ = doc
    return function


exp = export("exp", "math.exp")(lambda x, name=None: gen_ops.Exp(x, name=name))
sqrt = export("sqrt", "math.sqrt")(lambda x, name=None: gen_ops.Sqrt(x, name=name))
rsqrt = export("rsqrt", "math.rsqrt")(lambda x, name=None: gen_ops.Rsqrt(x, name=name))
floor = export("floor", "math.floor")(lambda x, name=None: gen_ops.Floor(x, name=name))
ceil = export("ceil", "math.ceil")(lambda x, name=None: gen_ops.Ceil(x, name=name))
acos = export("acos", "math.acos")(lambda x, name=None: gen_ops.Acos(x, name=name))
softplus = export("nn.softplus", "math.softplus")(
    lambda features, name=None: gen_ops.Softplus(features, name=name))


def _named(name, default, values):
    return ops.name_scope(name, default, values)


@export("math.erfinv")
def erfinv(x, name=None):
    with _named(name, "erfinv", [x]):
        return gen_ops.Erfinv(x)


@export("math.ndtri")
def ndtri(x, name=None):
    with _named(name, "ndtri", [x]):
        return gen_ops.Ndtri(x)


@export("math.erfcinv")
def erfcinv(x, name=None):
    with _named(name, "erfcinv", [x]):
        x = convert(x, name="start")
        return -ndtri(0.5 * x) * np.sqrt(0.5)


@export("abs", "math.abs")
def abs(x, name=None):
    with _named(name, "Abs", [x]) as scope:
        if _sparse(x):
            return _map_sparse(abs, x, scope)
        x = convert(x, name="x")
        if x.dtype.is_complex:
            return gen_ops.ComplexAbs(x, Tout=x.dtype.real_dtype, name=scope)
        return gen_ops.Abs(x, name=scope)


negative = export("negative", "math.negative", "neg")(
    lambda x, name=None: _map_sparse(gen_ops.Neg, x, name) if _sparse(x)
    else gen_ops.Neg(x, name=name))
square = export("square", "math.square")(
    lambda x, name=None: _map_sparse(gen_ops.Square, x, name) if _sparse(x)
    else gen_ops.Square(x, name=name))
tanh = export("tanh", "math.tanh", "nn.tanh")(
    lambda x, name=None: _map_sparse(gen_ops.Tanh, x, name) if _sparse(x)
    else gen_ops.Tanh(x, name=name))


@export("sigmoid", "math.sigmoid", "nn.sigmoid")
def sigmoid(x, name=None):
    with _named(name, "Sigmoid", [x]) as scope:
        x = convert(x, name="x")
        return gen_ops.Sigmoid(x, name=scope)


@export("log_sigmoid", "math.log_sigmoid")
def log_sigmoid(x, name=None):
    with _named(name, "LogSigmoid", [x]) as scope:
        x = convert(x, name="x")
        return gen_ops.Neg(gen_ops.Softplus(-x), name=scope)


@export("sign", "math.sign")
def sign(x, name=None):
    x = convert(x)
    if x.dtype.is_complex:
        return gen_ops.DivNoNan(
            x, cast(gen_ops.ComplexAbs(x, Tout=x.dtype.real_dtype), dtype=x.dtype), name=name)
    return gen_ops.Sign(x, name=name)


@export("round", "math.round")
def round(x, name=None):
    x = convert(x, name="x")
    return x if x.dtype.is_integer else gen_ops.Round(x, name=name)


@export("add", "math.add")
def add(x, y, name=None):
    with _named(name, "Add", [x]) as scope:
        x = convert(x, name="x")
        y = convert(y, preferred_dtype=x.dtype.base_dtype, name="y")
        if x.dtype == dtypes.string:
            return gen_ops.Add(x, y, name=scope)
        return gen_ops.AddV2(x, y, name=scope)


@export("add_n", "math.add_n")
def add_n(inputs, name=None):
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError("Inputs must be an iterable of at least one Tensor/IndexedSlices with "
                         "the same dtype and shape.")
    inputs = indexed_slices.convert_n_to_tensor_or_indexed_slices(inputs)
    if not all(isinstance(x, (ops.Tensor, indexed_slices.IndexedSlices)) for x in inputs):
        raise ValueError("Inputs must be an iterable of at least one Tensor/IndexedSlices with "
                         "the same dtype and shape.")
    if len(inputs) == 1:
        values = inputs[0]
        if isinstance(values, indexed_slices.IndexedSlices):
            values = convert(inputs[0])
        if name:
            return gen_ops.Identity(values, name=name)
        return values
    return gen_ops.AddN(inputs, name=name)


@export("accumulate_n", "math.accumulate_n")
def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    from ferroflow.python.framework import tensor_shape
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and "
                         "shape.")
    inputs = indexed_slices.convert_n_to_tensor_or_indexed_slices(inputs)
    if not all(x.dtype == inputs[0].dtype for x in inputs):
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and "
                         "shape.")
    shape = tensor_shape.as_shape(shape)
    for one in inputs:
        if isinstance(one, ops.Tensor):
            shape = shape.merge_with(one.get_shape())
    if tensor_dtype is not None and tensor_dtype != inputs[0].dtype:
        raise TypeError("The `tensor_dtype` argument is %s, but `input` is of type %s." % (
            tensor_dtype, inputs[0].dtype))
    if len(inputs) == 1 and name is None:
        return inputs[0]
    if len(inputs) == 1:
        return gen_ops.Identity(inputs[0], name=name)
    return add_n(inputs, name=name)


subtract = export("subtract", "math.subtract")(lambda x, y, name=None: gen_ops.Sub(x, y, name))
multiply = export("multiply", "math.multiply")(lambda x, y, name=None: gen_ops.Mul(x, y, name))
floormod = export("floormod", "mod", "math.floormod", "math.mod")(
    lambda x, y, name=None: gen_ops.FloorMod(x, y, name=name))


@export("scalar_mul", "math.scalar_mul")
def scalar_mul(scalar, x, name=None):
    base = dtypes.as_dtype(x.dtype).base_dtype
    scalar = convert(scalar, dtype=base, name="scalar")
    if scalar.get_shape().ndims != 0:
        raise ValueError("The input scalar must be a 0-D value. Received shape %s." % (
            scalar.get_shape(),))
    if isinstance(x, indexed_slices.IndexedSlices):
        return indexed_slices.IndexedSlices(
            gen_ops.Mul(scalar, x.values, name), x.indices, x.dense_shape)
    return gen_ops.Mul(scalar, x, name)


@export("pow", "math.pow")
def pow(x, y, name=None):
    with _named(name, "Pow", [x]) as scope:
        return gen_ops.Pow(x, y, name=scope)


def _same_base(x, y):
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError("`x` and `y` must have the same dtype, got %r != %r." % (
            x.dtype.base_dtype, y.dtype.base_dtype))


@export("truediv", "math.truediv")
def truediv(x, y, name=None):
    with _named(name, "truediv", [x, y]) as scope:
        x = convert(x, name="x")
        y = convert(y, preferred_dtype=x.dtype.base_dtype, name="y")
        _same_base(x, y)
        try:
            dtype = _TRUEDIV_TYPES[x.dtype.base_dtype]
        except KeyError:
            raise TypeError("Invalid dtype %r in __truediv__. Expected one of {%s}." % (
                x.dtype.base_dtype, ", ".join(repr(k) for k in _TRUEDIV_TYPES))) from None
        if dtype is not None:
            x = cast(x, dtype)
            y = cast(y, dtype)
        return gen_ops.RealDiv(x, y, name=scope)


@export("divide", "math.divide")
def divide(x, y, name=None):
    if name is not None:
        return truediv(x, y, name)
    if not isinstance(x, ops.Tensor) and not hasattr(x, "_as_graph_element"):
        x = convert(x, dtype=y.dtype.base_dtype if hasattr(y, "dtype") else None)
    return x / y


@export("div")
def div(x, y, name=None):
    with _named(name, "div", [x, y]) as scope:
        x = convert(x, name="x")
        y = convert(y, name="y", dtype=x.dtype.base_dtype)
        _same_base(x, y)
        if x.dtype.is_floating or x.dtype.is_complex:
            return gen_ops.RealDiv(x, y, name=scope)
        return gen_ops.FloorDiv(x, y, name=scope)


@export("floordiv", "math.floordiv")
def floordiv(x, y, name=None):
    with _named(name, "floordiv", [x, y]) as scope:
        return gen_ops.FloorDiv(x, y, name=scope)


@export("div_no_nan", "math.divide_no_nan")
def div_no_nan(x, y, name=None):
    with _named(name, "div_no_nan", [x, y]) as scope:
        x = convert(x, name="x")
        y = convert(y, name="y", dtype=x.dtype.base_dtype)
        return gen_ops.DivNoNan(x, y, name=scope)


@export("math.multiply_no_nan")
def multiply_no_nan(x, y, name=None):
    with _named(name, "multiply_no_nan", [x, y]) as scope:
        x = convert(x, name="x")
        y = convert(y, name="y", dtype=x.dtype.base_dtype)
        return gen_ops.MulNoNan(x, y, name=scope)


@export("math.reciprocal_no_nan")
def reciprocal_no_nan(x, name=None):
    with _named(name, "reciprocal_no_nan", [x]) as scope:
        x = convert(x, name="x")
        one = ops.convert_to_tensor(1, dtype=x.dtype.base_dtype, name="one")
        return gen_ops.DivNoNan(one, x, name=scope)


@export("math.xdivy")
def xdivy(x, y, name=None):
    with _named(name, "xdivy", [x]):
        return gen_ops.Xdivy(x, y)


@export("math.xlog1py")
def xlog1py(x, y, name=None):
    with _named(name, "xlog1py", [x]):
        return gen_ops.Xlog1py(x, y)


@export("logical_xor", "math.logical_xor")
def logical_xor(x, y, name="LogicalXor"):
    return gen_ops.LogicalAnd(
        gen_ops.LogicalOr(x, y), gen_ops.LogicalNot(gen_ops.LogicalAnd(x, y)), name=name)


equal = export("equal", "math.equal")(lambda x, y, name=None: gen_ops.Equal(x, y, name=name))
not_equal = export("not_equal", "math.not_equal")(
    lambda x, y, name=None: gen_ops.NotEqual(x, y, name=name))


@export("cast", "dtypes.cast")
def cast(x, dtype, name=None):
    base = dtypes.as_dtype(dtype).base_dtype
    if base == getattr(x, "dtype", None) and (
            isinstance(x, ops.Tensor) or hasattr(x, "_should_act_as_resource_variable")):
        return x
    with _named(name, "Cast", [x]) as scope:
        if _sparse(x):
            return sparse_tensor.SparseTensor(
                x.indices, cast(x.values, base, name=scope), x.dense_shape)
        if isinstance(x, indexed_slices.IndexedSlices):
            return indexed_slices.IndexedSlices(
                cast(x.values, base, name=scope), x.indices, x.dense_shape)
        x = convert(x, name="x")
        if x.dtype.base_dtype != base:
            x = gen_ops.Cast(x, base, name=scope)
        return x


@export("saturate_cast", "dtypes.saturate_cast")
def saturate_cast(value, dtype, name=None):
    with _named(name, "saturate_cast", [value]) as scope:
        value = convert(value, name="value")
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype.is_complex or value.dtype.is_complex:
            return cast(value, dtype, name=scope)
        low, high = dtype.min, dtype.max
        if value.dtype.min < low and value.dtype.max > high:
            value = gen_ops.ClipByValue(value, convert(low, dtype=value.dtype),
                                        convert(high, dtype=value.dtype), name="clamp")
        elif value.dtype.min < low:
            value = gen_ops.Maximum(value, convert(low, dtype=value.dtype, name="min"))
        elif value.dtype.max > high:
            value = gen_ops.Minimum(value, convert(high, dtype=value.dtype, name="max"))
        return cast(value, dtype, name=scope)


def _to(dtype, default):
    def function(x, name=default):
        return cast(x, dtype, name=name)
    function.__doc__ = "Casts to %s." % dtype.name
    return function


to_float = export("to_float")(_to(dtypes.float32, "ToFloat"))
to_double = export("to_double")(_to(dtypes.float64, "ToDouble"))
to_int32 = export("to_int32")(_to(dtypes.int32, "ToInt32"))
to_int64 = export("to_int64")(_to(dtypes.int64, "ToInt64"))
to_bfloat16 = export("to_bfloat16")(_to(dtypes.bfloat16, "ToBFloat16"))
to_complex64 = export("to_complex64")(_to(dtypes.complex64, "ToComplex64"))
to_complex128 = export("to_complex128")(_to(dtypes.complex128, "ToComplex128"))


@export("complex", "dtypes.complex")
def complex(real, imag, name=None):
    real = convert(real, name="real")
    imag = convert(imag, name="imag")
    with _named(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype, imag.dtype)
        if kinds == (dtypes.float64, dtypes.float64):
            out = dtypes.complex128
        elif kinds == (dtypes.float32, dtypes.float32):
            out = dtypes.complex64
        else:
            raise TypeError(
                "The `real` and `imag` components have incorrect types: %s %s. They must be "
                "consistent, and one of [tf.float32, tf.float64]" % (
                    real.dtype.name, imag.dtype.name))
        return gen_ops.Complex(real, imag, Tout=out, name=scope)


def _part(op, scope_name):
    def function(input, name=None):
        with _named(name, scope_name, [input]) as scope:
            input = convert(input, name="input")
            if input.dtype.is_complex:
                return op(input, Tout=input.dtype.real_dtype, name=scope)
            return input if scope_name == "Real" else gen_ops.ZerosLike(input)
    return function


real = export("real", "math.real")(_part(lambda *a, **k: gen_ops.Real(*a, **k), "Real"))
imag = export("imag", "math.imag")(_part(lambda *a, **k: gen_ops.Imag(*a, **k), "Imag"))


@export("angle", "math.angle")
def angle(input, name=None):
    with _named(name, "Angle", [input]) as scope:
        input = convert(input, name="input")
        if input.dtype.is_complex:
            return gen_ops.Angle(input, Tout=input.dtype.real_dtype, name=scope)
        from ferroflow.python.ops import array_ops
        return array_ops.where(input < 0, np.pi * array_ops.ones_like(input),
                               array_ops.zeros_like(input))


@export("conj", "math.conj")
def conj(x, name=None):
    if isinstance(x, ops.Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with _named(name, "Conj", [x]) as scope:
        x = convert(x, name="x")
        if x.dtype.is_complex or x.dtype == dtypes.variant:
            return gen_ops.Conj(x, name=scope)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError("Expected numeric or variant tensor, got dtype %r." % x.dtype)


@export("range")
def range(start, limit=None, delta=1, dtype=None, name="range"):
    if limit is None:
        start, limit = 0, start
    with ops.name_scope(name, "Range", [start, limit, delta]) as scope:
        values = [v if isinstance(v, ops.Tensor) else convert(v, dtype=dtype, name=n)
                  for v, n in zip((start, limit, delta), ("start", "limit", "delta"))]
        if dtype is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            assert all(v.dtype in order for v in values)
            dtype = max((v.dtype for v in values), key=order.index)
        values = [cast(v, dtype) for v in values]
        return gen_ops.Range(*values, name=scope)


@export("linspace", "lin_space")
def linspace(start, stop, num, name=None, axis=0):
    from ferroflow.python.ops import linspace as impl
    return impl.linspace_nd(start, stop, num, name, axis)


@export("sparse_segment_sum", "sparse.segment_sum")
def sparse_segment_sum(data, indices, segment_ids, name=None, num_segments=None,
                       sparse_gradient=False):
    if num_segments is not None:
        return gen_ops.SparseSegmentSumWithNumSegments(
            data=data, indices=indices, segment_ids=segment_ids, num_segments=num_segments,
            name=name, sparse_gradient=sparse_gradient)
    return gen_ops.SparseSegmentSum(data=data, indices=indices, segment_ids=segment_ids,
                                    name=name, sparse_gradient=sparse_gradient)


@export("sparse_segment_mean", "sparse.segment_mean")
def sparse_segment_mean(data, indices, segment_ids, name=None, num_segments=None,
                        sparse_gradient=False):
    if num_segments is not None:
        return gen_ops.SparseSegmentMeanWithNumSegments(
            data=data, indices=indices, segment_ids=segment_ids, num_segments=num_segments,
            name=name, sparse_gradient=sparse_gradient)
    return gen_ops.SparseSegmentMean(data=data, indices=indices, segment_ids=segment_ids,
                                     name=name, sparse_gradient=sparse_gradient)


@export("sparse_segment_sqrt_n", "sparse.segment_sqrt_n")
def sparse_segment_sqrt_n(data, indices, segment_ids, name=None, num_segments=None,
                          sparse_gradient=False):
    if num_segments is not None:
        return gen_ops.SparseSegmentSqrtNWithNumSegments(
            data=data, indices=indices, segment_ids=segment_ids, num_segments=num_segments,
            name=name, sparse_gradient=sparse_gradient)
    return gen_ops.SparseSegmentSqrtN(data=data, indices=indices, segment_ids=segment_ids,
                                      name=name, sparse_gradient=sparse_gradient)


def _segment_counts(data, segment_ids, num_segments):
    """The number of elements of each segment, at least one, shaped to divide `data`."""
    from ferroflow.python.ops import array_ops
    num_segments = convert(num_segments)
    ones_shape = array_ops.shape_internal(segment_ids)
    counts = gen_ops.UnsortedSegmentSum(
        array_ops.ones(ones_shape, dtype=data.dtype), segment_ids, num_segments)
    shape = array_ops.concat([num_segments[np.newaxis], array_ops.ones(
        [array_ops.rank(data) - array_ops.rank(segment_ids)], dtype=num_segments.dtype)], axis=0)
    return gen_ops.Maximum(array_ops.reshape(counts, shape), 1)


@export("unsorted_segment_mean", "math.unsorted_segment_mean")
def unsorted_segment_mean(data, segment_ids, num_segments, name=None):
    with ops.name_scope(name, "UnsortedSegmentMean"):
        data = convert(data)
        segment_ids = convert(segment_ids)
        counts = _segment_counts(data, segment_ids, num_segments)
        return gen_ops.UnsortedSegmentSum(data, segment_ids, num_segments) / counts


@export("unsorted_segment_sqrt_n", "math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None):
    with ops.name_scope(name, "UnsortedSegmentSqrtN"):
        data = convert(data)
        segment_ids = convert(segment_ids)
        counts = _segment_counts(data, segment_ids, num_segments)
        return gen_ops.UnsortedSegmentSum(data, segment_ids, num_segments) / sqrt(counts)


@export("math.polyval")
def polyval(coeffs, x, name=None):
    if not isinstance(coeffs, list):
        raise ValueError("Argument coeffs must be list type. Received type %s." % type(coeffs))
    with _named(name, "polyval", [*coeffs, x]):
        x = convert(x, name="x")
        if not coeffs:
            from ferroflow.python.ops import array_ops
            return array_ops.zeros_like(x, name=name)
        coeffs = [convert(c, name="coeff_%d" % i) for i, c in enumerate(coeffs)]
        value = coeffs[0]
        for c in coeffs[1:]:
            value = c + value * x
        return value


any_ = builtins.any
from ferroflow.python.ops.matmul_ops import matmul, matvec, tensordot, trace  # noqa: E402,F401
from ferroflow.python.ops.reduction_ops import (  # noqa: E402,F401
    argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_logsumexp, reduce_all, reduce_any,
    reduce_euclidean_norm, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod,
    reduce_std, reduce_sum, reduce_variance, reduced_shape)

__getattr__ = module_names.fallback(__name__)
