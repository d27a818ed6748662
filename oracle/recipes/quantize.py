"""Quantized numbers: to and from floats, arithmetic, simulated quantization."""

import numpy as np

from case import EVERY, QUANTIZED

from . import recipe


def span(c, low=-4.0, high=4.0):
    """A range that contains zero or not."""
    a, b = sorted(c.rng.uniform(low, high, size=2).tolist())
    if c.chance(0.6):
        a = min(a, 0.0)
    return np.float32(a), np.float32(max(b, a + 0.1))


def ranged(c, *names):
    """A minimum and a maximum for each name, as fed scalars."""
    out = {}
    for low, high in names:
        a, b = span(c)
        out[low], out[high] = c.feed(a, "float32"), c.feed(b, "float32")
    return out


def q(c, attr, shape, style=None):
    return c.feed(c.values(c.types[attr], shape, style or "wide"), c.types[attr])


# To and from floats.

@recipe("QuantizeV2")
def quantize_v2(c):
    c.style = c.pick(["small", "whole", "wide"])
    axis = c.pick([-1, -1, 0, 1])
    s = c.shape(2, 3, empty=False) if axis >= 0 else c.shape(0, 3)
    a, b = span(c)
    if axis >= 0:
        a, b = np.full([s[axis]], a), b + c.values("float32", [s[axis]], "unit")
    mode = c.pick(["MIN_COMBINED", "MIN_FIRST", "SCALED", "SCALED"])
    c.call(input=c.const(c.values("float32", s), "float32"), min_range=c.feed(a, "float32"), max_range=c.feed(b, "float32"), mode=mode,
           round_mode=c.pick(["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"] if mode == "SCALED" else ["HALF_AWAY_FROM_ZERO"]), axis=axis, ensure_minimum_range=c.pick([0.01, 0.5]), narrow_range=c.chance(0.3))


@recipe("Dequantize")
def dequantize(c):
    axis = c.pick([-1, -1, 0, 1])
    s = c.shape(2, 3, empty=False) if axis >= 0 else c.shape(0, 3)
    a, b = span(c)
    if axis >= 0:
        a, b = np.full([s[axis]], a), b + c.values("float32", [s[axis]], "unit")
    c.mode, c.tolerance = "norm", 4
    mode = "MIN_COMBINED" if c.types["dtype"] == "bfloat16" else c.pick(["MIN_COMBINED", "MIN_FIRST", "SCALED"])
    c.call(input=c.const(c.of("T", s, "wide"), c.types["T"]), min_range=c.feed(a, "float32"), max_range=c.feed(b, "float32"), mode=mode, axis=axis,
           narrow_range=c.chance(0.3))


def uniform(c, s, dtype, axis=None):
    low, high = {"qint8": (-128, 127), "qint32": (-(1 << 31), (1 << 31) - 1)}[dtype]
    if axis is None:
        axis = c.pick([-1, c.int(0, len(s) - 1)]) if s else -1
    per = [] if axis < 0 else [s[axis]]
    return dict(scales=c.feed(c.values("float32", per, "positive"), "float32"), zero_points=c.feed(c.values("int32", per, "small"), "int32"), quantization_axis=axis,
                quantization_min_val=low, quantization_max_val=high)


@recipe("UniformQuantize")
def uniform_quantize(c):
    s = c.shape(0, 3)
    c.call(input=c.values("float32", s, c.pick(["small", "whole", "wide"])), **uniform(c, s, c.types["Tout"]))


@recipe("UniformDequantize")
def uniform_dequantize(c):
    s = c.shape(0, 3)
    c.call(input=q(c, "Tin", s), **uniform(c, s, c.types["Tin"]))


@recipe("UniformRequantize")
def uniform_requantize(c):
    s = c.shape(0, 3)
    before, after = uniform(c, s, c.types["Tin"]), uniform(c, s, c.types["Tout"])
    if before["quantization_axis"] >= 0 and after["quantization_axis"] >= 0:
        before = uniform(c, s, c.types["Tin"], after["quantization_axis"])
    given = {f"{side}_{name}": value for side, of in (("input", before), ("output", after)) for name, value in of.items()}
    c.call(input=q(c, "Tin", s, c.pick(["small", "wide"])), **given)


