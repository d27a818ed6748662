"""Records 20 training steps of small models from TensorFlow 2.15: `python record.py > losses.txt`.

`python record.py gradients > gradients.txt` records the gradients of the first step, a line for each variable.
Inputs and initial values are made by `values`, which tests/training.rs repeats. Also writes `checkpoint-*`, a
checkpoint of one of the models after its training, which the test reads back.
"""
import os
import sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.enable_resource_variables()


def values(shape, seed, scale):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return ((((i * 7919 + seed * 104729) % 1000) / 500.0 - 1.0) * scale).astype(np.float32).reshape(shape)


def labels(n, classes, seed):
    return ((np.arange(n, dtype=np.int64) * 31 + seed) % classes).astype(np.int64)


def variable(name, shape, seed, scale=0.5):
    return tf.get_variable(name, initializer=tf.constant(values(shape, seed, scale)))


def linear():
    x, w, b = values([16], 1, 1.0), variable("w", [], 2), variable("b", [], 3)
    return tf.reduce_mean(tf.square(x * w + b - (2 * x + 10)))


def mlp():
    x = values([32, 64], 1, 1.0)
    h = tf.nn.relu(tf.matmul(x, variable("w1", [64, 16], 2)) + variable("b1", [16], 3))
    logits = tf.matmul(h, variable("w2", [16, 10], 4)) + variable("b2", [10], 5)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels(32, 10, 6), logits=logits))


def cnn():
    x = values([8, 8, 8, 1], 1, 1.0)
    h = tf.nn.conv2d(x, variable("k", [3, 3, 1, 4], 2), [1, 1, 1, 1], "SAME")
    h = tf.nn.max_pool(tf.nn.relu(tf.nn.bias_add(h, variable("kb", [4], 3))), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    logits = tf.matmul(tf.reshape(h, [-1, 64]), variable("w", [64, 10], 4)) + variable("b", [10], 5)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels(8, 10, 6), logits=logits))


def embedding():
    rows = tf.nn.embedding_lookup(variable("table", [20, 4], 1), labels(16, 11, 2))
    return tf.reduce_mean(tf.square(tf.reduce_sum(rows, 1) - values([16], 3, 2.0)))


def lstm():
    x = tf.constant(values([4, 5, 3], 1, 1.0))
    kernel, bias = variable("kernel", [9, 24], 2), variable("bias", [24], 3)

    def step(t, c, h):
        i, j, f, o = tf.split(tf.matmul(tf.concat([x[:, t], h], 1), kernel) + bias, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return t + 1, c, tf.tanh(c) * tf.sigmoid(o)

    zero = tf.zeros([4, 6])
    _, _, h = tf.while_loop(lambda t, c, h: t < 5, step, [0, zero, zero])
    return tf.reduce_mean(tf.square(h - 0.5))


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
}
MODELS = {
    "linear": (linear, ["sgd"]),
    "mlp": (mlp, list(OPTIMIZERS)),
    "cnn": (cnn, ["sgd", "adam"]),
    "embedding": (embedding, list(OPTIMIZERS)),
    "lstm": (lstm, ["sgd", "adam"]),
}

if sys.argv[1:] == ["gradients"]:
    for name, (model, _) in MODELS.items():
        tf.reset_default_graph()
        loss = model()
        variables = tf.trainable_variables()
        gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for v, g in zip(variables, sess.run(gradients)):
                print(name, v.op.name, *["%.7g" % x for x in g.flatten()])
    sys.exit()

here = os.path.dirname(os.path.abspath(__file__))
for name, (model, optimizers) in MODELS.items():
    for optimizer in optimizers:
        tf.reset_default_graph()
        loss = model()
        train = OPTIMIZERS[optimizer]().minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses = []
            for _ in range(20):
                losses.append(sess.run([loss, train])[0])
            losses.append(sess.run(loss))
            print(name, optimizer, *["%.9g" % x for x in losses])
            if (name, optimizer) == ("embedding", "adam"):
                tf.train.Saver().save(sess, os.path.join(here, "checkpoint-adam"), write_meta_graph=False, write_state=False)
