"""`tf.sets`: sets along the last axis of dense or sparse tensors."""

from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export

SparseTensor = sparse_tensor.SparseTensor


@export("sets.set_size", "sets.size")
def set_size(a, validate_indices=True):
    """The number of different elements in each row."""
    a = sparse_tensor.convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError("Expected `SparseTensor`, got %s." % a)
    return gen_ops.SetSize(a.indices, a.values, a.dense_shape, validate_indices)


def _operation(a, b, operation, validate_indices):
    a = sparse_tensor.convert_to_tensor_or_sparse_tensor(a, name="a")
    b = sparse_tensor.convert_to_tensor_or_sparse_tensor(b, name="b")
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError("Types don't match, %s vs %s." % (a.dtype, b.dtype))
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        if operation == "a-b":
            a, b, operation = b, a, "b-a"
        else:
            a, b = b, a
    if isinstance(a, SparseTensor):
        found = gen_ops.SparseToSparseSetOperation(
            a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, operation, validate_indices)
    elif isinstance(b, SparseTensor):
        found = gen_ops.DenseToSparseSetOperation(
            a, b.indices, b.values, b.dense_shape, operation, validate_indices)
    else:
        found = gen_ops.DenseToDenseSetOperation(a, b, operation, validate_indices)
    return SparseTensor(*found)


@export("sets.set_intersection", "sets.intersection")
def set_intersection(a, b, validate_indices=True):
    return _operation(a, b, "intersection", validate_indices)


@export("sets.set_difference", "sets.difference")
def set_difference(a, b, aminusb=True, validate_indices=True):
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


@export("sets.set_union", "sets.union")
def set_union(a, b, validate_indices=True):
    return _operation(a, b, "union", validate_indices)
