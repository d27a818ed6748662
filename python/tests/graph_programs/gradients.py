"""Gradients: names, structure and colocation."""

from graph_programs import program


@program
def grad_mlp(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.placeholder(tf.float32, [4, 3])
    b = tf.placeholder(tf.float32, [3])
    y = tf.nn.relu(tf.matmul(x, w) + b)
    loss = tf.reduce_mean(tf.square(y - 1.0))
    tf.gradients(loss, [w, b])
    tf.gradients(loss, [x], name="again")


@program
def grad_elementwise(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    for f in (tf.abs, tf.negative, tf.sign, tf.reciprocal, tf.square, tf.sqrt, tf.rsqrt, tf.exp,
              tf.expm1, tf.log, tf.log1p, tf.sin, tf.cos, tf.tan, tf.asin, tf.acos, tf.atan,
              tf.sinh, tf.cosh, tf.asinh, tf.acosh, tf.atanh, tf.lgamma, tf.digamma, tf.erf,
              tf.erfc, tf.sigmoid, tf.tanh, tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu,
              tf.nn.softplus, tf.nn.softsign, tf.identity, tf.nn.softmax, tf.nn.log_softmax,
              tf.nn.l2_loss, tf.math.erfinv, tf.math.ndtri, tf.floor, tf.nn.leaky_relu):
        tf.gradients(f(x), x)


@program
def grad_broadcast(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.placeholder(tf.float32, [3])
    u = tf.placeholder(tf.float32)
    p = tf.placeholder(tf.float32, [None, 3])
    for f in (tf.add, tf.subtract, tf.multiply, tf.truediv, tf.maximum, tf.minimum, tf.pow,
              tf.squared_difference, tf.div_no_nan, tf.atan2, tf.floormod, tf.math.xlogy,
              tf.math.multiply_no_nan, tf.igamma, tf.zeta):
        for a, b in ((x, x), (x, y), (x, u), (p, y), (p, p)):
            tf.gradients(f(a, b), [a, b])
    tf.gradients(tf.where(x > 0, x, x * 2), x)
    tf.gradients(tf.where_v2(x > 0, x, 1.), x)


@program
def grad_reductions(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    p = tf.placeholder(tf.float32, [None, 3])
    u = tf.placeholder(tf.float32)
    for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod,
              tf.reduce_logsumexp):
        for t in (x, p, u):
            tf.gradients(f(t), t)
            tf.gradients(f(t, axis=0), t)
            tf.gradients(f(t, axis=[-1], keepdims=True), t)
    tf.gradients(tf.cumsum(x), x)
    tf.gradients(tf.cumprod(x, 1), x)
    tf.gradients(tf.math.reduce_euclidean_norm(x), x)
    tf.gradients(tf.math.cumulative_logsumexp(x), x)


@program
def grad_matmul(tf):
    a = tf.placeholder(tf.float32, [2, 2])
    c = tf.placeholder(tf.float32, [5, 2, 2])
    for ta in (False, True):
        for tb in (False, True):
            tf.gradients(tf.matmul(a, a, ta, tb), a)
            tf.gradients(tf.matmul(c, c, ta, tb), c)
    tf.gradients(tf.matmul(c, a), [a, c])
    tf.gradients(tf.tensordot(c, a, 1), [a, c])
    tf.gradients(tf.matmul(a, a, a_is_sparse=True), a)
    tf.gradients(tf.cross([[1., 2., 3.]], tf.zeros([1, 3])), a)


@program
def grad_arrays(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    p = tf.placeholder(tf.float32, [None, 3])
    i = tf.placeholder(tf.int32, [])
    for t in (x, p):
        for y in (tf.concat([t, t], 0), tf.stack([t, t]), tf.unstack(t, num=3, axis=1)[0],
                  tf.split(t, 3, 1)[1], tf.slice(t, [0, 0], [1, 2]), t[0], t[:, 1:], t[i],
                  tf.transpose(t), tf.reshape(t, [-1]), tf.expand_dims(t, 0),
                  tf.squeeze(tf.expand_dims(t, 0)), tf.tile(t, [2, 1]), tf.pad(t, [[1, 1], [0, 0]]),
                  tf.pad(t, [[1, 1], [0, 0]], "SYMMETRIC"), tf.reverse(t, [0]),
                  tf.gather(t, [0]), tf.gather(t, [0, 1], axis=1), tf.gather_nd(t, [[0, 1]]),
                  tf.broadcast_to(t, [4, 2, 3]), tf.boolean_mask(t, t[:, 0] > 0),
                  tf.one_hot([1], 3) * t[:1], tf.matrix_band_part(t, 1, 1), tf.matrix_diag_part(t),
                  tf.matrix_diag(t), tf.scatter_nd([[0]], t[:1], [3, 3]), tf.cast(t, tf.float64),
                  tf.split(t, [1, 2], 1)[0], tf.fill([2], t[0, 0]), tf.segment_sum(t, [0, 1]),
                  tf.unsorted_segment_sum(t, [0, 1], 2), tf.segment_mean(t, [0, 1]),
                  tf.segment_max(t, [0, 1]), tf.unsorted_segment_max(t, [0, 1], 2),
                  tf.sparse_segment_mean(t, [0], [0]), tf.add_n([t, t, t]), tf.identity_n([t, t])[0],
                  tf.nn.top_k(t, 2)[0]):
            tf.gradients(y, t)


@program
def grad_options(tf):
    x = tf.placeholder(tf.float32, [3])
    y = x * x + tf.exp(x) + x
    tf.gradients(y, x, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE)
    tf.gradients(y, x, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N)
    tf.gradients([y, y * 2], [x], grad_ys=[tf.ones([3]), None])
    tf.gradients(y, x, gate_gradients=True)
    z = y * 2
    tf.gradients(z, [x, y], stop_gradients=[y])
    with tf.device("/cpu:0"):
        q = tf.sin(x)
    tf.gradients(tf.reduce_sum(q), x, colocate_gradients_with_ops=True)
    tf.gradients(tf.constant(1.0), [x], unconnected_gradients="zero")
    with tf.name_scope("scope"):
        tf.gradients(tf.square(q), x)
    tf.gradients(tf.gradients(tf.tanh(x) ** 3, x)[0], x)


@program
def grad_losses(tf):
    x = tf.placeholder(tf.float32, [4, 3])
    l = tf.placeholder(tf.float32, [4, 3])
    i = tf.placeholder(tf.int32, [4])
    tf.gradients(tf.nn.softmax_cross_entropy_with_logits_v2(labels=l, logits=x), [x, l])
    tf.gradients(tf.nn.softmax_cross_entropy_with_logits(labels=l, logits=x), x)
    tf.gradients(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x), x)
    tf.gradients(tf.nn.sigmoid_cross_entropy_with_logits(labels=l, logits=x), x)
    tf.gradients(tf.nn.bias_add(x, [1., 2., 3.]), x)
    tf.gradients(tf.nn.l2_normalize(x, 1), x)


@program
def grad_conv(tf):
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    w = tf.placeholder(tf.float32, [3, 3, 3, 4])
    y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME")
    y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    y = tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    tf.gradients(tf.nn.lrn(y), [x, w])
    d = tf.placeholder(tf.float32, [3, 3, 3, 2])
    tf.gradients(tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME"), [x, d])
    m, v = tf.nn.moments(x, [0, 1, 2])
    tf.gradients(tf.nn.batch_normalization(x, m, v, None, None, 1e-3), x)
    tf.gradients(tf.nn.fused_batch_norm(x, [1., 1., 1.], [0., 0., 0.])[0], x)




@program
def grad_of_given_numbers(tf):
    x = tf.get_variable("x", [2])
    variables = {"x": x, "y": tf.get_variable("y", [2])}
    tf.gradients(x * 3.0, x, grad_ys=[[1.0, 10.0]])
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(x * variables["y"]), var_list=variables.values())
