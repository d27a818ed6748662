"""The order of reads and updates of a variable in one step.

Only what TensorFlow does the same every time: a fetch of a reference variable is its value at the
end of the step, what control dependencies order is ordered, and a loss is that of the weights of
before the update."""

import itertools

import ffc
from ffc import np, tf

TIER = 1
CLUSTER = {"worker": 1}
TIMEOUT = 120
TIMES = 5

# What is fetched of a reference variable, and shows its value of the end of the step.
ALIASES = {
    "variable": lambda v: v,
    "value": lambda v: v.value(),
    "read_value": lambda v: v.read_value(),
    "identity": tf.identity,
    "identity of identity": lambda v: tf.identity(tf.identity(v)),
}


def ones(v):
    return tf.ones(v.shape, v.dtype.base_dtype)


def row(v, x):
    return tf.fill([1] + v.shape.as_list()[1:], tf.cast(x, v.dtype.base_dtype))


def train(optimizer):
    return lambda v: optimizer().minimize(tf.reduce_sum(tf.square(v - 3.0)), var_list=[v])


UPDATES = {
    "assign": lambda v: tf.assign(v, 7 * ones(v)),
    "assign of itself": lambda v: tf.assign(v, v + 1),
    "assign_add": lambda v: tf.assign_add(v, ones(v)),
    "assign_sub of itself": lambda v: tf.assign_sub(v, v * 0.5),
    "group of two": lambda v: tf.group(tf.assign_add(v, ones(v)), tf.assign_add(v, 2 * ones(v))),
    "scatter_add": lambda v: tf.scatter_add(v, [0], row(v, 1)),
    "scatter_update": lambda v: tf.scatter_update(v, [1], row(v, 9)),
    "scatter_nd_add": lambda v: tf.scatter_nd_add(v, [[1]], row(v, 2)),
    "descent": train(lambda: tf.train.GradientDescentOptimizer(0.1)),
    "momentum": train(lambda: tf.train.MomentumOptimizer(0.1, 0.9)),
    "adam": train(lambda: tf.train.AdamOptimizer(0.1)),
    "adagrad": train(lambda: tf.train.AdagradOptimizer(0.1)),
}


def variable(name, value, resource, **kw):
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=resource, **kw)


def aliases(cases):
    """A fetched reference variable has the value of the end of the step, wherever it stands."""
    for name, update in UPDATES.items():
        with cases.case("fetches beside " + name), tf.Graph().as_default(), ffc.session() as sess:
            v = variable("v", [1.0, 2.0, 3.0], False)
            reads = [alias(v) for alias in ALIASES.values()]
            up = update(v)
            sess.run(tf.global_variables_initializer())
            for fetches in ([up] + reads, reads + [up], reads[:2] + [up] + reads[2:]):
                for _ in range(TIMES):
                    got = sess.run(fetches)
                    after = sess.run(v)
                    for fetched, value in zip(fetches, got):
                        if fetched is not up:
                            ffc.equal(value, after, name)


def global_steps(cases):
    """`_, step = sess.run([train_op, global_step])` counts from 1; the loss is that of before."""
    for resource, gate in itertools.product((False, True), (0, 1, 2)):
        with cases.case("loop, resource %s, gate %d" % (resource, gate)), \
                tf.Graph().as_default(), ffc.session() as sess:
            step = variable("global_step", np.int64(0), resource, trainable=False)
            w = variable("w", np.full([4, 3], 0.5, np.float32), resource)
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([5, 4]), w)))
            rate = tf.train.exponential_decay(0.1, step, 1, 0.5)
            op = tf.train.GradientDescentOptimizer(rate).minimize(
                loss, global_step=step, gate_gradients=gate)
            sess.run(tf.global_variables_initializer())
            for k in range(TIMES):
                before, now = sess.run([loss, rate])
                _, at, seen, used = sess.run([op, step, loss, rate])
                ffc.equal([seen, used], [before, now])
                if resource:
                    assert at in (k, k + 1), at
                else:
                    ffc.equal(at, np.int64(k + 1))
            ffc.equal(sess.run(step), np.int64(TIMES))


