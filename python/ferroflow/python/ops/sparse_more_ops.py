"""Sparse tensors from dense ones, indicators, crosses, and other shapes."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import sparse_ops
from ferroflow.python.util.api import export

SparseTensor = sparse_tensor.SparseTensor


@export("sparse.from_dense")
def from_dense(tensor, name=None):
    """The elements that are not zero."""
    with ops.name_scope(name, "dense_to_sparse"):
        tensor = ops.convert_to_tensor(tensor)
        zero = ops.convert_to_tensor("" if tensor.dtype == dtypes.string else 0, dtype=tensor.dtype)
        indices = gen_ops.Where(gen_ops.NotEqual(tensor, zero))
        values = array_ops.gather_nd(tensor, indices)
        return SparseTensor(indices, values, array_ops.shape(tensor, out_type=dtypes.int64))


@export("sparse.eye")
def sparse_eye(num_rows, num_columns=None, dtype=dtypes.float32, name=None):
    """Ones on the diagonal."""
    with ops.name_scope(name, "eye", [num_rows, num_columns]):
        rows = math_ops.cast(num_rows, dtypes.int64)
        columns = rows if num_columns is None else math_ops.cast(num_columns, dtypes.int64)
        count = math_ops.minimum(rows, columns)
        line = math_ops.range(count, dtype=dtypes.int64)
        return SparseTensor(array_ops.stack([line, line], axis=1),
                            array_ops.ones(array_ops.expand_dims(count, 0), dtype=dtype),
                            array_ops.stack([rows, columns]))


@export("sparse.expand_dims")
def sparse_expand_dims(sp_input, axis=None, name=None):
    """A new axis of size one."""
    rank = sp_input.dense_shape.get_shape().as_list()[0]
    axis = -1 if axis is None else axis
    place = axis if axis >= 0 else axis + rank + 1
    with ops.name_scope(name, "expand_dims", [sp_input]):
        column = array_ops.zeros([array_ops.shape(sp_input.indices)[0], 1], dtype=dtypes.int64)
        indices = array_ops.concat([sp_input.indices[:, :place], column, sp_input.indices[:, place:]], axis=1)
        shape = array_ops.concat([sp_input.dense_shape[:place], ops.convert_to_tensor([1], dtypes.int64),
                                  sp_input.dense_shape[place:]], axis=0)
        return SparseTensor(indices, sp_input.values, shape)


@export("sparse_reset_shape", "sparse.reset_shape")
def sparse_reset_shape(sp_input, new_shape=None):
    """The same elements in a larger shape, or in the smallest that holds them."""
    sp_input = sparse_ops._sparse(sp_input)
    if new_shape is None:
        largest = math_ops.reduce_max(sp_input.indices, axis=0)
        shape = math_ops.add(largest, ops.convert_to_tensor(1, dtypes.int64))
        shape = math_ops.maximum(shape, ops.convert_to_tensor(0, dtypes.int64))
    else:
        shape = math_ops.cast(ops.convert_to_tensor(new_shape, dtype=dtypes.int64), dtypes.int64)
        known, old = shape._constant_shape(), sp_input.get_shape()
        if known is not None and old.ndims is not None:
            if len(known) != old.ndims:
                raise ValueError("Rank of the new shape %s does not match that of the sparse tensor %s" % (known, old))
            if old.is_fully_defined() and any(a < b for a, b in zip(known, old.as_list())):
                raise ValueError("Requested shape should have dimension sizes >= the shape of `sp_input`. Got: %s, %s"
                                 % (known, old))
        shape = math_ops.maximum(shape, sp_input.dense_shape) if known is None else shape
    return SparseTensor(array_ops.identity(sp_input.indices), array_ops.identity(sp_input.values), shape)


@export("sparse_to_indicator", "sparse.to_indicator")
def sparse_to_indicator(sp_input, vocab_size, name=None):
    """A dense row of booleans: which ids are there."""
    sp_input = sparse_ops._sparse(sp_input)
    with ops.name_scope(name, "SparseToIndicator", [sp_input]) as scope:
        ones = gen_ops.Fill(array_ops.shape(sp_input.values), True)
        whole = SparseTensor(sp_input.indices, ones, sp_input.dense_shape)
        merged = sparse_merge(sp_input, whole, vocab_size, name=None)
        merged.indices.set_shape([None, sp_input.indices.get_shape().as_list()[-1]])
        return sparse_ops.sparse_tensor_to_dense(merged, default_value=False, validate_indices=False, name=scope)


@export("sparse_merge", "sparse.merge")
def sparse_merge(sp_ids, sp_values, vocab_size, name=None, already_sorted=False):
    """Values whose last index is an id."""
    ids = list(sp_ids) if isinstance(sp_ids, (list, tuple)) and not isinstance(
        sp_ids, sparse_tensor.SparseTensorValue) else [sp_ids]
    sizes = list(vocab_size) if isinstance(vocab_size, (list, tuple)) else [vocab_size]
    ids = [sparse_ops._sparse(x) for x in ids]
    values = sparse_ops._sparse(sp_values)
    with ops.name_scope(name, "SparseMerge", ids + [values]):
        columns = [array_ops.expand_dims(math_ops.cast(x.values, dtypes.int64), axis=1) for x in ids]
        indices = array_ops.concat([ids[0].indices[:, :-1]] + columns, axis=1)
        sizes = [math_ops.cast(x, dtypes.int64) for x in sizes]
        shape = array_ops.concat([ids[0].dense_shape[:-1], array_ops.stack(sizes)], axis=0)
        result = SparseTensor(indices, values.values, shape)
        if already_sorted:
            return result
        return sparse_ops.sparse_reorder(result)


def _crossed(inputs, hashed, num_buckets, hash_key, name):
    sparse = [x for x in inputs if isinstance(x, SparseTensor)]
    dense = [ops.convert_to_tensor(x) for x in inputs if not isinstance(x, SparseTensor)]
    out = dtypes.int64 if hashed else dtypes.string
    inner = dtypes.int64 if hashed else dtypes.string

    def plain(t):
        if t.dtype in (dtypes.string, dtypes.int64):
            return t
        return math_ops.cast(t, dtypes.int64)

    found = gen_ops.SparseCross(
        indices=[x.indices for x in sparse], values=[plain(x.values) for x in sparse],
        shapes=[x.dense_shape for x in sparse], dense_inputs=[plain(x) for x in dense], hashed_output=hashed,
        num_buckets=num_buckets, hash_key=0xDECAFCAFFE if hash_key is None else hash_key, out_type=out,
        internal_type=inner, name=name)
    return SparseTensor(*found)


@export("sparse.cross")
def sparse_cross(inputs, name=None):
    """All pairs of values of the inputs, as texts."""
    return _crossed(inputs, False, 0, None, name)


@export("sparse.cross_hashed")
def sparse_cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """All pairs of values of the inputs, as numbers of buckets."""
    return _crossed(inputs, True, num_buckets, hash_key, name)
