"""Startup: the time from the start of the process until it answers, and the memory of an idle server.

The server is ready when it answers a connection with its HTTP/2 settings, the first bytes that a gRPC client receives.
"""

import os
import time

from common import Server, emit, median, parse, parser, rss_mb, thread_count

p = parser(__doc__)
p.add_argument("--starts", type=int, default=3)
p.add_argument("--idle", type=float, default=1.0, help="seconds to be idle before it is looked at")
p.add_argument("--binary", metavar="PATH", help="a file or folder whose size is what is shipped")
args = parse(p)
if args.quick:
    args.starts = 2


def tree_size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    files = (os.path.join(d, f) for d, _, names in os.walk(path) for f in names)
    return sum(os.path.getsize(f) for f in files if not os.path.islink(f))


ready, start_cpu, rss, threads, idle_cpu = [], [], [], [], []
for _ in range(args.starts):
    server = Server(args)
    try:
        ready.append(server.wait_ready() * 1e3)
        cpu = server.cpu()
        start_cpu.append(cpu * 1e3)
        time.sleep(args.idle)
        idle_cpu.append((server.cpu() - cpu) / args.idle * 100)
        rss.append(rss_mb(server.pid))
        threads.append(thread_count(server.pid))
    finally:
        server.close()
emit("startup", "ready", median(ready), "ms", "lower", best=min(ready), start_cpu_ms=median(start_cpu))
emit("startup", "idle_rss", median(rss), "MB", "lower", threads=median(threads),
     idle_cpu_percent=median(idle_cpu))
if args.binary:
    emit("startup", "size", tree_size(args.binary) / (1 << 20), "MB", "lower")
