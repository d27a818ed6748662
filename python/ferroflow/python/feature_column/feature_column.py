"""Feature columns: how raw features become the inputs of a model."""

import collections
import math

import numpy as np

from ferroflow.python.framework import dtypes, ops, sparse_tensor
from ferroflow.python.ops import array_ops, embedding_ops, gen_ops, init_ops, lookup_ops, math_ops, parsing_ops, variable_scope
from ferroflow.python.platform import tf_logging as logging


def _to_sparse(tensor, ignore_value=None):
    """A SparseTensor without the missing values of a tensor: -1, or the empty text."""
    if isinstance(tensor, sparse_tensor.SparseTensor):
        return tensor
    tensor = ops.convert_to_tensor(tensor)
    with ops.name_scope(None, "to_sparse_input", (tensor,)):
        if tensor.get_shape().ndims == 1:
            tensor = array_ops.expand_dims(tensor, -1)
        if ignore_value is None:
            ignore_value = "" if tensor.dtype == dtypes.string else -1
        indices = array_ops.where(math_ops.not_equal(tensor, ops.convert_to_tensor(ignore_value, dtype=tensor.dtype)), name="indices")
        return sparse_tensor.SparseTensor(
            indices=indices, values=array_ops.gather_nd(tensor, indices, name="values"), dense_shape=array_ops.shape(tensor, out_type=dtypes.int64, name="dense_shape")
        )


class _Transformed:
    """The features of one model, with the columns that were computed from them."""

    def __init__(self, features):
        self._features, self._made = features, {}

    def get(self, column):
        if isinstance(column, str):
            return self._raw(column)
        key = id(column) if not isinstance(column, tuple) else column
        if key not in self._made:
            self._made[key] = column._transform(self)
        return self._made[key]

    def _raw(self, key):
        if key not in self._features:
            raise ValueError("Feature {} is not in features dictionary.".format(key))
        value = self._features[key]
        if not isinstance(value, sparse_tensor.SparseTensor):
            value = ops.convert_to_tensor(value)
            if value.get_shape().ndims == 0:
                raise ValueError("Feature (key: {}) cannot have rank 0. Given: {}".format(key, value))
            if value.get_shape().ndims == 1:
                value = array_ops.expand_dims(value, -1)
        return value


class _Column:
    """A column. `_var_scope_name` names the scope of its variables."""

    is_categorical = False

    @property
    def _var_scope_name(self):
        return self.name

    @property
    def dtype(self):
        return dtypes.float32


class _DenseColumn(_Column):
    @property
    def num_elements(self):
        return int(np.prod(self.variable_shape))


class _CategoricalColumn(_Column):
    is_categorical = True

    def _ids_and_weights(self, inputs):
        return inputs.get(self), None


