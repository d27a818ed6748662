"""`tf.contrib`: layers, slim and their default arguments."""

import os
import tempfile
import unittest

import numpy as np

import ferroflow.compat.v1 as tf

slim = tf.contrib.slim


class ContribTest(unittest.TestCase):
    def setUp(self):
        tf.reset_default_graph()

    def test_a_network_in_scopes_of_arguments(self):
        x, training = tf.placeholder(tf.float32, [2, 16, 16, 3]), tf.placeholder(tf.bool, [])
        normalized = {"is_training": training, "updates_collections": None}
        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-3),
                            normalizer_fn=slim.batch_norm, normalizer_params=normalized):
            with slim.arg_scope([slim.conv2d], stride=2):
                net = slim.conv2d(x, 8, [3, 3], scope="c1")
                net = slim.repeat(net, 2, slim.conv2d, 8, [3, 3], scope="c2")
            net = slim.fully_connected(slim.flatten(slim.max_pool2d(net, [2, 2])), 10, scope="fc")
        logits = slim.fully_connected(slim.dropout(net, 0.5, is_training=training), 4, activation_fn=None, scope="out")
        self.assertEqual([v.op.name for v in tf.trainable_variables()],
                         ["c1/weights", "c1/BatchNorm/beta", "c2/c2_1/weights", "c2/c2_1/BatchNorm/beta", "c2/c2_2/weights",
                          "c2/c2_2/BatchNorm/beta", "fc/weights", "fc/BatchNorm/beta", "out/weights", "out/biases"])
        self.assertEqual(len(tf.losses.get_regularization_losses()), 4)
        self.assertEqual(tf.get_collection(tf.GraphKeys.UPDATE_OPS), [])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            before = sess.run("c1/BatchNorm/moving_mean:0")
            self.assertEqual(sess.run(logits, {x: np.ones([2, 16, 16, 3]), training: True}).shape, (2, 4))
            self.assertTrue(np.any(sess.run("c1/BatchNorm/moving_mean:0") != before))

    def test_a_function_without_a_scope_of_arguments_is_refused(self):
        with self.assertRaisesRegex(ValueError, "add_arg_scope"):
            with slim.arg_scope([tf.nn.relu], name="x"):
                pass

    def test_transposed_convolutions_and_normalized_layers(self):
        x = tf.constant(np.random.RandomState(0).rand(2, 8, 8, 3).astype(np.float32))
        grown = tf.contrib.layers.conv2d_transpose(x, 5, 4, 2)
        flat = tf.contrib.layers.layer_norm(tf.reshape(x, [2, -1]))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            grown, flat = sess.run([grown, flat])
        self.assertEqual(grown.shape, (2, 16, 16, 5))
        np.testing.assert_allclose(flat.mean(1), [0, 0], atol=1e-4)
        np.testing.assert_allclose(flat.std(1), [1, 1], rtol=1e-3)

    def test_the_loss_of_sequences(self):
        logits = tf.constant(np.random.RandomState(0).rand(2, 3, 4).astype(np.float32))
        targets, weights = tf.constant([[0, 1, 2], [3, 0, 1]]), tf.constant([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
        loss = tf.contrib.seq2seq.sequence_loss(logits, targets, weights)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        with tf.Session() as sess:
            found, wanted = sess.run([loss, tf.reduce_sum(each * weights) / 5.0])
        self.assertAlmostEqual(found, wanted, places=5)

class TpuTest(unittest.TestCase):
    def test_an_estimator_for_tpus_runs_on_the_cpu(self):
        tpu = tf.contrib.tpu

        def model_fn(features, labels, mode, params):
            output = tf.layers.dense(features, 1)
            loss = tf.losses.mean_squared_error(labels, output)
            train = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1)).minimize(loss, tf.train.get_global_step())
            metrics = (lambda y, p: {"mae": tf.metrics.mean_absolute_error(y, p)}, [labels, output])
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train, eval_metrics=metrics)

        def input_fn(params):
            x = np.ones([8, 2], np.float32)
            return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(params["batch_size"], drop_remainder=True)

        with tempfile.TemporaryDirectory() as folder:
            config = tpu.RunConfig(model_dir=folder, tpu_config=tpu.TPUConfig(iterations_per_loop=5))
            found = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=4, eval_batch_size=2)
            found.train(input_fn, max_steps=5)
            self.assertEqual(sorted(found.evaluate(input_fn, steps=2)), ["global_step", "loss", "mae"])
        with self.assertRaises(ValueError):
            tpu.TPUEstimator(model_fn, config=config, train_batch_size=4)


class ProjectorTest(unittest.TestCase):
    def test_the_configuration_is_written_beside_the_events(self):
        from ferroflow.contrib.tensorboard.plugins import projector

        config = projector.ProjectorConfig()
        config.embeddings.add(tensor_name="words", metadata_path="labels.tsv")
        with tempfile.TemporaryDirectory() as folder:
            projector.visualize_embeddings(tf.summary.FileWriter(folder), config)
            with open(os.path.join(folder, "projector_config.pbtxt"), encoding="utf-8") as f:
                self.assertEqual(f.read(), 'embeddings {\n  tensor_name: "words"\n  metadata_path: "labels.tsv"\n}\n')


