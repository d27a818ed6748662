"""`tf.data.experimental`: datasets made of several others, groups, and unique elements."""

import numpy as np

from ferroflow.python.data.experimental.sources import RandomDataset
from ferroflow.python.data.ops.dataset_ops import DatasetV1, DatasetV2, _dataset_op
from ferroflow.python.data.ops.structured_function import StructuredFunction
from ferroflow.python.data.util import nest, structure
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import array_ops, gen_ops, math_ops


def _interleaved(selector, datasets, stop_on_empty_dataset):
    """Takes each element from the dataset whose number the selector gives."""
    element = datasets[0]._element
    for other in datasets[1:]:
        nest.assert_same_structure(element, other._element)
        element = nest.map_structure(lambda a, b: a.merged(b), element, other._element)
    inputs = [selector._variant_tensor, [d._variant_tensor for d in datasets]]
    attrs = {"stop_on_empty_dataset": True} if stop_on_empty_dataset else {}
    return DatasetV1(_dataset_op("DirectedInterleaveDataset", inputs, element, attrs), element)


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    """Elements of datasets in the order that `choice_dataset` says."""
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if structure.flat_types(choice_dataset._element) != [dtypes.int64] or choice_dataset._element.shapes.ndims not in (0, None):
        raise TypeError("Elements of `choice_dataset` must be scalar `tf.int64` tensors")
    return _interleaved(choice_dataset, list(datasets), stop_on_empty_dataset)


def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False):
    """Elements of datasets, each from one that is drawn by weight."""
    datasets = list(datasets) if not isinstance(datasets, DatasetV2) else datasets
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if len(datasets) == 1:
        return datasets[0]
    count = len(datasets)
    if isinstance(weights, DatasetV2):
        logits = DatasetV1.zip((weights.map(lambda *p: math_ops.log(p)[None, ...]), RandomDataset(seed).batch(2)))
        selector = logits.map(lambda p, s: _drawn(p, s))
        return _interleaved(selector, datasets, stop_on_empty_dataset)
    if weights is None:
        logits = np.zeros([1, count], np.float32)
    else:
        weights = ops.convert_to_tensor(weights, name="weights")
        if weights.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError("`weights` must be convertible to a tensor of `tf.float32` or `tf.float64` elements")
        if not weights.get_shape().is_compatible_with([count]):
            raise ValueError(f"`weights` must have the same length as `datasets`: {weights.get_shape()} for {count} datasets")
        logits = array_ops.expand_dims(math_ops.log(weights, name="logits"), 0)
    selector = RandomDataset(seed).batch(2).map(lambda seeds: _drawn(logits, seeds))
    return _interleaved(selector, datasets, stop_on_empty_dataset)


def _drawn(logits, seeds):
    drawn = gen_ops.StatelessMultinomial(logits, 1, seeds, dtypes.int64)
    return array_ops.squeeze(drawn, axis=[0, 1])


class Reducer:
    """Three functions that reduce the elements of a group to one."""

    def __init__(self, init_func, reduce_func, finalize_func):
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func, reducer):
    """Reduces all elements with the same key to one."""
    def apply(dataset):
        number = structure.TensorLeaf(dtypes.int64, [])
        key = StructuredFunction(lambda *args: math_ops.cast(key_func(*args), dtypes.int64), "group_by_reducer", dataset._element)
        init = StructuredFunction(reducer.init_func, "group_by_reducer", number)
        reduce = StructuredFunction(reducer.reduce_func, "group_by_reducer", init.element, dataset._element)
        finalize = StructuredFunction(reducer.finalize_func, "group_by_reducer", init.element)
        attrs = {"key_func": key.attr, "init_func": init.attr, "reduce_func": reduce.attr, "finalize_func": finalize.attr}
        inputs = [key.captured, init.captured, reduce.captured, finalize.captured]
        return dataset._op("GroupByReducerDataset", inputs, attrs, finalize.element)
    return apply


def unique():
    """Leaves out elements that came before."""
    return lambda dataset: dataset._op("UniqueDataset", [])


def assert_cardinality(expected_cardinality):
    """Fails when a dataset has another number of elements."""
    def apply(dataset):
        count = ops.convert_to_tensor(expected_cardinality, dtype=dtypes.int64, name="expected_cardinality")
        return dataset._op("AssertCardinalityDataset", [count])
    return apply


def copy_to_device(target_device, source_device="/cpu:0"):
    """Elements go where they are used, so nothing is to be done."""
    del target_device, source_device
    return lambda dataset: dataset


def rejection_resample(class_func, target_dist, initial_dist=None, seed=None):
    """Drops elements at random until their classes have the wanted distribution. Gives pairs of class and element."""
    def apply(dataset):
        target = ops.convert_to_tensor(target_dist, name="target_dist")
        target = math_ops.cast(target, dtypes.float32)
        classes = dataset.map(lambda *args: math_ops.cast(class_func(*args), dtypes.int64))
        tiny = np.finfo(np.float32).tiny
        if initial_dist is not None:
            initial = math_ops.cast(ops.convert_to_tensor(initial_dist, name="initial_dist"), dtypes.float32)
            dists = DatasetV1.from_tensors(initial).repeat()
        else:
            count = target.get_shape().as_list()[0]
            seen = array_ops.fill([count], np.int64(16))

            def update(counts, c):
                counts = counts + array_ops.one_hot(c, count, dtype=dtypes.int64)
                dist = math_ops.cast(counts, dtypes.float32) / math_ops.cast(math_ops.reduce_sum(counts), dtypes.float32)
                return counts, dist
            dists = classes.scan(seen, update)

        def accepted(dist, c):
            ratio = target / math_ops.maximum(dist, tiny)
            return math_ops.cast(array_ops.gather(ratio / math_ops.reduce_max(ratio), c), dtypes.float32)

        from ferroflow.python.ops import random_ops
        whole = DatasetV1.zip((dists, classes, dataset))
        kept = whole.filter(lambda dist, c, *data: random_ops.random_uniform([], seed=seed, dtype=dtypes.float32) < accepted(dist, c))
        return kept.map(lambda dist, c, *data: (c, data[0] if len(data) == 1 else data))
    return apply
