"""Arrays: shapes, slices, gathers, diagonals, padding, sorting."""

import numpy as np

from case import EVERY

from . import recipe


def axis_of(c, rank, negative=True):
    a = c.int(0, max(rank - 1, 0))
    return a - rank if negative and c.chance(0.4) and rank else a


@recipe(*"""Identity Snapshot StopGradient PreventGradient ZerosLike OnesLike DeepCopy Copy CopyHost DebugIdentity DebugIdentityV2
GuaranteeConst DebugGradientIdentity Rank Shape Size DebugNanCount""".split())
def one_input(c):
    from case import signature
    given = {"tensor_name": "x:0", "gated_grpc": False} if c.op in ("DebugIdentity", "DebugNanCount") else {}
    c.call(**{signature(c.op).input_arg[0].name: c.of("T", c.shape())}, **given)


@recipe("CheckNumerics", "CheckNumericsV2")
def check_numerics(c):
    c.call(tensor=c.of("T", c.shape()), message="here")


@recipe("ShapeN")
def shape_n(c):
    c.call(input=[c.of("T", c.shape()) for _ in range(c.int(1, 4))])


@recipe("IdentityN")
def identity_n(c):
    c.call(input=[c.values(c.pick(EVERY), c.shape()) for _ in range(c.int(1, 4))])


@recipe("EnsureShape")
def ensure_shape(c):
    s = c.shape()
    want = [None if c.chance(0.3) else d for d in s]
    if c.chance(0.1):
        want = want + [2]
    c.call(input=c.of("T", s), shape=None if c.chance(0.1) else want)


@recipe("ApproxTopK")
def approx_top_k(c):
    s = c.shape(1, 3, empty=False)
    c.style = c.pick(["small", "wide"])
    c.call(input=c.const(c.of("T", s), c.types["T"]), k=c.int(1, s[-1]), reduction_dimension=-1, aggregate_to_topk=True, is_max_k=True)


@recipe("TopK", "TopKV2")
def top_k(c):
    s = c.shape(1, 3)
    k = c.int(0, s[-1])
    c.style = c.pick(["small", "whole", "wide"])
    x = c.of("T", s)
    c.call(input=x, k=k, sorted=True)


@recipe("NthElement")
def nth_element(c):
    s = c.shape(1, 3, empty=False)
    c.style = c.pick(["small", "whole", "wide"])
    c.call(input=c.of("T", s), n=c.int(0, s[-1] - 1))


@recipe("InTopK", "InTopKV2")
def in_top_k(c):
    b, n = c.int(0, 5), c.int(1, 6)
    given = dict(predictions=c.values("float32", [b, n]), targets=c.rng.randint(-1 if c.chance(0.1) else 0, n, size=b), k=c.int(0, n + 1))
    c.call(**given)


@recipe("BatchMatrixBandPart", "MatrixBandPart")
def band_part(c):
    s = c.shape(2, 4)
    c.call(input=c.of("T", s), num_lower=c.int(-1, s[-2]), num_upper=c.int(-1, s[-1]))


@recipe("BatchMatrixDiag", "MatrixDiag")
def matrix_diag(c):
    c.call(diagonal=c.of("T", c.shape(1, 3)))


@recipe("BatchMatrixDiagPart", "MatrixDiagPart")
def matrix_diag_part(c):
    c.call(input=c.of("T", c.shape(2, 4)))


@recipe("BatchMatrixSetDiag", "MatrixSetDiag")
def matrix_set_diag(c):
    s = c.shape(2, 4, empty=False)
    c.call(input=c.of("T", s), diagonal=c.of("T", s[:-2] + [min(s[-2:])]))


def diagonals(c, rows, cols):
    """A band: its k, the number of its diagonals, and their length."""
    low = c.int(-(rows - 1), cols - 1)
    high = c.int(low, cols - 1)
    if c.chance(0.4):
        high = low
    longest = min(rows + min(high, 0), cols - max(low, 0))
    k = low if low == high and c.chance(0.5) else [low, high]
    return k, high - low + 1, longest


