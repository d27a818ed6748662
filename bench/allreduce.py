"""All-reduce of float32 among processes of this host, Ferroflow beside its peers, taking turns.

  bench/peers.sh DIR                     # once: installs the peers
  python bench/allreduce.py --peers DIR --ours 'ferroflow bench allreduce --json'

Peers: gloo (PyTorch), Open MPI over shared memory and over TCP, Horovod on gloo with its default settings and with a
cycle time of 0.1 ms.  A peer that is not installed is left out.  Every implementation runs for the same number of
seconds.  The output has lines as in common.py, then a table with the medians and two kinds of ratios:

- Ferroflow's speed as a multiple of each peer's, and of the best peer over the same kind of link;
- its share of two measured bounds: a plain stream of the same bytes over loopback TCP, and the floor, which is the same
  work by as many threads that never wait for each other.

The last lines say which goals are met, and at which sizes not.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import common

# Which implementations are compared: those over the same kind of link.  gloo and Horovod have TCP
# only.
PEERS = {"ferroflow-shared": ["openmpi-shared"],
         "ferroflow-tcp": ["gloo", "openmpi-tcp", "horovod", "horovod-fast"]}

MB = 1 << 20
# The goals: what is compared, at which sizes, and the least ratio.
GOALS = [
    ("ferroflow-shared, of the fastest peer", "ferroflow-shared", PEERS["ferroflow-shared"], 0, None, 1.0),
    ("ferroflow-tcp, of the fastest peer", "ferroflow-tcp", PEERS["ferroflow-tcp"], 0, None, 1.0),
    ("ferroflow-tcp, of gloo, up to 1 MB", "ferroflow-tcp", ["gloo"], 0, MB, 2.0),
    ("ferroflow-tcp, of gloo, above", "ferroflow-tcp", ["gloo"], MB + 1, None, 1.5),
    ("ferroflow-tcp, of Horovod, up to 1 MB", "ferroflow-tcp", ["horovod", "horovod-fast"], 0, MB, 4.0),
    ("ferroflow-tcp, of a plain stream, from 16 MB", "ferroflow-tcp", ["stream"], 16 * MB, None, 0.85),
    ("ferroflow-tcp, of the floor, from 16 MB", "ferroflow-tcp", ["floor"], 16 * MB, None, 0.85),
]

SIZES = [4, 1024, 4096, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]


def rank_loop(rank, make, allreduce, barrier, mean, args):
    for size in args.sizes:
        buffer = make(size // 4)
        once = []
        for _ in range(3):
            start = time.perf_counter()
            allreduce(buffer)
            once.append(time.perf_counter() - start)
        # Equal on all ranks, so that none leaves the loop early.
        repeats = max(3, min(10_000, int(args.seconds / args.rounds / mean(min(once)))))
        medians, every = [], []
        for _ in range(args.rounds):
            barrier()
            times = []
            for _ in range(repeats):
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

    def mean(x):
        sum = torch.tensor([x])
        dist.all_reduce(sum)
        return float(sum) / dist.get_world_size()

    rank_loop(dist.get_rank(), torch.zeros, dist.all_reduce, dist.barrier, mean, args)
    dist.destroy_process_group()


def mpi_rank(args):
    import numpy as np
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    rank_loop(world.rank, lambda n: np.zeros(n, np.float32), lambda b: world.Allreduce(MPI.IN_PLACE, b),
              world.Barrier, lambda x: world.allreduce(x) / world.size, args)


def horovod_rank(args):
    """Horovod as its users call it: an op in TensorFlow's graph."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow.compat.v1 as tf
    import horovod.tensorflow as hvd
    hvd.init()
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)

    def make(count):
        with tf.Graph().as_default():
            values = tf.get_variable("v", [count], tf.float32, tf.zeros_initializer(), use_resource=False)
            reduced = hvd.allreduce(values, op=hvd.Sum, name=f"values{count}")
            met = hvd.allreduce(tf.ones([1]), op=hvd.Sum, name=f"barrier{count}")
            own = tf.placeholder(tf.float32, [])
            mean = hvd.allreduce(own, op=hvd.Average, name=f"mean{count}")
            session = tf.Session(config=config)
            session.run(values.initializer)
            make.barrier = session.make_callable(met.op)
            make.mean = session.make_callable(mean, [own])
            return session.make_callable(reduced.op)

    rank_loop(hvd.rank(), make, lambda run: run(), lambda: make.barrier(), lambda x: make.mean(x), args)


