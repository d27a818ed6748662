"""Records gradients of ops from TensorFlow 2.15.1, as text that tests/suite/gradients.rs reads.

    python record.py            # writes FAMILY.txt beside this file

A case is an op with attributes and inputs, a gradient for each output, and what TensorFlow makes of
them for each input; cases are separated by empty lines. Inputs are random, with a fixed seed.
"""
import inspect
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

rng = np.random.RandomState(7)
HERE = os.path.dirname(os.path.abspath(__file__))
# Attributes that Python calls otherwise.
RENAMED = {("Squeeze", "axis"): "squeeze_dims"}
# Ops of whose outputs only the first has a gradient.
FIRST_ONLY = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
NAMES = {"float32": "float", "float64": "double", "float16": "half", "bool": "bool"}


def f(*shape, lo=-2.0, hi=2.0, dtype=np.float64, distinct=False):
    """Random numbers of few digits; distinct ones for ops that compare."""
    n = int(np.prod(shape))
    if distinct:
        x = lo + (hi - lo) * (rng.permutation(n) + 0.5) / max(n, 1)
        return np.round(x, 3).astype(dtype).reshape(shape)
    x = np.round(rng.uniform(lo, hi, size=shape), 2)
    x = np.where(np.abs(x) < 0.05, x + 0.1, x)
    return np.asarray(x, dtype=dtype).reshape(shape)


def f32(*shape, **kw):
    return f(*shape, dtype=np.float32, **kw)


def z(*shape):
    return f(*shape) + 1j * f(*shape)


def i32(x):
    return np.array(x, np.int32)


def i64(x):
    return np.array(x, np.int64)


def name_of(dtype):
    return NAMES.get(np.dtype(dtype).name, np.dtype(dtype).name)


def tensor(kind, x):
    if x is None:
        return kind + " none"
    x = np.asarray(x)
    flat = x.reshape(-1)
    if np.iscomplexobj(x):
        flat = np.stack([flat.real, flat.imag], 1).reshape(-1)
    if x.dtype.kind in "fc":
        digits = "%.5g" if kind == "in" else "%.8g"
        words = [digits % v for v in flat]
    else:
        words = [str(int(v)) for v in flat]
    shape = "x".join(map(str, x.shape)) or "scalar"
    return " ".join([kind, name_of(x.dtype), shape] + words)


def attr(key, value):
    if isinstance(value, bool):
        return f"attr {key} bool {int(value)}"
    if isinstance(value, int):
        return f"attr {key} int {value}"
    if isinstance(value, float):
        return f"attr {key} float {value!r}"
    if isinstance(value, str):
        return f"attr {key} str {value}"
    if isinstance(value, tf.DType):
        return f"attr {key} type {value.as_datatype_enum}"
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (str, bytes)):
        text = [v.decode() if isinstance(v, bytes) else v for v in value]
        return " ".join([f"attr {key} strs"] + text)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], float):
        return " ".join([f"attr {key} floats"] + [repr(v) for v in value])
    if isinstance(value, (list, tuple)):
        return " ".join([f"attr {key} ints"] + [str(v) for v in value])
    raise TypeError((key, value))


def flat(values):
    out = []
    for v in values:
        out.extend(v if isinstance(v, (list, tuple)) else [v])
    return out


def record(out, op, *inputs, **attrs):
    """One case. Inputs in the order of the op's arguments, lists for lists."""
    raw = getattr(tf.raw_ops, op)
    op_def = op_def_registry.get(op)
    # The Python names of arguments differ from the op's for some.
    names = list(inspect.signature(raw).parameters)[: len(op_def.input_arg)]
    as_tensor = lambda v: [tf.constant(x) for x in v] if isinstance(v, list) else tf.constant(v)
    args = [as_tensor(v) for v in inputs]
    watched = flat(args)
    inferred = {a.number_attr for a in op_def.input_arg} | {a.type_list_attr for a in op_def.input_arg}
    inferred |= {a.type_attr for a in op_def.input_arg}
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = raw(**dict(zip(names, args)), **attrs)
    ys = flat([y] if isinstance(y, tf.Tensor) else list(y))
    trains = lambda t: t.dtype.is_floating or t.dtype.is_complex
    dys = []
    for k, t in enumerate(ys):
        if not trains(t) or (k > 0 and op in FIRST_ONLY) or (k > 2 and op == "FusedBatchNormGradV3"):
            dys.append(None)
        elif t.dtype.is_complex:
            dys.append(z(*t.shape).astype(t.dtype.as_numpy_dtype))
        else:
            dys.append(f(*t.shape, dtype=t.dtype.as_numpy_dtype))
    pairs = [(t, d) for t, d in zip(ys, dys) if d is not None]
    dxs = tape.gradient(
        [t for t, _ in pairs], watched, output_gradients=[tf.constant(d) for _, d in pairs]
    )
    lines = [op]
    attrs = {RENAMED.get((op, k), k): v for k, v in attrs.items()}
    lines += [attr(k, v) for k, v in sorted(attrs.items()) if k not in inferred]
    lines += [tensor("in", x.numpy()) for x in watched]
    lines += [tensor("dy", d) for d in dys]
    for x, dx in zip(watched, dxs):
        if dx is not None and not trains(x):
            dx = None
        lines.append(tensor("dx", None if dx is None else tf.convert_to_tensor(dx).numpy()))
    out.append("\n".join(lines))


