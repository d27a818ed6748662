"""One-hot, padding, sequence masks, edit distance."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor


@export("one_hot")
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    with ops.name_scope(name, "one_hot", [indices, depth, on_value, off_value, axis, dtype]) as s:
        on_dtype = off_dtype = None
        if on_value is not None:
            on_value = convert(on_value, preferred_dtype=dtype)
            on_dtype = on_value.dtype.base_dtype
        if off_value is not None:
            off_value = convert(off_value, preferred_dtype=dtype)
            off_dtype = off_value.dtype.base_dtype
        if on_value is not None or off_value is not None:
            if dtype is not None:
                for given, what in ((on_dtype, "on_value"), (off_dtype, "off_value")):
                    if given is not None and given != dtype:
                        raise TypeError("dtype %s of %s does not match dtype parameter %s" % (
                            given, what, dtype))
            else:
                dtype = on_dtype if on_dtype is not None else off_dtype
        elif dtype is None:
            dtype = dtypes.float32
        if on_value is None:
            on_value = convert(1, dtype, name="on_value")
            on_dtype = dtype
        if off_value is None:
            off_value = convert(0, dtype, name="off_value")
            off_dtype = dtype
        if on_dtype != off_dtype:
            raise TypeError("dtype %s of on_value does not match dtype %s of off_value" % (
                on_dtype, off_dtype))
        return gen_ops.OneHot(indices, depth, on_value, off_value,
                              axis=-1 if axis is None else axis, name=s)


@export("pad")
def pad(tensor, paddings, mode="CONSTANT", name=None, constant_values=0):
    mode = mode.upper()
    if mode == "CONSTANT":
        if isinstance(constant_values, ops.Tensor) or np.ndim(constant_values) or (
                constant_values != 0):
            result = gen_ops.PadV2(tensor, paddings, constant_values, name=name)
        else:
            result = gen_ops.Pad(tensor, paddings, name=name)
    elif mode in ("REFLECT", "SYMMETRIC"):
        result = gen_ops.MirrorPad(tensor, paddings, mode=mode, name=name)
    else:
        raise ValueError("Value of argument `mode` expected to be one of \"CONSTANT\", "
                         "\"REFLECT\", or \"SYMMETRIC\". Received `mode` = %s" % mode)
    if not isinstance(paddings, ops.Tensor) or result.op.graph is None:
        return result
    known = tensor_util.constant_value(result.op.inputs[1], partial=True)
    input_shape = result.op.inputs[0].get_shape()
    if input_shape.ndims is not None and not result.get_shape().is_fully_defined() and (
            known is not None):
        new_shape = []
        for padding, dim in zip(known, input_shape.as_list()):
            if padding is None or dim is None or any(x is None for x in padding):
                new_shape.append(None)
            else:
                new_shape.append(sum(padding) + dim)
        result.set_shape(new_shape)
    return result


@export("sequence_mask")
def sequence_mask(lengths, maxlen=None, dtype=dtypes.bool, name=None):
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert(lengths)
        if maxlen is None:
            maxlen = math_ops.reduce_max(lengths)
            maxlen = gen_ops.Maximum(array_ops.constant(0, maxlen.dtype), maxlen)
        else:
            maxlen = convert(maxlen)
        if maxlen.get_shape().ndims is not None and maxlen.get_shape().ndims != 0:
            raise ValueError("Argument `maxlen` must be scalar for sequence_mask, received "
                             "`maxlen` = %s with shape '%s' instead" % (maxlen,
                                                                       maxlen.get_shape()))
        row = gen_ops.Range(array_ops.constant(0, maxlen.dtype), maxlen,
                            array_ops.constant(1, maxlen.dtype))
        matrix = gen_ops.Cast(array_ops.expand_dims(lengths, -1), maxlen.dtype)
        result = row < matrix
        if dtype is None or dtypes.as_dtype(dtype) == result.dtype:
            return result
        return gen_ops.Cast(result, dtype)


@export("edit_distance")
def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    for one, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(one, (sparse_tensor.SparseTensor, sparse_tensor.SparseTensorValue)):
            raise TypeError("%s must be a SparseTensor." % what)
    hypothesis = sparse_tensor.convert_to_tensor_or_sparse_tensor(hypothesis)
    truth = sparse_tensor.convert_to_tensor_or_sparse_tensor(truth)
    return gen_ops.EditDistance(
        hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices,
        truth.values, truth.dense_shape, normalize=normalize, name=name)