class NumericColumn(collections.namedtuple("NumericColumn", ["key", "shape", "default_value", "dtype", "normalizer_fn"]), _DenseColumn):
    """Numbers as they are."""

    dtype = property(lambda self: self[3])
    name = property(lambda self: self.key)
    variable_shape = property(lambda self: self.shape)

    @property
    def parse_example_spec(self):
        return {self.key: parsing_ops.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def _transform(self, inputs):
        value = inputs.get(self.key)
        if isinstance(value, sparse_tensor.SparseTensor):
            raise ValueError("The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: {}".format(self.key))
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return math_ops.cast(value, dtypes.float32)

    def _dense(self, inputs):
        return inputs.get(self)


class BucketizedColumn(collections.namedtuple("BucketizedColumn", ["source_column", "boundaries"]), _DenseColumn):
    """The number of the interval that a number is in."""

    is_categorical = True
    name = property(lambda self: "{}_bucketized".format(self.source_column.name))
    num_buckets = property(lambda self: (len(self.boundaries) + 1) * self.source_column.shape[0])
    parse_example_spec = property(lambda self: self.source_column.parse_example_spec)
    variable_shape = property(lambda self: tuple(self.source_column.shape) + (len(self.boundaries) + 1,))

    def _transform(self, inputs):
        source = inputs.get(self.source_column)
        return ops.apply_op("Bucketize", None, [source], {"boundaries": list(self.boundaries)}).outputs[0]

    def _dense(self, inputs):
        return array_ops.one_hot(math_ops.cast(inputs.get(self), dtypes.int64), depth=len(self.boundaries) + 1, on_value=1.0, off_value=0.0)

    def _ids_and_weights(self, inputs):
        buckets = inputs.get(self)
        batch = array_ops.shape(buckets)[0]
        width = self.source_column.shape[0]
        rows = array_ops.reshape(gen_ops.tile(array_ops.expand_dims(math_ops.range(0, batch), 1), [1, width]), (-1,))
        columns = gen_ops.tile(math_ops.range(0, width), [batch])
        values = array_ops.reshape(buckets, (-1,)) + (len(self.boundaries) + 1) * columns
        indices = math_ops.cast(array_ops.transpose(array_ops.stack((rows, columns))), dtypes.int64)
        shape = math_ops.cast(array_ops.stack([batch, width]), dtypes.int64)
        return sparse_tensor.SparseTensor(indices, math_ops.cast(values, dtypes.int64), shape), None


class _FromFeature(_CategoricalColumn):
    """A categorical column of one raw feature."""

    name = property(lambda self: self.key)

    @property
    def parse_example_spec(self):
        return {self.key: parsing_ops.VarLenFeature(self.dtype)}

    def _transform(self, inputs):
        return self._ids(_to_sparse(inputs.get(self.key)))


class HashedCategoricalColumn(collections.namedtuple("HashedCategoricalColumn", ["key", "hash_bucket_size", "dtype"]), _FromFeature):
    dtype = property(lambda self: self[2])
    num_buckets = property(lambda self: self.hash_bucket_size)

    def _ids(self, tensor):
        values = tensor.values if self.dtype == dtypes.string else ops.apply_op("AsString", None, [tensor.values]).outputs[0]
        ids = ops.apply_op("StringToHashBucketFast", "lookup", [values], {"num_buckets": self.hash_bucket_size}).outputs[0]
        return sparse_tensor.SparseTensor(tensor.indices, ids, tensor.dense_shape)


class IdentityCategoricalColumn(collections.namedtuple("IdentityCategoricalColumn", ["key", "number_buckets", "default_value"]), _FromFeature):
    dtype = property(lambda self: dtypes.int64)
    num_buckets = property(lambda self: self.number_buckets)

    def _ids(self, tensor):
        values = math_ops.cast(tensor.values, dtypes.int64, name="values")
        if self.default_value is not None:
            limit = math_ops.cast(self.number_buckets, dtypes.int64, name="num_buckets")
            outside = ops.apply_op("LogicalOr", "out_of_range", [gen_ops.less(values, 0), gen_ops.greater_equal(values, limit)]).outputs[0]
            default = array_ops.fill(array_ops.shape(values), math_ops.cast(self.default_value, dtypes.int64), name="default_values")
            values = array_ops.where(outside, default, values)
        return sparse_tensor.SparseTensor(tensor.indices, values, tensor.dense_shape)


class VocabularyListCategoricalColumn(
    collections.namedtuple("VocabularyListCategoricalColumn", ["key", "vocabulary_list", "dtype", "default_value", "num_oov_buckets"]), _FromFeature
):
    dtype = property(lambda self: self[2])
    num_buckets = property(lambda self: len(self.vocabulary_list) + self.num_oov_buckets)

    def _ids(self, tensor):
        if self.dtype.is_integer:
            tensor = sparse_tensor.SparseTensor(tensor.indices, math_ops.cast(tensor.values, dtypes.int64), tensor.dense_shape)
        table = lookup_ops.index_table_from_tensor(
            tuple(self.vocabulary_list), default_value=self.default_value, num_oov_buckets=self.num_oov_buckets, dtype=dtypes.int64 if self.dtype.is_integer else self.dtype, name="{}_lookup".format(self.key)
        )
        return table.lookup(tensor)


class VocabularyFileCategoricalColumn(
    collections.namedtuple("VocabularyFileCategoricalColumn", ["key", "vocabulary_file", "vocabulary_size", "num_oov_buckets", "dtype", "default_value"]), _FromFeature
):
    dtype = property(lambda self: self[4])
    num_buckets = property(lambda self: self.vocabulary_size + self.num_oov_buckets)

    def _ids(self, tensor):
        if self.dtype.is_integer:
            tensor = sparse_tensor.SparseTensor(tensor.indices, math_ops.cast(tensor.values, dtypes.int64), tensor.dense_shape)
        table = lookup_ops.index_table_from_file(
            vocabulary_file=self.vocabulary_file, num_oov_buckets=self.num_oov_buckets, vocab_size=self.vocabulary_size, default_value=self.default_value, key_dtype=dtypes.int64 if self.dtype.is_integer else self.dtype, name="{}_lookup".format(self.key)
        )
        return table.lookup(tensor)


class WeightedCategoricalColumn(collections.namedtuple("WeightedCategoricalColumn", ["categorical_column", "weight_feature_key", "dtype"]), _CategoricalColumn):
    dtype = property(lambda self: self[2])
    name = property(lambda self: "{}_weighted_by_{}".format(self.categorical_column.name, self.weight_feature_key))
    num_buckets = property(lambda self: self.categorical_column.num_buckets)

    @property
    def parse_example_spec(self):
        return dict(self.categorical_column.parse_example_spec, **{self.weight_feature_key: parsing_ops.VarLenFeature(self.dtype)})

    def _transform(self, inputs):
        weights = _to_sparse(inputs.get(self.weight_feature_key), ignore_value=0.0)
        weights = sparse_tensor.SparseTensor(weights.indices, math_ops.cast(weights.values, dtypes.float32), weights.dense_shape)
        return self.categorical_column._ids_and_weights(inputs)[0], weights

    def _ids_and_weights(self, inputs):
        return inputs.get(self)


class CrossedColumn(collections.namedtuple("CrossedColumn", ["keys", "hash_bucket_size", "hash_key"]), _CategoricalColumn):
    """A hash of the values of several columns together."""

    @property
    def name(self):
        leaves = []
        for key in self.keys:
            leaves.extend(key._leaves() if isinstance(key, CrossedColumn) else [key if isinstance(key, str) else key.name])
        return "_X_".join(sorted(leaves))

    def _leaves(self):
        return self.name.split("_X_")

    num_buckets = property(lambda self: self.hash_bucket_size)

    @property
    def parse_example_spec(self):
        spec = {}
        for key in self.keys:
            spec.update({key: parsing_ops.VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec)
        return spec

    def _inputs(self, inputs):
        found = []
        for key in self.keys:
            if isinstance(key, CrossedColumn):
                found.extend(key._inputs(inputs))
            elif isinstance(key, str):
                found.append(inputs.get(key))
            else:
                found.append(key._ids_and_weights(inputs)[0])
        return found

    def _transform(self, inputs):
        # Sparse parts come first, whatever the order of the keys.
        given = self._inputs(inputs)
        parts = [p for p in given if isinstance(p, sparse_tensor.SparseTensor)]
        dense = [p for p in given if not isinstance(p, sparse_tensor.SparseTensor)]
        parts = [
            p if p.values.dtype in (dtypes.string, dtypes.int64) else sparse_tensor.SparseTensor(p.indices, math_ops.cast(p.values, dtypes.int64), p.dense_shape)
            for p in parts
        ]
        dense = [p if p.dtype in (dtypes.string, dtypes.int64) else math_ops.cast(p, dtypes.int64) for p in dense]
        op = ops.apply_op(
            "SparseCross",
            None,
            [[p.indices for p in parts], [p.values for p in parts], [p.dense_shape for p in parts], dense],
            {
                "hashed_output": True,
                "num_buckets": self.hash_bucket_size,
                "hash_key": 0xDECAFCAFFE if self.hash_key is None else self.hash_key,
                "out_type": dtypes.int64,
                "internal_type": dtypes.int64 if all(p.dtype == dtypes.int64 for p in parts + dense) else dtypes.string,
                "dense_types": [p.dtype for p in dense],
            },
        )
        return sparse_tensor.SparseTensor(*op.outputs)


class IndicatorColumn(collections.namedtuple("IndicatorColumn", ["categorical_column"]), _DenseColumn):
    """How often each category occurs."""

    name = property(lambda self: "{}_indicator".format(self.categorical_column.name))
    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)
    variable_shape = property(lambda self: (1, self.categorical_column.num_buckets))

    def _transform(self, inputs):
        from ferroflow.python.ops import sparse_ops

        ids, weights = self.categorical_column._ids_and_weights(inputs)
        depth = self.categorical_column.num_buckets
        dense = sparse_ops.sparse_tensor_to_dense(ids, default_value=-1)
        hot = array_ops.one_hot(dense, depth=depth, on_value=1.0, off_value=0.0)
        if weights is not None:
            hot = hot * array_ops.expand_dims(sparse_ops.sparse_tensor_to_dense(weights), -1)
        return math_ops.reduce_sum(hot, axis=[-2])

    def _dense(self, inputs):
        return inputs.get(self)


class EmbeddingColumn(
    collections.namedtuple("EmbeddingColumn", ["categorical_column", "dimension", "combiner", "initializer", "ckpt_to_load_from", "tensor_name_in_ckpt", "max_norm", "trainable", "shared_name"]), _DenseColumn
):
    """A learned vector for each category."""

    @property
    def name(self):
        return "{}_shared_embedding".format(self.categorical_column.name) if self.shared_name else "{}_embedding".format(self.categorical_column.name)

    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)
    variable_shape = property(lambda self: (self.dimension,))

    @property
    def _var_scope_name(self):
        return self.shared_name or self.name

    def _transform(self, inputs):
        return self.categorical_column._ids_and_weights(inputs)

    def _dense(self, inputs):
        ids, weights = inputs.get(self)
        collection = ("feature_column_shared_embedding", self.shared_name)
        graph = ops.get_default_graph()
        table = next(iter(graph.get_collection(collection)), None) if self.shared_name else None
        if table is None:
            table = variable_scope.get_variable(
                name="embedding_weights",
                shape=[self.categorical_column.num_buckets, self.dimension],
                dtype=dtypes.float32,
                initializer=self.initializer,
                trainable=self.trainable,
            )
            if self.shared_name:
                graph.add_to_collection(collection, table)
            if self.ckpt_to_load_from is not None:
                from ferroflow.python.training import checkpoint_utils

                checkpoint_utils.init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: table})
        return embedding_ops.safe_embedding_lookup_sparse(
            table, ids, weights, combiner=self.combiner, name="%s_weights" % self.name, max_norm=self.max_norm
        )


