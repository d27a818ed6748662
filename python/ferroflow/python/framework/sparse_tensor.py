"""`SparseTensor`: indices, values and the dense shape."""

import collections

from ferroflow.python.framework import dtypes, ops, tensor_util

SparseTensorValue = collections.namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])


class SparseTensor:
    """A sparse tensor in coordinate form."""

    _is_tensor_like = True

    @classmethod
    def from_value(cls, value):
        if isinstance(value, SparseTensor):
            return value
        if not is_sparse(value):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {value}.")
        return cls(indices=value.indices, values=value.values, dense_shape=value.dense_shape)

    def __init__(self, indices, values, dense_shape):
        with ops.name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = ops.convert_to_tensor(indices, name="indices", dtype=dtypes.int64)
            self._values = ops.convert_to_tensor(values, name="values")
            self._dense_shape = ops.convert_to_tensor(dense_shape, name="dense_shape", dtype=dtypes.int64)
        # What a dataset knows about the shape beyond the graph.
        self._static_shape = None
        indices_shape = self._indices.shape.with_rank(2)
        dense = self._dense_shape.shape.with_rank(1)
        indices_shape.dims[0].assert_is_compatible_with(self._values.shape.with_rank(1).dims[0])
        indices_shape.dims[1].assert_is_compatible_with(dense.dims[0])

    indices = property(lambda self: self._indices)
    values = property(lambda self: self._values)
    dense_shape = property(lambda self: self._dense_shape)
    dtype = property(lambda self: self._values.dtype)
    op = property(lambda self: self._values.op)
    graph = property(lambda self: self._indices.graph)

    @property
    def shape(self):
        found = tensor_util.constant_value_as_shape(self._dense_shape)
        return found if self._static_shape is None else found.merge_with(self._static_shape)

    def get_shape(self):
        return self.shape

    def with_values(self, new_values):
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def eval(self, feed_dict=None, session=None):
        values = ops._eval_using_default_session([self.indices, self.values, self.dense_shape], feed_dict, self.graph, session)
        return SparseTensorValue(*values)

    def __str__(self):
        return f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"

    __repr__ = __str__

    def _with_dense(self, op_type, other, name):
        from ferroflow.python.ops import gen_ops

        with ops.name_scope(None, name, [self.indices, self.values, self.dense_shape, other]) as scope:
            other = ops.convert_to_tensor(other, dtype=self.dtype.base_dtype, name="y")
            values = getattr(gen_ops, op_type)(self.indices, self.values, self.dense_shape, other, name=scope)
            return SparseTensor(self.indices, values, self.dense_shape)

    def __mul__(self, other):
        return self._with_dense("SparseDenseCwiseMul", other, "mul")

    def __truediv__(self, other):
        return self._with_dense("SparseDenseCwiseDiv", other, "truediv")

    __div__ = __truediv__

    @staticmethod
    def _override_operator(operator, func):
        setattr(SparseTensor, operator, func)


def is_sparse(x):
    return isinstance(x, (SparseTensor, SparseTensorValue))


def convert_to_tensor_or_sparse_tensor(value, dtype=None, name=None):
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise RuntimeError(f"Sparse dtype mismatch. Requested: {dtype.name},  Actual: {value.dtype.name}")
        return value
    return ops.convert_to_tensor(value, dtype=dtype, name=name)


