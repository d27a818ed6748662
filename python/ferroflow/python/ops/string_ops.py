"""Strings, numbers in strings, records of text."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import deprecated_alias, export

__getattr__ = module_names.fallback(__name__)


@export("reduce_join", "strings.reduce_join")
def reduce_join(inputs, axis=None, keep_dims=None, separator="", name=None,
                reduction_indices=None, keepdims=None):
    keep_dims = deprecated_alias("keepdims", keepdims, "keep_dims", keep_dims) or False
    axis = deprecated_alias("axis", axis, "reduction_indices", reduction_indices)
    inputs = ops.convert_to_tensor(inputs)
    if axis is None:
        rank = inputs.get_shape().ndims
        axis = ops.convert_to_tensor(list(range(rank - 1, -1, -1)), dtype=dtypes.int32) if (
            rank is not None) else math_ops.range(array_ops.rank(inputs) - 1, -1, -1)
    return gen_ops.ReduceJoin(inputs=inputs, reduction_indices=axis, keep_dims=keep_dims,
                              separator=separator, name=name)


@export("string_join", "strings.join")
def string_join(inputs, separator="", name=None):
    return gen_ops.StringJoin(inputs, separator=separator, name=name)


@export("string_to_number", "strings.to_number")
def string_to_number(string_tensor=None, out_type=dtypes.float32, name=None, input=None):
    string_tensor = deprecated_alias("input", input, "string_tensor", string_tensor)
    return gen_ops.StringToNumber(string_tensor, out_type, name)


@export("string_to_hash_bucket", "strings.to_hash_bucket")
def string_to_hash_bucket(string_tensor=None, num_buckets=None, name=None, input=None):
    string_tensor = deprecated_alias("input", input, "string_tensor", string_tensor)
    return gen_ops.StringToHashBucket(string_tensor, num_buckets, name)


@export("substr", "strings.substr")
def substr(input, pos, len, name=None, unit="BYTE"):
    return gen_ops.Substr(input, pos, len, unit=unit, name=name)


@export("strings.length")
def string_length(input, name=None, unit="BYTE"):
    return gen_ops.StringLength(input, unit=unit, name=name)


def _is_constant_text(value):
    return isinstance(value, (str, bytes))


@export("regex_replace", "strings.regex_replace")
def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    if _is_constant_text(pattern) and _is_constant_text(rewrite):
        return gen_ops.StaticRegexReplace(input=input, pattern=pattern, rewrite=rewrite,
                                          replace_global=replace_global, name=name)
    return gen_ops.RegexReplace(input=input, pattern=pattern, rewrite=rewrite,
                                replace_global=replace_global, name=name)


@export("strings.regex_full_match")
def regex_full_match(input, pattern, name=None):
    if _is_constant_text(pattern):
        return gen_ops.StaticRegexFullMatch(input=input, pattern=pattern, name=name)
    return gen_ops.RegexFullMatch(input=input, pattern=pattern, name=name)


@export("string_split")
def string_split(source=None, sep=None, skip_empty=True, delimiter=" ", result_type=None,
                 input=None, name=None):
    from ferroflow.python.framework import sparse_tensor
    source = deprecated_alias("input", input, "source", source)
    sep = delimiter if sep is None else sep
    with ops.name_scope(name, "StringSplit", [source]):
        delimiter = ops.convert_to_tensor(sep, dtype=dtypes.string)
        source = ops.convert_to_tensor(source, dtype=dtypes.string)
        indices, values, shape = gen_ops.StringSplit(source, delimiter=delimiter,
                                                     skip_empty=skip_empty)
    indices.set_shape([None, 2])
    values.set_shape([None])
    shape.set_shape([2])
    return sparse_tensor.SparseTensor(indices, values, shape)


@export("strings.split")
def string_split_v2(input=None, sep=None, maxsplit=-1, result_type="SparseTensor", source=None, name=None):
    """The words of strings, as a sparse tensor."""
    from ferroflow.python.framework import sparse_tensor
    input = deprecated_alias("input", input, "source", source)
    if result_type != "SparseTensor":
        raise NotImplementedError("tf.strings.split: only result_type='SparseTensor' is supported, not %r" % (result_type,))
    with ops.name_scope(name, "StringSplit", [input]):
        input = ops.convert_to_tensor(input, dtype=dtypes.string, name="input")
        if input.get_shape().ndims == 0:
            input = array_ops.expand_dims(input, 0)
        if input.get_shape().ndims != 1:
            raise NotImplementedError("tf.strings.split: the input must be a scalar or a vector, not of shape %s" %
                                      input.get_shape())
        sep = ops.convert_to_tensor("" if sep is None else sep, dtype=dtypes.string, name="sep")
        indices, values, shape = gen_ops.StringSplitV2(input, sep, maxsplit)
        indices.set_shape([None, 2])
        values.set_shape([None])
        shape.set_shape([2])
        return sparse_tensor.SparseTensor(indices, values, shape)


@export("decode_csv", "io.decode_csv")
def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, name=None,
               na_value="", select_cols=None):
    if select_cols is not None and any(
            a >= b for a, b in zip(select_cols[:-1], select_cols[1:])):
        raise ValueError("select_cols is not strictly increasing.")
    return gen_ops.DecodeCSV(records=records, record_defaults=record_defaults,
                             field_delim=field_delim, use_quote_delim=use_quote_delim,
                             na_value=na_value, name=name, select_cols=select_cols or [])


@export("decode_raw", "io.decode_raw")
def decode_raw(input_bytes=None, out_type=None, little_endian=True, name=None, bytes=None):
    input_bytes = deprecated_alias("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    return gen_ops.DecodeRaw(input_bytes, out_type, little_endian, name)


@export("read_file", "io.read_file")
def read_file(filename, name=None):
    return gen_ops.ReadFile(filename, name)


