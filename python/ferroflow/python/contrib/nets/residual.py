"""ResNets of both versions: blocks of units with shortcuts."""

import collections

from ferroflow.python.framework import ops
from ferroflow.python.layers import contrib_layers as layers
from ferroflow.python.layers import contrib_more_layers as more
from ferroflow.python.layers import end_points as ends
from ferroflow.python.layers.arg_scope import add_arg_scope
from ferroflow.python.layers.arg_scope import arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("contrib.slim.nets.resnet_utils.Block")
class Block(collections.namedtuple("Block", ["scope", "unit_fn", "args"])):
    """A group of units: a scope, the function that makes a unit, and the arguments of each unit."""


@export("contrib.slim.nets.resnet_utils.subsample")
def subsample(inputs, factor, scope=None):
    """Every `factor`-th position."""
    return inputs if factor == 1 else layers.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


@export("contrib.slim.nets.resnet_utils.conv2d_same")
def conv2d_same(inputs, num_outputs, kernel_size, stride, rate=1, scope=None):
    """A convolution whose padding does not depend on the size of the image."""
    if stride == 1:
        return layers.conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = (kernel_size - 1) * rate
    sides = [total // 2, total - total // 2]
    padded = array_ops.pad(inputs, [[0, 0], sides, sides, [0, 0]])
    return layers.conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@export("contrib.slim.nets.resnet_utils.stack_blocks_dense")
@add_arg_scope
def stack_blocks_dense(net, blocks, output_stride=None, outputs_collections=None):
    """Puts blocks one after the other. From `output_stride` on, dilation takes the place of strides."""
    stride, rate = 1, 1
    for block in blocks:
        with variable_scope.variable_scope(block.scope, "block", [net]) as found:
            for i, unit in enumerate(block.args):
                if output_stride is not None and stride > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with variable_scope.variable_scope("unit_%d" % (i + 1), values=[net]):
                    if output_stride is not None and stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **dict(unit, stride=1))
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride *= unit.get("stride", 1)
            net = ends.collect_named_outputs(outputs_collections, found.name, net)
    if output_stride is not None and stride != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


@export("contrib.slim.nets.resnet_utils.resnet_arg_scope", "contrib.slim.nets.resnet_v1.resnet_arg_scope",
        "contrib.slim.nets.resnet_v2.resnet_arg_scope")
def resnet_arg_scope(weight_decay=0.0001, batch_norm_decay=0.997, batch_norm_epsilon=1e-5, batch_norm_scale=True):
    """The defaults of layers in these networks."""
    norm = {"decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "scale": batch_norm_scale,
            "updates_collections": ops.GraphKeys.UPDATE_OPS}
    with arg_scope([layers.conv2d], weights_regularizer=layers.l2_regularizer(weight_decay),
                   weights_initializer=layers.variance_scaling_initializer(), activation_fn=gen_ops.Relu,
                   normalizer_fn=more.batch_norm, normalizer_params=norm), \
            arg_scope([more.batch_norm], **norm), arg_scope([layers.max_pool2d], padding="SAME") as found:
        return found


