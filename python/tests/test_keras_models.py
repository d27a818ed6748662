"""`tf.keras` in graphs: layers, models, optimizers, callbacks."""

import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

keras = tf.keras
layers = tf.keras.layers


class KerasTest(unittest.TestCase):
    def setUp(self):
        keras.backend.clear_session()
        tf.set_random_seed(1)
        np.random.seed(1)
        self.state = np.random.RandomState(0)
        self.x = self.state.rand(64, 8).astype(np.float32)
        self.y = (self.x.sum(1) > 4).astype(np.int32)

    def test_a_sequence_of_layers_learns_and_keeps_its_weights(self):
        model = keras.Sequential([
            layers.Dense(16, activation="relu", input_shape=(8,), kernel_regularizer=keras.regularizers.l2(0.001)),
            layers.BatchNormalization(momentum=0.5), layers.Dropout(0.1), layers.Dense(2, activation="softmax")])
        model.compile(optimizer=keras.optimizers.Adam(0.02), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        history = model.fit(self.x, self.y, epochs=15, batch_size=16, verbose=0, validation_split=0.25).history
        self.assertEqual(sorted(history), ["acc", "loss", "val_acc", "val_loss"])
        self.assertLess(history["loss"][-1], history["loss"][0])
        loss, accuracy = model.evaluate(self.x, self.y, verbose=0)
        self.assertGreater(accuracy, 0.8)
        self.assertEqual((len(model.layers), len(model.weights), len(model.trainable_weights), model.count_params()), (4, 8, 6, 242))
        before = model.predict(self.x[:4])
        np.testing.assert_allclose(before.sum(1), 1, rtol=1e-5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "weights")
            model.save_weights(path)
            model.set_weights([w * 0 for w in model.get_weights()])
            np.testing.assert_allclose(model.predict(self.x[:1]), [[0.5, 0.5]])
            model.load_weights(path)
        np.testing.assert_allclose(model.predict(self.x[:4]), before, rtol=1e-6)

    def test_a_graph_of_layers_with_several_branches(self):
        words = layers.Input(shape=(10,), dtype="int32")
        rows = layers.Embedding(20, 4)(words)
        joined = layers.concatenate([layers.LSTM(5)(rows), layers.GlobalAveragePooling1D()(rows),
                                     layers.Bidirectional(layers.GRU(3))(rows)])
        output = layers.Dense(1, activation="sigmoid", name="out")(joined)
        model = keras.Model(inputs=words, outputs=output)
        model.compile("rmsprop", "binary_crossentropy", metrics=["acc"])
        data = self.state.randint(0, 20, (32, 10))
        history = model.fit(data, (data.sum(1) > 95), epochs=3, verbose=0, callbacks=[
            keras.callbacks.EarlyStopping(monitor="loss", patience=0, min_delta=10)])
        self.assertEqual((history.epoch, sorted(history.history)), ([0, 1], ["acc", "loss"]))
        self.assertEqual((model.output_shape, joined.shape.as_list()), ((None, 1), [None, 15]))
        again = model(tf.constant(data))
        np.testing.assert_allclose(keras.backend.get_value(again), model.predict(data), rtol=1e-4)

    def test_images_and_a_dataset(self):
        model = keras.models.Sequential()
        model.add(layers.Conv2D(4, (3, 3), activation="relu", padding="same", input_shape=(8, 8, 1)))
        for layer in (layers.MaxPooling2D((2, 2)), layers.Conv2D(4, 3), layers.LeakyReLU(), layers.Flatten(), layers.Dense(3)):
            model.add(layer)
        model.compile(loss=lambda y, p: keras.losses.categorical_crossentropy(y, p, from_logits=True), optimizer="sgd")
        images, classes = self.state.rand(12, 8, 8, 1).astype(np.float32), keras.utils.to_categorical(np.arange(12) % 3, 3)
        data = tf.data.Dataset.from_tensor_slices((images, classes)).repeat().batch(4)
        history = model.fit(data, steps_per_epoch=3, epochs=2, verbose=0, callbacks=[keras.callbacks.LearningRateScheduler(lambda e: 0.1 / (e + 1))])
        self.assertEqual(len(history.history["loss"]), 2)
        self.assertAlmostEqual(float(keras.backend.get_value(model.optimizer.lr)), 0.05, 5)
        self.assertEqual((model.input_shape, model.output_shape), ((None, 8, 8, 1), (None, 3)))

    def test_layers_serve_programs_with_their_own_sessions(self):
        x = tf.placeholder(tf.float32, [None, 8])
        with tf.variable_scope("net"):
            hidden = layers.Dense(4, activation=tf.nn.relu, kernel_initializer="he_normal")(x)
        output = layers.Dense(1)(hidden)
        loss = tf.losses.mean_squared_error(tf.ones_like(output), output)
        train = tf.train.AdamOptimizer(0.05).minimize(loss)
        self.assertEqual([v.name for v in tf.trainable_variables()],
                         ["net/dense/kernel:0", "net/dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0"])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            first = sess.run(loss, {x: self.x})
            for _ in range(20):
                sess.run(train, {x: self.x})
            self.assertLess(sess.run(loss, {x: self.x}), first)

    def test_a_model_of_ones_own(self):
        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.hidden, self.out = layers.Dense(5, activation="relu"), layers.Dense(1)

            def call(self, inputs):
                return self.out(self.hidden(inputs))

        model = Net()
        model.compile("adam", "mse")
        losses = model.fit(self.x, self.x.sum(1), epochs=4, verbose=0).history["loss"]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual((len(model.weights), model.predict(self.x[:2]).shape), (4, (2, 1)))

    def test_unknown_names_are_refused(self):
        for make in (lambda: layers.Dense(3, activation="zz"), lambda: keras.optimizers.get("zz"), lambda: keras.losses.get("zz"),
                     lambda: keras.initializers.get("zz"), lambda: keras.Sequential().pop()):
            with self.assertRaises((ValueError, TypeError)):
                make()


if __name__ == "__main__":
    unittest.main()
