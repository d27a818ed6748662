"""Sparse tensors: indices, values, shape."""

import numpy as np

from case import array

from . import recipe


def coo(c, rank=None, shape=None, most=6, row_full=False):
    """Sorted distinct indices, their number, and the dense shape."""
    shape = shape or c.ints(1, 4, rank if rank is not None else c.int(1, 3))
    total = int(np.prod(shape))
    n = min(c.int(0, most), total)
    flat = np.sort(c.rng.permutation(total)[:n])
    idx = np.stack(np.unravel_index(flat, shape), -1).reshape(n, len(shape)).astype(np.int64)
    return idx, n, list(shape)


def tensor(c, prefix, names=("indices", "values", "shape"), attr="T", **given):
    i, n, s = coo(c, **given)
    return {f"{prefix}{names[0]}": i, f"{prefix}{names[1]}": c.of(attr, [n]), f"{prefix}{names[2]}": s}, i, n, s


def plain(c):
    c.style = c.pick(["small", "whole"])


@recipe("SparseToDense")
def to_dense(c):
    i, n, s = coo(c)
    c.call(sparse_indices=i, output_shape=s, sparse_values=c.of("T", [n] if c.chance(0.8) else []), default_value=c.of("T", []), validate_indices=True)


@recipe("SparseReorder")
def reorder(c):
    i, n, s = coo(c)
    c.call(input_indices=i[c.rng.permutation(n)], input_values=c.of("T", [n]), input_shape=s)


@recipe("SparseReshape")
def reshape(c):
    i, n, s = coo(c)
    total = int(np.prod(s))
    c.call(input_indices=i, input_shape=s, new_shape=c.pick([[-1], [total], [1, -1], s[::-1]]))


@recipe("SparseConcat")
def concat(c):
    rank = c.int(1, 3)
    d = c.int(0, rank - 1)
    base = c.ints(1, 4, rank)
    parts = []
    for _ in range(c.int(2, 3)):
        s = list(base)
        s[d] = c.int(1, 4)
        parts.append(coo(c, shape=s))
    c.call(indices=[p[0] for p in parts], values=[c.of("T", [p[1]]) for p in parts], shapes=[p[2] for p in parts],
           concat_dim=d - (rank if c.chance(0.3) else 0))


@recipe("SparseSplit")
def split(c):
    i, n, s = coo(c)
    d = c.int(0, len(s) - 1)
    c.call(split_dim=d, indices=i, values=c.of("T", [n]), shape=s, num_split=c.int(1, s[d]))


@recipe("SparseSlice")
def slice_(c):
    i, n, s = coo(c)
    c.call(indices=i, values=c.of("T", [n]), shape=s, start=[c.int(0, d) for d in s], size=[c.int(0, d + 1) for d in s])


@recipe("SparseSliceGrad")
def slice_grad(c):
    plain(c)
    i, n, s = coo(c)
    start = [c.int(0, d - 1) for d in s]
    size = [c.int(1, d) for d in s]
    inside = [k for k in range(n) if all(a <= x < a + w for x, a, w in zip(i[k], start, size))]
    out = (i[inside] - np.array(start)).reshape(len(inside), len(s))
    c.call(backprop_val_grad=c.of("T", [len(inside)]), input_indices=i, input_start=start, output_indices=out)


@recipe("SparseFillEmptyRows")
def fill_rows(c):
    i, n, s = coo(c)
    c.call(indices=i, values=c.of("T", [n]), dense_shape=s, default_value=c.of("T", []))


@recipe("SparseAdd")
def add(c):
    plain(c)
    if c.types["T"] in ("complex64", "complex128"):
        c.types["Treal"] = "float32" if c.types["T"] == "complex64" else "float64"
    else:
        c.types["Treal"] = c.types["T"]
    a, _, _, s = tensor(c, "a_")
    b, _, _, _ = tensor(c, "b_", shape=s)
    c.call(**a, **b, thresh=c.pick([0, 0, 2]))


@recipe("SparseAddGrad")
def add_grad(c):
    plain(c)
    a, n, s = coo(c)
    b, m, _ = coo(c, shape=s)
    union = np.array(sorted({tuple(x) for x in a.tolist()} | {tuple(x) for x in b.tolist()}), dtype=np.int64).reshape(-1, len(s))
    c.call(backprop_val_grad=c.of("T", [len(union)]), a_indices=a, b_indices=b, sum_indices=union)


