"""What counting costs: null steps and all-reduces with metrics and without, in turns.

  python bench/metrics_cost.py --ferroflow target/release/ferroflow

Needs TensorFlow's client for the steps (turns.py), and two processors.  FERROFLOW_METRICS=0 switches counting off.  The
all-reduce is `ferroflow bench layers --plain`: ranks reduce the gradients of VGG-16, 64 times smaller, one after another, so
that all runs do the same work.
Goals: a null step within 2 %, an all-reduce within 1 %.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--ferroflow", default="target/release/ferroflow")
p.add_argument("--blocks", type=int, default=20, help="blocks of steps of each kind")
p.add_argument("--steps", type=int, default=400, help="steps in a block")
p.add_argument("--rounds", type=int, default=12, help="runs of the all-reduce of each kind")
args = p.parse_args()
OFF = {"FERROFLOW_METRICS": "0"}


def layers(variables):
    """The median seconds of a step of gradients."""
    words = [args.ferroflow, "bench", "layers", "-n", "2", "--shrink", "64", "--plain", "--step-time", "1us",
             "--steps", "200", "--json"]
    done = subprocess.run(words, env={**os.environ, **variables}, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


turns = os.path.join(os.path.dirname(os.path.abspath(__file__)), "turns.py")
builds = ["off=env FERROFLOW_METRICS=0 " + args.ferroflow, "on=" + args.ferroflow]
words = ["--modes", "null,data", "--blocks", str(args.blocks), "--steps", str(args.steps)]
subprocess.run([sys.executable, turns, *builds, *words], check=True)

found = {"off": [], "on": []}
for _ in range(args.rounds):
    for kind in random.sample(list(found), 2):
        found[kind].append(layers(OFF if kind == "off" else {}))
ratio = statistics.median(a / b for a, b in zip(found["on"], found["off"]))
for kind, seconds in found.items():
    print("all-reduce    %-10s %8.1f us  from %.1f to %.1f" % (
        kind, statistics.median(seconds) * 1e6, min(seconds) * 1e6, max(seconds) * 1e6))
print("all-reduce    ratio %.3f" % ratio)
