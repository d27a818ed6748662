"""Training steps of VGG-16's shape over slow links, with and without priorities, pieces and fusion.

  sudo python bench/slow_link.py --ferroflow target/release/ferroflow [-n 4] [--rate 1gbit] [--step-times 0.55,4.4,6.6]

Each rank has its own network namespace, a bridge joins all of them, and tc shapes both directions of every rank's link.
`ferroflow run` starts the ranks, with `ip netns exec` instead of ssh.  The table shows the measurement beside the
prediction of `ferroflow plan` for the same bytes, link and step: without overlap, and with the whole transfer hidden
behind the step.  It also shows the gain that ordering alone can bring.

Without priorities the gradients of the first layers arrive last, and the next forward pass, a third of the step, waits
for the whole transfer C: C + Ts/3.  With priorities the transfer of later layers overlaps with it: max(C, Ts).  So the
gain is greatest, 4/3, if both take equally long, and almost nothing if the transfer takes ten times the step.

Needs root and iproute2.  It removes the namespaces at the end.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys

import common


def sh(*words, check=True):
    subprocess.run(words, check=check, stdout=subprocess.DEVNULL,
                   stderr=None if check else subprocess.DEVNULL)


@contextlib.contextmanager
def hosts(n, rate, burst="256kb", queue="50ms"):
    """Namespaces that are called by their addresses, on a bridge."""
    net = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    bridge = f"ffb{os.getpid()}"
    names = [f"{net}.{i + 1}" for i in range(n)]
    shape = ["root", "tbf", "rate", rate, "burst", burst, "latency", queue]
    try:
        sh("ip", "link", "add", bridge, "type", "bridge")
        sh("ip", "link", "set", bridge, "up")
        for i, name in enumerate(names):
            outer = f"ff{os.getpid()}v{i}"
            sh("ip", "netns", "add", name)
            sh("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
            sh("ip", "link", "set", outer, "master", bridge, "up")
            sh("ip", "-n", name, "addr", "add", name + "/24", "dev", "eth0")
            sh("ip", "-n", name, "link", "set", "eth0", "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("tc", "qdisc", "add", "dev", outer, *shape)
            sh("tc", "-n", name, "qdisc", "add", "dev", "eth0", *shape)
        yield names
    finally:
        for name in names:
            sh("ip", "netns", "del", name, check=False)
        sh("ip", "link", "del", bridge, check=False)


def measure(args, names, step_time, plain):
    words = [args.ferroflow, "run", "-np", str(len(names)), "-H", ",".join(f"{n}:1" for n in names),
             "--rsh", "ip netns exec {host} sh -c", "--", args.ferroflow, "bench", "layers", "--json",
             "--transport", "tcp", "--step-time", f"{step_time}s", "--steps", str(args.steps),
             "--shrink", str(args.shrink)]
    if args.insecure:
        words.insert(2, "--insecure")
    out = subprocess.run(words + (["--plain"] if plain else []), stdout=subprocess.PIPE, text=True,
                         timeout=args.timeout, check=True).stdout
    return [json.loads(line[line.index("{"):]) for line in out.splitlines() if "{" in line][-1]


def plan(args, n, bytes_, step_time, overlap):
    words = [args.ferroflow, "plan", "--json", "--model-bytes", str(bytes_), "--link",
             f"{bits(args.rate) / 8}B/s", "-n", str(n), "--step-time", f"{step_time}s", "--overlap", str(overlap)]
    out = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = json.loads(out)["strategies"]
    return next(r for r in rows if r["strategy"] == "all-reduce")


def bits(rate):
    units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    return next(float(rate[:-len(u)]) * scale for u, scale in units.items() if rate.endswith(u))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ferroflow", default="target/release/ferroflow", type=os.path.abspath)
    p.add_argument("-n", type=int, default=4, help="ranks")
    p.add_argument("--rate", default="1gbit", help="of each link, both ways, as tc has it")
    p.add_argument("--step-times", default="0.55,4.4,6.6", help="seconds of a step of one rank")
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--shrink", type=int, default=1, help="gradients of one in so many values, to try things out")
    p.add_argument("--timeout", type=float, default=900)
    p.add_argument("--insecure", action="store_true", help="without TLS, which takes part of two cores that all ranks share")
    args = p.parse_args()
    common._impl = "ferroflow"
    print(f"{'n':>3} {'alone':>8} {'neither':>10} {'both':>10} {'gain':>7} {'at most':>8} {'efficiency':>11} "
          f"{'plan':>7} {'overlapped':>11}", file=sys.stderr)
    with hosts(args.n, args.rate) as names:
        for step_time in map(float, args.step_times.split(",")):
            neither, both = (measure(args, names, step_time, plain) for plain in (True, False))
            params = {"n": args.n, "rate": args.rate, "step_time": step_time, "bytes": both["bytes"]}
            predicted = [plan(args, args.n, both["bytes"], step_time, o)["efficiency"] for o in (0, 1)]
            transfer = 2 * (args.n - 1) / args.n * both["bytes"] / (bits(args.rate) / 8)
            at_most = max(transfer + step_time / 3, step_time) / max(transfer, step_time)
            for mode, line in [("neither", neither), ("both", both)]:
                common.emit("layers", "step", line["seconds"], "s", "lower", dict(params, mode=mode),
                            efficiency=line["efficiency"], min=line["min_seconds"], max=line["max_seconds"],
                            plan=predicted, gain_at_most=at_most)
            print(f"{args.n:>3} {step_time:>7.2f}s {neither['seconds']:>9.3f}s {both['seconds']:>9.3f}s "
                  f"{neither['seconds'] / both['seconds']:>6.2f}x {at_most:>7.2f}x {both['efficiency']:>10.1%} "
                  f"{predicted[0]:>7.1%} {predicted[1]:>11.1%}", file=sys.stderr)


if __name__ == "__main__":
    main()
