"""Recurrent cells, connectionist temporal classification, random pooling, and other odd layers."""

import numpy as np

from case import EVERY, REAL

from . import recipe
from .nn import Window, norm


# Recurrent cells.

LSTM = ["i", "cs", "f", "o", "ci", "co", "h"]


def lstm(c, lead):
    """The inputs of all LSTM ops. `lead` precedes the batch in the shape of x."""
    norm(c, 40)
    c.style = "small"
    batch, width, cell = c.ints(1, 3, 3)
    of = lambda *s: c.of("T", list(s))
    given = dict(x=of(*lead, batch, width), cs_prev=of(batch, cell), h_prev=of(batch, cell), w=of(width + cell, 4 * cell), wci=of(cell), wcf=of(cell), wco=of(cell), b=of(4 * cell))
    return given, [*lead, batch, cell]


@recipe("LSTMBlockCell")
def lstm_cell(c):
    given, _ = lstm(c, [])
    c.call(forget_bias=c.pick([0.0, 1.0]), cell_clip=c.pick([-1.0, 0.5, 3.0]), **given)


@recipe("BlockLSTM", "BlockLSTMV2")
def block_lstm(c):
    time = c.int(1, 4)
    given, _ = lstm(c, [time])
    if c.op == "BlockLSTM":
        given["forget_bias"] = c.pick([0.0, 1.0])
    n = c.int(0, time)
    out = c.node(c.op, seq_len_max=c.feed(n, "int64"), cell_clip=c.pick([-1.0, 0.5, 3.0]), **given)
    # After the longest sequence, only states and outputs are zero. The rest is uninitialized
    # memory.
    c.fetch(*(out if n == time else [out[1], out[6]]))


@recipe("LSTMBlockCellGrad")
def lstm_cell_grad(c):
    given, s = lstm(c, [])
    gates = {name: c.of("T", s, "unit") for name in LSTM[:-1]}
    c.call(use_peephole=c.chance(0.5), cs_grad=c.of("T", s), h_grad=c.of("T", s), **given, **gates)


@recipe("BlockLSTMGrad", "BlockLSTMGradV2")
def block_lstm_grad(c):
    time = c.int(1, 4)
    given, s = lstm(c, [time])
    gates = {name: c.of("T", s, "unit") for name in LSTM}
    c.call(seq_len_max=c.feed(c.int(1, time), "int64"), use_peephole=c.chance(0.5), cs_grad=c.of("T", s), h_grad=c.of("T", s), **given, **gates)


@recipe("GRUBlockCell", "GRUBlockCellGrad")
def gru(c):
    norm(c, 40)
    c.style = "small"
    batch, width, cell = c.ints(1, 3, 3)
    of = lambda *s: c.of("T", list(s))
    given = dict(x=of(batch, width), h_prev=of(batch, cell), w_ru=of(width + cell, 2 * cell), w_c=of(width + cell, cell), b_ru=of(2 * cell), b_c=of(cell))
    if c.op.endswith("Grad"):
        given |= {name: c.of("T", [batch, cell], "unit") for name in ["r", "u", "c"]} | {"d_h": of(batch, cell)}
    c.call(**given)


# Connectionist temporal classification.

def in_singles(c, times):
    """A tolerance for ops that TensorFlow computes in single precision even for float64."""
    return times * (1e6 if c.types["T"] == "float64" else 1)


@recipe("CTCLoss")
def ctc_loss(c):
    norm(c, in_singles(c, 40))
    c.style = "small"
    time, batch, classes = c.int(3, 6), c.int(1, 3), c.int(2, 4)
    lengths = c.ints(1, 2, batch)
    idx = np.array([[b, k] for b, n in enumerate(lengths) for k in range(n)]).reshape(-1, 2)
    c.call(inputs=c.of("T", [time, batch, classes]), labels_indices=idx, labels_values=c.rng.randint(0, classes - 1, size=len(idx)), sequence_length=c.ints(3, time, batch))


@recipe("CTCGreedyDecoder")
def ctc_greedy(c):
    c.style = "small"
    time, batch, classes = c.int(1, 6), c.int(1, 3), c.int(2, 4)
    c.call(inputs=c.of("T", [time, batch, classes]), sequence_length=c.ints(0, time, batch), blank_index=c.pick([-1, 0, classes - 1]))


@recipe("CTCBeamSearchDecoder")
def ctc_beam(c):
    norm(c, in_singles(c, 40))
    c.style = "small"
    time, batch, classes = c.int(1, 5), c.int(1, 3), c.int(2, 4)
    width = c.int(1, 6)
    c.call(inputs=c.of("T", [time, batch, classes]), sequence_length=c.ints(1, time, batch), beam_width=width, top_paths=c.int(1, min(width, 2)))


# Pooling over parts of random size.