@recipe("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul")
def cwise(c):
    plain(c)
    a, _, _, s = tensor(c, "sp_")
    d = [1 if c.chance(0.2) else x for x in s]
    if c.chance(0.2):
        d = d[1:]
    c.call(**a, dense=c.of("T", d, "positive"))


@recipe("SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSum", "SparseReduceSumSparse")
def reduce(c):
    plain(c)
    i, n, s = coo(c)
    axes = c.rng.permutation(len(s))[:c.int(0, len(s))]
    c.call(input_indices=i, input_values=c.of("T", [n]), input_shape=s, reduction_axes=[int(a) - (len(s) if c.chance(0.3) else 0) for a in axes])


@recipe("SparseSoftmax")
def softmax(c):
    plain(c)
    a, _, _, _ = tensor(c, "sp_", rank=c.int(2, 3))
    c.call(**a)


@recipe("SparseSparseMaximum", "SparseSparseMinimum")
def extremes(c):
    plain(c)
    a, _, _, s = tensor(c, "a_")
    b, _, _, _ = tensor(c, "b_", shape=s)
    c.call(**a, **b)


@recipe("SparseTensorDenseAdd")
def dense_add(c):
    plain(c)
    a, _, _, s = tensor(c, "a_")
    c.call(**a, b=c.of("T", s))


@recipe("SparseTensorDenseMatMul")
def dense_matmul(c):
    plain(c)
    c.mode = "norm"
    i, n, s = coo(c, rank=2)
    ta, tb = c.chance(0.5), c.chance(0.5)
    k, m = s[0] if ta else s[1], c.int(1, 4)
    c.call(a_indices=i, a_values=c.of("T", [n]), a_shape=s, b=c.of("T", [m, k] if tb else [k, m]), adjoint_a=ta, adjoint_b=tb)


@recipe("SerializeSparse", "SerializeManySparse")
def serialize(c):
    # Serialized as strings, because variants cannot be fetched.
    c.types["out_type"] = "string"
    i, n, s = coo(c, rank=c.int(2, 3))
    if c.types["T"] == "complex64" or c.types["T"] == "complex128":
        plain(c)
    c.call(sparse_indices=i, sparse_values=c.of("T", [n]), sparse_shape=s)


@recipe("DeserializeSparse", "DeserializeManySparse")
def deserialize(c):
    c.types["Tserialized"] = "string"
    i, n, s = coo(c, rank=2)
    source = c.node("SerializeManySparse", sparse_indices=i, sparse_values=c.of("dtype", [n]), sparse_shape=s)[0]
    c.call(serialized_sparse=source, dtype=c.types["dtype"])


@recipe("AddSparseToTensorsMap", "AddManySparseToTensorsMap")
def to_map(c):
    # The order of handles is that of a hash table.
    c.mode = "shape"
    i, n, s = coo(c, rank=c.int(2, 3))
    handles = c.node(c.op, sparse_indices=i, sparse_values=c.of("T", [n]), sparse_shape=s, shared_name="m")[0]
    c.fetch(handles)


@recipe("TakeManySparseFromTensorsMap")
def from_map(c):
    i, n, s = coo(c, rank=2)
    handles = c.node("AddManySparseToTensorsMap", sparse_indices=i, sparse_values=c.of("dtype", [n]), sparse_shape=s, shared_name="m")[0]
    c.call(sparse_handles=handles, shared_name="m", dtype=c.types["dtype"])


@recipe("DenseCountSparseOutput")
def dense_count(c):
    plain(c)
    s = c.shape(1, 2, empty=False)
    lo, hi = c.pick([(-1, -1), (4, -1), (-1, 3), (2, 5)])
    c.call(values=c.rng.randint(0, 6, size=s), weights=c.of("output_type", s if c.chance(0.5) else [0]), minlength=lo, maxlength=hi, binary_output=c.chance(0.3))


@recipe("SparseCountSparseOutput")
def sparse_count(c):
    plain(c)
    i, n, s = coo(c, rank=c.int(1, 2))
    lo, hi = c.pick([(-1, -1), (4, -1), (-1, 3), (2, 5)])
    c.call(indices=i, values=c.rng.randint(0, 6, size=n), dense_shape=s, weights=c.of("output_type", [n] if c.chance(0.5) else [0]),
           minlength=lo, maxlength=hi, binary_output=c.chance(0.3))


