"""`tf.data.Dataset`: pipelines of elements."""

import numpy as np

from ferroflow.python.data.ops import iterator_ops
from ferroflow.python.data.ops.options import Options
from ferroflow.python.data.ops.structured_function import StructuredFunction
from ferroflow.python.data.util import nest, structure
from ferroflow.python.framework import constant_op, dtypes, ops, random_seed, tensor_shape, tensor_util
from ferroflow.python.framework.sparse_tensor import SparseTensor
from ferroflow.python.ops import array_ops, gen_ops, math_ops

AUTOTUNE = -1
INFINITE = -1
UNKNOWN = -2


def _int64(value, name):
    return ops.convert_to_tensor(value, dtype=dtypes.int64, name=name)


def _seeds(seed):
    """The two seeds of an op, never both zero by accident."""
    seed, seed2 = random_seed.get_seed(seed)
    seed = constant_op.constant(0, dtype=dtypes.int64, name="seed") if seed is None else _int64(seed, "seed")
    if seed2 is None:
        return seed, constant_op.constant(0, dtype=dtypes.int64, name="seed2")
    with ops.name_scope("seed2") as scope:
        seed2 = ops.convert_to_tensor(seed2, dtype=dtypes.int64)
        zeros = [math_ops.equal(seed, 0), math_ops.equal(seed2, 0)]
        both_zero = ops.apply_op("LogicalAnd", None, zeros).outputs[0]
        return seed, array_ops.where_v2(both_zero, constant_op.constant(2**31 - 1, dtype=dtypes.int64), seed2, name=scope)


