"""Estimators with heads, early stopping, and datasets of `tf.data.experimental`."""

import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

X = np.random.RandomState(0).randn(64, 3).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)
COLUMNS = [tf.feature_column.numeric_column("x", [3])]


def inputs(labels=Y, epochs=None):
    return tf.estimator.inputs.numpy_input_fn({"x": X}, labels, batch_size=16, num_epochs=epochs, shuffle=False)


def elements(dataset):
    following, found = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return found


class EstimatorTest(unittest.TestCase):
    def setUp(self):
        before = tf.logging.get_verbosity()
        tf.logging.set_verbosity(tf.logging.ERROR)
        self.addCleanup(tf.logging.set_verbosity, before)

    def test_each_head_learns(self):
        numbers = Y.astype(np.float32)
        for head, labels in ((tf.estimator.BinaryClassHead(thresholds=[0.4]), Y), (tf.estimator.LogisticRegressionHead(), numbers),
                             (tf.estimator.MultiLabelHead(2), np.stack([Y, 1 - Y], 1))):
            with self.subTest(type(head).__name__):
                model = tf.estimator.LinearEstimator(head, COLUMNS)
                # Without training, all answers are zero.
                self.assertLess(model.train(inputs(labels), steps=15).evaluate(inputs(labels, 1))["loss"], np.log(2))

    def test_a_metric_above_a_threshold_ends_training(self):
        model = tf.estimator.LinearClassifier(COLUMNS)

        def hook():
            return tf.estimator.experimental.stop_if_higher_hook(model, "accuracy", 0.1, run_every_secs=None, run_every_steps=1)
        model.train(inputs(), steps=5, hooks=[hook()]).evaluate(inputs(Y, 1))
        model.train(inputs(), steps=50, hooks=[hook()])
        self.assertLess(model.get_variable_value("global_step"), 10)


class DatasetTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_rows_of_csv_files_have_the_types_that_their_values_have(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            with open(path, "w", encoding="utf-8") as f:
                f.write("a,b,c\n1,2.5,x\n3,4.5,y\n")
            (features, label), = elements(tf.data.experimental.make_csv_dataset(path, 2, label_name="c", num_epochs=1, shuffle=False))
        self.assertEqual((features["a"].dtype, features["b"].dtype), (np.int32, np.float32))
        self.assertEqual((list(features["a"]), list(label)), ([1, 3], [b"x", b"y"]))

    def test_datasets_are_mixed_grouped_and_made_unique(self):
        ex, data = tf.data.experimental, tf.data.Dataset
        order = data.from_tensor_slices(np.array([0, 1, 1, 0], np.int64))
        self.assertEqual(elements(ex.choose_from_datasets([data.range(3), data.range(10, 13)], order)), [0, 10, 11, 1])
        mixed = ex.sample_from_datasets([data.range(3), data.range(10, 13)], seed=1)
        self.assertEqual(sorted(elements(mixed)), [0, 1, 2, 10, 11, 12])
        self.assertEqual(elements(data.from_tensor_slices([1, 1, 2, 1]).apply(ex.unique())), [1, 2])
        total = ex.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)
        self.assertEqual(elements(data.range(10).apply(ex.group_by_reducer(lambda x: x % 2, total))), [20, 25])
        self.assertEqual(elements(ex.Counter(3, 2).take(3)), [3, 5, 7])

    def test_the_end_of_a_dataset_is_an_optional_without_a_value(self):
        following = tf.data.Dataset.range(1).make_one_shot_iterator().get_next_as_optional()
        with tf.Session() as sess:
            self.assertEqual(sess.run([following.has_value(), following.get_value()]), [True, 0])
            self.assertFalse(sess.run(following.has_value()))


if __name__ == "__main__":
    unittest.main()
