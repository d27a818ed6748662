"""AlexNet, OverFeat and VGG: convolutions and pools one after the other."""

from ferroflow.python.layers import contrib_layers as layers
from ferroflow.python.layers import contrib_more_layers as more
from ferroflow.python.layers import end_points as ends
from ferroflow.python.layers.arg_scope import arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


def _arg_scope(weight_decay, first_bias, pool_padding=None):
    """The defaults of layers in these networks."""
    defaults = dict(activation_fn=gen_ops.Relu, weights_regularizer=layers.l2_regularizer(weight_decay), biases_initializer=first_bias)
    with arg_scope([layers.conv2d, layers.fully_connected], **defaults), arg_scope([layers.conv2d], padding="SAME") as found:
        if pool_padding is None:
            return found
        with arg_scope([layers.max_pool2d], padding=pool_padding) as found:
            return found


def _classifier(net, sizes, kernel, num_classes, keep, is_training, **last):
    """Three convolutions in place of dense layers, so that images may be larger than the network's."""
    net = layers.conv2d(net, sizes[0], kernel, padding="VALID", scope="fc6")
    net = more.dropout(net, keep, is_training=is_training, scope="dropout6")
    net = layers.conv2d(net, sizes[1], [1, 1], scope="fc7")
    net = more.dropout(net, keep, is_training=is_training, scope="dropout7")
    return layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **last)


def _results(net, collection, scope, spatial_squeeze):
    found = ends.convert_collection_to_dict(collection)
    if spatial_squeeze:
        net = array_ops.squeeze(net, [1, 2], name="fc8/squeezed")
        found[scope.name + "/fc8"] = net
    return net, found


@export("contrib.slim.nets.alexnet.alexnet_v2_arg_scope")
def alexnet_v2_arg_scope(weight_decay=0.0005):
    return _arg_scope(weight_decay, init_ops.constant_initializer(0.1), "VALID")


@export("contrib.slim.nets.alexnet.alexnet_v2")
def alexnet_v2(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.5, spatial_squeeze=True, scope="alexnet_v2"):
    """AlexNet for one GPU, without local response normalization."""
    with variable_scope.variable_scope(scope, "alexnet_v2", [inputs]) as found:
        collection = found.original_name_scope + "_end_points"
        with arg_scope([layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=[collection]):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = layers.conv2d(net, 192, [5, 5], scope="conv2")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool2")
            for i, size in enumerate((384, 384, 256)):
                net = layers.conv2d(net, size, [3, 3], scope="conv%d" % (i + 3))
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool5")
            with _small_weights():
                net = _classifier(net, (4096, 4096), [5, 5], num_classes, dropout_keep_prob, is_training,
                                  biases_initializer=init_ops.zeros_initializer())
        return _results(net, collection, found, spatial_squeeze)


alexnet_v2.default_image_size = 224


def _small_weights():
    return arg_scope([layers.conv2d], weights_initializer=init_ops.truncated_normal_initializer(0.0, 0.005),
                     biases_initializer=init_ops.constant_initializer(0.1))


@export("contrib.slim.nets.overfeat.overfeat_arg_scope")
def overfeat_arg_scope(weight_decay=0.0005):
    return _arg_scope(weight_decay, init_ops.zeros_initializer(), "VALID")


@export("contrib.slim.nets.overfeat.overfeat")
def overfeat(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.5, spatial_squeeze=True, scope="overfeat"):
    """The fast OverFeat network."""
    with variable_scope.variable_scope(scope, "overfeat", [inputs]) as found:
        collection = found.name + "_end_points"
        with arg_scope([layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [2, 2], scope="pool1")
            net = layers.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
            net = layers.max_pool2d(net, [2, 2], scope="pool2")
            for i, size in enumerate((512, 1024, 1024)):
                net = layers.conv2d(net, size, [3, 3], scope="conv%d" % (i + 3))
            net = layers.max_pool2d(net, [2, 2], scope="pool5")
            with _small_weights():
                net = _classifier(net, (3072, 4096), [6, 6], num_classes, dropout_keep_prob, is_training,
                                  biases_initializer=init_ops.zeros_initializer())
        return _results(net, collection, found, spatial_squeeze)


overfeat.default_image_size = 231


@export("contrib.slim.nets.vgg.vgg_arg_scope")
def vgg_arg_scope(weight_decay=0.0005):
    return _arg_scope(weight_decay, init_ops.zeros_initializer())


def _vgg(inputs, counts, name, num_classes, is_training, keep, spatial_squeeze, scope):
    """Five groups of 3x3 convolutions, which `counts` counts."""
    with variable_scope.variable_scope(scope, name, [inputs]) as found:
        collection = (found.name if name == "vgg_19" else found.original_name_scope) + "_end_points"
        with arg_scope([layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection):
            net = inputs
            for i, (count, size) in enumerate(zip(counts, (64, 128, 256, 512, 512))):
                net = more.repeat(net, count, layers.conv2d, size, [3, 3], scope="conv%d" % (i + 1))
                net = layers.max_pool2d(net, [2, 2], scope="pool%d" % (i + 1))
            net = _classifier(net, (4096, 4096), [7, 7], num_classes, keep, is_training)
        return _results(net, collection, found, spatial_squeeze)


@export("contrib.slim.nets.vgg.vgg_a")
def vgg_a(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.5, spatial_squeeze=True, scope="vgg_a"):
    """VGG with 11 layers."""
    return _vgg(inputs, (1, 1, 2, 2, 2), "vgg_a", num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


@export("contrib.slim.nets.vgg.vgg_16", "contrib.slim.nets.vgg.vgg_d")
def vgg_16(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.5, spatial_squeeze=True, scope="vgg_16"):
    """VGG with 16 layers."""
    return _vgg(inputs, (2, 2, 3, 3, 3), "vgg_16", num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


@export("contrib.slim.nets.vgg.vgg_19", "contrib.slim.nets.vgg.vgg_e")
def vgg_19(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.5, spatial_squeeze=True, scope="vgg_19"):
    """VGG with 19 layers."""
    return _vgg(inputs, (2, 2, 4, 4, 4), "vgg_19", num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope)


vgg_a.default_image_size = vgg_16.default_image_size = vgg_19.default_image_size = 224
