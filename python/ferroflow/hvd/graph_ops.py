"""Collectives as ops of a graph, and their gradients."""

import re

from ferroflow._hvd import core
from ferroflow._hvd.compression import compressions
from ferroflow.python.framework import dtypes, indexed_slices, ops
from ferroflow.python.ops import array_ops, math_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable

Compression = compressions(dtypes.float16, dtypes.bfloat16, lambda dtype: dtype.is_floating,
                           math_ops.cast)


def _op(kind, *inputs, name=None, **attrs):
    """The outputs of a new op `Horovod<kind>`."""
    return ops.apply_op(f"Horovod{kind}", name, inputs, attrs).outputs


def _node_name(kind, tensor, name):
    """The name of a node follows from its tensor's, so that all ranks agree on it."""
    return name or "Horovod%s_%s" % (kind, re.sub(r"[^A-Za-z0-9_]", "_", tensor.name))


def _scaled(tensor, factor):
    if factor == 1.0:
        return tensor
    if tensor.dtype.is_integer:
        wide = math_ops.cast(tensor, dtypes.float64) * factor
        return math_ops.cast(wide, tensor.dtype)
    return tensor * math_ops.cast(factor, tensor.dtype)


def allreduce(tensor, average, compression, op, prescale, postscale, name, process_set):
    op = core.reduce_op(op, average)
    number = core.set_number(process_set)
    if isinstance(tensor, indexed_slices.IndexedSlices):
        return _reduce_slices(tensor, op, prescale * postscale, name, process_set)
    tensor = ops.convert_to_tensor(tensor)
    small, ctx = (compression or Compression.none).compress(tensor)
    [reduced] = _op("Allreduce", _scaled(small, prescale), reduce_op=op, process_set=number,
                    tensor_name=name or "", name=_node_name("Allreduce", tensor, name))
    return (compression or Compression.none).decompress(_scaled(reduced, postscale), ctx)


def _reduce_slices(slices, op, factor, name, process_set):
    if op not in (core.Average, core.Sum):
        raise NotImplementedError("IndexedSlices support Average and Sum; "
                                  "use sparse_as_dense=True for other operations")
    values = allgather(slices.values, f"{name}.values" if name else None, process_set)
    indices = allgather(slices.indices, f"{name}.indices" if name else None, process_set)
    if op == core.Average:
        ranks = size_op(core.set_number(process_set))
        values = values / math_ops.cast(ranks, values.dtype)
    return indexed_slices.IndexedSlices(_scaled(values, factor), indices,
                                        dense_shape=slices.dense_shape)


def _rows(tensor):
    """A tensor with a first dimension: a scalar is a row of its own."""
    tensor = ops.convert_to_tensor(tensor)
    return array_ops.reshape(tensor, [1]) if tensor.shape.ndims == 0 else tensor


def allgather(tensor, name, process_set):
    number = core.set_number(process_set)
    tensor = _rows(tensor)
    return _op("Allgather", tensor, process_set=number, tensor_name=name or "",
               name=_node_name("Allgather", tensor, name))[0]


def broadcast(tensor, root_rank, name, process_set):
    number = core.set_number(process_set)
    tensor = ops.convert_to_tensor(tensor)
    return _op("Broadcast", tensor, root_rank=root_rank, process_set=number,
               tensor_name=name or "", name=_node_name("Broadcast", tensor, name))[0]


def alltoall(tensor, splits, name, process_set):
    number = core.set_number(process_set)
    tensor = _rows(tensor)
    if splits is None:
        ranks = size_op(number)
        # Rows that cannot be split evenly give splits that do not add up, which all ranks report.
        given = array_ops.fill([ranks], array_ops.shape(tensor)[0] // ranks)
    else:
        given = math_ops.cast(splits, dtypes.int32)
    rows, received = _op("Alltoall", tensor, given, process_set=number, tensor_name=name or "",
                         name=_node_name("Alltoall", tensor, name))
    return rows if splits is None else (rows, received)


def reducescatter(tensor, compression, op, name, process_set, prescale, postscale):
    op, number = core.reduce_op(op), core.set_number(process_set)
    tensor = ops.convert_to_tensor(tensor)
    small, ctx = (compression or Compression.none).compress(tensor)
    [part] = _op("Reducescatter", _scaled(small, prescale), reduce_op=op, process_set=number,
                 tensor_name=name or "", name=_node_name("Reducescatter", tensor, name))
    return (compression or Compression.none).decompress(_scaled(part, postscale), ctx)


def rank_op(name=None):
    """The rank as a tensor, read when the op runs."""
    return _op("Rank", name=name)[0]


def size_op(process_set_id=0, name=None):
    """The number of ranks as a tensor."""
    if process_set_id == 0:
        return _op("Size", name=name)[0]
    ranks = core.get_process_set_ids_and_ranks()[process_set_id]
    return ops.convert_to_tensor(len(ranks), dtypes.int32, name=name)


def local_rank_op(name=None):
    """The local rank as a tensor, read when the op runs."""
    return _op("LocalRank", name=name)[0]


def local_size_op(name=None):
    """The number of ranks on this host as a tensor, read when the op runs."""
    return _op("LocalSize", name=name)[0]


def process_set_included_op(process_set_id=0, name=None):
    """1 if this process is in the process set, else 0, as a tensor."""
    included = int(core.process_set_included(process_set_id))
    return ops.convert_to_tensor(included, dtypes.int32, name=name)


# ------------------------------------------------------------------- gradients

# Gradients travel the way of the values in reverse. As in Horovod, the gradient of a reduction is
# reduced by the same operation, and those of the other ops are averages over the ranks.

not_differentiable("HorovodRank", "HorovodSize", "HorovodLocalRank", "HorovodLocalSize")


def _same(op):
    return {"process_set": op.get_attr("process_set")}


def _reduction(op):
    by = op.get_attr("reduce_op")
    if by not in (core.Average, core.Sum, core.Adasum):
        raise NotImplementedError(f"the gradient of {core.OP_NAMES[by]} over ranks, of {op.name}")
    return by


@gradient("HorovodAllreduce")
def _allreduce_grad(op, grad):
    return _op("Allreduce", grad, reduce_op=_reduction(op), **_same(op))[0]


@gradient("HorovodBroadcast")
def _broadcast_grad(op, grad):
    mean = _op("Allreduce", grad, reduce_op=core.Average, **_same(op))[0]
    is_root = math_ops.equal(_op("Rank")[0], op.get_attr("root_rank"))
    return mean * math_ops.cast(is_root, mean.dtype)


@gradient("HorovodAllgather")
def _allgather_grad(op, grad):
    # Each rank gets the gradients of its rows from all ranks, and averages them.
    shape = array_ops.shape(op.inputs[0])
    counts = _op("Allgather", shape[:1], **_same(op))[0]
    sent = _op("Alltoall", grad, counts, **_same(op))
    of_ranks = array_ops.reshape(
        sent[0], array_ops.concat([array_ops.reshape(array_ops.size(counts), [1]), shape], 0))
    return math_ops.reduce_mean(of_ranks, 0)


@gradient("HorovodReducescatter")
def _reducescatter_grad(op, grad):
    by = _reduction(op)
    total = _op("Allgather", grad, **_same(op))[0]
    if by != core.Average:
        one = ops.convert_to_tensor(1.0, total.dtype)
        total = total * _op("Allreduce", one, reduce_op=core.Sum, **_same(op))[0]
    return total


@gradient("HorovodAlltoall")
def _alltoall_grad(op, grad, _):
    return _op("Alltoall", grad, op.outputs[1], **_same(op))[0], None
