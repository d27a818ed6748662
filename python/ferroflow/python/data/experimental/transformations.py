"""`tf.data.experimental`: transformations for `Dataset.apply`."""

import numpy as np

from ferroflow.python.data.ops.dataset_ops import AUTOTUNE, INFINITE, UNKNOWN  # noqa: F401
from ferroflow.python.data.ops.structured_function import StructuredFunction
from ferroflow.python.data.util import nest, structure
from ferroflow.python.framework import dtypes, ops, tensor_shape
from ferroflow.python.ops import array_ops, check_ops, math_ops

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


def scan(initial_state, scan_func):
    return lambda dataset: dataset.scan(initial_state, scan_func)


def unbatch():
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start=0):
    return lambda dataset: dataset.enumerate(start)


def take_while(predicate):
    return lambda dataset: dataset.take_while(predicate)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    calls = num_parallel_calls if num_parallel_calls is not None else num_parallel_batches
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None):
    del buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length, deterministic=not sloppy)


def batch_and_drop_remainder(batch_size):
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def ignore_errors(log_warning=False):
    return lambda dataset: dataset._op("IgnoreErrorsDataset", [], {"log_warning": log_warning})


def prefetch_to_device(device, buffer_size=None):
    del device
    return lambda dataset: dataset.prefetch(buffer_size)


def cardinality(dataset):
    return dataset.cardinality()


def dense_to_sparse_batch(batch_size, row_shape):
    """Batches of tensors of different sizes as sparse tensors."""
    def apply(dataset):
        leaf = dataset._element
        if type(leaf) is not structure.TensorLeaf:
            raise TypeError("`dense_to_sparse_batch` requires an input dataset whose elements have a single component")
        shape = tensor_shape.as_shape(row_shape)
        element = structure.SparseLeaf(leaf.dtype, tensor_shape.TensorShape([None]).concatenate(shape))
        row = ops.convert_to_tensor([-1 if d is None else d for d in shape.as_list()], dtype=dtypes.int64, name="row_shape")
        size = ops.convert_to_tensor(batch_size, dtype=dtypes.int64, name="batch_size")
        return dataset._op("DenseToSparseBatchDataset", [size, row], element=element)
    return apply


def group_by_window(key_func, reduce_func, window_size=None, window_size_func=None):
    """Collects elements by key, and makes a dataset of each group that is full."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Either `window_size` or `window_size_func` must be given, and not both")
    if window_size_func is None:
        def window_size_func(_):
            return ops.convert_to_tensor(window_size, dtype=dtypes.int64)

    def apply(dataset):
        number = structure.TensorLeaf(dtypes.int64, [])
        key = StructuredFunction(lambda *args: math_ops.cast(key_func(*args), dtypes.int64), "group_by_window", dataset._element)
        size = StructuredFunction(lambda k: math_ops.cast(window_size_func(k), dtypes.int64), "group_by_window", number)
        reduce = StructuredFunction(reduce_func, "group_by_window", number, structure.DatasetLeaf(dataset._element))
        if not isinstance(reduce.element, structure.DatasetLeaf):
            raise TypeError("The function `reduce_func` of group_by_window must return a dataset")
        attrs = {"key_func": key.attr, "reduce_func": reduce.attr, "window_size_func": size.attr}
        return dataset._op("GroupByWindowDataset", [key.captured, reduce.captured, size.captured], attrs, reduce.element.element)
    return apply


def bucket_by_sequence_length(element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                              padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False):
    """Batches of elements of similar length."""
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("bucket_batch_sizes needs one size more than there are bucket_boundaries")
    boundaries = np.array([np.iinfo(np.int32).min] + list(bucket_boundaries), np.int32)
    limits = np.array(list(bucket_boundaries) + [np.iinfo(np.int32).max], np.int32)
    sizes = np.array(bucket_batch_sizes, np.int64)

    def bucket(*args):
        length = math_ops.cast(element_length_func(*args), dtypes.int32)
        inside = math_ops.logical_and(math_ops.less_equal(boundaries, length), math_ops.less(length, limits))
        return math_ops.reduce_min(array_ops.where(inside))

    def size_of(number):
        return array_ops.gather(ops.convert_to_tensor(sizes), number)

    def padded_to_boundary(shapes, number):
        # The last bucket has no boundary.
        last = ops.convert_to_tensor(len(bucket_batch_sizes) - 1, dtype=dtypes.int64)
        with ops.control_dependencies([check_ops.assert_less(number, last)]):
            length = math_ops.cast(array_ops.gather(ops.convert_to_tensor(limits), number), dtypes.int64) - 1
        def one(shape):
            dims = tensor_shape.as_shape(shape).as_list()
            return array_ops.stack([length if d is None else ops.convert_to_tensor(d, dtype=dtypes.int64) for d in dims])
        return nest.map_structure(one, shapes)

    def batched(number, group):
        size = size_of(number)
        if no_padding:
            return group.batch(size, drop_remainder=drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = nest.map_structure(lambda leaf: leaf.shapes, group._element)
        if pad_to_bucket_boundary:
            shapes = padded_to_boundary(shapes, number)
        return group.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

    return group_by_window(bucket, batched, window_size_func=size_of)
