"""Inception networks of versions 1 to 3: modules whose branches are concatenated.

A module is a line of text, a branch stands between bars, and a layer is a word:

    64:0a_1x1           a convolution with 64 filters; its scope `Conv2d_0a_1x1` names its kernel
    64:0a_1x1@3x3       the same name, but another kernel
    64:=NAME@5x5        another name
    avg:0a_3x3          a pool
    /2                  with stride 2
    A+B                 two convolutions of one input, concatenated
"""

import re

from ferroflow.python.framework import ops
from ferroflow.python.layers import contrib_layers as layers
from ferroflow.python.layers import contrib_more_layers as more
from ferroflow.python.layers import contrib_separable
from ferroflow.python.layers.arg_scope import arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export

_V1 = """
Mixed_3b  64:0a_1x1 | 96:0a_1x1 128:0b_3x3 | 16:0a_1x1 32:0b_3x3 | max:0a_3x3 32:0b_1x1
Mixed_3c  128:0a_1x1 | 128:0a_1x1 192:0b_3x3 | 32:0a_1x1 96:0b_3x3 | max:0a_3x3 64:0b_1x1
MaxPool_4a_3x3
Mixed_4b  192:0a_1x1 | 96:0a_1x1 208:0b_3x3 | 16:0a_1x1 48:0b_3x3 | max:0a_3x3 64:0b_1x1
Mixed_4c  160:0a_1x1 | 112:0a_1x1 224:0b_3x3 | 24:0a_1x1 64:0b_3x3 | max:0a_3x3 64:0b_1x1
Mixed_4d  128:0a_1x1 | 128:0a_1x1 256:0b_3x3 | 24:0a_1x1 64:0b_3x3 | max:0a_3x3 64:0b_1x1
Mixed_4e  112:0a_1x1 | 144:0a_1x1 288:0b_3x3 | 32:0a_1x1 64:0b_3x3 | max:0a_3x3 64:0b_1x1
Mixed_4f  256:0a_1x1 | 160:0a_1x1 320:0b_3x3 | 32:0a_1x1 128:0b_3x3 | max:0a_3x3 128:0b_1x1
MaxPool_5a_2x2
Mixed_5b  256:0a_1x1 | 160:0a_1x1 320:0b_3x3 | 32:0a_1x1 128:0a_3x3 | max:0a_3x3 128:0b_1x1
Mixed_5c  384:0a_1x1 | 192:0a_1x1 384:0b_3x3 | 48:0a_1x1 128:0b_3x3 | max:0a_3x3 128:0b_1x1
"""
_V2 = """
Mixed_3b  64:0a_1x1 | 64:0a_1x1 64:0b_3x3 | 64:0a_1x1 96:0b_3x3 96:0c_3x3 | avg:0a_3x3 32:0b_1x1
Mixed_3c  64:0a_1x1 | 64:0a_1x1 96:0b_3x3 | 64:0a_1x1 96:0b_3x3 96:0c_3x3 | avg:0a_3x3 64:0b_1x1
Mixed_4a  128:0a_1x1 160:1a_3x3/2 | 64:0a_1x1 96:0b_3x3 96:1a_3x3/2 | max:1a_3x3/2
Mixed_4b  224:0a_1x1 | 64:0a_1x1 96:0b_3x3 | 96:0a_1x1 128:0b_3x3 128:0c_3x3 | avg:0a_3x3 128:0b_1x1
Mixed_4c  192:0a_1x1 | 96:0a_1x1 128:0b_3x3 | 96:0a_1x1 128:0b_3x3 128:0c_3x3 | avg:0a_3x3 128:0b_1x1
Mixed_4d  160:0a_1x1 | 128:0a_1x1 160:0b_3x3 | 128:0a_1x1 160:0b_3x3 160:0c_3x3 | avg:0a_3x3 96:0b_1x1
Mixed_4e  96:0a_1x1 | 128:0a_1x1 192:0b_3x3 | 160:0a_1x1 192:0b_3x3 192:0c_3x3 | avg:0a_3x3 96:0b_1x1
Mixed_5a  128:0a_1x1 192:1a_3x3/2 | 192:0a_1x1 256:0b_3x3 256:1a_3x3/2 | max:1a_3x3/2
Mixed_5b  352:0a_1x1 | 192:0a_1x1 320:0b_3x3 | 160:0a_1x1 224:0b_3x3 224:0c_3x3 | avg:0a_3x3 128:0b_1x1
Mixed_5c  352:0a_1x1 | 192:0a_1x1 320:0b_3x3 | 192:0a_1x1 224:0b_3x3 224:0c_3x3 | max:0a_3x3 128:0b_1x1
"""
_6X = ("192:0a_1x1 | {0}:0a_1x1 {0}:0b_1x7 192:0c_7x1 | {0}:0a_1x1 {0}:0b_7x1 {0}:0c_1x7 {0}:0d_7x1 192:0e_1x7 | "
       "avg:0a_3x3 192:0b_1x1")
