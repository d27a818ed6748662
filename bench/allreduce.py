"""All-reduce of float32 among processes of this host, Ferroflow beside its peers, taking turns.

  python bench/allreduce.py --ours 'ferroflow bench allreduce --json' --torch-python PY --mpi-python PY

Peers: gloo (a Python with torch), Open MPI over shared memory and over TCP (mpirun, and a Python with
numpy and mpi4py).  A peer whose Python is not given is left out.  Every implementation times the same
number of repeats, three rounds each; lines are printed as common.py says, a table at the end.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
import json

import common

SIZES = [4, 1024, 4096, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]


def repeats(size, seconds, rounds):
    """A fixed count, equal on all ranks: none may leave the loop early."""
    return max(3, max(5, min(3000, int(seconds / (60e-6 + size / 0.5e9)))) // rounds)


def rank_loop(rank, make, allreduce, barrier, args):
    for size in args.sizes:
        buffer = make(size // 4)
        for _ in range(3):
            allreduce(buffer)
        medians, every = [], []
        for _ in range(args.rounds):
            barrier()
            times = []
            for _ in range(repeats(size, args.seconds, args.rounds)):
                start = time.perf_counter()
                allreduce(buffer)
                times.append((time.perf_counter() - start) * 1e6)
            medians.append(statistics.median(times))
            every += times
        if rank == 0:
            print(json.dumps({"bytes": size, "us": statistics.median(medians), "min_us": min(every)}), flush=True)


def gloo_rank(args):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    rank_loop(dist.get_rank(), torch.zeros, dist.all_reduce, dist.barrier, args)
    dist.destroy_process_group()


def mpi_rank(args):
    import numpy as np
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    rank_loop(world.rank, lambda n: np.zeros(n, np.float32), lambda b: world.Allreduce(MPI.IN_PLACE, b),
              world.Barrier, args)


def run(argvs, env, timeout=900):
    """Runs one process for each argv; what they print, as JSON lines."""
    procs = [subprocess.Popen(argv, env=e, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
             for argv, e in zip(argvs, env)]
    lines = []
    try:
        for p in procs:
            out = p.communicate(timeout=timeout)[0]
            lines += [json.loads(l[l.index("{"):]) for l in out.splitlines() if '{"' in l]
    finally:
        for p in procs:
            common.stop(p)
    return lines


def measure(impl, n, args):
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    me = [os.path.abspath(__file__), "--sizes", ",".join(map(str, args.sizes)), "--seconds", str(args.seconds),
          "--rounds", str(args.rounds)]
    if impl.startswith("ferroflow"):
        links = "tcp" if impl.endswith("tcp") else "auto"
        return run([shlex.split(args.ours) + ["-n", str(n), "--transport", links] + me[1:]], [env])
    if impl == "gloo":
        port = str(common.free_port())
        envs = [dict(env, RANK=str(r), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for r in range(n)]
        return run([[args.torch_python] + me + ["--rank-of", "gloo"]] * n, envs)
    links = ["tcp,self", "--mca", "btl_tcp_if_include", "lo"] if impl.endswith("tcp") else ["vader,self"]
    return run([["mpirun", "--mca", "pml", "ob1", "--mca", "btl"] + links +
                ["--oversubscribe", "--bind-to", "none", "-n", str(n), args.mpi_python] + me + ["--rank-of", "mpi"]], [env])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ours", default="target/release/ferroflow bench allreduce --json")
    p.add_argument("--torch-python")
    p.add_argument("--mpi-python")
    p.add_argument("-n", default="2,4", help="numbers of ranks")
    p.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(",")], default=SIZES)
    p.add_argument("--seconds", type=float, default=2.0, help="for each size and implementation")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--rank-of", choices=["gloo", "mpi"], help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.rank_of:
        return gloo_rank(args) if args.rank_of == "gloo" else mpi_rank(args)
    impls = ["ferroflow-shared", "ferroflow-tcp"]
    impls += ["gloo"] if args.torch_python else []
    impls += ["openmpi-shared", "openmpi-tcp"] if args.mpi_python else []
    for n in map(int, args.n.split(",")):
        found = {}
        for impl in impls:
            common._impl = impl
            for line in measure(impl, n, args):
                size, us = line["bytes"], line["us"]
                found[impl, size] = us
                common.emit("allreduce", "time", us, "us", "lower", {"n": n, "bytes": size},
                            algbw=size / us / 1e3, busbw=size / us / 1e3 * 2 * (n - 1) / n, min_us=line["min_us"])
        print(f"\nn = {n}, microseconds (median)", file=sys.stderr)
        print("".join(f"{c:>18}" for c in ["bytes"] + impls), file=sys.stderr)
        for size in args.sizes:
            row = [f"{found[i, size]:.1f}" if (i, size) in found else "-" for i in impls]
            print("".join(f"{c:>18}" for c in [size] + row), file=sys.stderr)


if __name__ == "__main__":
    main()
