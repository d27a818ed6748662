"""Functions that say into how many parts a variable is divided."""

import math

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import tensor_shape
from ferroflow.python.util.api import export


@export("fixed_size_partitioner")
def fixed_size_partitioner(num_shards, axis=0):
    def partitioner(shape, **unused):
        partitions = [1] * len(tensor_shape.as_shape(shape).as_list())
        partitions[axis] = min(num_shards, tensor_shape.as_shape(shape).as_list()[axis])
        return partitions
    return partitioner


def _element_size(dtype, bytes_per_string):
    return bytes_per_string if dtype == dtypes.string else dtype.size


@export("variable_axis_size_partitioner")
def variable_axis_size_partitioner(max_shard_bytes, axis=0, bytes_per_string_element=16,
                                   max_shards=None):
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("Both max_shard_bytes and bytes_per_string_element must be positive. "
                         "Currently: max_shard_bytes=%s and bytes_per_string_element=%s" % (
                             max_shard_bytes, bytes_per_string_element))
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape, dtype):
        shape = tensor_shape.as_shape(shape)
        if not shape.is_fully_defined():
            raise ValueError("shape must be a fully defined TensorShape. Currently: %s" % shape)
        dims = shape.as_list()
        partitions = [1] * len(dims)
        slices = max(1, shape.num_elements() // dims[axis])
        slice_bytes = slices * _element_size(dtypes.as_dtype(dtype), bytes_per_string_element)
        rows = max(1, math.floor(max_shard_bytes / slice_bytes))
        count = max(1, math.ceil(dims[axis] / rows))
        if max_shards:
            count = min(max_shards, count)
        partitions[axis] = int(count)
        return partitions
    return partitioner


@export("min_max_variable_partitioner")
def min_max_variable_partitioner(max_partitions=1, axis=0, min_slice_size=256 << 10,
                                 bytes_per_string_element=16):
    def partitioner(shape, dtype):
        shape = tensor_shape.as_shape(shape)
        if axis >= len(shape.as_list()):
            raise ValueError("Cannot partition variable along axis %d when shape is only %s" % (
                axis, shape))
        dtype = dtypes.as_dtype(dtype)
        total = shape.num_elements() * _element_size(dtype, bytes_per_string_element)
        partitions = [1] * len(shape.as_list())
        wanted = max(1, min(max_partitions, int(math.ceil(total / min_slice_size))))
        partitions[axis] = min(shape.as_list()[axis], wanted)
        return partitions
    return partitioner


@export("create_partitioned_variables")
def create_partitioned_variables(shape, slicing, initializer, dtype=dtypes.float32, trainable=True,
                                 collections=None, name=None, reuse=None):
    """The parts of a variable of this shape that is cut `slicing[i]` times along dimension i."""
    from ferroflow.python.ops import variable_scope
    if len(shape) != len(slicing):
        raise ValueError("The 'shape' and 'slicing' of a partitioned Variable must have the length: shape: %s, slicing: %s" % (
            shape, slicing))
    if len(shape) < 1:
        raise ValueError("A partitioned Variable must have rank at least 1: shape: %s" % shape)

    def partitioner(**unused):
        return slicing
    with variable_scope.variable_scope(name, "PartitionedVariable", reuse=reuse):
        return list(variable_scope.get_variable(
            "", shape=shape, dtype=dtype, initializer=initializer, trainable=trainable, partitioner=partitioner,
            collections=collections))
