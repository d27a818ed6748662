"""tf.layers, tf.losses and tf.metrics."""

from graph_programs import program


@program
def layers_dense(tf):
    x = tf.placeholder(tf.float32, [None, 8])
    y = tf.layers.dense(x, 4, tf.nn.relu)
    tf.layers.dense(y, 2, name="out", kernel_initializer=tf.zeros_initializer())
    tf.layers.dense(y, 2)
    with tf.variable_scope("s"):
        tf.layers.dense(y, 2, use_bias=False)
    tf.layers.flatten(tf.placeholder(tf.float32, [None, 4, 5]))
    tf.layers.dense(tf.placeholder(tf.float32, [None, 3, 5]), 2)


@program
def layers_conv(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu, padding="same")
    y = tf.layers.max_pooling2d(y, 2, 2)
    y = tf.layers.average_pooling2d(y, 2, 2)
    y = tf.layers.conv2d(y, 2, [1, 1], name="c")
    y = tf.layers.dropout(y, 0.5, training=True)
    tf.layers.dropout(y, 0.5)
    tf.layers.flatten(y)


@program
def layers_batch_norm(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    tf.layers.batch_normalization(x, training=True)
    tf.layers.batch_normalization(x, training=False, name="eval")
    tf.layers.batch_normalization(tf.placeholder(tf.float32, [None, 5]), training=True, name="two")


@program
def losses(tf):
    x = tf.placeholder(tf.float32, [4, 3])
    l = tf.placeholder(tf.float32, [4, 3])
    i = tf.placeholder(tf.int32, [4])
    tf.losses.mean_squared_error(l, x)
    tf.losses.absolute_difference(l, x, weights=2.0)
    tf.losses.huber_loss(l, x)
    tf.losses.log_loss(l, x)
    tf.losses.hinge_loss(l, x)
    tf.losses.sigmoid_cross_entropy(l, x, label_smoothing=0.1)
    tf.losses.softmax_cross_entropy(l, x)
    tf.losses.sparse_softmax_cross_entropy(i, x)
    tf.losses.mean_squared_error(l, x, weights=tf.ones([4, 1]), reduction=tf.losses.Reduction.SUM)
    tf.losses.mean_squared_error(l, x, reduction=tf.losses.Reduction.NONE, loss_collection=None)
    tf.losses.cosine_distance(l, x, axis=1)
    tf.losses.get_total_loss()


@program
def metrics(tf):
    p = tf.placeholder(tf.float32, [4])
    l = tf.placeholder(tf.int64, [4])
    tf.metrics.mean(p)
    tf.metrics.accuracy(l, tf.cast(p, tf.int64))
    tf.metrics.precision(l, p > 0.5)
    tf.metrics.recall(l, p > 0.5)
    tf.metrics.mean_squared_error(tf.cast(l, tf.float32), p)
    tf.metrics.auc(l, p)
    tf.metrics.root_mean_squared_error(tf.cast(l, tf.float32), p)
    tf.metrics.mean(p, weights=tf.ones([4]), name="m")
    tf.local_variables_initializer()


@program
def layers_more_convolutions(tf):
    x = tf.placeholder(tf.float32, [2, 6, 6, 3])
    tf.layers.conv2d_transpose(x, 4, 2, strides=2, kernel_regularizer=tf.square)
    tf.layers.conv2d_transpose(tf.placeholder(tf.float32, [None, None, 6, 3]), 4, 3, padding="same", name="dynamic")
    tf.layers.conv3d_transpose(tf.placeholder(tf.float32, [2, 3, 3, 3, 1]), 2, 2)
    tf.layers.separable_conv2d(x, 4, 3, depth_multiplier=2, activation=tf.nn.relu)
    tf.layers.separable_conv1d(tf.placeholder(tf.float32, [2, 6, 3]), 4, 3)


@program
def layers_more_pooling(tf):
    x, y = tf.placeholder(tf.float32, [2, 6, 3]), tf.placeholder(tf.float32, [2, 6, 6, 6, 3])
    tf.layers.max_pooling1d(x, 2, 2)
    tf.layers.average_pooling1d(x, 3, 1, padding="same", name="a")
    tf.layers.max_pooling3d(y, 2, 2)
    tf.layers.average_pooling3d(y, 2, 1)
