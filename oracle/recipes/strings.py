"""Strings, numbers in them, encodings, and parsing."""

import base64
import gzip
import zlib

import numpy as np

from case import STRING, WORDS, array

from . import HOLD, recipe


def words(c, shape, options=None):
    if options is None:
        return c.values(STRING, shape)
    n = int(np.prod(shape))
    return array([c.pick(options) for _ in range(n)], STRING).reshape(shape)


@recipe("AsString")
def as_string(c):
    kind = c.types["T"]
    style = c.pick(["small", "whole", "wide", "special"])
    given = {}
    if kind.startswith(("float", "bfloat", "half", "complex")):
        given = c.pick([{}, {"precision": 3}, {"scientific": True, "shortest": False}, {"shortest": True, "scientific": False}, {"width": 9, "precision": 2}])
    elif kind not in ("bool", "string"):
        given = c.pick([{}, {"width": 6}, {"width": 6, "fill": "0"}, {"width": 5, "fill": "-"}])
    given = {"scientific": False, "shortest": False, **given}
    c.call(input=c.of("T", c.shape(0, 2), style), **given)


@recipe("DecodeBase64")
def decode_base64(c):
    def one():
        raw = bytes(c.ints(0, 255, c.int(0, 8)))
        text = base64.urlsafe_b64encode(raw)
        return c.pick([text, text.rstrip(b"="), text, b"!!", b"abc*"])
    s = c.shape(0, 2)
    c.call(input=array([one() for _ in range(int(np.prod(s)))], STRING).reshape(s))


@recipe("EncodeBase64")
def encode_base64(c):
    c.call(input=words(c, c.shape(0, 2)))


@recipe("DecodeCompressed")
def decode_compressed(c):
    kind = c.pick(["", "GZIP", "ZLIB"])
    pack = {"": lambda b: b, "GZIP": lambda b: gzip.compress(b, mtime=0), "ZLIB": zlib.compress}[kind]
    s = c.shape(0, 2)
    c.call(bytes=array([pack(c.pick([b"", b"abc", b"hello" * 20])) for _ in range(int(np.prod(s)))], STRING).reshape(s), compression_type=kind)


def raw_bytes(c, dtype, shape, count):
    return array([c.values(dtype, [count], "wide").tobytes() for _ in range(int(np.prod(shape)))], STRING).reshape(shape)


@recipe("DecodeRaw")
def decode_raw(c):
    kind = c.types["out_type"]
    c.call(bytes=raw_bytes(c, kind, c.shape(0, 2), c.int(0, 4)))


@recipe("DecodePaddedRaw")
def decode_padded_raw(c):
    kind = c.types["out_type"]
    size = c.values(kind, [1]).itemsize
    c.call(input_bytes=raw_bytes(c, kind, c.shape(0, 2), c.int(0, 4)), fixed_length=size * c.int(1, 5))


@recipe("Fingerprint")
def fingerprint(c):
    data = c.of("T", c.shape(1, 3, empty=False), "small")
    c.call(data=data, method=array("farmhash64", STRING))


@recipe("SdcaFprint")
def sdca_fingerprint(c):
    n = c.int(0, 5)
    texts = [c.pick(WORDS) * c.pick([1, 1, 3, 20]) for _ in range(n)]
    c.call(input=array(texts, STRING).reshape([n]))


@recipe("ReduceJoin")
def reduce_join(c):
    s = c.shape(0, 3)
    axes = c.rng.permutation(len(s))[:c.int(0, len(s))]
    c.call(inputs=words(c, s), reduction_indices=np.array([int(a) - (len(s) if c.chance(0.3) else 0) for a in axes], dtype=np.int32), separator=c.pick(["", ",", "--"]))


PATTERNS = [r"a", r"a.*", r"\w+", r"(a)(b)", r"[0-9.]+", r"^\s+|\s+$", r"日.", r"(?i)hello", r"", r"[", r"(?P<x>l+)", r".", r"\.", r"a|b"]


@recipe("RegexFullMatch")
def regex_full_match(c):
    c.call(input=words(c, c.shape(0, 2)), pattern=array(c.pick(PATTERNS), STRING))


@recipe("StaticRegexFullMatch")
def static_full_match(c):
    c.call(input=words(c, c.shape(0, 2)), pattern=c.pick(PATTERNS))


