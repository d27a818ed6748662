"""The pieces of `tf.contrib.layers` and `tf.contrib.slim` that programs lean on."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.layers import end_points
from ferroflow.python.layers.arg_scope import add_arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.ops import pooling_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("contrib.layers.xavier_initializer", "contrib.layers.xavier_initializer_conv2d",
        "contrib.slim.xavier_initializer", "contrib.slim.xavier_initializer_conv2d")
def xavier_initializer(uniform=True, seed=None, dtype=dtypes.float32):
    """Scales with the average of the number of inputs and outputs."""
    return init_ops.VarianceScaling(
        scale=1.0, mode="fan_avg",
        distribution="uniform" if uniform else "truncated_normal", seed=seed, dtype=dtype)


@export("contrib.layers.variance_scaling_initializer")
def variance_scaling_initializer(factor=2.0, mode="FAN_IN", uniform=False, seed=None,
                                 dtype=dtypes.float32):
    return init_ops.VarianceScaling(
        scale=factor, mode=mode.lower(),
        distribution="uniform" if uniform else "truncated_normal", seed=seed, dtype=dtype)


@export("contrib.layers.l2_regularizer", "contrib.slim.l2_regularizer")
def l2_regularizer(scale, scope=None):
    if scale < 0.0:
        raise ValueError("Setting a scale less than 0 on a regularizer: %g." % scale)
    if scale == 0.0:
        return lambda _: None

    def l2(weights):
        with ops.name_scope(scope, "l2_regularizer", [weights]) as name:
            factor = ops.convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return math_ops.multiply(factor, gen_ops.L2Loss(weights), name=name)
    return l2


@export("contrib.layers.l1_regularizer", "contrib.slim.l1_regularizer")
def l1_regularizer(scale, scope=None):
    if scale < 0.0:
        raise ValueError("Setting a scale less than 0 on a regularizer: %g" % scale)
    if scale == 0.0:
        return lambda _: None

    def l1(weights):
        with ops.name_scope(scope, "l1_regularizer", [weights]) as name:
            factor = ops.convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return math_ops.multiply(factor, math_ops.reduce_sum(math_ops.abs(weights)),
                                     name=name)
    return l1


def _finish(outputs, normalizer_fn, normalizer_params, biases, activation_fn):
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    elif biases is not None:
        outputs = nn_ops.bias_add(outputs, biases)
    return outputs if activation_fn is None else activation_fn(outputs)


# The names of variables in the layers of `tf.layers`, which name the nodes of their penalties.
_OF_LAYERS = {"weights": "kernel", "biases": "bias", "depthwise_weights": "depthwise_kernel", "pointwise_weights": "pointwise_kernel"}


def _variable(name, shape, initializer, regularizer, trainable, collections):
    names = [ops.GraphKeys.GLOBAL_VARIABLES, ops.GraphKeys.MODEL_VARIABLES]
    if isinstance(collections, dict):
        collections = collections.get(name)
    before = len(ops.get_collection_ref(ops.GraphKeys.GLOBAL_VARIABLES))
    var = variable_scope.get_variable(
        name, shape=shape, initializer=initializer, trainable=trainable, collections=names + list(collections or []))
    if regularizer is not None and len(ops.get_collection_ref(ops.GraphKeys.GLOBAL_VARIABLES)) > before:
        for part in list(var) if hasattr(var, "_variable_list") else [var]:
            with ops.name_scope(_OF_LAYERS[name] + "/Regularizer"):
                penalty = regularizer(part)
            if penalty is not None:
                ops.add_to_collection(ops.GraphKeys.REGULARIZATION_LOSSES, penalty)
    return var


@export("contrib.layers.fully_connected", "contrib.slim.fully_connected")
@add_arg_scope
def fully_connected(inputs, num_outputs, activation_fn=gen_ops.Relu, normalizer_fn=None,
                    normalizer_params=None, weights_initializer=xavier_initializer(),
                    weights_regularizer=None, biases_initializer=init_ops.zeros_initializer(),
                    biases_regularizer=None, reuse=None, variables_collections=None,
                    outputs_collections=None, trainable=True, scope=None):
    """A dense layer with the variables `weights` and `biases`."""
    with variable_scope.variable_scope(scope, "fully_connected", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        depth = inputs.get_shape().as_list()[-1]
        weights = _variable("weights", [depth, num_outputs], weights_initializer,
                            weights_regularizer, trainable, variables_collections)
        biases = None
        if normalizer_fn is None and biases_initializer is not None:
            biases = _variable("biases", [num_outputs], biases_initializer, biases_regularizer,
                               trainable, variables_collections)
        if rank > 2:
            outputs = math_ops.tensordot(inputs, weights, [[rank - 1], [0]])
        else:
            outputs = math_ops.matmul(inputs, weights)
        outputs = _finish(outputs, normalizer_fn, normalizer_params, biases, activation_fn)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.conv2d", "contrib.layers.convolution2d", "contrib.slim.conv2d")
@add_arg_scope
def conv2d(inputs, num_outputs, kernel_size, stride=1, padding="SAME", data_format=None, rate=1,
           activation_fn=gen_ops.Relu, normalizer_fn=None, normalizer_params=None,
           weights_initializer=xavier_initializer(), weights_regularizer=None,
           biases_initializer=init_ops.zeros_initializer(), biases_regularizer=None, reuse=None,
           variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    """A convolution with the variables `weights` and `biases`."""
    with variable_scope.variable_scope(scope, "Conv", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        size = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        axis = 1 if data_format == "NCHW" else -1
        depth = inputs.get_shape().as_list()[axis]
        weights = _variable("weights", size + [depth, num_outputs], weights_initializer,
                            weights_regularizer, trainable, variables_collections)
        biases = None
        if normalizer_fn is None and biases_initializer is not None:
            biases = _variable("biases", [num_outputs], biases_initializer, biases_regularizer,
                               trainable, variables_collections)
        if rate in (1, (1, 1), [1, 1]):
            outputs = convolution_ops.conv2d(inputs, weights, stride, padding, data_format=data_format or "NHWC")
        else:
            outputs = convolution_ops.convolution(
                inputs, weights, padding, strides=stride, dilation_rate=rate, data_format=data_format or "NHWC",
                name="Conv2D")
        outputs = _finish(outputs, normalizer_fn, normalizer_params, biases, activation_fn)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.max_pool2d", "contrib.slim.max_pool2d")
@add_arg_scope
def max_pool2d(inputs, kernel_size, stride=2, padding="VALID", data_format="NHWC",
               outputs_collections=None, scope=None):
    with ops.name_scope(scope, "MaxPool2D", [inputs]) as found:
        outputs = pooling_ops.max_pool(inputs, kernel_size, stride, padding, data_format)
        return end_points.collect_named_outputs(outputs_collections, found, outputs)


@export("contrib.layers.flatten", "contrib.slim.flatten")
@add_arg_scope
def flatten(inputs, outputs_collections=None, scope=None):
    with ops.name_scope(scope, "Flatten", [inputs]) as found:
        from ferroflow.python.layers import core
        outputs = core.flatten(ops.convert_to_tensor(inputs))
        return end_points.collect_named_outputs(outputs_collections, found, outputs)


@export("contrib.layers.one_hot_encoding", "contrib.slim.one_hot_encoding")
@add_arg_scope
def one_hot_encoding(labels, num_classes, on_value=1.0, off_value=0.0, outputs_collections=None,
                     scope=None):
    with ops.name_scope(scope, "OneHotEncoding", [labels, num_classes]) as name:
        labels = ops.convert_to_tensor(labels)
        if labels.dtype == dtypes.int32:
            labels = math_ops.cast(labels, dtypes.int64)
        return array_ops.one_hot(labels, num_classes, on_value=on_value, off_value=off_value,
                                 name=name)
