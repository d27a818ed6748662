"""Neural networks: convolutions, pooling, normalization, losses."""

import numpy as np

from . import recipe


def norm(c, times=4.0):
    c.mode, c.tolerance, c.style = "norm", times, c.pick(["small", "whole"])


def out_size(size, k, stride, dilation, padding, explicit=(0, 0)):
    eff = (k - 1) * dilation + 1
    if padding == "SAME":
        return -(-size // stride)
    return (size + sum(explicit) - eff) // stride + 1


class Window:
    """A random convolution: sizes and attributes of any number of spatial dimensions."""

    def __init__(self, c, n, paddings=("SAME", "VALID"), dilated=True, most=7):
        self.k = c.ints(1, 3, n)
        self.stride = c.ints(1, 2, n)
        self.rate = c.ints(1, 2, n) if dilated and c.chance(0.3) else [1] * n
        self.padding = c.pick(list(paddings))
        self.explicit = [(c.int(0, 2), c.int(0, 2)) if self.padding == "EXPLICIT" else (0, 0) for _ in range(n)]
        need = [(k - 1) * r + 1 for k, r in zip(self.k, self.rate)]
        self.size = [c.int(e, max(e, most)) * c.scale for e in need]
        self.out = [out_size(s, k, t, r, self.padding, e) for s, k, t, r, e in zip(self.size, self.k, self.stride, self.rate, self.explicit)]
        self.batch = c.int(1, 2)
        self.depth, self.filters = c.int(1, 3) * c.scale, c.int(1, 4) * c.scale
        self.attrs = dict(strides=[1, *self.stride, 1], padding=self.padding)
        if self.padding == "EXPLICIT":
            self.attrs["explicit_paddings"] = [0, 0, *[x for e in self.explicit for x in e], 0, 0]

    def input(self):
        return [self.batch, *self.size, self.depth]

    def result(self, depth=None):
        return [self.batch, *self.out, self.filters if depth is None else depth]


@recipe("Conv2D")
def conv2d(c):
    norm(c)
    w = Window(c, 2, ("SAME", "VALID", "EXPLICIT"))
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, w.filters]), dilations=[1, *w.rate, 1], **w.attrs)


@recipe("Conv", hold={"T": ["float32", "float64"]})
def conv(c):
    norm(c)
    w = Window(c, c.pick([2, 3]), dilated=False, most=4)
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, w.filters]), **w.attrs)


@recipe("Conv2DBackpropFilter")
def conv2d_filter(c):
    norm(c)
    w = Window(c, 2, ("SAME", "VALID", "EXPLICIT"), dilated=False)
    c.call(input=c.of("T", w.input()), filter_sizes=[*w.k, w.depth, w.filters], out_backprop=c.of("T", w.result()), **w.attrs)


@recipe("Conv2DBackpropInput")
def conv2d_input(c):
    norm(c)
    w = Window(c, 2, ("SAME", "VALID", "EXPLICIT"), dilated=False)
    c.call(input_sizes=w.input(), filter=c.of("T", [*w.k, w.depth, w.filters]), out_backprop=c.of("T", w.result()), **w.attrs)


@recipe("Conv3D")
def conv3d(c):
    norm(c)
    w = Window(c, 3, dilated=False, most=4)
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, w.filters]), **w.attrs)


@recipe("Conv3DBackpropFilter", "Conv3DBackpropFilterV2")
def conv3d_filter(c):
    norm(c)
    w = Window(c, 3, dilated=False, most=4)
    f = [*w.k, w.depth, w.filters]
    sizes = dict(filter_sizes=f) if c.op.endswith("V2") else dict(filter=c.of("T", f))
    c.call(input=c.of("T", w.input()), out_backprop=c.of("T", w.result()), **sizes, **w.attrs)


@recipe("Conv3DBackpropInput", "Conv3DBackpropInputV2")
def conv3d_input(c):
    norm(c)
    w = Window(c, 3, dilated=False, most=4)
    sizes = dict(input_sizes=w.input()) if c.op.endswith("V2") else dict(input=c.of("T", w.input()))
    c.call(filter=c.of("T", [*w.k, w.depth, w.filters]), out_backprop=c.of("T", w.result()), **sizes, **w.attrs)


