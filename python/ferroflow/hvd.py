"""Horovod's API for numpy arrays."""

from ferroflow._hvd.arrays import (  # noqa: F401
    allgather, allgather_async, allgather_object, allreduce, allreduce_, allreduce_async,
    allreduce_async_, alltoall, alltoall_async, broadcast, broadcast_async, broadcast_object,
    grouped_allgather, grouped_allgather_async, grouped_allreduce, grouped_allreduce_async,
    grouped_reducescatter, grouped_reducescatter_async, poll, reducescatter, reducescatter_async,
    synchronize)
from ferroflow._hvd.core import (  # noqa: F401
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, barrier, ccl_built,
    cross_rank, cross_size, cuda_built, ddl_built, get_process_set_ids_and_ranks,
    global_process_set, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, join,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built,
    process_set_included, rank, remove_process_set, rocm_built, shutdown, size, start_timeline,
    stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
