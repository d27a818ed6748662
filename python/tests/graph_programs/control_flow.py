"""Conditionals, loops, TensorArrays and their gradients."""

from graph_programs import program


@program
def conds(tf):
    x = tf.placeholder(tf.float32, [2])
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: x * 2, lambda: tf.zeros([2]))
    z = tf.cond(x[0] > 0, lambda: (x, y), lambda: (y, x + 1), name="named")
    tf.cond(p, lambda: tf.no_op(), lambda: tf.no_op())
    tf.cond(p, lambda: tf.cond(x[1] > 0, lambda: x, lambda: -x), lambda: z[0])
    tf.cond(p, lambda: {"a": x, "b": 1}, lambda: {"a": y, "b": 2})


@program
def cond_grads(tf):
    x = tf.placeholder(tf.float32, [2])
    u = tf.placeholder(tf.float32)
    p = tf.placeholder(tf.bool, [])
    tf.gradients(tf.cond(p, lambda: x * 2, lambda: tf.exp(x)), x)
    tf.gradients(tf.cond(p, lambda: x * 2, lambda: tf.zeros([2])), x)
    tf.gradients(tf.cond(p, lambda: u * 2, lambda: 1.0), u)


@program
def cases(tf):
    x = tf.placeholder(tf.float32, [])
    tf.case([(x > 1, lambda: x * 2), (x > 0, lambda: x * 3)], default=lambda: x)
    tf.case([(x > 1, lambda: x * 2), (x < 0, lambda: x * 3)], default=lambda: x, exclusive=True)
    tf.case([(x > 1, lambda: x * 2), (x < 0, lambda: x * 3)])


@program
def loops(tf):
    x = tf.placeholder(tf.float32, [2])
    n = tf.placeholder(tf.int32, [])
    tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0])
    tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, x])
    tf.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, tf.concat([a, x], 0)], [0, x],
                  shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    tf.while_loop(lambda i: i < n, lambda i: i * 2, [1], maximum_iterations=5, name="max")
    tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.while_loop(
        lambda j, b: j < i, lambda j, b: (j + 1, b + x), [0, a])[1]), [0, x])
    tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.cond(
        i > 2, lambda: a + 1, lambda: a - x)), [0, x])
    with tf.control_dependencies([x]):
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])


@program
def loop_grads(tf):
    x = tf.placeholder(tf.float32, [2])
    u = tf.placeholder(tf.float32)
    w = tf.placeholder(tf.float32, [2, 2])
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, tf.ones([2])])[1]
    tf.gradients(y, x)
    z = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.tanh(a * u)), [0, u])[1]
    tf.gradients(z, u)
    r = tf.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, tf.matmul(h, w)), [0, w])[1]
    tf.gradients(r, w)
    c = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.cond(
        i > 2, lambda: a * x, lambda: a - x)), [0, x])[1]
    tf.gradients(c, x)
    d = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.while_loop(
        lambda j, b: j < i, lambda j, b: (j + 1, b * x), [0, a])[1]), [0, x])[1]
    tf.gradients(d, x)
    e = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + tf.gather(w, i)), [0, x])[1]
    tf.gradients(e, w)


@program
def tensor_arrays(tf):
    x = tf.placeholder(tf.float32, [4, 3])
    a = tf.TensorArray(tf.float32, 4)
    b = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False, name="b")
    a = a.unstack(x)
    b = b.write(0, x[0])
    out = [a.read(1), a.stack(), b.read(0), b.size(), b.concat(), a.gather([0, 2])]
    c = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 3])
    out.append(c.concat())
    tf.gradients([out[0], out[1]], x)
    ta = tf.TensorArray(tf.float32, 4)
    _, ta = tf.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t.write(i, a.read(i) * 2)), [0, ta])
    tf.gradients(ta.stack(), x)


@program
def functional(tf):
    x = tf.placeholder(tf.float32, [4, 3])
    tf.map_fn(lambda v: v * 2, x)
    tf.map_fn(lambda v: (v[0] + v[1], v[0]), (x, x), dtype=(tf.float32, tf.float32))
    tf.foldl(lambda a, v: a + v, x)
    tf.foldr(lambda a, v: a + v, x, initializer=tf.zeros([3]))
    tf.scan(lambda a, v: a + v, x)
    tf.scan(lambda a, v: a * v, x, initializer=tf.ones([3]), reverse=True)
    tf.gradients(tf.scan(lambda a, v: a * v, x), x)
    tf.gradients(tf.map_fn(tf.tanh, x), x)


@program
def groups(tf):
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/cpu:0"):
        a = tf.no_op(name="a")
        y = x + 1
    with tf.device("/cpu:1"):
        b = tf.no_op(name="b")
    tf.group(a, b)
    tf.group(a, y.op, name="g")
    tf.group()
    tf.tuple([x, y])
    tf.tuple([x, None, y], control_inputs=[a])
    tf.Assert(x[0] > 0, [x])
    tf.Assert(x[0] > 0, ["text"])
    with tf.control_dependencies([a, y]):
        tf.identity(x)
        tf.constant(1.0)
        with tf.control_dependencies(None):
            tf.constant(2.0)
    with tf.colocate_with(a):
        tf.constant(3.0)