def hooks(cases):
    """A session with hooks ends at its last step, and each hook sees each step once."""

    class Seen(tf.train.SessionRunHook):
        def __init__(self):
            self.steps = []

        def before_run(self, _):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, _, values):
            self.steps.append(int(values.results))

    for resource in (False, True):
        with cases.case("hooks, resource %s" % resource), tf.Graph().as_default(), \
                tf.variable_scope("", use_resource=resource):
            tf.Session.reset(ffc.TARGET)
            step = tf.train.get_or_create_global_step()
            w = variable("w", 2.0, resource)
            op = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w), global_step=step)
            seen, runs = Seen(), 0
            stop = tf.train.StopAtStepHook(last_step=6)
            with tf.train.MonitoredTrainingSession(ffc.TARGET, hooks=[stop, seen]) as sess:
                while not sess.should_stop():
                    sess.run(op)
                    runs += 1
            if resource:
                assert runs in (6, 7), runs
            else:
                ffc.equal([runs, seen.steps], [6, [1, 2, 3, 4, 5, 6]])


def layers(cases):
    """Ungated gradients of resource variables are those of the weights of before."""
    with cases.case("ungated gradients"), tf.Graph().as_default(), ffc.session() as sess:
        ws = [variable("w%d" % i, 0.5 * np.eye(30, dtype=np.float32), True) for i in range(6)]
        h = tf.ones([8, 30])
        for w in ws:
            h = tf.tanh(tf.matmul(h, w))
        loss = tf.reduce_sum(h)
        grads = tf.gradients(loss, ws)
        op = tf.train.GradientDescentOptimizer(0.5).apply_gradients(zip(grads, ws))
        for _ in range(TIMES):
            sess.run(tf.global_variables_initializer())
            want = sess.run([loss] + grads)
            got = sess.run([loss] + grads + [op])
            ffc.equal(got[:-1], want)


def random_program(seed):
    """Reads and updates of three variables, each after some of the earlier ones; the graph."""
    r = ffc.rng(seed)
    resource = bool(r.randint(2))
    vs = [variable("v%d_%d" % (seed, i), np.float32(r.randint(1, 9)), resource) for i in range(3)]
    ops, last_write, reads = [], [None] * 3, [[], [], []]
    for _ in range(r.randint(4, 14)):
        i = r.randint(3)
        x = np.float32(r.randint(1, 5))
        if r.randint(2):
            # A read comes after the last update, so it is ordered with all of them.
            with tf.control_dependencies([last_write[i]] if last_write[i] is not None else []):
                ops.append(vs[i] * x + 1.0)
            reads[i].append(ops[-1])
        else:
            # An update comes after all reads of the one before.
            before = reads[i] + ([last_write[i]] if last_write[i] is not None else [])
            with tf.control_dependencies(before):
                update = [tf.assign, tf.assign_add, tf.assign_sub][r.randint(3)](vs[i], x)
            last_write[i], reads[i] = update.op, []
            with tf.control_dependencies([update]):
                ops.append(vs[i] + 0.0)
            reads[i].append(ops[-1])
    order = r.permutation(len(ops))
    return vs, [ops[k] for k in order]


def random_programs(cases):
    for seed in range(25):
        with cases.case("random program %d" % seed):
            results = []
            for target in ("", ffc.TARGET):
                with tf.Graph().as_default(), ffc.session(target) as sess:
                    vs, ops = random_program(seed)
                    runs = []
                    for _ in range(TIMES):
                        sess.run(tf.global_variables_initializer())
                        runs.append([sess.run(ops), sess.run(vs)])
                    results.append(runs)
            ffc.equal(results[1], results[0])


def main():
    cases = ffc.Cases()
    aliases(cases)
    global_steps(cases)
    hooks(cases)
    layers(cases)
    random_programs(cases)
    cases.finish(46)


ffc.run(main)
