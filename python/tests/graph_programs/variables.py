"""Variables of both kinds, scopes, initializers, partitioners."""

from graph_programs import program


@program
def ref_variables(tf):
    v = tf.Variable(tf.zeros([2, 3]), name="v")
    w = tf.Variable([1.0, 2.0])
    tf.Variable(3, trainable=False, name="step")
    tf.Variable(v.initialized_value() * 2, name="copy")
    tf.Variable(lambda: tf.ones([3]), name="fn")
    y = v + 1.0
    z = tf.matmul(v, v, transpose_b=True)
    w.assign([3.0, 4.0])
    w.assign_add([1.0, 1.0])
    w.assign_sub([1.0, 1.0], name="sub")
    tf.assign(v, tf.ones([2, 3]))
    tf.assign_add(w, [2., 2.], use_locking=True)
    tf.scatter_update(w, [0], [5.0])
    tf.scatter_add(v, [1], [[1., 2., 3.]])
    tf.gather(v, [0])
    v[0, 1]
    w[0].assign(3.0)
    v.read_value()
    v.value()
    tf.is_variable_initialized(w)
    tf.global_variables_initializer()
    tf.local_variables_initializer()
    tf.gradients(tf.reduce_sum(z) + tf.reduce_sum(y), [v])
    tf.report_uninitialized_variables()
    with tf.device("/job:ps/task:0"):
        tf.Variable(1.0, name="on_ps")
    with tf.control_dependencies([y]):
        tf.Variable(2.0, name="dep")


@program
def resource_variables(tf):
    with tf.variable_scope("r", use_resource=True):
        v = tf.get_variable("v", [2, 3])
        w = tf.get_variable("w", initializer=[1.0, 2.0])
        i = tf.get_variable("i", [], tf.int32)
    y = v + 1.0
    z = tf.matmul(v, v, transpose_b=True)
    w.assign([3.0, 4.0])
    w.assign_add([1.0, 1.0])
    tf.assign(v, tf.ones([2, 3]))
    tf.assign_add(i, 1)
    tf.scatter_update(w, [0], [5.0])
    tf.scatter_nd_add(v, [[0, 1]], [5.0])
    tf.gather(v, [0])
    v[0, 1]
    v.read_value()
    tf.is_variable_initialized(w)
    tf.global_variables_initializer()
    tf.gradients(tf.reduce_sum(z) + tf.reduce_sum(y), [v])
    tf.gradients(tf.gather(v, [0, 1]), v)
    tf.report_uninitialized_variables()
    tf.Variable(5.0, use_resource=True)


@program
def scopes(tf):
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [2])
        with tf.variable_scope("b") as b:
            tf.get_variable("v", [3], initializer=tf.zeros_initializer())
            tf.constant(1.0)
        with tf.variable_scope(b, reuse=True):
            tf.get_variable("v", [3])
            tf.constant(2.0)
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", [2]) is v
        tf.get_variable("new", [1])
    with tf.variable_scope("c", initializer=tf.constant_initializer(0.5),
                           regularizer=lambda w: tf.reduce_sum(tf.square(w))):
        tf.get_variable("r", [2])
    for _ in range(2):
        with tf.variable_scope(None, "layer"):
            tf.get_variable("k", [1])
    with tf.variable_scope("d", custom_getter=lambda getter, *a, **k: getter(*a, **k) * 2.0):
        tf.get_variable("g", [2])
    with tf.variable_scope(b):
        tf.get_variable("late", [1])
    with tf.name_scope("n"):
        tf.get_variable("plain", [1])
        tf.Variable(1.0, name="scoped")
    tf.get_local_variable("loc", [2], initializer=tf.ones_initializer())
    with tf.variable_scope("a"):
        with tf.variable_scope("b", auxiliary_name_scope=False):
            tf.get_variable("other", [1])
            tf.constant(5.0)


@program
def initializers(tf):
    for i, init in enumerate((
            tf.zeros_initializer(), tf.ones_initializer(), tf.constant_initializer(3),
            tf.random_uniform_initializer(-1, 1, seed=1), tf.random_normal_initializer(seed=2),
            tf.truncated_normal_initializer(stddev=0.1), tf.variance_scaling_initializer(),
            tf.glorot_uniform_initializer(), tf.glorot_normal_initializer(),
            tf.orthogonal_initializer(), tf.uniform_unit_scaling_initializer(),
            tf.initializers.he_normal(), tf.initializers.lecun_uniform(), tf.initializers.identity())):
        tf.get_variable("v%d" % i, [4, 3], initializer=init)
    tf.get_variable("int", [3], tf.int32)
    tf.get_variable("value", initializer=[[1, 2]])
    tf.get_variable("big", [40, 50], initializer=tf.zeros_initializer())
    tf.set_random_seed(7)
    tf.get_variable("seeded", [2])
    tf.random_uniform([2])
    tf.random_uniform([2], 1, 5, tf.int32, seed=3)
    tf.random_uniform([2], -1., 1.)
    tf.random_normal([2, 2], 1., 2.)
    tf.truncated_normal([3], seed=5)
    tf.random_shuffle([1, 2, 3])
    tf.multinomial([[1., 2.]], 3)
    tf.random_gamma([2], 1.5)
    tf.random_poisson(2., [3])
    tf.random_crop(tf.zeros([4, 4]), [2, 2])
    tf.random.stateless_uniform([2], [1, 2])
    tf.random.stateless_normal([2], [1, 2])


@program
def partitioned(tf):
    p = tf.fixed_size_partitioner(3)
    v = tf.get_variable("v", [7, 2], partitioner=p)
    with tf.variable_scope("s", partitioner=tf.variable_axis_size_partitioner(40)):
        w = tf.get_variable("w", [10, 4], initializer=tf.zeros_initializer())
    tf.get_variable("m", [100, 10], partitioner=tf.min_max_variable_partitioner(4, min_slice_size=1024))
    tf.matmul(v, tf.ones([2, 2]))
    tf.nn.embedding_lookup(w, [0, 3])
    tf.nn.embedding_lookup(v, [[0, 3]], partition_strategy="div")
    tf.gradients(tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 2])), list(v))
