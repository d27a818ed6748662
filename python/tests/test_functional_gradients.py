"""Gradients through calls, conditionals and loops that are functions."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.python.framework import func_graph


class FunctionalGradientTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        tf.enable_control_flow_v2()
        self.addCleanup(tf.disable_control_flow_v2)

    def run_with(self, fetches, feeds=None):
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run(fetches, feeds)

    def test_both_branches_of_a_condition(self):
        x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
        grad = tf.gradients(tf.cond(p, lambda: x * x, lambda: tf.exp(x) * 2.0), x)[0]
        np.testing.assert_allclose(self.run_with(grad, {x: [1, 2], p: True}), [2, 4])
        np.testing.assert_allclose(self.run_with(grad, {x: [1, 2], p: False}), 2 * np.exp([1, 2]), rtol=1e-5)

    def test_a_case_with_a_branch_that_uses_nothing(self):
        x, i = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
        grad = tf.gradients(tf.switch_case(i, [lambda: x * x, lambda: tf.zeros([2])]), x)[0]
        np.testing.assert_allclose(self.run_with(grad, {x: [1, 2], i: 0}), [2, 4])
        np.testing.assert_allclose(self.run_with(grad, {x: [1, 2], i: 1}), [0, 0])

    def power(self, x, n):
        return tf.while_loop(lambda i, w: i < n, lambda i, w: (i + 1, w * x), [0, tf.ones([2])])[1]

    def test_a_loop_and_its_second_derivative(self):
        x = tf.placeholder(tf.float32, [2])
        first = tf.gradients(self.power(x, 3), x)[0]
        second = tf.gradients(first, x)[0]
        found = self.run_with([first, second], {x: [1, 2]})
        np.testing.assert_allclose(found, [[3, 12], [6, 12]])

    def test_two_gradients_of_one_loop(self):
        x = tf.placeholder(tf.float32, [2])
        y = self.power(x, 4)
        grads = [tf.gradients(y, x)[0], tf.gradients(y[1] * 2.0, x)[0]]
        np.testing.assert_allclose(self.run_with(grads, {x: [1, 2]}), [[4, 32], [0, 64]])

    def test_a_loop_in_a_loop(self):
        x = tf.placeholder(tf.float32, [2])
        inner = lambda w: tf.while_loop(lambda j, v: j < 2, lambda j, v: (j + 1, v * x), [0, w])[1]  # noqa: E731
        y = tf.while_loop(lambda i, w: i < 3, lambda i, w: (i + 1, inner(w)), [0, tf.ones([2])])[1]
        np.testing.assert_allclose(self.run_with(tf.gradients(y, x)[0], {x: [1, 2]}), [6, 6 * 2**5])

    def test_variables_that_bodies_read(self):
        v = tf.get_variable("v", initializer=3.0, use_resource=True)
        y = tf.while_loop(lambda i, w: i < 3, lambda i, w: (i + 1, w * v), [0, 1.0])[1]
        y = tf.cond(y > 1.0, lambda: y * v, lambda: v * 1.0)
        self.assertAlmostEqual(self.run_with(tf.gradients(y, v)[0]), 4 * 27.0, places=3)

    def test_tensor_arrays_in_a_loop(self):
        x = tf.placeholder(tf.float32, [3])
        mapped, scanned = tf.map_fn(lambda e: e * e, x), tf.scan(lambda a, e: a * e, x)
        grads = [tf.gradients(mapped, x)[0], tf.gradients(scanned[2], x)[0]]
        np.testing.assert_allclose(self.run_with(grads, {x: [1, 2, 3]}), [[2, 4, 6], [6, 3, 2]])

    def test_random_values_of_the_forward_body_are_used_again(self):
        x, p = tf.placeholder(tf.float32, [200]), tf.placeholder(tf.bool, [])
        y = tf.cond(p, lambda: tf.nn.dropout(x, keep_prob=0.5), lambda: x)
        difference = tf.reduce_sum(tf.abs(y - tf.gradients(y, x)[0]))
        self.assertEqual(self.run_with(difference, {x: np.ones(200), p: True}), 0.0)

    def test_a_call_of_a_function(self):
        x = tf.placeholder(tf.float32, [2])
        first = tf.gradients(tf.function(lambda v: tf.reduce_sum(v * v * v))(x), x)[0]
        found = self.run_with([first, tf.gradients(first, x)[0]], {x: [1, 2]})
        np.testing.assert_allclose(found, [[3, 12], [6, 12]])

    def test_an_imported_graph(self):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.identity(self.power(x, 3) + tf.cond(x[0] > 0.0, lambda: x * x, lambda: x), name="y")
        definition = tf.get_default_graph().as_graph_def()
        self.assertTrue(func_graph.bodies(y.graph))
        with tf.Graph().as_default():
            x, y = tf.import_graph_def(definition, return_elements=["x:0", "y:0"], name="")
            grad = tf.gradients(y, x)[0]
            np.testing.assert_allclose(self.run_with(grad, {x: [1, 2]}), [5, 16])

    def test_a_gradient_after_a_step_ran_is_refused(self):
        x = tf.placeholder(tf.float32, [2])
        y = self.power(x, 2)
        with tf.Session() as sess:
            sess.run(y, {x: [1, 2]})
            grad = tf.gradients(y, x)[0]
            with self.assertRaisesRegex(RuntimeError, "changed after it was run"):
                sess.run(grad, {x: [1, 2]})


if __name__ == "__main__":
    unittest.main()