REWRITES = ["", "x", r"<\0>", r"\1", r"\\", "é"]


@recipe("RegexReplace")
def regex_replace(c):
    c.call(input=words(c, c.shape(0, 2)), pattern=array(c.pick(PATTERNS), STRING), rewrite=array(c.pick(REWRITES), STRING))


@recipe("StaticRegexReplace")
def static_replace(c):
    c.call(input=words(c, c.shape(0, 2)), pattern=c.pick(PATTERNS), rewrite=c.pick(REWRITES))


@recipe("StringFormat")
def string_format(c):
    n = c.int(1, 2)
    c.style = c.pick(["small", "whole"])
    kinds = ["int32", "int64", "float32", "bool", "string", "float64", "uint8"]
    c.call(inputs=[c.values(c.pick(kinds), c.shape(0, 3)) for _ in range(n)], template=" and ".join(["{}"] * n), placeholder="{}", summarize=c.int(1, 4))


@recipe("StringJoin")
def string_join(c):
    s = c.shape(0, 2)
    c.call(inputs=[words(c, [] if c.chance(0.3) else s) for _ in range(c.int(1, 4))], separator=c.pick(["", ",", "--"]))


@recipe("StringLength")
def string_length(c):
    c.call(input=words(c, c.shape(0, 2)), unit=c.pick(["BYTE", "UTF8_CHAR"]))


@recipe("StringLower", "StringUpper")
def string_case(c):
    c.call(input=words(c, c.shape(0, 2)), encoding=c.pick(["", "utf-8"]))


@recipe("StringStrip")
def strip(c):
    c.call(input=words(c, c.shape(0, 2)))


@recipe("StringNGrams")
def ngrams(c):
    from .array import row_splits
    splits = row_splits(c, c.int(0, 4))
    c.call(data=words(c, [splits[-1]], ["a", "b", "cc", ""]), data_splits=splits, separator=c.pick(["", " ", "|"]), ngram_widths=c.ints(1, 3, c.int(1, 2)),
           left_pad=c.pick(["", "<"]), right_pad=c.pick(["", ">"]), pad_width=c.int(-1, 2), preserve_short_sequences=c.chance(0.5))


@recipe("StringSplit")
def split(c):
    c.call(input=words(c, [c.int(0, 4)]), delimiter=array(c.pick(["", " ", ",", ",;", "a"]), STRING))


@recipe("StringSplitV2")
def split_v2(c):
    c.call(input=words(c, [c.int(0, 4)]), sep=array(c.pick(["", " ", ",", "ab"]), STRING), maxsplit=c.int(-1, 2))


@recipe("StringToHashBucket")
def hash_bucket(c):
    c.call(string_tensor=words(c, c.shape(0, 2)), num_buckets=c.pick([1, 7, 1000]))


@recipe("StringToHashBucketFast")
def hash_bucket_fast(c):
    c.call(input=words(c, c.shape(0, 2)), num_buckets=c.pick([1, 7, 1000]))


@recipe("_TensorToHashBucketFast")
def hash_bucket_of_numbers(c):
    c.call(input=c.of("T", c.shape(0, 2), "wide"), num_buckets=c.pick([1, 7, 1000]))


@recipe("StringToHashBucketStrong")
def hash_bucket_strong(c):
    c.call(input=words(c, c.shape(0, 2)), num_buckets=c.pick([1, 7, 1000]), key=[c.int(0, 1 << 30), c.int(0, 1 << 30)])


@recipe("StringToNumber")
def to_number(c):
    good = ["1", "-2", "0", "12345", " 7", "7 "] + (["1.5", "-2.5e3", "nan", "inf", "-inf", ".5", "1e400"] if c.types["out_type"].startswith("float") else ["2147483647", "+5"])
    bad = ["x", "", "1.5.2", "0x10", "99999999999999999999"]
    c.call(string_tensor=words(c, c.shape(0, 2), good if c.chance(0.8) else good + bad))


@recipe("Substr")
def substr(c):
    s = c.shape(0, 2)
    texts = ["hello", "world!", "naïve", "日本語日本語", "abcdef"]
    per = lambda low, high: c.rng.randint(low, high, size=s if c.chance(0.5) else [])
    p = per(-2 if c.chance(0.2) else 0, 4)
    n = c.rng.randint(0, 5, size=p.shape)
    c.call(input=words(c, s, texts), pos=p, len=n, unit=c.pick(["BYTE", "UTF8_CHAR"]))


