"""Mistakes in programs: each raises an exception of TensorFlow's class."""

import os
import signal
import sys
import threading
import unittest

import numpy as np

import ferroflow.compat.v1 as tf


def _session_run(make):
    """Builds a fetch and feeds, and runs them."""
    tf.constant(0, name="there")
    fetch, feeds = make()
    with tf.Session() as sess:
        sess.run(fetch, feeds)


def _other_graph():
    with tf.Graph().as_default():
        return tf.constant(1)


def _closed():
    x = tf.constant(1)
    sess = tf.Session()
    sess.close()
    sess.run(x)


def _unfeedable():
    x = tf.placeholder(tf.float32)
    tf.get_default_graph().prevent_feeding(x)
    return x * 2.0, {x: 1.0}


def _fed(dtype, shape, value):
    def make():
        x = tf.placeholder(dtype, shape)
        return x, {x: value}
    return make


def _reused(shape):
    tf.get_variable("a", [1])
    with tf.variable_scope("", reuse=True):
        tf.get_variable("a", shape)


CASES = {
    "wrong dtypes": (TypeError, lambda: tf.constant(1) + tf.constant(1.0)),
    "wrong dtypes of a product": (TypeError, lambda: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.float64))),
    "wrong shapes": (ValueError, lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))),
    "shapes that do not broadcast": (ValueError, lambda: tf.ones([2]) + tf.ones([3])),
    "a name with a space": (ValueError, lambda: tf.constant(1, name="a b")),
    "a name with an underscore in front": (ValueError, lambda: tf.placeholder(tf.float32, name="_x")),
    "lists of unequal length": (ValueError, lambda: tf.constant([[1, 2], [3]])),
    "a text as a number": (TypeError, lambda: tf.constant("a", dtype=tf.float32)),
    "a feed of an unfeedable tensor": (ValueError, lambda: _session_run(_unfeedable)),
    "a feed of a wrong shape": (ValueError, lambda: _session_run(_fed(tf.float32, [2], [1, 2, 3]))),
    "a feed of a text": (ValueError, lambda: _session_run(_fed(tf.float32, None, "a"))),
    "a missing feed": (tf.errors.InvalidArgumentError, lambda: _session_run(lambda: (tf.placeholder(tf.float32) + 1, None))),
    "a feed by a missing name": (TypeError, lambda: _session_run(lambda: (tf.constant(1), {"nope:0": 1}))),
    "a fetch of None": (TypeError, lambda: _session_run(lambda: (None, None))),
    "a fetch by a missing name": (ValueError, lambda: _session_run(lambda: ("nope", None))),
    "a fetch of another graph": (ValueError, lambda: _session_run(lambda: (_other_graph(), None))),
    "a closed session": (RuntimeError, _closed),
    "a finalized graph": (RuntimeError, lambda: (tf.get_default_graph().finalize(), tf.constant(1))),
    "a missing tensor": (KeyError, lambda: tf.get_default_graph().get_tensor_by_name("x:0")),
    "a missing operation": (KeyError, lambda: tf.get_default_graph().get_operation_by_name("x")),
    "a variable twice": (ValueError, lambda: (tf.get_variable("a", [1]), tf.get_variable("a", [1]))),
    "a reused variable of another shape": (ValueError, lambda: _reused([2])),
    "a variable without a shape": (ValueError, lambda: tf.get_variable("a")),
    "a variable of a partial shape": (ValueError, lambda: tf.get_variable("a", [None, 2])),
    "an uninitialized variable": (tf.errors.FailedPreconditionError, lambda: _session_run(lambda: (tf.Variable(1.0), None))),
    "nothing to minimize": (ValueError, lambda: tf.train.GradientDescentOptimizer(1.0).minimize(tf.constant(1.0))),
    "a tensor as a bool": (TypeError, lambda: bool(tf.constant(True))),
    "a session that is missing": (ValueError, lambda: tf.constant(1).eval()),
    "branches of other types": (ValueError, lambda: tf.cond(tf.constant(True), lambda: 1, lambda: 1.0)),
    "a loop variable that grows": (ValueError, lambda: tf.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)), [0, tf.ones([2])])),
    "an index that is too large": (tf.errors.InvalidArgumentError, lambda: _session_run(lambda: (
        tf.gather(tf.placeholder_with_default([1.0], [None]), [7]), None))),
    "a server of a missing job": (tf.errors.InternalError, lambda: tf.train.Server(
        {"a": ["localhost:1"]}, job_name="b", task_index=0)),
    "a name that does not exist": (AttributeError, lambda: tf.no_such_name),
    "an unknown dtype": (TypeError, lambda: tf.as_dtype("foo")),
}

