"""QueueRunner: threads that fill a queue."""

import threading
import weakref

from ferroflow.core.protobuf import queue_runner_pb2
from ferroflow.python.client import session
from ferroflow.python.framework import errors, ops
from ferroflow.python.platform import tf_logging as logging


class QueueRunner:
    """Runs each enqueue operation in a thread until it fails or the coordinator stops."""

    def __init__(
        self,
        queue=None,
        enqueue_ops=None,
        close_op=None,
        cancel_op=None,
        queue_closed_exception_types=None,
        queue_runner_def=None,
        import_scope=None,
    ):
        if queue_runner_def:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            self._init_from_args(queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types)
        self._lock = threading.Lock()
        # Sessions with the number of their threads that still run.
        self._runs_per_session = weakref.WeakKeyDictionary()
        self._exceptions_raised = []

    def _init_from_args(self, queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types):
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._queue, self._enqueue_ops = queue, enqueue_ops
        self._close_op, self._cancel_op = close_op, cancel_op
        if queue_closed_exception_types is not None:
            good = isinstance(queue_closed_exception_types, tuple) and queue_closed_exception_types
            if not good or not all(issubclass(t, errors.OpError) for t in queue_closed_exception_types):
                raise TypeError(f"queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: {queue_closed_exception_types}")
            self._queue_closed_exception_types = queue_closed_exception_types
        else:
            self._queue_closed_exception_types = (errors.OutOfRangeError,)
        # Made here, because the graph may be final when the threads start.
        if self._close_op is None:
            self._close_op = self._queue.close()
        if self._cancel_op is None:
            self._cancel_op = self._queue.close(cancel_pending_enqueues=True)

    def _init_from_proto(self, queue_runner_def, import_scope=None):
        graph = ops.get_default_graph()

        def element(name):
            return graph.as_graph_element(ops.prepend_name_scope(name, import_scope))

        self._queue = element(queue_runner_def.queue_name)
        self._enqueue_ops = [element(name) for name in queue_runner_def.enqueue_op_name]
        self._close_op = element(queue_runner_def.close_op_name)
        self._cancel_op = element(queue_runner_def.cancel_op_name)
        self._queue_closed_exception_types = tuple(
            errors.exception_type_from_error_code(code) for code in queue_runner_def.queue_closed_exception_types
        ) or (errors.OutOfRangeError,)

    @property
    def queue(self):
        return self._queue

    @property
    def enqueue_ops(self):
        return self._enqueue_ops

    @property
    def close_op(self):
        return self._close_op

    @property
    def cancel_op(self):
        return self._cancel_op

    @property
    def queue_closed_exception_types(self):
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self):
        """Errors of threads that ran without a coordinator."""
        return self._exceptions_raised

    @property
    def name(self):
        return self._queue.name

    def _run(self, sess, enqueue_op, coord=None):
        decremented = False
        try:
            enqueue = sess.make_callable(enqueue_op)
            while True:
                if coord and coord.should_stop():
                    break
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    # The input is at its end. The last thread closes the queue.
                    with self._lock:
                        self._runs_per_session[sess] -= 1
                        decremented = True
                        if self._runs_per_session[sess] == 0:
                            try:
                                sess.run(self._close_op)
                            except Exception as e:  # pylint: disable=broad-except
                                logging.vlog(1, "Ignored exception: %s", str(e))
                        return
        except Exception as e:  # pylint: disable=broad-except
            if coord and coord.joined and isinstance(e, errors.CancelledError):
                # The session was closed after `join` gave this thread up.
                pass
            elif coord:
                coord.request_stop(e)
            else:
                logging.error("Exception in QueueRunner: %s", str(e))
                with self._lock:
                    self._exceptions_raised.append(e)
                raise
        finally:
            if not decremented:
                with self._lock:
                    self._runs_per_session[sess] -= 1

    def _close_on_stop(self, sess, cancel_op, coord):
        """Cancels what waits on the queue when the coordinator stops."""
        coord.wait_for_stop()
        try:
            sess.run(cancel_op)
        except Exception as e:  # pylint: disable=broad-except
            logging.vlog(1, "Ignored exception: %s", str(e))

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        """The threads for a session; none if those of an earlier call still run."""
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord:
            threads.append(
                threading.Thread(
                    target=self._close_on_stop, args=(sess, self._cancel_op, coord), name=f"QueueRunnerThread-{self.name}-close_on_stop"
                )
            )
        for t in threads:
            if coord:
                coord.register_thread(t)
            if daemon:
                t.daemon = True
            if start:
                t.start()
        return threads

    def to_proto(self, export_scope=None):
        if export_scope is not None and not self._queue.name.startswith(export_scope):
            return None
        proto = queue_runner_pb2.QueueRunnerDef()
        proto.queue_name = ops.strip_name_scope(self._queue.name, export_scope)
        for op in self._enqueue_ops:
            proto.enqueue_op_name.append(ops.strip_name_scope(op.name, export_scope))
        proto.close_op_name = ops.strip_name_scope(self._close_op.name, export_scope)
        proto.cancel_op_name = ops.strip_name_scope(self._cancel_op.name, export_scope)
        proto.queue_closed_exception_types.extend(
            errors.error_code_from_exception_type(t) for t in self._queue_closed_exception_types
        )
        return proto

    @staticmethod
    def from_proto(queue_runner_def, import_scope=None):
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def add_queue_runner(qr, collection=ops.GraphKeys.QUEUE_RUNNERS):
    ops.add_to_collection(collection, qr)


def start_queue_runners(sess=None, coord=None, daemon=True, start=True, collection=ops.GraphKeys.QUEUE_RUNNERS):
    """Starts the queue runners of a graph; returns their threads."""
    if sess is None:
        sess = ops.get_default_session()
        if not sess:
            raise ValueError("Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an explicit session to tf.start_queue_runners(sess=sess)")
    if not isinstance(sess, session.SessionInterface):
        # Monitored sessions are wrappers of sessions.
        if not hasattr(sess, "run") or not hasattr(sess, "graph"):
            raise TypeError(f"sess must be a `tf.Session` object. Given class: {sess.__class__}")
    queue_runners = ops.get_collection(collection) if sess.graph is ops.get_default_graph() else sess.graph.get_collection(collection)
    if not queue_runners:
        logging.warning("`tf.train.start_queue_runners()` was called when no queue runners were defined. You can safely remove the call to this deprecated function.")
    with sess.graph.as_default():
        threads = []
        for qr in ops.get_collection(collection):
            threads.extend(qr.create_threads(sess, coord=coord, daemon=daemon, start=start))
    return threads


ops.register_proto_function(
    ops.GraphKeys.QUEUE_RUNNERS,
    proto_type=queue_runner_pb2.QueueRunnerDef,
    to_proto=QueueRunner.to_proto,
    from_proto=QueueRunner.from_proto,
)
