"""Whole models, as programs for parameter servers and workers have them."""

import math

import numpy as np

from graph_programs import program


@program
def model_word_vectors(tf):
    inputs = tf.placeholder(tf.int32, [6])
    labels = tf.placeholder(tf.int32, [6, 1])
    with tf.device("/cpu:0"), tf.name_scope("embeddings"):
        table = tf.Variable(tf.random_uniform([50, 8], -1.0, 1.0, seed=3))
        found = tf.nn.embedding_lookup(table, inputs)
    with tf.name_scope("weights"):
        weights = tf.Variable(tf.truncated_normal([50, 8], stddev=1.0 / math.sqrt(8), seed=4))
    biases = tf.Variable(tf.zeros([50]), name="biases")
    with tf.name_scope("loss"):
        loss = tf.reduce_mean(tf.nn.nce_loss(weights=weights, biases=biases, labels=labels, inputs=found, num_sampled=4,
                                             num_classes=50, remove_accidental_hits=True))
        tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, labels, found, 4, 50, seed=5))
    tf.summary.scalar("loss", loss)
    with tf.name_scope("optimizer"):
        tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    normalized = table / tf.sqrt(tf.reduce_sum(tf.square(table), 1, keepdims=True))
    tf.matmul(tf.nn.embedding_lookup(normalized, np.arange(5)), normalized, transpose_b=True)
    tf.summary.merge_all()
    tf.global_variables_initializer()


@program
def model_language(tf):
    def build(training):
        x, y = tf.placeholder(tf.int32, [3, 4]), tf.placeholder(tf.int32, [3, 4])

        def cell():
            one = tf.nn.rnn_cell.BasicLSTMCell(5, forget_bias=0.0, reuse=not training)
            return tf.nn.rnn_cell.DropoutWrapper(one, output_keep_prob=0.9, seed=3) if training else one
        cells = tf.nn.rnn_cell.MultiRNNCell([cell() for _ in range(2)])
        state = cells.zero_state(3, tf.float32)
        inputs = tf.nn.embedding_lookup(tf.get_variable("embedding", [11, 5]), x)
        outputs = []
        with tf.variable_scope("RNN"):
            for t in range(4):
                if t > 0:
                    tf.get_variable_scope().reuse_variables()
                output, state = cells(inputs[:, t, :], state)
                outputs.append(output)
        logits = tf.nn.xw_plus_b(tf.reshape(tf.concat(outputs, 1), [-1, 5]), tf.get_variable("softmax_w", [5, 11]),
                                 tf.get_variable("softmax_b", [11]))
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)) / 3
        if training:
            rate, variables = tf.Variable(0.0, trainable=False), tf.trainable_variables()
            gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5)
            tf.train.GradientDescentOptimizer(rate).apply_gradients(
                zip(gradients, variables), global_step=tf.train.get_or_create_global_step())
            tf.assign(rate, tf.placeholder(tf.float32, []))
    initializer = tf.random_uniform_initializer(-0.1, 0.1, seed=1)
    for name, reuse in (("Train", None), ("Valid", True)):
        with tf.name_scope(name), tf.variable_scope("Model", reuse=reuse, initializer=initializer):
            build(not reuse)