def depthwise(c):
    norm(c)
    w = Window(c, 2, ("SAME", "VALID", "EXPLICIT"), dilated=False)
    w.stride = [w.stride[0]] * 2
    w.out = [out_size(s, k, t, 1, w.padding, e) for s, k, t, e in zip(w.size, w.k, w.stride, w.explicit)]
    w.attrs["strides"] = [1, *w.stride, 1]
    return w, c.int(1, 2)


@recipe("DepthwiseConv2dNative")
def depthwise_forward(c):
    w, m = depthwise(c)
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, m]), **w.attrs)


@recipe("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter(c):
    w, m = depthwise(c)
    c.call(input=c.of("T", w.input()), filter_sizes=[*w.k, w.depth, m], out_backprop=c.of("T", w.result(w.depth * m)), **w.attrs)


@recipe("DepthwiseConv2dNativeBackpropInput")
def depthwise_input(c):
    w, m = depthwise(c)
    c.call(input_sizes=w.input(), filter=c.of("T", [*w.k, w.depth, m]), out_backprop=c.of("T", w.result(w.depth * m)), **w.attrs)


ACTIVATIONS = ["Relu", "Relu6", "Elu", "LeakyRelu"]


def fused(c, attr, shape, channels, more=(), norm_too=False, add_too=False):
    """The arguments and the list of ops that follow a product."""
    t = c.types[attr]
    last = c.pick([[], *[[a] for a in (*ACTIVATIONS, *more)]])
    if norm_too and c.chance(0.4):
        if last and last[0] not in ACTIVATIONS:
            last = ["Relu"]
        args = [c.values(t, [channels], "small") for _ in range(3)] + [c.values(t, [channels], "positive")]
        return args, ["FusedBatchNorm", *last]
    args, ops = [c.values(t, [channels], "small")], ["BiasAdd"]
    if add_too and c.chance(0.4):
        args, ops = [*args, c.values(t, shape, "small")], ["BiasAdd", "Add"]
    return args, [*ops, *last]


@recipe("_FusedConv2D", hold={"T": ["float32", "float64"]})
def fused_conv2d(c):
    norm(c, 16)
    c.may_mutate = False
    w = Window(c, 2, dilated=False)
    args, ops = fused(c, "T", w.result(), w.filters, norm_too=True)
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, w.filters]), args=[c.feed(a, c.types["T"]) for a in args], host_args=[], num_args=len(args),
           fused_ops=ops, **w.attrs)


@recipe("_FusedConv3D", hold={"T": ["float32"]})
def fused_conv3d(c):
    norm(c, 16)
    c.may_mutate = False
    w = Window(c, 3, dilated=False, most=4)
    args, ops = fused(c, "T", w.result(), w.filters)
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, w.filters]), args=args, fused_ops=ops, **w.attrs)


@recipe("_FusedDepthwiseConv2dNative", hold={"T": ["float32"]})
def fused_depthwise(c):
    c.may_mutate = False
    w, m = depthwise(c)
    w.padding = "VALID" if w.padding == "EXPLICIT" else w.padding
    w.attrs = dict(strides=w.attrs["strides"], padding=w.padding)
    norm(c, 16)
    last = c.pick([[], ["Relu"], ["Relu6"], ["Elu"]])
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth, m]), args=[c.of("T", [w.depth * m], "small")], fused_ops=["BiasAdd", *last], **w.attrs)


@recipe("_FusedMatMul", hold={"T": ["float32"]})
def fused_matmul(c):
    norm(c, 16)
    c.may_mutate = False
    m, k, n = c.ints(1, 9, 3)
    ta, tb = c.chance(0.3), c.chance(0.3)
    args, ops = fused(c, "T", [m, n], n, more=["Tanh", "Sigmoid", "GeluApproximate", "GeluExact"])
    c.call(a=c.of("T", [k, m] if ta else [m, k]), b=c.of("T", [n, k] if tb else [k, n]), args=args, fused_ops=ops, transpose_a=ta, transpose_b=tb)


