"""All-reduce and DDP in torch: the backend ferroflow beside gloo, in turns, in one run.

    torchrun --nproc-per-node 2 bench/torch_allreduce.py
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ferroflow.torch.distributed  # noqa: F401 (registers the backend)

SIZES = [4, 1 << 20, 4 << 20, 25 << 20]
ROUNDS = 7


def timed(work, count, group):
    """The median milliseconds of a call, in the slowest rank."""
    for _ in range(3):
        work()
    dist.barrier(group)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    slowest = torch.tensor([statistics.median(times) * 1e3], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=group)
    return slowest.item()


def reduction(size, group):
    values = torch.ones(size // 4)
    return lambda: dist.all_reduce(values, group=group)


def training(width, group):
    """A step of a network of three layers. Its gradients travel in buckets of 25 MB."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
        torch.nn.ReLU(), torch.nn.Linear(width, 10))
    model = DistributedDataParallel(net, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(16, width), torch.randint(0, 10, (16,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return step


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {"gloo": dist.group.WORLD, "ferroflow": dist.new_group(backend="ferroflow")}
    rows = [(f"all-reduce of {s} bytes", lambda g, s=s: reduction(s, g), 200 if s < 1 << 20 else 20)
            for s in SIZES]
    rows += [(f"DDP step, width {w}", lambda g, w=w: training(w, g), 20) for w in (64, 512, 1024)]
    results = {}
    for name, make, count in rows:
        works = {backend: make(group) for backend, group in groups.items()}
        each = {backend: [] for backend in groups}
        for _ in range(ROUNDS):
            for backend, group in groups.items():
                each[backend].append(timed(works[backend], count, group))
        results[name] = {b: statistics.median(t) for b, t in each.items()}
        if dist.get_rank() == 0:
            ours, theirs = results[name]["ferroflow"], results[name]["gloo"]
            print(f"{name}: ferroflow {ours:.3f} ms, gloo {theirs:.3f} ms, "
                  f"{theirs / ours:.2f}x", flush=True)
    if dist.get_rank() == 0 and "--json" in sys.argv:
        print(json.dumps({"ranks": dist.get_world_size(), "results": results}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
