"""Compares Ferroflow with TensorFlow in one run, with the same client.

Every round runs each benchmark for TensorFlow without oneDNN, for TensorFlow with oneDNN, and for the server of
--server-cmd.  The order changes from round to round.  Without --server-cmd, TensorFlow is compared with itself, which
shows the noise.  Writes DIR/lines.jsonl and DIR/report.md.
"""

import argparse
import importlib.util
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time

import report
from common import HERE, tf_server_cmd

CLUSTER = ("cluster_step", "cluster_traffic", "cluster_clients", "cluster_train", "train_job")
BENCHMARKS = ("null_step", "concurrency", "feed_fetch", "large_graph", "checkpoint", "startup") + CLUSTER + ("kernels",)
GROUPS = {"distributed": CLUSTER}
NEED_BINARY = ("startup", "train_job")
HAVE_FLOOR = ("null_step", "feed_fetch")
RUST = "rust"
TIMEOUT = 900


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--server-cmd", metavar="CMD",
                   help="command of one of our servers; {cluster_json} {job} {task} {addr} {port}")
    p.add_argument("--binary", metavar="PATH", help="our binary: its size, and the jobs it runs by itself")
    p.add_argument("--floor-cmd", metavar="CMD",
                   help="command of an echo server, which shows the client's own cost (README.md)")
    p.add_argument("--rust-cmd", metavar="CMD",
                   help="command that prints the figures of the Rust benches (README.md)")
    p.add_argument("--torch-python", metavar="PATH",
                   help="a Python with torch, to measure kernels in PyTorch too")
    p.add_argument("--only", action="append", metavar="NAME",
                   help="one of %s; may be repeated"
                        % ", ".join(BENCHMARKS + tuple(GROUPS) + (RUST,)))
    p.add_argument("--rounds", type=int, help="default: 3, or 1 with --quick")
    p.add_argument("--quick", action="store_true", help="one short round, rough figures")
    p.add_argument("--out", metavar="DIR", default=".")
    options = p.parse_args()
    if options.only:
        options.only = [name for only in options.only for name in GROUPS.get(only, (only,))]
    unknown = set(options.only or ()) - set(BENCHMARKS) - {RUST}
    if unknown:
        p.error("no benchmark is called %s" % ", ".join(sorted(unknown)))
    if options.only and RUST in options.only and not options.rust_cmd:
        p.error("the benchmark rust needs --rust-cmd")
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


# --------------------------------------------------- benchmarks and implementations


def implementations(options):
    """[(label, options of the scripts, path of the shipped files)]"""
    tensorflow = os.path.dirname(importlib.util.find_spec("tensorflow").origin)
    both = [("tensorflow", ["--server-cmd", tf_server_cmd(0)], tensorflow),
            ("tensorflow+onednn", ["--server-cmd", tf_server_cmd(1)], tensorflow)]
    if options.server_cmd:
        ours = ("ferroflow", ["--server-cmd", options.server_cmd], options.binary)
    else:
        ours = ("TensorFlow again", ["--server-cmd", tf_server_cmd(0)], tensorflow)
    return both + [ours]


def runs(options, round_index):
    """[(benchmark, label, command)] of one round, in order."""
    impls = implementations(options)
    shift = round_index % len(impls)
    impls = impls[shift:] + impls[:shift]
    for name in BENCHMARKS:
        if options.only and name not in options.only:
            continue
        script = [sys.executable, os.path.join(HERE, name + ".py")]
        script += ["--quick"] if options.quick else []
        if name == "kernels":
            yield from kernel_runs(options, script, impls)
            continue
        for label, server, shipped in impls:
            binary = ["--binary", shipped] if name in NEED_BINARY and shipped else []
            yield name, label, script + ["--impl", label] + server + binary
            if name == "cluster_traffic" and label == "ferroflow":
                tcp = ["--server-cmd", options.server_cmd + " --data-path tcp", "--path", "tcp"]
                yield name, label, script + ["--impl", label] + tcp
        if name in HAVE_FLOOR and options.floor_cmd:
            yield name, "floor", script + ["--impl", "floor", "--floor",
                                           "--server-cmd", options.floor_cmd]
    if options.rust_cmd and (not options.only or RUST in options.only):
        yield RUST, "ferroflow", shlex.split(options.rust_cmd)


def kernel_runs(options, script, impls):
    """Kernels with one thread and, where there are as many cores, with two."""
    for threads in range(1, min(2, len(os.sched_getaffinity(0))) + 1):
        count = ["--threads", str(threads)]
        for label, server, _ in impls:
            yield "kernels", label, script + count + ["--impl", label] + server
        if options.torch_python:
            torch = [options.torch_python, os.path.join(HERE, "kernels_torch.py")]
            yield "kernels", "torch", torch + script[2:] + count + ["--impl", "torch"]


# --------------------------------------------------------------------------------- running


class Failed(Exception):
    pass


def run(command):
    """The lines a benchmark prints."""
    proc = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        out, err = proc.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Failed("not done after %d s" % TIMEOUT)
    finally:
        if proc.poll() is None:  # with the servers and clients that it has started
            os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()
    if proc.returncode:
        last = [line for line in err.splitlines() if line.strip()][-1:]
        raise Failed(" ".join(last) or "exit code %d" % proc.returncode)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def cpu_used():
    """CPU seconds since boot of all processes, and of the processes that we started and waited for."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    everyone = (sum(v) - v[3] - v[4]) / os.sysconf("SC_CLK_TCK")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return everyone, children.ru_utime + children.ru_stime


def measured(command):
    """The lines of a benchmark, with the number of cores that other processes used, and its seconds."""
    began, (all0, own0) = time.time(), cpu_used()
    lines = run(command)
    seconds, (all1, own1) = time.time() - began, cpu_used()
    if seconds < 1:  # too short for the resolution of the clocks
        return lines, seconds
    others = max(0.0, (all1 - all0) - (own1 - own0)) / seconds
    return [dict(line, other_cores=round(others, 2)) for line in lines], seconds


def machine():
    cpu = memory = "?"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = " ".join(line.split(":", 1)[1].split())
                break
    with open("/proc/meminfo") as f:
        memory = round(int(f.readline().split()[1]) / (1 << 20))
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "memory_gb": memory,
            "kernel": os.uname().release}


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "lines.jsonl")
    lines, failed = [], 0
    with open(path, "w") as out:
        def keep(line):
            lines.append(line)
            out.write(json.dumps(line) + "\n")
            out.flush()

        keep({"name": "run", "machine": machine(), "date": time.strftime("%Y-%m-%d"),
              "rounds": options.rounds, "quick": options.quick, "value": None,
              "ours": implementations(options)[-1][0]})
        for i in range(options.rounds):
            for name, label, command in runs(options, i):
                head = "round %d of %d  %-12s %-18s" % (i + 1, options.rounds, name, label)
                try:
                    found, seconds = measured(command)
                except Failed as e:
                    failed += 1
                    print("%s FAILED: %s" % (head, e), flush=True)
                    keep({"name": "run", "value": None, "failed": "%s for %s, round %d: %s"
                                                                  % (name, label, i + 1, e)})
                    continue
                print("%s %5.1f s" % (head, seconds), flush=True)
                for line in found:
                    keep(dict(line, round=i + 1))
    text = report.render(lines)
    with open(os.path.join(options.out, "report.md"), "w") as f:
        f.write(text)
    print("\n" + text)
    print("%s and report.md beside it; %d failed" % (path, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
