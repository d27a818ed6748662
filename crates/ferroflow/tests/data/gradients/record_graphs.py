"""Records whole graphs and their gradients from TensorFlow 2.15.1, for tests/graph_gradients.rs.

    python record_graphs.py     # writes graphs/NAME.pb and graphs/NAME.txt

NAME.pb is a GraphDef of the forward part alone. NAME.txt names the tensor that is differentiated
and those it is differentiated by, with the gradients TensorFlow gives; `init` is a node to run before.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)
from record import HERE, f, f32, i32, i64, rng, tensor

def constant(x, name):
    return tf.constant(x, name=name)


def variable(name, value):
    return tf1.get_variable(name, initializer=value, use_resource=True)


# --- v1 control flow -------------------------------------------------------------------------

def make_cond(p):
    x, y = constant(f(2, 2), "x"), constant(f(2, 2), "y")
    p = tf1.placeholder_with_default(p, [], "p")
    z = tf1.cond(p, lambda: x * x + y, lambda: tf.sin(x) * 3.0)
    return tf.reduce_sum(z * x), [x, y]


def cond_taken():
    return make_cond(True)


def cond_not_taken():
    return make_cond(False)


def cond_nested():
    x, y = constant(f(3), "x"), constant(f(3), "y")
    p, q = tf1.placeholder_with_default(True, [], "p"), tf1.placeholder_with_default(False, [], "q")
    z = tf1.cond(p, lambda: tf1.cond(q, lambda: x * 2.0, lambda: x * y), lambda: y)
    return z, [x, y]


def while_power():
    x, w = constant(f(2, 2), "x"), constant(f(2, 2), "w")
    _, y = tf1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.matmul(a, w)), [0, x])
    return tf.reduce_sum(y * y), [x, w]


def while_never():
    x, w = constant(f(2), "x"), constant(f(2), "w")
    n = tf1.placeholder_with_default(0, [], "n")
    _, y = tf1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * w), [0, x])
    return y, [x, w]


def while_many_variables():
    x, w = constant(f(3), "x"), constant(f(3), "w")

    def body(i, a, b, c):
        return i + 1, tf.sin(a) * w + b, a * b, c + 1.0

    _, a, b, c = tf1.while_loop(lambda i, *_: i < 3, body, [0, x, tf.cos(x), tf.zeros([], tf.float64)])
    return tf.reduce_sum(a) + tf.reduce_sum(b) * c, [x, w]


def while_unused_result():
    x = constant(f(3), "x")
    _, a, b = tf1.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, a * b, b + 0.1), [0, x, x * 2.0])
    return a, [x]


def while_forgets():
    # The next value of b does not depend on b.
    x, w = constant(f(3), "x"), constant(f(3), "w")
    _, a, b = tf1.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, a * w + b, a * 2.0), [0, x, w])
    return tf.reduce_sum(a * b), [x, w]


def while_with_cond():
    x, w = constant(f(3), "x"), constant(f(3), "w")

    def body(i, a):
        b = tf1.cond(tf.equal(i % 2, 0), lambda: a * w, lambda: tf.sin(a) + tf.exp(w * 0.1))
        return i + 1, b * a

    _, y = tf1.while_loop(lambda i, a: i < 4, body, [0, x])
    return y, [x, w]


def while_nested():
    x, w = constant(f(2, lo=0.5, hi=1.5), "x"), constant(f(2, lo=0.5, hi=1.2), "w")

    def inner(j, b):
        return j + 1, b * w + tf.sin(b)

    def body(i, a):
        _, b = tf1.while_loop(lambda j, b: j < i + 1, inner, [0, a])
        return i + 1, b * 0.5 + a * w

    _, y = tf1.while_loop(lambda i, a: i < 3, body, [0, x])
    return y, [x, w]


def while_in_cond():
    x, w = constant(f(2), "x"), constant(f(2), "w")
    p = tf1.placeholder_with_default(True, [], "p")
    loop = lambda: tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, x])[1]
    return tf1.cond(p, loop, lambda: x + w), [x, w]


def while_in_cond_not_taken():
    x, w = constant(f(2), "x"), constant(f(2), "w")
    p = tf1.placeholder_with_default(False, [], "p")
    loop = lambda: tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, x])[1]
    return tf1.cond(p, loop, lambda: x + w), [x, w]


def while_grows():
    x, w = constant(f(1, 2), "x"), constant(f(2), "w")
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    body = lambda i, a: (i + 1, tf.concat([a * w, a], 0))
    _, y = tf1.while_loop(lambda i, a: i < 3, body, [0, x], shape_invariants=shapes)
    return tf.reduce_sum(y * y), [x, w]


def while_gathers():
    table = constant(f(5, 2), "table")
    body = lambda i, a: (i + 1, a + tf.gather(table, [i, 0]) * (a + 1.0))
    _, y = tf1.while_loop(lambda i, a: i < 3, body, [0, tf.zeros([2, 2], tf.float64)])
    return y, [table]


def while_one_at_a_time():
    x, w = constant(f(2), "x"), constant(f(2), "w")
    _, y = tf1.while_loop(
        lambda i, a: i < 5, lambda i, a: (i + 1, tf.sin(a) * w), [0, x], parallel_iterations=1)
    return y, [x, w]


def map_fn():
    x, w = constant(f(4, 2), "x"), constant(f(2), "w")
    return tf.map_fn(lambda r: tf.sin(r) * w, x), [x, w]


def scan():
    x = constant(f(4, 2), "x")
    return tf.scan(lambda a, r: a * 0.5 + tf.sin(r) * a, x), [x]


def foldl_with_arrays():
    x = constant(f(6, 2), "x")
    ta = tf.TensorArray(tf.float64, 3, infer_shape=False).split(x, [1, 2, 3])
    _, y = tf1.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * 1.1 + tf.reduce_sum(ta.read(i) ** 2)), [0, tf.zeros([], tf.float64)])
    return y, [x]


def array_concat():
    x, y = constant(f(1, 2), "x"), constant(f(2, 2), "y")
    ta = tf.TensorArray(tf.float64, 2, infer_shape=False).write(0, x).write(1, y * y)
    return ta.concat(), [x, y]


# --- models ----------------------------------------------------------------------------------

def mlp():
    x = constant(f32(6, 5), "x")
    w1, b1 = variable("w1", f32(5, 8)), variable("b1", f32(8))
    w2, b2 = variable("w2", f32(8, 3)), variable("b2", f32(3))
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
    logits = tf.matmul(h, w2) + b2
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2, 1, 1, 0, 2], logits=logits)
    loss = tf.reduce_mean(loss) + 0.01 * (tf.nn.l2_loss(w1) + tf.nn.l2_loss(w2))
    return loss, [w1.handle, b1.handle, w2.handle, b2.handle]


def cnn():
    x = constant(f32(2, 8, 8, 1), "x")
    k1, k2 = variable("k1", f32(3, 3, 1, 4)), variable("k2", f32(3, 3, 4, 3))
    scale, offset = variable("scale", f32(4, lo=0.5, hi=1.5)), variable("offset", f32(4))
    w, b = variable("w", f32(12, 3)), variable("b", f32(3))
    h = tf.nn.conv2d(x, k1, 1, "SAME")
    h, _, _ = tf1.nn.fused_batch_norm(h, scale, offset, is_training=True)
    h = tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "VALID")
    h = tf.nn.avg_pool2d(tf.nn.elu(tf.nn.conv2d(h, k2, 1, "SAME")), 2, 2, "VALID")
    logits = tf.matmul(tf.reshape(h, [2, -1]), w) + b
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot([0, 2], 3), logits=logits)
    return tf.reduce_mean(loss), [v.handle for v in (k1, k2, scale, offset, w, b)]


def lstm_in_a_loop():
    x = constant(f32(5, 2, 3), "x")
    w, b = variable("w", f32(7, 16, lo=-1, hi=1)), variable("b", f32(16))
    xs = tf.TensorArray(tf.float32, 5).unstack(x)
    out = tf.TensorArray(tf.float32, 5)

    def body(t, c, h, out):
        gates = tf.matmul(tf.concat([xs.read(t), h], 1), w) + b
        i, j, g, o = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(g + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return t + 1, c, h, out.write(t, h)

    zero = tf.zeros([2, 4])
    _, c, _, out = tf1.while_loop(lambda t, *_: t < 5, body, [0, zero, zero, out])
    loss = tf.reduce_mean(tf.square(out.stack())) + tf.reduce_sum(c)
    return loss, [w.handle, b.handle, x]


def embedding():
    table = variable("table", f32(6, 3))
    w = variable("w", f32(3, 2))
    ids = constant(i32([[1, 4], [1, 0], [5, 1]]), "ids")
    h = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)
    again = tf.gather(table, [2, 2])
    return tf.reduce_sum(tf.square(tf.matmul(h, w))) + tf.reduce_sum(tf.sin(again)), [table.handle, w.handle]


def reference_variables():
    w = tf1.get_variable("w", initializer=f32(3, 2), use_resource=False)
    b = tf1.get_variable("b", initializer=f32(2), use_resource=False)
    y = tf.tanh(tf.matmul(constant(f32(4, 3), "x"), w) + b)
    return tf.reduce_sum(y * y), [w._ref(), b._ref()]


def layer_norm_attention():
    x = constant(f(2, 4, 6), "x")
    q, k, v = [constant(f(6, 6), n) for n in "qkv"]
    gain = constant(f(6), "gain")
    mean, var = tf.nn.moments(x, [-1], keepdims=True)
    n = (x - mean) * tf.math.rsqrt(var + 1e-5) * gain
    heads = lambda t: tf.transpose(tf.reshape(tf.einsum("bte,ef->btf", n, t), [2, 4, 2, 3]), [0, 2, 1, 3])
    scores = tf.nn.softmax(tf.matmul(heads(q), heads(k), transpose_b=True) / 3.0 ** 0.5)
    out = tf.reshape(tf.transpose(tf.matmul(scores, heads(v)), [0, 2, 1, 3]), [2, 4, 6]) + x
    return tf.reduce_mean(out ** 2), [x, q, k, v, gain]


# --- functions and v2 control flow ------------------------------------------------------------

def function_call():
    x, w = constant(f(2, 2), "x"), constant(f(2, 2), "w")

    @tf.function
    def inner(a, b):
        return tf.sin(a) * b, a + b

    @tf.function
    def outer(a, b):
        p, q = inner(a, b)
        return tf.matmul(p, q) * a

    return outer(x, w) * w, [x, w]


def function_variable():
    w = variable("w", f(3))
    x = constant(f(3), "x")

    @tf.function
    def body(a):
        return a * w * w

    return body(x), [w.handle, x]


def if_v2():
    return make_cond(True)


def if_v2_not_taken():
    return make_cond(False)


def if_v2_nested():
    return cond_nested()


def while_v2_power():
    return while_power()


def while_v2_never():
    return while_never()


def while_v2_many_variables():
    return while_many_variables()


def while_v2_with_cond():
    return while_with_cond()


def while_v2_nested():
    return while_nested()


def while_v2_gathers():
    return while_gathers()


def while_v2_map_fn():
    return map_fn()


def while_v2_lstm():
    return lstm_in_a_loop()


def switch_case():
    x, w = constant(f(3), "x"), constant(f(3), "w")
    k = tf1.placeholder_with_default(1, [], "k")
    branches = [lambda: x * w, lambda: tf.sin(x), lambda: w * 2.0]
    return tf.switch_case(k, branches), [x, w]


V1 = """cond_taken cond_not_taken cond_nested while_power while_never while_many_variables while_unused_result
    while_forgets while_with_cond while_nested while_in_cond while_in_cond_not_taken while_grows
    while_gathers while_one_at_a_time map_fn scan foldl_with_arrays array_concat mlp cnn lstm_in_a_loop
    embedding reference_variables layer_norm_attention""".split()
V2 = """function_call function_variable if_v2 if_v2_not_taken if_v2_nested while_v2_power while_v2_never
    while_v2_many_variables while_v2_with_cond while_v2_nested while_v2_gathers while_v2_map_fn
    while_v2_lstm switch_case""".split()


def record(name, v2):
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    rng.seed(sum(map(ord, name)))
    with tf.Graph().as_default() as graph:
        y, xs = globals()[name]()
        init = tf1.global_variables_initializer() if tf1.global_variables() else None
        forward = graph.as_graph_def()
        for node in forward.node:
            node.ClearField("experimental_debug_info")
        grads = tf.gradients(y, xs)
        fetch = [tf.convert_to_tensor(g) if g is not None else None for g in grads]
        with tf1.Session(graph=graph) as sess:
            if init is not None:
                sess.run(init)
            got = [None if g is None else sess.run(g) for g in fetch]
    lines = ["y " + y.name]
    if init is not None:
        lines.append("init " + init.name)
    for x, g, dx in zip(xs, grads, got):
        lines.append("x " + x.name)
        lines.append(tensor("dx", dx))
    base = os.path.join(HERE, "graphs", name)
    with open(base + ".pb", "wb") as file:
        file.write(forward.SerializeToString())
    with open(base + ".txt", "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or V1 + V2:
        try:
            record(name, name in V2)
        except Exception as e:
            print("FAIL", name, str(e)[:300])
