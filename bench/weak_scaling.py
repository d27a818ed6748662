"""Weak scaling of data-parallel training: every rank has the same number of examples, for any number of ranks.

  python bench/weak_scaling.py --program target/release/examples/weak_scaling [--ferroflow PATH] [-n 2,4]

The baseline is one rank pinned to one core.  Each rank is pinned to a core; with more ranks than cores, ranks share
cores.  `ideal` is the step time without any exchange: that of one rank times the number of ranks per core.  Efficiency
is `ideal` divided by the step time.  `speed` is the number of examples per second of all ranks relative to one rank, at
most the number of cores.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

import common


def step_ms(args, model, n):
    cores = sorted(os.sched_getaffinity(0))
    cores = " ".join(map(str, cores))
    # The core with the number of the rank, modulo the number of cores.
    pin = (f"set -- {cores}; shift $((FERROFLOW_LOCAL_RANK % $#)); "
           f"exec taskset -c $1 {shlex.quote(args.program)} {model} {args.seconds}")
    words = [args.ferroflow, "run", "-np", str(n), "--", "sh", "-c", pin]
    out = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    return [json.loads(line[line.index("{"):]) for line in out.splitlines() if "{" in line][-1]["step_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--program", default="target/release/examples/weak_scaling", type=os.path.abspath)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("--models", default="mlp,cnn")
    p.add_argument("-n", default="2,4", help="numbers of ranks")
    p.add_argument("--seconds", type=float, default=5.0, help="for each run")
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    common._impl = "ferroflow"
    cores = len(os.sched_getaffinity(0))
    counts = [1] + [int(n) for n in args.n.split(",")]
    print(f"{'model':>6} {'ranks':>6} {'step ms':>9} {'ideal ms':>9} {'efficiency':>11} {'speed':>7}   ({cores} cores)",
          file=sys.stderr)
    for model in args.models.split(","):
        found = {n: [] for n in counts}
        for _ in range(args.rounds):
            for n in counts:
                found[n].append(step_ms(args, model, n))
        alone = statistics.median(found[1])
        for n in counts:
            ms = statistics.median(found[n])
            # The busiest core limits the speed: with three ranks on two cores it has two ranks.
            ideal = alone * -(-n // cores)
            efficiency, speed = ideal / ms, n * alone / ms
            common.emit("weak_scaling", "step", ms, "ms", "lower", {"model": model, "n": n, "cores": cores},
                        ideal=ideal, efficiency=efficiency, speed=speed, least=min(found[n]), most=max(found[n]))
            print(f"{model:>6} {n:>6} {ms:>9.2f} {ideal:>9.2f} {efficiency:>10.1%} {speed:>6.2f}x", file=sys.stderr)


if __name__ == "__main__":
    main()
