"""Batch normalisation as a layer."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import ops
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import normalization_ops
from ferroflow.python.ops import state_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("layers.BatchNormalization")
class BatchNormalization(base.Layer):
    """Normalises each channel with the moments of the batch, or with moving averages of them."""

    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                 beta_initializer=init_ops.zeros_initializer(),
                 gamma_initializer=init_ops.ones_initializer(),
                 moving_mean_initializer=init_ops.zeros_initializer(),
                 moving_variance_initializer=init_ops.ones_initializer(), beta_regularizer=None,
                 gamma_regularizer=None, beta_constraint=None, gamma_constraint=None,
                 renorm=False, renorm_clipping=None, renorm_momentum=0.99, fused=None,
                 trainable=True, virtual_batch_size=None, adjustment=None, name=None, **kwargs):
        super().__init__(trainable=trainable, name=name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise NotImplementedError("batch_normalization: renorm, virtual_batch_size and "
                                      "adjustment are not supported")
        self.axis = axis[0] if isinstance(axis, (list, tuple)) else axis
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self._beta = dict(initializer=beta_initializer, regularizer=beta_regularizer,
                          constraint=beta_constraint)
        self._gamma = dict(initializer=gamma_initializer, regularizer=gamma_regularizer,
                           constraint=gamma_constraint)
        self._mean_initializer = moving_mean_initializer
        self._variance_initializer = moving_variance_initializer

    def build(self, input_shape):
        rank = input_shape.ndims
        if not rank:
            raise ValueError("Input has undefined rank. Received: input_shape=%s" % input_shape)
        self._axis = self.axis + rank if self.axis < 0 else self.axis
        if not 0 <= self._axis < rank:
            raise ValueError("Invalid value for `axis` argument. Expected 0 <= axis < inputs.rank (with inputs.rank=%d). Received: axis=(%d,)"
                             % (rank, self._axis))
        size = input_shape.as_list()[self._axis]
        if size is None:
            raise ValueError("Input has undefined `axis` dimension. Received input with shape %s. "
                             "Axis value: %s" % (input_shape, self.axis))
        if self.fused is None:
            self.fused = rank == 4 and self._axis in (1, 3)
        self._layout = "NCHW" if self.fused and self._axis == 1 else "NHWC"
        shape = [size]
        self.gamma = self.add_weight("gamma", shape, **self._gamma) if self.scale else None
        self.beta = self.add_weight("beta", shape, **self._beta) if self.center else None
        # The averages are updated as a whole: they are never partitioned.
        scope = variable_scope.get_variable_scope()
        partitioner = scope.partitioner
        scope.set_partitioner(None)
        try:
            self.moving_mean = self.add_weight(
                "moving_mean", shape, initializer=self._mean_initializer, trainable=False)
            self.moving_variance = self.add_weight(
                "moving_variance", shape, initializer=self._variance_initializer, trainable=False)
        finally:
            scope.set_partitioner(partitioner)

    def _average(self, variable, value):
        with ops.name_scope("AssignMovingAvg", None, [variable, value]) as scope:
            with ops.colocate_with(variable.op):
                decay = ops.convert_to_tensor(1.0 - self._momentum_tensor, name="decay")
                delta = (variable - math_ops.cast(value, variable.dtype.base_dtype)) * decay
                return state_ops.assign_sub(variable, delta, name=scope)

    def call(self, inputs, training=False):
        if self.fused:
            return self._fused(inputs, training)
        return self._plain(inputs, training)

    def _fused(self, inputs, training):
        size = self.moving_mean.get_shape()
        gamma = self.gamma if self.scale else constant_op.constant(1.0, shape=size)
        beta = self.beta if self.center else constant_op.constant(0.0, shape=size)

        def norm(is_training):
            return normalization_ops.fused_batch_norm(
                inputs, gamma, beta, mean=self.moving_mean, variance=self.moving_variance,
                epsilon=self.epsilon, is_training=is_training, data_format=self._layout)

        output, mean, variance = cond.smart_cond(training, lambda: norm(True),
                                                 lambda: norm(False))
        if cond.smart_constant_value(training) is not False:
            self._update(training, mean, variance)
        return output

    def _update(self, training, mean, variance):
        value = cond.smart_constant_value(training)
        if value is None:
            self._momentum_tensor = cond.cond(training, lambda: self.momentum, lambda: 1.0)
        else:
            self._momentum_tensor = ops.convert_to_tensor(self.momentum) if self.fused else (
                self.momentum)
        self.add_update([self._average(self.moving_mean, mean),
                         self._average(self.moving_variance, variance)])

    def _plain(self, inputs, training):
        rank = inputs.get_shape().ndims
        axes = [i for i in range(rank) if i != self._axis]
        shape = [1] * rank
        shape[self._axis] = inputs.get_shape().as_list()[self._axis]

        def wide(v):
            if v is None or self._axis == rank - 1:
                return v
            return array_ops.reshape(v, shape)

        known = cond.smart_constant_value(training)
        if known is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            mean, variance = normalization_ops.moments(inputs, axes, keep_dims=False)
            batch_mean, batch_variance = mean, variance
            mean = cond.smart_cond(training, lambda: batch_mean,
                                   lambda: ops.convert_to_tensor(self.moving_mean))
            variance = cond.smart_cond(training, lambda: batch_variance,
                                       lambda: ops.convert_to_tensor(self.moving_variance))
            self._update(training, mean, variance)
        outputs = normalization_ops.batch_normalization(
            inputs, wide(mean), wide(variance), wide(self.beta), wide(self.gamma), self.epsilon)
        outputs.set_shape(inputs.get_shape())
        return outputs


@export("layers.batch_normalization")
def batch_normalization(inputs, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True,
                        beta_initializer=init_ops.zeros_initializer(),
                        gamma_initializer=init_ops.ones_initializer(),
                        moving_mean_initializer=init_ops.zeros_initializer(),
                        moving_variance_initializer=init_ops.ones_initializer(),
                        beta_regularizer=None, gamma_regularizer=None, beta_constraint=None,
                        gamma_constraint=None, training=False, trainable=True, name=None,
                        reuse=None, renorm=False, renorm_clipping=None, renorm_momentum=0.99,
                        fused=None, virtual_batch_size=None, adjustment=None):
    layer = BatchNormalization(
        axis=axis, momentum=momentum, epsilon=epsilon, center=center, scale=scale,
        beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint, gamma_constraint=gamma_constraint, renorm=renorm,
        renorm_clipping=renorm_clipping, renorm_momentum=renorm_momentum, fused=fused,
        trainable=trainable, virtual_batch_size=virtual_batch_size, adjustment=adjustment,
        name=name, _scope=name, _reuse=reuse)
    return layer.apply(inputs, training=training)