_7X = ("320:0a_1x1 | 384:0a_1x1 384:0b_1x3+384:{}_3x1 | 448:0a_1x1 384:0b_3x3 384:0c_1x3+384:0d_3x1 | avg:0a_3x3 192:0b_1x1")
_V3 = f"""
Mixed_5b  64:0a_1x1 | 48:0a_1x1 64:0b_5x5 | 64:0a_1x1 96:0b_3x3 96:0c_3x3 | avg:0a_3x3 32:0b_1x1
Mixed_5c  64:0a_1x1 | 48:0b_1x1 64:=Conv_1_0c_5x5 | 64:0a_1x1 96:0b_3x3 96:0c_3x3 | avg:0a_3x3 64:0b_1x1
Mixed_5d  64:0a_1x1 | 48:0a_1x1 64:0b_5x5 | 64:0a_1x1 96:0b_3x3 96:0c_3x3 | avg:0a_3x3 64:0b_1x1
Mixed_6a  384:1a_1x1@3x3/2 | 64:0a_1x1 96:0b_3x3 96:1a_1x1@3x3/2 | max:1a_3x3/2
Mixed_6b  {_6X.format(128)}
Mixed_6c  {_6X.format(160)}
Mixed_6d  {_6X.format(160)}
Mixed_6e  {_6X.format(192)}
Mixed_7a  192:0a_1x1 320:1a_3x3/2 | 192:0a_1x1 192:0b_1x7 192:0c_7x1 192:1a_3x3/2 | max:1a_3x3/2
Mixed_7b  {_7X.format("0b")}
Mixed_7c  {_7X.format("0c")}
"""


def _normal(stddev):
    return init_ops.truncated_normal_initializer(0.0, stddev)


def _size(name):
    """The kernel that a scope names: [3, 3] of `Conv2d_0b_3x3`."""
    return [int(n) for n in name.rsplit("_", 1)[1].split("x")]


class _Modules:
    """Makes modules. `reduced` pads strided layers as VALID; `stddevs` are those of version 2."""

    def __init__(self, depth, reduced="SAME", stddevs=None):
        self._depth, self._reduced, self._stddevs = depth, reduced, stddevs

    def _layer(self, net, word, before, after):
        kind, name, kernel, stride = re.fullmatch(r"(\w+):(=?\w+?_\d+x\d+)(?:@(\w+))?(/2)?", word).groups()
        more_arguments = dict(stride=2, padding=self._reduced) if stride else {}
        if kind in ("max", "avg"):
            pool, prefix = (layers.max_pool2d, "MaxPool_") if kind == "max" else (more.avg_pool2d, "AvgPool_")
            return pool(net, _size(name), scope=prefix + name, **more_arguments)
        scope = name[1:] if name.startswith("=") else "Conv2d_" + name
        size = _size(scope) if kernel is None else _size("_" + kernel)
        if self._stddevs and size == [1, 1] and (before or after):
            more_arguments["weights_initializer"] = _normal(self._stddevs[1 if before else 0])
        return layers.conv2d(net, self._depth(int(kind)), size, scope=scope, **more_arguments)

    def module(self, net, name, text):
        """A module: each branch begins at `net`."""
        with variable_scope.variable_scope(name):
            branches = []
            for i, branch in enumerate(text.split("|")):
                words = branch.split()
                with variable_scope.variable_scope("Branch_%d" % i):
                    at = net
                    for k, word in enumerate(words):
                        ends = [self._layer(at, w, words[:k], words[k + 1:]) for w in word.split("+")]
                        at = ends[0] if len(ends) == 1 else array_ops.concat(ends, 3)
                    branches.append(at)
            return array_ops.concat(branches, 3)