@recipe("RaggedCountSparseOutput")
def ragged_count(c):
    from .array import row_splits
    plain(c)
    splits = row_splits(c, c.int(1, 4))
    n = splits[-1]
    lo, hi = c.pick([(-1, -1), (4, -1), (-1, 3), (2, 5)])
    c.call(splits=splits, values=c.rng.randint(0, 6, size=n), weights=c.of("output_type", [n] if c.chance(0.5) else [0]),
           minlength=lo, maxlength=hi, binary_output=c.chance(0.3))


SETS = ["a-b", "b-a", "intersection", "union"]


@recipe("DenseToDenseSetOperation")
def dense_sets(c):
    c.style = "whole"
    lead = c.ints(1, 3, c.int(1, 2))
    c.call(set1=c.of("T", lead + [c.int(0, 4)]), set2=c.of("T", lead + [c.int(0, 4)]), set_operation=c.pick(SETS))


@recipe("DenseToSparseSetOperation")
def dense_sparse_sets(c):
    c.style = "whole"
    b, _, _, s = tensor(c, "set2_", rank=c.int(2, 3))
    c.call(set1=c.of("T", s[:-1] + [c.int(0, 4)]), set_operation=c.pick(SETS), **b)


@recipe("SparseToSparseSetOperation")
def sparse_sets(c):
    c.style = "whole"
    a, _, _, s = tensor(c, "set1_", rank=c.int(2, 3))
    b, _, _, _ = tensor(c, "set2_", shape=s)
    c.call(set_operation=c.pick(SETS), **a, **b)


@recipe("SetSize")
def set_size(c):
    c.style = "whole"
    a, _, _, _ = tensor(c, "set_", rank=c.int(2, 3))
    c.call(**a)


def features(c, rows):
    n = c.int(0, 2)
    parts = [coo(c, shape=[rows, c.int(1, 3)]) for _ in range(n)]
    values = [c.values(c.pick(["int64", "string"]), [p[1]], "whole") for p in parts]
    dense = [c.values(c.pick(["int64", "string"]), [rows, c.int(1, 2)], "whole") for _ in range(c.int(0 if n else 1, 2))]
    return dict(indices=[p[0] for p in parts], values=values, shapes=[np.array(p[2]) for p in parts], dense_inputs=dense)


@recipe("SparseCross", hold={"internal_type": ["string"]})
def cross(c):
    rows = c.int(1, 3)
    hashed = c.types["out_type"] == "int64"
    f = features(c, rows)
    if hashed:
        c.types["internal_type"] = "int64"
        f["values"] = [c.values("int64", v.shape, "whole") for v in f["values"]]
        f["dense_inputs"] = [c.values("int64", v.shape, "whole") for v in f["dense_inputs"]]
    else:
        f["values"] = [c.values("string", v.shape) for v in f["values"]]
        f["dense_inputs"] = [c.values("string", v.shape) for v in f["dense_inputs"]]
    c.call(hashed_output=hashed, num_buckets=c.pick([0, 100]), hash_key=956888297470, **f)


@recipe("SparseCrossV2")
def cross_v2(c):
    c.call(sep=array("_X_", "string"), **features(c, c.int(1, 3)))


@recipe("SparseCrossHashed")
def cross_hashed(c):
    c.call(num_buckets=c.pick([0, 100]), strong_hash=c.values("bool", []), salt=[c.int(0, 99), c.int(0, 99)], **features(c, c.int(1, 3)))


@recipe("RaggedCross", hold={"out_row_splits_type": ["int64"]})
def ragged_cross(c):
    rows, hashed = c.int(1, 3), c.types["out_values_type"] == "int64"
    values, splits = [], []
    for _ in range(c.int(1, 2)):
        ends = np.concatenate([[0], np.cumsum(c.ints(0, 3, rows))]).astype(np.int64)
        values.append(c.values(c.pick(["int64", "string"]), [int(ends[-1])], "whole"))
        splits.append(ends)
    dense = [c.values(c.pick(["int64", "string"]), [rows, c.int(1, 2)], "whole") for _ in range(c.int(0, 1))]
    c.call(ragged_values=values, ragged_row_splits=splits, sparse_indices=[], sparse_values=[], sparse_shape=[], dense_inputs=dense,
           input_order="R" * len(values) + "D" * len(dense), hashed_output=hashed, num_buckets=c.pick([0, 100]), hash_key=956888297470)