def broadcast_pairs():
    yield (2, 3), (2, 3)
    yield (2, 3), (3,)
    yield (), (2, 2)
    yield (2, 1, 3), (4, 1)
    yield (1, 2), (1, 1)
    yield (0, 3), (1, 3)


def math(out):
    span = {
        "Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 3),
        "Log": (0.2, 3), "Log1p": (-0.8, 3), "Sqrt": (0.2, 3), "Rsqrt": (0.2, 3), "Erfinv": (-0.9, 0.9),
        "Ndtri": (0.1, 0.9), "Lgamma": (0.2, 4), "Digamma": (0.2, 4), "BesselK0": (0.2, 4),
        "BesselK0e": (0.2, 4), "BesselK1": (0.2, 4), "BesselK1e": (0.2, 4), "BesselY0": (0.2, 4),
        "BesselY1": (0.2, 4), "Expint": (0.2, 3), "Spence": (0.2, 3),
    }
    unary = """Abs Neg Sign Square Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Sin Cos Tan Asin Acos
        Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Erf Erfc Erfinv Ndtri Lgamma Digamma BesselI0
        BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0
        BesselY1 Dawsn Expint FresnelCos FresnelSin Spence Floor Ceil Round Rint""".split()
    for op in unary:
        lo, hi = span.get(op, (-2, 2))
        for shape in [(), (3,), (2, 3), (0, 2)]:
            record(out, op, f(*shape, lo=lo, hi=hi))
        record(out, op, f32(4, lo=lo, hi=hi))
    for op in """Neg Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh
            Tanh Asinh Acosh Atanh Sigmoid""".split():
        record(out, op, z(3))
    for op in "SqrtGrad RsqrtGrad ReciprocalGrad SigmoidGrad TanhGrad".split():
        record(out, op, f(2, 2), f(2, 2))
        record(out, op, z(3), z(3))
    record(out, "InvGrad", f(3), f(3))
    positive = {"Pow", "Xlogy", "Igamma", "Igammac", "Zeta", "Polygamma", "Xlog1py"}
    for op in """Add AddV2 Sub Mul Div RealDiv MulNoNan DivNoNan Maximum Minimum SquaredDifference FloorMod
            FloorDiv TruncateDiv Pow Atan2 Xlogy Xlog1py Xdivy Igamma Igammac Zeta Polygamma NextAfter""".split():
        for a, b in broadcast_pairs():
            if op == "Polygamma":
                x, y = np.round(f(*a, lo=1, hi=4)), f(*b, lo=0.3, hi=3)
            elif op == "Zeta":
                x, y = f(*a, lo=1.3, hi=4), f(*b, lo=0.3, hi=3)
            elif op in positive:
                x, y = f(*a, lo=0.3, hi=3), f(*b, lo=0.3, hi=3)
            else:
                x, y = f(*a), f(*b)
            record(out, op, x, y)
    for op in "Add AddV2 Sub Mul RealDiv DivNoNan MulNoNan Pow SquaredDifference Xlogy Xdivy Xlog1py".split():
        if op not in ("SquaredDifference", "MulNoNan", "DivNoNan"):
            record(out, op, z(2, 1), z(3))
    record(out, "Maximum", f(3), np.array([0.5, 9.0, -9.0]))
    record(out, "Betainc", f(3, lo=0.5, hi=3), f(3, lo=0.5, hi=3), f(3, lo=0.1, hi=0.9))
    record(out, "Betainc", f(3, lo=0.5, hi=3), f(3, lo=0.5, hi=3), f(lo=0.1, hi=0.9))
    record(out, "AddN", [f(2, 2), f(2, 2), f(2, 2)])
    for a, b in [(np.float64, tf.float32), (np.float32, tf.float64), (np.float64, tf.int32), (np.int32, tf.float64)]:
        record(out, "Cast", f(3).astype(a), DstT=b)
    record(out, "Cast", f(3), DstT=tf.complex128)
    for shape in [(), (2, 3)]:
        record(out, "ClipByValue", f(2, 3), f(*shape, lo=-1, hi=-0.2), f(*shape, lo=0.2, hi=1))
    record(out, "Complex", f(2, 1), f(3), Tout=tf.complex128)
    for op in "Real Imag Angle ComplexAbs".split():
        record(out, op, z(3), Tout=tf.float64)
    record(out, "Conj", z(3))
    record(out, "Select", np.array([True, False, True]), f(3), f(3))
    record(out, "Select", np.array([True, False]), f(2, 3), f(2, 3))
    record(out, "Select", np.array(True), f(2, 3), f(2, 3))
    record(out, "SelectV2", np.array([[True], [False]]), f(3), f(2, 1))
    record(out, "SelectV2", np.array([True, False, True]), f(), f(2, 3))


