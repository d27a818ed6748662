"""Compares the predictions of `ferroflow plan` for this machine with measurements of `ferroflow bench allreduce`.

  python bench/plan.py --ferroflow target/release/ferroflow [-n 2,4] [--sizes 1MB,...]

The plan measures the all-reduce of a model's gradients, derives the speed of the link, and predicts with it.  The
prediction is compared with a later run of the same size, and with runs of half and double the size, for which the plan
has only its arithmetic.  The goal is an error of at most 20 %.
"""

import argparse
import json
import os
import subprocess
import sys

import common


def run(args, *words):
    out = subprocess.run([args.ferroflow, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return json.loads(out.stdout.splitlines()[-1])


def transfer(args, n, size, link=None):
    """Predicted seconds of communication in a step, and the link that was measured or given."""
    words = ["plan", "--json", "--model-bytes", size, "--step-time", "1s", "-n", n]
    plan = run(args, *words, *(["--link", f"{link}B/s"] if link else ["--measure", "mlp"]))
    row = next(r for r in plan["strategies"] if r["strategy"] == "all-reduce")
    return row["transfer_seconds"], plan["link_bytes_per_second"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("-n", default="2,4", help="numbers of ranks")
    p.add_argument("--sizes", default="1048576,16777216,67108864", help="bytes of gradients")
    args = p.parse_args()
    common._impl = "ferroflow"
    print(f"{'n':>3} {'plan of':>11} {'bytes':>11} {'predicted us':>13} {'measured us':>12} {'off':>6}", file=sys.stderr)
    for n in map(int, args.n.split(",")):
        for size in map(int, args.sizes.split(",")):
            _, link = transfer(args, n, size)
            for bytes_ in (size // 2, size, size * 2):
                predicted = transfer(args, n, bytes_, link)[0] * 1e6
                measured = run(args, "bench", "allreduce", "--json", "-n", n, "--sizes", bytes_)["us"]
                off = predicted / measured - 1
                common.emit("plan", "predicted", predicted, "us", "lower", {"n": n, "plan_of": size, "bytes": bytes_},
                            measured=measured, off=off)
                print(f"{n:>3} {size:>11} {bytes_:>11} {predicted:>13.1f} {measured:>12.1f} {off:>+6.0%}", file=sys.stderr)


if __name__ == "__main__":
    main()