@recipe("MatrixDiagPartV2", "MatrixDiagPartV3")
def diag_part_v2(c):
    s = c.shape(2, 4, empty=False)
    k, _, _ = diagonals(c, s[-2], s[-1])
    given = {} if c.op.endswith("2") else {"align": c.pick(ALIGN)}
    c.call(input=c.of("T", s), k=k, padding_value=c.of("T", []), **given)


ALIGN = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]


@recipe("MatrixSetDiagV2", "MatrixSetDiagV3")
def set_diag_v2(c):
    s = c.shape(2, 4, empty=False)
    k, n, longest = diagonals(c, s[-2], s[-1])
    d = s[:-2] + ([n] if n > 1 else []) + [longest]
    given = {} if c.op.endswith("2") else {"align": c.pick(ALIGN)}
    c.call(input=c.of("T", s), diagonal=c.of("T", d), k=k, **given)


@recipe("MatrixDiagV2", "MatrixDiagV3")
def diag_v2(c):
    rows, cols = c.int(1, 5), c.int(1, 5)
    k, n, longest = diagonals(c, rows, cols)
    d = c.shape(0, 2) + ([n] if n > 1 else []) + [longest]
    given = {} if c.op.endswith("2") else {"align": c.pick(ALIGN)}
    if c.chance(0.3):
        rows, cols = -1, -1
    c.call(diagonal=c.of("T", d), k=k, num_rows=rows, num_cols=cols, padding_value=c.of("T", []), **given)


@recipe("Diag")
def diag(c):
    c.call(diagonal=c.of("T", c.shape(1, 3)))


@recipe("DiagPart")
def diag_part(c):
    s = c.shape(1, 2)
    c.call(input=c.of("T", s + s))


@recipe("BatchToSpace")
def batch_to_space(c):
    b = c.int(2, 3)
    s = [c.int(1, 2) * b * b, c.int(1, 3), c.int(1, 3), c.int(1, 3)]
    crops = [[c.int(0, 1), c.int(0, 1)] for _ in range(2)]
    c.call(input=c.of("T", s), crops=crops, block_size=b)


@recipe("BatchToSpaceND")
def batch_to_space_nd(c):
    n = c.int(1, 3)
    blocks = c.ints(1, 3, n)
    s = [c.int(1, 2) * int(np.prod(blocks))] + c.ints(1, 3, n) + c.shape(0, 1)
    c.call(input=c.of("T", s), block_shape=c.const(blocks, c.types["Tblock_shape"]), crops=[[c.int(0, 1), c.int(0, 1)] if b > 1 else [0, 0] for b in blocks])


@recipe("SpaceToBatch")
def space_to_batch(c):
    b = c.int(2, 3)
    pad = [[c.int(0, 2), c.int(0, 2)] for _ in range(2)]
    size = [max(1, c.int(1, 3) * b - sum(p)) for p in pad]
    size = [s + (-(s + sum(p))) % b for s, p in zip(size, pad)]
    c.call(input=c.of("T", [c.int(1, 2)] + size + [c.int(1, 3)]), paddings=pad, block_size=b)


@recipe("SpaceToBatchND")
def space_to_batch_nd(c):
    n = c.int(1, 3)
    blocks = c.ints(1, 3, n)
    pad = [[c.int(0, 2), c.int(0, 2)] for _ in blocks]
    size = [(lambda s: s + (-(s + sum(p))) % b)(c.int(1, 3)) for b, p in zip(blocks, pad)]
    c.call(input=c.of("T", [c.int(1, 2)] + size + c.shape(0, 1)), block_shape=c.const(blocks, c.types["Tblock_shape"]), paddings=pad)


@recipe("DepthToSpace")
def depth_to_space(c):
    b = c.int(2, 3)
    c.call(input=c.of("T", [c.int(1, 2), c.int(1, 3), c.int(1, 3), c.int(1, 3) * b * b]), block_size=b)