def reduce(out):
    for op in "Sum Mean Max Min Prod EuclideanNorm".split():
        for shape, axes in [((3,), [0]), ((2, 3), [1]), ((2, 3, 2), [0, 2]), ((2, 3), [-1]), ((2, 2), [0, 1]), ((2, 3), [])]:
            for keep in (False, True):
                record(out, op, f(*shape, distinct=op in ("Max", "Min")), i32(axes), keep_dims=keep)
        record(out, op, f(2, 3), i32(1), keep_dims=False)
        if op != "Prod":
            record(out, op, f(2, 3), i64([0]), keep_dims=False)
    record(out, "Max", np.array([[1.0, 1.0, 0.5], [2.0, 3.0, 3.0]]), i32([1]), keep_dims=False)
    record(out, "Prod", np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]), i32([1]), keep_dims=False)
    record(out, "Sum", z(2, 2), i32([0]), keep_dims=False)
    record(out, "Mean", z(2, 2), i32([0]), keep_dims=False)
    record(out, "Prod", z(2, 2), i32([0]), keep_dims=False)
    record(out, "Sum", f(0, 3), i32([0]), keep_dims=False)
    record(out, "Mean", f(2, 0), i32([0]), keep_dims=False)
    for op in "Cumsum Cumprod CumulativeLogsumexp".split():
        for exclusive in (False, True):
            for reverse in (False, True):
                record(out, op, f(2, 3), i32(1), exclusive=exclusive, reverse=reverse)
        record(out, op, f(2, 3), i32(-2), exclusive=False, reverse=False)
    ids = i32([0, 0, 2, 2, 2])
    for op in "SegmentSum SegmentMean SegmentMax SegmentMin SegmentProd".split():
        for shape in [(5,), (5, 2), (5, 1, 3)]:
            record(out, op, f(*shape, distinct=True), ids)
    record(out, "SegmentProd", np.array([0.0, 2.0, 0.0, 0.0, 3.0]), ids)
    record(out, "SegmentMax", np.array([2.0, 2.0, 1.0, 1.0, 3.0]), ids)
    for op in "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd".split():
        for shape in [(5,), (5, 2), (5, 1, 3)]:
            record(out, op, f(*shape, distinct=True), i32([2, 0, 2, -1, 0]), i32(4))
        record(out, op, f(2, 2, 2, distinct=True), i32([[0, 1], [1, 0]]), i32(2))
    record(out, "UnsortedSegmentProd", np.array([0.0, 2.0, 0.0, 0.5, 3.0]), i32([1, 1, 0, 0, 2]), i32(3))
    for op in "Sum Mean SqrtN".split():
        record(out, "SparseSegment" + op, f(4, 2), i32([3, 0, 1, 1]), i32([0, 0, 1, 2]))
        record(out, "SparseSegment" + op + "WithNumSegments", f(4, 2), i32([3, 0, 1]), i32([0, 0, 2]), i32(4))
    record(out, "ArgMax", f(3), i32(0), output_type=tf.int64)


