"""Files, readers, checkpoints, summaries."""

import struct

import numpy as np

from case import EVERY, STRING, array

from . import recipe


@recipe("Assert")
def assert_(c):
    c.call(condition=c.rng.rand() < 0.7, data=[c.values(c.pick(EVERY), c.shape(0, 2))])


@recipe("Print")
def print_(c):
    c.call(input=c.of("T", c.shape(0, 2)), data=[c.values("int32", [2], "small")], message="here: ", first_n=0)


@recipe("PrintV2")
def print_v2(c):
    c.call(input=array("", STRING), output_stream="log(info)", end="")


@recipe("Timestamp")
def timestamp(c):
    c.mode = "shape"
    c.call()


@recipe("ReadFile", "WriteFile")
def files(c):
    contents = c.values(STRING, [])
    name = c.path_const("a.txt")
    done = c.node("WriteFile", filename=name, contents=c.feed(contents, STRING))[0]
    c.fetch(*c.node("ReadFile", _after=[done], filename=c.path_const("none.txt") if c.op == "ReadFile" and c.chance(0.2) else name))
    c.may_mutate = False


@recipe("MatchingFiles")
def matching(c):
    done = [c.node("WriteFile", filename=c.path_const(n), contents=c.const("x", STRING))[0] for n in ("a.txt", "b.txt", "c.dat")]
    patterns = [f"$ORACLE/{p}" for p in ("*.txt", "*", "[ab].*", "none", "?.dat")]
    c.fetch(*c.node(c.op, _after=done, pattern=c.feed(array(c.pick([c.pick(patterns), [c.pick(patterns), c.pick(patterns)]]), STRING), STRING)))


@recipe("ShardedFilename")
def sharded(c):
    c.call(basename=c.values(STRING, []), shard=c.int(0, 5), num_shards=c.int(1, 9))


@recipe("ShardedFilespec")
def filespec(c):
    c.call(basename=c.values(STRING, []), num_shards=c.int(1, 9))


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tf_record(*records):
    out = b""
    for r in records:
        head = struct.pack("<Q", len(r))
        out += head + struct.pack("<I", masked(head)) + r + struct.pack("<I", masked(r))
    return out


READERS = ["FixedLengthRecordReader", "IdentityReader", "TFRecordReader", "TextLineReader", "WholeFileReader"]
READ = ["ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted", "ReaderRead", "ReaderReadUpTo", "ReaderReset", "ReaderRestoreState", "ReaderSerializeState"]


@recipe(*READERS, *[r + "V2" for r in READERS], *READ, *[r + "V2" for r in READ])
def reader(c):
    v2 = "V2" if c.op.endswith("V2") else ""
    name = c.op.removesuffix("V2")
    kind = name if name in READERS else c.pick(READERS)
    if name in ("ReaderSerializeState", "ReaderRestoreState"):
        kind = "IdentityReader"
    elif name in READ and not v2 and kind.startswith("Fixed"):
        # TensorFlow cannot create the old version.
        kind = "TextLineReader"
    contents = {"TextLineReader": b"one\ntwo\n\nlast", "TFRecordReader": tf_record(b"first", b"", b"third"), "FixedLengthRecordReader": b"hhaabbccff"}.get(kind, b"whole")
    given = {"FixedLengthRecordReader": dict(record_bytes=2, header_bytes=2, footer_bytes=2, hop_bytes=c.pick([0, 1])), "TextLineReader": dict(skip_header_lines=c.int(0, 1))}.get(kind, {})
    handle = c.node(kind + v2, **given)[0]
    q = c.node("FIFOQueue" + v2, component_types=["string"], shapes=[[]], capacity=10)[0]
    if kind == "IdentityReader":
        names = c.feed(array(["x", "y"], STRING), STRING)
        last = []
    else:
        done = c.node("WriteFile", filename=c.path_const("in"), contents=c.const(contents, STRING))[0]
        names, last = c.feed(array(["$ORACLE/in"], STRING), STRING), [done]
    enq = c.node("QueueEnqueueMany" + v2, _after=last, handle=q, components=[names])[0]
    last = [c.node("QueueClose" + v2, _after=[enq], handle=q)[0]]
    c.may_mutate = False
    h = dict(reader_handle=handle)
    if name == "ReaderReadUpTo" or (name in READERS and c.chance(0.5)):
        return c.fetch(*c.node("ReaderReadUpTo" + v2, _after=last, **h, queue_handle=q, num_records=c.feed(c.int(1, 5), "int64")))
    for _ in range(c.int(1, 2)):
        read = c.node("ReaderRead" + v2, _after=last, **h, queue_handle=q)
        c.fetch(*read)
        last = [read[0]]
    if name == "ReaderReset":
        last = [c.node(c.op, _after=last, **h)[0]]
    if name == "ReaderSerializeState":
        # The fields of the message may be in any order, so compare the length only.
        state = c.node(c.op, _after=last, **h)[0]
        c.fetch(*c.node("StringLength", input=state))
    if name == "ReaderRestoreState":
        state = c.node("ReaderSerializeState" + v2, _after=last, **h)[0]
        last = [c.node(c.op, **h, state=state)[0]]
    if name not in ("ReaderRead",):
        c.fetch(*c.node("ReaderNumRecordsProduced" + v2, _after=last, **h), *c.node("ReaderNumWorkUnitsCompleted" + v2, _after=last, **h))