# Constructors.


def _check_shape(shape, key):
    shape = shape if isinstance(shape, (list, tuple)) else [shape]
    for size in shape:
        if not isinstance(size, (int, np.integer)) or size <= 0:
            raise ValueError("shape dimensions must be greater than 0. shape: {}, key: {}".format(shape, key))
    return tuple(int(s) for s in shape)


def numeric_column(key, shape=(1,), default_value=None, dtype=dtypes.float32, normalizer_fn=None):
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError("dtype must be convertible to float. dtype: {}, key: {}".format(dtype, key))
    return NumericColumn(key, _check_shape(shape, key), default_value, dtype, normalizer_fn)


def bucketized_column(source_column, boundaries):
    if not isinstance(source_column, NumericColumn):
        raise ValueError("source_column must be a column generated with numeric_column(). Given: {}".format(source_column))
    if len(source_column.shape) > 1:
        raise ValueError("source_column must be one-dimensional column. Given: {}".format(source_column))
    if not boundaries or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(key, hash_bucket_size, dtype=dtypes.string):
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError("hash_bucket_size must be at least 1. hash_bucket_size: {}, key: {}".format(hash_bucket_size, key))
    return HashedCategoricalColumn(key, hash_bucket_size, dtypes.as_dtype(dtype))


