"""Arithmetic, reductions, shapes and slices."""

import numpy as np

from graph_programs import program


@program
def operators(tf):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    y = tf.placeholder(tf.float32, [3])
    i = tf.placeholder(tf.int32, [])
    b = tf.placeholder(tf.bool, [4])
    _ = [x + y, x - 1, 2.0 * x, x / y, x // 2, x % 3, x ** 2, -x, abs(x), 1 - x, 1 / x, 2 ** x,
         i / 3, 7 / i, i // 2, i % 2, x < y, x <= 1, x > y, x >= 0., b & True, b | b, b ^ b, ~b,
         x + np.ones([2, 3], np.float32), np.float32(3) * x, i + np.int32(2), x @ [[1.], [2.], [3.]]]


@program
def named_math(tf):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    y = tf.placeholder(tf.float32, [2, 3])
    i = tf.placeholder(tf.int64, [2])
    for f in (tf.add, tf.subtract, tf.multiply, tf.divide, tf.div, tf.truediv, tf.floordiv,
              tf.floormod, tf.pow, tf.maximum, tf.minimum, tf.squared_difference, tf.equal,
              tf.not_equal, tf.less, tf.less_equal, tf.greater, tf.greater_equal, tf.div_no_nan,
              tf.atan2, tf.math.xlogy, tf.math.xdivy, tf.math.multiply_no_nan, tf.realdiv, tf.mod):
        f(x, y)
        f(x, y, name="named")
    tf.add(i, 3)
    tf.divide(i, i)
    tf.div(i, 2)
    tf.truediv(i, 2)
    tf.add(1, 2)
    tf.multiply([1., 2.], x[:, :2])


@program
def unary_math(tf):
    x = tf.placeholder(tf.float32, [2, None])
    for f in (tf.abs, tf.negative, tf.sign, tf.reciprocal, tf.square, tf.round, tf.sqrt, tf.rsqrt,
              tf.exp, tf.expm1, tf.log, tf.log1p, tf.ceil, tf.floor, tf.cos, tf.sin, tf.tan,
              tf.acos, tf.asin, tf.atan, tf.cosh, tf.sinh, tf.acosh, tf.asinh, tf.atanh,
              tf.lgamma, tf.digamma, tf.erf, tf.erfc, tf.sigmoid, tf.tanh, tf.log_sigmoid,
              tf.is_nan, tf.is_inf, tf.is_finite, tf.rint, tf.nn.relu, tf.nn.relu6, tf.nn.elu,
              tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.nn.leaky_relu, tf.nn.sigmoid,
              tf.nn.tanh, tf.identity, tf.stop_gradient, tf.zeros_like, tf.ones_like, tf.shape,
              tf.size, tf.rank, tf.math.erfinv, tf.math.ndtri, tf.nn.l2_loss, tf.nn.softmax,
              tf.nn.log_softmax, tf.math.reciprocal_no_nan):
        f(x)
        f(x, name="named")
    c = tf.placeholder(tf.complex64, [2])
    for f in (tf.real, tf.imag, tf.angle, tf.conj, tf.abs, tf.sign):
        f(c)
    tf.complex([1., 2.], [3., 4.])
    tf.abs(-3)
    tf.sigmoid(2.0)


@program
def casts(tf):
    x = tf.placeholder(tf.float32, [2])
    tf.cast(x, tf.int32)
    tf.cast(x, tf.float32)
    tf.cast(3, tf.float32)
    tf.to_float(tf.constant(1))
    tf.to_int32(x)
    tf.saturate_cast(x, tf.uint8)
    tf.cast([True, False], tf.int64, name="c")
    tf.bitcast(x, tf.int32)
    tf.to_double(x)
    tf.to_int64(x)


@program
def reductions(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    u = tf.placeholder(tf.float32)
    p = tf.placeholder(tf.float32, [None, 4])
    b = tf.placeholder(tf.bool, [2, 3])
    for f in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min, tf.reduce_mean,
              tf.reduce_logsumexp, tf.count_nonzero):
        f(x)
        f(u)
        f(x, 1)
        f(x, axis=[0, 1], keepdims=True)
        f(p, [-1], name="r")
    for f in (tf.reduce_all, tf.reduce_any):
        f(b)
        f(b, axis=0)
    tf.reduce_sum([1., 2., 3.])
    tf.reduce_sum(x, reduction_indices=[0])
    tf.reduce_sum(x, keep_dims=True)
    tf.reduce_sum(x, axis=[])
    tf.argmax(x, 1)
    tf.argmin(x)
    tf.argmax(x, axis=1, output_type=tf.int32)
    tf.cumsum(x)
    tf.cumprod(x, axis=1, reverse=True)
    tf.math.reduce_std(x)
    tf.math.reduce_variance(x, axis=0)
    tf.math.reduce_euclidean_norm(x)


