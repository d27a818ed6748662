"""Writes a graph to a file."""

import os

from ferroflow.core import _text as text_format
from ferroflow.python.framework import ops
from ferroflow.python.lib.io import file_io


def write_graph(graph_or_graph_def, logdir, name, as_text=True):
    """Writes a graph as text or binary; returns the path."""
    graph_def = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, ops.Graph) else graph_or_graph_def
    logdir = os.fspath(logdir)
    file_io.recursive_create_dir(logdir)
    path = os.path.join(logdir, name)
    data = text_format.MessageToString(graph_def) if as_text else graph_def.SerializeToString()
    file_io.atomic_write_string_to_file(path, data)
    return path