@recipe("SpaceToDepth")
def space_to_depth(c):
    b = c.int(2, 3)
    c.call(input=c.of("T", [c.int(1, 2), c.int(1, 3) * b, c.int(1, 3) * b, c.int(1, 3)]), block_size=b)


@recipe("Bincount")
def bincount(c):
    n = c.int(0, 8)
    w = c.of("T", [n] if c.chance(0.6) else [0], "small")
    c.call(arr=c.rng.randint(0, 7, size=n), size=c.int(0, 8), weights=w)


@recipe("DenseBincount")
def dense_bincount(c):
    s = c.shape(1, 2)
    c.call(input=c.rng.randint(0, 7, size=s), size=c.int(0, 8), weights=c.of("T", s if c.chance(0.6) else [0], "small"))


@recipe("RaggedBincount")
def ragged_bincount(c):
    splits = row_splits(c)
    n = splits[-1]
    c.call(splits=splits, values=c.rng.randint(0, 7, size=n), size=c.int(0, 8), weights=c.of("T", [n] if c.chance(0.5) else [0], "small"))


@recipe("SparseBincount")
def sparse_bincount(c):
    from .sparse import coo
    i, n, shape = coo(c, c.int(1, 2))
    c.call(indices=i, values=c.rng.randint(0, 7, size=n), dense_shape=shape, size=c.int(1, 8), weights=c.of("T", [n] if c.chance(0.5) else [0], "small"))


def row_splits(c, rows=None):
    rows = c.int(0, 4) if rows is None else rows
    return [0] + np.cumsum(c.ints(0, 4, rows)).astype(int).tolist()


@recipe("BroadcastArgs", "BroadcastGradientArgs")
def broadcast_args(c):
    a, b = c.broadcast(2)
    c.call(s0=a, s1=b)


@recipe("BroadcastTo")
def broadcast_to(c):
    a, b = c.broadcast(2)
    shape = list(np.broadcast_shapes(tuple(a), tuple(b)))
    c.call(input=c.of("T", a), shape=shape)


def joined(c, n):
    s = c.shape(1, 4)
    axis = c.int(0, len(s) - 1)
    parts = []
    for _ in range(n):
        p = list(s)
        p[axis] = c.dim()
        parts.append(p)
    return parts, axis, len(s)


@recipe("Concat", "ConcatV2")
def concat(c):
    parts, axis, rank = joined(c, c.int(2, 5))
    if c.chance(0.3):
        axis -= rank
    arrays = [c.of("T", p) for p in parts]
    if c.op == "Concat":
        c.call(concat_dim=axis, values=arrays)
    else:
        c.call(values=arrays, axis=axis)


@recipe("ConcatOffset")
def concat_offset(c):
    parts, axis, _ = joined(c, c.int(2, 4))
    c.call(concat_dim=axis, shape=parts)


@recipe("Pack")
def pack(c):
    s = c.shape(0, 3)
    c.call(values=[c.of("T", s) for _ in range(c.int(1, 4))], axis=axis_of(c, len(s) + 1))


@recipe("ParallelConcat")
def parallel_concat(c):
    s = c.shape(0, 2, empty=False)
    n = c.int(1, 4)
    c.may_mutate = False
    c.call(values=[c.const(c.of("T", [1] + s), c.types["T"]) for _ in range(n)], shape=[n] + s)


@recipe("_ParallelConcatStart")
def parallel_concat_start(c):
    c.mode = "shape"
    c.call(shape=c.shape(1, 3), dtype=c.types["dtype"])


@recipe("_ParallelConcatUpdate")
def parallel_concat_update(c):
    s = c.shape(0, 2, empty=False)
    n = c.int(1, 4)
    c.may_mutate = False
    c.call(value=c.of("T", [n] + s), update=c.of("T", [1] + s), loc=c.int(0, n - 1))


