"""Recurrent networks."""

from graph_programs import program


@program
def rnn_dynamic_lstm(tf):
    x = tf.placeholder(tf.float32, [3, 5, 4])
    cell = tf.nn.rnn_cell.BasicLSTMCell(6)
    out, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    tf.gradients(tf.reduce_sum(out), tf.trainable_variables())


@program
def rnn_dynamic_gru(tf):
    x = tf.placeholder(tf.float32, [None, 5, 4])
    n = tf.placeholder(tf.int32, [None])
    tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6), x, sequence_length=n, dtype=tf.float32)


@program
def rnn_static(tf):
    xs = tf.unstack(tf.placeholder(tf.float32, [5, 3, 4]))
    tf.nn.static_rnn(tf.nn.rnn_cell.BasicRNNCell(6), xs, dtype=tf.float32)
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(3), tf.nn.rnn_cell.LSTMCell(2)])
    with tf.variable_scope("multi"):
        tf.nn.static_rnn(cells, xs, dtype=tf.float32)


@program
def rnn_bidirectional(tf):
    x = tf.placeholder(tf.float32, [3, 5, 4])
    tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(2), x, dtype=tf.float32)


@program
def rnn_static_with_lengths_of_an_unknown_batch(tf):
    xs = tf.unstack(tf.placeholder(tf.float32, [None, 4, 1]), 4, 1)
    n = tf.placeholder(tf.int32, [None])
    tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), xs, dtype=tf.float32, sequence_length=n)


@program
def rnn_language_model(tf):
    words = tf.placeholder(tf.int32, [None, 4])
    table = tf.get_variable("table", [9, 5])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), tf.nn.embedding_lookup(table, words), dtype=tf.float32)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words, logits=tf.layers.dense(outputs, 9))
    tf.gradients(tf.reduce_sum(loss), tf.trainable_variables())