@program
def model_towers(tf):
    def variable(name, shape, decay):
        with tf.device("/cpu:0"):
            found = tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.05, seed=3))
        if decay:
            tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(found), decay, name="weight_loss"))
        return found

    def logits_of(images):
        with tf.variable_scope("conv1") as scope:
            conv = tf.nn.conv2d(images, variable("weights", [5, 5, 3, 8], None), [1, 1, 1, 1], padding="SAME")
            biases = tf.get_variable("biases", [8], initializer=tf.constant_initializer(0.0))
            conv = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
            tf.summary.scalar("sparsity", tf.nn.zero_fraction(conv))
        pool = tf.nn.max_pool(conv, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME", name="pool1")
        norm = tf.nn.lrn(pool, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
        flat = tf.reshape(norm, [4, -1])
        return tf.matmul(flat, variable("local", [flat.get_shape()[1].value, 10], 0.004))
    step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
    rate = tf.train.exponential_decay(0.1, step, 2, 0.1, staircase=True)
    optimizer, towers = tf.train.GradientDescentOptimizer(rate), []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(2):
            with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i) as scope:
                logits = logits_of(tf.zeros([4, 24, 24, 3]))
                cross = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2, 3], logits=logits)
                tf.add_to_collection("losses", tf.reduce_mean(cross, name="cross_entropy"))
                total = tf.add_n(tf.get_collection("losses", scope), name="total_loss")
                tf.get_variable_scope().reuse_variables()
                towers.append(optimizer.compute_gradients(total))
    averages = []
    for pairs in zip(*towers):
        gradient = tf.reduce_mean(tf.concat(axis=0, values=[tf.expand_dims(g, 0) for g, _ in pairs]), 0)
        averages.append((gradient, pairs[0][1]))
    moving = tf.train.ExponentialMovingAverage(0.9999, step)
    tf.group(optimizer.apply_gradients(averages, global_step=step), moving.apply(tf.trainable_variables()))
    tf.train.Saver(tf.global_variables())


@program
def model_adversaries(tf):
    training = tf.placeholder_with_default(True, [])

    def generator(z):
        with tf.variable_scope("generator"):
            x = tf.reshape(tf.layers.dense(z, 128, use_bias=False), [-1, 4, 4, 8])
            x = tf.nn.relu(tf.layers.batch_normalization(x, training=training))
            x = tf.layers.conv2d_transpose(x, 4, 5, 2, "same")
            x = tf.nn.leaky_relu(tf.layers.batch_normalization(x, training=training, momentum=0.8, fused=True))
            return tf.tanh(tf.layers.conv2d_transpose(x, 1, [5, 5], strides=[2, 2], padding="SAME", name="out"))

    def judge(x, reuse):
        with tf.variable_scope("discriminator", reuse=reuse):
            h = tf.nn.leaky_relu(tf.layers.conv2d(x, 4, 5, 2, padding="same"))
            h = tf.layers.dropout(h, 0.3, training=training, seed=8)
            h = tf.layers.batch_normalization(tf.layers.conv2d(h, 8, 5, 2, padding="same"), training=training)
            return tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2)), 1)
    fake = generator(tf.placeholder(tf.float32, [None, 6]))
    real = judge(tf.placeholder(tf.float32, [None, 16, 16, 1]), False)
    guessed = judge(fake, True)
    loss_of = tf.losses.sigmoid_cross_entropy
    loss = loss_of(tf.ones_like(real), real) + loss_of(tf.zeros_like(guessed), guessed, label_smoothing=0.1)
    variables = tf.trainable_variables()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(loss, var_list=[v for v in variables if "disc" in v.name])
        tf.train.RMSPropOptimizer(1e-3, momentum=0.5, centered=True).minimize(
            loss_of(tf.ones_like(guessed), guessed), var_list=[v for v in variables if "gen" in v.name])
    tf.losses.get_total_loss()


