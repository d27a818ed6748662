"""Optimizers of `ferroflow.compat.v1` that average gradients over all ranks."""

import ferroflow.compat.v1 as tf
from ferroflow._hvd import core, v1
from ferroflow._hvd.core import global_process_set

from . import graph_ops
from .graph_ops import Compression


def _reduce_gradients(gradients, variables, compression, op, sparse_as_dense,
                      gradient_predivide_factor, process_set, scale_local_gradients, prefix,
                      local):
    """The gradients over all ranks. The runtime fuses gradients that are ready at the same time."""
    if core.is_alone() or not process_set.included():
        return list(gradients)
    before, after = 1.0, 1.0
    if op == core.Average and gradient_predivide_factor != 1.0:
        before, after = 1.0 / gradient_predivide_factor, gradient_predivide_factor
    results = []
    for i, (g, v) in enumerate(zip(gradients, variables)):
        if g is not None and id(v) in local:
            g = _scaled(g, process_set) if scale_local_gradients else g
        elif g is not None:
            if isinstance(g, tf.IndexedSlices) and (
                    sparse_as_dense or op not in (core.Average, core.Sum)):
                g = tf.convert_to_tensor(g)
            g = graph_ops.allreduce(g, None, compression, op, before, after,
                                    f"{prefix}.{i}.{v.op.name}", process_set)
        results.append(g)
    return results


def _scaled(gradient, process_set):
    """A local gradient divided by the number of ranks."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_scaled(gradient.values, process_set), gradient.indices,
                                gradient.dense_shape)
    ranks = graph_ops.size_op(core.set_number(process_set))
    return gradient / tf.cast(ranks, gradient.dtype)


_DistributedOptimizer = v1.optimizer_class(tf, _reduce_gradients)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                         device_sparse="", compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=core.Average,
                         gradient_predivide_factor=1.0, average_aggregated_gradients=False,
                         num_groups=0, groups=None, process_set=global_process_set,
                         scale_local_gradients=True):
    """Wraps an optimizer, so that it averages gradients over all ranks before it applies them."""
    options = core.gradient_options(
        op, gradient_predivide_factor, compression=compression, sparse_as_dense=sparse_as_dense,
        process_set=process_set, scale_local_gradients=scale_local_gradients)
    if not isinstance(optimizer, tf.train.Optimizer):
        raise ValueError(f"expected an optimizer of tf.train, not {type(optimizer).__name__}")
    return _DistributedOptimizer(optimizer, name, use_locking, options, backward_passes_per_step,
                                 average_aggregated_gradients)
