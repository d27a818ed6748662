"""Parsing of examples."""

import collections

import numpy as np

from ferroflow.python.framework import constant_op, dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.ops import array_ops, gen_ops


class VarLenFeature(collections.namedtuple("VarLenFeature", ["dtype"])):
    """A feature with any number of values; a SparseTensor."""


class SparseFeature(collections.namedtuple("SparseFeature", ["index_key", "value_key", "dtype", "size", "already_sorted"])):
    """A SparseTensor from a feature with indices and one with values."""

    def __new__(cls, index_key, value_key, dtype, size, already_sorted=False):
        return super().__new__(cls, index_key, value_key, dtype, size, already_sorted)


class FixedLenFeature(collections.namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"])):
    """A feature with a shape; a Tensor."""

    def __new__(cls, shape, dtype, default_value=None):
        return super().__new__(cls, shape, dtype, default_value)


class FixedLenSequenceFeature(collections.namedtuple("FixedLenSequenceFeature", ["shape", "dtype", "allow_missing", "default_value"])):
    """A feature with a variable number of values of a shape; a padded Tensor."""

    def __new__(cls, shape, dtype, allow_missing=False, default_value=None):
        return super().__new__(cls, shape, dtype, allow_missing, default_value)


class _Features:
    """The features of an example, by kind."""

    def __init__(self, features):
        self.sparse, self.dense = [], []
        self.sparse_features = {}
        for key in sorted(features):
            feature = features[key]
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature):
                index_keys = [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)
                for index_key in sorted(index_keys):
                    self._add_sparse(index_key, dtypes.int64)
                self._add_sparse(feature.value_key, feature.dtype)
                self.sparse_features[key] = (feature, index_keys)
            elif isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
                self.dense.append((key, feature))
            else:
                raise ValueError("Invalid feature {}:{}.".format(key, feature))

    def _add_sparse(self, key, dtype):
        if not dtype:
            raise ValueError("Missing type for feature {}.".format(key))
        known = dict(self.sparse)
        if key in known:
            if known[key] != dtypes.as_dtype(dtype):
                raise ValueError("Conflicting type {} vs {} for feature {}.".format(known[key], dtype, key))
            return
        self.sparse.append((key, dtypes.as_dtype(dtype)))

    def dense_types(self):
        return [dtypes.as_dtype(f.dtype) for _, f in self.dense]

    def dense_shapes(self):
        shapes = []
        for _, f in self.dense:
            shape = tensor_shape.as_shape(f.shape)
            if isinstance(f, FixedLenSequenceFeature):
                shape = tensor_shape.TensorShape([None]).concatenate(shape)
            shapes.append(shape)
        return shapes

    def dense_defaults(self):
        defaults = []
        for (key, f), dtype, shape in zip(self.dense, self.dense_types(), self.dense_shapes()):
            value = f.default_value
            if isinstance(f, FixedLenSequenceFeature):
                # One element that fills the gaps.
                if value is None:
                    value = "" if dtype == dtypes.string else np.zeros([], dtype.as_numpy_dtype)
                defaults.append(ops.convert_to_tensor(value, dtype=dtype, name=_key_name(key)))
            elif value is None:
                defaults.append(constant_op.constant([], dtype=dtype))
            else:
                value = ops.convert_to_tensor(value, dtype=dtype, name=_key_name(key))
                defaults.append(array_ops.reshape(value, shape))
        return defaults

    def result(self, outputs):
        """The tensors by key, from the outputs of a parse operation."""
        n = len(self.sparse)
        indices, values, shapes, dense = outputs[:n], outputs[n : 2 * n], outputs[2 * n : 3 * n], outputs[3 * n :]
        found = {}
        parts = {}
        for (key, _), i, v, s in zip(self.sparse, indices, values, shapes):
            parts[key] = sparse_tensor.SparseTensor(i, v, s)
        hidden = {k for f, keys in self.sparse_features.values() for k in list(keys) + [f.value_key]}
        for key, value in parts.items():
            if key not in hidden:
                found[key] = value
        for (key, _), tensor in zip(self.dense, dense):
            found[key] = tensor
        for key, (feature, index_keys) in self.sparse_features.items():
            found[key] = _merge_sparse(parts, feature, index_keys)
        return found


def _key_name(key):
    return "key_" + "".join(c if c.isalnum() or c in "_.-/" else "_" for c in key)


def _merge_sparse(parts, feature, index_keys):
    """A SparseTensor whose last index comes from one feature and whose values from another."""
    from ferroflow.python.ops import sparse_ops

    size = [feature.size] if not isinstance(feature.size, (list, tuple)) else list(feature.size)
    values = parts[feature.value_key]
    columns = [array_ops.expand_dims(parts[key].values, 1) for key in index_keys]
    indices = array_ops.concat([values.indices[:, :-1]] + columns, 1)
    shape = array_ops.concat([values.dense_shape[:-1], constant_op.constant(size, dtype=dtypes.int64)], 0)
    merged = sparse_tensor.SparseTensor(indices, values.values, shape)
    return merged if feature.already_sorted else sparse_ops.sparse_reorder(merged)


def parse_example(serialized, features, name=None, example_names=None):
    """The features of a batch of serialized `Example`s, as a dict of tensors."""
    if not features:
        raise ValueError("Argument `features` cannot be None or empty.")
    parsed = _Features(features)
    with ops.name_scope(name, "ParseExample", [serialized, example_names]):
        serialized = ops.convert_to_tensor(serialized, dtype=dtypes.string, name="serialized")
        op = ops.apply_op(
            "ParseExampleV2",
            "ParseExampleV2",
            [
                serialized,
                [] if example_names is None else example_names,
                [k for k, _ in parsed.sparse],
                [k for k, _ in parsed.dense],
                [],
                parsed.dense_defaults(),
            ],
            {
                "sparse_types": [t for _, t in parsed.sparse],
                "num_sparse": len(parsed.sparse),
                "ragged_value_types": [],
                "ragged_split_types": [],
                "dense_shapes": parsed.dense_shapes(),
                "Tdense": parsed.dense_types(),
            },
        )
        return parsed.result(list(op.outputs))


def parse_single_example(serialized, features, name=None, example_names=None):
    """The features of one serialized `Example`."""
    if not features:
        raise ValueError("Invalid argument: features cannot be None.")
    del example_names
    parsed = _Features(features)
    with ops.name_scope(name, "ParseSingleExample", [serialized]):
        serialized = ops.convert_to_tensor(serialized, dtype=dtypes.string, name="serialized")
        op = ops.apply_op(
            "ParseSingleExample",
            "ParseSingleExample",
            [serialized, parsed.dense_defaults()],
            {
                "num_sparse": len(parsed.sparse),
                "sparse_keys": [k for k, _ in parsed.sparse],
                "dense_keys": [k for k, _ in parsed.dense],
                "sparse_types": [t for _, t in parsed.sparse],
                "dense_shapes": parsed.dense_shapes(),
                "Tdense": parsed.dense_types(),
            },
        )
        return parsed.result(list(op.outputs))


def decode_json_example(json_examples, name=None):
    """Example records of their JSON form."""
    return gen_ops.DecodeJSONExample(json_examples, name=name)
