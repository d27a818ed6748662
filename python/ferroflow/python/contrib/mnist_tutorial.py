"""The model of TensorFlow's first tutorial: `tensorflow.examples.tutorials.mnist.mnist`."""

import math

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def _layer(tf, inputs, size):
    """The product with random weights, plus zeros."""
    rows = int(inputs.get_shape()[1])
    weights = tf.Variable(tf.truncated_normal([rows, size], stddev=1.0 / math.sqrt(float(rows))), name="weights")
    biases = tf.Variable(tf.zeros([size]), name="biases")
    return tf.matmul(inputs, weights) + biases


def inference(images, hidden1_units, hidden2_units):
    """The logits of a network with two hidden layers."""
    from ferroflow.compat import v1 as tf
    with tf.name_scope("hidden1"):
        hidden1 = tf.nn.relu(_layer(tf, images, hidden1_units))
    with tf.name_scope("hidden2"):
        hidden2 = tf.nn.relu(_layer(tf, hidden1, hidden2_units))
    with tf.name_scope("softmax_linear"):
        return _layer(tf, hidden2, NUM_CLASSES)


def loss(logits, labels):
    from ferroflow.compat import v1 as tf
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss, learning_rate):
    """An op that trains, and counts steps in `global_step`."""
    from ferroflow.compat import v1 as tf
    tf.summary.scalar("loss", loss)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits, labels):
    """How many of the logits are right."""
    from ferroflow.compat import v1 as tf
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