def categorical_column_with_identity(key, num_buckets, default_value=None):
    if num_buckets < 1:
        raise ValueError("num_buckets {} < 1, column_name {}".format(num_buckets, key))
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError("default_value {} not in range [0, {}), column_name {}".format(default_value, num_buckets, key))
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError("vocabulary_list {} must be non-empty, column_name: {}".format(vocabulary_list, key))
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError("Duplicate keys in vocabulary_list {}, column_name: {}".format(vocabulary_list, key))
    if num_oov_buckets and default_value != -1:
        raise ValueError("Can't specify both num_oov_buckets and default_value in {}.".format(key))
    if dtype is None:
        dtype = dtypes.as_dtype(np.array(list(vocabulary_list)).dtype)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtypes.as_dtype(dtype), default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, num_oov_buckets=0, default_value=None, dtype=dtypes.string):
    if not vocabulary_file:
        raise ValueError("Missing vocabulary_file in {}.".format(key))
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as f:
            vocabulary_size = sum(1 for _ in f)
        logging.info("vocabulary_size = %d in %s is inferred from the number of elements in the vocabulary_file %s.", vocabulary_size, key, vocabulary_file)
    if num_oov_buckets and default_value is not None:
        raise ValueError("Can't specify both num_oov_buckets and default_value in {}.".format(key))
    default_value = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets, dtypes.as_dtype(dtype), default_value)


def weighted_categorical_column(categorical_column, weight_feature_key, dtype=dtypes.float32):
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtypes.as_dtype(dtype))


def crossed_column(keys, hash_bucket_size, hash_key=None):
    if not keys or len(keys) < 2:
        raise ValueError("keys must be a list with length > 1. Given: {}".format(keys))
    if hash_bucket_size < 1:
        raise ValueError("hash_bucket_size must be > 1. hash_bucket_size: {}".format(hash_bucket_size))
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column):
    return IndicatorColumn(categorical_column)


def embedding_column(categorical_column, dimension, combiner="mean", initializer=None, ckpt_to_load_from=None, tensor_name_in_ckpt=None, max_norm=None, trainable=True, use_safe_embedding_lookup=True):
    del use_safe_embedding_lookup
    if dimension is None or dimension < 1:
        raise ValueError("Invalid dimension {}.".format(dimension))
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is None:
        initializer = init_ops.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
    return EmbeddingColumn(categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, None)


