"""More of `tf.contrib.layers` and `tf.contrib.slim`: normalization, transposed convolutions, repetition."""

from ferroflow.python.framework import ops
from ferroflow.python.layers import contrib_layers
from ferroflow.python.layers import core
from ferroflow.python.layers import normalization
from ferroflow.python.layers import end_points
from ferroflow.python.layers.arg_scope import add_arg_scope
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import normalization_ops
from ferroflow.python.ops import pooling_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.util.api import export


@export("contrib.layers.batch_norm", "contrib.slim.batch_norm")
@add_arg_scope
def batch_norm(inputs, decay=0.999, center=True, scale=False, epsilon=0.001, activation_fn=None,
               param_initializers=None, param_regularizers=None, updates_collections=ops.GraphKeys.UPDATE_OPS,
               is_training=True, reuse=None, variables_collections=None, outputs_collections=None, trainable=True,
               fused=None, data_format="NHWC", scope=None):
    """Batch normalization. Without `updates_collections` the averages are updated with each step."""
    starts, penalties = param_initializers or {}, param_regularizers or {}
    with variable_scope.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        before = len(ops.get_collection(ops.GraphKeys.UPDATE_OPS))
        layer = normalization.BatchNormalization(
            axis=1 if data_format == "NCHW" else -1, momentum=decay, epsilon=epsilon, center=center, scale=scale,
            beta_initializer=starts.get("beta", init_ops.zeros_initializer()),
            gamma_initializer=starts.get("gamma", init_ops.ones_initializer()),
            moving_mean_initializer=starts.get("moving_mean", init_ops.zeros_initializer()),
            moving_variance_initializer=starts.get("moving_variance", init_ops.ones_initializer()),
            beta_regularizer=penalties.get("beta"), gamma_regularizer=penalties.get("gamma"), fused=fused,
            trainable=trainable, name=found.name.split("/")[-1], _scope=found, _reuse=reuse)
        outputs = layer.apply(inputs, training=is_training)
        for name in ("gamma", "beta", "moving_mean", "moving_variance"):
            variable = getattr(layer, name, None)
            if variable is not None:
                own = variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections
                for collection in [ops.GraphKeys.MODEL_VARIABLES, *(own or ())]:
                    if not any(variable is v for v in ops.get_collection_ref(collection)):
                        ops.add_to_collection(collection, variable)
        updates = ops.get_collection_ref(ops.GraphKeys.UPDATE_OPS)
        made = updates[before:]
        if updates_collections != ops.GraphKeys.UPDATE_OPS:
            del updates[before:]
            if updates_collections is None and made:
                with ops.control_dependencies(made):
                    outputs = array_ops.identity(outputs)
            elif updates_collections is not None:
                for update in made:
                    ops.add_to_collections(updates_collections, update)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.layer_norm", "contrib.slim.layer_norm")
