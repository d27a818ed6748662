"""Datasets and iterators.

A recipe puts its dataset op behind a small source and reads elements with an iterator. Sources are constants, so that
invalid calls affect the op's own arguments.
"""

import gzip
import zlib

import numpy as np

from case import EVERY, STRING, array, tensor_proto

from . import recipe
from .control import function
from .io import tf_record

PLAIN = ["float32", "float64", "int32", "int64", "string", "bool", "uint8", "half"]


class Flow:
    """A dataset: its variant, and the dtypes and shapes of its elements."""

    def __init__(self, ref, types, shapes):
        self.ref, self.types, self.shapes = ref, types, shapes

    @property
    def typed(self):
        return {"output_types": self.types, "output_shapes": self.shapes}


def slices(c, arrays, types):
    refs = [c.const(a, t) for a, t in zip(arrays, types)]
    shapes = [list(a.shape[1:]) for a in arrays]
    return Flow(c.node("TensorSliceDataset", components=refs, output_shapes=shapes)[0], list(types), shapes)


def source(c, components=None, low=3, high=9, shape=None, dtype=None):
    n = c.int(low, high)
    types = [dtype or c.pick(PLAIN) for _ in range(components or c.int(1, 2))]
    return slices(c, [c.values(t, [n] + (c.shape(0, 2, empty=False) if shape is None else shape)) for t in types], types)


def numbers(c, low=3, high=9, dtype="int64"):
    """Scalars."""
    return slices(c, [c.rng.randint(-5, 10, size=c.int(low, high)).astype(np.int64)], [dtype])


def through(c, flow, op=None, shapes=None, types=None, **given):
    out = Flow(None, types or flow.types, flow.shapes if shapes is None else shapes)
    out.ref = c.node(op or c.op, input_dataset=flow.ref, **out.typed, **given)[0]
    return out


def fed(c, value, dtype="int64"):
    return c.feed(np.asarray(value), dtype)


def drain(c, flow, most=4):
    """The first elements, one after the other."""
    it = c.node("IteratorV2", shared_name="it", container="", **flow.typed)[0]
    last = c.node("MakeIterator", dataset=flow.ref, iterator=it)[0]
    for _ in range(c.int(1, most)):
        got = c.node("IteratorGetNext", _after=[last], iterator=it, **flow.typed)
        c.fetch(*got)
        last = got[0]


def whole(c, flow):
    """All elements, at most thirty, as one; they must be of one shape."""
    some = through(c, flow, "TakeDataset", count=c.const(30, "int64"))
    all_ = through(c, some, "BatchDatasetV2", shapes=[None if s is None else [None, *s] for s in flow.shapes], batch_size=c.const(64, "int64"), drop_remainder=c.const(False, "bool"))
    c.fetch(*c.node("DatasetToSingleElement", dataset=all_.ref, **all_.typed))


def watch(c, flow, most=4, even=True, counted=True):
    """The elements of a dataset. `even` means that all elements have the same shape."""
    if even and c.chance(0.6):
        whole(c, flow)
    else:
        drain(c, flow, most)
    if counted and c.chance(0.5):
        c.fetch(*c.node("DatasetCardinality", input_dataset=flow.ref))


# Sources.

@recipe("TensorDataset")
def tensor(c):
    types = [c.pick(EVERY) for _ in range(c.int(1, 3))]
    shapes = [c.shape(0, 2) for _ in types]
    ref = c.node(c.op, components=[c.feed(c.values(t, s), t) for t, s in zip(types, shapes)], output_shapes=shapes)[0]
    c.may_mutate = False
    watch(c, Flow(ref, types, shapes), 2)


@recipe("TensorSliceDataset")
def tensor_slices(c):
    n = c.int(1, 6)
    types = [c.pick(EVERY) for _ in range(c.int(1, 3))]
    shapes = [c.shape(0, 2) for _ in types]
    ref = c.node(c.op, components=[c.feed(c.values(t, [n] + s), t) for t, s in zip(types, shapes)], output_shapes=shapes)[0]
    c.may_mutate = False
    watch(c, Flow(ref, types, shapes))


@recipe("ListDataset")
def listed(c):
    types, shapes = [c.pick(PLAIN)], [c.shape(0, 2)]
    refs = [c.feed(c.values(types[0], shapes[0]), types[0]) for _ in range(c.int(1, 4))]
    c.may_mutate = False
    watch(c, Flow(c.node(c.op, tensors=refs, output_types=types, output_shapes=shapes)[0], types, shapes))


@recipe("RangeDataset")
def range_(c):
    t = c.pick(["int64", "int64", "int32", "float32"])
    ref = c.node(c.op, start=fed(c, c.int(-4, 4)), stop=fed(c, c.int(-6, 12)), step=fed(c, c.pick([1, 1, 2, 3, -1, -2])), output_types=[t], output_shapes=[[]])[0]
    watch(c, Flow(ref, [t], [[]]))


@recipe("SparseTensorSliceDataset")
def sparse_slices(c):
    from .sparse import coo
    t = c.types["Tvalues"]
    idx, n, shape = coo(c, c.int(2, 3))
    ref = c.node(c.op, indices=c.feed(idx, "int64"), values=c.feed(c.values(t, [n]), t), dense_shape=c.feed(shape, "int64"))[0]
    rank = len(shape) - 1
    drain(c, Flow(ref, ["int64", t, "int64"], [[None, rank], [None], [rank]]), 3)