KEPT = ["float32", "float64", "int32", "int64", "uint8", "int16", "int8", "bool", "complex64", "complex128", "half", "bfloat16", "string", "uint16", "uint32", "uint64"]


@recipe("SaveV2", "RestoreV2", "MergeV2Checkpoints")
def checkpoint_v2(c):
    kinds = [c.pick(KEPT) for _ in range(c.int(1, 3))]
    names = array([f"t{i}" for i in range(len(kinds))], STRING)
    values = [c.values(t, c.shape(0, 2)) for t in kinds]
    prefix = c.path_const("part/model" if c.op.startswith("Merge") else "model")
    spec = array([""] * len(kinds), STRING)
    done = c.node("SaveV2", prefix=prefix, tensor_names=c.const(names), shape_and_slices=c.const(spec), tensors=[c.feed(v, t) for v, t in zip(values, kinds)])[0]
    if c.op.startswith("Merge"):
        target = c.path_const("whole/model")
        done = c.node(c.op, _after=[done], checkpoint_prefixes=c.feed(array(["$ORACLE/part/model"], STRING), STRING), destination_prefix=target, delete_old_dirs=c.chance(0.5))[0]
        prefix = target
    order = c.rng.permutation(len(kinds))
    asked = names[order]
    if c.chance(0.1):
        asked = array(["missing"] * len(kinds), STRING)
    c.may_mutate = False
    c.fetch(*c.node("RestoreV2", _after=[done], prefix=prefix, tensor_names=c.const(asked), shape_and_slices=c.const(spec), dtypes=[kinds[i] for i in order]))


@recipe("Save", "SaveSlices", "Restore", "RestoreSlice", hold={"dt": ["float32", "float64", "int32", "int64", "uint8", "int16", "int8", "bool", "complex64", "complex128", "half"]})
def checkpoint_v1(c):
    t = c.types.get("dt") or c.pick(["float32", "float64", "int32", "int64", "bool"])
    s = c.shape(1, 2, empty=False)
    value = c.values(t, s, "small")
    path = c.path_const("old")
    names = c.const(array(["x"], STRING))
    if c.op == "SaveSlices":
        done = c.node(c.op, filename=path, tensor_names=names, shapes_and_slices=c.const(array([""], STRING)), data=[c.feed(value, t)])[0]
    else:
        done = c.node("Save", filename=path, tensor_names=names, data=[c.feed(value, t)])[0]
    c.may_mutate = False
    name = c.const("x", STRING)
    if c.op == "RestoreSlice":
        first = c.int(0, s[0] - 1)
        spec = " ".join(map(str, s)) + " " + ":".join([f"{first},{s[0] - first}"] + ["-"] * (len(s) - 1))
        c.fetch(*c.node(c.op, _after=[done], file_pattern=path, tensor_name=name, shape_and_slice=c.const(c.pick([spec, ""]), STRING), dt=t))
    else:
        c.fetch(*c.node("Restore", _after=[done], file_pattern=path, tensor_name=name, dt=t))


@recipe("ScalarSummary")
def scalar_summary(c):
    s = c.shape(0, 2)
    c.style = c.pick(["small", "whole"])
    c.call(tags=c.values(STRING, s), values=c.of("T", s))


@recipe("HistogramSummary")
def histogram_summary(c):
    c.style = c.pick(["small", "whole"])
    c.call(tag=array("h", STRING), values=c.of("T", c.shape(0, 2)))