def _built(steps, inputs, final_endpoint):
    """Runs (name, function) steps up to an end point."""
    end_points, net = {}, inputs
    for name, make in steps:
        net = make(net, name)
        end_points[name] = net
        if name == final_endpoint:
            return net, end_points
    raise ValueError("Unknown final endpoint %s" % final_endpoint)


def _modules(table, modules):
    """The steps of a table: modules, and pools with stride 2."""
    for line in table.strip().splitlines():
        name, _, text = line.partition("  ")
        if text:
            yield name, lambda net, n, text=text: modules.module(net, n, text)
        else:
            yield name, _pool


def _pool(net, name):
    return layers.max_pool2d(net, _size(name), stride=2, scope=name)


def _conv(size, **kwargs):
    return lambda net, name: layers.conv2d(net, size, _size(name), scope=name, **kwargs)


def _depths(min_depth, depth_multiplier):
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda d: max(int(d * depth_multiplier), min_depth)


def _defaults(padding, *, average=True):
    functions = [layers.conv2d, layers.max_pool2d] + ([more.avg_pool2d] if average else [])
    return arg_scope(functions, stride=1, padding=padding)


@export("contrib.slim.nets.inception.inception_v1_base", "contrib.slim.nets.inception_v1.inception_v1_base")
def inception_v1_base(inputs, final_endpoint="Mixed_5c", scope="InceptionV1"):
    """GoogLeNet up to an end point."""
    steps = [("Conv2d_1a_7x7", _conv(64, stride=2)), ("MaxPool_2a_3x3", _pool), ("Conv2d_2b_1x1", _conv(64)),
             ("Conv2d_2c_3x3", _conv(192)), ("MaxPool_3a_3x3", _pool), *_modules(_V1, _Modules(lambda d: d))]
    with variable_scope.variable_scope(scope, "InceptionV1", [inputs]), \
            arg_scope([layers.conv2d, layers.fully_connected], weights_initializer=_normal(0.01)), _defaults("SAME", average=False):
        return _built(steps, inputs, final_endpoint)


def _reduced_kernel(net, kernel):
    """The kernel, or the size of the image where that is smaller."""
    dims = net.get_shape().as_list()[1:3]
    return kernel if None in dims else [min(d, k) for d, k in zip(dims, kernel)]


def _logits(net, scope, num_classes, spatial_squeeze):
    logits = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope)
    if spatial_squeeze:
        logits = array_ops.squeeze(logits, [1, 2], name="SpatialSqueeze")
    return logits


@export("contrib.slim.nets.inception.inception_v1", "contrib.slim.nets.inception_v1.inception_v1")
def inception_v1(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.8, prediction_fn=more.softmax,
                 spatial_squeeze=True, reuse=None, scope="InceptionV1"):
    """GoogLeNet for images of 224x224."""
    with variable_scope.variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as scope, \
            arg_scope([more.batch_norm, more.dropout], is_training=is_training):
        net, end_points = inception_v1_base(inputs, scope=scope)
        with variable_scope.variable_scope("Logits"):
            net = more.avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = more.dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = _logits(net, "Conv2d_0c_1x1", num_classes, spatial_squeeze)
            end_points["Logits"] = logits
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