@recipe("RandomDataset", "ExperimentalRandomDataset", "RandomDatasetV2")
def random(c):
    given = {"seed": fed(c, c.int(0, 9)), "seed2": fed(c, c.int(1, 9))}
    if c.op.endswith("V2"):
        given["seed_generator"] = c.node("DummySeedGenerator")[0]
        given["rerandomize_each_iteration"] = False
    drain(c, Flow(c.node(c.op, output_types=["int64"], output_shapes=[[]], **given)[0], ["int64"], [[]]))


def files(c, make):
    """One or two files and their compression."""
    bodies = [make() for _ in range(c.int(1, 2))]
    kind = c.pick(["", "", "GZIP", "ZLIB"])
    pack = {"": lambda b: b, "GZIP": lambda b: gzip.compress(b, mtime=0), "ZLIB": zlib.compress}[kind]
    done = [c.node("WriteFile", filename=c.path_const(f"f{i}"), contents=c.const(array(pack(b), STRING)))[0] for i, b in enumerate(bodies)]
    names = [f"$ORACLE/f{i}" for i in range(len(bodies))]
    if c.chance(0.1):
        names.append("$ORACLE/none")
    given = c.feed(array(names, STRING), STRING)
    return c.node("Identity", _after=done, input=given)[0], c.feed(array(kind, STRING), STRING)


TEXT = (STRING,), ([],)


@recipe("TextLineDataset")
def text_lines(c):
    names, kind = files(c, lambda: c.pick([b"one\ntwo\n\nlast", b"a\r\nb\r\n", b"", b"no end", b"\n\n"]))
    watch(c, Flow(c.node(c.op, filenames=names, compression_type=kind, buffer_size=fed(c, c.pick([0, 16, 4096])))[0], *map(list, TEXT)), counted=False)


@recipe("TFRecordDataset", "TFRecordDatasetV2")
def tf_records(c):
    whole_file = tf_record(*[c.pick([b"first", b"", b"x" * 40]) for _ in range(c.int(0, 4))])
    names, kind = files(c, lambda: whole_file if c.chance(0.9) else whole_file[:-2] + b"!!")
    given = {"byte_offsets": c.const([], "int64")} if c.op.endswith("V2") else {}
    watch(c, Flow(c.node(c.op, filenames=names, compression_type=kind, buffer_size=fed(c, c.pick([0, 16, 4096])), **given)[0], *map(list, TEXT)), counted=False)


