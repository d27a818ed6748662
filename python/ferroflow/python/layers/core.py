"""Dense, dropout and flatten layers."""

import numpy as np

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.layers import base
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import cond
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.util.api import export


@export("layers.Dense")
class Dense(base.Layer):
    """activation(inputs * kernel + bias)"""

    _min_ndim = 2

    def __init__(self, units, activation=None, use_bias=True, kernel_initializer=None,
                 bias_initializer=init_ops.zeros_initializer(), kernel_regularizer=None,
                 bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
                 bias_constraint=None, trainable=True, name=None, **kwargs):
        super().__init__(trainable=trainable, name=name,
                         activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        if self.units < 0:
            raise ValueError("Received an invalid value for `units`, expected a positive integer. Received: units=%s" % units)
        self.activation = base.activation_of(activation)
        self.use_bias = use_bias
        self._kernel = dict(initializer=kernel_initializer, regularizer=kernel_regularizer,
                            constraint=kernel_constraint)
        self._bias = dict(initializer=bias_initializer, regularizer=bias_regularizer,
                          constraint=bias_constraint)

    def build(self, input_shape):
        last = None if input_shape.ndims is None else input_shape.as_list()[-1]
        if last is None:
            raise ValueError("The last dimension of the inputs to a Dense layer should be "
                             "defined. Found None. Full input shape received: %s" % input_shape)
        if not (self._dtype.is_floating or self._dtype.is_complex):
            raise TypeError("A Dense layer can only be built with a floating-point dtype. Received: dtype=%s" %
                            (self._dtype,))
        self._last_axis = last
        self.kernel = self.add_weight("kernel", [last, self.units], **self._kernel)
        self.bias = self.add_weight("bias", [self.units], **self._bias) if self.use_bias else None

    def call(self, inputs):
        rank = inputs.get_shape().ndims
        if rank is not None and rank > 2:
            outputs = math_ops.tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape(inputs.get_shape().as_list()[:-1] + [self.units])
        else:
            outputs = gen_ops.MatMul(inputs, self.kernel)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape):
        shape = tensor_shape.as_shape(input_shape).with_rank_at_least(2)
        if shape.as_list()[-1] is None:
            raise ValueError("The last dimension of the input shape of a Dense layer should be defined. Found None. "
                             "Received: input_shape=%s" % (shape,))
        return shape[:-1].concatenate(self.units)


@export("layers.dense")
def dense(inputs, units, activation=None, use_bias=True, kernel_initializer=None,
          bias_initializer=init_ops.zeros_initializer(), kernel_regularizer=None,
          bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
          bias_constraint=None, trainable=True, name=None, reuse=None):
    return Dense(units, activation=activation, use_bias=use_bias,
                 kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                 kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                 activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
                 bias_constraint=bias_constraint, trainable=trainable, name=name, _scope=name,
                 _reuse=reuse).apply(inputs)


@export("layers.Dropout")
class Dropout(base.Layer):
    """Drops values while training."""

    def __init__(self, rate=0.5, noise_shape=None, seed=None, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
            raise ValueError("Invalid value %s received for `rate`, expected a value between 0 and 1." % rate)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=False):
        def dropped():
            return nn_ops.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed,
                                  rate=self.rate)
        return cond.smart_cond(training, dropped, lambda: array_ops.identity(inputs))


@export("layers.dropout")
def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    return Dropout(rate, noise_shape=noise_shape, seed=seed, name=name).apply(
        inputs, training=training)


@export("layers.Flatten")
class Flatten(base.Layer):
    """All dimensions but the first as one."""

    _min_ndim = 1

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = data_format or "channels_last"

    def call(self, inputs):
        static = inputs.get_shape()
        if self.data_format == "channels_first" and static.ndims is not None and static.ndims > 2:
            inputs = array_ops.transpose(
                inputs, perm=[0] + list(range(2, static.ndims)) + [1])
            static = inputs.get_shape()
        dims = static.as_list() if static.ndims is not None else None
        if dims is not None and all(d is not None for d in dims[1:]):
            size = int(np.prod(dims[1:], dtype=np.int64))
            return array_ops.reshape(inputs, ops.convert_to_tensor([-1, size]))
        if dims is not None and dims[0] is not None:
            return array_ops.reshape(inputs, (dims[0], -1))
        return array_ops.reshape(inputs, (array_ops.shape(inputs)[0], -1))


@export("layers.flatten")
def flatten(inputs, name=None, data_format="channels_last"):
    return Flatten(name=name, data_format=data_format).apply(inputs)