def array(out):
    for op in "Identity StopGradient EnsureShape".split():
        record(out, op, f(2, 2), **({"shape": [2, 2]} if op == "EnsureShape" else {}))
    record(out, "CheckNumerics", f(3), message="x")
    record(out, "CheckNumericsV2", f(3), message="x")
    for a, b in [((3,), [2, 3]), ((2, 1), [2, 3]), ((), [2, 2]), ((2, 2), [2, 2]), ((1, 3), [4, 2, 3])]:
        record(out, "BroadcastTo", f(*a), i32(b))
        record(out, "BroadcastTo", f(*a), i64(b))
    for axis, shapes in [(0, [(2, 2), (1, 2)]), (1, [(2, 2), (2, 3), (2, 1)]), (-1, [(2, 1, 2), (2, 1, 3)])]:
        parts = [f(*s) for s in shapes]
        record(out, "ConcatV2", parts, i32(axis))
        if axis >= 0:
            record(out, "Concat", i32(axis), parts)
    for axis in (0, 1, -1):
        record(out, "Pack", [f(2, 3), f(2, 3)], axis=axis)
        record(out, "Unpack", f(2, 2), num=2, axis=axis)
    record(out, "Diag", f(3))
    record(out, "Diag", f(2, 2))
    record(out, "DiagPart", f(3, 3))
    record(out, "DiagPart", f(2, 2, 2, 2))
    record(out, "MatrixBandPart", f(3, 4), i64(1), i64(0))
    record(out, "MatrixBandPart", f(2, 3, 3), i64(-1), i64(1))
    record(out, "Fill", i32([2, 3]), f())
    for idx in [i32([1, 0, 1]), i32(2), i64([[0, 2], [2, 2]])]:
        record(out, "Gather", f(3, 2), idx)
        for axis in (0, 1, -1):
            params = f(3, 3, 2) if axis != -1 else f(2, 3)
            record(out, "GatherV2", params, idx, i32(axis), batch_dims=0)
    record(out, "GatherV2", f(2, 3), i32([[0, 2], [1, 1]]), i32(1), batch_dims=1)
    record(out, "GatherV2", f(2, 3, 2), i32([[0, 2], [1, 1]]), i32(1), batch_dims=1)
    record(out, "GatherV2", f(2, 2, 3), i32([[0, 2], [1, 1]]), i32(2), batch_dims=1)
    record(out, "GatherV2", f(2, 2, 3, 2), i32([[[0, 2], [1, 1]], [[0, 0], [2, 1]]]), i32(2), batch_dims=2)
    record(out, "GatherNd", f(3, 2), i32([[0, 1], [2, 0], [0, 1]]))
    record(out, "GatherNd", f(3, 2), i32([[0], [2], [0]]))
    record(out, "GatherNd", f(3, 2, 2), i64([[[0, 1]], [[2, 0]]]))
    record(out, "MatrixDiag", f(2, 3))
    record(out, "MatrixDiagPart", f(2, 3, 3))
    record(out, "MatrixDiagPart", f(3, 2))
    record(out, "MatrixSetDiag", f(2, 3, 3), f(2, 3))
    record(out, "MatrixSetDiag", f(3, 2), f(2))
    record(out, "MatrixDiagV2", f(2, 3), i32(1), i32(-1), i32(-1), f())
    record(out, "MatrixDiagV2", f(2, 3), i32([-1, 0]), i32(3), i32(4), f())
    record(out, "MatrixDiagPartV2", f(3, 4), i32([-1, 1]), f())
    record(out, "MatrixSetDiagV2", f(3, 4), f(2, 3), i32([0, 1]))
    for align in ("RIGHT_LEFT", "LEFT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT"):
        record(out, "MatrixDiagV3", f(2, 3), i32([-1, 0]), i32(3), i32(4), f(), align=align)
        record(out, "MatrixDiagPartV3", f(3, 4), i32([-1, 1]), f(), align=align)
        record(out, "MatrixSetDiagV3", f(3, 4), f(2, 3), i32([0, 1]), align=align)
    for pads in ([[1, 0], [0, 2]], [[0, 0], [1, 1]]):
        record(out, "Pad", f(2, 2), i32(pads))
        record(out, "Pad", f(2, 2), i64(pads))
        record(out, "PadV2", f(2, 2), i32(pads), f())
    for mode in ("REFLECT", "SYMMETRIC"):
        record(out, "MirrorPad", f(3, 3), i32([[1, 2], [0, 1]]), mode=mode)
        record(out, "MirrorPadGrad", f(6, 4), i32([[1, 2], [0, 1]]), mode=mode)
    record(out, "DynamicPartition", f(4, 2), i32([1, 0, 1, 2]), num_partitions=3)
    record(out, "DynamicPartition", f(2, 2), i32([[1, 0], [1, 1]]), num_partitions=2)
    record(out, "DynamicStitch", [i32([0, 2]), i32([1, 3])], [f(2, 2), f(2, 2)])
    record(out, "ParallelDynamicStitch", [i32(1), i32([0, 2])], [f(2), f(2, 2)])
    for padding in ("VALID", "SAME"):
        for rate in (1, 2):
            record(out, "ExtractImagePatches", f(2, 5, 4, 2), ksizes=[1, 2, 2, 1], strides=[1, 2, 1, 1],
                   rates=[1, rate, rate, 1], padding=padding)
        record(out, "ExtractVolumePatches", f(1, 3, 3, 3, 2), ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1],
               padding=padding)
    record(out, "Reshape", f(2, 3), i32([3, 2]))
    record(out, "Reshape", f(2, 3), i64([-1]))
    record(out, "ExpandDims", f(2, 3), i32(1))
    record(out, "Squeeze", f(1, 2, 1), axis=[0])
    record(out, "Squeeze", f(1, 2, 1), axis=[])
    record(out, "Reverse", f(2, 3), np.array([True, False]))
    record(out, "ReverseV2", f(2, 3), i32([1]))
    record(out, "ReverseV2", f(2, 3), i32([-1, 0]))
    record(out, "ReverseSequence", f(3, 4), i64([1, 3, 4]), seq_dim=1, batch_dim=0)
    record(out, "Roll", f(3, 3), i32([1, -1]), i32([0, 1]))
    record(out, "ScatterNd", i32([[0], [2], [0]]), f(3, 2), i32([4, 2]))
    record(out, "ScatterNd", i32([[0, 1], [2, 0]]), f(2), i32([3, 2]))
    for op in "Update Add Sub".split():
        record(out, "TensorScatter" + op, f(3, 2), i32([[0], [2]]), f(2, 2))
    for op in "Max Min".split():
        record(out, "TensorScatter" + op, f(3, 2, distinct=True), i32([[0], [2]]), f(2, 2))
        record(out, "TensorScatter" + op, np.ones(3), i32([[0], [2]]), np.ones(2))
    record(out, "ScatterNdNonAliasingAdd", f(3, 2), i32([[0], [2]]), f(2, 2))
    record(out, "Slice", f(3, 4), i32([1, 0]), i32([2, 3]))
    record(out, "Slice", f(3, 4), i64([1, 0]), i64([-1, 3]))
    block, pads = i32([2, 2]), i32([[0, 0], [2, 0]])
    record(out, "SpaceToBatchND", f(1, 4, 2, 1), block, pads)
    record(out, "BatchToSpaceND", f(8, 2, 2, 1), block, pads)
    record(out, "SpaceToBatch", f(1, 4, 2, 1), pads, block_size=2)
    record(out, "BatchToSpace", f(8, 2, 2, 1), pads, block_size=2)
    record(out, "SpaceToDepth", f(1, 4, 2, 1), block_size=2)
    record(out, "DepthToSpace", f(1, 2, 2, 4), block_size=2)
    record(out, "Split", i32(1), f(2, 4), num_split=2)
    record(out, "SplitV", f(2, 5), i32([2, 3]), i32(1), num_split=2)
    for kw in ({}, {"shrink_axis_mask": 1}, {"new_axis_mask": 2}, {"ellipsis_mask": 1}, {"begin_mask": 1, "end_mask": 2}):
        record(out, "StridedSlice", f(3, 4), i32([1, 0]), i32([3, 3]), i32([1, 2]), **kw)
    record(out, "StridedSlice", f(5), i64([-1]), i64([0]), i64([-2]))
    record(out, "StridedSliceGrad", i32([3, 4]), i32([1, 0]), i32([3, 3]), i32([1, 2]), f(2, 2))
    record(out, "TensorStridedSliceUpdate", f(3, 4), i32([1, 0]), i32([3, 3]), i32([1, 2]), f(2, 2))
    for m in ([1, 1], [2, 1], [2, 3]):
        record(out, "Tile", f(2, 3), i32(m))
    record(out, "Tile", f(3), i64([2]))
    for shape in ((5,), (2, 4), (2, 1, 3)):
        record(out, "TopKV2", f(*shape, distinct=True), i32(2), sorted=True)
    record(out, "NthElement", f(2, 4, distinct=True), i32(1))
    record(out, "NthElement", np.array([1.0, 1.0, 2.0]), i32(0))
    record(out, "Transpose", f(2, 3, 4), i32([2, 0, 1]))
    record(out, "ConjugateTranspose", z(2, 3), i32([1, 0]))
    record(out, "RaggedGather", [i64([0, 2, 3, 3])], f(3, 2), i32([2, 0, 1, 0]), OUTPUT_RAGGED_RANK=1)
    record(out, "RaggedTensorToSparse", [i64([0, 2, 3])], f(3))
    record(out, "RaggedTensorToTensor", i64([2, 3]), f(3), f(), [i64([0, 2, 3])], row_partition_types=["ROW_SPLITS"])
    record(out, "RaggedFillEmptyRows", i64([0, 0, 2]), f(3), i64(4), f())


