"""Large graphs: the first run (create the session, send the graph, prepare it and run it once), the first run of a second
signature in the same session, and the steady state.

chain  n scalar ops, each depending on the previous one
wide   layers of 100 ops, each reading two ops of the previous layer
free   n ops that only read the fed value, and their sum

The op is SquaredDifference, which TensorFlow's graph optimizer does not change.
"""

import time

from common import Server, emit, import_tf, median, parse, parser

p = parser(__doc__)
p.add_argument("--nodes", default="1000,20000")
p.add_argument("--shapes", default="chain,wide,free")
p.add_argument("--sessions", type=int, default=2, help="sessions, each with a first run")
args = parse(p)
if args.quick:
    args.sessions = 1

tf = import_tf()
v1 = tf.compat.v1
op = tf.math.squared_difference


def build(shape, n, device):
    """The graph, its placeholder, its last value, and one halfway."""
    with tf.Graph().as_default() as graph, v1.device(device):
        x = v1.placeholder(tf.float32, [])
        if shape == "chain":
            y, last = tf.constant(0.5), x
            for i in range(n):
                last = op(last, y)
                if i == n // 2:
                    half = last
            return graph, x, last, half
        if shape == "free":
            ops = [op(x, tf.constant(i * 0.01)) for i in range(n)]
            return graph, x, tf.add_n(ops), tf.add_n(ops[:n // 2])
        layer = [op(x, tf.constant(i * 0.01)) for i in range(100)]
        for i in range(n // 100 - 1):
            layer = [op(layer[j], layer[(j + 1) % 100]) for j in range(100)]
            if i == n // 200:
                half = tf.add_n(layer)
        return graph, x, tf.add_n(layer), half


def measure(shape, n, server):
    clock = time.perf_counter
    graph, x, last, half = build(shape, n, server.device)
    first, second, steady, cpu = [], [], [], []
    for _ in range(args.sessions):
        c, t = server.cpu(), clock()
        with v1.Session(server.target, graph=graph) as sess:
            sess.run(last, {x: 1.0})
            first.append(clock() - t)
            cpu.append(server.cpu() - c)
            t = clock()
            sess.run(half, {x: 1.0})
            second.append(clock() - t)
            call = sess.make_callable(last, [x])
            call(1.0)
            until = clock() + 0.5
            while clock() < until:
                t = clock()
                call(1.0)
                steady.append(clock() - t)
    point = {"shape": shape, "nodes": n}
    emit("large_graph", "first_run", median(first) * 1e3, "ms", "lower", point,
         server_cpu_ms=median(cpu) * 1e3, graph_bytes=graph.as_graph_def().ByteSize())
    emit("large_graph", "second_signature", median(second) * 1e3, "ms", "lower", point)
    emit("large_graph", "steady_step", median(steady) * 1e6, "us", "lower", point,
         best=min(steady) * 1e6, ns_per_node=median(steady) / n * 1e9)


with Server(args) as server:
    for shape in args.shapes.split(","):
        for n in args.nodes.split(","):
            measure(shape, int(n), server)