def parts(c, size):
    """The boundaries of a random number of parts."""
    inner = sorted(c.rng.permutation(np.arange(1, size))[:c.int(0, min(2, size - 1))].tolist())
    return [0, *inner, size]


@recipe("FractionalAvgPool", "FractionalMaxPool")
def fractional(c):
    c.style = c.pick(["small", "whole"])
    s = [c.int(1, 2), c.int(4, 9), c.int(4, 9), c.int(1, 2)]
    ratio = [1.0, float(c.rng.uniform(1.0, 2.5)), float(c.rng.uniform(1.0, 2.5)), 1.0]
    c.call(value=c.of("T", s), pooling_ratio=ratio, deterministic=True, seed=c.int(1, 99), seed2=c.int(1, 99))


@recipe("FractionalAvgPoolGrad")
def fractional_avg_grad(c):
    norm(c)
    s = [c.int(1, 2), c.int(3, 6), c.int(3, 6), c.int(1, 2)]
    rows, cols = parts(c, s[1]), parts(c, s[2])
    c.may_mutate = False
    c.call(orig_input_tensor_shape=s, out_backprop=c.of("T", [s[0], len(rows) - 1, len(cols) - 1, s[3]]), row_pooling_sequence=rows, col_pooling_sequence=cols)


@recipe("FractionalMaxPoolGrad")
def fractional_max_grad(c):
    c.style = c.pick(["small", "whole"])
    s = [c.int(1, 2), c.int(3, 6), c.int(3, 6), c.int(1, 2)]
    rows, cols = parts(c, s[1]), parts(c, s[2])
    overlapping = c.chance(0.5)
    x = c.of("T", s)
    more = 1 if overlapping else 0
    y = np.stack([np.stack([x[:, rows[i]:rows[i + 1] + more, cols[j]:cols[j + 1] + more].max(axis=(1, 2)) for j in range(len(cols) - 1)], 1) for i in range(len(rows) - 1)], 1)
    c.may_mutate = False
    c.call(orig_input=x, orig_output=y, out_backprop=c.of("T", list(y.shape)), row_pooling_sequence=rows, col_pooling_sequence=cols, overlapping=overlapping)


# Others.

@recipe("BatchNormWithGlobalNormalization")
def global_norm(c):
    norm(c, 40)
    depth = c.int(1, 3)
    per = lambda style: c.of("T", [depth], style)
    c.call(t=c.of("T", [c.int(1, 2), c.int(1, 3), c.int(1, 3), depth], "small"), m=per("small"), v=per("positive"), beta=per("small"), gamma=per("small"), variance_epsilon=0.01,
           scale_after_normalization=c.chance(0.5))


@recipe("BatchNormWithGlobalNormalizationGrad")
def global_norm_grad(c):
    norm(c, 40)
    depth = c.int(1, 3)
    s = [c.int(1, 2), c.int(1, 3), c.int(1, 3), depth]
    per = lambda style: c.of("T", [depth], style)
    c.call(t=c.of("T", s, "small"), m=per("small"), v=per("positive"), gamma=per("small"), backprop=c.of("T", s, "small"), variance_epsilon=0.01,
           scale_after_normalization=c.chance(0.5))


FORMATS = [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("NDHWC", "NCDHW")]


@recipe("DataFormatDimMap")
def dim_map(c):
    src, dst = c.pick(FORMATS)
    n = len(src)
    c.call(x=c.rng.randint(-n, n, size=c.shape(0, 2)), src_format=src, dst_format=dst)


@recipe("DataFormatVecPermute")
def vec_permute(c):
    src, dst = c.pick(FORMATS)
    n = c.pick([len(src), len(src) - 2])
    c.call(x=c.of("T", c.pick([[n], [n, 2]])), src_format=src, dst_format=dst)


def mirrored(c, s):
    """Paddings that mirroring allows."""
    mode = c.pick(["REFLECT", "SYMMETRIC"])
    most = [d - (1 if mode == "REFLECT" else 0) for d in s]
    pads = [[c.int(0, min(m, 2)), c.int(0, min(m, 2))] for m in most]
    return mode, [[0, 0], *pads, [0, 0]]


@recipe("FusedPadConv2D", "FusedResizeAndPadConv2D")
def fused_conv(c):
    norm(c, in_singles(c, 10) if "Resize" in c.op else 10)
    w = Window(c, 2, dilated=False)
    # For all images but the first, TensorFlow's kernel reads pixels of other images.
    w.batch, w.stride = 1, [w.stride[0]] * 2
    given = {}
    size = w.size
    if "Resize" in c.op:
        size = c.ints(2, 6, 2)
        given = {"size": size}
    mode, pads = mirrored(c, size)
    size = [s + sum(p) for s, p in zip(size, pads[1:3])]
    k = [min(k, s) for k, s in zip(w.k, size)]
    # The shape function needs known ranks.
    t = c.types["T"]
    c.call(input=c.const(c.of("T", w.input()), t), paddings=c.const(pads, "int32"), filter=c.const(c.of("T", [*k, w.depth, w.filters]), t), mode=mode, strides=[1, *w.stride, 1], padding=w.padding, **given)


