"""Readers: operations that take file names from a queue and read records."""

from ferroflow.python.framework import dtypes, ops


class ReaderBase:
    """What all readers can do."""

    def __init__(self, reader_ref, supports_serialize=False):
        self._reader_ref, self._supports_serialize = reader_ref, supports_serialize

    @property
    def reader_ref(self):
        return self._reader_ref

    @property
    def supports_serialize(self):
        return self._supports_serialize

    def _queue(self, queue):
        return queue if isinstance(queue, ops.Tensor) else queue.queue_ref

    def read(self, queue, name=None):
        """The next record: its key and its value."""
        return tuple(ops.apply_op("ReaderReadV2", name, [self._reader_ref, self._queue(queue)]).outputs)

    def read_up_to(self, queue, num_records, name=None):
        number = ops.convert_to_tensor(num_records, dtype=dtypes.int64)
        return tuple(ops.apply_op("ReaderReadUpToV2", name, [self._reader_ref, self._queue(queue), number]).outputs)

    def num_records_produced(self, name=None):
        return ops.apply_op("ReaderNumRecordsProducedV2", name, [self._reader_ref]).outputs[0]

    def num_work_units_completed(self, name=None):
        return ops.apply_op("ReaderNumWorkUnitsCompletedV2", name, [self._reader_ref]).outputs[0]

    def serialize_state(self, name=None):
        return ops.apply_op("ReaderSerializeStateV2", name, [self._reader_ref]).outputs[0]

    def restore_state(self, state, name=None):
        return ops.apply_op("ReaderRestoreStateV2", name, [self._reader_ref, state])

    def reset(self, name=None):
        return ops.apply_op("ReaderResetV2", name, [self._reader_ref])


class WholeFileReader(ReaderBase):
    def __init__(self, name=None):
        super().__init__(ops.apply_op("WholeFileReaderV2", name, []).outputs[0], supports_serialize=True)


class TextLineReader(ReaderBase):
    def __init__(self, skip_header_lines=None, name=None):
        super().__init__(ops.apply_op("TextLineReaderV2", name, [], {"skip_header_lines": skip_header_lines or 0}).outputs[0])


class FixedLengthRecordReader(ReaderBase):
    def __init__(self, record_bytes, header_bytes=None, footer_bytes=None, hop_bytes=None, name=None, encoding=None):
        attrs = {
            "record_bytes": record_bytes,
            "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
            "hop_bytes": hop_bytes or 0,
            "encoding": encoding or "",
        }
        super().__init__(ops.apply_op("FixedLengthRecordReaderV2", name, [], attrs).outputs[0])


class TFRecordReader(ReaderBase):
    def __init__(self, name=None, options=None):
        from ferroflow.python.lib.io import tf_record

        kind = tf_record.TFRecordOptions.get_compression_type_string(options)
        super().__init__(ops.apply_op("TFRecordReaderV2", name, [], {"compression_type": kind}).outputs[0])


class IdentityReader(ReaderBase):
    def __init__(self, name=None):
        super().__init__(ops.apply_op("IdentityReaderV2", name, []).outputs[0], supports_serialize=True)


def read_file(filename, name=None):
    return ops.apply_op("ReadFile", name, [filename]).outputs[0]


def write_file(filename, contents, name=None):
    return ops.apply_op("WriteFile", name, [filename, contents])


def matching_files(pattern, name=None):
    return ops.apply_op("MatchingFiles", name, [pattern]).outputs[0]