@recipe("_FusedBatchNormEx", hold={"T": ["float32"]})
def fused_batch_norm(c):
    norm(c, 16)
    c.may_mutate = False
    s = [c.int(1, 2), *c.ints(2, 4, 2), c.int(1, 4)]
    training = c.chance(0.4)
    side = [] if training else [c.of("T", s)] if c.chance(0.5) else []
    vector = lambda style: c.values("float32", s[-1:], style)
    # The variance of a batch is 0 for one element.
    c.call(x=c.of("T", s), scale=vector("small"), offset=vector("small"), mean=vector("small"), variance=vector("positive"), side_input=side,
           activation_mode="Identity" if training else c.pick(["Identity", "Relu"]), is_training=training, data_format="NHWC")


@recipe("Dilation2D", "Dilation2DBackpropFilter", "Dilation2DBackpropInput")
def dilation(c):
    w = Window(c, 2)
    c.style = "small"
    given = {} if c.op == "Dilation2D" else {"out_backprop": c.of("T", w.result(w.depth))}
    c.call(input=c.of("T", w.input()), filter=c.of("T", [*w.k, w.depth]), rates=[1, *w.rate, 1], **given, **w.attrs)


def pool(c, n, explicit=False):
    c.style = c.pick(["small", "whole"])
    w = Window(c, n, ("SAME", "VALID", "EXPLICIT") if explicit else ("SAME", "VALID"), dilated=False, most=6 if n == 2 else 4)
    if w.padding == "EXPLICIT":
        w.explicit = [tuple(c.int(0, k - 1) for _ in range(2)) for k in w.k]
        w.attrs["explicit_paddings"] = [0, 0, *[x for e in w.explicit for x in e], 0, 0]
        w.out = [out_size(s, k, t, 1, "EXPLICIT", e) for s, k, t, e in zip(w.size, w.k, w.stride, w.explicit)]
    w.attrs["ksize"] = [1, *w.k, 1]
    return w


@recipe("AvgPool")
def avg_pool(c):
    w = pool(c, 2)
    norm(c)
    c.call(value=c.of("T", w.input()), **w.attrs)


@recipe("AvgPool3D")
def avg_pool_3d(c):
    w = pool(c, 3)
    norm(c)
    c.call(input=c.of("T", w.input()), **w.attrs)


