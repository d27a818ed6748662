"""Training with one ps and two workers, in global steps/s: between-graph replicas, one client process
for each worker, asynchronous or in step (SyncReplicasOptimizer, 2 of 2).

  linear  a linear regression on one number, batch 100
  mlp     784-512-512-10, batch 128

All clients step until all are warm, then measure together: with SyncReplicasOptimizer an idle replica
would strand the others.
"""

import json
import os
import subprocess
import sys

from common import HERE, Cluster, emit, parse, parser, run_together

BATCH = {"linear": 100, "mlp": 128}
WORKERS = 2

p = parser(__doc__)
p.add_argument("--models", default="linear,mlp")
p.add_argument("--modes", default="async,sync")
p.add_argument("--seconds", type=float, default=6.0, help="for each point")
args = parse(p)
if args.quick:
    args.seconds = 2.0


def start(cluster, model, mode, task):
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "train_client.py"),
         "--cluster", json.dumps(cluster.spec), "--task", str(task), "--model", model,
         "--mode", mode, "--batch", str(BATCH[model]), "--seconds", str(args.seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measure(model, mode):
    with Cluster(args, {"ps": 1, "worker": WORKERS}) as cluster:
        children = [start(cluster, model, mode, task) for task in range(WORKERS)]
        results, cpu = run_together(children, cluster)
    # All of them step from the first go to the first end.
    first = min(results, key=lambda r: r["end"])
    begin = min(results, key=lambda r: r["begin"])
    steps = first["step_end"] - begin["step_begin"]
    seconds = first["end"] - begin["begin"]
    point = {"model": model, "mode": mode}
    emit("cluster_train", "steps", steps / seconds, "steps/s", "higher", point,
         first_loss=first["first_loss"], loss=first["loss"],
         client_cpu_us=sum(r["cpu"] for r in results) / max(steps, 1) * 1e6)
    emit("cluster_train", "server_cpu", cpu / max(steps, 1) * 1e6, "us", "lower", point)


for model in args.models.split(","):
    for mode in args.modes.split(","):
        measure(model, mode)
