"""Reads events files."""

from ferroflow.core.util import event_pb2
from ferroflow.python.lib.io import tf_record


def summary_iterator(path):
    """The events of a file."""
    for record in tf_record.tf_record_iterator(path):
        yield event_pb2.Event.FromString(record)
