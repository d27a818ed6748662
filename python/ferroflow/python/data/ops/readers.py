"""Datasets of files."""

from ferroflow.python.data.ops import dataset_ops
from ferroflow.python.data.util import structure
from ferroflow.python.framework import dtypes, ops
from ferroflow.python.ops import array_ops

_DEFAULT_BUFFER_BYTES = 256 * 1024


def _text(value, default, name):
    return ops.convert_to_tensor(default if value is None else value, dtype=dtypes.string, name=name)


def _number(value, default, name):
    return ops.convert_to_tensor(default if value is None else value, dtype=dtypes.int64, name=name)


def _read(filenames, reader, num_parallel_reads=None):
    """The elements of each file, in order or from several files at a time."""
    if isinstance(filenames, dataset_ops.DatasetV2):
        files = filenames
    else:
        filenames = ops.convert_to_tensor(filenames, dtype=dtypes.string)
        flat = array_ops.reshape(filenames, [-1], name="flat_filenames")
        files = dataset_ops.Dataset.from_tensor_slices(flat, is_files=True)
    if num_parallel_reads is None:
        return files.flat_map(reader)
    return files.interleave(reader, cycle_length=num_parallel_reads, block_length=1, num_parallel_calls=num_parallel_reads)


def _source(kind, inputs):
    element = structure.TensorLeaf(dtypes.string, [])
    variant = ops.apply_op(kind, None, inputs).outputs[0]
    return dataset_ops.DatasetV1(variant, element)


class TextLineDataset(dataset_ops.DatasetV1):
    """The lines of text files."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        def read_one_file(filename):
            return _source(
                "TextLineDataset", [filename, _text(compression_type, "", "compression_type"), _number(buffer_size, _DEFAULT_BUFFER_BYTES, "buffer_size")]
            )

        made = _read(filenames, read_one_file, num_parallel_reads)
        super().__init__(made._variant_tensor, made._element)


class TFRecordDataset(dataset_ops.DatasetV1):
    """The records of record files."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        def read_one_file(filename):
            return _source(
                "TFRecordDataset", [filename, _text(compression_type, "", "compression_type"), _number(buffer_size, _DEFAULT_BUFFER_BYTES, "buffer_size")]
            )

        made = _read(filenames, read_one_file, num_parallel_reads)
        super().__init__(made._variant_tensor, made._element)


class FixedLengthRecordDataset(dataset_ops.DatasetV1):
    """Records of the same size from binary files."""

    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None, buffer_size=None, compression_type=None, num_parallel_reads=None, name=None):
        def read_one_file(filename):
            record = _number(record_bytes, None, "record_bytes")
            header = _number(header_bytes, 0, "header_bytes")
            footer = _number(footer_bytes, 0, "footer_bytes")
            size = _number(buffer_size, _DEFAULT_BUFFER_BYTES, "buffer_size")
            kind = _text(compression_type, "", "compression_type")
            return _source("FixedLengthRecordDatasetV2", [filename, header, record, footer, size, kind])

        made = _read(filenames, read_one_file, num_parallel_reads)
        super().__init__(made._variant_tensor, made._element)