def nn(out):
    for op in "Relu Relu6 Elu Selu Softplus Softsign LeakyRelu".split():
        for shape in [(), (4,), (2, 3)]:
            record(out, op, f(*shape, lo=-3, hi=8))
    record(out, "LeakyRelu", f(3), alpha=0.3)
    for op in "ReluGrad Relu6Grad EluGrad SeluGrad SoftplusGrad LeakyReluGrad".split():
        record(out, op, f(4), f(4))
    for shape, kw in [((2, 3), {}), ((2, 2, 3), {}), ((2, 3, 2), {"data_format": "NCHW"}), ((1, 3, 2, 2), {"data_format": "NCHW"})]:
        n = shape[1] if kw else shape[-1]
        record(out, "BiasAdd", f(*shape), f(n), **kw)
        record(out, "BiasAddGrad", f(*shape), **kw)
    record(out, "BiasAddV1", f(2, 3), f(3))
    for shape in [(3,), (2, 3), (2, 2, 3)]:
        record(out, "Softmax", f(*shape))
        record(out, "LogSoftmax", f(*shape))
    labels = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    record(out, "SoftmaxCrossEntropyWithLogits", f(2, 3), labels)
    record(out, "SparseSoftmaxCrossEntropyWithLogits", f(2, 3), i32([2, 0]))
    record(out, "L2Loss", f(2, 3))
    record(out, "LRN", f32(1, 2, 2, 6), depth_radius=2, bias=1.0, alpha=0.5, beta=0.75)
    record(out, "Dilation2D", f(1, 4, 4, 2, distinct=True), f(2, 2, 2), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
    for padding in ("SAME", "VALID"):
        for strides, dilations in [([1, 1, 1, 1], [1, 1, 1, 1]), ([1, 2, 2, 1], [1, 1, 1, 1])]:
            record(out, "Conv2D", f(2, 5, 5, 2), f(2, 2, 2, 3), strides=strides, dilations=dilations, padding=padding)
            if dilations[1] == 1:
                record(out, "DepthwiseConv2dNative", f(1, 5, 5, 2), f(2, 2, 2, 2), strides=strides, padding=padding)
        record(out, "Conv3D", f(1, 3, 3, 3, 2), f(2, 2, 2, 2, 2), strides=[1, 1, 1, 1, 1], padding=padding)
        for op in ("AvgPool", "MaxPool"):
            x = f(1, 4, 5, 2, distinct=True)
            record(out, op, x, ksize=[1, 2, 2, 1], strides=[1, 1, 2, 1], padding=padding)
        for op in ("AvgPool3D", "MaxPool3D"):
            record(out, op, f32(1, 3, 3, 3, 1, distinct=True), ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding=padding)
        record(out, "AvgPoolGrad", i32([1, 4, 4, 1]), f(1, 2, 2, 1), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=padding)
        record(out, "MaxPoolV2", f(1, 4, 4, 1, distinct=True), i32([1, 2, 2, 1]), i32([1, 2, 2, 1]), padding=padding)
        record(out, "MaxPoolWithArgmax", f(1, 4, 4, 2, distinct=True), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=padding)
    record(out, "Conv2D", f(1, 4, 4, 1), f(3, 3, 1, 2), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])
    kw = dict(strides=[1, 1, 1, 1], padding="SAME")
    record(out, "Conv2DBackpropInput", i32([1, 4, 4, 2]), f(2, 2, 2, 3), f(1, 4, 4, 3), **kw)
    record(out, "Conv2DBackpropFilter", f(1, 4, 4, 2), i32([2, 2, 2, 3]), f(1, 4, 4, 3), **kw)
    record(out, "DepthwiseConv2dNativeBackpropInput", i32([1, 4, 4, 2]), f(2, 2, 2, 1), f(1, 4, 4, 2), **kw)
    record(out, "DepthwiseConv2dNativeBackpropFilter", f(1, 4, 4, 2), i32([2, 2, 2, 1]), f(1, 4, 4, 2), **kw)


