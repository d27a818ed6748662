"""Training with one ps and two workers, in global steps/s: between-graph replicas, one client process per worker,
asynchronous or synchronous (SyncReplicasOptimizer, 2 of 2).

  linear  a linear regression on one number, batch 100
  mlp     784-512-512-10, batch 128

All clients step until all are warm, then measure together.  With SyncReplicasOptimizer an idle replica would block the
others.
"""

from common import emit, parse, parser, train_together

BATCH = {"linear": 100, "mlp": 128}

p = parser(__doc__)
p.add_argument("--models", default="linear,mlp")
p.add_argument("--modes", default="async,sync")
p.add_argument("--seconds", type=float, default=6.0, help="for each point")
args = parse(p)
if args.quick:
    args.seconds = 2.0


def measure(model, mode):
    trained = train_together(args, model, mode, BATCH[model], args.seconds)
    point = {"model": model, "mode": mode}
    emit("cluster_train", "steps", trained["steps_per_s"], "steps/s", "higher", point,
         first_loss=trained["first_loss"], loss=trained["loss"],
         client_cpu_us=trained["client_cpu_us"])
    emit("cluster_train", "server_cpu", trained["server_cpu_us"], "us", "lower", point)


for model in args.models.split(","):
    for mode in args.modes.split(","):
        measure(model, mode)
