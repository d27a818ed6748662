"""Many clients at the same time on one server: each has its own session and runs null steps."""

import os
import subprocess
import sys

from common import HERE, Server, emit, median, parse, parser, rss_mb, run_together, thread_count

p = parser(__doc__)
p.add_argument("--clients", default="1,16,64")
p.add_argument("--seconds", type=float, default=4.0)
p.add_argument("--procs", type=int, default=4,
               help="client processes; the clients are spread on them")
args = parse(p)
if args.quick:
    args.seconds = 1.5


def start(server, sessions, name):
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "null_client.py"), "--target", server.target,
         "--device", server.device, "--sessions", str(sessions), "--name", name,
         "--seconds", str(args.seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def measure(server, clients):
    procs = min(clients, args.procs)
    shares = [clients // procs + (i < clients % procs) for i in range(procs)]
    children = [start(server, n, "c%d_%d" % (clients, i)) for i, n in enumerate(shares)]
    results, cpu = run_together(children, server)
    steps = sum(r["steps"] for r in results)
    point = {"clients": clients}
    emit("concurrency", "steps", steps / args.seconds, "steps/s", "higher", point,
         p50_us=median([r["p50"] for r in results]) * 1e6,
         p99_us=max(r["p99"] for r in results) * 1e6,
         client_cpu_us=sum(r["cpu"] for r in results) / steps * 1e6,
         server_rss_mb=rss_mb(server.pid) if server.pid else None,
         server_threads=thread_count(server.pid) if server.pid else None)
    emit("concurrency", "server_cpu", cpu / steps * 1e6, "us", "lower", point)
    emit("concurrency", "errors", sum(r["errors"] for r in results), "errors", "lower", point,
         first=[e for r in results for e in r["first_error"]][:1])


for n in args.clients.split(","):
    with Server(args) as server:
        measure(server, int(n))