def linalg(out):
    for ta in (False, True):
        for tb in (False, True):
            a = f(3, 2) if ta else f(2, 3)
            b = f(4, 3) if tb else f(3, 4)
            record(out, "MatMul", a, b, transpose_a=ta, transpose_b=tb)
            a = z(2, 3, 2) if ta else z(2, 2, 3)
            b = z(1, 4, 3) if tb else z(1, 3, 4)
            record(out, "BatchMatMulV2", a, b, adj_x=ta, adj_y=tb)
            record(out, "BatchMatMul", a.real, b.real.repeat(2, 0), adj_x=ta, adj_y=tb)
    record(out, "BatchMatMulV2", f(3, 1, 2, 3), f(2, 3, 2), adj_x=False, adj_y=False)
    record(out, "BatchMatMulV3", f(2, 3), f(3, 2), Tout=tf.float64, adj_x=False, adj_y=False)
    record(out, "SparseMatMul", f32(2, 3), f32(3, 2))
    record(out, "MatMul", f(0, 2), f(2, 3))


def solvable(*shape):
    """Well-conditioned square matrices."""
    return f(*shape, lo=-1, hi=1) + 3 * np.eye(shape[-1])


def symmetric(*shape):
    a = f(*shape, lo=-1, hi=1)
    return np.round(a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1]), 3)