class DatasetV2(structure.Typed):
    """Elements of one structure, made by an operation of the graph."""

    def __init__(self, variant_tensor, element, options=None):
        self._variant_tensor, self._element = variant_tensor, element
        self._options = options or Options()

    def _op(self, kind, inputs, attrs=None, element=None, name=None, types="output_types"):
        """A dataset from an operation that takes this one first."""
        element = self._element if element is None else element
        op = _dataset_op(kind, [self._variant_tensor] + inputs, element, attrs, name, types)
        return DatasetV1(op, element, self._options)

    # Types.

    @property
    def element_spec(self):
        return nest.map_structure(lambda leaf: leaf.spec, self._element)

    def __repr__(self):
        return "<%s shapes: %s, types: %s>" % (type(self).__name__, self.output_shapes, self.output_types)

    def __iter__(self):
        raise RuntimeError("`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function.")

    def __bool__(self):
        return True

    def options(self):
        return self._options

    def with_options(self, options):
        """The dataset with options. They steer performance only and need no operation here."""
        return DatasetV1(self._variant_tensor, self._element, self._options.merge(options))

    # Sources.

    @staticmethod
    def from_tensors(tensors, name=None):
        """A dataset with one element."""
        element_value = _normalized(tensors)
        element = structure.of_value(element_value)
        flat = structure.to_tensors(element, element_value)
        op = _dataset_op("TensorDataset", [flat], element, None, name, None)
        return DatasetV1(op, element)

    @staticmethod
    def from_tensor_slices(tensors, name=None, is_files=False):
        """A dataset with an element for each slice along the first dimension."""
        value = _normalized(tensors)
        batched = structure.of_value(value)
        for leaf in nest.flatten(batched):
            if leaf.shapes.ndims == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        element = nest.map_structure(lambda leaf: leaf.unbatched(), batched)
        size = tensor_shape.Dimension(None)
        for leaf in nest.flatten(batched):
            if leaf.shapes.ndims is not None:
                size = size.merge_with(leaf.shapes.dims[0])
        op = _dataset_op("TensorSliceDataset", [structure.to_rows(batched, value)], element, {"is_files": is_files}, name, None)
        return DatasetV1(op, element)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor):
        """The rows of a sparse tensor, each as a tuple of indices, values and the dense shape."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError(f"`sparse_tensor` must be a `tf.sparse.SparseTensor`, not {type(sparse_tensor)}")
        rank = sparse_tensor.indices.shape.dims[1].value
        if rank is None:
            rank = sparse_tensor.dense_shape.shape.dims[0].value
        rank = None if rank is None else rank - 1
        element = (structure.TensorLeaf(dtypes.int64, [None, rank]), structure.TensorLeaf(sparse_tensor.dtype, [None]),
                   structure.TensorLeaf(dtypes.int64, [rank]))
        parts = [sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape]
        return DatasetV1(ops.apply_op("SparseTensorSliceDataset", None, parts).outputs[0], element)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """A dataset of what a Python generator yields."""
        from ferroflow.python.data.ops import from_generator

        if output_signature is None:
            if output_types is None:
                raise TypeError("Either `output_signature` or `output_types` must be specified")
            element = structure.of_types_and_shapes(output_types, output_shapes)
        elif output_types is None and output_shapes is None:
            element = structure.of_specs(output_signature)
        else:
            raise TypeError("The `output_types` argument and the `output_signature` argument cannot both be given")
        return DatasetV1(*from_generator.make(generator, element, args, name))

    @staticmethod
    def range(*args, **kwargs):
        """The numbers from start to stop: `range(stop)`, `range(start, stop)`, `range(start, stop, step)`."""
        output_type = kwargs.pop("output_type", dtypes.int64)
        start, step = 0, 1
        if len(args) == 1:
            (stop,) = args
        elif len(args) == 2:
            start, stop = args
        elif len(args) == 3:
            start, stop, step = args
        else:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        inputs = [_int64(start, "start"), _int64(stop, "stop"), _int64(step, "step")]
        element = structure.TensorLeaf(output_type, [])
        return DatasetV1(_dataset_op("RangeDataset", inputs, element), element)

    @staticmethod
    def zip(datasets=None, *more, name=None):
        """A dataset of tuples of the elements of several datasets."""
        if more:
            datasets = (datasets,) + more
        if isinstance(datasets, list):
            raise TypeError("Dataset.zip takes a structure of datasets: a tuple or dict, not a list")
        flat = nest.flatten(datasets)
        for ds in flat:
            if not isinstance(ds, DatasetV2):
                raise TypeError(f"Dataset.zip takes datasets, not {type(ds)}")
        element = nest.pack_sequence_as(datasets, [_Boxed(ds._element) for ds in flat])
        element = _unboxed(element)
        op = _dataset_op("ZipDataset", [[ds._variant_tensor for ds in flat]], element, None, name)
        return DatasetV1(op, element)

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """The names of the files that match a pattern."""
        with ops.name_scope("list_files"):
            shuffle = True if shuffle is None else shuffle
            file_pattern = ops.convert_to_tensor(file_pattern, dtype=dtypes.string, name="file_pattern")
            matching = ops.apply_op("MatchingFiles", None, [file_pattern]).outputs[0]
            dataset = DatasetV2.from_tensor_slices(matching, is_files=True)
            if shuffle:
                size = gen_ops.maximum(array_ops.shape(matching, out_type=dtypes.int64)[0], 1)
                dataset = dataset.shuffle(size, seed=seed)
            return dataset

    # Transformations.

    def concatenate(self, dataset, name=None):
        nest.assert_same_structure(self._element, dataset._element)
        element = nest.map_structure(lambda a, b: a.merged(b), self._element, dataset._element)
        return self._op("ConcatenateDataset", [dataset._variant_tensor], element=element, name=name)

    def prefetch(self, buffer_size=None, name=None):
        buffer_size = _int64(AUTOTUNE if buffer_size is None else buffer_size, "buffer_size")
        with ops.colocate_with(self._variant_tensor):
            return self._op("PrefetchDataset", [buffer_size], name=name)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """Elements in random order, from a buffer of `buffer_size`."""
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        buffer_size = _int64(buffer_size, "buffer_size")
        seed, seed2 = _seeds(seed)
        return self._op("ShuffleDataset", [buffer_size, seed, seed2], {"reshuffle_each_iteration": again}, name=name)

    def repeat(self, count=None, name=None):
        return self._op("RepeatDataset", [_int64(-1 if count is None else count, "count")], name=name)

    def enumerate(self, start=0, name=None):
        numbers = DatasetV2.range(start, np.iinfo(np.int64).max)
        leaf = structure.TensorLeaf(dtypes.int64, [])
        # Numbers need no replication when the pipeline is split.
        op = _dataset_op("RewriteDataset", [numbers._variant_tensor, "replicate_on_split"], leaf)
        return DatasetV2.zip((DatasetV1(op, leaf), self))

    def take(self, count, name=None):
        return self._op("TakeDataset", [_int64(count, "count")], name=name)

    def skip(self, count, name=None):
        return self._op("SkipDataset", [_int64(count, "count")], name=name)

    def shard(self, num_shards, index, name=None):
        """Every `num_shards`-th element, beginning with `index`."""
        n, i = num_shards, index
        if isinstance(n, (int, np.integer)) and n < 1:
            raise ValueError(f"Invalid `num_shards`: it must be >= 1, not {n}")
        if isinstance(i, (int, np.integer)) and isinstance(n, (int, np.integer)) and not 0 <= i < n:
            raise ValueError(f"Invalid `index`: it must be in [0, {n}), not {i}")
        return self._op("ShardDataset", [_int64(num_shards, "num_shards"), _int64(index, "index")], name=name)

    def cache(self, filename="", name=None):
        filename = ops.convert_to_tensor(filename, dtype=dtypes.string, name="filename")
        return self._op("CacheDataset", [filename], name=name)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        del num_parallel_calls, deterministic
        batch_size = _int64(batch_size, "batch_size")
        drop = ops.convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder")
        known = None
        if tensor_util.constant_value(drop) is not None and bool(tensor_util.constant_value(drop)):
            known = tensor_util.constant_value(batch_size)
            known = None if known is None else int(known)
        element = nest.map_structure(lambda leaf: leaf.batched(known), self._element)
        return self._op("BatchDatasetV2", [batch_size, drop], element=element, name=name)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Batches of elements that are padded to the same shape."""
        leaves = nest.flatten(self._element)
        if structure.has_sparse(self._element):
            raise TypeError("Batching of padded sparse tensors is not currently supported")
        if padded_shapes is None:
            for leaf in leaves:
                if leaf.flat_shape.ndims is None:
                    raise ValueError("You must provide `padded_shapes` argument because component has unknown rank.")
            shapes = [leaf.flat_shape for leaf in leaves]
        else:
            shapes = nest.flatten_up_to(self._element, padded_shapes) if nest.is_nested(self._element) else [padded_shapes]
        batch = _int64(batch_size, "batch_size")
        shape_tensors, known_shapes = [], []
        for shape in shapes:
            if isinstance(shape, ops.Tensor):
                shape_tensors.append(math_ops.cast(shape, dtypes.int64))
                known_shapes.append(tensor_util.constant_value_as_shape(shape))
                continue
            shape = tensor_shape.as_shape(shape)
            known_shapes.append(shape)
            shape_tensors.append(ops.convert_to_tensor([-1 if d is None else d for d in shape.as_list()], dtype=dtypes.int64))
        if padding_values is None:
            values = [None] * len(leaves)
        elif nest.is_nested(self._element) and nest.is_nested(padding_values):
            values = nest.flatten_up_to(self._element, padding_values)
        else:
            values = [padding_values] * len(leaves)
        pads = []
        for leaf, value in zip(leaves, values):
            if value is None:
                value = "" if leaf.flat_type == dtypes.string else np.zeros([], leaf.flat_type.as_numpy_dtype)
            pads.append(ops.convert_to_tensor(value, dtype=leaf.flat_type, name="padding_value"))
        drop = ops.convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder")
        known = None
        if tensor_util.constant_value(drop) is not None and bool(tensor_util.constant_value(drop)):
            known = tensor_util.constant_value(batch)
            known = None if known is None else int(known)
        made = [structure.TensorLeaf(leaf.flat_type, tensor_shape.TensorShape([known]).concatenate(s)) for leaf, s in zip(leaves, known_shapes)]
        element = nest.pack_sequence_as(self._element, made)
        op = _dataset_op("PaddedBatchDatasetV2", [self._variant_tensor, batch, shape_tensors, pads, drop], element, None, name, None)
        return DatasetV1(op, element, self._options)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, name=None):
        """The results of a function for each element."""
        fn = StructuredFunction(map_func, "map", self._element)
        if num_parallel_calls is None:
            return self._op("MapDataset", [fn.captured], {"f": fn.attr}, fn.element, name)
        calls = _int64(num_parallel_calls, "num_parallel_calls")
        order = "default" if deterministic is None else "true" if deterministic else "false"
        return self._op("ParallelMapDatasetV2", [fn.captured, calls], {"f": fn.attr, "deterministic": order}, fn.element, name)

    def map_with_legacy_function(self, map_func, num_parallel_calls=None, deterministic=None):
        return self.map(map_func, num_parallel_calls, deterministic)

    def flat_map(self, map_func, name=None):
        """The elements of the datasets that a function makes of each element."""
        fn = self._dataset_function(map_func, "flat_map")
        return self._op("FlatMapDataset", [fn.captured], {"f": fn.attr}, fn.element.element, name)

    def _dataset_function(self, map_func, transformation):
        fn = StructuredFunction(map_func, transformation, self._element)
        if not isinstance(fn.element, structure.DatasetLeaf):
            raise TypeError(f"The function of {transformation} must return a dataset")
        return fn

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        """As flat_map, but from `cycle_length` datasets in turn."""
        fn = self._dataset_function(map_func, "interleave")
        if cycle_length is None:
            cycle_length = AUTOTUNE if num_parallel_calls is not None else 1
        cycle = _int64(cycle_length, "cycle_length")
        block = _int64(1 if block_length is None else block_length, "block_length")
        if num_parallel_calls is None:
            return self._op("InterleaveDataset", [fn.captured, cycle, block], {"f": fn.attr}, fn.element.element, name)
        order = "default" if deterministic is None else "true" if deterministic else "false"
        inputs = [fn.captured, cycle, block]
        inputs += [_int64(AUTOTUNE, "buffer_output_elements"), _int64(AUTOTUNE, "prefetch_input_elements"), _int64(num_parallel_calls, "num_parallel_calls")]
        return self._op("ParallelInterleaveDatasetV4", inputs, {"f": fn.attr, "deterministic": order}, fn.element.element, name)

    def filter(self, predicate, name=None):
        """The elements that satisfy a predicate."""
        fn = StructuredFunction(predicate, "filter", self._element)
        leaf = fn.element
        if not isinstance(leaf, structure.TensorLeaf) or leaf.dtype != dtypes.bool or leaf.shape.ndims not in (None, 0):
            raise ValueError("Invalid `predicate`: it must return a scalar boolean tensor")
        return self._op("FilterDataset", [fn.captured], {"predicate": fn.attr}, name=name)

    filter_with_legacy_function = filter

    def apply(self, transformation_func):
        dataset = transformation_func(self)
        if not isinstance(dataset, DatasetV2):
            raise TypeError(f"`transformation_func` must return a Dataset object, not {type(dataset)}")
        return dataset

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Datasets of `size` elements each."""
        shift = size if shift is None else shift
        inputs = [_int64(size, "size"), _int64(shift, "shift"), _int64(stride, "stride")]
        inputs.append(ops.convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder"))
        element = nest.map_structure(structure.DatasetLeaf, self._element)
        return self._op("WindowDataset", inputs, element=element, name=name)

    def unbatch(self, name=None):
        """The rows of each element."""
        if structure.has_sparse(self._element):
            normalized = self.map(lambda *args: tuple(structure.to_rows(self._element, _normalize(*args))))
        else:
            normalized = self.map(_normalize)
        element = nest.map_structure(lambda leaf: leaf.unbatched(), self._element)
        return normalized._op("UnbatchDataset", [], element=element, name=name)

    def scan(self, initial_state, scan_func, name=None):
        """The outputs of `(state, element) -> (state, output)`, beginning with a state."""
        state = structure.convert(initial_state)
        state_element = structure.of_value(state)
        fn = StructuredFunction(scan_func, "scan", state_element, self._element)
        if not isinstance(fn.element, tuple) or len(fn.element) != 2:
            raise TypeError("The function of scan must return a pair: the new state and the output")
        flat = structure.to_tensors(state_element, state)
        return self._op("ScanDataset", [flat, fn.captured], {"f": fn.attr, "preserve_cardinality": True}, fn.element[1], name)

    def take_while(self, predicate, name=None):
        fn = StructuredFunction(predicate, "take_while", self._element)
        return self._op("TakeWhileDataset", [fn.captured], {"predicate": fn.attr}, name=name)

    def reduce(self, initial_state, reduce_func, name=None):
        """The last state of `(state, element) -> state`: a tensor of the graph."""
        state = structure.convert(initial_state)
        element = structure.of_value(state)
        fn = StructuredFunction(reduce_func, "reduce", element, self._element)
        nest.assert_same_structure(element, fn.element)
        attrs = {"f": fn.attr, "output_types": structure.flat_types(fn.element), "output_shapes": structure.flat_shapes(fn.element)}
        inputs = [self._variant_tensor, structure.to_tensors(element, state), fn.captured]
        return structure.from_tensors(fn.element, ops.apply_op("ReduceDataset", name, inputs, attrs).outputs)

    def unique(self, name=None):
        return self._op("UniqueDataset", [], name=name)

    def ignore_errors(self, log_warning=False, name=None):
        return self._op("IgnoreErrorsDataset", [], {"log_warning": log_warning}, name=name)

    def get_single_element(self, name=None):
        from ferroflow.python.data.experimental import sources

        return sources.get_single_element(self)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        from ferroflow.python.data.experimental import transformations

        return self.apply(transformations.group_by_window(key_func, reduce_func, window_size, window_size_func))

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False,
                                  name=None):
        from ferroflow.python.data.experimental import transformations

        return self.apply(transformations.bucket_by_sequence_length(
            element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values, pad_to_bucket_boundary,
            no_padding, drop_remainder))

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        from ferroflow.python.data.experimental import mixing

        return self.apply(mixing.rejection_resample(class_func, target_dist, initial_dist, seed))

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False):
        from ferroflow.python.data.experimental import mixing

        return mixing.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        from ferroflow.python.data.experimental import mixing

        return mixing.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        from ferroflow.python.data.experimental import sources

        return sources.RandomDataset(seed)

    @staticmethod
    def counter(start=0, step=1, dtype=dtypes.int64, name=None):
        from ferroflow.python.data.experimental import sources

        return sources.Counter(start, step, dtype)

    def filter_with_legacy_function(self, predicate):
        return self.filter(predicate)

    def sparse_batch(self, batch_size, row_shape, name=None):
        from ferroflow.python.data.experimental import transformations

        return self.apply(transformations.dense_to_sparse_batch(batch_size, row_shape))

    def cardinality(self, name=None):
        return ops.apply_op("DatasetCardinality", name, [self._variant_tensor]).outputs[0]

    # Iterators.

    def make_one_shot_iterator(self):
        return iterator_ops.one_shot(self)

    _make_one_shot_iterator = make_one_shot_iterator

    def make_initializable_iterator(self, shared_name=None):
        return iterator_ops.initializable(self, shared_name)

    _make_initializable_iterator = make_initializable_iterator


class DatasetV1(DatasetV2):
    """The class of all datasets that the functions make."""


class _VariantDataset(DatasetV1):
    """A dataset from its variant."""


class _Boxed:
    def __init__(self, element):
        self.element = element


def _unboxed(value):
    if isinstance(value, _Boxed):
        return value.element
    if isinstance(value, dict):
        return type(value)((k, _unboxed(v)) for k, v in value.items())
    parts = [_unboxed(v) for v in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _normalize(*args):
    return args[0] if len(args) == 1 else args


_normalize.__name__ = "normalize"


def _normalized(tensors):
    with ops.name_scope("normalize_element"):
        return structure.convert(tensors)


def _dataset_op(kind, inputs, element, attrs=None, name=None, types="output_types"):
    """The variant of a dataset operation. Some ops infer their types from their inputs."""
    all_attrs = dict(attrs or {})
    all_attrs["output_shapes"] = structure.flat_shapes(element)
    if types:
        all_attrs[types] = structure.flat_types(element)
    return ops.apply_op(kind, name, inputs, all_attrs).outputs[0]


Dataset = DatasetV1


def make_one_shot_iterator(dataset):
    """An iterator that begins by itself and passes the dataset once."""
    return iterator_ops.one_shot(dataset)


def make_initializable_iterator(dataset, shared_name=None):
    """An iterator that `sess.run(iterator.initializer)` starts."""
    return iterator_ops.initializable(dataset, shared_name)


def get_legacy_output_types(dataset_or_iterator):
    return dataset_or_iterator.output_types


def get_legacy_output_shapes(dataset_or_iterator):
    return dataset_or_iterator.output_shapes


def get_legacy_output_classes(dataset_or_iterator):
    return dataset_or_iterator.output_classes
