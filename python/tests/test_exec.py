"""Unchanged TensorFlow programs, servers, functions and types that numpy lacks."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.python.framework import function, ops


class ExecTest(unittest.TestCase):
    def run_program(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write(textwrap.dedent(text))
            command = [sys.executable, "-m", "ferroflow", "exec", path, *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    def test_a_program_that_imports_tensorflow_runs(self):
        found = self.run_program(
            """
            import tensorflow as tf
            import tensorflow.compat.v1 as tf1
            from tensorflow.core.protobuf import config_pb2
            from tensorflow.python.client import timeline

            tf.app.flags.DEFINE_integer("n", 1, "a number")

            def main(_):
                with tf.Session(config=config_pb2.ConfigProto()) as sess:
                    print(sess.run(tf.constant(2) * tf.app.flags.FLAGS.n), tf is tf1)

            if __name__ == "__main__":
                tf.app.run()
            """,
            "--n=21",
        )
        self.assertEqual(found.stdout, "42 True\n")


class ServerTest(unittest.TestCase):
    def test_a_session_runs_on_a_server_in_the_process(self):
        with tf.Graph().as_default():
            server = tf.train.Server.create_local_server()
            x = tf.constant([1.0, 2.0])
            doubled = tf.py_func(lambda a: a * 2, [x], tf.float32)
            with tf.Session(server.target) as sess:
                np.testing.assert_array_equal(sess.run(doubled), [2, 4])
                self.assertEqual([d.device_type for d in sess.list_devices()], ["CPU"])

    def test_an_unreachable_server_is_an_error_of_the_first_step(self):
        with tf.Graph().as_default():
            x = tf.constant(1.0)
            config = tf.ConfigProto(operation_timeout_in_ms=300)
            with tf.Session("grpc://127.0.0.1:1", config=config) as sess:
                with self.assertRaises(tf.errors.OpError):
                    sess.run(x)


class StepTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_an_interrupt_ends_a_step_that_waits(self):
        queue = ops.apply_op("FIFOQueueV2", None, [], {"component_types": [tf.float32]}).outputs[0]
        get = ops.apply_op("QueueDequeueV2", None, [queue], {"component_types": [tf.float32]})
        with tf.Session() as sess:
            timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                sess.run(get.outputs[0])
            timer.join()

    def test_a_step_ends_at_its_time_limit(self):
        queue = ops.apply_op("FIFOQueueV2", None, [], {"component_types": [tf.float32]}).outputs[0]
        get = ops.apply_op("QueueDequeueV2", None, [queue], {"component_types": [tf.float32]})
        with tf.Session() as sess:
            with self.assertRaises(tf.errors.DeadlineExceededError):
                sess.run(get.outputs[0], options=tf.RunOptions(timeout_in_ms=100))

    def test_a_session_of_the_parent_is_refused_after_a_fork(self):
        x = tf.constant(1.0)
        with tf.Session() as sess:
            sess.run(x)
            child = os.fork()
            if child == 0:
                try:
                    sess.run(x)
                    os._exit(1)
                except tf.errors.FailedPreconditionError:
                    os._exit(7)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)

    def test_a_function_that_fails_is_an_error_of_the_step(self):
        def fail(_):
            raise ValueError("no good")

        y = tf.py_func(fail, [tf.constant(1.0)], tf.float32)
        with tf.Session() as sess:
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "no good"):
                sess.run(y)

    def test_large_arrays_keep_their_values(self):
        x = ops.apply_op("Placeholder", "x", [], {"dtype": tf.float32, "shape": [None]}).outputs[0]
        y = ops.apply_op("Neg", None, [x]).outputs[0]
        data = np.arange(1 << 20, dtype=np.float32)
        with tf.Session() as sess:
            found = sess.run(y, {x: data})
            data[:] = 0
            self.assertEqual(found[7], -7.0)


class TypesTest(unittest.TestCase):
    def test_bfloat16_arrays(self):
        kind = tf.bfloat16.as_numpy_dtype
        array = np.array([1.0, -2.5, 3.14159], np.float32).astype(kind)
        self.assertEqual(array.dtype, np.dtype(kind))
        np.testing.assert_array_equal(array.astype(np.float32), np.float32([1.0, -2.5, 3.140625]))
        again = pickle.loads(pickle.dumps(array))
        np.testing.assert_array_equal(again.astype(np.float64), array.astype(np.float64))
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.constant(array)
            self.assertEqual(x.dtype, tf.bfloat16)
            np.testing.assert_array_equal(sess.run(x).astype(np.float32), array.astype(np.float32))


class FunctionTest(unittest.TestCase):
    def test_a_function_of_the_graph_is_called(self):
        @function.Defun(tf.float32, tf.float32)
        def affine(x, k):
            return x * k + 1.0, tf.negative(x)

        with tf.Graph().as_default(), tf.Session() as sess:
            a, b = affine(tf.constant(3.0), 2.0)
            self.assertEqual(a.op.type, affine.name)
            self.assertEqual(tuple(sess.run([a, b])), (7.0, -3.0))


if __name__ == "__main__":
    unittest.main()