class OtherNamesTest(unittest.TestCase):
    def test_matrices_that_know_their_structure(self):
        linalg = tf.linalg
        with tf.Graph().as_default(), tf.Session() as sess:
            full = np.array([[2.0, 5.0], [1.0, 4.0]], np.float32)
            x = np.array([[1.0], [3.0]], np.float32)
            for made, dense in ((linalg.LinearOperatorLowerTriangular(full), np.tril(full)), (linalg.LinearOperatorFullMatrix(full), full),
                                (linalg.LinearOperatorDiag([2.0, 4.0]), np.diag([2.0, 4.0])), (linalg.LinearOperatorIdentity(2), np.eye(2))):
                found = sess.run([made.to_dense(), made.matmul(x), made.solve(x), made.determinant(), made.trace(), made.matvec([1.0, 3.0])])
                wanted = [dense, dense @ x, np.linalg.solve(dense, x), np.linalg.det(dense), np.trace(dense), (dense @ x)[:, 0]]
                for one, two in zip(found, wanted):
                    np.testing.assert_allclose(one, two, rtol=1e-5)

    def test_one_replica_of_a_strategy(self):
        self.assertFalse(tf.distribute.has_strategy())
        strategy = tf.distribute.MirroredStrategy()
        with tf.Graph().as_default(), strategy.scope():
            self.assertIs(tf.distribute.get_strategy(), strategy)
            self.assertEqual(strategy.run(lambda a: a + 1, (1,)), 2)
        self.assertEqual(tf.estimator.RunConfig(train_distribute=strategy).task_type, "worker")
        with self.assertRaises(NotImplementedError):
            tf.contrib.distribute.MirroredStrategy(num_gpus=2)

    def test_columns_by_their_old_names(self):
        old = tf.contrib.layers
        words = old.sparse_column_with_keys("w", ["a", "b"])
        columns = [old.real_valued_column("x", dimension=2), old.embedding_column(words, 3), old.one_hot_column(words)]
        with tf.Graph().as_default():
            layer = old.input_from_feature_columns({"x": tf.ones([4, 2]), "w": tf.constant(["a", "b", "a", "c"])}, columns)
            self.assertEqual(layer.shape.as_list(), [4, 7])

    def test_layers_of_mobile_networks(self):
        slim, values = tf.contrib.slim, np.random.RandomState(0).rand(2, 4, 4, 6).astype(np.float32)
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.constant(values)
            plain = slim.separable_conv2d(x, None, 3, depth_multiplier=2, scope="depthwise")
            whole = slim.separable_conv2d(x, 5, [3, 3], stride=2, normalizer_fn=slim.batch_norm, scope="whole")
            self.assertEqual((plain.shape.as_list(), whole.shape.as_list()), ([2, 4, 4, 12], [2, 2, 2, 5]))
            self.assertIn("whole/pointwise_weights:0", [v.name for v in slim.get_model_variables()])
            norms = [tf.contrib.layers.group_norm(x, groups=3), tf.contrib.layers.instance_norm(x)]
            largest = tf.contrib.layers.maxout(x, 2)
            line = tf.contrib.layers.linear(tf.ones([1, 2]), 3)
            sess.run(tf.global_variables_initializer())
            groups, each, biggest, _ = sess.run(norms + [largest, line])
        np.testing.assert_allclose(groups.reshape(2, 16, 3, 2).mean((1, 3)), 0, atol=1e-5)
        np.testing.assert_allclose(each.mean((1, 2)), 0, atol=1e-5)
        np.testing.assert_array_equal(biggest, values.reshape(2, 4, 4, 2, 3).max(-1))

    def test_words_become_rows_of_numbers(self):
        words = tf.keras.preprocessing.text.Tokenizer(num_words=4, oov_token="?")
        words.fit_on_texts(["the cat, the dog", "The cat!"])
        self.assertEqual(words.word_index, {"?": 1, "the": 2, "cat": 3, "dog": 4})
        rows = words.texts_to_sequences(["the dog", "a cat the"])
        self.assertEqual(rows, [[2, 1], [1, 3, 2]])
        pad = tf.keras.preprocessing.sequence.pad_sequences
        np.testing.assert_array_equal(pad(rows, maxlen=3), [[0, 2, 1], [1, 3, 2]])
        np.testing.assert_array_equal(pad(rows, 2, padding="post", truncating="post"), [[2, 1], [1, 3]])

    def test_functions_of_the_backend(self):
        backend = tf.keras.backend
        backend.clear_session()
        a, b = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(backend.eval(backend.batch_dot(backend.constant(a), backend.constant(b))), np.einsum("bij,bj->bi", a, b))
        chosen = backend.switch(backend.constant([1.0, 0.0]) > 0.5, backend.constant([1.0, 1.0]), backend.constant([2.0, 2.0]))
        np.testing.assert_array_equal(backend.eval(chosen), [1, 2])


if __name__ == "__main__":
    unittest.main()
