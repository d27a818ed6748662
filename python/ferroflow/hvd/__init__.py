"""Horovod's API for graphs of `ferroflow.compat.v1`, and for numpy arrays.

A tensor of a graph gives an op that communicates when a session runs it. An array gives an array at
once. `import ferroflow.hvd as hvd` replaces `import horovod.tensorflow as hvd`.
"""

import sys

from ferroflow._hvd import arrays as _arrays
from ferroflow._hvd.arrays import (  # noqa: F401
    allgather_async, allreduce_, allreduce_async, allreduce_async_, alltoall_async,
    broadcast_async, grouped_allgather_async, grouped_allreduce_async,
    grouped_reducescatter_async, poll, reducescatter_async, synchronize)
from ferroflow._hvd.core import (  # noqa: F401
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, barrier, ccl_built,
    cross_rank, cross_size, cuda_built, ddl_built, get_process_set_ids_and_ranks,
    global_process_set, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, join,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built,
    process_set_included, rank, remove_process_set, rocm_built, shutdown, size, start_timeline,
    stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
from ferroflow._hvd.launch import run  # noqa: F401

# Names that need the graphs of `ferroflow.compat.v1`, which are loaded with them.
_OF_GRAPHS = {
    "BroadcastGlobalVariablesHook": "variables", "broadcast_": "variables",
    "broadcast_global_variables": "variables", "broadcast_variables": "variables",
    "Compression": "graph_ops", "local_rank_op": "graph_ops", "local_size_op": "graph_ops",
    "process_set_included_op": "graph_ops", "rank_op": "graph_ops", "size_op": "graph_ops",
    "DistributedOptimizer": "optimizer", "elastic": None,
}


def __getattr__(name):
    import importlib
    if name not in _OF_GRAPHS:
        raise AttributeError(f"module 'ferroflow.hvd' has no attribute {name!r}")
    module = importlib.import_module(f"ferroflow.hvd.{_OF_GRAPHS[name] or name}")
    value = getattr(module, name) if _OF_GRAPHS[name] else module
    globals()[name] = value
    return value


def __dir__():
    return sorted(n for n in set(globals()) | set(_OF_GRAPHS) if not n.startswith("_"))


def _is_of_graph(value):
    """Whether a value is a tensor, slices or a variable of a graph."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_of_graph, value))
    # Without this module there are no graphs.
    return "ferroflow.python.framework.ops" in sys.modules and (
        hasattr(value, "graph") or hasattr(value, "_as_graph_element") or hasattr(value, "handle"))


def _graph_ops():
    from ferroflow.hvd import graph_ops
    return graph_ops


def allreduce(tensor, average=None, device_dense="", device_sparse="", compression=None, op=None,
              prescale_factor=1.0, postscale_factor=1.0, name=None,
              process_set=global_process_set, ignore_name_scope=False):
    """Reduces a tensor or an array over all ranks. The default is the average."""
    if _is_of_graph(tensor):
        return _graph_ops().allreduce(tensor, average, compression, op, prescale_factor,
                                      postscale_factor, name, process_set)
    return _arrays.allreduce(tensor, average, name, op, prescale_factor, postscale_factor,
                             process_set)


def grouped_allreduce(tensors, average=None, device_dense="", device_sparse="", compression=None,
                      op=None, prescale_factor=1.0, postscale_factor=1.0,
                      process_set=global_process_set, ignore_name_scope=False, name=None):
    """Reduces several tensors or arrays."""
    if _is_of_graph(tensors):
        names = [f"{name}.{i}" if name else None for i in range(len(tensors))]
        return [_graph_ops().allreduce(t, average, compression, op, prescale_factor,
                                       postscale_factor, n, process_set)
                for t, n in zip(tensors, names)]
    return _arrays.grouped_allreduce(tensors, average, name, op, prescale_factor,
                                     postscale_factor, process_set)


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Concatenates the tensors or arrays of all ranks along the first dimension. Ranks may have
    different numbers of rows."""
    make = _graph_ops().allgather if _is_of_graph(tensor) else _arrays.allgather
    return make(tensor, name, process_set)


def grouped_allgather(tensors, name=None, ignore_name_scope=False,
                      process_set=global_process_set):
    """Gathers several tensors or arrays."""
    if _is_of_graph(tensors):
        return [_graph_ops().allgather(t, f"{name}.{i}" if name else None, process_set)
                for i, t in enumerate(tensors)]
    return _arrays.grouped_allgather(tensors, name, process_set)


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False,
              process_set=global_process_set):
    """The tensor or array of rank `root_rank`, on all ranks."""
    make = _graph_ops().broadcast if _is_of_graph(tensor) else _arrays.broadcast
    return make(tensor, root_rank, name, process_set)


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False,
             process_set=global_process_set):
    """Sends `splits[r]` rows to each rank `r`. The received rows, and their numbers if splits were
    given."""
    make = _graph_ops().alltoall if _is_of_graph(tensor) else _arrays.alltoall
    return make(tensor, splits, name, process_set)


def reducescatter(tensor, device_dense="", compression=None, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0,
                  postscale_factor=1.0):
    """Reduces a tensor or an array. Each rank gets its share of the rows."""
    if _is_of_graph(tensor):
        return _graph_ops().reducescatter(tensor, compression, op, name, process_set,
                                          prescale_factor, postscale_factor)
    return _arrays.reducescatter(tensor, name, op, prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(tensors, device_dense="", compression=None, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0, name=None):
    """Reduces several tensors or arrays. Each rank gets its shares of the rows."""
    if _is_of_graph(tensors):
        return [_graph_ops().reducescatter(t, compression, op, f"{name}.{i}" if name else None,
                                           process_set, prescale_factor, postscale_factor)
                for i, t in enumerate(tensors)]
    return _arrays.grouped_reducescatter(tensors, name, op, prescale_factor, postscale_factor,
                                         process_set)


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """Returns the object of rank `root_rank`, which is pickled, on all ranks."""
    return _arrays.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function that calls `broadcast_object` with these arguments."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """Returns a list of the objects of all ranks, which are pickled."""
    return _arrays.allgather_object(obj, name, process_set)