def run(argvs, env, timeout=900):
    """Runs one process for each argv, and returns the JSON lines they print."""
    errors = tempfile.TemporaryFile("w+")
    procs = [subprocess.Popen(argv, env=e, stdout=subprocess.PIPE, stderr=errors, text=True)
             for argv, e in zip(argvs, env)]
    lines = []
    try:
        for p in procs:
            out = p.communicate(timeout=timeout)[0]
            lines += [json.loads(l[l.index("{"):]) for l in out.splitlines() if '{"' in l]
    except subprocess.TimeoutExpired:
        print(f"{argvs[0][0]}: no answer within {timeout} s", file=sys.stderr)
    finally:
        for p in procs:
            common.stop(p)
    if not lines:
        errors.seek(0)
        print(f"{argvs[0][0]} measured nothing:\n{errors.read()[-2000:]}", file=sys.stderr)
    return lines


def measure(impl, n, args):
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    me = [os.path.abspath(__file__), "--sizes", ",".join(map(str, args.sizes)),
          "--seconds", str(args.seconds / args.rounds), "--rounds", "1"]
    if impl.startswith("ferroflow"):
        links = "tcp" if impl.endswith("tcp") else "auto"
        return run([shlex.split(args.ours) + ["-n", str(n), "--transport", links] + me[1:]], [env])
    if impl == "gloo":
        port = str(common.free_port())
        envs = [dict(env, RANK=str(r), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for r in range(n)]
        return run([[python(args, "torch")] + me + ["--rank-of", "gloo"]] * n, envs)
    if impl.startswith("horovod"):
        if impl.endswith("fast"):
            env["HOROVOD_CYCLE_TIME"] = "0.1"
        own = python(args, "horovod")
        launcher = os.path.join(os.path.dirname(own), "horovodrun")
        return run([[own, launcher, "--gloo", "--network-interfaces", "lo", "-np", str(n), "-H",
                     f"localhost:{n}", own] + me + ["--rank-of", "horovod"]], [env])
    links = ["tcp,self", "--mca", "btl_tcp_if_include", "lo"] if impl.endswith("tcp") else ["vader,self"]
    return run([["mpirun", "--mca", "pml", "ob1", "--mca", "btl"] + links +
                ["--oversubscribe", "--bind-to", "none", "-n", str(n), python(args, "mpi")] + me +
                ["--rank-of", "mpi"]], [env])


def python(args, peer):
    """The Python of a peer, or None if it is not installed."""
    path = os.path.join(args.peers or "", peer, "bin", "python")
    return path if args.peers and os.path.exists(path) else None


def table(title, columns, rows):
    print(f"\n{title}", file=sys.stderr)
    for row in [["bytes"] + columns] + rows:
        print("".join(f"{c:>17}" for c in row), file=sys.stderr)


def report(n, found, floors, impls, sizes):
    """Medians, and how many times as fast as the peers Ferroflow is."""
    rows = [[size] + [f"{found[i, size]:.1f}" if (i, size) in found else "-" for i in impls] for size in sizes]
    table(f"n = {n}, microseconds (median)", impls, rows)
    for ours, peers in PEERS.items():
        peers = [p for p in peers if p in impls]
        rows = []
        for size in sizes:
            times = [found.get((p, size)) for p in peers]
            known = [t for t in times if t]
            if known and (ours, size) in found:
                mine = found[ours, size]
                rows.append([size] + [f"{t / mine:.2f}x" if t else "-" for t in times] + [f"{min(known) / mine:.2f}x"])
        if rows:
            table(f"n = {n}, speed of {ours} as a multiple of", peers + ["the best"], rows)
    rows = []
    for size in sizes:
        if size in floors and ("ferroflow-tcp", size) in found:
            mine = found["ferroflow-tcp", size]
            rows.append([size] + [cell for us in floors[size] for cell in (f"{us:.1f}", f"{us / mine:.0%}")])
    if rows:
        table(f"n = {n}, ferroflow-tcp against", ["stream, us", "reached", "floor, us", "reached"], rows)
    print(f"\nn = {n}, goals", file=sys.stderr)
    for size, (stream, floor) in floors.items():
        found = {**found, ("stream", size): stream, ("floor", size): floor}
    for text, ours, peers, least, most, limit in GOALS:
        sizes_of_goal = [s for s in sizes if s >= least and (most is None or s <= most)]
        print(f"  {text}: >= {limit:g}x: {outcome(found, ours, peers, sizes_of_goal, limit)}", file=sys.stderr)


def outcome(found, ours, peers, sizes, limit):
    """Whether a goal is met, and at which sizes not."""
    reached = {}
    for size in sizes:
        times = [found[p, size] for p in peers if (p, size) in found]
        if times and (ours, size) in found:
            reached[size] = min(times) / found[ours, size]
    missed = [f"{size} ({times:.2f}x)" for size, times in reached.items() if times < limit]
    if not reached:
        return "not measured"
    if not missed:
        return "met"
    return f"missed at {len(missed)} of {len(reached)} sizes: " + ", ".join(missed)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ours", default="target/release/ferroflow bench allreduce --json")
    p.add_argument("--peers", metavar="DIR", help="where peers.sh installed them")
    p.add_argument("-n", default="2,4", help="numbers of ranks")
    p.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(",")], default=SIZES)
    p.add_argument("--seconds", type=float, default=2.0, help="for each size and implementation")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--rank-of", choices=["gloo", "mpi", "horovod"], help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.rank_of:
        return {"gloo": gloo_rank, "mpi": mpi_rank, "horovod": horovod_rank}[args.rank_of](args)
    impls = ["ferroflow-shared", "ferroflow-tcp"]
    impls += ["gloo"] if python(args, "torch") else []
    impls += ["openmpi-shared", "openmpi-tcp"] if python(args, "mpi") and shutil.which("mpirun") else []
    impls += ["horovod", "horovod-fast"] if python(args, "horovod") else []
    for n in map(int, args.n.split(",")):
        lines = {}
        # Alternate between implementations, because the load of the machine changes over time.
        for impl in impls * args.rounds:
            for line in measure(impl, n, args):
                lines.setdefault((impl, line["bytes"]), []).append(line)
        found, floors = {}, {}
        for (impl, size), all in lines.items():
            def median(key):
                values = [line[key] for line in all if line.get(key)]
                return statistics.median(values) if values else None

            common._impl = impl
            us, floor, stream = median("us"), median("floor_us"), median("stream_us")
            found[impl, size] = us
            if impl == "ferroflow-tcp" and floor and stream:
                floors[size] = stream, floor
            common.emit("allreduce", "time", us, "us", "lower", {"n": n, "bytes": size},
                        algbw=size / us / 1e3, busbw=size / us / 1e3 * 2 * (n - 1) / n,
                        min_us=min(line["min_us"] for line in all), rounds_us=[line["us"] for line in all],
                        **({"floor_us": floor, "of_floor": floor / us} if floor else {}),
                        **({"stream_us": stream, "of_stream": stream / us} if stream else {}))
        report(n, found, floors, impls, args.sizes)


if __name__ == "__main__":
    main()
