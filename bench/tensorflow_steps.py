"""Training steps/s in TensorFlow: `ferroflow.tensorflow` beside Horovod on gloo, in turns.

    bench/peers.sh DIR                     # once: installs the peers
    DIR/horovod/bin/pip install target/wheels/ferroflow-*.whl
    DIR/horovod/bin/python bench/tensorflow_steps.py -n 2,4

Each step is a tf.function with a `DistributedGradientTape` and SGD, on TensorFlow 2.15.1. Models:

- `small`: one layer 784-10, batch 32
- `mlp`: 784-512-512-10, batch 128, and `cnn`: two convolutions, batch 64, as in the other benchmarks
- `wide`: 1024-2048-2048-10, batch 8, whose gradients take longer than its step

Horovod runs with its default settings and with a cycle time of 0.1 ms; the better one counts. The
last lines say which goals are met.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

GOALS = {"small": 2.0}
MODELS = ("small", "mlp", "cnn", "wide")


def build(tf, model):
    """The variables, the loss and the shape of the inputs of a model."""
    def dense(n_in, n_out):
        w = tf.Variable(tf.random.stateless_normal([n_in, n_out], [n_in, n_out]) * 0.05)
        return [w, tf.Variable(tf.zeros([n_out]))]
    if model == "cnn":
        variables = []
        for n_in, n_out in ((1, 32), (32, 64)):
            w = tf.random.stateless_normal([5, 5, n_in, n_out], [n_in, n_out]) * 0.1
            variables += [tf.Variable(w), tf.Variable(tf.zeros([n_out]))]
        variables += dense(3136, 1024) + dense(1024, 10)
        batch, width = 64, 784
    else:
        sizes = {"small": [784, 10], "mlp": [784, 512, 512, 10], "wide": [1024, 2048, 2048, 10]}
        variables = [v for a, b in zip(sizes[model], sizes[model][1:]) for v in dense(a, b)]
        batch, width = {"small": 32, "mlp": 128, "wide": 8}[model], sizes[model][0]

    def loss(x, y):
        layers = list(zip(variables[::2], variables[1::2]))
        if model == "cnn":
            x = tf.reshape(x, [-1, 28, 28, 1])
            for w, b in layers[:2]:
                x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME") + b), 2, 2, "SAME")
            x, layers = tf.reshape(x, [-1, 3136]), layers[2:]
        for w, b in layers[:-1]:
            x = tf.nn.relu(x @ w + b)
        x = x @ layers[-1][0] + layers[-1][1]
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=y))
    return variables, loss, (batch, width)


def rank_of(module, seconds):
    """Measures all models on this rank."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import importlib

    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    hvd = importlib.import_module(module)
    hvd.init()

    for model in MODELS:
        variables, loss, (batch, width) = build(tf, model)
        hvd.broadcast_variables(variables, 0)
        x = tf.random.stateless_uniform([batch, width], [1, hvd.rank()])
        y = tf.random.stateless_uniform([batch], [2, hvd.rank()], 0, 10, tf.int32)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                value = loss(x, y)
            tape = hvd.DistributedGradientTape(tape)
            for g, v in zip(tape.gradient(value, variables), variables):
                v.assign_sub(0.01 * g)
            return value

        for _ in range(5):
            step()
        start = time.perf_counter()
        for _ in range(5):
            step().numpy()
        each = tf.constant((time.perf_counter() - start) / 5)
        # Equal on all ranks, so that none leaves the loop early.
        count = max(5, int(seconds / float(hvd.allreduce(each, name=f"count.{model}"))))
        rates = []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(count):
                value = step().numpy()
            rates.append(count / (time.perf_counter() - start))
        if hvd.rank() == 0:
            print(json.dumps({"model": model, "rate": statistics.median(rates),
                              "loss": float(value)}), flush=True)
    hvd.shutdown()


def measure(impl, n, args):
    """Runs one implementation on `n` ranks. Returns the rates of the models."""
    folder = os.path.dirname(sys.executable)
    module = "ferroflow.tensorflow" if impl == "ferroflow" else "horovod.tensorflow"
    program = [sys.executable, os.path.abspath(__file__), "--rank-of", module, "--seconds",
               str(args.seconds)]
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    if impl == "ferroflow":
        command = [os.path.join(folder, "ferroflow"), "run", "-np", str(n), "--"]
    else:
        command = [sys.executable, os.path.join(folder, "horovodrun"), "--gloo",
                   "--network-interfaces", "lo", "-np", str(n), "-H", f"localhost:{n}"]
        if impl == "horovod-fast":
            env["HOROVOD_CYCLE_TIME"] = "0.1"
    ran = subprocess.run(command + program, env=env, text=True, capture_output=True, timeout=600)
    found = [json.loads(line[line.index("{"):]) for line in ran.stdout.splitlines()
             if '{"model"' in line]
    if len(found) < len(MODELS):
        print(f"{impl} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}", file=sys.stderr)
    return {f["model"]: f for f in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", default="2,4", help="numbers of ranks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a model and repetition")
    parser.add_argument("--impls", default="ferroflow,horovod,horovod-fast")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank_of:
        return rank_of(args.rank_of, args.seconds)
    impls = args.impls.split(",")
    for n in map(int, args.n.split(",")):
        rates = {}
        for _ in range(args.rounds):
            for impl in impls:
                for model, found in measure(impl, n, args).items():
                    rates.setdefault((model, impl), []).append(found["rate"])
        for model in MODELS:
            medians = {i: statistics.median(rates[model, i]) for i in impls if (model, i) in rates}
            text = ", ".join(f"{i} {r:.1f}" for i, r in medians.items())
            peers = [r for i, r in medians.items() if i != "ferroflow"]
            if peers and "ferroflow" in medians:
                ratio, least = medians["ferroflow"] / max(peers), GOALS.get(model, 1.0)
                text += f"; {ratio:.2f}x, goal {least}x: {'met' if ratio >= least else 'missed'}"
            print(f"n={n} {model}: steps/s: {text}", flush=True)


if __name__ == "__main__":
    main()