@add_arg_scope
def layer_norm(inputs, center=True, scale=True, activation_fn=None, reuse=None, variables_collections=None,
               outputs_collections=None, trainable=True, begin_norm_axis=1, begin_params_axis=-1, scope=None):
    """Normalizes each example over its axes from `begin_norm_axis` on."""
    with variable_scope.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        shape = inputs.get_shape().as_list()[begin_params_axis:]
        beta = gamma = None
        if center:
            beta = contrib_layers._variable("beta", shape, init_ops.zeros_initializer(), None, trainable,
                                            variables_collections)
        if scale:
            gamma = contrib_layers._variable("gamma", shape, init_ops.ones_initializer(), None, trainable,
                                             variables_collections)
        mean, variance = normalization_ops.moments(inputs, list(range(begin_norm_axis % rank, rank)), keep_dims=True)
        outputs = normalization_ops.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)
        outputs.set_shape(inputs.get_shape())
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.conv2d_transpose", "contrib.layers.convolution2d_transpose", "contrib.slim.conv2d_transpose")
@add_arg_scope
def conv2d_transpose(inputs, num_outputs, kernel_size, stride=1, padding="SAME", data_format="NHWC",
                     activation_fn=gen_ops.Relu, normalizer_fn=None, normalizer_params=None,
                     weights_initializer=contrib_layers.xavier_initializer(), weights_regularizer=None,
                     biases_initializer=init_ops.zeros_initializer(), biases_regularizer=None, reuse=None,
                     variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    """A transposed convolution with the variables `weights` and `biases`."""
    if data_format != "NHWC":
        raise NotImplementedError("conv2d_transpose: data_format %s is not supported" % data_format)
    with variable_scope.variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse) as found:
        inputs = ops.convert_to_tensor(inputs)
        size = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        steps = [stride] * 2 if isinstance(stride, int) else list(stride)
        static = inputs.get_shape().as_list()
        weights = contrib_layers._variable("weights", size + [num_outputs, static[-1]], weights_initializer,
                                           weights_regularizer, trainable, variables_collections)
        biases = None
        if normalizer_fn is None and biases_initializer is not None:
            biases = contrib_layers._variable("biases", [num_outputs], biases_initializer, biases_regularizer,
                                              trainable, variables_collections)
        dynamic = array_ops.shape(inputs)

        def grown(i):
            known = static[i + 1]
            length = known if known is not None else dynamic[i + 1]
            more = max(size[i] - steps[i], 0) if padding.upper() == "VALID" else 0
            return length * steps[i] + more

        sizes = [grown(0), grown(1)]
        shape = array_ops.stack([static[0] if static[0] is not None else dynamic[0]] + sizes + [num_outputs])
        outputs = convolution_ops.conv2d_transpose(inputs, weights, shape, [1] + steps + [1], padding=padding.upper())
        outputs.set_shape([static[0]] + [s if isinstance(s, int) else None for s in sizes] + [num_outputs])
        outputs = contrib_layers._finish(outputs, normalizer_fn, normalizer_params, biases, activation_fn)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.avg_pool2d", "contrib.slim.avg_pool2d")
@add_arg_scope
def avg_pool2d(inputs, kernel_size, stride=2, padding="VALID", data_format="NHWC", outputs_collections=None,
               scope=None):
    with ops.name_scope(scope, "AvgPool2D", [inputs]) as found:
        outputs = pooling_ops.avg_pool(inputs, kernel_size, stride, padding, data_format)
        return end_points.collect_named_outputs(outputs_collections, found, outputs)


@export("contrib.layers.dropout", "contrib.slim.dropout")
@add_arg_scope
def dropout(inputs, keep_prob=0.5, noise_shape=None, is_training=True, outputs_collections=None, scope=None,
            seed=None):
    """Drops values while training."""
    with variable_scope.variable_scope(scope, "Dropout", [inputs]) as found:
        layer = core.Dropout(rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=found.name.split("/")[-1], _scope=found)
        outputs = layer.apply(ops.convert_to_tensor(inputs), training=is_training)
        return end_points.collect_named_outputs(outputs_collections, found.name, outputs)


@export("contrib.layers.softmax", "contrib.slim.softmax")
def softmax(logits, scope=None):
    """Softmax over the last axis, for any rank."""
    with variable_scope.variable_scope(scope, "softmax", [logits]):
        count = end_points.last_dimension(logits.get_shape(), min_rank=2)
        rows = gen_ops.Softmax(array_ops.reshape(logits, [-1, count]))
        outputs = array_ops.reshape(rows, array_ops.shape(logits))
        outputs.set_shape(logits.get_shape())
        return outputs


@export("contrib.layers.unit_norm", "contrib.slim.unit_norm")
@add_arg_scope
def unit_norm(inputs, dim, epsilon=1e-7, scope=None):
    """Vectors of length one along an axis."""
    with variable_scope.variable_scope(scope, "UnitNorm", [inputs]):
        inputs = ops.convert_to_tensor(inputs)
        lengths = math_ops.sqrt(epsilon + math_ops.reduce_sum(math_ops.square(inputs), dim, keepdims=True))
        return math_ops.div(inputs, lengths)


