"""Datasets of sparse tensors, of typed generators and of groups; barriers."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf
from ferroflow.python.ops import data_flow_ops

Dataset = tf.data.Dataset


def elements(dataset):
    """All elements, taken by a session of their own."""
    iterator = tf.data.make_initializable_iterator(dataset)
    following, found = iterator.get_next(), []
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        while True:
            try:
                found.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return found


def dense(value):
    array = np.zeros(value.dense_shape, value.values.dtype)
    array[tuple(value.indices.T)] = value.values
    return array.tolist()


class SparseDatasetTest(unittest.TestCase):
    ROWS = [[0, 1, 0], [2, 0, 0], [0, 0, 3]]

    def setUp(self):
        tf.reset_default_graph()
        self.sparse = tf.SparseTensor([[0, 1], [1, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 3])

    def test_one_element(self):
        dataset = Dataset.from_tensors(self.sparse)
        self.assertEqual((dataset.output_types, dataset.output_shapes.as_list(), dataset.output_classes),
                         (tf.float32, [3, 3], tf.SparseTensor))
        self.assertEqual([dense(v) for v in elements(dataset)], [self.ROWS])

    def test_rows_beside_other_tensors(self):
        dataset = Dataset.from_tensor_slices({"row": self.sparse, "n": [7, 8, 9]})
        self.assertEqual(dataset.element_spec, {"row": tf.SparseTensorSpec([3], tf.float32), "n": tf.TensorSpec([], tf.int32)})
        found = elements(dataset)
        self.assertEqual([dense(v["row"]) for v in found], self.ROWS)
        self.assertEqual([v["n"] for v in found], [7, 8, 9])

    def test_batches_and_their_rows(self):
        batches = Dataset.from_tensor_slices((self.sparse, [7, 8, 9])).batch(2)
        self.assertEqual([dense(v) for v, _ in elements(batches)], [self.ROWS[:2], self.ROWS[2:]])
        self.assertEqual([dense(v) for v, _ in elements(batches.unbatch())], self.ROWS)

    def test_functions_take_and_return_them(self):
        made = Dataset.range(3).map(lambda i: tf.SparseTensor([[i]], [i], [3]))
        self.assertEqual([dense(v) for v in elements(made)], [[0, 0, 0], [0, 1, 0], [0, 0, 2]])
        taken = Dataset.from_tensor_slices(self.sparse).map(tf.sparse.to_dense)
        self.assertEqual(taken.output_shapes.as_list(), [3])
        self.assertEqual([v.tolist() for v in elements(taken)], self.ROWS)
        kept = Dataset.from_tensor_slices((self.sparse, [7, 8, 9])).filter(lambda _, n: tf.equal(n, 8))
        self.assertEqual([dense(v) for v, _ in elements(kept)], self.ROWS[1:2])

    def test_parsed_examples(self):
        def example(*numbers):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
            return tf.train.Example(features=tf.train.Features(feature={"v": feature})).SerializeToString()

        dataset = Dataset.from_tensor_slices([example(4), example(5, 6)]).batch(2)
        dataset = dataset.map(lambda text: tf.parse_example(text, {"v": tf.VarLenFeature(tf.int64)}))
        self.assertEqual([dense(v["v"]) for v in elements(dataset)], [[[4, 0], [5, 6]]])

    def test_slices_as_components(self):
        found = elements(Dataset.from_sparse_tensor_slices(self.sparse))
        self.assertEqual([(i.tolist(), v.tolist(), s.tolist()) for i, v, s in found],
                         [([[1]], [1.0], [3]), ([[0]], [2.0], [3]), ([[2]], [3.0], [3])])
        with self.assertRaises(TypeError):
            Dataset.from_sparse_tensor_slices([1, 2])

    def test_dense_rows_become_sparse_batches(self):
        rows = Dataset.from_tensor_slices([1, 2, 3]).map(lambda i: tf.fill([i], i))
        found = elements(rows.apply(tf.data.experimental.dense_to_sparse_batch(2, [4])))
        self.assertEqual([dense(v) for v in found], [[[1, 0, 0, 0], [2, 2, 0, 0]], [[3, 3, 3, 0]]])

    def test_padding_refuses_them(self):
        with self.assertRaises(TypeError):
            Dataset.from_tensor_slices(self.sparse).padded_batch(2, [None])

    def test_an_iterator_of_a_structure(self):
        dataset = Dataset.from_tensor_slices(self.sparse)
        iterator = tf.data.Iterator.from_structure(dataset.output_types, dataset.output_shapes, output_classes=dataset.output_classes)
        following = iterator.get_next()
        with tf.Session() as sess:
            sess.run(iterator.make_initializer(dataset))
            self.assertEqual(dense(sess.run(following)), self.ROWS[0])


class GeneratorSignatureTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_tensors(self):
        signature = (tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32))
        dataset = Dataset.from_generator(lambda: iter([(1, [2.0, 3.0]), (4, [5.0])]), output_signature=signature)
        self.assertEqual(dataset.element_spec, signature)
        self.assertEqual([(n, v.tolist()) for n, v in elements(dataset)], [(1, [2.0, 3.0]), (4, [5.0])])

    def test_sparse_tensors(self):
        value = tf.SparseTensorValue([[1]], [7], [3])
        dataset = Dataset.from_generator(lambda: iter([value, value]), output_signature=tf.SparseTensorSpec([3], tf.int32))
        self.assertEqual([dense(v) for v in elements(dataset)], [[0, 7, 0]] * 2)

    def test_mistakes(self):
        wrong = [{}, {"output_signature": tf.float32}, {"output_signature": tf.TensorSpec([]), "output_types": tf.float32}]
        for arguments in wrong:
            with self.subTest(arguments), self.assertRaises(TypeError):
                Dataset.from_generator(lambda: iter([]), **arguments)


class GroupTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_windows_by_key(self):
        group = tf.data.experimental.group_by_window(lambda x: x % 3, lambda key, rows: rows.batch(4), 4)
        self.assertEqual([v.tolist() for v in elements(Dataset.range(10).apply(group))], [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]])

    def test_buckets_by_length(self):
        rows = Dataset.range(5).map(lambda i: tf.fill([tf.cast(i % 3, tf.int32) + 1], i))
        bucket = tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [2, 4], [2, 2, 2], pad_to_bucket_boundary=True)
        self.assertEqual([v.tolist() for v in elements(rows.apply(bucket))],
                         [[[1, 1, 0], [2, 2, 2]], [[0], [3]], [[4, 4, 0]]])

    def test_an_assertion_in_a_function_fails_the_step(self):
        def checked(i):
            with tf.control_dependencies([tf.assert_less(i, tf.constant(2, tf.int64))]):
                return tf.identity(i)

        following = tf.data.make_one_shot_iterator(Dataset.range(3).map(checked)).get_next()
        with tf.Session() as sess:
            self.assertEqual([sess.run(following), sess.run(following)], [0, 1])
            with self.assertRaises(tf.errors.InvalidArgumentError):
                sess.run(following)


class BarrierTest(unittest.TestCase):
    def test_tuples_are_taken_when_complete(self):
        tf.reset_default_graph()
        barrier = data_flow_ops.Barrier((tf.float32, tf.int32), shapes=((), (2,)))
        first = barrier.insert_many(0, ["a", "b"], [1.0, 2.0])
        second = barrier.insert_many(1, ["b", "a"], [[1, 2], [3, 4]])
        taken, sizes = barrier.take_many(2), [barrier.ready_size(), barrier.incomplete_size()]
        self.assertEqual(taken.values[1].shape.as_list(), [2, 2])
        with tf.Session() as sess:
            sess.run(first)
            self.assertEqual(sess.run(sizes), [0, 2])
            sess.run(second)
            self.assertEqual(sess.run(sizes), [2, 0])
            found = sess.run(taken)
            self.assertEqual(dict(zip(found.keys, found.values[0])), {b"a": 1.0, b"b": 2.0})
            sess.run(barrier.close())
            with self.assertRaises(tf.errors.OutOfRangeError):
                sess.run(taken)


if __name__ == "__main__":
    unittest.main()