@recipe("ImageSummary")
def image_summary(c):
    # The images are compressed differently.
    c.mode = "shape"
    c.style = "unit"
    c.call(tag=array("i", STRING), tensor=c.of("T", [c.int(1, 2), c.int(1, 4), c.int(1, 4), c.pick([1, 3, 4])]), max_images=2)


@recipe("AudioSummary", "AudioSummaryV2")
def audio_summary(c):
    given = {"sample_rate": 8000.0} if c.op == "AudioSummary" else {"sample_rate": c.feed(8000.0, "float32")}
    c.call(tag=array("a", STRING), tensor=c.values("float32", [c.int(1, 2), c.int(1, 5), c.int(1, 2)], "unit"), max_outputs=2, **given)


@recipe("TensorSummary")
def tensor_summary(c):
    c.style = c.pick(["small", "whole"])
    c.call(tensor=c.of("T", c.shape(0, 2)), description="d", display_name="n", labels=["l"])


@recipe("TensorSummaryV2")
def tensor_summary_v2(c):
    from tensorflow.core.framework import summary_pb2
    meta = summary_pb2.SummaryMetadata(display_name="x").SerializeToString()
    c.style = c.pick(["small", "whole"])
    c.call(tag=array("t", STRING), tensor=c.of("T", c.shape(0, 2)), serialized_summary_metadata=array(meta, STRING))


@recipe("MergeSummary")
def merge_summary(c):
    from tensorflow.core.framework import summary_pb2

    def one(i):
        s = summary_pb2.Summary()
        s.value.add(tag=f"t{i if c.chance(0.9) else 0}", simple_value=i)
        return s.SerializeToString()
    c.call(inputs=[array([one(10 * k + i) for i in range(c.int(0, 2))], STRING) for k in range(c.int(1, 3))])


WRITE = """CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter ImportEvent SummaryWriter WriteAudioSummary WriteGraphSummary
WriteHistogramSummary WriteImageSummary WriteRawProtoSummary WriteScalarSummary WriteSummary""".split()


@recipe(*WRITE)
def summary_writer(c):
    from tensorflow.core.framework import graph_pb2, summary_pb2
    from tensorflow.core.util import event_pb2
    writer = c.node("SummaryWriter", shared_name="w")[0]
    made = c.node("CreateSummaryFileWriter", writer=writer, logdir=c.path_const("logs"), max_queue=c.feed(10, "int32"), flush_millis=c.feed(1000, "int32"),
                  filename_suffix=c.feed(array(".x", STRING), STRING))[0]
    step = lambda: c.feed(c.int(0, 9), "int64")
    tag = lambda: c.feed(array("t", STRING), STRING)
    event = event_pb2.Event(step=3, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="a", simple_value=1)]))
    t = c.types.get("T", "float32")
    given = {
        "ImportEvent": lambda: dict(event=array(event.SerializeToString(), STRING)),
        "WriteAudioSummary": lambda: dict(step=step(), tag=tag(), tensor=c.values("float32", [1, 4, 1], "unit"), sample_rate=c.feed(8000.0, "float32")),
        "WriteGraphSummary": lambda: dict(step=step(), tensor=array(graph_pb2.GraphDef().SerializeToString(), STRING)),
        "WriteHistogramSummary": lambda: dict(step=step(), tag=tag(), values=c.values(t, c.shape(0, 2), "small")),
        "WriteImageSummary": lambda: dict(step=step(), tag=tag(), tensor=c.values(t, [1, 2, 2, 3], "unit"), bad_color=c.feed([255, 0, 0, 255], "uint8")),
        "WriteRawProtoSummary": lambda: dict(step=step(), tensor=array(event.summary.SerializeToString(), STRING)),
        "WriteScalarSummary": lambda: dict(step=step(), tag=tag(), value=c.values(t, [], "small")),
        "WriteSummary": lambda: dict(step=step(), tensor=c.values(t, c.shape(0, 2), "small"), tag=tag(), summary_metadata=array(b"", STRING)),
    }.get(c.op)
    last = made
    if given:
        last = c.node(c.op, _after=[last], writer=writer, **given())[0]
    last = c.node("FlushSummaryWriter", _after=[last], writer=writer)[0]
    if c.op == "CloseSummaryWriter":
        last = c.node(c.op, _after=[last], writer=writer)[0]
    c.targets.append(last.node)
