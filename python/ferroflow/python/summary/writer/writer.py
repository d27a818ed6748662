"""FileWriter: summaries, graphs and session logs to an events file."""

import os
import time
import warnings

from ferroflow.core.framework import graph_pb2, summary_pb2
from ferroflow.core.protobuf import meta_graph_pb2
from ferroflow.core.util import event_pb2
from ferroflow.python.framework import meta_graph, ops
from ferroflow.python.platform import tf_logging as logging
from ferroflow.python.summary.writer.event_file_writer import EventFileWriter


class SummaryToEventTransformer:
    """Turns summaries, graphs and logs into events."""

    def __init__(self, event_writer, graph=None, graph_def=None):
        self.event_writer = event_writer
        self._session_run_tags = {}
        # Tags whose metadata are in the file.
        self._seen_summary_tags = set()
        if graph is not None:
            self.add_graph(graph)
            meta = meta_graph.create_meta_graph_def(graph_def=graph.as_graph_def(add_shapes=True), graph=graph)
            self.add_meta_graph(meta)
        elif graph_def is not None:
            self.add_graph(graph_def)

    def add_summary(self, summary, global_step=None):
        """Adds a `Summary`, or the bytes of one that a step returned."""
        if isinstance(summary, bytes):
            summary = summary_pb2.Summary.FromString(summary)
        for value in summary.value:
            if not value.HasField("metadata"):
                continue
            if value.tag in self._seen_summary_tags:
                value.ClearField("metadata")
            else:
                self._seen_summary_tags.add(value.tag)
        self._add_event(event_pb2.Event(summary=summary), global_step)

    def add_session_log(self, session_log, global_step=None):
        self._add_event(event_pb2.Event(session_log=session_log), global_step)

    def _add_graph_def(self, graph_def, global_step=None):
        self._add_event(event_pb2.Event(graph_def=graph_def.SerializeToString()), global_step)

    def add_graph(self, graph, global_step=None, graph_def=None):
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if isinstance(graph, ops.Graph):
            true_graph_def = graph.as_graph_def(add_shapes=True)
        elif isinstance(graph, graph_pb2.GraphDef) or isinstance(graph_def, graph_pb2.GraphDef):
            logging.warning("Passing a `GraphDef` to the SummaryWriter is deprecated. Pass a `Graph` object instead, such as `sess.graph`.")
            true_graph_def = graph if isinstance(graph, graph_pb2.GraphDef) else graph_def
        else:
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
        self._add_graph_def(true_graph_def, global_step)

    def add_meta_graph(self, meta_graph_def, global_step=None):
        if not isinstance(meta_graph_def, meta_graph_pb2.MetaGraphDef):
            raise TypeError("meta_graph_def must be type MetaGraphDef, saw type: %s" % type(meta_graph_def))
        self._add_event(event_pb2.Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata, tag, global_step=None):
        if tag in self._session_run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._session_run_tags[tag] = True
        tagged = event_pb2.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add_event(event_pb2.Event(tagged_run_metadata=tagged), global_step)

    def _add_event(self, event, step):
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)


class FileWriter(SummaryToEventTransformer):
    """Writes events to a file in a folder. A thread writes; calls return at once."""

    def __init__(self, logdir, graph=None, max_queue=10, flush_secs=120, graph_def=None, filename_suffix=None, session=None):
        if session is not None:
            raise NotImplementedError("FileWriter(session=...): Ferroflow writes events from the client only; leave out `session`")
        self._closed = False
        super().__init__(EventFileWriter(logdir, max_queue, flush_secs, filename_suffix), graph, graph_def)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def _warn_if_event_writer_is_closed(self):
        if self._closed:
            warnings.warn("Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is explicitly reopened.")

    def _add_event(self, event, step):
        self._warn_if_event_writer_is_closed()
        super()._add_event(event, step)

    def add_event(self, event):
        self._warn_if_event_writer_is_closed()
        self.event_writer.add_event(event)

    def flush(self):
        self._warn_if_event_writer_is_closed()
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()
        self._closed = True

    def reopen(self):
        self.event_writer.reopen()
        self._closed = False


class SummaryWriter(FileWriter):
    """The name of `FileWriter` in the first releases of TensorFlow."""

    def __init__(self, logdir, graph=None, max_queue=10, flush_secs=120, graph_def=None):
        super().__init__(os.fspath(logdir), graph, max_queue, flush_secs, graph_def)
