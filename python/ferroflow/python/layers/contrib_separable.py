"""Separable convolutions, other norms and shorthands of `tf.contrib.layers` and `tf.contrib.slim`."""

import functools

from ferroflow.python.framework import ops
from ferroflow.python.layers import contrib_layers
from ferroflow.python.layers import end_points
from ferroflow.python.layers.arg_scope import add_arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import normalization_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export

_xavier = contrib_layers.xavier_initializer()


def _pair(value):
    return [value, value] if isinstance(value, int) else list(value)


@export("contrib.layers.separable_conv2d", "contrib.layers.separable_convolution2d",
        "contrib.slim.separable_conv2d", "contrib.slim.separable_convolution2d")
@add_arg_scope
def separable_conv2d(inputs, num_outputs, kernel_size, depth_multiplier=1, stride=1, padding="SAME",
                     data_format="NHWC", rate=1, activation_fn=gen_ops.Relu, normalizer_fn=None, normalizer_params=None,
                     weights_initializer=_xavier, pointwise_initializer=None, weights_regularizer=None,
                     biases_initializer=init_ops.zeros_initializer(), biases_regularizer=None, reuse=None,
                     variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    """A convolution of each channel, then one over the channels; without `num_outputs` only the first."""
    with variable_scope.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        channels = inputs.get_shape().as_list()[1 if data_format == "NCHW" else -1]
        depthwise = contrib_layers._variable(
            "depthwise_weights", _pair(kernel_size) + [channels, depth_multiplier], weights_initializer,
            weights_regularizer, trainable, variables_collections)
        steps = _pair(stride)
        strides = [1, 1] + steps if data_format == "NCHW" else [1] + steps + [1]
        layout = None if data_format == "NHWC" else data_format
        if num_outputs is None:
            count = channels * depth_multiplier
            outputs = convolution_ops.depthwise_conv2d(
                inputs, depthwise, strides, padding, rate=_pair(rate), data_format=layout)
        else:
            count = num_outputs
            pointwise = contrib_layers._variable(
                "pointwise_weights", [1, 1, channels * depth_multiplier, num_outputs],
                pointwise_initializer or weights_initializer, weights_regularizer, trainable, variables_collections)
            outputs = convolution_ops.separable_conv2d(
                inputs, depthwise, pointwise, strides, padding, rate=_pair(rate), data_format=layout)
        biases = None
        if normalizer_fn is None and biases_initializer is not None:
            biases = contrib_layers._variable(
                "biases", [count], biases_initializer, biases_regularizer, trainable, variables_collections)
        outputs = contrib_layers._finish(outputs, normalizer_fn, normalizer_params, biases, activation_fn)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


linear = export("contrib.layers.linear")(functools.partial(contrib_layers.fully_connected, activation_fn=None))
relu = export("contrib.layers.relu")(functools.partial(contrib_layers.fully_connected, activation_fn=gen_ops.Relu))
relu6 = export("contrib.layers.relu6")(functools.partial(contrib_layers.fully_connected, activation_fn=gen_ops.Relu6))


@export("contrib.layers.bias_add", "contrib.slim.bias_add")
@add_arg_scope
def bias_add(inputs, activation_fn=None, initializer=init_ops.zeros_initializer(), regularizer=None, reuse=None,
             variables_collections=None, outputs_collections=None, trainable=True, data_format="NHWC", scope=None):
    with variable_scope.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        count = inputs.get_shape().as_list()[1 if data_format == "NCHW" else -1]
        biases = contrib_layers._variable("biases", [count], initializer, regularizer, trainable, variables_collections)
        outputs = nn_ops.bias_add(inputs, biases, data_format=data_format)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.maxout", "contrib.slim.maxout")
@add_arg_scope
def maxout(inputs, num_units, axis=-1, scope=None):
    """The largest of each group of features."""
    with ops.name_scope(scope, "MaxOut", [inputs]):
        inputs = ops.convert_to_tensor(inputs)
        shape = inputs.get_shape().as_list()
        axis = axis % len(shape)
        if shape[axis] % num_units:
            raise ValueError("number of features(%d) is not a multiple of num_units(%d)" % (shape[axis], num_units))
        dynamic = array_ops.shape(inputs)
        dims = [dynamic[i] if d is None else d for i, d in enumerate(shape)]
        dims[axis:axis + 1] = [num_units, shape[axis] // num_units]
        outputs = math_ops.reduce_max(array_ops.reshape(inputs, dims), axis + 1)
        outputs.set_shape(shape[:axis] + [num_units] + shape[axis + 1:])
        return outputs


def _scaled(inputs, count, shape, mean, variance, epsilon, center, scale, trainable, collections):
    """Normalised inputs, with the variables `gamma` and `beta` in this shape."""
    beta = gamma = None
    if center:
        beta = array_ops.reshape(contrib_layers._variable(
            "beta", [count], init_ops.zeros_initializer(), None, trainable, collections), shape)
    if scale:
        gamma = array_ops.reshape(contrib_layers._variable(
            "gamma", [count], init_ops.ones_initializer(), None, trainable, collections), shape)
    return normalization_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)


@export("contrib.layers.instance_norm", "contrib.slim.instance_norm")
@add_arg_scope
def instance_norm(inputs, center=True, scale=True, epsilon=1e-6, activation_fn=None, reuse=None,
                  variables_collections=None, outputs_collections=None, trainable=True, data_format="NHWC", scope=None):
    """Normalises each channel of each example."""
    with variable_scope.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        channel = 1 if data_format == "NCHW" else rank - 1
        count = inputs.get_shape().as_list()[channel]
        shape = [count if i == channel else 1 for i in range(rank)]
        mean, variance = normalization_ops.moments(
            inputs, [i for i in range(1, rank) if i != channel], keep_dims=True)
        outputs = _scaled(inputs, count, shape, mean, variance, epsilon, center, scale, trainable, variables_collections)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.group_norm", "contrib.slim.group_norm")
@add_arg_scope
def group_norm(inputs, groups=32, channels_axis=-1, reduction_axes=(-3, -2), center=True, scale=True, epsilon=1e-6,
               activation_fn=None, reuse=None, variables_collections=None, outputs_collections=None, trainable=True,
               scope=None):
    """Normalises each group of channels of each example."""
    with variable_scope.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        dims = inputs.get_shape().as_list()
        rank = len(dims)
        axis = channels_axis % rank
        count = dims[axis]
        if count % groups:
            raise ValueError("%d groups is not commensurate with %d channels." % (groups, count))
        dynamic = array_ops.shape(inputs)
        dims = [dynamic[i] if d is None else d for i, d in enumerate(dims)]
        cut = dims[:axis] + [groups, count // groups] + dims[axis + 1:]
        shape = [1] * (rank + 1)
        shape[axis:axis + 2] = [groups, count // groups]
        reduced = [a % rank for a in reduction_axes]
        axes = [a if a < axis else a + 1 for a in reduced] + [axis + 1]
        grouped = array_ops.reshape(inputs, cut)
        mean, variance = normalization_ops.moments(grouped, sorted(axes), keep_dims=True)
        outputs = _scaled(grouped, count, shape, mean, variance, epsilon, center, scale, trainable, variables_collections)
        outputs = array_ops.reshape(outputs, dims)
        outputs.set_shape(inputs.get_shape())
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)
