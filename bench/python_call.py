"""An all-reduce of 4 bytes called from Python, beside the same call from Rust, in turns.

    pip install target/wheels/ferroflow-*.whl torch
    python bench/python_call.py -n 2

The calls from Python are `allreduce_` of numpy and torch, which name their tensors as Horovod does, and
`dist.all_reduce` of torch with the backend ferroflow, which does not. The same calls from Rust are
`ferroflow bench allreduce --named` and `ferroflow bench allreduce`. Figures are medians in
microseconds on rank 0.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time


def median(call, seconds):
    """The median microseconds of a call. All ranks make as many calls."""
    for _ in range(200):
        call()
    times = []
    for _ in range(int(seconds * 5000)):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def rank(seconds):
    import numpy as np

    import ferroflow.hvd as hvd
    hvd.init()
    found, array = {}, np.ones(1, np.float32)
    found["numpy"] = median(lambda: hvd.allreduce_(array, name="a", op=hvd.Sum), seconds)
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        import torch.distributed as dist

        import ferroflow.torch
        import ferroflow.torch.distributed  # noqa: F401 (registers the backend)
        torch.set_num_threads(1)
        tensor = torch.ones(1)
        found["torch"] = median(
            lambda: ferroflow.torch.allreduce_(tensor, name="b", op=hvd.Sum), seconds)
        store = dist.FileStore(os.environ["STORE"], hvd.size())
        dist.init_process_group("ferroflow", store=store, rank=hvd.rank(), world_size=hvd.size())
        found["dist"] = median(lambda: dist.all_reduce(tensor), seconds)
        dist.destroy_process_group()
    if hvd.rank() == 0:
        print(json.dumps(found), flush=True)
    hvd.shutdown()


def ran(command, **env):
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1", **env}, text=True,
                          capture_output=True, timeout=300)
    lines = [line[line.index("{"):] for line in done.stdout.splitlines() if "{" in line]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return json.loads(lines[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", default="2", help="numbers of ranks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a call, about")
    parser.add_argument("--ferroflow", help="the command that measures the call from Rust")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        return rank(args.seconds)
    command = shutil.which("ferroflow", path=os.path.dirname(sys.executable))
    for n in args.n.split(","):
        rounds = []
        for i in range(args.rounds):
            store = f"/tmp/ferroflow-python-call-{os.getpid()}-{n}-{i}"
            call = [args.ferroflow or command, "bench", "allreduce", "--json", "-n", n, "--sizes", "4",
                    "--seconds", str(args.seconds)]
            rust, named = ran(call), ran([*call, "--named"])
            python = ran([command, "run", "-np", n, "--", sys.executable,
                          os.path.abspath(__file__), "--rank", "--seconds", str(args.seconds)],
                         STORE=store)
            rounds.append({"rust": rust["us"], "rust named": named["us"], **python})
        medians = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
        same = {"numpy": "rust named", "torch": "rust named", "dist": "rust"}
        above = {k: f"{medians[k] - medians[r]:+.1f}" for k, r in same.items() if k in medians}
        print(f"n={n}: us:", ", ".join(f"{k} {v:.1f}" for k, v in medians.items()),
              "; above rust:", ", ".join(f"{k} {v}" for k, v in above.items()), flush=True)


if __name__ == "__main__":
    main()
