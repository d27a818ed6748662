"""Kernels through a session: products, convolutions, element-wise functions, reductions, losses, optimizer steps; and
training steps of a multi-layer perceptron and a small convolutional network.

An op is repeated within one step.  The copies are ordered by control edges and all are targets, so that the cost of the
step is negligible and no optimizer can merge or drop copies.  `--threads` is the number of compute threads of the
server, which is bound to as many cores.  Figures are rates of the best round.  `extra` has the median, and the rate by
the server's CPU time, for machines with other load.  Each model has its own training server, so that its peak memory
is that of its steps.
"""

import os
import time

from common import Server, emit, import_tf, median, parse, parser, peak_mb

GEMM = [  # name, rows, inner, columns, which are stored transposed
    ("sq256", 256, 256, 256, "nn"), ("sq512", 512, 512, 512, "nn"),
    ("sq1024", 1024, 1024, 1024, "nn"), ("sq2048", 2048, 2048, 2048, "nn"),
    ("mlp_fwd", 128, 784, 512, "nn"), ("mlp_dw", 784, 128, 512, "tn"),
    ("mlp_dx", 128, 512, 784, "nt"), ("skinny", 128, 512, 10, "nn"),
    ("cnn_fc", 64, 3136, 1024, "nn"), ("few_rows", 8, 4096, 1001, "nn"),
    ("few_rows_dx", 8, 1001, 4096, "nt"), ("one_row", 1, 4096, 1001, "nn")]
CONV = [  # name, batch, height and width, channels in, window, channels out; stride 1, SAME, NHWC
    ("mnist_c1", 64, 28, 1, 5, 32), ("mnist_c2", 64, 14, 32, 5, 64),
    ("resnet_3x3", 16, 56, 64, 3, 64)]
ELEMENTS = [("256KB", 64 << 10), ("64MB", 16 << 20)]
XENT = [("128x10", 128, 10), ("128x1000", 128, 1000), ("256x32000", 256, 32000)]
GROUPS = ("gemm", "conv", "elementwise", "loss", "layers", "train")


# ------------------------------------------------------------------------- what is measured


def options():
    p = parser(__doc__)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--groups", default=",".join(GROUPS))
    p.add_argument("--seconds", type=float, default=0.3, help="time of a round")
    p.add_argument("--rounds", type=int, default=5, help="rounds of each point")
    args = parse(p)
    if args.quick:
        args.seconds, args.rounds = 0.1, 3
    return args


def cpu_seconds(pid):
    """CPU time of a process, to the nanosecond, as long as none of its threads end."""
    if not pid:
        return float("nan")
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
                total += int(f.read().split()[0])
        except FileNotFoundError:  # it has just ended
            pass
    return total / 1e9


class Bench:
    def __init__(self, args, tf, server):
        self.args, self.tf, self.v1, self.server = args, tf, tf.compat.v1, server
        self.names = 0

    def var(self, shape, low=-0.5, high=0.5, dtype=None):
        """A variable of random elements; the same on every server."""
        self.names += 1
        first = self.tf.random.uniform(shape, low, high, dtype=dtype or self.tf.float32, seed=3)
        return self.v1.get_variable("k%d" % self.names, initializer=first, use_resource=False)

    def session(self):
        config = self.v1.ConfigProto(intra_op_parallelism_threads=self.args.threads,
                                     inter_op_parallelism_threads=self.args.threads)
        return self.v1.Session(self.server.target, config=config)

    def op(self, metric, case, make, repeat, work, unit):
        """Measures one op.  `make` creates its inputs and returns a function that adds one copy."""
        tf, v1 = self.tf, self.v1
        with tf.Graph().as_default(), tf.device(self.server.device):
            add, copies = make(), []
            for _ in range(repeat):
                with tf.control_dependencies(copies[-1:]):
                    made = add()
                copies.append(made.op if hasattr(made, "op") else made)
            with self.session() as sess:
                sess.run(v1.global_variables_initializer())
                self.rate(metric, case, sess.make_callable(copies), repeat, work, unit)

    def rate(self, metric, case, call, repeat, work, unit):
        """Calls for some rounds, and prints work a second."""
        call()
        call()
        began = time.perf_counter()
        call()
        calls = max(1, int(self.args.seconds / (time.perf_counter() - began)))
        times, cpus = [], []
        for _ in range(self.args.rounds):
            cpu, began = cpu_seconds(self.server.pid), time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - began) / calls / repeat)
            cpus.append((cpu_seconds(self.server.pid) - cpu) / calls / repeat)
        cpu = min(cpus)
        emit("kernels", metric, work / min(times), unit, "higher",
             {"case": case, "threads": self.args.threads}, median=work / median(times),
             us=min(times) * 1e6, by_cpu=work / cpu if cpu > 0 else None)


