"""`tf.test`: test cases with sessions."""

import contextlib
import os
import tempfile
import threading
import unittest
from unittest import mock  # noqa: F401  programs use tf.test.mock

import numpy as np

from ferroflow import _ferroflow
from ferroflow.core import _text
from ferroflow.python.client import session as session_lib
from ferroflow.python.framework import ops


class TestCase(unittest.TestCase):
    """A test with a graph of its own."""

    def setUp(self):
        super().setUp()
        ops._default_graph_stack.reset()
        ops.reset_default_graph()
        ops.get_default_graph().seed = 87654321
        np.random.seed(87654321)
        self._cached = None
        self._folder = None

    def tearDown(self):
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        super().tearDown()

    def get_temp_dir(self):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self._folder

    @contextlib.contextmanager
    def session(self, graph=None, config=None, use_gpu=False, force_gpu=False):
        del use_gpu, force_gpu
        with session_lib.Session(graph=graph or ops.get_default_graph(), config=config) as sess:
            yield sess

    test_session = session

    @contextlib.contextmanager
    def cached_session(self, graph=None, config=None, use_gpu=False, force_gpu=False):
        del use_gpu, force_gpu
        if self._cached is None:
            self._cached = session_lib.Session(graph=graph or ops.get_default_graph(), config=config)
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    def evaluate(self, tensors):
        sess = ops.get_default_session()
        if sess is None:
            with self.session() as sess:
                return sess.run(tensors)
        return sess.run(tensors)

    def _value(self, value):
        return self.evaluate(value) if isinstance(value, ops.Tensor) or hasattr(value, "_as_graph_element") else np.asarray(value)

    def assertAllEqual(self, a, b, msg=None):
        np.testing.assert_array_equal(self._value(a), self._value(b), err_msg=msg or "")

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        if isinstance(a, dict):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        np.testing.assert_allclose(self._value(a), self._value(b), rtol=rtol, atol=atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, float_rtol=1e-6, float_atol=1e-6, half_rtol=1e-3, half_atol=1e-3, msg=None, **_):
        a, b = self._value(a), self._value(b)
        kinds = {a.dtype, b.dtype}
        if np.dtype(np.float32) in kinds:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if np.dtype(np.float16) in kinds:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertShapeEqual(self, np_array, tf_tensor, msg=None):
        self.assertEqual(list(np_array.shape), tf_tensor.get_shape().as_list(), msg)

    def assertDTypeEqual(self, target, expected_dtype):
        self.assertEqual(np.asarray(target).dtype, np.dtype(expected_dtype))

    def assertNear(self, f1, f2, err, msg=None):
        self.assertLessEqual(abs(f1 - f2), err, msg)

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        for a, b in zip(farray1, farray2):
            self.assertNear(float(a), float(b), err, msg)

    def assertAllInRange(self, target, lower_bound, upper_bound):
        value = self._value(target)
        self.assertTrue(np.all((value >= lower_bound) & (value <= upper_bound)))

    def _compare(self, target, bound, holds, what):
        value = self._value(target)
        self.assertTrue(np.all(holds(value, bound)), f"Not all elements are {what} {bound}: {value}")

    def assertAllGreater(self, a, comparison_target):
        self._compare(a, comparison_target, np.greater, ">")

    def assertAllGreaterEqual(self, a, comparison_target):
        self._compare(a, comparison_target, np.greater_equal, ">=")

    def assertAllLess(self, a, comparison_target):
        self._compare(a, comparison_target, np.less, "<")

    def assertAllLessEqual(self, a, comparison_target):
        self._compare(a, comparison_target, np.less_equal, "<=")

    def assertAllInSet(self, target, expected_set):
        value = self._value(target)
        others = set(value.ravel().tolist()) - set(expected_set)
        self.assertFalse(others, f"elements that are not in the set {expected_set}: {others}")

    def assertNotAllEqual(self, a, b, msg=None):
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllClose(a, b, rtol, atol)

    def assertNDArrayNear(self, ndarray1, ndarray2, err, msg=None):
        self.assertLessEqual(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)), err, msg)

    def assertProtoEquals(self, expected_message_maybe_ascii, message, msg=None):
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = type(message)()
            _text.Parse(expected_message_maybe_ascii, expected)
        self.assertEqual(str(expected), str(message), msg)

    def assertItemsEqual(self, expected_seq, actual_seq, msg=None):
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertLen(self, container, expected_len, msg=None):
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container, msg=None):
        self.assertFalse(len(container), msg or f"{container!r} is not empty")

    def assertNotEmpty(self, container, msg=None):
        self.assertTrue(len(container), msg or f"{container!r} is empty")

    def assertBetween(self, value, minv, maxv, msg=None):
        self.assertTrue(minv <= value <= maxv, msg or f"{value} is not between {minv} and {maxv}")

    def checkedThread(self, target, args=None, kwargs=None):
        return _CheckedThread(self, target, args or (), kwargs or {})

    def assertStartsWith(self, actual, expected_start, msg=None):
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    @contextlib.contextmanager
    def assertRaisesOpError(self, expected_err_re_or_predicate):
        from ferroflow.python.framework import errors_impl

        with self.assertRaisesRegex(errors_impl.OpError, expected_err_re_or_predicate):
            yield


