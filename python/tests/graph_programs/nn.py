"""Networks: convolutions, pooling, normalisation, losses, embeddings."""

from graph_programs import program


@program
def nn_activations(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    tf.nn.softmax(x, 0)
    tf.nn.softmax(x, axis=1, name="s")
    tf.nn.log_softmax(x, axis=0)
    tf.nn.leaky_relu(x, 0.1)
    tf.nn.crelu(x)
    tf.nn.relu6(x, name="r")
    tf.nn.dropout(x, 0.5)
    tf.nn.dropout(x, rate=tf.placeholder(tf.float32, []), seed=3)
    tf.nn.dropout(x, keep_prob=0.3, noise_shape=[2, 1])
    tf.nn.l2_normalize(x, 1)
    tf.nn.bias_add(x, [1., 2., 3.])
    tf.nn.xw_plus_b(x, tf.ones([3, 2]), tf.zeros([2]))
    tf.nn.zero_fraction(x)
    tf.nn.top_k(x, 2)
    tf.nn.in_top_k(x, [0, 1], 1)
    tf.nn.swish(x)


@program
def nn_cross_entropy(tf):
    x = tf.placeholder(tf.float32, [None, 3])
    l = tf.placeholder(tf.float32, [None, 3])
    i = tf.placeholder(tf.int64, [None])
    tf.nn.softmax_cross_entropy_with_logits_v2(labels=l, logits=x)
    tf.nn.softmax_cross_entropy_with_logits(labels=l, logits=x, name="old")
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x)
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1]], logits=tf.zeros([1, 2, 3]), name="r3")
    tf.nn.sigmoid_cross_entropy_with_logits(labels=l, logits=x)
    tf.nn.weighted_cross_entropy_with_logits(labels=l, logits=x, pos_weight=2.0)
    tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.zeros([2, 3, 4]), logits=tf.zeros([2, 3, 4]), axis=1)
    tf.nn.log_poisson_loss(l, x)


@program
def nn_conv(tf):
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    w = tf.placeholder(tf.float32, [3, 3, 3, 4])
    tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    tf.nn.conv2d(x, w, 2, "VALID", dilations=[1, 1, 1, 1], name="c")
    tf.nn.conv2d(x, filters=w, strides=[1, 1, 1, 1], padding=[[0, 0], [1, 1], [1, 1], [0, 0]])
    tf.nn.conv2d_transpose(tf.zeros([2, 4, 4, 4]), w, [2, 8, 8, 3], [1, 2, 2, 1])
    tf.nn.conv1d(tf.zeros([2, 8, 3]), tf.zeros([3, 3, 4]), 1, "SAME")
    tf.nn.depthwise_conv2d(x, tf.zeros([3, 3, 3, 2]), [1, 1, 1, 1], "SAME")
    tf.nn.depthwise_conv2d(x, tf.zeros([3, 3, 3, 2]), [1, 1, 1, 1], "SAME", rate=[2, 2])
    tf.nn.separable_conv2d(x, tf.zeros([3, 3, 3, 2]), tf.zeros([1, 1, 6, 4]), [1, 1, 1, 1], "SAME")
    tf.nn.convolution(x, w, "SAME")
    tf.nn.conv3d(tf.zeros([1, 4, 4, 4, 1]), tf.zeros([2, 2, 2, 1, 1]), [1, 1, 1, 1, 1], "SAME")
    tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    tf.nn.max_pool(x, 2, 2, "VALID", name="m")
    tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    tf.nn.lrn(x)
    tf.nn.moments(x, [0, 1, 2])
    tf.nn.moments(x, [1], keep_dims=True, name="mo")
    tf.nn.weighted_moments(x, [0], tf.ones([2, 1, 1, 1]))
    m, v = tf.zeros([3]), tf.ones([3])
    tf.nn.batch_normalization(x, m, v, m, v, 1e-3)
    tf.nn.fused_batch_norm(x, v, m)
    tf.nn.fused_batch_norm(x, v, m, m, v, is_training=False, name="f")
    tf.nn.max_pool3d(tf.zeros([1, 4, 4, 4, 1]), 2, 2, "SAME")


@program
def nn_embedding(tf):
    t = tf.get_variable("t", [10, 4])
    r = tf.get_variable("r", [10, 4], use_resource=True)
    ids = tf.placeholder(tf.int64, [None])
    sp = tf.SparseTensor([[0, 0], [1, 2]], tf.constant([1, 3], tf.int64), [2, 3])
    wt = tf.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    tf.nn.embedding_lookup(t, ids)
    tf.nn.embedding_lookup(r, ids, max_norm=1.0)
    tf.nn.embedding_lookup([t, t], ids)
    tf.nn.embedding_lookup_sparse(t, sp, None, combiner="mean")
    tf.nn.embedding_lookup_sparse(t, sp, wt, combiner="sqrtn")
    tf.nn.embedding_lookup_sparse([t, t], sp, None, combiner="sum")
    tf.nn.safe_embedding_lookup_sparse([t], sp)
    tf.nn.safe_embedding_lookup_sparse([t], sp, wt, combiner="sum", default_id=2)
    tf.gradients(tf.nn.embedding_lookup(r, ids), r)


@program
def linalg(tf):
    a = tf.placeholder(tf.float32, [3, 3])
    tf.cholesky(a)
    tf.matrix_inverse(a)
    tf.matrix_solve(a, a)
    tf.matrix_triangular_solve(a, a, lower=False)
    tf.cholesky_solve(a, a)
    tf.matrix_solve_ls(a, a, 0.1)
    tf.matrix_determinant(a)
    tf.self_adjoint_eig(a)
    tf.svd(a)
    tf.svd(a, compute_uv=False)
    tf.qr(a)
    tf.norm(a)
    tf.norm(a, 1, axis=0)
    tf.norm(a, float("inf"), axis=[0, 1])
    tf.norm(a, axis=1, keepdims=True)
    tf.trace(a)
    tf.eye(3)
    tf.linalg.slogdet(a)
    tf.matrix_band_part(a, 1, 0)
    tf.linalg.logdet(a)