@export("contrib.slim.nets.inception.inception_v2_base", "contrib.slim.nets.inception_v2.inception_v2_base")
def inception_v2_base(inputs, final_endpoint="Mixed_5c", min_depth=16, depth_multiplier=1.0, scope=None):
    """Inception with batch normalization, up to an end point."""
    depth = _depths(min_depth, depth_multiplier)

    def first(net, name):
        return contrib_separable.separable_conv2d(
            net, depth(64), [7, 7], depth_multiplier=min(int(depth(64) / 3), 8), stride=2, padding="SAME",
            weights_initializer=_normal(1.0), scope=name)

    steps = [("Conv2d_1a_7x7", first), ("MaxPool_2a_3x3", _pool),
             ("Conv2d_2b_1x1", _conv(depth(64), weights_initializer=_normal(0.1))), ("Conv2d_2c_3x3", _conv(depth(192))),
             ("MaxPool_3a_3x3", _pool), *_modules(_V2, _Modules(depth, stddevs=(0.09, 0.1)))]
    with variable_scope.variable_scope(scope, "InceptionV2", [inputs]), _defaults("SAME"):
        return _built(steps, inputs, final_endpoint)


@export("contrib.slim.nets.inception.inception_v2", "contrib.slim.nets.inception_v2.inception_v2")
def inception_v2(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.8, min_depth=16, depth_multiplier=1.0,
                 prediction_fn=more.softmax, spatial_squeeze=True, reuse=None, scope="InceptionV2"):
    """Inception with batch normalization, for images of 224x224."""
    _depths(min_depth, depth_multiplier)
    with variable_scope.variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as scope, \
            arg_scope([more.batch_norm, more.dropout], is_training=is_training):
        net, end_points = inception_v2_base(inputs, scope=scope, min_depth=min_depth, depth_multiplier=depth_multiplier)
        with variable_scope.variable_scope("Logits"):
            kernel = _reduced_kernel(net, [7, 7])
            net = more.avg_pool2d(net, kernel, padding="VALID", scope="AvgPool_1a_%dx%d" % tuple(kernel))
            net = more.dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            logits = _logits(net, "Conv2d_1c_1x1", num_classes, spatial_squeeze)
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


@export("contrib.slim.nets.inception.inception_v3_base", "contrib.slim.nets.inception_v3.inception_v3_base")
def inception_v3_base(inputs, final_endpoint="Mixed_7c", min_depth=16, depth_multiplier=1.0, scope=None):
    """Inception with factored convolutions, up to an end point."""
    depth = _depths(min_depth, depth_multiplier)
    stem = [("Conv2d_1a_3x3", _conv(depth(32), stride=2)), ("Conv2d_2a_3x3", _conv(depth(32))),
            ("Conv2d_2b_3x3", _conv(depth(64), padding="SAME")), ("MaxPool_3a_3x3", _pool), ("Conv2d_3b_1x1", _conv(depth(80))),
            ("Conv2d_4a_3x3", _conv(depth(192))), ("MaxPool_5a_3x3", _pool)]
    with variable_scope.variable_scope(scope, "InceptionV3", [inputs]):
        with _defaults("VALID"):
            names = [name for name, _ in stem]
            net, end_points = _built(stem, inputs, final_endpoint if final_endpoint in names else names[-1])
        if final_endpoint in names:
            return net, end_points
        with _defaults("SAME"):
            net, rest = _built(_modules(_V3, _Modules(depth, reduced="VALID")), net, final_endpoint)
    return net, {**end_points, **rest}


