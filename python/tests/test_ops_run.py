"""Functions of this library compute what numpy computes."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf


def run(build, *values):
    """Feeds `values` to the placeholders of a graph and returns the results."""
    with tf.Graph().as_default(), tf.Session() as sess:
        holders = [tf.placeholder(tf.as_dtype(np.asarray(v).dtype), np.shape(v)) for v in values]
        fetches = build(*holders)
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return sess.run(fetches, dict(zip(holders, values)))


class Ops(unittest.TestCase):
    def close(self, got, want):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    def test_operators_broadcast(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.close(run(lambda a: (a + 1.0) * [1., 2., 3.] / 2.0, x), (x + 1) * [1, 2, 3] / 2)

    def test_slices_follow_numpy(self):
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        got = run(lambda a: [a[0], a[:, 1], a[..., ::-1], a[:, None], a[-1, 1:, 2]], x)
        for g, w in zip(got, [x[0], x[:, 1], x[..., ::-1], x[:, None], x[-1, 1:, 2]]):
            self.close(g, w)

    def test_gradients_of_a_product_and_a_mean(self):
        x = np.array([[1., 2.], [3., 4.]], np.float32)
        got = run(lambda a: tf.gradients(tf.reduce_mean(tf.square(tf.matmul(a, a))), a)[0], x)
        y = x @ x
        g = 2 * y / 4
        self.close(got, g @ x.T + x.T @ g)

    def test_gradient_through_a_loop(self):
        x = np.float32(1.5)
        got = run(lambda a: tf.gradients(tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, v * a), [0, a])[1], a)[0], x)
        self.close(got, 4 * x ** 3)

    def test_gradient_through_a_branch(self):
        build = lambda a: tf.gradients(  # noqa: E731
            tf.cond(a > 0, lambda: a * a, lambda: -a), a)[0]
        self.close(run(build, np.float32(3)), 6)
        self.close(run(build, np.float32(-3)), -1)

    def test_momentum_moves_a_variable(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            w = tf.get_variable("w", initializer=[1.0, 2.0])
            step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(w * w))
            sess.run(tf.global_variables_initializer())
            sess.run([step])
            sess.run([step])
            self.close(sess.run(w), np.array([1., 2.]) * (0.8 - 0.1 * (0.9 * 2 + 1.6)))

    def test_a_dense_layer_and_its_loss(self):
        x = np.ones([2, 3], np.float32)
        got = run(lambda a: tf.losses.mean_squared_error(
            tf.zeros([2, 4]), tf.layers.dense(a, 4, kernel_initializer=tf.ones_initializer())), x)
        self.close(got, 9.0)

    def test_examples_of_json(self):
        with tf.Session() as sess:
            text = '{"features": {"feature": {"a": {"int64List": {"value": [7]}}}}}'
            found = sess.run(tf.io.decode_json_example(text))
        self.assertEqual(list(tf.train.Example.FromString(found).features.feature["a"].int64_list.value), [7])

    def test_names_of_distributions(self):
        with tf.Graph().as_default(), tf.name_scope("s"):
            self.assertEqual([tf.distributions.Normal(0.0, 1.0).name for _ in range(2)], ["s/Normal/", "s/Normal_1/"])

    def test_an_lstm_keeps_the_state_of_a_sequence_that_ended(self):
        def build(x):
            out, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x,
                                           sequence_length=[2, 4], dtype=tf.float32)
            return out, state.h
        out, h = run(build, np.random.RandomState(0).rand(2, 4, 5).astype(np.float32))
        self.close(out[0, 2:], np.zeros([2, 3]))
        self.close(h[0], out[0, 1])
        self.close(h[1], out[1, 3])

    def test_partitioned_embeddings_find_their_rows(self):
        def build():
            table = tf.get_variable(
                "t", [7, 2], partitioner=tf.fixed_size_partitioner(3),
                initializer=tf.constant_initializer(0.0))
            fill = [v.assign(v + float(i)) for i, v in enumerate(table)]
            with tf.control_dependencies(fill):
                return tf.nn.embedding_lookup(list(table), [0, 1, 2, 3])
        got = run(build)
        self.assertEqual(got.shape, (4, 2))

    def test_wrong_types_name_the_op(self):
        with tf.Graph().as_default():
            with self.assertRaisesRegex(TypeError, "Input 'b' of 'MatMul' Op has type int32"):
                tf.matmul(tf.zeros([1, 1]), tf.constant([[1]]))
            with self.assertRaises(ValueError):
                tf.matmul(tf.zeros([1, 2]), tf.zeros([3, 4]))


if __name__ == "__main__":
    unittest.main()
