"""Optimizers that average gradients over all ranks: those of `tf.compat.v1.train` and of Keras."""

import tensorflow as tf

from ferroflow._hvd import core, v1
from ferroflow._hvd.core import global_process_set

from .compression import Compression
from .gradients import reduce_gradients

_v1 = tf.compat.v1


_DistributedV1Optimizer = v1.optimizer_class(_v1, reduce_gradients)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                         device_sparse="", compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=core.Average,
                         gradient_predivide_factor=1.0, average_aggregated_gradients=False,
                         num_groups=0, groups=None, process_set=global_process_set,
                         scale_local_gradients=True):
    """Wraps an optimizer, so that it averages gradients over all ranks before it applies them."""
    options = core.gradient_options(
        op, gradient_predivide_factor, compression=compression, sparse_as_dense=sparse_as_dense,
        num_groups=num_groups, groups=groups, process_set=process_set,
        scale_local_gradients=scale_local_gradients)
    if isinstance(optimizer, _v1.train.Optimizer):
        return _DistributedV1Optimizer(optimizer, name, use_locking, options,
                                       backward_passes_per_step, average_aggregated_gradients)
    from ferroflow.keras import optimizer as keras_optimizer
    return keras_optimizer.wrap(optimizer, options, backward_passes_per_step,
                                average_aggregated_gradients)


def PartialDistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=core.Average,
                                backward_passes_per_step=1, average_aggregated_gradients=False,
                                groups=None, process_set=global_process_set, local_layers=None,
                                scale_local_gradients=True):
    """Wraps an optimizer that leaves the gradients of some layers to this rank alone."""
    made = DistributedOptimizer(
        optimizer, name, False, device_dense, device_sparse, compression, sparse_as_dense,
        backward_passes_per_step, op, gradient_predivide_factor, average_aggregated_gradients, 0,
        groups, process_set, scale_local_gradients)
    for layer in local_layers if isinstance(local_layers, (list, tuple)) else [local_layers]:
        for variable in [] if layer is None else layer.trainable_weights:
            made.register_local_var(variable)
    return made