@program
def model_sentences(tf):
    x, y = tf.placeholder(tf.int32, [None, 12], name="input_x"), tf.placeholder(tf.float32, [None, 2], name="input_y")
    keep = tf.placeholder(tf.float32, name="dropout_keep_prob")
    with tf.device("/cpu:0"), tf.name_scope("embedding"):
        table = tf.Variable(tf.random_uniform([30, 5], -1.0, 1.0), name="W")
        chars = tf.expand_dims(tf.nn.embedding_lookup(table, x), -1)
    pooled = []
    for k in (3, 4):
        with tf.name_scope("conv-maxpool-%s" % k):
            w = tf.Variable(tf.truncated_normal([k, 5, 1, 4], stddev=0.1), name="W")
            b = tf.Variable(tf.constant(0.1, shape=[4]), name="b")
            conv = tf.nn.conv2d(chars, w, strides=[1, 1, 1, 1], padding="VALID", name="conv")
            h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
            pooled.append(tf.nn.max_pool(h, ksize=[1, 13 - k, 1, 1], strides=[1, 1, 1, 1], padding="VALID", name="pool"))
    with tf.name_scope("dropout"):
        dropped = tf.nn.dropout(tf.reshape(tf.concat(pooled, 3), [-1, 8]), keep)
    with tf.name_scope("output"):
        w = tf.get_variable("W", shape=[8, 2], initializer=tf.glorot_uniform_initializer())
        b = tf.Variable(tf.constant(0.1, shape=[2]), name="b")
        scores = tf.nn.xw_plus_b(dropped, w, b, name="scores")
        predictions = tf.argmax(scores, 1, name="predictions")
    with tf.name_scope("loss"):
        losses = tf.nn.softmax_cross_entropy_with_logits(logits=scores, labels=y)
        loss = tf.reduce_mean(losses) + 0.1 * (tf.nn.l2_loss(w) + tf.nn.l2_loss(b))
    with tf.name_scope("accuracy"):
        tf.reduce_mean(tf.cast(tf.equal(predictions, tf.argmax(y, 1)), "float"), name="accuracy")
    optimizer = tf.train.AdamOptimizer(1e-3)
    pairs = optimizer.compute_gradients(loss)
    optimizer.apply_gradients(pairs, global_step=tf.Variable(0, name="global_step", trainable=False))
    for gradient, v in pairs:
        tf.summary.histogram("{}/grad/hist".format(v.name), gradient)
        tf.summary.scalar("{}/grad/sparsity".format(v.name), tf.nn.zero_fraction(gradient))


@program
def model_factors(tf):
    """Variables that come after the optimizer follow its slots in the round of the ps tasks."""
    ids, values = tf.placeholder(tf.int32, [None, 5]), tf.placeholder(tf.float32, [None, 5])
    labels = tf.placeholder(tf.float32, [None])
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        with tf.variable_scope("fm", partitioner=tf.fixed_size_partitioner(2, axis=0)):
            linear = tf.get_variable("linear", [40], initializer=tf.zeros_initializer())
            table = tf.get_variable("table", [40, 4], initializer=tf.glorot_normal_initializer(seed=1))
        first = tf.reduce_sum(tf.nn.embedding_lookup(linear, ids) * values, 1)
        rows = tf.nn.embedding_lookup(table, ids) * tf.reshape(values, [-1, 5, 1])
        second = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(rows, 1)) - tf.reduce_sum(tf.square(rows), 1), 1)
        h = tf.reshape(rows, [-1, 20])
        for i, n in enumerate([8, 4]):
            h = tf.layers.dense(h, n, tf.nn.relu, name="d%d" % i, kernel_regularizer=lambda w: 1e-3 * tf.nn.l2_loss(w))
            h = tf.nn.dropout(tf.layers.batch_normalization(h, training=True, name="bn%d" % i), keep_prob=0.8, seed=i)
        logits = first + second + tf.squeeze(tf.layers.dense(h, 1, name="o"), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))
        loss += tf.losses.get_regularization_loss()
        tf.metrics.auc(labels, tf.sigmoid(logits))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            tf.train.AdagradOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step())
        tf.layers.dense(tf.layers.dense(h, 5, tf.nn.sigmoid, name="f1_att"), 1, name="f2_att")


@program
def layers_dilated_and_regularized(tf):
    x, s = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.float32, [2, 6, 3])
    tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu, activity_regularizer=tf.reduce_sum,
                     kernel_regularizer=lambda w: tf.reduce_sum(w) * 0.1)
    tf.layers.conv2d(x, 2, 3, dilation_rate=2, padding="same", use_bias=False)
    tf.layers.conv2d(x, 2, 3, dilation_rate=(1, 2))
    tf.layers.conv1d(s, 2, 2, dilation_rate=2, padding="same")
    tf.nn.atrous_conv2d(x, tf.zeros([2, 2, 3, 4]), 2, "SAME")
    tf.nn.convolution(tf.placeholder(tf.float32, [2, None, 8, 3]), tf.zeros([2, 2, 3, 4]), "VALID", dilation_rate=[2, 1])


