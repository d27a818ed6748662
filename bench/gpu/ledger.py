#!/usr/bin/env python3
"""Writes docs/gpu.jsonl from the folder of results of run.sh, to which the output of other
programs may be added as torch-models.log and jax-models.log.

    python3 bench/gpu/ledger.py RESULTS [--build release] > docs/gpu.jsonl
"""

import argparse
import collections
import datetime
import json
import os

# Logs of other programs, and how these were started.
PEERS = {
    "torch-models": "torch_models.py --modes eager --seconds 2",
    "jax-models": "jax_models.py --models mlp,cnn --seconds 2",
}


def lines(path):
    """The lines of a log that are JSON objects."""
    if not os.path.exists(path):
        return
    with open(path) as f:
        for line in f:
            if line.startswith("{"):
                yield json.loads(line)


def rounded(value):
    """A number, or each of a list, with four decimals."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--build", default="release")
    parser.add_argument("--date", default=str(datetime.date.today()))
    options = parser.parse_args()
    with open(os.path.join(options.results, "machine.txt")) as f:
        device, driver = [part.strip() for part in f.readline().split(",")][:2]
    head = {"date": options.date, "device": device, "driver": driver}
    ran = dict(head, command="cargo xtask gpu; bash target/gpu/run.sh", build=options.build)
    for log in sorted(os.listdir(options.results)):
        name = log.removesuffix(".log")
        path = os.path.join(options.results, log)
        if name.startswith(("first-", "train-", "ranks-", "tasks", "losses", *PEERS)):
            how = PEERS.get(name)
            by = dict(head, command="python3 bench/gpu/" + how) if how else ran
            for found in lines(path):
                found.pop("device", None)
                if name == "losses" and "jax" not in found:
                    continue
                numbers = {k: rounded(v) for k, v in found.items()}
                kind = numbers.pop("kind", "train")
                print(json.dumps(dict(by, kind=kind, log=name, **numbers)))
        elif name.startswith(("memcheck", "racecheck")):
            with open(path) as f:
                text = f.read()
            ok = "ERROR SUMMARY: 0 errors" in text or "RACECHECK SUMMARY: 0 hazards" in text
            finished = "SUMMARY:" in text and "didn't terminate successfully" not in text
            print(json.dumps(dict(
                ran, kind="sanitizer", tool=name, finished=finished, ok=ok if finished else None)))
    ops = collections.defaultdict(list)
    for found in lines(os.path.join(options.results, "ops.jsonl")):
        ops[found["op"]].append(found)
    for op, found in sorted(ops.items()):
        errors = {one["dtype"]: float("%.2g" % one["worst"]) for one in found if one["worst"] > 0}
        print(json.dumps(dict(
            head, kind="op", op=op, dtypes=sorted(one["dtype"] for one in found),
            relative_error=errors, ok=all(one["ok"] for one in found))))


main()