def decompositions(out):
    for adjoint in (False, True):
        record(out, "MatrixInverse", solvable(2, 3, 3), adjoint=adjoint)
        record(out, "MatrixSolve", solvable(3, 3), f(3, 2), adjoint=adjoint)
        for lower in (False, True):
            record(out, "MatrixTriangularSolve", solvable(2, 3, 3), f(2, 3, 2), lower=lower, adjoint=adjoint)
            bands = f(2, 4, lo=-1, hi=1)
            bands[0 if lower else 1] += 3
            record(out, "BandedTriangularSolve", bands, f(4, 2), lower=lower, adjoint=adjoint)
    record(out, "MatrixTriangularSolve", solvable(3, 3), f(2, 3, 2), lower=True, adjoint=False)
    record(out, "MatrixDeterminant", solvable(3, 3))
    record(out, "MatrixDeterminant", solvable(2, 2, 2))
    record(out, "LogMatrixDeterminant", solvable(2, 3, 3))
    record(out, "Cholesky", symmetric(3, 3))
    record(out, "Cholesky", symmetric(2, 2, 2))
    record(out, "Qr", f(4, 3))
    record(out, "Qr", f(3, 3))
    record(out, "Qr", f(2, 4))
    record(out, "SelfAdjointEigV2", symmetric(3, 3), compute_v=True)
    record(out, "SelfAdjointEigV2", symmetric(3, 3), compute_v=False)
    for shape in [(3, 3), (2, 3), (4, 3)]:
        record(out, "Svd", f(*shape), compute_uv=False)
    record(out, "MatrixSquareRoot", symmetric(3, 3))
    record(out, "MatrixSolveLs", f(4, 3), f(4, 2), np.float64(0.1), fast=True)
    record(out, "MatrixSolveLs", f(2, 3), f(2, 2), np.float64(0.1), fast=True)
    diagonals = f(3, 4, lo=-1, hi=1)
    diagonals[1] += 4
    record(out, "TridiagonalSolve", diagonals, f(4, 2), partial_pivoting=True)
    record(out, "TridiagonalMatMul", f(1, 4), f(1, 4), f(1, 4), f(4, 2))
    record(out, "Cross", f(2, 3), f(2, 3))
    for equation, shapes in [
        ("ij,jk->ik", [(2, 3), (3, 2)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]), ("ij->ji", [(2, 3)]),
        ("ij->i", [(2, 3)]), ("ii->i", [(3, 3)]), ("ij,ij->", [(2, 3), (2, 3)]), ("i,j->ij", [(2,), (3,)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]), ("abc,cd->d", [(2, 2, 3), (3, 2)]), ("ij,j->i", [(2, 3), (3,)]),
        ("...i->...", [(2, 3)]), ("ijk->k", [(2, 2, 3)]),
    ]:
        record(out, "Einsum", [f(*s) for s in shapes], equation=equation)
    record(out, "Einsum", [z(2, 3), z(3, 2)], equation="ij,jk->ki")


