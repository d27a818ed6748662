"""Embedding lookups, in tables of one or several parts."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.framework import sparse_tensor
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import clip_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops import variables
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor


def _clip(params, ids, max_norm):
    """Scales rows down to `max_norm`."""
    if max_norm is None:
        return params

    def rank(x):
        known = convert(x).get_shape().ndims
        return (known, True) if known else (array_ops.rank(x), False)

    (ids_rank, ids_known), (params_rank, params_known) = rank(ids), rank(params)
    axes = (list(range(ids_rank, params_rank)) if ids_known and params_known
            else math_ops.range(ids_rank, params_rank))
    return clip_ops.clip_by_norm(params, max_norm, axes=axes)


def _as_list(params):
    if isinstance(params, variables.PartitionedVariable):
        params = list(params)
    return params if isinstance(params, list) else [params]


def _colocate(param):
    return ops.colocate_with(param.op if hasattr(param, "op") else param)


def _rows(param):
    return param.get_shape().as_list()[0]


@export("nn.embedding_lookup")
def embedding_lookup(params, ids, partition_strategy="mod", name=None, validate_indices=True,
                     max_norm=None):
    if params is None:
        raise ValueError("params must be specified")
    if isinstance(params, (list, tuple)) and not params:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    params = _as_list(list(params) if isinstance(params, tuple) else params)
    with ops.name_scope(name, "embedding_lookup", params + [ids]) as scope:
        if not any(resource_variable_ops.is_resource_variable(p) for p in params):
            params = indexed_slices.convert_n_to_tensor_or_indexed_slices(params, name="params")
        ids = convert(ids, name="ids")
        if len(params) == 1:
            with _colocate(params[0]):
                result = _clip(array_ops.gather(params[0], ids, name=scope), ids, max_norm)
            return array_ops.identity(result)
        return _from_parts(params, ids, partition_strategy, scope, max_norm)


def _assign(params, flat_ids, strategy):
    """(the part that each id is in, its row there)"""
    count = len(params)
    if strategy == "mod":
        return flat_ids % count, flat_ids // count
    if strategy != "div":
        raise ValueError("Unrecognized partition strategy: %s.Must be one of either `mod` or "
                         "`div`." % strategy)
    rows = [_rows(p) for p in params]
    if all(r is not None for r in rows) and sum(rows):
        total = constant_op.constant(sum(rows), flat_ids.dtype)
    else:
        sizes = []
        for p, r in zip(params, rows):
            if r is None:
                with _colocate(p):
                    r = array_ops.shape(p)[0]
            sizes.append(r)
        total = math_ops.reduce_sum(math_ops.cast(array_ops.stack(sizes), flat_ids.dtype))
    each = total // count
    extras = total % count
    part = gen_ops.Maximum(flat_ids // (each + 1), (flat_ids - extras) // each)
    row = array_ops.where(part < extras, flat_ids % (each + 1), (flat_ids - extras) % each)
    return part, row


def _from_parts(params, ids, strategy, scope, max_norm):
    flat = array_ops.reshape(ids, [-1])
    positions = math_ops.range(array_ops.size(flat))
    part, row = _assign(params, flat, strategy)
    part = math_ops.cast(part, dtypes.int32)
    rows = gen_ops.DynamicPartition(row, part, len(params))
    places = gen_ops.DynamicPartition(positions, part, len(params))
    found = []
    for p, param in enumerate(params):
        with ops.device(None), _colocate(param):
            found.append(array_ops.gather(param, rows[p]))
    result = gen_ops.ParallelDynamicStitch(places, found, name=scope)
    static = params[0].get_shape()[1:]
    for p in params[1:]:
        static = static.merge_with(p.get_shape()[1:])
    if tensor_util.constant_value(ids) is not None:
        result.set_shape(flat.get_shape().concatenate(static))
    if static.is_fully_defined():
        element = static
    else:
        with _colocate(params[0]):
            element = array_ops.shape(params[0])[1:]
    result = array_ops.reshape(result, array_ops.concat([array_ops.shape(ids), element], 0))
    result.set_shape(ids.get_shape().concatenate(static))
    return _clip(result, ids, max_norm)


@export("nn.embedding_lookup_sparse")
def embedding_lookup_sparse(params, sp_ids, sp_weights, partition_strategy="mod", name=None,
                            combiner=None, max_norm=None, allow_fast_lookup=False):
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum', got %s" % combiner)
    params = _as_list(params)
    if not isinstance(sp_ids, sparse_tensor.SparseTensor):
        raise TypeError("sp_ids must be SparseTensor, got %s" % type(sp_ids))
    if sp_weights is not None and not isinstance(sp_weights, sparse_tensor.SparseTensor):
        raise TypeError("sp_weights must be either None or SparseTensor,got %s" %
                        type(sp_weights))
    with ops.name_scope(name, "embedding_lookup_sparse", params + [sp_ids]) as scope:
        segments = sp_ids.indices[:, 0]
        ids = sp_ids.values
        sparse_gradient = False
        if len(params) == 1 and not isinstance(params[0], (ops.Tensor, variables.Variable)):
            params = [convert(params[0], name="params")]
        if len(params) == 1 and params[0].device == segments.device and max_norm is None and (
                allow_fast_lookup or sp_weights is None):
            index, table = ids, params[0]
            if resource_variable_ops.is_resource_variable(table):
                with ops.name_scope("Read"):
                    gen_ops.DisableCopyOnRead(table.handle)
                    value = gen_ops.ReadVariableOp(table.handle, table.dtype)
                table = array_ops.identity(value)
            sparse_gradient = not allow_fast_lookup
        else:
            ids, index = gen_ops.Unique(ids)
            table = embedding_lookup(params, ids, partition_strategy=partition_strategy,
                                     max_norm=max_norm)
        if sp_weights is not None:
            return _weighted(table, index, segments, sp_weights.values, combiner, scope)
        reduce = {"sum": math_ops.sparse_segment_sum, "mean": math_ops.sparse_segment_mean,
                  "sqrtn": math_ops.sparse_segment_sqrt_n}[combiner]
        return reduce(table, index, segments, name=scope, sparse_gradient=sparse_gradient)


def _weighted(table, index, segments, weights, combiner, scope):
    if segments.dtype != dtypes.int32:
        segments = math_ops.cast(segments, dtypes.int32)
    rows = array_ops.gather(table, index)
    original = rows.dtype
    if original in (dtypes.float16, dtypes.bfloat16):
        rows = math_ops.cast(rows, dtypes.float32)
    if weights.dtype != rows.dtype:
        weights = math_ops.cast(weights, rows.dtype)
    ones = array_ops.ones(array_ops.expand_dims(array_ops.rank(rows) - 1, 0), dtype=dtypes.int32)
    static = weights.get_shape()
    weights = array_ops.reshape(weights, array_ops.concat([array_ops.shape(weights), ones], 0))
    if rows.get_shape().ndims is not None:
        weights.set_shape(static.concatenate([1] * (rows.get_shape().ndims - 1)))
    rows *= weights
    if combiner == "sum":
        result = gen_ops.SegmentSum(rows, segments, name=scope)
    else:
        result = gen_ops.SegmentSum(rows, segments)
        if combiner == "mean":
            total = gen_ops.SegmentSum(weights, segments)
        else:
            total = math_ops.sqrt(gen_ops.SegmentSum(math_ops.pow(weights, 2), segments))
        result = math_ops.div_no_nan(result, total, name=scope)
    return result if result.dtype == original else math_ops.cast(result, original)


@export("nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None,
                                 combiner="mean", default_id=None, name=None,
                                 partition_strategy="div", max_norm=None,
                                 allow_fast_lookup=False):
    from ferroflow.python.ops import sparse_ops
    if embedding_weights is None:
        raise ValueError("Missing embedding_weights %s." % embedding_weights)
    weights = _as_list(embedding_weights)
    if not weights:
        raise ValueError("Missing embedding_weights %s." % weights)
    dtype = sparse_weights.dtype if sparse_weights is not None else None
    weights = [w if resource_variable_ops.is_resource_variable(w) and dtype in (None, w.dtype)
               else convert(w, dtype=dtype) for w in weights]
    with ops.name_scope(name, "embedding_lookup", weights + [sparse_ids, sparse_weights]) as scope:
        shape = sparse_ids.dense_shape
        static_rank = shape.get_shape().as_list()[0]
        rank = array_ops.size(shape) if static_rank is None else static_rank
        sparse_ids = sparse_ops.sparse_reshape(sparse_ids, [
            math_ops.reduce_prod(array_ops.slice(shape, [0], [rank - 1])),
            array_ops.gather(shape, rank - 1)])
        if sparse_weights is not None:
            sparse_weights = sparse_tensor.SparseTensor(
                sparse_ids.indices, sparse_weights.values, sparse_ids.dense_shape)
        valid = gen_ops.GreaterEqual(sparse_ids.values, 0)
        if sparse_weights is not None:
            valid = gen_ops.LogicalAnd(valid, array_ops.ones_like(sparse_weights.values,
                                                                  dtype=dtypes.bool))
        sparse_ids = sparse_ops.sparse_retain(sparse_ids, valid)
        if sparse_weights is not None:
            sparse_weights = sparse_ops.sparse_retain(sparse_weights, valid)
            if combiner != "sum":
                positive = gen_ops.Greater(sparse_weights.values, 0)
                sparse_ids = sparse_ops.sparse_retain(sparse_ids, positive)
                sparse_weights = sparse_ops.sparse_retain(sparse_weights, positive)
        sparse_ids, empty = sparse_ops.sparse_fill_empty_rows(sparse_ids, default_id or 0)
        if sparse_weights is not None:
            sparse_weights, _ = sparse_ops.sparse_fill_empty_rows(sparse_weights, 1.0)
        result = embedding_lookup_sparse(
            weights, sparse_ids, sparse_weights, combiner=combiner,
            partition_strategy=partition_strategy, name=None if default_id is None else scope,
            max_norm=max_norm, allow_fast_lookup=allow_fast_lookup)
        if default_id is None:
            empty = gen_ops.Tile(array_ops.reshape(empty, [-1, 1]),
                                 array_ops.stack([1, array_ops.shape(result)[1]]))
            result = array_ops.where(empty, array_ops.zeros_like(result), result, name=scope)
        final = array_ops.reshape(result, array_ops.concat([
            array_ops.slice(math_ops.cast(shape, dtypes.int32), [0], [rank - 1]),
            array_ops.slice(array_ops.shape(result), [1], [-1])], 0))
        final.set_shape(tensor_shape.unknown_shape(
            None if static_rank is None else static_rank - 1).concatenate(
                result.get_shape()[1:]))
        return final