class _CheckedThread(threading.Thread):
    """A thread whose exception fails the test that joins it."""

    def __init__(self, case, target, args, kwargs):
        super().__init__()
        self._case, self._call, self._failure = case, (target, args, kwargs), None

    def run(self):
        target, args, kwargs = self._call
        try:
            target(*args, **kwargs)
        except Exception as e:  # pylint: disable=broad-except
            self._failure = e

    def join(self, timeout=None):
        super().join(timeout)
        if self._failure is not None:
            self._case.fail("Error in checkedThread: %s" % str(self._failure))


class Benchmark:
    """The base of benchmarks; they run when a program calls them."""


def get_temp_dir():
    return os.environ.get("TEST_TMPDIR", tempfile.gettempdir())


def test_src_dir_path(relative_path):
    return os.path.join(os.getcwd(), relative_path)


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    del cuda_only
    for found in _ferroflow.gpu_descriptions():
        major, minor = found.rsplit(" ", 1)[1].split(".")
        if not min_cuda_compute_capability or (int(major), int(minor)) >= tuple(min_cuda_compute_capability):
            return True
    return False


def is_built_with_cuda():
    return True


def is_built_with_gpu_support():
    return True


def is_built_with_rocm():
    return False


def is_built_with_xla():
    return False


def assert_equal_graph_def(actual, expected, checkpoint_v2=False, hash_table_shared_name=False):
    """Raises an AssertionError unless both graphs have the same nodes, in any order."""
    del checkpoint_v2, hash_table_shared_name
    for graph_def in (actual, expected):
        if type(graph_def).__name__ != "GraphDef":
            raise TypeError("Expected tf.GraphDef, got %s" % type(graph_def).__name__)
    ours, wanted = ({n.name: n for n in g.node} for g in (actual, expected))
    for name in wanted:
        if name not in ours:
            raise AssertionError("node %s is missing" % name)
        if ours[name] != wanted[name]:
            raise AssertionError("node %s differs:\n%s\nis not\n%s" % (name, ours[name], wanted[name]))
    extra = sorted(set(ours) - set(wanted))
    if extra:
        raise AssertionError("nodes are not expected: %s" % ", ".join(extra))


class StubOutForTesting:
    """Replaces attributes until `CleanUp`."""

    def __init__(self):
        self._replaced = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.CleanUp()

    def Set(self, parent, child_name, new_child):  # noqa: N802
        self._replaced.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def UnsetAll(self):  # noqa: N802
        for parent, name, old in reversed(self._replaced):
            setattr(parent, name, old)
        self._replaced = []

    CleanUp = SmartUnsetAll = UnsetAll


def gpu_device_name():
    return "/device:GPU:0" if _ferroflow.gpu_descriptions() else ""


def main(argv=None):
    unittest.main(argv=argv)


def create_local_cluster(num_workers, num_ps, protocol="grpc", worker_config=None, ps_config=None):
    """Servers in this process: workers and parameter servers of one cluster."""
    import socket

    from ferroflow.python.training import server_lib

    sockets, ports = [], []
    for _ in range(num_workers + num_ps):
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        sockets.append(s)
        ports.append(s.getsockname()[1])
    for s in sockets:
        s.close()
    addresses = [f"localhost:{port}" for port in ports]
    cluster = {"worker": addresses[:num_workers], "ps": addresses[num_workers:]}
    cluster = {job: tasks for job, tasks in cluster.items() if tasks}
    workers = [server_lib.Server(cluster, "worker", i, protocol, worker_config) for i in range(num_workers)]
    ps = [server_lib.Server(cluster, "ps", i, protocol, ps_config) for i in range(num_ps)]
    return workers, ps