@recipe("UniformQuantizedClipByValue")
def uniform_clip(c):
    s = c.shape(0, 3)
    given = uniform(c, s, "qint32")
    axis = given["quantization_axis"]
    per = [] if axis < 0 else [s[axis]]
    low = c.values("int32", per, "small")
    as_q = lambda v: c.feed(np.array(v, np.int32).view(c.values("qint32", [], "small").dtype), "qint32")
    c.call(operand=q(c, "T", s, "small"), min=as_q(low), max=as_q(low + c.values("int32", per, "nonnegative")), **given)


# Arithmetic.

@recipe("QuantizedAdd", "QuantizedMul")
def arithmetic(c):
    a = c.shape(1, 3)
    b = c.pick([a, a[-1:], []])
    if c.chance(0.5):
        a, b = b, a
    c.call(x=q(c, "T1", a), y=q(c, "T2", b), **ranged(c, ("min_x", "max_x"), ("min_y", "max_y")))


@recipe("QuantizedBiasAdd")
def bias_add(c):
    s = c.shape(2, 4, empty=False)
    c.call(input=q(c, "T1", s), bias=q(c, "T2", s[-1:]), **ranged(c, ("min_input", "max_input"), ("min_bias", "max_bias")))


@recipe("QuantizedMatMul")
def matmul(c):
    m, k, n = c.ints(1, 5, 3)
    ta, tb = c.chance(0.3), c.chance(0.3)
    c.call(a=q(c, "T1", [k, m] if ta else [m, k]), b=q(c, "T2", [n, k] if tb else [k, n]), transpose_a=ta, transpose_b=tb,
           **ranged(c, ("min_a", "max_a"), ("min_b", "max_b")))


@recipe("QuantizedConv2D")
def conv2d(c):
    from .nn import Window
    w = Window(c, 2, dilated=False)
    w.stride = [w.stride[0]] * 2
    c.call(input=q(c, "Tinput", w.input()), filter=c.const(c.of("Tfilter", [*w.k, w.depth, w.filters], "wide"), c.types["Tfilter"]), strides=[1, *w.stride, 1], padding=w.padding,
           **ranged(c, ("min_input", "max_input"), ("min_filter", "max_filter")))


def symmetric(c, shape=()):
    """A range around zero, one for each index of `shape`."""
    a = c.rng.uniform(-4, 0, size=shape).astype(np.float32)
    return c.feed(a, "float32"), c.feed((-a * c.rng.uniform(0.8, 1.2, size=shape)).astype(np.float32), "float32")


def fused_window(c):
    """A convolution of quantised images: the shape of its result, the number of its filters, its image, filter and attributes."""
    from .nn import Window, out_size
    depthwise = "Depthwise" in c.op
    w = Window(c, 2, dilated=not depthwise)
    w.stride = [w.stride[0]] * 2
    w.attrs["strides"] = [1, *w.stride, 1]
    w.attrs["dilations"] = [1, *w.rate, 1]
    w.out = [out_size(s, k, t, r, w.padding) for s, k, t, r in zip(w.size, w.k, w.stride, w.rate)]
    filters = w.depth * w.filters if depthwise else w.filters
    filter = c.const(c.of("Tfilter", [*w.k, w.depth, w.filters], "wide"), c.types["Tfilter"])
    return w.result(filters), filters, q(c, "Tinput", w.input()), filter, w.attrs


def fused_ranges(c, filters):
    low = c.feed(np.float32(0 if c.types["Tinput"] == "quint8" else -6), "float32")
    # In units of 32-bit elements TensorFlow has one scale for all channels, and a range for each.
    per_channel = "WithBias" in c.op and c.op.endswith("Requantize") and c.chance(0.3)
    a, b = symmetric(c, [filters] if per_channel else [])
    return low, c.feed(np.float32(6), "float32"), a, b


def fused_bias(c, filters):
    if c.types.get("Tbias") == "qint32":
        return c.const((c.values("int32", [filters], "small") * np.int32(50)).view(c.values("qint32", [], "small").dtype), "qint32")
    return c.const(c.values("float32", [filters], "small"), "float32")


@recipe("QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize", "QuantizedConv2DPerChannel", "QuantizedConv2DWithBias",
        "QuantizedConv2DWithBiasAndRelu", "QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize",
        "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "QuantizedConv2DWithBiasSumAndRelu", "QuantizedConv2DWithBiasSumAndReluAndRequantize",
        "QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu",
        "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize")
