"""Losses of `tf.keras`: the values are TensorFlow 2.15.1's."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf

losses = tf.keras.losses
RNG = np.random.RandomState(0)
TARGETS = (RNG.rand(4, 3) > 0.5).astype("f")
OUTPUTS = (RNG.rand(4, 3) * 0.8 + 0.1).astype("f")
IDS = np.array([0, 2, 1, 1])
ONE_HOT = np.eye(3, dtype="f")[IDS]
WEIGHTS = np.array([1.0, 2, 0, 0.5], "f")

# Class, its value, its value with weights, and the values of the examples.
CLASSES = [
    ("MeanSquaredError", 0.2645, 0.2419, [0.3116, 0.2525, 0.1925, 0.3014]),
    ("MeanAbsoluteError", 0.4348, 0.3818, [0.4828, 0.3935, 0.3479, 0.5152]),
    ("MeanAbsolutePercentageError", 131502272.0000, 50167776.0000, [48.2753, 38724948.0, 240841792.0, 246442304.0]),
    ("MeanSquaredLogarithmicError", 0.1183, 0.1010, [0.1234, 0.1051, 0.1036, 0.1412]),
    ("BinaryCrossentropy", 0.7365, 0.6796, [0.8721, 0.7212, 0.5449, 0.8079]),
    ("CategoricalCrossentropy", 0.9666, 0.5928, [1.0292, 0.3171, 1.1042, 1.4158]),
    ("Hinge", 0.6848, 0.5902, [0.4828, 0.7268, 0.6812, 0.8486]),
    ("SquaredHinge", 0.7775, 0.5505, [0.3116, 0.6633, 1.0075, 1.1277]),
    ("CategoricalHinge", 1.0117, 0.6821, [1.286, 0.4036, 1.0869, 1.2701]),
    ("Poisson", 1.0855, 0.9882, [1.3893, 1.0307, 0.918, 1.004]),
    ("LogCosh", 0.1222, 0.1109, [0.1429, 0.115, 0.0895, 0.1412]),
    ("KLDivergence", 1.5220, 1.8090, [2.6162, 2.0401, 0.3527, 1.0791]),
    ("Huber", 0.1323, 0.1209, [0.1558, 0.1263, 0.0962, 0.1507]),
    ("CosineSimilarity", -0.8274, -0.7297, [-0.8792, -0.8342, -0.8534, -0.7427]),
]


class KerasLosses(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        tf.keras.backend.clear_session()

    def value(self, tensor):
        with tf.Session() as sess:
            return sess.run(tensor)

    def test_classes(self):
        for name, plain, weighted, each in CLASSES:
            with self.subTest(name):
                made, y = getattr(losses, name), ONE_HOT if name.startswith("Cat") else TARGETS
                found = self.value([made()(y, OUTPUTS), made()(y, OUTPUTS, sample_weight=WEIGHTS),
                                    made(reduction="sum")(y, OUTPUTS), made(reduction="none")(y, OUTPUTS)])
                np.testing.assert_allclose(found[0], plain, rtol=1e-3)
                np.testing.assert_allclose(found[1], weighted, rtol=1e-3)
                np.testing.assert_allclose(found[2], np.sum(each), rtol=1e-3)
                np.testing.assert_allclose(found[3], each, rtol=2e-3)

    def test_options(self):
        found = self.value([
            losses.SparseCategoricalCrossentropy()(IDS, OUTPUTS),
            losses.SparseCategoricalCrossentropy(from_logits=True)(IDS, OUTPUTS),
            losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)(TARGETS, OUTPUTS),
            losses.CategoricalCrossentropy(label_smoothing=0.1)(ONE_HOT, OUTPUTS), losses.Huber(0.2)(TARGETS, OUTPUTS)])
        np.testing.assert_allclose(found, [0.9666, 1.0537, 0.6011, 0.9944, 0.0676], rtol=1e-3)
        with self.assertRaisesRegex(ValueError, "Invalid Reduction Key: nothing"):
            losses.Huber(reduction="nothing")
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'alpha'"):
            losses.Huber(alpha=1)

    def test_configurations(self):
        config = losses.serialize(losses.MeanSquaredError())
        self.assertEqual(config, {"class_name": "MeanSquaredError", "config": {
            "reduction": "auto", "name": "mean_squared_error", "fn": "mean_squared_error"}})
        self.assertIsInstance(losses.deserialize(config), losses.MeanSquaredError)

    def test_models(self):
        model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(2,))])
        model.set_weights([np.ones((2, 3)) * [[0.1, 0.2, 0.3]], np.zeros(3)])
        for loss, y in ((losses.CategoricalCrossentropy(), ONE_HOT), (losses.SparseCategoricalCrossentropy(), IDS)):
            model.compile("sgd", loss, metrics=["accuracy"])
            self.assertEqual(model.metrics_names, ["loss", "acc"])
            np.testing.assert_allclose(model.evaluate(np.ones((4, 2)), y, verbose=0), [1.1119, 0.25], rtol=1e-3)
        model.compile("sgd", "categorical_hinge", metrics=["mae"])
        self.assertEqual(model.metrics_names, ["loss", "mean_absolute_error"])
        np.testing.assert_allclose(model.evaluate(np.ones((4, 2)), ONE_HOT, verbose=0), [1.0513, 0.4452], rtol=1e-3)

    def test_a_program_can_bring_its_own_loss(self):
        class Largest(losses.Loss):
            def call(self, y_true, y_pred):
                return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)

        found = self.value(Largest()(TARGETS, OUTPUTS))
        self.assertAlmostEqual(found, np.abs(TARGETS - OUTPUTS).max(-1).mean(), places=5)


if __name__ == "__main__":
    unittest.main()
