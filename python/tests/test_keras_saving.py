"""Architectures of `tf.keras` models: JSON as TensorFlow 2.15.1 writes it, and models made from it."""

import json
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

layers = tf.keras.layers


def connected():
    a, b = layers.Input((4,), name="a"), layers.Input((4,), name="b")
    dense = layers.Dense(3, activation="relu", name="d")
    y = layers.Dense(2, name="y")(layers.concatenate([dense(a), dense(b)]))
    z = layers.add([dense(a), layers.Activation("tanh", name="t")(dense(b))], name="z")
    return tf.keras.Model([a, b], [y, z], name="f")


def chain():
    return tf.keras.Sequential([
        layers.Embedding(7, 4, input_length=5, mask_zero=True), layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(2)), layers.GRU(2), layers.Dense(1, kernel_regularizer=tf.keras.regularizers.l2(0.01))],
        name="s")


class SavingTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        tf.keras.backend.clear_session()

    def again(self, model, *inputs):
        """A model from the JSON of another gives the same with the same weights."""
        text, weights = model.to_json(), model.get_weights()
        before = model.predict(list(inputs) if len(inputs) > 1 else inputs[0])
        names = [w.name for w in model.weights]
        tf.keras.backend.clear_session()
        found = tf.keras.models.model_from_json(text)
        self.assertEqual([w.name for w in found.weights], names)
        self.assertEqual(found.to_json(), text)
        found.set_weights(weights)
        after = found.predict(list(inputs) if len(inputs) > 1 else inputs[0])
        for one, other in zip(before if isinstance(before, list) else [before], after if isinstance(after, list) else [after]):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        return found

    def test_models_come_back(self):
        rng = np.random.RandomState(0)
        self.again(connected(), rng.rand(3, 4), rng.rand(3, 4))
        self.again(chain(), np.array([[1, 2, 3, 0, 0]]))
        tf.keras.backend.clear_session()
        images = tf.keras.Sequential([
            layers.Conv2D(4, 3, padding="same", activation="relu", input_shape=(8, 8, 3)), layers.BatchNormalization(),
            layers.MaxPooling2D(), layers.Dropout(0.25), layers.ZeroPadding2D(1), layers.Flatten(),
            layers.Dense(10, activation="softmax", kernel_initializer="he_normal", kernel_constraint="max_norm")])
        found = self.again(images, rng.rand(2, 8, 8, 3))
        self.assertEqual(found.layers[3].rate, 0.25)

    def test_the_text_is_that_of_tensorflow(self):
        config = json.loads(connected().to_json())
        self.assertEqual((config["class_name"], config["backend"]), ("Functional", "tensorflow"))
        config = config["config"]
        self.assertEqual([entry["name"] for entry in config["layers"]], ["a", "b", "d", "concatenate", "t", "y", "z"])
        self.assertEqual(config["layers"][4]["inbound_nodes"], [[["d", 3, 0, {}]]])
        self.assertEqual((config["input_layers"], config["output_layers"]), ([["a", 0, 0], ["b", 0, 0]], [["y", 0, 0], ["z", 0, 0]]))
        self.assertEqual(config["layers"][5]["config"], {
            "name": "y", "trainable": True, "dtype": "float32", "units": 2, "activation": "linear", "use_bias": True,
            "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": None, "dtype": "float32"}},
            "bias_initializer": {"class_name": "Zeros", "config": {"dtype": "float32"}}, "kernel_regularizer": None,
            "bias_regularizer": None, "activity_regularizer": None, "kernel_constraint": None, "bias_constraint": None})

    def test_layers_and_custom_objects(self):
        class Scale(layers.Layer):
            def __init__(self, factor, **kwargs):
                super().__init__(**kwargs)
                self.factor = factor

            def call(self, inputs):
                return inputs * self.factor

        model = tf.keras.Sequential([Scale(3.0, input_shape=(2,))])
        text = model.to_json()
        with self.assertRaisesRegex(ValueError, "Unknown layer: 'Scale'"):
            tf.keras.models.model_from_json(text)
        found = tf.keras.models.model_from_json(text, custom_objects={"Scale": Scale})
        np.testing.assert_allclose(found.predict(np.ones((1, 2))), [[3.0, 3.0]])
        again = layers.Dense.from_config(layers.Dense(4, activation="tanh").get_config())
        self.assertEqual((again.units, again.name), (4, "dense"))

    def test_a_clone_has_weights_of_its_own(self):
        model = connected()
        found = tf.keras.models.clone_model(model)
        self.assertEqual([w.name for w in found.weights], ["d_1/kernel:0", "d_1/bias:0", "y_1/kernel:0", "y_1/bias:0"])
        self.assertEqual([layer.name for layer in found.layers], [layer.name for layer in model.layers])

    def test_functions_have_no_configuration(self):
        with self.assertRaisesRegex(NotImplementedError, "a function .function. has no JSON"):
            tf.keras.Sequential([layers.Lambda(lambda x: x + 1, input_shape=(2,))]).to_json()


if __name__ == "__main__":
    unittest.main()