@program
def ranges(tf):
    n = tf.placeholder(tf.int32, [])
    tf.range(5)
    tf.range(2, 8, 3)
    tf.range(n)
    tf.range(0, n, 2, name="r")
    tf.range(1.0, 3.0, 0.5)
    tf.range(3, dtype=tf.int64)
    tf.range(0., 4, 1)
    tf.linspace(0.0, 1.0, 5)


@program
def matmuls(tf):
    a = tf.placeholder(tf.float32, [2, 3])
    b = tf.placeholder(tf.float32, [3, 4])
    c = tf.placeholder(tf.float32, [5, 2, 3])
    u = tf.placeholder(tf.float32)
    z = tf.placeholder(tf.complex64, [2, 2])
    tf.matmul(a, b)
    tf.matmul(a, a, transpose_b=True)
    tf.matmul(b, a, transpose_a=True, transpose_b=True)
    tf.matmul(c, c, transpose_b=True)
    tf.matmul(c, c, adjoint_a=True)
    tf.matmul(u, u)
    tf.matmul(c, b)
    tf.matmul(z, z, adjoint_b=True)
    tf.matmul(a, [[1.], [2.], [3.]], name="mm")
    tf.matmul(a, b, a_is_sparse=True)
    tf.linalg.matvec(a, [1., 2., 3.])
    tf.tensordot(a, b, 1)
    tf.tensordot(a, b, [[1], [0]])
    tf.tensordot(c, a, [[1, 2], [0, 1]])
    tf.tensordot(tf.placeholder(tf.float32, [None, 7, 3]), b, [[2], [0]])
    tf.trace(z)
    tf.einsum("ij,jk->ik", a, b)


@program
def filling(tf):
    p = tf.placeholder(tf.float32, [None, 3])
    n = tf.placeholder(tf.int32, [])
    tf.zeros([2, 3])
    tf.zeros([100, 100])
    tf.zeros([n, 3])
    tf.zeros([], tf.int32)
    tf.zeros([4], tf.bool)
    tf.zeros([4], tf.string)
    tf.zeros(tf.shape(p))
    tf.ones([2, 2], tf.float64)
    tf.ones([50, 50])
    tf.ones(n)
    tf.zeros_like(p)
    tf.zeros_like(p, dtype=tf.int32)
    tf.zeros_like(p, optimize=False)
    tf.ones_like(p)
    tf.zeros_like(tf.zeros([2, 2]))
    tf.ones_like([1, 2, 3])
    tf.fill([2, 3], 9)
    tf.fill([n, 2], 0.5)
    tf.eye(3)
    tf.eye(2, num_columns=3, batch_shape=[2])
    tf.one_hot([0, 1], 3)
    tf.one_hot([0, 1], 3, on_value=5, off_value=2)
    tf.one_hot(n, 3, dtype=tf.int32, axis=0)
    tf.zeros(5)


@program
def shapes(tf):
    x = tf.placeholder(tf.float32, [2, 3, 4])
    p = tf.placeholder(tf.float32, [None, 3])
    u = tf.placeholder(tf.float32)
    for t in (x, p, u):
        tf.shape(t)
        tf.shape(t, out_type=tf.int64)
        tf.size(t)
        tf.rank(t)
    tf.shape_n([x, p])
    tf.reshape(x, [-1, 4])
    tf.reshape(p, [tf.shape(p)[0], 3, 1])
    tf.reshape(x, [6, 4], name="r")
    tf.expand_dims(x, 0)
    tf.expand_dims(p, -1, name="e")
    tf.squeeze(tf.expand_dims(x, 0))
    tf.squeeze(tf.expand_dims(x, 0), [0])
    tf.transpose(x)
    tf.transpose(u)
    tf.transpose(x, [0, 2, 1])
    tf.matrix_transpose(x)
    tf.matrix_transpose(u)
    tf.tile(x, [1, 2, 1])
    tf.broadcast_to(p, [2, 5, 3])
    tf.broadcast_dynamic_shape([2, 1], [1, 3])
    tf.reverse(x, [0])
    tf.reverse_sequence(x, [1, 2], seq_axis=1, batch_axis=0)
    tf.ensure_shape(p, [5, 3])
    tf.meshgrid([1, 2], [3, 4, 5])
    tf.roll(x, 1, 0)


