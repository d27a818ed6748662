"""Record files: writing and reading them in Python."""

import gzip
import os
import struct
import zlib

from ferroflow.python.framework import errors
from ferroflow.python.lib.io.crc32c import masked_crc32c


class TFRecordCompressionType:
    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a record file is compressed."""

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type=None,
        flush_mode=None,
        input_buffer_size=None,
        output_buffer_size=None,
        window_bits=None,
        compression_level=None,
        compression_method=None,
        mem_level=None,
        compression_strategy=None,
    ):
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.compression_level = compression_level
        self.flush_mode, self.window_bits, self.mem_level = flush_mode, window_bits, mem_level
        self.input_buffer_size, self.output_buffer_size = input_buffer_size, output_buffer_size
        self.compression_method, self.compression_strategy = compression_method, compression_strategy

    @classmethod
    def get_compression_type_string(cls, options):
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, int):
            return cls.compression_type_map[options]
        if options in ("ZLIB", "GZIP", ""):
            return options
        raise ValueError(f'Not a valid compression_type: "{options}"')


class TFRecordWriter:
    """Writes records to a file."""

    def __init__(self, path, options=None):
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        kind = TFRecordOptions.get_compression_type_string(options)
        level = -1 if options.compression_level is None else options.compression_level
        try:
            self._file = open(os.fspath(path), "wb")  # noqa: SIM115
        except OSError as e:
            raise errors.NotFoundError(None, None, f"{path}; {os.strerror(e.errno)}") from None
        self._zip = None
        if kind:
            self._zip = zlib.compressobj(level, zlib.DEFLATED, 31 if kind == "GZIP" else 15)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def write(self, record):
        if self._file is None:
            raise errors.FailedPreconditionError(None, None, "Writer is closed.")
        if isinstance(record, str):
            record = record.encode("utf-8")
        data = frame(bytes(record))
        self._file.write(self._zip.compress(data) if self._zip else data)

    def flush(self):
        if self._zip:
            self._file.write(self._zip.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self):
        if self._file is None:
            return
        if self._zip:
            self._file.write(self._zip.flush())
        self._file.close()
        self._file = None


def frame(record):
    """A record with its length and the checksums around it."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc32c(length)) + record + struct.pack("<I", masked_crc32c(record))


def read_record(file):
    """The next record of an open file, or None at its end."""
    head = file.read(12)
    if not head:
        return None
    if len(head) < 12:
        raise errors.DataLossError(None, None, "truncated record")
    if struct.unpack("<I", head[8:])[0] != masked_crc32c(head[:8]):
        raise errors.DataLossError(None, None, "corrupted record: the checksum of its length is wrong")
    size = struct.unpack("<Q", head[:8])[0]
    body = file.read(size + 4)
    if len(body) < size + 4:
        raise errors.DataLossError(None, None, "truncated record")
    if struct.unpack("<I", body[size:])[0] != masked_crc32c(body[:size]):
        raise errors.DataLossError(None, None, "corrupted record: the checksum of its data is wrong")
    return body[:size]


def _open(path, kind):
    try:
        if kind == "GZIP":
            return gzip.open(path, "rb")
        file = open(path, "rb")  # noqa: SIM115
    except OSError as e:
        raise errors.NotFoundError(None, None, f"{path}; {os.strerror(e.errno)}") from None
    if kind == "ZLIB":
        import io

        with file:
            return io.BytesIO(zlib.decompress(file.read()))
    return file


def tf_record_iterator(path, options=None):
    """The records of a file, as bytes."""
    with _open(os.fspath(path), TFRecordOptions.get_compression_type_string(options)) as file:
        while (record := read_record(file)) is not None:
            yield record


def tf_record_random_reader(path):
    return TFRecordRandomReader(path)


class TFRecordRandomReader:
    """Reads records at offsets of a file."""

    def __init__(self, path):
        self._file = _open(os.fspath(path), "")

    def read(self, offset):
        """The record at an offset, and the offset of the next one."""
        self._file.seek(offset)
        record = read_record(self._file)
        if record is None:
            raise IndexError(f"Out of range at reading offset {offset}")
        return record, self._file.tell()

    def close(self):
        self._file.close()
