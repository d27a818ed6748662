"""Cross entropies of logits and labels."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor


def _check_arguments(name, labels, logits):
    if labels is None or logits is None:
        raise ValueError("Both `labels` and `logits` must be provided. Received: labels=%s and "
                         "logits=%s" % (labels, logits))


def _flatten_outer(logits):
    """All dimensions but the last as one."""
    rank = array_ops.rank(logits)
    last = array_ops.slice(array_ops.shape(logits), [gen_ops.Sub(rank, 1)], [1])
    output = array_ops.reshape(logits, array_ops.concat([[-1], last], 0))
    dims = logits.get_shape().as_list() if logits.get_shape().ndims is not None else None
    if dims is not None:
        product = 1
        for d in dims[:-1]:
            product = None if d is None or product is None else product * d
        output.set_shape([product, dims[-1]])
    return output


@export("nn.softmax_cross_entropy_with_logits_v2")
def softmax_cross_entropy_with_logits_v2(labels, logits, axis=None, name=None, dim=None):
    axis = deprecated_alias("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with ops.name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert(logits, name="logits")
        labels = convert(labels, name="labels")
        half = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        precise = math_ops.cast(logits, dtypes.float32) if half else logits
        labels = math_ops.cast(labels, precise.dtype)
        rank = array_ops.rank(precise)
        shape = logits.get_shape()
        if axis != -1:
            def to_end(tensor):
                return array_ops.transpose(tensor, array_ops.concat([
                    math_ops.range(axis), math_ops.range(axis + 1, rank), [axis]], 0))
            precise, labels = to_end(precise), to_end(labels)
        input_shape = array_ops.shape(precise)
        precise, labels = _flatten_outer(precise), _flatten_outer(labels)
        cost, _ = gen_ops.SoftmaxCrossEntropyWithLogits(precise, labels, name=scope)
        output_shape = array_ops.slice(input_shape, [0], [gen_ops.Sub(rank, 1)])
        cost = array_ops.reshape(cost, output_shape)
        if shape.ndims is not None:
            dims = shape.as_list()
            del dims[axis]
            cost.set_shape(dims)
        return math_ops.cast(cost, logits.dtype) if half else cost


@export("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels=None, logits=None, dim=-1, name=None, axis=None):
    dim = axis if axis is not None else dim
    _check_arguments("softmax_cross_entropy_with_logits", labels, logits)
    with ops.name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, axis=dim,
                                                name=scope)


@export("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels=None, logits=None, name=None):
    _check_arguments("sparse_softmax_cross_entropy_with_logits", labels, logits)
    with ops.name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels, logits = convert(labels), convert(logits)
        half = logits.dtype == dtypes.float16
        precise = math_ops.cast(logits, dtypes.float32) if half else logits
        static = labels.get_shape()
        labels_shape = array_ops.shape(labels)
        logits_shape = logits.get_shape()
        known = static.is_fully_defined() and logits_shape.ndims is not None and (
            logits_shape[:-1].is_fully_defined())
        if logits_shape.ndims == 0:
            raise ValueError("`logits` cannot be a scalar. Received logits=%s`" % logits)
        if logits_shape.ndims is not None and static.ndims is not None and (
                static.ndims != logits_shape.ndims - 1):
            raise ValueError(
                "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
                "labels.shape=%s of rank %s and logits.shape=%s of rank %s" % (
                    static, static.ndims, logits_shape, logits_shape.ndims))
        if known and static.as_list() != logits_shape.as_list()[:-1]:
            raise ValueError("`labels.shape` must equal `logits.shape` except for the last "
                             "dimension. Received: labels.shape=%s and logits.shape=%s" % (
                                 static, logits_shape))
        if logits_shape.ndims == 2:
            cost, _ = gen_ops.SparseSoftmaxCrossEntropyWithLogits(precise, labels, name=name)
            return math_ops.cast(cost, dtypes.float16) if half else cost
        checks = []
        if not known:
            from ferroflow.python.ops import check_ops
            checks.append(check_ops.assert_equal(array_ops.shape(labels),
                                                 array_ops.shape(logits)[:-1]))
        with ops.control_dependencies(checks):
            classes = array_ops.shape(logits)[array_ops.rank(logits) - 1]
            precise = array_ops.reshape(precise, [-1, classes])
            labels = array_ops.reshape(labels, [-1])
            cost, _ = gen_ops.SparseSoftmaxCrossEntropyWithLogits(precise, labels, name=name)
            cost = array_ops.reshape(cost, labels_shape)
            cost.set_shape(static)
            return math_ops.cast(cost, dtypes.float16) if half else cost


def _of_one_shape(logits, labels):
    logits = convert(logits, name="logits")
    labels = convert(labels, name="labels")
    try:
        labels.get_shape().assert_is_compatible_with(logits.get_shape())
    except ValueError:
        raise ValueError("`logits` and `labels` must have the same shape, received (%s vs %s)."
                         % (logits.get_shape(), labels.get_shape())) from None
    return logits, labels


@export("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    _check_arguments("sigmoid_cross_entropy_with_logits", labels, logits)
    with ops.name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits, labels = _of_one_shape(logits, labels)
        # max(x, 0) - x * z + log(1 + exp(-abs(x))), which overflows nowhere
        zeros = array_ops.zeros_like(logits, dtype=logits.dtype)
        positive = logits >= zeros
        relu = array_ops.where(positive, logits, zeros)
        minus_abs = array_ops.where(positive, -logits, logits)
        return math_ops.add(relu - logits * labels, gen_ops.Log1p(math_ops.exp(minus_abs)),
                            name=scope)


@export("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(labels=None, logits=None, pos_weight=None, name=None,
                                       targets=None):
    labels = deprecated_alias("labels", labels, "targets", targets)
    with ops.name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits, labels = _of_one_shape(logits, labels)
        weight = 1 + (pos_weight - 1) * labels
        return math_ops.add(
            (1 - labels) * logits,
            weight * (gen_ops.Log1p(math_ops.exp(-math_ops.abs(logits)))
                      + gen_ops.Relu(-logits)), name=scope)


@export("nn.log_poisson_loss")
def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    with ops.name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert(log_input, name="log_input")
        targets = convert(targets, name="targets")
        result = math_ops.exp(log_input) - log_input * targets
        if compute_full_loss:
            import numpy as np
            point_five = array_ops.constant(0.5, dtype=targets.dtype)
            two_pi = array_ops.constant(2 * np.pi, dtype=targets.dtype)
            stirling = (targets * gen_ops.Log(targets)) - targets + (
                point_five * gen_ops.Log(two_pi * targets))
            zeros = array_ops.zeros_like(targets, dtype=targets.dtype)
            ones = array_ops.ones_like(targets, dtype=targets.dtype)
            inside = gen_ops.LogicalAnd(targets >= zeros, targets <= ones)
            result += array_ops.where(inside, zeros, stirling)
        return result
