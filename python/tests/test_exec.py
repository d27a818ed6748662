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
            return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=120)

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


    def test_ops_without_a_kernel_are_listed_once_before_the_first_step(self):
        program = """
            import tensorflow as tf
            from tensorflow.python.framework import function
            tf.raw_ops.Fact()

            @function.Defun(tf.float32)
            def body(x):
                return tf.raw_ops.BatchFFT(input=tf.cast(x, tf.complex64))

            later = body(tf.ones([2, 2]))
            server = tf.train.Server.create_local_server()
            for target in ["", server.target]:
                with tf.Session(target) as sess:
                    print(sess.run(tf.constant(1)), flush=True)
            tf.raw_ops.CrossReplicaSum(input=tf.constant([1.0]), group_assignment=[[0]])
            with tf.Session() as sess:
                print(sess.run(tf.constant(2)))
            """
        found = self.run_program(program)
        self.assertEqual(found.stdout, "1\n1\n2\n")
        self.assertEqual(found.stderr.count("ops that Ferroflow does not run"), 2)
        for op, node in (("Fact", "Fact"), ("BatchFFT", "BatchFFT"), ("CrossReplicaSum", "CrossReplicaSum")):
            self.assertEqual(found.stderr.count(f"\n  {op}, for example node '{node}'"), 1, found.stderr)


class RunTest(unittest.TestCase):
    """Programs that the command starts: alone, and as tasks of a cluster."""

    def run_program(self, text, *words):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as f:
                f.write(textwrap.dedent(text))
            command = [sys.executable, "-m", "ferroflow", "run", *words, "--", sys.executable, "program.py"]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=120)

    def test_a_program_alone_needs_no_flag(self):
        found = self.run_program(
            """
            import os, sys
            import tensorflow as tf
            if hasattr(tf, "compat"):
                tf = tf.compat.v1
                tf.disable_v2_behavior()
            tf.raw_ops.CrossReplicaSum(input=tf.constant([1.0]), group_assignment=[[0]])
            v = tf.Variable(3.0)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                tf.train.Saver().save(sess, "./model.ckpt")
                print(sess.run(v * 2), os.path.exists("model.ckpt.index"), flush=True)
            with tf.Session() as sess:
                try:
                    sess.run(v)
                except tf.errors.FailedPreconditionError:
                    sys.exit(7)
            """
        )
        self.assertEqual(found.returncode, 7, found.stderr)
        self.assertEqual(found.stdout, "6.0 True\n")
        self.assertEqual(found.stderr.count("CrossReplicaSum, for example node 'CrossReplicaSum'"), 1, found.stderr)

    def test_a_program_alone_may_be_a_task_of_a_cluster_of_its_own(self):
        found = self.run_program(
            """
            import json, os, socket
            import tensorflow as tf
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                address = "localhost:%d" % s.getsockname()[1]
            os.environ["TF_CONFIG"] = json.dumps(
                {"cluster": {"chief": [address]}, "task": {"type": "chief", "index": 0}})
            server = tf.train.Server({"chief": [address]}, job_name="chief", task_index=0)
            assert server.target == "grpc://" + address, server.target
            with tf.Session(server.target) as sess:
                print([d.name for d in sess.list_devices()][:1], flush=True)
            os._exit(0)
            """,
            "--client",
            "ferroflow",
        )
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("/job:chief/replica:0/task:0/device:CPU:0", found.stdout)

    PS_PROGRAM = """
        import time
        import tensorflow as tf
        if hasattr(tf.compat, "v1"):
            tf = tf.compat.v1
        flags = tf.app.flags
        flags.DEFINE_string("job_name", "", "")
        flags.DEFINE_integer("task_index", -1, "")
        flags.DEFINE_string("ps_hosts", "192.0.2.1:1", "")
        flags.DEFINE_string("worker_hosts", "192.0.2.2:1,192.0.2.3:1", "")
        flags.DEFINE_integer("steps", 20, "")
        FLAGS = flags.FLAGS
        cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            step = tf.train.get_or_create_global_step()
            add = tf.assign_add(step, 1)
        with tf.train.MonitoredTrainingSession(server.target, is_chief=FLAGS.task_index == 0) as sess:
            for _ in range(FLAGS.steps):
                last = sess.run(add)
            # A new session contacts all tasks, so none leaves before all have done their steps.
            while sess.run(step) < FLAGS.steps * cluster.num_tasks("worker"):
                time.sleep(0.01)
        print("task %d of %d ended at %d" % (FLAGS.task_index, cluster.num_tasks("worker"), last > 0), flush=True)
        import os
        os._exit(0)
    """

    @unittest.skipUnless(
        os.access(os.path.join(os.path.dirname(sys.executable), "ferroflow"), os.X_OK),
        "the command `ferroflow` is not installed beside this Python",
    )
    def test_tasks_get_their_flags_and_their_servers(self):
        for serve in ("ps", "all"):
            with self.subTest(serve=serve):
                found = self.run_program(self.PS_PROGRAM, "--ps", "1", "--workers", "2", "--serve", serve)
                self.assertEqual(found.returncode, 0, found.stderr)
                for task in (0, 1):
                    self.assertIn(f"[worker {task}] task {task} of 2 ended at 1", found.stdout)


