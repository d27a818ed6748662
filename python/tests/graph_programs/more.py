"""Optimizers, feature columns, recurrent cells, strings, sparse tensors and schedules, one at a time."""

from graph_programs import program


def _train(tf, optimizer, use_resource):
    w = tf.get_variable("w", [3, 2], use_resource=use_resource)
    table = tf.get_variable("table", [5, 3], use_resource=use_resource)
    loss = tf.reduce_sum(tf.square(tf.matmul(tf.nn.embedding_lookup(table, [0, 2, 2]), w)))
    optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())


@program
def more_adadelta(tf):
    _train(tf, tf.train.AdadeltaOptimizer(0.5), False)


@program
def more_adagrad_resource(tf):
    _train(tf, tf.train.AdagradOptimizer(0.5), True)


@program
def more_ftrl(tf):
    _train(tf, tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.1), False)


@program
def more_rmsprop_centered(tf):
    _train(tf, tf.train.RMSPropOptimizer(0.5, momentum=0.9, centered=True), False)


@program
def more_momentum_resource(tf):
    _train(tf, tf.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True), True)


@program
def more_proximal(tf):
    _train(tf, tf.train.ProximalGradientDescentOptimizer(0.5, l2_regularization_strength=0.1), False)


@program
def more_adam_resource(tf):
    _train(tf, tf.train.AdamOptimizer(tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 10, 0.5)), True)


@program
def more_multi_cells(tf):
    x, cells = tf.placeholder(tf.float32, [2, 5, 3]), tf.nn.rnn_cell
    tf.nn.dynamic_rnn(cells.MultiRNNCell([cells.LSTMCell(4), cells.GRUCell(3)]), x, dtype=tf.float32)
    with tf.variable_scope("wrapped"):
        tf.nn.dynamic_rnn(cells.DropoutWrapper(cells.GRUCell(3), 0.5, seed=1), x, [5, 3], dtype=tf.float32)


@program
def more_strings(tf):
    s = tf.placeholder(tf.string, [None])
    tf.string_to_number(s)
    tf.string_split(s, ",")
    tf.strings.regex_replace(s, "a", "b")
    tf.strings.to_hash_bucket_fast(s, 10)
    tf.as_string(tf.placeholder(tf.float32), precision=2)
    tf.decode_csv(s, [[1.0], [""]])


@program
def more_sparse(tf):
    s = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    tf.sparse.to_dense(s)
    tf.sparse.reduce_sum(s, 1)
    tf.sparse.sparse_dense_matmul(s, tf.ones([3, 2]))
    tf.sparse.concat(0, [s, s])
    tf.sparse.transpose(s)


@program
def more_schedules(tf):
    step = tf.train.get_or_create_global_step()
    tf.train.cosine_decay(0.1, step, 10)
    tf.train.polynomial_decay(0.1, step, 10, cycle=True)
    tf.train.piecewise_constant(step, [3, 8], [0.1, 0.2, 0.3])
    tf.train.inverse_time_decay(0.1, step, 3, 0.5)
    tf.train.linear_cosine_decay(0.1, step, 10)


@program
def more_images(tf):
    x = tf.placeholder(tf.float32, [2, 4, 4, 3])
    tf.image.resize_bilinear(x, [8, 8])
    tf.image.resize_images(x, [8, 8], method=1)
    tf.image.rgb_to_grayscale(x)
    tf.image.adjust_contrast(x, 2.0)
    tf.image.flip_left_right(x)


@program
def more_penalties(tf):
    x = tf.placeholder(tf.float32, [2, 6])
    tf.layers.dense(x, 3, kernel_regularizer=lambda w: tf.reduce_sum(w * w), bias_regularizer=tf.reduce_sum)
    with tf.variable_scope("outer", regularizer=tf.reduce_sum):
        tf.layers.dense(x, 2)
    tf.losses.get_regularization_loss()


@program
def more_averages(tf):
    v = tf.get_variable("v", [2])
    averages = tf.train.ExponentialMovingAverage(0.9, num_updates=tf.train.get_or_create_global_step())
    with tf.control_dependencies([v.assign_add([1.0, 1.0])]):
        averages.apply([v])
    averages.average(v)


@program
def more_seq_masks(tf):
    x = tf.placeholder(tf.float32, [None, 5, 3])
    lengths = tf.placeholder(tf.int32, [None])
    mask = tf.sequence_mask(lengths, 5, dtype=tf.float32)
    tf.reduce_sum(x * tf.expand_dims(mask, -1), 1) / tf.expand_dims(tf.reduce_sum(mask, 1), -1)
    tf.reverse_sequence(x, lengths, seq_axis=1, batch_axis=0)
