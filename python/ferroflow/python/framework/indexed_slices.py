"""`IndexedSlices`: rows of a tensor, as gradients of gathers are."""

import collections

from ferroflow.python.framework import ops, tensor_shape

IndexedSlicesValue = collections.namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])


class IndexedSlices:
    """The rows `values` of a tensor at `indices`."""

    def __init__(self, values, indices, dense_shape=None):
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    values = property(lambda self: self._values)
    indices = property(lambda self: self._indices)
    dense_shape = property(lambda self: self._dense_shape)
    dtype = property(lambda self: self._values.dtype)
    name = property(lambda self: self._values.name)
    device = property(lambda self: self._values.device)
    op = property(lambda self: self._values.op)
    graph = property(lambda self: self._values.graph)

    @property
    def shape(self):
        if self._dense_shape is None:
            return tensor_shape.TensorShape(None)
        from ferroflow.python.framework import tensor_util

        return tensor_util.constant_value_as_shape(self._dense_shape)

    def get_shape(self):
        return self.shape

    def __str__(self):
        shape = f", dense_shape={self._dense_shape}" if self._dense_shape is not None else ""
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    __repr__ = __str__

    def __neg__(self):
        return IndexedSlices(-self.values, self.indices, self.dense_shape)


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    if isinstance(value, IndexedSlices):
        if dtype is not None and not value.dtype.is_compatible_with(dtype):
            raise ValueError(f"Incompatible tensor conversion requested to `dtype` {dtype} for IndexedSlices with dtype {value.dtype.name}")
        return value
    return ops.convert_to_tensor(value, dtype=dtype, name=name)


def internal_convert_n_to_tensor_or_indexed_slices(values, dtype=None, name=None, as_ref=False):
    del as_ref
    return [
        None if v is None else convert_to_tensor_or_indexed_slices(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]


convert_n_to_tensor_or_indexed_slices = internal_convert_n_to_tensor_or_indexed_slices


def _to_tensor(value, dtype=None, name=None, as_ref=False):
    """The dense tensor that the rows belong to; rows with the same index are added."""
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    from ferroflow.python.ops import gen_ops

    return gen_ops.UnsortedSegmentSum(value.values, value.indices, value.dense_shape[0], name=name)


ops.register_tensor_conversion_function(IndexedSlices, _to_tensor)