@recipe("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def fixed_records(c):
    head, size, foot = c.int(0, 2), c.int(1, 3), c.int(0, 2)
    body = bytes(c.ints(65, 90, head + size * c.int(0, 4) + foot))
    names, kind = files(c, lambda: body if c.chance(0.9) else body + b"!")
    given = {"compression_type": kind} if c.op.endswith("V2") else {}
    ref = c.node(c.op, filenames=names, header_bytes=fed(c, head), record_bytes=fed(c, size), footer_bytes=fed(c, foot), buffer_size=fed(c, c.pick([0, 16, 4096])), **given)[0]
    watch(c, Flow(ref, *map(list, TEXT)), counted=False)


@recipe("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")
def csv(c):
    kinds = [c.pick(["float32", "float64", "int32", "int64", "string"]) for _ in range(c.int(1, 3))]
    sep = c.pick([",", ";"])

    def field(kind):
        if c.chance(0.12):
            return c.pick(["", "NA"])
        if kind == "string":
            return c.pick(["abc", f'"a{sep} b"', '"say ""hi"""', '"two\nlines"', " x "])
        return c.pick(["1.5", "-2", "1e3"] if kind.startswith("float") else ["1", "-2", "12345"])
    end = c.pick(["\n", "\r\n"])
    header = c.chance(0.3)
    body = (sep.join("abc"[:len(kinds)]) + end if header else "") + end.join(sep.join(field(k) for k in kinds) for _ in range(c.int(1, 4))) + c.pick(["", end])
    names, kind = files(c, lambda: body.encode())
    select = sorted(c.rng.permutation(len(kinds))[:c.int(1, len(kinds))].tolist()) if c.chance(0.3) else []
    used = [kinds[i] for i in select] or kinds
    given = {"exclude_cols": c.const([], "int64")} if c.op.endswith("V2") else {}
    ref = c.node(c.op, filenames=names, compression_type=kind, buffer_size=fed(c, c.pick([16, 4096])), header=fed(c, header, "bool"), field_delim=c.feed(array(sep, STRING), STRING),
                 use_quote_delim=fed(c, c.chance(0.85), "bool"), na_value=c.feed(array(c.pick(["", "NA"]), STRING), STRING), select_cols=c.const(select, "int64"),
                 record_defaults=[c.const(c.values(k, [1] if c.chance(0.8) else [0], "whole"), k) for k in used], output_shapes=[[]] * len(used), **given)[0]
    c.may_mutate = False
    watch(c, Flow(ref, used, [[]] * len(used)), counted=False)


@recipe("MatchingFilesDataset", "ExperimentalMatchingFilesDataset")
def matching_files(c):
    done = [c.node("WriteFile", filename=c.path_const(n), contents=c.const("x", STRING))[0] for n in ("a.txt", "b.txt", "d/c.dat")]
    patterns = [f"$ORACLE/{p}" for p in ("*.txt", "*", "[ab].*", "?.dat", "d/*", "*/*.dat")]
    given = c.node("Identity", _after=done, input=c.feed(array([c.pick(patterns) for _ in range(c.int(1, 2))], STRING), STRING))[0]
    c.may_mutate = False
    watch(c, Flow(c.node(c.op, patterns=given)[0], *map(list, TEXT)), counted=False)


# Transformations of single elements.

@recipe("TakeDataset", "SkipDataset")
def take(c):
    watch(c, through(c, source(c), count=fed(c, c.int(-1, 9))))


@recipe("RepeatDataset")
def repeat(c):
    watch(c, through(c, source(c, high=4), count=fed(c, c.int(-1, 3))))


@recipe("ShardDataset")
def shard(c):
    n = c.int(1, 4)
    watch(c, through(c, source(c), num_shards=fed(c, n), index=fed(c, c.int(0, n - 1))))


@recipe("PrefetchDataset")
def prefetch(c):
    watch(c, through(c, source(c), buffer_size=fed(c, c.int(-1, 4))))


@recipe("CacheDataset", "CacheDatasetV2")
def cache(c):
    given = {}
    if c.op.endswith("V2"):
        given["cache"] = c.node("DummyMemoryCache")[0] if c.chance(0.5) else c.node("AnonymousMemoryCache")[0]
    flow = through(c, source(c, high=4), filename=c.feed(array("", STRING), STRING) if c.chance(0.6) else c.path_const("cache"), **given)
    c.may_mutate = False
    watch(c, through(c, flow, "RepeatDataset", count=c.const(2, "int64")))


@recipe("AssertCardinalityDataset")
def assert_cardinality(c):
    n = c.int(3, 6)
    watch(c, through(c, source(c, low=n, high=n), cardinality=fed(c, n if c.chance(0.7) else c.int(2, 7))))


TAGGED = ["BytesProducedStatsDataset", "LatencyStatsDataset"]


@recipe(*TAGGED, *["Experimental" + op for op in TAGGED])
def tagged(c):
    watch(c, through(c, source(c), tag=c.feed(array("t", STRING), STRING)))


@recipe("SetStatsAggregatorDataset", "ExperimentalSetStatsAggregatorDataset", "StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary", "StatsAggregatorHandle",
        "ExperimentalStatsAggregatorHandle")
def stats(c):
    kind = "Experimental" if c.op.startswith("Experimental") else ""
    handle = c.node(kind + "StatsAggregatorHandle", shared_name="stats", container="")[0]
    flow = source(c, dtype=c.pick(["int64", "float32"]), low=3, high=3)
    flow = through(c, flow, "BytesProducedStatsDataset", tag=c.const("bytes", STRING))
    flow = through(c, flow, kind + "SetStatsAggregatorDataset", stats_aggregator=handle, tag=c.feed(array(c.pick(["", "t"]), STRING), STRING), counter_prefix=c.const("", STRING))
    it = c.node("IteratorV2", shared_name="it", container="", **flow.typed)[0]
    last = c.node("MakeIterator", dataset=flow.ref, iterator=it)[0]
    for _ in range(3):
        got = c.node("IteratorGetNext", _after=[last], iterator=it, **flow.typed)
        last = got[0]
        c.fetch(*got)
    c.fetch(*c.node(kind + "StatsAggregatorSummary", _after=[last], iterator=handle))


@recipe("SleepDataset", "ExperimentalSleepDataset")
def sleep(c):
    watch(c, through(c, source(c), sleep_microseconds=fed(c, c.int(0, 200))))


@recipe("WindowOp")
def window_op(c):
    n, types = c.int(1, 4), [c.pick(PLAIN) for _ in range(c.int(1, 2))]
    shapes = [c.shape(0, 2, empty=False) for _ in types]
    inputs = [c.const(c.values(t, s), t) for _ in range(n) for t, s in zip(types, shapes)]
    ref = c.node(c.op, inputs=inputs, output_types=types, output_shapes=shapes)[0]
    watch(c, Flow(ref, types, shapes))


SAME = ["IgnoreErrorsDataset", "NonSerializableDataset", "ModelDataset", "FinalizeDataset", "ExperimentalIgnoreErrorsDataset", "ExperimentalNonSerializableDataset"]


@recipe(*SAME)
def same(c):
    watch(c, through(c, source(c)))


@recipe("OptionsDataset")
def options(c):
    watch(c, through(c, source(c), serialized_options=""))


THREADS = {"MaxIntraOpParallelismDataset": "max_intra_op_parallelism", "PrivateThreadPoolDataset": "num_threads"}


@recipe(*THREADS, *["Experimental" + op for op in THREADS])
def threads(c):
    watch(c, through(c, source(c), **{THREADS[c.op.removeprefix("Experimental")]: fed(c, c.int(0, 3))}))


@recipe("OptimizeDataset")
def optimize(c):
    watch(c, through(c, source(c), optimizations=c.feed(array(["noop_elimination"], STRING), STRING)))


@recipe("OptimizeDatasetV2")
def optimize_v2(c):
    names = lambda *n: c.feed(array(list(n), STRING), STRING)
    watch(c, through(c, source(c), optimizations_enabled=names("noop_elimination"), optimizations_disabled=names(), optimizations_default=names()))


@recipe("RewriteDataset")
def rewrite(c):
    watch(c, through(c, source(c), rewrite_name=c.feed(array("noop_elimination", STRING), STRING)))


@recipe("UniqueDataset", "ExperimentalUniqueDataset")
def unique(c):
    t = c.pick(["int32", "int64", "string"])
    watch(c, through(c, slices(c, [c.values(t, [c.int(3, 9)], "whole")], [t])))


@recipe("SamplingDataset")
def sampling(c):
    watch(c, through(c, source(c), rate=c.feed(c.pick([0.0, 0.4, 0.8, 1.0]), "float32"), seed=fed(c, c.int(1, 9)), seed2=fed(c, c.int(1, 9))))


def seeds(c):
    return {"seed": fed(c, c.int(0, 9)), "seed2": fed(c, c.int(1, 9))}


@recipe("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
def shuffle(c):
    given = seeds(c) if not c.op.endswith("V2") else {}
    if not c.op.endswith("Dataset"):
        given["seed_generator"] = c.node("DummySeedGenerator")[0]
        if c.op.endswith("V2") or c.chance(0.5):
            made = c.node("AnonymousSeedGenerator", reshuffle=c.const(c.chance(0.5), "bool"), seed=c.const(c.int(0, 9), "int64"), seed2=c.const(c.int(1, 9), "int64"))
            given["seed_generator"] = made[0]
    flow = through(c, source(c), buffer_size=fed(c, c.int(1, 10)), **given)
    watch(c, through(c, flow, "RepeatDataset", count=c.const(2, "int64")) if c.chance(0.4) else flow)


@recipe("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2")
def shuffle_and_repeat(c):
    given = {"seed_generator": c.node("DummySeedGenerator")[0]} if c.op.endswith("V2") else {}
    watch(c, through(c, source(c), buffer_size=fed(c, c.int(1, 10)), count=fed(c, c.pick([1, 2, -1])), **seeds(c), **given))


# Batches and their reverse.

def rows(flow, first=None):
    return [None if s is None else [first, *s] for s in flow.shapes]


@recipe("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def batch(c):
    flow = source(c)
    given = {} if c.op == "BatchDataset" else {"drop_remainder": fed(c, c.chance(0.5), "bool")}
    if c.op.startswith("Parallel"):
        given["num_parallel_calls"] = fed(c, c.pick([1, 2, -1]))
    watch(c, through(c, flow, shapes=rows(flow), batch_size=fed(c, c.int(1, 4)), **given), even=False)


def ragged_rows(c, t="int64"):
    """Vectors of different lengths: dense rows, cut by a mapped slice."""
    flow = numbers(c)
    body = [("zero", "Const", [], {"value": tensor_proto(np.array(0, np.int64)), "dtype": "int64"}), ("one", "Const", [], {"value": tensor_proto(np.array(1, np.int64)), "dtype": "int64"}),
            ("size", "Abs", ["x"], {"T": "int64"}), ("r", "Range", ["zero:output:0", "size:y:0", "one:output:0"], {"Tidx": "int64"}),
            ("y", "Cast", ["r:output:0"], {"SrcT": "int64", "DstT": t})]
    f = function(c, "lengthen", [("x", "int64")], [("out", t)], body, {"out": "y:y:0"})
    return through(c, flow, "MapDataset", types=[t], shapes=[[None]], other_arguments=[], f=f)


@recipe("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch(c):
    t = c.pick(["int64", "int32", "float32"])
    flow = ragged_rows(c, t)
    given = {} if c.op.endswith("Dataset") else {"drop_remainder": fed(c, c.chance(0.5), "bool")}
    ref = c.node(c.op, input_dataset=flow.ref, batch_size=fed(c, c.int(1, 4)), padded_shapes=[fed(c, [c.pick([-1, 12])])], padding_values=[c.feed(c.pick([0, -1]), t)],
                 output_shapes=[[None, None]], **given)[0]
    watch(c, Flow(ref, [t], [[None, None]]), 2, even=False)


@recipe("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset")
def dense_to_sparse(c):
    flow = ragged_rows(c)
    # One component becomes three in the element, because the tuple is split when it is read.
    ref = c.node(c.op, input_dataset=flow.ref, batch_size=fed(c, c.int(1, 4)), row_shape=fed(c, [c.pick([-1, 12, 2])]), output_types=["variant"], output_shapes=[None])[0]
    it = c.node("IteratorV2", shared_name="it", container="", output_types=["variant"], output_shapes=[None])[0]
    made = c.node("MakeIterator", dataset=ref, iterator=it)[0]
    got = c.node("IteratorGetNext", _after=[made], iterator=it, output_types=["variant"], output_shapes=[None])[0]
    c.fetch(*c.node("DeserializeSparse", serialized_sparse=got, dtype="int64", Tserialized="variant"))


def batched(c):
    flow = source(c, low=6, high=12)
    return through(c, flow, "BatchDatasetV2", shapes=rows(flow), batch_size=c.const(c.int(2, 5), "int64"), drop_remainder=c.const(c.chance(0.5), "bool"))


@recipe("UnbatchDataset", "ExperimentalUnbatchDataset")
def unbatch(c):
    flow = batched(c)
    watch(c, through(c, flow, shapes=[s[1:] for s in flow.shapes]))


@recipe("RebatchDataset", "ExperimentalRebatchDataset")
def rebatch(c):
    watch(c, through(c, batched(c), num_replicas=fed(c, c.int(1, 4)), use_fallback=c.chance(0.5)), even=False)


@recipe("RebatchDatasetV2")
def rebatch_v2(c):
    watch(c, through(c, batched(c), batch_sizes=fed(c, c.ints(1, 4, c.int(1, 3))), drop_remainder=fed(c, c.chance(0.5), "bool")), even=False)


def gathered(types, shapes):
    """The nodes of a function that batches dataset `w` by `n`."""
    return [("all", "Const", [], {"value": tensor_proto(np.array(False)), "dtype": "bool"}),
            ("b", "BatchDatasetV2", ["w", "n:output:0", "all:output:0"], {"output_types": types, "output_shapes": shapes})]


def windows_apart(c, flow, windows):
    """Windows are datasets. Each becomes the first batch of its elements."""
    body = [int64("n", 8), *gathered(flow.types, [[None, *s] for s in flow.shapes])]
    f = function(c, "gather", [("w", "variant")], [("out", "variant")], body, {"out": "b:handle:0"})
    return through(c, windows, "FlatMapDataset", types=flow.types, shapes=rows(flow), other_arguments=[], f=f)


@recipe("WindowDataset")
def window(c):
    flow = source(c, components=1)
    out = through(c, flow, types=["variant"], shapes=[[]], size=fed(c, c.int(1, 4)), shift=fed(c, c.int(1, 3)), stride=fed(c, c.int(1, 2)), drop_remainder=fed(c, c.chance(0.5), "bool"))
    watch(c, windows_apart(c, flow, out), even=False, counted=False)


@recipe("SlidingWindowDataset", "ExperimentalSlidingWindowDataset")
def sliding_window(c):
    flow = source(c)
    watch(c, through(c, flow, shapes=rows(flow), window_size=fed(c, c.int(1, 4)), window_shift=fed(c, c.int(1, 3)), window_stride=fed(c, c.int(1, 2))), even=False)


# Functions.

def int64(name, value):
    return (name, "Const", [], {"value": tensor_proto(np.array(value, np.int64)), "dtype": "int64"})


def affine(c):
    """x -> x * a + the other argument."""
    return function(c, "f", [("x", "int64"), ("y", "int64")], [("out", "int64")], [int64("a", c.int(-2, 3)), ("m", "Mul", ["x", "a:output:0"], {"T": "int64"}),
                                                                              ("s", "AddV2", ["m:z:0", "y"], {"T": "int64"})], {"out": "s:z:0"})


def other(c):
    return {"other_arguments": [c.feed(c.int(-3, 3), "int64")]}


@recipe("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2")
def map_(c):
    given = {}
    if c.op.startswith("Parallel"):
        given["num_parallel_calls"] = fed(c, c.pick([1, 2, 3]), "int64" if c.op.endswith("V2") else "int32")
        if c.op.endswith("V2"):
            given["deterministic"] = c.pick(["true", "default"])
        else:
            given["sloppy"] = False
    watch(c, through(c, numbers(c), f=affine(c), **other(c), **given))


@recipe("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def map_and_batch(c):
    flow = numbers(c)
    watch(c, through(c, flow, shapes=rows(flow), f=affine(c), **other(c), batch_size=fed(c, c.int(1, 4)), num_parallel_calls=fed(c, c.int(1, 3)), drop_remainder=fed(c, c.chance(0.5), "bool")),
          2, even=False)


@recipe("MapDefun")
def map_defun(c):
    n = c.int(0, 5)
    c.call(arguments=[c.feed(c.rng.randint(-9, 9, size=[n]), "int64")], captured_inputs=[c.feed(c.int(-3, 3), "int64")], output_types=["int64"], output_shapes=[[]], f=affine(c))


@recipe("ChooseFastestBranchDataset")
def branch(c):
    f = affine(c)
    body = [("m", "MapDataset", ["d", "y"], {"f": f, "Targuments": ["int64"], "output_types": ["int64"], "output_shapes": [[]]})]
    g = function(c, "branch", [("d", "variant"), ("y", "int64")], [("out", "variant")], body, {"out": "m:handle:0"})
    watch(c, through(c, numbers(c), ratio_numerator=fed(c, 1), ratio_denominator=fed(c, 1), other_arguments=[c.const(c.int(-3, 3), "int64")] * 2, num_elements_per_branch=2,
                     branches=[g, g], other_arguments_lengths=[1, 1]))


def more_than(c):
    return function(c, "p", [("x", "int64"), ("y", "int64")], [("out", "bool")], [("g", "Greater", ["x", "y"], {"T": "int64"})], {"out": "g:z:0"})


@recipe("FilterDataset", "ParallelFilterDataset")
def filter_(c):
    given = {"num_parallel_calls": fed(c, c.int(1, 3)), "deterministic": c.pick(["true", "default"])} if c.op.startswith("P") else {}
    watch(c, through(c, numbers(c), predicate=more_than(c), **other(c), **given))


@recipe("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def take_while(c):
    watch(c, through(c, numbers(c), predicate=more_than(c), other_arguments=[c.feed(c.int(-6, 0), "int64")]))


def spread(c):
    """x -> some numbers starting at x."""
    body = [int64("three", 3), int64("one", 1), ("m", "FloorMod", ["x", "three:output:0"], {"T": "int64"}), ("e", "AddV2", ["x", "m:z:0"], {"T": "int64"}),
            ("r", "RangeDataset", ["x", "e:z:0", "one:output:0"], {"output_types": ["int64"], "output_shapes": [[]]})]
    return function(c, "f", [("x", "int64")], [("out", "variant")], body, {"out": "r:handle:0"})


@recipe("FlatMapDataset")
def flat_map(c):
    watch(c, through(c, numbers(c), f=spread(c), other_arguments=[]))


INTERLEAVE = """InterleaveDataset ParallelInterleaveDataset ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 LegacyParallelInterleaveDatasetV2
ExperimentalParallelInterleaveDataset""".split()


@recipe(*INTERLEAVE)
def interleave(c):
    from case import signature
    args = {a.name for a in signature(c.op).input_arg} | {a.name for a in signature(c.op).attr}
    cycle = c.int(1, 3)
    given = {"cycle_length": fed(c, cycle), "block_length": fed(c, c.int(1, 3)), "num_parallel_calls": fed(c, c.int(1, cycle)), "buffer_output_elements": fed(c, c.int(1, 3)),
             "prefetch_input_elements": fed(c, c.int(0, 3)), "deterministic": "true"}
    given["sloppy"] = False if c.op.endswith("V2") else c.const(False, "bool")
    watch(c, through(c, numbers(c), f=spread(c), other_arguments=[], **{k: v for k, v in given.items() if k in args}))


@recipe("ScanDataset", "ExperimentalScanDataset")
def scan(c):
    body = [("a", "AddV2", ["s", "x"], {"T": "int64"}), ("m", "Mul", ["s", "x"], {"T": "int64"})]
    f = function(c, "f", [("s", "int64"), ("x", "int64")], [("s2", "int64"), ("out", "int64")], body, {"s2": "a:z:0", "out": "m:z:0"})
    watch(c, through(c, numbers(c), initial_state=[c.feed(c.int(-3, 3), "int64")], other_arguments=[], f=f))


@recipe("ReduceDataset")
def reduce(c):
    body = [("a", "AddV2", ["s", "x"], {"T": "int64"}), ("b", "Sub", ["a:z:0", "y"], {"T": "int64"})]
    f = function(c, "f", [("s", "int64"), ("x", "int64"), ("y", "int64")], [("s2", "int64")], body, {"s2": "b:z:0"})
    c.fetch(*c.node(c.op, input_dataset=numbers(c, low=0).ref, initial_state=[c.feed(c.int(-3, 3), "int64")], **other(c), f=f, output_types=["int64"], output_shapes=[[]]))


def key(c):
    return function(c, "key", [("x", "int64")], [("k", "int64")], [int64("n", c.int(1, 3)), ("m", "FloorMod", ["x", "n:output:0"], {"T": "int64"})], {"k": "m:z:0"})


@recipe("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def group_by_window(c):
    size = function(c, "size", [("k", "int64")], [("n", "int64")], [int64("two", c.int(1, 3)), ("s", "AddV2", ["k", "two:output:0"], {"T": "int64"})], {"n": "s:z:0"})
    body = [int64("n", 8), *gathered(["int64"], [[None]])]
    gather = function(c, "gather", [("k", "int64"), ("w", "variant")], [("out", "variant")], body, {"out": "b:handle:0"})
    flow = numbers(c)
    watch(c, through(c, flow, shapes=[[None]], key_func=key(c), reduce_func=gather, window_size_func=size, key_func_other_arguments=[], reduce_func_other_arguments=[],
                     window_size_func_other_arguments=[]), even=False)


@recipe("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
def group_by_reducer(c):
    init = function(c, "init", [("k", "int64")], [("s", "int64")], [("n", "Neg", ["k"], {"T": "int64"})], {"s": "n:y:0"})
    step = function(c, "step", [("s", "int64"), ("x", "int64")], [("t", "int64")], [("a", "AddV2", ["s", "x"], {"T": "int64"})], {"t": "a:z:0"})
    end = function(c, "end", [("s", "int64")], [("t", "int64")], [("q", "Square", ["s"], {"T": "int64"})], {"t": "q:y:0"})
    none = {f"{f}_func_other_arguments": [] for f in ("key", "init", "reduce", "finalize")}
    watch(c, through(c, numbers(c), key_func=key(c), init_func=init, reduce_func=step, finalize_func=end, **none))


@recipe("GeneratorDataset")
def generator(c):
    init = function(c, "init", [("a", "int64")], [("s", "int64")], [("n", "Neg", ["a"], {"T": "int64"})], {"s": "n:y:0"})
    step = function(c, "step", [("s", "int64"), ("b", "int64")], [("t", "int64")], [("a", "AddV2", ["s", "b"], {"T": "int64"})], {"t": "a:z:0"})
    end = function(c, "end", [("s", "int64")], [("t", "int64")], [("q", "Square", ["s"], {"T": "int64"})], {"t": "q:y:0"})
    ref = c.node(c.op, init_func_other_args=[c.feed(c.int(-3, 3), "int64")], next_func_other_args=[c.feed(c.int(-3, 3), "int64")], finalize_func_other_args=[],
                 init_func=init, next_func=step, finalize_func=end, output_types=["int64"], output_shapes=[[]])[0]
    drain(c, Flow(ref, ["int64"], [[]]))


@recipe("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")
def parse_example(c):
    from .strings import defaults_of, make_examples, schema
    _, dense = schema(c)
    dense = dense or [("d0", "int64", 1)]
    n = c.int(2, 5)
    flow = slices(c, [make_examples(c, n, [], dense)], [STRING])
    rows_ = through(c, flow, "BatchDatasetV2", shapes=[[None]], batch_size=c.const(2, "int64"), drop_remainder=c.const(False, "bool"))
    given = {"deterministic": "true"} if c.op.endswith("V2") else {"sloppy": False}
    dense = sorted(dense)
    out = Flow(None, [t for _, t, _ in dense], [[None, m] for _, _, m in dense])
    out.ref = c.node(c.op, input_dataset=rows_.ref, num_parallel_calls=fed(c, c.int(1, 2)), dense_defaults=[c.const(d, t) for d, (_, t, _) in zip(defaults_of(c, dense), dense)],
                     sparse_keys=[], dense_keys=[k for k, _, _ in dense], sparse_types=[], dense_shapes=[[m] for _, _, m in dense], **out.typed, **given)[0]
    watch(c, out, even=False)


# Several datasets.

def alike(c, n):
    t, s = c.pick(PLAIN), c.shape(0, 2, empty=False)
    return [slices(c, [c.values(t, [c.int(1, 5)] + s)], [t]) for _ in range(n)]


@recipe("ConcatenateDataset")
def concatenate(c):
    a, b = alike(c, 2)
    watch(c, through(c, a, another_dataset=b.ref))


@recipe("ZipDataset")
def zip_(c):
    flows = [source(c) for _ in range(c.int(1, 3))]
    out = Flow(None, [t for f in flows for t in f.types], [s for f in flows for s in f.shapes])
    out.ref = c.node(c.op, input_datasets=[f.ref for f in flows], **out.typed)[0]
    watch(c, out)


@recipe("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def directed(c):
    flows = alike(c, c.int(1, 3))
    pick = slices(c, [c.rng.randint(0, len(flows) + (1 if c.chance(0.1) else 0), size=c.int(1, 8)).astype(np.int64)], ["int64"])
    out = Flow(None, flows[0].types, flows[0].shapes)
    out.ref = c.node(c.op, selector_input_dataset=pick.ref, data_input_datasets=[f.ref for f in flows], **out.typed)[0]
    watch(c, out)


@recipe("ChooseFastestDataset", "ExperimentalChooseFastestDataset")
def choose_fastest(c):
    flow = source(c)
    others = [through(c, flow, "SkipDataset", count=c.const(0, "int64")) for _ in range(c.int(1, 2))]
    out = Flow(None, flow.types, flow.shapes)
    out.ref = c.node(c.op, input_datasets=[flow.ref] + [o.ref for o in others], num_experiments=2, **out.typed)[0]
    watch(c, out, counted=False)


# Conversions of datasets.

@recipe("DatasetCardinality", "ExperimentalDatasetCardinality")
def cardinality(c):
    flow = c.pick([source, batched, numbers])(c)
    if c.chance(0.5):
        flow = through(c, flow, "RepeatDataset", count=c.const(c.int(-1, 2), "int64"))
    if c.chance(0.3):
        flow = through(c, flow, "SkipDataset", count=c.const(c.int(0, 4), "int64"))
    c.call(input_dataset=flow.ref)


@recipe("DatasetToSingleElement")
def single(c):
    flow = source(c, low=1, high=2 if c.chance(0.3) else 1)
    c.call(dataset=flow.ref, **flow.typed)


@recipe("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")
def to_tf_record(c):
    flow = slices(c, [c.values(STRING, [c.int(1, 4)])], [STRING])
    path = c.path_const("out")
    kind = array(c.pick(["", "GZIP", "ZLIB"]), STRING)
    done = c.node(c.op, input_dataset=flow.ref, filename=path, compression_type=c.feed(kind, STRING))[0]
    back = c.node("TFRecordDataset", filenames=c.path("out", done), compression_type=c.feed(kind, STRING), buffer_size=c.const(0, "int64"))[0]
    c.may_mutate = False
    whole(c, Flow(back, *map(list, TEXT)))


@recipe("WrapDatasetVariant", "UnwrapDatasetVariant")
def wrap(c):
    flow = source(c)
    wrapped = c.node("WrapDatasetVariant", input_handle=flow.ref)[0]
    watch(c, Flow(c.node("UnwrapDatasetVariant", input_handle=wrapped)[0], flow.types, flow.shapes))


# Iterators, and state that datasets share.

ITERATORS = ["Iterator", "IteratorV2", "AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"]


@recipe(*ITERATORS, *"""MakeIterator IteratorGetNext IteratorGetNextSync IteratorGetNextAsOptional IteratorToStringHandle IteratorFromStringHandle IteratorFromStringHandleV2 DeleteIterator
IteratorGetDevice ExperimentalIteratorGetDevice""".split())
def iterator(c):
    flow = source(c)
    kind = c.op if c.op in ITERATORS else "AnonymousIteratorV2" if c.op == "DeleteIterator" else c.pick(["Iterator", "IteratorV2"])
    given = {"shared_name": "it", "container": ""} if kind.startswith("Iterator") else {}
    made = c.node(kind, **flow.typed, **given)
    it = made[0]
    last = c.node("MakeIterator", dataset=flow.ref, iterator=it)[0]
    if c.op.startswith(("IteratorToString", "IteratorFromString")):
        handle = c.node("IteratorToStringHandle", _after=[last], resource_handle=it)[0]
        it = c.node("IteratorFromStringHandleV2" if c.op.endswith("V2") else "IteratorFromStringHandle", string_handle=handle, **flow.typed)[0]
    if c.op.endswith("GetDevice"):
        return c.fetch(*c.node("StringLength", input=c.node(c.op, _after=[last], resource=it)[0])) if c.chance(0.5) else c.targets.append(c.node(c.op, _after=[last], resource=it)[0].node)
    for _ in range(c.int(1, 4)):
        if c.op == "IteratorGetNextAsOptional":
            got = c.node(c.op, _after=[last], iterator=it, **flow.typed)[0]
            c.fetch(*c.node("OptionalHasValue", optional=got))
            if c.chance(0.7):
                c.fetch(*c.node("OptionalGetValue", optional=got, **flow.typed))
            last = got
            continue
        got = c.node(c.op if c.op.startswith("IteratorGetNext") else "IteratorGetNext", _after=[last], iterator=it, **flow.typed)
        c.fetch(*got)
        last = got[0]
    if c.op == "DeleteIterator":
        c.targets.append(c.node(c.op, _after=[last], handle=it, deleter=made[1])[0].node)


@recipe("OneShotIterator")
def one_shot(c):
    body = [int64("a", c.int(-2, 2)), int64("b", c.int(3, 7)), int64("d", 1), ("r", "RangeDataset", ["a:output:0", "b:output:0", "d:output:0"], {"output_types": ["int64"], "output_shapes": [[]]})]
    make = function(c, "make", [], [("out", "variant")], body, {"out": "r:handle:0"})
    typed = {"output_types": ["int64"], "output_shapes": [[]]}
    it = c.node(c.op, dataset_factory=make, **typed)[0]
    last = []
    for _ in range(c.int(1, 5)):
        got = c.node("IteratorGetNext", _after=last, iterator=it, **typed)
        c.fetch(*got)
        last = [got[0]]


@recipe("AnonymousMemoryCache", "DeleteMemoryCache", "DummyMemoryCache")
def memory_cache(c):
    made = c.node("DummyMemoryCache" if c.op.startswith("Dummy") else "AnonymousMemoryCache")
    flow = through(c, source(c, high=4), "CacheDatasetV2", filename=c.const("", STRING), cache=made[0])
    if c.op != "DeleteMemoryCache":
        return whole(c, through(c, flow, "RepeatDataset", count=c.const(2, "int64")))
    whole(c, flow)
    last = c.fetches[0].split(":")[0]
    c.targets.append(c.node(c.op, _after=[last], handle=made[0], deleter=made[1])[0].node)


@recipe("AnonymousRandomSeedGenerator", "AnonymousSeedGenerator", "DummySeedGenerator", "DeleteRandomSeedGenerator", "DeleteSeedGenerator")
def seed_generator(c):
    given = {"seed": c.feed(c.int(0, 9), "int64"), "seed2": c.feed(c.int(1, 9), "int64")}
    if c.op.startswith("Dummy"):
        flow = through(c, source(c), "ShuffleDatasetV3", buffer_size=c.const(5, "int64"), seed_generator=c.node(c.op)[0], **given)
        return whole(c, flow)
    if "Random" in c.op:
        made = c.node("AnonymousRandomSeedGenerator", **given)
    else:
        made = c.node("AnonymousSeedGenerator", reshuffle=c.feed(c.chance(0.5), "bool"), **given)
    flow = through(c, source(c), "ShuffleDatasetV2", buffer_size=c.const(5, "int64"), seed_generator=made[0])
    whole(c, flow)
    if c.op.startswith("Delete"):
        c.targets.append(c.node(c.op, _after=[c.fetches[0].split(":")[0]], handle=made[0], deleter=made[1])[0].node)


@recipe("AutoShardDataset", "ExperimentalAutoShardDataset")
def auto_shard(c):
    n = c.int(1, 4)
    watch(c, through(c, source(c), num_workers=fed(c, n), index=fed(c, c.int(0, n - 1)), auto_shard_policy=c.pick([-1, 2, 2])), counted=False)


@recipe("ThreadPoolHandle", "ThreadPoolDataset", "ExperimentalThreadPoolHandle", "ExperimentalThreadPoolDataset")
def thread_pool(c):
    first = "Experimental" if c.op.startswith("Exp") else ""
    pool = c.node(first + "ThreadPoolHandle", num_threads=2, display_name="pool")[0]
    watch(c, through(c, source(c), first + "ThreadPoolDataset", thread_pool=pool))


@recipe("DummyIterationCounter")
def iteration_counter(c):
    c.call()


@recipe("SerializeIterator", "DeserializeIterator")
def saved_iterator(c):
    flow = source(c, low=4)
    it = c.node("IteratorV2", shared_name="it", container="", **flow.typed)[0]
    last = c.node("MakeIterator", dataset=flow.ref, iterator=it)[0]

    def take(n, last):
        for _ in range(n):
            got = c.node("IteratorGetNext", _after=[last], iterator=it, **flow.typed)
            c.fetch(*got)
            last = got[0]
        return last
    state = c.node("SerializeIterator", _after=[take(c.int(0, 2), last)], resource_handle=it)[0]
    last = take(c.int(0, 2), state)
    take(1, c.node("DeserializeIterator", _after=[last], resource_handle=it, serialized=state)[0])


@recipe("InitializeTableFromDataset")
def table_from_dataset(c):
    n = c.int(1, 5)
    kind = c.pick(["int64", "string"])
    keys = np.arange(n) if kind == "int64" else array([f"k{i}" for i in range(n)], STRING)
    flow = slices(c, [keys, c.values("int64", [n], "small")], [kind, "int64"])
    table = c.node("HashTableV2", key_dtype=kind, value_dtype="int64", shared_name="t")[0]
    done = c.node(c.op, table_handle=table, dataset=flow.ref)[0]
    c.fetch(*c.node("LookupTableFindV2", _after=[done], table_handle=table, keys=c.const(keys, kind), default_value=c.const(-1, "int64")), *c.node("LookupTableSizeV2", _after=[done], table_handle=table))
