"""Null steps over several tasks: the time of `sess.run`, and of a callable that is made once.

  data    a scalar goes from the ps to two workers and comes back from both (ps + 2 workers)
  group   a scalar is added to on the ps and on two workers; only control edges cross tasks
  fan_in  a worker adds up one scalar from each of 16 ps

Variables are reference variables, so that no optimizer can empty the step.
"""

import time

from common import Cluster, emit, import_tf, median, parse, parser, percentile, timed_blocks

p = parser(__doc__)
p.add_argument("--modes", default="data,group,fan_in")
p.add_argument("--blocks", type=int, default=5, help="the figure is the median block's median")
p.add_argument("--steps", type=int, default=500, help="steps in a block")
args = parse(p)
if args.quick:
    args.blocks, args.steps = 3, 150

tf = import_tf()
v1 = tf.compat.v1

FAN_IN = 16


def device(job, task):
    return "/job:%s/task:%d" % (job, task)


def variable(name, where):
    with tf.device(where):
        return v1.get_variable(name, [], tf.float32, v1.ones_initializer(), use_resource=False)


def data():
    v = variable("v", device("ps", 0))
    with tf.device(device("worker", 0)):
        a = tf.add(v, 1.0)
    with tf.device(device("worker", 1)):
        b = tf.add(v, 2.0)
    with tf.device(device("ps", 0)):
        return tf.add(a, b), 5.0


def group():
    places = device("ps", 0), device("worker", 0), device("worker", 1)
    ops = []
    for i, place in enumerate(places):
        v = variable("g%d" % i, place)
        with tf.device(place):
            ops.append(v1.assign_add(v, 1.0).op)
    return tf.group(*ops), None


def fan_in():
    scalars = [variable("f%d" % i, device("ps", i)) for i in range(FAN_IN)]
    with tf.device(device("worker", 0)):
        return tf.add_n([tf.identity(s) for s in scalars]), float(FAN_IN)


MODES = {"data": (data, {"ps": 1, "worker": 2}), "group": (group, {"ps": 1, "worker": 2}),
         "fan_in": (fan_in, {"ps": FAN_IN, "worker": 1})}


def measure(mode, via, call, cluster):
    for _ in range(100):
        call()
    server_cpu, client_cpu = cluster.cpu(), time.process_time()
    medians, every = timed_blocks(call, args.blocks, args.steps)
    n = len(every)
    point = {"mode": mode, "via": via}
    emit("cluster_step", "latency", median(medians), "us", "lower", point, best=min(every),
         p99=percentile(every, .99), client_cpu_us=(time.process_time() - client_cpu) / n * 1e6)
    emit("cluster_step", "server_cpu", (cluster.cpu() - server_cpu) / n * 1e6, "us", "lower", point)


for mode in args.modes.split(","):
    build, jobs = MODES[mode]
    with Cluster(args, jobs) as cluster, tf.Graph().as_default():
        fetch, expected = build()
        init = v1.global_variables_initializer()
        with v1.Session(cluster.target()) as sess:
            sess.run(init)
            assert sess.run(fetch) == expected
            measure(mode, "run", lambda: sess.run(fetch), cluster)
            measure(mode, "callable", sess.make_callable(fetch), cluster)
