"""Feature columns with the names that `tf.contrib.layers` gave them."""

from ferroflow.python.feature_column import feature_column as columns
from ferroflow.python.framework import dtypes
from ferroflow.python.util.api import export


@export("contrib.layers.real_valued_column")
def real_valued_column(column_name, dimension=1, default_value=None, dtype=dtypes.float32, normalizer=None):
    return columns.numeric_column(column_name, shape=(dimension,), default_value=default_value, dtype=dtype, normalizer_fn=normalizer)


@export("contrib.layers.sparse_column_with_hash_bucket")
def sparse_column_with_hash_bucket(column_name, hash_bucket_size, combiner="sum", dtype=dtypes.string):
    del combiner
    return columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype=dtype)


@export("contrib.layers.sparse_column_with_integerized_feature")
def sparse_column_with_integerized_feature(column_name, bucket_size, combiner="sum", dtype=dtypes.int64):
    del combiner, dtype
    return columns.categorical_column_with_identity(column_name, bucket_size)


@export("contrib.layers.sparse_column_with_keys")
def sparse_column_with_keys(column_name, keys, default_value=-1, combiner="sum", dtype=dtypes.string):
    del combiner
    return columns.categorical_column_with_vocabulary_list(column_name, keys, dtype=dtype, default_value=default_value)


@export("contrib.layers.embedding_column")
def embedding_column(sparse_id_column, dimension, combiner="mean", initializer=None, ckpt_to_load_from=None,
                     tensor_name_in_ckpt=None, max_norm=None, trainable=True):
    return columns.embedding_column(
        sparse_id_column, dimension, combiner=combiner, initializer=initializer, ckpt_to_load_from=ckpt_to_load_from,
        tensor_name_in_ckpt=tensor_name_in_ckpt, max_norm=max_norm, trainable=trainable)