def fft(out):
    for op, dims in [("FFT", 1), ("FFT2D", 2), ("FFT3D", 3)]:
        shape = (2, 3, 4)
        record(out, op, z(*shape))
        record(out, "I" + op, z(*shape))
    for n in (4, 5):
        record(out, "RFFT", f(2, n), i32([n]), Tcomplex=tf.complex128)
        record(out, "IRFFT", z(2, n // 2 + 1), i32([n]), Treal=tf.float64)
        record(out, "RFFT2D", f(2, 3, n), i32([3, n]), Tcomplex=tf.complex128)
        record(out, "IRFFT2D", z(3, n // 2 + 1), i32([3, n]), Treal=tf.float64)


def sparse(out):
    at, shape = i64([[0, 1], [1, 0], [2, 2]]), i64([3, 3])
    record(out, "SparseReorder", i64([[2, 2], [0, 1], [1, 0]]), f(3), shape)
    record(out, "SparseAdd", at, f(3), shape, i64([[0, 1], [2, 0]]), f(2), shape, np.float64(0))
    record(out, "SparseTensorDenseAdd", at, f(3), shape, f(3, 3))
    for axes in ([0], [1], [-1], [0, 1]):
        for keep in (False, True):
            record(out, "SparseReduceSum", at, f(3), shape, i32(axes), keep_dims=keep)
    record(out, "SparseSlice", at, f(3), shape, i64([0, 0]), i64([2, 2]))
    for a in (False, True):
        for b in (False, True):
            record(out, "SparseTensorDenseMatMul", i64([[0, 1], [1, 0], [1, 2]]), f(3), i64([2, 3]),
                   f(*((2, 2) if a else ((2, 3) if b else (3, 2)))), adjoint_a=a, adjoint_b=b)
    for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        record(out, op, at, f(3), shape, f(3, 3))
        record(out, op, at, f(3), shape, f(3))
        record(out, op, at, f(3), shape, f(3, 1))
    record(out, "SparseSoftmax", i64([[0, 0], [0, 2], [1, 1]]), f(3), i64([2, 3]))
    record(out, "SparseFillEmptyRows", i64([[0, 1], [2, 0]]), f(2), i64([4, 2]), f())
    record(out, "SparseToDense", at, shape, f(3), f())


def norm(out):
    for training in (True, False):
        for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
            stats = [f32(2), f32(2, lo=0.5, hi=2)] if not training else [np.zeros(0, np.float32), np.zeros(0, np.float32)]
            record(out, op, f32(2, 2, 3, 2), f32(2), f32(2), *stats, is_training=training, epsilon=0.01)
        record(out, "FusedBatchNormGradV3", f32(2, 2, 2, 2), f32(2, 2, 2, 2), f32(2), f32(2), f32(2, lo=0.5, hi=2),
               np.zeros(1, np.float32), is_training=training, epsilon=0.01)


def image(out):
    for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"):
        for corners, centers in [(False, False), (True, False), (False, True)]:
            for size in ([4, 5], [2, 2]):
                record(out, op, f32(1, 3, 3, 2), i32(size), align_corners=corners, half_pixel_centers=centers)
    for kernel in ("lanczos3", "triangle", "gaussian"):
        record(out, "ScaleAndTranslate", f32(1, 4, 4, 1), i32([3, 5]), np.float32([0.8, 1.2]), np.float32([0.3, -0.4]),
               kernel_type=kernel, antialias=True)
    boxes = np.float32([[0.1, 0.2, 0.9, 0.8], [0.0, 0.0, 0.6, 1.1]])
    record(out, "CropAndResize", f32(2, 4, 4, 2), boxes, i32([1, 0]), i32([3, 3]))
    for lo, hi in [(-1.0, 1.0), (0.0, 1.5)]:
        record(out, "FakeQuantWithMinMaxArgs", f32(3, 4), min=lo, max=hi, num_bits=4)
        record(out, "FakeQuantWithMinMaxVars", f32(3, 4), np.float32(lo), np.float32(hi), num_bits=4)
        record(out, "FakeQuantWithMinMaxVarsPerChannel", f32(3, 2), np.float32([lo, lo]), np.float32([hi, 1.0]))
    record(out, "QuantizeAndDequantizeV2", f32(2, 3), np.float32(-1), np.float32(1), range_given=True)
    record(out, "QuantizeAndDequantizeV3", f32(2, 3), np.float32(-1), np.float32(1), i32(8), range_given=True)
    record(out, "QuantizeAndDequantizeV4", f32(2, 3), np.float32(-1), np.float32(1), range_given=True)
    record(out, "CTCLoss", f32(4, 2, 3), i64([[0, 0], [0, 1], [1, 0]]), i32([0, 1, 1]), i32([4, 3]))
    for pool in ("FractionalMaxPool", "FractionalAvgPool"):
        record(out, pool, f32(1, 5, 5, 2, distinct=True), pooling_ratio=[1.0, 1.5, 1.5, 1.0], deterministic=True, seed=3, seed2=5)
    cell = lambda: [f32(2, 3), f32(2, 3), f32(5, 12), f32(3), f32(3), f32(3), f32(12)]
    # TensorFlow takes BlockLSTMGrad for BlockLSTMV2 too, whose gates are in another order. Finite
    # differences show that its gradient is wrong. Ours takes BlockLSTMGradV2.
    for peephole in (False, True):
        record(out, "BlockLSTM", i64(2), f32(3, 2, 2), *cell(), use_peephole=peephole)
    # Turned, moved, and seen in perspective.
    views = np.float32([[0.9, -0.2, 0.4, 0.1, 1.1, -0.3, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.02, 0.01]])
    for mode in ("NEAREST", "BILINEAR"):
        record(out, "ImageProjectiveTransformV2", f32(2, 4, 4, 1), views, i32([3, 5]), interpolation=mode, fill_mode="CONSTANT")
        record(out, "ImageProjectiveTransformV3", f32(2, 4, 4, 1), views[:1], i32([4, 4]), np.float32(0.5), interpolation=mode, fill_mode="REFLECT")
    # Distinct parts, ties, greys, black.
    record(out, "RGBToHSV", f32(3, 3, lo=0.0, hi=1.0, distinct=True))
    record(out, "RGBToHSV", np.float64([[0.2, 0.2, 0.7], [0.7, 0.2, 0.7], [0.4, 0.4, 0.4], [0.0, 0.0, 0.0], [0.0, 0.5, 0.2]]))
    record(out, "IsotonicRegression", f(3, 5), output_dtype=tf.float64)


FAMILIES = [math, reduce, array, nn, norm, linalg, decompositions, fft, sparse, image]

if __name__ == "__main__":
    only = sys.argv[1:]
    for family in FAMILIES:
        rng.seed(len(family.__name__))
        if only and family.__name__ not in only:
            continue
        cases = []
        family(cases)
        with open(os.path.join(HERE, family.__name__ + ".txt"), "w") as file:
            file.write("\n\n".join(cases) + "\n")
        print(family.__name__, len(cases))
