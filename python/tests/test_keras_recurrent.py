"""Recurrent layers of `tf.keras`. The sums of outputs and the names are TensorFlow 2.15.1's."""

import unittest

import numpy as np

import ferroflow.compat.v1 as tf

layers = tf.keras.layers


def weighted_sum(array):
    return round(float(np.sum(array * np.arange(1, 1 + array.size).reshape(array.shape))), 3)


class RecurrentLayers(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        tf.keras.backend.clear_session()
        self.data = np.random.RandomState(0).randn(3, 5, 4).astype("f")

    def check(self, make, expected, x=None, names=None):
        """Calls a layer with known weights, and compares a sum of each output."""
        x = self.data if x is None else x
        with tf.Graph().as_default():
            inputs = layers.Input(x.shape[1:])
            model = tf.keras.Model(inputs, make(inputs))
            rng = np.random.RandomState(1)
            model.set_weights([rng.randn(*w.shape).astype("f") * 0.3 for w in model.get_weights()])
            found = model.predict(x)
            found = [weighted_sum(y) for y in (found if isinstance(found, list) else [found])]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-3)
            if names is not None:
                self.assertEqual([w.name for w in model.weights], names)

    def test_layers(self):
        lstm = ["lstm/lstm_cell/kernel:0", "lstm/lstm_cell/recurrent_kernel:0", "lstm/lstm_cell/bias:0"]
        self.check(lambda x: layers.LSTM(3)(x), [4.746], names=lstm)
        self.check(lambda x: layers.LSTM(3, return_sequences=True, return_state=True)(x), [113.006, 4.746, 9.829], names=lstm)
        self.check(lambda x: layers.LSTM(3, go_backwards=True, return_sequences=True)(x), [90.06])
        self.check(lambda x: layers.LSTM(3, unroll=True)(x), [4.746])
        self.check(lambda x: layers.LSTM(3, recurrent_activation="sigmoid")(x), [4.999])
        self.check(lambda x: layers.LSTM(3, unit_forget_bias=False, use_bias=False)(x), [3.166])
        self.check(lambda x: layers.LSTM(3, dropout=0.3, recurrent_dropout=0.2)(x), [4.746])
        self.check(lambda x: layers.LSTM(3)(x, initial_state=[x[:, 0, :3], x[:, 1, :3]]), [1.397])
        self.check(lambda x: layers.GRU(3)(x), [-12.747])
        self.check(lambda x: layers.GRU(3, reset_after=True)(x), [-12.275])
        self.check(lambda x: layers.SimpleRNN(3, activation="relu")(x), [11.047])

    def test_cells(self):
        self.check(lambda x: layers.RNN(layers.LSTMCell(3))(x), [4.746], names=[
            "rnn/lstm_cell/kernel:0", "rnn/lstm_cell/recurrent_kernel:0", "rnn/lstm_cell/bias:0"])
        self.check(lambda x: layers.RNN(layers.GRUCell(3), return_sequences=True)(x), [-300.653])
        self.check(lambda x: layers.RNN([layers.LSTMCell(3), layers.LSTMCell(2)])(x), [-0.413], names=[
            "rnn/stacked_rnn_cells/%s/%s:0" % (cell, name) for cell in ("lstm_cell", "lstm_cell_1")
            for name in ("kernel", "recurrent_kernel", "bias")])
        self.check(lambda x: layers.RNN(layers.StackedRNNCells([layers.SimpleRNNCell(3), layers.GRUCell(2)]),
                                        return_state=True)(x), [2.914, 2.789, 2.914])
        with self.assertRaisesRegex(ValueError, "should have a `call` method"):
            layers.RNN(object())

    def test_a_program_can_bring_its_own_cell(self):
        class Decaying(layers.Layer):
            state_size = 4

            def call(self, inputs, states):
                new = 0.5 * states[0] + inputs
                return new, [new]

        expected = np.zeros([3, 4])
        for t in range(5):
            expected = 0.5 * expected + self.data[:, t]
        self.check(lambda x: layers.RNN(Decaying())(x), [weighted_sum(expected)])

    def test_both_directions(self):
        self.check(lambda x: layers.Bidirectional(layers.LSTM(3))(x), [17.839], names=[
            "bidirectional/%s_lstm/lstm_cell/%s:0" % (way, name) for way in ("forward", "backward")
            for name in ("kernel", "recurrent_kernel", "bias")])
        self.check(lambda x: layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode="sum")(x), [-202.708])
        with self.assertRaisesRegex(ValueError, "Invalid merge mode"):
            layers.Bidirectional(layers.GRU(3), merge_mode="nothing")

    def test_masks(self):
        x = self.data.copy()
        x[0, 3:] = 0
        x[1, 1:] = 0
        self.check(lambda i: layers.LSTM(3)(layers.Masking()(i)), [2.247], x)
        self.check(lambda i: layers.GRU(3, return_sequences=True)(layers.Masking()(i)), [-316.485], x)
        self.check(lambda i: layers.Bidirectional(layers.LSTM(2))(layers.Masking()(i)), [-0.95], x)
        self.check(lambda i: layers.LSTM(2)(layers.TimeDistributed(layers.Dense(3))(layers.Masking()(i))), [-0.188], x, names=[
            "time_distributed/kernel:0", "time_distributed/bias:0", "lstm/lstm_cell/kernel:0",
            "lstm/lstm_cell/recurrent_kernel:0", "lstm/lstm_cell/bias:0"])
        words = np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 1]], "f")
        self.check(lambda i: layers.LSTM(3)(layers.Embedding(7, 4, mask_zero=True)(i)), [0.536], words)
        self.check(lambda i: layers.Dense(1)(layers.SimpleRNN(3)(layers.Dropout(0.1)(
            layers.Embedding(7, 4, mask_zero=True)(i)))), [1.081], words)

    def test_losses_count_the_steps_of_the_mask(self):
        model = tf.keras.Sequential([layers.Embedding(7, 4, mask_zero=True, input_length=4), layers.LSTM(3, return_sequences=True),
                                     layers.TimeDistributed(layers.Dense(1))])
        rng = np.random.RandomState(1)
        model.set_weights([rng.randn(*w.shape) * 0.3 for w in model.get_weights()])
        model.compile("sgd", "mse", metrics=["mae"])
        found = model.evaluate(np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 1]]), np.ones((3, 4, 1)), verbose=0)
        np.testing.assert_allclose(found, [0.950253963470459, 0.97425234], rtol=1e-5)

    def test_states_stay_from_call_to_call(self):
        model = tf.keras.Sequential([layers.LSTM(2, stateful=True, batch_input_shape=(3, 2, 4))])
        rng = np.random.RandomState(4)
        model.set_weights([rng.randn(*w.shape) * 0.3 for w in model.get_weights()])
        x = rng.randn(3, 2, 4)
        first, second = model.predict(x, batch_size=3), model.predict(x, batch_size=3)
        self.assertGreater(np.abs(first - second).max(), 1e-3)
        model.reset_states()
        np.testing.assert_allclose(model.predict(x, batch_size=3), first, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "it needs to know its batch size"):
            layers.LSTM(3, stateful=True)(layers.Input((5, 4)))

    def test_a_network_learns_which_sequences_rise(self):
        rng = np.random.RandomState(0)
        x = rng.randn(256, 6, 1).astype("f")
        y = (x[:, -1, 0] > x[:, 0, 0]).astype("f")
        tf.set_random_seed(3)
        model = tf.keras.Sequential([
            layers.Bidirectional(layers.LSTM(8, dropout=0.05), input_shape=(6, 1)), layers.Dense(1, activation="sigmoid")])
        model.compile(tf.keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
        model.fit(x, y, epochs=12, batch_size=32, verbose=0)
        self.assertGreater(model.evaluate(x, y, verbose=0)[1], 0.9)

    def test_sequences_and_edges(self):
        self.check(lambda x: layers.Conv1D(2, 3, padding="causal")(x), [136.154])
        self.check(lambda x: layers.SpatialDropout1D(0.3)(x), [-252.551])
        self.check(lambda x: layers.Attention()([x, x]), [-262.843])
        self.check(lambda x: layers.Cropping1D(1)(x), [-110.235])
        self.check(lambda x: layers.UpSampling1D(2)(x), [-1022.001])
        self.check(lambda x: layers.ZeroPadding1D(1)(x), [-351.658])


if __name__ == "__main__":
    unittest.main()
