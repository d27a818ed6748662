"""Many clients at the same time over a cluster of one ps and two workers.

Each client has its own session on one of the workers.  Its steps read a variable on the ps.
"""

import os
import subprocess
import sys

from common import HERE, Cluster, emit, median, parse, parser, run_together

p = parser(__doc__)
p.add_argument("--clients", default="64")
p.add_argument("--seconds", type=float, default=4.0)
p.add_argument("--procs", type=int, default=4,
               help="client processes; the clients are spread on them")
args = parse(p)
if args.quick:
    args.seconds = 1.5


def start(cluster, worker, sessions, name):
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "null_client.py"),
         "--target", cluster.target("worker", worker), "--variable-device", "/job:ps/task:0",
         "--device", "/job:worker/task:%d" % worker, "--sessions", str(sessions), "--name", name,
         "--filter", "/job:ps", "--filter", "/job:worker/task:%d" % worker,
         "--seconds", str(args.seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def measure(cluster, clients):
    procs = min(clients, args.procs)
    shares = [clients // procs + (i < clients % procs) for i in range(procs)]
    children = [start(cluster, i % 2, n, "c%d_%d" % (clients, i)) for i, n in enumerate(shares)]
    results, cpu = run_together(children, cluster)
    steps = sum(r["steps"] for r in results)
    point = {"clients": clients}
    emit("cluster_clients", "steps", steps / args.seconds, "steps/s", "higher", point,
         p50_us=median([r["p50"] for r in results]) * 1e6,
         p99_us=max(r["p99"] for r in results) * 1e6,
         client_cpu_us=sum(r["cpu"] for r in results) / steps * 1e6)
    emit("cluster_clients", "server_cpu", cpu / steps * 1e6, "us", "lower", point)
    emit("cluster_clients", "errors", sum(r["errors"] for r in results), "errors", "lower", point,
         first=[e for r in results for e in r["first_error"]][:1])


for n in args.clients.split(","):
    with Cluster(args, {"ps": 1, "worker": 2}) as cluster:
        measure(cluster, int(n))