# Mistakes whose messages have these parts, as TensorFlow's have.
MESSAGES = {
    "branches of other structures": ("type=list str=[1, 2]", lambda: tf.cond(tf.placeholder(tf.bool, []), lambda: [1, 2], lambda: 1)),
    "constants that are not equal": ("Condition x == y did not hold element-wise:", lambda: tf.assert_equal(1, 2)),
    "a wrong rank": ("^Tensor ones:0 must have rank 2.  Received rank 1, shape (2,)", lambda: tf.assert_rank(tf.ones([2]), 2)),
    "a text among numbers": ("could not convert string to float: 'a'", lambda: _session_run(_fed(tf.float32, None, [["a", "b"]]))),
    "an unfit constant": ("Too many elements provided. Takes at most 2, but got 3.", lambda: tf.get_variable(
        "a", [2], initializer=tf.constant_initializer([1, 2, 3]))),
    "an input of too low a rank": ("expected min_ndim=4, found ndim=2", lambda: tf.layers.conv2d(tf.ones([2, 3]), 3, 3)),
    "an unknown padding": ("The `padding` argument must be", lambda: tf.layers.conv2d(tf.ones([1, 4, 4, 1]), 3, 3, padding="x")),
    "strides with dilations": ("`strides > 1` not supported", lambda: tf.layers.conv2d(
        tf.ones([1, 4, 4, 1]), 3, 3, strides=2, dilation_rate=2)),
    "whole numbers in a dense layer": ("can only be built with a floating-point dtype", lambda: tf.layers.dense(tf.constant([[1, 2]]), 2)),
    "a pooling without strides": ("max_pooling2d() missing 1 required positional argument", lambda: tf.layers.max_pooling2d(
        tf.ones([1, 4, 4, 1]), 2)),
    "a crop that is too large": ("height must be >= target + offset.", lambda: tf.image.crop_to_bounding_box(
        tf.ones([2, 2, 3]), 0, 0, 9, 1)),
    "an image of one dimension": ("must be at least three-dimensional", lambda: tf.image.flip_left_right(tf.ones([3]))),
    "a missing element of a graph": ("Requested return tensor 'b:0' not found in graph def", lambda: tf.import_graph_def(
        tf.GraphDef(), return_elements=["b:0"])),
    "a tensor of another graph": ("must be from the same graph as", lambda: _other_graph() + tf.constant(1)),
    "a session that is missing": ("Cannot evaluate tensor using `eval()`: No default session", lambda: tf.constant(1).eval()),
}


class ErrorCaseTest(unittest.TestCase):
    def test_each_mistake_has_its_exception(self):
        for name, (kind, make) in CASES.items():
            with self.subTest(name), tf.Graph().as_default():
                with self.assertRaises(kind):
                    make()

    def test_messages_have_the_parts_that_tensorflows_have(self):
        for name, (part, make) in MESSAGES.items():
            with self.subTest(name), tf.Graph().as_default():
                with self.assertRaises(Exception) as caught:
                    make()
                text = str(caught.exception)
                self.assertTrue(text.startswith(part[1:]) if part[0] == "^" else part in text, text)

    def test_errors_show_the_line_of_the_program(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, name="input")
            for fetch in (x, tf.check_numerics(tf.log(tf.constant(-1.0)), "log")):
                with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                    sess.run(fetch)
                (file, _, function, text), = fetch.op.traceback[-1:]
                self.assertEqual((file, function), (__file__, "test_errors_show_the_line_of_the_program"))
                self.assertIn("tf.", text)
                self.assertIn(text, str(caught.exception))

    def test_threads_get_their_own_errors(self):
        x = tf.placeholder(tf.int32, [])
        y = tf.floordiv(100, x, name="divide")
        outcomes = {}

        def work(i):
            try:
                outcomes[i] = sess.run(y, {x: i})
            except tf.errors.InvalidArgumentError as e:
                outcomes[i] = e.op.name

        with tf.Session() as sess:
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        self.assertEqual(outcomes, {0: "divide", **{i: 100 // i for i in range(1, 8)}})

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_the_exception_of_a_signal_handler_is_not_lost(self):
        # Python runs handlers when a string is formatted, too.
        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, stop))
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            for i in range(50):
                tf.no_op(name=f"node_{i}")
            operations = graph.get_operations()
            sess.run(operations)

            def stopped(seconds):
                try:
                    signal.setitimer(signal.ITIMER_REAL, seconds)
                    for _ in range(2000):
                        sess.run(operations)
                except Stop:
                    return True
                return False

            # Another exception than Stop fails the test. A few are lost where Python ignores them.
            count = sum(stopped(1e-4 + i * 5e-6) for i in range(200))
        self.assertGreater(count, 150)

    def test_a_forked_process_must_open_its_own_session(self):
        x = tf.constant(np.float32(2))
        with tf.Session() as sess:
            sess.run(x)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    sess.run(x)
                except tf.errors.FailedPreconditionError:
                    with tf.Session() as own:
                        code = 0 if own.run(x) == 2.0 else 2
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)


if __name__ == "__main__":
    unittest.main()