class ExitTest(unittest.TestCase):
    def test_a_thread_that_runs_a_step_does_not_disturb_the_end(self):
        program = """
            import threading, time
            import ferroflow.compat.v1 as tf
            queue = tf.FIFOQueue(1, tf.float32)
            get = queue.dequeue()
            sess = tf.Session()
            for _ in range(3):
                threading.Thread(target=lambda: sess.run(get), daemon=True).start()
            print(sess.run(queue.size()), flush=True)
        """
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        command = [sys.executable, "-c", textwrap.dedent(program)]
        for _ in range(3):
            found = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
            self.assertEqual((found.returncode, found.stdout, found.stderr), (0, "0\n", ""))


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
        # Jobs in the background of a shell start with this signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
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

    def test_exceptions_of_functions_have_the_codes_of_tensorflow(self):
        # As TensorFlow 2.15.1 answers.
        codes = {
            ValueError: tf.errors.InvalidArgumentError,
            TypeError: tf.errors.InvalidArgumentError,
            UnicodeError: tf.errors.InvalidArgumentError,
            StopIteration: tf.errors.OutOfRangeError,
            MemoryError: tf.errors.ResourceExhaustedError,
            NotImplementedError: tf.errors.UnimplementedError,
        }
        unknown = (RuntimeError, KeyError, ZeroDivisionError, OSError, AssertionError, SystemExit, GeneratorExit, KeyboardInterrupt)
        codes.update(dict.fromkeys(unknown, tf.errors.UnknownError))
        for kind in (tf.py_func, tf.numpy_function, tf.py_function):
            for raised, expected in codes.items():
                with self.subTest(kind=kind.__name__, raised=raised.__name__):

                    def fail(_, raised=raised):
                        raise raised("no good")

                    y = kind(fail, [tf.constant(1.0)], tf.float32)
                    with tf.Session() as sess, self.assertRaises(tf.errors.OpError) as failed:
                        sess.run(y)
                    self.assertIs(type(failed.exception), expected)

    def test_functions_return_as_many_values_as_they_have_types(self):
        one = np.float32(1)
        # The function's result, its types, and whether TensorFlow 2.15.1 refuses it in a py_func
        # and in a py_function.
        cases = [
            ((one, one), [tf.float32], True, False),
            ((one, one), tf.float32, True, False),
            ([one], tf.float32, False, False),
            (one, [tf.float32, tf.float32], True, True),
            ([one] * 3, [tf.float32, tf.float32], True, False),
            ([[one, one]], tf.float32, False, False),
            (None, [], False, False),
            (None, tf.float32, True, True),
            (one, [], True, True),
        ]
        for result, types, *refused in cases:
            for kind, is_refused in zip((tf.py_func, tf.py_function), refused):
                with self.subTest(kind=kind.__name__, result=result, types=types):
                    y = kind(lambda _, result=result: result, [tf.constant(1.0)], types)
                    with tf.Session() as sess:
                        if not is_refused:
                            sess.run(y)
                            continue
                        with self.assertRaises(tf.errors.InvalidArgumentError):
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
        self.assertEqual((str(array), repr(array[1]), float(array[1]), array[0] < 2), ("[1 -2.5 3.14062]", "-2.5", -2.5, True))
        self.assertEqual(array.max(), kind(3.140625))
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