def shared_embedding_columns(categorical_columns, dimension, combiner="mean", initializer=None, shared_embedding_collection_name=None, ckpt_to_load_from=None, tensor_name_in_ckpt=None, max_norm=None, trainable=True, use_safe_embedding_lookup=True):
    """Embedding columns with one table."""
    del use_safe_embedding_lookup
    if initializer is None:
        initializer = init_ops.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
    if len({c.num_buckets for c in categorical_columns}) != 1:
        raise ValueError("All categorical_columns of shared embeddings must have the same number of buckets")
    name = shared_embedding_collection_name
    if not name:
        name = "_".join(c.name for c in sorted(categorical_columns, key=lambda c: c.name)) + "_shared_embedding"
    return [
        EmbeddingColumn(c, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, name)
        for c in categorical_columns
    ]


def make_parse_example_spec(feature_columns):
    """The features that columns need, for `parse_example`."""
    spec = {}
    for column in feature_columns:
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError("feature_columns contain different parse_spec for key {}. Given {} and {}".format(key, value, spec[key]))
            spec[key] = value
    return spec


# Models.


def _normalized_columns(feature_columns):
    columns = [feature_columns] if isinstance(feature_columns, _Column) else list(feature_columns)
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    names = set()
    for column in columns:
        if not isinstance(column, _Column):
            raise ValueError("Items of feature_columns must be a feature column. Given: {}".format(column))
        if column.name in names:
            raise ValueError("Duplicate feature column name found for columns: {}".format(column.name))
        names.add(column.name)
    return sorted(columns, key=lambda c: c.name)


def _flat(tensor, num_elements):
    """The values of each example in a row."""
    batch = array_ops.shape(tensor)[0]
    flat = array_ops.reshape(tensor, shape=(batch, num_elements))
    flat.set_shape([None, num_elements])
    return flat


def input_layer(features, feature_columns, weight_collections=None, trainable=True, cols_to_vars=None, cols_to_output_tensors=None):
    """The columns side by side, as one dense tensor."""
    del weight_collections, trainable
    columns = _normalized_columns(feature_columns)
    for column in columns:
        if not isinstance(column, _DenseColumn):
            raise ValueError("Items of feature_columns must be dense; wrap categorical columns in embedding_column or indicator_column. Given: {}".format(column))
    inputs = _Transformed(features)
    with variable_scope.variable_scope(None, default_name="input_layer", values=[v for v in features.values() if isinstance(v, ops.Tensor)]):
        outputs = []
        for column in columns:
            with variable_scope.variable_scope(None, default_name=column._var_scope_name):
                before = set(ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES))
                tensor = column._dense(inputs)
                tensor = _flat(tensor, column.num_elements)
                outputs.append(tensor)
                if cols_to_vars is not None:
                    cols_to_vars[column] = [v for v in ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES) if v not in before]
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = tensor
        return array_ops.concat(outputs, 1) if len(outputs) > 1 else outputs[0]


def linear_model(features, feature_columns, units=1, sparse_combiner="sum", weight_collections=None, trainable=True, cols_to_vars=None):
    """A linear prediction: the sum of the weighted columns and a bias."""
    del weight_collections
    columns = _normalized_columns(feature_columns)
    inputs = _Transformed(features)
    with variable_scope.variable_scope(None, default_name="linear_model", values=[v for v in features.values() if isinstance(v, ops.Tensor)]):
        sums = []
        for column in columns:
            with variable_scope.variable_scope(None, default_name=column._var_scope_name):
                if column.is_categorical:
                    ids, weights = column._ids_and_weights(inputs)
                    table = variable_scope.get_variable("weights", [column.num_buckets, units], initializer=init_ops.zeros_initializer(), trainable=trainable)
                    sums.append(embedding_ops.safe_embedding_lookup_sparse(table, ids, weights, combiner=sparse_combiner, name="weighted_sum"))
                else:
                    tensor = column._dense(inputs)
                    tensor = _flat(tensor, column.num_elements)
                    table = variable_scope.get_variable("weights", [column.num_elements, units], initializer=init_ops.zeros_initializer(), trainable=trainable)
                    sums.append(math_ops.matmul(tensor, table, name="weighted_sum"))
                if cols_to_vars is not None:
                    cols_to_vars[column] = [table]
        total = math_ops.add_n(sums, name="weighted_sum_no_bias")
        bias = variable_scope.get_variable("bias_weights", shape=[units], initializer=init_ops.zeros_initializer(), trainable=trainable)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return ops.apply_op("BiasAdd", "weighted_sum", [total, bias]).outputs[0]
