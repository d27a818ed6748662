"""Decoders, attention, beam search, chains of tags and more cells of `tf.contrib`."""

import itertools
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

seq2seq = tf.contrib.seq2seq


def run(fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


class DecoderTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()
        tf.set_random_seed(7)
        self.embedding = tf.get_variable("embedding", [7, 4])

    def test_training_with_each_attention_lowers_the_loss(self):
        ids = tf.constant(np.arange(15).reshape(3, 5) % 7, tf.int32)
        given = tf.nn.embedding_lookup(self.embedding, ids)
        for kind in (seq2seq.LuongAttention, seq2seq.BahdanauAttention, seq2seq.LuongMonotonicAttention,
                     seq2seq.BahdanauMonotonicAttention):
            with self.subTest(kind.__name__), tf.variable_scope(kind.__name__):
                attention = kind(4, given, [5, 3, 2])
                cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention, 6, alignment_history=True)
                decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(given, [5, 4, 1]), cell.zero_state(3, tf.float32),
                                               tf.layers.Dense(7))
                outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
                weights = tf.sequence_mask([5, 4, 1], 5, dtype=tf.float32)
                loss = seq2seq.sequence_loss(outputs.rnn_output, ids, weights)
                train = tf.train.AdamOptimizer(0.1).minimize(loss)
                history = state.alignment_history.stack()
                with tf.Session() as sess:
                    sess.run(tf.global_variables_initializer())
                    before = sess.run(loss)
                    for _ in range(10):
                        sess.run(train)
                    after, found, shape = sess.run([loss, lengths, tf.shape(history)])
                self.assertLess(after, before)
                self.assertEqual((list(found), list(shape)), ([5, 4, 1], [5, 3, 5]))
        names = [v.op.name for v in tf.trainable_variables(scope="LuongAttention")]
        self.assertEqual(names, [
            "LuongAttention/memory_layer/kernel", "LuongAttention/decoder/attention_wrapper/gru_cell/gates/kernel",
            "LuongAttention/decoder/attention_wrapper/gru_cell/gates/bias",
            "LuongAttention/decoder/attention_wrapper/gru_cell/candidate/kernel",
            "LuongAttention/decoder/attention_wrapper/gru_cell/candidate/bias",
            "LuongAttention/decoder/attention_wrapper/attention_layer/kernel", "LuongAttention/decoder/dense/kernel",
            "LuongAttention/decoder/dense/bias"])

    def test_greedy_decoding_follows_the_most_likely_class(self):
        # The output is the embedding of the class after the last one.
        table = tf.constant(np.eye(5, dtype=np.float32))
        shift = tf.constant(np.roll(np.eye(5, dtype=np.float32), 1, axis=1))

        class Shift(tf.nn.rnn_cell.RNNCell):
            state_size = output_size = 5

            def call(self, inputs, state):
                return tf.matmul(inputs, shift), state
        helper = seq2seq.GreedyEmbeddingHelper(table, [0, 2], 4)
        outputs, _, lengths = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(Shift(), helper, tf.zeros([2, 5])), maximum_iterations=9)
        ids, found = run([outputs.sample_id, lengths])
        self.assertEqual(list(found), [4, 2])
        self.assertEqual([list(ids[0]), list(ids[1][:2])], [[1, 2, 3, 4], [3, 4]])

    def test_beam_search_finds_the_best_sequence(self):
        logits = np.log(np.array([[0.1, 0.5, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4], [0.1, 0.05, 0.05, 0.8]], np.float32))

        class ByTime(tf.nn.rnn_cell.RNNCell):
            state_size, output_size = 1, 4

            def call(self, inputs, state):
                time = tf.cast(tf.reshape(state, [-1]), tf.int32)
                return tf.gather(tf.constant(logits), tf.minimum(time, 2)), state + 1
        decoder = seq2seq.BeamSearchDecoder(ByTime(), tf.zeros([4, 1]), [0], 3, seq2seq.tile_batch(tf.zeros([1, 1]), 2), 2)
        outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=3)
        ids, lengths, probs = run([outputs.predicted_ids, state.lengths, state.log_probs])
        self.assertEqual([list(ids[0, :, 0]), list(ids[0, :, 1])], [[1, 3, 3], [1, 2, 3]])
        np.testing.assert_allclose(np.exp(probs[0]), [0.2, 0.12], rtol=1e-5)
        self.assertEqual(list(lengths[0]), [2, 3])


class ChainTest(unittest.TestCase):
    def test_likelihood_and_best_chain_agree_with_all_chains(self):
        tf.reset_default_graph()
        r = np.random.RandomState(3)
        scores, moves = r.randn(2, 4, 3).astype(np.float32), r.randn(3, 3).astype(np.float32)
        lengths, tags = [4, 2], [[0, 1, 2, 0], [1, 2, 0, 0]]
        likely, _ = tf.contrib.crf.crf_log_likelihood(tf.constant(scores), tf.constant(tags), tf.constant(lengths), tf.constant(moves))
        best, best_score = tf.contrib.crf.crf_decode(tf.constant(scores), tf.constant(moves), tf.constant(lengths))
        likely, best, best_score = run([likely, best, best_score])
        for b, n in enumerate(lengths):
            def score(chain):
                return sum(scores[b, i, t] for i, t in enumerate(chain)) + sum(moves[p, q] for p, q in zip(chain, chain[1:]))
            every = {c: score(c) for c in itertools.product(range(3), repeat=n)}
            norm = np.log(sum(np.exp(s) for s in every.values()))
            top = max(every, key=every.get)
            np.testing.assert_allclose(likely[b], score(tags[b][:n]) - norm, rtol=1e-4)
            np.testing.assert_allclose(best_score[b], every[top], rtol=1e-5)
            self.assertEqual(list(best[b][:n]), list(top))
            self.assertEqual(tf.contrib.crf.viterbi_decode(scores[b, :n], moves)[0], list(top))


class CellTest(unittest.TestCase):
    def test_a_block_cell_has_the_gradients_of_the_ordinary_one(self):
        tf.reset_default_graph()
        x = tf.constant(np.random.RandomState(0).randn(2, 3).astype(np.float32))
        found = []
        for cell in (tf.contrib.rnn.LSTMBlockCell(4), tf.nn.rnn_cell.LSTMCell(4, name="lstm_cell")):
            with tf.variable_scope("cells", reuse=tf.AUTO_REUSE, initializer=tf.constant_initializer(0.1)):
                state = tf.nn.rnn_cell.LSTMStateTuple(tf.fill([2, 4], 0.3), tf.fill([2, 4], 0.2))
                output, after = cell(x, state)
            found.append(tf.gradients(output * output + after.c, tf.trainable_variables() + list(state)))
        ours, theirs = run(found)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
