"""Gradients of activations, losses and normalisations."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable


def _from_output(op_type):
    gradient(op_type)(lambda op, grad: getattr(g, op_type + "Grad")(grad, op.outputs[0]))


for _type in ("Relu", "Relu6", "Elu", "Selu"):
    _from_output(_type)


@gradient("ReluGrad", "Relu6Grad")
def _relu_grad(op, grad):
    x = op.inputs[1]
    return getattr(g, op.type)(grad, x), array_ops.zeros_like(x)


@gradient("EluGrad", "SeluGrad")
def _elu_grad(op, grad):
    y = op.inputs[1]
    return getattr(g, op.type)(grad, y), array_ops.where(
        y < 0, grad * op.inputs[0], array_ops.zeros_like(y))


@gradient("LeakyRelu")
def _leaky_relu(op, grad):
    return g.LeakyReluGrad(grad, op.inputs[0], alpha=op.get_attr("alpha"))


@gradient("LeakyReluGrad")
def _leaky_relu_grad(op, grad):
    x = op.inputs[1]
    return g.LeakyReluGrad(grad, x, alpha=op.get_attr("alpha")), array_ops.zeros_like(x)


@gradient("Softplus")
def _softplus(op, grad):
    return grad * math_ops.sigmoid(op.inputs[0])


@gradient("SoftplusGrad")
def _softplus_grad(op, grad):
    dy, x = op.inputs
    with ops.control_dependencies([grad]):
        ddy = g.SoftplusGrad(grad, x)
        return ddy, grad * dy / (g.Exp(-x) + 2.0 + g.Exp(x))


@gradient("Softsign")
def _softsign(op, grad):
    return g.SoftsignGrad(grad, op.inputs[0])


@gradient("Softmax")
def _softmax(op, grad):
    y = op.outputs[0]
    total = math_ops.reduce_sum(grad * y, -1, keepdims=True)
    return (grad - total) * y


@gradient("LogSoftmax")
def _log_softmax(op, grad):
    softmax = g.Exp(op.outputs[0])
    return grad - math_ops.reduce_sum(grad, -1, keepdims=True) * softmax


@gradient("BiasAdd")
def _bias_add(op, grad):
    return grad, g.BiasAddGrad(out_backprop=grad, data_format=op.get_attr("data_format"))


@gradient("BiasAddV1")
def _bias_add_v1(op, grad):
    axes = math_ops.range(array_ops.rank(grad) - 1)
    return grad, math_ops.reduce_sum(grad, axes)


@gradient("BiasAddGrad")
def _bias_add_grad(op, grad):
    shape, bias_shape = array_ops.shape(op.inputs[0]), array_ops.shape(grad)
    if op.get_attr("data_format") in (b"NCHW", "NCHW"):
        wide = array_ops.concat([array_ops.ones_like(shape[:1]), bias_shape,
                                 array_ops.ones_like(shape[2:])], 0)
        multiples = array_ops.concat([shape[:1], [1], shape[2:]], 0)
    else:
        wide = array_ops.concat([array_ops.ones_like(shape[:-1]), bias_shape], 0)
        multiples = array_ops.concat([shape[:-1], [1]], 0)
    return g.Tile(array_ops.reshape(grad, wide), multiples)


def _times(vector, matrix):
    return array_ops.expand_dims(vector, -1) * matrix


def _is_zero(grad):
    """Whether a gradient is the zeros that stand for an output without consumers."""
    return grad is None or getattr(grad, "_is_zeros_tensor", False)


def _cross_entropy(op, grad_loss, grad_grad):
    grad = _times(grad_loss, op.outputs[1])
    logits = op.inputs[0]
    if not _is_zero(grad_grad):
        softmax = g.Softmax(logits)
        grad += (grad_grad - array_ops.squeeze(
            math_ops.matmul(array_ops.expand_dims(grad_grad, 1),
                            array_ops.expand_dims(softmax, 2)), axis=1)) * softmax
    return grad, logits


@gradient("SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy(op, grad_loss, grad_grad):
    grad, logits = _cross_entropy(op, grad_loss, grad_grad)
    return grad, _times(grad_loss, -g.LogSoftmax(logits))


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_softmax_cross_entropy(op, grad_loss, grad_grad):
    return _cross_entropy(op, grad_loss, grad_grad)[0], None


@gradient("L2Loss")
def _l2_loss(op, grad):
    return op.inputs[0] * grad


@gradient("LRN")
def _lrn(op, grad):
    return [g.LRNGrad(grad, op.inputs[0], op.outputs[0], op.get_attr("depth_radius"),
                      op.get_attr("bias"), op.get_attr("alpha"), op.get_attr("beta"))]


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _fused_batch_norm(grad_op, has_third):
    def function(op, *grads):
        x, dy, scale = op.inputs[0], grads[0], op.inputs[1]
        layout = _text(op.get_attr("data_format"))
        training = op.get_attr("is_training")
        extra = {"reserve_space_3": op.outputs[5]} if has_third else {}
        call = getattr(g, grad_op)
        if training:
            dx, d_scale, d_offset, _, _ = call(
                y_backprop=dy, x=x, scale=scale, reserve_space_1=op.outputs[3],
                reserve_space_2=op.outputs[4], epsilon=op.get_attr("epsilon"),
                data_format=layout, is_training=True, **extra)
            return dx, d_scale, d_offset, None, None
        to_last = {"NCHW": [0, 2, 3, 1], "NCDHW": [0, 2, 3, 4, 1]}.get(layout)
        if to_last:
            x, dy = array_ops.transpose(x, to_last), array_ops.transpose(dy, to_last)
        dx, d_scale, d_offset, _, _ = call(
            y_backprop=dy, x=x, scale=scale, reserve_space_1=op.inputs[3],
            reserve_space_2=op.inputs[4], epsilon=op.get_attr("epsilon"),
            data_format="NHWC" if layout in ("NCHW", "NHWC") else "NDHWC", is_training=False,
            **extra)
        back = {"NCHW": [0, 3, 1, 2], "NCDHW": [0, 4, 1, 2, 3]}.get(layout)
        return array_ops.transpose(dx, back) if back else dx, d_scale, d_offset, None, None
    return function


gradient("FusedBatchNorm")(_fused_batch_norm("FusedBatchNormGrad", False))
gradient("FusedBatchNormV2")(_fused_batch_norm("FusedBatchNormGradV2", False))
gradient("FusedBatchNormV3")(_fused_batch_norm("FusedBatchNormGradV3", True))


@gradient("TopK", "TopKV2")
def _top_k(op, grad, _):
    shape, index_shape = array_ops.shape(op.inputs[0]), array_ops.shape(op.outputs[1])
    last = array_ops.gather(math_ops.cast(index_shape, dtypes.int64),
                            array_ops.size(index_shape) - 1)
    rows = array_ops.reshape(op.outputs[1], array_ops.stack([-1, last]))
    width = array_ops.gather(math_ops.cast(shape, dtypes.int64), array_ops.size(shape) - 1)
    count = array_ops.shape(rows)[0]
    flat = array_ops.reshape(rows + math_ops.cast(array_ops.expand_dims(math_ops.range(
        0, math_ops.cast(count, dtypes.int64) * width, width), -1), dtypes.int32), [-1])
    return [array_ops.reshape(g.ScatterNd(
        array_ops.expand_dims(flat, -1), array_ops.reshape(grad, [-1]),
        [math_ops.reduce_prod(shape)]), shape), array_ops.zeros([], dtype=dtypes.int32)]


@gradient("NthElement")
def _nth_element(op, grad):
    chosen = math_ops.cast(
        math_ops.equal(array_ops.expand_dims(op.outputs[0], -1), op.inputs[0]), grad.dtype)
    grad = array_ops.expand_dims(grad, -1)
    count = array_ops.expand_dims(math_ops.reduce_sum(chosen, -1), -1)
    return [math_ops.divide(chosen, count) * grad, None]


# The text is an attribute of the node, and so the same as in TensorFlow.
_CTC_MESSAGE = ("Currently there is no way to take the second  derivative of ctc_loss due to the "
                "fused implementation's interaction  with tf.gradients()")


@gradient("CTCLoss", "CTCLossV2")
def _ctc_loss(op, grad_loss, _):
    raw = g.PreventGradient(op.outputs[1], message=_CTC_MESSAGE)
    return [_times(grad_loss, raw), None, None, None]


not_differentiable("CTCGreedyDecoder", "CTCBeamSearchDecoder", "InTopK", "InTopKV2")
