"""Optimizers of both kinds of variables, dense and sparse."""

from graph_programs import program


def _train(tf, make, resource, global_step=False, sparse=True):
    with tf.variable_scope("net", use_resource=resource):
        w = tf.get_variable("w", [4, 3])
        b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
        table = tf.get_variable("table", [10, 4])
    x = tf.nn.embedding_lookup(table, [1, 2, 1]) if sparse else tf.ones([2, 4])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b))
    step = tf.train.get_or_create_global_step() if global_step else None
    make(tf, step).minimize(loss, global_step=step)


_OPTIMIZERS = {
    "sgd": lambda tf, step: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda tf, step: tf.train.AdamOptimizer(),
    "adagrad": lambda tf, step: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda tf, step: tf.train.AdadeltaOptimizer(),
    "rmsprop": lambda tf, step: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered": lambda tf, step: tf.train.RMSPropOptimizer(0.1, centered=True, name="Centered"),
    "ftrl": lambda tf, step: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "shrinkage": lambda tf, step: tf.train.FtrlOptimizer(
        0.1, l2_shrinkage_regularization_strength=0.1),
    "adagrad_da": lambda tf, step: tf.train.AdagradDAOptimizer(0.1, step),
    "proximal_sgd": lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01),
    "proximal_adagrad": lambda tf, step: tf.train.ProximalAdagradOptimizer(0.1),
}


def _define(name, make, resource):
    def run(tf):
        _train(tf, make, resource, global_step=True)
    run.__name__ = "train_%s_%s" % (name, "resource" if resource else "ref")
    program(run)


for _name, _make in _OPTIMIZERS.items():
    _define(_name, _make, False)
    _define(_name, _make, True)


@program
def train_steps(tf):
    w = tf.Variable(tf.zeros([2]), name="w")
    loss = tf.reduce_sum(tf.square(w - 3.0))
    opt = tf.train.GradientDescentOptimizer(tf.placeholder(tf.float32, []))
    grads = opt.compute_gradients(loss)
    opt.apply_gradients([(tf.clip_by_value(g, -1., 1.), v) for g, v in grads])
    grads, norm = tf.clip_by_global_norm([g for g, _ in grads], 5.0)
    opt.apply_gradients(zip(grads, [w]), name="clipped")
    tf.clip_by_norm(w, 2.0)
    step = tf.Variable(0, name="step", trainable=False)
    opt.minimize(loss, global_step=step, gate_gradients=opt.GATE_GRAPH,
                 colocate_gradients_with_ops=True)
    lr = tf.train.exponential_decay(0.1, step, 100, 0.9, staircase=True)
    tf.train.MomentumOptimizer(lr, 0.9).minimize(loss, step)
    tf.train.polynomial_decay(0.1, step, 100)
    tf.train.piecewise_constant(step, [10, 20], [1.0, 0.5, 0.1])
    tf.train.inverse_time_decay(0.1, step, 10, 0.5)
    tf.train.natural_exp_decay(0.1, step, 10, 0.5)
    tf.train.cosine_decay(0.1, step, 100)


@program
def moving_averages(tf):
    w = tf.Variable([1.0, 2.0], name="w")
    ema = tf.train.ExponentialMovingAverage(0.9)
    ema.apply([w])
    ema.average(w)
    ema.average_name(w)
    step = tf.train.get_or_create_global_step()
    e2 = tf.train.ExponentialMovingAverage(0.99, num_updates=step, name="e2")
    e2.apply([w, w * 2])
    tf.trainable_variables()
