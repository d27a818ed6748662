"""UCX beside TCP on this host, in turns: all-reduce of ranks, and values between tasks.

  python bench/ucx.py --ferroflow target/release/ferroflow

Needs the library of UCX (Debian: libucx0), and TensorFlow's client for the tasks (turns.py).  UCX is measured twice: over its
TCP alone (UCX_TLS=tcp), as a peer of ours, and over what it chooses itself on one host.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--ferroflow", default="target/release/ferroflow")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--seconds", default="0.3", help="time for each size")
p.add_argument("--sizes", default="4,4KiB,64KiB,1MiB,16MiB")
p.add_argument("--blocks", type=int, default=8)
args = p.parse_args()

LINKS = {"tcp": ("tcp", {}), "ucx over tcp": ("ucx", {"UCX_TLS": "tcp"}), "ucx": ("ucx", {}), "shared": ("shared", {})}


def reduce(transport, variables):
    """Median microseconds by size."""
    words = [args.ferroflow, "bench", "allreduce", "-n", "2", "--transport", transport, "--sizes", args.sizes]
    done = subprocess.run(words + ["--seconds", args.seconds, "--json"], env={**os.environ, **variables}, check=True,
                          capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert all(line["links"].startswith(transport) for line in lines), done.stderr
    return {line["bytes"]: line["us"] for line in lines}


found = {}
for _ in range(args.rounds):
    for name, (transport, variables) in LINKS.items():
        for size, time in reduce(transport, variables).items():
            found.setdefault((name, size), []).append(time)
for (name, size), times in found.items():
    print("all-reduce %10d bytes  %-13s %9.1f us  from %.1f to %.1f" % (
        size, name, statistics.median(times), min(times), max(times)), flush=True)

turns = os.path.join(os.path.dirname(os.path.abspath(__file__)), "turns.py")
PATHS = {"tcp": "--data-path tcp", "ucx-tcp": "--data-path ucx", "ucx": "--data-path ucx"}
builds = []
for name, flags in PATHS.items():
    script = "/tmp/ferroflow-%s-%d" % (name, os.getpid())
    variables = "UCX_TLS=tcp " if name == "ucx-tcp" else ""
    with open(script, "w") as f:
        f.write("#!/bin/sh\n%s exec %s \"$@\" %s\n" % (variables, os.path.abspath(args.ferroflow), flags))
    os.chmod(script, 0o755)
    builds.append(name + "=" + script)
words = ["--modes", "read:65536,read:1048576,read:16777216", "--blocks", str(args.blocks), "--steps", "40"]
try:
    subprocess.run([sys.executable, turns, *builds, *words], check=True)
finally:
    for build in builds:
        os.remove(build.split("=", 1)[1])