@export("contrib.slim.nets.resnet_v1.bottleneck")
@add_arg_scope
def bottleneck_v1(inputs, depth, depth_bottleneck, stride, rate=1, outputs_collections=None, scope=None):
    """A unit whose activation comes after the sum."""
    with variable_scope.variable_scope(scope, "bottleneck_v1", [inputs]) as found:
        if depth == ends.last_dimension(inputs.get_shape(), min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = layers.conv2d(inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut")
        net = layers.conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        net = conv2d_same(net, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        net = layers.conv2d(net, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        return ends.collect_named_outputs(outputs_collections, found.name, gen_ops.Relu(shortcut + net))


@export("contrib.slim.nets.resnet_v2.bottleneck")
@add_arg_scope
def bottleneck_v2(inputs, depth, depth_bottleneck, stride, rate=1, outputs_collections=None, scope=None):
    """A unit whose normalization and activation come before the convolutions."""
    with variable_scope.variable_scope(scope, "bottleneck_v2", [inputs]) as found:
        width = ends.last_dimension(inputs.get_shape(), min_rank=4)
        before = more.batch_norm(inputs, activation_fn=gen_ops.Relu, scope="preact")
        plain = dict(normalizer_fn=None, activation_fn=None)
        if depth == width:
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = layers.conv2d(before, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        net = layers.conv2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        net = conv2d_same(net, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        net = layers.conv2d(net, depth, [1, 1], stride=1, scope="conv3", **plain)
        return ends.collect_named_outputs(outputs_collections, found.name, shortcut + net)


def _resnet(version, unit, inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block, reuse, scope):
    with variable_scope.variable_scope(scope, "resnet_v%d" % version, [inputs], reuse=reuse) as found:
        collection = found.original_name_scope + "_end_points"
        with arg_scope([layers.conv2d, unit, stack_blocks_dense], outputs_collections=collection), \
                arg_scope([more.batch_norm], is_training=is_training):
            net = inputs
            if include_root_block:
                if output_stride is not None:
                    if output_stride % 4 != 0:
                        raise ValueError("The output_stride needs to be a multiple of 4.")
                    output_stride /= 4
                # The first unit of version 2 normalizes its inputs itself.
                own = {} if version == 1 else dict(activation_fn=None, normalizer_fn=None)
                with arg_scope([layers.conv2d], **own):
                    net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                net = layers.max_pool2d(net, [3, 3], stride=2, scope="pool1")
            net = stack_blocks_dense(net, blocks, output_stride)
            if version == 2:
                net = more.batch_norm(net, activation_fn=gen_ops.Relu, scope="postnorm")
            if global_pool:
                net = math_ops.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
            if num_classes is not None:
                net = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
            end_points = ends.convert_collection_to_dict(collection)
            if num_classes is not None:
                end_points["predictions"] = more.softmax(net, scope="predictions")
            return net, end_points


@export("contrib.slim.nets.resnet_v1.resnet_v1")
def resnet_v1(inputs, blocks, num_classes=None, is_training=True, global_pool=True, output_stride=None, include_root_block=True,
              reuse=None, scope=None):
    """A ResNet of version 1 from blocks."""
    return _resnet(1, bottleneck_v1, inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block,
                   reuse, scope)


@export("contrib.slim.nets.resnet_v2.resnet_v2")
def resnet_v2(inputs, blocks, num_classes=None, is_training=True, global_pool=True, output_stride=None, include_root_block=True,
              reuse=None, scope=None):
    """A ResNet of version 2 from blocks."""
    return _resnet(2, bottleneck_v2, inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block,
                   reuse, scope)


def _block(unit, scope, base_depth, num_units, stride):
    """Units of stride 1, but for the last."""
    one = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return Block(scope, unit, [one] * (num_units - 1) + [dict(one, stride=stride)])


@export("contrib.slim.nets.resnet_v1.resnet_v1_block")
def resnet_v1_block(scope, base_depth, num_units, stride):
    return _block(bottleneck_v1, scope, base_depth, num_units, stride)


@export("contrib.slim.nets.resnet_v2.resnet_v2_block")
def resnet_v2_block(scope, base_depth, num_units, stride):
    return _block(bottleneck_v2, scope, base_depth, num_units, stride)


_UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


def _sized(version, count):
    """The network with `count` layers."""
    network, block = (resnet_v1, resnet_v1_block) if version == 1 else (resnet_v2, resnet_v2_block)
    name = "resnet_v%d_%d" % (version, count)

    def resnet(inputs, num_classes=None, is_training=True, global_pool=True, output_stride=None, reuse=None, scope=name):
        blocks = [block("block%d" % (i + 1), 64 << i, units, 1 if i == 3 else 2) for i, units in enumerate(_UNITS[count])]
        return network(inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block=True, reuse=reuse,
                       scope=scope)

    resnet.__name__ = resnet.__qualname__ = name
    resnet.__doc__ = "ResNet of version %d with %d layers." % (version, count)
    resnet.default_image_size = network.default_image_size
    return resnet


resnet_v1.default_image_size = resnet_v2.default_image_size = 224
resnet_v1_50 = export("contrib.slim.nets.resnet_v1.resnet_v1_50")(_sized(1, 50))
resnet_v1_101 = export("contrib.slim.nets.resnet_v1.resnet_v1_101")(_sized(1, 101))
resnet_v1_152 = export("contrib.slim.nets.resnet_v1.resnet_v1_152")(_sized(1, 152))
resnet_v1_200 = export("contrib.slim.nets.resnet_v1.resnet_v1_200")(_sized(1, 200))
resnet_v2_50 = export("contrib.slim.nets.resnet_v2.resnet_v2_50")(_sized(2, 50))
resnet_v2_101 = export("contrib.slim.nets.resnet_v2.resnet_v2_101")(_sized(2, 101))
resnet_v2_152 = export("contrib.slim.nets.resnet_v2.resnet_v2_152")(_sized(2, 152))
resnet_v2_200 = export("contrib.slim.nets.resnet_v2.resnet_v2_200")(_sized(2, 200))