@export("contrib.layers.repeat", "contrib.slim.repeat")
def repeat(inputs, repetitions, layer, *args, **kwargs):
    """Applies a layer several times, each in a scope of its own."""
    scope = kwargs.pop("scope", None)
    with variable_scope.variable_scope(scope, "Repeat", [inputs]):
        outputs = ops.convert_to_tensor(inputs)
        base = scope or getattr(layer, "__name__", "repeat")
        for i in range(repetitions):
            outputs = layer(outputs, *args, **dict(kwargs, scope="%s_%d" % (base, i + 1)))
        return outputs


@export("contrib.layers.stack", "contrib.slim.stack")
def stack(inputs, layer, stack_args, **kwargs):
    """Applies a layer once for each of some arguments."""
    scope = kwargs.pop("scope", None)
    with variable_scope.variable_scope(scope, "Stack", [inputs]):
        outputs = ops.convert_to_tensor(inputs)
        base = scope or getattr(layer, "__name__", "stack")
        for i, args in enumerate(stack_args):
            args = args if isinstance(args, (list, tuple)) else [args]
            outputs = layer(outputs, *args, **dict(kwargs, scope="%s_%d" % (base, i + 1)))
        return outputs


@export("contrib.layers.apply_regularization")
def apply_regularization(regularizer, weights_list=None):
    """The sum of the penalties of some weights, which becomes a regularization loss."""
    weights = weights_list or ops.get_collection(ops.GraphKeys.WEIGHTS)
    if not weights:
        raise ValueError("No weights to regularize.")
    with ops.name_scope("get_regularization_penalty", values=weights) as scope:
        penalties = [p for p in (regularizer(w) for w in weights) if p is not None]
        total = math_ops.add_n(penalties, name=scope) if penalties else ops.convert_to_tensor(0.0)
        ops.add_to_collection(ops.GraphKeys.REGULARIZATION_LOSSES, total)
        return total


@export("contrib.layers.sum_regularizer")
def sum_regularizer(regularizer_list, scope=None):
    """A regularizer that adds the penalties of others."""
    kept = [r for r in regularizer_list if r is not None]
    if not kept:
        return None

    def total(weights):
        with ops.name_scope(scope, "sum_regularizer", [weights]) as name:
            found = [p for p in (r(weights) for r in kept) if p is not None]
            return math_ops.add_n(found, name=name) if found else None
    return total


@export("contrib.layers.l1_l2_regularizer")
def l1_l2_regularizer(scale_l1=1.0, scale_l2=1.0, scope=None):
    name = scope or "l1_l2_regularizer"
    return sum_regularizer([contrib_layers.l1_regularizer(scale_l1), contrib_layers.l2_regularizer(scale_l2)], name)


@export("contrib.layers.embed_sequence")
def embed_sequence(ids, vocab_size=None, embed_dim=None, unique=False, initializer=None, regularizer=None,
                   trainable=True, scope=None, reuse=None):
    """The embeddings of sequences of ids."""
    from ferroflow.python.ops import embedding_ops
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing. Got vocab_size=%s and "
                         "embed_dim=%s" % (vocab_size, embed_dim))
    if unique:
        raise NotImplementedError("embed_sequence: unique is not supported")
    with variable_scope.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        table = contrib_layers._variable("embeddings", shape, initializer, regularizer, trainable, None)
        return embedding_ops.embedding_lookup(table, ids)


@export("contrib.seq2seq.sequence_loss")
def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True,
                  softmax_loss_function=None, name=None):
    """The weighted cross entropy of sequences of classes."""
    from ferroflow.python.ops import cross_entropy_ops
    if logits.get_shape().ndims != 3:
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor")
    with ops.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = array_ops.shape(logits)[2]
        flat = array_ops.reshape(logits, [-1, classes])
        labels = array_ops.reshape(targets, [-1])
        if softmax_loss_function is None:
            each = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
        else:
            each = softmax_loss_function(labels=labels, logits=flat)
        each *= array_ops.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return math_ops.reduce_sum(each) / (math_ops.reduce_sum(weights) + 1e-12)
        each = array_ops.reshape(each, array_ops.shape(logits)[0:2])
        if average_across_timesteps or average_across_batch:
            axis = 1 if average_across_timesteps else 0
            return math_ops.reduce_sum(each, axis=[axis]) / (math_ops.reduce_sum(weights, axis=[axis]) + 1e-12)
        return each
