"""Sparse tensors."""

import numpy as np

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.ops import module_names
from ferroflow.python.ops import reduction_ops
from ferroflow.python.util.api import deprecated_alias, export

__getattr__ = module_names.fallback(__name__)

SparseTensor = sparse_tensor.SparseTensor


def _sparse(value):
    if isinstance(value, sparse_tensor.SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def _parts(value):
    return value.indices, value.values, value.dense_shape


@export("sparse_concat", "sparse.concat")
def sparse_concat(axis, sp_inputs, name=None, expand_nonconcat_dim=False, concat_dim=None,
                  expand_nonconcat_dims=None):
    axis = deprecated_alias("axis", axis, "concat_dim", concat_dim)
    if expand_nonconcat_dims is not None:
        expand_nonconcat_dim = expand_nonconcat_dims
    sp_inputs = [_sparse(x) for x in sp_inputs]
    if len(sp_inputs) == 1:
        return sp_inputs[0]
    shapes = [x.dense_shape for x in sp_inputs]
    if expand_nonconcat_dim:
        largest = math_ops.reduce_max(
            array_ops.concat([array_ops.reshape(s, [1, -1]) for s in shapes], 0), 0)
        shapes = [array_ops.concat([
            largest[:axis], s[-1:] if axis == -1 else s[axis:axis + 1],
            [] if axis == -1 else largest[axis + 1:]], 0) for s in shapes]
    indices, values, shape = gen_ops.SparseConcat(
        [x.indices for x in sp_inputs], [x.values for x in sp_inputs], shapes, axis, name=name)
    static = [x.get_shape() for x in sp_inputs]
    if all(s.is_fully_defined() for s in static):
        dims = [max(s.as_list()[i] for s in static) for i in range(static[0].ndims)] if (
            expand_nonconcat_dim) else static[0].as_list()
        dims[axis] = sum(s.as_list()[axis] for s in static)
        shape = ops.convert_to_tensor(dims, dtype=dtypes.int64)
    return SparseTensor(indices, values, shape)


@export("sparse_add", "sparse.add")
def sparse_add(a, b, threshold=None, thresh=None):
    threshold = deprecated_alias("threshold", threshold, "thresh", thresh)
    threshold = 0 if threshold is None else threshold
    kinds = (SparseTensor, sparse_tensor.SparseTensorValue)
    if not isinstance(a, kinds) and not isinstance(b, kinds):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if isinstance(a, kinds) and isinstance(b, kinds):
        a, b = _sparse(a), _sparse(b)
        threshold = ops.convert_to_tensor(threshold, dtype=a.values.dtype.real_dtype.base_dtype,
                                          name="thresh")
        found = gen_ops.SparseAdd(*_parts(a), *_parts(b), threshold)
        return SparseTensor(*found)
    if isinstance(b, kinds):
        a, b = b, a
    return gen_ops.SparseTensorDenseAdd(*_parts(_sparse(a)), b)


@export("sparse_reorder", "sparse.reorder")
def sparse_reorder(sp_input, name=None):
    sp_input = _sparse(sp_input)
    indices, values = gen_ops.SparseReorder(*_parts(sp_input), name=name)
    static = sp_input.get_shape()
    if static.is_fully_defined():
        return SparseTensor(indices, values, static.as_list())
    return SparseTensor(indices, values, array_ops.identity(sp_input.dense_shape))


@export("sparse_reshape", "sparse.reshape")
def sparse_reshape(sp_input, shape, name=None):
    sp_input = _sparse(sp_input)
    shape = math_ops.cast(shape, dtype=dtypes.int64)
    with ops.name_scope(name, "SparseReshape", [sp_input]) as scope:
        indices, new_shape = gen_ops.SparseReshape(sp_input.indices, sp_input.dense_shape, shape,
                                                   name=scope)
        known = tensor_util.constant_value_as_shape(shape)
        static = sp_input.get_shape()
        if known.ndims is not None and static.is_fully_defined() and not _is_computed(shape):
            dims = known.as_list()
            size = static.num_elements()
            if dims.count(None) == 1 and 0 not in dims:
                rest = 1
                for d in dims:
                    rest *= 1 if d is None else d
                dims[dims.index(None)] = size // rest
            if None not in dims:
                count = 1
                for d in dims:
                    count *= d
                if count != size:
                    raise ValueError("Cannot reshape a tensor with %d elements to shape %s (%d "
                                     "elements)." % (size, known.as_list(), count))
                new_shape = constant_op.constant(dims, dtype=dtypes.int64)
        return SparseTensor(indices, array_ops.identity(sp_input.values), new_shape)


def _is_computed(shape):
    """Whether a shape is packed from results of operations, which TensorFlow does not look into."""
    op = shape.op
    while op.type == "Cast":
        op = op.inputs[0].op
    return op.type == "Pack" and any(x.op.type != "Const" for x in op.inputs)


@export("sparse_split", "sparse.split")
def sparse_split(keyword_required=None, sp_input=None, num_split=None, axis=None, name=None,
                 split_dim=None):
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    axis = deprecated_alias("axis", axis, "split_dim", split_dim)
    for value, what in ((sp_input, "sp_input"), (num_split, "num_split"), (axis, "axis")):
        if value is None:
            raise ValueError("%s is required" % what)
    indices, values, shapes = gen_ops.SparseSplit(axis, *_parts(_sparse(sp_input)), num_split,
                                                  name=name)
    return [SparseTensor(*part) for part in zip(indices, values, shapes)]


@export("sparse_slice", "sparse.slice")
def sparse_slice(sp_input, start, size, name=None):
    sp_input = _sparse(sp_input)
    start = ops.convert_to_tensor(start, dtypes.int64)
    size = ops.convert_to_tensor(size, dtypes.int64)
    with ops.name_scope(name, "SparseSlice", [sp_input]) as scope:
        return SparseTensor(*gen_ops.SparseSlice(*_parts(sp_input), start, size, name=scope))


@export("sparse_to_dense")
def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0,
                    validate_indices=True, name=None):
    dense = gen_ops.SparseToDense(sparse_indices, output_shape, sparse_values,
                                  default_value=default_value, validate_indices=validate_indices,
                                  name=name)
    random_ops.as_vector(dense.op.inputs[1])
    return dense


