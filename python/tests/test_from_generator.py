"""Datasets of what Python generators yield."""

import unittest

import ferroflow.compat.v1 as tf


class FromGeneratorTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def all(self, following, initializer=None):
        found = []
        with tf.Session() as sess:
            if initializer is not None:
                sess.run(initializer)
            while True:
                try:
                    found.append(sess.run(following))
                except tf.errors.OutOfRangeError:
                    return found

    def test_each_pass_starts_the_generator_again(self):
        def pairs():
            for i in range(3):
                yield i, [float(i)] * i

        dataset = tf.data.Dataset.from_generator(pairs, (tf.int64, tf.float32), ([], [None]))
        iterator = dataset.repeat(2).padded_batch(4, ([], [None])).make_initializable_iterator()
        found = self.all(iterator.get_next(), iterator.initializer)
        self.assertEqual([f[0].tolist() for f in found], [[0, 1, 2, 0], [1, 2]])
        self.assertEqual(found[1][1].tolist(), [[1.0, 0.0], [2.0, 2.0]])

    def test_arguments_are_tensors_of_the_graph(self):
        dataset = tf.data.Dataset.from_generator(
            lambda n: ({"a": b"%d" % i} for i in range(n)), {"a": tf.string}, args=(tf.constant(1) + 1,))
        self.assertEqual(self.all(dataset.make_one_shot_iterator().get_next()), [{"a": b"0"}, {"a": b"1"}])

    def test_wrong_elements_fail_the_step(self):
        for value, types, shapes in (("x", tf.int32, None), ([1, 2], tf.int32, [3]), ((1, 2), (tf.int32,) * 3, None)):
            with self.subTest(value=value), tf.Graph().as_default():
                dataset = tf.data.Dataset.from_generator(lambda v=value: iter([v]), types, shapes)
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "`generator` yielded"):
                    self.all(dataset.make_one_shot_iterator().get_next())


if __name__ == "__main__":
    unittest.main()
