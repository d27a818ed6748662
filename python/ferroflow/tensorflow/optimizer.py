"""Optimizers that average gradients over all ranks: those of `tf.compat.v1.train` and of Keras."""

import tensorflow as tf

from ferroflow._hvd import core
from ferroflow._hvd.core import global_process_set

from .compression import Compression
from .gradients import reduce_gradients

_v1 = tf.compat.v1


class _DistributedV1Optimizer(_v1.train.Optimizer):
    """Wraps an optimizer of `tf.compat.v1.train`."""

    def __init__(self, optimizer, name, use_locking, options, backward_passes_per_step,
                 average_aggregated_gradients):
        super().__init__(use_locking, name or f"Distributed{type(optimizer).__name__}")
        self._optimizer, self._options = optimizer, options
        self._passes = backward_passes_per_step
        self._average = average_aggregated_gradients
        self._aggregation = None

    def compute_gradients(self, *args, **kwargs):
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if core.size() == 1 and self._passes == 1:
            return pairs
        gradients, variables = zip(*pairs)
        if self._passes > 1:
            return list(zip(self._aggregated(gradients, variables), variables))
        return list(zip(self._reduce(gradients, variables), variables))

    def _reduce(self, gradients, variables):
        return reduce_gradients(gradients, variables, prefix="optimizer", **self._options)

    def _aggregated(self, gradients, variables):
        """Sums gradients of several passes. They are reduced in the last pass."""
        with _v1.variable_scope("ferroflow_aggregation", reuse=_v1.AUTO_REUSE):
            count = _v1.get_variable("passes", [], tf.int32, trainable=False,
                                     initializer=tf.zeros_initializer())
            sums = [None if g is None else _v1.get_variable(
                f"sum_{i}", v.shape, v.dtype.base_dtype, trainable=False,
                initializer=tf.zeros_initializer())
                for i, (g, v) in enumerate(zip(gradients, variables))]
        added = [None if s is None else s.assign_add(tf.convert_to_tensor(g))
                 for s, g in zip(sums, gradients)]
        present = [a for a in added if a is not None]
        with tf.control_dependencies(present):
            passed = count.assign_add(1)
        self._aggregation = (passed, sums, count)

        def last():
            factor = self._passes if self._average else 1
            totals = [tf.identity(s) / tf.cast(factor, s.dtype) for s in sums if s is not None]
            reduced = reduce_gradients(totals, [v for v, s in zip(variables, sums)
                                                if s is not None], prefix="optimizer",
                                       **self._options)
            return [tf.identity(r) for r in reduced]

        def other():
            return [tf.zeros_like(s) for s in sums if s is not None]

        with tf.control_dependencies([passed]):
            is_last = tf.equal(tf.math.floormod(count, self._passes), 0)
        results = iter(tf.cond(is_last, last, other))
        return [None if s is None else next(results) for s in sums]

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if self._aggregation is None:
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        passed, sums, count = self._aggregation
        pairs = list(grads_and_vars)

        def apply():
            done = self._optimizer.apply_gradients(pairs, global_step, name)
            with tf.control_dependencies([done]):
                cleared = [s.assign(tf.zeros_like(s)) for s in sums if s is not None]
            with tf.control_dependencies(cleared):
                return tf.constant(True)

        with tf.control_dependencies([g for g, _ in pairs if g is not None]):
            is_last = tf.equal(tf.math.floormod(count, self._passes), 0)
        return tf.cond(is_last, apply, lambda: tf.constant(False)).op

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                         device_sparse="", compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=core.Average,
                         gradient_predivide_factor=1.0, average_aggregated_gradients=False,
                         num_groups=0, groups=None, process_set=global_process_set,
                         scale_local_gradients=True):
    """Wraps an optimizer, so that it averages gradients over all ranks before it applies them."""
    if gradient_predivide_factor != 1.0 and op != core.Average:
        raise ValueError("gradient_predivide_factor needs op == Average")
    options = {
        "compression": compression, "op": op, "sparse_as_dense": sparse_as_dense,
        "gradient_predivide_factor": gradient_predivide_factor, "num_groups": num_groups,
        "groups": groups, "process_set": process_set,
    }
    if isinstance(optimizer, _v1.train.Optimizer):
        return _DistributedV1Optimizer(optimizer, name, use_locking, options,
                                       backward_passes_per_step, average_aggregated_gradients)
    from ferroflow.keras import optimizer as keras_optimizer
    return keras_optimizer.wrap(optimizer, options, backward_passes_per_step,
                                average_aggregated_gradients)
