"""A recommender with a table of 512 MB over slow links: on parameter servers, by all-reduce, and hybrid.

  sudo python bench/hybrid.py --ferroflow target/release/ferroflow --recommender target/release/examples/recommender

Each task has its own network namespace, a bridge joins all of them, and tc shapes both directions of every link.
`ferroflow run --ps P -np N` starts the tasks, with `ip netns exec` instead of ssh.  The layouts:

  hybrid  the table is on the parameter servers, dense gradients are all-reduced
  ps      all variables are on the parameter servers
  gather  all variables are in every rank; the rows that a rank has used are sent to all others
  dense   the same, but the gradient of the whole table is all-reduced

Needs root and iproute2.  It removes the namespaces at the end.
"""

import argparse
import os
import re
import subprocess
import sys

import common
from slow_link import hosts


def measure(args, names, layout, steps):
    words = [args.ferroflow, "run", "--ps", str(args.ps), "-np", str(args.n), "--insecure",
             "-H", ",".join(f"{n}:1" for n in names), "--rsh", "ip netns exec {host} sh -c", "--",
             args.recommender, "--layout", layout, "--rows", str(args.rows), "--width", str(args.width),
             "--hidden", str(args.hidden), "--batch", str(args.batch), "--steps", str(steps)]
    out = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=args.timeout, check=True).stdout
    found = re.search(r"([\d.]+) s a step \(median; ([\d.]+) to ([\d.]+)\)", out)
    if not found:
        sys.exit(out)
    return [float(x) for x in found.groups()]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("--recommender", default="target/release/examples/recommender", type=os.path.abspath)
    p.add_argument("-n", type=int, default=4, help="ranks")
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--rate", default="1gbit", help="of each link, both ways, as tc has it")
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--hidden", type=int, default=2048)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--layouts", default="hybrid,ps,gather,dense")
    p.add_argument("--timeout", type=float, default=600)
    args = p.parse_args()
    common._impl = "ferroflow"
    seconds = {}
    with hosts(args.n + args.ps, args.rate) as names:
        for layout in args.layouts.split(","):
            # A step of `dense` takes seconds.
            steps = max(4, args.steps // 3) if layout == "dense" else args.steps
            median, least, most = measure(args, names, layout, steps)
            seconds[layout] = median
            params = {"n": args.n, "ps": args.ps, "rate": args.rate, "layout": layout, "hidden": args.hidden,
                      "table_bytes": args.rows * args.width * 4, "batch": args.batch}
            common.emit("hybrid", "step", median, "s", "lower", params, min=least, max=most)
            gain = median / seconds.get("hybrid", median)
            print(f"{layout:>8} {median:>8.3f} s ({least:.3f} to {most:.3f})  hybrid is {gain:.2f}x as fast", file=sys.stderr)


if __name__ == "__main__":
    main()