@export("sparse_tensor_to_dense", "sparse.to_dense")
def sparse_tensor_to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    sp_input = _sparse(sp_input)
    if default_value is None:
        default_value = array_ops.zeros([], dtype=sp_input.dtype)
    dense = gen_ops.SparseToDense(sp_input.indices, sp_input.dense_shape, sp_input.values,
                                  default_value=default_value, validate_indices=validate_indices,
                                  name=name)
    dense.set_shape(sp_input.get_shape())
    return dense


def _reduction(op, sparse_output):
    def function(sp_input, axis=None, keepdims=None, reduction_axes=None, keep_dims=None):
        keepdims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
        axis = deprecated_alias("axis", axis, "reduction_axes", reduction_axes)
        found = getattr(gen_ops, op)(*_parts(sp_input), reduction_ops._axes(sp_input, axis),
                                     keepdims)
        return SparseTensor(*found) if sparse_output else found
    return function


sparse_reduce_sum = export("sparse_reduce_sum", "sparse.reduce_sum")(
    _reduction("SparseReduceSum", False))
sparse_reduce_sum_sparse = export("sparse_reduce_sum_sparse", "sparse.reduce_sum_sparse")(
    _reduction("SparseReduceSumSparse", True))
sparse_reduce_max = export("sparse_reduce_max", "sparse.reduce_max")(
    _reduction("SparseReduceMax", False))
sparse_reduce_max_sparse = export("sparse_reduce_max_sparse", "sparse.reduce_max_sparse")(
    _reduction("SparseReduceMaxSparse", True))