def fused_conv2d(c):
    c.may_mutate = False
    shape, filters, image, filter, attrs = fused_window(c)
    low, high, a, b = fused_ranges(c, filters)
    given = {}
    if "Bias" in c.op:
        given["bias"] = fused_bias(c, filters)
    if c.op.endswith("AndRequantize"):
        given["min_freezed_output"], given["max_freezed_output"] = c.feed(np.float32(-8), "float32"), c.feed(np.float32(c.pick([8, 40])), "float32")
    if "Sum" in c.op and c.op.endswith("AndRequantize"):
        # TensorFlow puts the result in the place of the summand, which must be no constant.
        given["summand"] = c.node("Bitcast", input=c.node("Add", x=c.values("uint8", shape, "wide"), y=c.values("uint8", shape, "small"))[0], type=c.types["Tsummand"])[0]
        given["min_summand"], given["max_summand"] = c.feed(np.float32(0), "float32"), c.feed(np.float32(3), "float32")
    elif "Sum" in c.op:
        given["summand"] = c.node("Add", x=c.values("float32", shape, "small"), y=c.values("float32", shape, "small"))[0]
    c.call(input=image, filter=filter, min_input=low, max_input=high, min_filter=a, max_filter=b, **given, **attrs)


@recipe("_FusedQuantizedConv2D", "_FusedQuantizedDepthwiseConv2D")
def fused_list_conv2d(c):
    c.may_mutate = False
    shape, filters, image, filter, attrs = fused_window(c)
    low, high, a, b = fused_ranges(c, filters)
    requantized = c.types["out_type"] != "qint32"
    ops = c.pick([["BiasAdd", "Relu", "Requantize"], ["BiasAdd", "Requantize"], ["Relu", "Requantize"], ["Requantize"]] if requantized else
                 [["BiasAdd"], ["BiasAdd", "Relu"], ["Relu"], []])
    device = [image, filter] + ([fused_bias(c, filters)] if "BiasAdd" in ops else [])
    host = [low, high, a, b]
    outputs = [c.types["out_type"], "float32", "float32"]
    if requantized:
        host += [c.feed(np.float32(-8), "float32"), c.feed(np.float32(8), "float32")]
    c.types["Tsummand"] = c.types["out_type"]
    c.call(device_inputs=device, host_inputs=host, Tdevice_outputs=outputs[:1], Thost_outputs=outputs[1:], fused_ops=ops, is_filter_const=True, is_bias_const=True, **attrs)


@recipe("QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndDequantize", "QuantizedMatMulWithBiasAndRelu", "QuantizedMatMulWithBiasAndReluAndRequantize",
        "QuantizedMatMulWithBiasAndRequantize")
def fused_matmul(c):
    c.may_mutate = False
    m, k, n = c.ints(1, 9, 3)
    mode = c.pick(["MIN_FIRST", "SCALED"])
    a, b = symmetric(c)
    given = {}
    if c.op.endswith("quantize"):
        given["min_freezed_output"], given["max_freezed_output"] = c.feed(np.float32(-8), "float32"), c.feed(np.float32(c.pick([8, 40])), "float32")
    if c.op.endswith("Dequantize"):
        c.mode, c.tolerance = "norm", 4
    c.call(a=q(c, "T1", [m, k]), b=c.const(c.of("T2", [k, n], "wide"), c.types["T2"]), bias=fused_bias(c, n),
           min_a=c.feed(np.float32(-1 if mode == "MIN_FIRST" else 0), "float32"), max_a=c.feed(np.float32(3), "float32"), min_b=a, max_b=b,
           input_quant_mode=mode, transpose_a=False, transpose_b=False, **given)


@recipe("QuantizedAvgPool", "QuantizedMaxPool")
def pool(c):
    from .nn import pool as windows
    w = windows(c, 2)
    w.attrs["strides"] = [1, w.stride[0], w.stride[0], 1]
    c.call(input=q(c, "T", w.input()), **ranged(c, ("min_input", "max_input")), **w.attrs)


@recipe("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX")
def relu(c):
    given = {"max_value": c.pick([1.0, 3.0])} if c.op.endswith("X") else {}
    c.call(features=q(c, "Tinput", c.shape()), **ranged(c, ("min_features", "max_features")), **given)


