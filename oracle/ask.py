"""Makes the cases, runs each in TensorFlow, and writes them with its answers to record files.

    python oracle/ask.py --ops OPS.txt --out FOLDER [--seed N] [--count N] [--only REGEX]

OPS.txt lists the ops, one per line. A worker process runs TensorFlow. If TensorFlow crashes the process (a failed check, a
division by zero), the crash is recorded as its answer, and a new worker continues with the next case.
"""

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import time

FAILED = set()
# Time limits in seconds: of a case, and of the start, which loads TensorFlow.
CASE_LIMIT, START_LIMIT = 30.0, 600.0
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ops", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=24, help="cases for each (op, dtype)")
    p.add_argument("--only", help="ops whose whole name matches this")
    p.add_argument("--resume", action="store_true", help="go on behind the last case of an earlier run with the same arguments")
    p.add_argument("--gently", default="", help=argparse.SUPPRESS)
    p.add_argument("--without", default="", help=argparse.SUPPRESS)
    p.add_argument("--skip", type=int, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.skip is not None:
        return work(args)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "cases.bin")
    skip, began, crashes, stuck, fragile = 0, time.time(), 0, 0, {}
    if args.resume:
        skip = (scan(path) or {"serial": -1})["serial"] + 1
    else:
        open(path, "wb").close()
    while True:
        worker = subprocess.Popen([sys.executable, *sys.argv, "--skip", str(skip), "--gently", ",".join(op for op, n in fragile.items() if n > 2),
                                  "--without", ",".join(op for op, n in fragile.items() if n > 6)], stderr=open(os.path.join(args.out, "tensorflow.log"), "wb"))
        watch(worker, path)
        if worker.returncode == 0:
            break
        last = scan(path)
        stuck += last is not None and last["serial"] < skip
        if last is None or worker.returncode > 0 or stuck > 3:
            print(open(os.path.join(args.out, "tensorflow.log")).read()[-3000:])
            sys.exit(f"the worker failed ({worker.returncode})")
        if last["serial"] < skip:
            continue
        crashes += 1
        print(f"  TensorFlow crashed the process ({worker.returncode}) at {last['op']} {last['dtype']} {last['index']}", flush=True)
        if last["state"] == "asked":
            write(path, {**last, "state": "crashed"}, b"", b"", b"")
        skip = last["serial"] + 1
        fragile[last["op"]] = fragile.get(last["op"], 0) + 1
    print(f"asked in {time.time() - began:.0f} s; TensorFlow crashed the process {crashes} times")


def watch(worker, path):
    """Waits for the worker. Kills it if it has written nothing for long, because TensorFlow hangs then."""
    start = size = os.path.getsize(path)
    since = time.time()
    while worker.poll() is None:
        time.sleep(0.2)
        now = os.path.getsize(path)
        if now != size:
            size, since = now, time.time()
        elif time.time() - since > (CASE_LIMIT if size != start else START_LIMIT):
            worker.kill()
            worker.wait()


def write(path, meta, *parts):
    with open(path, "ab") as f:
        for part in (json.dumps(meta).encode(), *parts):
            f.write(struct.pack("<I", len(part)))
            f.write(part)


def scan(path):
    """The description in the last record."""
    last = None
    with open(path, "rb") as f:
        while True:
            head = f.read(4)
            if len(head) < 4:
                return last
            last = json.loads(f.read(struct.unpack("<I", head)[0]))
            for _ in range(3):
                f.seek(struct.unpack("<I", f.read(4))[0], 1)


def work(args):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.path.insert(0, HERE)
    import resource
    import tensorflow  # noqa: F401
    resource.setrlimit(resource.RLIMIT_AS, (32 << 30, 32 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import kernels
    import recipes
    from tensorflow_session import Runner
    table = recipes.load()
    ops = [line.strip() for line in open(args.ops) if line.strip()]
    if args.only:
        ops = [op for op in ops if re.fullmatch(args.only, op)]
    # Ops that crash the process repeatedly get only valid calls, and finally none.
    gently, without = args.gently.split(","), args.without.split(",")
    runner = Runner()
    serial, began, shown = 0, time.time(), 0.0
    with open(os.path.join(args.out, "cases.bin"), "ab") as out:
        for k, op in enumerate(ops):
            if op not in table:
                if args.skip == 0:
                    print(f"  no recipe for {op}", flush=True)
                continue
            for dtype, options in kernels.pairs(op, recipes.HOLD.get(op)).items():
                for index in range(args.count):
                    serial += 1
                    if serial <= args.skip or op in without:
                        continue
                    ask(out, runner, table[op], op, dtype, options, args.seed, index, serial - 1, op not in gently)
            if time.time() - shown > 5:
                shown = time.time()
                print(f"  {k + 1}/{len(ops)} ops, {serial} cases, {shown - began:.0f} s: {op}", flush=True)
    print(f"  {len(ops)} ops, {serial} cases")


def ask(out, runner, recipe, op, dtype, options, seed, index, serial, spoil):
    import traceback

    import numpy as np
    from case import Case, NotApplicable, tensor_proto
    from tensorflow.core.framework import graph_pb2
    pick = np.random.RandomState(seed * 1000 + index)
    option = options[pick.randint(len(options))]
    types = {name: ts[pick.randint(len(ts))] for name, ts in option.items()}
    case = Case(op, types, seed, index)
    meta = {"serial": serial, "op": op, "dtype": dtype, "types": types, "index": index}
    try:
        recipe(case)
    except NotApplicable:
        return
    except Exception:
        if op not in FAILED:
            FAILED.add(op)
            print(f"  the recipe of {op} failed for {types}: {traceback.format_exc(limit=-3)}", flush=True)
        return
    spoiled = spoil and case.may_mutate and index % 6 == 5 and case.mutate()
    meta |= {"fetches": case.fetches, "targets": case.targets, "mode": case.mode, "tolerance": case.tolerance, "spoiled": spoiled}
    feeds = graph_pb2.GraphDef()
    for name, (value, t) in case.feeds.items():
        node = feeds.node.add(name=name, op="Const")
        node.attr["dtype"].type = tensor_proto(value, t).dtype
        node.attr["value"].tensor.CopyFrom(tensor_proto(value, t))
    emit(out, {**meta, "state": "asked"}, b"", b"", b"")
    answer, error = runner.run(case)
    if error:
        meta |= {"state": "error", "code": error[0], "message": error[1][:300]}
    else:
        meta["state"] = "ok"
    emit(out, meta, case.graph.SerializeToString(deterministic=True), feeds.SerializeToString(deterministic=True), answer)


def emit(out, meta, *parts):
    for part in (json.dumps(meta).encode(), *parts):
        out.write(struct.pack("<I", len(part)))
        out.write(part)
    out.flush()


if __name__ == "__main__":
    main()