@export("sparse_retain", "sparse.retain")
def sparse_retain(sp_input, to_retain):
    sp_input = _sparse(sp_input)
    to_retain = ops.convert_to_tensor(to_retain)
    retain_shape = to_retain.get_shape()
    retain_shape.assert_has_rank(1)
    values_shape = sp_input.values.get_shape()
    if values_shape.ndims is not None:
        values_shape.dims[0].assert_is_compatible_with(retain_shape.dims[0])
    kept = array_ops.reshape(array_ops.where_v2(to_retain), [-1])
    return SparseTensor(array_ops.gather(sp_input.indices, kept),
                        array_ops.gather(sp_input.values, kept),
                        array_ops.identity(sp_input.dense_shape))


@export("sparse_fill_empty_rows", "sparse.fill_empty_rows")
def sparse_fill_empty_rows(sp_input, default_value, name=None):
    sp_input = _sparse(sp_input)
    with ops.name_scope(name, "SparseFillEmptyRows", [sp_input]):
        default_value = ops.convert_to_tensor(default_value, dtype=sp_input.values.dtype)
        indices, values, empty, _ = gen_ops.SparseFillEmptyRows(*_parts(sp_input), default_value)
        return SparseTensor(indices, values, sp_input.dense_shape), empty


@export("sparse_tensor_dense_matmul", "sparse.sparse_dense_matmul", "sparse.matmul")
def sparse_tensor_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    if isinstance(b, SparseTensor):
        with ops.name_scope(name, "SparseTensorDenseMatMul", [b, sp_a]):
            return array_ops.transpose(sparse_tensor_dense_matmul(
                b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a))
    sp_a = _sparse(sp_a)
    with ops.name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, sp_a.values, b]):
        b = ops.convert_to_tensor(b, name="b")
        return gen_ops.SparseTensorDenseMatMul(*_parts(sp_a), b=b, adjoint_a=adjoint_a,
                                               adjoint_b=adjoint_b)


@export("sparse_softmax", "sparse.softmax")
def sparse_softmax(sp_input, name=None):
    with ops.name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]):
        return SparseTensor(sp_input.indices, gen_ops.SparseSoftmax(*_parts(sp_input)),
                            sp_input.dense_shape)


@export("sparse_maximum", "sparse.maximum")
def sparse_maximum(sp_a, sp_b, name=None):
    with ops.name_scope(name, "SparseSparseMaximum", [sp_a.indices, sp_b.indices]) as scope:
        return SparseTensor(*gen_ops.SparseSparseMaximum(*_parts(sp_a), *_parts(sp_b),
                                                         name=scope), sp_a.dense_shape)


@export("sparse_minimum", "sparse.minimum")
def sparse_minimum(sp_a, sp_b, name=None):
    with ops.name_scope(name, "SparseSparseMinimum", [sp_a.indices, sp_b.indices]) as scope:
        return SparseTensor(*gen_ops.SparseSparseMinimum(*_parts(sp_a), *_parts(sp_b),
                                                         name=scope), sp_a.dense_shape)


@export("sparse_transpose", "sparse.transpose")
def sparse_transpose(sp_input, perm=None, name=None):
    with ops.name_scope(name, "SparseTranspose", [sp_input]):
        static = sp_input.get_shape()
        if perm is None:
            if static.ndims is not None:
                perm = np.arange(static.ndims - 1, -1, -1)
            else:
                count = array_ops.rank(sp_input)
                perm = (count - 1) - math_ops.range(count)
        turned = array_ops.transpose(array_ops.gather(
            array_ops.transpose(sp_input.indices), perm))
        known = tensor_util.constant_value(ops.convert_to_tensor(perm)) if not isinstance(
            perm, ops.Tensor) else tensor_util.constant_value(perm)
        if known is not None and static.is_fully_defined():
            dims = static.as_list()
            shape = [dims[int(p)] for p in known]
        else:
            shape = array_ops.gather(sp_input.dense_shape, perm)
        return sparse_reorder(SparseTensor(turned, sp_input.values, shape))
