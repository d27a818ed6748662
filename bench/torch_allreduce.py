"""All-reduce and DDP in torch: the backend ferroflow beside gloo, in turns, in one run.

    torchrun --nproc-per-node 2 bench/torch_allreduce.py

Every row is measured in turns, and the median of the rounds counts. Rows:

- `call`: `dist.all_reduce` of one tensor.
- `gradients`: the gradients of a model in buckets of 1, 4 and 25 MB, submitted as DDP submits them.
- `training`: steps of DDP with these buckets. `alone` is a step without communication.

The models are the MLP and the CNN of the other benchmarks, and a wide MLP with a small batch, whose
gradients take longer than its step. The last lines say which goals are met.
"""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ferroflow.torch.distributed  # noqa: F401 (registers the backend)

MB = 1 << 20
CALLS = [4, 1024, 65536, MB, 4 * MB, 25 * MB]
BUCKETS = [1, 4, 25]
BACKENDS = ("ferroflow", "gloo")


def slowest(seconds, group):
    """The time of the slowest rank."""
    value = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=group)
    return value.item()


def timed(work, seconds, group):
    """The mean seconds of a call over about `seconds`, in the slowest rank."""
    start = time.perf_counter()
    for _ in range(2):
        work()
    count = max(3, min(2000, int(seconds / slowest((time.perf_counter() - start) / 2, group))))
    dist.barrier(group)
    start = time.perf_counter()
    for _ in range(count):
        work()
    return slowest((time.perf_counter() - start) / count, group)


def mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 10)), (128, 784)


def cnn():
    def layer(n_in, n_out):
        return [torch.nn.Conv2d(n_in, n_out, 5, padding=2), torch.nn.ReLU(),
                torch.nn.MaxPool2d(2)]
    return torch.nn.Sequential(
        *layer(1, 32), *layer(32, 64), torch.nn.Flatten(), torch.nn.Linear(3136, 1024),
        torch.nn.ReLU(), torch.nn.Linear(1024, 10)), (64, 1, 28, 28)


def wide():
    return torch.nn.Sequential(
        torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048),
        torch.nn.ReLU(), torch.nn.Linear(2048, 10)), (8, 1024)


MODELS = {"mlp": mlp, "cnn": cnn, "wide": wide}


def call(size, group):
    values = torch.ones(max(size // 4, 1))
    return lambda: dist.all_reduce(values, group=group)


def gradients(model, bucket, group):
    """All-reduces of as many bytes as the model has, in buckets, all in flight at once."""
    total = sum(p.numel() for p in MODELS[model]()[0].parameters())
    # DDP's first bucket is at most 1 MB, so that communication starts early.
    sizes, left = [min(MB // 4, total)], total - min(MB // 4, total)
    while left:
        sizes.append(min(bucket * MB // 4, left))
        left -= sizes[-1]
    buckets = [torch.ones(s) for s in sizes]

    def reduce():
        for work in [dist.all_reduce(b, group=group, async_op=True) for b in buckets]:
            work.wait()
    return reduce


def training(model, bucket, group):
    """A step. Without a bucket size it has no communication."""
    torch.manual_seed(0)
    net, shape = MODELS[model]()
    net = DistributedDataParallel(net, process_group=group, bucket_cap_mb=bucket or 25)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.rand(shape), torch.randint(0, 10, shape[:1])

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    def alone():
        with net.no_sync():
            step()
    return step if bucket else alone


def report(n, row, found):
    ours, theirs = found["ferroflow"], found["gloo"]
    print(f"n={n} {row}: ferroflow {ours * 1e3:.3f} ms, gloo {theirs * 1e3:.3f} ms, "
          f"{theirs / ours:.2f}x", flush=True)


def goals(n, results):
    """Prints which goals are met: rows, the least ratio, and where it is not reached."""
    def ratio(row):
        return results[row]["gloo"] / results[row]["ferroflow"]
    shares = {}
    for row in results:
        if row.startswith("training "):
            alone = results["alone " + row.split()[1]]["gloo"]
            shares[row] = 1 - alone / results[row]["gloo"]
    reductions = [r for r in results if r.startswith("gradients") or
                  r.startswith("call") and int(r.split()[1]) >= MB]
    half = [r for r, share in shares.items() if share >= 0.5]
    for text, rows, least in (("all-reduce time", reductions, 1.5),
                              ("training, any size", list(shares), 1.0),
                              ("training, half of gloo's step is communication", half, 1.3)):
        missed = [f"{r} ({ratio(r):.2f}x)" for r in rows if ratio(r) < least]
        lowest = f", lowest {min(map(ratio, rows)):.2f}x" if rows else ""
        print(f"n={n} {text} >= {least}x: {len(rows) - len(missed)} of {len(rows)} rows{lowest}"
              f"{'; missed: ' + ', '.join(missed) if missed else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.25, help="of a row, backend and round")
    parser.add_argument("--only", default="", help="rows that contain this text")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {"gloo": dist.group.WORLD, "ferroflow": dist.new_group(backend="ferroflow")}
    rows = {f"call {s}": lambda g, s=s: call(s, g) for s in CALLS}
    for m in MODELS:
        rows[f"alone {m}"] = lambda g, m=m: training(m, None, g)
        for b in BUCKETS:
            rows[f"gradients {m} {b}"] = lambda g, m=m, b=b: gradients(m, b, g)
            rows[f"training {m} {b}"] = lambda g, m=m, b=b: training(m, b, g)
    rows = {name: make for name, make in rows.items()
            if args.only in name or name.startswith("alone")}
    results, n = {}, dist.get_world_size()
    for name, make in rows.items():
        works = {backend: make(groups[backend]) for backend in BACKENDS}
        each = {backend: [] for backend in BACKENDS}
        for i in range(args.rounds):
            for backend in BACKENDS[::1 if i % 2 else -1]:
                # gloo's group keeps the ranks together for both.
                each[backend].append(timed(works[backend], args.seconds, groups["gloo"]))
        results[name] = {b: statistics.median(t) for b, t in each.items()}
        if dist.get_rank() == 0:
            report(n, name, results[name])
    if dist.get_rank() == 0:
        goals(n, results)
        if args.json:
            print(json.dumps({"ranks": n, "results": results}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