@recipe("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(c):
    w = pool(c, 3 if "3D" in c.op else 2)
    norm(c)
    c.call(orig_input_shape=w.input(), grad=c.of("T", w.result(w.depth)), **w.attrs)


@recipe("MaxPool")
def max_pool(c):
    w = pool(c, 2, explicit=True)
    c.call(input=c.of("T", w.input()), **w.attrs)


@recipe("MaxPool3D")
def max_pool_3d(c):
    w = pool(c, 3)
    c.call(input=c.of("T", w.input()), **w.attrs)


@recipe("MaxPoolV2")
def max_pool_v2(c):
    w = pool(c, 2)
    c.call(input=c.of("T", w.input()), ksize=w.attrs["ksize"], strides=w.attrs["strides"], padding=w.padding)


@recipe("MaxPoolWithArgmax")
def max_pool_argmax(c):
    w = pool(c, 2)
    c.call(input=c.of("T", w.input()), **w.attrs)


def max_values(x, w, n):
    """Max pooling in NumPy, for dtypes without a TensorFlow kernel."""
    out = np.empty([w.batch, *w.out, w.depth], dtype=x.dtype)
    for at in np.ndindex(*w.out):
        window = []
        for d in range(n):
            total = max((w.out[d] - 1) * w.stride[d] + w.k[d] - w.size[d], 0) if w.padding == "SAME" else 0
            start = at[d] * w.stride[d] - total // 2
            window.append(slice(max(start, 0), min(start + w.k[d], w.size[d])))
        part = x[(slice(None), *window)]
        out[(slice(None), *at)] = part.max(axis=tuple(range(1, n + 1)))
    return out


@recipe("MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad(c):
    n = 3 if "3D" in c.op else 2
    w = pool(c, n)
    if "TInput" in c.types:
        c.types["TInput"] = c.types["T"]
    x = c.of("T", w.input())
    grad = w.input() if "GradGrad" in c.op else w.result(w.depth)
    c.may_mutate = False
    c.call(orig_input=x, orig_output=max_values(x, w, n), grad=c.of("T", grad), **w.attrs)


@recipe("MaxPoolGradV2", "MaxPoolGradGradV2")
def max_pool_grad_v2(c):
    w = pool(c, 2)
    x = c.of("T", w.input())
    grad = w.input() if "GradGrad" in c.op else w.result(w.depth)
    c.may_mutate = False
    c.call(orig_input=x, orig_output=max_values(x, w, 2), grad=c.of("T", grad), ksize=w.attrs["ksize"], strides=w.attrs["strides"], padding=w.padding)


@recipe("MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax")
def max_pool_grad_argmax(c):
    w = pool(c, 2)
    batch_too = c.chance(0.5)
    x = c.of("T", w.input())
    per = int(np.prod(w.size)) * w.depth
    argmax = c.rng.randint(0, per, size=w.result(w.depth))
    if batch_too:
        argmax = argmax + (np.arange(w.batch) * per).reshape(-1, 1, 1, 1)
    grad = w.input() if "GradGrad" in c.op else w.result(w.depth)
    c.may_mutate = False
    c.call(input=x, grad=c.of("T", grad), argmax=argmax, include_batch_in_index=batch_too, **w.attrs)


@recipe("BiasAdd", "BiasAddV1")
def bias_add(c):
    s = c.shape(2, 5)
    given = {}
    channel = s[-1]
    if c.op == "BiasAdd" and c.chance(0.3) and len(s) > 2:
        given, channel = {"data_format": "NCHW"}, s[1]
    c.call(value=c.of("T", s), bias=c.of("T", [channel]), **given)


@recipe("BiasAddGrad")
def bias_add_grad(c):
    norm(c)
    c.call(out_backprop=c.of("T", c.shape(2, 5)), data_format=c.pick(["NHWC", "NHWC", "NCHW"]))


@recipe("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(c):
    norm(c, 20)
    training = c.chance(0.6)
    depth = c.int(1, 4)
    u = "T" if c.op == "FusedBatchNorm" else "U"
    per = lambda style="small": c.of(u, [depth], style)
    empty = np.zeros([0])
    x = c.of("T", [c.int(1, 3), c.int(1, 4), c.int(1, 4), depth], "small")
    c.call(x=x, scale=per(), offset=per(), mean=empty if training else per(), variance=empty if training else per("positive"),
           is_training=training, epsilon=0.01)


@recipe("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_grad(c):
    norm(c, 50)
    training = c.chance(0.6)
    depth = c.int(1, 4)
    s = [c.int(2, 3), c.int(2, 4), c.int(2, 4), depth]
    per = lambda style: c.values("float32", [depth], style)
    x = c.of("T", s, "small")
    given = {}
    if c.op.endswith("V3"):
        given["reserve_space_3"] = np.zeros([0])
    c.call(y_backprop=c.of("T", s, "small"), x=x, scale=per("positive"), reserve_space_1=per("small"), reserve_space_2=per("positive"),
           is_training=training, epsilon=0.01, **given)


@recipe("L2Loss")
def l2_loss(c):
    norm(c)
    c.call(t=c.of("T", c.shape()))


@recipe("LRN", "LRNGrad")
def lrn(c):
    norm(c, 20)
    s = c.shape(4, 4, empty=False)
    attrs = dict(depth_radius=c.int(1, 4), bias=c.pick([1.0, 2.0]), alpha=c.pick([1.0, 0.5]), beta=c.pick([0.5, 0.75]))
    if c.op == "LRN":
        c.call(input=c.of("T", s), **attrs)
    else:
        x = c.of("T", s, "positive")
        c.call(input_grads=c.of("T", s), input_image=x, output_image=c.of("T", s, "positive"), **attrs)


@recipe("Softmax", "LogSoftmax")
def softmax(c):
    c.tolerance = 4
    c.call(logits=c.of("T", c.shape(1, 3)))


@recipe("SoftmaxCrossEntropyWithLogits")
def softmax_loss(c):
    n, k = c.int(0, 4), c.int(1, 6)
    norm(c)
    c.style = "small"
    labels = c.of("T", [n if c.chance(0.8) else 1, k], "unit")
    c.call(features=c.of("T", [n, k]), labels=labels)


@recipe("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_loss(c):
    n, k = c.int(0, 4), c.int(1, 6)
    norm(c)
    c.style = "small"
    c.call(features=c.of("T", [n, k]), labels=c.rng.randint(0, k, size=n))
