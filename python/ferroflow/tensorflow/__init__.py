"""Data-parallel training of TensorFlow models with Horovod's API: `import ferroflow.tensorflow as
hvd`."""

import tensorflow as tf

from ferroflow._hvd import core
from ferroflow._hvd.core import (  # noqa: F401
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, ccl_built, cross_rank,
    cross_size, cuda_built, ddl_built, get_process_set_ids_and_ranks, global_process_set,
    gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank, local_size,
    mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, process_set_included, rank,
    remove_process_set, rocm_built, shutdown, size, start_timeline, stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401

from . import mpi_ops
from .compression import Compression  # noqa: F401
from .functions import (  # noqa: F401
    BroadcastGlobalVariablesHook, allgather_object, broadcast_global_variables, broadcast_object,
    broadcast_object_fn, broadcast_variables)
from .mpi_ops import (  # noqa: F401
    allgather, alltoall, barrier, broadcast, broadcast_, grouped_allgather, join, local_rank_op, local_size_op,
    process_set_included_op, rank_op, size_op)


def _op_of(op, average):
    return core.reduce_op(op, average)


def allreduce(tensor, average=None, device_dense="", device_sparse="",
              compression=Compression.none, op=None, prescale_factor=1.0, postscale_factor=1.0,
              name=None, process_set=global_process_set, ignore_name_scope=False):
    """Reduces a tensor over all ranks. The default is the average. `IndexedSlices` are gathered."""
    op = _op_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        if op not in (Average, Sum):
            raise NotImplementedError("IndexedSlices support Average and Sum; "
                                      "use sparse_as_dense=True for other operations")
        base = name or "slices"
        values = allgather(tensor.values, name=f"{base}.values" if name else None,
                           process_set=process_set)
        indices = allgather(tensor.indices, name=f"{base}.indices" if name else None,
                            process_set=process_set)
        if op == Average:
            ranks = mpi_ops.size_op(core.set_number(process_set))
            values = values / tf.cast(ranks, values.dtype)
        if prescale_factor * postscale_factor != 1.0:
            values = values * tf.cast(prescale_factor * postscale_factor, values.dtype)
        return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)
    tensor = tf.convert_to_tensor(tensor)
    small, ctx = compression.compress(tensor)
    reduced = mpi_ops._allreduce(small, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, ctx)


def grouped_allreduce(tensors, average=None, device_dense="", device_sparse="",
                      compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set,
                      ignore_name_scope=False, name=None):
    """Reduces several tensors over all ranks, together."""
    op = _op_of(op, average)
    if not tensors:
        return []
    if any(isinstance(t, tf.IndexedSlices) for t in tensors):
        return [allreduce(t, compression=compression, op=op, prescale_factor=prescale_factor,
                          postscale_factor=postscale_factor, process_set=process_set)
                for t in tensors]
    small, contexts = zip(*(compression.compress(tf.convert_to_tensor(t)) for t in tensors))
    reduced = mpi_ops._grouped_allreduce(small, name, op, prescale_factor, postscale_factor,
                                         process_set)
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


def reducescatter(tensor, device_dense="", compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0,
                  postscale_factor=1.0):
    """Reduces a tensor and returns this rank's share of the rows."""
    small, ctx = compression.compress(tf.convert_to_tensor(tensor))
    part = mpi_ops._reducescatter(small, name, core.reduce_op(op), prescale_factor,
                                  postscale_factor, process_set)
    return compression.decompress(part, ctx)


def grouped_reducescatter(tensors, device_dense="", compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0, name=None):
    """Reduces several tensors, which run together, and returns this rank's shares."""
    if not tensors:
        return []
    small, contexts = zip(*(compression.compress(tf.convert_to_tensor(t)) for t in tensors))
    parts = mpi_ops._grouped_reducescatter(small, name, core.reduce_op(op), prescale_factor,
                                           postscale_factor, process_set)
    return [compression.decompress(t, ctx) for t, ctx in zip(parts, contexts)]


from .gradients import (  # noqa: E402, F401
    DistributedGradientTape, PartialDistributedGradientTape, reduce_gradients)
from .optimizer import DistributedOptimizer, PartialDistributedOptimizer  # noqa: E402, F401
from .sync_batch_norm import SyncBatchNormalization  # noqa: E402, F401
from . import elastic  # noqa: E402, F401
