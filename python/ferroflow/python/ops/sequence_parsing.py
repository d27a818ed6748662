"""Parsing of serialized `SequenceExample`s."""

from ferroflow.python.framework import constant_op, dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.ops import parsing_ops
from ferroflow.python.util.api import export


class _Lists:
    """The feature lists of a sequence: sparse ones and dense ones, by key."""

    def __init__(self, features):
        self.sparse, self.dense = [], []
        for key in sorted(features or {}):
            feature = features[key]
            if isinstance(feature, parsing_ops.VarLenFeature):
                self.sparse.append((key, dtypes.as_dtype(feature.dtype)))
            elif isinstance(feature, parsing_ops.FixedLenSequenceFeature):
                self.dense.append((key, feature))
            else:
                raise ValueError("Invalid feature {}:{}.".format(key, feature))

    def dense_types(self):
        return [dtypes.as_dtype(f.dtype) for _, f in self.dense]

    def dense_shapes(self):
        return [tensor_shape.as_shape(f.shape) for _, f in self.dense]

    def missing_assumed_empty(self):
        return [k for k, f in self.dense if f.allow_missing]


def _sparse(keys, indices, values, shapes):
    return {key: sparse_tensor.SparseTensor(i, v, s) for (key, _), i, v, s in zip(keys, indices, values, shapes)}


def _taken(outputs, counts):
    """The outputs of an operation in groups of these sizes."""
    outputs = iter(outputs)
    return [[next(outputs) for _ in range(n)] for n in counts]


@export("parse_single_sequence_example", "io.parse_single_sequence_example")
def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None,
                                  name=None):
    """(the context features, the feature lists) of one sequence, as dicts of tensors."""
    if not (context_features or sequence_features):
        raise ValueError("Both `context_features` and `sequence_features` argument are None, but at least one should "
                         "have values.")
    context, lists = parsing_ops._Features(context_features or {}), _Lists(sequence_features)
    with ops.name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        serialized = ops.convert_to_tensor(serialized, name="serialized", dtype=dtypes.string)
        op = ops.apply_op(
            "ParseSingleSequenceExample",
            "ParseSingleSequenceExample",
            [
                serialized,
                ops.convert_to_tensor(lists.missing_assumed_empty(), dtype=dtypes.string),
                [k for k, _ in context.sparse],
                [k for k, _ in context.dense],
                [k for k, _ in lists.sparse],
                [k for k, _ in lists.dense],
                context.dense_defaults(),
                "" if example_name is None else example_name,
            ],
            {
                "context_sparse_types": [t for _, t in context.sparse],
                "Tcontext_dense": context.dense_types(),
                "feature_list_dense_types": lists.dense_types(),
                "context_dense_shapes": context.dense_shapes(),
                "feature_list_sparse_types": [t for _, t in lists.sparse],
                "feature_list_dense_shapes": lists.dense_shapes(),
                "Ncontext_sparse": len(context.sparse),
                "Ncontext_dense": len(context.dense),
                "Nfeature_list_sparse": len(lists.sparse),
                "Nfeature_list_dense": len(lists.dense),
            },
        )
        n, m = len(context.sparse), len(lists.sparse)
        parts = _taken(op.outputs, [3 * n + len(context.dense), m, m, m, len(lists.dense)])
        found = _sparse(lists.sparse, *parts[1:4])
        found.update({key: t for (key, _), t in zip(lists.dense, parts[4])})
        return context.result(parts[0]), found


@export("io.parse_sequence_example")
def parse_sequence_example(serialized, context_features=None, sequence_features=None, example_names=None, name=None):
    """(the context features, the feature lists, their lengths) of a batch of sequences."""
    if not (context_features or sequence_features):
        raise ValueError("Both `context_features` and `sequence_features` argument are None, but at least one should "
                         "have values.")
    context, lists = parsing_ops._Features(context_features or {}), _Lists(sequence_features)
    with ops.name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        serialized = ops.convert_to_tensor(serialized, name="serialized", dtype=dtypes.string)
        missing = set(lists.missing_assumed_empty())
        empty = constant_op.constant([], dtype=dtypes.string)
        op = ops.apply_op(
            "ParseSequenceExampleV2",
            "ParseSequenceExampleV2",
            [
                serialized,
                empty if example_names is None else example_names,
                [k for k, _ in context.sparse],
                [k for k, _ in context.dense],
                empty,
                [k for k, _ in lists.sparse],
                [k for k, _ in lists.dense],
                empty,
                [k in missing for k, _ in lists.dense],
                context.dense_defaults(),
            ],
            {
                "Ncontext_sparse": len(context.sparse),
                "context_sparse_types": [t for _, t in context.sparse],
                "Tcontext_dense": context.dense_types(),
                "context_dense_shapes": context.dense_shapes(),
                "Nfeature_list_sparse": len(lists.sparse),
                "feature_list_sparse_types": [t for _, t in lists.sparse],
                "Nfeature_list_dense": len(lists.dense),
                "feature_list_dense_types": lists.dense_types(),
                "feature_list_dense_shapes": lists.dense_shapes(),
                "context_ragged_value_types": [],
                "context_ragged_split_types": [],
                "feature_list_ragged_value_types": [],
                "feature_list_ragged_split_types": [],
            },
        )
        n, m, d = len(context.sparse), len(lists.sparse), len(lists.dense)
        parts = _taken(op.outputs, [3 * n + len(context.dense), m, m, m, d, d])
        found = _sparse(lists.sparse, *parts[1:4])
        found.update({key: t for (key, _), t in zip(lists.dense, parts[4])})
        lengths = {key: t for (key, _), t in zip(lists.dense, parts[5])}
        return context.result(parts[0]), found, lengths


def _sparse_of(value):
    if isinstance(value, sparse_tensor.SparseTensorValue):
        return sparse_tensor.SparseTensor.from_value(value)
    if not isinstance(value, sparse_tensor.SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def _serialize(op_type):
    def function(sp_input, name=None, out_type=dtypes.string):
        value = _sparse_of(sp_input)
        return ops.apply_op(op_type, name, [value.indices, value.values, value.dense_shape],
                            {"out_type": out_type}).outputs[0]
    return function


serialize_sparse = export("serialize_sparse", "io.serialize_sparse")(_serialize("SerializeSparse"))
serialize_many_sparse = export("serialize_many_sparse", "io.serialize_many_sparse")(_serialize("SerializeManySparse"))


@export("deserialize_many_sparse", "io.deserialize_many_sparse")
def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    op = ops.apply_op("DeserializeManySparse", name, [serialized_sparse], {"dtype": dtype})
    indices, values, shape = op.outputs
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return sparse_tensor.SparseTensor(indices, values, shape)
