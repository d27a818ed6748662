"""Gradients of ops that round as quantization would, and of some ops of old graphs."""

from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops.gradient_registry import gradient


@gradient("FakeQuantWithMinMaxArgs")
def _args(op, grad):
    attrs = {k: op.get_attr(k) for k in ("min", "max", "num_bits", "narrow_range")}
    return g.FakeQuantWithMinMaxArgsGradient(grad, op.inputs[0], **attrs)


def _bits(op):
    return {k: op.get_attr(k) for k in ("num_bits", "narrow_range")}


@gradient("FakeQuantWithMinMaxVars")
def _vars(op, grad):
    return list(g.FakeQuantWithMinMaxVarsGradient(grad, *op.inputs, **_bits(op)))


@gradient("FakeQuantWithMinMaxVarsPerChannel")
def _per_channel(op, grad):
    return list(g.FakeQuantWithMinMaxVarsPerChannelGradient(grad, *op.inputs, **_bits(op)))


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "CheckNumericsV2")
def _straight_through(op, grad):
    return [grad] + [None] * (len(op.inputs) - 1)


@gradient("QuantizeAndDequantizeV4")
def _within_range(op, grad):
    return list(g.QuantizeAndDequantizeV4Grad(grad, *op.inputs, axis=op.get_attr("axis")))


@gradient("AccumulateNV2")
def _accumulate(op, grad):
    return [grad] * len(op.inputs)


@gradient("SpaceToBatch")
def _space_to_batch(op, grad):
    return g.BatchToSpace(grad, op.inputs[1], block_size=op.get_attr("block_size")), None


@gradient("BatchToSpace")
def _batch_to_space(op, grad):
    return g.SpaceToBatch(grad, op.inputs[1], block_size=op.get_attr("block_size")), None


@gradient("BatchNormWithGlobalNormalization")
def _global_normalization(op, grad):
    t, m, v, _, gamma = op.inputs
    attrs = {k: op.get_attr(k) for k in ("variance_epsilon", "scale_after_normalization")}
    return list(g.BatchNormWithGlobalNormalizationGrad(t, m, v, gamma, grad, **attrs))
