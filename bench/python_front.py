"""The Python front end beside TensorFlow: import, null step, building a graph, memory, large feeds, size of the wheel.

    python bench/python_front.py [--ferroflow PYTHON] [--tensorflow PYTHON] [--wheel FILE]

Each figure is measured in a process of its own, the two libraries in turns. A Python that lacks a library is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

PROGRAMS = {
    "import, s": """
        import time
        began = time.perf_counter()
        tf = load()
        result = time.perf_counter() - began
    """,
    "null step, us": """
        import time
        tf = load()
        x = tf.constant(1.0)
        with tf.Session() as sess:
            times = []
            for _ in range(30):
                began = time.perf_counter()
                for _ in range(100):
                    sess.run(x)
                times.append((time.perf_counter() - began) * 1e4)
        result = sorted(times)[len(times) // 2]
    """,
    "null step of a callable, us": """
        import time
        tf = load()
        x = tf.constant(1.0)
        with tf.Session() as sess:
            call = sess.make_callable(x)
            times = []
            for _ in range(30):
                began = time.perf_counter()
                for _ in range(100):
                    call()
                times.append((time.perf_counter() - began) * 1e4)
        result = sorted(times)[len(times) // 2]
    """,
    "graph of 20,000 nodes, s": """
        import time
        tf = load()
        began = time.perf_counter()
        x = tf.placeholder(tf.float32, [10])
        for _ in range(10000):
            x = tf.add(x, 1.0)
        result = time.perf_counter() - began
        assert len(tf.get_default_graph().get_operations()) == 20001
    """,
    "training graph of 100 layers, s": """
        import time
        tf = load()
        began = time.perf_counter()
        x = tf.placeholder(tf.float32, [None, 16])
        for i in range(100):
            x = tf.layers.dense(x, 16, activation=tf.nn.relu)
        tf.train.AdamOptimizer().minimize(tf.reduce_mean(x))
        result = time.perf_counter() - began
    """,
    "feed of 100 MB, ms": """
        import numpy as np
        tf = load()
        x = tf.placeholder(tf.float32, [25_000_000])
        first = x[0]
        data = np.ones([25_000_000], np.float32)
        with tf.Session() as sess:
            result = shortest(lambda: sess.run(first, {x: data}))
    """,
    "fetch of 100 MB more than its step, ms": """
        import numpy as np
        tf = load()
        x = tf.placeholder(tf.float32, [25_000_000])
        y = x * 2.0
        data = np.ones([25_000_000], np.float32)
        with tf.Session() as sess:
            result = shortest(lambda: sess.run(y, {x: data})) - shortest(lambda: sess.run(y.op, {x: data}))
    """,
    # The result is the memory of the feed, which has to be copied once.
    "feed and fetch of 100 MB, ms": """
        import time
        import numpy as np
        tf = load()
        x = tf.placeholder(tf.float32, [25_000_000])
        y = tf.identity(x)
        data = np.ones([25_000_000], np.float32)
        with tf.Session() as sess:
            sess.run(y, {x: data})
            times = []
            for _ in range(5):
                began = time.perf_counter()
                sess.run(y, {x: data})
                times.append((time.perf_counter() - began) * 1e3)
        result = sorted(times)[len(times) // 2]
    """,
    "resident memory of a linear job, MB": """
        import numpy as np
        tf = load()
        x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        w, b = tf.Variable(0.1), tf.Variable(0.2)
        loss = tf.reduce_mean(tf.square(w * x + b - y))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(500):
                sess.run(train, {x: np.ones(8), y: np.ones(8)})
        with open("/proc/self/status") as f:
            result = next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))
    """,
}

START = """
import importlib, json, logging, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
logging.disable(logging.WARNING)
def shortest(step):
    import time
    times = []
    for _ in range(12):
        began = time.perf_counter()
        step()
        times.append((time.perf_counter() - began) * 1e3)
    return min(times)
def load():
    tf = importlib.import_module(sys.argv[1] + ".compat.v1")
    tf.disable_v2_behavior()
    return tf
"""


def measured(python, library, program):
    """One figure, or None if this Python lacks the library."""
    lines = PROGRAMS[program].split("\n")
    text = START + "\n".join(line[8:] for line in lines) + "\nprint('FIGURE', json.dumps(result))\n"
    found = subprocess.run([python, "-c", text, library], capture_output=True, text=True, check=False)
    for line in found.stdout.splitlines():
        if line.startswith("FIGURE "):
            return json.loads(line[7:])
    if f"No module named '{library}'" not in found.stderr:
        raise SystemExit(f"{program} with {library} failed:\n{found.stderr[-2000:]}")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ferroflow", default=sys.executable, help="a Python with the package ferroflow")
    parser.add_argument("--tensorflow", default=sys.executable, help="a Python with TensorFlow")
    parser.add_argument("--wheel", help="the wheel whose size is printed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="figures whose name has this in it")
    args = parser.parse_args()
    pythons = {"ferroflow": args.ferroflow, "tensorflow": args.tensorflow}
    print(f"{'':38} {'ferroflow':>12} {'tensorflow':>12} {'ratio':>8}")
    for program in PROGRAMS:
        if args.only and args.only not in program:
            continue
        rounds = [{name: measured(python, name, program) for name, python in pythons.items()} for _ in range(args.rounds)]
        ours, theirs = [[r[name] for r in rounds if r[name] is not None] for name in pythons]
        ours, theirs = [statistics.median(x) if x else None for x in (ours, theirs)]
        shown = [f"{x:12.3f}" if x is not None else f"{'-':>12}" for x in (ours, theirs)]
        ratio = f"{theirs / ours:8.1f}" if ours and theirs else f"{'-':>8}"
        print(f"{program:38} {shown[0]} {shown[1]} {ratio}", flush=True)
    if args.wheel:
        print(f"{'wheel, MB':38} {os.path.getsize(args.wheel) / 1e6:12.1f}")


if __name__ == "__main__":
    main()
