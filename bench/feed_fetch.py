"""Tensors between client and server, 1 KB to 100 MB: throughput of feeding, of fetching, and of both.

feed   a placeholder, of which the step returns one element
fetch  a variable, returned whole (through an identity)
both   a placeholder returned whole; throughput counts the tensor once

With --floor the server is an echo (README.md describes it).
"""

import time

import numpy as np

from common import Server, emit, import_tf, median, parse, parser

KB, MB = 1 << 10, 1 << 20

p = parser(__doc__)
p.add_argument("--sizes", default="%d,%d,%d,%d,%d" % (KB, 64 * KB, MB, 16 * MB, 100 * MB),
               help="bytes, comma separated")
p.add_argument("--ops", default="feed,fetch,both")
p.add_argument("--seconds", type=float, default=1.0, help="time for each point")
p.add_argument("--floor", action="store_true", help="the server is an echo")
args = parse(p)
if args.quick:
    args.seconds = 0.4

tf = import_tf()
v1 = tf.compat.v1


def build(op, n, device):
    """The fetch, the fed placeholders, and the op that must run first."""
    with tf.device(device):
        if op == "fetch":
            v = v1.get_variable("v%d" % n, [n], tf.float32, v1.ones_initializer(),
                                use_resource=False)
            return tf.identity(v, name="bytes_%d" % (4 * n)), [], [v.initializer]
        x = v1.placeholder(tf.float32, [n])
        if op == "feed":
            return tf.identity(x[n - 1], name="null"), [x], []
        return tf.identity(x, name="bytes_%d" % (4 * n)), [x], []


def measure(op, size, server):
    n = size // 4
    value = np.ones([n], np.float32)
    with tf.Graph().as_default():
        fetch, fed, before = build(op, n, server.device)
        with v1.Session(server.target) as sess:
            if before:
                sess.run(before)
            call = sess.make_callable(fetch, fed)
            feeds = [value] if fed else []
            for _ in range(3):
                result = call(*feeds)
            if not args.floor:
                assert np.sum(result) == (1 if op == "feed" else n), "wrong result"
            times, cpu, began = [], server.cpu(), time.perf_counter()
            while len(times) < 3 or time.perf_counter() - began < args.seconds:
                t = time.perf_counter()
                call(*feeds)
                times.append(time.perf_counter() - t)
            cpu = server.cpu() - cpu
    step = median(times)
    point = {"op": op, "bytes": size}
    emit("feed_fetch", "throughput", size / step / MB, "MB/s", "higher", point,
         step_us=step * 1e6, best=size / min(times) / MB, steps=len(times))
    emit("feed_fetch", "server_cpu", cpu / len(times) * 1e6, "us", "lower", point)


with Server(args) as server:
    for op in args.ops.split(","):
        for size in args.sizes.split(","):
            measure(op, int(size), server)