@recipe("IsotonicRegression", hold={"T": REAL})
def isotonic(c):
    c.style = c.pick(["small", "whole"])
    c.tolerance = 4
    c.call(input=c.of("T", c.shape(2, 2)))


@recipe("SymbolicGradient")
def symbolic_gradient(c):
    from .control import unary_function
    t = c.pick(["float32", "float64"])
    s = c.shape(0, 2)
    f = unary_function(c, "f", c.pick(["Square", "Exp", "Tanh", "Neg"]), t)
    c.call(input=[c.feed(c.values(t, s, "small"), t), c.feed(c.values(t, s, "small"), t)], Tout=[t], f=f)


# Ragged tensors in variants.

@recipe("RaggedTensorToVariant", "RaggedTensorFromVariant", hold={"Tvalues": EVERY})
def ragged_variant(c):
    from .array import row_splits
    t, k = c.types["Tvalues"], c.types["Tsplits"]
    splits = row_splits(c, c.int(1, 4))
    nested = [splits]
    if c.chance(0.4):
        nested.append(row_splits(c, splits[-1]))
    values = c.feed(c.values(t, [nested[-1][-1]] + c.shape(0, 1, empty=False)), t)
    batched = c.chance(0.6)
    v = c.node("RaggedTensorToVariant", rt_nested_splits=[c.feed(s, k) for s in nested], rt_dense_values=values, batched_input=batched, Tvalues=t, Tsplits=k)[0]
    c.fetch(*c.node("RaggedTensorFromVariant", encoded_ragged=v, input_ragged_rank=len(nested) - 1 if batched else len(nested), output_ragged_rank=len(nested), Tvalues=t, Tsplits=k))


# Sound, scripts.

@recipe("EncodeWav", "DecodeWav")
def wav(c):
    samples, channels = c.int(1, 9), c.int(1, 3)
    out = c.node("EncodeWav", audio=c.feed(c.values("float32", [samples, channels], c.pick(["unit", "small"])), "float32"), sample_rate=c.feed(c.int(1, 50000), "int32"))[0]
    if c.op == "EncodeWav":
        return c.fetch(out)
    c.fetch(*c.node(c.op, contents=out, desired_channels=c.pick([-1, 1, 2]), desired_samples=c.pick([-1, 3, 12])))


@recipe("UnicodeScript")
def script(c):
    c.call(input=c.rng.choice([0, 65, 0x3b1, 0x436, 0x5d0, 0x628, 0x4e2d, 0x3042, 0x1f600, 0x10ffff, -1, 0x110000, c.int(0, 0x2ffff)], size=c.shape(0, 2)).astype(np.int32))


@recipe("AudioSpectrogram")
def spectrogram(c):
    c.mode, c.tolerance, c.style = "norm", 10, "small"
    c.call(input=c.values("float32", [c.int(2, 60), c.int(1, 3)]), window_size=c.int(2, 20), stride=c.int(1, 9), magnitude_squared=c.chance(0.5))


@recipe("Mfcc")
def mfcc(c):
    c.mode, c.tolerance = "norm", 10
    channels = c.int(2, 30)
    c.call(spectrogram=c.values("float32", [c.int(1, 2), c.int(0, 3), c.int(5, 70)], "nonnegative"), sample_rate=c.pick([8000, 16000, 44100]), upper_frequency_limit=c.pick([2000.0, 4000.0]),
           lower_frequency_limit=c.pick([20.0, 300.0]), filterbank_channel_count=channels, dct_coefficient_count=c.int(1, channels))


@recipe("RaggedTensorToVariantGradient", hold={"Tvalues": EVERY})
def ragged_variant_gradient(c):
    from .array import row_splits
    t, k = c.types["Tvalues"], c.types["Tsplits"]
    splits = row_splits(c, c.int(1, 4))
    s = [splits[-1]] + c.shape(0, 1, empty=False)
    batched = c.chance(0.6)
    rows = c.feed(splits, k)
    v = c.node("RaggedTensorToVariant", rt_nested_splits=[rows], rt_dense_values=c.feed(c.values(t, s), t), batched_input=batched, Tvalues=t, Tsplits=k)[0]
    c.may_mutate = False
    c.fetch(*c.node(c.op, encoded_ragged_grad=v, row_splits=rows, dense_values_shape=c.feed(s, "int32"), Tvalues=t, Tsplits=k))