@program
def slices(tf):
    x = tf.placeholder(tf.float32, [4, 5, 6])
    i = tf.placeholder(tf.int32, [])
    j = tf.placeholder(tf.int64, [])
    _ = [x[0], x[-1], x[1:3], x[:, 2], x[..., 0], x[:, tf.newaxis], x[::2, 1:], x[i], x[i:, 1],
         x[j], x[0:i + 1], x[1, 2, 3], x[:], x[..., tf.newaxis], x[i, ..., ::-1], x[::i]]
    tf.slice(x, [0, 0, 0], [1, 2, -1])
    tf.slice(x, [i, 0, 0], [1, 1, 1])
    tf.strided_slice(x, [0, 0, 0], [2, 2, 2])
    tf.strided_slice(x, [0, 0, 0], [2, 2, 2], [1, 1, 2], shrink_axis_mask=1)
    tf.boolean_mask(x, x[:, 0, 0] > 0)
    tf.boolean_mask([1, 2, 3], [True, False, True])
    tf.boolean_mask(x, x[0, :, 0] > 0, axis=1)


@program
def joins(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    p = tf.placeholder(tf.float32, [None, 3])
    s = tf.placeholder(tf.float32, [])
    tf.concat([x, p], 0)
    tf.concat([x, x], axis=-1, name="c")
    tf.concat([x], 0)
    tf.concat([x, [[1., 2., 3.]]], 0)
    tf.stack([x, x])
    tf.stack([x, x], axis=1)
    tf.stack([1, 2, 3])
    tf.stack([s, 2.0, s])
    tf.stack([s, s], name="st")
    tf.convert_to_tensor([s, 1.0])
    tf.convert_to_tensor([[s, 1.0], [2.0, s]])
    tf.unstack(x)
    tf.unstack(x, axis=1)
    tf.split(x, 3, 1)
    tf.split(x, [1, 2], 1)
    tf.split(x, 2)
    tf.parallel_stack([x, x])
    tf.gather(x, [0, 1])
    tf.gather(x, [0], axis=1)
    tf.gather_nd(x, [[0, 1]])
    tf.where(x > 0)
    tf.where(x > 0, x, x)
    tf.where_v2(x > 0, x, 0.)
    tf.pad(x, [[1, 1], [0, 2]])
    tf.pad(x, [[1, 1], [0, 2]], constant_values=3.)
    tf.pad(p, [[1, 1], [0, 2]], "REFLECT")
    tf.sequence_mask([1, 2, 3])
    tf.sequence_mask([1, 2, 3], 5, tf.float32)
    tf.unique([1, 1, 2])
    tf.unique_with_counts([1, 1, 2])
    tf.setdiff1d([1, 2, 3], [2])
    tf.searchsorted([[1, 2, 3]], [[2]])
    tf.matrix_diag([1., 2.])
    tf.matrix_diag_part(x)
    tf.matrix_set_diag(x, [5., 6.])
    tf.diag([1, 2])
    tf.diag_part(tf.diag([1, 2]))
    tf.invert_permutation([1, 0])
    tf.scatter_nd([[0]], [1.], [3])
    tf.tensor_scatter_nd_update(x, [[0, 0]], [5.])
    tf.space_to_batch(tf.zeros([1, 4, 4, 1]), [[0, 0], [0, 0]], 2)
    tf.space_to_depth(tf.zeros([1, 4, 4, 1]), 2)
    tf.depth_to_space(tf.zeros([1, 2, 2, 4]), 2)
    tf.edit_distance(tf.SparseTensor([[0, 0]], ["a"], [1, 1]), tf.SparseTensor([[0, 0]], ["b"], [1, 1]))


@program
def segments(tf):
    x = tf.placeholder(tf.float32, [4, 2])
    ids = tf.constant([0, 0, 1, 1])
    tf.segment_sum(x, ids)
    tf.segment_mean(x, ids)
    tf.segment_max(x, ids)
    tf.unsorted_segment_sum(x, ids, 2)
    tf.unsorted_segment_mean(x, ids, 2)
    tf.unsorted_segment_sqrt_n(x, ids, 2)
    tf.unsorted_segment_max(x, ids, 2)
    tf.sparse_segment_sum(x, [0, 1], [0, 0])
    tf.sparse_segment_mean(x, [0, 1], [0, 0], num_segments=3)
    tf.sparse_segment_sqrt_n(x, [0, 1], [0, 0])
    tf.bincount([1, 1, 2])
    tf.dynamic_partition(x, ids, 2)
    tf.dynamic_stitch([[0], [1]], [[1.], [2.]])
    tf.histogram_fixed_width([1., 2.], [0., 5.], 5)
    tf.confusion_matrix([0, 1], [1, 1])
    tf.add_n([x, x])
    tf.add_n([x])
    tf.add_n([x], name="one")
    tf.accumulate_n([x, x])
    tf.scalar_mul(2.0, x)