@recipe("Unpack")
def unpack(c):
    s = c.shape(1, 4)
    a = axis_of(c, len(s))
    c.call(value=c.of("T", s), num=s[a], axis=a)


@recipe("Split")
def split(c):
    s = c.shape(1, 4)
    a = axis_of(c, len(s))
    n = c.int(1, 4)
    s[a] = n * c.int(0, 3)
    c.call(split_dim=a, value=c.of("T", s), num_split=n)


@recipe("SplitV")
def split_v(c):
    s = c.shape(1, 4)
    a = axis_of(c, len(s))
    sizes = c.ints(0, 3, c.int(1, 4))
    s[a] = sum(sizes)
    if c.chance(0.3):
        sizes[c.int(0, len(sizes) - 1)] = -1
    c.call(value=c.of("T", s), size_splits=sizes, split_dim=a, num_split=len(sizes))


@recipe("DynamicPartition")
def dynamic_partition(c):
    s, extra = c.shape(1, 2), c.shape(0, 2)
    n = c.int(1, 4)
    c.call(data=c.of("T", s + extra), partitions=c.rng.randint(0, n, size=s), num_partitions=n)


@recipe("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(c):
    extra, n = c.shape(0, 2), c.int(1, 3)
    c.may_mutate = False
    shapes = [c.shape(0, 2) for _ in range(n)]
    sizes = [int(np.prod(s)) for s in shapes]
    order = c.rng.permutation(sum(sizes))
    if c.chance(0.3) and c.op == "DynamicStitch":
        order = c.rng.randint(0, max(1, sum(sizes)), size=sum(sizes))
        if len(order):
            order[-1] = order.max()
    if len(set(order.tolist())) != (max(order) + 1 if len(order) else 0):
        # Rows without an index contain uninitialized memory.
        order = c.rng.permutation(sum(sizes))
    cuts = np.split(order, np.cumsum(sizes)[:-1])
    c.call(indices=[p.reshape(s) for p, s in zip(cuts, shapes)], data=[c.of("T", s + extra) for s in shapes])


@recipe("EditDistance")
def edit_distance(c):
    rows = c.int(1, 3)

    def sequences():
        lengths = c.ints(1, 4, rows)
        idx = [[r, k] for r, n in enumerate(lengths) for k in range(n)]
        values = c.values(c.types["T"], [len(idx)], "whole")
        return idx, values, [rows, max(lengths)]
    hi, hv, hs = sequences()
    ti, tv, ts = sequences()
    c.call(hypothesis_indices=hi, hypothesis_values=hv, hypothesis_shape=hs, truth_indices=ti, truth_values=tv, truth_shape=ts)


@recipe("Empty")
def empty(c):
    c.call(shape=c.shape(), dtype=c.types["dtype"], init=True)


@recipe("ExpandDims")
def expand_dims(c):
    s = c.shape()
    c.call(input=c.of("T", s), dim=c.int(-len(s) - 1, len(s)))


@recipe("Squeeze")
def squeeze(c):
    s = [1 if c.chance(0.5) else d for d in c.shape()]
    ones = [i - (len(s) if c.chance(0.3) else 0) for i, d in enumerate(s) if d == 1 and c.chance(0.7)]
    c.call(input=c.of("T", s), squeeze_dims=[] if c.chance(0.3) else ones)


@recipe("ExtractImagePatches")
def image_patches(c):
    c.call(images=c.of("T", [c.int(1, 2), c.int(3, 7), c.int(3, 7), c.int(1, 3)]), ksizes=[1, c.int(1, 3), c.int(1, 3), 1],
           strides=[1, c.int(1, 3), c.int(1, 3), 1], rates=[1, c.int(1, 2), c.int(1, 2), 1], padding=c.pick(["SAME", "VALID"]))


@recipe("ExtractVolumePatches")
def volume_patches(c):
    c.call(input=c.of("T", [c.int(1, 2)] + c.ints(3, 5, 3) + [c.int(1, 2)]), ksizes=[1] + c.ints(1, 3, 3) + [1],
           strides=[1] + c.ints(1, 2, 3) + [1], padding=c.pick(["SAME", "VALID"]))


@recipe("Fill")
def fill(c):
    c.call(dims=c.shape(), value=c.of("T", []))


def picks(c, high, shape):
    return c.rng.randint(0, max(high, 1), size=shape if high else [0])


@recipe("Gather")
def gather(c):
    s = c.shape(1, 3, empty=False)
    c.call(params=c.of("Tparams", s), indices=picks(c, s[0], c.shape(0, 2)), validate_indices=True)


@recipe("GatherV2")
def gather_v2(c):
    s = c.shape(1, 4, empty=False)
    batch = c.int(0, len(s) - 1) if c.chance(0.3) else 0
    axis = c.int(batch, len(s) - 1)
    idx = picks(c, s[axis], s[:batch] + c.shape(0, 2))
    c.call(params=c.of("Tparams", s), indices=idx, axis=axis - (len(s) if c.chance(0.3) else 0), batch_dims=batch)


@recipe("GatherNd")
def gather_nd(c):
    s = c.shape(1, 4, empty=False)
    depth = c.int(0, len(s))
    outer = c.shape(0, 2)
    idx = np.stack([c.rng.randint(0, d, size=outer) for d in s[:depth]], -1) if depth else np.zeros(outer + [0])
    c.call(params=c.of("Tparams", s), indices=idx)


def nd_updates(c, s, distinct=False):
    """Indices into a tensor of shape s and the shape of the updates."""
    depth = c.int(1, len(s))
    n = c.int(0, 5)
    total = int(np.prod(s[:depth]))
    flat = c.rng.permutation(total)[:n] if distinct else c.rng.randint(0, total, size=n)
    idx = np.stack(np.unravel_index(flat, s[:depth]), -1).reshape([len(flat), depth])
    return idx, [len(flat)] + s[depth:]


@recipe("ScatterNd")
def scatter_nd(c):
    s = c.shape(1, 3, empty=False)
    idx, u = nd_updates(c, s, c.types["T"] in ("string", "bool"))
    c.style = "small"
    c.call(indices=idx, updates=c.of("T", u), shape=s)


@recipe(*"ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin TensorScatterUpdate".split())
def tensor_scatter(c):
    s = c.shape(1, 3, empty=False)
    idx, u = nd_updates(c, s, c.op.endswith("Update") or c.types["T"] in ("string", "bool"))
    c.style = c.pick(["small", "whole"])
    first = "input" if c.op.startswith("ScatterNd") else "tensor"
    c.call(**{first: c.of("T", s)}, indices=idx, updates=c.of("T", u))


@recipe("HistogramFixedWidth")
def histogram(c):
    c.style = "small"
    c.call(values=c.of("T", c.shape()), value_range=[-1, 3], nbins=c.int(1, 6))


@recipe("InplaceAdd", "InplaceSub", "InplaceUpdate", hold={"T": [t for t in EVERY if t not in ("bool", "string")]})
def inplace(c):
    s = c.shape(1, 3, empty=False)
    n = c.int(0, s[0])
    i = c.rng.permutation(s[0])[:n]
    # TensorFlow does not check these.
    c.may_mutate = False
    c.call(x=c.of("T", s), i=i, v=c.of("T", [n] + s[1:]))


@recipe("InvertPermutation")
def invert_permutation(c):
    c.call(x=c.rng.permutation(c.int(0, 7)))


@recipe("LinSpace")
def lin_space(c):
    c.style = "small"
    c.call(start=c.of("T", []), stop=c.of("T", []), num=c.int(1, 9))


@recipe("ListDiff")
def list_diff(c):
    c.style = "whole"
    c.call(x=c.of("T", [c.int(0, 9)]), y=c.of("T", [c.int(0, 6)]))


@recipe("LowerBound", "UpperBound")
def bounds(c):
    b = c.int(1, 3)
    c.style = c.pick(["small", "whole"])
    c.call(sorted_inputs=np.sort(c.of("T", [b, c.int(0, 6)]), axis=1), values=c.of("T", [b, c.int(0, 5)]))


def paddings(c, s, limit=None):
    return [[c.int(0, 2 if limit is None else max(0, limit(d))), c.int(0, 2 if limit is None else max(0, limit(d)))] for d in s]


@recipe("Pad")
def pad(c):
    s = c.shape(0, 4)
    c.call(input=c.of("T", s), paddings=np.array(paddings(c, s)).reshape(len(s), 2))


@recipe("PadV2")
def pad_v2(c):
    s = c.shape(0, 4)
    c.call(input=c.of("T", s), paddings=np.array(paddings(c, s)).reshape(len(s), 2), constant_values=c.of("T", []))


@recipe("MirrorPad")
def mirror_pad(c):
    s = c.shape(0, 4, empty=False)
    mode = c.pick(["REFLECT", "SYMMETRIC"])
    c.call(input=c.of("T", s), paddings=np.array(paddings(c, s, lambda d: min(2, d - (mode == "REFLECT")))).reshape(len(s), 2), mode=mode)


@recipe("MirrorPadGrad")
def mirror_pad_grad(c):
    s = c.shape(1, 4, empty=False)
    mode = c.pick(["REFLECT", "SYMMETRIC"])
    p = paddings(c, s, lambda d: min(2, d - (mode == "REFLECT")))
    c.style, c.mode, c.tolerance = "small", "norm", 4.0
    c.call(input=c.of("T", [d + a + b for d, (a, b) in zip(s, p)]), paddings=p, mode=mode)


@recipe("OneHot")
def one_hot(c):
    s = c.shape(0, 3)
    depth = c.int(0, 5)
    low = -1 if c.types["TI"] != "uint8" and c.chance(0.3) else 0
    c.call(indices=c.rng.randint(low, depth + 1, size=s), depth=depth, on_value=c.of("T", []), off_value=c.of("T", []), axis=c.int(-1, len(s)))


@recipe("RaggedFillEmptyRows")
def ragged_fill(c):
    rows, n = c.int(1, 5), c.int(0, 6)
    c.call(value_rowids=np.sort(c.rng.randint(0, rows, size=n)), values=c.of("T", [n]), nrows=rows, default_value=c.of("T", []))


@recipe("RaggedFillEmptyRowsGrad", "SparseFillEmptyRowsGrad")
def fill_grad(c):
    n = c.int(0, 6)
    m = c.int(0, n)
    c.style = "small"
    c.call(reverse_index_map=np.sort(c.rng.permutation(n)[:m]), grad_values=c.of("T", [n]))


@recipe("RaggedGather")
def ragged_gather(c):
    depth = c.int(1, 2)
    splits = [row_splits(c, c.int(1, 4))]
    for _ in range(depth - 1):
        splits.append(row_splits(c, splits[-1][-1]))
    values = c.of("Tvalues", [splits[-1][-1]] + c.shape(0, 1))
    outer = c.shape(0, 1)
    idx = c.rng.randint(0, len(splits[0]) - 1, size=outer)
    c.call(params_nested_splits=splits, params_dense_values=values, indices=idx, OUTPUT_RAGGED_RANK=depth + len(outer) - 1)


@recipe("RaggedRange")
def ragged_range(c):
    n = c.int(0, 4)
    starts, limits = (c.rng.randint(-3, 8, size=[n]) for _ in range(2))
    deltas = c.rng.randint(1, 3, size=[n]) * (1 if c.chance(0.8) else -1)
    c.call(starts=starts, limits=limits, deltas=deltas)


@recipe("RaggedTensorToSparse")
def ragged_to_sparse(c):
    splits = [row_splits(c, c.int(1, 4))]
    if c.chance(0.4):
        splits.append(row_splits(c, splits[-1][-1]))
    c.call(rt_nested_splits=splits, rt_dense_values=c.of("T", [splits[-1][-1]] + c.shape(0, 1)))


@recipe("RaggedTensorToTensor")
def ragged_to_tensor(c):
    splits = row_splits(c, c.int(1, 4))
    rows, n = len(splits) - 1, splits[-1]
    extra = c.shape(0, 1)
    widths = np.diff(splits)
    shape = [c.pick([-1, rows]), c.pick([-1, int(max(widths.max(), 1)), 2])] + extra
    values = c.of("T", [n] + extra)
    default = c.of("T", [])
    if c.chance(0.5):
        c.call(shape=shape, values=values, default_value=default, row_partition_tensors=[np.array(splits)], row_partition_types=["ROW_SPLITS"])
    else:
        ids = np.repeat(np.arange(rows), widths)
        c.call(shape=shape, values=values, default_value=default, row_partition_tensors=[np.array(rows), ids],
               row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"])


@recipe("Range")
def range_(c):
    kind = c.types["Tidx"]
    lo, hi = sorted(c.ints(0 if kind.startswith("u") else -5, 9, 2))
    d = c.int(1, 3)
    if c.chance(0.3) and not kind.startswith("u"):
        lo, hi, d = hi, lo, -d
    scale = c.pick([1, 0.5, 0.3]) if kind in ("float32", "float64", "half", "bfloat16") else 1
    c.call(start=lo * scale, limit=hi * scale, delta=d * scale)


@recipe("Reshape")
def reshape(c):
    s = c.shape()
    n = int(np.prod(s))
    to = c.pick([[n], [-1], [1, n], s[::-1], [1, -1, 1]])
    if n == 0 and -1 in to and c.chance(0.5):
        to = [0, -1]
    c.call(tensor=c.of("T", s), shape=to)


@recipe("Reverse")
def reverse(c):
    s = c.shape(0, 5)
    c.call(tensor=c.of("T", s), dims=c.values("bool", [len(s)]))


@recipe("ReverseV2")
def reverse_v2(c):
    s = c.shape(0, 5)
    axes = c.rng.permutation(len(s))[:c.int(0, len(s))]
    c.call(tensor=c.of("T", s), axis=[int(a) - (len(s) if c.chance(0.3) else 0) for a in axes])


@recipe("ReverseSequence")
def reverse_sequence(c):
    s = c.shape(2, 4, empty=False)
    b, q = c.rng.permutation(len(s))[:2]
    c.call(input=c.of("T", s), seq_lengths=c.rng.randint(0, s[q] + 1, size=s[b]), seq_dim=int(q), batch_dim=int(b))


@recipe("Roll")
def roll(c):
    s = c.shape(1, 4)
    if c.chance(0.4):
        c.call(input=c.of("T", s), shift=c.int(-7, 7), axis=axis_of(c, len(s)))
    else:
        n = c.int(0, 3)
        c.call(input=c.of("T", s), shift=c.ints(-7, 7, n), axis=[axis_of(c, len(s)) for _ in range(n)])


@recipe("Slice")
def slice_(c):
    s = c.shape()
    begin = [c.int(0, d) for d in s]
    size = [-1 if c.chance(0.2) else c.int(0, d - b) for d, b in zip(s, begin)]
    c.call(input=c.of("T", s), begin=begin, size=size)


def strided(c, s):
    """begin, end, strides and masks that fit a tensor of shape s."""
    spec, masks = [], dict.fromkeys(["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"], 0)
    n = c.int(0, len(s))
    dims = iter(s)
    bit = 0
    for _ in range(n):
        d = next(dims)
        if c.chance(0.08):
            masks["new_axis_mask"] |= 1 << bit
            spec.append((0, 0, 1))
            bit += 1
        if c.chance(0.2) and d > 0:
            masks["shrink_axis_mask"] |= 1 << bit
            b = c.int(-d, d - 1)
            spec.append((b, b + 1, 1))
        else:
            step = c.pick([1, 1, 2, -1, -2, 3])
            spec.append((c.int(-d - 1, d + 1), c.int(-d - 1, d + 1), step))
            if c.chance(0.25):
                masks["begin_mask"] |= 1 << bit
            if c.chance(0.25):
                masks["end_mask"] |= 1 << bit
        bit += 1
    if c.chance(0.15) and n < len(s):
        masks["ellipsis_mask"] = 1 << bit
        spec.append((0, 0, 1))
    b, e, t = (np.array([x[i] for x in spec], dtype=np.int64) for i in range(3))
    return b, e, t, masks


def sliced_shape(s, b, e, t, masks):
    """The shape of the slice, computed with NumPy's own indexing."""
    index = []
    for i in range(len(b)):
        bit = 1 << i
        if masks["ellipsis_mask"] & bit:
            index.append(Ellipsis)
        elif masks["new_axis_mask"] & bit:
            index.append(None)
        elif masks["shrink_axis_mask"] & bit:
            index.append(int(b[i]))
        else:
            index.append(slice(None if masks["begin_mask"] & bit else int(b[i]), None if masks["end_mask"] & bit else int(e[i]), int(t[i])))
    return list(np.empty(s)[tuple(index)].shape)


@recipe("StridedSlice")
def strided_slice(c):
    s = c.shape()
    b, e, t, masks = strided(c, s)
    c.call(input=c.of("T", s), begin=b, end=e, strides=t, **masks)


@recipe("StridedSliceGrad")
def strided_slice_grad(c):
    s = c.shape(1, 4)
    b, e, t, masks = strided(c, s)
    c.call(shape=s, begin=b, end=e, strides=t, dy=c.of("T", sliced_shape(s, b, e, t, masks)), **masks)


@recipe("TensorStridedSliceUpdate")
def strided_slice_update(c):
    s = c.shape(1, 4)
    b, e, t, masks = strided(c, s)
    value = sliced_shape(s, b, e, t, masks)
    c.call(input=c.of("T", s), begin=b, end=e, strides=t, value=c.of("T", value), **masks)


@recipe("Tile", hold={"T": EVERY})
def tile(c):
    s = c.shape(0, 4)
    c.call(input=c.of("T", s), multiples=np.array(c.ints(0 if c.chance(0.2) else 1, 3, len(s))))


@recipe("TileGrad")
def tile_grad(c):
    s = c.shape(1, 3, empty=False)
    m = c.ints(1, 3, len(s))
    c.mode, c.style = "norm", "small"
    c.call(input=c.of("T", [d * k for d, k in zip(s, m)]), multiples=m)


@recipe("Transpose", "ConjugateTranspose")
def transpose(c):
    s = c.shape(0, 5)
    perm = c.rng.permutation(len(s))
    # TensorFlow uses negative entries as addresses.
    c.may_mutate = False
    c.call(x=c.of("T", s), perm=perm)


@recipe("Unique", "UniqueWithCounts")
def unique(c):
    c.style = c.pick(["whole", "small"])
    c.call(x=c.of("T", [c.int(0, 12)]))


@recipe("UniqueV2", "UniqueWithCountsV2")
def unique_v2(c):
    c.style = "whole"
    s = c.shape(1, 3)
    axis = [c.int(0, len(s) - 1)] if len(s) > 1 or c.chance(0.5) else []
    x = c.of("T", s)
    if c.chance(0.5) and s[0] > 1:
        x[1] = x[0]
    c.call(x=x, axis=np.array(axis, dtype=np.int64))


@recipe("UnravelIndex")
def unravel(c):
    dims = c.ints(1, 5, c.int(1, 4))
    s = c.shape(0, 1)
    c.call(indices=c.rng.randint(0, int(np.prod(dims)), size=s), dims=dims)


@recipe("Where")
def where(c):
    c.style = "whole"
    c.call(input=c.of("T", c.shape(1, 5)))