@export("contrib.slim.nets.inception.inception_v3", "contrib.slim.nets.inception_v3.inception_v3")
def inception_v3(inputs, num_classes=1000, is_training=True, dropout_keep_prob=0.8, min_depth=16, depth_multiplier=1.0,
                 prediction_fn=more.softmax, spatial_squeeze=True, reuse=None, create_aux_logits=True, scope="InceptionV3"):
    """Inception with factored convolutions, for images of 299x299, with a second head in the middle."""
    depth = _depths(min_depth, depth_multiplier)
    with variable_scope.variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as scope, \
            arg_scope([more.batch_norm, more.dropout], is_training=is_training):
        net, end_points = inception_v3_base(inputs, scope=scope, min_depth=min_depth, depth_multiplier=depth_multiplier)
        if create_aux_logits and num_classes:
            with _defaults("SAME"):
                aux = end_points["Mixed_6e"]
                with variable_scope.variable_scope("AuxLogits"):
                    aux = more.avg_pool2d(aux, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
                    aux = layers.conv2d(aux, depth(128), [1, 1], scope="Conv2d_1b_1x1")
                    kernel = _reduced_kernel(aux, [5, 5])
                    aux = layers.conv2d(aux, depth(768), kernel, weights_initializer=_normal(0.01), padding="VALID",
                                        scope="Conv2d_2a_%dx%d" % tuple(kernel))
                    aux = layers.conv2d(aux, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                                        weights_initializer=_normal(0.001), scope="Conv2d_2b_1x1")
                    if spatial_squeeze:
                        aux = array_ops.squeeze(aux, [1, 2], name="SpatialSqueeze")
                    end_points["AuxLogits"] = aux
        with variable_scope.variable_scope("Logits"):
            kernel = _reduced_kernel(net, [8, 8])
            net = more.avg_pool2d(net, kernel, padding="VALID", scope="AvgPool_1a_%dx%d" % tuple(kernel))
            net = more.dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            end_points["PreLogits"] = net
            logits = _logits(net, "Conv2d_1c_1x1", num_classes, spatial_squeeze)
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v1.default_image_size = inception_v2.default_image_size = 224
inception_v3.default_image_size = 299


def _arg_scope(weight_decay, collection, decay=0.9997, epsilon=0.001, updates=ops.GraphKeys.UPDATE_OPS, norm=True, **more_norm):
    """The defaults of layers in these networks."""
    own = {"beta": None, "gamma": None, "moving_mean": [collection], "moving_variance": [collection]}
    params = {"decay": decay, "epsilon": epsilon, "updates_collections": updates, "variables_collections": own, **more_norm}
    with arg_scope([layers.conv2d, layers.fully_connected], weights_regularizer=layers.l2_regularizer(weight_decay)), \
            arg_scope([layers.conv2d], weights_initializer=layers.variance_scaling_initializer(), activation_fn=gen_ops.Relu,
                      normalizer_fn=more.batch_norm if norm else None, normalizer_params=params if norm else {}) as found:
        return found


@export("contrib.slim.nets.inception.inception_v1_arg_scope", "contrib.slim.nets.inception_v1.inception_v1_arg_scope")
def inception_v1_arg_scope(weight_decay=0.00004, use_batch_norm=True, batch_norm_var_collection="moving_vars"):
    return _arg_scope(weight_decay, batch_norm_var_collection, norm=use_batch_norm)


@export("contrib.slim.nets.inception.inception_v2_arg_scope", "contrib.slim.nets.inception_v2.inception_v2_arg_scope")
def inception_v2_arg_scope(weight_decay=0.00004, batch_norm_var_collection="moving_vars"):
    return _arg_scope(weight_decay, batch_norm_var_collection)


@export("contrib.slim.nets.inception.inception_v3_arg_scope", "contrib.slim.nets.inception_v3.inception_v3_arg_scope")
def inception_v3_arg_scope(weight_decay=0.00004, batch_norm_var_collection="moving_vars", batch_norm_decay=0.9997,
                           batch_norm_epsilon=0.001, updates_collections=ops.GraphKeys.UPDATE_OPS, use_fused_batchnorm=True):
    return _arg_scope(weight_decay, batch_norm_var_collection, batch_norm_decay, batch_norm_epsilon, updates_collections,
                      fused=use_fused_batchnorm)
