"""The functions of `ferroflow.keras`: data-parallel training of Keras models with Horovod's API.

It works with Keras 2, and with Keras 3 on TensorFlow, torch and JAX.
"""

import numpy as np

from ferroflow._hvd import arrays, core
from ferroflow._hvd.core import (  # noqa: F401
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, ccl_built, cross_rank,
    cross_size, cuda_built, ddl_built, get_process_set_ids_and_ranks, global_process_set,
    gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, join, local_rank, local_size,
    mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, process_set_included, rank,
    remove_process_set, rocm_built, shutdown, size, start_timeline, stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401

from . import callbacks, elastic  # noqa: F401
from .framework import backend, keras
from .optimizer import Compression, wrap


def DistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                         compression=Compression.none, sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=core.Average,
                         backward_passes_per_step=1, average_aggregated_gradients=False,
                         num_groups=0, groups=None, process_set=global_process_set,
                         scale_local_gradients=True):
    """Makes an optimizer average gradients over all ranks before it applies them."""
    options = core.gradient_options(
        op, gradient_predivide_factor, compression=compression, sparse_as_dense=sparse_as_dense,
        num_groups=num_groups, groups=groups, process_set=process_set,
        scale_local_gradients=scale_local_gradients)
    return wrap(optimizer, options, backward_passes_per_step, average_aggregated_gradients)


def PartialDistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=core.Average,
                                backward_passes_per_step=1, average_aggregated_gradients=False,
                                groups=None, process_set=global_process_set, local_layers=None,
                                scale_local_gradients=True):
    """As DistributedOptimizer, but the gradients of some layers stay on their rank."""
    made = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,
        gradient_predivide_factor, op, backward_passes_per_step, average_aggregated_gradients, 0,
        groups, process_set, scale_local_gradients)
    for layer in local_layers if isinstance(local_layers, (list, tuple)) else [local_layers]:
        for variable in [] if layer is None else layer.trainable_weights:
            made.register_local_var(variable)
    return made


def _values(value):
    """The value as an array. TensorFlow makes Python's floats float32."""
    if backend() != "tensorflow" or hasattr(value, "__array__"):
        return np.asarray(value)
    import tensorflow as tf
    return tf.make_ndarray(tf.make_tensor_proto(value))


def _result(array):
    """What a collective returns: a tensor if TensorFlow runs eagerly, as Horovod does, or an
    array."""
    if backend() != "tensorflow":
        return array
    import tensorflow as tf
    return tf.constant(array) if tf.executing_eagerly() else array


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none, process_set=global_process_set):
    """Reduces a value over all ranks. Returns a tensor in eager TensorFlow, or a numpy array."""
    return _result(arrays.allreduce(_values(value), average, name, op, prescale_factor,
                                    postscale_factor, process_set))


def allgather(value, name=None, process_set=global_process_set):
    """Concatenates the values of all ranks. Returns a tensor in eager TensorFlow, or a numpy array."""
    return _result(arrays.allgather(_values(value), name, process_set))


def broadcast(value, root_rank, name=None, process_set=global_process_set):
    """The value of rank `root_rank`, on all ranks. Returns a tensor in eager TensorFlow, or a numpy
    array."""
    return _result(arrays.broadcast(_values(value), root_rank, name, process_set))


def reducescatter(value, name=None, op=core.Average, process_set=global_process_set):
    """Reduces a value and returns this rank's share of the rows. Returns a tensor in eager TensorFlow,
    or a numpy array."""
    return _result(arrays.reducescatter(_values(value), name, op, process_set=process_set))


def broadcast_global_variables(root_rank):
    """An op that assigns the values of rank `root_rank` to all variables of the v1 graph."""
    from ferroflow.tensorflow import broadcast_global_variables
    return broadcast_global_variables(root_rank)


def load_model(filepath, custom_optimizers=None, custom_objects=None,
               compression=Compression.none, legacy_opts=False):
    """Loads a model and makes its optimizer a distributed one."""
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    if getattr(model, "optimizer", None) is not None:
        DistributedOptimizer(model.optimizer, compression=compression)
    return model
