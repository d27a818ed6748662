"""Null step: the time of `sess.run`, and of a callable that is made once, on a graph of one addition.

The added variable is a reference variable, so that no optimizer can empty the step.  With --floor the server is an echo
(README.md describes it), and the time is that of the client and the transport.
"""

import time

from common import Server, emit, import_tf, median, parse, parser, percentile, timed_blocks

p = parser(__doc__)
p.add_argument("--floor", action="store_true", help="the server is an echo; initialise nothing")
p.add_argument("--blocks", type=int, default=5, help="the figure is the median block's median")
p.add_argument("--steps", type=int, default=1000, help="steps in a block")
args = parse(p)
if args.quick:
    args.blocks, args.steps = 3, 300

tf = import_tf()
v1 = tf.compat.v1


def measure(via, call, server):
    for _ in range(200):
        call()
    server_cpu, client_cpu, began = server.cpu(), time.process_time(), time.perf_counter()
    medians, every = timed_blocks(call, args.blocks, args.steps)
    seconds = time.perf_counter() - began
    n = len(every)
    emit("null_step", "latency", median(medians), "us", "lower", {"via": via},
         best=min(every), p99=percentile(every, .99), steps_per_s=n / seconds,
         client_cpu_us=(time.process_time() - client_cpu) / n * 1e6)
    emit("null_step", "server_cpu", (server.cpu() - server_cpu) / n * 1e6, "us", "lower",
         {"via": via})


with Server(args) as server, tf.Graph().as_default():
    with tf.device(server.device):
        v = v1.get_variable("v", [], tf.float32, v1.ones_initializer(), use_resource=False)
        fetch = tf.add(v, 1.0, name="null")
    with v1.Session(server.target) as sess:
        if not args.floor:
            sess.run(v.initializer)
        assert sess.run(fetch) == 2.0
        measure("run", lambda: sess.run(fetch), server)
        measure("callable", sess.make_callable(fetch), server)