def gemm(b):
    tf = b.tf
    for name, m, k, n, stored in GEMM:
        def make():
            x = b.var([k, m] if stored[0] == "t" else [m, k])
            y = b.var([n, k] if stored[1] == "t" else [k, n])
            return lambda: tf.matmul(x, y, transpose_a=stored[0] == "t",
                                     transpose_b=stored[1] == "t")
        flops = 2.0 * m * k * n
        b.op("gemm", name, make, max(1, min(32, int(4e9 / flops))), flops / 1e9, "GFLOP/s")


def conv(b):
    tf, v1 = b.tf, b.v1
    one = [1, 1, 1, 1]
    for name, n, h, cin, k, cout in CONV:
        image, filters, out = [n, h, h, cin], [k, k, cin, cout], [n, h, h, cout]

        def forward():
            x, w = b.var(image), b.var(filters)
            return lambda: tf.nn.conv2d(x, w, 1, "SAME")

        def by_input():
            w, g = b.var(filters), b.var(out)
            return lambda: v1.nn.conv2d_backprop_input(image, w, g, one, "SAME")

        def by_filter():
            x, g = b.var(image), b.var(out)
            return lambda: v1.nn.conv2d_backprop_filter(x, filters, g, one, "SAME")

        flops = 2.0 * n * h * h * cin * cout * k * k
        repeat = max(1, min(32, int(2e9 / flops)))
        for metric, make in (("conv_fwd", forward), ("conv_dx", by_input), ("conv_dw", by_filter)):
            b.op(metric, name, make, repeat, flops / 1e9, "GFLOP/s")


