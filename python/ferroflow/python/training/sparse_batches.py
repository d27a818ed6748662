"""SparseTensors in the queues of `tf.train.batch`: a map of the task keeps them, the queue holds handles."""

from ferroflow.python.framework import constant_op, dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.ops import array_ops, control_flow_ops, gen_ops, sparse_ops

_STORES = ("AddSparseToTensorsMap", "AddManySparseToTensorsMap")


def is_sparse(value):
    return isinstance(value, sparse_tensor.SparseTensor)


def store(lists, enqueue_many, keep_input):
    """The lists with handles for SparseTensors, and how to restore each component.

    All lists use the maps of the first one.
    """
    stored, components = [], None
    for tensors in lists:
        handles, found = _store(tensors, enqueue_many, keep_input, components)
        if components is None:
            components = found
        elif [c is None for c in components] != [c is None for c in found]:
            raise ValueError(f"Inconsistent SparseTensors list: {lists[0]} vs. {tensors}")
        stored.append(handles)
    return stored, components


def _store(tensors, enqueue_many, keep_input, shared):
    handles, components = [], []
    for i, t in enumerate(tensors):
        if not is_sparse(t):
            handles.append(t)
            components.append(None)
            continue
        known = shared[i] if shared else None
        handle = _handle(t, enqueue_many, keep_input, known[0].name if known else None)
        rank = tensor_shape.dimension_value(t.dense_shape.shape.with_rank(1).dims[0])
        if rank is not None and enqueue_many:
            rank -= 1
        handles.append(handle)
        components.append(known or (_storing_op(handle), rank))
    return [h if c is None else array_ops.expand_dims(h, [-1]) for h, c in zip(handles, components)], components


def _handle(t, enqueue_many, keep_input, shared_name):
    def add(op, value):
        return op(value.indices, value.values, value.dense_shape, shared_name=shared_name)

    def one():
        return add(gen_ops.AddSparseToTensorsMap, t)

    def many():
        return add(gen_ops.AddManySparseToTensorsMap, t)

    if keep_input is True:
        return many() if enqueue_many else one()
    keep_input = ops.convert_to_tensor(keep_input)
    if keep_input.shape.ndims == 1:
        kept = sparse_ops.sparse_retain(t, array_ops.gather(keep_input, t.indices[:, 0]))
        return add(gen_ops.AddManySparseToTensorsMap, kept)
    if not enqueue_many:
        return control_flow_ops.cond(keep_input, one, lambda: constant_op.constant(-1, dtypes.int64))
    handles = control_flow_ops.cond(keep_input, many, lambda: -1 * array_ops.ones(array_ops.shape(t)[0:1], dtypes.int64))
    handles.set_shape([None])
    return handles


def _storing_op(handle):
    """The op that stored: the handle of a conditional comes from a merge."""
    for t in handle.op.inputs:
        if t.op.type in _STORES:
            return t.op
    return handle.op


def restore(dequeued, components):
    """The SparseTensors of a batch, after its dense tensors."""
    if not any(components):
        return dequeued
    single = not isinstance(dequeued, (list, tuple))
    restored = [t if c is None else _restored(array_ops.squeeze(t, [1]), *c)
                for t, c in zip([dequeued] if single else dequeued, components)]
    # Each handle is taken once: a step that fetches one component takes all.
    all_of_them = [t.values if is_sparse(t) else t for t in restored]

    def after(t):
        return control_flow_ops.with_dependencies(all_of_them, t)

    gated = [sparse_tensor.SparseTensor(after(t.indices), after(t.values), after(t.dense_shape)) if is_sparse(t) else after(t)
             for t in restored]
    # TensorFlow makes the gates of a single component, too, and returns what is before them.
    return restored[0] if single else gated


def _restored(handles, op, rank):
    rank = None if rank is None else rank + 1
    with ops.colocate_with(op):
        indices, values, dense_shape = gen_ops.TakeManySparseFromTensorsMap(
            handles, op.get_attr("T"), container=op.get_attr("container"), shared_name=op.get_attr("shared_name") or op.name)
    indices.set_shape([None, rank])
    dense_shape.set_shape([rank])
    return sparse_tensor.SparseTensor(indices, values, dense_shape)
