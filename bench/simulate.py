"""All-reduce on real links of known speed beside the prediction of `ferroflow plan --simulate`.

  sudo python bench/simulate.py --ferroflow target/release/ferroflow [-n 2,4,16,64] [--rate 20mbit] [--bytes 1000000]

Each rank has its own network namespace, and tc shapes both directions of its link (see slow_link.py).  The links are so
slow that two cores can serve 64 of them.  Prints a line of JSON for each algorithm and number of ranks.

Needs root and iproute2.  It removes the namespaces at the end.
"""

import argparse
import json
import os
import subprocess
import sys

import slow_link


def measured(args, names, algorithm):
    words = [args.ferroflow, "run", "-np", str(len(names)), "--insecure", "-H", ",".join(f"{n}:1" for n in names),
             "--rsh", "ip netns exec {host} sh -c", "--", args.ferroflow, "bench", "allreduce", "--json",
             "--transport", "tcp", "--algorithm", algorithm, "--sizes", str(args.bytes),
             "--seconds", str(args.seconds), "--rounds", "1"]
    out = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=args.timeout, check=True).stdout
    lines = [json.loads(line[line.index("{"):]) for line in out.splitlines() if "{" in line]
    return next(line["us"] for line in lines if line.get("bytes") == args.bytes) * 1e-6


def simulated(args, n):
    words = [args.ferroflow, "plan", "--json", "--model-bytes", str(args.bytes), "--link",
             f"{slow_link.bits(args.rate) / 8}B/s", "-n", str(n), "--step-time", "1s", "--simulate", str(n),
             "--servers", "1", "--latency", args.latency]
    out = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return {row["algorithm"]: row["seconds"] for row in out["simulated"]["all_reduce"]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("-n", default="2,4,16,64", help="ranks")
    p.add_argument("--rate", default="20mbit", help="of each link, both ways, as tc has it")
    p.add_argument("--burst", default="64kb", help="what a link carries at once")
    p.add_argument("--bytes", type=int, default=1_000_000)
    p.add_argument("--algorithms", default="ring,halving-doubling,double-tree")
    p.add_argument("--latency", default="200us", help="of a message on the simulated network")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--timeout", type=float, default=120)
    args = p.parse_args()
    for n in map(int, args.n.split(",")):
        predictions = simulated(args, n)
        with slow_link.hosts(n, args.rate, args.burst, "2s") as names:
            for algorithm in args.algorithms.split(","):
                real = measured(args, names, algorithm)
                line = {"ranks": n, "algorithm": algorithm, "bytes": args.bytes, "rate": args.rate,
                        "measured_s": round(real, 3), "simulated_s": round(predictions[algorithm], 3),
                        "ratio": round(real / predictions[algorithm], 2)}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