def elementwise(b):
    tf = b.tf
    for name, n in ELEMENTS:
        def two(f):
            def make():
                x, y = b.var([n]), b.var([n])
                return lambda: f(x, y)
            return make

        def one(f, low=-0.5):
            def make():
                x = b.var([n], low)
                return lambda: f(x)
            return make

        def rows(axis):
            def make():
                x = b.var([n // 256, 256])
                return lambda: tf.reduce_sum(x, axis)
            return make

        def sgd():
            x, g, rate = b.var([n]), b.var([n]), tf.constant(1e-6)
            return lambda: tf.raw_ops.ApplyGradientDescent(var=x._ref(), alpha=rate, delta=g)

        def adam():
            x, m, v, g = b.var([n]), b.var([n]), b.var([n], 0.1), b.var([n])
            rest = [tf.constant(c) for c in (0.9, 0.999, 1e-6, 0.9, 0.999, 1e-7)]
            return lambda: tf.raw_ops.ApplyAdam(
                var=x._ref(), m=m._ref(), v=v._ref(), beta1_power=rest[0], beta2_power=rest[1],
                lr=rest[2], beta1=rest[3], beta2=rest[4], epsilon=rest[5], grad=g)

        # The least number of elements that must be read and written.
        for metric, make, moved in (
                ("add", two(tf.add), 3), ("mul", two(tf.multiply), 3),
                ("relu", one(tf.nn.relu), 2), ("exp", one(tf.exp), 2),
                ("log", one(tf.math.log, 0.1), 2), ("tanh", one(tf.tanh), 2),
                ("sigmoid", one(tf.sigmoid), 2), ("erf", one(tf.math.erf), 2),
                ("reduce_sum", one(tf.reduce_sum), 1), ("reduce_rows", rows(1), 1),
                ("reduce_columns", rows(0), 1), ("sgd_apply", sgd, 3), ("adam_apply", adam, 7)):
            b.op(metric, name, make, 4 if n > 1 << 20 else 32, 4.0 * n * moved / 1e9, "GB/s")


def loss(b):
    tf = b.tf
    for name, rows, classes in XENT:
        def make():
            x, y = b.var([rows, classes]), b.var([rows], 0, classes, tf.int32)
            return lambda: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
                features=x, labels=y).backprop
        b.op("softmax_xent", name, make, 32 if rows * classes < 1e6 else 4,
             8.0 * rows * classes / 1e9, "GB/s")


def layers(b):
    """Pooling, local response normalisation and LSTM cells, as public programs use them."""
    tf, r = b.tf, b.tf.raw_ops
    size, stride = [1, 3, 3, 1], [1, 2, 2, 1]
    for name, n, h, c in (("32x27x27x192", 32, 27, 192), ("8x111x111x64", 8, 111, 64)):
        image, out = [n, h, h, c], [n, (h - 3) // 2 + 1, (h - 3) // 2 + 1, c]

        def pool():
            x = b.var(image)
            return lambda: r.MaxPool(input=x, ksize=size, strides=stride, padding="VALID")

        def pool_grad():
            x, y, g = b.var(image), b.var(out), b.var(out)
            return lambda: r.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, ksize=size,
                                         strides=stride, padding="VALID")

        def lrn():
            x = b.var(image)
            return lambda: r.LRN(input=x, depth_radius=4, bias=1.0, alpha=1e-4, beta=0.75)

        def lrn_grad():
            x, y, g = b.var(image), b.var(image), b.var(image)
            return lambda: r.LRNGrad(input_grads=g, input_image=x, output_image=y,
                                     depth_radius=4, bias=1.0, alpha=1e-4, beta=0.75)

        elements = n * h * h * c / 1e9
        for metric, make in (("max_pool", pool), ("max_pool_grad", pool_grad), ("lrn", lrn),
                             ("lrn_grad", lrn_grad)):
            b.op(metric, name, make, 2, elements, "Gelem/s")
    for batch, cell in ((20, 200), (20, 650)):
        state, w, bias = [batch, cell], [2 * cell, 4 * cell], [4 * cell]

        def cell_inputs():
            peep = [b.var([cell]) for _ in range(3)]
            return dict(x=b.var(state), cs_prev=b.var(state), h_prev=b.var(state), w=b.var(w),
                        wci=peep[0], wcf=peep[1], wco=peep[2], b=b.var(bias))

        def step():
            args = cell_inputs()
            return lambda: r.LSTMBlockCell(**args)[0]

        def step_grad():
            args = cell_inputs()
            args.update({k: b.var(state) for k in ("i", "cs", "f", "o", "ci", "co", "cs_grad",
                                                   "h_grad")})
            return lambda: r.LSTMBlockCellGrad(use_peephole=False, **args)[0]

        for metric, make in (("lstm_cell", step), ("lstm_cell_grad", step_grad)):
            b.op(metric, "%dx%d" % (batch, cell), make, 8, 1e-6, "Mcall/s")


# ------------------------------------------------------------------------------- training


def train(b, name, model, batch):
    import numpy as np
    with b.tf.Graph().as_default(), b.tf.device(b.server.device):
        x = b.v1.placeholder(b.tf.float32, [batch, 784])
        y = b.v1.placeholder(b.tf.int32, [batch])
        losses = b.tf.nn.sparse_softmax_cross_entropy_with_logits(logits=model(b, x), labels=y)
        step = b.v1.train.GradientDescentOptimizer(0.01).minimize(b.tf.reduce_mean(losses))
        with b.session() as sess:
            sess.run(b.v1.global_variables_initializer())
            call = sess.make_callable(step, [x, y])
            rng = np.random.RandomState(7)
            images = rng.uniform(0, 1, [batch, 784]).astype(np.float32)
            labels = rng.randint(0, 10, [batch]).astype(np.int32)
            before = peak_mb(b.server.pid)
            b.rate("train", name, lambda: call(images, labels), 1, 1.0, "steps/s")
            if b.server.pid:
                emit("kernels", "train_memory", peak_mb(b.server.pid), "MB", "lower",
                     {"case": name, "threads": b.args.threads}, before_steps=before)


def dense(b, x, n_in, n_out, act=True):
    h = b.tf.matmul(x, b.var([n_in, n_out], -0.05, 0.05)) + b.var([n_out])
    return b.tf.nn.relu(h) if act else h


def mlp(b, x):
    h = dense(b, dense(b, x, 784, 512), 512, 512)
    return dense(b, h, 512, 10, act=False)


def cnn(b, x):
    tf = b.tf

    def layer(h, cin, cout):
        h = tf.nn.conv2d(h, b.var([5, 5, cin, cout], -0.1, 0.1), 1, "SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, b.var([cout])))
        return tf.nn.max_pool2d(h, 2, 2, "SAME")

    h = layer(layer(tf.reshape(x, [-1, 28, 28, 1]), 1, 32), 32, 64)
    h = dense(b, tf.reshape(h, [-1, 7 * 7 * 64]), 7 * 7 * 64, 1024)
    return dense(b, h, 1024, 10, act=False)


def served(args):
    """Starts servers, one at a time: one for the kernels, one for each model."""
    groups = args.groups.split(",")
    kernels = {"gemm": gemm, "conv": conv, "elementwise": elementwise, "loss": loss,
               "layers": layers}
    alone = [kernels[group] for group in groups if group != "train"]
    if alone:
        yield lambda bench: [measure(bench) for measure in alone]
    if "train" in groups:
        yield lambda bench: train(bench, "mlp", mlp, 128)
        yield lambda bench: train(bench, "cnn", cnn, 64)


def main():
    args = options()
    tf = import_tf()
    cores = sorted(os.sched_getaffinity(0))
    for measure in served(args):
        # The server inherits the cores, which limits its compute threads whatever server it is.
        os.sched_setaffinity(0, cores[:args.threads])
        with Server(args) as server:
            os.sched_setaffinity(0, cores)
            measure(Bench(args, tf, server))


if __name__ == "__main__":
    main()
