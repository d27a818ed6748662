"""Denormal numbers, reference variables inside loops and conditionals,
variables whose shape changes, and the errors of dead and impossible fetches."""

import ffc
from ffc import np, tf

TIER = 1
CLUSTER = {"worker": 1}


def denormals(table):
    """Kernels take denormals as zero and give zero for them; copies keep them."""
    tiny = np.array([1e-39, 1e-38, 2e-38], np.float32)
    tiny64 = np.array([1e-310, 5e-308])
    low = np.array([-88, -100, -87.5, 1], np.float32)
    # Shapes that TensorFlow's kernels process as vectors throughout.
    many = np.tile(tiny, 32)
    for name, build, value in [
            ("exp", tf.exp, low), ("sigmoid", tf.sigmoid, low),
            ("softmax", tf.nn.softmax, low), ("half", lambda x: x * 0.5, many),
            ("sum", tf.reduce_sum, many), ("larger", lambda x: x > 0, many),
            ("maximum", lambda x: tf.maximum(x, 0), many),
            ("sqrt", tf.sqrt, many), ("log", tf.math.log, many),
            ("copy", tf.identity, many),
            ("joined", lambda x: tf.concat([x, x], 0), many),
            ("double", lambda x: x * 0.1, tiny64),
            ("exp double", tf.exp, np.array([-740.0])),
            ("narrowed", lambda x: tf.cast(x, tf.float32),
             np.array([1e-39, 1e-30]))]:
        table.op(name, build, [value], rtol=1e-6, atol=0)


def references(table):
    def counted(dev):
        v = tf.Variable(0.0, use_resource=False)

        def body(i, a):
            with tf.control_dependencies([tf.assign_add(v, 1.0)]):
                return i + 1, a + v.read_value()

        return v, tf.while_loop(lambda i, a: i < 5, body, [0, 0.0],
                                parallel_iterations=1)

    def until(dev):
        v = tf.Variable(0, use_resource=False)

        def more(i):
            with tf.control_dependencies([i]):
                return v.read_value() < 10

        def body(i):
            with tf.control_dependencies([tf.assign_add(v, 2)]):
                return i + 1

        return v, tf.while_loop(more, body, [0], parallel_iterations=1)

    def chosen(dev):
        v = tf.Variable(0, use_resource=False)

        def body(i, a):
            r = tf.cond(tf.equal(i % 2, 0), lambda: tf.assign_add(v, 5),
                        lambda: tf.assign_sub(v, 1))
            with tf.control_dependencies([r]):
                return i + 1, a + v.read_value()

        return v, tf.while_loop(lambda i, a: i < 6, body, [0, 0],
                                parallel_iterations=1)

    def drive(sess, built):
        v, out = built
        sess.run(v.initializer)
        return [sess.run(out), sess.run(v), sess.run(out), sess.run(v)]

    for build in (counted, until, chosen):
        with table.case(build.__name__):
            ffc.against_local(build, drive)


def shapes(table):
    def build(dev):
        h = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2],
                                   shared_name="changes")
        x = tf.placeholder(tf.float32, None)
        loose = tf.raw_ops.AssignVariableOp(resource=h, value=x)
        read = tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32)
        shape = tf.raw_ops.VariableShape(input=h)
        v = tf.Variable([1.0, 2.0], use_resource=True,
                        shape=tf.TensorShape(None))
        return x, loose, read, shape, v.initializer, v.assign(x).op, v

    def drive(sess, built):
        x, loose, read, shape, init, assign, v = built
        out = []
        for value in ([1.0, 2.0], [[1.0, 2.0, 3.0]], 4.0):
            sess.run(loose, {x: value})
            out += sess.run([read, shape])
        sess.run(init)
        for value in ([[5.0]], [1.0, 2.0, 3.0], 6.0):
            sess.run(assign, {x: value})
            out.append(sess.run(v))
        return out

    with table.case("shapes"):
        ffc.against_local(build, drive)


def errors(table):
    with table.case("python callbacks"), tf.Graph().as_default(), \
            ffc.session() as sess:
        y = tf.py_func(lambda x: x + 1, [tf.constant(1.0)], tf.float32)
        try:
            sess.run(y)
            assert False, "a server cannot call the client's functions"
        except tf.errors.OpError as e:
            # TensorFlow looks the function up and does not find it.
            said = e.message
            assert "Python" in said or "not found" in said or "callback" in said, said
    with table.case("dead fetch"), tf.Graph().as_default(), \
            ffc.session() as sess:
        p = tf.placeholder(tf.bool, [])
        _, t = tf.raw_ops.Switch(data=tf.constant(3.0), pred=p)
        ffc.close(sess.run(t + 1, {p: True}), 4.0)
        with ffc.raises(tf.errors.InternalError, "was not valid"):
            sess.run(t + 1, {p: False})
    with table.case("gradient after the first run"), tf.Graph().as_default(), \
            ffc.session() as sess:
        tf.enable_control_flow_v2()
        try:
            p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
            y = tf.cond(p, lambda: x * x * x, lambda: tf.exp(x))
            ffc.close(sess.run(y, {p: True, x: 2.0}), 8.0)
            g = tf.gradients(y, x)[0]
            with ffc.raises(tf.errors.InvalidArgumentError,
                            "output_all_intermediates(True)"):
                sess.run(g, {p: True, x: 2.0})
        finally:
            tf.disable_control_flow_v2()


def main():
    table = ffc.Cases()
    denormals(table)
    references(table)
    shapes(table)
    errors(table)
    table.finish(20)


ffc.run(main)
