"""Batch normalization over the batches of all ranks."""

import tensorflow as tf

from ferroflow._hvd import core
from ferroflow._hvd.core import global_process_set

from . import mpi_ops


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Normalizes with the mean and variance over all ranks. Ranks may have batches of different
    sizes."""

    def __init__(self, *args, process_set=global_process_set, **options):
        options.pop("fused", None)
        super().__init__(*args, **options)
        self._hvd_process_set = process_set
        self.fused = False

    def _sums(self, x, axes):
        """The sums of values and squares over all ranks, and the number of values."""
        count = tf.reduce_prod(tf.gather(tf.shape(x), axes))
        wide = tf.cast(x, tf.float64 if x.dtype == tf.float64 else tf.float32)
        total, squares = tf.reduce_sum(wide, axes), tf.reduce_sum(tf.square(wide), axes)
        packed = tf.concat([total, squares, [tf.cast(count, wide.dtype)]], 0)
        name = f"sync_batch_norm.{self.name}"
        packed = mpi_ops._allreduce(packed, name, core.Sum, process_set=self._hvd_process_set)
        channels = tf.shape(total)[0]
        return packed[:channels], packed[channels:2 * channels], packed[-1]

    def call(self, inputs, training=None, mask=None):
        axis = self.axis[0] if isinstance(self.axis, (list, tuple)) else self.axis
        if not training or core.is_alone():
            return super().call(inputs, training=training)
        rank = inputs.shape.rank
        axis = axis % rank
        axes = [i for i in range(rank) if i != axis]
        total, squares, count = self._sums(inputs, axes)
        mean = total / count
        variance = tf.maximum(squares / count - tf.square(mean), 0.0)
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            old = tf.convert_to_tensor(moving)
            new = old * self.momentum + tf.cast(value, old.dtype) * (1 - self.momentum)
            moving.assign(new)
        shape = [1] * rank
        shape[axis] = inputs.shape[axis]

        def spread(v):
            return None if v is None else tf.reshape(tf.cast(v, inputs.dtype), shape)
        return tf.nn.batch_normalization(
            inputs, spread(mean), spread(variance), spread(self.beta), spread(self.gamma),
            self.epsilon)
