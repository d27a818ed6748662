"""Steps of several builds of the command, taking turns in blocks: what a change costs.

  python bench/turns.py old=PATH new=PATH [--modes group,data] [--core 1 --starts 4]

All builds serve a cluster each at the same time.  A client runs a block of steps on each of them in random order, again
and again, so that other load on the machine affects all alike.  Printed are the median step, the CPU time of the servers
for a step, and for each build but the first the median ratio of its blocks to those of the first.

Where the system puts the processes of a cluster makes steps up to 1.5 times slower, and stays for as long as they run.
`--starts` begins anew with other processes.  `--core` keeps the servers and the client on one core: steps then measure
the processor time of all tasks together, and repeat within 2 %.

  null          a variable is read on one task
  group, data   as in cluster_step.py: only control edges, or values, cross three tasks
  fan_in        a worker adds up one scalar from each of 16 ps
  read:N add:N  a variable of N bytes is read from the ps, or added to one on the ps
"""

import argparse
import contextlib
import os
import random
import statistics
import time

from common import Cluster, import_tf, parse, parser

FAN_IN = 16

p = parser(__doc__)
p.add_argument("builds", nargs="+", metavar="NAME=PATH")
p.add_argument("--modes", default="null,group,data,fan_in,read:1024,add:1024,read:1048576,add:1048576")
p.add_argument("--blocks", type=int, default=24)
p.add_argument("--steps", type=int, default=250, help="steps in a block")
p.add_argument("--starts", type=int, default=1, help="how often the clusters are started")
p.add_argument("--core", type=int, help="keep all processes on this core")
args = parse(p)
if args.core is not None:
    os.sched_setaffinity(0, {args.core})
if args.quick:
    args.blocks, args.steps = 8, 100

tf = import_tf()
v1 = tf.compat.v1
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def variable(name, where, size=4):
    with tf.device(where):
        return v1.get_variable(name, [size // 4], tf.float32, v1.ones_initializer(), use_resource=False)


def on(device, op, *inputs):
    with tf.device(device):
        return op(*inputs)


def null():
    return on(PS, tf.identity, variable("v", PS)).op


def group():
    places = PS, WORKER, "/job:worker/task:1"
    return tf.group(*[on(d, v1.assign_add, variable("g%d" % i, d), [1.0]).op for i, d in enumerate(places)])


def data():
    v = variable("v", PS)
    sums = [on("/job:worker/task:%d" % i, tf.add, v, float(i)) for i in range(2)]
    return on(PS, tf.add, *sums).op


def fan_in():
    scalars = [variable("f%d" % i, "/job:ps/task:%d" % i) for i in range(FAN_IN)]
    return on(WORKER, tf.add_n, [tf.identity(s) for s in scalars]).op


def read(size):
    v = variable("v", PS, size)
    return on(WORKER, lambda: tf.identity(v)[-1]).op


def add(size):
    return on(PS, v1.assign_add, variable("v", PS, size), variable("w", WORKER, size)).op


def fetched(mode):
    """The op that a step of this mode runs, and the cluster that it needs."""
    name, _, size = mode.partition(":")
    jobs = {"fan_in": {"ps": FAN_IN, "worker": 1}}.get(name, {"ps": 1, "worker": 2})
    return globals()[name](*[int(size)] if size else []), jobs


def serving(path):
    command = path + " server --cluster {cluster_json} --job {job} --task {task}"
    return argparse.Namespace(server_cmd=command)


def block(call):
    """The median time of a step, in us."""
    times = []
    for _ in range(args.steps):
        t = time.perf_counter()
        call()
        times.append((time.perf_counter() - t) * 1e6)
    return statistics.median(times)


def measure(mode):
    builds = dict(build.split("=", 1) for build in args.builds)
    medians, cpu = {name: [] for name in builds}, dict.fromkeys(builds, 0.0)
    for _ in range(args.starts):
        turns(mode, builds, medians, cpu)
    first, steps = next(iter(builds)), args.starts * args.blocks * args.steps
    for name in builds:
        ratio = statistics.median(a / b for a, b in zip(medians[name], medians[first]))
        print("%-13s %-10s %8.1f us  server CPU %7.1f us  ratio %.3f" % (
            mode, name, statistics.median(medians[name]), cpu[name] / steps * 1e6, ratio), flush=True)


def turns(mode, builds, medians, cpu):
    """Starts a cluster of each build and adds the medians of its blocks and its processor time."""
    with contextlib.ExitStack() as stack, tf.Graph().as_default():
        fetch, jobs = fetched(mode)
        init, calls, clusters = v1.global_variables_initializer(), {}, {}
        for name, path in builds.items():
            clusters[name] = stack.enter_context(Cluster(serving(path), jobs))
            session = stack.enter_context(v1.Session(clusters[name].target()))
            session.run(init)
            calls[name] = session.make_callable(fetch)
            block(calls[name])
        for _ in range(args.blocks):
            for name in random.sample(list(builds), len(builds)):
                before = clusters[name].cpu()
                medians[name].append(block(calls[name]))
                cpu[name] += clusters[name].cpu() - before


for mode in args.modes.split(","):
    measure(mode)