@recipe("QuantizedConcat", hold={"T": [t for t in EVERY + list(QUANTIZED) if t in QUANTIZED]})
def concat(c):
    from .array import joined
    n = c.int(2, 4)
    parts, axis, _ = joined(c, n)
    ranges = [span(c, -4, 0) for _ in range(n)]
    c.call(concat_dim=axis, values=[q(c, "T", p) for p in parts], input_mins=[c.feed(a, "float32") for a, _ in ranges], input_maxes=[c.feed(b, "float32") for _, b in ranges])


@recipe("QuantizedReshape")
def reshape(c):
    s = c.shape(1, 3, empty=False)
    c.call(tensor=q(c, "T", s), shape=c.pick([[-1], s[::-1]]), **ranged(c, ("input_min", "input_max")))


@recipe("QuantizeDownAndShrinkRange", "RequantizationRange")
def shrink(c):
    c.call(input=q(c, "Tinput", c.shape(), c.pick(["wide", "small"])), **ranged(c, ("input_min", "input_max")))


@recipe("Requantize")
def requantize(c):
    c.call(input=q(c, "Tinput", c.shape(), c.pick(["wide", "small"])), **ranged(c, ("input_min", "input_max"), ("requested_output_min", "requested_output_max")))


# Simulated quantization.

def bits(c):
    return {"num_bits": c.int(2, 16), "narrow_range": c.chance(0.4)}


@recipe("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
def fake_args(c):
    a, b = span(c, -6, 6)
    s = c.shape()
    given = {"gradients": c.values("float32", s)} if c.op.endswith("Gradient") else {}
    c.call(inputs=c.values("float32", s), min=a, max=b, **bits(c), **given)


@recipe("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient")
def fake_vars(c):
    s = c.shape()
    c.mode, c.tolerance, c.style = "norm", 4, c.pick(["small", "whole", "wide"])
    given = {"gradients": c.values("float32", s)} if c.op.endswith("Gradient") else {}
    c.call(inputs=c.values("float32", s), **ranged(c, ("min", "max")), **bits(c), **given)


@recipe("FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_per_channel(c):
    s = c.shape(1, 4, empty=False)
    c.mode, c.tolerance, c.style = "norm", 4, c.pick(["small", "whole", "wide"])
    given = {"gradients": c.values("float32", s)} if c.op.endswith("Gradient") else {}
    low = c.rng.uniform(-3, 0, size=s[-1]).astype(np.float32)
    high = c.rng.uniform(0.1, 3, size=s[-1]).astype(np.float32)
    c.call(inputs=c.values("float32", s), min=low, max=high, **bits(c), **given)


def round_trip_range(c, s, axis):
    t = c.types["T"]
    a, b = span(c, -4, 4)
    per = [] if axis < 0 else [s[axis]]
    return c.feed(np.full(per, a), t), c.feed(np.full(per, b), t)


@recipe("QuantizeAndDequantize")
def round_trip_v1(c):
    a, b = span(c, -4, 4)
    c.style = c.pick(["small", "whole", "wide"])
    c.call(input=c.of("T", c.shape(empty=False)), num_bits=c.int(2, 10), input_min=a, input_max=b)


@recipe("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def round_trip(c):
    c.style = c.pick(["small", "whole", "wide"])
    axis = c.pick([-1, -1, 0])
    s = c.shape(1, 3, empty=False)
    low, high = round_trip_range(c, s, axis)
    given = {"num_bits": c.int(2, 10)}
    if not c.op.endswith("V3"):
        given["round_mode"] = c.pick(["HALF_TO_EVEN", "HALF_UP"])
    c.call(input=c.of("T", s), input_min=low, input_max=high, axis=axis, **given)


@recipe("QuantizeAndDequantizeV4Grad")
def round_trip_grad(c):
    c.mode, c.tolerance, c.style = "norm", 4, c.pick(["small", "whole", "wide"])
    axis = c.pick([-1, -1, 0])
    s = c.shape(1, 3, empty=False)
    low, high = round_trip_range(c, s, axis)
    c.call(gradients=c.of("T", s), input=c.of("T", s), input_min=low, input_max=high, axis=axis)