ENCODINGS = ["UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII", "ISO-8859-1"]


def encoded(c, shape):
    raw = ["abc", "naïve", "日本", "😀", "", "a\x00b", "\x01\x02"]
    return lambda name: array([(c.pick(raw).encode(name.lower().replace("us-", ""), errors="ignore") if c.chance(0.85) else bytes(c.ints(0, 255, 3))) for _ in range(int(np.prod(shape)))], STRING).reshape(shape)


# With int32 splits, an internal check of TensorFlow's WithOffsets fails.
HOLD["UnicodeDecodeWithOffsets"] = {"Tsplits": ["int64"]}


@recipe("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(c):
    name = c.pick(ENCODINGS)
    s = c.shape(0, 2)
    c.call(input=encoded(c, s)(name), input_encoding=name, errors=c.pick(["strict", "replace", "replace", "ignore"]), replacement_char=c.pick([65533, 32]))


@recipe("UnicodeTranscode")
def transcode(c):
    name = c.pick(ENCODINGS)
    s = c.shape(0, 2)
    c.call(input=encoded(c, s)(name), input_encoding=name, output_encoding=c.pick(ENCODINGS[:3]), errors=c.pick(["strict", "replace", "replace", "ignore"]),
           replacement_char=c.pick([65533, 32]))


@recipe("UnicodeEncode")
def unicode_encode(c):
    from .array import row_splits
    splits = row_splits(c, c.int(0, 4))
    chars = [c.pick([65, 98, 233, 0x65e5, 0x1f600, 10, 0xd800 if c.chance(0.2) else 66]) for _ in range(splits[-1])]
    c.call(input_values=np.array(chars, dtype=np.int32), input_splits=splits, errors=c.pick(["ignore", "replace", "strict"]), output_encoding=c.pick(ENCODINGS[:3]),
           replacement_char=c.pick([65533, 32]))


@recipe("UnsortedSegmentJoin")
def segment_join(c):
    s = c.shape(0, 2)
    n = c.int(1, 4)
    c.call(inputs=words(c, s + c.shape(0, 1)), segment_ids=c.rng.randint(-1 if c.chance(0.2) else 0, n, size=s), num_segments=n, separator=c.pick(["", ","]))


# Parsing.

@recipe("SerializeTensor")
def serialize_tensor(c):
    c.style = c.pick(["small", "whole", "wide"])
    c.call(tensor=c.of("T", c.shape()))


@recipe("ParseTensor")
def parse_tensor(c):
    from case import tensor_proto
    value = c.of("out_type", c.shape())
    c.call(serialized=array(tensor_proto(value, c.types["out_type"]).SerializeToString(), STRING))


@recipe("DecodeCSV")
def decode_csv(c):
    kinds = [c.pick(["float32", "float64", "int32", "int64", "string"]) for _ in range(c.int(1, 4))]

    def field(kind):
        if c.chance(0.15):
            return ""
        if kind == "string":
            return c.pick(["abc", '"quoted, text"', '"say ""hi"""', "x y"])
        if kind.startswith("float"):
            return c.pick(["1.5", "-2", "1e3", "nan"])
        return c.pick(["1", "-2", "12345"])
    s = c.shape(0, 2)
    lines = array([",".join(field(k) for k in kinds) for _ in range(int(np.prod(s)))], STRING).reshape(s)
    defaults = [c.values(k, [0] if c.chance(0.3) else [1], "whole") for k in kinds]
    c.call(records=lines, record_defaults=defaults, na_value=c.pick(["", "NA"]), use_quote_delim=c.chance(0.8))


def example(c, keys):
    from tensorflow.core.example import example_pb2
    e = example_pb2.Example()
    for key, kind, n in keys:
        if c.chance(0.15):
            continue
        fill_feature(c, e.features.feature[key], kind, n)
    return e


def fill_feature(c, feature, kind, n):
    values = c.values(kind, [n], "small")
    if kind == "string":
        feature.bytes_list.value.extend(values.tolist())
    elif kind == "int64":
        feature.int64_list.value.extend(int(v) for v in values)
    else:
        feature.float_list.value.extend(float(v) for v in values)


KINDS = ["float32", "int64", "string"]


@recipe("DecodeJSONExample")
def json_example(c):
    s = c.shape(0, 2)
    texts = ['{"features":{"feature":{"a":{"int64List":{"value":[1,"2"]}}}}}', '{"features":{"feature":{"b":{"bytesList":{"value":["YWJj"]}}}}}',
             '{"features":{"feature":{"f":{"floatList":{"value":[1.5,-2]}}}}}', "{}", "{", '{"nope": 1}']
    c.call(json_examples=words(c, s, texts[:4] if c.chance(0.8) else texts))


def schema(c, low_sparse=0):
    sparse = [(f"s{i}", c.pick(KINDS)) for i in range(c.int(low_sparse, 2))]
    dense = [(f"d{i}", c.pick(KINDS), c.int(1, 2)) for i in range(c.int(0 if sparse else 1, 2))]
    return sparse, dense


def make_examples(c, n, sparse, dense, ragged=()):
    out = []
    for _ in range(n):
        keys = [(k, t, c.int(0, 3)) for k, t in list(sparse) + list(ragged)] + [(k, t, m) for k, t, m in dense]
        out.append(example(c, keys).SerializeToString())
    return array(out, STRING)


def defaults_of(c, dense):
    return [c.values(t, [m] if c.chance(0.8) else [0], "small") for _, t, m in dense]


@recipe("ParseExample")
def parse_example(c):
    sparse, dense = schema(c)
    n = c.int(0, 3)
    c.call(serialized=make_examples(c, n, sparse, dense), names=words(c, [n] if c.chance(0.3) else [0]), sparse_keys=[array(k, STRING) for k, _ in sparse],
           dense_keys=[array(k, STRING) for k, _, _ in dense], dense_defaults=defaults_of(c, dense), sparse_types=[t for _, t in sparse],
           dense_shapes=[[m] for _, _, m in dense])


@recipe("ParseExampleV2")
def parse_example_v2(c):
    sparse, dense = schema(c)
    ragged = [(f"r{i}", c.pick(KINDS)) for i in range(c.int(0, 2))]
    scalar = c.chance(0.3)
    n = 1 if scalar else c.int(0, 3)
    serialized = make_examples(c, n, sparse, dense, ragged)
    keys = lambda items: array([i[0] for i in items], STRING)
    c.call(serialized=serialized.reshape([]) if scalar else serialized, names=array([], STRING), sparse_keys=keys(sparse), dense_keys=keys(dense),
           ragged_keys=keys(ragged), dense_defaults=defaults_of(c, dense), num_sparse=len(sparse), sparse_types=[t for _, t in sparse],
           ragged_value_types=[t for _, t in ragged], ragged_split_types=[c.pick(["int32", "int64"]) for _ in ragged], dense_shapes=[[m] for _, _, m in dense])


@recipe("ParseSingleExample")
def parse_single(c):
    sparse, dense = schema(c)
    c.call(serialized=make_examples(c, 1, sparse, dense).reshape([]), dense_defaults=defaults_of(c, dense), num_sparse=len(sparse), sparse_keys=[k for k, _ in sparse],
           dense_keys=[k for k, _, _ in dense], sparse_types=[t for _, t in sparse], dense_shapes=[[m] for _, _, m in dense])


class Sequences:
    def __init__(self, c, ragged=False):
        from tensorflow.core.example import example_pb2
        self.sparse, self.dense = schema(c)
        self.list_sparse = [(f"ls{i}", c.pick(KINDS)) for i in range(c.int(0, 2))]
        self.list_dense = [(f"ld{i}", c.pick(KINDS), c.int(1, 2)) for i in range(c.int(0, 2))]
        self.ragged = [(f"cr{i}", c.pick(KINDS)) for i in range(c.int(0, 2))] if ragged else []
        self.list_ragged = [(f"lr{i}", c.pick(KINDS)) for i in range(c.int(0, 2))] if ragged else []
        self.missing_ok = [k for k, _, _ in self.list_dense if c.chance(0.7)]

        def one():
            e = example_pb2.SequenceExample()
            for k, t in self.sparse + self.ragged:
                if c.chance(0.85):
                    fill_feature(c, e.context.feature[k], t, c.int(0, 3))
            for k, t, m in self.dense:
                if c.chance(0.9):
                    fill_feature(c, e.context.feature[k], t, m)
            for k, t in self.list_sparse + self.list_ragged:
                for _ in range(c.int(0, 3)):
                    fill_feature(c, e.feature_lists.feature_list[k].feature.add(), t, c.int(0, 2))
            for k, t, m in self.list_dense:
                if c.chance(0.9):
                    e.feature_lists.feature_list[k].SetInParent()
                    for _ in range(c.int(0, 3)):
                        fill_feature(c, e.feature_lists.feature_list[k].feature.add(), t, m)
            return e.SerializeToString()
        self.one = one


@recipe("ParseSequenceExample")
def parse_sequence(c):
    q = Sequences(c)
    n = c.int(0, 3)
    c.call(serialized=array([q.one() for _ in range(n)], STRING), debug_name=array([], STRING), context_dense_defaults=defaults_of(c, q.dense),
           feature_list_dense_missing_assumed_empty=q.missing_ok, context_sparse_keys=[k for k, _ in q.sparse], context_dense_keys=[k for k, _, _ in q.dense],
           feature_list_sparse_keys=[k for k, _ in q.list_sparse], feature_list_dense_keys=[k for k, _, _ in q.list_dense], Ncontext_sparse=len(q.sparse),
           Ncontext_dense=len(q.dense), Nfeature_list_sparse=len(q.list_sparse), Nfeature_list_dense=len(q.list_dense), context_sparse_types=[t for _, t in q.sparse],
           feature_list_dense_types=[t for _, t, _ in q.list_dense], context_dense_shapes=[[m] for _, _, m in q.dense],
           feature_list_sparse_types=[t for _, t in q.list_sparse], feature_list_dense_shapes=[[m] for _, _, m in q.list_dense])


@recipe("ParseSequenceExampleV2")
def parse_sequence_v2(c):
    q = Sequences(c, ragged=True)
    n = c.int(0, 3)
    keys = lambda items: array([i[0] for i in items], STRING)
    c.call(serialized=array([q.one() for _ in range(n)], STRING), debug_name=array([], STRING), context_sparse_keys=keys(q.sparse), context_dense_keys=keys(q.dense),
           context_ragged_keys=keys(q.ragged), feature_list_sparse_keys=keys(q.list_sparse), feature_list_dense_keys=keys(q.list_dense),
           feature_list_ragged_keys=keys(q.list_ragged), feature_list_dense_missing_assumed_empty=np.array([k in q.missing_ok for k, _, _ in q.list_dense], dtype=bool),
           context_dense_defaults=defaults_of(c, q.dense), Ncontext_sparse=len(q.sparse), context_sparse_types=[t for _, t in q.sparse],
           context_ragged_value_types=[t for _, t in q.ragged], context_ragged_split_types=["int64" for _ in q.ragged], context_dense_shapes=[[m] for _, _, m in q.dense],
           Nfeature_list_sparse=len(q.list_sparse), Nfeature_list_dense=len(q.list_dense), feature_list_dense_types=[t for _, t, _ in q.list_dense],
           feature_list_sparse_types=[t for _, t in q.list_sparse], feature_list_ragged_value_types=[t for _, t in q.list_ragged],
           feature_list_ragged_split_types=["int64" for _ in q.list_ragged], feature_list_dense_shapes=[[m] for _, _, m in q.list_dense])


@recipe("ParseSingleSequenceExample")
def parse_single_sequence(c):
    q = Sequences(c)
    keys = lambda items: [array(i[0], STRING) for i in items]
    c.call(serialized=array(q.one(), STRING), feature_list_dense_missing_assumed_empty=array(q.missing_ok, STRING), context_sparse_keys=keys(q.sparse),
           context_dense_keys=keys(q.dense), feature_list_sparse_keys=keys(q.list_sparse), feature_list_dense_keys=keys(q.list_dense),
           context_dense_defaults=defaults_of(c, q.dense), debug_name=array("x", STRING), context_sparse_types=[t for _, t in q.sparse],
           feature_list_dense_types=[t for _, t, _ in q.list_dense], context_dense_shapes=[[m] for _, _, m in q.dense],
           feature_list_sparse_types=[t for _, t in q.list_sparse], feature_list_dense_shapes=[[m] for _, _, m in q.list_dense])