@program
def static_rnn_with_lengths(tf):
    x = tf.unstack(tf.placeholder(tf.float32, [2, 3, 4]), axis=1)
    tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), x, dtype=tf.float32, sequence_length=[3, 1])


@program
def custom_gradients_with_variables(tf):
    with tf.variable_scope("c", use_resource=True):
        @tf.custom_gradient
        def scaled(x):
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())

            def gradient(dy, variables=None):
                return dy * 2.0, [tf.reduce_sum(dy) for _ in variables]
            return x * w, gradient
        y = scaled(tf.placeholder(tf.float32, [3]))
    tf.gradients(y, tf.trainable_variables())
    x = tf.placeholder(tf.float32, [3])
    tf.gradients(tf.nn.swish(x), x)
    tf.gradients(tf.grad_pass_through(tf.round)(x), x)


@program
def choices(tf):
    i = tf.placeholder(tf.int32, [])
    tf.case([(i < 1, lambda: tf.constant(1)), (i < 5, lambda: tf.constant(2))], default=lambda: tf.constant(3))
    tf.assert_equal(i, 3, message="three")
    tf.assert_equal(i, i)
    tf.assert_less(i, 3)


@program
def schedules(tf):
    p = tf.placeholder(tf.int32, [])
    tf.train.exponential_decay(0.1, p, 10, 0.5)
    tf.train.piecewise_constant(p, [3, 6], [0.1, 0.2, 0.3])
    tf.train.polynomial_decay(0.1, p, 10, 0.01, 2.0, cycle=True)
    tf.train.natural_exp_decay(0.1, p, 10, 0.5, True)
    tf.train.inverse_time_decay(0.1, p, 10, 0.5)
    tf.train.cosine_decay(0.1, p, 10, 0.2)
    tf.train.cosine_decay_restarts(0.1, p, 4)
    tf.train.linear_cosine_decay(0.1, p, 10)
    tf.train.noisy_linear_cosine_decay(0.1, p, 10)


@program
def recurrent_loops(tf):
    cells, x = tf.nn.rnn_cell, tf.placeholder(tf.float32, [2, 4, 3])
    lengths = tf.constant([4, 2])
    tf.nn.dynamic_rnn(cells.DeviceWrapper(cells.GRUCell(3), "/cpu:0"), x, lengths, dtype=tf.float32)
    with tf.variable_scope("raw"):
        cell, inputs = cells.LSTMCell(2), tf.TensorArray(tf.float32, 4).unstack(tf.transpose(x, [1, 0, 2]))

        def step(time, output, state, loop_state):
            finished = time >= lengths
            following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([2, 3]), lambda: inputs.read(time))
            return finished, following, cell.zero_state(2, tf.float32) if output is None else state, output, None
        outputs, state, _ = tf.nn.raw_rnn(cell, step)
    tf.gradients([tf.reduce_sum(outputs.stack()), state[0]], tf.trainable_variables())


@program
def metrics_of_classes(tf):
    labels, guesses = tf.placeholder(tf.int64, [6]), tf.placeholder(tf.int64, [6])
    scores, weights = tf.placeholder(tf.float32, [6]), tf.constant([1.0, 0.0, 2.0, 1.0, 1.0, 1.0])
    metrics = tf.metrics
    for metric in (metrics.accuracy, metrics.precision, metrics.recall, metrics.false_positives, metrics.true_negatives):
        metric(labels, guesses)
        metric(labels, guesses, weights)
    metrics.auc(labels, scores)
    metrics.auc(labels, scores, curve="PR", num_thresholds=50)
    metrics.mean_iou(labels, guesses, 3)
    metrics.mean_per_class_accuracy(labels, guesses, 3)
    metrics.mean(scores, weights)
    metrics.mean_tensor(scores)
    metrics.root_mean_squared_error(scores, scores * 2.0)
    wanted = tf.constant([[1], [2]], tf.int64)
    metrics.precision_at_k(wanted, tf.placeholder(tf.float32, [2, 3]), 2)
    metrics.recall_at_k(wanted, tf.placeholder(tf.float32, [2, 3]), 1)
