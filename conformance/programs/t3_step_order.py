"""What a step fetches beside its training op, with variables on a parameter server.

Only what TensorFlow answers the same every time: a fetched resource variable is the value of before
the step's updates, and so is a loss, a summary or a learning rate with variables of either kind. The
fetch of a reference variable is now and then a later value in TensorFlow, so it is left out."""

import ffc
from ffc import np, tf

TIER = 3
CLUSTER = {"ps": 1, "worker": 1}
TIMEOUT = 120
TIMES = 6

X = ffc.normal([16, 3], 1)
Y = np.dot(X, np.float32([[1], [2], [-1]])) + np.float32(0.5)


def variable(name, value, resource, **kw):
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=resource, **kw)


def linear(resource):
    w = variable("w", np.zeros((3, 1), np.float32), resource)
    b = variable("b", np.zeros(1, np.float32), resource)
    return w, b, tf.reduce_mean(tf.square(tf.matmul(tf.constant(X), w) + b - Y))


def descent(resource, step):
    _, _, loss = linear(resource)
    op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return op, [step, loss]


def summaries(resource, step):
    w, _, loss = linear(resource)
    rate = tf.train.exponential_decay(0.1, step, 1, 0.5)
    op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    for name, value in (("loss", loss), ("step", step), ("rate", rate)):
        tf.summary.scalar(name, value)
    tf.summary.histogram("w", w)
    return op, [tf.summary.merge_all(), step, rate]


def clipped(resource, step):
    w, b, loss = linear(resource)
    grads, norm = tf.clip_by_global_norm(tf.gradients(loss, [w, b]), 0.5)
    op = tf.train.GradientDescentOptimizer(1.0).apply_gradients(
        zip(grads, [w, b]), global_step=step)
    return op, [loss, norm, step]


def ungated(resource, step):
    ws = [variable("w%d" % i, 0.5 * np.eye(30, dtype=np.float32), resource) for i in range(5)]
    h = tf.ones([8, 30])
    for w in ws:
        h = tf.tanh(tf.matmul(h, w))
    loss = tf.reduce_sum(h)
    op = tf.train.GradientDescentOptimizer(0.05).apply_gradients(
        zip(tf.gradients(loss, ws), ws), global_step=step)
    return op, [loss, step]


def adversaries(resource, step):
    d = variable("d", np.ones((3, 1), np.float32), resource)
    g = variable("g", np.full((2, 3), 0.3, np.float32), resource)
    made = tf.matmul(tf.ones([16, 2]), g)
    real, fake = tf.matmul(tf.constant(X), d), tf.matmul(made, d)
    d_loss = tf.reduce_mean(tf.nn.softplus(-real) + tf.nn.softplus(fake))
    g_loss = tf.reduce_mean(tf.nn.softplus(-fake))
    opt = tf.train.GradientDescentOptimizer(0.2)
    op = tf.group(opt.minimize(d_loss, var_list=[d], global_step=step),
                  opt.minimize(g_loss, var_list=[g]))
    return op, [d_loss, g_loss, step]


def slots(resource, step):
    w, _, loss = linear(resource)
    opt = tf.train.MomentumOptimizer(0.1, 0.9)
    op = opt.minimize(loss, global_step=step)
    return op, [opt.get_slot(w, "momentum"), loss, step]


def hook_fetches(resource, step):
    _, _, loss = linear(resource)
    plus, half = step + 1, tf.cast(step, tf.float32) * 0.5
    op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return op, [plus, half]


def decayed(resource, step):
    w, b, loss = linear(resource)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        op = tf.assign(w, tf.clip_by_value(w, -0.3, 0.3))
    return op, [loss, step, tf.nn.l2_loss(b)]


PROGRAMS = [descent, summaries, clipped, ungated, adversaries, slots, hook_fetches, decayed]


def numbers(value):
    """A fetched value; of a summary, the numbers in it."""
    if not isinstance(value, bytes):
        return value
    values = tf.Summary.FromString(value).value
    return np.float32([v.simple_value if v.HasField("simple_value") else v.histo.sum
                       for v in values])


def beside_training(cases):
    for program in PROGRAMS:
        for resource in (False, True):
            with cases.case("%s, resource %s" % (program.__name__, resource)), \
                    tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(
                        ps_tasks=1, worker_device="/job:worker/task:0")), ffc.session() as sess:
                step = variable("global_step", np.int64(0), resource, trainable=False)
                op, fetches = program(resource, step)
                if not resource:
                    fetches = [f for f in fetches if not isinstance(f, tf.Variable)]
                sess.run(tf.global_variables_initializer())
                for k in range(TIMES):
                    before = sess.run(fetches)
                    got = sess.run([op] + fetches)
                    for value, want in zip(got[1:], before):
                        ffc.close(numbers(value), numbers(want), 1e-5, 1e-6, "step %d" % k)
                ffc.equal(sess.run(step), np.int64(TIMES))


def after_training(cases):
    """What depends on the training op sees its updates."""
    for resource in (False, True):
        with cases.case("after training, resource %s" % resource), tf.Graph().as_default(), \
                tf.device(tf.train.replica_device_setter(
                    ps_tasks=1, worker_device="/job:worker/task:0")), ffc.session() as sess:
            step = variable("global_step", np.int64(0), resource, trainable=False)
            w, _, loss = linear(resource)
            op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
            with tf.control_dependencies([op]):
                new_step, new_w = step.read_value() + 0, w.read_value() * 1
            sess.run(tf.global_variables_initializer())
            for k in range(TIMES):
                got = sess.run([new_step, new_w])
                ffc.equal(got[0], np.int64(k + 1))
                ffc.close(got[1], sess.run(w), 1e-6, 0)


def main():
    cases = ffc.Cases()
    beside_training(cases)
    after_training(cases)
    cases.finish(2 * len(PROGRAMS) + 2)


ffc.run(main)
