"""Other benchmarks of two builds of the command, taking turns in rounds: what a change costs.

  python bench/scripts_in_turns.py old=PATH new=PATH [--only jobs,edge,allreduce] [--rounds 5]

In a round each build runs every benchmark once, in random order, so that other load on the machine affects both alike.
Printed are, for each point, the medians and the median ratio of time of the second build to the first: above 1 is slower.

  jobs       train_job.py: linear jobs on a cluster, an MLP in one process
  clients    cluster_train.py: the same jobs with TensorFlow's client
  traffic    cluster_traffic.py: variables read from a ps and added to it
  edge       the example bench_edge, if --edge names it: an edge of 8 bytes from a ps to a worker
  allreduce  ferroflow bench allreduce among two ranks
  kernels    kernels.py with one thread
  large      large_graph.py

`turns.py` compares steps more exactly: there both builds serve at the same time.
"""

import argparse
import collections
import csv
import json
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = "1024,65536,1048576,16777216,67108864"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("builds", nargs=2, metavar="NAME=PATH")
    p.add_argument("--only", default="jobs,allreduce,traffic")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--edge", metavar="FILE", help="the example bench_edge, built with --release")
    p.add_argument("--csv", metavar="FILE", help="also write the points to this file")
    args = p.parse_args()
    builds = dict(build.split("=", 1) for build in args.builds)
    points = collections.defaultdict(lambda: collections.defaultdict(list))
    for turn in range(args.rounds):
        for what in args.only.split(","):
            for name in random.sample(list(builds), len(builds)):
                for point in run(what, os.path.abspath(builds[name]), args.edge):
                    params = " ".join(str(v) for v in point["params"].values())
                    key = what, "%s %s" % (point["metric"], params), point["unit"], point["better"]
                    points[key][name].append(float(point["value"]))
        print("round %d of %d" % (turn + 1, args.rounds), file=sys.stderr, flush=True)
    report(points, list(builds), args.csv)


def run(what, binary, edge):
    """The points that one benchmark prints for one build."""
    server = binary + " server --cluster {cluster_json} --job {job} --task {task}"
    script = lambda name, *more: [sys.executable, os.path.join(HERE, name), "--quick", *more]
    argv = {
        "jobs": script("train_job.py", "--binary", binary),
        "clients": script("cluster_train.py", "--server-cmd", server),
        "traffic": script("cluster_traffic.py", "--server-cmd", server),
        "large": script("large_graph.py", "--server-cmd", server),
        "kernels": script("kernels.py", "--server-cmd", server),
        "edge": [edge, binary],
        "allreduce": [binary, "bench", "allreduce", "--json", "--sizes", SIZES, "--seconds", "0.5"],
    }[what]
    if argv[0] is None:
        sys.exit("edge needs --edge FILE: cargo build --release -p ferroflow --example bench_edge")
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("%s failed:\n%s" % (" ".join(argv), done.stderr[-2000:]))
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [as_point(line) for line in lines if "metric" in line or "us" in line]


def as_point(line):
    """A line of `ferroflow bench allreduce` as one of a script."""
    if "metric" in line:
        return line
    return {"metric": "allreduce", "params": {"bytes": line["bytes"]}, "unit": "us", "better": "lower", "value": line["us"]}


def report(points, names, path):
    rows = []
    for (what, point, unit, better), values in points.items():
        first, second = (values[name] for name in names)
        # As a ratio of time, whatever the unit.
        ratios = sorted(b / a if better == "lower" else a / b for a, b in zip(first, second) if a and b)
        if not ratios:
            continue
        row = (what, point, unit, better, *("%.5g" % statistics.median(v) for v in (first, second)),
               *("%.3f" % r for r in (statistics.median(ratios), ratios[0], ratios[-1])))
        rows.append(row)
        print("%-10s %-34s %10s %10s %-8s ratio %s (%s to %s)" % (what, point, *row[4:6], unit, *row[6:]))
    if path:
        with open(path, "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["what", "point", "unit", "better", *names, "ratio", "ratio_low", "ratio_high"])
            out.writerows(rows)


main()
