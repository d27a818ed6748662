#!/usr/bin/env python3
"""Runs programs that others wrote with TensorFlow in process and on Ferroflow, and compares.

    python gallery/run.py CHECKOUTS --ferroflow target/release/ferroflow

CHECKOUTS is a folder with checkouts of the repositories that `programs.py` names; missing ones are
skipped by name. Each program is copied, changed as its row says, and run twice by `launch.py`: as it
is, and by `ferroflow exec --client tensorflow`, so that its sessions run on a Ferroflow server. Its
numbers must agree, and it must end. `--page FILE` writes the table of the book.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from programs import PROGRAMS

HERE = os.path.dirname(os.path.abspath(__file__))
# Numbers after these words are results. The last one of each is compared.
RESULT = re.compile(r"(?i)\b(loss|cost|accuracy|acc)\b[^0-9\n-]{0,24}(-?\d+\.\d+(?:e[-+]?\d+)?)")
# The last column of a table of speeds is the loss (tf_cnn_benchmarks).
COLUMN = re.compile(r"(?m)^\d+\timages/sec:.*\t(-?\d+\.\d+)")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
PAGE_MARKS = ("<!-- table begins -->", "<!-- table ends -->")


class Outcome:
    """One run of a program."""

    def __init__(self, code, seconds, output):
        self.code, self.seconds, self.output = code, seconds, output
        found = {}
        for word, number in RESULT.findall(output):
            found.setdefault(word.lower(), []).append(float(number))
        for number in COLUMN.findall(output):
            found.setdefault("loss", []).append(float(number))
        if not found and (numbers := NUMBER.findall(output)):
            # A program that names none of its results: its last numbers.
            found["last numbers"] = [abs(float(n)) for n in numbers]
        # Means of the last few: single batches vary.
        self.results = {w: sum(n[-5:]) / len(n[-5:]) for w, n in found.items()}

    def error(self):
        lines = [x for x in self.output.strip().splitlines() if x.strip()]
        return lines[-1][:160] if lines else "no output"


def checkout(folder, repository):
    """The checkout of a repository, named as on GitHub, as its last part, or with `+` for `/`."""
    for name in (repository, repository.split("/")[1], repository.replace("/", "+")):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            return path
    return None


def prepared(program, source, folder):
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git"))
    for file, pattern, text in program.changes:
        path = os.path.join(folder, file)
        with open(path) as f:
            before = f.read()
        after, count = re.subn(pattern, text, before)
        if count == 0:
            raise ValueError(f"{file} has nothing like {pattern}; it is another version")
        with open(path, "w") as f:
            f.write(after)


def run(program, folder, command, limit):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
    line = [*command, os.path.join(HERE, "launch.py"), os.path.join(folder, program.program),
            *program.arguments]
    start = time.monotonic()
    process = subprocess.Popen(line, cwd=os.path.join(folder, program.folder), env=env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        code = f"longer than {limit} s"
    return Outcome(code, time.monotonic() - start, output)


def compared(a, b, tolerance):
    """Whether results agree, and a text of them."""
    words = sorted(set(a.results) & set(b.results))
    texts, agree = [], True
    for word in words:
        x, y = a.results[word], b.results[word]
        agree = agree and abs(x - y) <= tolerance * max(abs(x), abs(y), 0.1)
        texts.append(f"{word} {x:.4g} / {y:.4g}")
    return agree, ", ".join(texts) or "none printed"


def measure(program, args):
    source = checkout(args.checkouts, program.repository)
    if source is None:
        return {"program": program, "skipped": "no checkout"}
    here = [sys.executable]
    ours = [args.ferroflow, "exec", "--client", "tensorflow", "--python", sys.executable]
    outcomes = []
    for command in (here, ours):
        with tempfile.TemporaryDirectory(prefix="gallery-") as temporary:
            folder = os.path.join(temporary, "checkout")
            try:
                prepared(program, source, folder)
            except (OSError, ValueError) as e:
                return {"program": program, "skipped": str(e)}
            outcomes.append(run(program, folder, command, args.limit))
    first, second = outcomes
    if args.logs:
        os.makedirs(args.logs, exist_ok=True)
        for name, outcome in zip(("tensorflow", "ferroflow"), outcomes):
            log = os.path.join(args.logs, f"{re.sub('[^a-z0-9]+', '-', program.name)}.{name}.log")
            with open(log, "w") as file:
                file.write(outcome.output)
    if first.code != 0:
        return {"program": program, "skipped": f"does not run with TensorFlow: {first.error()}"}
    agree, text = compared(first, second, args.tolerance)
    problem = None
    if isinstance(second.code, str):
        problem = second.code
    elif second.code != 0:
        problem = f"fails: {second.error()}"
    elif not agree:
        problem = f"other results: {text}"
    return {"program": program, "tensorflow": first.seconds, "ferroflow": second.seconds,
            "results": text, "problem": problem}


def row(found):
    program = found["program"]
    if "skipped" in found:
        return f"| {program.name} | {program.repository} | | | | skipped: {found['skipped']} |"
    a, b = found["tensorflow"], found["ferroflow"]
    result = found["problem"] or f"equal: {found['results']}"
    return (f"| {program.name} | {program.repository} | {a:.1f} s | {b:.1f} s | {b / a:.2f} | "
            f"{result} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", help="folder with the checkouts")
    parser.add_argument("--ferroflow", default="ferroflow", help="the command")
    parser.add_argument("--only", action="append", help="programs whose names contain this")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a run")
    parser.add_argument("--tolerance", type=float, default=0.1,
                        help="relative difference of results that is accepted")
    parser.add_argument("--page", help="write the table into this page of the book")
    parser.add_argument("--logs", help="keep the outputs in this folder")
    parser.add_argument("--list", action="store_true", help="show the programs")
    args = parser.parse_args()
    chosen = [p for p in PROGRAMS
              if not args.only or any(part in p.name for part in args.only)]
    if args.list:
        for program in chosen:
            print(f"{program.name}: {program.repository} {program.program}")
        return 0
    args.ferroflow = os.path.abspath(args.ferroflow) if os.path.exists(args.ferroflow) \
        else args.ferroflow
    print("| Program | Repository | TensorFlow | Ferroflow | Ratio | Results |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows, problems, ratios = [], [], []
    for program in chosen:
        found = measure(program, args)
        rows.append(row(found))
        print(rows[-1], flush=True)
        if found.get("problem"):
            problems.append(program.name)
        if "tensorflow" in found and not found["problem"]:
            ratios.append(found["ferroflow"] / found["tensorflow"])
    ratios.sort()
    middle = f", median ratio {ratios[len(ratios) // 2]:.2f}" if ratios else ""
    print(f"{len(ratios)} programs with equal results, {len(problems)} with problems{middle}")
    if args.page:
        with open(args.page) as file:
            text = file.read()
        before, rest = text.split(PAGE_MARKS[0])
        _, after = rest.split(PAGE_MARKS[1])
        head = ["| Program | Repository | TensorFlow | Ferroflow | Ratio | Results |",
                "| --- | --- | --- | --- | --- | --- |"]
        table = "\n".join(head + rows)
        with open(args.page, "w") as file:
            file.write(f"{before}{PAGE_MARKS[0]}\n\n{table}\n\n{PAGE_MARKS[1]}{after}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
