"""Sampled losses and CTC."""

from graph_programs import program


@program
def sampled(tf):
    w = tf.get_variable("w", [20, 4])
    b = tf.get_variable("b", [20])
    x = tf.placeholder(tf.float32, [3, 4])
    l = tf.placeholder(tf.int64, [3, 1])
    tf.nn.nce_loss(w, b, l, x, 5, 20)
    tf.nn.sampled_softmax_loss(w, b, l, x, 5, 20)


@program
def ctc(tf):
    x = tf.placeholder(tf.float32, [5, 2, 4])
    labels = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2]), [2, 2])
    loss = tf.nn.ctc_loss(labels, x, [5, 4])
    tf.gradients(loss, x)
    tf.nn.ctc_greedy_decoder(x, [5, 4])
